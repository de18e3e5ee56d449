/* Lists of milestones, each kept once. */
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/cost/stage/stage_int.h"

/* A stored list; later equal lists share it. */
struct hv__milestones {
    const struct hv_milestone *items;
    size_t n;
    uint64_t hash;
};

/* Equal lists share one copy, so that a search over many plans does not fill memory. */
void hv__keep_milestones(struct hv__context *k, const struct hv_milestone *items, size_t n,
                         struct hv_pass *out)
{
    uint64_t h = hv_hash(HV_HASH_START, items, n * sizeof *items);
    out->n_milestones = n;
    size_t cap = k->cap_milestones, at = cap ? (size_t)h & (cap - 1) : 0;
    for (; cap && k->milestones[at].items; at = (at + 1) & (cap - 1)) {
        const struct hv__milestones *m = &k->milestones[at];
        if (m->hash == h && m->n == n && !memcmp(m->items, items, n * sizeof *items)) {
            out->milestones = m->items;
            return;
        }
    }
    if (2 * (k->n_milestones + 1) > cap) {
        size_t bigger = cap ? 2 * cap : 64;
        struct hv__milestones *table = hv_xcalloc(bigger, sizeof *table);
        for (size_t i = 0; i < cap; i++) {
            size_t to = (size_t)k->milestones[i].hash & (bigger - 1);
            while (k->milestones[i].items && table[to].items) {
                to = (to + 1) & (bigger - 1);
            }
            if (k->milestones[i].items) {
                table[to] = k->milestones[i];
            }
        }
        free(k->milestones);
        k->milestones = table;
        k->cap_milestones = bigger;
        at = (size_t)h & (bigger - 1);
        while (table[at].items) {
            at = (at + 1) & (bigger - 1);
        }
    }
    out->milestones = hv_arena_copy(&k->milestones_arena, items, n, sizeof *items);
    k->milestones[at] = (struct hv__milestones){out->milestones, n, h};
    k->n_milestones++;
}
