/**
 * From plan to schedules: the order in which a rank runs the passes that price.c prices. Reductions
 * and the optimizer are in tail.c.
 */
#include "solver/eval/moves/moves.h"
#include "solver/eval/train/reduce_int.h"
#include "solver/sim/pipeline/fold.h"

#include <float.h>
#include <math.h>
#include <string.h>

/** Number of micro-batches simulated for a schedule without flush, in multiples of its ranks. */
#define STEADY_FILLS 3
/** Least number of micro-batches of these where the order depends on times, since it settles later.
 */
#define STEADY_PLAYED 256
/** Largest number of micro-batches of these, unless the two limits above ask for more. */
#define STEADY_MOST 4096
/** Times that differ by less than this share are equal: rounding does not choose an order. */
#define TIME_REL 1e-12
/** Longer runs (micro-batches × global stages) are folded where they are not drawn. */
#define FOLD_FROM 32768

/** Number of chunks, equal for all stages. */
static enum hv_status chunks_of(const struct hv__pipeline *pl, int32_t *out, struct hv_err *err)
{
    size_t v = pl->replica->stages[0].n_ranges;
    for (size_t i = 1; i < pl->replica->n_stages; i++) {
        if (pl->replica->stages[i].n_ranges != v) {
            return hv_err_set(err, HV_ENO,
                              "stage %zu has %zu chunks and stage 0 has %zu: give every stage the "
                              "same number of layer ranges",
                              i, pl->replica->stages[i].n_ranges, v);
        }
    }
    *out = v == 0 ? 1 : (int32_t)v;
    return HV_OK;
}

/** The key of the plan that decides the order of operations. */
static const char *place_of_order(const struct hv__lowered *l)
{
    const struct hv_schedule_row *row = l->schedule.row;
    return row != NULL && row->flags & HV_SCHEDULE_ORDER ? "schedule.order" : "schedule";
}

/** A wrong schedule is a finding with its own code. */
static enum hv_status schedule_finding(const struct hv__lowered *l, const struct hv_err *err)
{
    hv_finding_add(l->findings, HV_V_SCHEDULE_NEEDS, HV_UNKNOWN, place_of_order(l), "%s",
                   err->text);
    return HV_ENO;
}

/** Costs for a scheduler that decides by cost; NULL costs: every operation takes one unit. */
struct decide {
    const struct hv_stage_cost *costs;
    const double *hops_s; /**< as hv_schedule_input has them */
};

/** The stages that are the ranks of the schedule: as written. */
static const struct hv_replica *whole_of(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    const struct hv__split *x = hv__split_of(l, pl->i_replica);
    return x != NULL ? x->whole : pl->replica;
}

/** Micro-batches in flight that stages allow; NULL = no stage sets a limit. */
static const double *rank_limits(const struct hv__lowered *l, const struct hv_replica *r)
{
    bool any = false;
    double *limits = hv_arena_new(l->arena, double, r->n_stages + 1);
    for (size_t i = 0; i < r->n_stages; i++) {
        int most = r->stages[i].in_flight;
        limits[i] = most > 0 ? most : (double)INFINITY;
        any = any || most > 0;
    }
    return any ? limits : NULL;
}

/** Edges of the stage graph, where the plan gives them; NULL = a chain. Branching stages have one
 * chunk. */
static const struct hv_stage_graph *stage_graph(const struct hv__lowered *l,
                                                const struct hv_replica *r)
{
    size_t n = 0;
    bool told = false;
    for (size_t i = 0; i < r->n_stages; i++) {
        const struct hv_stage *s = &r->stages[i];
        n += s->n_after > 0 ? (size_t)s->n_after : 1;
        told = told || hv_stage_branches(s, i);
    }
    if (!told || r->stages[0].n_ranges > 1) {
        return NULL;
    }
    struct hv_stage_graph *g = hv_arena_new(l->arena, struct hv_stage_graph, 1);
    int32_t *from = hv_arena_new(l->arena, int32_t, n), *to = hv_arena_new(l->arena, int32_t, n);
    for (size_t i = 0; i < r->n_stages; i++) {
        const struct hv_stage *s = &r->stages[i];
        size_t feeds = s->n_after >= 0 ? (size_t)s->n_after : i > 0;
        for (size_t k = 0; k < feeds; k++) {
            from[g->n_edges] = s->n_after >= 0 ? s->after[k] : (int32_t)i - 1;
            to[g->n_edges++] = (int32_t)i;
        }
    }
    g->from = from;
    g->to = to;
    return g;
}

/** Devices that stages of a pipeline share, or all of its devices where some are shared and `all`,
 * numbered in the order of first mention; NULL: none is shared. O(stages · devices). */
static const struct hv_rank_resources *shared_devices(const struct hv__lowered *l,
                                                      const struct hv__pipeline *pl, bool all)
{
    const uint32_t n_all = hv_cost_cluster(l->k)->n_devices;
    if (!hv_plan_shares_devices(l->plan)) {
        return NULL;
    }
    struct hv_rank_resources *out = hv_arena_new(l->arena, struct hv_rank_resources, 1);
    int32_t *users = hv_arena_new(l->arena, int32_t, (size_t)n_all + 1), n = 0, n_shared = 0;
    for (size_t r = 0; r < pl->n_ranks; r++) {
        for (size_t d = 0; d < pl->ranks[r].n_devices; d++, n++) {
            n_shared += ++users[pl->ranks[r].devices[d]] == 2;
        }
    }
    int32_t *at = hv_arena_new(l->arena, int32_t, pl->n_ranks + 1);
    int32_t *resource = hv_arena_new(l->arena, int32_t, (size_t)n + 1);
    int32_t *number = hv_arena_new(l->arena, int32_t, (size_t)n_all + 1); /* of each, from 1 */
    for (size_t r = 0; r < pl->n_ranks; r++) {
        at[r + 1] = at[r];
        for (size_t d = 0; d < pl->ranks[r].n_devices; d++) {
            uint32_t id = pl->ranks[r].devices[d];
            if (all || users[id] > 1) {
                number[id] = number[id] > 0 ? number[id] : ++out->n_resources;
                resource[at[r + 1]++] = number[id] - 1;
            }
        }
    }
    out->at = at;
    out->resource = resource;
    return n_shared > 0 ? out : NULL;
}

/** True where every list names the operations of its own stage only: where stages share devices,
 * the list of some device names those of two. Tokens that cannot be read are refused later. */
static bool is_per_stage(const struct hv_plan_schedule *s)
{
    for (size_t i = 0; i < s->n_orders; i++) {
        for (size_t k = 0; k < s->n_order[i]; k++) {
            struct hv_op ops[2];
            size_t n = 0;
            if (hv_op_parse(s->order[i][k], 0, ops, &n, NULL) != HV_OK) {
                return false;
            }
            for (size_t o = 0; o < n; o++) {
                if (ops[o].stage != (int32_t)i) {
                    return false;
                }
            }
        }
    }
    return true;
}

/** Takes over an order that the plan writes out: one list per stage, or per device where stages
 * share devices. Lists of stages that share devices leave it to the rule of share_resources.c which
 * of them goes first. */
static enum hv_status take_order(const struct hv__lowered *l, struct hv_schedule_input *in,
                                 struct hv_err *err)
{
    const struct hv_plan_schedule *s = &l->plan->schedule;
    size_t n_stages = (size_t)in->ranks, n = s->n_orders;
    size_t n_devices = in->resources != NULL ? (size_t)in->resources->n_resources : 0;
    if (n != n_stages && n_devices == 0) {
        return hv_err_set(err, HV_ENO,
                          "schedule \"%s\" needs one order per stage (%zu), the plan has %zu",
                          s->name, n_stages, n);
    }
    if (n != n_stages && n != n_devices) {
        return hv_err_set(err, HV_ENO,
                          "schedule \"%s\" needs one order per device (%zu, in the order in which "
                          "the stages name them first), as stages share devices, or one per stage "
                          "(%zu); the plan has %zu",
                          s->name, n_devices, n_stages, n);
    }
    struct hv_order_text *order = hv_arena_new(l->arena, struct hv_order_text, n + 1);
    for (size_t i = 0; i < n; i++) {
        order[i] = (struct hv_order_text){.tokens = s->order[i], .n = s->n_order[i]};
    }
    in->order = order;
    in->order_per_resource = n == n_devices && !(n == n_stages && is_per_stage(s));
    return HV_OK;
}

/** Input of the schedule of a pipeline: the plan's schedule name and options. */
static enum hv_status schedule_input(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                     const struct decide *by, struct hv_schedule_input *in,
                                     struct hv_err *err)
{
    const struct hv_plan *p = l->plan;
    int32_t v = 1;
    enum hv_status st = chunks_of(pl, &v, err);
    if (st != HV_OK) {
        return st;
    }
    const struct hv__split *split = hv__split_of(l, pl->i_replica);
    const struct hv_replica *whole = whole_of(l, pl);
    hv_schedule_input_init(in, l->schedule.row, (int32_t)whole->n_stages, pl->n_mb);
    in->costs = by->costs;
    in->hops_s = by->hops_s;
    in->limits = rank_limits(l, whole);
    in->graph = stage_graph(l, whole);
    in->splits = split != NULL ? split->of : NULL;
    bool written = (l->schedule.row->flags & HV_SCHEDULE_ORDER) != 0;
    in->resources = shared_devices(l, pl, written);
    if (v > 1 || !(l->schedule.row->flags & HV_SCHEDULE_NEEDS_CHUNKS)) {
        in->chunks = v;
    }
    for (size_t i = 0; i < p->schedule.n_options; i++) {
        const struct hv_option *o = &p->schedule.options[i];
        st = hv_schedule_set_option(in, o->key, o->value, err);
        if (st != HV_OK) {
            return st;
        }
    }
    st = written ? take_order(l, in, err) : HV_OK;
    if (st != HV_OK) {
        return st;
    }
    if (p->schedule.slices > 1) {
        st = hv_schedule_set_int(in, "slices", p->schedule.slices, err);
        if (st != HV_OK) {
            return st;
        }
    }
    return HV_OK;
}

static bool same_documents(const struct hv_documents *a, const struct hv_documents *b)
{
    return a->n == b->n && a->tokens == b->tokens &&
           (a->n == 0 || memcmp(a->lengths, b->lengths, a->n * sizeof *a->lengths) == 0);
}

/** Documents of a micro-batch of so many tokens. */
static struct hv_documents documents_of(const struct hv_micro_batch *mb, double tokens)
{
    struct hv_documents d = {0};
    double sum = 0;
    if (mb != NULL && mb->n_documents > 0) {
        for (size_t i = 0; i < mb->n_documents; i++) {
            sum += mb->documents[i];
        }
        d = (struct hv_documents){mb->documents, mb->n_documents, fmax(tokens, sum)};
    }
    return d;
}

static bool same_shape(const struct hv__lowered *l, const struct hv__shape *a,
                       const struct hv__shape *b)
{
    bool scaled = a->scales != NULL && b->scales != NULL;
    return a->sequences == b->sequences && a->tokens == b->tokens && a->context == b->context &&
           same_documents(&a->documents, &b->documents) &&
           (scaled ? memcmp(a->scales, b->scales, l->leaves.n * sizeof *a->scales) == 0
                   : a->scales == b->scales);
}

/** Makes a micro-batch one of its k slices: of the lengths that the plan lists, else of equal ones.
 * Tokens of earlier slices are its context. */
static void set_slice(const struct hv_plan *p, size_t slice, size_t k, struct hv__shape *s)
{
    double all = 0, before = 0, own = 1;
    bool listed = p->schedule.n_slice_tokens == k;
    for (size_t i = 0; i < k; i++) {
        double tokens = listed ? (double)p->schedule.slice_tokens[i] : 1;
        before += i < slice ? tokens : 0;
        own = i == slice ? tokens : own;
        all += tokens;
    }
    s->context = s->tokens * before / all;
    s->tokens *= own / all;
}

/** Shapes where stages have micro-batches of unlike size: one per size. */
static void find_own_shapes(struct hv__lowered *l, struct hv__pipeline *pl)
{
    const struct hv_schedule *s = pl->schedule;
    double sequence = hv_cost_tokens(l->k);
    size_t n = (size_t)s->n_stages;
    pl->shapes = hv_arena_new(l->arena, struct hv__shape, n);
    pl->shape_of_stage = hv_arena_new(l->arena, size_t, n);
    pl->n_of_shape = hv_arena_new(l->arena, double, n);
    pl->n_shapes = 0;
    for (size_t g = 0; g < n; g++) {
        const struct hv_stage *st = &pl->replica->stages[s->stage_to_rank[g]];
        struct hv__shape own = {.sequences = hv_stage_micro_batch(l->plan, pl->replica, st),
                                .tokens = sequence};
        size_t i = 0;
        while (i < pl->n_shapes && !same_shape(l, &pl->shapes[i], &own)) {
            i++;
        }
        pl->shapes[i] = own;
        pl->n_shapes += i == pl->n_shapes;
        pl->shape_of_stage[g] = i;
    }
}

/** Tokens of a sequence of the mb-th micro-batch, padded to the longest of its sequences. */
static double padded_tokens(const struct hv__lowered *l, const struct hv__pipeline *pl,
                            double sequences, size_t mb)
{
    const struct hv__length_run *run = l->lengths;
    double u = run->quantile;
    if (run->quantiles != NULL) {
        size_t n = (size_t)pl->replica->micro_batches;
        u = run->quantiles[pl->i_replica][(run->draw * n + mb) % (run->n_draws * n)];
    }
    return hv_job_padded_tokens(hv_cost_job(l->k), sequences, u);
}

/** Shapes of micro-batches and slices that occur in a pipeline. */
static void find_shapes(struct hv__lowered *l, struct hv__pipeline *pl)
{
    double sequence = hv_cost_tokens(l->k);
    const struct hv_plan *p = l->plan;
    const struct hv_replica *r = pl->replica;
    const struct hv__split *split = hv__split_of(l, pl->i_replica);
    if (split != NULL && split->unlike) {
        find_own_shapes(l, pl);
        return;
    }
    bool each = r->list != NULL || (l->lengths != NULL && l->lengths->quantiles != NULL);
    size_t k = (size_t)(pl->n_slices > 1 ? pl->n_slices : 1), n = (size_t)pl->n_mb * k;
    pl->n_shapes = 0;
    pl->shape_of = hv_arena_new(l->arena, int32_t, n);
    size_t most = (each ? (size_t)pl->n_mb : 1) * k;
    pl->shapes = hv_arena_new(l->arena, struct hv__shape, most);
    double base = (double)(r->micro_batch > 0 ? r->micro_batch : p->micro_batch);
    for (size_t i = 0; i < n; i++) {
        if (!each && i >= k) {
            pl->shape_of[i] = pl->shape_of[i % k];
            continue;
        }
        const struct hv_micro_batch *mb = r->list != NULL ? &r->list[i / k] : NULL;
        struct hv__shape s = {.sequences = mb != NULL ? (double)mb->sequences : base,
                              .tokens = sequence,
                              .scales = hv__leaf_scales(l, mb)};
        if (l->lengths != NULL) {
            s.tokens = padded_tokens(l, pl, s.sequences, i / k);
        }
        l->schedule.scaled = l->schedule.scaled || s.scales != NULL;
        if (mb != NULL && mb->tokens > 0 && mb->sequences > 0) {
            s.tokens = (double)mb->tokens / (double)mb->sequences;
        }
        s.documents = documents_of(mb, s.sequences * s.tokens);
        if (s.documents.n > 0) {
            l->schedule.packed = true;
            s.tokens = s.documents.tokens / s.sequences;
        }
        if (k > 1) {
            set_slice(p, i % k, k, &s);
        }
        size_t j = 0;
        while (j < pl->n_shapes && !same_shape(l, &pl->shapes[j], &s)) {
            j++;
        }
        if (j == pl->n_shapes) {
            pl->shapes[pl->n_shapes++] = s;
        }
        pl->shape_of[i] = (int32_t)j;
    }
    pl->n_of_shape = hv_arena_new(l->arena, double, pl->n_shapes);
    for (size_t i = 0; i < n; i++) {
        pl->n_of_shape[pl->shape_of[i]] += 1;
    }
}

/** Position of a global stage: its chunk on its rank, and whether it is the first or last stage. */
struct place {
    size_t chunk;
    bool first, last;
};

/** Embedding and head go with the first and the last stage; in a model of modules every module has
 * its own, beside its outermost blocks. */
static void set_ends(const struct hv__lowered *l, struct hv__gstage *x, const struct hv_stage *st,
                     struct place at)
{
    bool modules = hv_cost_model(l->k)->kind == HV_MODEL_MODULES;
    x->embedding = st->embedding > 0 ? at.chunk == 0 : st->embedding;
    x->head = st->head > 0 ? at.chunk + 1 == st->n_ranges : st->head;
    if (!modules) {
        x->embedding = st->embedding < 0 ? at.first : x->embedding;
        x->head = st->head < 0 ? at.last : x->head;
    }
}

/** Which blocks a global stage holds: the k-th chunk of its rank in model order. */
static enum hv_status fill_gstages(const struct hv__lowered *l, struct hv__pipeline *pl,
                                   struct hv_err *err)
{
    const struct hv_schedule *s = pl->schedule;
    pl->n_gstages = (size_t)s->n_stages;
    pl->n_pipes = (size_t)s->n_pipes;
    pl->gstages = hv_arena_new(l->arena, struct hv__gstage, pl->n_pipes * pl->n_gstages);
    pl->scratch = hv__copy_replica(l, pl->replica);
    size_t *seen = hv_arena_new(l->arena, size_t, pl->n_ranks);
    bool *again = hv_arena_new(l->arena, bool, pl->n_gstages);
    for (size_t i = 0; i < hv_schedule_n_ops(s); i++) {
        again[s->ops[i].stage] |= s->ops[i].kind == HV_OP_R;
    }
    for (size_t g = 0; g < pl->n_gstages; g++) {
        size_t home = (size_t)s->stage_to_rank[g], chunk = seen[home]++;
        const struct hv_stage *st = &pl->replica->stages[home];
        if (chunk >= st->n_ranges) {
            (void)hv_err_set(
                err, HV_ENO,
                "schedule \"%s\" puts %zu chunks on stage %zu, the plan gives it %zu layer ranges",
                l->schedule.row->name, chunk + 1, home, st->n_ranges);
            return schedule_finding(l, err);
        }
        for (size_t p = 0; p < pl->n_pipes; p++) {
            struct hv__gstage *x = &pl->gstages[p * pl->n_gstages + g];
            x->plan_stage = home;
            x->rank = (size_t)s->stage_to_rank[p * pl->n_gstages + g];
            x->range = st->ranges[chunk];
            x->again = again[g];
            x->shape = pl->shape_of_stage != NULL ? pl->shape_of_stage[g] : 0;
            set_ends(l, x, st, (struct place){chunk, g == 0, g + 1 == pl->n_gstages});
            enum hv_status status = hv__price_gstage(l, pl, x, err);
            if (status != HV_OK) {
                return status;
            }
        }
    }
    return HV_OK;
}

static double kind_s(const struct hv__gstage *g, size_t shape, unsigned kind)
{
    switch ((enum hv_op_kind)kind) {
    case HV_OP_F:
        return g->forward_s[shape] + g->sends_forward_s;
    case HV_OP_B:
        return g->input_grad_s[shape] + g->sends_backward_s;
    case HV_OP_W:
        return g->weight_grad_s[shape];
    case HV_OP_BW:
        return g->backward_s[shape] + g->sends_backward_s;
    case HV_OP_R:
        return g->again ? g->recompute_s[shape] : g->forward_s[shape];
    case HV_OP_KIND_N:
        break;
    }
    return 0;
}

/** True where copies of experts arrive in the first pass of a stage. */
static bool has_copies(const struct hv__pipeline *pl)
{
    for (size_t g = 0; g < pl->n_pipes * pl->n_gstages; g++) {
        if (pl->gstages[g].copies_s > 0) {
            return true;
        }
    }
    return false;
}

/** Adds the arrival of copies to the first forward pass of every global stage; operations are in
 * the order of their rank. */
static void add_copies(const struct hv__lowered *l, const struct hv__pipeline *pl, double *op_s)
{
    bool *here = hv_arena_new(l->arena, bool, pl->n_pipes * pl->n_gstages);
    for (size_t i = 0; i < hv_schedule_n_ops(pl->schedule); i++) {
        const struct hv_op *op = &pl->schedule->ops[i];
        size_t g = (size_t)op->pipe * pl->n_gstages + (size_t)op->stage;
        if (op->kind == HV_OP_F && !here[g]) {
            op_s[i] += pl->gstages[g].copies_s;
            here[g] = true;
        }
    }
}

/** Duration tables: per stage where all micro-batches are alike and there is one direction, else
 * per op. */
static void fill_durations(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    pl->cost.pair_s = hv__price_pairs(l, pl);
    bool copies = has_copies(pl), alike = pl->n_shapes == 1 || pl->shape_of_stage != NULL;
    if (alike && pl->n_pipes == 1 && !copies) {
        double *stage_s = hv_arena_new(l->arena, double, pl->n_gstages *HV_OP_KIND_N);
        for (size_t g = 0; g < pl->n_gstages; g++) {
            for (unsigned kind = 0; kind < HV_OP_KIND_N; kind++) {
                stage_s[g * HV_OP_KIND_N + kind] =
                    kind_s(&pl->gstages[g], pl->gstages[g].shape, kind);
            }
        }
        pl->cost.stage_s = stage_s;
        return;
    }
    size_t n = hv_schedule_n_ops(pl->schedule);
    double *op_s = hv_arena_new(l->arena, double, n);
    for (size_t i = 0; i < n; i++) {
        const struct hv_op *op = &pl->schedule->ops[i];
        const struct hv__gstage *g =
            &pl->gstages[(size_t)op->pipe * pl->n_gstages + (size_t)op->stage];
        size_t shape = hv__shape_of(pl, op->stage, op->mb, op->slice);
        op_s[i] = kind_s(g, shape, op->kind) * hv_op_share(pl->schedule, op);
    }
    if (copies) {
        add_copies(l, pl, op_s);
    }
    pl->cost.op_s = op_s;
}

/** Checks that an explicit order has every micro-batch on every stage, forward and backward;
 * repeated or misplaced operations were found before. */
static enum hv_status check_whole(const struct hv__lowered *l, const struct hv_schedule *s,
                                  struct hv_err *err)
{
    if (!(l->schedule.row->flags & HV_SCHEDULE_ORDER)) {
        return HV_OK;
    }
    size_t want = (size_t)s->n_stages * (size_t)s->n_micro_batches * (size_t)s->n_slices;
    size_t forwards = 0, backwards = 0;
    for (size_t i = 0; i < s->rank_at[s->n_ranks]; i++) {
        enum hv_op_kind kind = (enum hv_op_kind)s->ops[i].kind;
        forwards += kind == HV_OP_F;
        backwards += kind == HV_OP_B || kind == HV_OP_BW;
    }
    if (forwards == want && backwards == want) {
        return HV_OK;
    }
    return hv_err_set(err, HV_ENO,
                      "the order has %zu forwards and %zu backwards, %d stages with %d "
                      "micro-batches need %zu of each",
                      forwards, backwards, s->n_stages, s->n_micro_batches, want);
}

/** Makes the schedule of the pipeline. */
static enum hv_status make_schedule(const struct hv__lowered *l, struct hv__pipeline *pl,
                                    const struct decide *by, struct hv_err *err)
{
    struct hv_schedule_input in;
    struct hv_schedule *schedule = hv_arena_new(l->arena, struct hv_schedule, 1);
    enum hv_status st = schedule_input(l, pl, by, &in, err);
    if (st == HV_OK) {
        st = hv_schedule_make(l->arena, &in, schedule, err);
    }
    if (st != HV_OK) {
        return schedule_finding(l, err);
    }
    pl->schedule = schedule;
    return hv__report_progress(l, HV__AT_SCHEDULE, err);
}

/** Compiles the schedule that the pipeline has. */
static enum hv_status compile_schedule(const struct hv__lowered *l, struct hv__pipeline *pl,
                                       struct hv_err *err)
{
    struct hv_pipe *pipe = hv_arena_new(l->arena, struct hv_pipe, 1);
    enum hv_status st = hv_pipe_compile(l->arena, pl->schedule, pipe, err);
    if (st == HV_EINPUT) { /* an operation twice, missing, or where it does not belong */
        return schedule_finding(l, err);
    }
    if (st != HV_OK) {
        hv_finding_add(l->findings, HV_V_ORDER_DEADLOCK, HV_UNKNOWN, place_of_order(l), "%s",
                       err->text);
        return HV_ENO;
    }
    pl->pipe = pipe;
    st = check_whole(l, pl->schedule, err);
    return st == HV_OK ? st : schedule_finding(l, err);
}

static enum hv_status make_and_compile(const struct hv__lowered *l, struct hv__pipeline *pl,
                                       const struct decide *by, struct hv_err *err)
{
    enum hv_status st = make_schedule(l, pl, by, err);
    return st == HV_OK ? compile_schedule(l, pl, err) : st;
}

/** Seconds of the order that the pipeline has now, where transfers share no link. O(operations). */
static double order_s(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    struct hv_arena scratch = {0};
    struct hv_pipe_run run;
    fill_durations(l, pl);
    hv_pipe_run_new(&scratch, pl->pipe, &run);
    hv_pipe_time(pl->pipe, &pl->cost, &run);
    double makespan_s = run.makespan_s;
    hv_arena_free(&scratch);
    return makespan_s;
}

/** The rank of the schedule that runs a global stage, where each runs one; else the stage. */
static size_t schedule_stage(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t g)
{
    const struct hv__split *x = hv__split_of(l, pl->i_replica);
    return x != NULL ? hv__written_stage(l, pl->i_replica, pl->gstages[g].rank) : g;
}

/** Costs of the pipeline's stages and hops, as a scheduler that decides by cost reads them. */
static struct decide costs_of(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    const struct hv__split *split = hv__split_of(l, pl->i_replica);
    size_t n = split != NULL ? split->whole->n_stages : pl->n_gstages, n_edges = n - 1;
    struct hv_stage_cost *costs = hv_arena_new(l->arena, struct hv_stage_cost, pl->n_gstages);
    double *hops_s = hv_arena_new(l->arena, double, 2 * n_edges + 1);
    if (split != NULL && pl->replica->stages[0].n_ranges > 1) {
        return (struct decide){NULL, NULL}; /* ranks that are split decide by equal times */
    }
    for (size_t g = 0; g < pl->n_gstages; g++) {
        const struct hv__gstage *x = &pl->gstages[g];
        double back_s = x->input_grad_s[x->shape], weight_s = x->weight_grad_s[x->shape];
        if (!(l->schedule.row->flags & HV_SCHEDULE_SPLIT)) { /* one operation runs both */
            back_s = fmin(back_s, x->backward_s[x->shape]);
            weight_s = x->backward_s[x->shape] - back_s;
        }
        costs[schedule_stage(l, pl, g)] =
            (struct hv_stage_cost){x->forward_s[x->shape], back_s, weight_s};
    }
    for (int32_t e = 0; e < pl->schedule->graph.n_edges; e++) {
        size_t from = schedule_stage(l, pl, (size_t)pl->schedule->graph.from[e]);
        if (schedule_stage(l, pl, (size_t)pl->schedule->graph.to[e]) == from + 1) {
            hops_s[from] = pl->hops.time_s[hv_pipe_hop(pl->pipe, false, 0, e)];
            hops_s[n_edges + from] = pl->hops.time_s[hv_pipe_hop(pl->pipe, true, 0, e)];
        }
    }
    return (struct decide){costs, hops_s};
}

/** Factors on the times of transfers with which orders are tried besides those of the costs as they
 * are: a greedy scheduler may win by a wait that it does not foresee. The first GREEDY_TRIES of
 * them are compared where transfers share no links. Order 1 is the plain one, of equal times; order
 * k > 1 has the (k - 2)th factor. */
static const double hop_factors[HV__ORDERS - 1] = {1, 0, 2, 4};
#define GREEDY_TRIES 3

/** True where two schedules of the same pipeline are the same. O(operations). */
static bool same_order(const struct hv_schedule *a, const struct hv_schedule *b)
{
    size_t n = hv_schedule_n_ops(a);
    bool waits = a->wait_at != NULL;
    return n == hv_schedule_n_ops(b) && waits == (b->wait_at != NULL) &&
           a->by_times == b->by_times &&
           memcmp(a->rank_at, b->rank_at, ((size_t)a->n_ranks + 1) * sizeof *a->rank_at) == 0 &&
           memcmp(a->ops, b->ops, n * sizeof *a->ops) == 0 &&
           (!waits || (memcmp(a->wait_at, b->wait_at, (n + 1) * sizeof *a->wait_at) == 0 &&
                       memcmp(a->waits, b->waits, (size_t)a->wait_at[n] * sizeof *a->waits) == 0));
}

/** The order with these operations that was made before; NULL: there is none. */
static const struct hv__made_order *made_before(const struct hv__pipeline *pl,
                                                const struct hv_schedule *s)
{
    for (size_t i = 0; i < HV__ORDERS; i++) {
        if (pl->orders[i].schedule != NULL && same_order(pl->orders[i].schedule, s)) {
            return &pl->orders[i];
        }
    }
    return NULL;
}

/** Makes an order for these costs, compiles and times it, unless another is the same. Findings are
 * those of the orders that run. */
static enum hv_status make_order(const struct hv__lowered *l, struct hv__pipeline *pl,
                                 const struct decide *by, struct hv__made_order *out,
                                 struct hv_err *err)
{
    size_t findings = l->findings->n;
    *out = (struct hv__made_order){.made = true};
    enum hv_status st = make_schedule(l, pl, by, err);
    const struct hv__made_order *same = st == HV_OK ? made_before(pl, pl->schedule) : NULL;
    if (same != NULL) {
        *out = *same;
        return HV_OK;
    }
    st = st == HV_OK ? compile_schedule(l, pl, err) : st;
    if (st == HV_OK) {
        out->schedule = pl->schedule;
        out->pipe = pl->pipe;
        out->alone_s = order_s(l, pl);
        return HV_OK;
    }
    l->findings->n = findings;
    return st == HV_ENO ? HV_OK : st;
}

/** Makes an order, where it was not made before, for the costs of which `by` has those of transfers
 * as they are. */
static enum hv_status need_order(const struct hv__lowered *l, struct hv__pipeline *pl,
                                 const struct decide *by, size_t order, struct hv_err *err)
{
    if (pl->orders[order].made) {
        return HV_OK;
    }
    size_t n_hops = 2 * (pl->n_gstages - 1);
    if (hv__split_of(l, pl->i_replica) != NULL) {
        n_hops = 2 * (whole_of(l, pl)->n_stages - 1);
    }
    double *scaled_s = hv_arena_new(l->arena, double, n_hops + 1);
    for (size_t k = 0; k < n_hops; k++) {
        scaled_s[k] = hop_factors[order - 1] * by->hops_s[k];
    }
    return make_order(l, pl, &(struct decide){by->costs, scaled_s}, &pl->orders[order], err);
}

/**
 * Lets the pipeline have the order l->order, or the shortest of several. Deciding by cost is list
 * scheduling, which shorter operations can make longer (Graham, 1969), so the plain order is one of
 * them; it stays where no other runs.
 */
static enum hv_status choose_order(const struct hv__lowered *l, struct hv__pipeline *pl,
                                   struct hv_err *err)
{
    const struct hv__made_order *best = &pl->orders[0];
    bool one = l->order > 1;
    size_t first = one ? (size_t)l->order - 1 : 1;
    size_t n_tries = !one && (l->schedule.row->flags & HV_SCHEDULE_GREEDY) ? GREEDY_TRIES : 1;
    enum hv_status st = HV_OK;
    pl->schedule = best->schedule;
    pl->pipe = best->pipe;
    pl->cost.stream = NULL; /* it follows from the order */
    struct decide by = costs_of(l, pl);
    double best_s = one ? DBL_MAX / 2 : best->alone_s; /* any that runs replaces the plain one */
    for (size_t i = first; l->order != 1 && by.costs != NULL && i < first + n_tries; i++) {
        st = need_order(l, pl, &by, i, err);
        if (st != HV_OK) {
            break;
        }
        const struct hv__made_order *x = &pl->orders[i];
        if (x->schedule != NULL && x->alone_s <= best_s * (1 + TIME_REL)) {
            best_s = x->alone_s;
            best = x;
        }
    }
    pl->schedule = best->schedule;
    pl->pipe = best->pipe;
    return st;
}

/**
 * The plain order (equal times) gives the placement of stages and so their costs; schedulers that
 * decide by cost then run again with these costs. Placement and transfers do not change. The order
 * of asynchronous schedules is not a choice: it follows from who comes first.
 */
static enum hv_status schedule_by_cost(const struct hv__lowered *l, struct hv__pipeline *pl,
                                       struct hv_err *err)
{
    if (l->schedule.row->flags & HV_SCHEDULE_ASYNC) {
        struct decide by = costs_of(l, pl);
        return make_and_compile(l, pl, &by, err);
    }
    pl->orders = hv_arena_new(l->arena, struct hv__made_order, HV__ORDERS);
    pl->orders[0] =
        (struct hv__made_order){.made = true, .schedule = pl->schedule, .pipe = pl->pipe};
    pl->orders[0].alone_s = order_s(l, pl);
    return choose_order(l, pl, err);
}

bool hv__chooses_order(const struct hv__lowered *l)
{
    bool any = (l->schedule.row->flags & HV_SCHEDULE_BY_COST) != 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        any = any || l->pipelines.items[i].schedule->by_times;
    }
    return any && !(l->schedule.row->flags & HV_SCHEDULE_ASYNC);
}

/** In a schedule of two directions a rank runs blocks of other stages too, for which its stage
 * gives no degrees. */
static enum hv_status check_one_way(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                    struct hv_err *err)
{
    for (size_t i = 0; pl->schedule->n_pipes > 1 && i < pl->n_ranks; i++) {
        if (pl->replica->stages[i].n_degrees > 0) {
            (void)hv_err_set(err, HV_ENO,
                             "schedule %s runs blocks of two stages on one rank; stage %zu gives "
                             "degrees layer by layer: choose a schedule of one direction, or one "
                             "set of degrees for the stage",
                             l->plan->schedule.name, i);
            return schedule_finding(l, err);
        }
    }
    return HV_OK;
}

/** Micro-batches of unlike size would be padded to lengths of their own. */
static enum hv_status check_one_length(const struct hv__lowered *l, const struct hv__pipeline *pl,
                                       struct hv_err *err)
{
    const struct hv__split *x = hv__split_of(l, pl->i_replica);
    if (x == NULL || !x->unlike || l->lengths == NULL) {
        return HV_OK;
    }
    return hv_err_set(
        err, HV_ENO,
        "not simulated yet: replicas[%zu].stages.micro_batch: micro-batches of unlike "
        "size for a job with sequence_lengths; give all stages one size",
        pl->i_replica);
}

/** Makes the schedule of pl->n_mb micro-batches and prices the passes of its stages. Orders that
 * are written out are checked before, since they may name stages that are not there. */
static enum hv_status price_stages(struct hv__lowered *l, struct hv__pipeline *pl,
                                   struct hv_err *err)
{
    bool written = (l->schedule.row->flags & HV_SCHEDULE_ORDER) != 0;
    const struct decide plain = {NULL, NULL};
    enum hv_status st = (written ? make_and_compile : make_schedule)(l, pl, &plain, err);
    st = st == HV_OK ? check_one_way(l, pl, err) : st;
    st = st == HV_OK ? check_one_length(l, pl, err) : st;
    if (st != HV_OK) {
        return st;
    }
    pl->n_slices = pl->schedule->parts ? 1 : pl->schedule->n_slices;
    find_shapes(l, pl);
    st = fill_gstages(l, pl, err);
    bool longer = st == HV_OK && l->give_up_s > 0 && hv__busy_too_long(l, pl);
    return st != HV_OK || written || longer ? st : compile_schedule(l, pl, err);
}

/** Makes the schedule of pl->n_mb micro-batches and prices what its ranks run; ends early where
 * l->iteration.least_s says that it takes too long. */
static enum hv_status lower_passes(struct hv__lowered *l, struct hv__pipeline *pl,
                                   struct hv_err *err)
{
    enum hv_status st = price_stages(l, pl, err);
    if (st != HV_OK || l->iteration.least_s > 0) {
        return st;
    }
    st = hv__price_memory(l, pl, err);
    if (st == HV_OK) {
        hv__price_hops(l, pl);
        hv__block_sends(l, pl);
    }
    if (st == HV_OK && (pl->schedule->by_times || (l->schedule.row->flags & HV_SCHEDULE_BY_COST))) {
        st = schedule_by_cost(l, pl, err);
    }
    if (st == HV_OK) {
        fill_durations(l, pl);
        hv__plan_stream(l, pl);
    }
    return st;
}

/** True where a stage's first passes wait for weights, so that the run does not repeat from its
 * start. */
static bool any_late_gather(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    bool any = false;
    for (size_t i = 0; i < pl->replica->n_stages; i++) {
        any = any || hv__gathers_late(l, &pl->replica->stages[i]);
    }
    return any;
}

/**
 * Computes a long run from a short one where both are proven equal: prices the least sufficient
 * number of micro-batches, then folds. false = the run must be laid out in full.
 */
static bool lower_folded(struct hv__lowered *l, struct hv__pipeline *pl)
{
    const unsigned never = HV_SCHEDULE_BY_COST | HV_SCHEDULE_ORDER;
    int64_t m = pl->replica->micro_batches;
    struct hv_schedule_input in;
    struct hv_fold f;
    struct hv_err unheard = {0}; /* the full run reports the error */
    bool drawn = l->lengths != NULL && l->lengths->quantiles != NULL;
    if (l->spans || drawn || hv__has_stream(pl) || pl->replica->list != NULL ||
        any_late_gather(l, pl) || (l->schedule.row->flags & never) ||
        hv__split_of(l, pl->i_replica) != NULL || m * (int64_t)pl->n_ranks < FOLD_FROM) {
        return false;
    }
    pl->n_mb = 1;
    size_t before = l->findings->n;
    bool ok = schedule_input(l, pl, &(struct decide){NULL, NULL}, &in, &unheard) == HV_OK;
    pl->n_mb = ok ? (int32_t)hv_fold_least(&in, m) : 1;
    ok = ok && lower_passes(l, pl, &unheard) == HV_OK;
    if (ok && l->iteration.least_s > 0) {
        return true;
    }
    ok = ok && pl->cost.stage_s != NULL && !pl->schedule->by_times &&
         hv_schedule_fold(l->arena, &in, &pl->cost, m, &f, &unheard) == HV_OK;
    if (!ok) {
        l->findings->n =
            before; /* the error is about a number of micro-batches that the plan does not have */
        return false;
    }
    pl->schedule = hv_arena_copy(l->arena, &f.s, 1, sizeof f.s);
    pl->pipe = hv_arena_copy(l->arena, &f.g, 1, sizeof f.g);
    pl->run = f.run;
    pl->idle = f.idle;
    pl->more_mb = f.more;
    pl->n_mb = f.s.n_micro_batches;
    find_shapes(l, pl);
    return true;
}

static enum hv_status lower_pipeline(struct hv__lowered *l, struct hv__pipeline *pl,
                                     struct hv_err *err)
{
    hv__fill_ranks(l, pl);
    int64_t m = pl->replica->micro_batches;
    if (l->schedule.stale && (l->schedule.row->flags & HV_SCHEDULE_ASYNC) &&
        pl->replica->list == NULL) {
        /* the steady state shows only after the pipeline has filled several times */
        bool played = (l->schedule.row->flags & HV_SCHEDULE_BY_COST) != 0;
        int64_t want = STEADY_FILLS * (int64_t)pl->n_ranks;
        want = played && want < STEADY_PLAYED ? STEADY_PLAYED : want;
        m = m > STEADY_MOST ? STEADY_MOST : m;
        m = want > m ? want : m;
    } else if (lower_folded(l, pl)) {
        if (!(l->iteration.least_s > 0)) {
            hv__find_moves(l, pl);
        }
        return HV_OK;
    }
    if (m < 1 || m > HV_SCHEDULE_MB_MAX) {
        return hv_err_set(err, HV_ENO, "%lld micro-batches: give every replica between 1 and %d",
                          (long long)m, HV_SCHEDULE_MB_MAX);
    }
    pl->n_mb = (int32_t)m;
    enum hv_status st = lower_passes(l, pl, err);
    if (st == HV_OK && !(l->iteration.least_s > 0)) {
        hv__find_moves(l, pl);
    }
    return st;
}

enum hv_status hv__lower(struct hv__lowered *l, struct hv_err *err)
{
    struct hv_err own; /* findings quote the error, also where the caller passes no `err` */
    if (err == NULL) {
        own = (struct hv_err){0};
        err = &own;
    }
    enum hv_status st = hv_schedule_find(l->plan->schedule.name, &l->schedule.row, err);
    if (st != HV_OK) {
        return schedule_finding(l, err);
    }
    l->schedule.stale =
        (l->schedule.row->flags & HV_SCHEDULE_ASYNC) != 0 || hv_plan_is_stale(l->plan);
    hv__find_pipelines(l);
    struct hv__recent recent = {.n = 0};
    for (size_t u = 0; u < l->pipelines.n; u++) {
        struct hv__pipeline *pl = &l->pipelines.items[u];
        if (!hv__take_like(l, &recent, pl)) {
            st = lower_pipeline(l, pl, err);
            hv__note_lowered(&recent, pl);
        }
        if (st == HV_OK && l->iteration.least_s > 0) {
            return HV_OK;
        }
        if (st == HV_OK) {
            unsigned done = (unsigned)((HV__AT_LOWERED - HV__AT_SCHEDULE) * u / l->pipelines.n);
            st = hv__report_progress(l, HV__AT_SCHEDULE + done, err);
        }
        if (st != HV_OK) {
            return st;
        }
    }
    return hv__find_held(l, err);
}

bool hv__can_reorder(const struct hv__lowered *l)
{
    for (size_t i = 0; i < l->pipelines.n; i++) {
        if (l->pipelines.items[i].orders == NULL || l->pipelines.items[i].moving.n_lanes > 0) {
            return false;
        }
    }
    return true;
}

enum hv_status hv__reorder(struct hv__lowered *l, struct hv_err *err)
{
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < l->pipelines.n && st == HV_OK; i++) {
        struct hv__pipeline *pl = &l->pipelines.items[i];
        if (pl->like != NULL) {
            hv__take_again(l, pl, &l->pipelines.items[pl->like - l->pipelines.items]);
            continue;
        }
        st = choose_order(l, pl, err);
        if (st == HV_OK) {
            fill_durations(l, pl);
            hv__plan_stream(l, pl);
        }
    }
    return st;
}
