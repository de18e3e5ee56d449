/** What the runtime of the job does by itself: sends that block, reductions after the last backward
 * pass, copies of gradients around them. Memory is in solver/cost. */
#include "solver/cost/device/efficiency.h"
#include "solver/eval/train/reduce_int.h"
#include "solver/plan/parts.h"

/** Tensors of parameters of a layer of a GPT-style model: weight and bias of two norms and four
 * products; and of one with RMSNorm, fused projections and no biases. */
enum { TENSORS_OF_LAYER = 12, TENSORS_WITHOUT_BIAS = 6 };
/** Reads and writes of every gradient around a reduction of flat copies: copy in, divide, copy out.
 */
#define FLAT_PASSES 6.0

const struct hv_runtime_row *hv__runtime(const struct hv__lowered *l)
{
    return hv_runtime_row(hv_cost_job(l->k)->runtime);
}

bool hv__overlaps(const struct hv__lowered *l)
{
    return l->plan->sync.overlap && hv__runtime(l)->reduction != HV_REDUCTION_LATE;
}

double hv__unhidden(const struct hv__lowered *l, const uint32_t *devices, size_t n)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    double least = HUGE_VAL;
    bool far = false;
    for (size_t i = 0; i < n; i++) {
        uint32_t node = hv_cluster_node_of(c, devices[i]);
        const struct hv_device_kind *kind = hv_cluster_device(c, devices[i]).kind;
        least = fmin(least, hv_device_calibration(kind)->v[HV_CAL_NETWORK]);
        far = far || hv_cluster_domain_of(c, node) !=
                         hv_cluster_domain_of(c, hv_cluster_node_of(c, devices[0]));
    }
    return far ? fmax(1, least) : 1;
}

/** Seconds in which the tensor-parallel ranks of a stage gather an input that each holds a share
 * of, for the pass whose first half block is `at2`. */
static double gather_input_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                             const struct hv__rank *rk, int at2, double bytes)
{
    const struct hv_stage *stage = &pl->replica->stages[rk->stage];
    const struct hv_stage s = hv_stage_with_degrees(stage, hv_stage_degrees(stage, at2 / 2));
    size_t tp = (size_t)s.tp.degree;
    if (!hv__runtime(l)->splits_sends || tp < 2 || s.sequence_parallel) {
        return 0;
    }
    const struct hv_collective_query q = {.op = HV_ALL_GATHER,
                                          .bytes = bytes / s.dp / s.cp.degree,
                                          .devices = rk->devices,
                                          .n = tp,
                                          .together = 1};
    return hv_cost_collective(hv_cost_cluster(l->k), &q, NULL).time_s;
}

/** Share of a stage's micro-batches that go over edge e: those of lanes that take turns at its far
 * end, which is `to` or, where not `ahead`, `from`. O(edges). */
static double share_of_edge(const struct hv__lowered *l, const struct hv__pipeline *pl, int32_t e,
                            bool ahead)
{
    const struct hv_stage_graph *g = &pl->schedule->graph;
    const int32_t *own = ahead ? g->from : g->to, *far = ahead ? g->to : g->from;
    if (hv__split_of(l, pl->i_replica) == NULL) {
        return 1;
    }
    size_t like = hv__written_stage(l, pl->i_replica, pl->gstages[far[e]].rank), n = 0;
    for (int32_t i = 0; i < g->n_edges; i++) {
        n += own[i] == own[e] &&
             hv__written_stage(l, pl->i_replica, pl->gstages[far[i]].rank) == like;
    }
    return 1 / (double)n;
}

/** Makes one transfer a part of the operations at its two ends, of the sender and the receiver; the
 * edge then takes no time. `at2` is the half block that the receiver begins with. */
static void make_part(const struct hv__lowered *l, struct hv__pipeline *pl, int32_t hop,
                      double *parts_s[2], const double shares[2], int at2)
{
    const struct hv__sending *x = &pl->hops.sendings[pl->hops.sending_of[hop]];
    const uint32_t ends[] = {pl->ranks[x->from].devices[0], pl->ranks[x->to].devices[0]};
    *parts_s[0] += shares[0] * (x->cost.latency_s + x->cost.bytes_s * hv__unhidden(l, ends, 2));
    *parts_s[1] += shares[1] * gather_input_s(l, pl, &pl->ranks[x->to], at2, pl->hops.bytes[hop]);
    pl->hops.time_s[hop] = 0;
    pl->hops.sending_of[hop] = -1;
}

void hv__block_sends(const struct hv__lowered *l, struct hv__pipeline *pl)
{
    if (hv__runtime(l)->sends != HV_SENDS_BLOCK) {
        return;
    }
    for (size_t p = 0; p < pl->n_pipes; p++) {
        struct hv__gstage *stages = &pl->gstages[p * pl->n_gstages];
        for (int32_t e = 0; e < pl->schedule->graph.n_edges; e++) {
            struct hv__gstage *a = &stages[pl->schedule->graph.from[e]];
            struct hv__gstage *b = &stages[pl->schedule->graph.to[e]];
            if (a->rank == b->rank) {
                continue;
            }
            const double there[] = {share_of_edge(l, pl, e, true), share_of_edge(l, pl, e, false)};
            const double back[] = {there[1], there[0]};
            double *there_s[] = {&a->sends_forward_s, &b->sends_forward_s};
            double *back_s[] = {&b->sends_backward_s, &a->sends_backward_s};
            make_part(l, pl, hv_pipe_hop(pl->pipe, false, (int32_t)p, e), there_s, there,
                      b->range.from2);
            make_part(l, pl, hv_pipe_hop(pl->pipe, true, (int32_t)p, e), back_s, back,
                      a->range.to2 - 1);
        }
    }
    pl->hops.n_sendings = 0;
}

/** What a rank reduces in flat copies: the blocks without ZeRO. */
struct flat {
    double tensors; /**< of parameters */
    double frac;    /**< of all parameters of its blocks, each over its tensor-parallel ranks */
};

static struct flat flat_of(const struct hv__lowered *l, const struct hv__pipeline *pl,
                           const struct hv__rank *rk)
{
    const struct hv_stage *stage = &pl->replica->stages[rk->stage];
    struct flat o = {0};
    double flat = 0, all = 0;
    for (size_t i = 0; i < stage->n_ranges; i++) {
        for (int at2 = stage->ranges[i].from2; at2 < stage->ranges[i].to2; at2++) {
            const struct hv_stage s =
                hv_stage_with_degrees(stage, hv_stage_degrees(stage, at2 / 2));
            const struct hv__parameters p =
                hv__range_parameters(l->k, &l->leaves, (struct hv_range){at2, at2 + 1});
            double held = (p.dense + p.experts) / s.tp.degree;
            all += held;
            if (s.zero.stage == 0) {
                const struct hv_model *m = l->leaves.items[hv__leaf_of(l, (size_t)at2 / 2)].model;
                bool plain = m->kind == HV_MODEL_TRANSFORMER && m->norm == HV_NORM_RMSNORM;
                o.tensors += (plain ? TENSORS_WITHOUT_BIAS : TENSORS_OF_LAYER) / 2.0;
                flat += held;
            }
        }
    }
    o.frac = all > 0 ? flat / all : stage->zero.stage == 0;
    return o;
}

double hv__flat_copies_s(const struct hv__lowered *l, const struct hv__pipeline *pl,
                         const struct hv__rank *rk)
{
    const struct hv_runtime_row *r = hv__runtime(l);
    if (!(r->flat_elements > 0)) {
        return 0;
    }
    const struct flat flat = flat_of(l, pl, rk);
    const struct hv_job *job = hv_cost_job(l->k);
    const struct hv_device_kind *kind =
        hv_cluster_device(hv_cost_cluster(l->k), rk->devices[0]).kind;
    double bytes = rk->memory[0].parameters * hv_job_grad_bytes(job) * flat.frac;
    return r->tensor_s * flat.tensors +
           FLAT_PASSES * bytes / hv_efficiency_of(kind, job->precision).bytes_per_s;
}
