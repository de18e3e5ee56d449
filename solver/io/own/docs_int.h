/** Shared by the readers of jobs, queues and the inputs of a plan. */
#ifndef HV_SOLVER_IO_OWN_DOCS_INT_H
#define HV_SOLVER_IO_OWN_DOCS_INT_H

#include "solver/base/json/json.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/docs.h"

/** The document of a run that names no job. */
void hv__job_doc_default(struct hv_json *out);

/**
 * Name, arrival, weight and size of a job of a queue with the members of that row; `own` stays
 * empty. The name is borrowed from the document. Errors: HV_EINPUT.
 */
enum hv_status hv__queued_read(const struct hv_jp *p, enum hv_keys row, struct hv_queued_job *out,
                               struct hv_err *err) HV_NODISCARD;
/**
 * Reads the inputs that the object names as `model` and `job` (path, shipped name or held; relative
 * names are tried beside `path` first). Errors: of the readers, with the object's place.
 */
enum hv_status hv__job_inputs_fill(const struct hv_jp *p, const char *path,
                                   const struct hv_inputs *all, struct hv_job_inputs *own,
                                   struct hv_err *err) HV_NODISCARD;

#endif
