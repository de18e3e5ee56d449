/**
 * Schedules written in Lua: a plugin's order(p) gives every rank's list of tokens. The order then
 * travels as `explicit`, so nothing that judges a plan ever calls Lua.
 */
#ifndef HV_SCRIPTING_ORDER_H
#define HV_SCRIPTING_ORDER_H

#include "scripting/plugin.h"
#include "solver/sim/schedule.h"

/** What order(p) is told. Borrowed. */
struct hv_order_query {
    int32_t ranks, micro_batches, chunks;
    const struct hv_stage_cost
        *costs; /**< [ranks × chunks], stage = chunk · ranks + rank; seconds */
    const double *activation_bytes; /**< [ranks × chunks], or NULL: 1 each */
    double hop_s;
    const json_t *options; /**< as hv_options_check made them */
    uint64_t seed;
};

/**
 * Runs order(p) on a host of its own; *out [ranks] lies in the arena. Errors: HV_EPLUGIN with
 * file:line; HV_ENO when it answered nil and a reason; HV_ELIMIT above the limits of schedules.
 */
enum hv_status hv_order_make(const struct hv_plugin *p, const struct hv_order_query *q,
                             struct hv_arena *a, struct hv_order_text **out,
                             struct hv_err *err) HV_NODISCARD;

#endif
