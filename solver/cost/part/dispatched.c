/*
 * Tokens of a layer's experts on the busiest rank of an expert-parallel group: rows that its
 * kernels compute, keep and move, and rows that ranks send, under capacity, owners, copies, shards,
 * gates and the job's routing. Kernels: batched products of equal size for every expert (GShard,
 * Switch, Tutel), block-sparse products of blocks of 128 rows (MegaBlocks, Gale et al. 2023), and
 * products that read and write tokens where they are (ScatterMoE, Tan et al. 2024).
 */
#include <math.h>

#include "solver/cost/part/part_int.h"

/* Where every expert has the same number of tokens, without a group to look at. */
static void add_even(const struct hv_moe_knobs *m, const struct hv__spread *spread, double rows,
                     double capacity, struct hv__dispatched *d)
{
    double whole = d->shards * spread->work, each = 0, tile[HV__LOAD_CUTS];
    enum hv_moe_kernel k = hv__kernel_of(m);
    bool places = capacity > 0 && (k == HV_MOE_GROUPED || k == HV_MOE_PADDED);
    d->tokens = whole * d->kept_frac;
    each = d->tokens / d->groups;
    hv__kernel_tiles(m, rows, tile);
    for (size_t i = 0; i < HV__LOAD_CUTS; i++) {
        double computed = places ? whole * capacity : d->groups * hv__whole_tiles(each, tile[i]);
        *(i == 0 ? &d->computed : &d->in_chunks[i - 1]) = computed;
    }
    d->arrived = places ? d->computed : d->tokens;
    d->own = d->shards * (places ? capacity : d->kept_frac);
    d->sent = d->own * spread->traffic;
}

/* What a kernel keeps and moves besides its products; `top_k` copies of a token come from one. */
static void add_memory(const struct hv__ask *a, double capacity, int top_k,
                       struct hv__dispatched *d)
{
    double filled = capacity > 0 ? d->computed / capacity : d->computed;
    switch (hv__kernel_of(a->q->moe)) {
    case HV_MOE_PADDED: /* gathered into places, of which all are computed and kept */
    case HV_MOE_BLOCK:
        d->inputs = d->outputs = d->between = d->computed;
        d->moved = d->moved_back = 3 * d->tokens + d->computed;
        return;
    case HV_MOE_SCATTER: /* tokens of the rank itself are read where they are; backward grouped once
                          */
        d->inputs = a->q->ep > 1 ? d->tokens : 0;
        d->outputs = d->between = d->tokens;
        d->moved = (a->q->ep > 1 ? 4 : 1 + 1.0 / top_k) * d->tokens;
        d->moved_back = 4 * d->tokens;
        return;
    case HV_MOE_GROUPED:
    case hv_moe_kernel_N:
        break;
    }
    d->inputs = d->outputs = filled;
    d->between = d->computed;
    d->moved = d->moved_back = 4 * filled;
}

struct hv__dispatched hv__dispatched_of(const struct hv__ask *a, const struct hv_block *b,
                                        double rows, struct hv__load *load)
{
    const struct hv_moe_knobs *m = a->q->moe;
    struct hv__spread spread = hv_places_experts(m) ? hv__holding_of(a->k, a->q, b->experts).spread
                                                    : hv__spread_of(m, b->experts, a->q->ep);
    double capacity = hv__capacity_of(m, rows / b->experts);
    double places = capacity > 0 ? capacity : 1;
    bool moves = hv__moves_experts(a->q); /* every rank computes its own tokens with all experts */
    if (moves) {
        spread.work = 1;
        spread.traffic = 0;
    }
    struct hv__dispatched d = {.held = spread.held,
                               .places = places,
                               .groups = moves ? b->experts : spread.held,
                               .shards = m && m->expert_shards > 1 ? m->expert_shards : 1,
                               .kept_frac = capacity > 0 ? fmin(capacity, 1) : 1};
    d.routed = hv__load_of(a, b, rows, load);
    if (d.routed) {
        d.tokens = load->tokens;
        d.kept_frac = load->kept_frac;
        d.places = load->capacity > 0 ? load->capacity : places;
        d.computed = load->work;
        d.in_chunks[0] = load->in_chunks[0];
        d.in_chunks[1] = load->in_chunks[1];
        d.arrived = load->capacity > 0 ? load->work : load->tokens;
        d.own = d.shards * (load->capacity > 0 ? load->capacity : d.kept_frac);
        d.sent = 1;
    } else {
        add_even(m, &spread, rows, capacity, &d);
    }
    add_memory(a, capacity, b->top_k, &d);
    if (a->rates->least_moved) { /* of all kernels */
        d.moved = fmin(d.moved, (1 + 1.0 / b->top_k) * d.tokens);
    }
    return d;
}
