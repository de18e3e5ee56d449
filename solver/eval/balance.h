/**
 * Fractional division of layers over stages: the linear program behind the pace of a pipeline, with
 * its duals.
 *
 * minimise T over x ≥ 0: t_i x_i ≤ T and b_i x_i ≤ room_i for every stage i, Σ x_i = layers; t_i
 * and b_i are seconds and bytes per layer as the judge computed them. It is solved in closed form:
 * stages at their memory limit keep their layers, the others divide the rest in proportion to their
 * speed.
 */
#ifndef HV_SOLVER_EVAL_BALANCE_H
#define HV_SOLVER_EVAL_BALANCE_H

#include "solver/eval/eval.h"

/** One stage in the program. Where no division fits, the prices are HV_UNKNOWN and best_layers is
 * the number of layers that fit. */
struct hv_balance_stage {
    double layers, best_layers;     /**< as planned; in the optimum */
    double layer_s;                 /**< forward and backward of one layer of a micro-batch */
    double layer_bytes;             /**< bytes of one layer at the peak */
    double fixed_bytes;             /**< bytes that do not depend on the layers */
    double limit_bytes;             /**< of the worst device */
    double time_price;              /**< dual of t_i x_i ≤ T: share of the pace; they sum to 1 */
    double memory_price_s_per_byte; /**< dual of the memory limit: gain in pace per byte of memory,
                                       ≥ 0 */
};

/** The program of one replica entry. */
struct hv_balance {
    size_t replica, n;
    struct hv_balance_stage *stages; /**< [n] */
    double layers;                   /**< of all stages */
    double pace_s, best_pace_s;      /**< slowest stage per micro-batch; HV_UNKNOWN: cannot fit */
    double micro_batches;            /**< per pipeline and iteration */
};

/** Replica entry of the stage that is busy longest; 0 where no stage is judged. O(stages). */
size_t hv_eval_slowest_entry(const struct hv_verdict *v);
/**
 * The program of a judged plan's replica entry. Arrays live in `arena`. Errors: HV_ENO for one
 * stage, half layers, operators or modules, whose layers cannot be divided. O(stages²).
 */
enum hv_status hv_eval_balance(const struct hv_verdict *v, const struct hv_plan *p, size_t replica,
                               struct hv_arena *arena, struct hv_balance *out,
                               struct hv_err *err) HV_NODISCARD;
/**
 * The best whole numbers of layers, at least one per stage, into out[n]; stage `more` (SIZE_MAX =
 * none) may hold one layer more than its memory allows. False when they do not fit. Each layer goes
 * to the stage that ends first with it, which minimises the maximum. O(layers · stages).
 */
bool hv_balance_whole(const struct hv_balance *b, size_t more, int *out);

#endif
