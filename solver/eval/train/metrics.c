/**
 * Figures of a verdict. The breakdown is an average over the used devices and adds up to the
 * iteration time exactly: time of a device without a named cause is bubble.
 */
#include "solver/eval/train/steps.h"
#include "solver/plan/parts.h"
#include "solver/workload/router.h"

#include <string.h>

/** Differences of sums below this share are rounding errors. */
#define ROUNDING 1e-12

/** How often a (global stage, shape) runs: counts[(pipe·gstages + g)·shapes + shape]. */
struct counts {
    double *forward;
    double *again;     /**< recompute operations that take time */
    double **hidden_s; /**< [ranks][n_dp] exchanges that overlapped pairs hide; NULL: none */
};

/** Adds up what overlapped pairs hide on every dp rank of every rank. */
static double **hidden_in_pairs(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    struct hv__pair x;
    if (pl->cost.pair_s == NULL) {
        return NULL;
    }
    double **sum_s = hv_arena_new(l->arena, double *, pl->n_ranks);
    for (size_t r = 0; r < pl->n_ranks; r++) {
        sum_s[r] = hv_arena_new(l->arena, double, pl->ranks[r].n_dp);
    }
    for (size_t i = 0; hv__next_pair(pl, &i, &x);) {
        for (size_t d = 0; d < pl->ranks[x.rank].n_dp; d++) {
            bool first = pl->ranks[x.rank].like[d] == d;
            sum_s[x.rank][d] += first ? hv__pair_saves_s(l, pl, &x, d) : 0;
        }
    }
    return sum_s;
}

static struct counts count_passes(const struct hv__lowered *l, const struct hv__pipeline *pl)
{
    size_t cells = pl->n_pipes * pl->n_gstages * pl->n_shapes;
    struct counts c = {hv_arena_new(l->arena, double, cells), hv_arena_new(l->arena, double, cells),
                       hidden_in_pairs(l, pl)};
    size_t n = hv_schedule_n_ops(pl->schedule);
    for (size_t i = 0; i < n; i++) {
        const struct hv_op *op = &pl->schedule->ops[i];
        size_t g = (size_t)op->pipe * pl->n_gstages + (size_t)op->stage;
        size_t cell = g * pl->n_shapes + hv__shape_of(pl, op->stage, op->mb, op->slice);
        if (op->kind == HV_OP_F) {
            c.forward[cell] += hv_op_share(pl->schedule, op);
        } else if (op->kind == HV_OP_R && hv_pipe_op_end_s(pl->pipe, &pl->run, i) >
                                              hv_pipe_op_start_s(pl->pipe, &pl->run, i)) {
            c.again[cell] += 1;
        }
    }
    for (size_t i = 0; i < cells && pl->more_mb > 0; i++) { /* one direction, one shape */
        c.forward[i] += (double)pl->more_mb;
        c.again[i] += c.again[i] > 0 ? (double)pl->more_mb : 0; /* R of each of them, or none */
    }
    return c;
}

/** Adds n times one pass to `b`; returns its seconds. */
static double add_pass(const struct hv_pass *p, double n, double *b)
{
    b[HV_TIME_COMPUTE] += n * p->compute_s;
    b[HV_TIME_TP] += n * p->tp_s;
    b[HV_TIME_CP] += n * p->cp_s;
    b[HV_TIME_EP] += n * p->ep_s;
    b[HV_TIME_ZERO] += n * p->zero_s;
    b[HV_TIME_RECOMPUTE] += n * p->recompute_s;
    return n * (p->forward_s + p->input_grad_s + p->weight_grad_s + p->recompute_s);
}

/** Adds what dp rank d of a rank does in one simulated run to `b`; returns its busy seconds. */
static double rank_busy(const struct hv__pipeline *pl, size_t rank, size_t d,
                        const struct counts *counts, double *b)
{
    double busy = 0;
    for (size_t g = 0; g < pl->n_pipes * pl->n_gstages; g++) {
        const struct hv__gstage *x = &pl->gstages[g];
        if (x->rank != rank) {
            continue;
        }
        for (size_t i = 0; i < pl->n_shapes; i++) {
            size_t at = i * pl->ranks[rank].n_dp + d;
            double n = counts->forward[g * pl->n_shapes + i];
            double again = x->again ? counts->again[g * pl->n_shapes + i] : n;
            busy += add_pass(&x->pass[at], again, b);
            busy += add_pass(&x->plain[at], n - again, b);
            double sends_s = n * (x->sends_forward_s + x->sends_backward_s);
            b[HV_TIME_PP] += sends_s;
            busy += sends_s;
        }
        if (x->copies_s > 0) { /* all ranks wait for the last copy */
            b[HV_TIME_EP] += x->copies_s;
            busy += x->copies_s;
        }
    }
    double hidden_s = counts->hidden_s != NULL ? counts->hidden_s[rank][d] : 0;
    b[HV_TIME_EP] -= hidden_s;
    return busy - hidden_s;
}

/** What an all-reduce over the copies of 2.5d has a rank send of its gradients. */
static double depth_values(const struct hv__pipeline *pl, const struct hv__rank *rk, size_t d)
{
    const struct hv_tp *tp = &pl->replica->stages[rk->stage].tp;
    double copies = (double)tp->degree / hv_tp_cuts(tp);
    return 2 * (copies - 1) / copies * rk->memory[d].updated_parameters;
}

/** What dp rank d of a rank sends in one simulated run. */
static struct hv_traffic rank_traffic(const struct hv__pipeline *pl, size_t rank, size_t d,
                                      const struct counts *counts)
{
    struct hv_traffic sum = {0};
    for (size_t g = 0; g < pl->n_pipes * pl->n_gstages; g++) {
        const struct hv__gstage *x = &pl->gstages[g];
        for (size_t i = 0; x->rank == rank && i < pl->n_shapes; i++) {
            size_t at = i * pl->ranks[rank].n_dp + d;
            double n = counts->forward[g * pl->n_shapes + i];
            double again = x->again ? counts->again[g * pl->n_shapes + i] : n;
            hv_traffic_add(&sum, &x->pass[at].sent, again);
            hv_traffic_add(&sum, &x->plain[at].sent, n - again);
        }
    }
    sum.depth.backward = depth_values(pl, &pl->ranks[rank], d);
    return sum;
}

static void take_more(struct hv_sent *most, const struct hv_sent *x)
{
    if (x->forward + x->backward > most->forward + most->backward) {
        *most = *x;
    }
}

/** Keeps of each kind of exchange the larger one. */
static void take_traffic(struct hv_traffic *most, const struct hv_traffic *x)
{
    take_more(&most->tp, &x->tp);
    take_more(&most->tp_tree, &x->tp_tree);
    take_more(&most->depth, &x->depth);
    take_more(&most->vocabulary, &x->vocabulary);
    take_more(&most->cp, &x->cp);
    take_more(&most->cp_hop, &x->cp_hop);
    take_more(&most->cp_most, &x->cp_most);
    take_more(&most->ep, &x->ep);
}

/** One dp rank's share of the iteration by cause into b (which adds up to iteration_s). */
static void rank_breakdown(const struct hv__lowered *l, const struct hv__pipeline *pl, size_t rank,
                           size_t d, const struct counts *counts, double *b)
{
    const struct hv__rank *rk = &pl->ranks[rank];
    const struct hv_pipe_rank *idle = &pl->idle[rank];
    memset(b, 0, HV_BREAKDOWN_N * sizeof *b);
    double busy = rank_busy(pl, rank, d, counts, b);
    double slowed_s = pl->run.stream != NULL ? pl->run.stream->slowed_s[rank] : 0;
    b[HV_TIME_ZERO] += slowed_s;
    double waiting = idle->busy_s - busy - slowed_s;
    b[HV_TIME_IMBALANCE] = waiting > ROUNDING * idle->busy_s ? waiting : 0;
    if (l->schedule.stale) {
        /* time of one simulated micro-batch, times the micro-batches of an iteration */
        double factor = pl->waves.per_iteration * (double)pl->replica->micro_batches /
                        (double)(pl->n_mb + pl->more_mb);
        for (int i = 0; i < HV_BREAKDOWN_N; i++) {
            b[i] *= factor;
        }
        b[HV_TIME_DP] = pl->waves.per_iteration * (pl->waves.exposed_s + rk->gather_s);
        b[HV_TIME_OPTIMIZER] = pl->waves.per_iteration * rk->optimizer_s;
    } else {
        b[HV_TIME_PP] += idle->comm_s;
        b[HV_TIME_ZERO] += idle->stream_s + fmax(0, rk->stream_end_s - rk->compute_end_s);
        /* waiting for replicas that are slower is idle time like any other: bubble */
        b[HV_TIME_DP] = rk->sync_exposed_s + rk->gather_s + l->iteration.late_s;
        b[HV_TIME_OPTIMIZER] = rk->optimizer_s;
    }
    b[HV_TIME_STEP] = l->iteration.step_s - l->iteration.late_s;
    double sum = 0;
    for (int i = 0; i < HV_BREAKDOWN_N; i++) {
        sum += b[i];
    }
    double idle_s = l->iteration.total_s - sum;
    b[HV_TIME_BUBBLE] = idle_s > ROUNDING * l->iteration.total_s ? idle_s : 0;
}

/** Makes sums over all ranks the mean of a device. A device that stages share does the work of all
 * of them, waits once for the host, and is idle in what is left; `ranks`: devices of all ranks. */
static void share_out(const struct hv__lowered *l, double ranks, struct hv_metrics *m)
{
    double usd, flops, power, sum = 0, *b = m->breakdown_s;
    bool shared = hv_plan_shares_devices(l->plan);
    double devices = shared ? (double)hv__use_of(l, &usd, &flops, &power) : ranks;
    for (int k = 0; k < HV_BREAKDOWN_N; k++) {
        b[k] /= k == HV_TIME_STEP || k == HV_TIME_BUBBLE ? ranks : devices;
        sum += k == HV_TIME_BUBBLE ? 0 : b[k];
    }
    if (shared) { /* of what one stage waits for, another uses the device */
        double over = fmax(0, sum - l->iteration.total_s);
        b[HV_TIME_PP] -= fmin(over, b[HV_TIME_PP]);
        b[HV_TIME_BUBBLE] = fmax(0, l->iteration.total_s - sum);
    }
}

static void add_breakdown(const struct hv__lowered *l, struct hv_metrics *m)
{
    double devices = 0;
    for (size_t i = 0; i < l->pipelines.n; i++) {
        const struct hv__pipeline *pl = &l->pipelines.items[i];
        const struct hv_arena_mark before = hv_arena_mark(l->arena);
        const struct counts counts = count_passes(l, pl);
        for (size_t r = 0; r < pl->n_ranks; r++) {
            const struct hv__rank *rk = &pl->ranks[r];
            double b[HV_BREAKDOWN_N];
            for (size_t d = 0; d < rk->n_dp; d++) {
                double weight = (double)(rk->width * rk->n_like[d]) * (double)pl->multiplicity;
                if (weight <= 0) {
                    continue;
                }
                rank_breakdown(l, pl, r, d, &counts, b);
                struct hv_traffic sent = rank_traffic(pl, r, d, &counts);
                take_traffic(&m->traffic, &sent);
                for (int k = 0; k < HV_BREAKDOWN_N; k++) {
                    m->breakdown_s[k] += weight * b[k];
                }
                devices += weight;
            }
        }
        hv_arena_rewind(l->arena, before);
    }
    share_out(l, devices, m);
    m->bubble_frac = (m->breakdown_s[HV_TIME_BUBBLE] + m->breakdown_s[HV_TIME_PP] +
                      m->breakdown_s[HV_TIME_IMBALANCE]) /
                     m->iteration_s;
}

/** Tokens of one micro-batch of a list, without padding where the job says how long sequences are.
 */
static double list_tokens(const struct hv_job *job, const struct hv_micro_batch *mb)
{
    return mb->tokens > 0 ? (double)mb->tokens : (double)mb->sequences * hv_job_mean_tokens(job);
}

double hv__tokens_of_iteration(const struct hv__lowered *l)
{
    const struct hv_job *job = hv_cost_job(l->k);
    double mean = hv_job_mean_tokens(job), tokens = (double)job->global_batch * mean;
    for (size_t i = 0; !l->schedule.stale && i < l->plan->n_replicas; i++) {
        const struct hv_replica *r = &l->plan->replicas[i];
        for (int64_t k = 0; r->list != NULL && k < r->micro_batches; k++) {
            const struct hv_micro_batch *mb = &r->list[k];
            tokens += r->count * (list_tokens(job, mb) - (double)mb->sequences * mean);
        }
    }
    return tokens;
}

/** Forward FLOPs of one sequence of that length with so many samples of every leaf. */
static double sequence_flops(const struct hv__lowered *l, double tokens, const double *scales)
{
    double flops = 0;
    for (size_t i = 0; i < l->leaves.n; i++) {
        flops += (scales != NULL ? scales[i] : 1) *
                 hv_leaf_forward_flops(&l->leaves.items[i], tokens, true);
    }
    return flops;
}

/** Of a sequence of the job: in the mean over its lengths. */
static double mean_sequence_flops(const struct hv__lowered *l)
{
    const struct hv_job *job = hv_cost_job(l->k);
    double flops = 0;
    for (size_t i = 0; i < job->n_lengths; i++) {
        double tokens = fmin((double)job->lengths[i].tokens, (double)job->sequence);
        flops += job->lengths[i].frac * sequence_flops(l, tokens, NULL);
    }
    return job->n_lengths > 0 ? flops : sequence_flops(l, (double)job->sequence, NULL);
}

/** Of a micro-batch of documents, each of which is a sequence of its own. */
static double documents_flops(const struct hv__lowered *l, const struct hv_micro_batch *mb)
{
    double flops = 0;
    for (size_t i = 0; i < mb->n_documents; i++) {
        flops += sequence_flops(l, mb->documents[i], hv__leaf_scales(l, mb));
    }
    return flops;
}

/** Forward FLOPs of one iteration; sequences of a list have the lengths it gives. */
static double forward_flops(const struct hv__lowered *l)
{
    const struct hv_job *job = hv_cost_job(l->k);
    double whole = mean_sequence_flops(l);
    double flops = whole * (double)job->global_batch;
    for (size_t i = 0; !l->schedule.stale && i < l->plan->n_replicas; i++) {
        const struct hv_replica *r = &l->plan->replicas[i];
        for (int64_t k = 0; r->list != NULL && k < r->micro_batches; k++) {
            const struct hv_micro_batch *mb = &r->list[k];
            double n = (double)mb->sequences;
            if (n > 0 && mb->n_documents > 0) {
                flops += r->count * (documents_flops(l, mb) - n * whole);
            } else if (n > 0 && (mb->tokens > 0 || mb->n_scales > 0)) {
                double own = sequence_flops(l, list_tokens(job, mb) / n, hv__leaf_scales(l, mb));
                flops += r->count * n * (own - whole);
            }
        }
    }
    return flops;
}

size_t hv__use_of(const struct hv__lowered *l, double *usd_per_h, double *flops_per_s,
                  double *power_w)
{
    const struct hv_cluster *c = hv_cost_cluster(l->k);
    const struct hv_job *job = hv_cost_job(l->k);
    bool *node_used = hv_arena_new(l->arena, bool, c->n_nodes);
    bool shared = hv_plan_shares_devices(l->plan);
    bool *used = shared ? hv_arena_new(l->arena, bool, c->n_devices) : NULL;
    size_t n = 0;
    *usd_per_h = *flops_per_s = *power_w = 0;
    for (size_t i = 0; i < l->plan->n_replicas; i++) {
        const struct hv_replica *r = &l->plan->replicas[i];
        for (size_t s = 0; s < r->n_stages; s++) {
            for (size_t d = 0; d < r->stages[s].n_devices; d++) {
                uint32_t id = r->stages[s].devices[d];
                struct hv_device_ref ref = hv_cluster_device(c, id);
                if (used != NULL && used[id]) {
                    continue;
                }
                n++;
                if (used != NULL) {
                    used[id] = true;
                }
                *flops_per_s += hv_device_peak_flops_per_s(ref.kind, job->precision);
                *power_w += ref.kind->tdp_w;
                if (!node_used[ref.node]) {
                    node_used[ref.node] = true;
                    *usd_per_h += hv_node_price_usd_per_h(&c->groups[ref.group], false);
                }
            }
        }
    }
    return n;
}

/** Model FLOP/s of those that the used devices could do at their dense peak, and the price of their
 * nodes. */
static void add_use(const struct hv__lowered *l, struct hv_metrics *m)
{
    double peak = 0, power_w = 0;
    m->n_devices_used = hv__use_of(l, &m->usd_per_h, &peak, &power_w);
    m->mfu = 3 * forward_flops(l) / (m->iteration_s * peak);
    m->energy_j = power_w * m->iteration_s;
    m->usd_per_mtoken = m->usd_per_h / 3600 * m->iteration_s / (hv__tokens_of_iteration(l) / 1e6);
}

/** The first pipeline of every replica entry; NULL: it has none. O(pipelines). */
static const struct hv__pipeline **first_pipelines(const struct hv__lowered *l)
{
    const struct hv__pipeline **first =
        hv_arena_new(l->arena, const struct hv__pipeline *, l->plan->n_replicas + 1);
    for (size_t i = l->pipelines.n; i-- > 0;) {
        first[l->pipelines.items[i].i_replica] = &l->pipelines.items[i];
    }
    return first;
}

/** Adds a global stage to the figures of its stage as written; of ranks that take turns the first
 * stands for all, and the busiest for how busy they are. */
static void add_stage(const struct hv__lowered *l, const struct hv__pipeline *pl,
                      const struct hv__gstage *g, struct hv_stage_metrics *s)
{
    const struct hv__rank *rk = &pl->ranks[g->plan_stage];
    const struct hv__split *split = hv__split_of(l, pl->i_replica);
    double all_s = l->schedule.stale ? pl->run.makespan_s : l->iteration.total_s;
    s->replica = pl->i_replica;
    s->stage = hv__written_stage(l, pl->i_replica, rk->stage);
    s->busy_frac = fmax(s->busy_frac, pl->idle[rk->stage].busy_s / all_s);
    if (split == NULL || split->lane_at[s->stage] == rk->stage) {
        s->forward_s += g->forward_s[g->shape];
        s->backward_s += g->backward_s[g->shape] + g->recompute_s[g->shape];
        s->hop_s = rk->hop_next_s;
    }
}

static void add_stages(const struct hv__lowered *l, struct hv_verdict *out)
{
    const struct hv__pipeline **first = first_pipelines(l);
    out->n_stages = out->n_memory;
    out->stages = hv_arena_new(l->arena, struct hv_stage_metrics, out->n_stages);
    size_t base = 0;
    for (size_t e = 0; e < l->plan->n_replicas; e++) {
        const struct hv__pipeline *pl = first[e];
        for (size_t g = 0; pl != NULL && g < pl->n_gstages; g++) {
            size_t i = hv__written_stage(l, e, pl->gstages[g].plan_stage);
            add_stage(l, pl, &pl->gstages[g], &out->stages[base + i]);
        }
        base += hv__n_written(l, e);
    }
}

/** Micro-batches of a shape that pass a global stage: where stages have sizes of their own, those
 * of the stage's only shape, counted in its schedule. O(1), O(operations). */
static double passes_of(const struct hv__pipeline *pl, size_t gstage, size_t shape)
{
    int32_t stage = (int32_t)(gstage % pl->n_gstages);
    double n = 0;
    if (pl->shape_of_stage == NULL) {
        return pl->n_of_shape[shape];
    }
    for (size_t i = 0; pl->shape_of_stage[stage] == shape && i < hv_schedule_n_ops(pl->schedule);
         i++) {
        const struct hv_op *op = &pl->schedule->ops[i];
        n += op->kind == HV_OP_F && op->stage == stage;
    }
    return n;
}

/** Share of the tokens that find no place in their experts, mean over blocks, ranks and
 * micro-batches. O(passes). */
static double dropped_frac(const struct hv__lowered *l)
{
    double dropped = 0, all = 0;
    for (size_t p = 0; p < l->pipelines.n; p++) {
        const struct hv__pipeline *pl = &l->pipelines.items[p], *own = pl->like ? pl->like : pl;
        for (size_t g = 0; g < own->n_pipes * own->n_gstages; g++) {
            const struct hv__gstage *x = &own->gstages[g];
            size_t n_dp = own->ranks[x->rank].n_dp;
            for (size_t i = 0; i < own->n_shapes * n_dp; i++) {
                const struct hv__shape *shape = &own->shapes[i / n_dp];
                double tokens = (double)shape->sequences * (double)shape->tokens;
                double weight =
                    pl->multiplicity * passes_of(own, g, i / n_dp) * tokens / (double)n_dp;
                dropped += weight * x->plain[i].dropped;
                all += weight * x->plain[i].routed;
            }
        }
    }
    return all > 0 ? dropped / all : 0;
}

void hv__metrics(const struct hv__lowered *l, struct hv_verdict *out)
{
    struct hv_metrics *m = &out->metrics;
    m->iteration_s = l->iteration.total_s;
    m->pipeline_s = l->iteration.pipeline_s;
    m->tokens_per_s = hv__tokens_of_iteration(l) / l->iteration.total_s;
    m->dropped_frac = dropped_frac(l);
    m->exact = !l->schedule.stale && m->dropped_frac <= 0;
    m->staleness = l->schedule.stale ? l->iteration.staleness : 0;
    add_breakdown(l, m);
    add_use(l, m);
    add_stages(l, out);
}
