/*
 * Pricing groups of devices as pipelines: all multisets of kinds, the lower hull of each.
 * Not here: choosing groups (group.c), partitions (partition.c).
 */
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/optim/chain/group.h"
#include "solver/optim/chain/partition_int.h"
#include <math.h>
#include <string.h>

#define MAX_TYPES ((size_t)20000)
#define MAX_LINES ((size_t)24)

/* A group that was priced: its hull and the partitions behind it. */
struct priced {
    size_t *uses, n_lines;
    struct hv_group_line *lines;
    struct hv_partition_result *part;
};

struct pricer {
    const struct hv_group_chain *c;
    struct hv__watch watch;
    struct hv_arena *arena;
    struct hv_err *err;
    struct hv_part_stage *stages;
    const double **cuts;
    size_t *uses, *kind_at;
    HV_VEC(struct priced) types;
    bool stopped;
};

static double time_at(const struct hv_partition_result *r, double weight)
{
    return r->sum + weight * r->max;
}

/* Solves for a weight; the new line is kept when it is better there than both its neighbours. */
static enum hv_status solve_at(struct pricer *q, struct hv_partition *p, double weight,
                               struct hv_partition_result *out)
{
    p->sum_weight = 1;
    p->max_weight = weight;
    const struct hv_part_limits rest = hv__watch_rest(&q->watch);
    enum hv_status st = hv_partition_solve(p, &rest, q->arena, out, q->err);
    q->stopped = q->stopped || (st == HV_OK && !out->proven);
    return st;
}

/* Lines of the hull between two that are known, for weights between theirs. */
static enum hv_status between(struct pricer *q, struct hv_partition *p, struct priced *t,
                              const struct hv_partition_result *a,
                              const struct hv_partition_result *b)
{
    struct hv_partition_result r;
    if (!(a->max > b->max)) {
        return HV_OK;
    }
    if (t->n_lines >= MAX_LINES) {
        q->stopped = true;
        return HV_OK;
    }
    double weight = (b->sum - a->sum) / (a->max - b->max);
    if (!(weight > 0) || isinf(weight) || weight > (double)q->c->total) {
        return HV_OK;
    }
    enum hv_status st = solve_at(q, p, weight, &r);
    if (st != HV_OK || time_at(&r, weight) >= time_at(a, weight) * (1 - 1e-12)) {
        return st;
    }
    t->part[t->n_lines++] = r;
    st = between(q, p, t, a, &r);
    return st == HV_OK ? between(q, p, t, &r, b) : st;
}

/* Prices the group at hand; groups that fit nothing are left out. */
static enum hv_status price(struct pricer *q, size_t n)
{
    struct hv_partition p = {.n_layers = q->c->n_layers,
                             .n_stages = n,
                             .stages = q->stages,
                             .cuts = q->c->cuts ? q->cuts : NULL,
                             .min_layers = 1,
                             .free_order = true};
    struct priced t = {0};
    struct hv_partition_result first, last;
    if (n > q->c->n_layers) {
        return HV_OK;
    }
    for (size_t k = 0, s = 0; k < q->c->n_kinds; k++) {
        for (size_t i = 0; i < q->uses[k]; i++, s++) {
            q->kind_at[s] = k;
            q->stages[s] =
                (struct hv_part_stage){.time = q->c->kinds[k].time,
                                       .memory = q->c->memory ? q->c->memory[n - 1 - s] : NULL,
                                       .capacity = q->c->kinds[k].capacity};
        }
    }
    enum hv_status st = solve_at(q, &p, 0, &first);
    if (st != HV_OK || !first.feasible) {
        return st;
    }
    t.part = hv_arena_new(q->arena, struct hv_partition_result, MAX_LINES + 2);
    t.part[t.n_lines++] = first;
    st = solve_at(q, &p, (double)q->c->total, &last);
    if (st == HV_OK && last.max < first.max) {
        t.part[t.n_lines++] = last;
        st = between(q, &p, &t, &first, &last);
    }
    t.uses = hv_arena_copy(q->arena, q->uses, q->c->n_kinds, sizeof *t.uses);
    t.lines = hv_arena_new(q->arena, struct hv_group_line, t.n_lines);
    for (size_t k = 0; k < t.n_lines; k++) {
        struct hv_partition_result *r = &t.part[k];
        t.lines[k] = (struct hv_group_line){r->sum - r->max, r->max};
        for (size_t s = 0; s < r->n_stages; s++) {
            r->order[s] = q->kind_at[r->order[s]];
        }
    }
    hv_vec_push(&q->types, t);
    return st;
}

/* All multisets of kinds from kind k on with n devices so far. */
static enum hv_status enumerate(struct pricer *q, size_t k, size_t n)
{
    enum hv_status st = HV_OK;
    if (k == q->c->n_kinds) {
        if (n == 0 || n < q->c->min_stages) {
            return HV_OK;
        }
        if (q->types.n >= MAX_TYPES) {
            return hv_err_set(q->err, HV_ELIMIT, "more than %zu different groups of devices",
                              MAX_TYPES);
        }
        return price(q, n);
    }
    for (size_t i = 0; i <= q->c->kinds[k].count && n + i <= q->c->max_stages && st == HV_OK; i++) {
        q->uses[k] = i;
        st = enumerate(q, k + 1, n + i);
    }
    q->uses[k] = 0;
    return st;
}

/* The line of a group's hull that its share takes. */
static struct hv_partition_result part_for(const struct priced *t, int64_t n)
{
    size_t best = 0;
    for (size_t k = 1; k < t->n_lines; k++) {
        if (time_at(&t->part[k], (double)(n - 1)) < time_at(&t->part[best], (double)(n - 1))) {
            best = k;
        }
    }
    return t->part[best];
}

static enum hv_status choose(struct pricer *q, struct hv_group_chains_result *out)
{
    size_t n = q->c->n_kinds, *count = hv_arena_new(q->arena, size_t, n);
    struct hv_group_type *types = hv_arena_new(q->arena, struct hv_group_type, q->types.n);
    for (size_t k = 0; k < n; k++) {
        count[k] = q->c->kinds[k].count;
    }
    for (size_t i = 0; i < q->types.n; i++) {
        types[i] = (struct hv_group_type){q->types.items[i].uses, q->types.items[i].n_lines,
                                          q->types.items[i].lines};
    }
    const struct hv_group g = {n, count, q->types.n, types, q->c->total};
    struct hv_part_limits rest = hv__watch_rest(&q->watch);
    rest.report = q->watch.limits->report;
    enum hv_status st = hv_group_solve(&g, &rest, q->arena, &out->groups, q->err);
    if (st != HV_OK) {
        return st;
    }
    struct hv_group_result *r = &out->groups;
    out->uses = hv_arena_new(q->arena, size_t, r->n_groups * n);
    out->part = hv_arena_new(q->arena, struct hv_partition_result, r->n_groups);
    for (size_t i = 0; i < r->n_groups; i++) {
        const struct priced *t = &q->types.items[r->type[i]];
        memcpy(out->uses + i * n, t->uses, n * sizeof *t->uses);
        out->part[i] = part_for(t, r->share[i]);
    }
    if (q->stopped) {
        r->proven = false;
        r->stopped = true;
        r->bound = r->feasible ? 0 : HV_UNKNOWN;
    }
    return HV_OK;
}

enum hv_status hv_group_chains(const struct hv_group_chain *c, const struct hv_part_limits *limits,
                               struct hv_arena *arena, struct hv_group_chains_result *out,
                               struct hv_err *err)
{
    struct pricer q = {.c = c, .arena = arena, .err = err};
    memset(out, 0, sizeof *out);
    out->groups.objective = out->groups.bound = HV_UNKNOWN;
    if (c->n_layers == 0 || c->n_kinds == 0 || c->max_stages == 0 || c->total <= 0 ||
        c->min_stages > c->max_stages) {
        return hv_err_set(err, HV_EINPUT,
                          "expected layers, kinds, micro-batches and min <= max stages");
    }
    if (c->max_stages > HV_PARTITION_MAX_STAGES || c->n_layers > HV_PARTITION_MAX_LAYERS) {
        return hv_err_set(err, HV_ELIMIT, "too many stages or layers");
    }
    hv__watch_start(&q.watch, limits);
    q.stages = hv_arena_new(arena, struct hv_part_stage, c->max_stages);
    q.kind_at = hv_arena_new(arena, size_t, c->max_stages);
    q.cuts = hv_arena_new(arena, const double *, c->max_stages);
    q.uses = hv_arena_new(arena, size_t, c->n_kinds);
    for (size_t s = 0; s < c->max_stages; s++) {
        q.cuts[s] = c->cuts;
    }
    enum hv_status st = enumerate(&q, 0, 0);
    out->n_types = q.types.n;
    if (st == HV_OK) {
        st = choose(&q, out);
    }
    hv_vec_free(&q.types);
    return st;
}
