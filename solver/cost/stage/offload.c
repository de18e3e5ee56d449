/*
 * Offload: copies between device memory and the host over the host link, beside compute
 * (Rajbhandari et al. 2021, ZeRO-Infinity). The memory it saves is in memory.c, the optimizer step
 * of the host in optimizer.c.
 */
#include <math.h>

#include "solver/base/units.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/stage/stage_int.h"

double hv__offload_stays(const struct hv_stage *s, enum hv_offload_what what)
{
    double frac = 1;
    for (size_t i = 0; i < s->n_offload; i++) {
        if (s->offload[i].what == what) {
            frac *= 1 - s->offload[i].frac;
        }
    }
    return frac;
}

bool hv_stage_copies_apart(const struct hv_stage *s)
{
    bool activations = false, weights = false;
    for (size_t i = 0; i < s->n_offload; i++) {
        activations = activations || s->offload[i].what == HV_OFFLOAD_ACTIVATIONS;
        weights = weights || s->offload[i].what == HV_OFFLOAD_WEIGHTS;
    }
    return activations && !weights;
}

double hv_stage_offload_share(const struct hv_stage *s, size_t at)
{
    double left = 1, away = 1 - hv__offload_stays(s, s->offload[at].what);
    for (size_t i = 0; i < at; i++) {
        left *= s->offload[i].what == s->offload[at].what ? 1 - s->offload[i].frac : 1;
    }
    return away > 0 ? left * s->offload[at].frac / away : 0;
}

double hv__optimizer_part(const struct hv_stage *s, size_t at)
{
    double left = 1;
    if (s->offload[at].what != HV_OFFLOAD_OPTIMIZER) {
        return 0;
    }
    for (size_t i = 0; i < at; i++) {
        left *= s->offload[i].what == HV_OFFLOAD_OPTIMIZER ? 1 - s->offload[i].frac : 1;
    }
    return left * s->offload[at].frac;
}

double hv_stage_host_frac(const struct hv_stage *s)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_offload; i++) {
        sum += s->offload[i].to_host ? hv__optimizer_part(s, i) : 0;
    }
    return sum;
}

double hv_stage_peer_frac(const struct hv_stage *s)
{
    return 1 - hv__offload_stays(s, HV_OFFLOAD_OPTIMIZER) - hv_stage_host_frac(s);
}

/* Devices of the stage in this device's node: they share its host's memory. */
static double neighbours(const struct hv_cluster *c, const uint32_t *devices, size_t n,
                         uint32_t device)
{
    uint32_t node = hv_cluster_node_of(c, device);
    double many = 0;
    for (size_t i = 0; i < n; i++) {
        many += hv_cluster_node_of(c, devices[i]) == node;
    }
    return fmax(many, 1);
}

/* What a device gets of the shared link of its island to the host, when all of `devices` on it
 * copy; infinite where it has none. */
static double root_bytes_per_s(const struct hv_cluster *c, const uint32_t *devices, size_t n,
                               uint32_t device)
{
    struct hv_device_ref at = hv_cluster_device(c, device);
    const struct hv_island *x = hv_node_group_island(&c->groups[at.group], at.slot);
    double many = 0;
    if (x == NULL || !x->shared || !hv_link_reaches_host(x->link.kind)) {
        return HUGE_VAL;
    }
    for (size_t k = 0; k < n; k++) {
        struct hv_device_ref o = hv_cluster_device(c, devices[k]);
        many += o.node == at.node && o.slot >= x->first && o.slot - x->first < x->count;
    }
    return x->link.bytes_per_s / fmax(many, 1);
}

double hv_cost_host_bytes_per_s(const struct hv_cluster *c, const uint32_t *devices, size_t n,
                                uint32_t device)
{
    const struct hv_node_group *g = hv_cluster_group_of_node(c, hv_cluster_node_of(c, device));
    double link = hv_or(hv_cluster_device(c, device).kind->pcie_bytes_per_s, HV_PCIE_BYTES_PER_S);
    double memory = hv_or(g->host_memory_bytes_per_s, HV_HOST_MEMORY_BYTES_PER_S);
    double share = hv_cluster_device(c, device).kind->plain_rates ? 1 : HV_EFF_HOST;
    link = fmin(link, root_bytes_per_s(c, devices, n, device));
    return share * fmin(link, memory / neighbours(c, devices, n, device));
}

/* Rate to the target of an offload: the host, or the nearest of other devices. */
static double rate_of(const struct hv__context *k, const struct hv_stage_query *q,
                      const struct hv__rank *r, const struct hv_offload *o)
{
    double best = 0;
    for (size_t i = 0; !o->to_host && i < o->n_devices; i++) {
        best = fmax(best, hv_cluster_path(k->cluster, r->group[0], o->devices[i]).bytes_per_s);
    }
    return best > 0 ? best * HV_EFF_HOST
                    : hv_cost_host_bytes_per_s(k->cluster, r->part,
                                               hv_stage_ranks(q->replica, r->stage), r->group[0]);
}

/* Seconds of copies in each direction. */
struct copies {
    double out_s, in_s, weights_s, bytes;
};

static struct copies copies_of(const struct hv__context *k, const struct hv_stage_query *q,
                               const struct hv__rank *r, double weight_bytes, struct hv_pass *p)
{
    struct copies c = {0};
    for (size_t i = 0; i < r->stage->n_offload; i++) {
        const struct hv_offload *o = &r->stage->offload[i];
        double rate = rate_of(k, q, r, o);
        if (o->what == HV_OFFLOAD_ACTIVATIONS) {
            double bytes = o->frac * p->activation_bytes;
            p->away_bytes += bytes;
            p->away_weight_bytes += o->frac * p->weight_only_bytes;
            p->activation_bytes -= bytes;
            p->weight_only_bytes *= 1 - o->frac;
            if (!q->copies_apart) {
                c.out_s += bytes / rate;
                c.in_s += bytes / rate;
                c.bytes += bytes;
            }
        } else if (o->what == HV_OFFLOAD_WEIGHTS) {
            c.weights_s += o->frac * weight_bytes / rate;
            c.bytes += o->frac * weight_bytes;
        }
    }
    return c;
}

void hv__price_offload(const struct hv__context *k, const struct hv_stage_query *q,
                       const struct hv__rank *r, double weight_bytes, struct hv_pass *p)
{
    struct copies c = copies_of(k, q, r, weight_bytes, p);
    if (!(c.bytes > 0)) {
        return;
    }
    /* both directions of the link work at once */
    double forward = fmax(0, fmax(c.out_s, c.weights_s) - p->forward_s);
    double backward_s = p->input_grad_s + p->weight_grad_s + p->recompute_s;
    double backward = fmax(0, c.in_s + c.weights_s - backward_s);
    p->forward_s += forward;
    p->input_grad_s += backward;
    p->input_alone_s = fmax(p->input_alone_s, c.in_s + c.weights_s - p->recompute_s);
    p->zero_s += forward + backward;
    hv_why_add(q->why, "offload", forward + backward, "s",
               "copies of %.4g bytes take %.4g s forward and %.4g s backward, hidden by the pass "
               "where it is longer",
               c.bytes, fmax(c.out_s, c.weights_s), c.in_s + c.weights_s);
}
