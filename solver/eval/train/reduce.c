/**
 * Gradient reductions: their members, data and time on the network. Their start times are in
 * tail.c.
 *
 * The members follow from the layers: blocks are cut into segments with equal holders; where
 * tensor-parallel degrees differ, a segment is reduced in lcm(tp) slices at once; where states are
 * sharded, sums are scattered inside a shard group and all-reduced between groups.
 */
#include "solver/base/whole.h"
#include "solver/cost/network/streams.h"
#include "solver/eval/train/reduce_int.h"
#include "solver/plan/parts.h"

#include <stdlib.h>

static int compare_int(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}

/** The price of an operation of a holder, by the length of its micro-batch or slice. */
static const struct hv_pass *pass_of(const struct hv__pipeline *pl, const struct hv__holder *h,
                                     const struct hv_op *op)
{
    return &h->g->pass[hv__shape_of(pl, op->stage, op->mb, op->slice) * h->rank->n_dp];
}

/** Fills ready and duration of a pipeline's holders from the last weight gradient of each stage:
 * one pass over the operations. */
static void last_backwards(const struct hv__pipeline *pl, struct hv__holder *h)
{
    size_t n = hv_schedule_n_ops(pl->schedule);
    for (size_t i = 0; i < n; i++) {
        const struct hv_op *op = &pl->schedule->ops[i];
        if (op->kind != HV_OP_W && op->kind != HV_OP_BW) {
            continue;
        }
        struct hv__holder *x = &h[(size_t)op->pipe * pl->n_gstages + (size_t)op->stage];
        double end = hv_pipe_op_end_s(pl->pipe, &pl->run, i);
        if (end >= x->ready_s) {
            x->ready_s = end;
            x->duration_s = end - hv_pipe_op_start_s(pl->pipe, &pl->run, i);
            x->pass = pass_of(pl, x, op);
        }
    }
}

/** Gradients that a stream scatters are there, all at once, when it has done so. */
static void wait_for_scatters(const struct hv__pipeline *pl, struct hv__holder *h)
{
    for (size_t x = 0; pl->cost.stream != NULL && x < pl->n_pipes * pl->n_gstages; x++) {
        double end_s = hv__scattered_s(pl, x);
        if (end_s > 0) {
            h[x].ready_s = end_s;
            h[x].duration_s = 0;
        }
    }
}

/** Appends one holder for each part of a global stage that has parts with degrees of their own. */
static void add_parts(const struct hv__lowered *l, const struct hv__holder *whole,
                      struct hv__holder *all, size_t *n)
{
    const struct hv_stage *s = whole->stage;
    const struct hv_range *r = &whole->g->range;
    for (int at2 = r->from2, end2; at2 < r->to2; at2 = end2) {
        end2 = hv_stage_part_end(s, at2, r->to2);
        struct hv__gstage *g = hv_arena_copy(l->arena, whole->g, 1, sizeof *g);
        struct hv_stage *part = hv_arena_new(l->arena, struct hv_stage, 1);
        g->range = (struct hv_range){at2, end2};
        g->embedding = at2 == r->from2 || g->embedding < 0 ? g->embedding : 0;
        g->head = end2 == r->to2 || g->head < 0 ? g->head : 0;
        *part = hv_stage_with_degrees(s, hv_stage_degrees(s, at2 / 2));
        struct hv__holder *h = &all[(*n)++];
        *h = *whole;
        h->g = g;
        h->stage = part;
    }
}

/** All holders of all stages. */
static struct hv__holder *all_holders(const struct hv__lowered *l, size_t *out_n)
{
    size_t most = 0, n = 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        for (size_t x = 0; x < pl->n_pipes * pl->n_gstages; x++) {
            const struct hv_stage *s = &pl->replica->stages[pl->gstages[x].rank];
            most += 1 + 2 * s->n_degrees;
        }
    }
    struct hv__holder *h = hv_arena_new(l->arena, struct hv__holder, most);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        struct hv__pipeline *pl = &l->pipelines.items[i];
        size_t many = pl->n_pipes * pl->n_gstages;
        struct hv__holder *whole = hv_arena_new(l->arena, struct hv__holder, many);
        for (size_t x = 0; x < many; x++) {
            struct hv__gstage *g = &pl->gstages[x];
            whole[x] = (struct hv__holder){.pipeline = i,
                                           .flat_rank = l->pipelines.rank_at[i] + g->rank,
                                           .rank = &pl->ranks[g->rank],
                                           .g = g,
                                           .pass = &g->pass[0],
                                           .stage = &pl->replica->stages[g->rank]};
        }
        if (!l->schedule.stale) {
            last_backwards(pl, whole);
            wait_for_scatters(pl, whole);
        }
        for (size_t x = 0; x < many; x++) {
            if (whole[x].stage->n_degrees > 0) {
                add_parts(l, &whole[x], h, &n);
            } else {
                h[n++] = whole[x];
            }
        }
    }
    *out_n = n;
    return h;
}

static bool holds(const struct hv__lowered *l, const struct hv__holder *h, int from2, int to2)
{
    if (from2 >= 0) {
        return h->g->range.from2 <= from2 && to2 <= h->g->range.to2;
    }
    size_t leaf = hv__end_leaf(from2);
    bool head = hv__end_is_head(from2), tied = l->leaves.items[leaf].model->tied_embeddings;
    return hv__holds_end(l, h->g, leaf, head) ||
           (!head && tied && hv__holds_end(l, h->g, leaf, true));
}

static void add_segment(const struct hv__lowered *l, struct hv__segment *s,
                        const struct hv__holder *all, size_t n)
{
    size_t many = 0;
    for (size_t i = 0; i < n; i++) {
        many += holds(l, &all[i], s->from2, s->to2);
    }
    s->holders = hv_arena_new(l->arena, struct hv__holder, many + 1);
    for (size_t i = 0; i < n; i++) {
        if (holds(l, &all[i], s->from2, s->to2)) {
            s->holders[s->n_holders++] = all[i];
        }
    }
}

struct hv__segment *hv__segments(const struct hv__lowered *l, size_t *out_n)
{
    size_t n_all = 0, n = 0;
    struct hv__holder *all = all_holders(l, &n_all);
    int *cuts = hv_arena_new(l->arena, int, 2 * n_all + 1);
    for (size_t i = 0; i < n_all; i++) {
        cuts[2 * i] = all[i].g->range.from2;
        cuts[2 * i + 1] = all[i].g->range.to2;
    }
    qsort(cuts, 2 * n_all, sizeof *cuts, compare_int);
    struct hv__segment *s = hv_arena_new(l->arena, struct hv__segment, 2 * n_all + 2 * l->leaves.n);
    for (size_t i = 0; i + 1 < 2 * n_all; i++) {
        if (cuts[i] < cuts[i + 1]) {
            s[n] = (struct hv__segment){.from2 = cuts[i], .to2 = cuts[i + 1]};
            add_segment(l, &s[n], all, n_all);
            n += s[n].n_holders > 0;
        }
    }
    for (size_t i = 0; i < 2 * l->leaves.n; i++) {
        int special = hv__end_of(i / 2, i % 2 == 1);
        if (l->leaves.items[i / 2].model->kind == HV_MODEL_TRANSFORMER) {
            s[n] = (struct hv__segment){.from2 = special, .to2 = special};
            add_segment(l, &s[n], all, n_all);
            n += s[n].n_holders > 0;
        }
    }
    *out_n = n;
    return s;
}

/** A set of devices in the order of the plan, each once. */
struct group {
    uint32_t *devices;
    size_t n;
};

/** A device and where it stands in a list. */
struct mention {
    uint32_t device;
    size_t at;
};

static int compare_mention(const void *a, const void *b)
{
    const struct mention *x = a, *y = b;
    if (x->device != y->device) {
        return x->device < y->device ? -1 : 1;
    }
    return (x->at > y->at) - (x->at < y->at);
}

/** Leaves of each device its first mention only; the order stays that of the plan, so that shard
 * groups are those of its ranks, whatever the numbers of the devices are. O(n log n). */
static void keep_first_mentions(struct hv_arena *arena, struct group *g)
{
    bool ascending = true;
    for (size_t i = 1; i < g->n; i++) {
        ascending = ascending && g->devices[i - 1] < g->devices[i];
    }
    if (ascending) {
        return;
    }
    struct mention *m = hv_arena_new(arena, struct mention, g->n);
    bool *again = hv_arena_new(arena, bool, g->n);
    for (size_t i = 0; i < g->n; i++) {
        m[i] = (struct mention){g->devices[i], i};
    }
    qsort(m, g->n, sizeof *m, compare_mention);
    for (size_t i = 1; i < g->n; i++) {
        again[m[i].at] = m[i].device == m[i - 1].device;
    }
    size_t kept = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (!again[i]) {
            g->devices[kept++] = g->devices[i];
        }
    }
    g->n = kept;
}

/** Grids of 2.5d tensor parallelism, which hold the same weights; 1 otherwise. */
static int grids_of(const struct hv_stage *s)
{
    return s->tp.degree / hv_tp_cuts(&s->tp);
}

/** Which holders: of all replica entries (−1) or of one; of all homes (−1) or of one; of all grids
 * (−1) or of one. */
struct pick {
    int64_t entry, home;
    int grid;
    const struct hv__expert_set *set; /**< for SLICE_OF_SET */
};
static const struct pick everybody = {-1, -1, -1, NULL};

/** The holders of an entry with which one shards a segment. In one direction these are all. In a
 * two-way schedule every rank runs a stage of each direction and shards both over the devices of
 * its own stage (rule E: its dp × cp × count), so that a stage has two groups. */
static int64_t home_of(const struct hv__lowered *l, const struct hv__holder *h)
{
    const struct hv__pipeline *pl = &l->pipelines.items[h->pipeline];
    return pl->n_pipes > 1 ? (int64_t)hv__first_lane(l, pl->i_replica, h->rank->stage) : 0;
}

static bool is_picked(const struct hv__lowered *l, const struct hv__holder *h, struct pick pick)
{
    const struct hv__pipeline *pl = &l->pipelines.items[h->pipeline];
    return (pick.entry < 0 || (size_t)pick.entry == pl->i_replica) &&
           (pick.home < 0 || pick.home == home_of(l, h));
}

/** Ranks that cut one expert of a stage. */
static size_t expert_cuts(const struct hv_stage *s)
{
    int tp = hv_stage_expert_tp(s, hv_stage_experts_over(s));
    return tp > 1 ? (size_t)tp : 1;
}

/** Devices of one copy of a stage: every stride-th one; of a set those whose place in their group
 * of `ep` has the mark in `on`. */
struct every {
    size_t stride;
    const bool *on;
    size_t ep;
};

/** Appends those of the grids that are picked. */
static void pick_devices(const struct hv__holder *h, const struct hv_stage *st, const uint32_t *d,
                         struct every e, int grid, struct group *g)
{
    int from = grid < 0 ? 0 : grid, to = grid < 0 ? grids_of(st) : grid + 1;
    size_t place = e.ep; /* in the group */
    for (size_t j = 0; j < h->rank->n_devices; j += e.stride) {
        place = place + 1 < e.ep ? place + 1 : 0;
        if (e.on != NULL && !e.on[place]) {
            continue;
        }
        for (int k = from; k < to && k < grids_of(st); k++) {
            g->devices[g->n++] = d[j + (size_t)k * (size_t)hv_tp_cuts(&st->tp)];
        }
    }
}

/** Which devices: all that hold a segment, or those with slice 0 of its experts or of the rest, or
 * of the experts of a set that the plan places. */
enum slice { SLICE_OF_DENSE, SLICE_OF_EXPERTS, SLICE_OF_SET, SLICE_ANY };

/** Devices that hold slice 0 of a segment, or any, in every copy. A device that holds it twice
 * (tied embeddings in a V placement, both directions of a two-way schedule) is one member: it adds
 * up for itself. */
static struct group slice_group(const struct hv__lowered *l, const struct hv__segment *s,
                                enum slice slice, struct pick pick)
{
    size_t most = 0;
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[s->holders[i].pipeline];
        most += (size_t)pl->multiplicity * s->holders[i].rank->n_devices;
    }
    struct group g = {hv_arena_new(l->arena, uint32_t, most + 1), 0};
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[s->holders[i].pipeline];
        const struct hv_stage *st = s->holders[i].stage;
        size_t ranks = s->holders[i].rank->n_devices;
        size_t stride = hv__holder_stride(st, slice == SLICE_OF_EXPERTS);
        struct every e = {slice == SLICE_ANY ? 1 : stride, NULL, 1};
        if (slice == SLICE_OF_SET) {
            const size_t *at = pick.set->at + i;
            e = (struct every){expert_cuts(st), pick.set->on + at[0], at[1] - at[0]};
        }
        bool picked = is_picked(l, &s->holders[i], pick);
        for (int c = 0; c < pl->multiplicity && picked; c++) {
            if (l->members != NULL && !l->members[s->holders[i].pipeline][c]) {
                continue;
            }
            const uint32_t *d = st->devices + (size_t)pl->copies[c] * ranks;
            pick_devices(&s->holders[i], st, d, e, pick.grid, &g);
        }
    }
    keep_first_mentions(l->arena, &g);
    return g;
}

/** Seconds of a collective by an algorithm. */
static double collective_by_s(const struct hv__lowered *l, enum hv_collective op, struct group g,
                              double bytes, double together, enum hv_sync_algorithm algorithm)
{
    struct hv_collective_query q = {.op = op,
                                    .bytes = bytes,
                                    .devices = g.devices,
                                    .n = g.n,
                                    .algorithm = algorithm,
                                    .together = together};
    if (g.n < 2 || !(bytes > 0)) {
        return 0;
    }
    struct hv_collective_cost x = hv_cost_collective(hv_cost_cluster(l->k), &q, NULL);
    bool late = hv__runtime(l)->reduction == HV_REDUCTION_LATE;
    return late ? x.alpha_s + (x.time_s - x.alpha_s) * hv__unhidden(l, g.devices, g.n) : x.time_s;
}

/** Seconds of a collective by the algorithm of the plan's reductions. */
static double collective_s(const struct hv__lowered *l, enum hv_collective op, struct group g,
                           double bytes, double together)
{
    return collective_by_s(l, op, g, bytes, together, l->plan->sync.algorithm);
}

/** How many of `n` holders share one set of states. */
static size_t shard_width(const struct hv_zero *z, size_t n)
{
    size_t limit = z->shard_group > 0 ? (size_t)z->shard_group : n;
    return z->stage == 0 ? 1 : limit < n ? limit : n;
}

/** One reduction to price: the part of a segment and its slices. */
struct reduce {
    const struct hv__segment *s;
    double bytes; /**< per slice, of the largest one */
    bool experts; /**< over the ranks with the same experts only */
    double slices, all_bytes;
    const struct hv__expert_set *set; /**< of experts: over the ranks that hold these; or NULL */
    double busy; /**< of a set: by what others at the same time multiply its time on the network */
};

/** Reductions that share the network with this one. */
static double together(const struct hv__lowered *l, const struct reduce *r,
                       const struct hv__cut *cut)
{
    if (r->set != NULL && r->set->ranks > (size_t)r->set->shards) {
        return (double)expert_cuts(r->s->holders[0].stage);
    }
    double n = hv__concurrent_reductions(l, r->s, cut);
    return r->set != NULL ? fmax(1, n * r->busy) : n;
}

static struct group members(const struct hv__lowered *l, const struct reduce *r, struct pick pick)
{
    pick.set = r->set;
    return slice_group(l, r->s,
                       r->set != NULL ? SLICE_OF_SET
                       : r->experts   ? SLICE_OF_EXPERTS
                                      : SLICE_OF_DENSE,
                       pick);
}

/** True where an earlier holder of a segment is in the same shard group as holder i. Holders of an
 * entry follow each other. */
static bool group_was_before(const struct hv__lowered *l, const struct hv__segment *s, size_t i)
{
    const struct hv__pipeline *pl = &l->pipelines.items[s->holders[i].pipeline];
    const struct pick own = {(int64_t)pl->i_replica, home_of(l, &s->holders[i]), -1, NULL};
    for (size_t k = i; k-- > 0;) {
        const struct hv__holder *h = &s->holders[k];
        if (l->pipelines.items[h->pipeline].i_replica != pl->i_replica) {
            return false;
        }
        if (is_picked(l, h, own)) {
            return true;
        }
    }
    return false;
}

/**
 * Where nobody shards: one all-reduce over all holders. Where states are sharded: every replica
 * entry scatters the sum over its shard group, unless its passes did so already, and the shards are
 * then all-reduced over what is left: other shard groups, unless the passes did that too, the other
 * direction, other entries, other grids (2.5d).
 */
static double reduce_s(const struct hv__lowered *l, const struct reduce *r)
{
    const struct hv__segment *s = r->s;
    bool all_shard = true;
    for (size_t i = 0; i < s->n_holders; i++) {
        all_shard = all_shard && s->holders[i].stage->zero.stage > 0;
    }
    struct hv__cut cut = {r->experts, (size_t)r->slices, 1, 0};
    struct group across = members(l, r, everybody);
    if (!all_shard) {
        return collective_s(l, HV_ALL_REDUCE, across, r->bytes, together(l, r, &cut));
    }
    double scatter_s = 0;
    size_t least = 0, n_across = 0;
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[s->holders[i].pipeline];
        if (group_was_before(l, s, i)) {
            continue;
        }
        const int64_t home = home_of(l, &s->holders[i]);
        const struct hv_stage *st = s->holders[i].stage;
        struct group g = {0};
        size_t width = 1;
        for (int grid = grids_of(st); grid-- > 0;) {
            g = members(l, r, (struct pick){(int64_t)pl->i_replica, home, grid, NULL});
            width = shard_width(&st->zero, g.n);
            width = width > 0 ? width : 1;
            size_t step = hv_zero_sums_groups(&st->zero) && g.n > 0 ? g.n : width;
            for (size_t k = 0; k < g.n && n_across < across.n; k += step) {
                across.devices[n_across++] = g.devices[k];
            }
        }
        least = least == 0 || width < least ? width : least;
        g.n = hv_zero_scatters(&st->zero) || hv_zero_by_schedule(&st->zero) ? 0 : width;
        cut.members = width;
        scatter_s = fmax(scatter_s, collective_s(l, HV_REDUCE_SCATTER, g, r->bytes,
                                                 g.n > 1 ? together(l, r, &cut) : 1));
    }
    across.n = n_across;
    cut.shards = least > 0 ? least : 1;
    cut.members = 0;
    return scatter_s + collective_s(l, HV_ALL_REDUCE, across, r->bytes / (double)cut.shards,
                                    across.n > 1 ? together(l, r, &cut) : 1);
}

/** Tied embeddings at the ends of the pipelines: each end sums its copy over the replicas, then the
 * pairs of mirroring devices do. */
static double tied_s(const struct hv__lowered *l, const struct reduce *r)
{
    struct hv__segment first = hv__one_end(l, r->s, 0), last = hv__one_end(l, r->s, 1);
    struct reduce a = *r, b = *r;
    a.s = &first;
    b.s = &last;
    return fmax(reduce_s(l, &a), reduce_s(l, &b)) + hv__pairs_s(l, r->s, r->all_bytes);
}

/** Sets that one rank holds alone, by rank, and the link domains of ranks. */
struct lone_sets {
    uint32_t *domain; /**< [most ranks of a group] */
    const struct hv__expert_set **items;
    size_t *rank; /**< [n] of the item */
    size_t n;
};

static struct lone_sets lone_sets(const struct hv__lowered *l, const struct hv__segment *s,
                                  const struct hv__expert_sets *sets)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const uint32_t *d = s->holders[0].rank->devices;
    size_t cuts = expert_cuts(s->holders[0].stage), ep = 0;
    struct lone_sets x = {.items = hv_arena_new(l->arena, const struct hv__expert_set *, sets->n),
                          .rank = hv_arena_new(l->arena, size_t, sets->n)};
    for (size_t i = 0; i < sets->n; i++) {
        ep = (size_t)sets->items[i].ep > ep ? (size_t)sets->items[i].ep : ep;
    }
    x.domain = hv_arena_new(l->arena, uint32_t, ep);
    for (size_t r = 0; r < ep; r++) {
        x.domain[r] = hv_cluster_domain_of(c, hv_cluster_node_of(c, d[r * cuts]));
        for (size_t i = 0; i < sets->n; i++) {
            const struct hv__expert_set *set = &sets->items[i];
            if (set->ranks == 1 && r < (size_t)set->ep && set->on[r]) {
                x.rank[x.n] = r;
                x.items[x.n++] = set;
            }
        }
    }
    return x;
}

/** How much longer the reductions of the other sets of one rank each make that of `own` in its
 * node, where all share the network fairly, over as many equal ones: ranks that hold more experts
 * have more to reduce. O(ranks + sets). */
static double busy_of(const struct lone_sets *x, const struct hv__expert_set *own)
{
    size_t at = 0;
    double sum = 0, ranks = 0;
    while (at + 1 < (size_t)own->ep && !own->on[at]) {
        at++;
    }
    for (size_t r = 0; r < (size_t)own->ep; r++) {
        ranks += x->domain[r] == x->domain[at];
    }
    for (size_t i = 0; i < x->n; i++) {
        bool near = x->items[i]->ep == own->ep && x->domain[x->rank[i]] == x->domain[at];
        sum += near ? fmin(x->items[i]->parameters, own->parameters) : 0;
    }
    return sum / (ranks * own->parameters);
}

/** Sums of copies that come anew go to the owner, in every group of expert-parallel ranks. */
static double to_owner_s(const struct hv__lowered *l, const struct hv__segment *s,
                         const struct hv__expert_set *set, double bytes)
{
    double most_s = 0;
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv_stage *st = s->holders[i].stage;
        const bool *on = set->on + set->at[i];
        size_t ep = set->at[i + 1] - set->at[i], cuts = expert_cuts(st), each = cuts * ep;
        struct group g = {hv_arena_new(l->arena, uint32_t, ep), 0};
        for (size_t from = 0; from + each <= s->holders[i].rank->n_devices; from += each) {
            g.n = 0;
            for (size_t r = 0; r < ep; r++) {
                if (on[r]) {
                    g.devices[g.n++] = s->holders[i].rank->devices[from + r * cuts];
                }
            }
            most_s = fmax(most_s, collective_s(l, HV_REDUCE, g, bytes, (double)cuts));
        }
    }
    return most_s;
}

/**
 * Gradients of experts that the plan places: first those with one holder in each group, all at
 * once; then set by set those with copies, in the order of the experts on every rank's stream.
 * O(sets · (sets + ep²)).
 */
static double placed_s(const struct hv__lowered *l, const struct hv__segment *s,
                       const struct hv__expert_sets *sets, double bytes)
{
    size_t cuts = expert_cuts(s->holders[0].stage);
    struct hv_streams x =
        hv_streams_open(hv_cost_cluster(l->k), s->holders[0].rank->devices,
                        (size_t)sets->items[0].ep, cuts); /* a group fits into the stage */
    double first_s = 0;
    const struct lone_sets lone = lone_sets(l, s, sets);
    for (size_t i = 0; i < sets->n; i++) {
        const struct hv__expert_set *set = &sets->items[i];
        struct reduce r = {.s = s,
                           .bytes = set->parameters * bytes / (double)cuts / set->shards,
                           .experts = true,
                           .slices = (double)cuts * set->ep,
                           .set = set,
                           .busy = 1};
        if (set->ranks > 1) {
            hv_streams_play(&x, set->on,
                            set->lent ? to_owner_s(l, s, set, r.bytes) : reduce_s(l, &r));
        } else {
            r.busy = busy_of(&lone, set);
            first_s = fmax(first_s, reduce_s(l, &r));
        }
    }
    double copies_s = hv_streams_end_s(&x);
    hv_streams_close(&x);
    return first_s + copies_s;
}

/** Slices that a segment is reduced in, so that every holder has whole ones. */
static int64_t slices_of(const struct hv__segment *s)
{
    int64_t slices = 1;
    for (size_t i = 0; i < s->n_holders; i++) {
        slices = hv_lcm(slices, hv_tp_cuts(&s->holders[i].stage->tp));
    }
    return slices;
}

double hv__bucket_s(const struct hv__lowered *l, const struct hv__segment *s,
                    struct hv__parameters p)
{
    int64_t slices = slices_of(s), expert_slices = 1;
    double least = HUGE_VAL; /* unequal shards are reduced in parallel: the largest counts */
    int ep = 1;
    for (size_t i = 0; i < s->n_holders; i++) {
        const struct hv_stage *st = s->holders[i].stage;
        int over = hv_stage_experts_over(st);
        int expert_tp = hv_stage_expert_tp(st, over) / grids_of(st);
        expert_slices = hv_lcm(expert_slices, expert_tp > 1 ? expert_tp : 1);
        least = st->tp.shares != NULL ? fmin(least, 1 / hv_tp_largest_frac(&st->tp)) : least;
        ep = over > ep ? over : ep;
    }
    double bytes = hv_job_grad_bytes(hv_cost_job(l->k));
    double parts = fmin((double)expert_slices, expert_slices > 1 ? least : HUGE_VAL) * ep;
    double pieces = fmin((double)slices, least);
    struct reduce dense = {.s = s,
                           .bytes = p.dense * bytes / pieces,
                           .slices = (double)slices,
                           .all_bytes = p.dense * bytes};
    struct reduce experts = {.s = s,
                             .bytes = p.experts * bytes / parts,
                             .experts = true,
                             .slices = (double)(expert_slices * ep),
                             .all_bytes = p.experts * bytes};
    double placed = 0;
    struct hv__expert_sets sets = {0};
    if (p.experts > 0) {
        sets = hv__expert_sets(l, s);
    }
    for (size_t i = 0; i < sets.n; i++) {
        placed += sets.items[i].lent ? 0 : sets.items[i].parameters;
    }
    bool tied = s->from2 < 0 && !hv__end_is_head(s->from2) &&
                l->leaves.items[hv__end_leaf(s->from2)].model->tied_embeddings;
    double t = 0;
    if (p.dense > 0) {
        t = tied && hv__ends_apart(s) ? tied_s(l, &dense) : reduce_s(l, &dense);
    }
    if (sets.n > 0) { /* the bucket has its share of each of them */
        double all = hv__segment_parameters(l, s).experts, rest = fmax(0, 1 - placed / all);
        t += placed_s(l, s, &sets, bytes * p.experts / all);
        experts.bytes *= rest > 1e-9 ? rest : 0; /* blocks without owners or copies */
    }
    return p.experts > 0 ? t + reduce_s(l, &experts) : t;
}

/** Adds the named link between two nodes, once. */
static void add_link(const struct hv_cluster *c, uint32_t a, uint32_t b, struct hv__lanes *w)
{
    const struct hv_network_link *x = a == b ? NULL : hv_cluster_link(c, a, b);
    if (x == NULL || !hv_known(x->bytes_per_s)) {
        return;
    }
    uint32_t id = c->n_nodes + (uint32_t)(x - c->links);
    double nic = fmin(hv_cluster_group_of_node(c, a)->nic.bytes_per_s,
                      hv_cluster_group_of_node(c, b)->nic.bytes_per_s);
    double share = fmin(1, nic / x->bytes_per_s);
    for (size_t i = w->n; i-- > 0 && w->ids[i] >= c->n_nodes;) {
        if (w->ids[i] == id) {
            w->shares[i] = fmax(w->shares[i], share);
            return;
        }
    }
    w->ids[w->n] = id;
    w->shares[w->n++] = share;
}

struct hv__lanes hv__segment_lanes(const struct hv__lowered *l, const struct hv__segment *s)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const struct hv__cut cut = {false, (size_t)slices_of(s), 1, 0};
    bool all = cut.slices > 1 && !hv__all_concurrent(l, s, &cut);
    const struct pick each_once = {-1, -1, 0, NULL};
    struct group g = all ? slice_group(l, s, SLICE_ANY, each_once)
                         : slice_group(l, s, SLICE_OF_DENSE, everybody);
    size_t most = g.n + c->n_links + 1, n_nodes = 0;
    struct hv__lanes w = {hv_arena_new(l->arena, uint32_t, most),
                          hv_arena_new(l->arena, double, most), 0};
    bool network = false;
    for (size_t i = 0; i < g.n; i++) { /* devices are numbered node by node */
        uint32_t node = hv_cluster_node_of(c, g.devices[i]);
        if (w.n == 0 || w.ids[w.n - 1] != node) {
            w.shares[w.n] = 1;
            w.ids[w.n++] = node;
            network = network || hv_cluster_domain_of(c, node) != hv_cluster_domain_of(c, w.ids[0]);
        }
    }
    w.n = network ? w.n : 0;
    n_nodes = w.n;
    for (size_t i = 0; c->n_links > 0 && i < n_nodes; i++) {
        add_link(c, w.ids[i], w.ids[i + 1 < n_nodes ? i + 1 : 0], &w);
    }
    return w;
}

/** True where ranks of the stage gather updated weights after the optimizer step. */
static bool gathers_weights(const struct hv_stage *s)
{
    bool any = s->zero.stage == 1 || s->zero.stage == 2;
    for (size_t i = 0; i < s->n_degrees; i++) {
        any = any || s->degrees[i].zero.stage == 1 || s->degrees[i].zero.stage == 2;
    }
    return any;
}

/** Stages of a pipeline that gather over the network of this rank's node at the same time. */
static double stages_in_node(const struct hv__lowered *l, const struct hv__pipeline *pl,
                             const struct hv__rank *rk)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    uint32_t node = hv_cluster_node_of(c, rk->devices[0]);
    double n = 0;
    for (size_t i = 0; i < pl->n_ranks; i++) {
        n += gathers_weights(&pl->replica->stages[pl->ranks[i].stage]) &&
             hv_cluster_node_of(c, pl->ranks[i].devices[0]) == node;
    }
    return n;
}

/** Gather of the updated weights of blocks with one set of degrees; `s`: the stage with these, `p`:
 * parameters of these blocks on a rank. */
static double gather_blocks_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                              const struct hv__rank *rk, const struct hv_stage *s,
                              struct hv__parameters p)
{
    if (s->zero.stage != 1 && s->zero.stage != 2) {
        return 0;
    }
    struct hv__gstage here = {.rank = rk->stage};
    size_t lanes = (size_t)hv_stage_lanes(s), first = hv__first_lane(l, pl->i_replica, rk->stage);
    struct hv__segment seg = {
        .holders = hv_arena_new(l->arena, struct hv__holder, lanes * l->pipelines.n)};
    for (size_t i = 0; i < lanes * l->pipelines.n; i++) {
        struct hv__pipeline *its = &l->pipelines.items[i / lanes];
        if (its->i_replica == pl->i_replica) {
            size_t at = first + i % lanes;
            seg.holders[seg.n_holders++] =
                (struct hv__holder){.pipeline = i / lanes,
                                    .rank = &its->ranks[at],
                                    .g = &here,
                                    .stage = lanes > 1 ? &its->replica->stages[at] : s};
        }
    }
    double weight_bytes = hv_job_weight_bytes(hv_cost_job(l->k));
    double stages = stages_in_node(l, pl, rk);
    struct hv__cut cut = {false, (size_t)hv_tp_cuts(&s->tp), 1, 0};
    const struct pick one_grid = {-1, -1, 0, NULL};
    struct group dense = slice_group(l, &seg, SLICE_OF_DENSE, one_grid),
                 experts = slice_group(l, &seg, SLICE_OF_EXPERTS, one_grid);
    dense.n = shard_width(&s->zero, dense.n);
    experts.n = shard_width(&s->zero, experts.n);
    cut.members = dense.n;
    enum hv_sync_algorithm by = hv_zero_gather_algorithm(&s->zero, l->plan->sync.algorithm);
    double gather_s = collective_by_s(l, HV_ALL_GATHER, dense, p.dense * weight_bytes,
                                      hv__concurrent_reductions(l, &seg, &cut) * stages, by);
    if (!(p.experts > 0)) {
        return gather_s;
    }
    cut = (struct hv__cut){true, hv__holder_stride(s, true), 1, experts.n};
    return gather_s + collective_by_s(l, HV_ALL_GATHER, experts, p.experts * weight_bytes,
                                      hv__concurrent_reductions(l, &seg, &cut) * stages, by);
}

/** True where weights of blocks with these shards are gathered beside the next forward pass. */
static bool is_late(const struct hv__lowered *l, const struct hv_zero *z)
{
    return !l->schedule.stale && z->gather_at == HV_GATHER_NEXT_FORWARD &&
           (z->stage == 1 || z->stage == 2);
}

/** The same of the parts of a stage with layer-wise degrees that are gathered late, or of the
 * others, one after the other. */
static double gather_parts_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                             const struct hv__rank *rk, bool late)
{
    struct hv_part_walk w = {.replica = pl->replica, .stage = rk->stage};
    double sum_s = 0;
    while (hv_stage_next_part(&w)) {
        const struct hv_stage_query q = {.plan = l->plan,
                                         .replica = pl->replica,
                                         .stage = rk->stage,
                                         .as = &w.part,
                                         .copy = pl->first_copy};
        struct hv_memory m;
        if (is_late(l, &w.part.zero) == late &&
            hv_cost_memory(l->k, &q, &m, NULL) == HV_OK) { /* the whole stage was priced */
            const struct hv__parameters p = {m.parameters - m.expert_parameters,
                                             m.expert_parameters};
            sum_s += gather_blocks_s(l, pl, rk, &w.part, p);
        }
    }
    return sum_s;
}

double hv__gather_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                    const struct hv__rank *rk, bool late)
{
    const struct hv_stage *s = &pl->replica->stages[rk->stage];
    if (s->n_degrees > 0) {
        return gather_parts_s(l, pl, rk, late);
    }
    return is_late(l, &s->zero) == late
               ? hv__gather_share_s(l, pl, rk, (struct hv__parameters){1, 1})
               : 0;
}

bool hv__gathers_late(const struct hv__lowered *l, const struct hv_stage *s)
{
    bool any = s->n_degrees == 0 && is_late(l, &s->zero);
    for (size_t i = 0; i < s->n_degrees; i++) {
        any = any || is_late(l, &s->degrees[i].zero);
    }
    return any;
}

double hv__gather_share_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                          const struct hv__rank *rk, struct hv__parameters share)
{
    const struct hv_memory *m = &rk->memory[0];
    for (size_t d = 1; d < rk->cuts; d++) {
        m = rk->memory[d].parameters > m->parameters ? &rk->memory[d] : m;
    }
    const struct hv__parameters p = {share.dense * (m->parameters - m->expert_parameters),
                                     share.experts * m->expert_parameters};
    return gather_blocks_s(l, pl, rk, &pl->replica->stages[rk->stage], p);
}
