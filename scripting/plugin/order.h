/**
 * Schedules written in Lua (`kind = "schedule"`): a plugin's order(p) gives the operations of every
 * rank; this order is then checked, compiled, priced and drawn like any other.
 */
#ifndef HV_SCRIPTING_PLUGIN_ORDER_H
#define HV_SCRIPTING_PLUGIN_ORDER_H

#include "scripting/plugin/plugin.h"
#include "solver/sim/schedule/schedule.h"

/** Arguments of order(p). Borrowed. */
struct hv_order_request {
    const struct hv_plugin *plugin;
    const json_t *options; /**< checked (hv_options_check), or NULL */
    int32_t ranks, micro_batches, chunks;
    struct hv_stage_cost cost;         /**< every stage */
    const struct hv_stage_cost *costs; /**< [ranks × chunks], stage = chunk · ranks + rank, or NULL:
                                          `cost` */
    const double *activation_bytes;    /**< [ranks × chunks] kept per micro-batch, or NULL */
    double hop_s;
    uint64_t seed;
};

/**
 * Runs order(p) in a child process, where p = {ranks, micro_batches, chunks, stages, times = {f, b,
 * w, hop}, per_stage = list of {f, b, w, memory_bytes}, memory (of `options.memory`, else nil),
 * options}. It returns one list of tokens ("F0.0", "BW1.3",
 * "{F0.2|BW1.1}"; stages and micro-batches from 0) per rank, or nil and a reason. *out (arena) has
 * `ranks` rows for hv_schedule_input.order. Errors: HV_ENO with the reason; HV_EPLUGIN with
 * file:line, also where the child crashes; HV_ESTOPPED after a minute; HV_EIO where no child can be
 * started. Tokens are checked by whoever makes the schedule.
 */
enum hv_status hv_run_order(struct hv_arena *a, const struct hv_order_request *r,
                            const struct hv_order_text **out, struct hv_err *err) HV_NODISCARD;

#endif
