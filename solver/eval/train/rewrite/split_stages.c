/**
 * Stages whose ranks take micro-batches in turns (`deal`), and stages with a micro-batch size of
 * their own (`micro_batch`): the plan in which every such rank is a stage, a lane, of its own, and
 * the input of the schedule that splits its ranks likewise (sim/schedule/split.c). The other steps
 * then need no special case: passes, memory, transfers and reductions are those of the lanes.
 */
#include "solver/base/whole.h"
#include "solver/eval/train/steps.h"

#include <string.h>

/** Lanes of a stage. */
static int lanes_of(const struct hv_stage *s)
{
    return s->deal == HV_DEAL_TURNS && s->dp > 1 ? s->dp : 1;
}

static bool is_split(const struct hv_stage *s)
{
    return lanes_of(s) > 1 || s->micro_batch > 0;
}

/** Sequences of the largest micro-batch that all stages run a whole number of times. */
static int64_t common_micro_batch(const struct hv_plan *p, const struct hv_replica *r)
{
    int64_t all = 1;
    for (size_t i = 0; i < r->n_stages; i++) {
        all = hv_lcm(all, hv_stage_micro_batch(p, r, &r->stages[i]));
    }
    return all;
}

/** Gives the replica the common micro-batch; stages keep a size only where it is another one. */
static void set_sizes(const struct hv_plan *p, const struct hv_replica *from, struct hv_replica *r)
{
    if (r->list != NULL) {
        return;
    }
    int64_t common = common_micro_batch(p, from);
    r->micro_batches = hv_replica_sequences(p, from) / common;
    r->micro_batch = (int)common;
    for (size_t i = 0; i < r->n_stages; i++) {
        int own = hv_stage_micro_batch(p, from, &from->stages[i]);
        r->stages[i].micro_batch = own != common ? own : 0;
    }
}

/** Devices of one lane: its part of every copy of the stage. */
static void set_devices(struct hv_arena *a, const struct hv_replica *r, const struct hv_stage *s,
                        int lane, struct hv_stage *out)
{
    size_t each = hv_stage_ranks(r, s), width = each / (size_t)s->dp, n = 0;
    out->devices = hv_arena_new(a, uint32_t, s->n_devices + 1);
    for (int c = 0; c < r->count; c++) {
        const uint32_t *own = s->devices + (size_t)c * each + (size_t)lane * width;
        memcpy(out->devices + n, own, width * sizeof *own);
        n += width;
    }
    out->n_devices = n;
    out->dp = 1;
    out->deal = HV_DEAL_SPLIT;
    out->lanes = lanes_of(s);
}

/** Stages that feed lane `lane` of stage i: the lanes before it with micro-batches of its own. */
static void set_after(struct hv_arena *a, const struct hv__split *x, size_t i, int lane,
                      struct hv_stage *out)
{
    const struct hv_stage *s = &x->whole->stages[i];
    size_t feeds = s->n_after >= 0 ? (size_t)s->n_after : i > 0, n = 0, most = 1;
    for (size_t k = 0; k < feeds; k++) {
        most += (size_t)lanes_of(&x->whole->stages[s->n_after >= 0 ? (size_t)s->after[k] : i - 1]);
    }
    out->after = hv_arena_new(a, int, most);
    for (size_t k = 0; k < feeds; k++) {
        size_t from = s->n_after >= 0 ? (size_t)s->after[k] : i - 1;
        int many = lanes_of(&x->whole->stages[from]);
        int64_t step = hv_gcd(many, lanes_of(s));
        for (int j = 0; j < many; j++) {
            if (j % step == lane % step) {
                out->after[n++] = (int)x->lane_at[from] + j;
            }
        }
    }
    out->n_after = (int)n;
}

/** Makes every lane a stage of the replica. */
static void set_lanes(struct hv_arena *a, const struct hv__split *x, struct hv_replica *r)
{
    const struct hv_replica *whole = x->whole;
    r->stages = hv_arena_new(a, struct hv_stage, x->lane_at[whole->n_stages] + 1);
    r->n_stages = x->lane_at[whole->n_stages];
    for (size_t i = 0; i < whole->n_stages; i++) {
        const struct hv_stage *s = &whole->stages[i];
        for (int k = 0; k < lanes_of(s); k++) {
            struct hv_stage *lane = &r->stages[x->lane_at[i] + (size_t)k];
            *lane = *s;
            lane->embedding = hv_stage_has_embedding(whole, i);
            lane->head = hv_stage_has_head(whole, i);
            if (lanes_of(s) > 1) {
                set_devices(a, whole, s, k, lane);
            }
            set_after(a, x, i, k, lane);
        }
    }
}

/** Fills what is known of a replica that is split, and its stages; `r`: a copy of the plan's. */
static void split_replica(struct hv_arena *a, const struct hv_plan *p,
                          const struct hv_replica *from, struct hv__split *x, struct hv_replica *r)
{
    size_t n = from->n_stages;
    r->stages = hv_arena_copy(a, from->stages, n, sizeof *from->stages);
    set_sizes(p, from, r);
    struct hv_replica *whole = hv_arena_copy(a, r, 1, sizeof *r);
    *x = (struct hv__split){.whole = whole,
                            .of = hv_arena_new(a, struct hv_stage_split, n),
                            .lane_at = hv_arena_new(a, size_t, n + 1)};
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        int own = whole->stages[i].micro_batch;
        x->of[i] = (struct hv_stage_split){lanes_of(&whole->stages[i]),
                                           own > 0 ? whole->micro_batch / own : 1};
        x->lane_at[i + 1] = x->lane_at[i] + (size_t)x->of[i].lanes;
        any = any || x->of[i].lanes > 1 || x->of[i].passes > 1;
        x->unlike = x->unlike || x->of[i].passes > 1;
    }
    if (x->lane_at[n] > n) {
        set_lanes(a, x, r);
    }
    if (!any) { /* one size, if another than the plan's */
        *x = (struct hv__split){0};
    }
}

const struct hv_plan *hv__split_plan(const struct hv_plan *p, struct hv_arena *arena,
                                     const struct hv__split **out)
{
    bool any = false;
    *out = NULL;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            any = any || is_split(&p->replicas[i].stages[k]);
        }
    }
    if (!any) {
        return p;
    }
    struct hv_plan *split = hv_arena_new(arena, struct hv_plan, 1);
    struct hv__split *splits = hv_arena_new(arena, struct hv__split, p->n_replicas);
    *split = *p; /* only looked at: owns nothing */
    split->replicas = hv_arena_new(arena, struct hv_replica, p->n_replicas);
    for (size_t i = 0; i < p->n_replicas; i++) {
        split->replicas[i] = p->replicas[i];
        bool own = false;
        for (size_t k = 0; k < p->replicas[i].n_stages; k++) {
            own = own || is_split(&p->replicas[i].stages[k]);
        }
        if (own) {
            split_replica(arena, p, &p->replicas[i], &splits[i], &split->replicas[i]);
        }
    }
    *out = splits;
    return split;
}

const struct hv__split *hv__split_of(const struct hv__lowered *l, size_t entry)
{
    const struct hv__split *x = l->splits != NULL ? &l->splits[entry] : NULL;
    return x != NULL && x->whole != NULL ? x : NULL;
}

size_t hv__written_stage(const struct hv__lowered *l, size_t entry, size_t stage)
{
    const struct hv__split *x = hv__split_of(l, entry);
    size_t i = x != NULL ? 0 : stage;
    while (x != NULL && stage >= x->lane_at[i + 1]) {
        i++;
    }
    return i;
}

size_t hv__first_lane(const struct hv__lowered *l, size_t entry, size_t stage)
{
    const struct hv__split *x = hv__split_of(l, entry);
    return x != NULL ? x->lane_at[hv__written_stage(l, entry, stage)] : stage;
}

size_t hv__n_written(const struct hv__lowered *l, size_t entry)
{
    const struct hv__split *x = hv__split_of(l, entry);
    return x != NULL ? x->whole->n_stages : l->plan->replicas[entry].n_stages;
}
