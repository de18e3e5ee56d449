/** Peak memory of the worst device of every stage, by category, and the findings where it does not
 * fit. */
#include "solver/eval/moves/moves.h"
#include "solver/eval/train/steps.h"
#include "solver/plan/parts.h"

#include "solver/base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The part of a stage's input that one device of a dp rank keeps. */
static double stage_input_bytes(const struct hv__pipeline *pl, const struct hv__rank *rk,
                                const struct hv_pass *pass)
{
    const struct hv_stage *stage = &pl->replica->stages[rk->stage];
    int block = stage->n_ranges > 0 ? stage->ranges[0].from2 / 2 : 0;
    const struct hv_stage s = hv_stage_with_degrees(stage, hv_stage_degrees(stage, block));
    double device_bytes = pass->hop_bytes / (double)(rk->width * rk->cuts);
    return device_bytes * (s.sequence_parallel ? 1 : s.tp.degree);
}

/* What a stage of the graph keeps from its forward pass on, of one data-parallel rank: in all, for
 * the weight gradient alone, and brought back by recomputation. */
struct kept {
    double *all, *weights, *again;
};

/* Fills row g of the kept bytes, of a shape, and of those that are there during an operation only.
 */
static void keep_of_stage(const struct hv__pipeline *pl, size_t g, size_t shape, size_t i_dp,
                          const struct kept *keep, double *transient)
{
    const struct hv__gstage *x = &pl->gstages[g];
    const struct hv__rank *rk = &pl->ranks[x->rank];
    double held = 1 + rk->memory[i_dp % rk->n_dp].fragmentation_frac;
    const struct hv_pass *pass = &x->pass[shape * rk->n_dp + i_dp % rk->n_dp];
    const struct hv_pass *plain = &x->plain[shape * rk->n_dp + i_dp % rk->n_dp];
    keep->all[g] = plain->activation_bytes;
    keep->weights[g] = plain->weight_only_bytes;
    if (x->again) {
        /* F keeps the input of the stage, R brings back everything */
        keep->all[g] = fmin(keep->all[g], stage_input_bytes(pl, rk, pass));
        keep->weights[g] = fmin(keep->weights[g], keep->all[g]);
        keep->again[g] = held * (plain->activation_bytes - keep->all[g]);
    }
    keep->all[g] *= held;
    keep->weights[g] *= held;
    for (unsigned k = 0; k < HV_OP_KIND_N; k++) {
        transient[g * HV_OP_KIND_N + k] = k == HV_OP_W   ? 0
                                          : k == HV_OP_F ? held * pass->transient_bytes
                                                         : held * plain->transient_bytes;
    }
}

/* Micro-batches and slices by their tokens, those of the first shape 1. */
static double *scale_of_micro_batches(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    size_t k = (size_t)pl->n_mb * (size_t)(pl->n_slices > 1 ? pl->n_slices : 1);
    double *scale = hv_arena_new(l->arena, double, k);
    double first = pl->shapes[0].sequences * pl->shapes[0].tokens;
    for (size_t i = 0; i < k; i++) {
        const struct hv__shape *s = &pl->shapes[pl->shape_of[i]];
        scale[i] = s->sequences * s->tokens / first;
    }
    return scale;
}

/** Tables of memory: one, or one per shape where micro-batches differ in the samples of modules, so
 * that no one factor holds for all stages. */
static size_t n_tables(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    return l->schedule.scaled ? pl->n_shapes : 1;
}

struct hv_pipe_memory hv__memory_tables(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                        size_t i_dp)
{
    size_t n = pl->n_gstages, cells = n * HV_OP_KIND_N, many = n_tables(l, pl);
    const struct kept keep = {hv_arena_new(l->arena, double, n), hv_arena_new(l->arena, double, n),
                              hv_arena_new(l->arena, double, n)};
    double *start = hv_arena_new(l->arena, double, many *cells);
    double *end = hv_arena_new(l->arena, double, many *cells);
    double *transient = hv_arena_new(l->arena, double, many *cells);
    double *base = hv_arena_new(l->arena, double, pl->n_ranks);
    for (size_t i = 0; i < many; i++) {
        for (size_t g = 0; g < n; g++) {
            size_t shape = many > 1 ? i : pl->gstages[g].shape;
            keep_of_stage(pl, g, shape, i_dp, &keep, transient + i * cells);
        }
        hv_pipe_memory_simple(pl->schedule, keep.all, keep.weights, keep.again, start + i * cells,
                              end + i * cells);
    }
    for (size_t r = 0; r < pl->n_ranks; r++) {
        const struct hv_memory *m = &pl->ranks[r].memory[i_dp % pl->ranks[r].n_dp];
        base[r] = m->weights_bytes + m->gradients_bytes + m->master_bytes + m->optimizer_bytes +
                  m->overhead_bytes;
    }
    struct hv_pipe_memory mem = {
        .start_bytes = start, .end_bytes = end, .transient_bytes = transient, .base_bytes = base};
    if (many > 1) {
        mem.table_of = pl->shape_of;
    } else if (pl->n_shapes > 1 && pl->shape_of_stage == NULL) {
        mem.mb_scale = scale_of_micro_batches(l, pl);
    }
    hv__stream_memory(l, pl, i_dp, base, &mem);
    return mem;
}

/** True where dp rank d of every stage is priced like an earlier one, so that its memory is known.
 */
static bool seen_before(const struct hv__pipeline *pl, size_t d)
{
    for (size_t r = 0; r < pl->n_ranks; r++) {
        const struct hv__rank *rk = &pl->ranks[r];
        if (d < rk->n_dp && rk->like[d] == d) {
            return false;
        }
    }
    return true;
}

/** Lets the states of a rank be those at its peak, where a stream gathers and scatters; returns how
 * much of the peak is the stream's. */
static double take_stream(const struct hv_pipe_peak *peak, const struct hv_pipe_memory *mem,
                          struct hv_memory *m)
{
    if (mem->stream == NULL) {
        return 0;
    }
    double held = 1 + m->fragmentation_frac, of_stream = peak->gathered_bytes + peak->unsent_bytes;
    double weights = peak->gathered_bytes / held, gradients = peak->unsent_bytes / held;
    m->overhead_bytes += m->fragmentation_frac * (weights + gradients - m->unit_weights_bytes -
                                                  m->unit_gradients_bytes) -
                         held * m->unit_buffers_bytes;
    m->weights_bytes += weights - m->unit_weights_bytes;
    m->gradients_bytes += gradients - m->unit_gradients_bytes;
    m->buffers_bytes -= m->unit_buffers_bytes;
    return of_stream;
}

static void take_peak(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t rank,
                      size_t d, const struct hv_pipe_peak *peak, const struct hv_pipe_memory *mem,
                      struct hv_stage_memory *out)
{
    const struct hv__rank *rk = &pl->ranks[rank];
    size_t i = d % rk->n_dp;
    const struct hv_memory *m = &rk->memory[i];
    double limit = m->limit_bytes - m->reserve_bytes;
    double over = peak->peak_bytes - limit;
    if (out->peak_bytes > 0 && over <= out->peak_bytes - out->limit_bytes) {
        return;
    }
    double transient = 0;
    for (size_t g = 0; g < n_tables(l, pl) * pl->n_gstages; g++) {
        if (pl->gstages[g % pl->n_gstages].rank == rank) {
            transient = fmax(transient, mem->transient_bytes[g * HV_OP_KIND_N + HV_OP_BW]);
        }
    }
    double held = 1 + m->fragmentation_frac, act = peak->peak_bytes - mem->base_bytes[rank];
    struct hv_memory here = *m;
    act -= take_stream(peak, mem, &here);
    m = &here;
    transient = fmin(transient, act) / held;
    act /= held;
    *out =
        (struct hv_stage_memory){.replica = pl->i_replica,
                                 .stage = hv__written_stage(l, pl->i_replica, rk->stage),
                                 .in_flight = out->in_flight,
                                 .device = rk->devices[i * rk->width],
                                 .weights_bytes = m->weights_bytes,
                                 .gradients_bytes = m->gradients_bytes,
                                 .master_bytes = m->master_bytes,
                                 .optimizer_bytes = m->optimizer_bytes,
                                 .activations_bytes = act - transient,
                                 .transient_bytes = transient,
                                 .overhead_bytes = m->overhead_bytes + m->fragmentation_frac * act,
                                 .buffers_bytes = m->buffers_bytes,
                                 .peak_bytes = peak->peak_bytes,
                                 .limit_bytes = limit,
                                 .peak_at_s = peak->peak_at_s};
}

static void pipeline_memory(const struct hv__lowered *l, struct hv__pipeline *pl,
                            struct hv_stage_memory *out)
{
    const struct hv_arena_mark before = hv_arena_mark(l->arena);
    size_t most = 1;
    for (size_t r = 0; r < pl->n_ranks; r++) {
        most = pl->ranks[r].n_dp > most ? pl->ranks[r].n_dp : most;
    }
    struct hv_pipe_peak *peaks = hv_arena_new(l->arena, struct hv_pipe_peak, pl->n_ranks);
    int32_t *in_flight = hv_arena_new(l->arena, int32_t, pl->n_ranks);
    hv_schedule_peak_inflight(pl->schedule, in_flight);
    for (size_t d = 0; d < most; d++) {
        if (seen_before(pl, d)) {
            continue;
        }
        struct hv_pipe_memory mem = hv__memory_tables(l, pl, d);
        hv_pipe_peaks(pl->pipe, &pl->run, &mem, peaks);
        for (size_t r = 0; r < pl->n_ranks; r++) {
            if (hv__memory_moves(pl)) {
                peaks[r] = hv__memory_peak(l, pl, &mem, r, d, NULL);
            }
            struct hv_stage_memory *o =
                &out[hv__written_stage(l, pl->i_replica, pl->ranks[r].stage)];
            take_peak(l, pl, r, d, &peaks[r], &mem, o);
            o->in_flight = in_flight[r] > o->in_flight ? in_flight[r] : o->in_flight;
        }
    }
    hv_arena_rewind(l->arena, before);
}

/* ---- devices of several stages ------------------------------------------------------------------
 */

/** A data-parallel rank that runs on a device. */
struct user {
    size_t rank, i_dp;
};

/** Who runs on the devices of the cluster: of device d users[at[d]] … users[at[d + 1]]. */
struct users {
    size_t *at;
    struct user *users;
};

/** O(devices of the cluster + devices of the ranks). */
static struct users find_users(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    size_t n_all = hv_cost_cluster(l->k)->n_devices, n = 0;
    struct users x = {.at = hv_arena_new(l->arena, size_t, n_all + 2)};
    for (size_t r = 0; r < pl->n_ranks; r++) {
        n += pl->ranks[r].n_devices;
        for (size_t i = 0; i < pl->ranks[r].n_devices; i++) {
            x.at[pl->ranks[r].devices[i] + 2]++;
        }
    }
    for (size_t d = 2; d < n_all + 2; d++) {
        x.at[d] += x.at[d - 1];
    }
    x.users = hv_arena_new(l->arena, struct user, n + 1);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        for (size_t i = 0; i < pl->ranks[r].n_devices; i++) {
            size_t *at = &x.at[pl->ranks[r].devices[i] + 1];
            x.users[(*at)++] = (struct user){r, i / pl->ranks[r].width};
        }
    }
    return x;
}

/** Of one user alone: its row, and its changes over time. */
static struct hv_memory_changes memory_of_user(const struct hv__lowered *l,
                                               const struct hv__pipeline *pl, const struct user *u,
                                               struct hv_stage_memory *row)
{
    const struct hv_pipe_memory mem = hv__memory_tables(l, pl, u->i_dp);
    const struct hv_memory_changes x = hv__memory_changes(l, pl, &mem, u->rank, u->i_dp);
    const struct hv_pipe_peak peak = hv_memory_peak(&x);
    *row = (struct hv_stage_memory){0};
    take_peak(l, pl, u->rank, u->i_dp, &peak, &mem, row);
    return x;
}

/** Changes of several users as one list; `n` of them in all. */
static struct hv_memory_changes join(const struct hv__lowered *l,
                                     const struct hv_memory_changes *of, size_t n_users, size_t n)
{
    struct hv_memory_change *items = hv_arena_new(l->arena, struct hv_memory_change, n + 1);
    struct hv_memory_changes all = {.items = items};
    for (size_t i = 0; i < n_users; i++) {
        for (size_t k = 0; k < of[i].n; k++) {
            items[all.n++] = of[i].items[k];
        }
        all.base_bytes += of[i].base_bytes;
    }
    hv_memory_sort(items, all.n);
    return all;
}

/** Adds the parts of another user of the device; `once`: the driver's, which a device has once. */
static void add_parts(struct hv_stage_memory *m, const struct hv_stage_memory *o, double once)
{
    m->weights_bytes += o->weights_bytes;
    m->gradients_bytes += o->gradients_bytes;
    m->master_bytes += o->master_bytes;
    m->optimizer_bytes += o->optimizer_bytes;
    m->activations_bytes += o->activations_bytes + o->transient_bytes;
    m->overhead_bytes += o->overhead_bytes - once;
    m->buffers_bytes += o->buffers_bytes;
    m->peak_bytes += o->peak_bytes - once;
}

/**
 * Memory of a device with several users: the states of all, the driver's overhead once, and the
 * activations that all hold together at the time when that is most. Passes on one device take
 * turns, so that their peaks do not meet.
 */
static struct hv_stage_memory memory_of_shared(const struct hv__lowered *l,
                                               const struct hv__pipeline *pl,
                                               const struct user *users, size_t n)
{
    struct hv_memory_changes *each = hv_arena_new(l->arena, struct hv_memory_changes, n);
    struct hv_stage_memory m = {0}, o;
    size_t n_changes = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hv_memory *own = &pl->ranks[users[i].rank].memory[users[i].i_dp];
        each[i] = memory_of_user(l, pl, &users[i], i == 0 ? &m : &o);
        n_changes += each[i].n;
        if (i == 0) {
            m.activations_bytes += m.transient_bytes;
            continue;
        }
        double once = fmin(o.overhead_bytes, own->outside_bytes);
        each[i].base_bytes -= once;
        add_parts(&m, &o, once);
        m.transient_bytes = fmax(m.transient_bytes, o.transient_bytes);
    }
    const struct hv_memory_changes all = join(l, each, n, n_changes);
    const struct hv_pipe_peak peak = hv_memory_peak(&all);
    const struct hv_memory *first = &pl->ranks[users[0].rank].memory[users[0].i_dp];
    double apart = m.peak_bytes - peak.peak_bytes, held = 1 + first->fragmentation_frac;
    m.activations_bytes -= apart / held;
    m.overhead_bytes -= first->fragmentation_frac * apart / held;
    m.transient_bytes = fmin(m.transient_bytes, m.activations_bytes);
    m.activations_bytes -= m.transient_bytes;
    m.peak_bytes = peak.peak_bytes;
    m.peak_at_s = peak.peak_at_s;
    return m;
}

/** Key of a device: equal where the same ranks run there, with equal memory each. */
static uint64_t key_of_users(const struct hv__pipeline *pl, const struct user *users, size_t n)
{
    uint64_t key = HV_HASH_START;
    for (size_t i = 0; i < n; i++) {
        const size_t words[] = {users[i].rank, pl->ranks[users[i].rank].like[users[i].i_dp]};
        key = hv_hash(key, words, sizeof words);
    }
    return key;
}

/** Lets the stages of a device that several run on report what it holds, where it is their worst.
 */
static void report_shared(const struct hv__lowered *l, const struct hv__pipeline *pl,
                          const struct user *users, size_t n, struct hv_stage_memory *out)
{
    const struct hv_arena_mark before = hv_arena_mark(l->arena);
    const struct hv_stage_memory m = memory_of_shared(l, pl, users, n);
    hv_arena_rewind(l->arena, before);
    for (size_t i = 0; i < n; i++) {
        size_t stage = hv__written_stage(l, pl->i_replica, pl->ranks[users[i].rank].stage);
        struct hv_stage_memory *o = &out[stage];
        if (m.peak_bytes - m.limit_bytes > o->peak_bytes - o->limit_bytes) {
            int32_t in_flight = o->in_flight;
            *o = m;
            o->stage = stage;
            o->in_flight = in_flight;
        }
    }
}

/** Stages of one entry on the same device share its memory: each reports what its worst device
 * holds in all. O(devices + kinds of shared devices · (operations there · log + kinds)). */
static void add_up_shared(const struct hv__lowered *l, const struct hv__pipeline *pl,
                          struct hv_stage_memory *out)
{
    const struct users x = find_users(l, pl);
    size_t n_all = hv_cost_cluster(l->k)->n_devices, n_seen = 0, cap = 64;
    uint64_t *seen = hv_xmalloc(cap * sizeof *seen);
    for (size_t d = 0; d < n_all; d++) {
        const struct user *users = &x.users[x.at[d]];
        size_t n = x.at[d + 1] - x.at[d], k = 0;
        if (n < 2) {
            continue;
        }
        uint64_t key = key_of_users(pl, users, n);
        while (k < n_seen && seen[k] != key) {
            k++;
        }
        if (k < n_seen) {
            continue;
        }
        if (n_seen == cap) {
            cap *= 2;
            seen = hv_xrealloc(seen, cap, sizeof *seen);
        }
        seen[n_seen++] = key;
        report_shared(l, pl, users, n, out);
    }
    free(seen);
}

/** The largest part of a peak, with advice to reduce it. */
static const char *largest_part(const struct hv_stage_memory *m, double *bytes)
{
    const struct {
        double bytes;
        const char *advice;
    } parts[] = {
        {m->weights_bytes + m->gradients_bytes,
         "weights and gradients: more stages, more tp, or zero 3"},
        {m->master_bytes + m->optimizer_bytes,
         "master copy and optimizer: zero 1 over more replicas, or offload"},
        {m->activations_bytes,
         "activations: recompute, a smaller micro-batch, sequence parallelism, or fewer in flight"},
        {m->kept_bytes, "what other stages offload to it: smaller parts, or more places"},
        {m->transient_bytes,
         "temporary buffers of one pass (logits): a smaller micro-batch or more tp"},
    };
    size_t largest = 0;
    for (size_t i = 1; i < HV_COUNT(parts); i++) {
        largest = parts[i].bytes > parts[largest].bytes ? i : largest;
    }
    *bytes = parts[largest].bytes;
    return parts[largest].advice;
}

static void report(const struct hv__lowered *l, const struct hv_stage_memory *m)
{
    double over = m->peak_bytes - m->limit_bytes, part;
    if (!(over > 0)) {
        return;
    }
    const char *advice = largest_part(m, &part);
    char where[64], need[HV_FMT_CAP], has[HV_FMT_CAP], by[HV_FMT_CAP], most[HV_FMT_CAP];
    (void)snprintf(where, sizeof where, "replicas[%zu].stages[%zu]", m->replica, m->stage);
    struct hv_device_ref ref = hv_cluster_device(hv_cost_cluster(l->k), m->device);
    hv_finding_add(l->findings, HV_V_MEMORY, over, where,
                   "stage %zu needs %s on %s and has %s: %s too much with %d micro-batch%s in "
                   "flight; most of it, %s, is for %s",
                   m->stage, hv_fmt_bytes(need, sizeof need, m->peak_bytes), ref.kind->name,
                   hv_fmt_bytes(has, sizeof has, m->limit_bytes), hv_fmt_bytes(by, sizeof by, over),
                   m->in_flight, m->in_flight == 1 ? "" : "es",
                   hv_fmt_bytes(most, sizeof most, part), advice);
}

/** Adds what a device keeps for offloads to what its own stage holds, and lets the stage report it
 * where that device is then its worst. */
static void keep_beside(const struct hv__lowered *l, const struct hv__kept_place *x,
                        struct hv_kept_memory *kept, struct hv_stage_memory *stage)
{
    const struct hv__pipeline *pl = &l->pipelines.items[x->pipeline];
    const struct hv_memory *m = &pl->ranks[x->rank].memory[x->i_dp];
    struct hv_pipe_memory mem = hv__memory_tables(l, pl, x->i_dp);
    struct hv_pipe_peak peak = hv__memory_peak(l, pl, &mem, x->rank, x->i_dp, &x->changes);
    kept->peak_bytes = peak.peak_bytes;
    kept->peak_at_s = peak.peak_at_s;
    kept->limit_bytes = m->limit_bytes - m->reserve_bytes;
    if (kept->peak_bytes - kept->limit_bytes > stage->peak_bytes - stage->limit_bytes) {
        stage->kept_bytes += kept->peak_bytes - stage->peak_bytes;
        stage->peak_bytes = kept->peak_bytes;
        stage->limit_bytes = kept->limit_bytes;
        stage->peak_at_s = kept->peak_at_s;
        stage->device = x->device;
    }
}

void hv__memory(const struct hv__lowered *l, struct hv_verdict *out)
{
    const struct hv_plan *p = l->plan;
    size_t *at = hv_arena_new(l->arena, size_t, p->n_replicas + 1);
    for (size_t i = 0; i < p->n_replicas; i++) {
        at[i + 1] = at[i] + hv__n_written(l, i);
    }
    out->n_memory = at[p->n_replicas];
    out->memory = hv_arena_new(l->arena, struct hv_stage_memory, out->n_memory);
    for (size_t u = 0; u < l->pipelines.n; u++) {
        pipeline_memory(l, &l->pipelines.items[u],
                        &out->memory[at[l->pipelines.items[u].i_replica]]);
    }
    bool shared = hv_plan_shares_devices(p);
    for (size_t u = 0; u < l->pipelines.n && shared; u++) {
        struct hv__pipeline *x = &l->pipelines.items[u];
        struct hv_stage_memory *of = &out->memory[at[x->i_replica]];
        if (x->first_of_entry == u) {
            add_up_shared(l, x, of);
        }
    }
    const struct hv__kept_place *kept = hv__find_kept(l, out);
    for (size_t i = 0; i < out->n_kept; i++) {
        if (kept[i].owned) {
            const struct hv__pipeline *pl = &l->pipelines.items[kept[i].pipeline];
            keep_beside(
                l, &kept[i], &out->kept[i],
                &out->memory[at[pl->i_replica] +
                             hv__written_stage(l, pl->i_replica, pl->ranks[kept[i].rank].stage)]);
        }
    }
    for (size_t i = 0; i < out->n_memory; i++) {
        report(l, &out->memory[i]);
    }
}
