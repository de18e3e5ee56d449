/* Collects from the cost model the terms behind its figures. No figure is computed here. */
#include "solver/eval/explain.h"

#include "solver/base/units.h"
#include "solver/eval/not_simulated.h"
#include "solver/eval/train/steps.h"

/* State of an explanation. */
struct job {
    struct hv_cost *k;
    struct hv_stage_query q;
    struct hv_arena *arena;
    struct hv_explained *chapters;
    size_t n;
};

static void add_chapter(struct job *j, const char *title, const struct hv_why *why)
{
    j->chapters[j->n++] = (struct hv_explained){title, why->terms, why->n};
}

static enum hv_status explain_chunk(struct job *j, size_t chunk, size_t n_chunks,
                                    struct hv_err *err)
{
    char f[HV_FMT_CAP], b[HV_FMT_CAP], a[HV_FMT_CAP];
    struct hv_why why = {.arena = j->arena};
    struct hv_pass pass;
    j->q.chunk = chunk;
    j->q.why = &why;
    enum hv_status st = hv_cost_pass(j->k, &j->q, &pass, err);
    if (st != HV_OK) {
        return st;
    }
    double backward_s = pass.input_grad_s + pass.weight_grad_s + pass.recompute_s;
    add_chapter(j,
                hv_arena_printf(
                    j->arena,
                    "one micro-batch, chunk %zu of %zu: forward %s, backward %s, activations %s",
                    chunk + 1, n_chunks, hv_fmt_seconds(f, sizeof f, pass.forward_s),
                    hv_fmt_seconds(b, sizeof b, backward_s),
                    hv_fmt_bytes(a, sizeof a, pass.activation_bytes)),
                &why);
    return HV_OK;
}

static enum hv_status explain_hop(struct job *j, struct hv_err *err)
{
    const struct hv_replica *r = j->q.replica;
    const struct hv_stage *s = &r->stages[j->q.stage];
    if (j->q.stage + 1 >= r->n_stages) {
        return HV_OK;
    }
    const struct hv_stage *next = s + 1;
    struct hv_why why = {.arena = j->arena};
    struct hv_pass pass;
    char t[HV_FMT_CAP];
    j->q.why = NULL;
    j->q.chunk = 0;
    enum hv_status st = hv_cost_pass(j->k, &j->q, &pass, err);
    if (st == HV_OK) {
        double dp = s->dp > 1 ? s->dp : 1;
        double time_s =
            hv_cost_hop(hv_cost_cluster(j->k), s->devices, hv_stage_ranks(r, s), next->devices,
                        hv_stage_ranks(r, next), dp * pass.hop_bytes, &why);
        add_chapter(j,
                    hv_arena_printf(j->arena, "transfer to stage %zu: %s", j->q.stage + 1,
                                    hv_fmt_seconds(t, sizeof t, time_s)),
                    &why);
    }
    return st;
}

static enum hv_status explain_memory(struct job *j, struct hv_err *err)
{
    char t[HV_FMT_CAP], l[HV_FMT_CAP];
    struct hv_why why = {.arena = j->arena};
    struct hv_memory m;
    j->q.why = &why;
    enum hv_status st = hv_cost_memory(j->k, &j->q, &m, err);
    if (st == HV_OK) {
        double states = m.weights_bytes + m.gradients_bytes + m.master_bytes + m.optimizer_bytes;
        add_chapter(j,
                    hv_arena_printf(j->arena, "static memory: states %s, device limit %s",
                                    hv_fmt_bytes(t, sizeof t, states),
                                    hv_fmt_bytes(l, sizeof l, m.limit_bytes)),
                    &why);
    }
    return st;
}

enum hv_status hv_eval_explain(struct hv_cost *k, const struct hv_plan *p, size_t replica,
                               size_t stage, struct hv_arena *arena, struct hv_explained **out,
                               size_t *n_out, struct hv_err *err)
{
    if (replica >= p->n_replicas || stage >= p->replicas[replica].n_stages) {
        return hv_err_set(err, HV_ENO,
                          "the plan has no stage %zu of replica %zu: it has %zu replica%s, and "
                          "this replica has %zu stages",
                          stage, replica, p->n_replicas, p->n_replicas == 1 ? "" : "s",
                          replica < p->n_replicas ? p->replicas[replica].n_stages : 0);
    }
    enum hv_status st = hv__refuse_gates(p, hv_cost_model(k), hv_cost_job(k), err);
    st = st == HV_OK ? hv__refuse_unsimulated(p, hv_cost_model(k), arena, err) : st;
    p = hv__meshed_plan(p, hv_cost_model(k), arena);
    const struct hv_replica *r = &p->replicas[replica];
    size_t n_chunks = r->stages[stage].n_ranges;
    struct job j = {
        .k = k,
        .q = {.plan = p,
              .replica = r,
              .stage = stage,
              .copies_apart = p->mode != HV_MODE_SERVE && hv_stage_copies_apart(&r->stages[stage])},
        .arena = arena};
    j.chapters = hv_arena_new(arena, struct hv_explained, n_chunks + 2);
    for (size_t c = 0; st == HV_OK && c < n_chunks; c++) {
        st = explain_chunk(&j, c, n_chunks, err);
    }
    if (st == HV_OK) {
        st = explain_hop(&j, err);
    }
    if (st == HV_OK) {
        st = explain_memory(&j, err);
    }
    *out = j.chapters;
    *n_out = j.n;
    return st;
}
