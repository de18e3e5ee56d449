/** Samples of the profiler as JSON: in profile files (hetviz.profile/1) and in its journal. */
#ifndef HV_SOLVER_IO_OWN_CLUSTER_PROBE_FILE_H
#define HV_SOLVER_IO_OWN_CLUSTER_PROBE_FILE_H

#include "solver/base/arena.h"
#include "solver/base/json/json.h"
#include "solver/inventory/probe.h"

/** A sample as an object: kind, variant, precision, its sizes by name, the timing. Owner:
 * json_decref. */
json_t *hv_probe_sample_tree(const struct hv_probe_sample *s);
/** A layer check as an object. Owner: json_decref. */
json_t *hv_layer_check_tree(const struct hv_layer_check *c);
/** Reads a sample. Errors: HV_EINPUT at the place: an unknown kind, a missing or odd size, a time
 * that is not positive. */
enum hv_status hv_probe_sample_read(const struct hv_jp *p, struct hv_probe_sample *out,
                                    struct hv_err *err) HV_NODISCARD;
/** Reads the contents of a profile besides its tables; a profile without samples has none. */
enum hv_status hv_probe_report_read(const struct hv_json *json, struct hv_arena *arena,
                                    struct hv_probe_report *out, struct hv_err *err) HV_NODISCARD;

#endif
