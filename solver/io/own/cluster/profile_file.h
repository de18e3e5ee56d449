/** Reading of measured operator tables (hetviz.profile/1, share/profiles). */
#ifndef HV_SOLVER_IO_OWN_CLUSTER_PROFILE_FILE_H
#define HV_SOLVER_IO_OWN_CLUSTER_PROFILE_FILE_H

#include "solver/base/json/json.h"
#include "solver/inventory/profile.h"

/**
 * Builds a profile from a parsed text; everything is copied into `arena`. Errors: HV_EINPUT at the
 * place: a grid of another size than its axes, a rate that is not positive, two tables of one
 * precision, a rate that grows faster than its argument (time would fall as a product grows).
 */
enum hv_status hv_profile_read(const struct hv_json *json, struct hv_arena *arena,
                               struct hv_profile **out, struct hv_err *err) HV_NODISCARD;
/**
 * Reads a profile and gives it to the kinds of the catalogue that it covers, over any they had.
 * Errors: as above, or HV_EINPUT when a name is not in the catalogue or the file has no tables.
 */
enum hv_status hv_profile_add(struct hv_device_catalogue *c, const struct hv_json *json,
                              struct hv_err *err) HV_NODISCARD;

#endif
