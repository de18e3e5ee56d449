/** Experts of a plan over the iterations of the job's routing, as rows of the Explain screen: load
 * of the ranks, the hottest expert, moves between iterations. */
#include "solver/base/units.h"
#include "solver/eval/experts/loads.h"
#include "ui/screens/explain/explain_int.h"

/* Columns of a strip; where there are more iterations, a column is the largest of several: a mean
 * would hide what the others wait for. */
#define COLUMNS 60
/* Ranks that get a row. */
#define RANKS 64

/* Ids of lines and of ranks, beyond those of other headings. */
#define LINE_IDS 4000000
#define RANK_IDS 5000000

/** Sums up the loads of one iteration. */
static void take(struct hv_explain_loads *out, size_t t)
{
    const struct hv_expert_loads *l = &out->of;
    for (size_t r = 0; r < l->ranks; r++) {
        double load = l->loads[t * l->ranks + r];
        double *column = &out->strips[r * out->columns + t / out->each];
        *column = load > *column ? load : *column;
        out->means[r] += load / (double)l->iterations;
    }
    out->mean += l->busiest[t] / (double)l->iterations;
    out->most = l->busiest[t] > out->most ? l->busiest[t] : out->most;
}

/** The stage whose experts compute most rows without a token, in the first iteration. */
static void find_waste(struct hv_explain_data *d, struct hv_session *s)
{
    struct hv_explain_loads *l = &d->loads;
    const struct hv_plan *p = d->facts.plan;
    const struct hv_model *m = hv_session_model(s)->model;
    struct hv_expert_waste w;
    size_t block = 0;
    while (block < m->n_blocks && !hv_model_has_experts(m, block)) {
        block++;
    }
    bool any = block < m->n_blocks && p->mode == HV_MODE_TRAIN;
    for (size_t i = 0; any && i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            if (hv_eval_expert_waste(hv_session_cost(s), p, i, k, 0, &w, NULL) == HV_OK &&
                w.padded > l->waste.padded) {
                l->waste = w;
                l->waste_replica = i;
                l->waste_stage = k;
            }
        }
    }
}

/** Works the loads out, once for a plan: of the layer that has the hottest expert. */
static void work_out(struct hv_explain_data *d, struct hv_session *s)
{
    struct hv_explain_loads *l = &d->loads;
    struct hv_arena arena = l->arena;
    struct hv_cost *k = hv_session_cost(s);
    struct hv_expert_layer *layers;
    hv_arena_free(&arena);
    *l = (struct hv_explain_loads){.done = true, .arena = arena};
    find_waste(d, s);
    size_t n = hv_eval_expert_layers(k, d->facts.plan, &l->arena, &layers);
    if (!hv_eval_hottest_expert(k, d->facts.plan, layers, n, &l->hot) ||
        hv_eval_expert_loads(k, d->facts.plan, d->facts.verdict->routing.steps, l->hot.at,
                             &l->arena, &l->of, NULL) != HV_OK) {
        return;
    }
    l->ok = true;
    l->each = (l->of.iterations + COLUMNS - 1) / COLUMNS;
    l->columns = (l->of.iterations + l->each - 1) / l->each;
    l->strips = hv_arena_new(&l->arena, double, l->of.ranks * l->columns);
    l->means = hv_arena_new(&l->arena, double, l->of.ranks);
    for (size_t t = 0; t < l->of.iterations; t++) {
        take(l, t);
    }
}

/** A rank: its mean load, and the strip of the iterations. */
static void add_rank(struct hv_explain_data *d, size_t rank)
{
    const struct hv_explain_loads *l = &d->loads;
    struct hv_explain_row *r = hv_explain_add(d, HV_ID_EXPERTS + RANK_IDS + rank, 1, "");
    r->name = l->of.names[rank];
    r->value = hv_arena_printf(&d->arena, "%.2fx", l->means[rank]);
    r->strip = &l->strips[rank * l->columns];
    r->n_strip = l->columns;
    r->detail = hv_arena_printf(
        &d->arena,
        "Rows that this rank computes against the mean of the ranks, %zu iteration%s a column%s: "
        "half a cell is the mean, a full one twice the mean or more.",
        l->each, l->each == 1 ? "" : "s", l->each == 1 ? "" : ", the largest of them");
    r->evidence = hv_explain_on_lane(l->of.at.replica, l->of.at.stage, 0);
}

/** Which expert is used most, where, and how much. */
static void add_hottest(struct hv_explain_data *d)
{
    const struct hv_hottest_expert *h = &d->loads.hot;
    struct hv_explain_row *r = hv_explain_add(
        d, HV_ID_EXPERTS + LINE_IDS, 1,
        hv_arena_printf(&d->arena,
                        "hottest: e%zu of layer %zu (%s), %.2fx the mean: %.0f%% of the "
                        "tokens in iteration %zu",
                        h->expert, h->at->block,
                        hv_explain_stage_name(d, h->at->replica, h->at->stage), h->times,
                        h->frac * 100, h->iteration));
    r->detail = "Of all layers with experts and all iterations of the job's routing, against the "
                "mean of the experts of its layer. The ranks below are those of that layer.";
    r->evidence = hv_explain_on_lane(h->at->replica, h->at->stage, 0);
}

/** How many experts a policy moves between iterations, and what that takes. */
static void add_moves(struct hv_explain_data *d)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    const struct hv_routing_figures *x = &d->facts.verdict->routing;
    size_t before = 0;
    double most_s = 0;
    for (size_t t = 0; x->steps != NULL && t < x->n; t++) {
        before += x->steps[t].moves > 0;
        most_s = x->steps[t].move_s > most_s ? x->steps[t].move_s : most_s;
    }
    if (before == 0) {
        return;
    }
    hv_explain_add(d, HV_ID_EXPERTS + LINE_IDS + 2, 1,
                   hv_arena_printf(&d->arena,
                                   "moves: %zu experts placed anew before %zu of %zu iterations, "
                                   "%s, up to %s at a time",
                                   x->moves, before, x->n,
                                   hv_fmt_bytes(a, sizeof a, x->moved_bytes),
                                   hv_fmt_seconds(b, sizeof b, most_s)))
        ->evidence = hv_explain_on_lane(d->loads.of.at.replica, d->loads.of.at.stage, 0);
}

const struct hv_explain_loads *hv_explain_loads_of(struct hv_explain_data *d, struct hv_session *s)
{
    if (!d->loads.done) {
        work_out(d, s);
    }
    return &d->loads;
}

void hv_explain_experts(struct hv_explain_data *d, struct hv_session *s)
{
    const struct hv_explain_loads *l = hv_explain_loads_of(d, s);
    if (!l->ok ||
        !hv_explain_heading(d, HV_ID_EXPERTS, 0,
                            hv_arena_printf(&d->arena,
                                            "Experts: the busiest rank has %.2fx the mean load, "
                                            "at most %.2fx",
                                            l->mean, l->most))) {
        return;
    }
    add_hottest(d);
    add_moves(d);
    for (size_t r = 0; r < l->of.ranks && r < RANKS; r++) {
        add_rank(d, r);
    }
    if (l->of.ranks > RANKS) {
        hv_explain_add(d, HV_ID_EXPERTS + LINE_IDS + 1, 1,
                       hv_arena_printf(&d->arena, "and %zu more ranks", l->of.ranks - RANKS));
    }
}
