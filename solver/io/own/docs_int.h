/** Loading of documents by file or by shipped name; shared by the readers of io/own. */
#ifndef HV_SOLVER_IO_OWN_DOCS_INT_H
#define HV_SOLVER_IO_OWN_DOCS_INT_H

#include "solver/base/json/json.h"
#include "solver/io/own/doc/keys.h"
#include "solver/io/own/docs.h"

/**
 * Parses the file `path_or_name`, or FOLDER/NAME.json of hetviz's own data when there is no such
 * file and the name has no slash. Errors: HV_EIO naming both places that were tried, with the
 * nearest shipped name.
 */
enum hv_status hv__doc_load(struct hv_json *out, const char *path_or_name, const char *folder,
                            struct hv_err *err) HV_NODISCARD;

/** The document of a run that names no job. */
void hv__job_doc_default(struct hv_json *out);

/**
 * Name, arrival, weight and size of a job of a queue with the members of that row; `own` stays
 * empty. The name is borrowed from the document. Errors: HV_EINPUT.
 */
enum hv_status hv__queued_read(const struct hv_jp *p, enum hv_keys row, struct hv_queued_job *out,
                               struct hv_err *err) HV_NODISCARD;
/**
 * Reads what the object names as `model` and `job` (path, shipped name or held; relative names are
 * tried beside `path` first). Errors: of the readers, with the object's place.
 */
enum hv_status hv__job_inputs_fill(const struct hv_jp *p, const char *path,
                                   const struct hv_inputs *all, struct hv_job_inputs *own,
                                   struct hv_err *err) HV_NODISCARD;

#endif
