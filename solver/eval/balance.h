/**
 * Layers shared out freely: the linear program behind the pace of a pipeline, with its duals.
 *
 * minimise T over x ≥ 0: t_i x_i ≤ T and b_i x_i ≤ room_i for every stage i, Σ x_i = layers;
 * t_i and b_i are seconds and bytes per layer as the judge found them. Solved in closed form:
 * stages that run full keep what they hold, the others share the rest in proportion to their speed.
 */
#ifndef HV_SOLVER_EVAL_BALANCE_H
#define HV_SOLVER_EVAL_BALANCE_H

#include "solver/eval/eval.h"

/** One stage in the program. Where nothing fits the prices are HV_UNKNOWN, best_layers the room. */
struct hv_balance_stage {
    double layers, best_layers;     /**< as planned; in the optimum */
    double layer_s;                 /**< forward and backward of one layer of a micro-batch */
    double layer_bytes;             /**< what one layer takes at the peak */
    double fixed_bytes;             /**< what is there with no layer too */
    double limit_bytes;             /**< of the worst device */
    double time_price;              /**< dual of t_i x_i ≤ T: share of the pace; they sum to 1 */
    double memory_price_s_per_byte; /**< dual of memory: pace won per byte of room, ≥ 0 */
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
 * stage, half layers, operators or modules, which have no layers to share out. O(stages²).
 */
enum hv_status hv_eval_balance(const struct hv_verdict *v, const struct hv_plan *p, size_t replica,
                               struct hv_arena *arena, struct hv_balance *out,
                               struct hv_err *err) HV_NODISCARD;
/**
 * The best whole numbers of layers, at least one per stage, into out[n]; stage `more` (SIZE_MAX =
 * none) has room for one layer more than it has. False when they do not fit. Layer by layer to the
 * stage that is done first with it, which is optimal for a minimum of the maximum. O(layers ·
 * stages).
 */
bool hv_balance_whole(const struct hv_balance *b, size_t more, int *out);

#endif
