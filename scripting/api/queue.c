/*
 * The queue of a run: its jobs with their costs, and what plans say of their inputs. Which devices
 * they get is the strategy's business.
 */
#include "scripting/api/queue_int.h"
#include "solver/io/own/docs.h"

#include <string.h>

enum hv_status hv__queue_open(struct hv__run *r, struct hv_err *err)
{
    enum hv_status s = hv_queue_read(r->request->inputs, &r->queue, &r->n_queue, err);

    r->queue_costs = r->n_queue > 0 ? hv_xcalloc(r->n_queue, sizeof *r->queue_costs) : NULL;
    return s;
}

void hv__queue_close(struct hv__run *r)
{
    hv_job_costs_free(r->queue_costs, r->n_queue);
    hv_queue_free(r->queue, r->n_queue);
    r->queue = NULL;
    r->queue_costs = NULL;
    r->n_queue = 0;
}

struct hv_cost *hv__queue_cost(struct hv__run *r, size_t i)
{
    if (r->queue_costs[i] == NULL) {
        r->queue_costs[i] = hv_job_cost_new(r->request->inputs, &r->queue[i].own);
    }
    return r->queue_costs[i];
}

size_t hv__queue_find(const struct hv__run *r, const char *name)
{
    size_t i = 0;

    while (i < r->n_queue && strcmp(r->queue[i].name, name) != 0) {
        i++;
    }
    return i;
}

json_t *hv__reference(const char *path, const struct hv_json *json)
{
    bool again = path != NULL && strcmp(path, "-") != 0 && strncmp(path, "/dev/", 5) != 0 &&
                 strncmp(path, "/proc/", 6) != 0;
    return again ? json_string(path) : json_incref(json->root);
}

/** The entry of the queue that job `at` of a plan is, or is a further part of; n_queue: none. */
static size_t entry_of(const struct hv__run *r, const json_t *jobs, size_t at)
{
    const char *name = json_string_value(json_object_get(json_array_get(jobs, at), "name"));
    const char *first = name;

    for (size_t i = at + 1; i-- > 0;) { /* parts stand behind what they continue */
        const json_t *e = json_array_get(jobs, i);
        const char *own = json_string_value(json_object_get(e, "name"));
        const char *before = json_string_value(json_object_get(e, "continues"));
        if (own != NULL && first != NULL && strcmp(own, first) == 0 && before != NULL) {
            first = before;
        }
    }
    return first != NULL ? hv__queue_find(r, first) : r->n_queue;
}

void hv__queue_complete(const struct hv__run *r, json_t *plan)
{
    json_t *jobs = json_object_get(plan, "jobs"), *full = json_array();

    for (size_t i = 0; i < json_array_size(jobs); i++) {
        json_t *e = json_copy(json_array_get(jobs, i));
        json_t *own = json_copy(json_object_get(e, "plan"));
        size_t at = entry_of(r, jobs, i);
        const struct hv_job_inputs *in = at < r->n_queue ? &r->queue[at].own : NULL;
        if (in != NULL && in->model.model != NULL) {
            json_object_set_new(own, "model", hv__reference(in->model.path, &in->model.json));
        }
        if (in != NULL && in->has_job) {
            json_object_set(own, "job", in->job.json.root);
        }
        if (own != NULL) {
            json_object_set_new(e, "plan", own);
        }
        json_array_append_new(full, e);
    }
    if (json_array_size(jobs) > 0) {
        json_object_set(plan, "jobs", full);
    }
    json_decref(full);
}
