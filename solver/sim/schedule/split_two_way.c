/*
 * Ranks that take whole micro-batches in turns, in schedules of two directions. A rank runs a stage
 * of each direction, and the micro-batches of both meet in its order. Where every stage has d
 * ranks, the turns are d pipelines: turn k runs the schedule's order for every d-th micro-batch,
 * from k on, as Chimera with data parallelism does (SC'21, section 3.3). Where stages have unlike
 * numbers of ranks, a stage would have another number in each direction, and micro-batches of one
 * direction would wait for ranks that are kept for the other: refused.
 */
#include "solver/sim/schedule/schedule_int.h"

struct turns {
    int32_t d;
    const struct hv_schedule *whole; /* [d] that of each turn */
    struct hv_schedule *out;
};

bool hv__has_two_way_turns(const struct hv_schedule_input *in)
{
    bool turns = false;
    for (int32_t r = 0; r < in->ranks; r++) {
        turns = turns || in->splits[r].lanes > 1;
    }
    return turns && (in->row->flags & HV_SCHEDULE_TWO_WAY) != 0;
}

static enum hv_status check_turns(const struct hv_schedule_input *in, struct hv_err *err)
{
    int32_t d = in->splits[0].lanes;
    for (int32_t r = 1; r < in->ranks; r++) {
        if (in->splits[r].lanes != d) {
            int32_t more = in->splits[r].lanes > d ? r : 0;
            return hv_err_set(err, HV_ENO,
                              "schedule %s cannot run stage %d with ranks that take micro-batches "
                              "in turns: its ranks run stages in two directions, so that all "
                              "stages need as many ranks; found %d and stage %d with %d",
                              in->row->name, more, in->splits[more].lanes, more == r ? 0 : r,
                              in->splits[more == r ? 0 : r].lanes);
        }
    }
    if (in->micro_batches < d) {
        return hv_err_set(err, HV_EUSAGE,
                          "schedule %s: %d micro-batches are fewer than the %d ranks of a stage "
                          "that take them in turns",
                          in->row->name, in->micro_batches, d);
    }
    return HV_OK;
}

/* stages, places and edges: stage s in turn k is stage s · d + k */
static void fill_stages(struct hv_arena *a, const struct turns *x)
{
    const struct hv_schedule *w = x->whole;
    const int32_t d = x->d, n = w->n_stages * d;
    int32_t *place = hv_arena_new(a, int32_t, (size_t)w->n_pipes * (size_t)n);
    struct hv_stage_unit *units = hv_arena_new(a, struct hv_stage_unit, (size_t)n);
    for (int32_t i = 0; i < w->n_pipes * n; i++) {
        int32_t pipe = i / n, stage = i % n / d, k = i % d;
        place[i] = x->whole[k].stage_to_rank[pipe * w->n_stages + stage] * d + k;
    }
    for (int32_t s = 0; s < n; s++) {
        units[s] = (struct hv_stage_unit){x->out->n_micro_batches, d, s % d};
    }
    int32_t n_edges = w->graph.n_edges * d;
    int32_t *from = hv_arena_new(a, int32_t, (size_t)n_edges + 1),
            *to = hv_arena_new(a, int32_t, (size_t)n_edges + 1);
    for (int32_t e = 0; e < n_edges; e++) {
        from[e] = w->graph.from[e / d] * d + e % d;
        to[e] = w->graph.to[e / d] * d + e % d;
    }
    x->out->n_stages = n;
    x->out->stage_to_rank = place;
    x->out->units = units;
    x->out->graph = (struct hv_stage_graph){.n_edges = n_edges, .from = from, .to = to};
}

/* the order of rank r in turn k behind the ops so far */
static size_t add_rank(const struct turns *x, int32_t r, int32_t k, struct hv_op *ops, size_t n)
{
    const struct hv_schedule *w = &x->whole[k];
    int32_t groups = 0;
    for (int32_t i = 0; i < k; i++) {
        groups += x->whole[i].n_groups;
    }
    for (size_t i = w->rank_at[r]; i < w->rank_at[r + 1]; i++) {
        ops[n] = w->ops[i];
        ops[n].stage = ops[n].stage * x->d + k;
        ops[n].mb = ops[n].mb * x->d + k;
        ops[n].group += ops[n].group >= 0 ? groups : 0;
        n++;
    }
    return n;
}

static void fill_ranks(struct hv_arena *a, const struct turns *x)
{
    size_t n_ops = 0, n = 0, n_ranks = (size_t)x->whole->n_ranks * (size_t)x->d;
    int32_t n_groups = 0;
    for (int32_t k = 0; k < x->d; k++) {
        n_ops += hv_schedule_n_ops(&x->whole[k]);
        n_groups += x->whole[k].n_groups;
    }
    struct hv_op *ops = hv_arena_new(a, struct hv_op, n_ops + 1);
    size_t *rank_at = hv_arena_new(a, size_t, n_ranks + 1);
    int32_t *versions = hv_arena_new(a, int32_t, n_ranks);
    for (size_t i = 0; i < n_ranks; i++) {
        int32_t r = (int32_t)i / x->d, k = (int32_t)i % x->d;
        n = add_rank(x, r, k, ops, n);
        rank_at[i + 1] = n;
        versions[i] = x->whole[k].weight_versions[r];
    }
    x->out->n_ranks = (int32_t)n_ranks;
    x->out->n_groups = n_groups;
    x->out->ops = ops;
    x->out->rank_at = rank_at;
    x->out->weight_versions = versions;
}

enum hv_status hv__two_way_turns(struct hv_arena *a, const struct hv_schedule_input *in,
                                 hv__maker *make, struct hv_schedule *out, struct hv_err *err)
{
    enum hv_status st = check_turns(in, err);
    const int32_t d = in->splits[0].lanes;
    struct hv_schedule *whole = hv_arena_new(a, struct hv_schedule, (size_t)d);
    for (int32_t k = 0; k < d && st == HV_OK; k++) {
        struct hv_schedule_input one = *in;
        one.splits = NULL;
        one.micro_batches = (in->micro_batches - k + d - 1) / d;
        st = make(a, &one, &whole[k], err);
        if (st != HV_OK) {
            hv_err_context(err, "turn %d of %d, %d micro-batches", k, d, one.micro_batches);
        }
    }
    if (st == HV_OK) {
        struct turns x = {d, whole, out};
        *out = whole[0];
        out->n_micro_batches = in->micro_batches;
        for (int32_t k = 1; k < d; k++) { /* turns of another length may be made in another way */
            out->by_times = out->by_times || whole[k].by_times;
            out->parts = out->parts || whole[k].parts;
            out->n_slices = whole[k].n_slices > out->n_slices ? whole[k].n_slices : out->n_slices;
        }
        fill_stages(a, &x);
        fill_ranks(a, &x);
    }
    return st;
}
