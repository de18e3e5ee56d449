/*
 * Static memory of a rank, which does not depend on micro-batches in flight: weights, gradients,
 * master copy, optimizer state, buffers of the framework and the overhead of the runtime. Sharding
 * after Rajbhandari et al. 2020 (ZeRO) over all holders of the same weights. Activations are in
 * pass.c.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/cost/device/efficiency.h"
#include "solver/cost/device/link_curve.h"
#include "solver/cost/experts/spread.h"
#include "solver/cost/part/held.h"
#include "solver/cost/stage/stage_int.h"

struct counts {
    double dense, experts, largest; /* parameters; of the largest unit of sharding */
    /* of experts that the plan places: all on this rank, copies without states, and its share of
     * the others' states */
    double placed, lent, placed_shard;
    double cached; /* of other nodes, for the ranks of this one */
};

/* The most ranks that share the states of a parameter. */
static double sharing_limit(const struct hv_stage_query *q, const struct hv__rank *r)
{
    double holders = (double)(r->dp * r->cp) * q->replica->count * hv_stage_lanes(r->stage);
    int group = r->stage->zero.shard_group;
    return group > 0 ? fmin(group, holders) : holders;
}

/* Parameters of the experts of a block that the plan places on this rank; of its devices that have
 * different ones, the one with most. */
static void count_placed(struct hv__context *k, const struct hv_stage_query *q,
                         const struct hv__rank *r, size_t block, const struct hv_part_query *pq,
                         double most, struct counts *n)
{
    int experts = k->model->blocks[block].experts, ep = pq->ep;
    double whole = (double)r->tp / pq->expert_tp;
    const struct hv__sharing s = {(double)(r->dp * r->cp) * q->replica->count * whole / ep,
                                  sharing_limit(q, r)};
    struct hv__ep_places p = hv__ep_places_at(r, r->at, pq);
    struct hv__held held = {0};
    for (size_t i = 0; i < p.n; i++) {
        int at = (int)((p.first + i) % (size_t)ep);
        struct hv__held x = hv__held_by(k, pq, experts, at, &s);
        held = i == 0 || x.experts > held.experts ? x : held;
    }
    double each = most / held.most;
    n->placed += each * held.experts;
    n->lent += each * held.lent;
    n->placed_shard += each * held.shards;
}

/* Experts that move to tokens are kept in the node until the backward pass of their layer. */
static void count_cached(struct hv__context *k, const struct hv__rank *r, size_t block,
                         struct hv_part_query *pq, double most, struct counts *n)
{
    int experts = k->model->blocks[block].experts;
    size_t first, of;
    uint32_t *ids = hv__ep_group(r, pq, &first, &of);
    if (ids) {
        pq->ep_group = ids;
        double each = most / hv__holding_of(k, pq, experts).spread.held;
        n->cached += each * hv__cached_experts(k, pq, experts);
        pq->ep_group = NULL;
    }
    free(ids);
}

static void count_piece(struct hv__context *k, const struct hv_stage_query *q,
                        const struct hv__rank *r, struct hv_range piece, struct counts *n)
{
    size_t block = (size_t)piece.from2 / 2;
    struct hv_part_query pq = hv__part_query(k, q, r, block, 0);
    pq.moe_signature = pq.moe ? hv__moe_signature(pq.moe) : 0;
    bool whole = piece.to2 - piece.from2 > 1;
    double times = whole ? (piece.to2 - piece.from2) / 2 : 1, unit = 0;
    for (int half = piece.from2 % 2; half < (whole ? 2 : piece.from2 % 2 + 1); half++) {
        struct hv_part_cost c =
            hv__part_cost(k, half ? HV_PART_FFN : HV_PART_ATTENTION, block, &pq, NULL);
        n->dense += times * c.parameters;
        if (c.expert_parameters > 0 && hv_places_experts(pq.moe)) {
            count_placed(k, q, r, block, &pq, times * c.expert_parameters, n);
        } else {
            n->experts += times * c.expert_parameters;
        }
        if (c.expert_parameters > 0 && pq.moe && pq.moe->move == HV_MOE_EXPERTS) {
            count_cached(k, r, block, &pq, times * c.expert_parameters, n);
        }
        unit += c.parameters + c.expert_parameters;
    }
    n->largest = fmax(n->largest, unit);
}

static void add_end(struct counts *n, double parameters)
{
    n->dense += parameters;
    n->largest = fmax(n->largest, parameters);
}

static struct counts count_parameters(struct hv__context *k, const struct hv_stage_query *q,
                                      const struct hv__rank *r)
{
    struct counts n = {0};
    const struct hv_stage *s = r->stage;
    int last = 2 * (int)k->model->n_blocks;
    double chunk = 0;
    for (size_t i = 0; i < s->n_ranges; i++) {
        int to2 = s->ranges[i].to2 < last ? s->ranges[i].to2 : last;
        double before = n.dense + n.experts + n.placed;
        for (int at = s->ranges[i].from2 > 0 ? s->ranges[i].from2 : 0, end; at < to2; at = end) {
            end = hv__piece_end(k, s, HV__ANY_ITERATION, at, to2);
            count_piece(k, q, r, (struct hv_range){at, end}, &n);
        }
        chunk = fmax(chunk, n.dense + n.experts + n.placed - before);
    }
    struct hv_part_query pq = hv__part_query(k, q, r, 0, 0);
    const struct hv_model *m = k->model;
    double frac = hv_tp_frac(&s->tp, r->tp_at), table = (double)m->vocab * m->hidden * frac;
    double padding = hv_model_padded_vocab(m, hv_tp_cuts(&s->tp)) * m->hidden * frac - table;
    double embedding = hv__part_cost(k, HV_PART_EMBEDDING, 0, &pq, NULL).parameters + padding;
    double head = hv__part_cost(k, HV_PART_HEAD, 0, &pq, NULL).parameters;
    if (!m->tied_embeddings) {
        head += padding;
    } else if (!r->embedding) {
        head += table + padding; /* its own copy */
    }
    if (r->embedding) {
        add_end(&n, embedding);
    }
    if (r->head) {
        add_end(&n, head);
    }
    if (s->zero.unit == HV_ZERO_CHUNK) {
        n.largest = fmax(n.largest, s->n_ranges < 2 ? n.dense + n.experts + n.placed : chunk);
    }
    if (s->zero.unit == HV_ZERO_STAGE) {
        n.largest = n.dense + n.experts + n.placed;
    }
    return n;
}

/* Groups of ranks that this rank reduces, gathers or hands on in: a communicator each. */
static int communicators(const struct hv__context *k, const struct hv_stage_query *q,
                         const struct hv__rank *r)
{
    int stages = (int)q->replica->n_stages, n = 0;
    size_t holders = r->dp * r->cp * (size_t)q->replica->count * (size_t)hv_stage_lanes(r->stage);
    bool first = q->stage == 0, last = (int)q->stage + 1 == stages;
    n += (r->tp > 1) + (r->cp > 1) + (holders > 1) + (hv_stage_experts_over(r->stage) > 1);
    n += stages > 1 ? 2 - first - last : 0; /* neighbours */
    n += stages > 1 && r->tp > 1;           /* norm of all gradients of a replica */
    n += stages > 1 && k->model->tied_embeddings && (first || last);
    return n;
}

/* Buffers of frameworks besides states and activations. Gradients have a second copy where they
 * are summed in 16 bit and unscaled into 32 (Megatron-LM, DeepSpeed), and in DeepSpeed where they
 * arise in 16 bit and are summed in 32. */
static double buffers_bytes(const struct hv__context *k, const struct hv_stage_query *q,
                            const struct hv__rank *r, struct hv_memory *m, double largest)
{
    const struct hv_job *j = &k->job;
    const struct hv_zero *z = &r->stage->zero;
    struct hv_part_query pq = hv__part_query(k, q, r, 0, 0);
    double bucket = 0, gradients = 0, unit = 0;
    double boundary = q->replica->n_stages > 1 ? m->boundary_bytes : 0;
    double unscaled = hv_job_unscaled_bytes(j), step = 0;
    const struct hv_runtime_row *runtime = hv_runtime_row(j->runtime);
    bool deepspeed = z->stage >= 1 && z->stage < 3 && hv__on_older_stack(k, &pq);
    if (unscaled > 0) {
        gradients = unscaled * m->updated_parameters;
    } else if (deepspeed && hv_job_grad_bytes(j) > hv_job_weight_bytes(j)) {
        gradients = hv_job_weight_bytes(j) * m->parameters;
    }
    size_t holders = r->dp * r->cp * (size_t)q->replica->count * (size_t)hv_stage_lanes(r->stage);
    if (z->stage == 0 && holders > 1 && hv__on_older_stack(k, &pq)) {
        bucket = hv_job_weight_bytes(j) * fmin(m->parameters, HV_ZERO_BUCKET);
    }
    if (deepspeed) {
        bucket = 2 * hv_job_weight_bytes(j) * fmin(m->parameters, HV_ZERO_BUCKET);
    }
    if (runtime->flat_elements > 0 && z->stage == 0) {
        bucket = hv_job_weight_bytes(j) * fmin(m->parameters, runtime->flat_elements);
        step = hv_job_master_bytes(j) > 0 ? 0 : runtime->step_bytes * m->updated_parameters;
    }
    if (z->stage >= 3) {
        unit = (hv_job_weight_bytes(j) + hv_job_grad_bytes(j)) * largest;
        m->unit_buffers_bytes = hv_zero_by_schedule(z) ? hv_job_grad_bytes(j) * largest : 0;
    }
    double total = HV_WORKSPACE_BYTES + boundary + gradients + bucket + unit + step;
    hv_why_add(q->why, "buffers", total, "bytes",
               "work space %.3g MiB, 2 boundary activations of together %.4g bytes, second copy of "
               "gradients %.4g, buckets %.4g, gradients of the largest unit %.4g, optimizer step "
               "%.4g",
               HV_WORKSPACE_BYTES / HV_MIB, boundary, gradients, bucket, unit, step);
    return total;
}

/* An activation and its gradient at the boundary between two stages. */
static double boundary_bytes(const struct hv__context *k, const struct hv_stage_query *q,
                             const struct hv__rank *r)
{
    struct hv_part_query pq = hv__part_query(k, q, r, 0, 0);
    return 2 * hv_job_activation_bytes(&k->job) * pq.sequences * pq.tokens * k->model->hidden /
           (double)(r->cp * (hv_stage_spreads(r->stage) ? r->tp : 1));
}

/* Fragmentation from scores that are allocated and freed between tensors that stay. */
static double fragmentation_frac(const struct hv__context *k, const struct hv_stage_query *q,
                                 const struct hv__rank *r)
{
    const struct hv_runtime_row *row = hv_runtime_row(k->job.runtime);
    struct hv_part_query pq = hv__part_query(k, q, r, 0, 0);
    bool again = (pq.recompute & HV_RC_FULL) == HV_RC_FULL;
    return again && hv__on_older_stack(k, &pq)
               ? hv_or(row->fragmentation_again_frac, HV_FRAGMENTATION_AGAIN)
               : hv_or(row->fragmentation_frac, HV_FRAGMENTATION_FRAC);
}

/* Buffers of the communicator of a tensor-parallel group, where the runtime's row tells the size of
 * a channel: NCCL opens many channels over NVLink ("coll channels" in its log), few elsewhere. */
static double channels_bytes(const struct hv__context *k, const struct hv__rank *r)
{
    static const int channels[HV_CURVE_N] = {
        [HV_CURVE_NVLINK2] = 12,
        [HV_CURVE_NVLINK3] = 24,
        [HV_CURVE_NVLINK4] = 24,
        [HV_CURVE_NVLINK5] = 24,
    };
    const struct hv_node_group *g =
        hv_cluster_group_of_node(k->cluster, hv_cluster_node_of(k->cluster, r->group[0]));
    return r->tp > 1 ? hv_runtime_row(k->job.runtime)->channel_bytes *
                           channels[hv_link_class_of(g->intra.kind, r->device)]
                     : 0;
}

static void add_overhead(const struct hv__context *k, const struct hv_stage_query *q,
                         const struct hv__rank *r, double largest, struct hv_memory *m)
{
    if (r->device->cls == HV_CLASS_CPU) {
        return;
    }
    int n = communicators(k, q, r);
    double states = m->weights_bytes + m->gradients_bytes + m->master_bytes + m->optimizer_bytes;
    m->communicator_bytes = HV_COMMUNICATOR_BYTES;
    m->buffers_bytes = buffers_bytes(k, q, r, m, largest);
    double library = hv_or(hv_runtime_row(k->job.runtime)->library_bytes, HV_CONTEXT_BYTES);
    m->outside_bytes = library + n * m->communicator_bytes + channels_bytes(k, r);
    m->fragmentation_frac = fragmentation_frac(k, q, r);
    m->overhead_bytes =
        m->buffers_bytes + m->outside_bytes + m->fragmentation_frac * (states + m->buffers_bytes);
    hv_why_add(q->why, "outside", m->outside_bytes, "bytes",
               "context %.3g GiB and %d communicators of %.3g GiB, estimated", library / HV_GIB, n,
               HV_COMMUNICATOR_BYTES / HV_GIB);
    hv_why_add(q->why, "fragmentation", m->fragmentation_frac * (states + m->buffers_bytes),
               "bytes", "%.0f %% of states and buffers, and of activations, estimated",
               100 * m->fragmentation_frac);
}

/* True where error correction takes a share of the memory: GDDR of data-centre cards. HBM has extra
 * bits for it, and desktop cards (RTX, Titan) have it disabled or lack it. */
static bool corrects_errors(const struct hv_device_kind *d)
{
    return d->memory_type && strncmp(d->memory_type, "GDDR", 4) == 0 &&
           strncmp(d->name, "RTX", 3) != 0 && strncmp(d->name, "Titan", 5) != 0;
}

static double reserve_bytes(const struct hv_job *j, const struct hv_device_kind *d)
{
    double frac = HV_RESERVE_FRAC + (corrects_errors(d) ? HV_ECC_FRAC : 0);
    return hv_or(j->memory_reserve_bytes, frac * d->memory_bytes);
}

double hv_device_usable_bytes(const struct hv_job *job, const struct hv_device_kind *kind)
{
    return kind->memory_bytes - reserve_bytes(job, kind);
}

/* The kind with least memory of a group that holds equal shards; of unequal ones the rank's own. */
static const struct hv_device_kind *smallest_of(const struct hv__context *k,
                                                const struct hv__rank *r)
{
    if (r->stage->tp.shares) {
        return hv_cluster_device(k->cluster, r->group[r->tp_at]).kind;
    }
    const struct hv_device_kind *least = r->device;
    for (size_t i = 0; i < r->tp * r->cp; i++) {
        const struct hv_device_kind *d = hv_cluster_device(k->cluster, r->group[i]).kind;
        least = d->memory_bytes < least->memory_bytes ? d : least;
    }
    return least;
}

/* Rajbhandari et al. 2020: the states that each ZeRO stage shards. */
static void explain_states(struct hv_why *why, const struct hv_job *j, const struct hv_zero *z,
                           const struct hv_memory *m)
{
    const struct {
        const char *name;
        double bytes, each;
        int sharded_from;
    } rows[] = {{"weights", m->weights_bytes, hv_job_weight_bytes(j), 3},
                {"gradients", m->gradients_bytes, hv_job_grad_bytes(j), 2},
                {"master copy", m->master_bytes, hv_job_master_bytes(j), 1},
                {"optimizer states", m->optimizer_bytes, hv_job_optimizer_bytes(j), 1}};
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        hv_why_add(why, rows[i].name, rows[i].bytes, "bytes", "%.3g bytes per parameter, %s",
                   rows[i].each,
                   z->stage < rows[i].sharded_from ? "whole"
                   : rows[i].sharded_from < 3      ? "sharded (Rajbhandari et al. 2020)"
                                                   : "sharded, and the units gathered ahead");
    }
}

enum hv_status hv__stage_memory(struct hv__context *k, const struct hv_stage_query *q,
                                struct hv_memory *out, struct hv_err *err)
{
    struct hv_stage_query full = *q;
    if (!(full.tokens > 0)) {
        full.tokens = hv__tokens(k);
    }
    *out = (struct hv_memory){0};
    struct hv__rank r;
    enum hv_status st = hv__find_rank(k, &full, &r, err);
    if (st != HV_OK) {
        return st;
    }
    const struct hv_zero *z = &r.stage->zero;
    struct hv__rank_counts own = {.boundary_bytes = boundary_bytes(k, &full, &r)};
    struct counts n = {0};
    if (k->parts->count != NULL) {
        st = k->parts->count(k, &full, &r, &own, err);
        n = (struct counts){.dense = own.parameters, .largest = own.largest};
    } else {
        n = count_parameters(k, &full, &r);
    }
    if (st != HV_OK) {
        return st;
    }
    out->boundary_bytes = r.device->cls == HV_CLASS_CPU ? 0 : own.boundary_bytes;
    double holders = (double)(r.dp * r.cp) * q->replica->count * hv_stage_lanes(r.stage);
    double over = sharing_limit(&full, &r);
    int ep = hv_stage_experts_over(r.stage);
    double whole = (double)r.tp / hv_stage_expert_tp(r.stage, ep);
    double expert_over = fmax(1, fmin(over, holders * whole / ep));
    double all = n.dense + n.experts + n.placed;
    double shard = n.dense / over + n.experts / expert_over + n.placed_shard;
    const struct hv_job *j = &k->job;
    out->parameters = all;
    out->expert_parameters = n.experts + n.placed;
    out->updated_parameters = z->stage >= 1 ? shard : all - n.lent;
    double units = 1 + fmax(z->prefetch, 0);
    units = z->limit > 0 ? fmin(units, z->limit) : units;
    double gathered = z->stage >= 3 ? (z->reshard ? units * n.largest : all) : 0;
    double weights = hv_job_weight_bytes(j) *
                     ((z->stage >= 3 ? fmin(all, shard + n.lent + gathered) : all) + n.cached);
    out->weights_bytes = weights * hv__offload_stays(r.stage, HV_OFFLOAD_WEIGHTS);
    out->away_weights_bytes = weights - out->weights_bytes;
    /* sums kept until the end of the iteration are whole on every rank */
    bool scattered = z->stage >= 2 && hv_zero_scatters(z);
    out->gradients_bytes = hv_job_grad_bytes(j) * (scattered ? shard + n.lent : all);
    if (hv_zero_by_schedule(z)) {
        double lent = shard + n.lent;
        out->unit_weights_bytes =
            out->weights_bytes - hv_job_weight_bytes(j) * (lent + n.cached) *
                                     hv__offload_stays(r.stage, HV_OFFLOAD_WEIGHTS);
        out->unit_gradients_bytes = out->gradients_bytes - hv_job_grad_bytes(j) * lent;
    }
    double left = hv__offload_stays(r.stage, HV_OFFLOAD_OPTIMIZER);
    double states = hv_job_master_bytes(j) + hv_job_optimizer_bytes(j);
    out->master_bytes = hv_job_master_bytes(j) * out->updated_parameters * left;
    out->optimizer_bytes = hv_job_optimizer_bytes(j) * out->updated_parameters * left;
    out->away_states_bytes = states * out->updated_parameters * (1 - left);
    hv_why_add(q->why, "parameters", all, "parameters",
               "%.6g dense, %.6g of experts on this rank; zero %d over %.0f holders (experts %.0f)",
               n.dense, n.experts + n.placed, z->stage, over, expert_over);
    explain_states(q->why, j, z, out);
    add_overhead(k, &full, &r, n.largest, out);
    const struct hv_device_kind *tightest = smallest_of(k, &r);
    out->limit_bytes = tightest->memory_bytes;
    out->reserve_bytes = reserve_bytes(j, tightest);
    return HV_OK;
}
