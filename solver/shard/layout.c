/** Layouts: sets, sizes and comparisons. */
#include "solver/shard/layout.h"

#include <string.h>

struct hv_layout hv_layout_whole(size_t n_dims)
{
    return (struct hv_layout){.n_dims = (uint8_t)n_dims};
}

int64_t hv_axes_parts(const struct hv_mesh *m, const struct hv_axes *a)
{
    int64_t n = 1;
    for (size_t i = 0; i < a->n; i++) {
        n *= m->atom[a->atom[i]];
    }
    return n;
}

uint32_t hv_axes_set(const struct hv_axes *a)
{
    uint32_t set = 0;
    for (size_t i = 0; i < a->n; i++) {
        set |= 1U << a->atom[i];
    }
    return set;
}

void hv_axes_push(struct hv_axes *a, uint8_t atom)
{
    a->atom[a->n++] = atom;
}

void hv_axes_append(struct hv_axes *a, const struct hv_axes *b)
{
    for (size_t i = 0; i < b->n; i++) {
        hv_axes_push(a, b->atom[i]);
    }
}

void hv_axes_cut(struct hv_axes *a, size_t n)
{
    while (a->n > n) {
        a->atom[--a->n] = 0;
    }
}

bool hv_axes_equal(const struct hv_axes *a, const struct hv_axes *b)
{
    return a->n == b->n && memcmp(a->atom, b->atom, a->n) == 0;
}

uint32_t hv_layout_splits(const struct hv_layout *l)
{
    uint32_t set = 0;
    for (size_t d = 0; d < l->n_dims; d++) {
        set |= hv_axes_set(&l->dim[d]);
    }
    return set;
}

uint32_t hv_layout_used(const struct hv_layout *l)
{
    return hv_layout_splits(l) | l->sum | l->max;
}

bool hv_layout_equal(const struct hv_layout *a, const struct hv_layout *b)
{
    bool same = a->n_dims == b->n_dims && a->sum == b->sum && a->max == b->max;
    for (size_t d = 0; same && d < a->n_dims; d++) {
        same = hv_axes_equal(&a->dim[d], &b->dim[d]);
    }
    return same;
}

/* A number per atom: hv_hash_words, which takes bytes, made whole searches slower by a third. */
static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9E3779B97F4A7C15U;
    return h ^ h >> 32;
}

uint64_t hv_layout_hash(uint64_t h, const struct hv_layout *l)
{
    h = mix(h, l->sum | (uint64_t)l->max << 32);
    for (size_t d = 0; d < l->n_dims; d++) {
        for (size_t i = 0; i < l->dim[d].n; i++) {
            h = mix(h, l->dim[d].atom[i] + 1U);
        }
        h = mix(h, 99);
    }
    return h;
}

bool hv_layout_divides(const struct hv_layout *l, const struct hv_mesh *m,
                       const struct hv_shape *shape)
{
    for (size_t d = 0; d < l->n_dims; d++) {
        if (shape->size[d] % hv_axes_parts(m, &l->dim[d]) != 0) {
            return false;
        }
    }
    return true;
}

double hv_layout_bytes(const struct hv_layout *l, const struct hv_mesh *m,
                       const struct hv_shape *shape)
{
    double bytes = (double)shape->element_bytes;
    for (size_t d = 0; d < shape->n_dims; d++) {
        int64_t parts = hv_axes_parts(m, &l->dim[d]);
        bytes *= (double)((shape->size[d] + parts - 1) / parts);
    }
    return bytes;
}

int64_t hv_axes_part(const struct hv_mesh *m, const struct hv_axes *a, const int64_t *digit)
{
    int64_t part = 0;
    for (size_t i = 0; i < a->n; i++) {
        part = part * m->atom[a->atom[i]] + digit[a->atom[i]];
    }
    return part;
}
