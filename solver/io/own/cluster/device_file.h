/** Reading of device kinds, shared by the catalogue and by `devices` of a cluster file. */
#ifndef HV_SOLVER_IO_OWN_CLUSTER_DEVICE_FILE_H
#define HV_SOLVER_IO_OWN_CLUSTER_DEVICE_FILE_H

#include "solver/base/json/json.h"
#include "solver/inventory/device.h"

/** A kind with a name and all other figures unknown. */
struct hv_device_kind hv_device_kind_unknown(const char *name);
/**
 * Reads the members of a device object; missing members keep their values in `k`; strings are
 * copied into `arena`. The members' names are checked by the caller.
 */
enum hv_status hv_device_kind_read(const struct hv_jp *p, struct hv_arena *arena,
                                   struct hv_device_kind *k, struct hv_err *err) HV_NODISCARD;
/** Adds the kinds of one `hetviz.devices/1` text to the catalogue. Errors: HV_EINPUT at the place.
 */
enum hv_status hv_device_catalogue_add(struct hv_device_catalogue *c, const struct hv_json *json,
                                       struct hv_err *err) HV_NODISCARD;

#endif
