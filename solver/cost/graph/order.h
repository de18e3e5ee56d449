/**
 * Inside cost/graph: passes as tasks. Kernels run one after the other; an exchange waits for the
 * kernel that writes its tensor, holds up the kernel that reads it, and runs beside all others. The
 * links inside nodes and those between nodes are a lane each, since axes share them. Sums of
 * gradients of parameters, which no kernel waits for, are joined to buckets.
 */
#ifndef HV_SOLVER_COST_GRAPH_ORDER_H
#define HV_SOLVER_COST_GRAPH_ORDER_H

#include "solver/cost/graph/exchange.h"
#include "solver/cost/graph/kernels.h"

/** Seconds of a pass. */
struct hv__pass_times {
    double all_s, compute_s;
    double shown_s;    /**< by which exchanges lengthen it: all_s = compute_s + shown_s */
    double far_s;      /**< of exchanges between nodes */
    double sent_bytes; /**< by a device */
};
/** Which kernels take part. */
enum hv__pass_of { HV__FORWARD, HV__BACKWARD, HV__INPUT_GRADIENTS, HV__WEIGHT_GRADIENTS };

/** What tasks are made of. */
struct hv__order_query {
    struct hv__wires *wires;
    const struct hv_sharding *sharding;
    const struct hv__kernels *kernels;
    double overlap_frac; /**< seconds of compute lost per second of exchange beside it */
    double hidden_frac;  /**< least share of gathers and scatters of activations that products hide,
                            chunk by chunk (calibrated on sequence parallelism of layers) */
};
/** Times a pass. end_s: [kernels] when each has ended, with the exchanges of what it writes; NULL:
 * not asked. O(kernels + exchanges). */
enum hv_status hv__pass_times(const struct hv__order_query *q, enum hv__pass_of which,
                              struct hv__pass_times *out, double *end_s,
                              struct hv_err *err) HV_NODISCARD;

#endif
