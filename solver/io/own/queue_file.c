/*
 * The queue of a job file: its member `jobs`, each with model and job of its own or those of the
 * run. A workspace lists its jobs with the same members. Strategies assign devices and start times.
 */
#include "solver/base/units.h"
#include "solver/io/own/docs.h"
#include "solver/io/own/docs_int.h"
#include "solver/io/own/plan/read.h"
#include <stdlib.h>
#include <string.h>

#define MAX_QUEUE 1000

/** One entry with its inputs; the queue owns the names. */
static enum hv_status read_entry(const struct hv_inputs *all, const struct hv_jp *list, size_t i,
                                 struct hv_queued_job *queue, struct hv_err *err)
{
    struct hv_jp at = hv_jp_at(list, i);
    HV_TRY(hv__queued_read(&at, HV_KEYS_QUEUED_JOB, &queue[i], err));
    for (size_t k = 0; k < i; k++) {
        struct hv_jp name = hv_jp_get(&at, "name");
        if (strcmp(queue[k].name, queue[i].name) == 0) {
            return hv_jp_fail(&name, err, "the name \"%.80s\" is taken by another job",
                              queue[i].name);
        }
    }
    HV_TRY(hv__job_inputs_fill(&at, all->job.json.name, all, &queue[i].own, err));
    struct hv_jp own = hv_jp_root(&queue[i].own.job.json);
    struct hv_jp inner = hv_jp_get(&own, "jobs");
    if (queue[i].own.has_job && json_array_size(inner.v) > 0) {
        return hv_jp_fail(&inner, err, "the job of a queue holds no further jobs");
    }
    return HV_OK;
}

enum hv_status hv_queue_read(const struct hv_inputs *all, struct hv_queued_job **out, size_t *n,
                             struct hv_err *err)
{
    struct hv_jp root = hv_jp_root(&all->job.json), list = hv_jp_get(&root, "jobs");
    *out = NULL;
    *n = 0;
    if (hv_jp_none(&list)) {
        return HV_OK;
    }
    HV_TRY(hv_jp_array(&list, n, err));
    if (*n > MAX_QUEUE) {
        *n = 0;
        return hv_jp_fail(&list, err, "more than %d jobs", MAX_QUEUE);
    }
    *out = *n > 0 ? hv_xcalloc(*n, sizeof **out) : NULL;
    for (size_t i = 0; i < *n; i++) {
        HV_TRY(read_entry(all, &list, i, *out, err));
    }
    return HV_OK;
}

void hv_queue_free(struct hv_queued_job *queue, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        hv_model_doc_free(&queue[i].own.model);
        hv_job_doc_free(&queue[i].own.job);
    }
    free(queue);
}

struct hv_cost *hv_job_cost_new(const struct hv_inputs *all, const struct hv_job_inputs *own)
{
    return hv_cost_new(all->cluster.cluster,
                       own->model.model != NULL ? own->model.model : all->model.model,
                       own->has_job ? &own->job.job : &all->job.job);
}

struct hv_cost **hv_job_costs_new(const struct hv_inputs *all, const struct hv_job_inputs *own,
                                  size_t n)
{
    struct hv_cost **costs = n > 0 ? hv_xcalloc(n, sizeof *costs) : NULL;
    for (size_t i = 0; i < n; i++) {
        costs[i] = hv_job_cost_new(all, &own[i]);
    }
    return costs;
}

void hv_job_costs_free(struct hv_cost **costs, size_t n)
{
    for (size_t i = 0; costs != NULL && i < n; i++) {
        hv_cost_free(costs[i]);
    }
    free(costs);
}
