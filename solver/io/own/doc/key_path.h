/** Key paths ("cluster.nodes[0].count"): parsing them, finding and changing a value in a tree. */
#ifndef HV_SOLVER_IO_OWN_DOC_KEY_PATH_H
#define HV_SOLVER_IO_OWN_DOC_KEY_PATH_H

#include "solver/base/arena.h"
#include "solver/base/json/json.h"
#include "solver/io/own/doc/names.h"

/** One key of a path. */
struct hv_key_path_part {
    const char *name; /**< NULL = element number `index` */
    size_t index;
};
/** A parsed key path; its texts lie in the arena. */
struct hv_key_path {
    enum hv_doc doc;
    struct hv_key_path_part *keys;
    size_t n;
};
/** Parses "cluster.nodes[0].count". Errors: HV_EUSAGE. */
enum hv_status hv_key_path_parse(struct hv_arena *a, const char *text, struct hv_key_path *out,
                                 struct hv_err *err) HV_NODISCARD;
/** Value at the path in a tree, or NULL. Borrowed from the tree. */
json_t *hv_key_path_find(json_t *root, const struct hv_key_path *p);

/** Operation at the end of a key path. */
enum hv_key_path_edit { HV_KEY_PATH_SET, HV_KEY_PATH_REMOVE, HV_KEY_PATH_INSERT };
/**
 * Makes a tree that differs from `root` at the path only (the rest is shared). `value` is borrowed.
 * Owner of *out: caller. Errors: HV_EUSAGE where the path does not exist.
 */
enum hv_status hv_key_path_change(json_t *root, const struct hv_key_path *p,
                                  enum hv_key_path_edit change, json_t *value, json_t **out,
                                  struct hv_err *err) HV_NODISCARD;

/** Parses a value as typed: JSON where it has the syntax of a JSON value, else a bare word. Owner
 * of *out: caller. Errors: HV_EUSAGE for an empty text, HV_EINPUT for JSON that does not parse. */
enum hv_status hv_value_parse(const char *text, json_t **out, struct hv_err *err) HV_NODISCARD;

#endif
