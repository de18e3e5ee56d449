/** Explanation of a number: named terms that any cost function writes on request. */
#ifndef HV_SOLVER_BASE_WHY_H
#define HV_SOLVER_BASE_WHY_H

#include "solver/base/arena.h"
#include <stddef.h>

/** Work behind a term of a forward pass, and the same of the backward pass that the term stands for
 * too. 0: none of it. */
struct hv_why_work {
    double flops, flops_per_s, bytes;
    double backward_s; /**< 0: the term has no backward pass */
    double backward_flops, backward_flops_per_s, backward_bytes;
    const char *source; /**< of the rate; static, or NULL */
};

/** One term: "qkv gemm", 1.2e-4, "s", "2·8192·4096·6144 FLOP at 0.72 of 312 TFLOP/s (estimated)".
 */
struct hv_why_term {
    const char *name;
    double value;
    const char *unit;
    const char *text;
    struct hv_why_work work; /**< of terms in seconds of a pass; else zero */
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

/** Attaches work to the term added last; does nothing when w is NULL. */
void hv_why_attach(struct hv_why *w, const struct hv_why_work *work);

#endif
