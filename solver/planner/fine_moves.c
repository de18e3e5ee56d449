/*
 * The end of an improvement: single blocks and halves of blocks move between stages, and single
 * micro-batches between replicas, until no move helps. Then offloading and recompute without a gain
 * are removed.
 */
#include "solver/base/whole.h"
#include "solver/planner/improve_int.h"

#include <math.h>

#define DONORS 3 /* stages tried on either side of a moved block */

/* Stages of a replica by their time for a micro-batch, slowest first. */
static void rank_stages(struct hv__climb *c, int r, int *stages)
{
    int depth = hv__depth(&c->k.replicas[r]), n = 0;
    double busy[HV__CHUNKS] = {0};
    struct hv__sketch same = c->k;
    (void)hv__judge_again(c->s, &same);
    const struct hv_verdict *v = &c->s->last;
    for (size_t i = 0; i < v->n_stages; i++) {
        if (v->stages[i].replica == hv__first_replica(&c->k, r) &&
            v->stages[i].stage < (size_t)depth) {
            busy[v->stages[i].stage] = v->stages[i].forward_s + v->stages[i].backward_s;
        }
    }
    for (int i = 0; i < depth; i++) {
        int at = n++;
        for (; at > 0 && busy[stages[at - 1]] < busy[i]; at--) {
            stages[at] = stages[at - 1];
        }
        stages[at] = i;
    }
}

/* A move of half blocks from one stage to another, between chunks of the same number. */
struct move {
    int from, to, turn, halves;
};

static bool move_blocks(struct hv__climb *c, int r, const struct move *m)
{
    struct hv__sketch next = c->k;
    const struct hv__schedule_row *o = &hv__schedules[next.schedule];
    int depth = hv__depth(&next.replicas[r]);
    int a = m->turn * depth + m->from, b = m->turn * depth + m->to;
    if (o->folded && m->turn % 2 == 1) {
        a = m->turn * depth + depth - 1 - m->from;
        b = m->turn * depth + depth - 1 - m->to;
    }
    int parts = depth * o->chunks;
    bool edge = a == 0 || a == parts - 1;
    if (next.replicas[r].counts[a] < m->halves + (edge ? 0 : 1)) {
        return false;
    }
    next.replicas[r].counts[a] -= m->halves;
    next.replicas[r].counts[b] += m->halves;
    return hv__attempt(c, &next, false);
}

/* Takes the first move between the slowest stages and the fastest that helps. */
static bool move_some(struct hv__climb *c, int r, const int *stages, int halves)
{
    int depth = hv__depth(&c->k.replicas[r]), n = depth < DONORS ? depth : DONORS;
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            struct move m = {.from = stages[i], .to = stages[depth - 1 - j], .halves = halves};
            for (; m.from != m.to && m.turn < hv__schedules[c->k.schedule].chunks; m.turn++) {
                if (move_blocks(c, r, &m)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Moves whole blocks where that helps, otherwise halves. */
static void try_blocks(struct hv__climb *c, int r)
{
    int stages[HV__CHUNKS];
    rank_stages(c, r, stages);
    for (int halves = 2; halves >= (hv__splits_blocks(c->s) ? 1 : 2); halves--) {
        if (move_some(c, r, stages, halves)) {
            return;
        }
    }
}

static void try_batch(struct hv__climb *c, int from, int to)
{
    struct hv__sketch next = c->k;
    struct hv__replica_sketch *a = &next.replicas[from], *b = &next.replicas[to];
    int64_t unit = hv_lcm(a->micro_batch, b->micro_batch);
    if (a->micro_batches * a->micro_batch <= unit) {
        return;
    }
    a->micro_batches -= unit / a->micro_batch;
    b->micro_batches += unit / b->micro_batch;
    (void)hv__attempt(c, &next, false);
}

void hv__try_fine_moves(struct hv__climb *c)
{
    bool moved = true;
    while (moved && !hv__is_over(c->s)) {
        double before = c->value;
        for (int t = 0; t < c->k.n_replicas; t++) {
            try_blocks(c, t);
        }
        for (int a = 0; a < c->k.n_replicas; a++) {
            for (int b = 0; b < c->k.n_replicas; b++) {
                if (a != b) {
                    try_batch(c, a, b);
                }
            }
        }
        moved = c->value < before;
    }
}

double hv__fine_moves(struct hv__search *s, struct hv__sketch *k, double value)
{
    struct hv__climb c = {.s = s, .k = *k, .value = value};
    hv__try_fine_moves(&c);
    *k = c.k;
    return c.value;
}

/* Makes the sketch the best where it is as good. */
static void take_as_good(struct hv__search *s, const struct hv__sketch *k)
{
    if (hv__judge_sketch(s, k, HUGE_VAL) <= s->best_value * (1 + 1e-12)) {
        s->best = *k;
    }
}

void hv__drop_unneeded(struct hv__search *s)
{
    for (int r = 0; r < s->best.n_replicas; r++) {
        for (int j = 0; j < s->best.replicas[r].n_runs; j++) {
            for (int what = 0; what < hv_offload_what_N; what++) {
                struct hv__sketch k = s->best;
                k.replicas[r].runs[j].offload &= ~HV__HOST(what);
                if (k.replicas[r].runs[j].offload != s->best.replicas[r].runs[j].offload) {
                    take_as_good(s, &k);
                }
            }
            struct hv__sketch k = s->best;
            k.replicas[r].runs[j].recompute = HV_RC_NONE;
            if (s->best.replicas[r].runs[j].recompute != HV_RC_NONE) {
                take_as_good(s, &k);
            }
        }
    }
}
