/*
 * Experts that travel to tokens: copies that are sent anew every iteration, and experts that move
 * to every rank instead of its tokens to them. Sources: FasterMoE (He et al. 2022, shadowing);
 * Janus (Liu et al. 2023): a machine gets every expert of others once, and its devices hand it on;
 * gradients go the same way back, summed in the machine first.
 */
#include <math.h>
#include <stdlib.h>

#include "solver/cost/network/matrix.h"
#include "solver/cost/network/streams.h"
#include "solver/cost/part/part_int.h"

/* Experts whose weights and gradients are on a device at a time besides its own: one at work, one
 * on its way. */
#define BUFFERS 2

/* ---- copies --------------------------------------------------------------------------------- */

/* The owner sends its expert to the ranks with a copy, one expert after the other on the stream of
 * each rank. */
static double copies_s(const struct hv__ask *a, const struct hv_block *b, double expert_bytes)
{
    const struct hv_part_query *q = a->q;
    size_t ep = (size_t)q->ep;
    uint32_t *members = hv_xcalloc(ep, sizeof *members);
    bool *on = hv_xcalloc(ep, sizeof *on);
    struct hv_streams x = hv_streams_open(a->k->cluster, q->ep_group, ep, 1);
    for (int e = 0; e < b->experts; e++) {
        int n = hv_expert_places(q->moe, b->experts, q->ep, e, on);
        struct hv__call c = {.op = HV_BROADCAST,
                             .bytes = expert_bytes,
                             .members = members,
                             .together = hv__expert_groups(q)};
        if (n <= hv_expert_shards(q->moe, q->ep)) {
            continue;
        }
        for (size_t r = 0; r < ep; r++) {
            if (on[r]) {
                members[c.n++] = q->ep_group[r];
            }
        }
        hv_streams_play(&x, on, hv__call_span(a, &c).time_s);
    }
    double end_s = hv_streams_end_s(&x);
    hv_streams_close(&x);
    free(members);
    free(on);
    return end_s;
}

/* ---- experts that move ---------------------------------------------------------------------- */

/* Who sends experts to whom: over all links, and inside houses alone. */
struct moves {
    const struct hv_ways *ways;
    size_t n;
    double *all, *inside, *far; /* [n × n] experts; far: between houses */
};

/* One expert to all ranks: over the network once to each house without it, to a member in turn,
 * which hands it on. */
static void move_expert(struct moves *m, const bool *on, size_t owner, size_t number)
{
    for (size_t r = 0; r < m->n; r++) {
        size_t house = hv_ways_house(m->ways, r), members = 0, from = m->n;
        for (size_t k = 0; k < m->n; k++) {
            bool here = hv_ways_house(m->ways, k) == house;
            members += here;
            from = here && on[k] && from == m->n ? k : from;
        }
        size_t turn = number % members, seen = 0;
        for (size_t k = 0; from == m->n && k < m->n; k++) {
            if (hv_ways_house(m->ways, k) == house && seen++ == turn) {
                from = k;
                m->all[owner * m->n + k] += k == r ? 1 : 0; /* once per house */
                m->far[owner * m->n + k] += k == r ? 1 : 0;
            }
        }
        if (!on[r] && from != r) {
            m->all[from * m->n + r] += 1;
            m->inside[from * m->n + r] += 1;
        }
    }
}

static struct hv_collective_cost exchange(const struct hv__ask *a, const struct moves *m,
                                          const double *experts, double expert_bytes, bool back,
                                          struct hv_why *why)
{
    const struct hv_part_query *q = a->q;
    const struct hv_matrix_query x = {.bytes = experts,
                                      .scale = expert_bytes,
                                      .back = back,
                                      .algorithm = HV_ALGO_RING,
                                      .together = hv__expert_groups(q)};
    return hv_cost_matrix(m->ways, &x, why);
}

static double exchange_s(const struct hv__ask *a, const struct moves *m, const double *experts,
                         double expert_bytes, bool back)
{
    return exchange(a, m, experts, expert_bytes, back, a->why).time_s;
}

/* Seconds in which experts and their gradients keep the network busy. */
static void add_far_moves(struct hv__sum *s, const struct moves *m, double expert_bytes)
{
    struct hv_collective_cost come = exchange(s->a, m, m->far, expert_bytes, false, NULL);
    struct hv_collective_cost go = exchange(s->a, m, m->far, expert_bytes, true, NULL);
    s->out.fetch_far_s = come.time_s;
    s->out.fetch_latency_s = come.alpha_s;
    s->out.push_far_s = go.time_s;
    s->out.push_latency_s = go.alpha_s;
}

/* Experts come before the forward pass, come again from inside the machine before the backward
 * pass, and their gradients go back. */
static void add_moves(struct hv__sum *s, const struct hv_block *b, double expert_bytes)
{
    const struct hv_part_query *q = s->q;
    size_t n = (size_t)q->ep;
    struct moves m = {hv__ways_between(s->a->k, q->ep_group, n), n,
                      hv_xcalloc(n * n, sizeof *m.all), hv_xcalloc(n * n, sizeof *m.inside),
                      hv_xcalloc(n * n, sizeof *m.far)};
    bool *on = hv_xcalloc(n, sizeof *on);
    for (int e = 0; e < b->experts; e++) {
        (void)hv_expert_places(q->moe, b->experts, q->ep, e, on);
        move_expert(&m, on, (size_t)hv_expert_owner(q->moe, b->experts, q->ep, e), (size_t)e);
    }
    s->out.fetch_s = exchange_s(s->a, &m, m.all, expert_bytes, false);
    s->out.fetch_again_s = exchange_s(s->a, &m, m.inside, expert_bytes, false);
    s->out.push_s = exchange_s(s->a, &m, m.all, expert_bytes, true);
    add_far_moves(s, &m, expert_bytes);
    s->out.transient_bytes += 2 * BUFFERS * expert_bytes;
    hv_why_add(s->a->why, "experts that move", s->out.fetch_s, "s",
               "%d experts of %.4g bytes to all %zu ranks, each once to every node; %.4g s to come "
               "again from inside the node in the backward pass, %.4g s for their gradients to go "
               "back",
               b->experts, expert_bytes, n, s->out.fetch_again_s, s->out.push_s);
    free(m.all);
    free(m.inside);
    free(m.far);
    free(on);
}

void hv__add_travel(struct hv__sum *s, const struct hv_block *b)
{
    const struct hv_part_query *q = s->q;
    double each = hv_block_expert_parameters(s->m, b) / b->experts / s->t_experts;
    double bytes = each * hv_job_weight_bytes(&s->a->k->job);
    if (!q->moe || !q->ep_group || q->ep < 2 || !(s->a->rates->starts > 0)) {
        return;
    }
    if (hv__moves_experts(q)) {
        add_moves(s, b, bytes);
    } else if (q->moe->n_copies > 0 && q->moe->copy_life == HV_COPY_ITERATION) {
        s->out.copies_s = copies_s(s->a, b, bytes);
        hv_why_add(s->a->why, "copies sent", s->out.copies_s, "s",
                   "experts of %.4g bytes to the ranks with a copy, once in every iteration",
                   bytes);
    }
}

double hv__cached_experts(const struct hv__context *k, const struct hv_part_query *q, int experts)
{
    size_t n = (size_t)q->ep, held = 0, house = 0;
    bool *on = hv_xcalloc(n, sizeof *on);
    uint32_t home = hv_cluster_domain_of(k->cluster, hv_cluster_node_of(k->cluster, q->group[0]));
    for (size_t r = 0; r < n; r++) {
        uint32_t node = hv_cluster_node_of(k->cluster, q->ep_group[r]);
        house += hv_cluster_domain_of(k->cluster, node) == home;
    }
    for (int e = 0; e < experts; e++) {
        bool here = false;
        (void)hv_expert_places(q->moe, experts, q->ep, e, on);
        for (size_t r = 0; r < n && !here; r++) {
            uint32_t node = hv_cluster_node_of(k->cluster, q->ep_group[r]);
            here = on[r] && hv_cluster_domain_of(k->cluster, node) == home;
        }
        held += here;
    }
    free(on);
    return house > 0 ? (double)((size_t)experts - held) / (double)house : 0;
}
