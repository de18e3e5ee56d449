/*
 * Figures of rows: plans are built and judged at the first request, once per state of the
 * documents. Not for rows (rows.c) nor for timelines that a thread makes (drawing.c).
 */
#include "ui/session/row/judged_int.h"

#include "solver/base/units.h"
#include <stdlib.h>
#include <string.h>

/* A timeline of a million operations takes 340 MiB. */
#define TIMELINE_BYTES ((size_t)512 << 20)

struct hv__cache *hv__cache_new(size_t apart_from, size_t timeline_bytes)
{
    struct hv__cache *cache = hv_xcalloc(1, sizeof *cache);
    cache->apart_from = apart_from;
    cache->timeline_bytes = timeline_bytes > 0 ? timeline_bytes : TIMELINE_BYTES;
    return cache;
}

/* Drops the results; keeps the row. */
static void judged_clear(struct hv__judged *j)
{
    uint32_t row = j->row;
    hv_job_costs_free(j->costs, j->n_own);
    hv_job_inputs_free(j->own, j->n_own);
    hv_plan_doc_free(&j->plan);
    hv_arena_free(&j->arena);
    hv_arena_free(&j->timeline_arena);
    hv__drawn_free(j->drawn);
    *j = (struct hv__judged){.row = row};
}

void hv__cache_free(struct hv__cache *cache)
{
    (void)hv__cache_draw_end(cache);
    for (size_t i = 0; i < cache->judged.n; i++) {
        judged_clear(cache->judged.items[i]);
        free(cache->judged.items[i]);
    }
    hv_vec_free(&cache->judged);
    hv_cost_free(cache->cost);
    hv_arena_free(&cache->bound_arena);
    free(cache);
}

void hv__cache_sweep(struct hv__cache *cache, const struct hv__rows *rows)
{
    size_t kept = 0;
    for (size_t i = 0; i < cache->judged.n; i++) {
        struct hv__judged *j = cache->judged.items[i];
        if (hv__rows_any(rows, j->row) == NULL) {
            hv__cache_draw_drop(cache, j);
            judged_clear(j);
            free(j);
        } else {
            cache->judged.items[kept++] = j;
        }
    }
    cache->judged.n = kept;
}

/* ---- the documents --------------------------------------------------------------------------- */

struct hv_cost *hv__cache_cost(struct hv__cache *cache, const struct hv__docs *docs)
{
    const struct hv_inputs *in = hv__docs_nouns(docs);
    if (cache->cost == NULL || cache->cost_epoch != hv__docs_epoch(docs)) {
        hv_cost_free(cache->cost);
        cache->cost = hv_cost_new(in->cluster.cluster, in->model.model, &in->job.job);
        cache->cost_epoch = hv__docs_epoch(docs);
    }
    return cache->cost;
}

struct hv_bound hv__cache_bound(struct hv__cache *cache, const struct hv__docs *docs)
{
    if (cache->bound_epoch != hv__docs_epoch(docs)) {
        hv_arena_free(&cache->bound_arena);
        cache->bound =
            (struct hv_bound){.iteration_s = HV_UNKNOWN, .spread_s = HV_UNKNOWN, .why = ""};
        hv_bound_iteration(hv__cache_cost(cache, docs), &cache->bound_arena, &cache->bound);
        cache->bound_epoch = hv__docs_epoch(docs);
    }
    return cache->bound;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Builds the plan against the present documents, unless it is built already. */
static struct hv__judged *built(struct hv__cache *cache, const struct hv__docs *docs,
                                const struct hv_row *row)
{
    const struct hv_inputs *in = hv__docs_nouns(docs);
    struct hv__judged *j = hv__cache_find(cache, row->id);
    if (j == NULL) {
        j = hv_xcalloc(1, sizeof *j);
        j->row = row->id;
        hv_vec_push(&cache->judged, j);
    }
    if (j->epoch == hv__docs_epoch(docs) && j->plan_tree == row->plan) {
        return j;
    }
    hv__cache_draw_drop(cache, j);
    judged_clear(j);
    j->epoch = hv__docs_epoch(docs);
    j->plan_tree = row->plan;
    struct hv_json json = {0};
    hv_json_wrap(&json, json_incref((json_t *)(uintptr_t)row->plan), row->name);
    j->has_plan =
        hv_plan_doc_build(&j->plan, json, in->cluster.cluster, &j->err) == HV_OK &&
        hv__cache_open_jobs(in, &j->plan, &j->own, &j->n_own, &j->costs, &j->err) == HV_OK;
    return j;
}

static void drop_timeline(struct hv__cache *cache, size_t at)
{
    struct hv__judged *old = hv__cache_find(cache, cache->timelines[at]);
    if (old != NULL) {
        hv_arena_free(&old->timeline_arena);
        hv__drawn_free(old->drawn);
        old->drawn = NULL;
        old->has_timeline = false;
    }
    cache->timelines[at] = 0;
}

/* Drops the oldest timelines where all together take more than `most_bytes`; keeps the last two,
 * which may be on the screen together. */
static void keep_within(struct hv__cache *cache, size_t most_bytes)
{
    size_t bytes = 0;
    for (size_t i = 0; i < HV__TIMELINES; i++) {
        const struct hv__judged *j = hv__cache_find(cache, cache->timelines[i]);
        if (j != NULL) {
            bytes += j->timeline_arena.used_bytes + hv__drawn_bytes(j->drawn);
        }
        if (j != NULL && i >= 2 && bytes > most_bytes) {
            drop_timeline(cache, i);
        }
    }
}

/* Keeps only the timelines of the last few rows, because they are the largest part of a verdict. */
static void keep_timeline(struct hv__cache *cache, uint32_t row)
{
    size_t at = 0;
    while (at < HV__TIMELINES - 1 && cache->timelines[at] != row) {
        at++;
    }
    if (cache->timelines[at] != row) {
        drop_timeline(cache, at);
    }
    memmove(&cache->timelines[1], &cache->timelines[0], at * sizeof cache->timelines[0]);
    cache->timelines[0] = row;
    keep_within(cache, cache->timeline_bytes);
}

static bool judge(struct hv__cache *cache, const struct hv__docs *docs, struct hv__judged *j,
                  bool timeline)
{
    bool *has = timeline ? &j->has_timeline : &j->has_verdict;
    if (timeline) {
        keep_timeline(cache, j->row);
    }
    if (*has || j->err.status != HV_OK) {
        return *has;
    }
    struct hv_eval_options o = {.timeline = timeline, .jobs = j->costs};
    *has = hv_eval(hv__cache_cost(cache, docs), j->plan.plan, &o,
                   timeline ? &j->timeline_arena : &j->arena,
                   timeline ? &j->with_timeline : &j->verdict, &j->err) == HV_OK;
    return *has;
}

const struct hv_plan *hv__cache_plan(struct hv__cache *cache, const struct hv__docs *docs,
                                     const struct hv_row *row, struct hv_err *err)
{
    const struct hv__judged *j = built(cache, docs, row);
    if (!j->has_plan && err != NULL) {
        *err = j->err;
    }
    return j->has_plan ? j->plan.plan : NULL;
}

const struct hv_verdict *hv__cache_verdict(struct hv__cache *cache, const struct hv__docs *docs,
                                           const struct hv_row *row, bool timeline,
                                           struct hv_err *err)
{
    if (hv__cache_plan(cache, docs, row, err) == NULL) {
        return NULL;
    }
    struct hv__judged *j = hv__cache_find(cache, row->id);
    if (timeline && hv__cache_draws_apart(cache, j)) {
        keep_timeline(cache, row->id);
        return hv__cache_draw(cache, docs, j, err);
    }
    if (!judge(cache, docs, j, timeline)) {
        if (err != NULL) {
            *err = j->err;
        }
        return NULL;
    }
    return timeline ? &j->with_timeline : &j->verdict;
}
