/* Assigns tokens to experts on ranks. Times are computed in solver/cost. */
#include "solver/workload/routing.h"

#include <math.h>

/** Tokens of all sources for expert e. */
static double wanted(const struct hv_routing *r, size_t e)
{
    double sum = 0;
    for (size_t s = 0; s < r->sources; s++) {
        sum += r->tokens[s * r->experts + e];
    }
    return sum;
}

/** Distributes the kept tokens of expert e over its copies. */
static void deal(const struct hv_routing *r, const struct hv_expert_placement *p, size_t e,
                 double kept, struct hv_routed *out)
{
    size_t from = p->holder_at[e], n = p->holder_at[e + 1] - from;

    for (size_t s = 0; s < r->sources; s++) {
        double t = kept * r->tokens[s * r->experts + e];
        size_t own = 0;
        while (own < n && p->holders[from + own] != s) {
            own++;
        }
        for (size_t h = own < n ? own : 0; h < (own < n ? own + 1 : n); h++) {
            double part = own < n ? t : t / (double)n;
            out->sent[s * p->ranks + p->holders[from + h]] += part;
        }
    }
}

/** Padding that the copies of expert e add to fill their tiles. */
static double padding(const struct hv_routing *r, const struct hv_expert_placement *p, size_t e,
                      double kept)
{
    size_t from = p->holder_at[e], n = p->holder_at[e + 1] - from;
    double sum = 0;

    for (size_t h = 0; h < n && p->tile > 0; h++) {
        double load = 0;
        for (size_t s = 0; s < r->sources; s++) {
            size_t own = 0;
            while (own < n && p->holders[from + own] != s) {
                own++;
            }
            double t = kept * r->tokens[s * r->experts + e];
            load += own == n ? t / (double)n : own == h ? t : 0;
        }
        sum += ceil(load / p->tile - 1e-12) * p->tile - load;
    }
    return sum;
}

enum hv_status hv_route(struct hv_arena *a, const struct hv_routing *r,
                        const struct hv_expert_placement *p, struct hv_routed *out,
                        struct hv_err *err)
{
    double total = 0;

    for (size_t e = 0; e < r->experts; e++) {
        if (p->holder_at[e + 1] <= p->holder_at[e]) {
            return hv_err_set(err, HV_EUSAGE, "expert %zu is on no rank", e + 1);
        }
        for (size_t h = p->holder_at[e]; h < p->holder_at[e + 1]; h++) {
            if (p->holders[h] >= p->ranks) {
                return hv_err_set(err, HV_EUSAGE, "expert %zu is on rank %u, which does not exist",
                                  e + 1, p->holders[h] + 1);
            }
        }
        total += wanted(r, e);
    }
    if (p->ranks < r->sources) {
        return hv_err_set(err, HV_EUSAGE, "expected at least as many ranks as sources (%zu)",
                          r->sources);
    }
    *out = (struct hv_routed){.loads = hv_arena_new(a, double, p->ranks),
                              .experts = hv_arena_new(a, double, r->experts),
                              .sent = hv_arena_new(a, double, r->sources * p->ranks)};
    double capacity =
        p->capacity_factor > 0 ? ceil(p->capacity_factor * total / (double)r->experts) : HUGE_VAL;
    for (size_t e = 0; e < r->experts; e++) {
        double want = wanted(r, e), take = fmin(want, capacity);
        double kept = want > 0 ? take / want : 0;
        out->experts[e] = take;
        out->dropped += want - take;
        deal(r, p, e, kept, out);
        out->padded += padding(r, p, e, kept);
    }
    for (size_t s = 0; s < r->sources; s++) {
        for (size_t k = 0; k < p->ranks; k++) {
            out->loads[k] += out->sent[s * p->ranks + k];
        }
    }
    return HV_OK;
}
