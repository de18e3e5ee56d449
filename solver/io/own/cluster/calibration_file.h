/** Reading of calibrated classes of devices (hetviz.calibration/1, share/calibration). */
#ifndef HV_SOLVER_IO_OWN_CLUSTER_CALIBRATION_FILE_H
#define HV_SOLVER_IO_OWN_CLUSTER_CALIBRATION_FILE_H

#include "solver/base/json/json.h"
#include "solver/inventory/device.h"

/**
 * Adds the classes of one text to the catalogue; parameters a class does not name are generic.
 * Errors: HV_EINPUT at the place: an unknown parameter, a number outside its range, no devices.
 */
enum hv_status hv_calibration_add(struct hv_device_catalogue *c, const struct hv_json *json,
                                  struct hv_err *err) HV_NODISCARD;
/** The first class of the catalogue that applies to a device of that name, else typical values.
 * O(classes). */
const struct hv_calibration *hv_calibration_find(const struct hv_device_catalogue *c,
                                                 const char *device);

/**
 * A `hetviz.calibration/1` tree of these classes; parameters that equal the generic value to within
 * the four digits written are left out. Owner: json_decref.
 */
json_t *hv_calibration_tree(const struct hv_calibration *classes, size_t n);

#endif
