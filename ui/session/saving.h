/** Files of a session: saving, export, recovery of unsaved edits, the last place. */
#ifndef HV_UI_SESSION_SAVING_H
#define HV_UI_SESSION_SAVING_H

#include "solver/base/status.h"
#include "solver/base/str.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct hv_session;

/**
 * Saves the whole workspace where it came from, or to `path` (a folder, made when missing; a name
 * ending in .json = one file with everything inline). Either all files are written or none: they
 * are written beside the old files first and renamed after all writes succeeded, and a save that
 * was interrupted is finished or undone when the workspace is next read. Shipped and foreign files
 * are never written: a changed document of such a file is stored in the workspace. Errors:
 * HV_EUSAGE when there is no path yet, HV_EIO (also once when another program wrote the workspace
 * since it was read: saving again overwrites it); undo steps and the unsaved state are kept.
 */
enum hv_status hv_session_save(struct hv_session *s, const char *path,
                               struct hv_err *err) HV_NODISCARD;
/** Writes the plan of a row, `simulated` included and inputs inline, to a file. Errors: HV_EUSAGE,
 * HV_EIO. */
enum hv_status hv_session_export(struct hv_session *s, uint32_t id, const char *path,
                                 struct hv_err *err) HV_NODISCARD;

/** Writes the plan of a row into a folder as the files of a target (`hetviz help targets`). Errors:
 * HV_EUSAGE, HV_EIO; HV_ENO naming what the target cannot say. */
enum hv_status hv_session_export_to(struct hv_session *s, uint32_t id, const char *target,
                                    const char *folder, struct hv_err *err) HV_NODISCARD;

/* ---- recovery -------------------------------------------------------------------------------- */

/** Writes unsaved edits to the recovery file now (hv_session_tick does when due). */
enum hv_status hv_session_autosave(struct hv_session *s, struct hv_err *err) HV_NODISCARD;
/** True where unsaved edits of a crashed program exist for this workspace. */
bool hv_session_recovery_offered(const struct hv_session *s);
/** Appends what recovery would change, line by line as commands: "set cluster.nodes[0].count 4". */
void hv_session_recovery_diff(const struct hv_session *s, struct hv_str *out);
/** Applies the recovered edits: one undo step per document, plans become rows; removes the old
 * recovery file. */
enum hv_status hv_session_recover(struct hv_session *s, struct hv_err *err) HV_NODISCARD;
/** Discards the offered edits and removes their file. */
void hv_session_recovery_discard(struct hv_session *s);

/* ---- the last place -------------------------------------------------------------------------- */

/** The workspace of the last session when it is still there, appended. `state_dir` as in the
 * environment. */
bool hv_session_last_workspace(const char *state_dir, struct hv_str *out);
/** When the last session was in this workspace: selects its plan again, appends its screen. */
bool hv_session_last_place(struct hv_session *s, struct hv_str *screen);
/** Stores the place for the next start. */
void hv_session_last_keep(const struct hv_session *s, const char *screen);
/** What a screen kept of this workspace in an earlier session, or NULL. Owner: json_decref. */
json_t *hv_session_view(const struct hv_session *s, const char *screen);
/** Keeps it (borrowed; NULL: nothing). A workspace that was never saved has no place for it. */
void hv_session_view_keep(const struct hv_session *s, const char *screen, json_t *kept);

#endif
