/*
 * Models of modules: every leaf has a pricing context of its own, and a stage is priced piece by
 * piece, a piece being its blocks and ends of one leaf. The leaves compute the prices.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cost/cost_int.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/floor/floor_int.h"
#include "solver/cost/graph/graph.h"
#include "solver/cost/sum.h"

void hv__modules_open(struct hv_cost *k)
{
    struct hv__context *own = &k->own;
    k->n_subs = hv_model_n_leaves(own->model);
    k->leaves = hv_arena_new(&own->arena, struct hv_model_leaf, k->n_subs);
    k->subs = hv_arena_new(&own->arena, struct hv_cost *, k->n_subs);
    hv_model_leaves(own->model, k->leaves);
    for (size_t i = 0; i < k->n_subs; i++) {
        struct hv_model *leaf = NULL;
        memcpy(&leaf, &k->leaves[i].model, sizeof leaf); /* a reference of our own is taken */
        struct hv_cost *s = k->subs[i] = hv_xcalloc(1, sizeof *s);
        s->leaf = hv__leaf_row(leaf);
        hv__context_open(&s->own, own->cluster, leaf, &own->job, s->leaf->parts);
        for (size_t b = 0; b < leaf->n_blocks; b++) {
            own->cls[k->leaves[i].first + b] = own->n_classes + s->own.cls[b];
        }
        for (unsigned c = 0; c < s->own.n_classes; c++) {
            own->representative[own->n_classes + c] = k->leaves[i].first + s->own.representative[c];
        }
        own->n_classes += s->own.n_classes;
    }
}

void hv__modules_close(struct hv_cost *k)
{
    for (size_t i = 0; i < k->n_subs; i++) {
        hv__graphs_free(k->subs[i]->own.graphs);
        hv__context_close(&k->subs[i]->own);
        free(k->subs[i]);
    }
}

/* The leaf that holds a block; the last one for blocks beyond. */
static size_t leaf_of(const struct hv_cost *k, size_t block)
{
    size_t i = 0;
    while (i + 1 < k->n_subs && block >= k->leaves[i + 1].first) {
        i++;
    }
    return i;
}

/* The query for a leaf: images have as many tokens as their model declares. */
static struct hv_part_query query_of(const struct hv_cost *k, size_t leaf,
                                     const struct hv_part_query *q)
{
    struct hv_part_query own = *q;
    if (k->leaves[leaf].model->patch_tokens > 0) {
        own.tokens = k->leaves[leaf].model->patch_tokens;
        own.context = 0;
    }
    return own;
}

/* The embedding is that of the first leaf, the head that of the last leaf. */
struct hv_part_cost hv__modules_part(struct hv_cost *k, enum hv_part part, size_t block,
                                     const struct hv_part_query *q, struct hv_why *why)
{
    size_t i = hv__in_block(part) ? leaf_of(k, block) : part == HV_PART_HEAD ? k->n_subs - 1 : 0;
    if (hv__in_block(part) && block >= k->own.model->n_blocks) {
        return (struct hv_part_cost){0};
    }
    if (part == HV_PART_HEAD && k->leaves[i].feeds) {
        return (struct hv_part_cost){0};
    }
    struct hv_part_query own = query_of(k, i, q);
    struct hv_cost *s = k->subs[i];
    return s->leaf->part(&s->own, part, hv__in_block(part) ? block - k->leaves[i].first : 0, &own,
                         why);
}

/* ---- floors ---------------------------------------------------------------------------------- */

double hv__modules_floor_s(struct hv_cost *k, enum hv_part part, size_t block,
                           const struct hv_device_kind *device)
{
    double sum = 0;
    if (hv__in_block(part)) {
        size_t i = leaf_of(k, block);
        struct hv_cost *s = k->subs[i];
        return block < k->own.model->n_blocks
                   ? s->leaf->floor_s(&s->own, part, block - k->leaves[i].first, device)
                   : 0;
    }
    for (size_t i = 0; i < k->n_subs; i++) {
        if (part == HV_PART_EMBEDDING || !k->leaves[i].feeds) {
            sum += k->subs[i]->leaf->floor_s(&k->subs[i]->own, part, 0, device);
        }
    }
    return sum;
}

const struct hv_cost_by_size *hv__modules_by_size(struct hv_cost *k, enum hv_part part,
                                                  size_t block, const struct hv_device_kind *device)
{
    if (k->n_subs > 1 && !hv__in_block(part)) {
        return hv__one_size(&k->own, part, 0, device, hv__modules_floor_s(k, part, 0, device));
    }
    size_t i = leaf_of(k, block);
    struct hv_cost *s = k->subs[i];
    return s->leaf->floor_by_size(&s->own, part, block - k->leaves[i].first, device);
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Adds an end that lies between two leaves to the block beside it. */
static void fold_end(const struct hv_part_cost *c, struct hv_layer_table *t, size_t from, size_t n)
{
    double f = c->forward_s + c->tp_forward_s,
           b = c->input_grad_s + c->weight_grad_s + c->recompute_s + c->tp_backward_s;
    for (size_t i = from; i <= n; i++) {
        t->forward_s[i] += f;
        t->backward_s[i] += b;
        t->parameters[i] += c->parameters;
        t->saved_bytes[i] += c->saved_bytes;
    }
}

static void add_table(const struct hv_cost *k, size_t leaf, const struct hv_layer_table *own,
                      struct hv_layer_table *out)
{
    size_t at = k->leaves[leaf].first;
    for (size_t i = 1; i <= own->n_blocks; i++) {
        out->forward_s[at + i] = out->forward_s[at] + own->forward_s[i];
        out->backward_s[at + i] = out->backward_s[at] + own->backward_s[i];
        out->parameters[at + i] = out->parameters[at] + own->parameters[i];
        out->saved_bytes[at + i] = out->saved_bytes[at] + own->saved_bytes[i];
    }
    out->output_bytes = fmax(out->output_bytes, own->output_bytes);
    size_t end = at + own->n_blocks;
    if (leaf == 0) {
        out->embedding = own->embedding;
    } else if (own->n_blocks > 0) {
        fold_end(&own->embedding, out, at + 1, end);
    }
    if (k->leaves[leaf].feeds) {
        return;
    }
    if (leaf + 1 == k->n_subs) {
        out->head = own->head;
    } else if (own->n_blocks > 0) {
        fold_end(&own->head, out, end, end);
    }
}

enum hv_status hv__modules_layers(struct hv_cost *k, const struct hv_part_query *q,
                                  struct hv_arena *arena, struct hv_layer_table *out,
                                  struct hv_err *err)
{
    for (size_t i = 0; i < k->n_subs; i++) {
        enum hv_status st = hv__check_device(&k->subs[i]->own, q->device, err);
        if (st != HV_OK) {
            return st;
        }
    }
    size_t n = k->own.model->n_blocks;
    *out = (struct hv_layer_table){.n_blocks = n,
                                   .forward_s = hv_arena_new(arena, double, n + 1),
                                   .backward_s = hv_arena_new(arena, double, n + 1),
                                   .parameters = hv_arena_new(arena, double, n + 1),
                                   .saved_bytes = hv_arena_new(arena, double, n + 1)};
    for (size_t i = 0; i < k->n_subs; i++) {
        struct hv_layer_table own;
        struct hv_part_query leaf = query_of(k, i, q);
        enum hv_status st = k->subs[i]->leaf->layers(&k->subs[i]->own, &leaf, arena, &own, err);
        if (st != HV_OK) {
            return st;
        }
        add_table(k, i, &own, out);
    }
    return HV_OK;
}

/* ---- a whole stage --------------------------------------------------------------------------- */

/* The piece of a stage in one leaf, as a query to that leaf's context. */
struct piece {
    size_t leaf;
    struct hv_stage_query q;
    struct hv_stage stage;
    struct hv_range *ranges;
    struct hv_moe_knobs *moe;
};

static void free_piece(struct piece *p)
{
    free(p->ranges);
    free(p->moe);
}

/* Half blocks of range `chunk` of the stage that lie in a leaf, counted in the leaf. False: none;
 * an empty range lies where it points. */
static bool part_of_range(const struct hv_cost *k, const struct hv_stage *s, size_t chunk,
                          size_t leaf, struct hv_range *out)
{
    size_t base2 = 0, n2 = 0;
    (void)hv_stage_module(k->own.model, s, &base2, &n2);
    int first2 = 2 * (int)k->leaves[leaf].first, shift = (int)base2 - first2;
    int end2 = 2 * (int)k->leaves[leaf].model->n_blocks;
    int from2 = s->ranges[chunk].from2 + shift, to2 = s->ranges[chunk].to2 + shift;
    if (from2 == to2 && leaf_of(k, (size_t)(from2 + first2) / 2) != leaf) {
        return false;
    }
    out->from2 = from2 > 0 ? from2 : 0;
    out->to2 = to2 < end2 ? to2 : end2;
    return from2 == to2 || out->from2 < out->to2;
}

/* True where the stage holds this end of the leaf: the plan declares it, or the stage holds the
 * block beside it. */
static int has_end(int told, const struct hv_range *ranges, size_t n, int at2, bool last)
{
    if (told >= 0) {
        return told;
    }
    for (size_t i = 0; i < n; i++) {
        if ((last ? ranges[i].to2 : ranges[i].from2) == at2) {
            return 1;
        }
    }
    return 0;
}

/* Knobs of experts name blocks of the module; the leaf counts its own. */
static void shift_moe(struct piece *p, struct hv_stage *s, int by)
{
    if (s->n_moe == 0 || by == 0) {
        return;
    }
    p->moe = hv_xmalloc(s->n_moe * sizeof *p->moe);
    memcpy(p->moe, s->moe, s->n_moe * sizeof *p->moe);
    for (size_t i = 0; i < s->n_moe; i++) {
        if (p->moe[i].from >= 0) {
            p->moe[i].from += by;
            p->moe[i].to += by;
        }
    }
    s->moe = p->moe;
}

/* Blocks of the stage that lie in leaves before this one: recompute_per counts all of them. */
static size_t blocks_before(const struct hv_cost *k, const struct hv_stage *s, size_t chunk,
                            size_t leaf)
{
    size_t n = 0;
    struct hv_range r;
    for (size_t c = 0; c <= chunk; c++) {
        for (size_t i = 0; i < (c == chunk ? leaf : k->n_subs); i++) {
            if (part_of_range(k, s, c, i, &r)) {
                n += (size_t)(r.to2 + 1) / 2 - (size_t)r.from2 / 2;
            }
        }
    }
    return n;
}

/* The piece of chunks [first, last) of the stage in a leaf; false: it holds nothing of it. */
static bool make_piece(const struct hv_cost *k, const struct hv_stage_query *q, size_t first,
                       size_t last, struct piece *p)
{
    const struct hv_stage *from = hv_stage_asked(q);
    const struct hv_model_leaf *leaf = &k->leaves[p->leaf];
    size_t n = 0, base2 = 0, n2 = 0, begun = first;
    p->ranges = hv_xmalloc((last - first + 1) * sizeof *p->ranges);
    for (size_t c = first; c < last; c++) {
        begun = n == 0 ? c : begun;
        n += part_of_range(k, from, c, p->leaf, &p->ranges[n]);
    }
    if (n == 0) {
        return false;
    }
    p->stage = *from;
    struct hv_stage *s = &p->stage;
    s->ranges = p->ranges;
    s->n_ranges = n;
    s->module = NULL;
    int end2 = 2 * (int)leaf->model->n_blocks;
    s->embedding = has_end(from->embedding, p->ranges, n, 0, false);
    s->head = leaf->feeds ? 0 : has_end(from->head, p->ranges, n, end2, true);
    (void)hv_stage_module(k->own.model, from, &base2, &n2);
    shift_moe(p, s, (int)(base2 / 2) - (int)leaf->first);
    size_t before = s->recompute_per ? blocks_before(k, from, begun, p->leaf) : 0;
    if (before < s->n_recompute_per) {
        s->recompute_per += before;
        s->n_recompute_per -= before;
    }
    p->q = *q;
    p->q.as = &p->stage;
    p->q.chunk = 0;
    p->q.scales = NULL;
    if (leaf->model->patch_tokens > 0) {
        p->q.tokens = leaf->model->patch_tokens;
        p->q.context = 0;
    }
    if (q->scales && q->sequences > 0) {
        p->q.sequences = q->sequences * q->scales[p->leaf];
    }
    return true;
}

enum hv_status hv__modules_pass(struct hv_cost *k, const struct hv_stage_query *q,
                                struct hv_pass *out, struct hv_err *err)
{
    const struct hv_stage *s = hv_stage_asked(q);
    struct hv__sum_of_passes sum = {0};
    enum hv_status st = HV_OK;
    *out = (struct hv_pass){0};
    for (size_t i = 0; st == HV_OK && i < k->n_subs && q->chunk < s->n_ranges; i++) {
        struct piece p = {.leaf = i};
        struct hv_pass own;
        if (make_piece(k, q, q->chunk, q->chunk + 1, &p) &&
            (q->scales == NULL || q->scales[i] > 0)) {
            st = k->subs[i]->leaf->pass(&k->subs[i]->own, &p.q, &own, err);
        } else {
            own = (struct hv_pass){.hop_bytes = sum.pass.hop_bytes};
        }
        if (st == HV_OK) {
            hv__add_pass(&sum, &own, 2 * (int)k->leaves[i].first);
        }
        free_piece(&p);
    }
    hv__end_sum(&k->own, &sum, out);
    return st;
}

enum hv_status hv__modules_memory(struct hv_cost *k, const struct hv_stage_query *q,
                                  struct hv_memory *out, struct hv_err *err)
{
    const struct hv_stage *s = hv_stage_asked(q);
    enum hv_status st = HV_OK;
    bool any = false;
    *out = (struct hv_memory){0};
    for (size_t i = 0; st == HV_OK && i < k->n_subs; i++) {
        struct piece p = {.leaf = i};
        struct hv_memory own;
        if (make_piece(k, q, 0, s->n_ranges, &p)) {
            st = k->subs[i]->leaf->memory(&k->subs[i]->own, &p.q, &own, err);
            if (st == HV_OK) {
                hv__add_memory(&own, any, out);
            }
            any = true;
        }
        free_piece(&p);
    }
    return st;
}
