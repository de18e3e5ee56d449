/*
 * Reads the members of the whole plan: schedule, sync, serving flow. Claimed figures are in
 * claim_file.c.
 */
#include "solver/base/units.h"
#include "solver/io/own/plan/read.h"
#include <string.h>

static enum hv_status read_slices(struct hv_plan_reader *rd, const struct hv_jp *schedule,
                                  struct hv_plan_schedule *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(schedule, "slices");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (!json_is_array(p.v)) {
        return hv_plan_read_int(schedule, "slices", 1, HV_PLAN_DEGREE_MAX, &s->slices, err);
    }
    size_t n = json_array_size(p.v);
    if (n == 0 || n > HV_PLAN_DEGREE_MAX) {
        return hv_jp_expected(&p, err, "a number of slices or a list of token lengths");
    }
    s->slice_tokens = hv_arena_new(rd->arena, int64_t, n);
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        HV_TRY(hv_jp_int(&e, 1, INT32_MAX, &s->slice_tokens[i], err));
    }
    s->n_slice_tokens = n;
    s->slices = (int)n;
    return HV_OK;
}

static enum hv_status read_order(struct hv_plan_reader *rd, const struct hv_jp *schedule,
                                 struct hv_plan_schedule *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(schedule, "order");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    size_t n = 0;
    HV_TRY(hv_jp_array(&p, &n, err));
    s->order = hv_arena_new(rd->arena, const char **, n);
    s->n_order = hv_arena_new(rd->arena, size_t, n);
    s->n_orders = n;
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        HV_TRY(hv_plan_read_strings(rd, &e, &s->order[i], &s->n_order[i], err));
    }
    return HV_OK;
}

enum hv_status hv_plan_read_schedule(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                     struct hv_err *err)
{
    static const char *const own[] = {"name", "slices", "order"};
    struct hv_plan_schedule *s = &rd->plan->schedule;
    struct hv_jp p = hv_jp_get(plan, "schedule");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    if (!json_is_object(p.v)) {
        return hv_jp_expected(&p, err, "an object { \"name\": schedule, options }");
    }
    const char *name = s->name;
    HV_TRY(hv_jp_opt_string(&p, "name", &name, err));
    s->name = hv_arena_strdup(rd->arena, name);
    HV_TRY(read_slices(rd, &p, s, err));
    HV_TRY(read_order(rd, &p, s, err));
    return hv_plan_read_options(rd, &p, own, HV_COUNT(own), &s->options, &s->n_options, err);
}

static enum hv_status read_buckets(struct hv_plan_reader *rd, const struct hv_jp *sync,
                                   struct hv_sync *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(sync, "bucket_MiB");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    bool many = json_is_array(p.v);
    size_t n = many ? json_array_size(p.v) : 1;
    if (n == 0) {
        return hv_jp_expected(&p, err, "a size in MiB or a list of sizes");
    }
    s->bucket_bytes = hv_arena_new(rd->arena, double, n);
    s->n_buckets = n;
    for (size_t i = 0; i < n; i++) {
        struct hv_jp e = many ? hv_jp_at(&p, i) : p;
        double mib = 0;
        HV_TRY(hv_jp_number(&e, 0, 1e9, &mib, err));
        s->bucket_bytes[i] = mib * HV_MIB;
    }
    return HV_OK;
}

static enum hv_status read_servers(struct hv_plan_reader *rd, const struct hv_jp *sync,
                                   struct hv_sync *s, struct hv_err *err)
{
    struct hv_jp p = hv_jp_get(sync, "servers");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    const char *text = NULL;
    HV_TRY(hv_jp_string(&p, &text, err));
    if (strcmp(text, "sharded") != 0 && strcmp(text, "local") != 0) {
        uint32_t *ids = NULL;
        size_t n = 0;
        HV_TRY(hv_plan_read_devices(rd, &p, &ids, &n, err));
    }
    s->servers = hv_arena_strdup(rd->arena, text);
    return HV_OK;
}

/* How long groups of partial reduce wait for more members. */
static enum hv_status read_waiting(const struct hv_jp *p, struct hv_sync *s, struct hv_err *err)
{
    double wait_ms = 0, most_ms = 0;
    HV_TRY(hv_jp_opt_number(p, "wait_ms", 0, 1e9, &wait_ms, err));
    most_ms = wait_ms;
    HV_TRY(hv_jp_opt_number(p, "wait_most_ms", wait_ms, 1e9, &most_ms, err));
    s->wait_s = wait_ms * HV_MS;
    s->wait_most_s = most_ms * HV_MS;
    HV_TRY(hv_plan_read_int(p, "least", 0, HV_PLAN_DEGREE_MAX, &s->least, err));
    return hv_jp_opt_bool(p, "connect", &s->connect, err);
}

enum hv_status hv_plan_read_sync(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                 struct hv_err *err)
{
    struct hv_sync *s = &rd->plan->sync;
    struct hv_jp p = hv_jp_get(plan, "sync");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_plan_read_object(&p, HV_PLAN_OBJECT_sync, err));
    HV_TRY_WORD(&p, "kind", hv_sync_kind, s->kind);
    HV_TRY_WORD(&p, "algorithm", hv_sync_algorithm, s->algorithm);
    HV_TRY(read_buckets(rd, &p, s, err));
    HV_TRY(hv_jp_opt_bool(&p, "overlap", &s->overlap, err));
    double cycle_ms = 0, chunk_mib = 0;
    HV_TRY(hv_jp_opt_number(&p, "cycle_ms", 0, 1e9, &cycle_ms, err));
    HV_TRY(hv_jp_opt_number(&p, "chunk_MiB", 0, 1e9, &chunk_mib, err));
    s->cycle_s = cycle_ms * HV_MS;
    s->chunk_bytes = chunk_mib * HV_MIB;
    HV_TRY_WORD(&p, "priority", hv_sync_priority, s->priority);
    HV_TRY(read_servers(rd, &p, s, err));
    HV_TRY(hv_plan_read_int(&p, "staleness", 0, HV_PLAN_DEGREE_MAX, &s->staleness, err));
    HV_TRY(hv_plan_read_int(&p, "group", 0, HV_PLAN_DEGREE_MAX, &s->group, err));
    HV_TRY_WORD(&p, "weights", hv_sync_weights, s->weights);
    return read_waiting(&p, s, err);
}

static enum hv_status read_flow_end(const struct hv_jp *p, int64_t n_stages, const char *word,
                                    int word_value, int *out, struct hv_err *err)
{
    if (json_is_string(p->v)) {
        if (strcmp(json_string_value(p->v), word) != 0) {
            return hv_jp_fail(p, err, "expected a stage number or \"%s\", found \"%s\"", word,
                              json_string_value(p->v));
        }
        *out = word_value;
        return HV_OK;
    }
    int64_t v = 0;
    HV_TRY(hv_jp_int(p, 0, n_stages - 1, &v, err));
    *out = (int)v;
    return HV_OK;
}

enum hv_status hv_plan_read_flow(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                 struct hv_err *err)
{
    struct hv_plan *pl = rd->plan;
    struct hv_jp p = hv_jp_get(plan, "flow");
    if (hv_jp_none(&p)) {
        return HV_OK;
    }
    HV_TRY(hv_jp_array(&p, &pl->n_flow, err));
    pl->flow = hv_arena_new(rd->arena, struct hv_plan_flow, pl->n_flow);
    int64_t n_stages = 0;
    for (size_t i = 0; i < pl->n_replicas; i++) {
        n_stages += (int64_t)pl->replicas[i].n_stages;
    }
    for (size_t i = 0; i < pl->n_flow; i++) {
        struct hv_jp e = hv_jp_at(&p, i);
        size_t n = 0;
        HV_TRY(hv_jp_array(&e, &n, err));
        if (n != 3) {
            return hv_jp_expected(&e, err, "[from, to, tokens_per_s]");
        }
        struct hv_jp from = hv_jp_at(&e, 0), to = hv_jp_at(&e, 1), rate = hv_jp_at(&e, 2);
        struct hv_plan_flow *f = &pl->flow[i];
        HV_TRY(read_flow_end(&from, n_stages, "source", HV_FLOW_SOURCE, &f->from, err));
        HV_TRY(read_flow_end(&to, n_stages, "sink", HV_FLOW_SINK, &f->to, err));
        HV_TRY(hv_jp_number(&rate, 0, HUGE_VAL, &f->tokens_per_s, err));
    }
    return HV_OK;
}
