/**
 * Overlaps of parts: what devices lack of a new layout, and who has it; also between places of
 * different shape.
 */
#ifndef HV_SOLVER_SHARD_OVERLAP_H
#define HV_SOLVER_SHARD_OVERLAP_H

#include "solver/base/arena.h"
#include "solver/shard/layout.h"

/** Bytes of its new part that a device does not hold yet, mean over the devices: no exchange can do
 * with less. Layouts without partial values. O(devices). */
double hv_overlap_least(const struct hv_mesh *m, const struct hv_shape *shape,
                        const struct hv_layout *from, const struct hv_layout *to);

/** A piece of a tensor that device `from` of one mesh sends to device `to` of another. */
struct hv_piece {
    int64_t from, to;
    double bytes;
};
/** All pieces of a transfer. */
struct hv_pieces {
    size_t n;
    struct hv_piece *piece;
};
/**
 * Who sends what between two meshes: every receiver gets each element of its part once. Of several
 * devices that hold a piece, receivers take them in turn. Ordered by receiver, then sender. Layouts
 * without partial values. O(devices · devices).
 */
struct hv_pieces hv_overlap_pieces(const struct hv_mesh *from_mesh, const struct hv_layout *from,
                                   const struct hv_mesh *to_mesh, const struct hv_layout *to,
                                   const struct hv_shape *shape, struct hv_arena *arena);

#endif
