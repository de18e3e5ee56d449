/**
 * A time that no plan can beat.
 *
 * Let N_c be the units of work of class c (halves of blocks, embedding and head times sequences;
 * the optimizer step of all weights) and w(k,c) the least device-seconds of one unit on kind k
 * (hv_cost_floor_s: best shapes of kernels, nothing exchanged). A plan spreads units over devices;
 * a device is busy for at least the sum of its units' w. Let a device of kind k earn at most λ_k
 * per second, and price a unit at u_c = min_k λ_k w(k,c): then T Σ_k D_k λ_k ≥ Σ_c N_c u_c with D_k
 * devices of kind k. This is weak duality of the fractional assignment problem: any λ ≥ 0 gives a
 * true bound, the best one the optimum of the relaxation. We search for it by trial from several
 * starts, so the bound may be a little low, never too high.
 *
 * Around that, as the simulator adds it (tail.c, hv_cost_pass) to plans that wait for all
 * gradients:
 * - every device in use runs one pass forward and one backward at least, with their host work h;
 * - the step costs σ + J log2(n) P, σ and J those of the slowest class in use, n the devices in
 * use, P the end of the last backward, which is at least h + (work without the
 * optimizer's)/speed(n);
 * - the optimizer of a device starts after its last pass.
 * So T ≥ σ + h + (V + J log2(n) (h speed(n) + P-part of V)) / speed(n), least over n and over which
 * kinds are in use. With kinds sorted by speed, speed(n) of the best n devices is concave, and
 * between two ends of kinds the expression rises and then falls, or only falls: its least is at an
 * end. Nothing is assumed of schedules, of exchanges or of what fits.
 */
#include "solver/eval/eval_int.h"

/** Kinds whose sets are looked at one by one; beyond, only all of them with the least σ and J. */
#define KINDS_IN_SETS 8

struct work {
    size_t n_items, n_kinds, stride;
    double *units;                    /**< [n_items]; the last is the optimizer's */
    double *floor_s;                  /**< [n_kinds × stride] */
    double *devices;                  /**< [n_kinds] of use */
    double *step_s, *jitter, *pass_s; /**< [n_kinds] */
    bool transformer;
};

/** What a device of each kind earns per second, and what the work is worth by that. */
struct prices {
    double all, pipeline; /**< value with and without the optimizer */
    double *speed;        /**< [n_kinds]: λ */
};

/** Adds one class of work with its floors on every kind. Rows of floor_s are `stride` long. */
static void add_item(struct hv_cost *k, struct work *w, enum hv_part part, size_t block,
                     double units)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    for (size_t i = 0; i < w->n_kinds; i++) {
        w->floor_s[i * w->stride + w->n_items] = hv_cost_floor_s(k, part, block, c->kinds[i]);
    }
    w->units[w->n_items++] = units;
}

/** Every weight is updated once, somewhere; the start of the kernel is left out. */
static void add_optimizer(struct hv_cost *k, struct work *w)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    double n = w->transformer ? hv_model_parameters(hv_cost_model(k)) : 0;
    for (size_t i = 0; i < w->n_kinds; i++) {
        double step_s = hv_cost_optimizer_s(k, c->kinds[i], 2 * n);
        w->floor_s[i * w->stride + w->n_items] = step_s - hv_cost_optimizer_s(k, c->kinds[i], n);
    }
    w->units[w->n_items++] = 1;
}

static void count_devices(struct hv_cost *k, struct work *w)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    for (size_t g = 0; g < c->n_groups; g++) {
        const struct hv_node_group *group = &c->groups[g];
        for (size_t s = 0; group->state == HV_NODE_OK && s < group->n_slots; s++) {
            for (size_t i = 0; i < w->n_kinds; i++) {
                if (c->kinds[i] == group->slots[s].kind) {
                    w->devices[i] += (double)group->slots[s].count * group->count;
                }
            }
        }
    }
}

/** A kind that cannot run the job adds no speed. */
static void leave_out_useless(struct work *w)
{
    for (size_t i = 0; i < w->n_kinds; i++) {
        for (size_t c = 0; c < w->n_items; c++) {
            if (!isfinite(w->floor_s[i * w->stride + c])) {
                w->devices[i] = 0;
            }
        }
    }
}

/** What a step costs besides work; measured layers hold whatever was measured with them. */
static void add_steps(struct hv_cost *k, struct work *w)
{
    const struct hv_cluster *c = hv_cost_cluster(k);
    for (size_t i = 0; w->transformer && i < w->n_kinds; i++) {
        const struct hv_calibration *cal = hv_device_calibration(c->kinds[i]);
        w->step_s[i] = cal->v[HV_CAL_STEP_MS] * 1e-3;
        w->jitter[i] = cal->v[HV_CAL_JITTER];
        w->pass_s[i] = 2 * cal->v[HV_CAL_PASS_US] * HV_US;
    }
}

static struct work list_work(struct hv_cost *k, struct hv_arena *arena)
{
    const struct hv_model *m = hv_cost_model(k);
    unsigned n_classes = hv_cost_n_classes(k);
    double batch = (double)hv_cost_job(k)->global_batch;
    struct work w = {.n_kinds = hv_cost_cluster(k)->n_kinds,
                     .stride = 2 * (size_t)n_classes + 3,
                     .transformer = hv_model_has_transformer(m)};
    w.units = hv_arena_new(arena, double, w.stride);
    w.floor_s = hv_arena_new(arena, double, w.stride *w.n_kinds);
    double **columns[] = {&w.devices, &w.step_s, &w.jitter, &w.pass_s};
    for (size_t i = 0; i < HV_COUNT(columns); i++) {
        *columns[i] = hv_arena_new(arena, double, w.n_kinds);
    }
    double *blocks = hv_arena_new(arena, double, n_classes);
    for (size_t i = 0; i < m->n_blocks; i++) {
        blocks[hv_cost_block_class(k, i)] += 1;
    }
    for (unsigned i = 0; i < n_classes; i++) {
        add_item(k, &w, HV_PART_ATTENTION, hv_cost_class_block(k, i), batch * blocks[i]);
        add_item(k, &w, HV_PART_FFN, hv_cost_class_block(k, i), batch * blocks[i]);
    }
    add_item(k, &w, HV_PART_EMBEDDING, 0, batch);
    add_item(k, &w, HV_PART_HEAD, 0, batch);
    add_optimizer(k, &w);
    count_devices(k, &w);
    leave_out_useless(&w);
    add_steps(k, &w);
    return w;
}

/** Values the work by the speeds of these kinds. */
static void set_values(const struct work *w, const bool *kinds, struct prices *p)
{
    p->all = p->pipeline = 0;
    for (size_t c = 0; c < w->n_items; c++) {
        double u = HUGE_VAL;
        for (size_t k = 0; k < w->n_kinds; k++) {
            if (kinds[k]) {
                u = fmin(u, p->speed[k] * w->floor_s[k * w->stride + c]);
            }
        }
        p->all += w->units[c] * u;
        p->pipeline += c + 1 < w->n_items ? w->units[c] * u : 0;
    }
}

/** Speeds that make every class worth what it costs on one kind, or more. */
static struct prices prices_like(const struct work *w, const bool *kinds, size_t kind,
                                 struct hv_arena *arena)
{
    struct prices p = {.speed = hv_arena_new(arena, double, w->n_kinds)};
    for (size_t k = 0; k < w->n_kinds; k++) {
        for (size_t c = 0; kinds[k] && c < w->n_items; c++) {
            double own = w->floor_s[k * w->stride + c];
            if (own > 0) {
                p.speed[k] = fmax(p.speed[k], w->floor_s[kind * w->stride + c] / own);
            }
        }
    }
    set_values(w, kinds, &p);
    return p;
}

/** Time of the work alone on all devices of these kinds. */
static double spread_s(const struct work *w, const bool *kinds, const struct prices *p,
                       double value)
{
    double speed = 0;
    for (size_t k = 0; k < w->n_kinds; k++) {
        speed += kinds[k] ? w->devices[k] * p->speed[k] : 0;
    }
    return speed > 0 ? value / speed : 0;
}

/** Makes one kind faster or slower while that raises the bound, in smaller and smaller steps. */
static void improve_prices(const struct work *w, const bool *kinds, struct prices *p)
{
    double best = spread_s(w, kinds, p, p->all);
    for (double step = 2; step > 1.002; step = sqrt(step)) {
        for (size_t k = 0; k < w->n_kinds; k++) {
            for (int up = 0; up < 2 && kinds[k]; up++) {
                double before = p->speed[k];
                p->speed[k] *= up ? step : 1 / step;
                set_values(w, kinds, p);
                double now = spread_s(w, kinds, p, p->all);
                if (now > best) {
                    best = now;
                    up--;
                } else {
                    p->speed[k] = before;
                }
            }
        }
    }
    set_values(w, kinds, p);
}

/** The best prices found for these kinds. */
static struct prices prices_of(const struct work *w, const bool *kinds, struct hv_arena *arena)
{
    struct prices best = {0};
    for (size_t k = 0; k < w->n_kinds; k++) {
        if (kinds[k]) {
            struct prices p = prices_like(w, kinds, k, arena);
            if (best.speed == NULL ||
                spread_s(w, kinds, &p, p.all) > spread_s(w, kinds, &best, best.all)) {
                best = p;
            }
        }
    }
    improve_prices(w, kinds, &best);
    return best;
}

/** Kinds in use and what they cost around the work. */
struct in_use {
    const bool *kinds;
    double step_s, jitter, pass_s;
};

/** Least time of that many devices of that speed. */
static double time_s(const struct in_use *s, const struct prices *p, double n, double speed)
{
    double waits = s->jitter * log2(fmax(1, n));
    return s->step_s + s->pass_s * (1 + waits) + (p->all + waits * p->pipeline) / speed;
}

/** Least time over how many of the devices in use run, fastest first. */
static double least_s(const struct work *w, const struct in_use *s, const struct prices *p)
{
    double n = 0, speed = 0, least = HUGE_VAL, last = HUGE_VAL;
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
        least = fmin(least, time_s(s, p, n + 1, speed + next));
        for (size_t k = 0; k < w->n_kinds; k++) {
            bool same = s->kinds[k] && p->speed[k] == next;
            n += same ? w->devices[k] : 0;
            speed += same ? w->devices[k] * next : 0;
        }
        least = fmin(least, time_s(s, p, n, speed));
        last = next;
    }
    return least;
}

static double pick(const struct work *w, const bool *kinds, const double *of, bool most)
{
    double x = most ? 0 : HUGE_VAL;
    for (size_t k = 0; k < w->n_kinds; k++) {
        if (kinds[k]) {
            x = most ? fmax(x, of[k]) : fmin(x, of[k]);
        }
    }
    return x;
}

/**
 * Least bound over which kinds are in use. Prices of all kinds are true for any of them, and good
 * enough to tell that a set is not the least; the others get prices of their own.
 */
static double bound_s(const struct work *w, const struct prices *all, struct hv_arena *arena)
{
    bool *kinds = hv_arena_new(arena, bool, w->n_kinds);
    size_t usable[KINDS_IN_SETS], n = 0;
    for (size_t k = 0; k < w->n_kinds; k++) {
        kinds[k] = w->devices[k] > 0;
        if (kinds[k] && n < KINDS_IN_SETS) {
            usable[n] = k;
        }
        n += kinds[k];
    }
    if (n > KINDS_IN_SETS) {
        const struct in_use s = {kinds, pick(w, kinds, w->step_s, false),
                                 pick(w, kinds, w->jitter, false),
                                 pick(w, kinds, w->pass_s, false)};
        return least_s(w, &s, all);
    }
    double least = HUGE_VAL;
    for (unsigned set = (1U << n) - 1; set > 0; set--) {
        for (size_t i = 0; i < n; i++) {
            kinds[usable[i]] = set >> i & 1;
        }
        const struct in_use s = {kinds, pick(w, kinds, w->step_s, true),
                                 pick(w, kinds, w->jitter, true), pick(w, kinds, w->pass_s, false)};
        double t = least_s(w, &s, all);
        if (t < least && set + 1 < 1U << n) {
            struct prices own = prices_of(w, kinds, arena);
            t = fmax(t, least_s(w, &s, &own));
        }
        least = fmin(least, t);
    }
    return least;
}

void hv_eval_bound(struct hv_cost *k, struct hv_arena *arena, struct hv_bound *out)
{
    struct work w = list_work(k, arena);
    bool *kinds = hv_arena_new(arena, bool, w.n_kinds);
    size_t used = 0;
    double devices = 0;
    for (size_t i = 0; i < w.n_kinds; i++) {
        kinds[i] = w.devices[i] > 0;
        used += kinds[i];
        devices += w.devices[i];
    }
    *out = (struct hv_bound){.why = "no device of the cluster can run this job"};
    if (used == 0) {
        return;
    }
    char text[HV_FMT_CAP];
    struct prices p = prices_of(&w, kinds, arena);
    out->compute_s = spread_s(&w, kinds, &p, p.pipeline);
    out->iteration_s = bound_s(&w, &p, arena);
    const char *work = hv_arena_printf(
        arena,
        "the forward and backward work of the whole batch in the best kernels the cost model "
        "grants, spread without loss over all %.0f usable devices (%zu kind%s), takes %s",
        devices, used, used == 1 ? "" : "s", hv_fmt_seconds(text, sizeof text, out->compute_s));
    double around_s = out->iteration_s - out->compute_s;
    out->why = !(around_s > 0)
                   ? work
                   : hv_arena_printf(arena,
                                     "%s; the optimizer, the host's work and waiting for the "
                                     "slowest device take %s more",
                                     work, hv_fmt_seconds(text, sizeof text, around_s));
}
