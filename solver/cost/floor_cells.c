/*
 * The least that a part can cost in passes of some size, and what that leaves to choose.
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

#include <math.h>
#include <stdlib.h>

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

/* Ranks that a cell stands for. */
struct ranks {
    const struct hv_device_kind *device;
    struct degrees t;
    bool whole;               /* experts are not cut over them */
    double moved_s, starts_s; /* what they exchange: of a sequence, and of a pass */
};

static struct hv_part_query query_of(const struct hv__ask *ask, const struct ranks *r,
                                     struct hv__way way)
{
    struct hv_part_query q = hv__floor_query(ask->k, r->device, way, r->t.least);
    q.expert_tp = r->whole ? 1 : q.tp;
    return q;
}

/* All-reduces, or with sequence parallelism their halves, at other places. */
static void set_exchange(struct hv__ask *ask, const struct exchange *x, struct ranks *r)
{
    struct hv_part_query q = query_of(ask, r, (struct hv__way){false, false});
    struct hv__ideal of[2] = {{.more = HUGE_VAL}, {.more = HUGE_VAL}};
    if (r->t.least < 2)
        return;
    for (int halves = 0; halves < 2; halves++) {
        q.sequence_parallel = halves;
        ask->q = &q;
        ask->ideal = &of[halves];
        (void)hv__price(ask);
    }
    double t = r->t.least, times = 2 * x->shown_frac * of[1].tp_times;
    double moved = fmin(of[0].tp_times * of[0].tp_bytes, times * (t - 1) / t * of[1].tp_bytes);
    r->moved_s = t * moved / x->bytes_per_s;
    r->starts_s = fmin(of[0].tp_times, times) * x->start_s;
}

static void take_least(struct hv_cost_cell *to, const struct hv_cost_cell *from)
{
    to->work_s = fmin(to->work_s, from->work_s);
    to->chain_s = fmin(to->chain_s, from->chain_s);
    to->start_s = fmin(to->start_s, from->start_s);
    to->chain_start_s = fmin(to->chain_start_s, from->chain_start_s);
}

/* The cell of these ranks with those limits. */
static struct hv_cost_cell make_cell(struct hv__ask *ask, const struct ranks *r, double least,
                                     double most)
{
    struct hv__way ways[HV__WAYS];
    size_t n = hv__different_ways(ask->k, r->device, ways);
    struct hv_cost_cell best = {least, most, HUGE_VAL, HUGE_VAL, HUGE_VAL, HUGE_VAL};
    for (size_t i = 0; i < n; i++) {
        struct hv_part_query q = query_of(ask, r, ways[i]);
        struct hv__ideal ideal = {.more = most * r->t.most, .sums_frac = r->t.least / r->t.most};
        ask->q = &q;
        ask->ideal = &ideal;
        struct hv_part_cost p = hv__price(ask);
        double chain_s = p.forward_s + p.input_grad_s;
        const struct hv_cost_cell own = {least,
                                         most,
                                         q.tp * (chain_s + p.weight_grad_s) + r->moved_s,
                                         q.tp * chain_s + r->moved_s,
                                         ideal.start_s + r->starts_s,
                                         ideal.chain_start_s + r->starts_s};
        take_least(&best, &own);
    }
    return best;
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

/* Numbers of ranks to tell apart. */
static size_t list_ranks(struct hv__ask *ask, const struct hv_device_kind *device,
                         struct ranks out[2 * HV_COUNT(all_degrees)])
{
    const struct hv_model *m = ask->k->model;
    bool experts = ask->part == HV_PART_FFN && m->blocks[ask->block].experts > 0;
    struct exchange x = fastest_exchange(ask->k, device);
    size_t n = 0;
    for (size_t d = 0; d < HV_COUNT(all_degrees); d++) {
        for (int whole = 0; whole < (experts && all_degrees[d].least > 1 ? 2 : 1); whole++) {
            out[n] = (struct ranks){device, all_degrees[d], whole, 0, 0};
            set_exchange(ask, &x, &out[n++]);
        }
    }
    return n;
}

/* Fills `out` and returns how many. */
static size_t all_cells(struct hv_cost *k, enum hv_part part, size_t block,
                        const struct hv_device_kind *device, struct hv_cost_cell *out)
{
    struct hv__ask ask = {k, part, block, NULL, NULL, NULL};
    struct ranks ranks[2 * HV_COUNT(all_degrees)];
    double floor_s = hv_cost_floor_s(k, part, block, device), least = 0;
    if (k->model->kind != HV_MODEL_TRANSFORMER || !hv_known(floor_s)) {
        out[0] = (struct hv_cost_cell){.most = HUGE_VAL, .work_s = floor_s};
        return 1;
    }
    size_t n_ranks = list_ranks(&ask, device, ranks), n = 0;
    for (int i = 1; i <= HV_COST_SIZES; i++) {
        double most = (double)k->job.global_batch * exp2((i - HV_COST_SIZES) / 2.0);
        for (size_t r = 0; r < n_ranks; r++) {
            out[n] = make_cell(&ask, &ranks[r], least, most);
            n += !is_covered(out, n, &out[n]);
        }
        least = most;
    }
    return n;
}

/* ---- what is left to choose --------------------------------------------------------------------
 */

/* Weight number i of the curve: 0, then a geometric row. */
static double weight_at(int i)
{
    return i == 0 ? 0 : exp2((i - 1 - HV_COST_WEIGHTS / 2) / 2.0);
}

/* Least of work_s + start_s / x + weight (chain_start_s + x chain_s) over the sizes of a cell:
 * where the slopes of its two parts in x are equal, or at an end. */
static double cell_value(const struct hv_cost_cell *c, double weight)
{
    double rises = weight * c->chain_s;
    double x = rises > 0 ? sqrt(c->start_s / rises) : HUGE_VAL;
    x = fmin(fmax(x, c->least), c->most);
    double starts = c->start_s > 0 ? c->start_s / x : 0, length = rises > 0 ? rises * x : 0;
    return c->work_s + starts + weight * c->chain_start_s + length;
}

static void fill_curve(struct hv_cost_by_size *c)
{
    for (int i = 0; i < HV_COST_WEIGHTS; i++) {
        c->weighted_s[i] = HUGE_VAL;
        for (size_t n = 0; n < c->n_cells; n++)
            c->weighted_s[i] = fmin(c->weighted_s[i], cell_value(&c->cells[n], weight_at(i)));
    }
}

double hv_cost_weighted_s(const struct hv_cost_by_size *c, double weight)
{
    /* a least of straight lines in the weight: concave, so above its chords, and it never falls */
    double at = weight > 0 ? 2 * log2(weight) + HV_COST_WEIGHTS / 2 + 1 : 0;
    int i = at < 1 ? 0 : at < HV_COST_WEIGHTS - 1 ? (int)at : HV_COST_WEIGHTS - 1;
    int next = i + 1 < HV_COST_WEIGHTS ? i + 1 : i;
    double from = weight_at(i), width = weight_at(next) - from;
    double frac = width > 0 ? fmin(fmax((weight - from) / width, 0), 1) : 0;
    return c->weighted_s[i] + frac * (c->weighted_s[next] - c->weighted_s[i]);
}

struct hv__by_size {
    struct hv__by_size *next;
    const struct hv_device_kind *device;
    enum hv_part part;
    size_t block;
    struct hv_cost_by_size floor;
};

static struct hv__by_size *new_floor(struct hv_cost *k, enum hv_part part, size_t block,
                                     const struct hv_device_kind *device)
{
    struct hv__by_size *c = hv_arena_new(&k->arena, struct hv__by_size, 1);
    struct hv_cost_cell *many = hv_xcalloc(HV_COST_CELLS, sizeof *many);
    *c = (struct hv__by_size){k->by_size, device, part, block, {0}};
    c->floor.n_cells = all_cells(k, part, block, device, many);
    c->floor.cells = hv_arena_copy(&k->arena, many, c->floor.n_cells, sizeof *many);
    free(many);
    fill_curve(&c->floor);
    k->by_size = c;
    return c;
}

const struct hv_cost_by_size *hv_cost_by_size(struct hv_cost *k, enum hv_part part, size_t block,
                                              const struct hv_device_kind *device)
{
    bool in_block = part == HV_PART_ATTENTION || part == HV_PART_FFN;
    if (k->n_subs == 1 || (k->subs && in_block)) {
        struct hv_cost *leaf = hv__modules_leaf(k, &block);
        return hv_cost_by_size(leaf, part, block, device);
    }
    size_t at = in_block ? k->representative[k->cls[block]] : 0;
    struct hv__by_size *c = k->by_size;
    while (c != NULL && (c->device != device || c->part != part || c->block != at))
        c = c->next;
    return &(c != NULL ? c : new_floor(k, part, at, device))->floor;
}
