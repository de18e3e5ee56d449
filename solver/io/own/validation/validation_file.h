/**
 * Reader of published measurements: hetviz's own `hetviz.validation/1` files and the plain
 * collections they are made from (`{"meta": …, "rows": […]}` with the same member names).
 */
#ifndef HV_SOLVER_IO_OWN_VALIDATION_VALIDATION_FILE_H
#define HV_SOLVER_IO_OWN_VALIDATION_VALIDATION_FILE_H

#include "solver/base/json/json.h"
#include "solver/validate/validate.h"

struct hv_validation_reader;

/** A reader that adds to `out`; the catalogue is borrowed. Owner: hv_validation_reader_free. */
struct hv_validation_reader *hv_validation_reader_new(struct hv_validation *out,
                                                      const struct hv_device_catalogue *devices);
void hv_validation_reader_free(struct hv_validation_reader *r);
/**
 * Adds the rows of one parsed file; `source` names it where the file does not (its stem). Rows that
 * cannot be predicted are counted with a reason; a wrong type, a missing name or, in hetviz's own
 * files, an unknown key is an error. Errors: HV_EINPUT with file:line:col and key path.
 */
enum hv_status hv_validation_read(struct hv_validation_reader *r, const struct hv_json *json,
                                  const char *source, struct hv_err *err) HV_NODISCARD;
/**
 * Reads all *.json of a folder in the order of their names, or one file. NULL: the rows hetviz
 * ships (share/validation). Errors: HV_EIO naming the path; HV_EINPUT as above.
 */
enum hv_status hv_validation_read_folder(struct hv_validation *out, const char *folder,
                                         const struct hv_device_catalogue *devices,
                                         struct hv_err *err) HV_NODISCARD;

#endif
