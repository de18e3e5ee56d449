/**
 * The reference of the functions that plugins can call, made from the comments above each function
 * while the program is built. Help, the manual page hetviz-plugin(7) and the tests read these rows.
 */
#ifndef HV_SCRIPTING_PLUGIN_REFERENCE_H
#define HV_SCRIPTING_PLUGIN_REFERENCE_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>

/** One function. Texts are "" where the comment has none; lists have one entry per line. */
struct hv_api_doc {
    const char *name;    /**< "hv.cost.stage", "plan:eval" (a method), "search.beam" (a library) */
    const char *source;  /**< "scripting/api/api_cost.c:12" */
    const char *text;    /**< description */
    const char *params;  /**< "name (type, optional): shape and meaning" */
    const char *returns; /**< "type: shape" */
    const char *units;   /**< units of every number in and out */
    const char *raises;  /**< when it raises an error, and when it answers nil and a reason */
    const char *usage;   /**< Lua that runs inside plan(ctx) */
};

/** All rows: functions of the core first, then those of share/lua; *n = how many. */
const struct hv_api_doc *hv_api_docs(size_t *n);
/** Appends the list of all functions, one line each, and how many there are. */
void hv_api_list(struct hv_str *out);
/**
 * Appends the full text of one function, or of all whose name begins with NAME and a dot or colon.
 * Errors: HV_EUSAGE naming the nearest.
 */
enum hv_status hv_api_describe(const char *name, struct hv_str *out,
                               struct hv_err *err) HV_NODISCARD;
/** Appends the manual page hetviz-plugin(7). */
void hv_api_man(struct hv_str *out);

#endif
