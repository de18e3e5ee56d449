/*
 * Tokens of a layer's experts on the busiest rank of an expert-parallel group: rows that it
 * computes and bytes that ranks send, under capacity, owners, copies, shards and the job's routing.
 */
#include <math.h>

#include "solver/cost/part/part_int.h"

struct hv__dispatched hv__dispatched_of(const struct hv__ask *a, const struct hv_block *b,
                                        double rows, struct hv__load *load)
{
    const struct hv_moe_knobs *m = a->q->moe;
    int shards = m && m->expert_shards > 1 ? m->expert_shards : 1;
    struct hv__spread spread = hv__spread_of(m, b->experts, a->q->ep);
    double capacity = hv__capacity_of(m, rows / b->experts), pad = capacity > 0 ? capacity : 1;
    struct hv__dispatched out = {.held = spread.held,
                                 .shards = shards,
                                 .own = shards * pad,
                                 .kept_frac = capacity > 0 ? fmin(capacity, 1) : 1};
    bool moves = hv__moves_experts(a->q); /* every rank computes its own tokens with all experts */
    spread.work = moves ? 1 : spread.work;
    spread.traffic = moves ? 0 : spread.traffic;
    out.groups = moves ? b->experts : spread.held;
    out.routed = hv__load_of(a, b, rows, load);
    out.arrived = out.routed ? load->work / pad : shards * spread.work;
    out.computed = out.arrived * pad;
    out.sent = out.routed ? 1 : pad * shards * spread.traffic;
    return out;
}
