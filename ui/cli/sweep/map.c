/* The heat map: rows gathered into a grid of the values of two axes. */
#include "ui/cli/sweep/map.h"

#include <stdlib.h>
#include <string.h>

#include "solver/base/file.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/io/export/heat_map.h"
#include "solver/sweep/figures.h"
#include "ui/cli/sweep/rows.h"

enum { X, Y, VALUE, STRATEGY, N_COLUMNS };

/** Most values of an axis of a picture. */
enum { SIDE_MAX = 500 };

/** The values of an axis in the order of the rows. */
typedef HV_VEC(const char *) names;

static size_t place_of(names *n, const char *text)
{
    size_t i = 0;
    const char *name = text != NULL ? text : "–";
    while (i < n->n && strcmp(n->items[i], name) != 0) {
        i++;
    }
    if (i == n->n) {
        hv_vec_push(n, name);
    }
    return i;
}

/** The rows come sorted by axes, so that the values of each axis come in their order. */
static void fill(const struct hv_rows *rows, names *x, names *y, struct hv_heat_map *m,
                 struct hv_arena *arena)
{
    size_t *at = hv_arena_new(arena, size_t, 2 * rows->n + 1);
    for (size_t i = 0; i < rows->n; i++) {
        at[2 * i] = place_of(x, hv_rows_at(rows, i, X)->text);
        at[2 * i + 1] = place_of(y, hv_rows_at(rows, i, Y)->text);
    }
    size_t n = x->n * y->n;
    double *values = hv_arena_new(arena, double, n + 1);
    const char **tips = hv_arena_new(arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        values[i] = HV_UNKNOWN;
    }
    for (size_t i = 0; i < rows->n; i++) {
        size_t k = at[2 * i + 1] * x->n + at[2 * i];
        double v = hv_rows_at(rows, i, VALUE)->number;
        bool better = hv_known(v) &&
                      (!hv_known(values[k]) || (m->more_is_better ? v > values[k] : v < values[k]));
        if (better) {
            values[k] = v;
            tips[k] = hv_rows_at(rows, i, STRATEGY)->text;
        }
    }
    m->values = values;
    m->tips = tips;
    m->x = x->items;
    m->y = y->items;
    m->n_x = x->n;
    m->n_y = y->n;
}

static enum hv_status draw(const struct hv_args *args, const struct hv_rows *rows,
                           struct hv_heat_map *m, struct hv_err *err)
{
    struct hv_str title = {0}, svg = {0};
    struct hv_arena arena = {0};
    names x = {0}, y = {0};
    enum hv_status st = HV_OK;

    fill(rows, &x, &y, m, &arena);
    const struct hv_sweep_figure *figure = hv_sweep_figure(rows->columns[VALUE]);
    hv_str_addf(&title, "best %s", figure != NULL ? figure->help : rows->columns[VALUE]);
    m->title = hv_str_cstr(&title);
    if (x.n > SIDE_MAX || y.n > SIDE_MAX) {
        st = hv_err_set(err, HV_ELIMIT,
                        "sweep show: an axis of the picture has more than %d values; "
                        "--where picks some",
                        SIDE_MAX);
    } else {
        hv_heat_map_svg(m, &svg);
        st = hv_file_write(hv_args_text(args, "svg", ""), svg.p, svg.n, err);
    }
    hv_str_free(&svg);
    hv_str_free(&title);
    hv_vec_free(&x);
    hv_vec_free(&y);
    hv_arena_free(&arena);
    return st;
}

enum hv_status hv_cli_sweep_map(const struct hv_args *args, const struct hv_store *store,
                                struct hv_err *err)
{
    const char *columns[N_COLUMNS] = {hv_args_text(args, "x", NULL), hv_args_text(args, "y", NULL),
                                      hv_args_text(args, "value", "iteration_s"), "strategy"};
    struct hv_rows rows = {0};

    if (columns[X] == NULL || columns[Y] == NULL || strcmp(columns[X], columns[Y]) == 0) {
        return hv_err_set(err, HV_EUSAGE,
                          "sweep show: --svg needs two columns: --x COLUMN --y COLUMN");
    }
    const struct hv_sweep_figure *figure = hv_sweep_figure(columns[VALUE]);
    if (figure == NULL) {
        return hv_err_set(err, HV_EUSAGE, "sweep show: --value: \"%.80s\" is no figure of results",
                          columns[VALUE]);
    }
    struct hv_store_query query = {
        .where = hv_args_text(args, "where", NULL), .columns = columns, .n_columns = N_COLUMNS};
    struct hv_heat_map m = {
        .x_label = columns[X], .y_label = columns[Y], .more_is_better = figure->more_is_better};
    enum hv_status st = hv_rows_read(&rows, store, &query, err);
    if (st == HV_OK && rows.n == 0) {
        st = hv_err_set(err, HV_ENO, "sweep show: no row meets the conditions");
    }
    st = st == HV_OK ? draw(args, &rows, &m, err) : st;
    hv_rows_free(&rows);
    return st;
}
