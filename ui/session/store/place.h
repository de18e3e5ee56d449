/**
 * Location of a workspace: its folder or file, its name, its tree as opened or last saved, and the
 * file attributes at that time. Saving writes all documents and rows there.
 */
#ifndef HV_UI_SESSION_STORE_PLACE_H
#define HV_UI_SESSION_STORE_PLACE_H

#include "solver/io/own/workspace.h"
#include "ui/session/doc/documents.h"
#include "ui/session/row/judged.h"
#include "ui/session/row/rows.h"

/** A place. Owner: hv__place_free. */
struct hv__place;

/** An empty place, with a name for the title. */
struct hv__place *hv__place_new(const char *name);
void hv__place_free(struct hv__place *p);
/** Reads the workspace at `path` (a folder, workspace.json, or one file with everything inline) and
 * its documents into `docs`, which is empty. Errors: HV_EIO, HV_EINPUT (file:line:col). */
enum hv_status hv__place_read(struct hv__place *p, const char *path, struct hv__docs *docs,
                              struct hv_err *err) HV_NODISCARD;
/** The workspace as opened or last saved; its tree keeps unknown `x-` keys. */
const struct hv_workspace *hv__place_workspace(const struct hv__place *p);
/** Folder or file, or NULL when it has none yet. */
const char *hv__place_path(const struct hv__place *p);
/** Name of the workspace; never NULL. */
const char *hv__place_name(const struct hv__place *p);
/** Name of the plan of a file: "plans/a.json" gives "a"; *n is its length. Borrowed from path. */
const char *hv__place_base_name(const char *path, size_t *n);

/** Inputs and outputs of a save. */
struct hv__save {
    struct hv__place *place;
    struct hv__docs *docs;
    struct hv__rows *rows;
    struct hv__cache *cache; /**< plans are saved with their figures */
};
/**
 * Saves everything at `path`, all files or none, and counts it as saved. All files are first
 * written and synced beside the old files, then renamed to the old names. Errors: HV_EIO, once also
 * when another program wrote the workspace since it was read.
 */
enum hv_status hv__save_to(const struct hv__save *save, const char *path,
                           struct hv_err *err) HV_NODISCARD;
/** Plan of a row as written to a file: with its present figures, and with its name where the file
 * name does not contain it. Owner: caller. */
json_t *hv__save_plan_tree(const struct hv__save *save, const struct hv_row *row, bool with_name);

#endif
