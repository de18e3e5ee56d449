/** Lines between the processes of a run: JSON values, and in them texts of any bytes and errors. */
#ifndef HV_SCRIPTING_HOST_MESSAGE_H
#define HV_SCRIPTING_HOST_MESSAGE_H

#include "scripting/host/cell.h"
#include "solver/base/status.h"
#include <jansson.h>

/** Sends a value from a child as one line; takes the reference. A value that JSON cannot express is
 * not sent. */
void hv__message_send(const struct hv__cell_inside *inside, json_t *value);
/** The value of a line, or NULL where it is none. Owner: caller. */
json_t *hv__message_read(const char *line, size_t n);

/** A text of any bytes, each a character of its own. Owner: caller. */
json_t *hv__pack_text(const char *text, size_t n);
/** Appends the bytes of a packed text; anything else adds nothing. */
void hv__unpack_text(const json_t *packed, struct hv_str *out);
/** A status with its error. Owner: caller. */
json_t *hv__pack_err(enum hv_status s, const struct hv_err *err);
/** The status of a packed error, which is filled into *err (may be NULL); HV_EINTERNAL for anything
 * else. */
enum hv_status hv__unpack_err(const json_t *packed, struct hv_err *err);

#endif
