/** Targets of gates against the experts, the ranks and the job's routing. */
#include "solver/eval/not_simulated.h"

#include <stdlib.h>

#include "solver/base/units.h"
#include "solver/plan/experts.h"
#include "solver/workload/router.h"

/** Knobs of experts of a block, and how many there are. */
struct gate {
    size_t replica, stage;
    const struct hv_moe_knobs *m;
    int ep, experts, top_k;
};

/** Fills in the experts of a block; false: it has none. Of measured layers that leave the number
 * open, one per rank. */
static bool find_experts(const struct hv_model *m, size_t block, struct gate *g)
{
    if (m == NULL || block >= m->n_blocks || !hv_model_has_experts(m, block)) {
        return false;
    }
    if (m->kind == HV_MODEL_LAYERS) {
        const struct hv_measured_pieces *p = &m->measured[block].pieces;
        g->experts = p->experts > 0 ? p->experts : g->ep;
        g->top_k = p->top_k;
        return true;
    }
    g->experts = m->blocks[block].experts;
    g->top_k = m->blocks[block].top_k;
    return true;
}

/** A row of the target, against the experts that every rank holds. */
static enum hv_status check_row(const struct gate *g, const double *held, size_t row,
                                struct hv_err *err)
{
    const double *to = g->m->target + row * g->m->n_target;
    double sum = 0;
    for (size_t r = 0; r < g->m->n_target; r++) {
        sum += to[r];
    }
    if (!(sum > 0)) {
        return hv_err_set(err, HV_ENO,
                          "replicas[%zu].stages[%zu].moe.target[%zu]: tokens of rank %zu go "
                          "nowhere; give a number above 0",
                          g->replica, g->stage, row, row);
    }
    for (size_t r = 0; r < g->m->n_target; r++) {
        double most = held[r] / g->top_k;
        if (to[r] > 0 && to[r] / sum > most * (1 + 1e-9)) {
            return hv_err_set(err, HV_ENO,
                              "replicas[%zu].stages[%zu].moe.target[%zu][%zu]: %.3g of the tokens "
                              "of rank %zu, and the %.0f expert%s of rank %zu can have %.3g: no "
                              "token goes to one of its %d experts twice",
                              g->replica, g->stage, row, r, to[r] / sum, row, held[r],
                              held[r] > 1 || held[r] < 1 ? "s" : "", r, most, g->top_k);
        }
    }
    return HV_OK;
}

static enum hv_status check_target(const struct gate *g, const struct hv_job *job,
                                   struct hv_err *err)
{
    if (g->m->n_target != (size_t)g->ep) {
        return hv_err_set(err, HV_ENO,
                          "replicas[%zu].stages[%zu].moe.target: %zu rows, and the "
                          "expert-parallel group has %d ranks; give a row for each",
                          g->replica, g->stage, g->m->n_target, g->ep);
    }
    if (!hv_router_is_even(job->routing)) {
        return hv_err_set(err, HV_ENO,
                          "replicas[%zu].stages[%zu].moe.target: says where tokens go, and so does "
                          "the job's routing (%s); leave one of them out, or give off_node_frac, "
                          "which limits what the routing asks for",
                          g->replica, g->stage, hv_router_name(job->routing->kind));
    }
    enum hv_status st = HV_OK;
    double *held = hv_xcalloc((size_t)g->ep, sizeof *held);
    for (int e = 0; e < g->experts; e++) {
        held[hv_expert_owner(g->m, g->experts, g->ep, e)]++;
    }
    for (size_t r = 0; st == HV_OK && r < g->m->n_target; r++) {
        st = check_row(g, held, r, err);
    }
    free(held);
    return st;
}

/** Products with a one-hot tensor: of tokens with as many places at every expert. */
static enum hv_status check_one_hot(const struct gate *g, const struct hv_stage *s,
                                    const struct hv_model *m, struct hv_err *err)
{
    bool padded = g->m->kernel == HV_MOE_PADDED;
    bool places = padded || (g->m->kernel == HV_MOE_GROUPED && g->m->capacity_factor > 0);
    const struct {
        bool given;
        const char *why;
    } rows[] = {
        {!places, "one_hot with kernels that have no places; give kernel padded, or grouped with a "
                  "capacity_factor"},
        {g->m->move == HV_MOE_EXPERTS,
         "one_hot with experts that move to the tokens; leave \"move\" "
         "out"},
        {s->tp.degree > 1 && s->tp.scheme != HV_TP_1D,
         "one_hot on a grid of tensor-parallel ranks; take scheme 1d"},
        {m->kind == HV_MODEL_LAYERS,
         "one_hot in a model of measured layers, whose times hold the dispatch; leave it out"},
    };
    for (size_t i = 0; i < HV_COUNT(rows); i++) {
        if (rows[i].given) {
            return hv_err_set(err, HV_ENO,
                              "not simulated: replicas[%zu].stages[%zu].moe.dispatch: %s",
                              g->replica, g->stage, rows[i].why);
        }
    }
    return HV_OK;
}

static enum hv_status check_stage(struct gate *g, const struct hv_stage *s,
                                  const struct hv_model *whole, const struct hv_job *job,
                                  struct hv_err *err)
{
    const struct hv_model *m = hv_stage_model(whole, s);
    const struct hv_moe_knobs *seen = NULL;
    for (size_t k = 0; s->n_moe > 0 && k < s->n_ranges; k++) {
        for (int b = s->ranges[k].from2 / 2; 2 * b < s->ranges[k].to2; b++) {
            g->m = b >= 0 ? hv_stage_moe(s, (size_t)b) : NULL;
            bool one_hot = g->m != NULL && g->m->dispatch == HV_MOE_ONE_HOT;
            if (g->m == NULL || g->m == seen || (g->m->n_target == 0 && !one_hot)) {
                continue;
            }
            g->ep = hv_moe_ep(s, g->m);
            bool target = g->m->n_target > 0 && g->ep > 1;
            if (!(target || one_hot) || !find_experts(m, (size_t)b, g)) {
                continue;
            }
            seen = g->m;
            enum hv_status st = one_hot ? check_one_hot(g, s, m, err) : HV_OK;
            st = st == HV_OK && target ? check_target(g, job, err) : st;
            if (st != HV_OK) {
                return st;
            }
        }
    }
    return HV_OK;
}

enum hv_status hv__refuse_gates(const struct hv_plan *p, const struct hv_model *m,
                                const struct hv_job *job, struct hv_err *err)
{
    struct gate g = {0};
    for (g.replica = 0; g.replica < p->n_replicas; g.replica++) {
        const struct hv_replica *r = &p->replicas[g.replica];
        for (g.stage = 0; g.stage < r->n_stages; g.stage++) {
            enum hv_status st = check_stage(&g, &r->stages[g.stage], m, job, err);
            if (st != HV_OK) {
                return st;
            }
        }
    }
    return HV_OK;
}
