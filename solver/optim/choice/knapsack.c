/*
 * Multiple-choice knapsack by lists of undominated pairs with relaxation bounds.
 * Not here: any meaning of values and weights.
 */
#include "solver/optim/choice/knapsack.h"
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PAIRS ((size_t)1 << 20)

/* A choice for the groups so far; `node` is the start of its traceback. */
struct pair {
    double weight, value;
    size_t node;
};

struct node {
    size_t parent, option;
};

/* A step of a group's upper hull: this much more weight for this much more value. */
struct gain {
    double weight, value;
    size_t group, option;
};

struct search {
    const struct hv_knapsack_option *options;
    const size_t *first;
    size_t n_groups, n_gains;
    double capacity;
    struct gain *gains;               /* falling value per weight */
    double *base_weight, *base_value; /* Σ over the groups from g on of the lightest options */
    double best, dropped;
    HV_VEC(struct node) nodes;
    HV_VEC(struct pair) now, next;
};

static int by_weight(const void *pa, const void *pb)
{
    const struct pair *a = pa, *b = pb;
    if (a->weight != b->weight) {
        return a->weight < b->weight ? -1 : 1;
    }
    if (a->value != b->value) {
        return a->value > b->value ? -1 : 1;
    }
    return (a->node > b->node) - (a->node < b->node);
}

static int by_slope(const void *pa, const void *pb)
{
    const struct gain *a = pa, *b = pb;
    double x = a->value * b->weight, y = b->value * a->weight;
    if (x != y) {
        return x > y ? -1 : 1;
    }
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    return (a->option > b->option) - (a->option < b->option);
}

/* Sorts by weight and keeps the undominated pairs: those whose value exceeds that of every lighter
 * pair. */
static size_t undominated(struct pair *p, size_t n)
{
    size_t kept = 0;
    qsort(p, n, sizeof *p, by_weight);
    for (size_t i = 0; i < n; i++) {
        if (kept == 0 || p[i].value > p[kept - 1].value) {
            p[kept++] = p[i];
        }
    }
    return kept;
}

/* Appends the hull steps of a group; returns its lightest undominated option. */
static struct pair hull_of(struct search *q, size_t g, struct pair *scratch)
{
    size_t n = q->first[g + 1] - q->first[g], top = 0;
    for (size_t i = 0; i < n; i++) {
        const struct hv_knapsack_option *o = &q->options[q->first[g] + i];
        scratch[i] = (struct pair){o->weight, o->value, i};
    }
    n = undominated(scratch, n);
    for (size_t i = 0; i < n; i++) {
        while (top >= 2) {
            const struct pair *a = &scratch[top - 2], *b = &scratch[top - 1], *c = &scratch[i];
            if ((b->value - a->value) * (c->weight - a->weight) >
                (c->value - a->value) * (b->weight - a->weight)) {
                break;
            }
            top--;
        }
        scratch[top++] = scratch[i];
    }
    for (size_t i = 1; i < top; i++) {
        q->gains[q->n_gains++] =
            (struct gain){scratch[i].weight - scratch[i - 1].weight,
                          scratch[i].value - scratch[i - 1].value, g, scratch[i].node};
    }
    return scratch[0];
}

static void prepare(struct search *q, struct hv_arena *arena, size_t *lightest)
{
    size_t n = q->first[q->n_groups] - q->first[0];
    struct pair *scratch = hv_arena_new(arena, struct pair, n + 1);
    q->gains = hv_arena_new(arena, struct gain, n + 1);
    q->base_weight = hv_arena_new(arena, double, q->n_groups + 1);
    q->base_value = hv_arena_new(arena, double, q->n_groups + 1);
    for (size_t g = q->n_groups; g-- > 0;) {
        struct pair p = hull_of(q, g, scratch);
        lightest[g] = p.node;
        q->base_weight[g] = q->base_weight[g + 1] + p.weight;
        q->base_value[g] = q->base_value[g + 1] + p.value;
    }
    if (q->n_gains) {
        qsort(q->gains, q->n_gains, sizeof *q->gains, by_slope);
    }
}

/* Greedy first answer: takes hull steps in order of value per weight while they fit. */
static double greedy(const struct search *q, const size_t *lightest, size_t *choice)
{
    double weight = q->base_weight[0], value = q->base_value[0];
    bool *closed = hv_xcalloc(q->n_groups + 1, sizeof *closed);
    memcpy(choice, lightest, q->n_groups * sizeof *choice);
    for (size_t i = 0; i < q->n_gains; i++) {
        const struct gain *s = &q->gains[i];
        if (closed[s->group] || weight + s->weight > q->capacity) {
            closed[s->group] = true;
            continue;
        }
        weight += s->weight;
        value += s->value;
        choice[s->group] = s->option;
    }
    free(closed);
    return value;
}

/* Drops pairs whose upper bound, by the relaxation of the groups from g on, does not exceed the
 * best value. */
static void prune(struct search *q, size_t g)
{
    size_t kept = 0, i = q->n_gains;
    double full_weight = q->base_weight[g], full_value = q->base_value[g];
    for (size_t k = 0; k < q->n_gains; k++) {
        full_weight += q->gains[k].group >= g ? q->gains[k].weight : 0;
        full_value += q->gains[k].group >= g ? q->gains[k].value : 0;
    }
    for (size_t k = 0; k < q->next.n; k++) { /* rising weight: steps leave from the worst on */
        struct pair p = q->next.items[k];
        double room = q->capacity - p.weight;
        while (i > 0 && full_weight > room) {
            const struct gain *s = &q->gains[i - 1];
            if (s->group >= g && full_weight - s->weight <= room) {
                break;
            }
            i--;
            full_weight -= s->group >= g ? s->weight : 0;
            full_value -= s->group >= g ? s->value : 0;
        }
        double end = p.value + full_value, over = full_weight - room;
        if (over > 0 && i > 0) {
            end -= q->gains[i - 1].value * (over / q->gains[i - 1].weight);
        }
        if (end >= q->best - 1e-12 * fabs(q->best) &&
            p.weight + q->base_weight[g] <= q->capacity * (1 + 1e-12)) {
            q->next.items[kept++] = p;
        }
    }
    q->next.n = kept;
}

/* Too many pairs: keeps every step-th, and raises the bound to the best of the dropped ones. */
static void thin(struct search *q, size_t g)
{
    size_t step = q->next.n / (MAX_PAIRS / 2) + 1, kept = 0;
    double rest = q->base_value[g];
    for (size_t i = 0; i < q->n_gains; i++) {
        rest += q->gains[i].group >= g ? q->gains[i].value : 0;
    }
    for (size_t k = 0; k < q->next.n; k++) {
        if (k % step == 0) {
            q->next.items[kept++] = q->next.items[k];
        } else {
            q->dropped = fmax(q->dropped, q->next.items[k].value + rest);
        }
    }
    q->next.n = kept;
}

static void add_group(struct search *q, size_t g)
{
    q->next.n = 0;
    for (size_t k = 0; k < q->now.n; k++) {
        for (size_t i = q->first[g]; i < q->first[g + 1]; i++) {
            double weight = q->now.items[k].weight + q->options[i].weight;
            if (weight + q->base_weight[g + 1] > q->capacity * (1 + 1e-12)) {
                continue;
            }
            struct pair p = {weight, q->now.items[k].value + q->options[i].value,
                             k * (q->first[g + 1] - q->first[g]) + (i - q->first[g])};
            hv_vec_push(&q->next, p);
        }
    }
    q->next.n = q->next.n ? undominated(q->next.items, q->next.n) : 0;
    prune(q, g + 1);
    if (q->next.n > MAX_PAIRS) {
        thin(q, g + 1);
    }
    size_t n = q->first[g + 1] - q->first[g];
    for (size_t k = 0; k < q->next.n; k++) { /* only survivors get a place in the history */
        struct pair *p = &q->next.items[k];
        struct node made = {q->now.items[p->node / n].node, p->node % n};
        hv_vec_push(&q->nodes, made);
        p->node = q->nodes.n - 1;
    }
    q->now.n = 0;
    for (size_t k = 0; k < q->next.n; k++) {
        hv_vec_push(&q->now, q->next.items[k]);
    }
}

static enum hv_status check(const struct hv_knapsack_option *options, const size_t *first,
                            size_t n_groups, double capacity, struct hv_err *err)
{
    if (isnan(capacity)) {
        return hv_err_set(err, HV_EINPUT, "expected a capacity, found NaN");
    }
    if (n_groups && first[n_groups] > HV_KNAPSACK_MAX_OPTIONS) {
        return hv_err_set(err, HV_ELIMIT, "a knapsack may have at most %zu options",
                          HV_KNAPSACK_MAX_OPTIONS);
    }
    for (size_t g = 0; g < n_groups; g++) {
        if (first[g + 1] <= first[g]) {
            return hv_err_set(err, HV_EINPUT, "group %zu: expected at least one option", g + 1);
        }
        for (size_t i = first[g]; i < first[g + 1]; i++) {
            if (!isfinite(options[i].value) || !isfinite(options[i].weight) ||
                options[i].weight < 0) {
                return hv_err_set(err, HV_EINPUT,
                                  "group %zu, option %zu: expected a finite value and a weight "
                                  "that is not negative",
                                  g + 1, i - first[g] + 1);
            }
        }
    }
    return HV_OK;
}

static void finish(const struct search *q, struct hv_knapsack_result *out)
{
    if (q->now.n && q->now.items[q->now.n - 1].value >= q->best) { /* the last is worth most */
        size_t node = q->now.items[q->now.n - 1].node;
        for (size_t g = q->n_groups; g-- > 0; node = q->nodes.items[node].parent) {
            out->choice[g] = q->nodes.items[node].option;
        }
    }
    for (size_t g = 0; g < q->n_groups; g++) {
        out->value += q->options[q->first[g] + out->choice[g]].value;
        out->weight += q->options[q->first[g] + out->choice[g]].weight;
    }
    out->feasible = true;
    out->bound = fmax(out->value, q->dropped);
    out->proven = out->bound <= out->value + 1e-12 * fabs(out->value);
}

enum hv_status hv_knapsack_solve(const struct hv_knapsack_option *options, const size_t *first,
                                 size_t n_groups, double capacity, struct hv_arena *arena,
                                 struct hv_knapsack_result *out, struct hv_err *err)
{
    struct search q = {.options = options,
                       .first = first,
                       .n_groups = n_groups,
                       .capacity = capacity,
                       .dropped = -HUGE_VAL};
    memset(out, 0, sizeof *out);
    out->method = "pareto-lists";
    enum hv_status st = check(options, first, n_groups, capacity, err);
    if (st != HV_OK) {
        return st;
    }
    out->choice = hv_arena_new(arena, size_t, n_groups);
    size_t *lightest = hv_arena_new(arena, size_t, n_groups);
    if (n_groups) {
        prepare(&q, arena, lightest);
    }
    double least = n_groups ? q.base_weight[0] : 0;
    if (least > capacity) {
        out->value = out->weight = out->bound = HV_UNKNOWN;
        out->excess = least - capacity;
        out->proven = true;
        return HV_OK;
    }
    if (n_groups) {
        q.best = greedy(&q, lightest, out->choice);
        hv_vec_push(&q.now, (struct pair){0, 0, SIZE_MAX});
        for (size_t g = 0; g < n_groups; g++) {
            add_group(&q, g);
        }
    }
    finish(&q, out);
    hv_vec_free(&q.now);
    hv_vec_free(&q.next);
    hv_vec_free(&q.nodes);
    return HV_OK;
}
