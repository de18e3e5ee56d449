/*
 * The least that a part can cost: every way of running it, at its best, whatever the size of its
 * passes (hv_cost_floor_s) or by their size (hv_cost_floor_cells). What follows for a whole plan is
 * in eval/bound*.c.
 *
 * Why cells hold. Let one of t tensor-parallel ranks run r rows of a part in a pass, S rows be one
 * sequence and x = r / (S t). Its price (part*.c) is a sum of kernels:
 * - a product takes its start, FLOPs that are r/S of those of a sequence over t (cuts that do not
 *   come out even are rounded up there, not here) at a share of at most hv_gemm_box_shares of the
 *   most rows and the widest cut of the cell, and sums over its weights, 1/t of them or more;
 * - a stream takes its start and bytes, at least r/S of those of a sequence over t (what sequence
 *   parallelism does not cut is more), at the best share of any stream up to the cell's largest;
 * - the attention core takes its starts and its pairs at the rate without a limit;
 * - t > 1 ranks exchange: an all-reduce of b bytes moves at least b through the fastest link of a
 *   member (2 (t-1)/t b in rings, b (1 + 1/t) in a switch), its halves (t-1)/t b each.
 * So a pass takes at least start_s + x work_s with work_s the price of a sequence times t where the
 * cell's widest cut has t ranks: all of these either do not change or grow with more ranks, except
 * for sums, which are counted for the narrowest cut.
 */
#include "solver/cost/cost_int.h"
#include "solver/cost/link_curve.h"
#include "solver/cost/part_int.h"

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
    struct hv__box *b = k->boxes;
    while (b != NULL && (b->device != s->q->device || b->box.n != p->n || b->box.k != p->k ||
                         b->box.groups != p->groups))
        b = b->next;
    if (b == NULL) {
        b = hv_arena_new(&k->arena, struct hv__box, 1);
        *b = (struct hv__box){k->boxes, s->q->device,
                              hv_gemm_box_of(&s->gemm, p->n, p->k, p->groups)};
        k->boxes = b;
    }
    return hv_gemm_box_shares(&s->gemm, &b->box, p->m * s->a->ideal->more);
}

void hv__count_start(const struct hv__sum *s, double chain_s, double other_s)
{
    s->a->ideal->start_s += chain_s + other_s;
    s->a->ideal->chain_start_s += chain_s;
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
    for (int i = 0; i < STRIPS; i++)
        sum += least_slice(a, b, tokens * i / STRIPS, tokens);
    return sum * tokens / STRIPS;
}

struct hv__slices {
    struct hv__slices *next;
    double a, b, tokens, time_s;
};

double hv__slices_s(struct hv_cost *k, double a, double b, double tokens)
{
    struct hv__slices *s = k->slices;
    while (s != NULL && (s->a != a || s->b != b || s->tokens != tokens))
        s = s->next;
    if (s == NULL) {
        s = hv_arena_new(&k->arena, struct hv__slices, 1);
        *s = (struct hv__slices){k->slices, a, b, tokens, least_slices_s(a, b, tokens)};
        k->slices = s;
    }
    return s->time_s;
}

/* ---- one sequence ------------------------------------------------------------------------------
 */

/* Ways to run a part that change its kernels. */
struct way {
    bool sharded, context_parallel;
};

static const struct way all_ways[] = {{false, false}, {true, false}, {false, true}, {true, true}};

/* Which of them differ on this device: the kernels that run depend on it, on whether weights are
 * sharded and on context parallelism (workload/job.h). The rest of a query only adds to a price. */
static size_t different_ways(const struct hv_cost *k, const struct hv_device_kind *d,
                             struct way out[HV_COUNT(all_ways)])
{
    unsigned seen[HV_COUNT(all_ways)];
    size_t n = 0;
    for (size_t i = 0; i < HV_COUNT(all_ways); i++) {
        struct hv_kernel_query q = {d, all_ways[i].sharded, all_ways[i].context_parallel};
        unsigned kernels = (unsigned)hv_job_flash_attention(&k->job, k->model, &q) |
                           (unsigned)hv_job_dropout(&k->job, k->model, &q) << 1 |
                           (unsigned)hv_job_eager_kernels(&k->job, k->model, &q) << 2;
        size_t at = 0;
        while (at < n && seen[at] != kernels)
            at++;
        seen[at] = kernels;
        out[at] = at < n ? out[at] : all_ways[i];
        n += at == n;
    }
    return n;
}

/* Two sequences over two context-parallel ranks leave the rows and pairs of one. */
static struct hv_part_query query_of(const struct hv_cost *k, const struct hv_device_kind *d,
                                     struct way way, int tp)
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
    struct way ways[HV_COUNT(all_ways)];
    size_t n = 1;
    ways[0] = all_ways[0];
    if (ask->k->model->kind == HV_MODEL_TRANSFORMER)
        n = different_ways(ask->k, device, ways);
    double least = HUGE_VAL;
    for (size_t i = 0; i < n; i++) {
        const struct hv_part_query q = query_of(ask->k, device, ways[i], 1);
        ask->q = &q;
        struct hv_part_cost c = hv__price(ask);
        double sum = c.forward_s + c.input_grad_s + c.weight_grad_s;
        if (!hv_known(sum))
            return HV_UNKNOWN;
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
    if (in_block && block >= k->model->n_blocks)
        return 0;
    if (k->subs)
        return hv__modules_floor_s(k, part, block, device);
    if (k->floors == NULL) {
        k->floors = hv_arena_new(&k->arena, double, n_kinds *columns + 1);
        for (size_t i = 0; i < n_kinds * columns; i++)
            k->floors[i] = -1;
    }
    struct hv__ideal ideal = {.more = HUGE_VAL};
    struct hv__ask ask = {k,    part, in_block ? k->representative[k->cls[block]] : 0,
                          NULL, NULL, &ideal};
    for (size_t i = 0; i < n_kinds; i++) {
        double *known = &k->floors[i * columns + column_of(k, part, block)];
        if (k->cluster->kinds[i] != device)
            continue;
        if (*known < 0)
            *known = least_s(&ask, device);
        return *known;
    }
    return least_s(&ask, device);
}

/* ---- by the size of passes ---------------------------------------------------------------------
 */

/* Numbers of tensor-parallel ranks that one cell stands for. */
struct degrees {
    int least;
    double most;
};

static const struct degrees all_degrees[] = {{1, 1}, {2, 2},  {3, 3},        {4, 4},
                                             {5, 8}, {9, 16}, {17, HUGE_VAL}};

/* The least that an exchange between tensor-parallel ranks takes. */
struct exchange {
    double start_s, bytes_per_s;
    double shown_frac; /* of sequence-parallel halves, which run beside products */
};

/* Best start and share of any link. */
static void best_curves(struct exchange *x, double *share)
{
    x->start_s = HUGE_VAL;
    *share = 0;
    for (int c = 0; c < HV_CURVE_N; c++) {
        for (int use = HV_USE_RING; use <= HV_USE_SWITCH; use++) {
            const struct hv_link_curve *l =
                hv_link_curve((enum hv_link_class)c, (enum hv_link_use)use);
            for (int i = 0; l && i < HV_CURVE_POINTS && l->at[i].bytes > 0; i++)
                *share = fmax(*share, l->at[i].share);
            x->start_s = l ? fmin(x->start_s, l->start_s) : x->start_s;
        }
    }
}

/* Fastest way between a device of that kind and any other: the links inside its node, or the NICs
 * of its node or link domain. */
static struct exchange fastest_exchange(const struct hv_cost *k, const struct hv_device_kind *d)
{
    const struct hv_cluster *c = k->cluster;
    struct exchange x = {0};
    double factor = 0, hidden = 0, share = 0;
    for (size_t i = 0; i < c->n_kinds; i++) {
        const struct hv_calibration *cal = hv_device_calibration(c->kinds[i]);
        factor = fmax(factor, fmax(cal->v[HV_CAL_NODE_LINKS], cal->v[HV_CAL_NETWORK]));
        hidden = fmax(hidden, cal->v[HV_CAL_TP_HIDDEN]);
    }
    for (size_t g = 0; g < c->n_groups; g++) {
        const struct hv_node_group *group = &c->groups[g];
        double rate = fmax(group->intra.bytes_per_s, HV_PCIE_BYTES_PER_S);
        double nodes = group->domain_nodes > 1 ? group->domain_nodes : 1;
        bool here = false;
        for (size_t s = 0; s < group->n_slots; s++) {
            here = here || group->slots[s].kind == d;
            rate = fmax(rate, group->slots[s].kind->pcie_bytes_per_s);
        }
        for (size_t s = 0; s < group->n_islands; s++)
            rate = fmax(rate, group->islands[s].link.bytes_per_s);
        rate = fmax(rate, nodes * hv_or(group->nic.bytes_per_s, HUGE_VAL));
        x.bytes_per_s = here ? fmax(x.bytes_per_s, rate) : x.bytes_per_s;
    }
    best_curves(&x, &share);
    x.bytes_per_s *= factor * share;
    x.shown_frac = fmax(0, 1 - hidden);
    return x;
}

/* A cell being filled, and what it is for. */
struct cell {
    const struct hv_device_kind *device;
    const struct degrees *t;
    bool whole; /* experts are not cut over the ranks */
    struct exchange x;
    struct hv_cost_cell *out;
};

/* Adds what t ranks exchange: all-reduces, or with sequence parallelism (as the query has it) their
 * halves, at other places. */
static void add_exchange(struct hv__ask *ask, const struct hv_part_query *q, const struct cell *c)
{
    const struct hv__ideal *halves = ask->ideal;
    struct hv__ideal all = {.more = halves->more};
    struct hv_part_query other = *q;
    struct hv__ask again = *ask;
    double t = c->t->least;
    other.sequence_parallel = false;
    again.q = &other;
    again.ideal = &all;
    (void)hv__price(&again);
    double moved = all.tp_times * all.tp_bytes;
    double moved_beside = c->x.shown_frac * 2 * (t - 1) / t * halves->tp_times * halves->tp_bytes;
    double starts = fmin(all.tp_times, 2 * c->x.shown_frac * halves->tp_times);
    c->out->work_s += t * fmin(moved, moved_beside) / c->x.bytes_per_s;
    c->out->chain_s += t * fmin(moved, moved_beside) / c->x.bytes_per_s;
    c->out->start_s += starts * c->x.start_s;
    c->out->chain_start_s += starts * c->x.start_s;
}

static void take_least(struct hv_cost_cell *to, const struct hv_cost_cell *from)
{
    to->work_s = fmin(to->work_s, from->work_s);
    to->chain_s = fmin(to->chain_s, from->chain_s);
    to->start_s = fmin(to->start_s, from->start_s);
    to->chain_start_s = fmin(to->chain_start_s, from->chain_start_s);
}

/* Fills all but the limits, which are set. */
static void fill_cell(struct hv__ask *ask, const struct cell *c)
{
    struct way ways[HV_COUNT(all_ways)];
    size_t n = different_ways(ask->k, c->device, ways);
    struct hv_cost_cell best = {c->out->least, c->out->most, HUGE_VAL,
                                HUGE_VAL,      HUGE_VAL,     HUGE_VAL};
    for (size_t i = 0; i < n; i++) {
        struct hv_part_query q = query_of(ask->k, c->device, ways[i], c->t->least);
        struct hv__ideal ideal = {.more = c->out->most * c->t->most,
                                  .sums_frac = c->t->least / c->t->most};
        q.expert_tp = c->whole ? 1 : q.tp;
        ask->q = &q;
        ask->ideal = &ideal;
        struct hv_part_cost p = hv__price(ask);
        double chain_s = p.forward_s + p.input_grad_s;
        *c->out =
            (struct hv_cost_cell){best.least,     best.most,     q.tp * (chain_s + p.weight_grad_s),
                                  q.tp * chain_s, ideal.start_s, ideal.chain_start_s};
        if (q.tp > 1)
            add_exchange(ask, &q, c);
        take_least(&best, c->out);
    }
    *c->out = best;
}

/* Is there a cell with those limits already that is under this one everywhere? */
static bool is_covered(const struct hv_cost_cell *cells, size_t n, const struct hv_cost_cell *x)
{
    for (size_t i = n; i-- > 0 && cells[i].most == x->most;) {
        if (cells[i].work_s <= x->work_s && cells[i].chain_s <= x->chain_s &&
            cells[i].start_s <= x->start_s && cells[i].chain_start_s <= x->chain_start_s)
            return true;
    }
    return false;
}

/* A part of no transformer, or one that the device cannot run: only its floor is known. */
static size_t one_cell(struct hv_cost *k, enum hv_part part, size_t block, struct cell *c)
{
    *c->out = (struct hv_cost_cell){.most = HUGE_VAL,
                                    .work_s = hv_cost_floor_s(k, part, block, c->device)};
    return 1;
}

/* Fills `out` and returns how many. */
static size_t all_cells(struct hv_cost *k, enum hv_part part, size_t block,
                        const struct hv_device_kind *device, struct hv_cost_cell *out)
{
    struct hv__ask ask = {k, part, block, NULL, NULL, NULL};
    struct cell c = {.device = device, .out = out};
    size_t n = 0;
    if (k->model->kind != HV_MODEL_TRANSFORMER ||
        !hv_known(hv_cost_floor_s(k, part, block, device)))
        return one_cell(k, part, block, &c);
    bool experts = part == HV_PART_FFN && k->model->blocks[block].experts > 0;
    c.x = fastest_exchange(k, device);
    double least = 0;
    for (int i = 1; i <= HV_COST_SIZES; i++) {
        double most = (double)k->job.global_batch * exp2((i - HV_COST_SIZES) / 2.0);
        for (size_t d = 0; d < HV_COUNT(all_degrees); d++) {
            c.t = &all_degrees[d];
            for (int whole = 0; whole < (experts && c.t->least > 1 ? 2 : 1); whole++) {
                c.whole = whole;
                c.out = &out[n];
                *c.out = (struct hv_cost_cell){.least = least, .most = most};
                fill_cell(&ask, &c);
                n += !is_covered(out, n, c.out);
            }
        }
        least = most;
    }
    return n;
}

struct hv__cells {
    struct hv__cells *next;
    const struct hv_device_kind *device;
    enum hv_part part;
    size_t block, n;
    struct hv_cost_cell *items;
};

const struct hv_cost_cell *hv_cost_floor_cells(struct hv_cost *k, enum hv_part part, size_t block,
                                               const struct hv_device_kind *device, size_t *n)
{
    bool in_block = part == HV_PART_ATTENTION || part == HV_PART_FFN;
    if (k->n_subs == 1 || (k->subs && in_block)) {
        struct hv_cost *leaf = hv__modules_leaf(k, &block);
        return hv_cost_floor_cells(leaf, part, block, device, n);
    }
    size_t at = in_block ? k->representative[k->cls[block]] : 0;
    struct hv__cells *c = k->cells;
    while (c != NULL && (c->device != device || c->part != part || c->block != at))
        c = c->next;
    if (c == NULL) {
        struct hv_cost_cell *many = hv_xcalloc(HV_COST_CELLS, sizeof *many);
        c = hv_arena_new(&k->arena, struct hv__cells, 1);
        *c = (struct hv__cells){k->cells, device, part, at, 0, NULL};
        c->n = all_cells(k, part, at, device, many);
        c->items = hv_arena_copy(&k->arena, many, c->n, sizeof *many);
        free(many);
        k->cells = c;
    }
    *n = c->n;
    return c->items;
}
