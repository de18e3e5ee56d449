/*
 * cluster:pick: free devices by a policy. The other views of the cluster are in api_input.c.
 */
#include "scripting/api/input_int.h"
#include "solver/base/units.h"

#include <stdlib.h>
#include <string.h>

/** A device that can be picked. */
struct candidate {
    uint32_t id, node;
    double flops_per_s, memory_bytes;
    uint32_t slot_on_node; /**< number of usable devices of its node before it */
    bool fresh;            /**< no device of its node is in use */
};

enum pick_policy { PICK_FRESH, PICK_APPEND, PICK_SCATTER, PICK_FASTEST, PICK_MEMORY };

static int compare_numbers(double a, double b)
{
    return (a > b) - (a < b);
}

/** Order of policy fresh; the other policies compare one more figure first. */
static int by_fresh(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    return a->fresh != b->fresh ? (a->fresh ? -1 : 1) : compare_numbers(a->id, b->id);
}
static int by_append(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    return a->fresh != b->fresh ? (a->fresh ? 1 : -1) : compare_numbers(a->id, b->id);
}
static int by_scatter(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    int c = compare_numbers(a->slot_on_node, b->slot_on_node);
    return c != 0 ? c : compare_numbers(a->id, b->id);
}
static int by_speed(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    int c = -compare_numbers(a->flops_per_s, b->flops_per_s);
    return c != 0 ? c : by_fresh(pa, pb);
}
static int by_memory(const void *pa, const void *pb)
{
    const struct candidate *a = pa, *b = pb;
    int c = -compare_numbers(a->memory_bytes, b->memory_bytes);
    return c != 0 ? c : by_fresh(pa, pb);
}

/** All devices that may be picked, in order of their numbers. */
static struct candidate *candidates_of(lua_State *L, const struct hv_cluster *c, const bool *used,
                                       size_t *n)
{
    struct candidate *list = hv__scratch_new(L, struct candidate, c->n_devices + 1);
    bool *busy = hv__scratch_new(L, bool, c->n_nodes + 1);
    const char *kind = hv__text(L, 2, "cluster:pick", "kind", NULL);
    uint32_t *seen = hv__scratch_new(L, uint32_t, c->n_nodes + 1);

    *n = 0;
    for (uint32_t i = 0; i < c->n_devices; i++) {
        if (used[i]) {
            busy[hv_cluster_device(c, i).node] = true;
        }
    }
    for (uint32_t i = 0; i < c->n_devices; i++) {
        struct hv_device_ref r = hv_cluster_device(c, i);
        uint32_t node = r.node;
        double flops = hv__peak_of(L, r.kind);
        if (used[i] || !hv__is_usable(L, c, i) || !hv_known(flops) || r.kind->cls == HV_CLASS_CPU ||
            (kind != NULL && strcmp(kind, r.kind->name) != 0)) {
            continue;
        }
        list[(*n)++] =
            (struct candidate){i, node, flops, r.kind->memory_bytes, seen[node]++, !busy[node]};
    }
    return list;
}

/***
Picks free accelerators (no CPUs) that compute in the job's precision, on nodes in state `ok`.
@function cluster:pick
@tparam table q {need = how many, policy = "fresh" (nodes without used devices first), "append"
(nodes with used ones first), "scatter" (one per node in turn), "fastest" or "memory" (most first),
used = list of device numbers not to take, kind = only of this kind}
@treturn table list of device numbers in the order they were picked; nil and the reason where there
are not enough
@units none: device numbers, from 1
@raise wrong arguments, a number that no device has
@usage local ids = ctx.cluster:pick{need = 2, policy = "fastest"}
print(ctx.cluster:address(ids))
*/
int hv__cluster_pick(lua_State *L)
{
    static const char *const keys[] = {"need", "policy", "used", "kind", NULL};
    static const char *const policies[] = {"fresh", "append", "scatter", "fastest", "memory"};
    static int (*const orders[])(const void *, const void *) = {by_fresh, by_append, by_scatter,
                                                                by_speed, by_memory};
    static const char fn[] = "cluster:pick";
    const struct hv_cluster *c = hv__cluster_at(L);
    bool *used = hv__scratch_new(L, bool, c->n_devices + 1);
    size_t n = 0, n_used = 0;

    hv__check_keys(L, 2, fn, keys);
    size_t need = (size_t)hv__int(L, 2, fn, "need", -1, 1, (int64_t)c->n_devices);
    int policy = hv__word(L, 2, fn, "policy", policies, HV_COUNT(policies), PICK_FRESH);
    if (lua_getfield(L, 2, "used") != LUA_TNIL) {
        const double *ids = hv__numbers(L, 2, fn, "used", &n_used);
        for (size_t i = 0; i < n_used; i++) {
            if (!(ids[i] >= 1 && ids[i] <= c->n_devices)) {
                return luaL_error(L, "%s: used: no device has number %f", fn, ids[i]);
            }
            used[(uint32_t)ids[i] - 1] = true;
        }
    }
    struct candidate *list = candidates_of(L, c, used, &n);
    if (n < need) {
        lua_pushnil(L);
        lua_pushfstring(L, "%d devices are free, %d are needed", (int)n, (int)need);
        return 2;
    }
    qsort(list, n, sizeof *list, orders[policy]);
    lua_createtable(L, (int)need, 0);
    for (size_t i = 0; i < need; i++) {
        lua_pushinteger(L, (lua_Integer)list[i].id + 1);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}
