/**
 * Transfers between ranks: their seconds, and their load on the network. Copies of a pipeline run
 * in step, so their simultaneous transfers over the same links are one load. Other transfers that
 * share a link are simulated in links_shared.c.
 */
#include "solver/eval/moves/moves.h"
#include "solver/eval/train/steps.h"

#include <stdlib.h>
#include <string.h>

/** Bytes that a micro-batch (or slice) sends to the next stage; the average where they differ. */
static double hop_bytes(const struct hv__pipeline *pl, const struct hv__gstage *g)
{
    double bytes = 0;
    size_t n = (size_t)pl->n_mb * (size_t)(pl->n_slices > 1 ? pl->n_slices : 1);
    size_t n_dp = pl->ranks[g->rank].n_dp, cuts = pl->ranks[g->rank].cuts;
    for (size_t i = 0; i < pl->n_shapes; i++) {
        for (size_t d = 0; d < n_dp; d += cuts) {
            bytes += pl->n_of_shape[i] / (double)n * g->pass[i * n_dp + d].hop_bytes;
        }
    }
    return bytes;
}

/** Factor on the bytes of transfers by micro-batch and slice: its tokens over the average. NULL:
 * all are alike, or the number of samples of a module is not one factor for all stages. */
static double *scale_of_hops(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    size_t n = (size_t)pl->n_mb * (size_t)(pl->n_slices > 1 ? pl->n_slices : 1);
    double sum = 0, *scale = hv_arena_new(l->arena, double, n + 1);
    if (pl->n_shapes < 2 || l->schedule.scaled) {
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        const struct hv__shape *s = &pl->shapes[pl->shape_of[i]];
        scale[i] = s->sequences * s->tokens;
        sum += scale[i];
    }
    for (size_t i = 0; i < n; i++) {
        scale[i] *= (double)n / sum;
    }
    return scale;
}

/** True where a copy has nodes of its own and the network has no named links. Then its transfers
 * share links only as those of the first copy do. */
static bool is_apart(const struct hv__lowered *l, const struct hv__pipeline *pl, int copy)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    for (size_t i = 0; i < pl->n_ranks; i++) {
        const uint32_t *d = hv__devices_of(pl, &pl->ranks[i], copy);
        for (size_t k = 0; k < pl->ranks[i].n_devices; k++) {
            if (l->pipelines.crowded_nodes[hv_cluster_node_of(c, d[k])]) {
                return false;
            }
        }
    }
    return c->n_links == 0;
}

/** The transfer from one rank to another: chunks of the same two ranks send the same bytes over the
 * same paths, so each pair of ranks is priced once. Returns its number among the pipeline's
 * sendings. */
static int32_t sending_of(const struct hv__lowered *l, struct hv__pipeline *pl, size_t from,
                          size_t to, double bytes)
{
    struct hv__sending h = {.from = from, .to = to, .bytes = bytes};
    for (size_t i = 0; i < pl->hops.n_sendings; i++) {
        const struct hv__sending *x = &pl->hops.sendings[i];
        if (x->from == from && x->to == to && x->bytes == bytes) {
            return (int32_t)i;
        }
    }
    hv__price_sending(l, pl, &h);
    pl->hops.sendings[pl->hops.n_sendings] = h;
    return (int32_t)pl->hops.n_sendings++;
}

static void set_hop(struct hv__pipeline *pl, int32_t hop, int32_t sending)
{
    const struct hv__sending *x = &pl->hops.sendings[sending];
    pl->hops.sending_of[hop] = sending;
    pl->hops.time_s[hop] = x->cost.bytes_s + x->cost.latency_s;
    pl->hops.latency_s[hop] = x->cost.latency_s;
    pl->hops.bytes[hop] = x->bytes;
}

void hv__price_hops(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    size_t n = (size_t)pl->pipe->n_hops, n_lanes = hv__most_lanes(pl);
    pl->hops.time_s = hv_arena_new(l->arena, double, n + 1);
    pl->hops.latency_s = hv_arena_new(l->arena, double, n + 1);
    pl->hops.bytes = hv_arena_new(l->arena, double, n + 1);
    pl->hops.sendings = hv_arena_new(l->arena, struct hv__sending, n + n_lanes + 1);
    pl->hops.sending_of = hv_arena_new(l->arena, int32_t, n + n_lanes + 1);
    pl->hops.apart = hv_arena_new(l->arena, bool, (size_t)pl->multiplicity);
    pl->hops.devices = n_lanes > 0;
    pl->hops.n_sendings = 0;
    const double *passing = hv__passing_bytes(l, pl);
    for (int k = 1; n + n_lanes > 0 && k < pl->multiplicity; k++) {
        pl->hops.apart[k] = is_apart(l, pl, pl->copies[k]);
    }
    for (size_t i = 0; i < n + n_lanes; i++) {
        pl->hops.sending_of[i] = -1;
    }
    for (size_t p = 0; p < pl->n_pipes; p++) {
        const struct hv__gstage *stages = &pl->gstages[p * pl->n_gstages];
        for (int32_t e = 0; e < pl->schedule->graph.n_edges; e++) {
            const struct hv__gstage *a = &stages[pl->schedule->graph.from[e]];
            const struct hv__gstage *b = &stages[pl->schedule->graph.to[e]];
            if (a->rank == b->rank) {
                continue;
            }
            double bytes = hop_bytes(pl, a);
            bytes += passing != NULL ? passing[pl->schedule->graph.from[e]] : 0;
            int32_t there = hv_pipe_hop(pl->pipe, false, (int32_t)p, e);
            set_hop(pl, there, sending_of(l, pl, a->rank, b->rank, bytes));
            set_hop(pl, hv_pipe_hop(pl->pipe, true, (int32_t)p, e),
                    sending_of(l, pl, b->rank, a->rank, bytes));
            if (p == 0) {
                pl->ranks[a->rank].hop_next_s = pl->hops.time_s[there];
            }
        }
    }
    pl->cost.hop_s = pl->hops.time_s;
    pl->cost.hop_latency_s = pl->hops.latency_s;
    pl->cost.hop_scale = scale_of_hops(l, pl);
}
