/**
 * Importing into an open workspace: files of other programs are read without changing the
 * workspace, shown, and merged as one undo step.
 */
#ifndef HV_UI_SESSION_IMPORT_IMPORT_H
#define HV_UI_SESSION_IMPORT_IMPORT_H

#include "solver/io/import/import.h"
#include "ui/session/session.h"

/** How an import changes the present cluster. */
enum hv_import_way {
    HV_IMPORT_REPLACE, /**< the imported one takes its place */
    HV_IMPORT_APPEND,  /**< its nodes are added */
    HV_IMPORT_UPDATE,  /**< links and prices go to nodes with the same devices */
    HV_IMPORT_WAY_N
};
/** "replace the cluster", "add its nodes", "update equal nodes". */
const char *hv_import_way_text(enum hv_import_way w);
/** The default for an import: measured links and prices update, everything else replaces. */
enum hv_import_way hv_import_way_usual(const struct hv_import *im);

/** True where this file (or name) has a format of hetviz and is opened without an import. Does not
 * check its contents. */
bool hv_import_is_own(const char *text);
/** Reads what the words name: files, or `local` for this machine; `--device NAME=KIND` decides what
 * a name of a card means. Owner of *out: hv_import_free. Errors: as hv_import_file. */
enum hv_status hv_session_import_read(const struct hv_session *s, const char *words,
                                      struct hv_import **out, struct hv_err *err) HV_NODISCARD;
/**
 * Merges the import as one undo step named `label`; nothing is changed where a part fails. Errors:
 * as hv_session_replace; HV_ENO where there is nothing to merge.
 */
enum hv_status hv_session_import(struct hv_session *s, const struct hv_import *im,
                                 enum hv_import_way way, const char *label,
                                 struct hv_err *err) HV_NODISCARD;
/** Appends the parts that would be merged, one line each. */
void hv_session_import_parts(const struct hv_import *im, struct hv_str *out);

#endif
