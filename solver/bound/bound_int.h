/** Inside bound: what the parts of the lower bound share. */
#ifndef HV_SOLVER_BOUND_BOUND_INT_H
#define HV_SOLVER_BOUND_BOUND_INT_H

#include "solver/base/units.h"
#include "solver/bound/bound.h"

/** Models with more classes of blocks get a bound that ignores the size of passes. */
#define HV__CLASSES_BY_SIZE 8
/** Most items of a model whose bound depends on the size of passes. */
#define HV__ITEMS_BY_SIZE (2 * HV__CLASSES_BY_SIZE + 3)

/** Work that devices beyond a cut can take over from those before it (beyond.c): the share of the
 * batch times the share of the model whose activations and gradients the cut carries in the time
 * given. */
struct hv__beyond {
    double window_s; /**< time for both, at most */
    double hop_s;    /**< activations of the whole batch */
    double *sum_s;   /**< [n_items] gradients of one part */
};

/** Whether the caller has ended the search. */
struct hv__stop {
    bool (*ask)(void *ctx); /**< NULL: never */
    void *ctx;
    bool stopped;
};

/** Which kind of the bound a kind of the cluster is. */
struct hv__kind_row {
    const struct hv_device_kind *kind;
    size_t row;
};

/** The work of an iteration and the devices that can do it. Items: halves of blocks by class,
 * embedding, head, and last the optimizer step. Kinds of the cluster with equal figures are one
 * kind, and kinds are sorted by their figures, so that neither their names nor their order in a
 * file has an effect. */
struct hv__work {
    size_t n_items, n_kinds, stride;
    double batch;
    double *units;                        /**< [n_items] sequences, or 1 of the optimizer's */
    double *floor_s;                      /**< [n_kinds × stride] device-seconds of a unit */
    const struct hv_cost_by_size **sizes; /**< [n_kinds × stride]; NULL: only its floor is known */
    const struct hv__kind_row *rows;      /**< [n_rows] kinds of the cluster, by address */
    size_t n_rows;
    double *devices;                  /**< [n_kinds] usable devices */
    double *usable_bytes;             /**< [n_kinds] of a device */
    double state_bytes;               /**< bytes that all devices together hold at least */
    double *step_s, *jitter, *pass_s; /**< [n_kinds] */
    const struct hv__beyond
        *beyond; /**< `devices` counts those before this cut; NULL: all devices */
    bool even;   /**< bound of even plans (even.c), which counts the first forward pass besides the
                    work */
    struct hv__stop *stop;
};

/** Dual prices: what a device of each kind in use earns per second, and the value of the work at
 * these prices. */
struct hv__prices {
    double *speed;        /**< [n_kinds]: λ */
    double all, pipeline; /**< floors of all items; without the optimizer's */
    double optimizer;
    double total;                /**< speed of all devices in use */
    double mixed[HV_COST_MIXES]; /**< worth of the passes by size, and of the chain */
};

/** True once the caller has ended the search. Prices are valid whenever their improvement ends. */
bool hv__is_stopped(const struct hv__work *w);
/** Largest value of the work that devices beyond a cut can take over from those before it; the rest
 * is left to the latter. `values`: [n_items] of all parts of an item. O(items²). */
double hv__taken_over(const struct hv__work *w, const double *values);

/** Lists the work of a job and the usable devices of its cluster. */
struct hv__work hv__list_work(struct hv_cost *k, struct hv_arena *arena);
/** Counts the usable devices again, of the houses on one side of a cut only; `beyond`: [classes]
 * those on its second side. */
void hv__keep_side(struct hv__work *w, const struct hv_houses *houses, const uint32_t *beyond,
                   bool side, struct hv_arena *arena);
/** Time of `value` on all devices of these kinds. */
double hv__spread_s(const struct hv__work *w, const bool *kinds, const struct hv__prices *p,
                    double value);
/** The best prices found for these kinds, for passes of any size. O(kinds² × items). */
struct hv__prices hv__prices_of(const struct hv__work *w, const bool *kinds,
                                struct hv_arena *arena);

/** Fills p->mixed for its speeds. O(mixes × items × kinds). */
void hv__mix_values(const struct hv__work *w, const bool *kinds, struct hv__prices *p);
/** Changes the speeds where that raises the best mix; fills p->mixed. */
void hv__improve_mix(const struct hv__work *w, const bool *kinds, struct hv__prices *p,
                     struct hv_arena *arena);

/** What a bound is made of, at the devices and the mix that it comes from. */
struct hv__least {
    double time_s, passes_s, optimizer_s, waits_s, around_s;
    double devices;
};
/** Query of hv__bound_of. */
struct hv__bound_query {
    const struct hv__work *w;
    const struct hv__prices *all; /**< of all kinds */
    bool by_size;                 /**< passes form a chain: counts their size (chain.c) */
    struct hv_arena *arena;
};
/** Fewest devices of these kinds whose memory holds what all must hold together, those with most
 * memory first; HUGE_VAL: even all of them do not hold it. */
double hv__fewest_devices(const struct hv__work *w, const bool *kinds);
/**
 * Least bound over all sets of kinds in use. Prices of all kinds are valid for every set of them,
 * and good enough to show that a set is not the least. Time 0 where the search was stopped before
 * all sets were looked at.
 */
struct hv__least hv__bound_of(const struct hv__bound_query *q);
/** Bound of plans whose stages are chains, on the devices of `w`; HUGE_VAL: they do not hold the
 * gradients. O(2^kinds × kinds × classes). */
double hv__bound_by_size(const struct hv__work *w, struct hv_arena *arena);
/** Fills even_s and even_why where the bound of even plans is above that of all plans whose stages
 * are chains. */
void hv__bound_even(const struct hv__work *w, struct hv_arena *arena, struct hv_bound *out);
/** Lists the bounds by cuts of the cluster, and raises out->iteration_s to the largest. */
void hv__bound_cuts(struct hv_cost *k, const struct hv__work *w, struct hv_arena *arena,
                    struct hv_bound *out);

#endif
