/*
 * Which rank of which stage: its devices, its slowest kind, its share of the work, and how its
 * blocks fall into pieces that cost the same. Rules A-F of the plan format; no prices here.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cost/stage/stage_int.h"

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
    if (group > ranks || (out->at + 1) * group > ranks || q->copy < 0 ||
        q->copy >= q->replica->count) {
        return hv_err_set(
            err, HV_ENO,
            "stage %zu has %zu devices per copy, rank %zu of dp %zu x cp %zu x tp %zu is not "
            "among them",
            q->stage, ranks, out->at, out->dp, out->cp, out->tp);
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

struct hv_part_query hv__part_query(const struct hv_stage_query *q, const struct hv__rank *r,
                                    size_t block, size_t i)
{
    const struct hv_stage *s = r->stage;
    const struct hv_moe_knobs *moe = hv_stage_moe(s, block);
    int ep = moe && moe->ep > 0 ? moe->ep : s->ep;
    struct hv_part_query p = {.device = r->device,
                              .tp = (int)r->tp,
                              .cp = (int)r->cp,
                              .ep = ep > 0 ? ep : 1,
                              .expert_tp = hv_stage_expert_tp(s, ep),
                              .tp_frac = s->tp.shares ? hv_tp_frac(&s->tp, r->tp_at) : 0,
                              .tp_scheme = s->tp.scheme,
                              .tp_depth = s->tp.depth,
                              .cp_scheme = s->cp.scheme,
                              .cp_heads = s->cp.ulysses,
                              .cp_layout = s->cp.layout,
                              .cp_order = s->cp.order,
                              .cp_backward = s->cp.backward,
                              .sequence_parallel = s->sequence_parallel,
                              .sharded_weights = s->zero.stage >= 3,
                              .sharded_pipeline = sharded_pipeline(q, s),
                              .sequences = sequences_of(q, r),
                              .tokens = q->tokens,
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

bool hv__is_far(const struct hv_cluster *c, const uint32_t *ids, size_t n, size_t stride)
{
    for (size_t i = 1; i < n; i++) {
        if (hv_cluster_domain_of(c, hv_cluster_node_of(c, ids[i * stride])) !=
            hv_cluster_domain_of(c, hv_cluster_node_of(c, ids[0]))) {
            return true;
        }
    }
    return false;
}

struct hv_beside hv__beside_of(const struct hv_cluster *c, const struct hv__rank *r,
                               const struct hv_part_query *q)
{
    size_t width = r->cp * r->tp, at = r->at * width;
    struct hv_family f = {r->part, r->dp * width, 1, r->tp / (size_t)hv__tp_depth(q)};
    struct hv_beside out = {.tp = 1};
    for (size_t i = 0; r->tp > 1 && i < r->cp; i++) {
        out.tp = fmax(out.tp, hv_cost_together(c, &f, at + i * r->tp));
    }
    struct hv__cp_shape s = hv__cp_shape_of(q);
    f.stride = r->tp * s.heads_apart;
    f.size = (size_t)s.heads;
    out.cp_heads = s.heads > 1 ? hv_cost_together(c, &f, at) : 0;
    f.stride = r->tp * s.ring_apart;
    f.size = (size_t)s.ring;
    out.cp_ring = s.ring > 1 ? hv_cost_together(c, &f, at) : 0;
    return out;
}

double hv__beside_ep(const struct hv_cluster *c, const struct hv__rank *r,
                     const struct hv_part_query *q)
{
    size_t stride = (size_t)q->expert_tp, each = stride * (size_t)q->ep;
    const struct hv_family f = {r->part, r->dp * r->cp * r->tp, stride, (size_t)q->ep};
    return hv_cost_together(c, &f, r->at * r->cp * r->tp / each * each);
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

int hv__piece_end(const struct hv__context *k, const struct hv_stage *s, int at, int to2)
{
    int block = at / 2, end = 2 * run_of(k, block)->to;
    if (at % 2 || s->recompute_per) {
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
    if (end > to2) {
        end = to2 - at > 1 ? to2 - to2 % 2 : to2;
    }
    return end > at ? end : at + 1;
}
