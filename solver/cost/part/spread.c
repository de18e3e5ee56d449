/*
 * Which ranks hold an expert: by owners, copies and shards; and the figures of the busiest rank
 * where every expert has the same number of tokens.
 */
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

/* Ranks of one expert: its owner (by blocks where none are named) with the shards on the ranks
 * behind it, and its copies. */
struct places {
    const struct hv_moe_knobs *m;
    int experts, ep, shards;
    bool *on;
};

int hv__expert_owner(const struct hv_moe_knobs *m, int experts, int ep, int expert)
{
    int owner = m && m->n_owners > (size_t)expert ? m->owners[expert]
                                                  : (int)((int64_t)expert * ep / experts);
    return owner % ep;
}

static int find_places(const struct places *p, int expert)
{
    const struct hv_moe_knobs *m = p->m;
    int owner = hv__expert_owner(m, p->experts, p->ep, expert);
    int n = 0;
    for (int r = 0; r < p->ep; r++) {
        p->on[r] = (r - owner + p->ep) % p->ep < p->shards;
    }
    for (size_t i = 0; i < m->n_copies; i++) {
        const struct hv_expert_copies *c = &m->copies[i];
        for (int r = 0; c->expert == expert && c->everywhere && r < p->ep; r++) {
            p->on[r] = true;
        }
        for (size_t k = 0; c->expert == expert && k < c->n_ranks; k++) {
            p->on[c->ranks[k] % p->ep] = true;
        }
    }
    for (int r = 0; r < p->ep; r++) {
        n += p->on[r];
    }
    return n;
}

int hv__expert_places(const struct hv_moe_knobs *m, int experts, int ep, int expert, bool *on)
{
    static const struct hv_moe_knobs none = {.expert_shards = 1};
    m = m ? m : &none;
    int shards = m->expert_shards > 1 ? m->expert_shards : 1;
    return find_places(&(struct places){m, experts, ep, shards < ep ? shards : ep, on}, expert);
}

struct hv__spread hv__spread_of(const struct hv_moe_knobs *m, int experts, int ep)
{
    int shards = m && m->expert_shards > 1 ? m->expert_shards : 1;
    ep = ep > 1 ? ep : 1;
    struct hv__spread out = {ceil((double)experts * shards / ep), 1, 1};
    if (!m || (!m->n_owners && !m->n_copies)) {
        return out;
    }
    struct places p = {m, experts, ep, shards < ep ? shards : ep,
                       hv_xcalloc((size_t)ep, sizeof(bool))};
    struct hv__spread *each = hv_xcalloc((size_t)ep, sizeof *each);
    for (int e = 0; e < experts; e++) {
        int n = find_places(&p, e);
        /* an expert with a copy on every rank receives no tokens from other ranks */
        double tokens = (double)p.shards / n * ep / ((double)experts * p.shards);
        for (int r = 0; r < ep; r++) {
            each[r].held += p.on[r];
            each[r].work += p.on[r] ? tokens : 0;
            each[r].traffic += p.on[r] && n < ep ? tokens : 0;
        }
    }
    out = each[0];
    for (int r = 1; r < ep; r++) {
        out.held = fmax(out.held, each[r].held);
        out.work = fmax(out.work, each[r].work);
        out.traffic = fmax(out.traffic, each[r].traffic);
    }
    free(each);
    free(p.on);
    return out;
}
