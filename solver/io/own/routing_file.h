/** Routing of tokens over experts (hetviz.routing/1), as a job names it. */
#ifndef HV_SOLVER_IO_OWN_ROUTING_FILE_H
#define HV_SOLVER_IO_OWN_ROUTING_FILE_H

#include "solver/base/json/json.h"
#include "solver/workload/router.h"

/** Builds a router in `arena`. `p` is the object; `whole`: it is a file of its own and names its
 * format. Errors: HV_EINPUT with position. O(counts). */
enum hv_status hv_routing_build(const struct hv_jp *p, bool whole, struct hv_arena *arena,
                                const struct hv_router **out, struct hv_err *err) HV_NODISCARD;
/** Builds the router of a file, by path or shipped name. The counts of a trace are taken as they
 * are read, so that a long one needs no more memory than its numbers. Errors: as hv__doc_load and
 * hv_routing_build. O(bytes). */
enum hv_status hv_routing_load(const char *path_or_name, struct hv_arena *arena,
                               const struct hv_router **out, struct hv_err *err) HV_NODISCARD;
/** Checks a file (`hetviz check`). Errors: HV_EINPUT with position. */
enum hv_status hv_routing_check(const struct hv_json *json, struct hv_err *err) HV_NODISCARD;

#endif
