/*
 * The least that a part can cost, whatever the size of its passes: every way of running it, at its
 * best. By the size of passes: floor_cells.c. What follows for a whole plan is in eval/bound*.c.
 */
#include "solver/cost/cost_int.h"
#include "solver/cost/part/part_int.h"

#include <math.h>
#include <stdlib.h>

/* ---- best rates of products --------------------------------------------------------------------
 */

/* A product whose box is known: its device's table and its widths tell it. */
struct hv__box {
    struct hv__box *next;
    const struct hv_device_kind *device;
    struct hv_gemm_box box;
};

struct hv_gemm_shares hv__best_shares(const struct hv__sum *s, const struct hv__product *p)
{
    struct hv_cost *k = s->a->k;
    const struct hv__ideal *ideal = s->a->ideal;
    if (ideal->exact && !(p->unit & HV_RC_EXPERTS)) { /* of experts ranks may hold any number */
        const struct hv_gemm_rows rows = {p->m * ideal->least, p->m * ideal->more};
        return hv_gemm_shares_between(&s->gemm, &rows, p->n, p->k);
    }
    struct hv__box *b = k->boxes;
    while (b != NULL && (b->device != s->q->device || b->box.n != p->n || b->box.k != p->k ||
                         b->box.groups != p->groups)) {
        b = b->next;
    }
    if (b == NULL) {
        b = hv_arena_new(&k->arena, struct hv__box, 1);
        *b = (struct hv__box){k->boxes, s->q->device,
                              hv_gemm_box_of(&s->gemm, p->n, p->k, p->groups)};
        k->boxes = b;
    }
    return hv_gemm_box_shares(&s->gemm, &b->box, p->m * ideal->more);
}

void hv__count_start(const struct hv__sum *s, double forward_s, double back_s, double weight_s)
{
    s->a->ideal->forward_start_s += forward_s;
    s->a->ideal->back_start_s += back_s;
    s->a->ideal->weight_start_s += weight_s;
}

/* ---- unfused attention in slices
 * ------------------------------------------------------------------- */

/* Least of (a / thin(x)² + b) (at + x / 2) over slices of x tokens: their products lose speed, but
 * see fewer pairs that are masked. Between two sizes of the grid the first factor is at least that
 * of the larger, the second at least that of the smaller. */
static double least_slice(double a, double b, double at, double tokens)
{
    double best = (a + b) * (at + tokens / 2);
    for (double x = 1, next; x < tokens; x = next) {
        next = fmin(1.125 * x, tokens);
        best = fmin(best, (a / hv_efficiency_thin(next, next, HUGE_VAL) + b) * (at + x / 2));
    }
    return best;
}

/* Seconds over the pairs of a sequence, `a` per pair in products and `b` in memory, however its
 * tokens are cut into slices. A slice of x tokens behind `at` others works on x (at + x) pairs: the
 * integral over its tokens of (at + x / 2), where `at` runs over the places of the tokens. So the
 * least over x for every place is under every way to cut; strips of the integral use the place
 * where they begin. */
static double least_slices_s(double a, double b, double tokens)
{
    enum { STRIPS = 32 };
    double sum = 0;
    for (int i = 0; i < STRIPS; i++) {
        sum += least_slice(a, b, tokens * i / STRIPS, tokens);
    }
    return sum * tokens / STRIPS;
}

struct hv__slices {
    struct hv__slices *next;
    double a, b, tokens, time_s;
};

double hv__slices_s(struct hv_cost *k, double a, double b, double tokens)
{
    struct hv__slices *s = k->slices;
    while (s != NULL && (s->a != a || s->b != b || s->tokens != tokens)) {
        s = s->next;
    }
    if (s == NULL) {
        s = hv_arena_new(&k->arena, struct hv__slices, 1);
        *s = (struct hv__slices){k->slices, a, b, tokens, least_slices_s(a, b, tokens)};
        k->slices = s;
    }
    return s->time_s;
}

/* ---- one sequence ------------------------------------------------------------------------------
 */

size_t hv__different_ways(const struct hv_cost *k, const struct hv_device_kind *d,
                          struct hv__way out[HV__WAYS])
{
    static const struct hv__way all_ways[HV__WAYS] = {
        {false, false}, {true, false}, {false, true}, {true, true}};
    unsigned seen[HV__WAYS];
    size_t n = 0;
    for (size_t i = 0; i < HV__WAYS; i++) {
        struct hv_kernel_query q = {d, all_ways[i].sharded, all_ways[i].context_parallel};
        unsigned kernels = (unsigned)hv_job_flash_attention(&k->job, k->model, &q) |
                           (unsigned)hv_job_dropout(&k->job, k->model, &q) << 1 |
                           (unsigned)hv_job_eager_kernels(&k->job, k->model, &q) << 2;
        size_t at = 0;
        while (at < n && seen[at] != kernels) {
            at++;
        }
        seen[at] = kernels;
        out[at] = at < n ? out[at] : all_ways[i];
        n += at == n;
    }
    return n;
}

struct hv_part_query hv__floor_query(const struct hv_cost *k, const struct hv_device_kind *d,
                                     struct hv__way way, int tp)
{
    int cp = way.context_parallel ? 2 : 1;
    return (struct hv_part_query){.device = d,
                                  .tp = tp,
                                  .cp = cp,
                                  .ep = 1,
                                  .expert_tp = tp,
                                  .cp_scheme = HV_CP_RING,
                                  .sequence_parallel = tp > 1,
                                  .sharded_weights = way.sharded,
                                  .sequences = cp,
                                  .tokens = hv_cost_tokens(k)};
}

static double least_s(struct hv__ask *ask, const struct hv_device_kind *device)
{
    struct hv__way ways[HV__WAYS] = {{false, false}};
    size_t n = 1;
    if (ask->k->model->kind == HV_MODEL_TRANSFORMER) {
        n = hv__different_ways(ask->k, device, ways);
    }
    double least = HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        const struct hv_part_query q = hv__floor_query(ask->k, device, ways[i], 1);
        ask->q = &q;
        struct hv_part_cost c = hv__price(ask);
        double sum = c.forward_s + c.input_grad_s + c.weight_grad_s;
        if (!hv_known(sum)) {
            return HV_UNKNOWN;
        }
        least = fmin(least, sum);
    }
    return least;
}

/* Parts times classes of blocks: place of a floor in the row of its device. */
static size_t column_of(const struct hv_cost *k, enum hv_part part, size_t block)
{
    bool in_block = part == HV_PART_ATTENTION || part == HV_PART_FFN;
    return (size_t)part * k->n_classes + (in_block ? k->cls[block] : 0);
}

double hv_cost_floor_s(struct hv_cost *k, enum hv_part part, size_t block,
                       const struct hv_device_kind *device)
{
    bool in_block = part == HV_PART_ATTENTION || part == HV_PART_FFN;
    size_t n_kinds = k->cluster->n_kinds, columns = HV_PART_N * (size_t)k->n_classes + 1;
    if (in_block && block >= k->model->n_blocks) {
        return 0;
    }
    if (k->subs) {
        return hv__modules_floor_s(k, part, block, device);
    }
    if (k->floors == NULL) {
        k->floors = hv_arena_new(&k->arena, double, n_kinds *columns + 1);
        for (size_t i = 0; i < n_kinds * columns; i++) {
            k->floors[i] = -1;
        }
    }
    struct hv__ideal ideal = {.more = HUGE_VAL};
    struct hv__ask ask = {k,    part, in_block ? k->representative[k->cls[block]] : 0,
                          NULL, NULL, &ideal};
    for (size_t i = 0; i < n_kinds; i++) {
        double *known = &k->floors[i * columns + column_of(k, part, block)];
        if (k->cluster->kinds[i] != device) {
            continue;
        }
        if (*known < 0) {
            *known = least_s(&ask, device);
        }
        return *known;
    }
    return least_s(&ask, device);
}
