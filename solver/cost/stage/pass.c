/*
 * One pass of a stage on one of its ranks: the sum of its parts, gathers of sharded weights, copies
 * to host memory, and when gradients become ready. No schedule and nothing between stages.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "solver/base/vec.h"
#include "solver/cost/device/efficiency.h"
#include "solver/cost/stage/holders.h"
#include "solver/cost/stage/stage_int.h"
#include "solver/workload/router.h"

/* Pieces of one pass in model order, for the milestones. */
struct piece {
    struct hv_range range;
    double backward_s;
};

/* The expert-parallel group of the rank for one degree. */
struct ep_group {
    int ep, expert_tp; /* 0: not looked up */
    uint32_t *ids;     /* NULL: no group */
    size_t first, of;
    bool far;
    double beside;
    uint64_t signature;
};

/* Equal blocks between whose passes experts travel: seconds of one. */
struct travel {
    double copies_s, fetch_s, fetch_again_s, push_s;
    double forward_s, backward_s;                                    /* of compute */
    double fetch_far_s, push_far_s, fetch_latency_s, push_latency_s; /* on the network */
    size_t n;
};

/* Equal units of sharded weights: seconds of one; forward_s and backward_s are those in which the
 * links are free for gathers and scatters. */
struct unit {
    double gather_s, scatter_s, forward_s, backward_s;
    double input_s, weight_s; /* of backward_s, the two gradients */
    /* on the network between nodes: of them, and their part that does not depend on bytes */
    double gather_network_s, scatter_network_s, gather_latency_s, scatter_latency_s;
    size_t n;
};

/* Parameters of sharded experts that one expert-parallel degree spreads. */
struct spread_experts {
    int ep;
    double parameters;
};

struct build {
    struct hv__context *k;
    const struct hv_stage_query *q;
    struct hv__rank rank;
    struct hv_pass *out;
    HV_VEC(struct piece) pieces;
    bool sharded;                   /* passes gather or scatter */
    bool by_schedule;               /* the schedule does, for all that the pass computes */
    bool far_tp, far_cp, far_ep;    /* these groups go over the network; ep: of the part at hand */
    struct ep_group ep;             /* of the last blocks with experts */
    uint64_t signature;             /* of the rank's tensor- and context-parallel devices */
    const struct hv_moe_knobs *moe; /* of the last blocks, and their key */
    uint64_t moe_signature;
    struct hv_beside beside; /* without ep */
    double weight_bytes;     /* of this pass, whole */
    struct hv__shard_holders dense, experts;
    int experts_ep;                /* whose holders these are */
    HV_VEC(struct unit) units;     /* of sharded weights, in model order */
    HV_VEC(struct travel) travels; /* blocks, where the plan lets experts travel */
    bool travel;                   /* some experts of the stage do */
    int prefetch;                  /* blocks ahead that they set out; -1: none did so far */
    double dense_parameters;       /* of the one unit that the schedule gathers, and its experts */
    HV_VEC(struct spread_experts) spread;
};

static double exposed_backward_s(const struct hv_part_cost *c)
{
    return c->tp_backward_s + c->cp_backward_s + c->ep_backward_s;
}

static void add_part(struct build *b, const struct hv_part_cost *c, double times)
{
    struct hv_pass *o = b->out;
    b->weight_bytes +=
        times * (c->parameters + c->expert_parameters) * hv_job_weight_bytes(&b->k->job);
    o->forward_s += times * (c->forward_s + c->tp_forward_s + c->cp_forward_s + c->ep_forward_s);
    o->input_grad_s += times * (c->input_grad_s + exposed_backward_s(c));
    o->weight_grad_s += times * c->weight_grad_s;
    o->input_alone_s += times * (c->input_grad_s + exposed_backward_s(c));
    o->weight_alone_s += times * c->weight_grad_s;
    o->recompute_s += times * c->recompute_s;
    o->tp_s += times * (c->tp_forward_s + c->tp_backward_s);
    o->cp_s += times * (c->cp_forward_s + c->cp_backward_s);
    o->ep_s += times * (c->ep_forward_s + c->ep_backward_s);
    o->ep_forward_s += times * c->ep_forward_s;
    o->network_forward_s +=
        times * ((b->far_tp ? c->tp_wire_forward_s : 0) + (b->far_cp ? c->cp_wire_forward_s : 0) +
                 (b->far_ep ? c->ep_wire_forward_s : 0));
    o->network_backward_s +=
        times * ((b->far_tp ? c->tp_wire_backward_s : 0) + (b->far_cp ? c->cp_wire_backward_s : 0) +
                 (b->far_ep ? c->ep_wire_backward_s : 0));
    o->latency_forward_s += times * ((b->far_tp ? c->tp_latency_forward_s : 0) +
                                     (b->far_cp ? c->cp_latency_forward_s : 0) +
                                     (b->far_ep ? c->ep_latency_forward_s : 0));
    o->latency_backward_s += times * ((b->far_tp ? c->tp_latency_backward_s : 0) +
                                      (b->far_cp ? c->cp_latency_backward_s : 0) +
                                      (b->far_ep ? c->ep_latency_backward_s : 0));
    o->compute_s += times * (c->forward_s + c->input_grad_s + c->weight_grad_s);
    o->flops += times * 3 * c->flops_forward;
    o->routed += times * c->routed;
    o->dropped += times * c->dropped_frac;
    hv_traffic_add(&o->sent, &c->sent, times);
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

/* Experts of one expert-parallel degree sit on every (ep × ranks that cut one)-th rank. */
static const struct hv__shard_holders *holders_of_experts(struct build *b, int ep)
{
    if (b->experts_ep != ep) {
        hv__free_shard_holders(&b->experts);
        size_t whole = (size_t)hv_stage_expert_tp(b->rank.stage, ep);
        size_t stride = whole * (size_t)(ep > 1 ? ep : 1);
        hv__find_shard_holders(b->k, b->q, &b->rank, stride, &b->experts);
        b->experts_ep = ep;
    }
    return &b->experts;
}

/* A collective of a unit: of its dense parameters and of its experts, bytes of one each. */
static struct hv__shard_s unit_s(struct build *b, enum hv_collective op,
                                 const struct hv__shard_holders *e, double dense_bytes,
                                 double expert_bytes)
{
    struct hv__shard_s dense = hv__share_s(b->k, b->q, &b->rank, op, &b->dense, dense_bytes);
    struct hv__shard_s experts = hv__share_s(b->k, b->q, &b->rank, op, e, expert_bytes);
    return (struct hv__shard_s){dense.all_s + experts.all_s, dense.network_s + experts.network_s};
}

/* What an exchange adds to the seconds in which gathers find their links free: all that compute
 * leaves of it where it uses other links (inside or outside the node); where it uses the same, it
 * keeps them busy while compute hides it. */
static double room_s(bool same, double exposed_s, double wire_s)
{
    return same ? -fmax(0, wire_s - exposed_s) : exposed_s;
}

/* Adds a part to a unit. */
static void add_to_unit(const struct build *b, const struct hv_part_cost *c, bool far,
                        struct unit *u)
{
    bool tp = b->far_tp == far, cp = b->far_cp == far, ep = b->far_ep == far;
    double forward_s = c->forward_s + room_s(tp, c->tp_forward_s, c->tp_wire_forward_s) +
                       room_s(cp, c->cp_forward_s, c->cp_wire_forward_s) +
                       room_s(ep, c->ep_forward_s, c->ep_wire_forward_s);
    double input_s = c->input_grad_s + c->recompute_s +
                     room_s(tp, c->tp_backward_s, c->tp_wire_backward_s) +
                     room_s(cp, c->cp_backward_s, c->cp_wire_backward_s) +
                     room_s(ep, c->ep_backward_s, c->ep_wire_backward_s);
    u->forward_s += fmax(0, forward_s);
    u->input_s += fmax(0, input_s);
    u->weight_s += c->weight_grad_s;
    u->backward_s += fmax(0, input_s + c->weight_grad_s);
}

/* Notes parameters of the unit that the schedule gathers. */
static void note_unit(struct build *b, const struct hv_part_cost *c, int n, int ep, double times)
{
    struct spread_experts x = {.ep = ep};
    for (int i = 0; i < n; i++) {
        b->dense_parameters += times * c[i].parameters;
        x.parameters += times * c[i].expert_parameters;
    }
    if (x.parameters > 0) {
        hv_vec_push(&b->spread, x);
    }
}

/* An exchange of the whole unit: one collective of its dense weights, and one of its experts for
 * each run of blocks that spread them alike. */
struct exchange {
    struct hv__shard_s takes;
    double parameters; /* of those that have several holders */
};

static void add_exchange(struct build *b, enum hv_collective op, const struct hv__shard_holders *h,
                         double parameters, double bytes_each, struct exchange *x)
{
    struct hv__shard_s s = hv__share_s(b->k, b->q, &b->rank, op, h, parameters * bytes_each);
    x->takes.all_s += s.all_s;
    x->takes.network_s += s.network_s;
    x->parameters += h->own.n > 1 ? parameters : 0;
}

static struct exchange exchange_unit(struct build *b, enum hv_collective op, double bytes_each)
{
    struct exchange x = {0};
    add_exchange(b, op, &b->dense, b->dense_parameters, bytes_each, &x);
    for (size_t i = 0; i < b->spread.n; i++) {
        double parameters = b->spread.items[i].parameters;
        int ep = b->spread.items[i].ep;
        for (; i + 1 < b->spread.n && b->spread.items[i + 1].ep == ep; i++) {
            parameters += b->spread.items[i + 1].parameters;
        }
        add_exchange(b, op, holders_of_experts(b, ep), parameters, bytes_each, &x);
    }
    return x;
}

/* Gather and scatter of the unit, which the schedule places. */
static void add_unit(struct build *b)
{
    double weight = hv_job_weight_bytes(&b->k->job), gradient = hv_job_grad_bytes(&b->k->job);
    struct hv_pass *o = b->out;
    struct exchange gather = exchange_unit(b, HV_ALL_GATHER, weight);
    struct exchange scatter = exchange_unit(b, HV_REDUCE_SCATTER, gradient);
    o->gather_s = gather.takes.all_s;
    o->scatter_s = scatter.takes.all_s;
    o->gather_bytes =
        gather.parameters * weight * hv__offload_stays(b->rank.stage, HV_OFFLOAD_WEIGHTS);
    o->scatter_bytes = scatter.parameters * gradient;
    double one_byte = gather.parameters > 0 ? 1 / gather.parameters : 0; /* not the wait for it */
    struct exchange least = exchange_unit(b, HV_ALL_GATHER, one_byte);
    o->gather_network_s = fmax(0, gather.takes.network_s - least.takes.network_s);
    least = exchange_unit(b, HV_REDUCE_SCATTER, one_byte);
    o->scatter_network_s = fmax(0, scatter.takes.network_s - least.takes.network_s);
    hv_why_add(b->q->why, "sharded weights", o->gather_s, "s",
               "gather of %.4g bytes over %zu holders, when the schedule's window reaches it; "
               "%.4g s for the scatter of its gradients",
               o->gather_bytes, b->dense.own.n, o->scatter_s);
}

/* Notes `times` units of sharded weights made of these parts; add_sharding has them timed. */
static void note_units(struct build *b, const struct hv_part_cost *c, int n, int ep, double times)
{
    struct unit u = {.n = (size_t)times};
    double parameters = 0, experts = 0;
    if (b->by_schedule) {
        note_unit(b, c, n, ep, times);
    }
    if (!b->sharded || b->by_schedule) {
        return;
    }
    bool far = b->dense.own.far;
    for (int i = 0; i < n; i++) {
        parameters += c[i].parameters;
        experts += c[i].expert_parameters;
        add_to_unit(b, &c[i], far, &u);
    }
    const struct hv_zero *z = &b->rank.stage->zero;
    const struct hv_job *j = &b->k->job;
    const struct hv__shard_holders *e = experts > 0 ? holders_of_experts(b, ep) : &b->experts;
    double weight = hv_job_weight_bytes(j), gradient = hv_job_grad_bytes(j);
    bool dense = parameters > 0, spread = experts > 0; /* a byte of each that there are */
    if (z->stage >= 3) {
        struct hv__shard_s whole =
            unit_s(b, HV_ALL_GATHER, e, parameters * weight, experts * weight);
        u.gather_s = whole.all_s;
        u.gather_network_s = whole.network_s;
        u.gather_latency_s = unit_s(b, HV_ALL_GATHER, e, dense, spread).network_s;
    }
    if (hv_zero_scatters(z)) {
        struct hv__shard_s whole =
            unit_s(b, HV_REDUCE_SCATTER, e, parameters * gradient, experts * gradient);
        u.scatter_s = whole.all_s;
        u.scatter_network_s = whole.network_s;
        u.scatter_latency_s = unit_s(b, HV_REDUCE_SCATTER, e, dense, spread).network_s;
    }
    bool empty = !(u.forward_s > 0 || u.backward_s > 0 || parameters > 0 || experts > 0);
    if (!empty) { /* as the head of measured layers, which are whole without it */
        hv_vec_push(&b->units, u);
    }
}

/* Units larger than a layer: everything that the pass computes is one. */
static void join_units(struct build *b)
{
    struct unit all = {.n = 1};
    for (size_t i = 0; i < b->units.n; i++) {
        const struct unit *u = &b->units.items[i];
        double n = (double)u->n;
        all.gather_s += n * u->gather_s;
        all.scatter_s += n * u->scatter_s;
        all.forward_s += n * u->forward_s;
        all.backward_s += n * u->backward_s;
        all.input_s += n * u->input_s;
        all.weight_s += n * u->weight_s;
        all.gather_network_s += n * u->gather_network_s;
        all.scatter_network_s += n * u->scatter_network_s;
        all.gather_latency_s += n * u->gather_latency_s;
        all.scatter_latency_s += n * u->scatter_latency_s;
    }
    b->units.n = 1;
    b->units.items[0] = all;
}

/* The largest figure of the calibrations of the kinds of a rank's group: they run in step. */
static double calibrated(const struct build *b, enum hv_calibrated what)
{
    double most = hv_device_calibration(b->rank.device)->v[what];
    for (size_t i = 0; i < b->rank.n_others; i++) {
        most = fmax(most, hv_device_calibration(b->rank.others[i])->v[what]);
    }
    return most;
}

/* Seconds by which communication lengthens compute beside it: the exposed part, and the slowdown of
 * compute by the overlapped part. Source of the form: compute C and communication X together take
 * max(C, X) + sigma min(C, X), Galvatron's overlap coefficient. */
static double shown_s(const struct build *b, struct hv_overlap o)
{
    return o.exposed_s + calibrated(b, HV_CAL_OVERLAP) * o.hidden_s;
}

static double forward_units_s(struct build *b, struct hv_units *runs, size_t window)
{
    size_t n = b->units.n;
    for (size_t i = 0; i < n; i++) {
        const struct unit *u = &b->units.items[i];
        runs[i] = (struct hv_units){u->gather_s, u->forward_s, 0, u->n};
    }
    return shown_s(b, hv__units(&b->k->network, runs, n, window));
}

/* The last unit of the forward pass is still gathered where its backward pass follows directly: on
 * the stage with the head. `alone`: the gradients of inputs without those of weights. */
static double backward_units_s(struct build *b, struct hv_units *runs, size_t window, bool turns,
                               bool alone)
{
    bool again = b->rank.stage->zero.reshard;
    size_t n = 0;
    for (size_t i = b->units.n; i-- > 0;) {
        const struct unit *u = &b->units.items[i];
        double gather_s = again ? u->gather_s : 0, scatter_s = alone ? 0 : u->scatter_s;
        double compute_s = alone ? u->input_s : u->backward_s;
        bool kept = turns && i + 1 == b->units.n;
        if (kept) {
            runs[n++] = (struct hv_units){0, compute_s, scatter_s, 1};
        }
        if (!kept || u->n > 1) {
            runs[n++] = (struct hv_units){gather_s, compute_s, scatter_s, u->n - (kept ? 1 : 0)};
        }
    }
    return shown_s(b, hv__units(&b->k->network, runs, n, window));
}

/* The gradients of weights without those of inputs: their scatters. */
static double weight_units_s(struct build *b, struct hv_units *runs)
{
    size_t n = 0;
    for (size_t i = b->units.n; i-- > 0;) {
        const struct unit *u = &b->units.items[i];
        runs[n++] = (struct hv_units){0, u->weight_s, u->scatter_s, u->n};
    }
    return shown_s(b, hv__units(&b->k->network, runs, n, 1));
}

/* Adds the seconds in which gathers and scatters keep the network busy, exposed or overlapped. */
static void add_far_sharding(struct build *b, bool turns)
{
    for (size_t i = 0; i < b->units.n; i++) {
        const struct unit *u = &b->units.items[i];
        double n = (double)u->n, again = b->rank.stage->zero.reshard ? n : 0;
        again -= again > 0 && turns && i + 1 == b->units.n ? 1 : 0;
        b->out->network_forward_s += n * u->gather_network_s;
        b->out->latency_forward_s += n * u->gather_latency_s;
        b->out->latency_backward_s += again * u->gather_latency_s + n * u->scatter_latency_s;
        b->out->latency_weight_s += n * u->scatter_latency_s;
        b->out->network_backward_s += again * u->gather_network_s + n * u->scatter_network_s;
        b->out->network_weight_s += n * u->scatter_network_s;
    }
}

/* Notes `times` blocks of these parts. */
static void note_travel(struct build *b, const struct hv_part_cost *c, int n,
                        const struct hv_moe_knobs *m, double times)
{
    struct travel t = {.n = (size_t)times};
    if (!b->travel) {
        return;
    }
    for (int i = 0; i < n; i++) {
        t.copies_s += c[i].copies_s;
        t.fetch_s += c[i].fetch_s;
        t.fetch_again_s += c[i].fetch_again_s;
        t.push_s += c[i].push_s;
        t.fetch_far_s += b->far_ep ? c[i].fetch_far_s : 0;
        t.push_far_s += b->far_ep ? c[i].push_far_s : 0;
        t.fetch_latency_s += b->far_ep ? c[i].fetch_latency_s : 0;
        t.push_latency_s += b->far_ep ? c[i].push_latency_s : 0;
        t.forward_s += c[i].forward_s;
        t.backward_s += c[i].input_grad_s + c[i].weight_grad_s + c[i].recompute_s;
    }
    if (m && t.copies_s + t.fetch_s > 0) {
        bool less = b->prefetch >= 0 && b->prefetch < m->prefetch;
        b->prefetch = less ? b->prefetch : m->prefetch;
    }
    hv_vec_push(&b->travels, t);
}

/* Lengthens the backward passes of all pieces in proportion. */
static void stretch_pieces(struct build *b, double by_s)
{
    double before_s = 0;
    for (size_t i = 0; i < b->pieces.n; i++) {
        before_s += b->pieces.items[i].backward_s;
    }
    for (size_t i = 0; i < b->pieces.n && before_s > 0; i++) {
        b->pieces.items[i].backward_s *= 1 + by_s / before_s;
    }
}

/* Experts that travel beside the compute of the blocks before theirs, as gathered weights do. */
static void add_travel(struct build *b)
{
    size_t n = b->travels.n, window = (size_t)(b->prefetch + 1);
    if (b->prefetch < 0) {
        return;
    }
    struct hv_units *runs = hv_xcalloc(3 * n, sizeof *runs);
    for (size_t i = 0; i < n; i++) {
        const struct travel *t = &b->travels.items[i], *last = &b->travels.items[n - 1 - i];
        runs[i] = (struct hv_units){t->copies_s, t->forward_s, 0, t->n};
        runs[n + i] = (struct hv_units){t->fetch_s, t->forward_s, 0, t->n};
        runs[2 * n + i] =
            (struct hv_units){last->fetch_again_s, last->backward_s, last->push_s, last->n};
        b->out->network_forward_s += (double)t->n * t->fetch_far_s;
        b->out->network_backward_s += (double)t->n * t->push_far_s;
        b->out->latency_forward_s += (double)t->n * t->fetch_latency_s;
        b->out->latency_backward_s += (double)t->n * t->push_latency_s;
    }
    b->out->copies_s = shown_s(b, hv__units(&b->k->network, runs, n, window));
    double ahead_s = shown_s(b, hv__units(&b->k->network, runs + n, n, window));
    double behind_s = shown_s(b, hv__units(&b->k->network, runs + 2 * n, n, window));
    stretch_pieces(b, behind_s);
    b->out->forward_s += ahead_s;
    b->out->input_grad_s += behind_s;
    b->out->input_alone_s += behind_s;
    b->out->ep_s += ahead_s + behind_s;
    free(runs);
}

/* True where experts of the stage travel. */
static bool experts_travel(const struct hv_stage *s)
{
    for (size_t i = 0; i < s->n_moe; i++) {
        const struct hv_moe_knobs *m = &s->moe[i];
        if (m->move == HV_MOE_EXPERTS || (m->n_copies > 0 && m->copy_life == HV_COPY_ITERATION)) {
            return true;
        }
    }
    return false;
}

/* Gathers of sharded weights ahead of compute and scatters of gradients behind it. */
static void add_sharding(struct build *b, bool turns)
{
    const struct hv_zero *z = &b->rank.stage->zero;
    if (b->by_schedule) {
        add_unit(b);
    }
    if (!b->units.n) {
        return;
    }
    if (z->unit != HV_ZERO_LAYER) {
        join_units(b);
    }
    add_far_sharding(b, turns);
    int window = z->limit > 0 && z->limit <= z->prefetch ? z->limit : z->prefetch + 1;
    struct hv_units *runs = hv_xcalloc(b->units.n + 1, sizeof *runs);
    double ahead_s = forward_units_s(b, runs, (size_t)window);
    double behind_s = backward_units_s(b, runs, (size_t)window, turns, false);
    stretch_pieces(b, behind_s);
    b->out->forward_s += ahead_s;
    b->out->input_grad_s += behind_s;
    b->out->input_alone_s += backward_units_s(b, runs, (size_t)window, turns, true);
    b->out->weight_alone_s += weight_units_s(b, runs);
    b->out->zero_s += ahead_s + behind_s;
    hv_why_add(b->q->why, "sharded weights", ahead_s, "s",
               "exposed part of the gathers forward, %zu unit%s in memory at a time, over %zu "
               "holders; %.4g s of gathers and scatters backward",
               (size_t)window, window > 1 ? "s" : "", b->dense.own.n, behind_s);
    free(runs);
}

/* Gives a query its expert-parallel group, and where the job's routing is asked for its tokens. */
static void set_ep_group(struct build *b, size_t block, struct hv_part_query *pq)
{
    const struct hv_cluster *c = b->k->cluster;
    struct ep_group *g = &b->ep;
    if (g->ep != pq->ep || g->expert_tp != pq->expert_tp) {
        free(g->ids);
        *g = (struct ep_group){.ep = pq->ep, .expert_tp = pq->expert_tp};
        g->ids = hv__ep_group(&b->rank, pq, &g->first, &g->of);
        g->far = g->ids && hv_cluster_is_far(c, g->ids, (size_t)pq->ep, 1);
        g->beside = g->far ? hv__beside_ep(b->k, &b->rank, pq) : 0;
        g->signature = g->ids ? hv__signature(c, g->ids, (size_t)pq->ep) : 0;
    }
    pq->ep_group = g->ids;
    pq->ep_signature = g->signature;
    pq->beside.ep = g->beside;
    b->far_ep = g->far;
    bool pads = pq->ep < 2 && pq->moe &&
                (pq->moe->kernel != HV_MOE_GROUPED || pq->moe->capacity_factor > 0);
    if ((g->ids || pads) && b->k->with_experts && hv_model_has_experts(b->k->model, block)) {
        size_t layer = b->k->with_experts[block];
        pq->routed =
            (struct hv_routed_at){hv_router_class(b->k->job.routing, b->q->iteration, layer),
                                  b->q->iteration, layer, g->first, g->of};
    }
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

/* Shards of unequal size: every rank waits for the slowest at each sum, and holds its own share. */
static struct hv_part_cost uneven_part_of(struct build *b, enum hv_part part, size_t block,
                                          const struct hv_part_query *q)
{
    const struct hv__rank *r = &b->rank;
    struct hv_part_query own = *q;
    own.device = hv_cluster_device(b->k->cluster, r->group[r->tp_at]).kind;
    struct hv_part_cost c = hv__part_cost(b->k, part, block, &own, b->q->why);
    for (size_t i = 0; i < r->tp; i++) {
        own.device = hv_cluster_device(b->k->cluster, r->group[i]).kind;
        own.tp_frac = hv_tp_frac(&r->stage->tp, i);
        struct hv_part_cost x = hv__part_cost(b->k, part, block, &own, NULL);
        take_longer(&c, &x);
        c.tp_forward_s = fmax(c.tp_forward_s, x.tp_forward_s);
        c.tp_backward_s = fmax(c.tp_backward_s, x.tp_backward_s);
        c.ep_forward_s = fmax(c.ep_forward_s, x.ep_forward_s);
        c.ep_backward_s = fmax(c.ep_backward_s, x.ep_backward_s);
    }
    return c;
}

/* Seconds of a part on one kind of device with its tensor-parallel exchange, both ways. */
static double whole_forward_s(const struct hv_part_cost *c)
{
    return c->forward_s + c->tp_forward_s;
}

static double gradients_s(const struct hv_part_cost *c)
{
    return c->input_grad_s + c->weight_grad_s + c->recompute_s;
}

/* A part on the rank's group: which of several kinds is the slowest depends on the part, and more
 * compute hides more of a ring. A kind hides as much of the tensor-parallel exchange as its own
 * products allow: the group goes on when its last rank has both behind it. */
static struct hv_part_cost part_of(struct build *b, enum hv_part part, size_t block,
                                   const struct hv_part_query *q)
{
    if (b->rank.stage->tp.shares) {
        return uneven_part_of(b, part, block, q);
    }
    struct hv_part_cost c = hv__part_cost(b->k, part, block, q, b->q->why);
    double ahead_s = whole_forward_s(&c), behind_s = gradients_s(&c) + c.tp_backward_s;
    struct hv_part_query other = *q;
    for (size_t i = 0; i < b->rank.n_others; i++) {
        other.device = b->rank.others[i];
        struct hv_part_cost x = hv__part_cost(b->k, part, block, &other, NULL);
        ahead_s = fmax(ahead_s, whole_forward_s(&x));
        behind_s = fmax(behind_s, gradients_s(&x) + x.tp_backward_s);
        take_longer(&c, &x);
    }
    if (b->rank.n_others > 0) {
        c.tp_forward_s = fmax(0, ahead_s - c.forward_s);
        c.tp_backward_s = fmax(0, behind_s - gradients_s(&c));
    }
    return c;
}

/* What rank `at` of the stage keeps of a part: the busiest rank keeps what the price says, others
 * less of their experts' tokens. */
static struct hv_kept kept_of(const struct build *b, const struct hv_part_query *q, size_t at,
                              const struct hv_part_cost *c)
{
    struct hv_kept k = {c->saved_bytes, c->saved_input_bytes, c->transient_bytes};
    double own = 0;
    if (!c->rank_load) {
        return k;
    }
    struct hv__ep_places p = hv__ep_places_at(&b->rank, at, q);
    for (size_t i = 0; i < p.n; i++) {
        own = fmax(own, c->rank_load[(p.first + i) % (size_t)q->ep]);
    }
    k.activation_bytes -= (1 - own) * c->routed_saved_bytes;
    k.weight_only_bytes -= (1 - own) * c->routed_input_bytes;
    k.weight_only_bytes = fmin(fmax(k.weight_only_bytes, 0), k.activation_bytes);
    k.transient_bytes -= (1 - own) * c->routed_transient_bytes;
    return k;
}

static void keep_own(const struct build *b, const struct hv_part_query *q, struct hv_part_cost *c)
{
    struct hv_kept k = kept_of(b, q, b->rank.at, c);
    c->saved_bytes = k.activation_bytes;
    c->saved_input_bytes = k.weight_only_bytes;
    c->transient_bytes = k.transient_bytes;
}

/* Adds `times` n parts to what the query's peers keep, and `handed` bytes of their input. */
static void keep_of_peers(const struct build *b, const struct hv_part_query *q,
                          const struct hv_part_cost *c, int n, double times, double handed)
{
    const struct hv_peers *p = &b->q->peers;
    for (size_t i = 0; i < p->n; i++) {
        struct hv_kept *sum = &p->kept[i];
        double transient = 0;
        for (int k = 0; k < n; k++) {
            struct hv_kept x = kept_of(b, q, p->ranks[i], &c[k]);
            sum->activation_bytes += times * x.activation_bytes;
            sum->weight_only_bytes += times * x.weight_only_bytes;
            transient += x.transient_bytes;
        }
        sum->activation_bytes += handed;
        sum->transient_bytes = fmax(sum->transient_bytes, transient);
    }
}

/* Half blocks [from2, to2) of one piece: all whole blocks in it are equal. */
static void add_blocks(struct build *b, int from2, int to2, size_t number)
{
    size_t block = (size_t)from2 / 2;
    struct hv_part_query pq = hv__part_query(b->k, b->q, &b->rank, block, number);
    pq.beside = b->beside;
    set_ep_group(b, block, &pq);
    pq.group_signature = b->signature;
    if (pq.moe != b->moe) {
        b->moe = pq.moe;
        b->moe_signature = pq.moe ? hv__moe_signature(pq.moe) : 0;
    }
    pq.moe_signature = b->moe_signature;
    struct hv_part_cost c[2];
    int n = 0;
    bool whole = to2 - from2 > 1;
    double times = whole ? (to2 - from2) / 2 : 1;
    hv_why_add(b->q->why, "blocks", times, "x",
               "%s %d to %d, each of them:", whole ? "blocks" : "half of block", from2 / 2,
               (to2 - 1) / 2);
    hv_why_attach_blocks(b->q->why, from2 / 2, (to2 + 1) / 2);
    if (from2 % 2 == 0) {
        c[n++] = part_of(b, HV_PART_ATTENTION, block, &pq);
    }
    if (from2 % 2 || whole) {
        c[n++] = part_of(b, HV_PART_FFN, block, &pq);
    }
    /* half a block gets its input from another stage, and keeps it */
    double handed = from2 % 2 && pq.recompute & HV_RC_OUT ? c[0].output_bytes : 0;
    double transient = 0, back = 0;
    keep_of_peers(b, &pq, c, n, times, handed);
    keep_own(b, &pq, &c[n - 1]);
    for (int i = 0; i < n; i++) {
        add_part(b, &c[i], times);
        transient += c[i].transient_bytes;
        back += backward_s(&c[i]);
    }
    b->out->activation_bytes += handed;
    note_units(b, c, n, pq.ep, times);
    note_travel(b, c, n, pq.moe, times);
    b->out->transient_bytes = fmax(b->out->transient_bytes, transient);
    if (!b->k->parts->analytic && from2 % 2 == 0) {
        b->out->hop_bytes = c[0].output_bytes * (double)b->rank.cp;
    }
    b->far_ep = false;
    add_run(b, from2, to2, times * back);
}

/* Number of a block among those of the stage, over all its ranges. */
static size_t number_in_stage(const struct hv_stage *s, size_t chunk, int at2)
{
    size_t n = 0;
    for (size_t i = 0; i < chunk && i < s->n_ranges; i++) {
        n += (size_t)(s->ranges[i].to2 + 1) / 2 - (size_t)s->ranges[i].from2 / 2;
    }
    return n + (size_t)at2 / 2 - (size_t)s->ranges[chunk].from2 / 2;
}

static void add_range(struct build *b)
{
    const struct hv_stage *s = b->rank.stage;
    if (b->q->chunk >= s->n_ranges) {
        return;
    }
    struct hv_range r = s->ranges[b->q->chunk];
    int last = 2 * (int)b->k->model->n_blocks;
    r.to2 = r.to2 < last ? r.to2 : last;
    for (int at = r.from2 > 0 ? r.from2 : 0; at < r.to2;) {
        int end = hv__piece_end(b->k, s, b->q->iteration, at, r.to2);
        add_blocks(b, at, end, number_in_stage(s, b->q->chunk, at));
        at = end;
    }
}

static void add_end(struct build *b, enum hv_part part, int mark)
{
    struct hv_part_query pq = hv__part_query(b->k, b->q, &b->rank, 0, 0);
    hv_why_add(b->q->why, part == HV_PART_HEAD ? "head" : "embedding", 1, "x",
               "%s:", part == HV_PART_HEAD ? "final norm, logits and loss" : "look-up");
    pq.beside = b->beside;
    struct hv_part_cost c = part_of(b, part, 0, &pq);
    keep_of_peers(b, &pq, &c, 1, 1, 0);
    add_part(b, &c, 1);
    note_units(b, &c, 1, 1, 1);
    b->out->transient_bytes = fmax(b->out->transient_bytes, c.transient_bytes);
    add_piece(b, mark, mark, backward_s(&c));
}

/* Pipelines of the time before fused attention keep outputs that were sent until their backward
 * pass; later ones free them (Megatron-LM, deallocate_pipeline_outputs). */
static void keep_output(struct build *b, const struct hv_part_query *q)
{
    if (b->q->continues || b->q->replica->n_stages < 2 || !hv__on_older_stack(b->k, q)) {
        return;
    }
    double bytes = b->out->hop_bytes / (q->cp * (hv_stage_spreads(b->rank.stage) ? q->tp : 1));
    b->out->activation_bytes += bytes;
    for (size_t i = 0; i < b->q->peers.n; i++) {
        b->q->peers.kept[i].activation_bytes += bytes;
    }
    hv_why_add(b->q->why, "kept output", bytes, "bytes",
               "the output is sent and also kept, as pipelines with unfused attention keep it");
}

/* No pass is shorter than its communication between nodes, however much of it compute hides. */
static void wait_for_network(struct build *b)
{
    struct hv_pass *o = b->out;
    double forward_s = fmax(0, o->network_forward_s - o->forward_s);
    double backward_s = o->input_grad_s + o->weight_grad_s + o->recompute_s;
    backward_s = fmax(0, o->network_backward_s - backward_s);
    double *shown = b->far_tp    ? &o->tp_s
                    : b->far_cp  ? &o->cp_s
                    : b->sharded ? &o->zero_s
                                 : &o->ep_s;
    o->forward_s += forward_s;
    o->input_grad_s += backward_s;
    double input_s = o->network_backward_s - o->network_weight_s;
    o->input_alone_s = fmax(o->input_alone_s, input_s - o->recompute_s);
    o->weight_alone_s = fmax(o->weight_alone_s, o->network_weight_s);
    *shown += forward_s + backward_s;
    o->ep_forward_s += shown == &o->ep_s ? forward_s : 0;
}

/* Host time of every pass, independent of its compute. */
static void add_host_work(struct build *b)
{
    double pass_s = calibrated(b, HV_CAL_PASS_US) * HV_US;
    if (!b->k->parts->analytic || b->q->continued) {
        return; /* measured layers hold it already, and a pass has it once */
    }
    b->out->forward_s += pass_s;
    b->out->input_grad_s += pass_s;
    b->out->input_alone_s += pass_s;
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
    if (n) {
        hv__keep_milestones(b->k, list, n, b->out);
    }
    free(list);
}

enum hv_status hv__stage_pass(struct hv__context *k, const struct hv_stage_query *q,
                              struct hv_pass *out, struct hv_err *err)
{
    struct hv_stage_query full = *q;
    if (!(full.tokens > 0)) {
        full.tokens = hv__tokens(k);
    }
    struct build b = {.k = k, .q = &full, .out = out};
    *out = (struct hv_pass){0};
    enum hv_status st = hv__find_rank(k, &full, &b.rank, err);
    if (st != HV_OK) {
        return st;
    }
    const struct hv_stage *s = b.rank.stage;
    b.sharded = s->zero.stage >= 3 || hv_zero_scatters(&s->zero);
    b.by_schedule = hv_zero_by_schedule(&s->zero);
    if (b.sharded) {
        hv__find_shard_holders(k, q, &b.rank, b.rank.tp, &b.dense);
    }
    if (b.rank.tp * b.rank.cp > 1) {
        b.signature = hv__signature(k->cluster, b.rank.group, b.rank.tp * b.rank.cp);
    }
    b.travel = experts_travel(s);
    b.prefetch = -1;
    b.far_tp = hv_cluster_is_far(k->cluster, b.rank.group, b.rank.tp, 1);
    b.far_cp = hv_cluster_is_far(k->cluster, b.rank.group, b.rank.cp, b.rank.tp);
    struct hv_part_query pq = hv__part_query(k, &full, &b.rank, 0, 0);
    if (b.far_tp || b.far_cp) {
        b.beside = hv__beside_of(k, &b.rank, &pq);
    }
    if (k->parts->analytic) {
        out->hop_bytes =
            hv_job_activation_bytes(&k->job) * pq.sequences * full.tokens * k->model->hidden;
    }
    bool first = q->chunk == 0, last = q->chunk + 1 >= s->n_ranges;
    if (b.rank.embedding && first) {
        add_end(&b, HV_PART_EMBEDDING, HV_MILESTONE_EMBEDDING);
    }
    add_range(&b);
    if (b.rank.head && last) {
        add_end(&b, HV_PART_HEAD, HV_MILESTONE_HEAD);
    } else {
        keep_output(&b, &pq);
    }
    add_travel(&b);
    add_sharding(&b, b.rank.head && last);
    if (s->n_offload > 0) {
        size_t over = s->zero.stage >= 3 ? b.dense.own.n : 1;
        hv__price_offload(k, &full, &b.rank, b.weight_bytes / (double)(over > 0 ? over : 1), out);
    }
    wait_for_network(&b);
    add_host_work(&b);
    add_milestones(&b);
    hv_vec_free(&b.pieces);
    hv_vec_free(&b.units);
    hv_vec_free(&b.spread);
    hv_vec_free(&b.travels);
    hv__free_shard_holders(&b.dense);
    hv__free_shard_holders(&b.experts);
    free(b.ep.ids);
    return HV_OK;
}
