/** Loading of documents by file or by shipped name. */
#ifndef HV_SOLVER_IO_OWN_DOC_LOAD_H
#define HV_SOLVER_IO_OWN_DOC_LOAD_H

#include "solver/base/json/json.h"
#include "solver/base/str.h"

/**
 * Parses the file `path_or_name`, or FOLDER/NAME.json of hetviz's own data when there is no such
 * file and the name has no slash. Errors: HV_EIO naming both places that were tried, with the
 * nearest shipped name.
 */
enum hv_status hv__doc_load(struct hv_json *out, const char *path_or_name, const char *folder,
                            struct hv_err *err) HV_NODISCARD;
/** Appends the path of the file that hv__doc_load would parse. Errors: as there. */
enum hv_status hv__doc_find(struct hv_str *path, const char *path_or_name, const char *folder,
                            struct hv_err *err) HV_NODISCARD;
/** Appends the file `name` beside the file `path` when there is such a file, else `name` as it is.
 */
void hv__doc_beside(struct hv_str *out, const char *path, const char *name);

#endif
