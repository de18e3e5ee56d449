/** Binding constraints: the optimal distribution of layers with the duals of its linear program
 * (solver/eval/balance.h). The plan is evaluated with the rounded layers, and with one layer more
 * on the full stages with the largest duals. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "ui/screens/explain/explain_int.h"

/** At most this many full stages have their memory dual verified, the largest duals first. */
#define MOST_CHECKS 4

/** Iteration time (s) of the plan with these whole layers; HV_UNKNOWN where that fails, with the
 * reason in err. */
static double judge_layers(const struct hv_explain_data *d, struct hv_session *s, const int *layers,
                           struct hv_figures *out, struct hv_err *err)
{
    const struct hv_balance *b = &d->share.balance;
    double *values = hv_xcalloc(d->levers.n + 1, sizeof *values);
    for (size_t i = 0; i < d->levers.n; i++) {
        values[i] = d->levers.items[i].base;
    }
    enum hv_status st = hv_levers_set_layers(&d->levers, b, layers, values, err);
    if (st == HV_OK) {
        st = hv_levers_try(s, &d->levers, values, false, out, err);
    }
    free(values);
    return st == HV_OK ? out->iteration_s : HV_UNKNOWN;
}

/** The full stage with the largest dual that is not verified yet, or n. */
static size_t next_full(const struct hv_explain_share *x)
{
    const struct hv_balance *b = &x->balance;
    size_t best = b->n;
    for (size_t i = 0; i < b->n; i++) {
        double price = b->stages[i].memory_price_s_per_byte;
        if (price > 0 && !hv_known(x->checked_s[i]) && !x->tried[i] &&
            (best == b->n || price > b->stages[best].memory_price_s_per_byte)) {
            best = i;
        }
    }
    return best;
}

void hv_explain_share_try(struct hv_explain_data *d, struct hv_session *s)
{
    struct hv_explain_share *x = &d->share;
    const struct hv_verdict *v = d->facts.verdict;
    struct hv_figures f;
    hv_arena_free(&x->arena);
    *x = (struct hv_explain_share){.done = true, .whole_s = HV_UNKNOWN};
    if (v == NULL || d->facts.plan == NULL || d->facts.plan->n_replicas == 0 ||
        hv_eval_balance(v, d->facts.plan, hv_eval_slowest_entry(v), &x->arena, &x->balance,
                        &x->err) != HV_OK) {
        return;
    }
    struct hv_balance *b = &x->balance;
    x->ok = true;
    x->whole = hv_arena_new(&x->arena, int, b->n);
    x->checked_s = hv_arena_new(&x->arena, double, b->n);
    x->tried = hv_arena_new(&x->arena, bool, b->n);
    for (size_t i = 0; i < b->n; i++) {
        x->checked_s[i] = HV_UNKNOWN;
    }
    if (!hv_balance_whole(b, SIZE_MAX, x->whole)) {
        (void)hv_err_set(&x->err, HV_ENO,
                         "whole layers do not fit into memory in any distribution");
        return;
    }
    x->whole_s = judge_layers(d, s, x->whole, &f, &x->err);
    int *more = hv_arena_new(&x->arena, int, b->n);
    for (int n = 0; n < MOST_CHECKS && hv_known(x->whole_s); n++) {
        size_t i = next_full(x);
        if (i == b->n) {
            break;
        }
        x->tried[i] = true;
        if (hv_balance_whole(b, i, more)) {
            x->checked_s[i] = judge_layers(d, s, more, &f, &x->err) - x->whole_s;
        }
    }
}

/* ---- rows ---- */

static struct hv_evidence on_stage(const struct hv_explain_data *d, size_t stage)
{
    return (struct hv_evidence){
        .kind = HV_EVIDENCE_GANTT, .replica = d->share.balance.replica, .stage = stage};
}

static void add_numbers(const struct hv_balance *b, const int *whole, struct hv_str *out)
{
    for (size_t i = 0; i < b->n; i++) {
        hv_str_adds(out, i > 0 ? "|" : "");
        if (whole != NULL) {
            hv_str_addf(out, "%d", whole[i]);
        } else {
            hv_str_addf(out, "%.1f", b->stages[i].best_layers);
        }
    }
}

/** The border between two stages that whole layers move furthest. */
static struct hv_evidence largest_move(const struct hv_explain_data *d)
{
    const struct hv_balance *b = &d->share.balance;
    struct hv_evidence e = {.kind = HV_EVIDENCE_MODEL};
    double most = 0;
    int first = 0;
    for (size_t j = 1; j < b->n; j++) {
        first += d->share.whole[j - 1];
        const struct hv_lever *l = hv_levers_find(&d->levers, HV_LEVER_LAYERS, b->replica, j);
        if (l != NULL && fabs(first - l->base) > most) {
            most = fabs(first - l->base);
            e = (struct hv_evidence){
                .kind = HV_EVIDENCE_LEVER, .lever = (size_t)(l - d->levers.items), .value = first};
        }
    }
    return e;
}

/** The optimum, and the simulated step time of its rounding to whole layers. */
static void add_optimum(struct hv_explain_data *d)
{
    const struct hv_explain_share *x = &d->share;
    const struct hv_balance *b = &x->balance;
    char t[HV_FMT_CAP], u[HV_FMT_CAP];
    struct hv_str text = {0};
    if (!hv_known(b->best_pace_s)) {
        hv_str_adds(&text, "the layers do not fit into memory in any distribution");
    } else {
        hv_str_addf(&text, "best distribution ");
        add_numbers(b, NULL, &text);
        hv_str_addf(&text, ": %s per micro-batch instead of %s (%+.1f%%)",
                    hv_fmt_seconds(t, sizeof t, b->best_pace_s),
                    hv_fmt_seconds(u, sizeof u, b->pace_s), (b->best_pace_s / b->pace_s - 1) * 100);
    }
    struct hv_explain_row *r =
        hv_explain_add(d, HV_ID_SHARE + 1, 1, hv_arena_strdup(&d->arena, hv_str_cstr(&text)));
    r->detail = "Layers may be split here. Time and memory per layer are those of each stage now.";
    hv_str_clear(&text);
    if (hv_known(x->whole_s)) {
        double change = x->whole_s / d->base.iteration_s - 1;
        hv_str_adds(&text, "whole layers ");
        add_numbers(b, x->whole, &text);
        hv_str_addf(&text, ", simulated: iteration %s -> %s (%+.1f%%)",
                    hv_fmt_seconds(t, sizeof t, d->base.iteration_s),
                    hv_fmt_seconds(u, sizeof u, x->whole_s), change * 100);
        r = hv_explain_add(d, HV_ID_SHARE + 2, 1, hv_arena_strdup(&d->arena, hv_str_cstr(&text)));
        r->style = change < -0.0005 ? HV_STYLE_GOOD : HV_STYLE_TEXT;
        r->detail = "The levers `layers` of What-if apply this; Enter moves the one with the "
                    "largest change. There `s` runs the strategy of the plan again.";
        r->evidence = largest_move(d);
    } else if (hv_known(b->best_pace_s)) {
        hv_explain_add(d, HV_ID_SHARE + 2, 1,
                       hv_arena_printf(&d->arena, "not simulated: %s", x->err.text))
            ->style = HV_STYLE_DIM;
    }
    hv_str_free(&text);
}

static void add_time(struct hv_explain_data *d, size_t i)
{
    char t[HV_FMT_CAP], u[HV_FMT_CAP];
    const struct hv_balance *b = &d->share.balance;
    const struct hv_balance_stage *s = &b->stages[i];
    double own = s->layers * s->layer_s;
    struct hv_explain_row *r = hv_explain_add(
        d, HV_ID_SHARE + 10 + 2 * i, 1,
        hv_arena_printf(&d->arena, "%s of %s per micro-batch; %.3g layers, best %.3g",
                        hv_fmt_seconds(t, sizeof t, own), hv_fmt_seconds(u, sizeof u, b->pace_s),
                        s->layers, s->best_layers));
    r->name = hv_arena_printf(&d->arena, "time s%zu", i);
    r->value = hv_known(s->time_price) ? hv_arena_printf(&d->arena, "%.2f", s->time_price) : "-";
    r->frac = own / b->pace_s;
    r->detail =
        hv_arena_printf(&d->arena,
                        "Dual value: if stage %zu were 1 %% faster, the time per micro-batch of "
                        "the best distribution would drop by %.2f %%. The values of all stages sum "
                        "to 1; 0 means that memory limits this stage.",
                        i, s->time_price);
    r->evidence = on_stage(d, i);
}

static void add_memory(struct hv_explain_data *d, size_t i)
{
    char t[HV_FMT_CAP], u[HV_FMT_CAP];
    const struct hv_explain_share *x = &d->share;
    const struct hv_balance *b = &x->balance;
    const struct hv_balance_stage *s = &b->stages[i];
    double price = s->memory_price_s_per_byte * b->micro_batches, used = s->fixed_bytes;
    used += s->layers * s->layer_bytes;
    struct hv_explain_row *r = hv_explain_add(
        d, HV_ID_SHARE + 11 + 2 * i, 1,
        hv_arena_printf(&d->arena, "%s%s of %s; one more layer takes %s",
                        price > 0 ? "s/GiB; " : "", hv_fmt_bytes(t, sizeof t, used),
                        hv_fmt_bytes(u, sizeof u, s->limit_bytes),
                        hv_fmt_bytes((char[HV_FMT_CAP]){0}, HV_FMT_CAP, s->layer_bytes)));
    r->name = hv_arena_printf(&d->arena, "memory s%zu", i);
    r->value = price > 0         ? hv_arena_printf(&d->arena, "%.3g", price * HV_GIB)
               : hv_known(price) ? "0"
                                 : "-";
    r->frac = used / s->limit_bytes;
    r->style = price > 0 ? HV_STYLE_WARNING : HV_STYLE_TEXT;
    r->evidence = on_stage(d, i);
    r->detail = "Dual value: reduction of the iteration time per GiB of additional memory. 0 means "
                "that this memory does not limit the best distribution.";
    if (hv_known(x->checked_s[i])) {
        r->detail = hv_arena_printf(
            &d->arena,
            "Dual value: one GiB of additional memory here saves %.3g s per iteration. Check: "
            "memory for one more layer (%s) should save %s; simulated with whole layers, the "
            "iteration time changes by %s%s.",
            price * HV_GIB, hv_fmt_bytes(t, sizeof t, s->layer_bytes),
            hv_fmt_seconds(u, sizeof u, price * s->layer_bytes), x->checked_s[i] < 0 ? "-" : "+",
            hv_fmt_seconds((char[HV_FMT_CAP]){0}, HV_FMT_CAP, fabs(x->checked_s[i])));
    }
}

/** Order of the rows: how close to its limit each is, the tightest first. */
struct tight {
    size_t stage;
    bool memory;
    double frac;
};

static int compare_tight(const void *a, const void *b)
{
    const struct tight *x = a, *y = b;
    if (x->frac != y->frac) {
        return x->frac > y->frac ? -1 : 1;
    }
    return x->stage != y->stage ? (x->stage > y->stage) - (x->stage < y->stage)
                                : x->memory - y->memory;
}

static bool is_as_planned(const struct hv_explain_share *x)
{
    for (size_t i = 0; i < x->balance.n; i++) {
        if (x->whole[i] != (int)x->balance.stages[i].layers) {
            return false;
        }
    }
    return true;
}

void hv_explain_share_rows(struct hv_explain_data *d)
{
    const struct hv_explain_share *x = &d->share;
    const struct hv_balance *b = &x->balance;
    if (!x->ok) {
        return;
    }
    const char *more = "";
    if (hv_known(x->whole_s) && is_as_planned(x)) {
        more = "; the layers have the best distribution";
    } else if (hv_known(x->whole_s)) {
        more = hv_arena_printf(&d->arena, "; %s: iteration %+.1f%%",
                               d->base.n_violations > 0 ? "layers that fit" : "other whole layers",
                               (x->whole_s / d->base.iteration_s - 1) * 100);
    }
    struct hv_explain_row *r =
        hv_explain_add(d, HV_ID_SHARE, 0,
                       hv_arena_printf(&d->arena, "What limits the plan, tightest first%s", more));
    r->folds = true;
    r->open = hv_explain_is_open(d, HV_ID_SHARE);
    r->style = HV_STYLE_TITLE;
    r->detail = "The smallest time per micro-batch over all distributions of the layers among "
                "these stages, as a linear program with the current time and memory per layer. The "
                "values are its dual values.";
    if (!r->open) {
        return;
    }
    add_optimum(d);
    struct tight *rows = hv_arena_new(&d->arena, struct tight, 2 * b->n);
    for (size_t i = 0; i < b->n; i++) {
        const struct hv_balance_stage *s = &b->stages[i];
        rows[2 * i] = (struct tight){i, false, s->layers * s->layer_s / b->pace_s};
        rows[2 * i + 1] =
            (struct tight){i, true, (s->fixed_bytes + s->layers * s->layer_bytes) / s->limit_bytes};
    }
    qsort(rows, 2 * b->n, sizeof *rows, compare_tight);
    for (size_t i = 0; i < 2 * b->n; i++) {
        (rows[i].memory ? add_memory : add_time)(d, rows[i].stage);
    }
}
