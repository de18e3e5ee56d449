/*
 * Starting points of the improvement: the best plans of every shape, so that no single shape fills
 * the list.
 */
#include "solver/planner/replicas_int.h"

/* Similarity of two plans. 0: they group the pools differently; 1: equal grouping; 2: also with
 * equal numbers of stages and equal sizes of micro-batches. */
static int likeness(const struct hv__sketch *a, const struct hv__sketch *b)
{
    int like = 2;
    if (a->n_replicas != b->n_replicas) {
        return 0;
    }
    for (int i = 0; i < a->n_replicas; i++) {
        const struct hv__replica_sketch *x = &a->replicas[i], *y = &b->replicas[i];
        if (x->n_runs != y->n_runs) {
            return 0;
        }
        for (int j = 0; j < x->n_runs; j++) {
            if (x->runs[j].pool != y->runs[j].pool) {
                return 0;
            }
        }
        if (x->micro_batch != y->micro_batch || hv__depth(x) != hv__depth(y)) {
            like = 1;
        }
    }
    return like;
}

/* The place that a plan may take: that of the most similar plan, or a new one while its shape
 * has fewer than allowed. */
static int place_of(const struct hv__diverse_starts *st, const struct hv__sketch *k)
{
    int alike = 0, worst = -1;
    for (int i = 0; i < st->n; i++) {
        int like = likeness(&st->items[i], k);
        if (like == 2) {
            return i;
        }
        if (like == 1) {
            alike++;
            worst = i;
        }
    }
    if (alike >= st->alike) {
        return worst;
    }
    return st->n < st->cap ? st->n : st->n - 1;
}

void hv__keep_start(struct hv__diverse_starts *st, const struct hv__sketch *k, double value)
{
    int at = place_of(st, k);
    if (at < st->n && st->value[at] <= value) {
        return;
    }
    if (at == st->n) {
        st->n++;
    }
    for (; at > 0 && st->value[at - 1] > value; at--) {
        st->items[at] = st->items[at - 1];
        st->value[at] = st->value[at - 1];
    }
    st->items[at] = *k;
    st->value[at] = value;
}

bool hv__is_new_shape(const struct hv__diverse_starts *st, int n)
{
    for (int i = 0; i < n; i++) {
        if (likeness(&st->items[i], &st->items[n]) > 0) {
            return false;
        }
    }
    return true;
}
