/*
 * Which rank of which stage: its devices, its slowest kind, its share of the work, and how its
 * blocks fall into pieces that cost the same. Rules A-F of the plan format; no prices here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cost/stage/stage_int.h"
#include "solver/workload/router.h"

static size_t at_least_1(int x)
{
    return x > 0 ? (size_t)x : 1;
}

/* The slowest kind of device in the rank's group, and the others. */
static enum hv_status find_kinds(struct hv__context *k, size_t group, struct hv__rank *out,
                                 struct hv_err *err)
{
    out->device = hv_cluster_device(k->cluster, out->group[0]).kind;
    for (size_t i = 0; i < group; i++) {
        const struct hv_device_kind *d = hv_cluster_device(k->cluster, out->group[i]).kind;
        enum hv_status st = hv__check_device(k, d, err);
        if (st != HV_OK) {
            return st;
        }
        out->device = hv__slower(k->job.precision, out->device, d);
    }
    for (size_t i = 0; i < group; i++) {
        const struct hv_device_kind *d = hv_cluster_device(k->cluster, out->group[i]).kind;
        bool known = d == out->device;
        for (size_t n = 0; n < out->n_others; n++) {
            known = known || d == out->others[n];
        }
        if (!known && out->n_others < HV__GROUP_KINDS) {
            out->others[out->n_others++] = d;
        }
    }
    return HV_OK;
}

enum hv_status hv__find_rank(struct hv__context *k, const struct hv_stage_query *q,
                             struct hv__rank *out, struct hv_err *err)
{
    const struct hv_stage *s = hv_stage_asked(q);
    *out = (struct hv__rank){.stage = s,
                             .dp = at_least_1(s->dp),
                             .cp = at_least_1(s->cp.degree),
                             .tp = at_least_1(s->tp.degree)};
    size_t ranks = hv_stage_ranks(q->replica, s), group = out->cp * out->tp;
    out->at = q->dp_rank > 0 ? (size_t)q->dp_rank : 0;
    if (group > ranks / out->dp) {
        return hv_err_set(err, HV_ENO,
                          "stage %zu has %zu devices per copy, dp %zu x cp %zu x tp %zu need more",
                          q->stage, ranks, out->dp, out->cp, out->tp);
    }
    if (out->at >= ranks / group || q->copy < 0 || q->copy >= q->replica->count) {
        return hv_err_set(err, HV_ENO, "stage %zu has no rank %zu in a copy %d", q->stage, out->at,
                          q->copy);
    }
    out->tp_at = s->tp.shares && q->tp_rank > 0 ? (size_t)q->tp_rank : 0;
    if (out->tp_at >= out->tp) {
        return hv_err_set(err, HV_ENO, "stage %zu has tp %zu, there is no tensor rank %zu",
                          q->stage, out->tp, out->tp_at);
    }
    out->part = s->devices + (size_t)q->copy * ranks;
    out->group = out->part + out->at * group;
    enum hv_status st = find_kinds(k, group, out, err);
    if (st != HV_OK) {
        return st;
    }
    out->embedding =
        q->as != NULL ? q->as->embedding > 0 : hv_stage_has_embedding(q->replica, q->stage);
    out->head = q->as != NULL ? q->as->head > 0 : hv_stage_has_head(q->replica, q->stage);
    return HV_OK;
}

/* Sequences of one micro-batch on this rank: the whole of it in turns, else its share. */
static double sequences_of(const struct hv_stage_query *q, const struct hv__rank *r)
{
    if (q->sequences > 0) {
        return q->sequences;
    }
    const struct hv_stage *s = r->stage;
    double all = hv_stage_micro_batch(q->plan, q->replica, s);
    if (s->deal == HV_DEAL_TURNS) {
        return all;
    }
    return s->shares && r->at < r->dp ? s->shares[r->at] : all / (double)r->dp;
}

/* True where DeepSpeed's pipeline engine could run the stage: 1F1B without chunks, states sharded
 * over replicas, and no sequence parallelism. */
static bool sharded_pipeline(const struct hv_stage_query *q, const struct hv_stage *s)
{
    bool sharded = s->zero.stage == 1 || s->zero.stage == 2;
    const char *name = q->plan->schedule.name;
    return sharded && q->replica->n_stages > 1 && !s->sequence_parallel && name != NULL &&
           strcmp(name, "1f1b") == 0;
}

/* dsp: the dimension that a block of the stage is cut along, from 1: the plan's, in turn, else the
 * first one that the block does not attend along. 0: none. */
static int cut_dim(const struct hv_model *m, const struct hv_stage *s, size_t block, size_t i)
{
    int attends = m->blocks[block].attends;
    for (size_t k = 0; s->cp.n_dims > 0 && k < m->n_token_dims; k++) {
        if (strcmp(m->token_dims[k].name, s->cp.dims[i % s->cp.n_dims]) == 0) {
            return (int)k + 1;
        }
    }
    return m->n_token_dims < 2 ? 0 : attends == 1 ? 2 : 1;
}

/* dsp: true where the block before is cut otherwise. The first one follows the last: embedding and
 * head are cut as the last block is. */
static bool switches_dim(const struct hv__context *k, const struct hv_stage *s, size_t block,
                         size_t i)
{
    const struct hv_model *m = k->model;
    size_t n = 0, before = block;
    if (s->cp.scheme != HV_CP_DSP || s->cp.degree < 2 || m->blocks == NULL) {
        return false;
    }
    for (size_t r = 0; r < s->n_ranges; r++) {
        for (int at = s->ranges[r].from2 / 2; at < (s->ranges[r].to2 + 1) / 2; at++, n++) {
            before = n + 1 == i || i == 0 ? (size_t)at : before;
        }
    }
    return cut_dim(m, s, block, i) != cut_dim(m, s, before, i > 0 ? i - 1 : n > 0 ? n - 1 : 0);
}

struct hv_part_query hv__part_query(const struct hv__context *k, const struct hv_stage_query *q,
                                    const struct hv__rank *r, size_t block, size_t i)
{
    const struct hv_stage *s = r->stage;
    const struct hv_moe_knobs *moe = hv_stage_moe(s, block);
    int ep = hv_moe_ep(s, moe);
    struct hv_part_query p = {.device = r->device,
                              .tp = (int)r->tp,
                              .cp = (int)r->cp,
                              .ep = ep,
                              .expert_tp = hv_stage_expert_tp(s, ep),
                              .tp_frac = s->tp.shares ? hv_tp_frac(&s->tp, r->tp_at) : 0,
                              .tp_scheme = s->tp.scheme,
                              .tp_depth = s->tp.depth,
                              .tp_regather = s->tp.regather,
                              .cp_scheme = s->cp.scheme,
                              .cp_heads = s->cp.ulysses,
                              .cp_inner = s->cp.inner,
                              .cp_switches = switches_dim(k, s, block, i),
                              .cp_tile = s->cp.tile,
                              .cp_layout = s->cp.layout,
                              .cp_order = s->cp.order,
                              .cp_backward = s->cp.backward,
                              .sequence_parallel = s->sequence_parallel,
                              .sharded_weights = s->zero.stage >= 3,
                              .sharded_pipeline = sharded_pipeline(q, s),
                              .sequences = sequences_of(q, r),
                              .tokens = q->tokens,
                              .documents = q->documents,
                              .context = q->context,
                              .sliced = q->sliced,
                              .recompute = s->recompute,
                              .group = r->group,
                              .moe = moe};
    if (s->recompute_per && i < s->n_recompute_per) {
        p.recompute = s->recompute_per[i];
    }
    return p;
}

struct hv__ep_places hv__ep_places_at(const struct hv__rank *r, size_t at,
                                      const struct hv_part_query *q)
{
    size_t ep = (size_t)q->ep, each = r->cp * r->tp / (size_t)q->expert_tp;
    each = each > 0 ? each : 1;
    return (struct hv__ep_places){at * each % ep, each < ep ? each : ep};
}

uint32_t *hv__ep_group(const struct hv__rank *r, const struct hv_part_query *q, size_t *first,
                       size_t *of)
{
    size_t stride = (size_t)q->expert_tp, n = (size_t)q->ep;
    *of = r->dp * r->cp * r->tp / stride;
    *first = r->at * r->cp * r->tp / stride / n * n;
    if (n < 2 || n > *of) {
        return NULL;
    }
    uint32_t *ids = hv_xmalloc(n * sizeof *ids);
    for (size_t i = 0; i < n; i++) {
        ids[i] = r->part[(*first + i) % *of * stride];
    }
    return ids;
}

size_t hv__holders(const struct hv_stage_query *q, const struct hv__rank *r, size_t stride,
                   size_t limit, uint32_t **out)
{
    size_t ranks = hv_stage_ranks(q->replica, r->stage), copies = (size_t)q->replica->count;
    uint32_t *ids = hv_xmalloc((copies * (ranks / stride + 1)) * sizeof *ids);
    size_t got = 0;
    for (size_t c = 0; c < copies; c++) {
        for (size_t i = 0; i + stride <= ranks; i += stride) {
            ids[got++] = r->stage->devices[c * ranks + i];
        }
    }
    *out = ids;
    return limit && limit < got ? limit : got;
}

/* Lines of all grids along each axis that share the network with the worst one of this rank. */
static void find_axes(struct hv__context *k, const struct hv__rank *r,
                      const struct hv_part_query *q, struct hv_beside *out)
{
    size_t width = r->cp * r->tp, lines = (size_t)hv__grid_lines(q);
    struct hv_family f = {r->part, r->dp * width, 1, (size_t)hv__grid_side(q)};
    for (int axis = 0; axis < (q->tp_scheme == HV_TP_3D ? 3 : 2) && f.size > 1; axis++) {
        double *most = axis == 0 ? &out->tp : &out->tp_axis[axis - 1];
        f.stride = hv__grid_apart(q, axis);
        for (size_t i = 0; i < r->cp * lines; i++) {
            size_t at = r->at * width + i / lines * r->tp;
            at += hv__grid_line(q, axis, (int)(i % lines));
            *most = fmax(*most, hv__together(&k->network, k->cluster, &f, at));
        }
    }
}

struct hv_beside hv__beside_of(struct hv__context *k, const struct hv__rank *r,
                               const struct hv_part_query *q)
{
    size_t width = r->cp * r->tp, at = r->at * width;
    struct hv_family f = {r->part, r->dp * width, 1, r->tp};
    struct hv_beside out = {.tp = 1, .tp_axis = {1, 1}};
    for (size_t i = 0; r->tp > 1 && i < r->cp && q->tp_scheme == HV_TP_1D; i++) {
        out.tp = fmax(out.tp, hv__together(&k->network, k->cluster, &f, at + i * r->tp));
    }
    if (q->tp_scheme != HV_TP_1D && r->tp > 1) {
        find_axes(k, r, q, &out);
    }
    struct hv__cp_shape s = hv__cp_shape_of(q);
    f.stride = r->tp * s.heads_apart;
    f.size = (size_t)s.heads;
    out.cp_heads = s.heads > 1 ? hv__together(&k->network, k->cluster, &f, at) : 0;
    f.stride = r->tp * s.ring_apart;
    f.size = (size_t)s.ring;
    out.cp_ring = s.ring > 1 ? hv__together(&k->network, k->cluster, &f, at) : 0;
    if (s.inner > 1) {
        f.stride = r->tp * s.inner_apart;
        f.size = (size_t)s.inner;
        out.cp_ring = hv__together(&k->network, k->cluster, &f, at);
        f.stride = r->tp * s.outer_apart;
        f.size = (size_t)(s.ring / s.inner);
        out.cp_outer = f.size > 1 ? hv__together(&k->network, k->cluster, &f, at) : 0;
    }
    return out;
}

double hv__beside_ep(struct hv__context *k, const struct hv__rank *r, const struct hv_part_query *q)
{
    size_t stride = (size_t)q->expert_tp, each = stride * (size_t)q->ep;
    const struct hv_family f = {r->part, r->dp * r->cp * r->tp, stride, (size_t)q->ep};
    return hv__together(&k->network, k->cluster, &f, r->at * r->cp * r->tp / each * each);
}

/* The run that holds a block, by halving. */
static const struct hv__run *run_of(const struct hv__context *k, int block)
{
    size_t low = 0, high = k->n_runs;
    while (high - low > 1) {
        size_t mid = (low + high) / 2;
        if (k->runs[mid].from <= block) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return &k->runs[low];
}

/* The first block behind `block` and before `end` whose tokens are routed otherwise; else `end`. */
static int routed_alike(const struct hv__context *k, size_t iteration, int block, int end)
{
    const struct hv_router *r = k->job.routing;
    if (!k->with_experts || iteration == HV__ANY_ITERATION ||
        !hv_model_has_experts(k->model, (size_t)block)) {
        return end;
    }
    uint64_t cls = hv_router_class(r, iteration, k->with_experts[block]);
    for (int i = block + 1; i < end; i++) {
        if (hv_router_class(r, iteration, k->with_experts[i]) != cls) {
            return i;
        }
    }
    return end;
}

int hv__piece_end(const struct hv__context *k, const struct hv_stage *s, size_t iteration, int at,
                  int to2)
{
    int block = at / 2, end = 2 * run_of(k, block)->to;
    if (at % 2 || s->recompute_per || s->cp.scheme == HV_CP_DSP) {
        end = 2 * (block + 1);
    }
    for (size_t i = 0; i < s->n_moe; i++) {
        if (s->moe[i].from > block && 2 * s->moe[i].from < end) {
            end = 2 * s->moe[i].from;
        }
        if (s->moe[i].to > block && 2 * s->moe[i].to < end) {
            end = 2 * s->moe[i].to;
        }
    }
    end = at % 2 ? end : 2 * routed_alike(k, iteration, block, end / 2);
    if (end > to2) {
        end = to2 - at > 1 ? to2 - to2 % 2 : to2;
    }
    return end > at ? end : at + 1;
}
