/* What each rank of an expert-parallel group holds of experts that a plan places itself. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cost/part/part_int.h"

/* Zeroed before it is filled, so that it compares and hashes as bytes. */
struct key {
    uint64_t moe;
    double groups, limit;
    int experts, ep, at, unused;
};

/* Of the places of experts; compares and hashes as bytes. */
struct places_key {
    uint64_t moe;
    int experts, ep;
};

struct hv__memo hv__held_memo(void)
{
    return hv__memo_of(sizeof(struct key), sizeof(struct hv__held));
}

static struct hv__held count(const struct hv_moe_knobs *m, int experts, int ep, int at,
                             const struct hv__sharing *s)
{
    struct hv__held out = {0};
    int shards = hv_expert_shards(m, ep);
    bool *on = hv_xcalloc((size_t)ep, sizeof *on), anew = m->copy_life == HV_COPY_ITERATION;
    for (int e = 0; e < experts; e++) {
        int n = hv_expert_places(m, experts, ep, e, on);
        bool copy = (at - hv_expert_owner(m, experts, ep, e) + ep) % ep >= shards;
        double keep = anew ? 1 : fmax(1, n - shards + 1);
        out.experts += on[at];
        out.lent += on[at] && copy && anew;
        out.shards += on[at] && !(copy && anew) ? 1 / fmax(1, fmin(s->limit, keep * s->groups)) : 0;
    }
    free(on);
    return out;
}

struct hv__held hv__held_by(struct hv__context *k, const struct hv_part_query *q, int experts,
                            int at, const struct hv__sharing *s)
{
    bool known;
    struct key key;
    memset(&key, 0, sizeof key);
    key.moe = q->moe_signature ? q->moe_signature : hv__moe_signature(q->moe);
    key.groups = s->groups;
    key.limit = s->limit;
    key.experts = experts;
    key.ep = q->ep;
    key.at = at;
    struct hv__held *held = hv__memo_at(&k->held, &key, &known);
    if (!known) {
        *held = count(q->moe, experts, q->ep, at, s);
        held->most = hv__holding_of(k, q, experts).spread.held;
    }
    return *held;
}

struct hv__memo hv__places_memo(void)
{
    return hv__memo_of(sizeof(struct places_key), sizeof(struct hv__holding));
}

/* The columns of experts behind those of the ranks that hold one each. */
static void list_columns(size_t experts, size_t ranks, struct hv_arena *arena,
                         struct hv__holding *out)
{
    uint32_t *column = hv_arena_new(arena, uint32_t, experts + 1);
    uint32_t *several = hv_arena_new(arena, uint32_t, experts + 1);
    out->n_several = 0;
    for (size_t e = 0; e < experts; e++) {
        column[e] = out->ranks[out->at[e]];
        if (out->at[e + 1] - out->at[e] != 1) {
            column[e] = (uint32_t)(ranks + out->n_several);
            several[out->n_several++] = (uint32_t)e;
        }
    }
    out->column = column;
    out->several = several;
}

static void list_holders(const struct hv_moe_knobs *m, int experts, int ep, struct hv_arena *arena,
                         struct hv__holding *out)
{
    size_t n_experts = (size_t)experts, n = 0, most = n_experts;
    size_t *at = hv_arena_new(arena, size_t, n_experts + 1);
    bool *on = hv_xcalloc((size_t)ep, sizeof *on);
    uint32_t *ranks = hv_xcalloc(most, sizeof *ranks);
    for (size_t e = 0; e < n_experts; e++) {
        size_t held = (size_t)hv_expert_places(m, experts, ep, (int)e, on);
        if (n + held > most) {
            most = 2 * (n + held);
            ranks = hv_xrealloc(ranks, most, sizeof *ranks);
        }
        for (int r = 0; r < ep; r++) {
            if (on[r]) {
                ranks[n++] = (uint32_t)r;
            }
        }
        at[e + 1] = n;
    }
    out->at = at;
    out->ranks = hv_arena_copy(arena, ranks, n, sizeof *ranks);
    list_columns(n_experts, (size_t)ep, arena, out);
    free(ranks);
    free(on);
}

struct hv__holding hv__holding_of(struct hv__context *k, const struct hv_part_query *q, int experts)
{
    bool known;
    int ep = q->ep > 1 ? q->ep : 1;
    struct places_key key = {.experts = experts, .ep = ep};
    key.moe = q->moe_signature ? q->moe_signature : q->moe ? hv__moe_signature(q->moe) : 0;
    struct hv__holding *out = hv__memo_at(&k->places, &key, &known);
    if (!known) {
        out->spread = hv__spread_of(q->moe, experts, ep);
        list_holders(q->moe, experts, ep, &k->places.arena, out);
    }
    return *out;
}
