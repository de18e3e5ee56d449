/*
 * From a sketch to a plan: devices, ranges of blocks, shares and schedule. Its value is found in
 * judge.c.
 */
#include "solver/planner/planner_int.h"

#include "solver/base/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define GROUPS 64 /* sizes of groups tried */
#define WIDTH  64 /* ranks of one tensor and context group, at most, that are placed first */

/* a schedule that is made by simulating it takes so many times as long to evaluate */
#define LISTED 4

/* clang-format off */
const struct hv__schedule_row hv__schedules[] = {
    {.name = "1f1b", .chunks = 1, .slices = 1},
    {.name = "interleaved", .chunks = 2, .slices = 1, .rounds = 1},
    {.name = "interleaved", .chunks = 4, .slices = 1, .rounds = 1},
    {.name = "zb-h1", .chunks = 1, .slices = 1},
    {.name = "zb-h2", .chunks = 1, .slices = 1, .in_flight_more = 1},
    {.name = "zb-2p", .chunks = 1, .slices = 1, .in_flight_more = 1},
    {.name = "zb-v", .chunks = 2, .folded = true, .slices = 1},
    {.name = "seq1f1b", .chunks = 1, .slices = 2},
    {.name = "seq1f1b", .chunks = 1, .slices = 4},
    {.name = "interleaved", .chunks = 2, .slices = 1, .rounds = 2},
    {.name = "interleaved", .chunks = 4, .slices = 1, .rounds = 2},
    {.name = "dapple", .chunks = 1, .slices = 1, .in_flight_more = 1, .option = {"early", "pb"}},
    {.name = "zb-list", .chunks = 1, .slices = 1, .effort = LISTED},
    {.name = "zb-list", .chunks = 2, .folded = true, .slices = 1, .effort = LISTED},
    {.name = "zb-list", .chunks = 1, .slices = 1, .in_flight_more = 1, .memory = 2, .effort = LISTED},
    {.name = "zb-list", .chunks = 1, .slices = 1, .in_flight_more = 2, .memory = 3, .effort = LISTED},
    {.name = "zb-list", .chunks = 2, .folded = true, .slices = 1, .in_flight_more = 1, .memory = 2, .effort = LISTED},
};
/* clang-format on */
const int hv__n_schedules = (int)HV_COUNT(hv__schedules);

int hv__depth(const struct hv__replica_sketch *r)
{
    int n = 0;
    for (int i = 0; i < r->n_runs; i++) {
        n += r->runs[i].n_stages;
    }
    return n;
}

const struct hv__stage_run *hv__run_at(const struct hv__replica_sketch *r, int stage)
{
    int i = 0;
    while (i + 1 < r->n_runs && stage >= r->runs[i].n_stages) {
        stage -= r->runs[i++].n_stages;
    }
    return &r->runs[i];
}

int hv__run_devices(const struct hv__stage_run *run)
{
    return run->n_stages * run->tp * run->cp * run->dp;
}

int hv__second_devices(const struct hv__stage_run *run)
{
    return run->n_stages * run->tp * run->cp * run->second_dp;
}

int hv__run_holders(const struct hv__stage_run *run)
{
    return run->cp * (run->dp + run->second_dp);
}

struct hv__stage_run hv__run_swapped(const struct hv__replica_sketch *r,
                                     const struct hv__stage_run *run)
{
    struct hv__stage_run turned = *run;
    turned.pool = run->second_pool;
    turned.dp = run->second_dp;
    turned.second_pool = run->pool;
    turned.second_dp = run->dp;
    turned.second_sequences = r->micro_batch - run->second_sequences;
    return turned;
}

int hv__run_sharers(const struct hv__replica_sketch *r, const struct hv__stage_run *run)
{
    int holders = hv__run_holders(run);
    return r->shard_group > 0 && holders % r->shard_group == 0 ? r->shard_group : holders;
}

enum hv_cp_layout hv__layout(const struct hv__search *s, const struct hv__stage_run *run)
{
    double pieces = 2.0 * run->cp;
    bool folds = run->cp > 1 && fmod(hv_cost_tokens(s->k), pieces) == 0;
    return folds ? HV_CP_ZIGZAG : HV_CP_CONTIGUOUS;
}

static void fill_ranges(struct hv_replica *r, const struct hv__replica_sketch *rep,
                        const struct hv__schedule_row *o)
{
    int depth = (int)r->n_stages, parts = depth * o->chunks, at = 0;
    bool hollow = rep->counts[0] == 0 || rep->counts[parts - 1] == 0;
    for (int i = 0; i < parts; i++) {
        int turn = i / depth, rank = i % depth;
        if (o->folded && turn % 2 == 1) {
            rank = depth - 1 - rank;
        }
        struct hv_stage *st = &r->stages[rank];
        st->ranges[turn] = (struct hv_range){at, at + rep->counts[i]};
        at += rep->counts[i];
    }
    int last = o->folded && o->chunks % 2 == 0 ? 0 : depth - 1;
    for (int i = 0; hollow && i < depth; i++) {
        r->stages[i].embedding = i == 0;
        r->stages[i].head = i == last;
    }
}

/* Index of a run's next device in its own pool and in its second pool. */
struct place {
    int own, second;
};

/* Index of the first device of every run in its pool: wide groups of ranks first, so that they
 * lie inside their nodes. */
static void place_runs(const struct hv__sketch *k, struct place first[HV__REPLICAS][HV__RUNS])
{
    int used[HV__POOLS] = {0};
    for (int width = WIDTH; width > 0; width /= 2) {
        for (int r = 0; r < k->n_replicas; r++) {
            for (int j = 0; j < k->replicas[r].n_runs; j++) {
                const struct hv__stage_run *run = &k->replicas[r].runs[j];
                int ranks = run->tp * run->cp;
                if (ranks < width || (ranks >= 2 * width && width < WIDTH)) {
                    continue;
                }
                first[r][j] = (struct place){used[run->pool], used[run->second_pool]};
                used[run->pool] += hv__run_devices(run);
                used[run->second_pool] += hv__second_devices(run);
            }
        }
    }
}

int hv__spare_devices(const struct hv__search *s, const struct hv__sketch *k, int pool)
{
    int spare = s->pools[pool].n;
    for (int r = 0; r < k->n_replicas; r++) {
        for (int j = 0; j < k->replicas[r].n_runs; j++) {
            const struct hv__stage_run *run = &k->replicas[r].runs[j];
            spare -= run->pool == pool ? hv__run_devices(run) : 0;
            spare -= run->second_pool == pool ? hv__second_devices(run) : 0;
        }
    }
    return spare;
}

bool hv__has_devices(const struct hv__search *s, const struct hv__sketch *k)
{
    for (int i = 0; i < s->n_pools; i++) {
        if (hv__spare_devices(s, k, i) < 0) {
            return false;
        }
    }
    return true;
}

static int common_divisor(int a, int b)
{
    while (b != 0) {
        int rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

int hv__pipelines(const struct hv__replica_sketch *r)
{
    int n = r->micro_batch;
    for (int i = 0; i < r->n_runs; i++) {
        n = r->runs[i].ep > 1 || r->runs[i].second_dp > 0 ? 1 : common_divisor(n, r->runs[i].dp);
    }
    return n;
}

size_t hv__first_replica(const struct hv__sketch *k, int replica)
{
    size_t n = 0;
    for (int i = 0; i < replica; i++) {
        n += k->replicas[i].n_longer > 0 ? 2 : 1;
    }
    return n;
}

int hv__even_ranks(int batch, int most)
{
    int d = batch < most ? batch : most;
    while (d > 1 && batch % d != 0) {
        d--;
    }
    return d;
}

int hv__uneven_ranks(const struct hv__search *s, int batch, int most)
{
    int even = hv__even_ranks(batch, most), top = batch < most ? batch : most, n = 1;
    if (hv__experts(s) > 1) {
        while (2 * n <= top) {
            n *= 2;
        }
    } else {
        int each = (batch + top - 1) / top;
        n = (batch + each - 1) / each;
    }
    return 4 * ((batch + n - 1) / n) <= 3 * (batch / even) ? n : even; /* a quarter less */
}

static void fill_even(int *shares, int sequences, int ranks)
{
    for (int i = 0; i < ranks; i++) {
        shares[i] = sequences / ranks + (i < sequences % ranks);
    }
}

/* Sequences of every data-parallel rank of a stage, as even as possible within each of its
 * pools; NULL: all ranks have equally many. */
static int *shares_of(struct hv_arena *a, const struct hv__stage_run *run, int micro_batch, int dp)
{
    if (micro_batch % dp == 0 &&
        (run->second_dp == 0 || micro_batch / dp * run->second_dp == run->second_sequences)) {
        return NULL;
    }
    int *shares = hv_arena_new(a, int, (size_t)dp), own = dp - run->second_dp;
    fill_even(shares, micro_batch - run->second_sequences, own);
    if (run->second_dp > 0) {
        fill_even(shares + own, run->second_sequences, run->second_dp);
    }
    return shares;
}

/* Pipelines of a replica that run equally many micro-batches: n of them, from number `from` on. */
struct part {
    int from, n, of; /* of: all pipelines of the replica */
    int64_t micro_batches;
};

/* Devices of the part's ranks in the next stage of a run, whose devices begin at *at. */
static void take_devices(const struct hv__search *s, const struct hv__stage_run *run, int *at,
                         const struct part *part, uint32_t *out)
{
    const uint32_t *ids = s->pools[run->pool].ids + *at;
    size_t width = (size_t)(run->tp * run->cp),
           step = run->stages_adjacent ? width * (size_t)run->n_stages : width;
    size_t each = (size_t)(run->dp / part->of), first = (size_t)part->from * each;
    size_t n = (size_t)part->n * each;
    for (size_t rank = 0; rank < n; rank++) {
        memcpy(out + rank * width, ids + (first + rank) * step, width * sizeof *ids);
    }
    *at += (int)(run->stages_adjacent ? width : width * (size_t)run->dp);
}

/* Sharding of a stage. A part of the replica's pipelines may have fewer holders than a shard
 * group: then all of them share. */
static void fill_shards(const struct hv__replica_sketch *r, struct hv_stage *st)
{
    int holders = (int)st->n_devices / st->tp.degree;
    st->zero.stage = holders > 1 ? r->zero : 0;
    if (st->zero.stage == 0) {
        return;
    }
    bool some = r->shard_group > 0 && r->shard_group < holders && holders % r->shard_group == 0;
    st->zero.shard_group = some ? r->shard_group : 0;
    st->zero.reduce = r->reduce_late ? HV_REDUCE_END : HV_REDUCE_EACH;
    st->zero.reshard = !r->keeps_gathered;
}

static void fill_stage(const struct hv__search *s, struct hv_plan *p,
                       const struct hv__replica_sketch *r, const struct hv__stage_run *run,
                       struct hv_stage *st)
{
    st->tp.degree = run->tp;
    st->sequence_parallel = run->tp > 1;
    st->cp.degree = run->cp;
    st->cp.layout = hv__layout(s, run);
    st->ep = run->ep;
    fill_shards(r, st);
    st->recompute = run->recompute;
    if (run->offload != 0) {
        st->offload = hv_arena_new(&p->arena, struct hv_offload, hv_offload_what_N);
    }
    for (int what = 0; what < hv_offload_what_N; what++) {
        if (run->offload & HV__HOST(what)) {
            st->offload[st->n_offload++] =
                (struct hv_offload){.what = (enum hv_offload_what)what, .frac = 1, .to_host = true};
        }
    }
}

/* `at`: index of the first devices of each run. */
static void fill_replica(const struct hv__search *s, struct hv_plan *p, struct hv_replica *r,
                         const struct hv__replica_sketch *rep, const struct hv__schedule_row *o,
                         const struct place *at, const struct part *part)
{
    struct place next[HV__RUNS];
    memcpy(next, at, sizeof next);
    r->count = part->n;
    r->micro_batch = rep->micro_batch / part->of;
    r->micro_batches = part->micro_batches;
    r->n_stages = (size_t)hv__depth(rep);
    r->stages = hv_arena_new(&p->arena, struct hv_stage, r->n_stages);
    for (size_t i = 0; i < r->n_stages; i++) {
        struct hv_stage *st = &r->stages[i];
        const struct hv__stage_run *run = hv__run_at(rep, (int)i);
        hv_stage_defaults(st);
        struct place *from = &next[run - rep->runs];
        st->dp = run->dp / part->of + run->second_dp;
        st->n_devices = (size_t)(run->tp * run->cp * st->dp * part->n);
        st->devices = hv_arena_new(&p->arena, uint32_t, st->n_devices);
        take_devices(s, run, &from->own, part, st->devices);
        if (run->second_dp > 0) {
            struct hv__stage_run second = hv__run_swapped(rep, run);
            take_devices(s, &second, &from->second, part,
                         st->devices + st->n_devices -
                             (size_t)(run->tp * run->cp * run->second_dp));
        }
        st->shares = shares_of(&p->arena, run, r->micro_batch, st->dp);
        fill_stage(s, p, rep, run, st);
        st->n_ranges = (size_t)o->chunks;
        st->ranges = hv_arena_new(&p->arena, struct hv_range, st->n_ranges);
    }
    fill_ranges(r, rep, o);
}

/* True where groups of g leave no remainder, or one that is large enough for every replica. */
static bool suits(const struct hv__sketch *k, int64_t g)
{
    for (int i = 0; i < k->n_replicas; i++) {
        const struct hv__replica_sketch *r = &k->replicas[i];
        int depth = hv__depth(r);
        for (int64_t m = r->micro_batches; m <= r->micro_batches + (r->n_longer > 0); m++) {
            int64_t rest = m % g, least = m < depth ? m : depth;
            if (g < least || g > m || (rest > 0 && rest < depth)) {
                return false;
            }
        }
    }
    return true;
}

/* True where the micro-batches of every replica divide into the groups that the schedule makes
 * itself. */
static bool needs_no_group(const struct hv__sketch *k)
{
    for (int i = 0; i < k->n_replicas; i++) {
        const struct hv__replica_sketch *r = &k->replicas[i];
        int depth = hv__depth(r);
        for (int64_t m = r->micro_batches; m <= r->micro_batches + (r->n_longer > 0); m++) {
            if (m >= depth && m % (m / depth) != 0) {
                return false;
            }
        }
    }
    return true;
}

/* Micro-batches of a group for a schedule that has groups: at least those of its rounds, such that
 * the micro-batches of every replica divide into groups; 0: the default of the schedule, also where
 * there is no such number. */
static int64_t micro_batch_group(const struct hv__sketch *k)
{
    const struct hv__schedule_row *o = &hv__schedules[k->schedule];
    if (o->rounds == 0 || (o->rounds == 1 && needs_no_group(k))) {
        return 0;
    }
    int64_t first = 1, last = INT64_MAX;
    for (int i = 0; i < k->n_replicas; i++) {
        const struct hv__replica_sketch *r = &k->replicas[i];
        int64_t least = o->rounds * hv__depth(r);
        first = first > least ? first : least;
        last = last < r->micro_batches ? last : r->micro_batches;
    }
    first = first < last ? first : last;
    for (int64_t g = first; g <= last && g < first + GROUPS; g++) {
        if (suits(k, g)) {
            return g;
        }
    }
    return 0;
}

static void fill_schedule(const struct hv__sketch *k, struct hv_plan *p)
{
    const struct hv__schedule_row *o = &hv__schedules[k->schedule];
    int64_t group = micro_batch_group(k), depth = 0;
    for (int i = 0; i < k->n_replicas; i++) {
        depth = hv__depth(&k->replicas[i]) > depth ? hv__depth(&k->replicas[i]) : depth;
    }
    p->schedule.name = hv_arena_strdup(&p->arena, o->name);
    p->schedule.slices = o->slices;
    if (k->bucket_mib > 0) {
        p->sync.bucket_bytes[0] = k->bucket_mib * HV_MIB;
    }
    if (group == 0 && o->memory == 0 && o->option[0] == NULL) {
        return;
    }
    int64_t number = group > 0 ? group : o->memory * depth;
    p->schedule.n_options = 1;
    p->schedule.options = hv_arena_new(&p->arena, struct hv_option, 1);
    p->schedule.options[0] =
        number > 0 ? (struct hv_option){group > 0 ? "group" : "memory",
                                        hv_arena_printf(&p->arena, "%" PRId64, number)}
                   : (struct hv_option){o->option[0], o->option[1]};
}

struct hv_plan *hv__plan_of_sketch(const struct hv__search *s, const struct hv__sketch *k)
{
    struct hv_plan *p = hv_plan_new((struct hv_cluster *)(uintptr_t)hv_cost_cluster(s->k));
    const struct hv__schedule_row *o = &hv__schedules[k->schedule];
    struct place first[HV__REPLICAS][HV__RUNS] = {{{0}}};
    place_runs(k, first);
    fill_schedule(k, p);
    p->n_replicas = hv__first_replica(k, k->n_replicas);
    p->replicas = hv_arena_new(&p->arena, struct hv_replica, p->n_replicas);
    struct hv_replica *r = p->replicas;
    for (int i = 0; i < k->n_replicas; i++) {
        const struct hv__replica_sketch *rep = &k->replicas[i];
        struct part part = {0, rep->n_longer, hv__pipelines(rep), rep->micro_batches + 1};
        if (rep->n_longer > 0) {
            fill_replica(s, p, r++, rep, o, first[i], &part);
        }
        part = (struct part){rep->n_longer, part.of - rep->n_longer, part.of, rep->micro_batches};
        fill_replica(s, p, r++, rep, o, first[i], &part);
    }
    p->micro_batch = p->replicas[0].micro_batch;
    return p;
}
