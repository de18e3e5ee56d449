/* The grid: points that meet the conditions, and the identity of every cell. */
#include "solver/sweep/sweep_int.h"

#include "solver/base/rng.h"
#include "solver/base/units.h"
#include <stdlib.h>
#include <string.h>

static uint64_t hash_text(uint64_t h, const char *text)
{
    return hv_hash(h, text, strlen(text) + 1);
}

/** What all cells have in common: documents, seed, limits. */
static uint64_t hash_of_all(const struct hv_sweep *s)
{
    uint64_t h = HV_HASH_START;
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        char *text = json_dumps(s->docs[d], JSON_COMPACT | JSON_SORT_KEYS);
        h = hash_text(h, text != NULL ? text : "");
        free(text);
    }
    char limits[96];
    (void)snprintf(limits, sizeof limits, "%llu %lld %.17g", (unsigned long long)s->seed,
                   (long long)s->budget, s->time_limit_s);
    return hash_text(h, limits);
}

/** Axes in the order of their places, so that the order in the file does not matter. */
static void order_axes(const struct hv_sweep *s, size_t order[HV_SWEEP_AXES_MAX])
{
    for (size_t i = 0; i < s->n_axes; i++) {
        size_t k = i;
        for (; k > 0 && strcmp(s->axes[order[k - 1]].at, s->axes[i].at) > 0; k--) {
            order[k] = order[k - 1];
        }
        order[k] = i;
    }
}

static uint64_t id_of(const struct hv_sweep *s, const struct hv_sweep_cell *cell, uint64_t h,
                      const size_t order[HV_SWEEP_AXES_MAX])
{
    for (size_t i = 0; i < s->n_axes; i++) {
        const struct hv_sweep_value *v = hv_sweep_value(s, cell, order[i]);
        h = hash_text(h, s->axes[order[i]].at);
        h = hv_hash(h, &v->hash, sizeof v->hash);
    }
    return hash_text(h, s->strategies[cell->strategy]);
}

static int by_id(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/** The identity of the sweep, from those of its cells in any order; refuses two cells of one
 * identity, which are equal values under two labels. */
static enum hv_status identify(struct hv_sweep *s, struct hv_err *err)
{
    uint64_t *ids = hv_xcalloc(s->n_cells, sizeof *ids);
    enum hv_status st = HV_OK;
    for (size_t i = 0; i < s->n_cells; i++) {
        ids[i] = s->cells[i].id;
    }
    qsort(ids, s->n_cells, sizeof *ids, by_id);
    for (size_t i = 1; i < s->n_cells && st == HV_OK; i++) {
        if (ids[i] == ids[i - 1]) {
            struct hv_jp root = hv_jp_root(&s->json), at = hv_jp_get(&root, "axes");
            st =
                hv_jp_fail(&at, err, "two cells are equal: an axis has one value under two labels");
        }
    }
    s->id = hv_hash(HV_HASH_START + (uint64_t)s->keep, ids, s->n_cells * sizeof *ids);
    free(ids);
    return st;
}

/** Number of points of the grid. */
static enum hv_status count_points(const struct hv_sweep *s, uint64_t *out, struct hv_err *err)
{
    *out = 1;
    for (size_t i = 0; i < s->n_axes; i++) {
        *out *= s->axes[i].n;
        if (*out * s->n_strategies > HV_SWEEP_CELLS_MAX) {
            return hv_err_set(err, HV_ELIMIT, "%s: the grid has more than %d cells", s->json.name,
                              HV_SWEEP_CELLS_MAX);
        }
    }
    return HV_OK;
}

enum hv_status hv__sweep_cells(struct hv_sweep *s, const struct hv_jp *where, struct hv_err *err)
{
    size_t order[HV_SWEEP_AXES_MAX] = {0};
    uint64_t points = 0, base = hash_of_all(s);
    struct hv__where *w = NULL;
    enum hv_status st = count_points(s, &points, err);

    st = st == HV_OK ? hv__where_new(&w, s, where, err) : st;
    if (st != HV_OK) {
        return st;
    }
    s->n_where = json_array_size(where->v);
    order_axes(s, order);
    s->cells = hv_xcalloc(points * s->n_strategies, sizeof *s->cells);
    for (uint64_t point = 0; point < points && st == HV_OK; point++) {
        for (size_t k = 0; k < s->n_strategies && st == HV_OK; k++) {
            struct hv_sweep_cell cell = {.point = point, .strategy = (uint32_t)k};
            bool holds = true;
            st = hv__where_holds(w, s, &cell, &holds, err);
            if (st == HV_OK && holds) {
                cell.id = id_of(s, &cell, base, order);
                s->cells[s->n_cells++] = cell;
            }
        }
    }
    hv__where_free(w);
    if (st == HV_OK && s->n_cells == 0) {
        st = hv_jp_fail(where, err, "no cell meets the conditions");
    }
    return st == HV_OK ? identify(s, err) : st;
}
