/*
 * Reads a plan document: the top level, replicas and jobs. Stages, sync and the rest are in the
 * other plan_*_file.c; reading a plan together with its inputs is in solver/io/own/inputs.c.
 */
#include "solver/base/units.h"
#include "solver/base/vec.h"
#include "solver/io/own/doc/docs.h"
#include "solver/io/own/plan/read.h"
#include <stdlib.h>
#include <string.h>

/* Stages of a replica are bounded because finding a cycle takes quadratic time at worst. */
enum { JOBS_NESTED_MAX = 1, STAGES_MAX = 1 << 14 };

static enum hv_status read_plan(struct hv_plan_reader *rd, const struct hv_jp *p, int depth,
                                struct hv_err *err);

/* Lengths of the documents of a micro-batch; they fit into its tokens. */
static enum hv_status read_documents(struct hv_plan_reader *rd, const struct hv_jp *item,
                                     struct hv_micro_batch *m, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(item, "documents");
    int64_t sum = 0;
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_plan_read_ints(rd, &p, 1, 1 << 30, &m->documents, &m->n_documents, err));
    for (size_t i = 0; i < m->n_documents; i++) {
        sum += m->documents[i];
    }
    if (m->tokens > 0 && sum > m->tokens) {
        return hv_jp_fail(&p, err,
                          "documents of %lld tokens in a micro-batch of %lld: leave some out, or "
                          "give more \"tokens\"",
                          (long long)sum, (long long)m->tokens);
    }
    return HV_OK;
}

static enum hv_status read_item(struct hv_plan_reader *rd, const struct hv_jp *p,
                                struct hv_micro_batch *m, struct hv_err *err)
{
    HV_TRY(hv_plan_read_object(p, HV_PLAN_OBJECT_micro_batch_item, err));
    m->sequences = 1;
    HV_TRY(hv_jp_opt_int(p, "sequences", 1, HV_PLAN_BATCH_MAX, &m->sequences, err));
    HV_TRY(hv_jp_opt_int(p, "tokens", 0, (int64_t)1 << 40, &m->tokens, err));
    HV_TRY(read_documents(rd, p, m, err));
    struct hv_jp scale = hv_jp_get(p, "scale");
    if (hv_jp_none(&scale)) {
        return HV_OK;
    }
    if (!json_is_object(scale.v)) {
        return hv_jp_expected(&scale, err, "an object { module: factor }");
    }
    m->modules = hv_arena_new(rd->arena, const char *, json_object_size(scale.v));
    m->scales = hv_arena_new(rd->arena, double, json_object_size(scale.v));
    const char *module = NULL;
    json_t *v = NULL;
    json_object_foreach(scale.v, module, v)
    {
        struct hv_jp e = hv_jp_get(&scale, module);
        m->modules[m->n_scales] = hv_arena_strdup(rd->arena, module);
        HV_TRY(hv_jp_number(&e, 0, HUGE_VAL, &m->scales[m->n_scales++], err));
    }
    return HV_OK;
}

static enum hv_status read_micro_batches(struct hv_plan_reader *rd, const struct hv_jp *replica,
                                         struct hv_replica *r, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(replica, "micro_batches");
    r->micro_batches = 1;
    if (rd->plan->mode == HV_MODE_SERVE && hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(
        hv_jp_need(replica, "micro_batches", "their number or a list of { sequences }", &p, err));
    if (!json_is_array(p.v)) {
        return hv_jp_int(&p, 1, HV_PLAN_MICRO_BATCHES_MAX, &r->micro_batches, err);
    }
    size_t n = json_array_size(p.v);
    if (n == 0) {
        return hv_jp_expected(&p, err, "at least one micro-batch");
    }
    r->micro_batches = (int64_t)n;
    r->list = hv_arena_new(rd->arena, struct hv_micro_batch, n);
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        HV_TRY(read_item(rd, &e, &r->list[i], err));
    }
    return HV_OK;
}

/* Cycles of stages: finds a stage on a cycle by removing those without open inputs. */
static enum hv_status check_cycle(const struct hv_jp *stages, const struct hv_replica *r,
                                  struct hv_err *err)
{
    bool *done = hv_xcalloc(r->n_stages, sizeof *done);
    size_t left = r->n_stages;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t i = 0; i < r->n_stages; i++) {
            const struct hv_stage *s = &r->stages[i];
            bool ready = !done[i] && (s->n_after != -1 || i == 0 || done[i - 1]);
            for (int k = 0; ready && k < s->n_after; k++) {
                ready = done[s->after[k]];
            }
            if (ready) {
                done[i] = moved = true;
                left--;
            }
        }
    }
    size_t first = 0;
    while (first < r->n_stages && done[first]) {
        first++;
    }
    free(done);
    if (left == 0) {
        return HV_OK;
    }
    struct hv_jp at = hv_jp_at(stages, first);
    return hv_jp_fail(&at, err,
                      "expected stages that feed each other without a cycle, found stage "
                      "%zu waiting for itself; change its \"after\"",
                      first);
}

static enum hv_status read_replica(struct hv_plan_reader *rd, const struct hv_jp *p,
                                   struct hv_replica *r, struct hv_err *err)
{
    r->count = 1;
    HV_TRY(hv_plan_read_object(p, HV_PLAN_OBJECT_replica, err));
    HV_TRY(hv_plan_read_int(p, "count", 1, HV_PLAN_DEGREE_MAX, &r->count, err));
    HV_TRY(hv_plan_read_int(p, "micro_batch", 1, HV_PLAN_BATCH_MAX, &r->micro_batch, err));
    HV_TRY(read_micro_batches(rd, p, r, err));
    struct hv_jp stages;
    HV_TRY(hv_jp_need(p, "stages", "a list of stages", &stages, err));
    HV_TRY(hv_jp_array(&stages, &r->n_stages, err));
    if (r->n_stages == 0) {
        return hv_jp_expected(&stages, err, "at least one stage");
    }
    if (r->n_stages > STAGES_MAX) {
        return hv_jp_fail(&stages, err, "expected at most %d stages, found %zu", STAGES_MAX,
                          r->n_stages);
    }
    r->stages = hv_arena_new(rd->arena, struct hv_stage, r->n_stages);
    for (size_t i = 0; i < r->n_stages; i++) {
        struct hv_jp e = hv_jp_at(&stages, i);
        HV_TRY(hv_plan_read_stage(rd, &e, r->n_stages, i, &r->stages[i], err));
    }
    return check_cycle(&stages, r, err);
}

static enum hv_status read_replicas(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                    struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(plan, "replicas");
    struct hv_plan *pl = rd->plan;
    HV_TRY(hv_jp_array(&p, &pl->n_replicas, err));
    if (pl->n_replicas == 0) {
        return hv_jp_expected(&p, err, "at least one replica");
    }
    pl->replicas = hv_arena_new(rd->arena, struct hv_replica, pl->n_replicas);
    for (size_t i = 0; i < pl->n_replicas; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        HV_TRY(read_replica(rd, &e, &pl->replicas[i], err));
    }
    return HV_OK;
}

/* Arrival, start and length of a job. */
static enum hv_status read_job_times(const struct hv_jp *p, struct hv_plan_job *job,
                                     struct hv_err *err)
{
    HV_TRY(hv_jp_opt_number(p, "arrival_s", 0, HUGE_VAL, &job->arrival_s, err));
    job->start_s = job->arrival_s;
    HV_TRY(hv_jp_opt_number(p, "start_s", 0, HUGE_VAL, &job->start_s, err));
    job->iterations = HV_UNKNOWN;
    HV_TRY(hv_jp_opt_number(p, "iterations", 0, HUGE_VAL, &job->iterations, err));
    struct hv_jp start = hv_jp_get(p, "start_s");
    if (job->start_s < job->arrival_s) {
        return hv_jp_fail(&start, err, "expected no start before the arrival at %g s, found %g",
                          job->arrival_s, job->start_s);
    }
    return HV_OK;
}

/* The earlier job that this one continues. */
static enum hv_status read_continues(const struct hv_jp *p, const struct hv_plan_job *jobs,
                                     size_t i, struct hv_plan_job *job, struct hv_err *err)
{
    struct hv_jp at = hv_jp_get(p, "continues");
    const char *name = NULL;
    job->continues = -1;
    if (hv_jp_none(&at)) {
        return HV_OK;
    }
    HV_TRY(hv_jp_string(&at, &name, err));
    for (size_t k = 0; k < i; k++) {
        if (strcmp(jobs[k].name, name) == 0) {
            job->continues = (int)k;
        }
    }
    if (job->continues < 0) {
        return hv_jp_expected(&at, err, "the name of a job before this one in the list");
    }
    if (!hv_known(jobs[job->continues].iterations)) {
        return hv_jp_fail(&at, err, "job \"%.80s\" has no end: give it iterations", name);
    }
    return HV_OK;
}

static enum hv_status read_job_entry(struct hv_plan_reader *rd, const struct hv_jp *p, int depth,
                                     struct hv_plan_job *job, struct hv_err *err)
{
    HV_TRY(hv_plan_read_object(p, HV_PLAN_OBJECT_job_entry, err));
    struct hv_jp name, plan;
    const char *text = NULL;
    HV_TRY(hv_jp_need(p, "name", "the job's name", &name, err));
    HV_TRY(hv_jp_string(&name, &text, err));
    HV_TRY(hv_jp_need(p, "plan", "the job's plan", &plan, err));
    job->name = hv_arena_strdup(rd->arena, text);
    HV_TRY(read_job_times(p, job, err));
    job->plan = hv_plan_new(rd->cluster);
    struct hv_plan_reader inner = {.plan = job->plan,
                                   .arena = &job->plan->arena,
                                   .cluster = rd->cluster,
                                   .devices_named = rd->devices_named};
    enum hv_status s = read_plan(&inner, &plan, depth + 1, err);
    rd->devices_named = inner.devices_named;
    return s;
}

static enum hv_status read_jobs(struct hv_plan_reader *rd, const struct hv_jp *plan, int depth,
                                struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(plan, "jobs");
    size_t n = 0;
    HV_TRY(hv_jp_array(&p, &n, err));
    if (depth >= JOBS_NESTED_MAX) {
        return hv_jp_expected(&p, err, "replicas: the plan of a job holds no further jobs");
    }
    if (n == 0) {
        return hv_jp_expected(&p, err, "at least one job");
    }
    rd->plan->jobs = hv_arena_new(rd->arena, struct hv_plan_job, n);
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        rd->plan->n_jobs = i + 1; /* also on failure, so that the nested plan is freed */
        HV_TRY(read_job_entry(rd, &e, depth, &rd->plan->jobs[i], err));
        HV_TRY(read_continues(&e, rd->plan->jobs, i, &rd->plan->jobs[i], err));
        for (size_t k = 0; k < i; k++) {
            struct hv_jp name = hv_jp_get(&e, "name");
            if (strcmp(rd->plan->jobs[k].name, rd->plan->jobs[i].name) == 0) {
                return hv_jp_fail(&name, err,
                                  "expected a name of its own, found \"%s\", which is "
                                  "that of job %zu too",
                                  rd->plan->jobs[i].name, k);
            }
        }
    }
    return HV_OK;
}

static enum hv_status read_strategy(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                    struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(plan, "strategy");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_plan_read_object(&p, HV_PLAN_OBJECT_strategy, err));
    struct hv_jp name;
    const char *text = NULL;
    HV_TRY(hv_jp_need(&p, "name", "the strategy's name", &name, err));
    HV_TRY(hv_jp_string(&name, &text, err));
    rd->plan->strategy = hv_arena_strdup(rd->arena, text);
    struct hv_jp options = hv_jp_get(&p, "options");
    if (hv_jp_none(&options)) {
        return HV_OK;
    }
    return hv_plan_read_options(rd, &options, NULL, 0, &rd->plan->strategy_options,
                                &rd->plan->n_strategy_options, err);
}

/* Members that are stored but not interpreted: inputs are names or objects, results are the output
 * of eval. */
static enum hv_status check_kept(const struct hv_jp *plan, struct hv_err *err)
{
    static const char *const inputs[] = {"cluster", "model", "job"};
    for (size_t i = 0; i < HV_COUNT(inputs); i++) {
        struct hv_jp p = hv_jp_get(plan, inputs[i]);
        if (!hv_jp_none(&p) && !json_is_string(p.v) && !json_is_object(p.v)) {
            return hv_jp_expected(&p, err, "a file or catalogue name, or the object itself");
        }
    }
    const char *name = NULL;
    HV_TRY(hv_jp_opt_string(plan, "name", &name, err));
    struct hv_jp simulated = hv_jp_get(plan, "simulated"), found = hv_jp_get(plan, "violations");
    if (!hv_jp_none(&simulated) && !json_is_object(simulated.v)) {
        return hv_jp_expected(&simulated, err, "an object of figures");
    }
    bool stopped = false; /* written by a search that was cut short */
    HV_TRY(hv_jp_opt_bool(plan, "stopped", &stopped, err));
    size_t n = 0;
    return hv_jp_none(&found) ? HV_OK : hv_jp_array(&found, &n, err);
}

static enum hv_status read_plan(struct hv_plan_reader *rd, const struct hv_jp *p, int depth,
                                struct hv_err *err)
{
    HV_TRY(hv_plan_read_object(p, HV_PLAN_OBJECT_plan, err));
    struct hv_jp format = hv_jp_get(p, "format");
    if (depth == 0 || !hv_jp_none(&format)) {
        HV_TRY(hv_jp_format(p, "hetviz.plan/1", err));
    }
    HV_TRY(check_kept(p, err));
    HV_TRY(read_strategy(rd, p, err));
    HV_TRY_WORD(p, "mode", hv_plan_mode, rd->plan->mode);
    HV_TRY_WORD(p, "recovery", hv_recovery, rd->plan->recovery);
    HV_TRY(hv_plan_read_int(p, "micro_batch", 1, HV_PLAN_BATCH_MAX, &rd->plan->micro_batch, err));
    struct hv_jp replicas = hv_jp_get(p, "replicas"), jobs = hv_jp_get(p, "jobs");
    if (hv_jp_none(&replicas) && hv_jp_none(&jobs)) {
        return hv_jp_need(p, "replicas", "a list of replicas, or jobs", &replicas, err);
    }
    if (!hv_jp_none(&replicas) && !hv_jp_none(&jobs)) {
        return hv_jp_expected(&jobs, err, "either replicas or jobs, not both");
    }
    if (hv_jp_none(&replicas)) {
        HV_TRY(read_jobs(rd, p, depth, err));
    } else {
        HV_TRY(read_replicas(rd, p, err));
    }
    HV_TRY(hv_plan_read_schedule(rd, p, err));
    HV_TRY(hv_plan_read_sync(rd, p, err));
    HV_TRY(hv_plan_read_claimed(rd, p, err));
    HV_TRY(hv_jp_opt_number(p, "cache_mark_frac", HV_PLAN_CACHE_MARK_MIN, 1,
                            &rd->plan->cache_mark_frac, err));
    HV_TRY(hv_jp_opt_bool(p, "partial_inference", &rd->plan->partial_inference, err));
    return hv_plan_read_flow(rd, p, err);
}

enum hv_status hv_plan_doc_build(struct hv_plan_doc *out, struct hv_json json,
                                 struct hv_cluster *cluster, struct hv_err *err)
{
    *out = (struct hv_plan_doc){.json = json};
    out->plan = hv_plan_new(cluster);
    struct hv_plan_reader rd = {.plan = out->plan, .arena = &out->plan->arena, .cluster = cluster};
    struct hv_jp root = hv_jp_root(&out->json);
    enum hv_status s = read_plan(&rd, &root, 0, err);
    if (s != HV_OK) {
        hv_plan_doc_free(out);
    }
    return s;
}

void hv_plan_doc_free(struct hv_plan_doc *d)
{
    hv_plan_unref(d->plan);
    hv_json_free(&d->json);
    free(d->path);
    *d = (struct hv_plan_doc){0};
}
