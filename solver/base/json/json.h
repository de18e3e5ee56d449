/**
 * JSON over jansson, plus what jansson lacks: positions of values in error messages, checks with
 * key paths and suggestions, and a writer with shortest digits and NaN as null.
 *
 * A *place* (`struct hv_jp`) is a value together with its path from the root; places live on the
 * reader's stack, and paths are only computed when an error is reported. All readers follow one
 * pattern: return HV_OK and fill *out, or report what was expected and what was found at
 * file:line:col with the key path. A missing optional member leaves *out as it was.
 */
#ifndef HV_SOLVER_BASE_JSON_JSON_H
#define HV_SOLVER_BASE_JSON_JSON_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A parsed text. Owner: hv_json_free. `root` may be used after json_incref. */
struct hv_json {
    json_t *root;
    char *name; /**< file name for messages */
    char *text; /**< the source, for positions; NULL when the tree was made by us */
    size_t n;
};

/** A value and its path from the root. */
struct hv_jp {
    const struct hv_json *doc;
    const struct hv_jp *up; /**< NULL at the root */
    json_t *v;              /**< borrowed; NULL only where documented */
    const char *key;        /**< member name in `up`, or NULL */
    size_t index;           /**< element number in `up` when key is NULL */
};

/**
 * Parses one JSON value. Rejects duplicate keys, NUL in strings, invalid UTF-8, trailing bytes,
 * nesting deeper than 200 and members named "". Errors: HV_EINPUT with line and column.
 */
enum hv_status hv_json_parse(struct hv_json *out, const char *text, size_t n, const char *name,
                             struct hv_err *err) HV_NODISCARD;
/** Wraps a tree made by us (takes the reference). */
void hv_json_wrap(struct hv_json *out, json_t *root, const char *name);
/** Frees it (NULL members are fine). */
void hv_json_free(struct hv_json *j);
/** The root place. */
struct hv_jp hv_jp_root(const struct hv_json *j);

/** Member `key` of an object place; v is NULL when absent (JSON null counts as present). */
struct hv_jp hv_jp_get(const struct hv_jp *p, const char *key);
/** Element i of an array place. */
struct hv_jp hv_jp_at(const struct hv_jp *p, size_t i);
/** True when the member is absent or null. */
bool hv_jp_none(const struct hv_jp *p);

/** Error at this place: "file:line:col: nodes[1].count: <text>". Returns HV_EINPUT. */
enum hv_status hv_jp_fail(const struct hv_jp *p, struct hv_err *err, const char *fmt, ...)
    HV_PRINTF(3, 4);
/**
 * Puts an error of a document that this value names or holds at this place: key path in front of
 * the text, position of the value. An error that has a position of its own is left alone.
 */
void hv_jp_blame(const struct hv_jp *p, struct hv_err *err);
/** "expected <what>, found <short description of the value>" at this place. Returns HV_EINPUT. */
enum hv_status hv_jp_expected(const struct hv_jp *p, struct hv_err *err, const char *what);
/** Appends the key path ("nodes[1].intra.kind", "(top level)" at the root). */
void hv_jp_path(const struct hv_jp *p, struct hv_str *out);
/** Line and column (from 1) of the value in the source text; 0, 0 when there is no text. O(text).
 */
void hv_jp_where(const struct hv_jp *p, unsigned *line, unsigned *col);

/**
 * Checks that p is an object whose members are all in `keys` (n names; members starting "x-" always
 * pass). Errors name the unknown member's own position and the nearest known key.
 */
enum hv_status hv_jp_object(const struct hv_jp *p, const char *const *keys, size_t n,
                            struct hv_err *err) HV_NODISCARD;
/** Checks that p is an array; *out_n = its length. */
enum hv_status hv_jp_array(const struct hv_jp *p, size_t *out_n, struct hv_err *err) HV_NODISCARD;

/** A finite number in [lo, hi]; JSON integers and reals alike. */
enum hv_status hv_jp_number(const struct hv_jp *p, double lo, double hi, double *out,
                            struct hv_err *err) HV_NODISCARD;
/** A whole number in [lo, hi] (a real with no fraction counts). */
enum hv_status hv_jp_int(const struct hv_jp *p, int64_t lo, int64_t hi, int64_t *out,
                         struct hv_err *err) HV_NODISCARD;
/** true or false. */
enum hv_status hv_jp_bool(const struct hv_jp *p, bool *out, struct hv_err *err) HV_NODISCARD;
/** A string of at most 4096 bytes, not empty. Borrowed from the tree. */
enum hv_status hv_jp_string(const struct hv_jp *p, const char **out,
                            struct hv_err *err) HV_NODISCARD;
/** One of n words; *out = its index. Errors list the words and the nearest. */
enum hv_status hv_jp_word(const struct hv_jp *p, const char *const *words, size_t n, int *out,
                          struct hv_err *err) HV_NODISCARD;

/** The same for a member that may be absent or null: *out keeps its value then. */
enum hv_status hv_jp_opt_number(const struct hv_jp *p, const char *key, double lo, double hi,
                                double *out, struct hv_err *err) HV_NODISCARD;
enum hv_status hv_jp_opt_int(const struct hv_jp *p, const char *key, int64_t lo, int64_t hi,
                             int64_t *out, struct hv_err *err) HV_NODISCARD;
enum hv_status hv_jp_opt_bool(const struct hv_jp *p, const char *key, bool *out,
                              struct hv_err *err) HV_NODISCARD;
enum hv_status hv_jp_opt_string(const struct hv_jp *p, const char *key, const char **out,
                                struct hv_err *err) HV_NODISCARD;
enum hv_status hv_jp_opt_word(const struct hv_jp *p, const char *key, const char *const *words,
                              size_t n, int *out, struct hv_err *err) HV_NODISCARD;
/** A member that must be there: its place, or "missing key …, expected <what>". */
enum hv_status hv_jp_need(const struct hv_jp *p, const char *key, const char *what,
                          struct hv_jp *out, struct hv_err *err) HV_NODISCARD;
/** Checks that the first member is "format" with exactly this value ("hetviz.cluster/1"). */
enum hv_status hv_jp_format(const struct hv_jp *root, const char *format,
                            struct hv_err *err) HV_NODISCARD;

/**
 * Writes a tree: members in order, two-space indent, arrays of scalars and small flat objects on
 * one line up to 100 columns, shortest digits that read back equal, NaN and infinities as null.
 * Ends with a newline when `pretty`.
 */
void hv_json_write(struct hv_str *out, const json_t *v, bool pretty);
/** Number node: a JSON integer when x is whole and |x| < 2^53, else a real; null when not finite.
 */
json_t *hv_json_num(double x);

#endif
