/** Overlaps of the parts of two layouts. */
#include "solver/shard/overlap.h"

/* Elements [lo, hi) of each dimension that a device holds. */
struct box {
    int64_t lo[HV_SHARD_DIMS], hi[HV_SHARD_DIMS];
};

static struct box box_of(const struct hv_mesh *m, const struct hv_layout *l,
                         const struct hv_shape *s, int64_t device)
{
    struct box b = {{0}, {0}};
    int64_t digit[HV_MESH_ATOMS];
    hv_mesh_digits(m, device, digit);
    for (size_t d = 0; d < s->n_dims; d++) {
        int64_t parts = hv_axes_parts(m, &l->dim[d]), part = hv_axes_part(m, &l->dim[d], digit);
        int64_t tile = (s->size[d] + parts - 1) / parts;
        b.lo[d] = part * tile < s->size[d] ? part * tile : s->size[d];
        b.hi[d] = b.lo[d] + tile < s->size[d] ? b.lo[d] + tile : s->size[d];
    }
    return b;
}

static double common_bytes(const struct box *a, const struct box *b, const struct hv_shape *s)
{
    double bytes = (double)s->element_bytes;
    for (size_t d = 0; d < s->n_dims; d++) {
        int64_t lo = a->lo[d] > b->lo[d] ? a->lo[d] : b->lo[d];
        int64_t hi = a->hi[d] < b->hi[d] ? a->hi[d] : b->hi[d];
        bytes *= hi > lo ? (double)(hi - lo) : 0;
    }
    return bytes;
}

double hv_overlap_least(const struct hv_mesh *m, const struct hv_shape *shape,
                        const struct hv_layout *from, const struct hv_layout *to)
{
    double sum = 0;
    for (int64_t d = 0; d < m->n_devices; d++) {
        struct box old = box_of(m, from, shape, d), own = box_of(m, to, shape, d);
        sum += common_bytes(&own, &own, shape) - common_bytes(&old, &own, shape);
    }
    return sum / (double)m->n_devices;
}

/* Number of a device among those that hold the same part: those that differ in unused atoms. */
static int64_t copy_of(const struct hv_mesh *m, const struct hv_layout *l, int64_t device)
{
    int64_t digit[HV_MESH_ATOMS], copy = 0;
    uint32_t split = hv_layout_splits(l);
    hv_mesh_digits(m, device, digit);
    for (size_t a = 0; a < m->n_atoms; a++) {
        copy = (split >> a & 1) != 0 ? copy : copy * m->atom[a] + digit[a];
    }
    return copy;
}

struct hv_pieces hv_overlap_pieces(const struct hv_mesh *from_mesh, const struct hv_layout *from,
                                   const struct hv_mesh *to_mesh, const struct hv_layout *to,
                                   const struct hv_shape *shape, struct hv_arena *arena)
{
    struct hv_pieces out = {0};
    int64_t n_from = from_mesh->n_devices;
    int64_t copies = n_from / hv_mesh_group(from_mesh, hv_layout_splits(from));
    size_t most = (size_t)(n_from / copies) * (size_t)to_mesh->n_devices;
    out.piece = hv_arena_new(arena, struct hv_piece, most + 1);
    for (int64_t t = 0; t < to_mesh->n_devices; t++) {
        struct box own = box_of(to_mesh, to, shape, t);
        for (int64_t f = 0; f < n_from; f++) {
            if (copy_of(from_mesh, from, f) != t % copies) {
                continue;
            }
            struct box old = box_of(from_mesh, from, shape, f);
            double bytes = common_bytes(&old, &own, shape);
            if (bytes > 0) {
                out.piece[out.n++] = (struct hv_piece){f, t, bytes};
            }
        }
    }
    return out;
}
