/*
 * Devices of a partition with free order, grouped into kinds, and the multisets of kinds that can
 * have been used.
 * Not here: programs over those multisets (order.c, reach.c).
 */
#include "solver/optim/chain/partition_int.h"

#define MAX_STATES ((size_t)2 << 20)

bool hv__same_device(const struct hv_part_stage *a, const struct hv_part_stage *b)
{
    return a->time == b->time && a->table == b->table && a->capacity == b->capacity;
}

static size_t kind_of(const struct hv__kinds *g, size_t dev)
{
    for (size_t k = 0; k < g->n_kinds; k++) {
        if (hv__same_device(&g->p->stages[g->dev[k]], &g->p->stages[dev])) {
            return k;
        }
    }
    return g->n_kinds;
}

/* True when kind a is to be numbered after kind b: it is faster, or holds more. */
static bool goes_after(const struct hv__kinds *g, size_t a, size_t b)
{
    const struct hv_part_stage *x = &g->p->stages[g->dev[a]], *y = &g->p->stages[g->dev[b]];
    if (x->table || y->table) {
        return false;
    }
    double tx = x->time[g->p->n_layers], ty = y->time[g->p->n_layers];
    return tx < ty || (tx <= ty && x->capacity > y->capacity);
}

/* Slow kinds first; kinds with tables stay where they are. */
static void sort_kinds(struct hv__kinds *g)
{
    for (size_t k = 1; k < g->n_kinds; k++) {
        for (size_t j = k; j > 0 && goes_after(g, j - 1, j); j--) {
            size_t dev = g->dev[j], count = g->count[j];
            g->dev[j] = g->dev[j - 1];
            g->count[j] = g->count[j - 1];
            g->dev[j - 1] = dev;
            g->count[j - 1] = count;
        }
    }
}

bool hv__kinds_group(struct hv__kinds *g, const struct hv_partition *p, struct hv_arena *arena)
{
    *g = (struct hv__kinds){.p = p, .n_states = 1};
    g->dev = hv_arena_new(arena, size_t, p->n_stages);
    g->count = hv_arena_new(arena, size_t, p->n_stages);
    g->radix = hv_arena_new(arena, size_t, p->n_stages);
    for (size_t s = 0; s < p->n_stages; s++) {
        size_t k = kind_of(g, s);
        if (k == g->n_kinds) {
            g->dev[g->n_kinds++] = s;
        }
        g->count[k]++;
    }
    sort_kinds(g);
    for (size_t k = 0; k < g->n_kinds; k++) {
        g->radix[k] = g->n_states;
        g->n_states *= g->count[k] + 1;
        if (g->n_states > MAX_STATES) {
            return false;
        }
    }
    g->used = hv_arena_new(arena, size_t, g->n_states);
    g->digit = hv_arena_new(arena, uint16_t, g->n_states * g->n_kinds);
    for (size_t t = 0; t < g->n_states; t++) {
        for (size_t k = 0; k < g->n_kinds; k++) {
            g->digit[t * g->n_kinds + k] = (uint16_t)(t / g->radix[k] % (g->count[k] + 1));
            g->used[t] += g->digit[t * g->n_kinds + k];
        }
    }
    return true;
}

bool hv__has_kind(const struct hv__kinds *g, size_t state, size_t k)
{
    return g->digit[state * g->n_kinds + k] > 0;
}

void hv__kinds_name(const struct hv__kinds *g, struct hv_partition_result *out)
{
    for (size_t k = 0; k < g->n_kinds; k++) {
        size_t dev = 0;
        for (size_t s = 0; s < out->n_stages; s++) {
            if (out->order[s] != g->dev[k]) {
                continue;
            }
            while (!hv__same_device(&g->p->stages[dev], &g->p->stages[g->dev[k]])) {
                dev++;
            }
            out->value[s] = (double)dev++; /* stored here: order still holds kinds */
        }
    }
    for (size_t s = 0; s < out->n_stages; s++) {
        out->order[s] = (size_t)out->value[s];
    }
}
