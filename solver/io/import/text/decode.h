/** Conversion of the bytes of a file to UTF-8 text. */
#ifndef HV_SOLVER_IO_IMPORT_TEXT_DECODE_H
#define HV_SOLVER_IO_IMPORT_TEXT_DECODE_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** Unpacks and converts: `out` is UTF-8. `most`: bytes, packed and unpacked, at most. Errors:
 * HV_ELIMIT, HV_EINPUT for bytes that are not text. */
enum hv_status hv__decode(const char *name, const char *bytes, size_t n, size_t most,
                          struct hv_str *out, struct hv_err *err) HV_NODISCARD;
/** True for a protocol buffer, which is not text. Such bytes are not changed. */
bool hv__is_binary(const char *text, size_t n);

#endif
