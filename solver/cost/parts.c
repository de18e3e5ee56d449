/*
 * Stages with layer-wise degrees: every part (solver/plan/parts.h) is priced as a stage of its own
 * on the same devices; where the layout of activations changes between two parts, they exchange it.
 * Ranks wait for each other at every such exchange, so the seconds of parts add up.
 */
#include "solver/plan/parts.h"

#include <math.h>
#include <stdlib.h>

#include "solver/cost/cost_int.h"
#include "solver/cost/stage/relayout.h"
#include "solver/cost/sum.h"

/* A part in the place of its stage. */
struct part {
    struct hv_range range;
    struct hv_stage stage;
    struct hv_stage_query q;
    size_t width; /* devices of a data-parallel rank */
};

/* Sets the query of a part whose `stage` is set: its data-parallel rank that holds the unit. */
static void ask(const struct hv_stage_query *q, struct part *p)
{
    size_t unit = hv_stage_width(hv_stage_asked(q));
    p->width = hv_stage_width(&p->stage);
    p->q = *q;
    p->q.as = &p->stage;
    p->q.chunk = 0;
    p->q.dp_rank = (int)((size_t)q->dp_rank * unit / p->width);
    if (q->sequences > 0) {
        p->q.sequences = q->sequences * (double)p->width / (double)unit;
    }
}

static bool has_embedding(const struct hv_stage_query *q)
{
    return q->as != NULL ? q->as->embedding > 0 : hv_stage_has_embedding(q->replica, q->stage);
}

static bool has_head(const struct hv_stage_query *q)
{
    return q->as != NULL ? q->as->head > 0 : hv_stage_has_head(q->replica, q->stage);
}

/* The part of the query's chunk that begins at half block at2. */
static void part_at(const struct hv_stage_query *q, int at2, struct part *p)
{
    const struct hv_stage *s = hv_stage_asked(q);
    const struct hv_range *chunk = &s->ranges[q->chunk];
    p->range = (struct hv_range){at2, hv_stage_part_end(s, at2, chunk->to2)};
    p->stage = hv_stage_part(s, &p->range);
    p->stage.embedding = has_embedding(q) && q->chunk == 0 && at2 == chunk->from2;
    p->stage.head = has_head(q) && q->chunk + 1 == s->n_ranges && p->range.to2 == chunk->to2;
    ask(q, p);
    p->q.continued = at2 > chunk->from2;
    p->q.continues = p->range.to2 < chunk->to2;
}

/* Adds the exchange between two parts to the pass of the second; `bytes` is what the first hands
 * on, of all sequences of the micro-batch. */
static void add_relayout(struct hv_cost *k, const struct part *a, const struct part *b,
                         double bytes, struct hv_pass *pass)
{
    const struct hv_stage *s = &b->stage;
    size_t ranks = hv_stage_ranks(b->q.replica, s);
    const struct hv__relayout x = {s->devices + (size_t)b->q.copy * ranks, ranks,
                                   (size_t)b->q.dp_rank * b->width, bytes};
    double there_s = hv__relayout_s(&k->own, &x, &a->stage, &b->stage);
    double back_s = hv__relayout_s(&k->own, &x, &b->stage, &a->stage);
    bool far = hv__relayout_is_far(&k->own, &x, &a->stage, &b->stage);
    bool far_back = hv__relayout_is_far(&k->own, &x, &b->stage, &a->stage);
    pass->forward_s += there_s;
    pass->input_grad_s += back_s;
    pass->input_alone_s += back_s;
    pass->tp_s += there_s + back_s;
    pass->network_forward_s += far ? there_s : 0;
    pass->network_backward_s += far_back ? back_s : 0;
    hv_why_add(b->q.why, "change of layout", there_s + back_s, "s",
               "%.4g s forward and %.4g s backward: %.4g bytes from dp %d x tp %d to dp %d x tp %d",
               there_s, back_s, bytes, a->stage.dp, a->stage.tp.degree, s->dp, s->tp.degree);
}

static enum hv_status one_pass(struct hv_cost *k, const struct hv_stage_query *q,
                               struct hv_pass *out, struct hv_err *err)
{
    return k->leaf ? k->leaf->pass(&k->own, q, out, err) : hv__modules_pass(k, q, out, err);
}

enum hv_status hv__parts_pass(struct hv_cost *k, const struct hv_stage_query *q,
                              struct hv_pass *out, struct hv_err *err)
{
    const struct hv_stage *s = hv_stage_asked(q);
    struct hv__sum_of_passes sum = {0};
    struct part parts[2]; /* this one and the one before */
    enum hv_status st = HV_OK;
    size_t n = 0;
    if (s->n_degrees == 0) {
        return one_pass(k, q, out, err);
    }
    if (q->chunk >= s->n_ranges) {
        *out = (struct hv_pass){0};
        return HV_OK;
    }
    int to2 = s->ranges[q->chunk].to2;
    for (int at2 = s->ranges[q->chunk].from2; st == HV_OK && at2 < to2; n++) {
        struct part *p = &parts[n % 2], *before = &parts[(n + 1) % 2];
        struct hv_pass own;
        part_at(q, at2, p);
        hv_why_add(q->why, "part", (p->range.to2 - p->range.from2 + 1) / 2, "x",
                   "blocks %d to %d on dp %d x cp %d x tp %d:", p->range.from2 / 2,
                   (p->range.to2 - 1) / 2, p->stage.dp, p->stage.cp.degree, p->stage.tp.degree);
        st = one_pass(k, &p->q, &own, err);
        if (st == HV_OK && n > 0) {
            add_relayout(k, before, p, sum.pass.hop_bytes * before->stage.dp, &own);
        }
        if (st == HV_OK) {
            hv__add_pass(&sum, &own, 0);
        }
        at2 = p->range.to2;
    }
    /* of this unit's share of the last part's data-parallel rank */
    sum.pass.hop_bytes *= n > 0 ? (double)hv_stage_width(s) / (double)parts[(n - 1) % 2].width : 1;
    hv__end_sum(&k->own, &sum, out);
    return st;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* The parts of a stage that have the degrees of one entry. */
struct layout {
    struct part part;
    struct hv_range *ranges;
};

/* Collects the blocks of the stage that have the degrees of `d`; false: none has. */
static bool layout_of(const struct hv_stage_query *q, const struct hv_degrees *d, struct layout *y)
{
    const struct hv_stage *s = hv_stage_asked(q);
    struct hv_stage *as = &y->part.stage;
    *as = hv_stage_with_degrees(s, d);
    as->ranges = y->ranges;
    as->n_ranges = 0;
    as->recompute_per = NULL;
    as->n_recompute_per = 0;
    as->embedding = as->head = 0;
    for (size_t c = 0; c < s->n_ranges; c++) {
        const struct hv_range *r = &s->ranges[c];
        for (int at2 = r->from2, end2; at2 < r->to2; at2 = end2) {
            end2 = hv_stage_part_end(s, at2, r->to2);
            if (!hv_stage_same_degrees(s, hv_stage_degrees(s, at2 / 2), d)) {
                continue;
            }
            as->embedding |= has_embedding(q) && c == 0 && at2 == r->from2;
            as->head |= has_head(q) && c + 1 == s->n_ranges && end2 == r->to2;
            y->ranges[as->n_ranges++] = (struct hv_range){at2, end2};
        }
    }
    ask(q, &y->part);
    return as->n_ranges > 0;
}

/* Communicators of a layout that another one with other degrees does not have. */
static int own_groups(const struct hv_replica *r, const struct hv_stage *s)
{
    return (s->tp.degree > 1) + (s->cp.degree > 1) + (s->dp * s->cp.degree * r->count > 1) +
           (hv_stage_experts_over(s) > 1);
}

static bool same_groups(const struct hv_stage *a, const struct hv_stage *b)
{
    return a->tp.degree == b->tp.degree && a->cp.degree == b->cp.degree;
}

/* Layouts added so far. */
struct layouts {
    struct hv_stage *seen;
    size_t n;
    int more; /* communicators besides those of the first */
    struct hv_memory memory;
};

static void add_layout(struct layouts *sum, const struct hv_stage *s, const struct hv_replica *r,
                       const struct hv_memory *own)
{
    struct hv_memory *m = &sum->memory;
    bool known = sum->n == 0;
    for (size_t i = 0; i < sum->n; i++) {
        known = known || same_groups(&sum->seen[i], s);
    }
    sum->more += known ? 0 : own_groups(r, s);
    hv__add_memory(own, sum->n > 0, m);
    m->communicator_bytes = fmax(m->communicator_bytes, own->communicator_bytes);
    m->boundary_bytes = fmax(m->boundary_bytes, own->boundary_bytes);
    sum->seen[sum->n++] = *s;
}

/* Most parts of a stage: each entry begins and ends one. */
static size_t most_parts(const struct hv_stage *s)
{
    return s->n_ranges * (2 * s->n_degrees + 1);
}

static enum hv_status one_memory(struct hv_cost *k, const struct hv_stage_query *q,
                                 struct hv_memory *out, struct hv_err *err)
{
    return k->leaf ? k->leaf->memory(&k->own, q, out, err) : hv__modules_memory(k, q, out, err);
}

/* Entry number i of the stage's degrees, counted from 1; 0: its own. */
static const struct hv_degrees *entry_at(const struct hv_stage *s, size_t i)
{
    return i == 0 ? NULL : &s->degrees[i - 1];
}

/* True where no earlier entry has the same degrees. */
static bool is_first(const struct hv_stage *s, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (hv_stage_same_degrees(s, entry_at(s, k), entry_at(s, i))) {
            return false;
        }
    }
    return true;
}

enum hv_status hv__parts_memory(struct hv_cost *k, const struct hv_stage_query *q,
                                struct hv_memory *out, struct hv_err *err)
{
    const struct hv_stage *s = hv_stage_asked(q);
    if (s->n_degrees == 0) {
        return one_memory(k, q, out, err);
    }
    struct layouts sum = {.seen = hv_xmalloc((s->n_degrees + 1) * sizeof *sum.seen)};
    struct layout y = {.ranges = hv_xmalloc((most_parts(s) + 1) * sizeof *y.ranges)};
    enum hv_status st = HV_OK;
    for (size_t i = 0; st == HV_OK && i <= s->n_degrees; i++) {
        struct hv_memory own;
        if (is_first(s, i) && layout_of(q, entry_at(s, i), &y)) {
            st = one_memory(k, &y.part.q, &own, err);
            if (st == HV_OK) {
                add_layout(&sum, &y.part.stage, q->replica, &own);
            }
        }
    }
    *out = sum.memory;
    out->outside_bytes += sum.more * sum.memory.communicator_bytes;
    out->overhead_bytes += sum.more * sum.memory.communicator_bytes;
    free(y.ranges);
    free(sum.seen);
    return st;
}
