/** A mesh of devices and the prime factors of its axes. */
#include "solver/shard/mesh.h"

#include <inttypes.h>

#define MOST_DEVICES ((int64_t)1 << 31)

/* Appends the prime factors of an axis, larger ones first. */
static enum hv_status add_atoms(struct hv_mesh *m, int64_t size, struct hv_err *err)
{
    int64_t primes[64];
    size_t n = 0;
    for (int64_t p = 2; size > 1; p++) {
        if (p * p > size) {
            p = size;
        }
        for (; size % p == 0; size /= p) {
            primes[n++] = p;
        }
    }
    if (m->n_atoms + n > HV_MESH_ATOMS) {
        return hv_err_set(err, HV_ELIMIT,
                          "the axes of a mesh may have at most %d prime factors together",
                          HV_MESH_ATOMS);
    }
    while (n > 0) {
        m->atom[m->n_atoms++] = primes[--n];
    }
    return HV_OK;
}

enum hv_status hv_mesh_make(struct hv_mesh *out, const int64_t *sizes, size_t n, struct hv_err *err)
{
    *out = (struct hv_mesh){.n_axes = n, .n_devices = 1};
    if (n > HV_MESH_AXES) {
        return hv_err_set(err, HV_ELIMIT, "a mesh may have at most %d axes, found %zu",
                          HV_MESH_AXES, n);
    }
    for (size_t a = 0; a < n; a++) {
        if (sizes[a] < 1 || sizes[a] > MOST_DEVICES) {
            return hv_err_set(err, HV_EINPUT,
                              "expected 1 to 2^31 devices along an axis, found %" PRId64, sizes[a]);
        }
        enum hv_status st = add_atoms(out, sizes[a], err);
        if (st) {
            return st;
        }
        out->size[a] = sizes[a];
        out->first[a + 1] = (uint8_t)out->n_atoms;
        out->n_devices *= sizes[a];
        if (out->n_devices > MOST_DEVICES) {
            return hv_err_set(err, HV_ELIMIT,
                              "a mesh may have at most 2^31 devices, its first %zu axes have "
                              "%" PRId64 " together: make them smaller",
                              a + 1, out->n_devices);
        }
    }
    return HV_OK;
}

size_t hv_mesh_axis_of(const struct hv_mesh *m, size_t atom)
{
    size_t a = 0;
    while (atom >= m->first[a + 1]) {
        a++;
    }
    return a;
}

int64_t hv_mesh_group(const struct hv_mesh *m, uint32_t atoms)
{
    int64_t n = 1;
    for (size_t i = 0; i < m->n_atoms; i++) {
        n *= (atoms >> i & 1) != 0 ? m->atom[i] : 1;
    }
    return n;
}

uint32_t hv_mesh_axis_atoms(const struct hv_mesh *m, size_t axis)
{
    return (uint32_t)((1U << m->first[axis + 1]) - (1U << m->first[axis]));
}

void hv_mesh_digits(const struct hv_mesh *m, int64_t device, int64_t *digit)
{
    for (size_t i = m->n_atoms; i-- > 0;) {
        digit[i] = device % m->atom[i];
        device /= m->atom[i];
    }
}
