/** Rings of context parallelism inside the passes of a row, as the cost model has timed them. */
#include "solver/eval/timeline/timeline_int.h"

double hv_timeline_ring_exposed_s(const struct hv_timeline_ring *x)
{
    double sum_s = x->ring->after_s;
    for (size_t i = 0; i < x->ring->n; i++) {
        sum_s += x->ring->steps[i].waited_s;
    }
    return sum_s * x->times;
}

/** True where some layers of a stage have context parallelism. */
static bool has_ring(const struct hv_stage *s)
{
    bool any = s->cp.degree > 1;
    for (size_t i = 0; i < s->n_degrees; i++) {
        any = any || s->degrees[i].cp.degree > 1;
    }
    return any;
}

/** Adds the rings of a pass: each stands behind the term that says of which blocks it is. */
static void add_rings(const struct hv_why *why, size_t chunk, struct hv_timeline_row *row)
{
    struct hv_timeline_ring x = {.chunk = chunk};
    for (size_t i = 0; i < why->n; i++) {
        const struct hv_why_term *t = &why->terms[i];
        if (t->to > t->from) {
            x.from = t->from;
            x.to = t->to;
            x.times = t->value;
        }
        for (size_t k = 0; k < t->n_rings; k++) {
            x.ring = &t->rings[k];
            row->rings[row->n_rings++] = x;
        }
    }
}

static size_t count_rings(const struct hv_why *why)
{
    size_t n = 0;
    for (size_t i = 0; i < why->n; i++) {
        n += why->terms[i].n_rings;
    }
    return n;
}

enum hv_status hv__paint_rings(const struct hv__painter *p, const struct hv__pipeline *pl,
                               size_t rank, struct hv_timeline_row *row, struct hv_err *err)
{
    struct hv_arena *a = p->l->arena;
    const struct hv__rank *rk = &pl->ranks[rank];
    const struct hv_stage *s = &pl->replica->stages[rk->stage];
    size_t n = 0;
    if (!has_ring(s)) {
        return HV_OK;
    }
    struct hv_why *whys = hv_arena_new(a, struct hv_why, s->n_ranges);
    for (size_t c = 0; c < s->n_ranges; c++) {
        whys[c].arena = a;
        const struct hv_stage_query q = {.plan = p->l->plan,
                                         .replica = pl->replica,
                                         .stage = rk->stage,
                                         .copy = pl->first_copy,
                                         .chunk = c,
                                         .sequences =
                                             hv__rank_sequences(rk, s, pl->shapes[0].sequences, 0),
                                         .tokens = pl->shapes[0].tokens,
                                         .context = pl->shapes[0].context,
                                         .sliced = pl->n_slices > 1,
                                         .documents = &pl->shapes[0].documents,
                                         .scales = pl->shapes[0].scales,
                                         .iteration = p->l->routed,
                                         .copies_apart = hv_stage_copies_apart(s),
                                         .why = &whys[c]};
        struct hv_pass pass;
        enum hv_status st = hv_cost_pass(p->l->k, &q, &pass, err);
        if (st != HV_OK) {
            return st;
        }
        n += count_rings(&whys[c]);
    }
    row->rings = hv_arena_new(a, struct hv_timeline_ring, n + 1);
    for (size_t c = 0; c < s->n_ranges; c++) {
        add_rings(&whys[c], c, row);
    }
    return HV_OK;
}
