/** Texts of JSON and YAML as programs write them, as JSON trees; limits of every tree. */
#ifndef HV_SOLVER_IO_IMPORT_TEXT_TREES_H
#define HV_SOLVER_IO_IMPORT_TEXT_TREES_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include "solver/base/vec.h"
#include <jansson.h>

#define HV__MAX_DEPTH 100     /**< nesting of XML and YAML */
#define HV__MAX_ITEMS 2000000 /**< elements, values or lines of one text */

/** A line of a tree that keeps no positions itself. */
struct hv__line {
    const json_t *v;
    unsigned line;
};
/** Lines of the values of a tree. */
struct hv__line_list {
    HV_VEC(struct hv__line);
};

/**
 * YAML text of n bytes to a tree; several documents become a list. Appends the lines of its values
 * to *lines. NULL and `err` where the text is broken; `name` is for messages. Owner: json_decref.
 */
json_t *hv__yaml(const char *name, const char *text, size_t n, struct hv__line_list *lines,
                 struct hv_err *err);
/** JSON as programs write it: NaN and Infinity become null, a cut-off end is closed. Appends the
 * repaired text; returns the number of repaired places. */
size_t hv__json_mend(const char *text, size_t n, struct hv_str *out);

#endif
