/** Sliders of a plan: their values, the resulting verdict, and the curve over one of them. */
#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/sim/schedule/schedule.h"
#include "ui/screens/what_if/what_if_int.h"

static void slider_cell(const void *ctx, size_t row, size_t column, struct hv_str *out)
{
    const struct hv_what_if_data *d = ctx;
    (void)column;
    hv_str_adds(out, d->levers.items[row].name);
}

static uint64_t slider_id(const void *ctx, size_t row)
{
    const struct hv_what_if_data *d = ctx;
    const struct hv_lever *l = &d->levers.items[row];
    return ((uint64_t)l->kind << 48) | ((uint64_t)l->i << 24) | l->j;
}

struct hv_table_source hv_what_if_source(const struct hv_what_if_data *d)
{
    return (struct hv_table_source){
        .ctx = d, .n_rows = d->levers.n, .cell = slider_cell, .id = slider_id};
}

static bool is_current(const struct hv_what_if_data *d, const struct hv_session *s,
                       const struct hv_row *row)
{
    for (int i = 0; i < HV_DOC_STRATEGIES; i++) {
        if (d->generation[i] != hv_session_generation(s, (enum hv_doc)i)) {
            return false;
        }
    }
    return row != NULL && d->row == row->id && d->plan == row->plan;
}

void hv_what_if_reset(struct hv_what_if_data *d)
{
    for (size_t i = 0; i < d->levers.n; i++) {
        d->values[i] = d->levers.items[i].base;
    }
}

/** Restores earlier changes of levers that still exist and whose range includes the value. */
static void turn_again(struct hv_what_if_data *d, const struct hv_levers *old, const double *values)
{
    for (size_t k = 0; k < old->n; k++) {
        const struct hv_lever *was = &old->items[k];
        if (hv_lever_is_base(was, values[k])) {
            continue;
        }
        const struct hv_lever *l = hv_levers_find(&d->levers, was->kind, was->i, was->j);
        bool same = l != NULL && strcmp(l->name, was->name) == 0 &&
                    (l->words == NULL || l->n_values == was->n_values) &&
                    values[k] >= l->values[0] && values[k] <= l->values[l->n_values - 1];
        if (same) {
            d->values[l - d->levers.items] = values[k];
        }
    }
}

static void make_levers(struct hv_what_if_data *d, struct hv_session *s, const struct hv_row *row,
                        const struct hv_levers *old, const double *old_values)
{
    d->base = d->now = hv_figures_of(d->facts.verdict);
    if (hv_levers_read(s, row->id, &d->levers, &d->err) == HV_OK) {
        d->values = hv_xcalloc(d->levers.n + 1, sizeof *d->values);
        hv_what_if_reset(d);
        if (old->n > 0 && old->row == row->id) {
            turn_again(d, old, old_values);
        }
    }
    hv_what_if_curve_start(d, d->curve_lever < d->levers.n ? d->curve_lever : 0);
    if (hv_what_if_turned(d) > 0) {
        hv_what_if_judge(d, s);
    }
}

/** Rebuilds the data for a row; changed levers are kept for the same row (a run that finds a better
 * plan must not reset them). */
static void start(struct hv_what_if_data *d, struct hv_session *s, const struct hv_row *row)
{
    struct hv_levers old = d->levers;
    double *old_values = d->values;
    d->levers = (struct hv_levers){0};
    d->values = NULL;
    d->row = row != NULL ? row->id : 0;
    d->plan = row != NULL ? row->plan : NULL;
    d->err = d->why = (struct hv_err){0};
    d->failed = false;
    d->share.due = d->share.done = false;
    d->curve.n = d->n_curve_done = 0;
    for (int i = 0; i < HV_DOC_STRATEGIES; i++) {
        d->generation[i] = hv_session_generation(s, (enum hv_doc)i);
    }
    if (d->facts.verdict != NULL) {
        make_levers(d, s, row, &old, old_values);
    } else if (row != NULL && row->plan != NULL) {
        (void)hv_session_verdict(s, row->id, false, &d->err);
    }
    hv_levers_free(&old);
    free(old_values);
}

void hv_what_if_sync(struct hv_what_if_data *d, struct hv_session *s)
{
    const struct hv_row *row = hv_ui_plan_row(s);
    bool current = is_current(d, s, row);
    d->facts = (struct hv_plan_facts){.row = row};
    if (row != NULL && row->plan != NULL) {
        d->facts = hv_plan_facts(s, row);
    }
    if (!current) {
        start(d, s, row);
    }
}

void hv_what_if_take_turn(struct hv_what_if_data *d, struct hv_ui *ui)
{
    if (ui->turn.row != 0 && ui->turn.row == d->row && ui->turn.lever < d->levers.n) {
        d->values[ui->turn.lever] = ui->turn.value;
        struct hv_table_source src = hv_what_if_source(d);
        hv_table_goto(&d->table, &src, ui->turn.lever, 1);
        d->curve_lever = ui->turn.lever;
        hv_what_if_judge(d, ui->session);
    }
    ui->turn.row = 0;
}

void hv_what_if_judge(struct hv_what_if_data *d, struct hv_session *s)
{
    double start_s = hv_session_now_s(s);
    d->why = (struct hv_err){0};
    d->failed = hv_levers_try(s, &d->levers, d->values, true, &d->now, &d->why) != HV_OK;
    d->took_s = hv_session_now_s(s) - start_s;
    d->share.due = hv_what_if_turned(d) > 0 && !d->failed;
    d->share.done = d->share.failed = false;
    d->share.turned_s = start_s;
    hv_what_if_curve_start(d, d->curve_lever);
}

void hv_what_if_curve_start(struct hv_what_if_data *d, size_t lever)
{
    d->curve_lever = lever;
    d->curve.n = d->n_curve_done = 0;
}

/** Schedules that need a search are left out of the curve, because they are slow. */
static bool is_slow(const struct hv_lever *l, size_t at)
{
    const struct hv_schedule_row *row = NULL;
    return l->kind == HV_LEVER_SCHEDULE && (hv_schedule_find(l->words[at], &row, NULL) != HV_OK ||
                                            (row->flags & HV_SCHEDULE_BY_COST) != 0);
}

bool hv_what_if_curve_some(struct hv_what_if_data *d, struct hv_session *s, double budget_s)
{
    double start_s = hv_session_now_s(s);
    if (d->curve_lever >= d->levers.n) {
        return false;
    }
    const struct hv_lever *l = &d->levers.items[d->curve_lever];
    double kept = d->values[d->curve_lever];
    while (d->n_curve_done < l->n_values) {
        size_t at = d->n_curve_done++;
        struct hv_what_if_point p = {.value = l->values[at]};
        if (is_slow(l, at)) {
            continue;
        }
        d->values[d->curve_lever] = p.value;
        bool bound = hv_what_if_figure(l) == HV_FIGURE_bound_s;
        p.failed = hv_levers_try(s, &d->levers, d->values, bound, &p.figures, NULL) != HV_OK;
        hv_vec_push(&d->curve, p);
        if (hv_session_now_s(s) - start_s > budget_s) {
            break;
        }
    }
    d->values[d->curve_lever] = kept;
    return d->n_curve_done < l->n_values;
}

/* ---- layers shared out anew ---- */

/* Delay after the last key before the computation starts, so that keys are processed first. */
#define SHARE_AFTER_S 0.3

int hv_what_if_share_wait_ms(const struct hv_what_if_data *d, struct hv_session *s)
{
    double left = d->share.turned_s + SHARE_AFTER_S - hv_session_now_s(s);
    return !d->share.due ? -1 : left > 0 ? (int)(left * 1000) + 1 : 0;
}

bool hv_what_if_share_tick(struct hv_what_if_data *d, struct hv_session *s)
{
    if (hv_what_if_share_wait_ms(d, s) != 0) {
        return false;
    }
    d->share.due = false;
    d->share.done = true;
    free(d->share.values);
    d->share.values = hv_xcalloc(d->levers.n + 1, sizeof *d->share.values);
    memcpy(d->share.values, d->values, d->levers.n * sizeof *d->values);
    d->share.why = (struct hv_err){0};
    d->share.failed =
        hv_levers_share(s, &d->levers, d->share.values, &d->share.result, &d->share.why) != HV_OK;
    return true;
}

/* Gains below this share are ignored. */
#define LEAST_GAIN 0.0005

bool hv_what_if_share_helps(const struct hv_what_if_data *d)
{
    const struct hv_figures *f = &d->share.result.figures;
    return d->share.done && !d->share.failed && d->share.result.moved &&
           (f->n_violations < d->now.n_violations ||
            (f->n_violations == d->now.n_violations &&
             f->iteration_s < d->now.iteration_s * (1 - LEAST_GAIN)));
}

bool hv_what_if_share_take(struct hv_what_if_data *d, struct hv_session *s)
{
    if (!hv_what_if_share_helps(d)) {
        return false;
    }
    memcpy(d->values, d->share.values, d->levers.n * sizeof *d->values);
    hv_what_if_judge(d, s);
    return true;
}

size_t hv_what_if_turned(const struct hv_what_if_data *d)
{
    size_t n = 0;
    for (size_t i = 0; i < d->levers.n; i++) {
        n += !hv_lever_is_base(&d->levers.items[i], d->values[i]);
    }
    return n;
}

enum hv_what_if_figure hv_what_if_figure(const struct hv_lever *l)
{
    switch (l->kind) {
    case HV_LEVER_PRICE:
        return HV_FIGURE_usd_per_mtoken;
    case HV_LEVER_NODES:
        return HV_FIGURE_bound_s;
    case HV_LEVER_MEMORY:
        return HV_FIGURE_peak_frac;
    case HV_LEVER_PREEMPTED:
    case HV_LEVER_INTERVAL:
    case HV_LEVER_RESTART:
        return HV_FIGURE_expected_per_s;
    case HV_LEVER_BATCH:
    case HV_LEVER_SEQUENCE:
    case HV_LEVER_FAILED:
        return HV_FIGURE_tokens_per_s;
    case HV_LEVER_MICRO:
    case HV_LEVER_SCHEDULE:
    case HV_LEVER_CHUNKS:
    case HV_LEVER_RECOMPUTE:
    case HV_LEVER_ZERO:
    case HV_LEVER_TP:
    case HV_LEVER_LAYERS:
    case HV_LEVER_SLOW:
    case HV_LEVER_NIC:
    case HV_LEVER_INTRA:
    case HV_LEVER_NETWORK:
    case HV_LEVER_LINK:
    case HV_LEVER_FLOPS:
    case HV_LEVER_HBM:
    case HV_LEVER_N:
        break;
    }
    return HV_FIGURE_iteration_s;
}

void hv_what_if_free(struct hv_what_if_data *d)
{
    hv_levers_free(&d->levers);
    free(d->values);
    free(d->share.values);
    hv_vec_free(&d->curve);
}
