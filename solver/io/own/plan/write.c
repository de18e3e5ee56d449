/*
 * Writes a plan as a JSON tree: everything but the stages, which are in write_stage.c.
 */
#include "solver/io/own/plan/write.h"

#include "solver/base/json/json.h"
#include "solver/base/units.h"
#include <string.h>

static void put_options(json_t *o, const struct hv_option *options, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_object_set_new(o, options[i].key, hv_option_to_json(options[i].value));
    }
}

static void put_strategy(json_t *o, const struct hv_plan *p)
{
    if (p->strategy == NULL) {
        return;
    }
    json_t *s = json_object(), *options = json_object();
    json_object_set_new(s, "name", json_string(p->strategy));
    put_options(options, p->strategy_options, p->n_strategy_options);
    if (p->n_strategy_options > 0) {
        json_object_set(s, "options", options);
    }
    json_decref(options);
    json_object_set_new(o, "strategy", s);
}

static json_t *micro_batch(const struct hv_micro_batch *m)
{
    json_t *o = json_object();
    json_object_set_new(o, "sequences", json_integer((json_int_t)m->sequences));
    if (m->tokens > 0) {
        json_object_set_new(o, "tokens", json_integer((json_int_t)m->tokens));
    }
    if (m->n_documents > 0) {
        json_t *list = json_array();
        for (size_t i = 0; i < m->n_documents; i++) {
            json_array_append_new(list, json_integer(m->documents[i]));
        }
        json_object_set_new(o, "documents", list);
    }
    if (m->n_scales > 0) {
        json_t *scale = json_object();
        for (size_t i = 0; i < m->n_scales; i++) {
            json_object_set_new(scale, m->modules[i], hv_json_num(m->scales[i]));
        }
        json_object_set_new(o, "scale", scale);
    }
    return o;
}

static json_t *replica(const struct hv_plan *p, const struct hv_replica *r)
{
    json_t *o = json_object(), *stages = json_array();
    if (r->count != 1) {
        json_object_set_new(o, "count", json_integer(r->count));
    }
    if (r->micro_batch > 0) {
        json_object_set_new(o, "micro_batch", json_integer(r->micro_batch));
    }
    if (r->list != NULL) {
        json_t *list = json_array();
        for (int64_t i = 0; i < r->micro_batches; i++) {
            json_array_append_new(list, micro_batch(&r->list[i]));
        }
        json_object_set_new(o, "micro_batches", list);
    } else {
        json_object_set_new(o, "micro_batches", json_integer((json_int_t)r->micro_batches));
    }
    for (size_t i = 0; i < r->n_stages; i++) {
        json_array_append_new(stages, hv_stage_to_json(p->cluster, &r->stages[i]));
    }
    json_object_set_new(o, "stages", stages);
    return o;
}

static void put_schedule(json_t *o, const struct hv_plan_schedule *s)
{
    json_t *t = json_object();
    json_object_set_new(t, "name", json_string(s->name));
    put_options(t, s->options, s->n_options);
    if (s->n_slice_tokens > 0) {
        json_t *a = json_array();
        for (size_t i = 0; i < s->n_slice_tokens; i++) {
            json_array_append_new(a, json_integer((json_int_t)s->slice_tokens[i]));
        }
        json_object_set_new(t, "slices", a);
    } else if (s->slices != 1) {
        json_object_set_new(t, "slices", json_integer(s->slices));
    }
    if (s->order != NULL) {
        json_t *order = json_array();
        for (size_t i = 0; i < s->n_orders; i++) {
            json_t *row = json_array();
            for (size_t k = 0; k < s->n_order[i]; k++) {
                json_array_append_new(row, json_string(s->order[i][k]));
            }
            json_array_append_new(order, row);
        }
        json_object_set_new(t, "order", order);
    }
    json_object_set_new(o, "schedule", t);
}

static void put_word(json_t *o, const char *key, const char *const *words, int v)
{
    if (v != 0) {
        json_object_set_new(o, key, json_string(words[v]));
    }
}

static void put_buckets(json_t *o, const struct hv_sync *s, double otherwise)
{
    if (s->n_buckets == 1 && s->bucket_bytes[0] == otherwise) {
        return;
    }
    if (s->n_buckets == 1) {
        json_object_set_new(o, "bucket_MiB", hv_json_num(s->bucket_bytes[0] / HV_MIB));
        return;
    }
    json_t *a = json_array();
    for (size_t i = 0; i < s->n_buckets; i++) {
        json_array_append_new(a, hv_json_num(s->bucket_bytes[i] / HV_MIB));
    }
    json_object_set_new(o, "bucket_MiB", a);
}

static void put_sync(json_t *o, const struct hv_sync *s)
{
    struct hv_plan *def = hv_plan_new(NULL);
    json_t *t = json_object();
    put_word(t, "kind", hv_sync_kind_words, (int)s->kind);
    put_word(t, "algorithm", hv_sync_algorithm_words, (int)s->algorithm);
    put_buckets(t, s, def->sync.bucket_bytes[0]);
    if (!s->overlap) {
        json_object_set_new(t, "overlap", json_false());
    }
    if (s->cycle_s > 0) {
        json_object_set_new(t, "cycle_ms", hv_json_num(s->cycle_s / HV_MS));
    }
    if (s->chunk_bytes > 0) {
        json_object_set_new(t, "chunk_MiB", hv_json_num(s->chunk_bytes / HV_MIB));
    }
    put_word(t, "priority", hv_sync_priority_words, (int)s->priority);
    if (strcmp(s->servers, def->sync.servers) != 0) {
        json_object_set_new(t, "servers", json_string(s->servers));
    }
    if (s->staleness > 0) {
        json_object_set_new(t, "staleness", json_integer(s->staleness));
    }
    if (s->group > 0) {
        json_object_set_new(t, "group", json_integer(s->group));
    }
    put_word(t, "weights", hv_sync_weights_words, (int)s->weights);
    if (s->wait_s > 0) {
        json_object_set_new(t, "wait_ms", hv_json_num(s->wait_s / HV_MS));
    }
    if (s->wait_most_s > s->wait_s) {
        json_object_set_new(t, "wait_most_ms", hv_json_num(s->wait_most_s / HV_MS));
    }
    if (s->least > 0) {
        json_object_set_new(t, "least", json_integer(s->least));
    }
    if (!s->connect) {
        json_object_set_new(t, "connect", json_false());
    }
    if (json_object_size(t) > 0) {
        json_object_set(o, "sync", t);
    }
    json_decref(t);
    hv_plan_unref(def);
}

static void put_claimed(json_t *o, const struct hv_claim *c)
{
    if (c->n == 0 && c->formula == NULL && c->leaves_out == NULL && c->n_terms == 0 &&
        c->n_warnings == 0) {
        return;
    }
    json_t *t = json_object();
    for (size_t i = 0; i < c->n; i++) {
        json_object_set_new(t, c->keys[i], hv_json_num(c->values[i]));
    }
    if (c->formula != NULL) {
        json_object_set_new(t, "formula", json_string(c->formula));
    }
    if (c->leaves_out != NULL) {
        json_object_set_new(t, "leaves_out", json_string(c->leaves_out));
    }
    if (c->n_warnings > 0) {
        json_t *warnings = json_array();
        for (size_t i = 0; i < c->n_warnings; i++) {
            json_array_append_new(warnings, json_string(c->warnings[i]));
        }
        json_object_set_new(t, "warnings", warnings);
    }
    if (c->n_terms > 0) {
        json_t *terms = json_object();
        for (size_t i = 0; i < c->n_terms; i++) {
            json_object_set_new(terms, c->term_keys[i], hv_json_num(c->term_values[i]));
        }
        json_object_set_new(t, "terms", terms);
    }
    json_object_set_new(o, "claimed", t);
}

static json_t *flow_end(int v)
{
    return v >= 0 ? json_integer(v) : json_string(v == HV_FLOW_SOURCE ? "source" : "sink");
}

json_t *hv_flow_to_json(const struct hv_plan_flow *flow, size_t n)
{
    json_t *a = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *e = json_array();
        json_array_append_new(e, flow_end(flow[i].from));
        json_array_append_new(e, flow_end(flow[i].to));
        json_array_append_new(e, hv_json_num(flow[i].tokens_per_s));
        json_array_append_new(a, e);
    }
    return a;
}

static void put_flow(json_t *o, const struct hv_plan *p)
{
    if (p->n_flow > 0) {
        json_object_set_new(o, "flow", hv_flow_to_json(p->flow, p->n_flow));
    }
    if (p->cache_mark_frac < 1) {
        json_object_set_new(o, "cache_mark_frac", hv_json_num(p->cache_mark_frac));
    }
    if (!p->partial_inference) {
        json_object_set_new(o, "partial_inference", json_false());
    }
}

static void put_job_times(json_t *e, const struct hv_plan_job *j)
{
    if (j->arrival_s > 0) {
        json_object_set_new(e, "arrival_s", hv_json_num(j->arrival_s));
    }
    if (j->start_s > j->arrival_s) {
        json_object_set_new(e, "start_s", hv_json_num(j->start_s));
    }
    if (hv_known(j->iterations)) {
        json_object_set_new(e, "iterations", hv_json_num(j->iterations));
    }
}

static void put_jobs(json_t *o, const struct hv_plan *p)
{
    json_t *a = json_array();
    for (size_t i = 0; i < p->n_jobs; i++) {
        json_t *e = json_object();
        json_object_set_new(e, "name", json_string(p->jobs[i].name));
        put_job_times(e, &p->jobs[i]);
        if (p->jobs[i].continues >= 0) {
            json_object_set_new(e, "continues", json_string(p->jobs[p->jobs[i].continues].name));
        }
        json_object_set_new(e, "plan", hv_plan_to_json(p->jobs[i].plan, NULL, NULL, NULL));
        json_array_append_new(a, e);
    }
    json_object_set_new(o, "jobs", a);
}

static void put_replicas(json_t *o, const struct hv_plan *p)
{
    json_t *a = json_array();
    for (size_t i = 0; i < p->n_replicas; i++) {
        json_array_append_new(a, replica(p, &p->replicas[i]));
    }
    json_object_set_new(o, "replicas", a);
}

json_t *hv_plan_to_json(const struct hv_plan *p, const char *cluster, const char *model,
                        const char *job)
{
    const char *const names[][2] = {{"cluster", cluster}, {"model", model}, {"job", job}};
    json_t *o = json_object();
    json_object_set_new(o, "format", json_string("hetviz.plan/1"));
    put_strategy(o, p);
    for (size_t i = 0; i < HV_COUNT(names); i++) {
        if (names[i][1] != NULL) {
            json_object_set_new(o, names[i][0], json_string(names[i][1]));
        }
    }
    put_word(o, "mode", hv_plan_mode_words, (int)p->mode);
    if (p->micro_batch != 1) {
        json_object_set_new(o, "micro_batch", json_integer(p->micro_batch));
    }
    if (p->n_jobs > 0) {
        put_jobs(o, p);
    } else {
        put_replicas(o, p);
    }
    put_flow(o, p);
    put_schedule(o, &p->schedule);
    put_sync(o, &p->sync);
    put_word(o, "recovery", hv_recovery_words, (int)p->recovery);
    put_claimed(o, &p->claimed);
    return o;
}
