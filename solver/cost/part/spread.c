/* Figures of the busiest rank of an expert-parallel group where every expert has the same number of
 * tokens. */
#include <math.h>
#include <stdlib.h>

#include "solver/cost/part/part_int.h"

double hv__capacity_of(const struct hv_moe_knobs *m, double tokens_per_expert)
{
    if (!m || !(m->capacity_factor > 0)) {
        return 0;
    }
    double least = tokens_per_expert > 0 ? m->min_capacity / tokens_per_expert : 0;
    return fmax(m->capacity_factor, least);
}

struct hv__spread hv__spread_of(const struct hv_moe_knobs *m, int experts, int ep)
{
    int all = m && m->expert_shards > 1 ? m->expert_shards : 1;
    ep = ep > 1 ? ep : 1;
    struct hv__spread out = {ceil((double)experts * all / ep), 1, 1};
    if (!hv_places_experts(m)) {
        return out;
    }
    int shards = hv_expert_shards(m, ep);
    bool *on = hv_xcalloc((size_t)ep, sizeof *on);
    struct hv__spread *each = hv_xcalloc((size_t)ep, sizeof *each);
    for (int e = 0; e < experts; e++) {
        int n = hv_expert_places(m, experts, ep, e, on);
        /* an expert with a copy on every rank receives no tokens from other ranks */
        double tokens = (double)shards / n * ep / ((double)experts * shards);
        for (int r = 0; r < ep; r++) {
            each[r].held += on[r];
            each[r].work += on[r] ? tokens : 0;
            each[r].traffic += on[r] && n < ep ? tokens : 0;
        }
    }
    out = each[0];
    for (int r = 1; r < ep; r++) {
        out.held = fmax(out.held, each[r].held);
        out.work = fmax(out.work, each[r].work);
        out.traffic = fmax(out.traffic, each[r].traffic);
    }
    free(each);
    free(on);
    return out;
}
