/**
 * Inside cost: a stage of an operator graph on a mesh of devices. Layouts of all tensors follow
 * from the few that the plan gives (solver/shard); operators become kernels of the shapes that one
 * device has, exchanges run beside those that do not need them.
 *
 * Order of the files, each of which uses those before it: place (mesh and layouts), exchange
 * (seconds of an exchange), kernels (which primitives run together, and for how long), order (tasks
 * of a pass on compute and links), live (bytes over that order), work (a range of operators, solved
 * and timed), splits (single operators under all their splits), stage (the calls).
 */
#ifndef HV_SOLVER_COST_GRAPH_GRAPH_H
#define HV_SOLVER_COST_GRAPH_GRAPH_H

#include "solver/cost/graph/splits.h"
#include "solver/cost/stage/stage_int.h"

extern const struct hv__parts hv__tensor_parts; /**< parts.c */

/** Solved and priced stages, remembered. Owner: hv__graphs_free. */
struct hv__graphs;
void hv__graphs_free(struct hv__graphs *g);

/** A pass of a stage of operators (hv_cost_pass). */
enum hv_status hv__graph_pass(struct hv__context *k, const struct hv_stage_query *q,
                              struct hv_pass *out, struct hv_err *err) HV_NODISCARD;
/** hv__parts.count of graphs in long form. */
enum hv_status hv__graph_counts(struct hv__context *k, const struct hv_stage_query *q,
                                const struct hv__rank *r, struct hv__rank_counts *out,
                                struct hv_err *err) HV_NODISCARD;
/** hv_cost_graph_parameters; a parameter counts at the operator that reads it first. */
enum hv_status hv__graph_parameters(struct hv__context *k, const struct hv_stage_query *q,
                                    double *of_block, struct hv_err *err) HV_NODISCARD;
/** hv_cost_splits. */
enum hv_status hv__graph_splits(struct hv__context *k, const struct hv_stage_query *q,
                                struct hv_arena *arena, struct hv_splits *out,
                                struct hv_err *err) HV_NODISCARD;

#endif
