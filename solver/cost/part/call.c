/* Seconds of one operation between the ranks of a part's group, and what overlap costs. */
#include <math.h>

#include "solver/cost/device/link_curve.h"
#include "solver/cost/part/part_int.h"

/* The device's own link, as if all members sat in one node. */
static struct hv__span own_link(const struct hv_device_kind *d, enum hv_collective op, double bytes,
                                double n)
{
    bool own = hv_known(d->link_bytes_per_s);
    enum hv_link_class link = hv_link_class_of(own ? HV_LINK_NVLINK : HV_LINK_PCIE, own ? d : NULL);
    const struct hv_link_curve *curve =
        hv_link_curve(link, op == HV_ALL_TO_ALL ? HV_USE_ALL_TO_ALL : HV_USE_RING);
    double rate = hv_or(d->link_bytes_per_s, hv_or(d->pcie_bytes_per_s, 16 * HV_GBPS));
    double passes = op == HV_ALL_REDUCE ? 2 : 1;
    if (n < 2 || !(bytes > 0)) {
        return (struct hv__span){0, 0};
    }
    rate *= hv_link_share(curve, bytes) * hv_device_calibration(d)->v[HV_CAL_NODE_LINKS];
    return (struct hv__span){curve->start_s + passes * (n - 1) / n * bytes / rate, curve->start_s};
}

struct hv__span hv__call_span(const struct hv__ask *a, const struct hv__call *c)
{
    if (!c->members) {
        return own_link(a->q->device, c->op, c->bytes, c->n);
    }
    struct hv_collective_query q = {.op = c->op,
                                    .bytes = c->bytes,
                                    .devices = c->members,
                                    .n = (size_t)c->n,
                                    .algorithm = c->algorithm,
                                    .pipe = c->pipe,
                                    .together = c->together,
                                    .copies = c->copies};
    struct hv_collective_cost cost = hv_cost_collective(a->k->cluster, &q, a->why);
    return (struct hv__span){cost.time_s, cost.alpha_s};
}

double hv__wait_s(const struct hv_part_query *q)
{
    return hv_device_calibration(q->device)->v[HV_CAL_EXCHANGE_US] * HV_US;
}

/* Source of the form: compute C and communication X together take max(C, X) + sigma min(C, X),
 * Galvatron's overlap coefficient. */
double hv__shown_s(const struct hv__ask *a, struct hv_overlap o)
{
    return o.exposed_s + hv_device_calibration(a->q->device)->v[HV_CAL_OVERLAP] * o.hidden_s;
}
