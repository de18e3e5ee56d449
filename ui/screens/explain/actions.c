/** Rows about what to do: what is free first, then what can be bought, then what would help; with
 * the step, its change, dollars per million tokens and per hour in columns. The trials are run in
 * advice.c. */
#include <math.h>
#include <stdlib.h>

#include "solver/base/units.h"
#include "ui/screens/explain/explain_int.h"

/** Whether an action needs money. */
enum cost { FREE, BUY, WOULD, COST_N };

/** One action with its figures; a figure that there is none of is HV_UNKNOWN. */
struct action {
    uint64_t id;
    enum cost cost;
    bool good;
    double gain; /**< in time per token, or of the bound */
    double step_s, usd_per_mtoken, usd_per_h;
    const char *text, *note, *detail;
    struct hv_evidence evidence;
};

/** Actions under construction. */
struct actions {
    HV_VEC(struct action) items;
};

static enum cost cost_of(enum hv_lever_kind kind)
{
    switch (kind) {
    case HV_LEVER_MICRO:
    case HV_LEVER_SCHEDULE:
    case HV_LEVER_CHUNKS:
    case HV_LEVER_RECOMPUTE:
    case HV_LEVER_ZERO:
    case HV_LEVER_TP:
    case HV_LEVER_LAYERS:
        return FREE;
    case HV_LEVER_NODES:
    case HV_LEVER_NIC:
    case HV_LEVER_NETWORK:
    case HV_LEVER_LINK:
        return BUY;
    case HV_LEVER_BATCH:
    case HV_LEVER_SEQUENCE:
    case HV_LEVER_FAILED:
    case HV_LEVER_SLOW:
    case HV_LEVER_INTRA:
    case HV_LEVER_FLOPS:
    case HV_LEVER_HBM:
    case HV_LEVER_MEMORY:
    case HV_LEVER_PRICE:
    case HV_LEVER_PREEMPTED:
    case HV_LEVER_INTERVAL:
    case HV_LEVER_RESTART:
    case HV_LEVER_N:
        break;
    }
    return WOULD;
}

/** "micro-batch 4 -> 2", "v NICs 12.5 -> 25 GB/s", "schedule zb-v". */
static const char *text_of(struct hv_explain_data *d, const struct hv_explain_try *t)
{
    const struct hv_lever *l = &d->levers.items[t->lever];
    struct hv_str text = {0};
    hv_str_addf(&text, "%s ", l->name);
    if (l->words == NULL) {
        hv_lever_text(l, l->base, &text);
        hv_str_adds(&text, " -> ");
    }
    hv_lever_text(l, t->value, &text);
    hv_str_addf(&text, "%s%s", hv_lever_unit(l)[0] != '\0' ? " " : "", hv_lever_unit(l));
    const char *kept = hv_arena_strdup(&d->arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return kept;
}

static const char *note_of(struct hv_explain_data *d, struct hv_session *s,
                           const struct hv_explain_try *t)
{
    char a[HV_FMT_CAP], b[HV_FMT_CAP];
    const struct hv_lever *l = &d->levers.items[t->lever];
    if (t->failed) {
        return hv_arena_strdup(&d->arena, t->reason);
    }
    if (l->kind == HV_LEVER_NODES) {
        const struct hv_cluster *c = hv_session_cluster(s)->cluster;
        double price = hv_node_price_usd_per_h(&c->groups[l->i], false);
        const char *money =
            hv_known(price) ? hv_arena_printf(&d->arena, "+%.2f $/h", price) : "no price known";
        return hv_arena_printf(&d->arena, "%s, new plan: bound %s -> %s", money,
                               hv_fmt_seconds(a, sizeof a, d->base.bound_s),
                               hv_fmt_seconds(b, sizeof b, t->figures.bound_s));
    }
    if (t->figures.n_violations > d->base.n_violations) {
        return hv_arena_strdup(&d->arena, t->figures.violation);
    }
    if (t->figures.exact < d->base.exact) {
        return "trains otherwise: stale or dropped";
    }
    if (l->kind == HV_LEVER_BATCH) {
        return hv_arena_printf(&d->arena, "%+.1f%% per token", -100 * hv_explain_gain(d, t));
    }
    return cost_of(l->kind) == BUY
               ? "no price known"
               : hv_arena_printf(&d->arena, "memory %s",
                                 hv_fmt_percent(a, sizeof a, t->figures.peak_frac));
}

/** The trial of the same lever in the other direction. */
static const struct hv_explain_try *opposite(const struct hv_explain_data *d, size_t i)
{
    for (size_t k = 0; k < d->n_done; k++) {
        if (k != i && d->tries.items[k].lever == d->tries.items[i].lever) {
            return &d->tries.items[k];
        }
    }
    return NULL;
}

static const char *detail_of(struct hv_explain_data *d, size_t i)
{
    const struct hv_explain_try *t = &d->tries.items[i], *o = opposite(d, i);
    const struct hv_lever *l = &d->levers.items[t->lever];
    struct hv_str other = {0};
    if (l->words != NULL || o == NULL || o->failed || l->kind == HV_LEVER_NODES) {
        return hv_arena_printf(
            &d->arena,
            "%s. The plan was simulated again with this value. Enter tries it in What-if.",
            hv_lever_help(l));
    }
    hv_lever_text(l, o->value, &other);
    const char *text =
        hv_arena_printf(&d->arena,
                        "%s. The plan was simulated again with this value; in the other direction, "
                        "at %s, the time per token changes by %+.1f%%. Enter tries it in What-if.",
                        hv_lever_help(l), hv_str_cstr(&other), -100 * hv_explain_gain(d, o));
    hv_str_free(&other);
    return text;
}

static void add_tries(struct hv_explain_data *d, struct hv_session *s, struct actions *all)
{
    for (size_t i = 0; i < d->n_done; i++) {
        const struct hv_explain_try *t = &d->tries.items[i];
        const struct hv_lever *l = &d->levers.items[t->lever];
        bool nodes = l->kind == HV_LEVER_NODES, figures = !t->failed && !nodes;
        struct action a = {
            .id = HV_ID_ADVICE + 2000000 + i,
            .cost = cost_of(l->kind),
            .good = hv_explain_is_good(d, t),
            .gain = hv_explain_gain(d, t),
            .step_s = figures ? t->figures.iteration_s : HV_UNKNOWN,
            .usd_per_mtoken = figures ? t->figures.usd_per_mtoken : HV_UNKNOWN,
            .usd_per_h = figures ? t->figures.usd_per_h : HV_UNKNOWN,
            .text = text_of(d, t),
            .note = note_of(d, s, t),
            .detail = detail_of(d, i),
            .evidence = {.kind = HV_EVIDENCE_LEVER, .lever = t->lever, .value = t->value}};
        hv_vec_push(&all->items, a);
    }
}

/** The layers shared out anew, where that is faster. */
static void add_layers(struct hv_explain_data *d, struct actions *all)
{
    const struct hv_explain_share *x = &d->share;
    struct hv_str text = {0};
    if (!x->ok || !hv_known(x->whole_s) || d->base.n_violations > 0 ||
        !(x->whole_s < d->base.iteration_s * 0.9995)) {
        return;
    }
    hv_str_adds(&text, "layers ");
    for (size_t i = 0; i < x->balance.n; i++) {
        hv_str_addf(&text, "%s%d", i > 0 ? "|" : "", x->whole[i]);
    }
    double ratio = x->whole_s / d->base.iteration_s;
    struct action a = {.id = HV_ID_LAYERS,
                       .cost = FREE,
                       .good = true,
                       .gain = 1 - ratio,
                       .step_s = x->whole_s,
                       .usd_per_mtoken = d->base.usd_per_mtoken * ratio,
                       .usd_per_h = d->base.usd_per_h,
                       .text = hv_arena_strdup(&d->arena, hv_str_cstr(&text)),
                       .note = "b in What-if",
                       .detail =
                           "The best whole layers of these stages by a linear program over their "
                           "present times and memory; the chapter about limits has its values."};
    hv_vec_push(&all->items, a);
    hv_str_free(&text);
}

/** The fastest plan of the table that is faster and breaks no rule. */
static void add_better(struct hv_explain_data *d, struct hv_session *s, struct actions *all)
{
    size_t n = 0;
    const struct hv_row *const *rows = hv_session_rows(s, &n);
    const struct hv_row *best = NULL;
    struct hv_figures of = {0};
    for (size_t i = 0; i < n; i++) {
        const struct hv_verdict *v = rows[i]->id != d->row && rows[i]->plan != NULL
                                         ? hv_session_verdict(s, rows[i]->id, false, NULL)
                                         : NULL;
        double now_s = v != NULL && v->findings.n == 0 ? v->metrics.iteration_s : HV_UNKNOWN;
        if (now_s < (best != NULL ? of.iteration_s : d->base.iteration_s * 0.9995) &&
            v->metrics.exact >= d->base.exact) {
            best = rows[i];
            of = hv_figures_of(v);
        }
    }
    if (best == NULL) {
        return;
    }
    struct action a = {
        .id = HV_ID_BETTER,
        .cost = FREE,
        .good = true,
        .gain = 1 - of.iteration_s / d->base.iteration_s,
        .step_s = of.iteration_s,
        .usd_per_mtoken = of.usd_per_mtoken,
        .usd_per_h = of.usd_per_h,
        .text = hv_arena_printf(&d->arena, "take plan %s", best->name),
        .note = "in the table",
        .detail = "The fastest plan of the table that breaks no rule; < and > show it here."};
    hv_vec_push(&all->items, a);
}

/* ---- order and columns ---- */

static double key_of(const struct action *a, enum hv_explain_cell by)
{
    return by == HV_EXPLAIN_STEP   ? a->step_s
           : by == HV_EXPLAIN_MTOK ? a->usd_per_mtoken
           : by == HV_EXPLAIN_HOUR ? a->usd_per_h
                                   : -a->gain;
}

/** Improvements first, then by the column, then by gain. */
static bool is_before(const struct action *a, const struct action *b, enum hv_explain_cell by)
{
    int order = hv_compare_numbers(key_of(a, by), key_of(b, by));
    if (a->good != b->good) {
        return a->good;
    }
    return order != 0 ? order < 0 : a->gain > b->gain;
}

static void sort_actions(struct actions *all, enum hv_explain_cell by)
{
    for (size_t i = 1; i < all->items.n; i++) {
        struct action x = all->items.items[i];
        size_t k = i;
        for (; k > 0 && is_before(&x, &all->items.items[k - 1], by); k--) {
            all->items.items[k] = all->items.items[k - 1];
        }
        all->items.items[k] = x;
    }
}

static const char *money(struct hv_explain_data *d, double x, int decimals)
{
    char buf[HV_FMT_CAP];
    return hv_known(x) ? hv_arena_strdup(&d->arena, hv_fmt_fixed(buf, sizeof buf, x, decimals))
                       : "-";
}

static void add_row(struct hv_explain_data *d, const struct action *a, int depth)
{
    char buf[HV_FMT_CAP];
    struct hv_explain_row *r = hv_explain_add(d, a->id, depth, a->text);
    double change = (a->step_s / d->base.iteration_s - 1) * 100;
    r->cells[HV_EXPLAIN_STEP] =
        hv_known(a->step_s) ? hv_arena_strdup(&d->arena, hv_fmt_seconds(buf, sizeof buf, a->step_s))
                            : "-";
    r->cells[HV_EXPLAIN_CHANGE] = !hv_known(change) ? "-"
                                  : fabs(change) < 0.05
                                      ? "="
                                      : hv_arena_printf(&d->arena, "%+.1f%%", change);
    r->cells[HV_EXPLAIN_MTOK] = money(d, a->usd_per_mtoken, 3);
    r->cells[HV_EXPLAIN_HOUR] = money(d, a->usd_per_h, 2);
    r->note = a->note;
    r->detail = a->detail;
    r->evidence = a->evidence;
    r->style = a->good ? HV_STYLE_GOOD : HV_STYLE_DIM;
}

static void add_heads(struct hv_explain_data *d, uint64_t id)
{
    static const char *const names[HV_EXPLAIN_CELL_N] = {"STEP", "CHANGE", "$/MTOK", "$/H"};
    struct hv_explain_row *r = hv_explain_add(d, id, 1, "ACTION");
    for (int i = 0; i < HV_EXPLAIN_CELL_N; i++) {
        r->cells[i] = names[i];
    }
    r->note = "NOTE";
    r->style = HV_STYLE_HEADER;
    r->detail =
        hv_arena_printf(&d->arena,
                        "Sorted by %s; s sorts by the next column. STEP and CHANGE are "
                        "of the iteration, $/MTOK per million tokens, $/H of the plan's nodes.",
                        names[d->sort]);
}

/** A chapter with the improvements of one sort. */
static void add_chapter(struct hv_explain_data *d, const struct actions *all, enum cost cost,
                        uint64_t id, const char *title)
{
    size_t n = 0;
    for (size_t i = 0; i < all->items.n; i++) {
        n += all->items.items[i].good && all->items.items[i].cost == cost;
    }
    if ((n == 0 && cost != FREE) || !hv_explain_heading(d, id, 0, title)) {
        return;
    }
    if (n == 0) {
        hv_explain_add(d, id + 3000000, 1,
                       d->n_done < d->tries.n ? "nothing so far" : "nothing that helps")
            ->style = HV_STYLE_DIM;
        return;
    }
    add_heads(d, HV_ID_COLUMNS + 3000000 + id);
    for (size_t i = 0; i < all->items.n; i++) {
        if (all->items.items[i].good && all->items.items[i].cost == cost) {
            add_row(d, &all->items.items[i], 1);
        }
    }
}

static void add_others(struct hv_explain_data *d, const struct actions *all)
{
    size_t n = 0;
    for (size_t i = 0; i < all->items.n; i++) {
        n += !all->items.items[i].good;
    }
    if (n == 0 ||
        !hv_explain_heading(d, HV_ID_OTHERS, 0,
                            hv_arena_printf(&d->arena, "No gain, or breaks a rule: %zu", n))) {
        return;
    }
    for (size_t i = 0; i < all->items.n; i++) {
        if (!all->items.items[i].good) {
            add_row(d, &all->items.items[i], 1);
        }
    }
}

void hv_explain_actions(struct hv_explain_data *d, struct hv_session *s)
{
    struct actions all = {0};
    const char *tried = d->n_done < d->tries.n
                            ? hv_arena_printf(&d->arena, "%zu of %zu tried", d->n_done, d->tries.n)
                            : hv_arena_printf(&d->arena, "all %zu tried", d->tries.n);
    add_better(d, s, &all);
    add_layers(d, &all);
    add_tries(d, s, &all);
    sort_actions(&all, d->sort);
    add_chapter(d, &all, FREE, HV_ID_ADVICE,
                hv_arena_printf(&d->arena, "Free: no new hardware (%s)", tried));
    add_chapter(d, &all, BUY, HV_ID_BUY, "To buy or rent");
    add_chapter(d, &all, WOULD, HV_ID_WOULD, "Would help: other tasks, hardware 10% better");
    add_others(d, &all);
    hv_vec_free(&all.items);
}
