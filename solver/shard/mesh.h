/**
 * A mesh of devices: named axes are the caller's; here an axis is a number. Every axis is cut into
 * its prime factors ("atoms", larger primes first), because a tensor may be split over a part of an
 * axis: 8 = 2 · 4 splits a dimension of size 2 over half of the axis.
 */
#ifndef HV_SOLVER_SHARD_MESH_H
#define HV_SOLVER_SHARD_MESH_H

#include "solver/base/status.h"
#include <stddef.h>
#include <stdint.h>

#define HV_MESH_AXES  8  /**< axes of a mesh */
#define HV_MESH_ATOMS 16 /**< prime factors of all axes together */

/** A mesh. The last axis is the fastest in the order of devices. */
struct hv_mesh {
    size_t n_axes, n_atoms;
    int64_t size[HV_MESH_AXES];      /**< devices along each axis */
    uint8_t first[HV_MESH_AXES + 1]; /**< atoms of axis a: first[a] to first[a + 1] - 1, the major
                                        one first */
    int64_t atom[HV_MESH_ATOMS];     /**< size of each atom, a prime */
    int64_t n_devices;
};

/** Makes a mesh of n axes. Errors: HV_EINPUT for a size below 1, HV_ELIMIT for too many axes,
 * prime factors or (2^31) devices. */
enum hv_status hv_mesh_make(struct hv_mesh *out, const int64_t *sizes, size_t n,
                            struct hv_err *err) HV_NODISCARD;
/** Axis that an atom belongs to. */
size_t hv_mesh_axis_of(const struct hv_mesh *m, size_t atom);
/** Devices in a group along these atoms (bit a = atom a): the product of their sizes. */
int64_t hv_mesh_group(const struct hv_mesh *m, uint32_t atoms);
/** Set of all atoms of an axis. */
uint32_t hv_mesh_axis_atoms(const struct hv_mesh *m, size_t axis);
/** Coordinates of a device along all atoms, digit[n_atoms]. */
void hv_mesh_digits(const struct hv_mesh *m, int64_t device, int64_t *digit);

#endif
