/* Trials with one part of the cluster made faster. */
#include "solver/eval/slower.h"

#include "solver/base/units.h"
#include "solver/eval/eval.h"
#include "solver/inventory/faster.h"
#include "solver/sim/schedule/schedule.h"

#include <stdlib.h>

/** Micro-batches × stages of all trials together. */
#define SLOWER_WORK 2e6
/** Most trials. */
#define SLOWER_TRIALS 64

/** What a plan uses of its cluster. */
struct used {
    bool *groups;   /**< [n_groups] by the first group that is alike */
    bool *kinds;    /**< [n_kinds] */
    size_t n_nodes; /**< 2: more than one */
    double work;    /**< micro-batches × stages */
};

static void use_device(const struct hv_cluster *c, uint32_t device, uint32_t *node, struct used *u)
{
    struct hv_device_ref d = hv_cluster_device(c, device);
    u->groups[c->groups[d.group].like] = true;
    for (size_t i = 0; i < c->n_kinds; i++) {
        u->kinds[i] = u->kinds[i] || c->kinds[i] == d.kind;
    }
    u->n_nodes = u->n_nodes == 0 ? 1 : *node != d.node ? 2 : u->n_nodes;
    *node = d.node;
}

static struct used used_by(const struct hv_plan *p, struct hv_arena *arena)
{
    const struct hv_cluster *c = p->cluster;
    struct used u = {.groups = hv_arena_new(arena, bool, c->n_groups + 1),
                     .kinds = hv_arena_new(arena, bool, c->n_kinds + 1)};
    uint32_t node = 0;
    for (size_t i = 0; i < p->n_replicas; i++) {
        const struct hv_replica *r = &p->replicas[i];
        for (size_t s = 0; s < r->n_stages; s++) {
            for (size_t d = 0; d < r->stages[s].n_devices; d++) {
                use_device(c, r->stages[s].devices[d], &node, &u);
            }
        }
        u.work += (double)r->micro_batches * (double)r->n_stages;
    }
    return u;
}

static bool uses(const struct used *u, const struct hv_cluster_part *part)
{
    switch (part->kind) {
    case HV_PART_OF_FLOPS:
    case HV_PART_OF_HBM:
        return u->kinds[part->i];
    case HV_PART_OF_NIC:
        return u->groups[part->i] && u->n_nodes > 1;
    case HV_PART_OF_INTRA:
        return u->groups[part->i];
    case HV_PART_OF_NETWORK:
    case HV_PART_OF_LINK:
        return u->n_nodes > 1;
    }
    return false;
}

/** True where the schedule's order is derived from times. */
static bool derives_order(const struct hv_plan *p)
{
    const struct hv_schedule_row *row = NULL;
    return hv_schedule_find(p->schedule.name, &row, NULL) == HV_OK &&
           (row->flags & HV_SCHEDULE_BY_COST) != 0;
}

/** Seconds of an iteration with the faster part; HV_UNKNOWN where it cannot be timed. */
static enum hv_status try_part(struct hv_cost *k, const struct hv_plan *p,
                               const struct hv_cluster_part *part, struct hv_eval_watch *watch,
                               double *iteration_s, struct hv_err *err)
{
    struct hv_arena arena = {0};
    struct hv_verdict v = {.metrics = {.iteration_s = HV_UNKNOWN}};
    struct hv_err unheard = {0};
    struct hv_cluster *faster = hv_cluster_faster(p->cluster, part, HV_SLOWER_TIMES);
    struct hv_cost *cost =
        hv_cost_new(faster, (struct hv_model *)(uintptr_t)hv_cost_model(k), hv_cost_job(k));
    const struct hv_eval_options o = {.no_bound = true};
    enum hv_status st = hv_eval(cost, p, &o, &arena, &v, &unheard);
    *iteration_s = st == HV_OK ? v.metrics.iteration_s : HV_UNKNOWN;
    hv_cost_free(cost);
    hv_cluster_unref(faster);
    hv_arena_free(&arena);
    bool stop = watch != NULL && atomic_load(&watch->stop);
    return stop ? hv_err_set(err, HV_ESTOPPED, "stopped") : HV_OK;
}

static const char *text_of(const struct hv_plan *p, const struct hv_cluster_part *part,
                           double before_s, double after_s, struct hv_arena *arena)
{
    char was[HV_FMT_CAP], now[HV_FMT_CAP], more[HV_FMT_CAP];
    struct hv_str name = {0};
    hv_cluster_part_text(p->cluster, part, &name);
    const char *text = hv_arena_printf(
        arena,
        "list scheduling: with %s %d times as fast this plan takes %s longer (%s instead of %s), "
        "since %s",
        hv_str_cstr(&name), HV_SLOWER_TIMES,
        hv_fmt_percent(more, sizeof more, after_s / before_s - 1),
        hv_fmt_seconds(now, sizeof now, after_s), hv_fmt_seconds(was, sizeof was, before_s),
        derives_order(p)
            ? "its schedule derives the order of operations from their times, and transfers that "
              "share links come at other times"
            : "transfers and reductions share links, and one that is ready earlier delays another "
              "that more operations wait for");
    hv_str_free(&name);
    return text;
}

static int longest_first(const void *a, const void *b)
{
    double x = ((const struct hv_slower *)a)->iteration_s,
           y = ((const struct hv_slower *)b)->iteration_s;
    return (x < y) - (x > y);
}

enum hv_status hv_eval_slower(struct hv_cost *k, const struct hv_plan *p, double iteration_s,
                              struct hv_eval_watch *watch, struct hv_arena *arena,
                              struct hv_slower **out, size_t *n_out, struct hv_err *err)
{
    struct hv_cluster_part *parts = NULL;
    *out = NULL;
    *n_out = 0;
    if (p->mode != HV_MODE_TRAIN || p->n_jobs > 0 || !hv_known(iteration_s)) {
        return HV_OK;
    }
    struct used u = used_by(p, arena);
    if (u.n_nodes < 2 && !derives_order(p)) {
        return HV_OK;
    }
    size_t n = hv_cluster_parts(p->cluster, arena, &parts), found = 0;
    struct hv_slower *list = hv_arena_new(arena, struct hv_slower, SLOWER_TRIALS);
    enum hv_status st = HV_OK;
    int trials = 0;
    for (size_t i = 0; i < n && st == HV_OK; i++) {
        double after_s = HV_UNKNOWN;
        if (!uses(&u, &parts[i]) || trials >= SLOWER_TRIALS || trials * u.work > SLOWER_WORK) {
            continue;
        }
        trials++;
        st = try_part(k, p, &parts[i], watch, &after_s, err);
        if (after_s > iteration_s * (1 + HV_SLOWER_FRAC)) {
            list[found++] =
                (struct hv_slower){after_s, text_of(p, &parts[i], iteration_s, after_s, arena)};
        }
    }
    qsort(list, found, sizeof *list, longest_first);
    *out = list;
    *n_out = found;
    return st;
}
