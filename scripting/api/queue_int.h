/** The queue of a run (queue.c), and work on one of its jobs (api_queue.c). Includes Lua. */
#ifndef HV_SCRIPTING_API_QUEUE_INT_H
#define HV_SCRIPTING_API_QUEUE_INT_H

#include "scripting/host/host_int.h"
#include "scripting/host/run_state.h"
#include "solver/base/json/json.h"

/** Reads the queue of the run's job document. Errors: of hv_queue_read. Owner: hv__queue_close. */
enum hv_status hv__queue_open(struct hv__run *r, struct hv_err *err) HV_NODISCARD;
/** Frees the queue. */
void hv__queue_close(struct hv__run *r);
/** The context of a job of the queue, from 0. */
struct hv_cost *hv__queue_cost(struct hv__run *r, size_t i);
/** Position from 0 of the job of that name in the queue, or n_queue. */
size_t hv__queue_find(const struct hv__run *r, const char *name);
/** Gives the jobs of a plan tree the model and job that the queue has for them. */
void hv__queue_complete(const struct hv__run *r, json_t *plan);
/** A document as plans refer to it: by the name it was read from, or whole where that cannot be
 * read twice (standard input, a pipe of the shell). Owner: caller. */
json_t *hv__reference(const char *path, const struct hv_json *json);
/** hv.for_job. */
int hv__for_job(lua_State *L);

#endif
