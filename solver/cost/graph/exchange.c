/** Seconds of exchanges on the devices of their axes. */
#include "solver/cost/graph/exchange.h"

#include "solver/base/str.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the price of an exchange depends on, in whole words. */
struct key {
    uint64_t kind, atoms;
    double local_bytes, sent_bytes;
};

struct hv__memo hv__wires_memo(void)
{
    return hv__memo_of(sizeof(struct key), sizeof(struct hv__wire_price));
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* Devices from one part of an atom to the next. */
static int64_t stride_of(const struct hv_mesh *m, size_t atom)
{
    int64_t stride = 1;
    for (size_t a = atom + 1; a < m->n_atoms; a++) {
        stride *= m->atom[a];
    }
    return stride;
}

/* Fills the places of a group along atoms, from its first device on. */
static size_t members_of(const struct hv_mesh *m, uint32_t atoms, int64_t first, int64_t *out)
{
    size_t n = 1;
    out[0] = first;
    for (size_t a = 0; a < m->n_atoms; a++) {
        if ((atoms >> a & 1) == 0) {
            continue;
        }
        int64_t stride = stride_of(m, a), size = m->atom[a];
        for (size_t i = n; i-- > 0;) {
            int64_t base = out[i];
            for (int64_t k = 0; k < size; k++) {
                out[i * (size_t)size + (size_t)k] = base + k * stride;
            }
        }
        n *= (size_t)size;
    }
    return n;
}

static bool is_first(const struct hv_mesh *m, uint32_t atoms, int64_t device)
{
    int64_t digit[HV_MESH_ATOMS];
    hv_mesh_digits(m, device, digit);
    for (size_t a = 0; a < m->n_atoms; a++) {
        if ((atoms >> a & 1) != 0 && digit[a] != 0) {
            return false;
        }
    }
    return true;
}

/* Groups that share the network with one: those side by side, of all data-parallel ranks. Atoms
 * that do not lie side by side: as many as there are. */
static double together(struct hv__wires *w, uint32_t atoms, size_t size, size_t first)
{
    const struct hv_mesh *m = &w->place->mesh;
    size_t last = 0, lowest = m->n_atoms, n = 0;
    for (size_t a = 0; a < m->n_atoms; a++) {
        if ((atoms >> a & 1) != 0) {
            lowest = lowest < a ? lowest : a;
            last = a;
            n++;
        }
    }
    if (last + 1 - lowest != n) {
        return (double)w->n_all / (double)size;
    }
    const struct hv_family f = {w->all, w->n_all, (size_t)stride_of(m, last), size};
    size_t before = (size_t)(w->place->devices - w->all);
    return hv__together(&w->k->network, w->k->cluster, &f, before + first);
}

/* ---- seconds --------------------------------------------------------------------------------- */

static double group_s(struct hv__wires *w, const struct hv_exchange *x, const uint32_t *ids,
                      size_t n, double beside)
{
    struct hv_collective_query q = {
        .bytes = x->local_bytes, .devices = ids, .n = n, .together = beside};
    q.op = x->kind == HV_EXCHANGE_GATHER           ? HV_ALL_GATHER
           : x->kind == HV_EXCHANGE_REDUCE         ? HV_ALL_REDUCE
           : x->kind == HV_EXCHANGE_REDUCE_SCATTER ? HV_REDUCE_SCATTER
                                                   : HV_ALL_TO_ALL;
    q.bytes *= x->kind == HV_EXCHANGE_GATHER ? (double)n : 1;
    uint64_t signature = hv__signature(w->k->cluster, ids, n);
    return hv__collective_s(&w->k->network, w->k->cluster, &q, signature);
}

/* Parts that change places: every device sends to the next one along the atoms. */
static double shift_s(struct hv__wires *w, const struct hv_exchange *x, const int64_t *members,
                      size_t n)
{
    uint32_t *ids = hv_xmalloc(2 * n * sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        ids[i] = w->place->devices[members[i]];
        ids[n + i] = w->place->devices[members[(i + 1) % n]];
    }
    double s = hv_cost_hop(w->k->cluster, ids, n, ids + n, n, x->sent_bytes * (double)n, NULL);
    free(ids);
    return s;
}

static bool collects(enum hv_exchange_kind k)
{
    return k == HV_EXCHANGE_GATHER || k == HV_EXCHANGE_REDUCE || k == HV_EXCHANGE_REDUCE_SCATTER ||
           k == HV_EXCHANGE_ALL_TO_ALL;
}

static struct hv__wire_price price(struct hv__wires *w, const struct hv_exchange *x)
{
    const struct hv_mesh *m = &w->place->mesh;
    struct hv__wire_price out = {0};
    int64_t *members = hv_xmalloc((size_t)m->n_devices * sizeof *members);
    uint32_t *ids = hv_xmalloc((size_t)m->n_devices * sizeof *ids);
    uint64_t seen = 0;
    for (int64_t d = 0; d < m->n_devices; d++) {
        if (!is_first(m, x->atoms, d)) {
            continue;
        }
        size_t n = members_of(m, x->atoms, d, members);
        for (size_t i = 0; i < n; i++) {
            ids[i] = w->place->devices[members[i]];
        }
        uint64_t signature = hv__signature(w->k->cluster, ids, n);
        if (d > 0 && signature == seen) {
            continue; /* as the one before */
        }
        seen = signature;
        bool far = hv_cluster_is_far(w->k->cluster, ids, n, 1);
        double s = collects(x->kind)
                       ? group_s(w, x, ids, n, far ? together(w, x->atoms, n, (size_t)d) : 1)
                       : shift_s(w, x, members, n);
        out.time_s = fmax(out.time_s, s);
        out.far |= far;
    }
    free(members);
    free(ids);
    out.time_s += w->wait_s;
    return out;
}

struct hv__wire_price hv__wire_price(struct hv__wires *w, const struct hv_exchange *x)
{
    struct key key = {(uint64_t)x->kind, x->atoms, x->local_bytes, x->sent_bytes};
    bool known = false;
    if (!(x->sent_bytes > 0)) {
        return (struct hv__wire_price){0};
    }
    struct hv__wire_price *p = hv__memo_at(&w->memo, &key, &known);
    if (!known) {
        *p = price(w, x);
    }
    return *p;
}

const char *hv__wire_text(const struct hv__wires *w, const struct hv_exchange *x,
                          struct hv_arena *arena)
{
    struct hv_str text = {0};
    const struct hv_mesh *m = &w->place->mesh;
    for (size_t a = 0; a < m->n_axes; a++) {
        uint32_t all = hv_mesh_axis_atoms(m, a), own = all & x->atoms;
        if (own != 0) {
            hv_str_addf(&text, "%s%s%s", hv_str_cstr(&text)[0] != '\0' ? ", " : "",
                        w->place->axis[a], own != all ? " (a part)" : "");
        }
    }
    const char *out = hv_arena_strdup(arena, hv_str_cstr(&text));
    hv_str_free(&text);
    return out;
}
