/*
 * One pass of a stage on one of its ranks: the sum of its parts, gathers of sharded weights, copies
 * to host memory, and when gradients become ready. No schedule and nothing between stages.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/rng.h"
#include "solver/base/vec.h"
#include "solver/cost/cost_int.h"

/* Pieces of one pass in model order, for the milestones. */
struct piece {
    struct hv_range range;
    double backward_s;
};

struct build {
    struct hv_cost *k;
    const struct hv_stage_query *q;
    struct hv__rank rank;
    struct hv_pass *out;
    HV_VEC(struct piece) pieces;
    uint32_t *holders; /* of shards that passes gather or scatter */
    size_t n_holders;
    uint64_t holders_signature;
};

static double exposed_backward_s(const struct hv_part_cost *c)
{
    return c->tp_backward_s + c->cp_backward_s + c->ep_backward_s;
}

static void add_part(struct build *b, const struct hv_part_cost *c, double times)
{
    struct hv_pass *o = b->out;
    o->forward_s += times * (c->forward_s + c->tp_forward_s + c->cp_forward_s + c->ep_forward_s);
    o->input_grad_s += times * (c->input_grad_s + exposed_backward_s(c));
    o->weight_grad_s += times * c->weight_grad_s;
    o->recompute_s += times * c->recompute_s;
    o->tp_s += times * (c->tp_forward_s + c->tp_backward_s);
    o->cp_s += times * (c->cp_forward_s + c->cp_backward_s);
    o->ep_s += times * (c->ep_forward_s + c->ep_backward_s);
    o->compute_s += times * (c->forward_s + c->input_grad_s + c->weight_grad_s);
    o->flops += times * 3 * c->flops_forward;
    o->activation_bytes += times * c->saved_bytes;
    o->weight_only_bytes += times * c->saved_input_bytes;
}

static double backward_s(const struct hv_part_cost *c)
{
    return c->input_grad_s + c->weight_grad_s + c->recompute_s + exposed_backward_s(c);
}

static void add_piece(struct build *b, int from2, int to2, double time_s)
{
    struct piece p = {{from2, to2}, time_s};
    hv_vec_push(&b->pieces, p);
}

/* A run of n equal blocks gives up to HV_MILESTONES_PER_RUN pieces. */
static void add_run(struct build *b, int from2, int to2, double time_s)
{
    int blocks = (to2 - from2) / 2,
        cuts = blocks < HV_MILESTONES_PER_RUN ? blocks : HV_MILESTONES_PER_RUN;
    if (cuts < 2) {
        add_piece(b, from2, to2, time_s);
        return;
    }
    for (int i = 0; i < cuts; i++) {
        int from = from2 + 2 * (i * blocks / cuts), to = from2 + 2 * ((i + 1) * blocks / cuts);
        add_piece(b, from, to, time_s * (to - from) / (to2 - from2));
    }
}

/* What sharded weights cost one unit: gather before forward and backward, scatter of gradients. */
struct gathers {
    double gather_s, scatter_s;
};

static struct gathers gathers_of(struct build *b, double parameters, double expert_parameters,
                                 int ep)
{
    struct gathers g = {0};
    if (b->n_holders < 2)
        return g;
    bool whole = b->rank.stage->zero.stage >= 3;
    const struct hv_job *j = &b->k->job;
    size_t experts = b->n_holders / (size_t)(ep > 1 ? ep : 1);
    const double counts[] = {parameters, expert_parameters};
    const size_t members[] = {b->n_holders, experts ? experts : 1};
    for (int i = 0; i < 2; i++) {
        struct hv_collective_query c = {.op = HV_ALL_GATHER,
                                        .bytes = counts[i] * hv_job_weight_bytes(j),
                                        .devices = b->holders,
                                        .n = members[i],
                                        .together = (double)b->rank.tp};
        g.gather_s += whole ? hv__collective_s(b->k, &c, b->holders_signature) : 0;
        c.op = HV_REDUCE_SCATTER;
        c.bytes = counts[i] * hv_job_grad_bytes(j);
        g.scatter_s += hv__collective_s(b->k, &c, b->holders_signature);
    }
    return g;
}

/* Communication beside compute: what is longer shows, and what is under it slows the compute down.
 * Source of the form: max(C, X) + sigma min(C, X), Galvatron's overlap coefficient. */
static double exposed_s(const struct build *b, double communication_s, double compute_s)
{
    double sigma = hv_device_calibration(b->rank.device)->v[HV_CAL_OVERLAP];
    return fmax(0, communication_s - compute_s) + sigma * fmin(communication_s, compute_s);
}

/* Prefetch of one unit hides what the compute of one unit can cover. */
static double add_gathers(struct build *b, const struct hv_part_cost *c, int n, int ep,
                          double times)
{
    double parameters = 0, experts = 0, forward = 0, backward = 0;
    for (int i = 0; i < n; i++) {
        parameters += c[i].parameters;
        experts += c[i].expert_parameters;
        forward += c[i].forward_s;
        backward += c[i].input_grad_s + c[i].weight_grad_s + c[i].recompute_s;
    }
    struct gathers g = gathers_of(b, parameters, experts, ep);
    bool ahead = b->rank.stage->zero.prefetch > 0, again = b->rank.stage->zero.reshard;
    bool each = b->rank.stage->zero.reduce == HV_REDUCE_EACH;
    double back = (again ? g.gather_s : 0) + (each ? g.scatter_s : 0);
    double exposed_forward = exposed_s(b, g.gather_s, ahead ? forward : 0);
    double exposed_back = exposed_s(b, back, ahead ? backward : 0);
    b->out->forward_s += times * exposed_forward;
    b->out->input_grad_s += times * exposed_back;
    b->out->zero_s += times * (exposed_forward + exposed_back);
    if (g.gather_s > 0)
        hv_why_add(b->q->why, "weight gather", exposed_forward, "s",
                   "%.4g s over %zu holders, %s by the unit before; %.4g s exposed backward",
                   g.gather_s, b->n_holders, ahead ? "hidden" : "not hidden", exposed_back);
    return exposed_back;
}

static uint32_t *ep_group_of(const struct build *b, int ep)
{
    /* consecutive dp × cp ranks of the same tp position, starting at a multiple of ep */
    size_t each = b->rank.dp * b->rank.cp, n = (size_t)ep;
    if (n < 2 || n > each)
        return NULL;
    uint32_t *ids = hv_xmalloc(n * sizeof *ids);
    size_t first = b->rank.at * b->rank.cp / n * n;
    for (size_t i = 0; i < n; i++)
        ids[i] = b->rank.part[(first + i) % each * b->rank.tp];
    return ids;
}

static void take_longer(struct hv_part_cost *c, const struct hv_part_cost *x)
{
    c->forward_s = fmax(c->forward_s, x->forward_s);
    c->input_grad_s = fmax(c->input_grad_s, x->input_grad_s);
    c->weight_grad_s = fmax(c->weight_grad_s, x->weight_grad_s);
    c->recompute_s = fmax(c->recompute_s, x->recompute_s);
    c->cp_forward_s = fmin(c->cp_forward_s, x->cp_forward_s);
    c->cp_backward_s = fmin(c->cp_backward_s, x->cp_backward_s);
}

/* A part on the rank's group: which of several kinds is the slowest depends on the part, and more
 * compute hides more of a ring. */
static struct hv_part_cost part_of(struct build *b, enum hv_part part, size_t block,
                                   const struct hv_part_query *q)
{
    struct hv_part_cost c = hv_cost_part(b->k, part, block, q, b->q->why);
    struct hv_part_query other = *q;
    for (size_t i = 0; i < b->rank.n_others; i++) {
        other.device = b->rank.others[i];
        struct hv_part_cost x = hv_cost_part(b->k, part, block, &other, NULL);
        take_longer(&c, &x);
    }
    return c;
}

/* Half blocks [from2, to2) of one piece: all whole blocks in it are equal. */
static void add_blocks(struct build *b, int from2, int to2, size_t number)
{
    size_t block = (size_t)from2 / 2;
    struct hv_part_query pq = hv__part_query(b->q, &b->rank, block, number);
    uint32_t *ep_group = ep_group_of(b, pq.ep);
    pq.ep_group = ep_group;
    struct hv_part_cost c[2];
    int n = 0;
    bool whole = to2 - from2 > 1;
    double times = whole ? (to2 - from2) / 2 : 1;
    hv_why_add(b->q->why, "blocks", times, "x",
               "%s %d to %d, each of them:", whole ? "blocks" : "half of block", from2 / 2,
               (to2 - 1) / 2);
    if (from2 % 2 == 0)
        c[n++] = part_of(b, HV_PART_ATTENTION, block, &pq);
    if (from2 % 2 || whole)
        c[n++] = part_of(b, HV_PART_FFN, block, &pq);
    double transient = 0, back = 0;
    for (int i = 0; i < n; i++) {
        add_part(b, &c[i], times);
        transient += c[i].transient_bytes;
        back += backward_s(&c[i]);
    }
    if (from2 % 2 && pq.recompute & HV_RC_OUT)
        b->out->activation_bytes += c[0].output_bytes; /* the input comes from another stage */
    back += add_gathers(b, c, n, pq.ep, times);
    b->out->transient_bytes = fmax(b->out->transient_bytes, transient);
    if (b->k->model->kind != HV_MODEL_TRANSFORMER && from2 % 2 == 0)
        b->out->hop_bytes = c[0].output_bytes * (double)b->rank.cp;
    free(ep_group);
    add_run(b, from2, to2, times * back);
}

/* Number of a block among those of the stage, over all its ranges. */
static size_t number_in_stage(const struct hv_stage *s, size_t chunk, int at2)
{
    size_t n = 0;
    for (size_t i = 0; i < chunk && i < s->n_ranges; i++)
        n += (size_t)(s->ranges[i].to2 + 1) / 2 - (size_t)s->ranges[i].from2 / 2;
    return n + (size_t)at2 / 2 - (size_t)s->ranges[chunk].from2 / 2;
}

static void add_range(struct build *b)
{
    const struct hv_stage *s = b->rank.stage;
    if (b->q->chunk >= s->n_ranges)
        return;
    struct hv_range r = s->ranges[b->q->chunk];
    int last = 2 * (int)b->k->model->n_blocks;
    r.to2 = r.to2 < last ? r.to2 : last;
    for (int at = r.from2 > 0 ? r.from2 : 0; at < r.to2;) {
        int end = hv__piece_end(b->k, s, at, r.to2);
        add_blocks(b, at, end, number_in_stage(s, b->q->chunk, at));
        at = end;
    }
}

static void add_end(struct build *b, enum hv_part part, int mark)
{
    struct hv_part_query pq = hv__part_query(b->q, &b->rank, 0, 0);
    hv_why_add(b->q->why, part == HV_PART_HEAD ? "head" : "embedding", 1, "x",
               "%s:", part == HV_PART_HEAD ? "final norm, logits and loss" : "look-up");
    struct hv_part_cost c = part_of(b, part, 0, &pq);
    add_part(b, &c, 1);
    double back = backward_s(&c) + add_gathers(b, &c, 1, 1, 1);
    b->out->transient_bytes = fmax(b->out->transient_bytes, c.transient_bytes);
    add_piece(b, mark, mark, back);
}

/* Activations or weights that live elsewhere are copied out and back; what compute does not cover
 * shows. */
static void add_offload(struct build *b)
{
    const struct hv_stage *s = b->rank.stage;
    double rate = hv_or(b->rank.device->pcie_bytes_per_s, 16 * HV_GBPS) * HV_EFF_HOST;
    double moved = 0;
    for (size_t i = 0; i < s->n_offload; i++) {
        const struct hv_offload *o = &s->offload[i];
        if (o->what != HV_OFFLOAD_ACTIVATIONS)
            continue;
        moved += o->frac * b->out->activation_bytes;
        b->out->activation_bytes *= 1 - o->frac;
        b->out->weight_only_bytes *= 1 - o->frac;
    }
    double forward = fmax(0, moved / rate - b->out->forward_s);
    double backward = fmax(0, moved / rate - b->out->input_grad_s - b->out->weight_grad_s);
    b->out->forward_s += forward;
    b->out->input_grad_s += backward;
    b->out->zero_s += forward + backward;
    if (moved > 0)
        hv_why_add(b->q->why, "offload", forward + backward, "s",
                   "%.4g bytes out and back at %.4g GB/s, hidden by the pass where it is longer",
                   moved, rate / HV_GBPS);
}

/* Pipelines of the time before fused attention keep what they handed on until its backward pass;
 * later ones give it back (Megatron-LM, deallocate_pipeline_outputs). */
static void keep_output(struct build *b, const struct hv_part_query *q)
{
    if (b->q->replica->n_stages < 2 || !hv__older_stack(b->k, q))
        return;
    double bytes = b->out->hop_bytes / (q->cp * (q->sequence_parallel ? q->tp : 1));
    b->out->activation_bytes += bytes;
    hv_why_add(b->q->why, "kept output", bytes, "bytes",
               "handed on and still held, as pipelines with unfused attention do");
}

/* Equal lists are handed out again, so that a search over many plans does not fill memory. */
static void keep_milestones(struct hv_cost *k, const struct hv_milestone *items, size_t n,
                            struct hv_pass *out)
{
    uint64_t h = hv_hash(HV_HASH_START, items, n * sizeof *items);
    out->n_milestones = n;
    size_t cap = k->cap_milestones, at = cap ? (size_t)h & (cap - 1) : 0;
    for (; cap && k->milestones[at].items; at = (at + 1) & (cap - 1)) {
        const struct hv__milestones *m = &k->milestones[at];
        if (m->hash == h && m->n == n && !memcmp(m->items, items, n * sizeof *items)) {
            out->milestones = m->items;
            return;
        }
    }
    if (2 * (k->n_milestones + 1) > cap) {
        size_t bigger = cap ? 2 * cap : 64;
        struct hv__milestones *table = hv_xcalloc(bigger, sizeof *table);
        for (size_t i = 0; i < cap; i++) {
            size_t to = (size_t)k->milestones[i].hash & (bigger - 1);
            while (k->milestones[i].items && table[to].items)
                to = (to + 1) & (bigger - 1);
            if (k->milestones[i].items)
                table[to] = k->milestones[i];
        }
        free(k->milestones);
        k->milestones = table;
        k->cap_milestones = bigger;
        at = (size_t)h & (bigger - 1);
        while (table[at].items)
            at = (at + 1) & (bigger - 1);
    }
    out->milestones = hv_arena_copy(&k->milestones_arena, items, n, sizeof *items);
    k->milestones[at] = (struct hv__milestones){out->milestones, n, h};
    k->n_milestones++;
}

/* Host work that every pass costs once, whatever it computes. */
static void add_host_work(struct build *b)
{
    double pass_s = hv_device_calibration(b->rank.device)->v[HV_CAL_PASS_US] * HV_US;
    if (b->k->model->kind != HV_MODEL_TRANSFORMER)
        return; /* measured layers hold it already */
    b->out->forward_s += pass_s;
    b->out->input_grad_s += pass_s;
    b->out->compute_s += 2 * pass_s;
    hv_why_add(b->q->why, "host work", pass_s, "s", "per pass, forward and backward (%s)",
               hv_device_calibration(b->rank.device)->source);
}

static void add_milestones(struct build *b)
{
    size_t n = b->pieces.n;
    struct hv_milestone *list = hv_xcalloc(n ? n : 1, sizeof *list);
    double below = 0;
    for (size_t i = 0; i < n; i++) {
        list[i] = (struct hv_milestone){b->pieces.items[i].range, below};
        below += b->pieces.items[i].backward_s;
    }
    if (n)
        keep_milestones(b->k, list, n, b->out);
    free(list);
}

enum hv_status hv_cost_pass(struct hv_cost *k, const struct hv_stage_query *q, struct hv_pass *out,
                            struct hv_err *err)
{
    struct hv_stage_query full = *q;
    if (!(full.tokens > 0))
        full.tokens = hv_cost_tokens(k);
    struct build b = {.k = k, .q = &full, .out = out};
    *out = (struct hv_pass){0};
    enum hv_status st = hv__find_rank(k, &full, &b.rank, err);
    if (st != HV_OK)
        return st;
    const struct hv_stage *s = b.rank.stage;
    if (s->zero.stage >= 3 || (s->zero.stage == 2 && s->zero.reduce == HV_REDUCE_EACH))
        b.n_holders = hv__holders(&full, &b.rank, (size_t)s->zero.shard_group, &b.holders);
    b.holders_signature = hv__signature(k->cluster, b.holders, b.n_holders);
    struct hv_part_query pq = hv__part_query(&full, &b.rank, 0, 0);
    if (k->model->kind == HV_MODEL_TRANSFORMER)
        out->hop_bytes =
            hv_job_activation_bytes(&k->job) * pq.sequences * full.tokens * k->model->hidden;
    bool first = q->chunk == 0, last = q->chunk + 1 >= s->n_ranges;
    if (b.rank.embedding && first)
        add_end(&b, HV_PART_EMBEDDING, -1);
    add_range(&b);
    if (b.rank.head && last)
        add_end(&b, HV_PART_HEAD, -2);
    else
        keep_output(&b, &pq);
    add_offload(&b);
    add_host_work(&b);
    add_milestones(&b);
    hv_vec_free(&b.pieces);
    free(b.holders);
    return HV_OK;
}
