/** Models as documents. */
#ifndef HV_SOLVER_IO_IMPORT_DRAFT_MODEL_OUT_H
#define HV_SOLVER_IO_IMPORT_DRAFT_MODEL_OUT_H

#include <jansson.h>

struct hv_model;
/** A model (of blocks, or of modules of blocks) as a hetviz.model/1 document. Owner: caller.
 * O(blocks). */
json_t *hv_import_model_json(const struct hv_model *m);

#endif
