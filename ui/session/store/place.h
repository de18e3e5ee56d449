/**
 * Where a workspace lies: its folder or file, its name, its tree as opened or last saved, and what
 * its file looked like then. Saving writes all documents and rows there.
 */
#ifndef HV_UI_SESSION_STORE_PLACE_H
#define HV_UI_SESSION_STORE_PLACE_H

#include "solver/io/own/workspace.h"
#include "ui/session/doc/documents.h"
#include "ui/session/row/judged.h"
#include "ui/session/row/rows.h"

/** A place. Owner: hv__place_free. */
struct hv__place;

/** A place that is none yet, with a name for the title. */
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

/** What a save reads and writes. */
struct hv__save {
    struct hv__place *place;
    struct hv__docs *docs;
    struct hv__rows *rows;
    struct hv__cache *cache; /**< plans are saved with their figures */
};
/**
 * Saves everything at `path`, all files or none, and counts it as saved. Everything is written
 * beside the old files and made safe there first; only then the new files take the old names.
 * Errors: HV_EIO, once also when another program wrote the workspace since it was read.
 */
enum hv_status hv__save_to(const struct hv__save *save, const char *path,
                           struct hv_err *err) HV_NODISCARD;
/** Plan of a row as it goes into a file: with the figures of now, and with its name where no file
 * name tells it. Owner: caller. */
json_t *hv__save_plan_tree(const struct hv__save *save, const struct hv_row *row, bool with_name);

#endif
