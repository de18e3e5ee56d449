/*
 * Floors of a part by the size of its passes: a cell per range of sizes and number of
 * tensor-parallel ranks, each the least over all ways of running the part.
 *
 * Proof. Let one of t tensor-parallel ranks run r rows of a part in a pass, S rows be one
 * sequence and x = r / (S t). Its price (part/) is a sum of kernels:
 * - a product takes its start, FLOPs that are r/S of those of a sequence over t (cuts that do not
 *   come out even are rounded up there, not here) at a share of at most hv_gemm_box_shares of the
 *   most rows and the widest cut of the cell, and sums over its weights, 1/t of them or more;
 * - a stream takes its start and bytes, at least r/S of those of a sequence over t (what sequence
 *   parallelism does not cut is more), at the best share of any stream up to the cell's largest;
 * - the attention core takes its starts and its pairs at the rate without a limit;
 * - t > 1 ranks exchange at least what exchange.c proves, over the slowest link that so many
 *   cannot avoid.
 * - gradients of the intermediate values of a feed-forward, and logits, are in memory at once: no
 *   valid plan has passes that do not fit (memory.c).
 * So a pass takes at least start_s + x each_s with each_s the price of a sequence times t where the
 * cell's widest cut has t ranks: all of these either do not change or grow with more ranks, except
 * for sums, which are counted for the narrowest cut.
 */
#include "solver/cost/device/efficiency.h"
#include "solver/cost/floor/curve.h"
#include "solver/cost/floor/exchange.h"
#include "solver/cost/floor/floor_int.h"

#include <math.h>
#include <stdlib.h>

/* Largest number of distinct degrees. */
#define DEGREES HV_COST_DEGREES

/* Numbers of tensor-parallel ranks that one cell covers. */
struct degrees {
    double least, most;
};

/* The ranks that a cell covers: their device and degrees, what fits and what they exchange. */
struct ranks {
    const struct hv_device_kind *device;
    const struct hv__reach *reach;
    struct degrees t;
    bool whole;  /* experts are not cut over them */
    double most; /* largest pass that fits into memory */
    /* of a sequence's all-reduces, and of their halves: bytes, how many forward and backward */
    double bytes[2], forward[2], backward[2];
};

static struct hv_part_query query_of(const struct hv__ask *ask, const struct ranks *r,
                                     struct hv__way way)
{
    struct hv_part_query q = hv__floor_query(ask->k, r->device, way, (int)r->t.least);
    q.expert_tp = r->whole ? 1 : q.tp;
    return q;
}

/* Least exposed share of sequence-parallel exchanges that overlap with products. */
static double shown_frac(const struct hv_cluster *c)
{
    double hidden = 0;
    for (size_t i = 0; i < c->n_kinds; i++) {
        hidden = fmax(hidden, hv_device_calibration(c->kinds[i])->v[HV_CAL_TP_HIDDEN]);
    }
    return fmax(0, 1 - hidden);
}

/* Exchanges between ranks in a pass: all-reduces, or with sequence parallelism reduce-scatters and
 * all-gathers at other places. */
static void set_exchange(struct hv__ask *ask, struct ranks *r)
{
    struct hv_part_query q = query_of(ask, r, (struct hv__way){false, false});
    for (int halves = 0; halves < 2 && r->t.least > 1; halves++) {
        struct hv__left_out of;
        q.sequence_parallel = halves;
        ask->q = &q;
        ask->passes = &hv__any_pass;
        ask->left_out = &of;
        (void)ask->k->parts->price(ask);
        r->bytes[halves] = of.tp_bytes;
        double shown = halves ? 2 * shown_frac(ask->k->cluster) : 1;
        r->forward[halves] = of.tp_forward * shown;
        r->backward[halves] = of.tp_backward * shown;
    }
}

/* Adds the least time of so many calls, whole or in halves. */
static void add_calls(const struct ranks *r, const struct hv__least_exchange least[2],
                      const double times[2], struct hv_cost_line *to)
{
    double start = HUGE_VAL, moved = HUGE_VAL;
    for (int halves = 0; halves < 2; halves++) {
        start = fmin(start, times[halves] * least[halves].start_s);
        moved = fmin(moved, times[halves] * r->bytes[halves] * least[halves].per_byte_s);
    }
    to->each_s += r->t.least * moved;
    to->start_s += start;
}

/* Adds the least communication time of ranks in a pass of at most `most`. */
static void add_exchange(const struct ranks *r, struct hv_cost_cell *cell)
{
    struct hv__least_exchange least[2], own[2];
    double both[2];
    if (r->t.least < 2) {
        return;
    }
    for (int halves = 0; halves < 2; halves++) {
        const struct hv__exchange_query q = {r->device, r->reach, r->t.least, r->t.most,
                                             r->bytes[halves] * cell->most * r->t.most};
        hv__least_exchange(&q, own);
        least[halves] = own[halves];
        both[halves] = r->forward[halves] + r->backward[halves];
    }
    add_calls(r, least, both, &cell->of[HV_COST_ALL]);
    add_calls(r, least, both, &cell->of[HV_COST_CHAIN]);
    add_calls(r, least, r->forward, &cell->of[HV_COST_FORWARD]);
    add_calls(r, least, r->backward, &cell->of[HV_COST_LATER]);
}

static void take_least(struct hv_cost_cell *to, const struct hv_cost_cell *from)
{
    for (int of = 0; of < HV_COST_OF_N; of++) {
        to->of[of].each_s = fmin(to->of[of].each_s, from->of[of].each_s);
        to->of[of].start_s = fmin(to->of[of].start_s, from->of[of].start_s);
    }
}

/* The cell of these ranks with those limits. */
static struct hv_cost_cell make_cell(struct hv__ask *ask, const struct ranks *r, double least,
                                     double most)
{
    struct hv__way ways[HV__WAYS];
    size_t n = hv__different_ways(ask->k, r->device, ways);
    struct hv_cost_cell best = {0};
    for (size_t i = 0; i < n; i++) {
        struct hv_part_query q = query_of(ask, r, ways[i]);
        const struct hv__passes passes = {.more = most * r->t.most,
                                          .least = least * r->t.least,
                                          .exact = r->t.most == r->t.least,
                                          .sums_frac = r->t.least / r->t.most};
        struct hv__left_out starts;
        ask->q = &q;
        ask->passes = &passes;
        ask->left_out = &starts;
        struct hv_part_cost p = ask->k->parts->price(ask);
        double chain_s = p.forward_s + p.input_grad_s;
        double chain_start_s = starts.forward_start_s + starts.back_start_s;
        struct hv_cost_cell own = {
            least,
            most,
            {{q.tp * (chain_s + p.weight_grad_s), chain_start_s + starts.weight_start_s},
             {q.tp * chain_s, chain_start_s},
             {q.tp * p.forward_s, starts.forward_start_s},
             {q.tp * (p.input_grad_s + p.weight_grad_s),
              starts.back_start_s + starts.weight_start_s}}};
        add_exchange(r, &own);
        if (i == 0) {
            best = own;
        } else {
            take_least(&best, &own);
        }
    }
    return best;
}

/* True where an existing cell with those limits is nowhere above this one. */
static bool is_covered(const struct hv_cost_cell *cells, size_t n, const struct hv_cost_cell *x)
{
    for (size_t i = n; i-- > 0 && cells[i].most == x->most;) {
        bool under = true;
        for (int of = 0; of < HV_COST_OF_N; of++) {
            under = under && cells[i].of[of].each_s <= x->of[of].each_s &&
                    cells[i].of[of].start_s <= x->of[of].start_s;
        }
        if (under) {
            return true;
        }
    }
    return false;
}

/* Degrees that valid plans may have in a block: divisors of its heads, whose groups of keys and
 * values split or copy evenly (plan/check_degrees.c), and no more than there are devices. */
static size_t divisors(const struct hv_block *b, double devices, struct degrees out[DEGREES])
{
    size_t n = 0;
    for (int t = 1; t <= b->heads && t <= devices; t++) {
        bool even =
            b->mla.kv_rank || b->kv_heads < 1 || b->kv_heads % t == 0 || t % b->kv_heads == 0;
        if (b->heads % t != 0 || !even) {
            continue;
        }
        if (n == DEGREES) { /* the last also covers all others */
            out[n - 1].most = HUGE_VAL;
        } else {
            out[n++] = (struct degrees){t, t};
        }
    }
    return n;
}

/* Degrees of stages without heads. */
static size_t any_degrees(double devices, struct degrees out[DEGREES])
{
    static const struct degrees all[] = {{1, 1},  {2, 2},   {3, 3},   {4, 4},        {5, 8},
                                         {9, 16}, {17, 32}, {33, 64}, {65, HUGE_VAL}};
    size_t n = 0;
    while (n < HV_COUNT(all) && all[n].least <= fmax(devices, 1)) {
        out[n] = all[n];
        n++;
    }
    return n;
}

/* Largest size of a pass that any way of running it fits into memory. */
static double largest_pass(struct hv__ask *ask, const struct ranks *r)
{
    struct hv__way ways[HV__WAYS];
    size_t n = hv__different_ways(ask->k, r->device, ways);
    double most = r->t.most > r->t.least ? HUGE_VAL : 0; /* others may round up less */
    for (size_t i = 0; i < n; i++) {
        const struct hv_part_query q = query_of(ask, r, ways[i]);
        most = fmax(most, hv__largest_pass(ask, &q));
    }
    return most;
}

/* Limits of the cluster for that kind, remembered. */
static const struct hv__reach *reach_of(struct hv__context *k, const struct hv_device_kind *device)
{
    size_t at = 0, n = k->cluster->n_kinds;
    while (at < n && k->cluster->kinds[at] != device) {
        at++;
    }
    if (k->reach == NULL) {
        k->reach = hv_arena_new(&k->arena, struct hv__reach *, n + 1);
    }
    if (k->reach[at] == NULL || at == n) {
        const struct hv__reach r = hv__reach_of(k->cluster, device, &k->arena);
        k->reach[at] = hv_arena_copy(&k->arena, &r, 1, sizeof r);
    }
    return k->reach[at];
}

/* Lists the ranks that get cells of their own; returns their number. */
static size_t list_ranks(struct hv__ask *ask, const struct hv_device_kind *device,
                         struct ranks out[2 * DEGREES])
{
    const struct hv_block *b = &ask->k->model->blocks[ask->block];
    bool in_block = ask->part == HV_PART_ATTENTION || ask->part == HV_PART_FFN;
    bool experts = ask->part == HV_PART_FFN && b->experts > 0;
    const struct hv__reach *reach = reach_of(ask->k, device);
    struct degrees t[DEGREES];
    size_t n = 0, n_t = in_block && b->heads > 0 ? divisors(b, reach->devices, t)
                                                 : any_degrees(reach->devices, t);
    for (size_t d = 0; d < n_t; d++) {
        for (int whole = 0; whole < (experts && t[d].least > 1 ? 2 : 1); whole++) {
            out[n] = (struct ranks){.device = device, .reach = reach, .t = t[d], .whole = whole};
            out[n].most = largest_pass(ask, &out[n]);
            set_exchange(ask, &out[n++]);
        }
    }
    return n;
}

/* Fills `out` with the cells of a part, those of one range of sizes together; returns how many. */
static size_t all_cells(struct hv__context *k, enum hv_part part, size_t block,
                        const struct hv_device_kind *device, struct hv_cost_cell *out)
{
    struct hv__ask ask = {.k = k, .part = part, .block = block, .rates = &hv__best_rates};
    struct ranks ranks[2 * DEGREES];
    double least = 0;
    size_t n_ranks = list_ranks(&ask, device, ranks), n = 0;
    for (int i = 1; i <= HV_COST_SIZES; i++) {
        double most = (double)k->job.global_batch * exp2((i - HV_COST_SIZES) / 2.0);
        for (size_t r = 0; r < n_ranks; r++) {
            if (least <= ranks[r].most) {
                out[n] = make_cell(&ask, &ranks[r], least, most);
                n += !is_covered(out, n, &out[n]);
            }
        }
        least = most;
    }
    return n;
}

struct hv__by_size {
    struct hv__by_size *next;
    const struct hv_device_kind *device;
    enum hv_part part;
    size_t block;
    struct hv_cost_by_size floor;
};

/* The stored floors of a part, or NULL. `block`: the first of its class. */
static const struct hv_cost_by_size *known(const struct hv__context *k, enum hv_part part,
                                           size_t block, const struct hv_device_kind *device)
{
    const struct hv__by_size *c = k->by_size;
    while (c != NULL && (c->device != device || c->part != part || c->block != block)) {
        c = c->next;
    }
    return c != NULL ? &c->floor : NULL;
}

/* Stores the floors that consist of these cells. */
static const struct hv_cost_by_size *keep(struct hv__context *k, enum hv_part part, size_t block,
                                          const struct hv_device_kind *device,
                                          const struct hv_cost_cell *cells, size_t n)
{
    struct hv__by_size *c = hv_arena_new(&k->arena, struct hv__by_size, 1);
    *c = (struct hv__by_size){k->by_size, device, part, block, {.n_cells = n}};
    c->floor.cells = hv_arena_copy(&k->arena, cells, n, sizeof *cells);
    hv__fill_curve(&c->floor, &k->arena);
    k->by_size = c;
    return &c->floor;
}

static size_t first_alike(const struct hv__context *k, enum hv_part part, size_t block)
{
    return hv__in_block(part) ? k->representative[k->cls[block]] : 0;
}

const struct hv_cost_by_size *hv__one_size(struct hv__context *k, enum hv_part part, size_t block,
                                           const struct hv_device_kind *device, double floor_s)
{
    size_t at = first_alike(k, part, block);
    const struct hv_cost_by_size *found = known(k, part, at, device);
    const struct hv_cost_cell all = {.most = HUGE_VAL, .of[HV_COST_ALL].each_s = floor_s};
    return found != NULL ? found : keep(k, part, at, device, &all, 1);
}

const struct hv_cost_by_size *hv__by_size(struct hv__context *k, enum hv_part part, size_t block,
                                          const struct hv_device_kind *device)
{
    size_t at = first_alike(k, part, block);
    const struct hv_cost_by_size *found = known(k, part, at, device);
    if (found != NULL) {
        return found;
    }
    double floor_s = hv__floor_s(k, part, at, device);
    if (!hv_known(floor_s)) {
        return hv__one_size(k, part, at, device, floor_s);
    }
    struct hv_cost_cell *many = hv_xcalloc(HV_COST_CELLS, sizeof *many);
    size_t n = all_cells(k, part, at, device, many);
    found = keep(k, part, at, device, many, n);
    free(many);
    return found;
}
