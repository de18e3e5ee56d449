/**
 * Paths that were looked for, remembered: between two layouts of a shape, on one mesh and at one
 * price of exchanges. For callers that lower many graphs on the same mesh.
 */
#ifndef HV_SOLVER_SHARD_PATHS_H
#define HV_SOLVER_SHARD_PATHS_H

#include "solver/shard/reshard.h"

/** A path that was looked for. */
struct hv_known_path {
    struct hv_shape shape;
    struct hv_layout from, to;
    struct hv_reshard path;
    bool possible; /**< false: no exchanges lead there */
};

struct hv_paths;

/** An empty memory. Mesh and pricing are borrowed. Owner: hv_paths_free. */
struct hv_paths *hv_paths_new(const struct hv_mesh *m, const struct hv_pricing *pricing);
void hv_paths_free(struct hv_paths *p);
/** The cheapest path (hv_reshard_path); it lives as long as the memory. O(1) when seen before. */
const struct hv_known_path *hv_paths_find(struct hv_paths *p, const struct hv_shape *shape,
                                          const struct hv_layout *from, const struct hv_layout *to);

#endif
