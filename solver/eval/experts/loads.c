/** Loads of ranks with experts: the cost model is asked for the rows behind its prices. */
#include "solver/eval/experts/loads.h"

#include "solver/plan/experts.h"
#include "solver/workload/router.h"

/** True where a stage computes the half of a block that has its experts. */
static bool has_block(const struct hv_stage *s, size_t block)
{
    int half = 2 * (int)block + 1;
    for (size_t i = 0; i < s->n_ranges; i++) {
        if (s->ranges[i].from2 <= half && half < s->ranges[i].to2) {
            return true;
        }
    }
    return false;
}

static void add_layers(const struct hv_model *m, const struct hv_plan *p, size_t replica,
                       size_t stage, struct hv_expert_layer *out, size_t *n)
{
    const struct hv_stage *s = &p->replicas[replica].stages[stage];
    size_t layer = 0;
    for (size_t b = 0; b < m->n_blocks; b++) {
        int ep = hv_moe_ep(s, hv_stage_moe(s, b));
        if (m->blocks[b].experts > 0 && ep > 1 && has_block(s, b)) {
            out[(*n)++] = (struct hv_expert_layer){.replica = replica,
                                                   .stage = stage,
                                                   .block = b,
                                                   .layer = layer,
                                                   .ep = ep,
                                                   .experts = m->blocks[b].experts,
                                                   .top_k = m->blocks[b].top_k};
        }
        layer += m->blocks[b].experts > 0;
    }
}

size_t hv_eval_expert_layers(struct hv_cost *k, const struct hv_plan *p, struct hv_arena *arena,
                             struct hv_expert_layer **out)
{
    const struct hv_model *m = hv_cost_model(k);
    size_t stages = 0, n = 0;
    *out = NULL;
    if (m->blocks == NULL || m->kind != HV_MODEL_TRANSFORMER || p->mode != HV_MODE_TRAIN ||
        hv_router_is_even(hv_cost_job(k)->routing)) {
        return 0;
    }
    for (size_t r = 0; r < p->n_replicas; r++) {
        stages += p->replicas[r].n_stages;
    }
    *out = hv_arena_new(arena, struct hv_expert_layer, stages * m->n_blocks + 1);
    for (size_t r = 0; r < p->n_replicas; r++) {
        for (size_t i = 0; i < p->replicas[r].n_stages; i++) {
            add_layers(m, p, r, i, *out, &n);
        }
    }
    return n;
}

/** The iterations of the job's routing that differ. */
static size_t iterations_of(const struct hv_router *r)
{
    return r->iterations > 0 ? r->iterations : 1;
}

/** The term with the rows of experts, or NULL. */
static const struct hv_why_rows *rows_of(const struct hv_why *why)
{
    for (size_t i = 0; i < why->n; i++) {
        if (why->terms[i].rows != NULL) {
            return why->terms[i].rows;
        }
    }
    return NULL;
}

/** Prices the half of one block with its experts alone, in the place of its stage. */
static enum hv_status price(struct hv_cost *k, const struct hv_plan *p,
                            const struct hv_expert_layer *at, size_t iteration, struct hv_why *why,
                            struct hv_err *err)
{
    const struct hv_replica *r = &p->replicas[at->replica];
    struct hv_stage alone = r->stages[at->stage];
    struct hv_range half = {2 * (int)at->block + 1, 2 * (int)at->block + 2};
    alone.ranges = &half;
    alone.n_ranges = 1;
    alone.embedding = alone.head = 0;
    const struct hv_stage_query q = {.plan = p,
                                     .replica = r,
                                     .stage = at->stage,
                                     .as = &alone,
                                     .iteration = iteration,
                                     .copies_apart = hv_stage_copies_apart(&alone),
                                     .why = why};
    struct hv_pass pass;
    return hv_cost_pass(k, &q, &pass, err);
}

/** Tokens of each expert of a layer, of all ranks of its stage, against their mean. False for a
 * routing of another model. */
static bool use_of(struct hv_cost *k, const struct hv_plan *p, const struct hv_expert_layer *at,
                   size_t iteration, double *times)
{
    const struct hv_router *router = hv_cost_job(k)->routing;
    const struct hv_stage *s = &p->replicas[at->replica].stages[at->stage];
    size_t of =
        (size_t)(s->dp * s->cp.degree * s->tp.degree) / (size_t)hv_stage_expert_tp(s, at->ep);
    of = of > (size_t)at->ep ? of : (size_t)at->ep;
    size_t sources = hv_router_has_sources(router) ? of : 1, n = (size_t)at->experts;
    const struct hv_router_at where = {iteration, at->layer, n, at->top_k, 0, sources, of};
    struct hv_arena scratch = {0};
    double *tokens = hv_arena_new(&scratch, double, sources *n), sum = 0;
    hv_router_tokens(router, &where, tokens);
    for (size_t e = 0; e < n; e++) {
        times[e] = 0;
        for (size_t x = 0; x < sources; x++) {
            times[e] += tokens[x * n + e];
        }
        sum += times[e];
    }
    for (size_t e = 0; sum > 0 && e < n; e++) {
        times[e] *= (double)n / sum;
    }
    hv_arena_free(&scratch);
    return sum > 0; /* false for HV_UNKNOWN too */
}

static size_t most_of(const double *list, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        best = list[i] > list[best] ? i : best;
    }
    return best;
}

/** Bytes of a name from which on experts are only counted. */
#define NAMED 12

/** "rank 1: e2 +2": the experts of a rank, as many as fit into a name. */
static const char *rank_name(const struct hv_moe_knobs *m, const struct hv_expert_layer *at,
                             size_t rank, struct hv_arena *arena)
{
    struct hv_arena scratch = {0};
    struct hv_str text = {0};
    bool *on = hv_arena_new(&scratch, bool, (size_t)at->ep);
    hv_str_addf(&text, "rank %zu:", rank);
    int more = 0;
    for (int e = 0; e < at->experts; e++) {
        (void)hv_expert_places(m, at->experts, at->ep, e, on);
        if (on[rank] && text.n < NAMED) {
            hv_str_addf(&text, " e%d", e);
        } else if (on[rank]) {
            more++;
        }
    }
    if (more > 0) {
        hv_str_addf(&text, " +%d", more);
    }
    const char *name = hv_arena_strdup(arena, hv_str_cstr(&text));
    hv_str_free(&text);
    hv_arena_free(&scratch);
    return name;
}

/** Takes one iteration: loads of the ranks against their mean, padding, and the hottest expert. */
static enum hv_status take(struct hv_cost *k, const struct hv_plan *p, size_t t,
                           struct hv_expert_loads *out, struct hv_err *err)
{
    struct hv_arena scratch = {0};
    struct hv_why why = {.arena = &scratch};
    double *row = &out->loads[t * out->ranks], sum = 0;
    enum hv_status st = price(k, p, &out->at, t, &why, err);
    const struct hv_why_rows *rows = st == HV_OK ? rows_of(&why) : NULL;
    double *times = hv_arena_new(&scratch, double, (size_t)out->at.experts);
    if (st == HV_OK && (rows == NULL || rows->ranks != out->ranks)) {
        st = hv_err_set(err, HV_ENO, "the ranks of this layer have no loads of their own");
    } else if (st == HV_OK && !use_of(k, p, &out->at, t, times)) {
        st = hv_err_set(err, HV_ENO, "the job's routing is of another model");
    }
    for (size_t r = 0; st == HV_OK && r < out->ranks; r++) {
        sum += rows->rank_rows[r];
    }
    if (st == HV_OK && sum > 0) {
        for (size_t r = 0; r < out->ranks; r++) {
            row[r] = rows->rank_rows[r] * (double)out->ranks / sum;
        }
        out->busiest[t] = row[most_of(row, out->ranks)];
        out->hottest[t] = (uint32_t)most_of(times, (size_t)out->at.experts);
        out->times[t] = times[out->hottest[t]];
        out->padded[t] = rows->computed > 0 ? 1 - rows->tokens / rows->computed : 0;
    }
    hv_arena_free(&scratch);
    return st;
}

enum hv_status hv_eval_expert_loads(struct hv_cost *k, const struct hv_plan *p,
                                    const struct hv_routing_step *steps,
                                    const struct hv_expert_layer *at, struct hv_arena *arena,
                                    struct hv_expert_loads *out, struct hv_err *err)
{
    size_t n = iterations_of(hv_cost_job(k)->routing), ranks = (size_t)at->ep;
    const struct hv_stage *s = &p->replicas[at->replica].stages[at->stage];
    *out = (struct hv_expert_loads){.at = *at, .iterations = n, .ranks = ranks};
    out->loads = hv_arena_new(arena, double, n *ranks);
    out->busiest = hv_arena_new(arena, double, n);
    out->times = hv_arena_new(arena, double, n);
    out->padded = hv_arena_new(arena, double, n);
    out->hottest = hv_arena_new(arena, uint32_t, n);
    out->names = hv_arena_new(arena, const char *, ranks);
    for (size_t r = 0; r < ranks; r++) {
        out->names[r] = rank_name(hv_stage_moe(s, at->block), at, r, arena);
    }
    enum hv_status st = HV_OK;
    for (size_t t = 0; st == HV_OK && t < n; t++) {
        st = take(k, steps != NULL && steps[t].plan != NULL ? steps[t].plan : p, t, out, err);
    }
    return st;
}

bool hv_eval_hottest_expert(struct hv_cost *k, const struct hv_plan *p,
                            const struct hv_expert_layer *layers, size_t n,
                            struct hv_hottest_expert *out)
{
    size_t iterations = n > 0 ? iterations_of(hv_cost_job(k)->routing) : 0;
    *out = (struct hv_hottest_expert){0};
    for (size_t i = 0; i < n; i++) {
        struct hv_arena scratch = {0};
        size_t experts = (size_t)layers[i].experts;
        double *times = hv_arena_new(&scratch, double, experts);
        for (size_t t = 0; t < iterations && use_of(k, p, &layers[i], t, times); t++) {
            size_t e = most_of(times, experts);
            if (times[e] > out->times) {
                *out = (struct hv_hottest_expert){&layers[i], e, t, times[e],
                                                  times[e] / (double)experts};
            }
        }
        hv_arena_free(&scratch);
    }
    return out->at != NULL;
}

enum hv_status hv_eval_expert_waste(struct hv_cost *k, const struct hv_plan *p, size_t replica,
                                    size_t stage, size_t iteration, struct hv_expert_waste *out,
                                    struct hv_err *err)
{
    const struct hv_replica *r = &p->replicas[replica];
    const struct hv_stage *s = &r->stages[stage];
    enum hv_status st = HV_OK;
    *out = (struct hv_expert_waste){0};
    for (size_t c = 0; st == HV_OK && c < s->n_ranges; c++) {
        struct hv_arena scratch = {0};
        struct hv_why why = {.arena = &scratch};
        double times = 1;
        const struct hv_stage_query q = {.plan = p,
                                         .replica = r,
                                         .stage = stage,
                                         .chunk = c,
                                         .iteration = iteration,
                                         .copies_apart = hv_stage_copies_apart(s),
                                         .why = &why};
        struct hv_pass pass;
        st = hv_cost_pass(k, &q, &pass, err);
        for (size_t i = 0; st == HV_OK && i < why.n; i++) {
            const struct hv_why_term *t = &why.terms[i];
            times = t->to > t->from ? t->value : times;
            if (t->rows != NULL) {
                out->computed += times * t->rows->computed;
                out->padded += times * (t->rows->computed - t->rows->tokens);
            }
        }
        hv_arena_free(&scratch);
    }
    return st;
}
