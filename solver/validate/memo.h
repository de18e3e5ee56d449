/** Times of rows at points of a fit that were evaluated before; only for fit.c. */
#ifndef HV_SOLVER_VALIDATE_MEMO_H
#define HV_SOLVER_VALIDATE_MEMO_H

#include "solver/base/arena.h"
#include <stdbool.h>
#include <stddef.h>

/** Number of stored points; the first one is permanent, the others are replaced in turn. */
#define HV__MEMO_POINTS 4

/** Times at one point. */
struct hv__memo_point {
    double *x;     /**< n_params */
    double *value; /**< n_rows */
    bool *known;   /**< n_rows: which of them were evaluated */
};

/**
 * A change of one number does not change the time of most rows: 16-bit training does not depend on
 * the 8-bit efficiency. `moves` holds which rows depend on which parameter; while it is NULL, all
 * rows depend on all.
 */
struct hv__memo {
    size_t n_params, n_rows, n_points, next;
    struct hv__memo_point points[HV__MEMO_POINTS];
    const bool *moves; /**< n_rows × n_params, or NULL */
};

/** Allocates the points in `arena`. */
void hv__memo_init(struct hv__memo *m, size_t n_params, size_t n_rows, struct hv_arena *arena);
/** A kept point that differs from x in at most one number, or NULL; *param = that number, −1: none.
 * O(points · params). */
struct hv__memo_point *hv__memo_near(struct hv__memo *m, const double *x, int *param);
/** A new point for x without times; it replaces an old one. */
struct hv__memo_point *hv__memo_add(struct hv__memo *m, const double *x);
/** True where the time of a row at a kept point also holds at the point that differs in `param`. */
bool hv__memo_holds(const struct hv__memo *m, const struct hv__memo_point *near, int param,
                    size_t row);

#endif
