/**
 * Recovery: unsaved edits are kept in the state folder while the program runs, so that a crash
 * loses at most the last two seconds. The next program that opens the workspace offers them.
 */
#ifndef HV_UI_SESSION_STORE_RECOVERY_H
#define HV_UI_SESSION_STORE_RECOVERY_H

#include "ui/session/doc/documents.h"
#include "ui/session/row/rows.h"

/** The own recovery file and the one on offer. Owner: hv__recovery_free, which leaves the files. */
struct hv__recovery;

/** `state_dir` is borrowed; NULL: the user's own. */
struct hv__recovery *hv__recovery_new(const char *state_dir);
void hv__recovery_free(struct hv__recovery *r);

/* ---- the own file ---------------------------------------------------------------------------- */

/** Records a change that no file contains yet; `now_s` is the clock of the session. */
void hv__recovery_edited(struct hv__recovery *r, double now_s);
/** Clock at which hv__recovery_write is due; HV_UNKNOWN = nothing is unsaved. */
double hv__recovery_due_s(const struct hv__recovery *r);
/** Writing failed: it is due again half a minute later. */
void hv__recovery_retry(struct hv__recovery *r, double now_s);
/** Writes what differs from the saved workspace (its path, NULL = none yet). Errors: HV_EIO. */
enum hv_status hv__recovery_write(struct hv__recovery *r, const char *workspace,
                                  const struct hv__docs *docs, const struct hv__rows *rows,
                                  struct hv_err *err) HV_NODISCARD;
/** Removes the own file: nothing is unsaved. */
void hv__recovery_remove(struct hv__recovery *r);
/** The workspace was saved: as hv__recovery_remove, and the file on offer goes too where a user
 * left it behind (hv__recovery_leave). */
void hv__recovery_saved(struct hv__recovery *r);
/** The next file that is written is left behind by a user who quits without saving: it is on offer
 * until the workspace is saved again. */
void hv__recovery_leave(struct hv__recovery *r);

/* ---- files of programs that died ------------------------------------------------------------- */

/** Looks for a file of this workspace; removes incomplete files. */
void hv__recovery_look(struct hv__recovery *r, const char *workspace);
/** The offered edits, an object with the changed documents and "plans"; NULL = none. Borrowed. */
const json_t *hv__recovery_content(const struct hv__recovery *r);
/** Appends the changes that recovery would make, one command per line. */
void hv__recovery_diff(const struct hv__recovery *r, const struct hv__docs *docs,
                       struct hv_str *out);
/** Removes the file on offer. */
void hv__recovery_discard(struct hv__recovery *r);

#endif
