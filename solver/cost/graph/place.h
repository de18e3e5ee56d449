/** Inside cost/graph: the mesh of a stage and the layouts that its plan gives. */
#ifndef HV_SOLVER_COST_GRAPH_PLACE_H
#define HV_SOLVER_COST_GRAPH_PLACE_H

#include "solver/cost/part/context.h"
#include "solver/workload/graph/graph_part.h"
#include "solver/workload/graph/sharded.h"

/** The mesh of one data-parallel rank: axes of the plan's mesh behind those that are data parallel.
 */
struct hv__mesh_place {
    struct hv_mesh mesh;
    const char *const *axis; /**< their names */
    const uint32_t *devices; /**< [mesh.n_devices], in the order of the mesh */
};

/** Finds it: leading axes of the plan's mesh whose sizes multiply to `dp` are data parallel. A
 * stage without mesh has one device. Errors: HV_ENO where sizes and `n` devices do not fit. */
enum hv_status hv__mesh_place(const struct hv_stage *s, size_t dp, const uint32_t *devices,
                              size_t n, struct hv__mesh_place *out, struct hv_err *err);
/** Layouts of the tensors that patterns of the stage name; the last pattern counts. Axes that are
 * not in `p` are left out, and dimensions that a tensor does not have. *out lives in the arena.
 * Errors: HV_ENO where a dimension does not divide. */
enum hv_status hv__given_layouts(const struct hv_stage *s, const struct hv__mesh_place *p,
                                 const struct hv_tensor_graph *g, struct hv_arena *arena,
                                 struct hv_given_layout **out, size_t *n, struct hv_err *err);

#endif
