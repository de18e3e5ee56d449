/* Iterations of a routing under places of experts that may change. */
#include "solver/workload/replay.h"

#include <math.h>

/* The most of both directions that a rank has, in [2 × ranks] counts. */
static double busiest(const double *x, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, x[i]);
    }
    return most;
}

/* Seconds of the exchanges: the most tokens that a rank sends to others or gets from them. */
static double exchange_s(const struct hv_replay *r, const struct hv_routed *x, size_t sources,
                         double *both)
{
    for (size_t i = 0; i < 2 * r->ranks; i++) {
        both[i] = 0;
    }
    for (size_t s = 0; s < sources; s++) {
        for (size_t k = 0; k < r->ranks; k++) {
            if (s != k) {
                both[s] += x->sent[s * r->ranks + k];
                both[r->ranks + k] += x->sent[s * r->ranks + k];
            }
        }
    }
    return busiest(both, 2 * r->ranks) * r->send_s;
}

/* Seconds of copies: the most copied experts of a rank, less what is hidden. */
static double copies_s(const struct hv_replay *r, const struct hv_expert_placement *p,
                       size_t experts, double *count)
{
    for (size_t k = 0; k < r->ranks; k++) {
        count[k] = 0;
    }
    for (size_t e = 0; e < experts; e++) {
        for (size_t h = p->holder_at[e]; h < p->holder_at[e + 1]; h++) {
            count[p->holders[h]] += p->holder_at[e + 1] - p->holder_at[e] > 1;
        }
    }
    return fmax(0, busiest(count, r->ranks) * r->copy_s - r->hidden_s);
}

/* How many holders of an expert keep it. */
static size_t kept(const struct hv_replay *r, const struct hv_expert_placement *p, size_t e)
{
    size_t n = p->holder_at[e + 1] - p->holder_at[e];
    return r->lent && n > 1 ? 1 : n;
}

/* Counts experts that come to ranks for good, and the ranks that they leave from. */
static size_t count_moves(const struct hv_replay *r, const struct hv_expert_placement *p,
                          const struct hv_expert_placement *before, size_t experts, double *both)
{
    size_t n = 0;
    for (size_t e = 0; e < experts; e++) {
        const uint32_t *old = before->holders + before->holder_at[e];
        for (size_t h = 0; h < kept(r, p, e); h++) {
            uint32_t rank = p->holders[p->holder_at[e] + h];
            bool had = false;
            for (size_t k = 0; k < kept(r, before, e); k++) {
                had = had || old[k] == rank;
            }
            if (!had) {
                both[old[0]]++;
                both[r->ranks + rank]++;
                n++;
            }
        }
    }
    return n;
}

enum hv_status hv_replay_iteration(struct hv_arena *a, const struct hv_replay *r, size_t layers,
                                   const struct hv_routing *tokens,
                                   const struct hv_expert_placement *places,
                                   const struct hv_expert_placement *before,
                                   struct hv_replayed *out, struct hv_err *err)
{
    double *both = hv_arena_new(a, double, 2 * r->ranks);
    double *moved = hv_arena_new(a, double, 2 * r->ranks);
    *out = (struct hv_replayed){.balance = 1};
    for (size_t l = 0; l < layers; l++) {
        struct hv_expert_placement p = places[l];
        struct hv_routed x;
        p.ranks = r->ranks;
        p.capacity_factor = r->capacity_factor;
        enum hv_status st = hv_route(a, &tokens[l], &p, &x, err);
        if (st != HV_OK) {
            return st;
        }
        double most = busiest(x.loads, r->ranks), sum = 0;
        for (size_t k = 0; k < r->ranks; k++) {
            sum += x.loads[k];
        }
        out->time_s += most * r->token_s + exchange_s(r, &x, tokens[l].sources, both) +
                       copies_s(r, &p, tokens[l].experts, both);
        out->tokens += sum + x.dropped;
        out->dropped += x.dropped;
        out->balance = most > 0 ? fmin(out->balance, sum / ((double)r->ranks * most)) : out->balance;
        if (before != NULL) {
            out->moves += count_moves(r, &p, &before[l], tokens[l].experts, moved);
        }
    }
    out->move_s = busiest(moved, 2 * r->ranks) * r->move_s;
    out->time_s += out->move_s;
    return HV_OK;
}
