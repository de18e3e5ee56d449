/**
 * Memory that hosts and other devices give to offloads: weights and states that lie there all the
 * time, activations from the first byte of their copy out to the last byte of their copy back. A
 * device that runs a stage keeps them beside its own.
 */
#include "solver/eval/moves/moves.h"

#include <stdio.h>
#include <stdlib.h>

#include "solver/base/rng.h"

/** What one rank gives to one place: a share of the moves of a lane, or bytes that stay. */
struct gift {
    uint64_t place; /**< 2 × node: its host; 2 × device + 1 */
    size_t pipeline, rank;
    int32_t lane; /**< out; −1: bytes that stay */
    double share, bytes;
};

struct gifts {
    struct gift *items;
    size_t n, cap;
};

static void give(struct gifts *g, const struct gift *x)
{
    if (g->n == g->cap) {
        g->cap = g->cap > 0 ? 2 * g->cap : 64;
        g->items = hv_xrealloc(g->items, g->cap, sizeof *g->items);
    }
    g->items[g->n++] = *x;
}

/* ---- what ranks give ----------------------------------------------------------------------------
 */

/** Bytes of an offload of a rank that stay where they are, of one device of a dp rank. Activations
 * that each pass waits for: those of all micro-batches in flight. */
static double staying_bytes(const struct hv__pipeline *pl, size_t rank, size_t item, size_t i_dp,
                            int32_t in_flight)
{
    const struct hv__rank *rk = &pl->ranks[rank];
    const struct hv_stage *s = &pl->replica->stages[rk->stage];
    double share = hv_stage_offload_share(s, item), most = 0;
    switch (s->offload[item].what) {
    case HV_OFFLOAD_WEIGHTS:
        return share * rk->memory[i_dp].away_weights_bytes;
    case HV_OFFLOAD_OPTIMIZER:
        return share * rk->memory[i_dp].away_states_bytes;
    case HV_OFFLOAD_ACTIVATIONS:
    case hv_offload_what_N:
        break;
    }
    for (size_t g = 0; g < pl->n_pipes * pl->n_gstages; g++) {
        for (size_t i = 0; pl->gstages[g].rank == rank && i < pl->n_shapes; i++) {
            if (pl->shape_of_stage != NULL && pl->shape_of_stage[g % pl->n_gstages] != i) {
                continue;
            }
            most = fmax(most, pl->gstages[g].plain[i * rk->n_dp + i_dp].away_bytes);
        }
    }
    return share * most * in_flight;
}

/** The lane out of a rank's offload, or −1: no lane carries it. Ranks in turns share the offloads
 * of their stage. */
static int32_t lane_of(const struct hv__pipeline *pl, size_t rank, const struct hv_offload *o)
{
    for (int32_t i = 0; i < pl->moving.n_lanes; i++) {
        const struct hv__move_lane *lane = &pl->moving.lanes[i];
        if (lane->to == o && lane->rank == rank && !lane->back) {
            return i;
        }
    }
    return -1;
}

/** What one offload of a rank gives in one copy of its pipeline. */
static void give_item(const struct hv__lowered *l, struct gifts *g, struct gift x, size_t item,
                      int copy, int32_t in_flight)
{
    const struct hv__pipeline *pl = &l->pipelines.items[x.pipeline];
    const struct hv__rank *rk = &pl->ranks[x.rank];
    const struct hv_offload *o = &pl->replica->stages[rk->stage].offload[item];
    const uint32_t *devices = hv__devices_of(pl, rk, copy);
    double all = 0;
    for (size_t i = 0; i < rk->n_devices; i++) {
        size_t d = i / rk->width < rk->n_dp ? i / rk->width : rk->n_dp - 1;
        double bytes = x.lane < 0 ? staying_bytes(pl, x.rank, item, d, in_flight) : 0;
        all += bytes;
        if (o->to_host) {
            x.place = 2 * (uint64_t)hv_cluster_node_of(hv_cost_cluster(l->k), devices[i]);
            x.share = 1 / (double)rk->n_devices;
            x.bytes = bytes;
            give(g, &x);
        }
    }
    for (size_t i = 0; !o->to_host && i < o->n_devices; i++) {
        x.place = 2 * (uint64_t)o->devices[i] + 1;
        x.share = 1 / (double)o->n_devices;
        x.bytes = all / (double)o->n_devices;
        give(g, &x);
    }
}

static int by_place(const void *a, const void *b)
{
    const struct gift *x = a, *y = b;
    if (x->place != y->place) {
        return x->place < y->place ? -1 : 1;
    }
    if (x->pipeline != y->pipeline) {
        return x->pipeline < y->pipeline ? -1 : 1;
    }
    return x->lane != y->lane ? (x->lane > y->lane) - (x->lane < y->lane)
                              : (x->rank > y->rank) - (x->rank < y->rank);
}

/** All gifts, by place; those of one lane, or of one rank's bytes, to one place are one. */
static struct gifts list_gifts(const struct hv__lowered *l)
{
    struct gifts g = {0};
    for (size_t u = 0; u < l->pipelines.n; u++) {
        const struct hv__pipeline *pl = &l->pipelines.items[u];
        int32_t *in_flight = NULL;
        for (size_t r = 0; r < pl->n_ranks; r++) {
            const struct hv_stage *s = &pl->replica->stages[pl->ranks[r].stage];
            if (s->n_offload > 0 && in_flight == NULL) {
                in_flight = hv_arena_new(l->arena, int32_t, pl->n_ranks);
                hv_schedule_peak_inflight(pl->schedule, in_flight);
            }
            for (size_t i = 0; i < s->n_offload; i++) {
                struct gift x = {.pipeline = u, .rank = r, .lane = lane_of(pl, r, &s->offload[i])};
                for (int k = 0; k < pl->multiplicity; k++) {
                    give_item(l, &g, x, i, pl->copies[k], in_flight[r]);
                }
            }
        }
    }
    if (g.n > 1) {
        qsort(g.items, g.n, sizeof *g.items, by_place);
    }
    size_t n = 0;
    for (size_t i = 0; i < g.n; i++) {
        if (n > 0 && by_place(&g.items[n - 1], &g.items[i]) == 0) {
            g.items[n - 1].share += g.items[i].share;
            g.items[n - 1].bytes += g.items[i].bytes;
        } else {
            g.items[n++] = g.items[i];
        }
    }
    g.n = n;
    return g;
}

/* ---- what places keep ---------------------------------------------------------------------------
 */

/** Changes of a place by its gifts, in time order; base: what stays. */
static struct hv_memory_changes changes_by(const struct hv__lowered *l, const struct gift *g,
                                           size_t n)
{
    size_t most = 0, at = 0;
    double stays = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hv__moving *m = &l->pipelines.items[g[i].pipeline].moving;
        most += g[i].lane >= 0 ? m->rank_at[g[i].rank + 1] - m->rank_at[g[i].rank] : 0;
        stays += g[i].lane < 0 ? g[i].bytes : 0;
    }
    struct hv_memory_change *out = hv_arena_new(l->arena, struct hv_memory_change, most + 1);
    for (size_t i = 0; i < n; i++) {
        const struct hv__moving *m = &l->pipelines.items[g[i].pipeline].moving;
        const struct hv_link_moved *moved = m->later_s > 0 ? m->short_moved : m->moved;
        size_t first = g[i].lane >= 0 ? m->rank_at[g[i].rank] : 0;
        size_t last = g[i].lane >= 0 ? m->rank_at[g[i].rank + 1] : 0;
        for (size_t k = first; k < last; k++) {
            const struct hv_link_move *x = &m->moves[k];
            double bytes = x->scale * m->lanes[g[i].lane].bytes * g[i].share;
            if (x->lane == g[i].lane) {
                out[at++] = (struct hv_memory_change){.at_s = moved[k].start_s, .bytes = bytes};
            } else if (x->lane == g[i].lane + 1) {
                out[at++] = (struct hv_memory_change){.at_s = moved[k].end_s, .bytes = -bytes};
            }
        }
    }
    hv_memory_sort(out, at);
    return (struct hv_memory_changes){out, at, stays};
}

/** Equal for places that keep the same of the same ranks. */
static uint64_t hash_of(const struct gift *g, size_t n)
{
    uint64_t h = HV_HASH_START;
    for (size_t i = 0; i < n; i++) {
        h = hv_hash(h, &g[i].pipeline, sizeof g[i].pipeline);
        h = hv_hash(h, &g[i].rank, sizeof g[i].rank);
        h = hv_hash(h, &g[i].lane, sizeof g[i].lane);
        h = hv_hash(h, &g[i].share, sizeof g[i].share);
        h = hv_hash(h, &g[i].bytes, sizeof g[i].bytes);
    }
    return h;
}

static const char *name_of(const struct hv__lowered *l, uint64_t place)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    if (place % 2 == 0) {
        const struct hv_node_group *g = hv_cluster_group_of_node(c, (uint32_t)(place / 2));
        return hv_arena_printf(l->arena, "host of %s[%u]", g->name,
                               (uint32_t)(place / 2) - g->first_node);
    }
    struct hv_str s = {0};
    const uint32_t device = (uint32_t)(place / 2);
    hv_address_format(c, &device, 1, ",", &s);
    const char *name = hv_arena_strdup(l->arena, hv_str_cstr(&s));
    hv_str_free(&s);
    return name;
}

/** Finds the rank that runs on the device of a place. O(devices). */
static void find_owner(const struct hv__lowered *l, struct hv__kept_place *out)
{
    for (size_t u = 0; u < l->pipelines.n; u++) {
        const struct hv__pipeline *pl = &l->pipelines.items[u];
        for (size_t r = 0; r < pl->n_ranks; r++) {
            const struct hv__rank *rk = &pl->ranks[r];
            for (int k = 0; k < pl->multiplicity; k++) {
                const uint32_t *d = hv__devices_of(pl, rk, pl->copies[k]);
                for (size_t i = 0; i < rk->n_devices; i++) {
                    if (d[i] == out->device) {
                        out->owned = true;
                        out->pipeline = u;
                        out->rank = r;
                        out->i_dp = i / rk->width < rk->n_dp ? i / rk->width : rk->n_dp - 1;
                        return;
                    }
                }
            }
        }
    }
}

static void report(const struct hv__lowered *l, const struct hv_kept_memory *k,
                   const struct gift *from)
{
    const struct hv__pipeline *pl = &l->pipelines.items[from->pipeline];
    double over = k->peak_bytes - k->limit_bytes;
    char where[64], keeps[HV_FMT_CAP], has[HV_FMT_CAP], by[HV_FMT_CAP], more[48] = "";
    if (!(over > 0)) {
        return;
    }
    if (k->n_alike > 1) {
        (void)snprintf(more, sizeof more, " (and %zu like it)", k->n_alike - 1);
    }
    (void)snprintf(where, sizeof where, "replicas[%zu].stages[%zu].offload", pl->i_replica,
                   pl->ranks[from->rank].stage);
    hv_finding_add(
        l->findings, HV_V_MEMORY, over, where,
        "%s%s keeps %s of what stages offload and has %s: %s too much; offload a smaller "
        "part, or to more places",
        k->place, more, hv_fmt_bytes(keeps, sizeof keeps, k->peak_bytes),
        hv_fmt_bytes(has, sizeof has, k->limit_bytes), hv_fmt_bytes(by, sizeof by, over));
}

/** Fills one place that keeps the gifts g[0 … n − 1]. */
static struct hv__kept_place keep(const struct hv__lowered *l, const struct gift *g, size_t n,
                                  struct hv_kept_memory *out)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    uint32_t id = (uint32_t)(g->place / 2);
    struct hv__kept_place x = {.changes = changes_by(l, g, n), .device = id};
    struct hv_pipe_peak peak = hv_memory_peak(&x.changes);
    *out = (struct hv_kept_memory){.host = g->place % 2 == 0,
                                   .place = name_of(l, g->place),
                                   .n_alike = 1,
                                   .kept_bytes = peak.peak_bytes,
                                   .peak_bytes = peak.peak_bytes,
                                   .peak_at_s = peak.peak_at_s};
    if (out->host) {
        out->limit_bytes = hv_cluster_group_of_node(c, id)->host_memory_bytes;
        return x;
    }
    out->limit_bytes = hv_device_usable_bytes(hv_cost_job(l->k), hv_cluster_device(c, id).kind);
    find_owner(l, &x);
    return x;
}

/** True where the place after one that was filled is a host with the same content and capacity. */
static bool is_like(const struct hv__lowered *l, const struct gift *g, bool same,
                    const struct hv_kept_memory *before)
{
    if (g->place % 2 != 0 || !before->host || !same) {
        return false;
    }
    double limit = hv_cluster_group_of_node(hv_cost_cluster(l->k), (uint32_t)(g->place / 2))
                       ->host_memory_bytes;
    return hv_known(limit) ? limit == before->limit_bytes : !hv_known(before->limit_bytes);
}

/** Fills all places of the gifts. */
static struct hv__kept_place *keep_all(const struct hv__lowered *l, const struct gifts *g,
                                       struct hv_verdict *out)
{
    uint64_t before = 0;
    const struct gift **from = hv_arena_new(l->arena, const struct gift *, g->n + 1);
    struct hv__kept_place *places = hv_arena_new(l->arena, struct hv__kept_place, g->n + 1);
    out->kept = hv_arena_new(l->arena, struct hv_kept_memory, g->n + 1);
    for (size_t i = 0, last; i < g->n; i = last) {
        for (last = i; last < g->n && g->items[last].place == g->items[i].place; last++) {
        }
        uint64_t h = hash_of(&g->items[i], last - i);
        struct hv_kept_memory *k = &out->kept[out->n_kept];
        if (out->n_kept > 0 && is_like(l, &g->items[i], h == before, &k[-1])) {
            k[-1].n_alike++;
            continue;
        }
        before = h;
        from[out->n_kept] = &g->items[i];
        places[out->n_kept++] = keep(l, &g->items[i], last - i, k);
    }
    for (size_t i = 0; i < out->n_kept; i++) {
        if (!places[i].owned) {
            report(l, &out->kept[i], from[i]);
        }
    }
    return places;
}

struct hv__kept_place *hv__find_kept(const struct hv__lowered *l, struct hv_verdict *out)
{
    bool any = false;
    for (size_t i = 0; i < l->plan->n_replicas && !any; i++) {
        for (size_t k = 0; k < l->plan->replicas[i].n_stages; k++) {
            any = any || l->plan->replicas[i].stages[k].n_offload > 0;
        }
    }
    if (!any) {
        return NULL;
    }
    struct gifts g = list_gifts(l);
    struct hv__kept_place *places = keep_all(l, &g, out);
    free(g.items);
    return places;
}
