/** Plans under stress: judged again on a cluster with slow links; memory and a slow node by
 * arithmetic. */
#include "solver/eval/stress/stress.h"

#include "solver/base/units.h"
#include "solver/inventory/faster.h"

#include <math.h>

/** Judges the plan on a cluster whose links are slow. */
static enum hv_status with_slow_links(struct hv_cost *k, const struct hv_plan *p,
                                      struct hv_eval_watch *watch, double *iteration_s,
                                      struct hv_err *err)
{
    struct hv_arena arena = {0};
    struct hv_verdict v = {0};
    struct hv_cluster *slow = hv_cluster_slow_links(p->cluster, HV_STRESS_EXCHANGE);
    struct hv_cost *cost =
        hv_cost_new(slow, (struct hv_model *)(uintptr_t)hv_cost_model(k), hv_cost_job(k));
    const struct hv_eval_options o = {.no_bound = true};
    enum hv_status st = hv_eval(cost, p, &o, &arena, &v, err);
    *iteration_s = st == HV_OK ? v.metrics.iteration_s : HV_UNKNOWN;
    hv_cost_free(cost);
    hv_cluster_unref(slow);
    hv_arena_free(&arena);
    bool stop = watch != NULL && atomic_load(&watch->stop);
    return stop ? hv_err_set(err, HV_ESTOPPED, "stopped") : st;
}

static void find_fullest(const struct hv_verdict *v, struct hv_stress *out)
{
    for (size_t i = 0; i < v->n_memory; i++) {
        const struct hv_stage_memory *m = &v->memory[i];
        double full = HV_STRESS_MEMORY * m->peak_bytes / m->limit_bytes;
        if (full > out->memory_frac) {
            out->memory_frac = full;
            out->fullest = i;
        }
    }
}

static void find_busiest(const struct hv_verdict *v, struct hv_stress *out)
{
    for (size_t i = 0; i < v->n_stages; i++) {
        out->busiest =
            v->stages[i].busy_frac > v->stages[out->busiest].busy_frac ? i : out->busiest;
    }
}

enum hv_status hv_eval_stress(struct hv_cost *k, const struct hv_plan *p,
                              const struct hv_verdict *v, struct hv_eval_watch *watch,
                              struct hv_stress *out, struct hv_err *err)
{
    double before_s = v->metrics.iteration_s;
    *out = (struct hv_stress){0};
    if (p->mode != HV_MODE_TRAIN || p->n_jobs > 0 || !hv_known(before_s) || v->n_stages == 0) {
        return hv_err_set(err, HV_ENO,
                          "only training plans with an iteration time have a time "
                          "under stress");
    }
    enum hv_status st = with_slow_links(k, p, watch, &out->exchange_s, err);
    if (st != HV_OK) {
        return st;
    }
    find_fullest(v, out);
    find_busiest(v, out);
    double busy = fmin(v->stages[out->busiest].busy_frac, 1);
    out->node_s = before_s * (1 + (HV_STRESS_NODE - 1) * busy);
    out->worst_s = fmax(out->exchange_s, out->node_s);
    out->worst_frac = fmax(out->worst_s / before_s - 1, 0);
    if (out->memory_frac > 1) {
        out->worst_s = HV_UNKNOWN;
        out->worst_frac = HUGE_VAL;
    }
    return HV_OK;
}

/** Memory of a kind of which a plan can use a tenth less. */
static double less_memory(const struct hv_job *job, const struct hv_device_kind *kind)
{
    if (!hv_known(job->memory_reserve_bytes)) {
        return kind->memory_bytes / HV_STRESS_MEMORY; /* the reserve is a share of it */
    }
    return job->memory_reserve_bytes +
           (kind->memory_bytes - job->memory_reserve_bytes) / HV_STRESS_MEMORY;
}

struct hv_cost *hv_stress_cost(const struct hv_cost *k, struct hv_cluster **cluster)
{
    const struct hv_cluster *now = hv_cost_cluster(k);
    struct hv_cluster *c =
        hv_cluster_slow_links((struct hv_cluster *)(uintptr_t)now, HV_STRESS_EXCHANGE);
    for (size_t i = 0; i < c->n_kinds; i++) {
        hv_cluster_set_memory(c, i, less_memory(hv_cost_job(k), c->kinds[i]));
    }
    *cluster = c;
    return hv_cost_new(c, (struct hv_model *)(uintptr_t)hv_cost_model(k), hv_cost_job(k));
}

bool hv_stress_is_robust(const struct hv_stress *s)
{
    return s->worst_frac <= HV_STRESS_ROBUST;
}

const char *hv_stress_worst_name(const struct hv_stress *s)
{
    return s->memory_frac > 1           ? "memory 10% larger"
           : s->exchange_s >= s->node_s ? "exchange 2x slower"
                                        : "a node 5% slower";
}
