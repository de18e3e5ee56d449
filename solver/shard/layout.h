/**
 * Layouts: how a tensor lies on a mesh. Each dimension is split over an ordered list of atoms
 * (major first); over some atoms the tensor may be *partial*: each device holds a summand, or a
 * candidate for the largest value. Over all other atoms it is replicated.
 */
#ifndef HV_SOLVER_SHARD_LAYOUT_H
#define HV_SOLVER_SHARD_LAYOUT_H

#include "solver/shard/mesh.h"
#include <stdbool.h>

#define HV_SHARD_DIMS 8 /**< dimensions of a tensor */

/** An ordered list of atoms, the major one first. */
struct hv_axes {
    uint8_t n;
    uint8_t atom[HV_MESH_ATOMS];
};

/** A layout. An atom stands in one place at most. Bytes that no member uses are zero. */
struct hv_layout {
    uint8_t n_dims;
    struct hv_axes dim[HV_SHARD_DIMS];
    uint32_t sum, max; /**< atoms (bits) over which the values are summands, or candidates */
};

/** Shape of a tensor: elements per dimension. */
struct hv_shape {
    uint8_t n_dims;
    int64_t size[HV_SHARD_DIMS];
    int64_t element_bytes;
};

/** The layout of a tensor that every device holds whole. */
struct hv_layout hv_layout_whole(size_t n_dims);
/** Product of the sizes of the atoms of a list: parts that a dimension is cut into. */
int64_t hv_axes_parts(const struct hv_mesh *m, const struct hv_axes *a);
/** Set of the atoms of a list. */
uint32_t hv_axes_set(const struct hv_axes *a);
/** Appends an atom, or all atoms of a list. */
void hv_axes_push(struct hv_axes *a, uint8_t atom);
void hv_axes_append(struct hv_axes *a, const struct hv_axes *b);
/** Shortens a list to its first n atoms. */
void hv_axes_cut(struct hv_axes *a, size_t n);
bool hv_axes_equal(const struct hv_axes *a, const struct hv_axes *b);
/** Set of the atoms that split a dimension. */
uint32_t hv_layout_splits(const struct hv_layout *l);
/** Set of the atoms that split or are partial. */
uint32_t hv_layout_used(const struct hv_layout *l);
bool hv_layout_equal(const struct hv_layout *a, const struct hv_layout *b);
/** Number of a layout for tables, mixed into h (HV_HASH_START first). */
uint64_t hv_layout_hash(uint64_t h, const struct hv_layout *l);
/** True where every dimension is a multiple of its parts. */
bool hv_layout_divides(const struct hv_layout *l, const struct hv_mesh *m,
                       const struct hv_shape *shape);
/** Bytes of a device's part (the largest one where a dimension does not divide). */
double hv_layout_bytes(const struct hv_layout *l, const struct hv_mesh *m,
                       const struct hv_shape *shape);
/** Number of the part of a dimension that a device holds, from its digits (hv_mesh_digits). */
int64_t hv_axes_part(const struct hv_mesh *m, const struct hv_axes *a, const int64_t *digit);

#endif
