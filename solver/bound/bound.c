/**
 * Lower bound of the iteration time of any plan.
 *
 * Let N_c be the units of work of class c (halves of blocks, embedding and head times sequences;
 * the optimizer step of all weights) and w(k,c) the least device-seconds of one unit on kind k
 * (hv_cost_floor_s: best shapes of kernels, no communication). A plan spreads units over devices; a
 * device is busy for at least the sum of its units' w. Let a device of kind k earn at most λ_k per
 * second, and price a unit at u_c = min_k λ_k w(k,c): then T Σ_k D_k λ_k ≥ Σ_c N_c u_c with D_k
 * devices of kind k. This is weak duality of the fractional assignment problem: any λ ≥ 0 gives a
 * true bound, the best one the optimum of the relaxation. work.c searches for it by trial from
 * several starts, so the bound may be a little low, never too high. chain.c adds more to the same
 * inequality: passes have a size, and every sequence passes through all layers before the iteration
 * ends.
 *
 * Memory: sums of gradients, and in fp16 their unscaled copy, stay on the devices whatever a plan
 * shards or offloads (hv_cost_least_state_bytes). So a plan uses kinds of devices that together
 * hold all of them, and at least as many devices as this memory takes on those with most memory;
 * passes too large for the memory are left out of the cells (cost/floor/cells.c).
 *
 * The simulator adds time around the passes (tail.c, hv_cost_pass) to plans that wait for all
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

/** Largest number of kinds whose sets are examined one by one; with more kinds, only the set of
 * all, with the least σ and J. */
#define KINDS_IN_SETS 8
/** Least share of the bound for which the time of passes beyond the work alone is reported. */
#define PART_COUNTS 1e-6

/** Kinds in use and their time around the work. */
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

/** Parts of the bound, for the devices and the mix that attain it. */
struct least {
    double time_s, passes_s, optimizer_s, waits_s, around_s;
    double devices;
};

/** Time of a part of the devices in use by one mix; `fewest`: least of those whose jitter of host
 * work counts. */
static struct least time_of(const struct in_use *s, const struct hv__prices *p, size_t mix,
                            struct part_of_cluster x, double fewest)
{
    double share = s->by_size ? hv_cost_mix(mix) : 1;
    double passes = s->by_size ? p->mixed[mix] : p->pipeline;
    double speed = share * x.speed + (1 - share) * p->total;
    struct least t = {.passes_s = passes / speed,
                      .optimizer_s = (s->even ? 1 : share) * p->optimizer / speed};
    t.waits_s = s->jitter * (log2(fmax(1, x.n)) * t.passes_s + log2(fmax(1, fewest)) * s->pass_s);
    t.around_s = s->step_s + s->pass_s;
    t.devices = x.n;
    t.time_s = t.passes_s + t.optimizer_s + t.waits_s + t.around_s;
    return t;
}

/** Least time between two numbers of devices: the best mix of those at the lower of their ends. */
static struct least between(const struct in_use *s, const struct hv__prices *p,
                            struct part_of_cluster a, struct part_of_cluster b)
{
    struct least best = {0};
    for (size_t i = 0; i < (s->by_size ? HV_COST_MIXES : 1); i++) {
        struct least x = time_of(s, p, i, a, a.n), y = time_of(s, p, i, b, a.n);
        const struct least *lower = x.time_s < y.time_s ? &x : &y;
        best = i == 0 || lower->time_s > best.time_s ? *lower : best;
    }
    return best;
}

/** Smallest number of devices of these kinds whose memory holds the gradients, those with most
 * memory first; HUGE_VAL: all devices together do not. */
static double fewest_of(const struct hv__work *w, const bool *kinds)
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
static struct least least_of(const struct hv__work *w, const struct in_use *s,
                             const struct hv__prices *p)
{
    struct part_of_cluster from = {0}, to;
    struct least least = {.time_s = HUGE_VAL};
    double last = HUGE_VAL, fewest = fewest_of(w, s->kinds);
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
            struct least here = between(s, p, from, to);
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

/** Inputs of a bound. */
struct question {
    const struct hv__work *w;
    const struct hv__prices *all; /**< of all kinds */
    bool by_size;
    struct hv_arena *arena;
};

/** Bound of plans that use exactly these kinds, by the prices of all kinds; by their own prices
 * where that result may be below `least`. */
static struct least bound_of_set(const struct question *q, const struct in_use *s, double least)
{
    struct hv__prices p = *q->all;
    if (q->by_size) {
        hv__mix_values(q->w, s->kinds, &p);
    }
    struct least t = least_of(q->w, s, &p);
    if (t.time_s < least) {
        struct hv__prices own = hv__prices_of(q->w, s->kinds, q->arena);
        if (q->by_size) {
            hv__improve_mix(q->w, s->kinds, &own, q->arena);
        }
        struct least better = least_of(q->w, s, &own);
        t = better.time_s > t.time_s ? better : t;
    }
    return t;
}

/** Bound of plans that use any of these kinds, with the least host work and jitter of any. */
static struct least bound_of_any(const struct question *q, const bool *kinds)
{
    const struct in_use s = {kinds,
                             pick(q->w, kinds, q->w->step_s, false),
                             pick(q->w, kinds, q->w->jitter, false),
                             pick(q->w, kinds, q->w->pass_s, false),
                             q->by_size,
                             q->w->even};
    return bound_of_set(q, &s, HUGE_VAL);
}

/**
 * Least bound over which kinds are in use. The prices of all kinds give a valid bound for every
 * set, and often show that a set is not the least.
 */
static struct least bound_of(const struct question *q)
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
    struct least least = {.time_s = HUGE_VAL};
    for (unsigned set = (1U << n) - 1; set > 0; set--) {
        for (size_t i = 0; i < n; i++) {
            kinds[usable[i]] = set >> i & 1;
        }
        const struct in_use s = {kinds,
                                 pick(w, kinds, w->step_s, true),
                                 pick(w, kinds, w->jitter, true),
                                 pick(w, kinds, w->pass_s, false),
                                 q->by_size,
                                 w->even};
        struct least t = bound_of_set(q, &s, least.time_s);
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
    if (!some || !isfinite(fewest_of(w, kinds))) {
        return HUGE_VAL;
    }
    struct hv__prices p = hv__prices_of(w, kinds, arena);
    hv__mix_values(w, kinds, &p);
    const struct question q = {.w = w, .all = &p, .by_size = true, .arena = arena};
    return bound_of(&q).time_s;
}

static double all_devices(const struct hv__work *w)
{
    double devices = 0;
    for (size_t i = 0; i < w->n_kinds; i++) {
        devices += w->devices[i];
    }
    return devices;
}

/** Text for the work alone. */
static const char *work_text(struct hv_arena *arena, const struct hv__work *w, double compute_s)
{
    char text[HV_FMT_CAP];
    double devices = all_devices(w);
    size_t used = 0;
    for (size_t i = 0; i < w->n_kinds; i++) {
        used += w->devices[i] > 0;
    }
    return hv_arena_printf(
        arena,
        "%s of forward and backward compute for the whole batch with the fastest kernels of the "
        "cost model, divided without loss over all %.0f usable devices (%zu kind%s)",
        hv_fmt_seconds(text, sizeof text, compute_s), devices, used, used == 1 ? "" : "s");
}

/** Text for the time of passes beyond the work; `few`: the best number of devices, 0: all. */
static const char *passes_text(struct hv_arena *arena, bool by_size, double few)
{
    const char *small =
        by_size ? "to fill and drain the pipeline: every sequence passes forward and backward "
                  "through all layers before the iteration ends, in passes small enough for that"
                : "";
    return few > 0
               ? hv_arena_printf(
                     arena,
                     "%s%sbecause the use of more than %.0f devices costs more time than it saves",
                     small, by_size ? ", and " : "", few)
               : small;
}

/** Appends the number of devices that the gradients need, where it is above one. */
static const char *memory_text(struct hv_arena *arena, const struct hv_bound *b,
                               const char *text_so_far)
{
    return b->fewest > 1
               ? hv_arena_printf(arena, "%s; the gradients need the memory of %.0f devices or more",
                                 text_so_far, b->fewest)
               : text_so_far;
}

/** Text for the work and all further parts of the bound. */
static const char *parts_text(struct hv_arena *arena, const struct hv_bound *b, const char *passes)
{
    const struct {
        double time_s;
        const char *why;
    } parts[] = {
        {b->shapes_s,
         "for the shapes of kernels: no tensor-parallel degree that divides the heads, with its "
         "communication, and no pass size of this batch gives faster ones"},
        {b->passes_s, passes},
        {b->optimizer_s, "for the optimizer step of all weights"},
        {b->host_s, "of host work in an iteration"},
        {b->wait_s, "of waiting for the slowest of many devices"},
    };
    const char *text_so_far = b->compute_why;
    char text[HV_FMT_CAP];
    for (size_t i = 0; i < HV_COUNT(parts); i++) {
        if (parts[i].time_s > 0) {
            text_so_far =
                hv_arena_printf(arena, "%s; %s %s", text_so_far,
                                hv_fmt_seconds(text, sizeof text, parts[i].time_s), parts[i].why);
        }
    }
    return memory_text(arena, b, text_so_far);
}

/** Fills the parts of a bound besides the work. */
static void set_parts(const struct least *t, struct hv_bound *b)
{
    b->iteration_s = t->time_s;
    b->optimizer_s = t->optimizer_s;
    b->host_s = t->around_s;
    b->wait_s = t->waits_s;
    b->passes_s = t->time_s - b->compute_s - t->optimizer_s - t->around_s - t->waits_s;
    if (!(b->passes_s > PART_COUNTS * t->time_s)) {
        b->passes_s = 0; /* rounding, or fewer devices in use than are available */
    }
}

/** Splits the time of passes beyond the work: shapes_s is the part that no size of passes avoids.
 */
static void set_shapes(const struct hv__prices *p, struct hv_bound *b)
{
    b->shapes_s = fmin(fmax(0, p->mixed[0] / p->total - b->compute_s), b->passes_s);
    b->passes_s -= b->shapes_s;
}

/** Reason why no plan can run: no usable device, or too little memory in all. NULL: there is none.
 */
static const char *impossible_text(const struct hv_cost *k, struct hv_arena *arena,
                                   const struct hv__work *w, const bool *kinds)
{
    char need[HV_FMT_CAP], has[HV_FMT_CAP];
    double bytes = 0, devices = all_devices(w);
    for (size_t i = 0; i < w->n_kinds; i++) {
        bytes += w->devices[i] * w->usable_bytes[i];
    }
    if (devices <= 0) {
        return hv_arena_printf(arena, "no device of the cluster can run this job in %s",
                               hv_precision_name(hv_cost_job(k)->precision));
    }
    if (isfinite(fewest_of(w, kinds))) {
        return NULL;
    }
    return hv_arena_printf(arena,
                           "the gradients, which no plan can offload, need %s of memory, and all "
                           "%.0f usable devices together have %s",
                           hv_fmt_bytes(need, sizeof need, w->state_bytes), devices,
                           hv_fmt_bytes(has, sizeof has, bytes));
}

void hv_bound_iteration(struct hv_cost *k, struct hv_arena *arena, struct hv_bound *out)
{
    struct hv__work w = hv__list_work(k, arena);
    bool *kinds = hv_arena_new(arena, bool, w.n_kinds);
    for (size_t i = 0; i < w.n_kinds; i++) {
        kinds[i] = w.devices[i] > 0;
    }
    *out = (struct hv_bound){.why = impossible_text(k, arena, &w, kinds)};
    if (out->why != NULL) {
        out->any_why = out->compute_why = out->spread_why = out->why;
        return;
    }
    out->fewest = fewest_of(&w, kinds);
    struct hv__prices p = hv__prices_of(&w, kinds, arena);
    hv__mix_values(&w, kinds, &p);
    out->compute_s = hv__spread_s(&w, kinds, &p, p.pipeline);
    out->compute_why = work_text(arena, &w, out->compute_s);
    struct question q = {.w = &w, .all = &p, .arena = arena};
    struct hv_bound any = *out;
    double all = all_devices(&w);
    struct least t = bound_of(&q);
    set_parts(&t, &any);
    any.why = parts_text(arena, &any, passes_text(arena, false, t.devices < all ? t.devices : 0));
    q.by_size = true;
    t = bound_of(&q);
    set_parts(&t, out);
    set_shapes(&p, out);
    out->why = parts_text(arena, out, passes_text(arena, true, t.devices < all ? t.devices : 0));
    if (any.iteration_s > out->iteration_s) {
        *out = any;
    }
    out->any_s = any.iteration_s;
    out->any_why = any.why;
    out->spread_s = out->iteration_s;
    out->spread_why = out->why;
    hv__bound_even(&w, arena, out);
    hv__bound_cuts(k, &w, arena, out);
}
