/*
 * Ranks that take whole micro-batches in turns, and stages with micro-batches of their own.
 *
 * Turns. The schedule is made for as many ranks as there are lanes, as if the micro-batches went
 * through all of them one after the other, and the lanes of a stage share the order of the first of
 * these ranks: lane k of d runs the operations of every d-th micro-batch. So 1F1B has on a stage
 * as many micro-batches in flight as lanes from it to the end, which is PipeDream's number of
 * optimal active minibatches (SOSP 2019, section 3.2).
 *
 * Micro-batches of their own. The schedule's micro-batches are the largest ones; a stage of k
 * smaller ones runs k forwards where the schedule has one, and k backwards (GraphPipe, ASPLOS 2025:
 * kFkB). What is recomputed, or ends in the last stage, is run down to its gradient before the next
 * begins.
 *
 * Neither adds a deadlock. An operation waits only for operations that came before it in the whole
 * schedule, where those of dropped ranks stand between; and within one micro-batch of the schedule
 * forwards never wait for backwards. Turns in schedules of two directions are in split_two_way.c.
 */
#include "solver/base/whole.h"
#include "solver/sim/schedule/schedule_int.h"
#include <math.h>

/* ---- the whole schedule
 * -------------------------------------------------------------------------------------------- */

static int32_t count_lanes(const struct hv_schedule_input *in)
{
    int32_t n = 0;
    for (int32_t r = 0; r < in->ranks; r++) {
        n += in->splits[r].lanes;
    }
    return n;
}

static enum hv_status refuse(const struct hv_schedule_input *in, int32_t rank, const char *why,
                             struct hv_err *err)
{
    return hv_err_set(err, HV_ENO, "schedule %s cannot run stage %d with %s: %s", in->row->name,
                      rank,
                      in->splits[rank].lanes > 1 ? "ranks that take micro-batches in turns"
                                                 : "micro-batches of its own size",
                      why);
}

enum hv_status hv__check_splits(const struct hv_schedule_input *in, struct hv_err *err)
{
    bool stashes = (in->row->flags & HV_SCHEDULE_STASHES) != 0;
    for (int32_t r = 0; r < in->ranks; r++) {
        bool turns = in->splits[r].lanes > 1, own = in->splits[r].passes > 1;
        if (own && (in->row->flags & HV_SCHEDULE_TWO_WAY)) {
            return refuse(in, r, "its ranks run stages in two directions", err);
        }
        if (own && (in->row->flags & (HV_SCHEDULE_SLICES | HV_SCHEDULE_PARTS))) {
            return refuse(in, r, "it cuts micro-batches itself", err);
        }
        if (own && (in->row->flags & HV_SCHEDULE_ORDER)) {
            return refuse(in, r, "its order is written out for micro-batches of one size", err);
        }
        if (own && (in->row->flags & HV_SCHEDULE_ASYNC)) {
            return refuse(in, r, "it updates weights after every micro-batch", err);
        }
        if ((turns || own) && in->resources) {
            return refuse(in, r, "its ranks share resources", err);
        }
        if (turns && stashes) {
            return refuse(in, r, "pairs of ranks keep activations for each other", err);
        }
        if (in->limits && in->limits[r] * in->splits[r].lanes < in->splits[r].passes) {
            return hv_err_set(err, HV_ENO,
                              "stage %d may hold %g micro-batches and runs %d in a row, as the "
                              "stages around it need; allow %d",
                              r, in->limits[r], in->splits[r].passes, in->splits[r].passes);
        }
    }
    return HV_OK;
}

/* the first rank of each stage in the whole schedule */
static int32_t *first_ranks(struct hv_arena *a, const struct hv_schedule_input *in)
{
    int32_t *first = hv_arena_new(a, int32_t, (size_t)in->ranks + 1);
    bool written = (in->row->flags & HV_SCHEDULE_ORDER) != 0; /* one order per stage */
    for (int32_t r = 0; r < in->ranks; r++) {
        first[r + 1] = first[r] + (written ? 1 : in->splits[r].lanes);
    }
    return first;
}

/* limits in micro-batches of the schedule, of all lanes together */
static const double *whole_limits(struct hv_arena *a, const struct hv_schedule_input *in,
                                  const int32_t *first)
{
    double *out = hv_arena_new(a, double, (size_t)first[in->ranks]);
    for (int32_t r = 0; r < in->ranks; r++) {
        const struct hv_stage_split *x = &in->splits[r];
        for (int32_t k = first[r]; k < first[r + 1]; k++) {
            out[k] = k == first[r] ? in->limits[r] * x->lanes / x->passes : (double)INFINITY;
        }
    }
    return out;
}

/* costs of all stages, one per rank: the lanes of one share its time, the last of them sends on */
static void whole_costs(struct hv_arena *a, const struct hv_schedule_input *in,
                        const int32_t *first, struct hv_schedule_input *out)
{
    int32_t all = first[in->ranks];
    struct hv_stage_cost *costs = hv_arena_new(a, struct hv_stage_cost, (size_t)all);
    double *hops_s = hv_arena_new(a, double, 2 * (size_t)all);
    for (int32_t r = 0; r < in->ranks; r++) {
        struct hv_stage_cost c = hv__cost(in, r);
        int32_t last = first[r + 1] - 1;
        double k = (double)in->splits[r].passes / (first[r + 1] - first[r]);
        for (int32_t i = first[r]; i <= last; i++) {
            costs[i] = (struct hv_stage_cost){k * c.f_s, k * c.b_s, k * c.w_s};
        }
        if (r + 1 < in->ranks) {
            hops_s[last] = hv__hop(in, r, false);
            hops_s[all - 1 + last] = hv__hop(in, r, true);
        }
    }
    out->costs = costs;
    out->hops_s = hops_s;
}

/* the stage graph, every stage as a chain of its lanes */
static const struct hv_stage_graph *
whole_graph(struct hv_arena *a, const struct hv_schedule_input *in, const int32_t *first)
{
    size_t most = (size_t)in->graph->n_edges + (size_t)first[in->ranks];
    struct hv_stage_graph *g = hv_arena_new(a, struct hv_stage_graph, 1);
    int32_t *from = hv_arena_new(a, int32_t, most), *to = hv_arena_new(a, int32_t, most);
    for (int32_t e = 0; e < in->graph->n_edges; e++) {
        from[g->n_edges] = first[in->graph->from[e] + 1] - 1;
        to[g->n_edges++] = first[in->graph->to[e]];
    }
    for (int32_t r = 0; r < in->ranks; r++) {
        for (int32_t k = first[r]; k + 1 < first[r + 1]; k++) {
            from[g->n_edges] = k;
            to[g->n_edges++] = k + 1;
        }
    }
    g->from = from;
    g->to = to;
    return g;
}

void hv__whole_input(struct hv_arena *a, const struct hv_schedule_input *in,
                     struct hv_schedule_input *out)
{
    const int32_t *first = first_ranks(a, in);
    *out = *in;
    out->splits = NULL;
    out->resources = NULL;
    out->ranks = first[in->ranks];
    out->limits = in->limits ? whole_limits(a, in, first) : NULL;
    out->graph = in->graph ? whole_graph(a, in, first) : NULL;
    if (in->chunks > 1) { /* which stage has which cost depends on their placement */
        out->costs = NULL;
        out->hops_s = NULL;
    } else if (in->costs != NULL || in->hops_s != NULL) {
        whole_costs(a, in, first, out);
    }
}

/* ---- the parts
 * -------------------------------------------------------------------------------------------- */

struct splitting {
    const struct hv_schedule_input *in;
    const struct hv_schedule *whole;
    struct hv_schedule *out;
    int32_t *first;    /* [ranks + 1] first rank of each stage in the whole schedule */
    int32_t *rank_at;  /* [ranks + 1] first lane of each */
    int32_t *stage_at; /* [stages of the whole] first stage of its lanes, -1 = dropped */
    bool *ends;        /* [stages of the whole] nothing comes behind it */
    struct hv_stage_unit *units;
    struct hv_op *ops;
    size_t n_ops;
};

/* the rank of `in` whose first rank in the whole schedule this is; -1 = it is a further one */
static int32_t rank_of_first(const struct splitting *x, int32_t rank)
{
    for (int32_t r = 0; r < x->in->ranks; r++) {
        if (x->first[r] == rank) {
            return r;
        }
    }
    return -1;
}

/* numbers the stages of the lanes in the order of the whole schedule */
static void number_stages(struct hv_arena *a, struct splitting *x)
{
    const struct hv_schedule *w = x->whole;
    int32_t lanes = count_lanes(x->in), n = 0;
    size_t most = (size_t)lanes * (size_t)x->in->chunks;
    int32_t *place = hv_arena_new(a, int32_t, most);
    x->units = hv_arena_new(a, struct hv_stage_unit, most);
    for (int32_t s = 0; s < w->n_stages; s++) {
        int32_t r = rank_of_first(x, w->stage_to_rank[s]);
        x->stage_at[s] = r < 0 ? -1 : n;
        for (int32_t k = 0; r >= 0 && k < x->in->splits[r].lanes; k++, n++) {
            place[n] = x->rank_at[r] + k;
            x->units[n] = (struct hv_stage_unit){w->n_micro_batches * x->in->splits[r].passes,
                                                 x->in->splits[r].lanes, k};
        }
    }
    x->out->n_ranks = lanes;
    x->out->n_stages = n;
    x->out->stage_to_rank = place;
    x->out->units = x->units;
    for (int32_t s = 0; s < n; s++) {
        int32_t m = x->units[s].n;
        x->out->n_micro_batches = m > x->out->n_micro_batches ? m : x->out->n_micro_batches;
    }
}

/* edges between the lanes of two stages that run the same micro-batches */
static void add_edges(const struct splitting *x, int32_t a, int32_t b, int32_t *from, int32_t *to,
                      int32_t *n)
{
    int32_t la = x->units[a].lanes, lb = x->units[b].lanes, step = (int32_t)hv_gcd(la, lb);
    for (int32_t j = 0; j < lb; j++) {
        for (int32_t i = 0; i < la; i++) {
            if (i % step == j % step) {
                from[*n] = a + i;
                to[(*n)++] = b + j;
            }
        }
    }
}

/* the next stage that is kept in a chain; -1 = none */
static int32_t kept_behind(const struct splitting *x, int32_t stage)
{
    do {
        stage++;
    } while (stage < x->whole->n_stages && x->stage_at[stage] < 0);
    return stage < x->whole->n_stages ? stage : -1;
}

static void fill_graph(struct hv_arena *a, struct splitting *x)
{
    const struct hv_stage_graph *g = x->in->graph;
    size_t n = (size_t)x->out->n_stages, most = 0, widest = 1;
    for (int32_t r = 0; r < x->in->ranks; r++) {
        size_t lanes = (size_t)x->in->splits[r].lanes;
        widest = lanes > widest ? lanes : widest;
    }
    most = widest * widest * (g ? (size_t)g->n_edges : n) + 1;
    int32_t *from = hv_arena_new(a, int32_t, most), *to = hv_arena_new(a, int32_t, most);
    int32_t n_edges = 0;
    for (int32_t s = 0; s < x->whole->n_stages; s++) {
        x->ends[s] = true;
    }
    for (int32_t e = 0; g && e < g->n_edges; e++) { /* one chunk: stages are ranks */
        int32_t i = x->first[g->from[e]], j = x->first[g->to[e]];
        x->ends[i] = false;
        add_edges(x, x->stage_at[i], x->stage_at[j], from, to, &n_edges);
    }
    for (int32_t s = 0; !g && s < x->whole->n_stages; s++) {
        int32_t next = x->stage_at[s] < 0 ? -1 : kept_behind(x, s);
        x->ends[s] = next < 0;
        if (next >= 0) {
            add_edges(x, x->stage_at[s], x->stage_at[next], from, to, &n_edges);
        }
    }
    x->out->graph = (struct hv_stage_graph){.n_edges = n_edges, .from = from, .to = to};
}

/* appends an op of micro-batch `mb` of its stage, where it is one of the lane */
static void add_op(struct splitting *x, const struct hv_op *op, int32_t mb, int32_t lane,
                   int32_t group)
{
    int32_t stage = x->stage_at[op->stage] + lane;
    if (mb % x->units[stage].lanes != lane) {
        return;
    }
    struct hv_op *o = &x->ops[x->n_ops++];
    *o = *op;
    o->stage = stage;
    o->mb = mb;
    o->group = group;
}

/* how many ops from i on belong to one micro-batch and may follow each other for each of its parts
 */
static size_t run_length(const struct splitting *x, size_t i, size_t end)
{
    const struct hv_op *op = &x->whole->ops[i];
    size_t n = 1;
    bool forward = op->kind == HV_OP_F && !x->ends[op->stage];
    while (!forward && op->group < 0 && i + n < end && op[n].stage == op->stage &&
           op[n].mb == op->mb && op[n].group < 0) {
        n++;
    }
    return n;
}

/* appends the ops that a lane runs in place of [i, i + n) of the whole order: one after the other,
 * or an overlapped pair */
static void add_run(struct splitting *x, size_t i, size_t n, int32_t passes, int32_t lane)
{
    const struct hv_op *op = &x->whole->ops[i];
    bool pair = n == 2 && op->group >= 0;
    for (int32_t q = 0; q < passes; q++) {
        size_t before = x->n_ops;
        for (size_t k = 0; k < n; k++) {
            add_op(x, &op[k], op[k].mb * passes + q, lane, pair ? x->out->n_groups : -1);
        }
        if (pair && x->n_ops == before + 1) { /* the other one is of another lane */
            x->ops[before].group = -1;
        }
        x->out->n_groups += pair && x->n_ops == before + 2;
    }
}

/* the order of one lane of a rank */
static void add_lane(struct splitting *x, int32_t rank, int32_t lane)
{
    size_t i = x->whole->rank_at[x->first[rank]], end = x->whole->rank_at[x->first[rank] + 1];
    while (i < end) {
        size_t n = run_length(x, i, end);
        bool pair = x->whole->ops[i].group >= 0 && i + 1 < end &&
                    x->whole->ops[i + 1].group == x->whole->ops[i].group;
        n = pair ? 2 : n;
        add_run(x, i, n, x->in->splits[rank].passes, lane);
        i += n;
    }
}

static void fill_ops(struct hv_arena *a, struct splitting *x)
{
    size_t n = 0;
    size_t *rank_at = hv_arena_new(a, size_t, (size_t)x->out->n_ranks + 1);
    for (int32_t r = 0; r < x->in->ranks; r++) {
        size_t own = x->whole->rank_at[x->first[r] + 1] - x->whole->rank_at[x->first[r]];
        n += own * (size_t)x->in->splits[r].passes;
    }
    x->ops = hv_arena_new(a, struct hv_op, n + 1);
    for (int32_t r = 0; r < x->in->ranks; r++) {
        for (int32_t k = 0; k < x->in->splits[r].lanes; k++) {
            add_lane(x, r, k);
            rank_at[x->rank_at[r] + k + 1] = x->n_ops;
        }
    }
    x->out->rank_at = rank_at;
    x->out->ops = x->ops;
}

/* a lane keeps no more versions of its weights than it has micro-batches in flight */
static void fill_versions(struct hv_arena *a, struct splitting *x)
{
    int32_t *versions = hv_arena_new(a, int32_t, (size_t)x->out->n_ranks);
    hv_schedule_peak_inflight(x->out, versions);
    for (int32_t r = 0; r < x->in->ranks; r++) {
        int32_t most = x->whole->weight_versions[x->first[r]];
        for (int32_t k = x->rank_at[r]; k < x->rank_at[r + 1]; k++) {
            versions[k] = versions[k] < 1 ? 1 : versions[k] > most ? most : versions[k];
        }
    }
    x->out->weight_versions = versions;
}

void hv__split(struct hv_arena *a, const struct hv_schedule_input *in,
               const struct hv_schedule *whole, struct hv_schedule *out)
{
    struct splitting x = {.in = in, .whole = whole, .out = out, .first = first_ranks(a, in)};
    *out = *whole;
    out->n_groups = out->n_micro_batches = 0;
    x.rank_at = hv_arena_new(a, int32_t, (size_t)in->ranks + 1);
    for (int32_t r = 0; r < in->ranks; r++) {
        x.rank_at[r + 1] = x.rank_at[r] + in->splits[r].lanes;
    }
    x.stage_at = hv_arena_new(a, int32_t, (size_t)whole->n_stages);
    x.ends = hv_arena_new(a, bool, (size_t)whole->n_stages);
    number_stages(a, &x);
    fill_graph(a, &x);
    fill_ops(a, &x);
    fill_versions(a, &x);
}
