/** Text about a heading: what its strategies decide, which are fastest, what its keys do. */
#include <stdlib.h>

#include "solver/base/units.h"
#include "ui/screens/strategies/pen.h"
#include "ui/screens/strategies/strategies_int.h"

/* Strategies named as the fastest. */
#define FASTEST 3

/** The fastest plans of the kind that break no rule, exact ones first, a line each. */
static void put_fastest(struct hv_pen *p, const struct hv_strategies_data *d, const size_t *at,
                        size_t n)
{
    struct hv_str line = {0};
    size_t last = HV_NO_STRATEGY;
    for (int rank = 0; rank < FASTEST; rank++) {
        size_t best = HV_NO_STRATEGY;
        for (size_t i = 0; i < n; i++) {
            const struct hv_strategy_facts *f = &d->facts[at[i]];
            bool taken = last != HV_NO_STRATEGY && !hv_strategy_is_faster(d, last, at[i]);
            bool counts = f->fits && hv_known(f->iteration_s);
            if (counts && !taken &&
                (best == HV_NO_STRATEGY || hv_strategy_is_faster(d, at[i], best))) {
                best = at[i];
            }
        }
        if (best == HV_NO_STRATEGY) {
            break;
        }
        if (rank == 0) {
            hv_pen_put(p, "fastest here", 1, HV_STYLE_HEADER);
        }
        hv_str_clear(&line);
        hv_str_addf(&line, " %-13s ", d->plugins[best].id);
        hv_strategies_add_time(d, d->facts[best].iteration_s, &line);
        hv_str_adds(&line, "  ");
        hv_strategies_add_trust(d, best, &line);
        hv_pen_put(p, hv_str_cstr(&line), 1, rank == 0 ? HV_STYLE_GOOD : HV_STYLE_TEXT);
        last = best;
    }
    hv_pen_skip(p, last != HV_NO_STRATEGY);
    hv_str_free(&line);
}

/** What does not fit, what does not apply, and which plans are equal. */
static void put_others(struct hv_pen *p, const struct hv_strategies_data *d, enum hv_kind kind,
                       const size_t *at, size_t n)
{
    const struct hv_heading_facts *h = &d->kinds[kind];
    struct hv_str text = {0};
    for (size_t i = 0; i < n && h->n_misfit > 0; i++) {
        const struct hv_strategy_facts *f = &d->facts[at[i]];
        if (f->judged && !f->fits) {
            hv_str_addf(&text, "%s%s", text.n > 0 ? ", " : "", d->plugins[at[i]].id);
        }
    }
    if (text.n > 0) {
        hv_str_addf(&text, ": %zu break%s a rule", h->n_misfit, h->n_misfit == 1 ? "s" : "");
        hv_pen_put(p, hv_str_cstr(&text), 2, HV_STYLE_WARNING);
    }
    if (h->n_not > 0) {
        hv_str_clear(&text);
        hv_str_addf(&text, "%zu do%s not apply: %s", h->n_not, h->n_not == 1 ? "es" : "",
                    h->reason);
        hv_pen_put(p, hv_str_cstr(&text), 3, HV_STYLE_TEXT);
    }
    for (size_t i = 0; i < n; i++) {
        size_t same = d->facts[at[i]].same;
        if (same != HV_NO_STRATEGY) {
            hv_str_clear(&text);
            hv_str_addf(&text, "%s gives the plan of %s", d->plugins[at[i]].id,
                        d->plugins[same].id);
            hv_pen_put(p, hv_str_cstr(&text), 1, HV_STYLE_TEXT);
        }
    }
    hv_str_free(&text);
}

/** The fastest planner or baseline beside the fastest of the kind. */
static void put_against(struct hv_pen *p, const struct hv_strategies_data *d, enum hv_kind kind)
{
    size_t mine = d->kinds[kind].best, other = d->kinds[HV_KIND_PLANNER].best;
    struct hv_str text = {0};
    if (other == HV_NO_STRATEGY) {
        other = d->kinds[HV_KIND_BASELINE].best;
    }
    if (mine == HV_NO_STRATEGY || other == HV_NO_STRATEGY) {
        return;
    }
    double ratio = d->facts[mine].iteration_s / d->facts[other].iteration_s;
    hv_str_addf(&text, "%s ", d->plugins[other].id);
    hv_strategies_add_time(d, d->facts[other].iteration_s, &text);
    hv_str_addf(&text, ": %s takes %.2f times as long", d->plugins[mine].id, ratio);
    hv_pen_put(p, hv_str_cstr(&text), 2, HV_STYLE_TEXT);
    hv_str_free(&text);
}

static void put_keys(struct hv_pen *p, const struct hv_strategies *st, enum hv_kind kind, size_t n)
{
    struct hv_str text = {0};
    hv_pen_skip(p, p->r.h > 6);
    if (kind < HV_KIND_N) {
        hv_str_addf(&text, "Enter runs %s%zu, Space queues %s, ", n == 1 ? "" : "all ", n,
                    n == 1 ? "it" : "them");
    }
    hv_str_addf(&text, "%s",
                hv_strategies_is_open(st, kind) ? "h closes the heading" : "l opens the heading");
    hv_pen_put(p, hv_str_cstr(&text), 3, HV_STYLE_DIM);
    hv_str_free(&text);
}

void hv_strategy_kind_draw(const struct hv_strategies *st, const struct hv_strategies_data *d,
                           enum hv_kind kind, struct hv_grid *g, struct hv_rect r)
{
    struct hv_pen p = {g, r};
    struct hv_rect old = hv_grid_clip(g, r);
    size_t *at = hv_xcalloc(d->n + 1, sizeof *at), n = hv_strategies_under(st, d, kind, at);
    struct hv_str text = {0};
    hv_str_addf(&text, "%zu strateg%s: %s", n, n == 1 ? "y" : "ies", hv_strategies_about(kind));
    hv_pen_put(&p, hv_str_cstr(&text), 3, HV_STYLE_TITLE);
    hv_pen_skip(&p, 1);
    put_fastest(&p, d, at, n);
    put_others(&p, d, kind, at, n);
    for (size_t i = 0; i < n && kind == HV_KIND_N; i++) {
        hv_pen_put(&p, d->plugins[at[i]].error, 4, HV_STYLE_WARNING);
    }
    put_against(&p, d, kind);
    put_keys(&p, st, kind, n);
    hv_str_free(&text);
    free(at);
    hv_grid_unclip(g, old);
}
