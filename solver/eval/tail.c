/**
 * The tail of an iteration: gradient reductions in buckets on the link lanes, optimizer, gathers.
 *
 * Who reduces with whom follows from the layers (rule E): blocks are cut into segments with equal
 * holders; where tensor-parallel degrees differ, a segment is reduced in lcm(tp) slices at once.
 */
#include "solver/eval/eval_int.h"

#include <stdlib.h>

/** Buckets one segment is cut into at most; more change the figure by latencies only. */
#define BUCKETS_MAX 8

/** A global stage that holds a segment. */
struct holder {
    size_t unit, flat_rank;
    const struct hv__gstage *g;
    double ready_s, duration_s; /**< end and length of its last backward */
};

struct segment {
    int from2, to2; /**< half blocks; EMBEDDING / HEAD in from2 with to2 = from2 */
    struct holder *holders;
    size_t n_holders;
};

enum { EMBEDDING = -1, HEAD = -2 };

static int compare_int(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

static int64_t lcm64(int64_t a, int64_t b)
{
    int64_t x = a, y = b;
    while (y != 0) {
        int64_t t = x % y;
        x = y;
        y = t;
    }
    return a / x * b;
}

double hv__range_parameters(const struct hv_model *m, struct hv_range r, double tp, double ep,
                            double *experts)
{
    double dense = 0, routed = 0;
    for (int h = r.from2; h < r.to2; h++) {
        size_t i = (size_t)h / 2;
        if (m->kind == HV_MODEL_LAYERS) {
            dense += m->measured[i].parameter_bytes / 4; /* half of the layer, 2 bytes each */
            continue;
        }
        const struct hv_block *b = &m->blocks[i];
        dense += h % 2 == 0 ? hv_block_attention_parameters(m, b) : hv_block_ffn_parameters(m, b);
        routed += h % 2 == 0 ? 0 : hv_block_expert_parameters(m, b);
    }
    if (experts != NULL) {
        *experts = routed / (tp * ep);
    }
    return dense / tp;
}

static const struct hv_stage *stage_of(const struct hv__lowered *l, const struct holder *h)
{
    return &l->units[h->unit].replica->stages[h->g->rank];
}

/** Fills ready and duration of a holder from the last weight gradient of its stage. */
static void last_backward(const struct hv__unit *u, struct holder *h, size_t pipe, size_t i_gstage)
{
    size_t n = hv_schedule_n_ops(&u->schedule);
    for (size_t i = 0; i < n; i++) {
        const struct hv_op *op = &u->schedule.ops[i];
        if ((size_t)op->stage != i_gstage || op->pipe != pipe ||
            (op->kind != HV_OP_W && op->kind != HV_OP_BW)) {
            continue;
        }
        double end = hv_pipe_op_end_s(&u->pipe, &u->run, i);
        if (end >= h->ready_s) {
            h->ready_s = end;
            h->duration_s = end - hv_pipe_op_start_s(&u->pipe, &u->run, i);
        }
    }
}

/** All holders of all stages; the last backward of each is looked up once. */
static struct holder *all_holders(struct hv__lowered *l, size_t *out_n)
{
    size_t n = 0;
    for (size_t u = 0; u < l->n_units; u++) {
        n += l->units[u].n_pipes * l->units[u].n_gstages;
    }
    struct holder *h = hv_arena_new(l->arena, struct holder, n);
    n = 0;
    for (size_t i = 0; i < l->n_units; i++) {
        struct hv__unit *u = &l->units[i];
        for (size_t x = 0; x < u->n_pipes * u->n_gstages; x++) {
            h[n] = (struct holder){
                .unit = i, .flat_rank = l->rank_at[i] + u->gstages[x].rank, .g = &u->gstages[x]};
            if (!l->stale) {
                last_backward(u, &h[n], x / u->n_gstages, x % u->n_gstages);
            }
            n++;
        }
    }
    *out_n = n;
    return h;
}

static bool holds(const struct holder *h, int from2, int to2, bool tied)
{
    if (from2 == EMBEDDING) {
        return h->g->embedding || (tied && h->g->head);
    }
    if (from2 == HEAD) {
        return h->g->head;
    }
    return h->g->range.from2 <= from2 && to2 <= h->g->range.to2;
}

static void add_segment(struct hv__lowered *l, struct segment *s, const struct holder *all,
                        size_t n)
{
    bool tied = hv_cost_model(l->k)->tied_embeddings;
    s->holders = hv_arena_new(l->arena, struct holder, n);
    for (size_t i = 0; i < n; i++) {
        if (holds(&all[i], s->from2, s->to2, tied)) {
            s->holders[s->n_holders++] = all[i];
        }
    }
}

static struct segment *find_segments(struct hv__lowered *l, size_t *out_n)
{
    size_t n_all = 0, n = 0;
    struct holder *all = all_holders(l, &n_all);
    int *cuts = hv_arena_new(l->arena, int, 2 * n_all + 1);
    for (size_t i = 0; i < n_all; i++) {
        cuts[2 * i] = all[i].g->range.from2;
        cuts[2 * i + 1] = all[i].g->range.to2;
    }
    qsort(cuts, 2 * n_all, sizeof *cuts, compare_int);
    struct segment *s = hv_arena_new(l->arena, struct segment, 2 * n_all + 2);
    for (size_t i = 0; i + 1 < 2 * n_all; i++) {
        if (cuts[i] < cuts[i + 1]) {
            s[n] = (struct segment){.from2 = cuts[i], .to2 = cuts[i + 1]};
            add_segment(l, &s[n], all, n_all);
            n += s[n].n_holders > 0;
        }
    }
    if (hv_cost_model(l->k)->kind == HV_MODEL_TRANSFORMER) {
        for (int special = EMBEDDING; special >= HEAD; special--) {
            s[n] = (struct segment){.from2 = special, .to2 = special};
            add_segment(l, &s[n], all, n_all);
            n += s[n].n_holders > 0;
        }
    }
    *out_n = n;
    return s;
}

/** Devices that hold slice 0 of a segment, in every copy and every `stride`-th data-parallel rank.
 */
static uint32_t *slice_group(struct hv__lowered *l, const struct segment *s, size_t stride,
                             size_t *out_n)
{
    size_t n = 0, most = 0;
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv__unit *u = &l->units[s->holders[i].unit];
        most += (size_t)u->multiplicity * u->ranks[s->holders[i].g->rank].n_devices;
    }
    uint32_t *out = hv_arena_new(l->arena, uint32_t, most);
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv__unit *u = &l->units[s->holders[i].unit];
        const struct hv_stage *st = stage_of(l, &s->holders[i]);
        size_t tp = (size_t)st->tp.degree, ranks = hv_stage_ranks(u->replica, st);
        for (int c = 0; c < u->multiplicity; c++) {
            const uint32_t *d = st->devices + (size_t)u->copies[c] * ranks;
            for (size_t j = 0; j < ranks; j += tp * stride) {
                out[n++] = d[j];
            }
        }
    }
    *out_n = n;
    return out;
}

/** What one bucket of a segment costs on the wire. */
static double bucket_s(struct hv__lowered *l, const struct segment *s, double n_buckets)
{
    const struct hv_model *m = hv_cost_model(l->k);
    const struct hv_job *job = hv_cost_job(l->k);
    const struct hv_stage *st = stage_of(l, &s->holders[0]);
    int64_t slices = 1;
    for (size_t i = 0; i < s->n_holders; i++) {
        slices = lcm64(slices, stage_of(l, &s->holders[i])->tp.degree);
    }
    double experts = 0, dense = 0;
    if (s->from2 == EMBEDDING) {
        dense = hv_model_embedding_parameters(m) / (double)slices;
    } else if (s->from2 == HEAD) {
        dense = hv_model_head_parameters(m) / (double)slices;
    } else {
        struct hv_range r = {s->from2, s->to2};
        dense = hv__range_parameters(m, r, (double)slices, (double)st->ep, &experts);
    }
    struct hv_collective_query q = {.op = st->zero.stage > 0 ? HV_REDUCE_SCATTER : HV_ALL_REDUCE,
                                    .bytes = dense * hv_job_grad_bytes(job) / n_buckets,
                                    .algorithm = l->plan->sync.algorithm,
                                    .together = (double)slices};
    q.devices = slice_group(l, s, 1, &q.n);
    double t = q.n > 1 ? hv_cost_collective(hv_cost_cluster(l->k), &q, NULL).time_s : 0;
    if (experts > 0) {
        q.bytes = experts * hv_job_grad_bytes(job) / n_buckets;
        q.together = (double)slices * st->ep;
        q.devices = slice_group(l, s, (size_t)st->ep, &q.n);
        t += q.n > 1 ? hv_cost_collective(hv_cost_cluster(l->k), &q, NULL).time_s : 0;
    }
    return t;
}

static size_t n_buckets_of(const struct hv__lowered *l, const struct segment *s)
{
    if (s->from2 < 0 || !l->plan->sync.overlap || l->stale) {
        return 1;
    }
    const struct hv_stage *st = stage_of(l, &s->holders[0]);
    struct hv_range r = {s->from2, s->to2};
    double bytes = hv__range_parameters(hv_cost_model(l->k), r, (double)st->tp.degree, 1, NULL) *
                   hv_job_grad_bytes(hv_cost_job(l->k));
    double n = ceil(bytes / l->plan->sync.bucket_bytes[0]);
    return n < 1 ? 1 : n > BUCKETS_MAX ? BUCKETS_MAX : (size_t)n;
}

/** When a holder has the gradients of everything from half block `down_to2` upwards. */
static double ready_s(const struct hv__lowered *l, const struct holder *h, const struct segment *s,
                      double down_to2)
{
    if (!l->plan->sync.overlap) {
        return l->units[h->unit].ranks[h->g->rank].compute_end_s;
    }
    double span = (double)(h->g->range.to2 - h->g->range.from2);
    if (s->from2 == HEAD) {
        return h->ready_s - h->duration_s;
    }
    if (s->from2 == EMBEDDING || span <= 0) {
        return h->ready_s;
    }
    return h->ready_s - h->duration_s * (down_to2 - h->g->range.from2) / span;
}

struct pending {
    double ready_s, duration_s;
    const struct segment *s;
    size_t order;
};

static int compare_pending(const void *a, const void *b)
{
    const struct pending *x = a, *y = b;
    if (x->ready_s != y->ready_s) {
        return x->ready_s < y->ready_s ? -1 : 1;
    }
    return (x->order > y->order) - (x->order < y->order);
}

static struct pending *list_pending(struct hv__lowered *l, size_t *out_n)
{
    size_t n_segments = 0, n = 0;
    struct segment *s = find_segments(l, &n_segments);
    struct pending *p = hv_arena_new(l->arena, struct pending, n_segments * BUCKETS_MAX + 1);
    for (size_t i = 0; i < n_segments; i++) {
        size_t buckets = n_buckets_of(l, &s[i]);
        double duration = bucket_s(l, &s[i], (double)buckets);
        for (size_t b = 0; duration > 0 && b < buckets; b++) {
            double down_to2 =
                s[i].to2 - (double)(s[i].to2 - s[i].from2) * (double)(b + 1) / (double)buckets;
            double ready = 0;
            for (size_t h = 0; h < s[i].n_holders; h++) {
                ready = fmax(ready, ready_s(l, &s[i].holders[h], &s[i], down_to2));
            }
            p[n] = (struct pending){ready, duration, &s[i], n};
            n++;
        }
    }
    *out_n = n;
    return p;
}

static struct hv__rank *flat_rank(struct hv__lowered *l, size_t flat)
{
    size_t u = 0;
    while (flat >= l->rank_at[u + 1]) {
        u++;
    }
    return &l->units[u].ranks[flat - l->rank_at[u]];
}

/** Runs the reductions in order of readiness; each occupies the link lane of all its holders. */
static void run_reductions(struct hv__lowered *l)
{
    size_t n = 0;
    struct pending *p = list_pending(l, &n);
    qsort(p, n, sizeof *p, compare_pending);
    double *free_s = hv_arena_new(l->arena, double, l->rank_at[l->n_units]);
    l->reductions = hv_arena_new(l->arena, struct hv__reduction, n + 1);
    for (size_t i = 0; i < n; i++) {
        const struct segment *s = p[i].s;
        struct hv__reduction *r = &l->reductions[l->n_reductions++];
        *r = (struct hv__reduction){.from2 = s->from2, .to2 = s->to2, .n_ranks = s->n_holders};
        r->ranks = hv_arena_new(l->arena, size_t, s->n_holders);
        r->start_s = p[i].ready_s;
        for (size_t h = 0; h < s->n_holders; h++) {
            r->ranks[h] = s->holders[h].flat_rank;
            r->start_s = fmax(r->start_s, free_s[r->ranks[h]]);
        }
        r->end_s = r->start_s + p[i].duration_s;
        for (size_t h = 0; h < s->n_holders; h++) {
            struct hv__rank *rk = flat_rank(l, r->ranks[h]);
            free_s[r->ranks[h]] = r->end_s;
            rk->sync_end_s = fmax(rk->sync_end_s, r->end_s);
        }
    }
}

/** Optimizer and weight gather of one rank. */
static void finish_rank(struct hv__lowered *l, const struct hv__unit *u, struct hv__rank *rk)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const struct hv_stage *s = &u->replica->stages[rk->stage];
    double holders = (double)(s->dp * s->cp.degree * u->replica->count);
    double share = s->zero.stage > 0 ? holders : 1;
    for (size_t d = 0; d < rk->n_dp; d++) {
        struct hv_device_ref ref = hv_cluster_device(c, rk->devices[d * rk->width]);
        rk->optimizer_s = fmax(
            rk->optimizer_s, hv_cost_optimizer_s(l->k, ref.kind, rk->memory[d].parameters / share));
    }
    if (s->zero.stage == 1 || s->zero.stage == 2) {
        struct holder h = {.unit = (size_t)(u - l->units), .g = &u->gstages[0]};
        for (size_t g = 0; g < u->n_gstages; g++) {
            if (u->gstages[g].plan_stage == rk->stage) {
                h.g = &u->gstages[g];
            }
        }
        struct segment seg = {.holders = &h, .n_holders = 1};
        struct hv_collective_query q = {.op = HV_ALL_GATHER,
                                        .together = (double)s->tp.degree,
                                        .bytes = rk->memory[0].parameters *
                                                 hv_job_weight_bytes(hv_cost_job(l->k)),
                                        .algorithm = l->plan->sync.algorithm};
        q.devices = slice_group(l, &seg, 1, &q.n);
        rk->gather_s = q.n > 1 ? hv_cost_collective(c, &q, NULL).time_s : 0;
    }
}

void hv__tail(struct hv__lowered *l)
{
    if (l->plan->sync.kind != HV_SYNC_NONE) {
        run_reductions(l);
    }
    for (size_t i = 0; i < l->n_units; i++) {
        struct hv__unit *u = &l->units[i];
        for (size_t r = 0; r < u->n_ranks; r++) {
            struct hv__rank *rk = &u->ranks[r];
            finish_rank(l, u, rk);
            l->iteration_s = fmax(l->iteration_s, rk->sync_end_s + rk->optimizer_s + rk->gather_s);
        }
    }
}

/** Longest total time that any link lane is busy with one round of reductions. */
static double reductions_s(struct hv__lowered *l)
{
    size_t n = 0;
    struct pending *p = list_pending(l, &n);
    double *busy = hv_arena_new(l->arena, double, l->rank_at[l->n_units]), most = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t h = 0; h < p[i].s->n_holders; h++) {
            double *b = &busy[p[i].s->holders[h].flat_rank];
            *b += p[i].duration_s;
            most = fmax(most, *b);
        }
    }
    return most;
}

void hv__steady(struct hv__lowered *l)
{
    double wave_s = 0, sequences = 0, slowest_step = 0;
    int in_flight = 1;
    for (size_t i = 0; i < l->n_units; i++) {
        struct hv__unit *u = &l->units[i];
        const struct hv_replica *r = u->replica;
        wave_s = fmax(wave_s, (double)r->micro_batches * u->period_s);
        sequences += (double)(hv_replica_sequences(l->plan, r) * u->multiplicity);
        for (size_t k = 0; k < u->n_ranks; k++) {
            finish_rank(l, u, &u->ranks[k]);
            slowest_step = fmax(slowest_step, u->ranks[k].optimizer_s);
        }
        int32_t *peak = hv_arena_new(l->arena, int32_t, u->n_ranks);
        hv_schedule_peak_inflight(&u->schedule, peak);
        in_flight = peak[0] > in_flight ? peak[0] : in_flight;
    }
    /* pushes and pulls of a wave hide behind the next one; what does not fit shows */
    double comm_s = l->plan->sync.kind == HV_SYNC_NONE ? 0 : reductions_s(l);
    wave_s = fmax(wave_s + slowest_step, comm_s);
    const struct hv_job *job = hv_cost_job(l->k);
    l->iteration_s = wave_s * (double)job->global_batch / sequences;
    /* HetPipe (Park et al., ATC'20, §5): s_global = (D+1)(s_local+1) + s_local − 1, s_local = in
     * flight − 1 */
    int s_local = in_flight - 1, d = l->plan->sync.staleness;
    l->staleness =
        l->plan->sync.kind == HV_SYNC_WSP ? (d + 1) * (s_local + 1) + s_local - 1 : s_local + d;
}
