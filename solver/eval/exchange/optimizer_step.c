/** Work of a rank after its gradient reduction: the optimizer step, on the device or on the host,
 * and the gather of updated weights. */
#include "solver/eval/exchange/exchange_int.h"

/** Parameters that the host of every node updates, all pipelines together. O(devices). */
static double *count_host_parameters(const struct hv__lowered *l)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    double *n = hv_arena_new(l->arena, double, (size_t)c->n_nodes + 1);
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        for (size_t r = 0; r < pl->n_ranks; r++) {
            const struct hv__rank *rk = &pl->ranks[r];
            const struct hv_stage *s = &pl->replica->stages[rk->stage];
            double frac = hv_stage_host_frac(s);
            for (int k = 0; k < pl->multiplicity && frac > 0; k++) {
                const uint32_t *d = s->devices + (size_t)pl->copies[k] * rk->n_devices;
                for (size_t x = 0; x < rk->n_devices; x++) {
                    n[hv_cluster_node_of(c, d[x])] +=
                        frac * rk->memory[x / rk->width].updated_parameters;
                }
            }
        }
    }
    return n;
}

/** Seconds in which a rank's gradients become ready one after the other: from the start of the
 * backward pass of its last micro-batch, all chunks, to the end of its last reduction. */
static double gradients_s(const struct hv__pipeline *pl, size_t rank)
{
    const struct hv__rank *rk = &pl->ranks[rank];
    double sum = fmax(0, rk->sync_end_s - rk->compute_end_s);
    for (size_t g = 0; g < pl->n_pipes * pl->n_gstages; g++) {
        const struct hv__gstage *x = &pl->gstages[g];
        size_t shape =
            hv__shape_of(pl, (int32_t)(g % pl->n_gstages), pl->n_mb - 1, pl->n_slices - 1);
        sum += x->rank == rank ? x->backward_s[shape] : 0;
    }
    return sum;
}

/** The part of the optimizer step of one device that it runs itself. */
static double own_part_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                         const struct hv__rank *rk, size_t at)
{
    const struct hv_stage *s = &pl->replica->stages[rk->stage];
    double own = fmax(0, 1 - hv_stage_host_frac(s) - hv_stage_peer_frac(s));
    return hv_cost_optimizer_s(l->k, hv_cluster_device(hv_cost_cluster(l->k), rk->devices[at]).kind,
                               own * rk->memory[at / rk->width].updated_parameters);
}

/** Optimizer step of one device: its own part, in parallel with the part on its host and on other
 * devices. */
static double optimizer_s(struct hv__lowered *l, const struct hv__pipeline *pl, struct hv__rank *rk,
                          size_t at)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const struct hv_stage *s = &pl->replica->stages[rk->stage];
    double frac = hv_stage_host_frac(s), n = rk->memory[at / rk->width].updated_parameters;
    uint32_t device = rk->devices[at];
    double away = hv_stage_peer_frac(s);
    double own_s = own_part_s(l, pl, rk, at);
    if (away > 0) {
        const struct hv_peer_update p = {.device = device,
                                         .parameters = n,
                                         .backward_s = gradients_s(pl, (size_t)(rk - pl->ranks))};
        own_s = fmax(own_s, hv_cost_peer_optimizer_s(l->k, s, &p));
    }
    if (!(frac > 0)) {
        return own_s;
    }
    if (l->nodes.host_parameters == NULL) {
        l->nodes.host_parameters = count_host_parameters(l);
    }
    const struct hv_host_update h = {.devices = rk->devices,
                                     .n_devices = rk->n_devices,
                                     .device = device,
                                     .parameters = frac * n,
                                     .node_parameters =
                                         l->nodes.host_parameters[hv_cluster_node_of(c, device)],
                                     .backward_s = gradients_s(pl, (size_t)(rk - pl->ranks))};
    return fmax(own_s, hv_cost_offload_optimizer_s(l->k, &h));
}

double hv__least_optimizer_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                             const struct hv__rank *rk)
{
    double least_s = 0;
    for (size_t i = 0; i < rk->n_devices; i++) {
        if (rk->like[i / rk->width] == i / rk->width) {
            least_s = fmax(least_s, own_part_s(l, pl, rk, i));
        }
    }
    return least_s;
}

void hv__optimizer_step(struct hv__lowered *l, const struct hv__pipeline *pl, struct hv__rank *rk)
{
    for (size_t i = 0; i < rk->n_devices; i++) {
        if (rk->like[i / rk->width] == i / rk->width) {
            rk->optimizer_s = fmax(rk->optimizer_s, optimizer_s(l, pl, rk, i));
        }
    }
    const struct hv__pipeline *first = &l->pipelines.items[pl->first_of_entry];
    rk->gather_s = first == pl ? hv__gather_s(l, pl, rk, false) : first->ranks[rk->stage].gather_s;
}
