/** Load of the ranks that hold experts, iteration by iteration of the job's routing, as rows of the
 * Explain screen. */
#include "solver/plan/experts.h"
#include "solver/base/units.h"
#include "solver/workload/router.h"
#include "solver/workload/routing.h"
#include "ui/screens/explain/explain_int.h"

/* Columns of a strip; where there are more iterations, a column is the largest of several: a mean
 * would hide what the others wait for. */
#define COLUMNS 60
/* Ranks that get a row. */
#define RANKS 64

/* Ids of lines and of ranks, beyond those of other headings. */
#define LINE_IDS 4000000
#define RANK_IDS 5000000

/** The first stage with experts on several ranks, and its first block with experts. */
struct subject {
    size_t replica, stage, layer; /**< layer: among those with experts */
    const struct hv_stage *s;
    const struct hv_moe_knobs *m; /**< or NULL */
    int experts, top_k, ep;
    const struct hv_router *router;
    bool *on; /**< [ep] */
};

static bool find_in_stage(const struct hv_model *m, struct subject *x)
{
    for (size_t i = 0; i < x->s->n_ranges; i++) {
        for (int b = x->s->ranges[i].from2 / 2; 2 * b < x->s->ranges[i].to2; b++) {
            x->m = hv_stage_moe(x->s, (size_t)b);
            x->ep = hv_moe_ep(x->s, x->m);
            if (m->blocks[b].experts < 1 || x->ep < 2) {
                continue;
            }
            x->experts = m->blocks[b].experts;
            x->top_k = m->blocks[b].top_k;
            for (int k = 0; k < b; k++) {
                x->layer += m->blocks[k].experts > 0;
            }
            return true;
        }
    }
    return false;
}

static bool find(const struct hv_plan *p, const struct hv_model *m, struct subject *x)
{
    for (size_t i = 0; m->blocks != NULL && i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            x->replica = i;
            x->stage = k;
            x->s = &p->replicas[i].stages[k];
            if (find_in_stage(m, x)) {
                return true;
            }
        }
    }
    return false;
}

/** Which ranks hold which expert, as hv_route takes it. */
static struct hv_expert_placement places_of(const struct subject *x, struct hv_arena *arena)
{
    size_t n = (size_t)x->experts, ep = (size_t)x->ep, at = 0;
    size_t *holder_at = hv_arena_new(arena, size_t, n + 1);
    uint32_t *holders = hv_arena_new(arena, uint32_t, n * ep);
    for (size_t e = 0; e < n; e++) {
        holder_at[e] = at;
        (void)hv_expert_places(x->m, x->experts, x->ep, (int)e, x->on);
        for (size_t r = 0; r < ep; r++) {
            if (x->on[r]) {
                holders[at++] = (uint32_t)r;
            }
        }
    }
    holder_at[n] = at;
    return (struct hv_expert_placement){
        .ranks = ep,
        .holder_at = holder_at,
        .holders = holders,
        .capacity_factor = x->m != NULL && x->m->capacity_factor > 0 ? x->m->capacity_factor : 0};
}

/** Takes the loads of one iteration, [ranks] against their mean, into the figures. */
static void take(struct hv_explain_loads *out, size_t t, size_t iterations, const double *loads)
{
    double most = 0;
    for (size_t r = 0; r < out->ranks; r++) {
        double *column = &out->strips[r * out->columns + t / out->each];
        *column = loads[r] > *column ? loads[r] : *column;
        out->means[r] += loads[r] / (double)iterations;
        most = loads[r] > most ? loads[r] : most;
    }
    out->mean += most / (double)iterations;
    out->most = most > out->most ? most : out->most;
}

/** One iteration: the loads of the ranks, and the hottest expert. */
static enum hv_status route(const struct subject *x, const struct hv_expert_placement *places,
                            size_t t, struct hv_explain_loads *out, struct hv_arena *arena)
{
    size_t ep = out->ranks, n = (size_t)x->experts, of = (size_t)(x->s->dp * x->s->cp.degree);
    of = of > ep ? of : ep;
    const struct hv_router_at at = {t, x->layer, n, x->top_k, 0, ep, of};
    double *tokens = hv_arena_new(arena, double, ep *n), sum = 0;
    hv_router_tokens(x->router, &at, tokens);
    const struct hv_routing routing = {ep, n, tokens};
    struct hv_routed routed = {0};
    enum hv_status st = hv_route(arena, &routing, places, &routed, NULL);
    for (size_t r = 0; st == HV_OK && r < ep; r++) {
        sum += routed.loads[r];
    }
    if (st != HV_OK || !(sum > 0)) { /* a trace of another model: the verdict names it */
        return HV_EINPUT;
    }
    for (size_t r = 0; r < ep; r++) {
        routed.loads[r] *= (double)ep / sum;
    }
    take(out, t, x->router->iterations > 0 ? x->router->iterations : 1, routed.loads);
    for (size_t e = 0; e < n; e++) {
        if (routed.experts[e] / sum > out->hottest_frac) {
            out->hottest_frac = routed.experts[e] / sum;
            out->hottest = e;
            out->hottest_at = t;
        }
    }
    return HV_OK;
}

/** "e2 e3": the experts of a rank, as many as fit into a name. */
static const char *rank_name(const struct subject *x, size_t rank, struct hv_arena *arena)
{
    struct hv_str text = {0};
    hv_str_addf(&text, "rank %zu:", rank);
    for (int e = 0; e < x->experts && text.n < 16; e++) {
        (void)hv_expert_places(x->m, x->experts, x->ep, e, x->on);
        if (x->on[rank]) {
            hv_str_addf(&text, " e%d", e);
        }
    }
    const char *name = hv_arena_strdup(arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return name;
}

/** Works the loads out, once for a plan. */
static void work_out(struct hv_explain_data *d, struct hv_session *s)
{
    const struct hv_router *router = hv_session_job(s)->job.routing;
    struct hv_explain_loads *l = &d->loads;
    struct hv_arena arena = l->arena;
    struct subject x = {.router = router};
    hv_arena_free(&arena);
    *l = (struct hv_explain_loads){.done = true, .arena = arena};
    if (hv_router_is_even(router) || !find(d->facts.plan, hv_session_model(s)->model, &x)) {
        return;
    }
    size_t iterations = router->iterations > 0 ? router->iterations : 1;
    l->ranks = (size_t)x.ep;
    l->replica = x.replica;
    l->stage = x.stage;
    l->adapts = x.m != NULL && x.m->adapt.policy != HV_ADAPT_NONE;
    l->each = (iterations + COLUMNS - 1) / COLUMNS;
    l->columns = (iterations + l->each - 1) / l->each;
    l->strips = hv_arena_new(&l->arena, double, l->ranks * l->columns);
    l->means = hv_arena_new(&l->arena, double, l->ranks);
    l->names = hv_arena_new(&l->arena, const char *, l->ranks);
    x.on = hv_arena_new(&l->arena, bool, l->ranks);
    const struct hv_expert_placement places = places_of(&x, &l->arena);
    for (size_t r = 0; r < l->ranks; r++) {
        l->names[r] = rank_name(&x, r, &l->arena);
    }
    l->ok = true;
    for (size_t t = 0; t < iterations && l->ok; t++) {
        struct hv_arena scratch = {0};
        l->ok = route(&x, &places, t, l, &scratch) == HV_OK;
        hv_arena_free(&scratch);
    }
}

/** A rank: its mean load, and the strip of the iterations. */
static void add_rank(struct hv_explain_data *d, size_t rank)
{
    const struct hv_explain_loads *l = &d->loads;
    struct hv_explain_row *r = hv_explain_add(d, HV_ID_EXPERTS + RANK_IDS + rank, 1, "");
    r->name = l->names[rank];
    r->value = hv_arena_printf(&d->arena, "%.2fx", l->means[rank]);
    r->strip = &l->strips[rank * l->columns];
    r->n_strip = l->columns;
    r->detail = hv_arena_printf(
        &d->arena,
        "Tokens of this rank against the mean of the ranks, %zu iteration%s a column%s: half a "
        "cell is the mean, a full one twice the mean or more.",
        l->each, l->each == 1 ? "" : "s", l->each == 1 ? "" : ", the largest of them");
    r->evidence = hv_explain_on_lane(l->replica, l->stage, 0);
}

void hv_explain_experts(struct hv_explain_data *d, struct hv_session *s)
{
    const struct hv_explain_loads *l = &d->loads;
    if (!l->done) {
        work_out(d, s);
    }
    if (!l->ok ||
        !hv_explain_heading(d, HV_ID_EXPERTS, 0,
                            hv_arena_printf(&d->arena,
                                            "Experts: the busiest rank has %.2fx the mean load, "
                                            "at most %.2fx",
                                            l->mean, l->most))) {
        return;
    }
    hv_explain_add(d, HV_ID_EXPERTS + LINE_IDS, 1,
                   hv_arena_printf(&d->arena,
                                   "hottest: expert e%zu with %.0f%% of the tokens in iteration "
                                   "%zu; first layer of %s with experts%s",
                                   l->hottest, l->hottest_frac * 100, l->hottest_at,
                                   hv_explain_stage_name(d, l->replica, l->stage),
                                   l->adapts ? "; as placed before moe.adapt moves any" : ""));
    for (size_t r = 0; r < l->ranks && r < RANKS; r++) {
        add_rank(d, r);
    }
    if (l->ranks > RANKS) {
        hv_explain_add(d, HV_ID_EXPERTS + LINE_IDS + 1, 1,
                       hv_arena_printf(&d->arena, "and %zu more ranks", l->ranks - RANKS));
    }
}
