/** The documents of a session: reading them, changing them, undo. */
#ifndef HV_UI_SESSION_DOCUMENTS_H
#define HV_UI_SESSION_DOCUMENTS_H

#include "solver/base/json/json.h"
#include "solver/io/own/doc/names.h"
#include "solver/io/own/docs.h"
#include "ui/session/doc/undo_limit.h"
#include <stdbool.h>
#include <stdint.h>

struct hv_session;

/** The cluster, the model and the job. Borrowed until the next edit. */
const struct hv_cluster_doc *hv_session_cluster(const struct hv_session *s);
const struct hv_model_doc *hv_session_model(const struct hv_session *s);
const struct hv_job_doc *hv_session_job(const struct hv_session *s);
/** Device kinds the cluster may name; borrowed until the session is closed. */
const struct hv_device_catalogue *hv_session_devices(const struct hv_session *s);
/** JSON tree of a document; borrowed until the next edit. */
const json_t *hv_session_tree(const struct hv_session *s, enum hv_doc d);
/** Counter that increases with every change of the document, undo included. */
uint64_t hv_session_generation(const struct hv_session *s, enum hv_doc d);
/** Source of the document: path, catalogue name, or NULL where it is stored inline in the
 * workspace. */
const char *hv_session_source(const struct hv_session *s, enum hv_doc d);

/* ---- edits ----------------------------------------------------------------------------------- */

/**
 * Value at a key path ("cluster.nodes[0].count", "model",
 * "cluster.devices[\"My.Card\"].memory_GiB"), or NULL when there is none. Borrowed until the next
 * edit.
 */
const json_t *hv_session_get(const struct hv_session *s, const char *path);
/**
 * Sets the value at a key path (the last key may be new) as one undo step; setting the present
 * value makes no step. The document is built again by the code that reads files; where that fails
 * the old one is kept. Takes ownership of `value`, also on failure. Errors: HV_EUSAGE for a path
 * that does not exist, HV_EINPUT with the key path otherwise.
 */
enum hv_status hv_session_set(struct hv_session *s, const char *path, json_t *value,
                              struct hv_err *err) HV_NODISCARD;
/** As hv_session_set with a value as typed: JSON or a bare word ("4", "null", "[1, 2]", nvlink). */
enum hv_status hv_session_set_text(struct hv_session *s, const char *path, const char *text,
                                   struct hv_err *err) HV_NODISCARD;
/** The same value at n paths of one document, as one undo step (bulk edit of marked rows). */
enum hv_status hv_session_set_many(struct hv_session *s, const char *const *paths, size_t n,
                                   const char *text, struct hv_err *err) HV_NODISCARD;
/** Removes a member or array element ("cluster.nodes[2]"). */
enum hv_status hv_session_remove(struct hv_session *s, const char *path,
                                 struct hv_err *err) HV_NODISCARD;
/**
 * Inserts an element into an array before the index in the path ("cluster.nodes[2]"; the length =
 * at the end). Takes ownership of `value`. Used to add and paste node groups.
 */
enum hv_status hv_session_insert(struct hv_session *s, const char *path, json_t *value,
                                 struct hv_err *err) HV_NODISCARD;
/** As hv_session_insert with a value as typed. */
enum hv_status hv_session_insert_text(struct hv_session *s, const char *path, const char *text,
                                      struct hv_err *err) HV_NODISCARD;
/** Replaces a whole document (import, recovery) as one undo step named `label`. Takes over `tree`.
 */
enum hv_status hv_session_replace(struct hv_session *s, enum hv_doc d, json_t *tree,
                                  const char *label, struct hv_err *err) HV_NODISCARD;
/**
 * Starts collecting sets, removals and insertions, each applied on top of the last; the present
 * documents do not change. A second begin, or an undo, drops the collected edits.
 */
void hv_session_group_begin(struct hv_session *s);
/** Applies the collected edits: one check and one undo step per document. Errors: as
 * hv_session_set; documents after the failing one are unchanged. */
enum hv_status hv_session_group_end(struct hv_session *s, struct hv_err *err) HV_NODISCARD;

/* ---- undo ------------------------------------------------------------------------------------ */

/** Undoes the last step; false where there is none. */
bool hv_session_undo(struct hv_session *s);
/** Redoes the step that was undone last; false where there is none. */
bool hv_session_redo(struct hv_session *s);
/** Label of the step that undo would revert ("set cluster.nodes[0].count 4"), or NULL. */
const char *hv_session_undo_label(const struct hv_session *s);
/** Label of the step that redo would apply, or NULL. */
const char *hv_session_redo_label(const struct hv_session *s);
/** Number of steps that can be undone. */
size_t hv_session_n_undo(const struct hv_session *s);
/** Joins the last step to the one before it: undo reverts both. */
void hv_session_join_last(struct hv_session *s);
/** True where the state to save differs from the last saved state (new plans included). */
bool hv_session_dirty(const struct hv_session *s);

/* ---- measured profiles ----------------------------------------------------------------------- */

/**
 * Uses a profile (hetviz.profile/1) for the cost of its kinds, and copies it to the user's profile
 * folder, where later starts and workers find it. A line about it is appended to `said`. Makes no
 * undo step: the workspace is unchanged. Errors: HV_EIO, HV_EINPUT (file:line:col); nothing is kept
 * then.
 */
enum hv_status hv_session_profile_load(struct hv_session *s, const char *path, struct hv_str *said,
                                       struct hv_err *err) HV_NODISCARD;
/** Reads the user's own profiles again, after a measurement. Errors: those of reading them. */
enum hv_status hv_session_profiles_reload(struct hv_session *s, struct hv_err *err) HV_NODISCARD;

#endif
