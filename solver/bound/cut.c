/**
 * Bound by slow networks: a plan that uses devices on both sides of a cut sends activations or
 * gradients across it.
 *
 * Take a cut of the cluster (hv_cost_cuts): zones or some equal houses against all others, and a
 * slow network between them. Let H be the time of the activations of the whole batch across it in
 * one direction, R(Q) that of the gradients of parts Q of the model, T' the time up to the end of
 * the reductions. Let every data-parallel rank of a plan lie on one side (the ranks of a stage and
 * its copies may lie on different sides). A part may be on both sides, then its gradients are
 * summed over the cut; or on the first only; or on the second only. Either
 *  - A: all parts are on both: T' ≥ R(all);
 *  - B: one is on the first side only and one on the second only: every sequence goes over the cut
 *    between them, forward one way and backward the other, so that each direction carries all of
 *    them: T' ≥ H and the latency of the last message;
 *  - C: or some are on one side only, "before" the cut, and the others, Q, on both. Of n sequences
 *    through a copy of the pipeline let the stage with most of its ranks beyond have the share f of
 *    them there. Stages send each other equal flows from and to each of their ranks, so f n
 *    sequences cross on the way between it and the part that is before the cut: ν N in all, one way
 *    forwards and the other way backwards. No reduction starts before every copy has begun the last
 *    backward pass of its part, so not before all activations have crossed forwards; what still
 *    crosses backwards goes first. So ν H + R(Q) ≤ T', and devices beyond do no more than ν of the
 *    passes through Q: those before the cut have the rest, and for them the inequality of chain.c
 *    holds with as much less work.
 *
 * A and B are numbers. In C what is taken over grows with T': let E(t) be the bound of the devices
 * before the cut where T' ≤ t; it falls. The least time of a plan is no less than min(t, E(t)), for
 * every t; the best t is found by halving. The most that can be taken over is a knapsack of parts
 * by value over R, over ν: on each of its straight pieces ν K(T' - ν H) is a parabola.
 *
 * Nothing in this depends on which houses of a class are on the far side: the bound holds for a
 * plan where any choice of them keeps its parts together. So cuts are numbers of houses, and a plan
 * gets the largest bound of all cuts that it can be laid on.
 *
 * Plans outside (eval/sides.c): exchanges inside passes cross the cut (tensor, context or expert
 * parallelism), or states are sharded over it; ranks of a stage on both sides have shares of their
 * own, or do not come out even with another stage's; gradients are summed on servers.
 */
#include "solver/bound/bound_int.h"

/** Most evaluations of E of both sides in the search for t. */
#define TURNS 8

/** One cut as the bound sees it. */
struct sides {
    struct hv_cost *k;
    const struct hv__work *w;
    const struct hv_houses *houses;
    const struct hv_cost_cut *cut;
    struct hv_arena *arena;
    double *sum_s; /**< [n_items] */
    double all_s;  /**< of all parts */
    double step_s; /**< least of any kind, as are the next two */
    double jitter, pass_s;
};

/** Seconds of the gradients of one part across the cut. */
static double part_s(const struct sides *s, size_t item)
{
    size_t classes = hv_cost_n_classes(s->k), block = 0;
    enum hv_part part = HV_PART_EMBEDDING;
    if (item < 2 * classes) {
        block = hv_cost_class_block(s->k, (unsigned)(item / 2));
        part = item % 2 == 0 ? HV_PART_ATTENTION : HV_PART_FFN;
    } else if (item == 2 * classes + 1) {
        part = HV_PART_HEAD;
    }
    return hv_cost_gradient_bytes(s->k, part, block) * s->cut->byte_s;
}

static struct sides sides_of(struct hv_cost *k, const struct hv__work *w,
                             const struct hv_cost_cuts *cuts, size_t i, struct hv_arena *arena)
{
    struct sides s = {
        .k = k, .w = w, .houses = &cuts->houses, .cut = &cuts->items[i], .arena = arena};
    s.sum_s = hv_arena_new(arena, double, w->n_items);
    for (size_t c = 0; c + 1 < w->n_items; c++) {
        s.sum_s[c] = part_s(&s, c);
        s.all_s += w->units[c] / w->batch * s.sum_s[c];
    }
    s.step_s = s.jitter = s.pass_s = HUGE_VAL;
    for (size_t d = 0; d < w->n_kinds; d++) {
        if (w->devices[d] > 0) {
            s.step_s = fmin(s.step_s, w->step_s[d]);
            s.jitter = fmin(s.jitter, w->jitter[d]);
            s.pass_s = fmin(s.pass_s, w->pass_s[d]);
        }
    }
    return s;
}

/** E(t) of one side; t = 0: that side alone. */
static double before_s(const struct sides *s, bool side, double t)
{
    struct hv__work w = *s->w;
    struct hv__beyond x = {fmax(0, t - s->step_s), s->cut->hop_s, s->sum_s};
    w.beyond = &x;
    hv__keep_side(&w, s->houses, s->cut->beyond, side, s->arena);
    return hv__bound_by_size(&w, s->arena);
}

/** Case C with the parts before the cut on either side, where it is below `most`; results below
 * `least` are of no use. */
static double mostly_s(const struct sides *s, double least, double most)
{
    double from = least, to = most, best = 0;
    for (int i = 0; i < TURNS && from < to; i++) {
        double t = i == 0 ? to : (from + to) / 2;
        double e = fmin(before_s(s, false, t), before_s(s, true, t));
        best = fmax(best, fmin(t, e));
        if (e >= t) {
            from = t;
        } else {
            from = fmax(from, e);
            to = t;
        }
    }
    return fmax(best, least);
}

/** Text for a cut that counts; `alone_s`: bound of the faster side alone. */
static const char *cut_text(const struct sides *s, const struct hv_bound *b, double more_s,
                            double alone_s)
{
    char more[HV_FMT_CAP], hops[HV_FMT_CAP], sums[HV_FMT_CAP], alone[HV_FMT_CAP], rest[HV_FMT_CAP];
    const char *side = isfinite(alone_s)
                           ? hv_arena_printf(s->arena, "either side alone takes %s or more",
                                             hv_fmt_seconds(alone, sizeof alone, alone_s))
                           : "neither side alone has the memory for the gradients";
    return hv_arena_printf(
        s->arena,
        "%s because of %s: the activations of all sequences take %s to cross it, the gradients of "
        "all weights take %s, and %s (only plans with collectives inside passes across it, with "
        "states sharded across it or with parameter servers may take less, down to %s)",
        hv_fmt_seconds(more, sizeof more, more_s), s->cut->words,
        hv_fmt_seconds(hops, sizeof hops, s->cut->hop_s),
        hv_fmt_seconds(sums, sizeof sums, s->all_s), side,
        hv_fmt_seconds(rest, sizeof rest, b->spread_s));
}

/** The bound by one cut; false: it is not above that of plans which the cut is not for. */
static bool try_cut(const struct sides *s, const struct hv_bound *b, struct hv_bound_cut *out,
                    const char **why)
{
    double across_s = s->cut->hop_s + s->cut->latency_s + s->pass_s / 2;
    double most = fmin(s->step_s + s->all_s, s->step_s + (1 + s->jitter) * across_s);
    double least = b->spread_s;
    if (!(most > least)) {
        return false;
    }
    double alone[] = {before_s(s, false, 0), before_s(s, true, 0)};
    most = mostly_s(s, least, fmin(most, fmin(alone[0], alone[1])));
    if (!(most > least)) {
        return false;
    }
    *why = cut_text(s, b, most - least, fmin(alone[0], alone[1]));
    *out = (struct hv_bound_cut){most, hv_arena_printf(s->arena, "%s; %s", b->spread_why, *why),
                                 s->cut->beyond};
    return true;
}

void hv__bound_cuts(struct hv_cost *k, const struct hv__work *w, struct hv_arena *arena,
                    struct hv_bound *out)
{
    struct hv_cost_cuts cuts = {0};
    if (hv_cost_n_classes(k) <= HV__CLASSES_BY_SIZE && !hv__is_stopped(w)) {
        hv_cost_cuts(k, arena, &cuts);
    }
    struct hv_bound_cut *list = hv_arena_new(arena, struct hv_bound_cut, cuts.n + 1);
    for (size_t i = 0; i < cuts.n && !hv__is_stopped(w); i++) {
        const struct sides s = sides_of(k, w, &cuts, i, arena);
        struct hv_bound_cut x;
        const char *why;
        if (!try_cut(&s, out, &x, &why)) {
            continue;
        }
        if (x.time_s > out->iteration_s) {
            out->iteration_s = x.time_s;
            out->why = x.why;
            out->cut_why = why;
            out->cut_s = x.time_s - out->spread_s;
        }
        size_t at = out->n_cuts++;
        for (; at > 0 && list[at - 1].time_s < x.time_s; at--) {
            list[at] = list[at - 1];
        }
        list[at] = x;
    }
    out->cuts = list;
    out->houses = cuts.houses;
}
