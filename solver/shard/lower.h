/**
 * Lowering: the exchanges that a graph with layouts needs. Every operator takes the split that
 * costs least for the layouts its operands have and its results must get; a tensor that was brought
 * into a layout once is there for all later readers.
 */
#ifndef HV_SOLVER_SHARD_LOWER_H
#define HV_SOLVER_SHARD_LOWER_H

#include "solver/shard/choice.h"
#include "solver/shard/graph.h"

/** One exchange of the lowered graph. */
struct hv_lowered_exchange {
    uint32_t op; /**< before its computation, or after it (its results); n_ops: results of the
                    graph */
    uint32_t tensor;
    struct hv_exchange exchange;
};
/** The exchanges in the order they are needed, and their sums. Lives in the arena of the call. */
struct hv_lowered {
    size_t n;
    struct hv_lowered_exchange *exchange;
    struct hv_layout **used; /**< per operator: layouts that it takes its operands in and leaves its
                                results in */
    double price, sent_bytes; /**< per device */
    bool cut;                 /**< a search met its limit: a cheaper way may exist */
};

/** Choices that are looked at for one operator, at most. */
#define HV_LOWER_CHOICES 20000

/** Lowers a graph whose tensors all have their layouts. Errors: HV_EINPUT where an operator can be
 * split in no way (a layout that no exchange leads to). */
enum hv_status hv_lower(const struct hv_shard_graph *g, const struct hv_pricing *pricing,
                        struct hv_arena *arena, struct hv_lowered *out,
                        struct hv_err *err) HV_NODISCARD;

#endif
