/** Whole numbers: divisors and multiples. */
#ifndef HV_SOLVER_BASE_WHOLE_H
#define HV_SOLVER_BASE_WHOLE_H

#include <stdint.h>

/** Greatest common divisor of a and b, both ≥ 0; of 0 and x it is x. O(log). */
static inline int64_t hv_gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/** Least common multiple of a and b, both > 0; it has to fit. O(log). */
static inline int64_t hv_lcm(int64_t a, int64_t b)
{
    return a / hv_gcd(a, b) * b;
}

#endif
