/*
 * Prediction of published rows and the error figures over them. Rows are read in io/own, printed in
 * ui/cli; fitting is in fit.c.
 */
#include "solver/validate/validate.h"

#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/eval/verdict/band.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

void hv_validation_free(struct hv_validation *v)
{
    for (size_t i = 0; i < v->n_clusters; i++) {
        hv_cluster_unref(v->clusters[i]);
    }
    for (size_t i = 0; i < v->n_models; i++) {
        hv_model_unref(v->models[i]);
    }
    free(v->clusters);
    free(v->models);
    free(v->rows);
    free(v->skipped);
    hv_arena_free(&v->arena);
    *v = (struct hv_validation){0};
}

void hv_validation_add(struct hv_validation *v, const struct hv_validation_row *row)
{
    if (v->n_rows == v->cap_rows) {
        v->cap_rows = v->cap_rows > 0 ? 2 * v->cap_rows : 64;
        v->rows = hv_xrealloc(v->rows, v->cap_rows, sizeof *v->rows);
    }
    v->rows[v->n_rows++] = *row;
}

void hv_validation_skip(struct hv_validation *v, const char *why)
{
    for (size_t i = 0; i < v->n_skipped; i++) {
        if (strcmp(v->skipped[i].why, why) == 0) {
            v->skipped[i].n++;
            return;
        }
    }
    v->skipped = hv_xrealloc(v->skipped, v->n_skipped + 1, sizeof *v->skipped);
    v->skipped[v->n_skipped++] = (struct hv_validation_skip){why, 1};
}

/* ---- prediction ------------------------------------------------------------------------------ */

/* Peak memory of the worst device, by the row's method of measurement. */
static double peak_of(const struct hv_verdict *v, enum hv_memory_meter meter)
{
    double peak = HV_UNKNOWN;
    for (size_t i = 0; i < v->n_memory; i++) {
        const struct hv_stage_memory *m = &v->memory[i];
        double bytes = meter == HV_METER_ALLOCATED ? hv_stage_allocated_bytes(m) : m->peak_bytes;
        if (!hv_known(peak) || bytes > peak) {
            peak = bytes;
        }
    }
    return peak;
}

static bool fits(const struct hv_verdict *v)
{
    for (size_t i = 0; i < v->findings.n; i++) {
        if (v->findings.items[i].code == HV_V_MEMORY) {
            return false;
        }
    }
    return true;
}

/* Evaluates the row with one choice of recomputation. */
static bool judge(const struct hv_validation_row *row, struct hv_cost *cost, unsigned recompute,
                  struct hv_arena *scratch, struct hv_prediction *out)
{
    struct hv_grid g = row->grid;
    struct hv_plan *plan = NULL;
    struct hv_verdict verdict = {0};
    struct hv_err err = {0};
    const struct hv_eval_options options = {.no_bound = true};
    g.recompute = recompute;
    g.grad_bytes = hv_job_grad_bytes(&row->job);
    struct hv_arena_mark mark = hv_arena_mark(scratch);
    enum hv_status st =
        hv_plan_grid(row->cluster, row->job.precision, row->model->n_blocks, &g, &plan, &err);
    if (st == HV_OK) {
        st = hv_eval(cost, plan, &options, scratch, &verdict, &err);
    }
    if (st == HV_OK && !hv_known(verdict.metrics.iteration_s)) {
        st = hv_err_set(&err, HV_ENO, "%s",
                        verdict.findings.n > 0 ? verdict.findings.items[0].text : "no time");
    }
    *out = (struct hv_prediction){.iteration_s = HV_UNKNOWN, .peak_bytes = HV_UNKNOWN};
    if (st == HV_OK) {
        out->iteration_s = verdict.metrics.iteration_s;
        out->exposed_frac = hv_band_exposed_frac(&verdict.metrics);
        out->peak_bytes = peak_of(&verdict, row->meter);
        out->fits = fits(&verdict);
        out->recompute = recompute;
    }
    hv_plan_unref(plan);
    hv_arena_rewind(scratch, mark);
    if (st != HV_OK) {
        out->failure = hv_arena_strdup(scratch, err.text);
    }
    return st == HV_OK;
}

void hv_validation_predict(const struct hv_validation_row *row, struct hv_arena *arena,
                           struct hv_prediction *out)
{
    struct hv_cost *cost = hv_cost_new(row->cluster, row->model, &row->job);
    (void)judge(row, cost, row->grid.recompute, arena, out);
    hv_cost_free(cost);
}

double hv_validation_time_s(const struct hv_validation_row *row, const struct hv_plan *plan,
                            struct hv_arena *scratch, double *exposed_frac)
{
    const struct hv_eval_options options = {.no_bound = true};
    struct hv_arena_mark mark = hv_arena_mark(scratch);
    struct hv_cost *cost = hv_cost_new(row->cluster, row->model, &row->job);
    struct hv_verdict verdict = {0};
    enum hv_status st = hv_eval(cost, plan, &options, scratch, &verdict, NULL);
    double s = st == HV_OK ? verdict.metrics.iteration_s : HV_UNKNOWN;
    if (exposed_frac != NULL) {
        *exposed_frac = st == HV_OK ? hv_band_exposed_frac(&verdict.metrics) : 0;
    }
    hv_cost_free(cost);
    hv_arena_rewind(scratch, mark);
    return s;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_counts(const struct hv_grid *a, const struct hv_grid *b)
{
    size_t n = (size_t)a->pp * (size_t)(a->chunks > 0 ? a->chunks : 1);
    return a->counts == b->counts || (a->counts != NULL && b->counts != NULL &&
                                      memcmp(a->counts, b->counts, n * sizeof *a->counts) == 0);
}

bool hv_validation_same(const struct hv_validation_row *a, const struct hv_validation_row *b)
{
    const struct hv_grid *g = &a->grid, *h = &b->grid;
    return a->cluster == b->cluster && a->model == b->model &&
           a->job.precision == b->job.precision && a->job.runtime == b->job.runtime &&
           a->job.sequence == b->job.sequence && a->recompute == b->recompute &&
           a->meter == b->meter && g->tp == h->tp && g->pp == h->pp && g->dp == h->dp &&
           g->cp == h->cp && g->ep == h->ep && g->chunks == h->chunks &&
           g->micro_batch == h->micro_batch && g->global_batch == h->global_batch &&
           g->zero == h->zero && g->shard_group == h->shard_group && g->recompute == h->recompute &&
           g->sequence_parallel == h->sequence_parallel && g->late_sync == h->late_sync &&
           same_text(g->schedule, h->schedule) && same_counts(g, h);
}

void hv_validation_predict_all(const struct hv_validation *v, struct hv_arena *arena,
                               struct hv_prediction *out)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        size_t same = 0;
        while (same < i && !hv_validation_same(&v->rows[same], &v->rows[i])) {
            same++;
        }
        if (same < i) {
            out[i] = out[same];
        } else {
            hv_validation_predict(&v->rows[i], arena, &out[i]);
        }
    }
}

/* ---- statistics ------------------------------------------------------------------------------ */

struct ranked {
    double value;
    size_t at;
};

static int by_value(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->value != y->value) {
        return x->value < y->value ? -1 : 1;
    }
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Ranks with the mean for ties. */
static void rank(const double *values, size_t n, double *ranks)
{
    struct ranked *list = hv_xcalloc(n + 1, sizeof *list);
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct ranked){values[i], i};
    }
    qsort(list, n, sizeof *list, by_value);
    for (size_t i = 0, end; i < n; i = end) {
        end = i + 1;
        while (end < n && list[end].value == list[i].value) {
            end++;
        }
        for (size_t k = i; k < end; k++) {
            ranks[list[k].at] = (double)(i + end - 1) / 2;
        }
    }
    free(list);
}

static double correlation(const double *a, const double *b, size_t n)
{
    double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
    for (size_t i = 0; i < n; i++) {
        ma += a[i] / (double)n;
        mb += b[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        ab += (a[i] - ma) * (b[i] - mb);
        aa += (a[i] - ma) * (a[i] - ma);
        bb += (b[i] - mb) * (b[i] - mb);
    }
    return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : HV_UNKNOWN;
}

static double spearman(const double *a, const double *b, size_t n)
{
    if (n < 3) {
        return HV_UNKNOWN;
    }
    double *ranks = hv_xcalloc(2 * n, sizeof *ranks);
    rank(a, n, ranks);
    rank(b, n, ranks + n);
    double r = correlation(ranks, ranks + n, n);
    free(ranks);
    return r;
}

void hv_error_stats(const double *predicted, const double *measured, size_t n,
                    struct hv_error_stats *out)
{
    double *p = hv_xcalloc(2 * n + 1, sizeof *p), *m = p + n;
    double sum = 0, sum_abs = 0;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if (!hv_known(predicted[i]) || !hv_known(measured[i])) {
            continue;
        }
        p[k] = predicted[i];
        m[k] = measured[i];
        sum += p[k] / m[k] - 1;
        sum_abs += fabs(p[k] / m[k] - 1);
        k++;
    }
    *out = (struct hv_error_stats){0, HV_UNKNOWN, HV_UNKNOWN, HV_UNKNOWN};
    if (k > 0) {
        *out = (struct hv_error_stats){k, sum_abs / (double)k, sum / (double)k, spearman(p, m, k)};
    }
    free(p);
}
