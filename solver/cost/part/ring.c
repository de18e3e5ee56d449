/*
 * Exchanges of context parallelism: all-to-alls over heads, rings of keys and values and the
 * schemes built on them. Each gives the seconds that its timeline leaves exposed beside the
 * attention core, the seconds that its links are busy, and the values that a rank sends. Sources:
 * Liu et al. 2023 (Ring Attention), Jacobs et al. 2023 (all-to-all over heads), Fang and Zhao 2024
 * (USP), Gu et al. 2024 (LoongTrain), Li et al. 2023 (DISTFLASHATTN), Sun et al. 2024
 * (BurstAttention), Li et al. 2021 (Ring Self-Attention), Liu et al. 2024 (WallFacer), Llama Team
 * 2024 (all-gather), Zhao et al. 2024 (DSP).
 */
#include <math.h>
#include <stdlib.h>

#include "solver/cost/part/part_int.h"

/* Bytes of a sum of gradients and of a statistic of the softmax. */
#define SUM_BYTES 4.0

struct hv__cp_shape hv__cp_shape_of(const struct hv_part_query *q)
{
    int heads = q->cp_scheme == HV_CP_ULYSSES ? q->cp : q->cp_heads > 1 ? q->cp_heads : 1;
    struct hv__cp_shape s = {heads, q->cp / heads, 1, 1, 1, 1, 1};
    if (q->cp_order == HV_CP_RING_INNER) {
        s.heads_apart = (size_t)s.ring;
    } else {
        s.ring_apart = (size_t)heads;
    }
    bool nests = q->cp_scheme == HV_CP_RING || q->cp_scheme == HV_CP_USP ||
                 q->cp_scheme == HV_CP_LOONGTRAIN || q->cp_scheme == HV_CP_WALLFACER;
    bool divides = q->cp_inner > 1 && q->cp_inner < s.ring && s.ring % q->cp_inner == 0;
    s.inner = nests && divides ? q->cp_inner : 1;
    bool spread = q->cp_scheme == HV_CP_WALLFACER && q->cp_order == HV_CP_RING_INNER;
    s.inner_apart = s.ring_apart * (size_t)(spread ? s.ring / s.inner : 1);
    s.outer_apart = s.ring_apart * (size_t)(spread ? 1 : s.inner);
    return s;
}

/* What a pass adds: forward, or backward. */
struct pass {
    double shown_s, wire_s; /* exposed; seconds from start to end of exchanges */
    double latency_s;       /* of wire_s, while no bytes move */
    double sent, hop, most; /* values of a rank: in the mean, in one hop, of the busiest */
};

static void add_sent(struct pass *p, double values)
{
    p->sent += values;
    p->most += values;
}

/* ---- ranks ----------------------------------------------------------------------------------- */

/* Ranks of one ring or collective. */
struct members {
    const struct hv__ask *a;
    uint32_t *ids;   /* NULL: the query has no group */
    size_t *house;   /* first member in the same link domain */
    size_t *leaving; /* room for flows out of a domain */
    size_t n;
    double together; /* groups like it that share the network */
};

static struct members members_of(const struct hv__ask *a, size_t first, size_t apart, int n,
                                 double together)
{
    size_t stride = (size_t)a->q->tp * apart;
    struct members m = {.a = a, .n = (size_t)n};
    m.together = together > 0 ? together : (double)stride;
    if (!a->q->group) {
        return m;
    }
    m.ids = hv_xmalloc(m.n * sizeof *m.ids);
    m.house = hv_xmalloc(2 * m.n * sizeof *m.house);
    m.leaving = m.house + m.n;
    const struct hv_cluster *c = a->k->cluster;
    for (size_t i = 0; i < m.n; i++) {
        m.ids[i] = a->q->group[first * (size_t)a->q->tp + i * stride];
        uint32_t domain = hv_cluster_domain_of(c, hv_cluster_node_of(c, m.ids[i]));
        size_t k = i > 0 && hv_cluster_domain_of(c, hv_cluster_node_of(c, m.ids[i - 1])) == domain
                       ? m.house[i - 1]
                       : 0;
        while (k < i && hv_cluster_domain_of(c, hv_cluster_node_of(c, m.ids[k])) != domain) {
            k++;
        }
        m.house[i] = k;
    }
    return m;
}

static void free_members(struct members *m)
{
    free(m->ids);
    free(m->house);
}

/* Counts for each domain the flows that leave it where every member sends to the one `distance`
 * behind it; returns the most. */
static size_t count_leaving(const struct members *m, size_t distance)
{
    size_t most = 0;
    for (size_t i = 0; i < m->n; i++) {
        m->leaving[i] = 0;
    }
    for (size_t i = 0; i < m->n; i++) {
        size_t *out = &m->leaving[m->house[i]];
        *out += m->house[i] != m->house[(i + distance) % m->n];
        most = *out > most ? *out : most;
    }
    return most;
}

/* A flow: those over equal paths between equal devices take equally long. */
struct flow_kind {
    struct hv_path path;
    const struct hv_device_kind *from, *to;
    double nodes_bytes_per_s; /* of the network between its nodes; 0 inside a domain */
    size_t flows;             /* that leave its domain with it */
};

static struct flow_kind kind_of(const struct members *m, size_t i, size_t to)
{
    const struct hv_cluster *c = m->a->k->cluster;
    struct flow_kind f = {.path = hv_cluster_path(c, m->ids[i], m->ids[to]),
                          .from = hv_cluster_device(c, m->ids[i]).kind,
                          .to = hv_cluster_device(c, m->ids[to]).kind};
    if (m->house[i] != m->house[to]) {
        f.nodes_bytes_per_s = hv_cluster_node_path(c, hv_cluster_node_of(c, m->ids[i]),
                                                   hv_cluster_node_of(c, m->ids[to]))
                                  .bytes_per_s;
        f.flows = m->leaving[m->house[i]];
    }
    return f;
}

static bool same_flow(const struct flow_kind *x, const struct flow_kind *y)
{
    return x->from == y->from && x->to == y->to && x->flows == y->flows &&
           x->nodes_bytes_per_s == y->nodes_bytes_per_s && x->path.level == y->path.level &&
           x->path.kind == y->path.kind && x->path.plain == y->path.plain &&
           x->path.latency_s == y->path.latency_s && x->path.bytes_per_s == y->path.bytes_per_s;
}

static struct hv__span times(double n, struct hv__span x)
{
    return (struct hv__span){n * x.time_s, n * x.latency_s};
}

static struct hv__span longer_of(struct hv__span a, struct hv__span b)
{
    return b.time_s > a.time_s ? b : a;
}

/* The flow from member i. */
static struct hv__span flow(const struct hv__ask *a, const struct members *m, size_t i,
                            size_t distance, double bytes)
{
    const uint32_t pair[] = {m->ids[i], m->ids[(i + distance) % m->n]};
    size_t flows = m->leaving[m->house[i]];
    const struct hv__call c = {.op = HV_P2P,
                               .bytes = bytes,
                               .members = pair,
                               .n = 2,
                               .together = m->together * (double)(flows > 1 ? flows : 1)};
    return hv__call_span(a, &c);
}

/* Every member sends `bytes` to the one `distance` behind it: the slowest of these flows, which
 * share the network with those that leave the same domain. */
static struct hv__span hop(const struct members *m, size_t distance, double bytes)
{
    if (m->n < 2 || !(bytes > 0)) {
        return (struct hv__span){0, 0};
    }
    if (!m->ids) {
        return hv__call_span(m->a,
                             &(struct hv__call){.op = HV_ALL_GATHER, .bytes = 2 * bytes, .n = 2});
    }
    struct hv__ask quiet = *m->a;
    struct flow_kind last[2] = {{.from = NULL}, {.from = NULL}}; /* inside and between domains */
    struct hv__span slowest = {0, 0};
    size_t at = 0;
    quiet.why = NULL;
    count_leaving(m, distance);
    for (size_t i = 0; i < m->n; i++) {
        size_t to = (i + distance) % m->n;
        struct flow_kind f = kind_of(m, i, to), *before = &last[m->house[i] != m->house[to]];
        if (same_flow(&f, before)) {
            continue;
        }
        *before = f;
        struct hv__span own = flow(&quiet, m, i, distance, bytes);
        at = own.time_s > slowest.time_s ? i : at;
        slowest = longer_of(slowest, own);
    }
    if (m->a->why) {
        (void)flow(m->a, m, at, distance, bytes);
    }
    return slowest;
}

/* The slowest of `count` rings of `n` ranks, which begin `step` ranks apart. */
static struct hv__span slowest_hop(const struct hv__ask *a, const struct hv__cp_shape *s,
                                   bool outer, double bytes)
{
    int n = outer ? s->ring / s->inner : s->inner > 1 ? s->inner : s->ring;
    int count = s->inner > 1 ? s->ring / n : 1;
    size_t apart = outer ? s->outer_apart : s->inner > 1 ? s->inner_apart : s->ring_apart;
    size_t step = outer ? s->inner_apart : s->outer_apart;
    double together = outer ? a->q->beside.cp_outer : a->q->beside.cp_ring;
    struct hv__span slowest = {0, 0};
    struct hv__ask quiet = *a;
    quiet.why = NULL;
    for (int i = 0; i < (a->q->group ? count : 1); i++) {
        struct members m = members_of(i > 0 ? &quiet : a, (size_t)i * step, apart, n, together);
        slowest = longer_of(slowest, hop(&m, 1, bytes));
        free_members(&m);
    }
    return slowest;
}

/* A collective over n ranks. */
static struct hv__span collective(const struct hv__ask *a, enum hv_collective op, double bytes,
                                  int n, size_t apart, double together)
{
    if (n < 2 || !(bytes > 0)) {
        return (struct hv__span){0, 0};
    }
    struct members m = members_of(a, 0, apart, n, together);
    struct hv__call c = {
        .op = op, .bytes = bytes, .members = m.ids, .n = n, .together = m.together};
    struct hv__span all = hv__call_span(a, &c);
    free_members(&m);
    return all;
}

/* ---- schemes --------------------------------------------------------------------------------- */

/* What every scheme prices. */
struct job {
    const struct hv__ask *a;
    const struct hv__exchange *x;
    struct hv__cp_shape s;
    struct hv__cp_values v; /* keys as often as the heads part needs them */
    struct pass forward, backward;
};

/* Hands the steps of a ring to the explanation; `what` goes around. */
static void explain_ring(const struct job *j, const struct pass *p, const struct hv_ring *ring,
                         const char *what)
{
    bool backward = p == &j->backward;
    if (j->a->why == NULL || ring->steps < 1 || (backward && j->x->forward_only)) {
        return;
    }
    struct hv_why_step *steps = hv_xcalloc((size_t)ring->steps, sizeof *steps);
    double after_s = hv_overlap_ring_steps(ring, steps), exposed_s = after_s;
    for (int i = 0; i < ring->steps; i++) {
        exposed_s += steps[i].waited_s;
    }
    hv_why_add(j->a->why, "ring hops", ring->steps - 1, "hops",
               "%s: %s, beside steps of %.4g s; %.4g s of them exposed",
               backward ? "backward" : "forward", what, ring->step_s, exposed_s);
    hv_why_attach_ring(j->a->why, &(struct hv_why_ring){.what = what,
                                                        .backward = backward,
                                                        .steps = steps,
                                                        .n = (size_t)ring->steps,
                                                        .after_s = after_s});
    free(steps);
}

static void add_overlap(const struct job *j, struct pass *p, const struct hv_ring *ring,
                        const char *what, struct hv__span wire)
{
    explain_ring(j, p, ring, what);
    p->shown_s += hv__shown_s(j->a, hv_overlap_ring(ring));
    p->wire_s += wire.time_s;
    p->latency_s += wire.latency_s;
}

static void add_exposed(struct pass *p, struct hv__span all)
{
    p->shown_s += all.time_s;
    p->wire_s += all.time_s;
    p->latency_s += all.latency_s;
}

/* Queries, keys and values to the ranks of their heads, and outputs back. */
static void add_heads(struct job *j)
{
    double values = j->v.queries + j->v.keys + j->v.outputs, n = j->s.heads;
    struct hv__span once = collective(j->a, HV_ALL_TO_ALL, j->v.elem * values, j->s.heads,
                                      j->s.heads_apart, j->a->q->beside.cp_heads);
    add_exposed(&j->forward, once);
    add_exposed(&j->backward, once);
    add_sent(&j->forward, (n - 1) / n * values);
    add_sent(&j->backward, (n - 1) / n * values);
}

/* From a cut along one dimension of the tokens to a cut along another. */
static void add_switch(struct job *j)
{
    double values = j->v.activations, n = j->s.ring;
    struct hv__span once = collective(j->a, HV_ALL_TO_ALL, j->v.elem * values, j->s.ring,
                                      j->s.ring_apart, j->a->q->beside.cp_ring);
    add_exposed(&j->forward, once);
    add_exposed(&j->backward, once);
    add_sent(&j->forward, (n - 1) / n * values);
    add_sent(&j->backward, (n - 1) / n * values);
}

/* Tensors that one hop passes on, ahead of compute and behind it. */
struct hop {
    double ahead, ahead_bytes, behind, behind_bytes;
};

static struct hop forward_hop(const struct job *j, double times)
{
    return (struct hop){times * j->v.keys, times * j->v.elem * j->v.keys, 0, 0};
}

/* Keys and values go ahead and the sums of their gradients follow; or queries, gradients of outputs
 * and two statistics go ahead and the gradients of queries follow. */
static struct hop backward_hop(const struct job *j, double times)
{
    const struct hv__cp_values *v = &j->v;
    struct hop h = forward_hop(j, times);
    h.behind = times * v->keys;
    h.behind_bytes = times * SUM_BYTES * v->keys;
    if (j->a->q->cp_backward == HV_CP_Q_DO) {
        h.ahead = v->queries + v->outputs + 2 * v->statistics;
        h.ahead_bytes = v->elem * (v->queries + v->outputs) + 2 * SUM_BYTES * v->statistics;
        h.behind = v->queries;
        h.behind_bytes = v->elem * v->queries;
    }
    return h;
}

/* A ring of equal steps: n - 1 hops ahead, n behind, because sums return to their owner; in nested
 * rings to the rank that began a window, from where the outer ring passes them on. `teams`: only
 * the ring between them. */
static void add_ring_pass(const struct job *j, struct pass *p, const struct hv__ring_steps *t,
                          const struct hop *h, bool teams)
{
    const struct hv__ask *a = j->a;
    const struct hv__cp_shape *s = &j->s;
    bool nested = s->inner > 1 && !teams;
    struct hv__span ahead = slowest_hop(a, s, teams, h->ahead_bytes),
                    behind = slowest_hop(a, s, teams, h->behind_bytes), far_ahead = {0, 0},
                    far_behind = {0, 0};
    struct hv_ring ring = {.steps = t->n,
                           .first_s = t->first,
                           .step_s = t->step,
                           .ahead_s = ahead.time_s,
                           .behind_s = behind.time_s,
                           .behind_to = t->n};
    double far = 0, hops = t->n - 1;
    if (nested) {
        ring.window = s->inner;
        far_ahead = slowest_hop(a, s, true, h->ahead_bytes);
        far_behind = slowest_hop(a, s, true, h->behind_bytes);
        ring.outer_ahead_s = far_ahead.time_s;
        ring.outer_behind_s = far_behind.time_s;
        far = s->ring / s->inner - 1;
    }
    double back = h->behind > 0 ? hops + 1 : 0, far_back = nested && back > 0 ? far + 1 : 0;
    struct hv__span near_wire = hv__span_sum(times(hops - far, ahead), times(back, behind));
    struct hv__span far_wire = hv__span_sum(times(far, far_ahead), times(far_back, far_behind));
    bool queries = p == &j->backward && a->q->cp_backward == HV_CP_Q_DO;
    add_overlap(j, p, &ring, queries ? "queries and gradients of outputs" : "keys and values",
                longer_of(near_wire, far_wire));
    add_sent(p, hops * h->ahead + (back + far_back) * h->behind);
    p->hop = h->ahead + h->behind;
}

static void add_ring(struct job *j)
{
    struct hop forward = forward_hop(j, 1), backward = backward_hop(j, 1);
    add_ring_pass(j, &j->forward, &j->x->ring_forward_s, &forward, false);
    add_ring_pass(j, &j->backward, &j->x->ring_backward_s, &backward, false);
}

/* Ranks in teams: the inputs of a team are gathered, each member passes keys and values of whole
 * teams around, and the partial outputs are summed over the team, weighted by their statistics. */
static void add_teams(struct job *j)
{
    const struct hv__cp_values *v = &j->v;
    double c = j->s.inner, e = v->elem, st = SUM_BYTES * v->statistics;
    double together = j->a->q->beside.cp_ring;
    const struct {
        struct pass *p;
        enum hv_collective op;
        double values, bytes;
    } calls[] = {
        {&j->forward, HV_ALL_GATHER, v->queries + v->keys, e * (v->queries + v->keys)},
        {&j->forward, HV_REDUCE_SCATTER, v->outputs, e * v->outputs + st},
        {&j->backward, HV_ALL_GATHER, v->queries + v->keys + v->outputs,
         e * (v->queries + v->keys + v->outputs) + 2 * st},
        {&j->backward, HV_REDUCE_SCATTER, v->queries + v->keys, SUM_BYTES * (v->queries + v->keys)},
    };
    for (size_t i = 0; i < HV_COUNT(calls); i++) {
        add_exposed(calls[i].p, collective(j->a, calls[i].op, c * calls[i].bytes, j->s.inner,
                                           j->s.inner_apart, together));
        add_sent(calls[i].p, (c - 1) * calls[i].values);
    }
    struct hop forward = forward_hop(j, c), backward = backward_hop(j, c);
    add_ring_pass(j, &j->forward, &j->x->ring_forward_s, &forward, true);
    add_ring_pass(j, &j->backward, &j->x->ring_backward_s, &backward, true);
}

/* All keys and values before the core; their gradients are summed after it. */
static void add_all_gather(struct job *j)
{
    double n = j->s.ring, together = j->a->q->beside.cp_ring, bytes = n * j->v.elem * j->v.keys;
    struct hv__span gather =
        collective(j->a, HV_ALL_GATHER, bytes, j->s.ring, j->s.ring_apart, together);
    add_exposed(&j->forward, gather);
    add_exposed(&j->backward, gather);
    add_exposed(&j->backward,
                collective(j->a, HV_REDUCE_SCATTER, bytes, j->s.ring, j->s.ring_apart, together));
    add_sent(&j->forward, (n - 1) * j->v.keys);
    add_sent(&j->backward, 2 * (n - 1) * j->v.keys);
}

/* One ring of keys for the scores, then one of values for the outputs; backward one ring of both,
 * and an all-reduce of their gradients. */
static void add_self_attention(struct job *j)
{
    const struct hv__cp_values *v = &j->v;
    int n = j->s.ring;
    double bytes = v->elem * v->keys, hops = n - 1;
    struct hv__span half_hop = slowest_hop(j->a, &j->s, false, bytes / 2);
    struct hv__span hop_of_both = slowest_hop(j->a, &j->s, false, bytes);
    struct hv_ring half = {.steps = n,
                           .first_s = j->x->ring_forward_s.first / 2,
                           .step_s = j->x->ring_forward_s.step / 2,
                           .ahead_s = half_hop.time_s};
    add_overlap(j, &j->forward, &half, "keys", times(hops, half_hop));
    add_overlap(j, &j->forward, &half, "values", times(hops, half_hop));
    struct hv_ring both = {.steps = n,
                           .first_s = j->x->ring_backward_s.first,
                           .step_s = j->x->ring_backward_s.step,
                           .ahead_s = hop_of_both.time_s};
    add_overlap(j, &j->backward, &both, "keys and values", times(hops, hop_of_both));
    add_exposed(&j->backward, collective(j->a, HV_ALL_REDUCE, n * bytes, n, j->s.ring_apart,
                                         j->a->q->beside.cp_ring));
    add_sent(&j->forward, hops * v->keys);
    add_sent(&j->backward, 3 * hops * v->keys);
    j->forward.hop = v->keys / 2;
    j->backward.hop = v->keys;
}

/* ---- helpers of early ranks ------------------------------------------------------------------ */

/* Values of a pair of ranks: one that has its own queries receives keys; a helper receives queries
 * and sends results back. */
struct pair {
    double keys, queries, results;
};

/* Mean and most over ranks: rank i sends keys to those up to `steps` behind it, queries to the
 * helpers among the first ranks, and results of those it helps. */
static void add_helper_traffic(struct pass *p, int n, struct pair v, double back)
{
    int steps = n / 2, helped = (n - 1) / 2;
    double sum = 0, most = 0;
    for (int i = 0; i < n; i++) {
        int behind = n - 1 - i, keys = behind < steps ? behind : steps;
        int asks = helped > behind ? helped - behind : 0, helps = helped > i ? helped - i : 0;
        int returns = i < steps ? i : steps; /* gradients of keys go back to where they came from */
        double sent = keys * v.keys + asks * v.queries + helps * v.results + returns * back;
        sum += sent;
        most = fmax(most, sent);
    }
    p->sent += sum / n;
    p->most += most;
}

/* Hops of so many bytes, one per distance from 1: seconds and latency. */
struct hops {
    double bytes;
    double *time_s, *latency_s;
};

/* Both ways of each step: distances with equally many flows out of a domain cost the same. */
static void helper_hops(const struct members *m, int steps, struct hops *ahead, struct hops *behind)
{
    size_t before = SIZE_MAX;
    for (int d = 1; d <= steps; d++) {
        size_t flows = m->ids ? count_leaving(m, (size_t)d) : 0;
        for (int back = 0; back < 2; back++) {
            struct hops *h = back ? behind : ahead;
            if (flows == before) {
                h->time_s[d] = h->time_s[d - 1];
                h->latency_s[d] = h->latency_s[d - 1];
                continue;
            }
            struct hv__span one = hop(m, (size_t)d, h->bytes);
            h->time_s[d] = one.time_s;
            h->latency_s[d] = one.latency_s;
        }
        before = flows;
    }
}

/* Steps 0 to n/2: at step d a rank works with keys of the one d before it, or, where there is none,
 * helps the one d before it in the ring; results return one step later. */
static void add_helper_pass(const struct job *j, struct pass *p, const struct hv__ring_steps *t,
                            const struct pair *bytes, double back_bytes)
{
    const struct hv__ask *a = j->a;
    int n = j->s.ring, steps = n / 2;
    struct members m = members_of(a, 0, j->s.ring_apart, n, a->q->beside.cp_ring);
    double *ahead = hv_xcalloc(4 * ((size_t)steps + 1), sizeof *ahead), *behind = ahead + steps + 1;
    double *ahead_latency = behind + steps + 1, *behind_latency = ahead_latency + steps + 1;
    double results = fmax(back_bytes, n > 2 ? bytes->results : 0);
    struct hv__span wire = {0, 0};
    helper_hops(&m, steps,
                &(struct hops){fmax(bytes->keys, n > 2 ? bytes->queries : 0), ahead, ahead_latency},
                &(struct hops){results, behind, behind_latency});
    struct hv_ring ring = {.steps = t->n,
                           .first_s = t->first,
                           .step_s = t->step,
                           .ahead_of_s = ahead,
                           .behind_of_s = behind,
                           .behind_from = 1,
                           .behind_to = 1 + (back_bytes > 0 ? steps : (n - 1) / 2)};
    for (int i = 1; i <= steps; i++) {
        bool returns = i < ring.behind_to;
        wire.time_s += ahead[i] + (returns ? behind[i] : 0);
        wire.latency_s += ahead_latency[i] + (returns ? behind_latency[i] : 0);
    }
    add_overlap(j, p, &ring, "keys and values, or queries to helpers", wire);
    free(ahead);
    free_members(&m);
}

static void add_helpers(struct job *j)
{
    const struct hv__cp_values *v = &j->v;
    double e = v->elem, st = SUM_BYTES * v->statistics;
    const struct pair forward = {v->keys, v->queries, v->outputs};
    const struct pair forward_bytes = {e * v->keys, e * v->queries, e * v->outputs + st};
    const struct pair backward = {v->keys, v->queries + 2 * v->outputs, v->queries};
    const struct pair backward_bytes = {e * v->keys, e * (v->queries + 2 * v->outputs) + st,
                                        SUM_BYTES * v->queries};
    add_helper_pass(j, &j->forward, &j->x->ring_forward_s, &forward_bytes, 0);
    add_helper_pass(j, &j->backward, &j->x->ring_backward_s, &backward_bytes, SUM_BYTES * v->keys);
    add_helper_traffic(&j->forward, j->s.ring, forward, 0);
    add_helper_traffic(&j->backward, j->s.ring, backward, v->keys);
}

/* ---- together -------------------------------------------------------------------------------- */

static void add_scheme(struct job *j)
{
    const struct hv_part_query *q = j->a->q;
    switch (q->cp_scheme) {
    case HV_CP_DSP:
        if (q->cp_switches) {
            add_switch(j);
        }
        return;
    case HV_CP_RSA:
        add_self_attention(j);
        return;
    case HV_CP_ALL_GATHER:
        add_all_gather(j);
        return;
    case HV_CP_DISTFLASH:
        if (j->a->k->model->causal) {
            add_helpers(j);
            return;
        }
        break;
    case HV_CP_WALLFACER:
        if (j->s.inner > 1) {
            add_teams(j);
            return;
        }
        break;
    case HV_CP_RING:
    case HV_CP_ULYSSES:
    case HV_CP_USP:
    case HV_CP_LOONGTRAIN:
    case hv_cp_scheme_N:
        break;
    }
    add_ring(j);
}

static void store(const struct job *j, struct hv_part_cost *out)
{
    const struct pass *f = &j->forward, *b = &j->backward;
    bool repeats = j->a->q->cp_scheme != HV_CP_DSP; /* a switch lies before the kept input */
    bool backward = !j->x->forward_only;
    double again = backward && repeats && j->a->q->recompute & HV_RC_CORE ? 1 : 0;
    out->cp_forward_s = f->shown_s;
    out->cp_backward_s = b->shown_s + again * f->shown_s;
    out->cp_wire_forward_s = f->wire_s;
    out->cp_wire_backward_s = b->wire_s + again * f->wire_s;
    out->cp_latency_forward_s = f->latency_s;
    out->cp_latency_backward_s = b->latency_s + again * f->latency_s;
    out->sent.cp = (struct hv_sent){f->sent, b->sent + again * f->sent};
    out->sent.cp_most = (struct hv_sent){f->most, b->most + again * f->most};
    out->sent.cp_hop = (struct hv_sent){f->hop, b->hop};
}

void hv__add_cp(const struct hv__ask *a, const struct hv__exchange *x, struct hv_part_cost *out)
{
    if (a->q->cp < 2 || !(x->cp.keys > 0)) {
        return;
    }
    struct job j = {.a = a, .x = x, .s = hv__cp_shape_of(a->q), .v = x->cp};
    j.v.keys *= fmax(1, j.s.heads * x->cp.keys_per_rank);
    if (j.s.heads > 1) {
        add_heads(&j);
    }
    if (j.s.ring > 1) {
        add_scheme(&j);
    }
    if (x->forward_only) {
        j.backward = (struct pass){0};
    }
    store(&j, out);
    hv_why_add(a->why, "context exchange", out->cp_forward_s, "s",
               "exposed part of forward: the exchange among %d ranks overlaps with the attention "
               "core where its scheme lets it, the all-to-all over %d ranks does not; backward "
               "%.4g s; a rank sends %.6g values forward, %.6g backward",
               j.s.ring, j.s.heads, out->cp_backward_s, out->sent.cp.forward,
               out->sent.cp.backward);
    hv_why_attach(a->why,
                  &(struct hv_why_work){.bytes = j.v.elem * out->sent.cp.forward,
                                        .backward_s = out->cp_backward_s,
                                        .backward_bytes = j.v.elem * out->sent.cp.backward});
}

double hv__cp_buffers_bytes(const struct hv_part_query *q, const struct hv__cp_values *v)
{
    if (q->cp < 2) {
        return 0;
    }
    struct hv__cp_shape s = hv__cp_shape_of(q);
    double keys = v->keys, e = v->elem;
    if (s.ring < 2 || q->cp_scheme == HV_CP_DSP) {
        return 0;
    }
    if (q->cp_scheme == HV_CP_ALL_GATHER) { /* the whole sequence, and the gradients of it */
        return 2 * e * s.ring * keys;
    }
    double teams = q->cp_scheme == HV_CP_WALLFACER ? s.inner : 1;
    double more = (teams - 1) * (v->queries + keys + v->outputs) * e;
    return more + teams * (e * keys + 2 * SUM_BYTES * keys);
}
