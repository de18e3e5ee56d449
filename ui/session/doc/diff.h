/** The edits that turn one tree of a document into another, as lines for the `:` prompt. */
#ifndef HV_UI_SESSION_DOC_DIFF_H
#define HV_UI_SESSION_DOC_DIFF_H

#include "solver/base/json/json.h"
#include "solver/io/own/doc/names.h"

/**
 * Appends the `set`, `insert` and `remove` lines that turn `before` into `after`; returns how many
 * there are. O(size of both trees); parts that both trees share are not visited.
 */
size_t hv__doc_diff(enum hv_doc d, const json_t *before, const json_t *after, struct hv_str *out);

#endif
