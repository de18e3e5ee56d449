/**
 * Bounds of an iteration: what each family of plans takes at the least, what that is made of, and
 * the reason in words. The derivation is in least.c.
 */
#include "solver/bound/bound_int.h"

/** Least share of the bound for which the time of passes beyond the work alone is reported. */
#define PART_COUNTS 1e-6

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
static void set_parts(const struct hv__least *t, struct hv_bound *b)
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

/** Reason why no plan can run: no usable device, or too little memory in all. NULL: a plan may run.
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
    if (isfinite(hv__fewest_devices(w, kinds))) {
        return NULL;
    }
    return hv_arena_printf(arena,
                           "the gradients, which no plan can offload, need %s of memory, and all "
                           "%.0f usable devices together have %s",
                           hv_fmt_bytes(need, sizeof need, w->state_bytes), devices,
                           hv_fmt_bytes(has, sizeof has, bytes));
}

/** Bounds of plans with passes of any size, and of chains of stages; the work alone where the
 * search was stopped. */
static void search(struct hv__bound_query *q, struct hv_bound *out)
{
    struct hv_arena *arena = q->arena;
    struct hv_bound any = *out;
    double all = all_devices(q->w);
    struct hv__least t = hv__bound_of(q);
    set_parts(&t, &any);
    any.why = parts_text(arena, &any, passes_text(arena, false, t.devices < all ? t.devices : 0));
    q->by_size = true;
    t = hv__bound_of(q);
    set_parts(&t, out);
    set_shapes(q->all, out);
    out->why = parts_text(arena, out, passes_text(arena, true, t.devices < all ? t.devices : 0));
    if (any.iteration_s > out->iteration_s) {
        *out = any;
    }
    out->any_s = any.iteration_s;
    out->any_why = any.why;
    if (hv__is_stopped(q->w) && out->iteration_s < out->compute_s) {
        out->iteration_s = out->any_s = out->compute_s;
        out->why = out->any_why = memory_text(arena, out, out->compute_why);
    }
}

void hv_bound_within(struct hv_cost *k, bool (*stop)(void *ctx), void *ctx, struct hv_arena *arena,
                     struct hv_bound *out)
{
    struct hv__stop asked = {.ask = stop, .ctx = ctx};
    struct hv__work w = hv__list_work(k, arena);
    bool *kinds = hv_arena_new(arena, bool, w.n_kinds);
    w.stop = &asked;
    for (size_t i = 0; i < w.n_kinds; i++) {
        kinds[i] = w.devices[i] > 0;
    }
    *out = (struct hv_bound){.why = impossible_text(k, arena, &w, kinds)};
    if (out->why != NULL) {
        out->any_why = out->compute_why = out->spread_why = out->why;
        return;
    }
    out->fewest = hv__fewest_devices(&w, kinds);
    struct hv__prices p = hv__prices_of(&w, kinds, arena);
    hv__mix_values(&w, kinds, &p);
    out->compute_s = hv__spread_s(&w, kinds, &p, p.pipeline);
    out->compute_why = work_text(arena, &w, out->compute_s);
    struct hv__bound_query q = {.w = &w, .all = &p, .arena = arena};
    search(&q, out);
    out->spread_s = out->iteration_s;
    out->spread_why = out->why;
    if (!hv__is_stopped(&w)) {
        hv__bound_even(&w, arena, out);
    }
    hv__bound_cuts(k, &w, arena, out);
    out->stopped = asked.stopped;
}

void hv_bound_iteration(struct hv_cost *k, struct hv_arena *arena, struct hv_bound *out)
{
    hv_bound_within(k, NULL, NULL, arena, out);
}
