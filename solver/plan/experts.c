/** Places of experts on the ranks of an expert-parallel group. */
#include "solver/plan/experts.h"

#include <string.h>

int hv_expert_shards(const struct hv_moe_knobs *m, int ep)
{
    int shards = m != NULL && m->expert_shards > 1 ? m->expert_shards : 1;
    return shards < ep ? shards : ep;
}

int hv_expert_owner(const struct hv_moe_knobs *m, int experts, int ep, int expert)
{
    bool named = m != NULL && m->n_owners > (size_t)expert;
    int owner = named ? m->owners[expert] : (int)((int64_t)expert * ep / experts);
    return owner % ep;
}

int hv_expert_places(const struct hv_moe_knobs *m, int experts, int ep, int expert, bool *on)
{
    int owner = hv_expert_owner(m, experts, ep, expert), n = hv_expert_shards(m, ep);
    memset(on, 0, (size_t)ep * sizeof *on);
    for (int i = 0; i < n; i++) {
        on[(owner + i) % ep] = true;
    }
    for (size_t i = 0; m != NULL && i < m->n_copies; i++) {
        const struct hv_expert_copies *c = &m->copies[i];
        if (c->expert != expert) {
            continue;
        }
        for (int r = 0; c->everywhere && r < ep; r++) {
            n += !on[r];
            on[r] = true;
        }
        for (size_t k = 0; k < c->n_ranks; k++) {
            bool *to = &on[c->ranks[k] % ep];
            n += !*to;
            *to = true;
        }
    }
    return n;
}
