/**
 * The documents as they are now: JSON trees with the objects built from them. Trees are immutable:
 * an edit stores a new tree, which shares equal subtrees with the old one. This module also keeps
 * the trees as last saved, the names of their files and the edits that are being collected.
 */
#ifndef HV_UI_SESSION_DOC_DOCUMENTS_H
#define HV_UI_SESSION_DOC_DOCUMENTS_H

#include "solver/base/json/json.h"
#include "solver/io/own/doc/names.h"
#include "solver/io/own/docs.h"
#include <stdbool.h>
#include <stdint.h>

/** The documents of a session. Owner: hv__docs_free. */
struct hv__docs;

/** Documents without content; hv__docs_begin fills them. */
struct hv__docs *hv__docs_new(void);
void hv__docs_free(struct hv__docs *docs);

/** The built objects. The caller reads them in before hv__docs_begin; afterwards only edits change
 * them. */
struct hv_inputs *hv__docs_inputs(struct hv__docs *docs);
/** The built objects, read only. */
const struct hv_inputs *hv__docs_nouns(const struct hv__docs *docs);
/** Takes the trees of the objects that were read, and the list of strategies (borrowed; no array:
 * an empty list), as the present and as the saved state. */
void hv__docs_begin(struct hv__docs *docs, json_t *strategies);

/** Tree of a document. Borrowed until the next edit. */
json_t *hv__docs_tree(const struct hv__docs *docs, enum hv_doc d);
/** Its tree as last saved, or NULL when it was never saved. Borrowed until the next save. */
json_t *hv__docs_saved_tree(const struct hv__docs *docs, enum hv_doc d);
/** True where the document differs from its saved state. */
bool hv__docs_is_edited(const struct hv__docs *docs, enum hv_doc d);
/** Marks the present trees as saved. */
void hv__docs_mark_saved(struct hv__docs *docs);
/** Name of the document's file in the workspace; NULL = held inline. */
const char *hv__docs_ref(const struct hv__docs *docs, enum hv_doc d);
/** Sets that name; it is copied. */
void hv__docs_set_ref(struct hv__docs *docs, enum hv_doc d, const char *ref);
/** Counter that increases with every change of the document. */
uint64_t hv__docs_generation(const struct hv__docs *docs, enum hv_doc d);
/** Counter that increases with every change of an input; starts at 1. */
uint64_t hv__docs_epoch(const struct hv__docs *docs);
/** Adds cluster, model and job to an object under their names, for a worker or a file. */
void hv__docs_add_inputs(const struct hv__docs *docs, json_t *to);

/**
 * Builds the object of a document from a tree and puts both in place; `tree` is borrowed. The list
 * of strategies is taken as it is: hv__strategies_check comes before. Errors: HV_EINPUT with the
 * key path; nothing changes then.
 */
enum hv_status hv__docs_put(struct hv__docs *docs, enum hv_doc d, json_t *tree,
                            struct hv_err *err) HV_NODISCARD;

/* ---- edits that are collected ---------------------------------------------------------------- */

/** Starts collecting edits; edits collected before are dropped. */
void hv__docs_group_begin(struct hv__docs *docs);
/** Ends collecting and drops the collected edits. */
void hv__docs_group_drop(struct hv__docs *docs);
/** True while edits are being collected. */
bool hv__docs_is_grouped(const struct hv__docs *docs);
/** The tree that the next edit starts from: the collected one, else the present one. Borrowed. */
json_t *hv__docs_edited_tree(const struct hv__docs *docs, enum hv_doc d);
/** The collected tree of a document, or NULL. Borrowed. */
json_t *hv__docs_collected(const struct hv__docs *docs, enum hv_doc d);
/** Sets the collected tree of a document; `tree` is borrowed. */
void hv__docs_collect(struct hv__docs *docs, enum hv_doc d, json_t *tree);

#endif
