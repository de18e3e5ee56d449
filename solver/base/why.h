/** Explanation of a number: named terms that any cost function writes on request. */
#ifndef HV_SOLVER_BASE_WHY_H
#define HV_SOLVER_BASE_WHY_H

#include "solver/base/arena.h"
#include <stddef.h>

/** One term: "qkv gemm", 1.2e-4, "s", "2·8192·4096·6144 FLOP at 0.72 of 312 TFLOP/s (estimated)".
 */
struct hv_why_term {
    const char *name;
    double value;
    const char *unit;
    const char *text;
};

/** A list of terms in the order they were added. `arena` is set by the owner before use. */
struct hv_why {
    struct hv_arena *arena;
    struct hv_why_term *terms;
    size_t n, cap;
};

/** Adds a term; does nothing when w is NULL. Name and unit are kept as given (static), text is
 * formatted. */
void hv_why_add(struct hv_why *w, const char *name, double value, const char *unit, const char *fmt,
                ...) HV_PRINTF(5, 6);

#endif
