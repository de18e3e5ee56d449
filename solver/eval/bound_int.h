/** Inside eval: what the parts of the lower bound share. */
#ifndef HV_SOLVER_EVAL_BOUND_INT_H
#define HV_SOLVER_EVAL_BOUND_INT_H

#include "solver/eval/eval_int.h"

/** Shares of the work side against the chain side that are tried. */
#define HV__MIXES 20

/** What there is to do and who can do it. Items: halves of blocks by class, embedding, head, and
 * last the optimizer step. */
struct hv__work {
    size_t n_items, n_kinds, stride;
    double batch;
    double *units;                        /**< [n_items] sequences, or 1 of the optimizer's */
    double *floor_s;                      /**< [n_kinds × stride] device-seconds of a unit */
    const struct hv_cost_by_size **sizes; /**< [n_kinds × stride]; NULL: only its floor is known */
    const struct hv_device_kind *
        *kinds;                       /**< [n_kinds] by name, so that no order of a file counts */
    double *devices;                  /**< [n_kinds] of use */
    double *usable_bytes;             /**< [n_kinds] of a device */
    double state_bytes;               /**< that all devices hold together at the least */
    double *step_s, *jitter, *pass_s; /**< [n_kinds] */
    bool transformer;
};

/** What a device of each kind in use earns per second, and what the work is worth by that. */
struct hv__prices {
    double *speed;        /**< [n_kinds]: λ */
    double all, pipeline; /**< floors of all items; without the optimizer's */
    double optimizer;
    double total;            /**< speed of all devices in use */
    double mixed[HV__MIXES]; /**< worth of the passes by size, and of the chain */
};

/** Lists the work of a job and the devices of its cluster. */
struct hv__work hv__list_work(struct hv_cost *k, struct hv_arena *arena);
/** Time of `value` on all devices of these kinds. */
double hv__spread_s(const struct hv__work *w, const bool *kinds, const struct hv__prices *p,
                    double value);
/** The best prices found for these kinds, for passes of any size. O(kinds² × items). */
struct hv__prices hv__prices_of(const struct hv__work *w, const bool *kinds,
                                struct hv_arena *arena);

/** Share of the work side of a mix. */
double hv__mix(size_t i);
/** Fills p->mixed for its speeds. O(mixes × items × kinds). */
void hv__mix_values(const struct hv__work *w, const bool *kinds, struct hv__prices *p);
/** Changes the speeds where that raises the best mix; fills p->mixed. */
void hv__improve_mix(const struct hv__work *w, const bool *kinds, struct hv__prices *p,
                     struct hv_arena *arena);

#endif
