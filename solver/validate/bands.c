/* Scores of left-out rows, their weighted quantiles, and the cover of the bands made of them. */
#include "solver/validate/bands.h"

#include "solver/base/units.h"
#include "solver/eval/verdict/band.h"
#include "solver/validate/fit_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Weight of a group for every respect in which it differs from what is asked for. */
#define DIFFERS 0.5
/* Part of the correction for groups of one row that groups of many need. */
#define BETWEEN_GROUPS 0.5
/* No level above this: the largest score of all says little. */
#define HIGHEST 0.999

/* A row as bands see it. */
struct scored {
    const char *source, *class_name;
    enum hv_error_of of;
    bool own; /* predicted by a fit of its class on other sources, or by the shipped one on them */
    size_t row, group;
    double score;
};

/* The scored rows, grouped. */
struct scores {
    struct scored *items;
    size_t n;
    size_t *rows_of; /* rows of a group */
    size_t n_groups;
};

/* What a band is asked for. */
struct asked {
    const char *class_name; /* NULL: any */
    enum hv_error_of of;
    bool own;
    const char *without; /* source that has no part in it; NULL: none */
};

static enum hv_error_of error_of(const struct hv_validation_row *r)
{
    return hv_band_error_of(r->model, r->job.precision);
}

static bool same_group(const struct scored *a, const struct scored *b)
{
    return a->of == b->of && a->own == b->own && strcmp(a->source, b->source) == 0 &&
           strcmp(a->class_name, b->class_name) == 0;
}

/* The score of a prediction; HV_UNKNOWN where nothing was measured or predicted. */
static double score_of(const struct hv_validation_row *r, const struct hv_prediction *p)
{
    double off = fabs(log(p->iteration_s / r->measured_s));
    return off / hv_band_scale(p->exposed_frac);
}

static void add_score(struct scores *s, struct scored one)
{
    one.group = s->n_groups;
    for (size_t i = 0; i < s->n && one.group == s->n_groups; i++) {
        one.group = same_group(&s->items[i], &one) ? s->items[i].group : one.group;
    }
    s->n_groups += one.group == s->n_groups;
    s->rows_of[one.group]++;
    s->items[s->n++] = one;
}

static struct scores open_scores(size_t most)
{
    return (struct scores){.items = hv_xcalloc(most + 1, sizeof(struct scored)),
                           .rows_of = hv_xcalloc(most + 1, sizeof(size_t))};
}

static void close_scores(struct scores *s)
{
    free(s->items);
    free(s->rows_of);
}

/* Adds the left-out rows. */
static void add_left_out(struct scores *s, const struct hv_validation *v,
                         const struct hv_prediction *p)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct hv_validation_row *r = &v->rows[i];
        double score = score_of(r, &p[i]);
        if (p[i].by != HV_BY_SHIPPED && hv_known(score)) {
            add_score(s,
                      (struct scored){.source = r->source,
                                      .class_name = hv__fit_class_of(r)->name,
                                      .of = error_of(r),
                                      .own = p[i].by == HV_BY_LEFT_OUT || p[i].by == HV_BY_HELD_OUT,
                                      .row = i,
                                      .score = score});
        }
    }
}

/* ---- quantiles ------------------------------------------------------------------------------- */

struct weighted {
    double score, weight;
};

static int by_score(const void *a, const void *b)
{
    const struct weighted *x = a, *y = b;
    return (x->score > y->score) - (x->score < y->score);
}

/* Bits of a class of error that differ: width, and sort of model. */
static int differences(enum hv_error_of a, enum hv_error_of b)
{
    bool low_a = a == HV_ERROR_DENSE_8 || a == HV_ERROR_EXPERTS_8;
    bool low_b = b == HV_ERROR_DENSE_8 || b == HV_ERROR_EXPERTS_8;
    bool experts_a = a == HV_ERROR_EXPERTS_16 || a == HV_ERROR_EXPERTS_8;
    bool experts_b = b == HV_ERROR_EXPERTS_16 || b == HV_ERROR_EXPERTS_8;
    return (low_a != low_b) + (experts_a != experts_b);
}

/* Weight of the group of a row; 0: it has no part. Layers that were measured tell nothing about
 * layers that were not, nor the other way round. */
static double weight_of(const struct scored *x, const struct asked *a)
{
    bool measured = (x->of == HV_ERROR_LAYERS) != (a->of == HV_ERROR_LAYERS);
    if (measured || x->own != a->own || (a->without && strcmp(x->source, a->without) == 0)) {
        return 0;
    }
    bool other = a->class_name != NULL && strcmp(x->class_name, a->class_name) != 0;
    return pow(DIFFERS, other + differences(x->of, a->of));
}

/* Half a band, without the part of exposed exchange; HV_UNKNOWN without any row. */
static double half_band(const struct scores *s, const struct asked *a)
{
    struct weighted *list = hv_xcalloc(s->n + 1, sizeof *list);
    double total = 0, squares = 0, seen = 0, half = HV_UNKNOWN;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        double w = weight_of(&s->items[i], a), rows = (double)s->rows_of[s->items[i].group];
        if (w > 0) {
            list[n++] = (struct weighted){s->items[i].score, w / rows};
            total += w / rows;
            squares += w * w / rows; /* over the rows of a group: its weight squared */
        }
    }
    if (n > 0) {
        double groups = total * total / squares;
        double level = fmin(HV_BAND_COVER * (1 + BETWEEN_GROUPS / groups), HIGHEST);
        qsort(list, n, sizeof *list, by_score);
        for (size_t i = 0; i < n && !hv_known(half); i++) {
            seen += list[i].weight;
            half = seen >= level * total || i + 1 == n ? list[i].score : HV_UNKNOWN;
        }
    }
    free(list);
    return half;
}

/* ---- bands ----------------------------------------------------------------------------------- */

void hv_validation_bands(const struct hv_validation *v, const struct hv_prediction *left_out,
                         double *half, struct hv_validation_cover *out)
{
    struct scores s = open_scores(v->n_rows);
    *out = (struct hv_validation_cover){0};
    for (size_t i = 0; i < v->n_rows; i++) {
        half[i] = HV_UNKNOWN;
    }
    add_left_out(&s, v, left_out);
    double *of_group = hv_xcalloc(s.n_groups + 1, sizeof *of_group);
    for (size_t i = 0, seen = 0; i < s.n; i++) {
        const struct scored *x = &s.items[i];
        if (x->group == seen) { /* the first of its group: they are numbered as they come */
            const struct asked a = {x->class_name, x->of, x->own, x->source};
            of_group[seen++] = half_band(&s, &a);
        }
        double most = of_group[x->group];
        if (!hv_known(most)) {
            continue;
        }
        half[x->row] = most * hv_band_scale(left_out[x->row].exposed_frac);
        out->mean_half += half[x->row];
        out->n++;
        out->n_held += x->score <= most;
        out->n_own += x->own;
        out->n_own_held += x->own && x->score <= most;
    }
    out->mean_half = out->n > 0 ? out->mean_half / (double)out->n : HV_UNKNOWN;
    free(of_group);
    close_scores(&s);
}

/* Adds what the shipped fit of a class misses on the only source that measured the class. */
static void add_only_source(struct scores *s, const struct hv_validation *v,
                            const struct hv_prediction *left_out,
                            const struct hv_prediction *shipped, const char *class_name)
{
    for (size_t i = 0; i < v->n_rows; i++) {
        const struct hv_validation_row *r = &v->rows[i];
        double score = score_of(r, &shipped[i]);
        bool only = left_out[i].by == HV_BY_RELATIVE || left_out[i].by == HV_BY_GENERIC;
        if (only && hv_known(score) && strcmp(hv__fit_class_of(r)->name, class_name) == 0) {
            add_score(s, (struct scored){.source = r->source,
                                         .class_name = class_name,
                                         .of = error_of(r),
                                         .own = true,
                                         .row = i,
                                         .score = score});
        }
    }
}

void hv_validation_class_errors(const struct hv_validation *v, const struct hv_prediction *left_out,
                                const struct hv_prediction *shipped, const char *class_name,
                                double out[HV_ERROR_N])
{
    struct scores s = open_scores(2 * v->n_rows);
    add_left_out(&s, v, left_out);
    if (class_name != NULL) {
        add_only_source(&s, v, left_out, shipped, class_name);
    }
    for (int e = 0; e < HV_ERROR_N; e++) {
        const struct asked a = {class_name, (enum hv_error_of)e, class_name != NULL, NULL};
        double half = half_band(&s, &a);
        out[e] = hv_known(half) ? half : out[e];
    }
    close_scores(&s);
}
