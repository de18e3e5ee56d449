/**
 * The least time over how many devices are in use and of which kinds.
 *
 * Let N_c be the units of work of class c (halves of blocks, embedding and head times sequences;
 * the optimizer step of all weights) and w(k,c) the least device-seconds of one unit on kind k
 * (hv_cost_floor_s: best shapes of kernels, nothing exchanged). A plan spreads units over devices;
 * a device is busy for at least the sum of its units' w. Let a device of kind k earn at most λ_k
 * per second, and price a unit at u_c = min_k λ_k w(k,c): then T Σ_k D_k λ_k ≥ Σ_c N_c u_c with D_k
 * devices of kind k. This is weak duality of the fractional assignment problem: any λ ≥ 0 gives a
 * true bound, the best one the optimum of the relaxation. We search for it by trial from several
 * starts (work.c), so the bound may be a little low, never too high. chain.c puts more
 * into the same inequality: passes have a size, and have to get through all layers in time.
 *
 * Memory: sums of gradients, and in fp16 their unscaled copy, stay on the devices whatever a plan
 * shards or offloads (hv_cost_least_state_bytes). So kinds that do not hold all of them together
 * are not all of a plan, and no fewer devices than it takes of those with most memory; passes
 * larger than fit are left out of the cells (cost/floor/cells.c).
 *
 * Around that, as the simulator adds it (tail.c, hv_cost_pass) to plans that wait for all
 * gradients:
 * - every device in use runs one pass forward and one backward at least, with their host work h;
 *   so does every micro-batch on its way through the layers;
 * - the step costs σ + J log2(n) P, σ and J those of the slowest class in use, n the devices in
 *   use, P the end of the last backward, which is at least h + Q(n), Q the time of the passes
 *   without the optimizer's part;
 * - the optimizer of a device starts after its last pass.
 * So T ≥ σ + h + (1 + J log2(n)) Q(n) + J log2(n) h + V/speed(n), V the worth of the optimizer's
 * work, least over n and over which kinds are in use. With kinds sorted by speed, speed(n) of the
 * best n devices is concave, Q(n) is a constant over a linear function of it, and between two ends
 * of kinds Q(n) (1 + J log2(n)) + V/speed(n) rises and then falls, or only falls: its least is at
 * an end. J log2(n) h only rises: it is taken where the kind begins. For several mixes of the two
 * sides of chain.c each gives a bound between the same two ends; the largest holds.
 */
#include "solver/bound/bound_int.h"

/** Kinds whose sets are looked at one by one; beyond, only all of them with the least σ and J. */
#define KINDS_IN_SETS 8

/** Kinds in use and what they cost around the work. */
struct in_use {
    const bool *kinds;
    double step_s, jitter, pass_s;
    bool by_size; /**< passes are known to form a chain */
    bool even;    /**< and to be alike: the optimizer is on both sides of a mix */
};

/** A number of devices in use, fastest first, and how fast they are together. */
struct part_of_cluster {
    double n, speed;
};

/** Time of a part of the devices in use by one mix; `fewest`: least of those whose jitter of host
 * work counts. */
static struct hv__least time_of(const struct in_use *s, const struct hv__prices *p, size_t mix,
                                struct part_of_cluster x, double fewest)
{
    double share = s->by_size ? hv_cost_mix(mix) : 1;
    double passes = s->by_size ? p->mixed[mix] : p->pipeline;
    double speed = share * x.speed + (1 - share) * p->total;
    struct hv__least t = {.passes_s = passes / speed,
                          .optimizer_s = (s->even ? 1 : share) * p->optimizer / speed};
    t.waits_s = s->jitter * (log2(fmax(1, x.n)) * t.passes_s + log2(fmax(1, fewest)) * s->pass_s);
    t.around_s = s->step_s + s->pass_s;
    t.devices = x.n;
    t.time_s = t.passes_s + t.optimizer_s + t.waits_s + t.around_s;
    return t;
}

/** Least time between two numbers of devices: the best mix of those at the lower of their ends. */
static struct hv__least between(const struct in_use *s, const struct hv__prices *p,
                                struct part_of_cluster a, struct part_of_cluster b)
{
    struct hv__least best = {0};
    for (size_t i = 0; i < (s->by_size ? HV_COST_MIXES : 1); i++) {
        struct hv__least x = time_of(s, p, i, a, a.n), y = time_of(s, p, i, b, a.n);
        const struct hv__least *lower = x.time_s < y.time_s ? &x : &y;
        best = i == 0 || lower->time_s > best.time_s ? *lower : best;
    }
    return best;
}

double hv__fewest_devices(const struct hv__work *w, const bool *kinds)
{
    double n = 0, left = w->state_bytes, before = HUGE_VAL;
    while (left > 0) {
        double most = 0, devices = 0;
        for (size_t k = 0; k < w->n_kinds; k++) {
            double bytes = kinds[k] && w->devices[k] > 0 ? w->usable_bytes[k] : 0;
            if (bytes < before && bytes >= most) {
                devices = bytes > most ? w->devices[k] : devices + w->devices[k];
                most = bytes;
            }
        }
        if (most <= 0) {
            return HUGE_VAL;
        }
        double use = fmin(devices, ceil(left / most));
        n += use;
        left -= use * most;
        before = most;
    }
    return n;
}

/** Least time over how many of the devices in use run, fastest first, `fewest` or more. */
static struct hv__least least_of(const struct hv__work *w, const struct in_use *s,
                                 const struct hv__prices *p)
{
    struct part_of_cluster from = {0}, to;
    struct hv__least least = {.time_s = HUGE_VAL};
    double last = HUGE_VAL, fewest = hv__fewest_devices(w, s->kinds);
    for (size_t turn = 0; turn < w->n_kinds; turn++) {
        double next = -1;
        for (size_t k = 0; k < w->n_kinds; k++) {
            if (s->kinds[k] && p->speed[k] < last) {
                next = fmax(next, p->speed[k]);
            }
        }
        if (next <= 0) {
            break;
        }
        to = from;
        for (size_t k = 0; k < w->n_kinds; k++) {
            bool same = s->kinds[k] && p->speed[k] == next;
            to.n += same ? w->devices[k] : 0;
            to.speed += same ? w->devices[k] * next : 0;
        }
        double first = fmax(from.n + 1, fewest);
        if (first <= to.n) {
            from = (struct part_of_cluster){first, from.speed + (first - from.n) * next};
            struct hv__least here = between(s, p, from, to);
            least = here.time_s < least.time_s ? here : least;
        }
        from = to;
        last = next;
    }
    return least;
}

static double pick(const struct hv__work *w, const bool *kinds, const double *of, bool most)
{
    double x = most ? 0 : HUGE_VAL;
    for (size_t k = 0; k < w->n_kinds; k++) {
        if (kinds[k]) {
            x = most ? fmax(x, of[k]) : fmin(x, of[k]);
        }
    }
    return x;
}

/** Bound of plans that use exactly these kinds, by the prices of all kinds; where that says it may
 * be below `least`, by prices of their own. */
static struct hv__least bound_of_set(const struct hv__bound_query *q, const struct in_use *s,
                                     double least)
{
    struct hv__prices p = *q->all;
    if (q->by_size) {
        hv__mix_values(q->w, s->kinds, &p);
    }
    struct hv__least t = least_of(q->w, s, &p);
    if (t.time_s < least) {
        struct hv__prices own = hv__prices_of(q->w, s->kinds, q->arena);
        if (q->by_size) {
            hv__improve_mix(q->w, s->kinds, &own, q->arena);
        }
        struct hv__least better = least_of(q->w, s, &own);
        t = better.time_s > t.time_s ? better : t;
    }
    return t;
}

/** Bound of plans that use any of these kinds, with the least host work and jitter of any. */
static struct hv__least bound_of_any(const struct hv__bound_query *q, const bool *kinds)
{
    const struct in_use s = {kinds,
                             pick(q->w, kinds, q->w->step_s, false),
                             pick(q->w, kinds, q->w->jitter, false),
                             pick(q->w, kinds, q->w->pass_s, false),
                             q->by_size,
                             q->w->even};
    return bound_of_set(q, &s, HUGE_VAL);
}

struct hv__least hv__bound_of(const struct hv__bound_query *q)
{
    const struct hv__work *w = q->w;
    bool *kinds = hv_arena_new(q->arena, bool, w->n_kinds);
    size_t usable[KINDS_IN_SETS], n = 0;
    for (size_t k = 0; k < w->n_kinds; k++) {
        kinds[k] = w->devices[k] > 0;
        if (kinds[k] && n < KINDS_IN_SETS) {
            usable[n] = k;
        }
        n += kinds[k];
    }
    if (n > KINDS_IN_SETS) {
        return bound_of_any(q, kinds);
    }
    struct hv__least least = {.time_s = HUGE_VAL};
    for (unsigned set = (1U << n) - 1; set > 0; set--) {
        if (hv__is_stopped(w)) {
            return (struct hv__least){0};
        }
        for (size_t i = 0; i < n; i++) {
            kinds[usable[i]] = set >> i & 1;
        }
        const struct in_use s = {kinds,
                                 pick(w, kinds, w->step_s, true),
                                 pick(w, kinds, w->jitter, true),
                                 pick(w, kinds, w->pass_s, false),
                                 q->by_size,
                                 w->even};
        struct hv__least t = bound_of_set(q, &s, least.time_s);
        least = t.time_s < least.time_s ? t : least;
    }
    return least;
}

double hv__bound_by_size(const struct hv__work *w, struct hv_arena *arena)
{
    bool *kinds = hv_arena_new(arena, bool, w->n_kinds), some = false;
    for (size_t i = 0; i < w->n_kinds; i++) {
        kinds[i] = w->devices[i] > 0;
        some = some || kinds[i];
    }
    if (!some || !isfinite(hv__fewest_devices(w, kinds))) {
        return HUGE_VAL;
    }
    struct hv__prices p = hv__prices_of(w, kinds, arena);
    hv__mix_values(w, kinds, &p);
    const struct hv__bound_query q = {.w = w, .all = &p, .by_size = true, .arena = arena};
    return hv__bound_of(&q).time_s;
}
