/** Sums of products of doubles with a rigorous error bound; not for other modules. */
#ifndef HV_SOLVER_OPTIM_LP_EXACT_SUM_H
#define HV_SOLVER_OPTIM_LP_EXACT_SUM_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/**
 * The sum hi + lo of products, in about 106 bits (T. Ogita, S. Rump, S. Oishi, "Accurate sum and
 * dot product", SIAM J. Sci. Comput. 26, 2005, algorithm Dot2). {0} is the empty sum.
 */
struct hv__sum {
    double hi, lo;
    double size;  /**< sum of the magnitudes of the products, rounded */
    double n;     /**< number of products */
    bool rounded; /**< an operation was rounded; otherwise `hi` is exact */
};

/** Adds a · b; a and b are finite. */
static inline void hv__sum_add(struct hv__sum *s, double a, double b)
{
    double p = a * b, e = fma(a, b, -p), t = s->hi + p, z = t - s->hi;
    double lost = (s->hi - (t - z)) + (p - z) + e;
    s->hi = t;
    s->lo += lost;
    s->size += fabs(p);
    s->n += 1;
    bool tiny = fabs(p) < 0x1p-960 && a != 0 && b != 0; /* e may have been rounded */
    s->rounded = s->rounded || lost != 0 || tiny;
}

/** The most by which hi + lo may differ from the exact sum: 0 where no operation was rounded. */
static inline double hv__sum_error(const struct hv__sum *s)
{
    return s->rounded ? 8 * (s->n + 4) * (s->n + 4) * 0x1p-106 * s->size + 0x1p-1000 : 0;
}

/** A double that is not above the exact sum. */
static inline double hv__sum_down(const struct hv__sum *s)
{
    double v = s->hi + s->lo, e = hv__sum_error(s);
    return s->rounded ? v - (e + 0x1p-52 * fabs(v)) : v;
}

#endif
