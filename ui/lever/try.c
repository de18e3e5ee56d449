/*
 * Trials: copies of the session's documents with some levers changed are built, evaluated and
 * freed; or the changes are applied as edits.
 */
#include "ui/lever/lever_int.h"

#include "solver/base/units.h"
#include <stdio.h>
#include <stdlib.h>

struct hv_figures hv_figures_of(const struct hv_verdict *v)
{
    const struct hv_metrics *m = &v->metrics;
    struct hv_figures f = {
        .iteration_s = m->iteration_s,
        .tokens_per_s = m->tokens_per_s,
        .expected_per_s = v->goodput.known ? v->goodput.tokens_per_s : HV_UNKNOWN,
        .expected_usd = v->goodput.known ? v->goodput.usd_per_mtoken : HV_UNKNOWN,
        .usd_per_mtoken = m->usd_per_mtoken,
        .usd_per_h = m->usd_per_h,
        .peak_frac = HV_UNKNOWN,
        .bubble_frac = m->bubble_frac,
        .mfu = m->mfu,
        .bound_s = m->bound_s,
        .exact = m->exact,
        .n_violations = v->findings.n};
    for (size_t i = 0; i < v->n_memory; i++) {
        double frac = v->memory[i].peak_bytes / v->memory[i].limit_bytes;
        if (hv_known(frac) && !(frac <= f.peak_frac)) {
            f.peak_frac = frac;
        }
    }
    if (v->findings.n > 0) {
        (void)snprintf(f.violation, sizeof f.violation, "%s", v->findings.items[0].text);
    }
    return f;
}

static void drop(struct hv__trial *t)
{
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        json_decref(t->tree[d]);
    }
    json_decref(t->plan);
}

/* The session's tree of a document, to be shared. */
static json_t *tree_of(const struct hv_session *s, enum hv_doc d)
{
    return (json_t *)(uintptr_t)hv_session_tree(s, d);
}

/* Starts from the present documents, then applies every lever that is not at its base. */
static enum hv_status set_up(struct hv_session *s, const struct hv_levers *l, const double *values,
                             struct hv__trial *t, struct hv_err *err)
{
    *t = (struct hv__trial){.s = s, .levers = l, .err = err};
    t->base = hv_session_plan(s, l->row, err);
    if (t->base == NULL) {
        return HV_ENO;
    }
    for (int d = 0; d < HV_DOC_INPUTS; d++) {
        t->tree[d] = json_incref(tree_of(s, (enum hv_doc)d));
    }
    t->plan = json_incref((json_t *)(uintptr_t)hv_session_row(s, l->row)->plan);
    enum hv_status st = HV_OK;
    for (int last = 0; last < 2;
         last++) { /* a failed node last: it takes replicas out of the tree */
        for (size_t i = 0; st == HV_OK && i < l->n; i++) {
            if ((l->items[i].kind == HV_LEVER_FAILED) == (last == 1) &&
                !hv_lever_is_base(&l->items[i], values[i])) {
                st = hv__trial_turn(t, &l->items[i], values[i]);
            }
        }
    }
    return st;
}

/* The objects built for a trial. Of a document that did not change those of the session are used
 * instead. */
struct built {
    struct hv_cluster_doc cluster;
    struct hv_model_doc model;
    struct hv_job_doc job;
    struct hv_plan_doc plan;
    struct hv_cost *cost; /* NULL: the session's */
    struct hv_arena arena;
};

static void built_free(struct built *b)
{
    hv_cost_free(b->cost);
    hv_plan_doc_free(&b->plan);
    hv_job_doc_free(&b->job);
    hv_model_doc_free(&b->model);
    hv_cluster_doc_free(&b->cluster);
    hv_arena_free(&b->arena);
}

static struct hv_json as_json(json_t *tree, const char *name)
{
    struct hv_json json = {0};
    hv_json_wrap(&json, json_incref(tree), name);
    return json;
}

static enum hv_status build(const struct hv__trial *t, struct built *b, struct hv_err *err)
{
    struct hv_session *s = t->s;
    bool cluster = t->tree[HV_DOC_CLUSTER] != tree_of(s, HV_DOC_CLUSTER);
    bool job = t->tree[HV_DOC_JOB] != tree_of(s, HV_DOC_JOB);
    struct hv_model *model = hv_session_model(s)->model;
    enum hv_status st = HV_OK;
    if (cluster) {
        st = hv_cluster_doc_build(&b->cluster, as_json(t->tree[HV_DOC_CLUSTER], "cluster"),
                                  hv_session_devices(s), err);
    }
    if (st == HV_OK && job) {
        st = hv_job_doc_build(&b->job, as_json(t->tree[HV_DOC_JOB], "job"), model->max_sequence,
                              err);
    }
    struct hv_cluster *c = cluster ? b->cluster.cluster : hv_session_cluster(s)->cluster;
    if (st == HV_OK) {
        st = hv_plan_doc_build(&b->plan, as_json(t->plan, "plan"), c, err);
    }
    if (st == HV_OK && (cluster || job)) {
        b->cost = hv_cost_new(c, model, job ? &b->job.job : &hv_session_job(s)->job);
    }
    return st;
}

struct hv_trial {
    struct built built;
    struct hv_verdict verdict;
};

enum hv_status hv_trial_new(struct hv_session *s, const struct hv_levers *l, const double *values,
                            bool timeline, struct hv_trial **out, struct hv_err *err)
{
    struct hv__trial t;
    struct hv_trial *kept = hv_xcalloc(1, sizeof *kept);
    enum hv_status st = set_up(s, l, values, &t, err);
    *out = NULL;
    if (st == HV_OK) {
        st = build(&t, &kept->built, err);
    }
    if (st == HV_OK) {
        struct hv_eval_options o = {.timeline = timeline, .no_bound = !timeline};
        struct built *b = &kept->built;
        st = hv_eval(b->cost != NULL ? b->cost : hv_session_cost(s), b->plan.plan, &o, &b->arena,
                     &kept->verdict, err);
    }
    drop(&t);
    if (st == HV_OK) {
        *out = kept;
    } else {
        hv_trial_free(kept);
    }
    return st;
}

const struct hv_verdict *hv_trial_verdict(const struct hv_trial *t)
{
    return &t->verdict;
}

const struct hv_plan *hv_trial_plan(const struct hv_trial *t)
{
    return t->built.plan.plan;
}

void hv_trial_free(struct hv_trial *t)
{
    if (t == NULL) {
        return;
    }
    built_free(&t->built);
    free(t);
}

enum hv_status hv_levers_try(struct hv_session *s, const struct hv_levers *l, const double *values,
                             bool bound, struct hv_figures *out, struct hv_err *err)
{
    struct hv__trial t;
    struct built b = {0};
    struct hv_verdict v;
    *out = (struct hv_figures){0};
    enum hv_status st = set_up(s, l, values, &t, err);
    if (st == HV_OK) {
        st = build(&t, &b, err);
    }
    if (st == HV_OK) {
        struct hv_eval_options o = {.no_bound = !bound, .failures = true};
        st = hv_eval(b.cost != NULL ? b.cost : hv_session_cost(s), b.plan.plan, &o, &b.arena, &v,
                     err);
    }
    if (st == HV_OK) {
        *out = hv_figures_of(&v);
    }
    built_free(&b);
    drop(&t);
    return st;
}

/* "what-if: v nodes 4, global batch 256". Owner: caller. */
static char *label_of(const struct hv_levers *l, const double *values)
{
    struct hv_str text = {0};
    hv_str_adds(&text, "what-if:");
    for (size_t i = 0; i < l->n; i++) {
        if (!hv_lever_is_base(&l->items[i], values[i])) {
            hv_str_addf(&text, "%s %s ", text.n > 8 ? "," : "", l->items[i].name);
            hv_lever_text(&l->items[i], values[i], &text);
        }
    }
    return text.p;
}

static enum hv_status accept_plan(struct hv__trial *t, const char *label, struct hv_str *said,
                                  struct hv_err *err)
{
    uint32_t id = 0;
    struct hv_str name = {0};
    hv_str_addf(&name, "%s-what-if", hv_session_row(t->s, t->levers->row)->name);
    json_object_set_new(t->plan, "name", json_string(hv_str_cstr(&name)));
    enum hv_status st =
        hv_session_row_add_step(t->s, hv_str_cstr(&name), json_incref(t->plan), label, &id, err);
    hv_str_free(&name);
    if (st != HV_OK) {
        return st;
    }
    hv_session_select(t->s, id);
    hv_str_addf(said, "%splan %s", said->n > 0 ? ", " : "", hv_session_row(t->s, id)->name);
    return HV_OK;
}

enum hv_status hv_levers_accept(struct hv_session *s, const struct hv_levers *l,
                                const double *values, struct hv_str *said, struct hv_err *err)
{
    struct hv__trial t;
    struct built b = {0};
    enum hv_status st = set_up(s, l, values, &t, err);
    if (st == HV_OK) {
        st = build(&t, &b, err); /* where that fails nothing is edited */
    }
    char *label = label_of(l, values);
    for (int d = 0; st == HV_OK && d < HV_DOC_INPUTS; d++) {
        if (!json_equal(t.tree[d], tree_of(s, (enum hv_doc)d))) {
            st = hv_session_replace(s, (enum hv_doc)d, json_incref(t.tree[d]), label, err);
            if (st == HV_OK) {
                hv_str_addf(said, "%s%s", said->n > 0 ? ", " : "", hv_doc_name((enum hv_doc)d));
            }
        }
    }
    if (st == HV_OK && t.plan_changed) {
        st = accept_plan(&t, label, said, err);
    }
    free(label);
    built_free(&b);
    drop(&t);
    return st;
}
