/* Rows in memory, and the Pareto front of them. */
#include "ui/cli/sweep/rows.h"

#include <stdlib.h>
#include <string.h>

#include "solver/base/units.h"
#include "solver/sweep/figures.h"

static enum hv_status add_row(void *ctx, const struct hv_store_value *values, struct hv_err *err)
{
    struct hv_rows *r = ctx;
    (void)err;
    if (r->n == r->cap) {
        r->cap = r->cap > 0 ? 2 * r->cap : 64;
        r->values = hv_xrealloc(r->values, r->cap * r->n_columns, sizeof *r->values);
    }
    for (size_t i = 0; i < r->n_columns; i++) {
        struct hv_store_value v = values[i];
        v.text = v.text != NULL ? hv_arena_strndup(&r->arena, v.text, strlen(v.text)) : NULL;
        r->values[r->n * r->n_columns + i] = v;
    }
    r->n++;
    return HV_OK;
}

enum hv_status hv_rows_read(struct hv_rows *out, const struct hv_store *store,
                            const struct hv_store_query *q, struct hv_err *err)
{
    *out = (struct hv_rows){.n_columns = q->n_columns};
    out->columns = hv_arena_new(&out->arena, const char *, q->n_columns + 1);
    for (size_t i = 0; i < q->n_columns; i++) {
        out->columns[i] = q->columns[i];
    }
    return hv_store_read(store, q, add_row, out, err);
}

void hv_rows_free(struct hv_rows *r)
{
    free(r->values);
    hv_arena_free(&r->arena);
    *r = (struct hv_rows){0};
}

const struct hv_store_value *hv_rows_at(const struct hv_rows *r, size_t row, size_t column)
{
    return &r->values[row * r->n_columns + column];
}

size_t hv_rows_column(const struct hv_rows *r, const char *name)
{
    size_t i = 0;
    while (i < r->n_columns && strcmp(r->columns[i], name) != 0) {
        i++;
    }
    return i;
}

/** The value of a row as a cost: less is better. */
static double cost_of(const struct hv_rows *r, size_t row, size_t column)
{
    const struct hv_sweep_figure *f = hv_sweep_figure(r->columns[column]);
    double x = hv_rows_at(r, row, column)->number;
    return f != NULL && f->more_is_better ? -x : x;
}

static bool is_whole(const struct hv_rows *r, size_t row, const size_t *columns, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!hv_known(hv_rows_at(r, row, columns[i])->number)) {
            return false;
        }
    }
    return true;
}

static bool beats(const struct hv_rows *r, size_t a, size_t b, const size_t *columns, size_t n)
{
    bool better = false;
    for (size_t i = 0; i < n; i++) {
        double x = cost_of(r, a, columns[i]), y = cost_of(r, b, columns[i]);
        if (x > y) {
            return false;
        }
        better = better || x < y;
    }
    return better;
}

void hv_rows_front(struct hv_rows *r, const size_t *columns, size_t n)
{
    bool *stays = hv_xcalloc(r->n + 1, sizeof *stays);
    size_t kept = 0;

    for (size_t row = 0; row < r->n; row++) {
        stays[row] = is_whole(r, row, columns, n);
        for (size_t other = 0; other < r->n && stays[row]; other++) {
            stays[row] = !is_whole(r, other, columns, n) || !beats(r, other, row, columns, n);
        }
    }
    for (size_t row = 0; row < r->n; row++) {
        if (stays[row]) {
            memmove(&r->values[kept++ * r->n_columns], &r->values[row * r->n_columns],
                    r->n_columns * sizeof *r->values);
        }
    }
    r->n = kept;
    free(stays);
}
