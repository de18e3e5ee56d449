/**
 * Parts of a graph: the same operators for another number of sequences, and consecutive operators
 * as a graph of their own.
 */
#ifndef HV_SOLVER_WORKLOAD_GRAPH_GRAPH_PART_H
#define HV_SOLVER_WORKLOAD_GRAPH_GRAPH_PART_H

#include "solver/workload/graph/tensor_graph.h"

/** The graph for so many sequences: its dimension `batch`, and those that a reshape makes of it,
 * have other sizes; the rest is borrowed. A graph without such a dimension stays as it is. Errors:
 * HV_EINPUT where sizes do not follow from that of the batch. O(dims + ops). */
enum hv_status hv_tensor_graph_sized(const struct hv_tensor_graph *g, int64_t sequences,
                                     struct hv_arena *arena, struct hv_tensor_graph *out,
                                     struct hv_err *err) HV_NODISCARD;

/** Marks, in follows[n_dims], the dimensions whose size goes with the batch, none where the graph
 * has no batch. Errors: as above. O(rounds · ops), a round per reshape of a reshape. */
enum hv_status hv_tensor_graph_batch_dims(const struct hv_tensor_graph *g, bool *follows,
                                          struct hv_err *err) HV_NODISCARD;

/** Operators [from, to) of a graph. */
struct hv_graph_part {
    struct hv_tensor_graph graph; /**< what others write is an input here */
    uint32_t *whole;              /**< tensor of the part → tensor of the whole graph */
    uint32_t *arriving;           /**< tensors that operators before the part write */
    uint32_t *leaving;            /**< results that are read behind the part, or by nobody */
    size_t n_arriving, n_leaving;
    double passing_bytes; /**< of what is written before the part and also read behind it, and of
                             results read behind it: what goes on to the next part */
};
/** Cuts [from, to) out of a graph; `to` at most n_ops. Everything lives in the arena. O(tensors +
 * ops). */
void hv_graph_part_cut(const struct hv_tensor_graph *g, size_t from, size_t to,
                       struct hv_arena *arena, struct hv_graph_part *out);

#endif
