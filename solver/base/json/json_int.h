/** Internals of the JSON module, shared by its files only. */
#ifndef HV_SOLVER_BASE_JSON_JSON_INT_H
#define HV_SOLVER_BASE_JSON_JSON_INT_H

#include "solver/base/json/json.h"
#include "solver/base/status.h"
#include <stddef.h>

/** Deepest nesting of arrays and objects that is read. */
#define HV__JSON_DEPTH 200

/**
 * Parses a text of the subset of fast.c to the tree that jansson would return; NULL: use jansson,
 * which also reports errors. `text[n]` must be a NUL byte. O(n), some five times faster than
 * jansson. Owner: caller.
 */
json_t *hv__json_fast(const char *text, size_t n);
/** Line and column (characters, from 1) of byte `at`. O(at). */
void hv__json_line_col(const char *text, size_t at, unsigned *line, unsigned *col);
/**
 * Parses the text again by our own grammar and reports the first mistake in it; `dup_end` is the
 * byte after a key that jansson found twice, or 0. Returns HV_OK when it finds none. O(n).
 */
enum hv_status hv__json_diagnose(const char *text, size_t n, const char *name, size_t dup_end,
                                 struct hv_err *err) HV_NODISCARD;
/**
 * Byte offset of the value at p, or of its key when `of_key`; of the nearest parent that is there
 * when the value is absent; SIZE_MAX when the document has no text. O(text).
 */
size_t hv__json_locate(const struct hv_jp *p, bool of_key);
/** Appends the text for messages: cleaned, at most about 60 bytes, with "…" when cut. */
void hv__json_excerpt(struct hv_str *out, const char *text, size_t n);

#endif
