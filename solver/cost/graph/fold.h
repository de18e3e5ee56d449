/** Inside cost/graph: completed layouts of a stage's tensors as rules of `shard`, folded. */
#ifndef HV_SOLVER_COST_GRAPH_FOLD_H
#define HV_SOLVER_COST_GRAPH_FOLD_H

#include "solver/cost/graph/place.h"

/** A rule: tensors that a pattern names, and their layout as a plan writes it. */
struct hv__folded {
    const char *pattern; /**< numbers in names are folded: "layer*.up" */
    const char *layout;  /**< {"x": "heads"}; {"heads": ["y", "x"]} where axes of one dimension do
                            not  stand in the order of the mesh; {} replicated */
    size_t n;            /**< tensors that it gives their layout */
    double bytes;        /**< of all of them on one device */
};
/** Rules that give every tensor of a solved graph its layout, the last match counting: of names
 * that differ in numbers the commonest layout by pattern, others by name behind it. Axes that are
 * data parallel are left out. *out lives in the arena; returns its length. O(tensors · rules). */
size_t hv__fold_layouts(const struct hv_tensor_graph *g, const struct hv_sharding *s,
                        const struct hv__mesh_place *p, struct hv_arena *arena,
                        struct hv__folded **out);

#endif
