/**
 * Growable array on the heap: `HV_VEC(struct x) xs = {0}; hv_vec_push(&xs, x); hv_vec_free(&xs);`.
 * Invariant: items[0..n) are valid, cap ≥ n. Pushing may move the items.
 */
#ifndef HV_SOLVER_BASE_VEC_H
#define HV_SOLVER_BASE_VEC_H

#include "solver/base/arena.h"
#include <stddef.h>
#include <stdlib.h>

#ifndef HV_VEC_MIN
#define HV_VEC_MIN 8 /**< first capacity; tests build with 1 so that every growth path runs */
#endif

/** Type of a growable array of T. */
#define HV_VEC(T)                                                                                  \
    struct {                                                                                       \
        T *items;                                                                                  \
        size_t n, cap;                                                                             \
    }

/** Room for at least `want` items. */
#define hv_vec_reserve(v, want)                                                                    \
    do {                                                                                           \
        size_t hv_want_ = (want);                                                                  \
        if (hv_want_ > (v)->cap) {                                                                 \
            size_t hv_cap_ = (v)->cap * 2 > HV_VEC_MIN ? (v)->cap * 2 : HV_VEC_MIN;                \
            (v)->cap = hv_cap_ > hv_want_ ? hv_cap_ : hv_want_;                                    \
            (v)->items = hv_xrealloc((v)->items, (v)->cap, sizeof *(v)->items);                    \
        }                                                                                          \
    } while (0)

/** Appends one item (evaluated once). */
#define hv_vec_push(v, ...)                                                                        \
    do {                                                                                           \
        hv_vec_reserve((v), (v)->n + 1);                                                           \
        (v)->items[(v)->n++] = (__VA_ARGS__);                                                      \
    } while (0)

/** Frees the items; the vector is empty and usable again. */
#define hv_vec_free(v)                                                                             \
    do {                                                                                           \
        free((v)->items);                                                                          \
        (v)->items = NULL;                                                                         \
        (v)->n = (v)->cap = 0;                                                                     \
    } while (0)

#endif
