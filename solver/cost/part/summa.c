/*
 * Tensor parallelism on grids and cubes of ranks: how a product is cut, and the exchanges of its
 * blocks along rows, columns and layers. On a q × q grid (2d; 2.5d: on each of `depth` grids) a
 * product is q products of panels, which ranks broadcast along rows and columns and whose results
 * they sum there (SUMMA, van de Geijn and Watts 1997; Xu et al. 2021, Optimus, algorithms 1 to 3;
 * Wang et al. 2021, Tesseract). The broadcast of a panel runs beside the product of the one before,
 * as Colossal-AI runs them, with two buffers for each. On a q × q × q cube inputs and weights are
 * gathered before the product and results reduced and scattered after it, one after the other; the
 * two scatters of the backward pass run beside its products (Bian et al. 2021; Colossal-AI).
 *
 * Ranks are numbered in the order of the stage's devices: a row has neighbouring ranks, a column
 * every q-th, a layer of a cube every q²-th; which links an axis uses follows from the devices.
 * Gradients of the copies of 2.5d are summed at the end of an iteration (eval/train/reduce.c).
 */
#include <math.h>
#include <stdlib.h>

#include "solver/cost/part/part_int.h"

/* Bytes of a sum of a norm. */
#define SUM_BYTES 4.0

enum { ROW, COLUMN, LAYER };

/* The largest side with side^power within n. */
static int side_of(double n, int power)
{
    int side = 1;
    while (pow(side + 1, power) <= n) {
        side++;
    }
    return side;
}

int hv__grid_side(const struct hv_part_query *q)
{
    if (q->tp_scheme == HV_TP_1D) {
        return 1;
    }
    return q->tp_scheme == HV_TP_3D ? side_of(q->tp, 3) : side_of(q->tp / hv__tp_depth(q), 2);
}

int hv__grid_lines(const struct hv_part_query *q)
{
    int side = hv__grid_side(q);
    return q->tp_scheme == HV_TP_3D ? side * side : side * (int)hv__tp_depth(q);
}

size_t hv__grid_line(const struct hv_part_query *q, int axis, int line)
{
    size_t side = (size_t)hv__grid_side(q), i = (size_t)line;
    if (axis == ROW) {
        return i * side;
    }
    return axis == COLUMN ? i / side * side * side + i % side : i;
}

size_t hv__grid_apart(const struct hv_part_query *q, int axis)
{
    size_t side = (size_t)hv__grid_side(q);
    return axis == ROW ? 1 : axis == COLUMN ? side : side * side;
}

/* ---- products -------------------------------------------------------------------------------- */

struct hv__product hv__grid_step(const struct hv__sum *s, const struct hv__product *p,
                                 double *steps)
{
    double side = s->x.grid.side;
    struct hv__product one = *p;
    one.n /= p->cut == HV__CUT_COLUMNS ? 1 : side;
    one.k /= p->cut == HV__CUT_ROWS ? 1 : side;
    bool cube = s->q->tp_scheme == HV_TP_3D;
    one.m *= cube ? side : 1;
    *steps = cube ? 1 : side;
    return one;
}

double hv__grid_scattered(const struct hv__sum *s)
{
    return s->q->tp_scheme == HV_TP_3D ? s->x.grid.side : 1;
}

void hv__note_grid_product(struct hv__sum *s, const struct hv__grid_product *p)
{
    struct hv__grid *g = &s->x.grid;
    if (g->n < HV__GRID_PRODUCTS) {
        g->products[g->n++] = *p;
    }
}

/* A product with rows of one 1 each: nothing of the input is exchanged. */
void hv__add_look_up(struct hv__sum *s)
{
    double steps, vocab = hv__cut(s, s->m->vocab, s->t);
    struct hv__product p = {.m = s->rows, .n = s->m->hidden, .k = vocab, .cut = HV__CUT_ROWS};
    p = hv__grid_step(s, &p, &steps);
    hv__note_grid_product(s, &(struct hv__grid_product){.b = p.k * p.n, .c = p.m * p.n});
}

double hv__grid_kept_bytes(const struct hv__sum *s, const struct hv__grid_product *p)
{
    double side = s->x.grid.side;
    bool holds = s->q->tp_scheme == HV_TP_3D && !s->q->tp_regather;
    return holds ? s->elem * (p->a * (1 - 1 / side) + p->b) : 0;
}

double hv__grid_buffers_bytes(const struct hv__sum *s)
{
    double most = 0;
    bool cube = s->q->tp_scheme == HV_TP_3D;
    for (int i = 0; i < s->x.grid.n; i++) {
        const struct hv__grid_product *p = &s->x.grid.products[i];
        most = fmax(most, cube ? p->a + p->b + p->c : 2 * (p->a + p->b));
    }
    return s->x.grid.side > 1 ? s->elem * most : 0;
}

/* ---- lines of ranks -------------------------------------------------------------------------- */

/* What exchanges are priced with. */
struct net {
    const struct hv__ask *a;
    int side;
    double elem;
    bool far[3]; /* ranks along this axis are in several link domains */
};

/* The members of a line of the context rank `cp`, in ids[side]. */
static void take_line(const struct hv__ask *a, int axis, int cp, int line, uint32_t *ids)
{
    const struct hv_part_query *q = a->q;
    size_t apart = hv__grid_apart(q, axis), n = (size_t)hv__grid_side(q);
    const uint32_t *first = q->group + (size_t)cp * (size_t)q->tp + hv__grid_line(q, axis, line);
    for (size_t i = 0; i < n; i++) {
        ids[i] = first[i * apart];
    }
}

static struct net open_net(const struct hv__ask *a)
{
    struct net n = {
        .a = a, .side = hv__grid_side(a->q), .elem = hv_job_activation_bytes(&a->k->job)};
    int lines = hv__grid_lines(a->q), axes = a->q->tp_scheme == HV_TP_3D ? 3 : 2;
    uint32_t *ids = hv_xmalloc((size_t)n.side * sizeof *ids);
    for (int axis = 0; a->q->group && axis < axes; axis++) {
        for (int i = 0; i < lines * a->q->cp && !n.far[axis]; i++) {
            take_line(a, axis, i / lines, i % lines, ids);
            n.far[axis] = hv_cluster_is_far(a->k->cluster, ids, (size_t)n.side, 1);
        }
    }
    free(ids);
    return n;
}

/* An operation along an axis: the slowest of its lines, which all run at the same time. */
static struct hv__span along(const struct net *n, int axis, enum hv_collective op, double values)
{
    const struct hv__ask *a = n->a;
    const struct hv_beside *b = &a->q->beside;
    double together = axis == ROW ? b->tp : b->tp_axis[axis - 1];
    struct hv__call c = {
        .op = op, .bytes = n->elem * values, .n = n->side, .together = together > 0 ? together : 1};
    struct hv__span slowest = {0, 0};
    if (n->side < 2 || !(values > 0)) {
        return slowest;
    }
    if (!a->q->group) {
        return hv__call_span(a, &c);
    }
    uint32_t *ids = hv_xmalloc((size_t)n->side * sizeof *ids);
    uint64_t before = 0;
    int lines = hv__grid_lines(a->q);
    struct hv__ask quiet = *a;
    for (int i = 0; i < lines * a->q->cp; i++) {
        take_line(a, axis, i / lines, i % lines, ids);
        uint64_t own = hv__signature(a->k->cluster, ids, (size_t)n->side);
        if (own == before) {
            continue; /* costs what the line before costs */
        }
        before = own;
        c.members = ids;
        struct hv__span one = hv__call_span(&quiet, &c);
        slowest = one.time_s > slowest.time_s ? one : slowest;
        quiet.why = NULL;
    }
    free(ids);
    return slowest;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Exchanges of a pass: exposed; from start to end inside link domains [0] and between them [1];
 * values that a rank sends. */
struct tally {
    double shown_s, sent;
    struct hv__span wire[2];
};

static void add_wire(const struct net *n, int axis, double times, struct hv__span one,
                     struct tally *t)
{
    struct hv__span *w = &t->wire[n->far[axis]];
    *w = hv__span_sum(*w, (struct hv__span){times * one.time_s, times * one.latency_s});
}

/* Panels of a grid along rows and columns: values of one broadcast before a step and of one
 * reduction after it. */
struct panels {
    double before[2], after[2];
};

/* The steps of a product that computes for `compute_s` in all. */
static void add_panels(const struct net *n, double compute_s, const struct panels *p,
                       struct tally *t)
{
    struct hv_panels steps = {
        .steps = n->side, .step_s = compute_s / n->side, .one_link = n->far[ROW] == n->far[COLUMN]};
    for (int axis = ROW; axis <= COLUMN; axis++) {
        struct hv__span before = along(n, axis, HV_BROADCAST, p->before[axis]);
        struct hv__span after = along(n, axis, HV_REDUCE, p->after[axis]);
        steps.before_s[axis] = before.time_s;
        steps.after_s[axis] = after.time_s;
        add_wire(n, axis, n->side, hv__span_sum(before, after), t);
        t->sent += (n->side - 1) * (p->before[axis] + p->after[axis]);
    }
    t->shown_s += hv__shown_s(n->a, hv_overlap_panels(&steps)) + hv__wait_s(n->a->q);
}

static void add_grid_forward(const struct net *n, const struct hv__grid_product *p, struct tally *t)
{
    add_panels(n, p->forward_s, &(struct panels){.before = {p->a, p->b}}, t);
}

/* Gradients of the input: panels of weights go along columns and partial sums along rows; of the
 * weights: the other way round. A look-up has no gradient of its input. */
static void add_grid_backward(const struct net *n, const struct hv__grid_product *p,
                              struct tally *t)
{
    if (p->a > 0) {
        const struct panels input = {.before = {0, p->b}, .after = {p->a, 0}};
        add_panels(n, p->input_grad_s, &input, t);
    }
    const struct panels weights = {.before = {p->a, 0}, .after = {0, p->b}};
    add_panels(n, p->weight_grad_s, &weights, t);
}

/* An exchange on a cube that nothing runs beside. */
static void add_call(const struct net *n, int axis, enum hv_collective op, double values,
                     struct tally *t)
{
    struct hv__span one = along(n, axis, op, values);
    t->shown_s += one.time_s + (values > 0 ? hv__wait_s(n->a->q) : 0);
    t->sent += (n->side - 1.0) / n->side * values;
    add_wire(n, axis, 1, one, t);
}

/* Inputs lie along one axis and outputs along another, weights along the first; the next product
 * has the two the other way round. */
struct axes {
    int input, output;
};

static void add_cube_forward(const struct net *n, const struct hv__grid_product *p, struct axes x,
                             struct tally *t)
{
    add_call(n, x.input, HV_ALL_GATHER, p->a, t);
    add_call(n, ROW, HV_ALL_GATHER, p->b, t);
    add_call(n, x.output, HV_REDUCE_SCATTER, p->c, t);
}

/* One of the exchanges that run beside the products of the backward pass. */
static double beside_s(const struct net *n, int axis, enum hv_collective op, double values,
                       struct tally *t)
{
    struct hv__span one = along(n, axis, op, values);
    add_wire(n, axis, 1, one, t);
    t->sent += (n->side - 1.0) / n->side * values;
    return one.time_s;
}

static void add_cube_backward(const struct net *n, const struct hv__grid_product *p, struct axes x,
                              struct tally *t)
{
    /* a recomputed product has just gathered, and a look-up needs neither again */
    bool again = n->a->q->tp_regather && !p->again && p->a > 0;
    double of_output_s = beside_s(n, x.output, HV_ALL_GATHER, p->c, t);
    const struct hv_units products[] = {
        {of_output_s + beside_s(n, ROW, HV_ALL_GATHER, again ? p->b : 0, t), p->input_grad_s,
         beside_s(n, x.input, HV_REDUCE_SCATTER, p->a, t), 1},
        {beside_s(n, x.input, HV_ALL_GATHER, again ? p->a : 0, t), p->weight_grad_s,
         beside_s(n, ROW, HV_REDUCE_SCATTER, p->b, t), 1}};
    t->shown_s += hv__shown_s(n->a, hv_overlap_units(products, 2, 2)) + hv__wait_s(n->a->q);
}

/* Sums of norms over the ranks that share the values of a token, in 4 bytes each. */
static void add_norms(const struct net *n, double norms, double sums, struct tally *t)
{
    int axis = n->a->q->tp_scheme == HV_TP_3D ? COLUMN : ROW;
    struct hv__span one = along(n, axis, HV_ALL_REDUCE, SUM_BYTES / n->elem * sums);
    add_wire(n, axis, norms, one, t);
    t->shown_s += norms * (one.time_s + (sums > 0 ? hv__wait_s(n->a->q) : 0));
}

static void add_product(const struct net *n, const struct hv__grid *g, int i, struct tally *forward,
                        struct tally *backward)
{
    const struct hv__grid_product *p = &g->products[i];
    const struct axes x = i % 2 == 0 ? (struct axes){COLUMN, LAYER} : (struct axes){LAYER, COLUMN};
    struct tally own = {0};
    if (n->a->q->tp_scheme == HV_TP_3D) {
        add_cube_forward(n, p, x, &own);
        add_cube_backward(n, p, x, backward);
    } else {
        add_grid_forward(n, p, &own);
        add_grid_backward(n, p, backward);
    }
    for (int again = 0; again < (p->again ? 2 : 1); again++) {
        struct tally *to = again ? backward : forward;
        to->shown_s += own.shown_s;
        to->sent += own.sent;
        to->wire[0] = hv__span_sum(to->wire[0], own.wire[0]);
        to->wire[1] = hv__span_sum(to->wire[1], own.wire[1]);
    }
}

static void note_sent(const struct net *n, double forward, double backward,
                      struct hv_part_cost *out)
{
    bool block = hv__in_block(n->a->part), cube = n->a->q->tp_scheme == HV_TP_3D;
    struct hv_sent sent = {forward, backward};
    *(block ? &out->sent.tp : &out->sent.vocabulary) = sent;
    if (block && !cube && n->side > 1) {
        double hops = log2(n->side) * n->side / (n->side - 1);
        out->sent.tp_tree = (struct hv_sent){hops * forward, hops * backward};
    }
}

void hv__add_grid(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    const struct hv__grid *g = &x->grid;
    struct tally forward = {0}, backward = {0};
    if (g->side < 2) {
        return;
    }
    struct net n = open_net(a);
    for (int i = 0; i < g->n; i++) {
        add_product(&n, g, i, &forward, &backward);
    }
    add_norms(&n, g->norms, g->norm_sums, &forward);
    add_norms(&n, g->norms + g->norms_again, g->norm_sums, &backward);
    bool far = n.far[ROW] || n.far[COLUMN] || n.far[LAYER];
    out->tp_forward_s = forward.shown_s;
    out->tp_backward_s = backward.shown_s;
    out->tp_wire_forward_s = forward.wire[far].time_s;
    out->tp_wire_backward_s = backward.wire[far].time_s;
    out->tp_latency_forward_s = forward.wire[far].latency_s;
    out->tp_latency_backward_s = backward.wire[far].latency_s;
    note_sent(&n, forward.sent, backward.sent, out);
    hv_why_add(a->why, a->q->tp_scheme == HV_TP_3D ? "cube exchange" : "grid exchange",
               forward.shown_s, "s",
               "exposed part of forward: blocks of %d products over lines of %d ranks, rows %s, "
               "columns %s; %.6g values sent; backward %.4g s, %.6g values",
               g->n, n.side, n.far[ROW] ? "between nodes" : "inside a node",
               n.far[COLUMN] ? "between nodes" : "inside a node", forward.sent, backward.shown_s,
               backward.sent);
    hv_why_attach(a->why, &(struct hv_why_work){.bytes = n.elem * forward.sent,
                                                .backward_s = backward.shown_s,
                                                .backward_bytes = n.elem * backward.sent});
}
