/**
 * Bounds of an iteration: what each family of plans takes at the least, what that is made of, and
 * the reason in words. The derivation is in least.c.
 */
#include "solver/bound/bound_int.h"

/** Share of the bound from which what passes cost beyond the work alone is told. */
#define PART_COUNTS 1e-6

static double all_devices(const struct hv__work *w)
{
    double devices = 0;
    for (size_t i = 0; i < w->n_kinds; i++) {
        devices += w->devices[i];
    }
    return devices;
}

/** Words for the work alone. */
static const char *say_work(struct hv_arena *arena, const struct hv__work *w, double compute_s)
{
    char text[HV_FMT_CAP];
    double devices = all_devices(w);
    size_t used = 0;
    for (size_t i = 0; i < w->n_kinds; i++) {
        used += w->devices[i] > 0;
    }
    return hv_arena_printf(
        arena,
        "%s of forward and backward work of the whole batch in the best kernels the cost model "
        "grants, spread without loss over all %.0f usable devices (%zu kind%s)",
        hv_fmt_seconds(text, sizeof text, compute_s), devices, used, used == 1 ? "" : "s");
}

/** Why passes take longer than the work alone: `few` devices are best, or 0 where all are. */
static const char *say_passes(struct hv_arena *arena, bool by_size, double few)
{
    const char *small = by_size
                            ? "to fill and drain, because every sequence has to get through all "
                              "layers and back in time, in passes small enough for that"
                            : "";
    return few > 0 ? hv_arena_printf(arena,
                                     "%s%sbecause no more than %.0f devices are worth waiting "
                                     "for",
                                     small, by_size ? ", and " : "", few)
                   : small;
}

/** What memory asks for, where that is more than one device. */
static const char *say_memory(struct hv_arena *arena, const struct hv_bound *b, const char *said)
{
    return b->fewest > 1
               ? hv_arena_printf(arena,
                                 "%s; on %.0f devices or more, or the gradients have no room", said,
                                 b->fewest)
               : said;
}

/** The work and what comes on top of it. */
static const char *say_parts(struct hv_arena *arena, const struct hv_bound *b, const char *passes)
{
    const struct {
        double time_s;
        const char *why;
    } parts[] = {
        {b->shapes_s, "because tensor parallelism that divides the heads, over the links that so "
                      "many ranks cannot avoid, and passes of this batch leave no better shapes"},
        {b->passes_s, passes},
        {b->optimizer_s, "for the optimizer's step of every weight"},
        {b->host_s, "of the host's work in an iteration"},
        {b->wait_s, "of waiting for the slowest of many devices"},
    };
    const char *said = b->compute_why;
    char text[HV_FMT_CAP];
    for (size_t i = 0; i < HV_COUNT(parts); i++) {
        if (parts[i].time_s > 0) {
            said =
                hv_arena_printf(arena, "%s; %s %s", said,
                                hv_fmt_seconds(text, sizeof text, parts[i].time_s), parts[i].why);
        }
    }
    return say_memory(arena, b, said);
}

/** Fills what a bound is made of beside the work. */
static void set_parts(const struct hv__least *t, struct hv_bound *b)
{
    b->iteration_s = t->time_s;
    b->optimizer_s = t->optimizer_s;
    b->host_s = t->around_s;
    b->wait_s = t->waits_s;
    b->passes_s = t->time_s - b->compute_s - t->optimizer_s - t->around_s - t->waits_s;
    if (!(b->passes_s > PART_COUNTS * t->time_s)) {
        b->passes_s = 0; /* rounding, or fewer devices at work than could be */
    }
}

/** Of what passes cost beyond the work: what no size of them saves. */
static void set_shapes(const struct hv__prices *p, struct hv_bound *b)
{
    b->shapes_s = fmin(fmax(0, p->mixed[0] / p->total - b->compute_s), b->passes_s);
    b->passes_s -= b->shapes_s;
}

/** Why no plan runs at all: nothing to run on, or too little memory together. NULL: one may. */
static const char *say_none(const struct hv_cost *k, struct hv_arena *arena,
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
                           "gradients alone need %s of memory, which no plan can offload, and all "
                           "%.0f usable devices have %s",
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
    *out = (struct hv_bound){.why = say_none(k, arena, &w, kinds)};
    if (out->why != NULL) {
        out->any_why = out->compute_why = out->spread_why = out->why;
        return;
    }
    out->fewest = hv__fewest_devices(&w, kinds);
    struct hv__prices p = hv__prices_of(&w, kinds, arena);
    hv__mix_values(&w, kinds, &p);
    out->compute_s = hv__spread_s(&w, kinds, &p, p.pipeline);
    out->compute_why = say_work(arena, &w, out->compute_s);
    struct hv__bound_query q = {.w = &w, .all = &p, .arena = arena};
    struct hv_bound any = *out;
    double all = all_devices(&w);
    struct hv__least t = hv__bound_of(&q);
    set_parts(&t, &any);
    any.why = say_parts(arena, &any, say_passes(arena, false, t.devices < all ? t.devices : 0));
    q.by_size = true;
    t = hv__bound_of(&q);
    set_parts(&t, out);
    set_shapes(&p, out);
    out->why = say_parts(arena, out, say_passes(arena, true, t.devices < all ? t.devices : 0));
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
