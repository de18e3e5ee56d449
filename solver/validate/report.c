/* Groups of validation rows and the one-parameter baseline beside the model. Pure arithmetic over
 * predictions; ui/cli prints the results. */
#include "solver/validate/validate.h"

#include "solver/base/units.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the baseline ---------------------------------------------------------------------------- */

double hv_validation_flops(const struct hv_validation_row *row, unsigned recompute)
{
    const struct hv_model *m = row->model;
    double sequence = (double)row->job.sequence;
    double forward = hv_model_forward_flops(m, sequence, m->causal), again = 0;
    if (recompute == HV_RC_FULL) {
        again = forward;
    } else if (recompute & HV_RC_CORE) {
        for (size_t i = 0; i < m->n_blocks; i++) {
            again += sequence * hv_block_core_flops(&m->blocks[i], sequence, m->causal);
        }
    }
    return (double)row->job.global_batch * (3 * forward + again);
}

static int width_of(const struct hv_validation_row *r)
{
    return r->job.precision == HV_FP4 ? 4 : r->low_bits ? 8 : 16;
}

/* log of the share of the peak that a row reached, or HV_UNKNOWN. */
static double log_efficiency(const struct hv_validation_row *r, const struct hv_prediction *p)
{
    const struct hv_device_kind *k = hv_cluster_device(r->cluster, 0).kind;
    double peak = hv_device_peak_flops_per_s(k, r->job.precision);
    double n = (double)hv_grid_devices(&r->grid);
    if (!hv_known(r->measured_s) || p->failure != NULL) {
        return HV_UNKNOWN;
    }
    return log(hv_validation_flops(r, p->recompute) / (r->measured_s * n * peak));
}

struct weighted {
    double value, weight;
};

static int by_value(const void *a, const void *b)
{
    const struct weighted *x = a, *y = b;
    return x->value < y->value ? -1 : x->value > y->value;
}

static double weighted_median(struct weighted *list, size_t n)
{
    double total = 0, seen = 0;
    if (n == 0) {
        return HV_UNKNOWN;
    }
    qsort(list, n, sizeof *list, by_value);
    for (size_t i = 0; i < n; i++) {
        total += list[i].weight;
    }
    for (size_t i = 0; i < n; i++) {
        seen += list[i].weight;
        if (seen >= total / 2) {
            return list[i].value;
        }
    }
    return list[n - 1].value;
}

static bool same_class(const struct hv_validation_row *a, const struct hv_validation_row *b)
{
    return width_of(a) == width_of(b) && a->experts == b->experts &&
           strcmp(a->device, b->device) == 0;
}

/* Median of the class of `row` over the other sources. */
static double fit_elsewhere(const struct hv_validation *v, const double *logs, size_t row,
                            struct weighted *scratch)
{
    const struct hv_validation_row *r = &v->rows[row];
    size_t n = 0;
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct hv_validation_row *o = &v->rows[i];
        if (!hv_known(logs[i]) || !same_class(o, r) || strcmp(o->source, r->source) == 0) {
            continue;
        }
        size_t in_source = 0;
        for (size_t k = 0; k < v->n_rows; k++) {
            const struct hv_validation_row *x = &v->rows[k];
            in_source += hv_known(logs[k]) && same_class(x, r) && !strcmp(x->source, o->source);
        }
        scratch[n++] = (struct weighted){logs[i], 1.0 / (double)in_source};
    }
    return weighted_median(scratch, n);
}

void hv_validation_baseline(const struct hv_validation *v, const struct hv_prediction *taken,
                            double *out_s)
{
    double *logs = hv_xcalloc(2 * v->n_rows + 1, sizeof *logs), *fits = logs + v->n_rows;
    struct weighted *scratch = hv_xcalloc(v->n_rows + 1, sizeof *scratch);
    for (size_t i = 0; i < v->n_rows; i++) {
        logs[i] = log_efficiency(&v->rows[i], &taken[i]);
    }
    for (size_t i = 0; i < v->n_rows; i++) {
        size_t same = 0; /* rows of one source and class share the fit */
        while (same < i && (!same_class(&v->rows[same], &v->rows[i]) ||
                            strcmp(v->rows[same].source, v->rows[i].source) != 0)) {
            same++;
        }
        fits[i] = same < i ? fits[same] : fit_elsewhere(v, logs, i, scratch);
        out_s[i] = hv_known(v->rows[i].measured_s) ? v->rows[i].measured_s * exp(logs[i] - fits[i])
                                                   : HV_UNKNOWN;
    }
    free(scratch);
    free(logs);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The group of a row, or none (name NULL). */
typedef struct hv_validation_group group_fn(const struct hv_validation_row *r);

static struct hv_validation_group group_by_kind(const struct hv_validation_row *r)
{
    return (struct hv_validation_group){.name = hv_known(r->measured_s) ? r->source : NULL,
                                        .device = r->device,
                                        .low_bits = r->low_bits,
                                        .experts = r->experts};
}

static struct hv_validation_group group_by_table(const struct hv_validation_row *r)
{
    return (struct hv_validation_group){.name = hv_known(r->measured_s) ? r->table : NULL};
}

static struct hv_validation_group group_by_memory(const struct hv_validation_row *r)
{
    bool measured = hv_known(r->measured_bytes) && !r->oom;
    return (struct hv_validation_group){.name = measured ? r->source : NULL};
}

static int compare_groups(const void *a, const void *b)
{
    const struct hv_validation_group *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    c = c != 0 || x->device == NULL ? c : strcmp(x->device, y->device);
    c = c != 0 ? c : (x->low_bits > y->low_bits) - (x->low_bits < y->low_bits);
    return c != 0 ? c : (x->experts > y->experts) - (x->experts < y->experts);
}

/* Columns of figures that a group compares. */
struct columns {
    double *predicted, *measured, *baseline, *rival;
};

static void fill_group(const struct hv_validation *v, const struct columns *all, group_fn *of,
                       struct hv_validation_group *g, double *scratch)
{
    double *p = scratch, *m = p + v->n_rows, *b = m + v->n_rows, *r = b + v->n_rows;
    size_t n = 0;
    for (size_t i = 0; i < v->n_rows; i++) {
        struct hv_validation_group x = of(&v->rows[i]);
        if (x.name != NULL && compare_groups(&x, g) == 0) {
            p[n] = all->predicted[i];
            m[n] = all->measured[i];
            b[n] = all->baseline[i];
            r[n++] = all->rival[i];
        }
    }
    hv_error_stats(p, m, n, &g->time);
    hv_error_stats(b, m, n, &g->baseline);
    hv_error_stats(r, m, n, &g->rival);
}

static struct hv_validation_group *make_groups(const struct hv_validation *v,
                                               const struct columns *all, group_fn *of,
                                               struct hv_arena *arena, size_t *n_out)
{
    struct hv_validation_group *list = hv_arena_new(arena, struct hv_validation_group, v->n_rows);
    double *scratch = hv_xcalloc(4 * v->n_rows + 1, sizeof *scratch);
    size_t n = 0;
    for (size_t i = 0; i < v->n_rows; i++) {
        struct hv_validation_group g = of(&v->rows[i]);
        size_t k = 0;
        while (g.name != NULL && k < n && compare_groups(&list[k], &g) != 0) {
            k++;
        }
        if (g.name != NULL && k == n) {
            list[n++] = g;
        }
    }
    if (n > 1) {
        qsort(list, n, sizeof *list, compare_groups);
    }
    for (size_t k = 0; k < n; k++) {
        fill_group(v, all, of, &list[k], scratch);
    }
    free(scratch);
    *n_out = n;
    return list;
}

/* Selects the groups of a mean: sort of model and width (−1: both), and whether only classes that
 * other sources measured too. */
struct choice {
    int experts, low_bits;
    bool own;
};

/* Mean of the groups' MAPEs. */
static double mean_mape(const struct hv_validation_group *g, size_t n, struct choice c)
{
    double sum = 0;
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        if ((c.experts >= 0 && g[i].experts != (c.experts == 1)) ||
            (c.low_bits >= 0 && g[i].low_bits != (c.low_bits == 1)) || g[i].time.n == 0 ||
            (c.own && g[i].borrowed)) {
            continue;
        }
        sum += g[i].time.mape_frac;
        k++;
    }
    return k > 0 ? sum / (double)k : HV_UNKNOWN;
}

static void sum_up_memory(const struct hv_validation *v, const struct hv_prediction *predicted,
                          struct columns *all, struct hv_arena *arena,
                          struct hv_validation_report *out)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        all->predicted[i] = predicted[i].peak_bytes;
        all->measured[i] = v->rows[i].measured_bytes;
        all->baseline[i] = all->rival[i] = HV_UNKNOWN;
        out->n_oom += v->rows[i].oom;
        out->n_oom_called_fitting += v->rows[i].oom && predicted[i].fits;
    }
    out->memory = make_groups(v, all, group_by_memory, arena, &out->n_memory);
    out->memory_mape = mean_mape(out->memory, out->n_memory, (struct choice){-1, -1, false});
}

static void mark_borrowed(struct hv_validation_report *out, const struct hv_validation_row *row,
                          enum hv_predicted_by by)
{
    struct hv_validation_group of = group_by_kind(row);
    for (size_t k = 0; of.name != NULL && k < out->n_groups; k++) {
        bool mine = compare_groups(&out->groups[k], &of) == 0;
        out->groups[k].borrowed |= mine && (by == HV_BY_RELATIVE || by == HV_BY_GENERIC);
    }
}

void hv_validation_sum_up(const struct hv_validation *v, const struct hv_prediction *predicted,
                          const double *baseline_s, struct hv_arena *arena,
                          struct hv_validation_report *out)
{
    size_t n = v->n_rows;
    double *figures = hv_xcalloc(4 * n + 1, sizeof *figures);
    struct columns all = {figures, figures + n, figures + 2 * n, figures + 3 * n};
    *out = (struct hv_validation_report){.n_rows = n};
    for (size_t i = 0; i < n; i++) {
        all.predicted[i] = predicted[i].iteration_s;
        all.measured[i] = v->rows[i].measured_s;
        all.baseline[i] = baseline_s[i];
        all.rival[i] = v->rows[i].rival_s;
        out->n_predicted += predicted[i].failure == NULL;
    }
    out->groups = make_groups(v, &all, group_by_kind, arena, &out->n_groups);
    out->tables = make_groups(v, &all, group_by_table, arena, &out->n_tables);
    for (size_t i = 0; i < n; i++) {
        mark_borrowed(out, &v->rows[i], predicted[i].by);
    }
    const struct hv_validation_group *g = out->groups;
    out->dense16 = mean_mape(g, out->n_groups, (struct choice){0, 0, false});
    out->dense8 = mean_mape(g, out->n_groups, (struct choice){0, 1, false});
    out->moe = mean_mape(g, out->n_groups, (struct choice){1, -1, false});
    out->own_dense16 = mean_mape(g, out->n_groups, (struct choice){0, 0, true});
    out->own_dense8 = mean_mape(g, out->n_groups, (struct choice){0, 1, true});
    out->own_moe = mean_mape(g, out->n_groups, (struct choice){1, -1, true});
    sum_up_memory(v, predicted, &all, arena, out);
    free(figures);
}
