/**
 * Goodput of a plan under failures: states per node, the time of a checkpoint, the holders that can
 * restore lost states, and the closed forms of sim/failures.h applied to them. A new plan after a
 * failure is a run of the strategy and not made here.
 */
#include "solver/eval/goodput.h"

#include "solver/eval/train/reduce_int.h"
#include "solver/plan/parts.h"
#include <math.h>
#include <stdlib.h>

#define HOUR_S 3600.0

double hv_node_failures_per_s(const struct hv_node_group *g, const struct hv_failure_rules *r)
{
    return (hv_or(g->preemptions_per_h, 0) + r->per_device_h * g->n_devices) / HOUR_S;
}

/* What a node costs: its spot price where it is preempted and has one, else its price. */
static double node_expected_usd_per_h(const struct hv_node_group *g)
{
    double spot = hv_node_price_usd_per_h(g, true);
    return g->preemptions_per_h > 0 && hv_known(spot) ? spot : hv_node_price_usd_per_h(g, false);
}

/* ---- what nodes hold ------------------------------------------------------------------------- */

/** States and checkpoints of a plan's nodes. */
struct held {
    struct hv_cost *k;
    const struct hv_plan *plan;
    struct hv_model_leaf *leaves;
    size_t n_leaves;
    const struct hv_cluster *c;
    double *state_bytes; /**< [nodes] states that a node holds; < 0: it is not used */
    double *write_bytes; /**< [nodes] its part of a checkpoint */
    double total_bytes;  /**< of a checkpoint */
};

static bool stage_holds(const struct hv_stage *s, int half)
{
    for (size_t n = 0; n < s->n_ranges; n++) {
        if (s->ranges[n].from2 <= half && half < s->ranges[n].to2) {
            return true;
        }
    }
    return false;
}

/** Parameters of the tables at the ends of a leaf inside a model of modules, where a stage has
 * them. */
static double leaf_ends(const struct hv_model_leaf *leaf, const struct hv_stage *s)
{
    const struct hv_model *m = leaf->model;
    int first = 2 * (int)leaf->first, last = first + 2 * (int)m->n_blocks - 1;
    if (m->kind != HV_MODEL_TRANSFORMER) {
        return 0;
    }
    return (stage_holds(s, first) ? hv_model_embedding_parameters(m) : 0) +
           (stage_holds(s, last) && !leaf->feeds ? hv_model_head_parameters(m) : 0);
}

/** Bytes of the states of a part of a stage, of all ranks together: weights, master copy,
 * optimizer. `part.embedding` and `part.head` tell its ends. */
static double part_bytes(const struct held *h, const struct hv_stage *part)
{
    const struct hv_model *m = hv_cost_model(h->k);
    const struct hv_job *j = hv_cost_job(h->k);
    bool ends = m->kind == HV_MODEL_TRANSFORMER;
    struct hv__parameters own = hv__range_parameters(
        h->k, &(struct hv__leaves){h->leaves, h->n_leaves, NULL}, part->ranges[0]);
    double parameters = own.dense + own.experts;
    parameters += ends && part->embedding > 0 ? hv_model_embedding_parameters(m) : 0;
    parameters += ends && part->head > 0 ? hv_model_head_parameters(m) : 0;
    for (size_t n = 0; !ends && n < h->n_leaves; n++) {
        parameters += leaf_ends(&h->leaves[n], part);
    }
    return parameters *
           (hv_job_weight_bytes(j) + hv_job_master_bytes(j) + hv_job_optimizer_bytes(j));
}

/** Spreads the states of a part of one copy over the nodes of its devices: every data-parallel rank
 * has them whole unless they are sharded; of a checkpoint each copy writes an equal part. */
static void add_part(struct held *h, const struct hv_stage *s, size_t ranks, int copy, double bytes,
                     double copies)
{
    size_t tp = s->tp.degree > 1 ? (size_t)s->tp.degree : 1;
    for (size_t d = 0; d < ranks; d++) {
        uint32_t node = hv_cluster_node_of(h->c, s->devices[(size_t)copy * ranks + d]);
        double frac = s->zero.stage > 0 ? 1 / (double)ranks : hv_tp_frac(&s->tp, d % tp);
        h->state_bytes[node] = fmax(0, h->state_bytes[node]) + bytes * frac;
        h->write_bytes[node] += bytes / (double)ranks / copies;
    }
}

/** Adds the states of stage `i`, part by part; returns their bytes, of one copy. */
static double add_stage(struct held *h, const struct hv_replica *r, size_t i, double copies)
{
    struct hv_part_walk w = {.replica = r, .stage = i};
    double sum = 0;
    while (hv_stage_next_part(&w)) {
        double bytes = part_bytes(h, &w.part);
        for (int copy = 0; copy < r->count; copy++) {
            add_part(h, &w.part, hv_stage_ranks(r, &r->stages[i]), copy, bytes, copies);
        }
        sum += bytes;
    }
    return sum;
}

static struct held hold(struct hv_cost *k, const struct hv_plan *p, struct hv_arena *arena)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    struct held h = {.k = k, .plan = p, .c = c, .n_leaves = hv_model_n_leaves(hv_cost_model(k))};
    double copies = 0;
    h.leaves = hv_arena_new(arena, struct hv_model_leaf, h.n_leaves);
    hv_model_leaves(hv_cost_model(k), h.leaves);
    h.state_bytes = hv_arena_new(arena, double, c->n_nodes);
    h.write_bytes = hv_arena_new(arena, double, c->n_nodes);
    for (uint32_t n = 0; n < c->n_nodes; n++) {
        h.state_bytes[n] = -1;
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        copies += p->replicas[i].count;
    }
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        for (size_t s = 0; s < r->n_stages; s++) {
            double bytes = add_stage(&h, r, s, copies);
            h.total_bytes += i == 0 ? bytes : 0;
        }
    }
    return h;
}

/* ---- who could give states back -------------------------------------------------------------- */

/** Nodes that hold a block in every pipeline seen so far; few, and soon none. */
struct common {
    uint32_t *nodes;
    size_t n;
    bool some; /**< a holder was seen */
};

/** Keeps in `common` the nodes that one data-parallel rank of a stage also uses. */
static void meet(const struct held *h, const uint32_t *devices, size_t n, struct common *common)
{
    size_t kept = 0;
    for (size_t d = 0; !common->some && d < n; d++) {
        uint32_t node = hv_cluster_node_of(h->c, devices[d]);
        if (common->n == 0 || common->nodes[common->n - 1] != node) {
            common->nodes[common->n++] = node;
        }
    }
    for (size_t i = 0; common->some && i < common->n; i++) {
        bool here = false;
        for (size_t d = 0; !here && d < n; d++) {
            here = hv_cluster_node_of(h->c, devices[d]) == common->nodes[i];
        }
        if (here) {
            common->nodes[kept++] = common->nodes[i];
        }
    }
    common->n = common->some ? kept : common->n;
    common->some = true;
}

/** True where another holder of this half block remains, whichever node fails. */
static bool outlives(const struct held *h, int half, struct common *common)
{
    common->n = 0;
    common->some = false;
    for (size_t i = 0; i < h->plan->n_replicas; i++) {
        const struct hv_replica *r = &h->plan->replicas[i];
        for (size_t s = 0; s < r->n_stages; s++) {
            const struct hv_stage *stage = &r->stages[s];
            const struct hv_stage own =
                hv_stage_with_degrees(stage, hv_stage_degrees(stage, half / 2));
            size_t whole = own.zero.stage > 0 ? 1 : (size_t)own.dp; /* shards count as one */
            size_t each = hv_stage_ranks(r, stage) / whole;
            for (size_t k = 0; stage_holds(stage, half) && k < whole * (size_t)r->count; k++) {
                meet(h, stage->devices + k * each, each, common);
                if (common->n == 0) {
                    return true;
                }
            }
        }
    }
    return false;
}

static bool peers_can(struct hv_cost *k, const struct held *h, struct hv_arena *arena)
{
    struct common common = {.nodes = hv_arena_new(arena, uint32_t, h->c->n_devices + 1)};
    for (size_t b = 0; b < hv_cost_model(k)->n_blocks; b++) {
        if (!outlives(h, 2 * (int)b, &common) || !outlives(h, 2 * (int)b + 1, &common)) {
            return false;
        }
    }
    return true;
}

/* ---- expectations ---------------------------------------------------------------------------- */

static bool has_layers(const struct hv_plan *p)
{
    bool layers = p->mode == HV_MODE_TRAIN && p->n_jobs == 0 && p->n_replicas > 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        for (size_t s = 0; s < p->replicas[i].n_stages; s++) {
            const struct hv_stage *stage = &p->replicas[i].stages[s];
            layers = layers && stage->module == NULL && stage->n_ranges > 0 && stage->n_devices > 0;
        }
    }
    return layers;
}

bool hv_goodput_asked(const struct hv_cost *k, const struct hv_plan *p)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    bool preempted = false;
    for (size_t g = 0; g < c->n_groups; g++) {
        preempted = preempted || c->groups[g].preemptions_per_h > 0;
    }
    for (size_t i = 0; preempted && i < p->n_replicas; i++) {
        for (size_t s = 0; s < p->replicas[i].n_stages; s++) {
            const struct hv_stage *stage = &p->replicas[i].stages[s];
            for (size_t d = 0; d < stage->n_devices; d++) {
                uint32_t group = hv_cluster_device(c, stage->devices[d]).group;
                if (c->groups[group].preemptions_per_h > 0) {
                    return true;
                }
            }
        }
    }
    return hv_cost_job(k)->failures.given;
}

/** Sums over the nodes in use. */
static void add_nodes(const struct held *h, const struct hv_failure_rules *rules,
                      struct hv_goodput *out)
{
    double nic = HUGE_VAL, states = 0;
    for (uint32_t n = 0; n < h->c->n_nodes; n++) {
        if (h->state_bytes[n] < 0) {
            continue;
        }
        const struct hv_node_group *g = hv_cluster_group_of_node(h->c, n);
        out->n_nodes++;
        out->failures_per_h += hv_node_failures_per_s(g, rules) * HOUR_S;
        out->usd_per_h += node_expected_usd_per_h(g);
        out->write_s = fmax(out->write_s, h->write_bytes[n] / (rules->store_GBps * HV_GBPS));
        states = fmax(states, h->state_bytes[n]);
        nic = g->nic.bytes_per_s > 0 ? fmin(nic, g->nic.bytes_per_s) : nic;
    }
    out->checkpoint_bytes = h->total_bytes;
    double store = rules->store_GBps * HV_GBPS;
    out->load_s = states / (out->from == HV_RECOVER_PEERS && isfinite(nic) ? nic : store);
}

/** Recovery from peers: the iteration is the segment, nothing is written, and a returning node is
 * admitted. */
static void by_peers(const struct hv_failure_rules *r, double iteration_s, struct hv_goodput *out)
{
    out->write_s = out->best_interval_s = 0;
    out->interval_s = iteration_s;
    out->restore_s = 2 * (r->regroup_s + out->load_s);
    double away_s = (r->replace_s + r->detect_s) * out->failures_per_h / HOUR_S;
    out->away_frac = away_s / ((double)out->n_nodes + away_s);
}

static void by_checkpoint(const struct hv_failure_rules *r, bool waits, double mtbf_s,
                          struct hv_goodput *out)
{
    out->best_interval_s = hv_failure_best_segment_s(out->write_s, mtbf_s);
    out->interval_s = hv_or(r->interval_s, out->best_interval_s);
    /* without waiting there are two restarts: without the node, and with it when it is back */
    double start_s = r->restart_s + out->load_s;
    out->restore_s = waits ? r->replace_s + start_s : 2 * start_s;
}

static double usd_per_mtoken(double usd_per_h, double tokens_per_s)
{
    return tokens_per_s > 0 ? usd_per_h / HOUR_S / (tokens_per_s / 1e6) : HV_UNKNOWN;
}

/** Throughput and its price for this useful share of the time. */
static void count_throughput(const struct hv_job *job, const struct hv_goodput_query *q,
                             double share, struct hv_goodput *out)
{
    out->tokens_per_s = q->tokens_per_s * share;
    out->sequences_per_s = (double)job->global_batch / q->iteration_s * share;
    out->usd_per_mtoken = usd_per_mtoken(out->usd_per_h, out->tokens_per_s);
}

/** Case without failures: only requested checkpoints take time. */
static void count_whole(const struct hv_failure_rules *r, struct hv_goodput *out)
{
    bool writes = out->from == HV_RECOVER_CHECKPOINT && hv_known(r->interval_s);
    out->interval_s = writes ? r->interval_s : HV_UNKNOWN;
    out->best_interval_s = HV_UNKNOWN;
    out->share.useful = writes ? r->interval_s / (r->interval_s + out->write_s) : 1;
    out->share.write = 1 - out->share.useful;
}

void hv_eval_goodput(struct hv_cost *k, const struct hv_goodput_query *q, struct hv_arena *arena,
                     struct hv_goodput *out)
{
    const struct hv_job *job = hv_cost_job(k);
    const struct hv_failure_rules *rules = &job->failures;
    *out = (struct hv_goodput){.from = q->plan->recovery};
    const struct hv_plan *flat =
        hv__flat_plan(hv__meshed_plan(q->plan, hv_cost_model(k), arena), hv_cost_model(k), arena);
    if (flat == NULL || !has_layers(flat) || !(q->iteration_s > 0) || !isfinite(q->iteration_s)) {
        return;
    }
    struct held h = hold(k, flat, arena);
    if (out->from == HV_RECOVER_PEERS && !peers_can(k, &h, arena)) {
        out->from = HV_RECOVER_CHECKPOINT;
    }
    add_nodes(&h, rules, out);
    out->known = true;
    out->detect_s = rules->detect_s;
    if (!(out->failures_per_h > 0)) {
        count_whole(rules, out);
        count_throughput(job, q, out->share.useful, out);
        return;
    }
    double mtbf_s = HOUR_S / out->failures_per_h;
    if (out->from == HV_RECOVER_PEERS) {
        by_peers(rules, q->iteration_s, out);
    } else {
        by_checkpoint(rules, q->waits, mtbf_s, out);
    }
    const struct hv_failure_run run = {.mtbf_s = mtbf_s,
                                       .segment_s = fmax(out->interval_s, 1e-3),
                                       .write_s = out->write_s,
                                       .recover_s = out->detect_s + out->restore_s};
    hv_failure_shares(&run, &out->share);
    out->rollback_s = out->share.rollback_s;
    count_throughput(job, q, out->share.useful * (1 - out->away_frac), out);
}

void hv_eval_elastic(struct hv_cost *k, const struct hv_plan *p, const struct hv_goodput *g,
                     const double *tokens_per_s, size_t n, struct hv_arena *arena,
                     struct hv_elastic *out)
{
    const struct hv_failure_rules *rules = &hv_cost_job(k)->failures;
    const struct hv_cluster *c = hv_cost_cluster(k);
    struct held h = hold(k, p, arena);
    struct hv_failure_nodes *groups = hv_arena_new(arena, struct hv_failure_nodes, c->n_groups);
    *out = (struct hv_elastic){.probability = hv_arena_new(arena, double, n + 1)};
    for (size_t i = 0; i < c->n_groups; i++) {
        const struct hv_node_group *group = &c->groups[i];
        groups[i].per_s = hv_node_failures_per_s(group, rules);
        groups[i].away_s = rules->detect_s + rules->replace_s;
        for (uint32_t node = 0; node < group->count; node++) {
            groups[i].n += h.state_bytes[group->first_node + node] >= 0;
        }
        double here =
            1 / (1 + groups[i].per_s * groups[i].away_s); /* the other nodes are not paid for */
        out->usd_per_h +=
            groups[i].n > 0 ? (double)groups[i].n * here * node_expected_usd_per_h(group) : 0;
    }
    hv_failure_away(groups, c->n_groups, out->probability, n + 1);
    double *useful = hv_arena_new(arena, double, n + 1);
    const struct hv_failure_states states = {.probability = out->probability,
                                             .n = n,
                                             .nodes = (double)g->n_nodes,
                                             .per_s = g->failures_per_h / HOUR_S,
                                             .away_s = rules->detect_s + rules->replace_s,
                                             .gone_s = g->detect_s + g->restore_s / 2,
                                             .back_s = g->restore_s / 2,
                                             .rollback_s = g->rollback_s};
    hv_failure_productive(&states, useful);
    for (size_t i = 0; i < n; i++) {
        out->tokens_per_s += out->probability[i] * tokens_per_s[i] * useful[i];
    }
    out->tokens_per_s *= hv_known(g->interval_s) ? g->interval_s / (g->interval_s + g->write_s) : 1;
    out->usd_per_mtoken = usd_per_mtoken(out->usd_per_h, out->tokens_per_s);
}
