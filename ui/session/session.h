/**
 * The open workspace: documents that can be edited, an undo journal, strategy runs in workers with
 * their plans and verdicts, saving, autosave and recovery. It has no terminal and no screen.
 *
 * This header holds opening, closing and the loop; it includes the headers of all subjects, which
 * may also be included alone. Counters (hv_session_changes, hv_session_generation) only go up:
 * a caller that draws compares them with the values of its last drawing.
 */
#ifndef HV_UI_SESSION_SESSION_H
#define HV_UI_SESSION_SESSION_H

#include "ui/session/console.h"
#include "ui/session/documents.h"
#include "ui/session/judging.h"
#include "ui/session/record.h"
#include "ui/session/rows.h"
#include "ui/session/runs.h"
#include "ui/session/saving.h"
#include "ui/session/strategies.h"
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** An open workspace. Owner: hv_session_close. Not shared between threads. */
struct hv_session;

/** Environment of a session, replaceable for deterministic tests; {0} is the system. */
struct hv_session_env {
    void *ctx;                       /**< for the functions */
    double (*now_s)(void *ctx);      /**< monotonic clock; NULL: the system's */
    const char *state_dir;           /**< NULL: $XDG_STATE_HOME/hetviz */
    const char *const *worker_argv;  /**< NULL: this program with `worker` */
    size_t n_workers;                /**< 0: one per core */
    const struct hv_plugin *plugins; /**< strategies in menu order; borrowed while it is open */
    size_t n_plugins;
    size_t apart_from;     /**< timelines of at least about so many operations are made by a thread
                                while the program goes on; 0 = none are */
    size_t timeline_bytes; /**< limit of kept timelines; the last two always stay; 0 = 512 MiB */
    bool plugins_later;    /**< `plugins` is NULL: they are read (hv_plugins_read) at the first use,
                                so that an opening does not wait for them */
};

/* ---- open and close -------------------------------------------------------------------------- */

/**
 * Opens a workspace: a folder with workspace.json, or a file; NULL: the shipped sample, copied to
 * the state folder when it is not there yet. Plans listed in it become rows.
 * Errors: HV_EIO, HV_EINPUT (file:line:col); *out is NULL then.
 */
enum hv_status hv_session_open(struct hv_session **out, const char *path,
                               const struct hv_session_env *env, struct hv_err *err) HV_NODISCARD;
/**
 * A workspace made of three inputs (files or catalogue names; job may be NULL) that has no folder
 * yet: hv_session_save needs a path the first time.
 */
enum hv_status hv_session_new(struct hv_session **out, const char *cluster, const char *model,
                              const char *job, const struct hv_session_env *env,
                              struct hv_err *err) HV_NODISCARD;
/** True where this open copied the sample: the first start of the program. */
bool hv_session_is_first(const struct hv_session *s);
/** Kills all workers, removes the recovery file (a clean exit) and frees. NULL is fine. */
void hv_session_close(struct hv_session *s);
/** As hv_session_close, but writes unsaved edits to the recovery file: for SIGHUP and SIGTERM. */
void hv_session_abandon(struct hv_session *s);
/** As hv_session_abandon, for a user who quits without saving: the edits are offered again until
 * the workspace is saved. */
void hv_session_leave(struct hv_session *s);
/** Name of the workspace for the title; never NULL. */
const char *hv_session_name(const struct hv_session *s);
/** Folder or file as opened or saved; NULL when it has none yet. */
const char *hv_session_path(const struct hv_session *s);

/* ---- the loop -------------------------------------------------------------------------------- */

/** Fills at most `cap` entries for poll(2); returns the number of entries. */
size_t hv_session_fds(const struct hv_session *s, struct pollfd *out, size_t cap);
/** Milliseconds until hv_session_tick must be called without input; −1 = never (nothing runs,
 * nothing unsaved). */
int hv_session_timeout_ms(const struct hv_session *s);
/** Processes the output of workers and autosaves when due. True when something visible changed. */
bool hv_session_tick(struct hv_session *s);
/** The session's clock, seconds: for work that is spread over ticks. */
double hv_session_now_s(const struct hv_session *s);
/** Counter that increases with every change that may be visible. */
uint64_t hv_session_changes(const struct hv_session *s);
/** Message about an event without user input (autosave failed, a run ended), "" when none; cleared
 * by the call. */
const char *hv_session_notice(struct hv_session *s);

#endif
