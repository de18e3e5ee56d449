/**
 * The open workspace: documents that can be edited, an undo journal, strategy runs in workers with
 * their plans and verdicts, saving, autosave and recovery. Knows no terminal and no screen.
 *
 * Everything the screens show is read through this header. Counters (hv_session_changes,
 * hv_session_generation) only go up: whoever draws keeps the value it drew.
 */
#ifndef HV_UI_SESSION_SESSION_H
#define HV_UI_SESSION_SESSION_H

#include "scripting/plugin/plugin.h"
#include "solver/base/json/json.h"
#include "solver/base/log.h"
#include "solver/bound/bound.h"
#include "solver/eval/eval.h"
#include "solver/io/own/docs.h"
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Steps that can be undone. */
#define HV_SESSION_UNDO_LIMIT 1000
/** Unsaved edits are written to the recovery file after this long without an edit … */
#define HV_SESSION_IDLE_S 0.5
/** … and at least this often while edits go on: a killed program loses less than two seconds. */
#define HV_SESSION_AUTOSAVE_S 1.5
/** Where that fails it is tried again after this long. */
#define HV_SESSION_RETRY_S 30.0

/** An open workspace. Owner: hv_session_close. Not shared between threads. */
struct hv_session;

/* clang-format off */
/** Documents of a workspace: constant, first word of key paths and member of workspace.json. */
#define HV_DOC_MAP(X)                       \
    X(HV_DOC_CLUSTER,    "cluster")         \
    X(HV_DOC_MODEL,      "model")           \
    X(HV_DOC_JOB,        "job")             \
    X(HV_DOC_STRATEGIES, "strategies")
/* clang-format on */
/** STRATEGIES is the list [{"id": …, "options": {…}}] of options that differ from the defaults. */
enum hv_doc {
#define X(c, name) c,
    HV_DOC_MAP(X)
#undef X
        HV_DOC_N
};
/** First word of key paths: "cluster". */
const char *hv_doc_name(enum hv_doc d);

/** What a session takes from outside, so that tests are deterministic; {0} is the real world. */
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
    size_t timeline_bytes; /**< so many of timelines are kept, and the last two; 0 = 512 MiB */
    bool plugins_later;    /**< `plugins` is NULL: they are read (hv_plugins_read) when first asked
                                for, so that an opening does not wait for them */
};

/* ---- open and close (session.c, session_open.c) ---------------------------------------------- */

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
/** True when the sample was copied by this very open: the program's first start. */
bool hv_session_is_first(const struct hv_session *s);
/** The workspace of the last session when it is still there, appended. `state_dir` as in the
 * environment. */
bool hv_session_last_workspace(const char *state_dir, struct hv_str *out);
/** When the last session was in this workspace: selects its plan again, appends its screen. */
bool hv_session_last_place(struct hv_session *s, struct hv_str *screen);
/** Keeps the place for the next start. */
void hv_session_last_keep(const struct hv_session *s, const char *screen);
/** Kills all workers, removes the recovery file (a clean exit) and frees. NULL is fine. */
void hv_session_close(struct hv_session *s);
/** As hv_session_close, but writes unsaved edits to the recovery file: for SIGHUP and SIGTERM. */
void hv_session_abandon(struct hv_session *s);
/** Name of the workspace for the title; never NULL. */
const char *hv_session_name(const struct hv_session *s);
/** Folder or file as opened or saved; NULL when it has none yet. */
const char *hv_session_path(const struct hv_session *s);

/* ---- the loop -------------------------------------------------------------------------------- */

/** Rows for poll(2), at most `cap` filled; returns how many there are. */
size_t hv_session_fds(const struct hv_session *s, struct pollfd *out, size_t cap);
/** Milliseconds until hv_session_tick is wanted without input; −1 = never (nothing runs, nothing
 * unsaved). */
int hv_session_timeout_ms(const struct hv_session *s);
/** Takes in what workers said and autosaves when due. True when something visible changed. */
bool hv_session_tick(struct hv_session *s);
/** The session's clock, seconds: for work that is spread over ticks. */
double hv_session_now_s(const struct hv_session *s);
/** Goes up with everything that may change a picture. */
uint64_t hv_session_changes(const struct hv_session *s);
/** Message of something that happened by itself (autosave failed, a run ended), "" when none;
 * cleared by the call. */
const char *hv_session_notice(struct hv_session *s);

/* ---- documents (session_edit.c) ----------------------------------------------------------------
 */

const struct hv_cluster_doc *
hv_session_cluster(const struct hv_session *s); /**< borrowed until the next edit */
const struct hv_model_doc *hv_session_model(const struct hv_session *s); /**< likewise */
const struct hv_job_doc *hv_session_job(const struct hv_session *s);     /**< likewise */
/** Device kinds the cluster may name; borrowed until the session is closed. */
const struct hv_device_catalogue *hv_session_devices(const struct hv_session *s);
/** JSON tree of a document; borrowed until the next edit. */
const json_t *hv_session_tree(const struct hv_session *s, enum hv_doc d);
/** Goes up with every change of the document, undo included. */
uint64_t hv_session_generation(const struct hv_session *s, enum hv_doc d);
/** Where the document came from: path, catalogue name, or NULL when it is held by the workspace. */
const char *hv_session_source(const struct hv_session *s, enum hv_doc d);

/**
 * Value at a key path ("cluster.nodes[0].count", "model",
 * "cluster.devices[\"My.Card\"].memory_GiB"), or NULL when there is none. Borrowed until the next
 * edit.
 */
const json_t *hv_session_get(const struct hv_session *s, const char *path);
/**
 * Sets the value at a key path (the last key may be new) as one undo step; setting what is there
 * already is no step. The document is built again by the code that reads files; when that fails the
 * old one stays. Takes over `value` also on failure.
 * Errors: HV_EUSAGE for a path that leads nowhere, HV_EINPUT with the key path otherwise.
 */
enum hv_status hv_session_set(struct hv_session *s, const char *path, json_t *value,
                              struct hv_err *err) HV_NODISCARD;
/** As hv_session_set with JSON or a bare word ("4", "null", "[1, 2]", nvlink). */
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
 * at the end). Takes over `value`. Adding and pasting node groups are this.
 */
enum hv_status hv_session_insert(struct hv_session *s, const char *path, json_t *value,
                                 struct hv_err *err) HV_NODISCARD;
/** Replaces a whole document (import, recovery) as one undo step named `label`. Takes over `tree`.
 */
enum hv_status hv_session_replace(struct hv_session *s, enum hv_doc d, json_t *tree,
                                  const char *label, struct hv_err *err) HV_NODISCARD;

/**
 * Carries out the commands a console has given back (hv_console_commands), each edit as one undo
 * step, each plan as a row; *n_done says how many. Errors: as the edit that was refused; those
 * before it stay done.
 */
enum hv_status hv_session_apply(struct hv_session *s, const json_t *commands, size_t *n_done,
                                struct hv_err *err) HV_NODISCARD;
/**
 * From here on sets, removals and insertions are only collected, each on top of the last; what the
 * session shows stays as it is. A second begin drops what was collected; so does undo.
 */
void hv_session_group_begin(struct hv_session *s);
/** Makes the collected edits: per document one check and one undo step. Errors: as hv_session_set;
 * documents after the one refused stay as they were. */
enum hv_status hv_session_group_end(struct hv_session *s, struct hv_err *err) HV_NODISCARD;

/* ---- measured profiles (session_profile.c) ------------------------------------------------------
 */

/**
 * Prices the kinds of a profile (hetviz.profile/1) by it from now on, and copies it among the
 * user's own, where later starts and workers find it. Says so in `said`. No undo step: the
 * workspace stays as it is. Errors: HV_EIO, HV_EINPUT (file:line:col); nothing is kept then.
 */
enum hv_status hv_session_profile_load(struct hv_session *s, const char *path, struct hv_str *said,
                                       struct hv_err *err) HV_NODISCARD;
/** Reads the user's own profiles again, after a measurement. Errors: those of reading them. */
enum hv_status hv_session_profiles_reload(struct hv_session *s, struct hv_err *err) HV_NODISCARD;

/* ---- undo (session_undo.c)
 * ----------------------------------------------------------------------- */

/** Takes the last step back; false when there is none. */
bool hv_session_undo(struct hv_session *s);
/** Makes the step again that was taken back; false when there is none. */
bool hv_session_redo(struct hv_session *s);
/** Label of what undo would take back ("set cluster.nodes[0].count 4"), or NULL. */
const char *hv_session_undo_label(const struct hv_session *s);
/** Label of what redo would make again, or NULL. */
const char *hv_session_redo_label(const struct hv_session *s);
size_t hv_session_n_undo(const struct hv_session *s); /**< steps that can be taken back */
size_t hv_session_n_redo(const struct hv_session *s); /**< steps that can be made again */
/** True when saving would write something else than what was saved last (plans found count). */
bool hv_session_dirty(const struct hv_session *s);

/* ---- strategies (session_runs.c) ---------------------------------------------------------------
 */

/** All strategies, in menu order (broken ones have their error). The first call reads them where
 * the environment left that for later; a failure is logged, there are none then. */
const struct hv_plugin *hv_session_strategies(const struct hv_session *s, size_t *n);
/** Names of all schedules that can be asked for: those of the table, then those written in Lua.
 * Owner: the caller frees the array. */
const char **hv_session_schedules(const struct hv_session *s, size_t *n);
/** Strategy of that id, or NULL. */
const struct hv_plugin *hv_session_strategy(const struct hv_session *s, const char *id);
/**
 * Reads the plugins again whose files changed since they were read, and that of `id` (may be NULL)
 * in any case; *n_read = how many took the place of what was known. Pointers to strategies, their
 * texts and rows, are void then. Errors: HV_EPLUGIN (file:line) or HV_EIO of the one asked for,
 * else of the first; where one cannot be read the strategy stays as it was. O(bytes of all files).
 */
enum hv_status hv_session_strategies_reload(struct hv_session *s, const char *id, size_t *n_read,
                                            struct hv_err *err) HV_NODISCARD;
/** Current value of an option as text: what was set, else the default. Appended to `out`. */
void hv_session_option(const struct hv_session *s, const char *strategy, const char *key,
                       struct hv_str *out);
/** True when the option was set to something else than left alone. */
bool hv_session_option_is_set(const struct hv_session *s, const char *strategy, const char *key);
/** Sets an option for the next runs (checked, one undo step, saved with the workspace); NULL text:
 * back to the default. */
enum hv_status hv_session_option_set(struct hv_session *s, const char *strategy, const char *key,
                                     const char *text, struct hv_err *err) HV_NODISCARD;

/** What every run gets. */
struct hv_session_limits {
    double time_limit_s; /**< wall clock per run; ≤ 0 = none */
    int64_t budget;      /**< evaluations; 0 = none */
    uint64_t seed;       /**< 1 */
};
struct hv_session_limits hv_session_limits(const struct hv_session *s);
void hv_session_limits_set(struct hv_session *s, struct hv_session_limits limits);

/* ---- rows: runs and their plans (session_runs.c, session_rows.c) --------------------------------
 */

/* clang-format off */
/** States of a row: constant, word in tables, mark of one letter. */
#define HV_ROW_MAP(X)                                       \
    X(HV_ROW_QUEUED,         "queued",         "q")         \
    X(HV_ROW_RUNNING,        "running",        ">")         \
    X(HV_ROW_DONE,           "done",           " ")         \
    X(HV_ROW_INFEASIBLE,     "infeasible",     "!")         \
    X(HV_ROW_NOT_APPLICABLE, "does not apply", "-")         \
    X(HV_ROW_FAILED,         "failed",         "E")         \
    X(HV_ROW_CANCELLED,      "cancelled",      "x")
/* clang-format on */
enum hv_row_state {
#define X(c, name, mark) c,
    HV_ROW_MAP(X)
#undef X
        HV_ROW_STATE_N
};
const char *hv_row_state_name(enum hv_row_state st);
const char *hv_row_state_mark(enum hv_row_state st);

/** A point of the best-so-far chart. */
struct hv_row_point {
    double at_s;        /**< since the start of the run */
    double iteration_s; /**< of the best plan then; HV_UNKNOWN when the worker did not say */
};

/** A row of the plans table. Read only; valid until the row is gone (look it up by id). */
struct hv_row {
    uint32_t id;      /**< never used twice in a session */
    const char *name; /**< of the plan: "oobleck-2" */
    const char
        *strategy; /**< "oobleck", "uniform+fireflyer"; of plans from files their strategy name,
                      "" when unknown */
    const json_t *options; /**< as given to the run; NULL = none */
    enum hv_row_state state;
    double progress_frac;        /**< HV_UNKNOWN when the worker did not say */
    const char *progress_text;   /**< never NULL */
    double bound_s;              /**< the search's own lower bound; HV_UNKNOWN */
    double started_s, elapsed_s; /**< clock of the session; elapsed grows while it runs */
    const char *reason;          /**< why it has no plan, or was cut short; never NULL */
    const char *log;       /**< lines of the worker and the end of its standard error; never NULL */
    const json_t *plan;    /**< tree of the best plan so far, or NULL */
    const char *note;      /**< written by the user on the plan; never NULL, "" = none */
    const json_t *claimed; /**< `claimed` of the plan, or NULL */
    const struct hv_row_point *points; /**< incumbents in order */
    size_t n_points;
    bool outdated; /**< the plan was made for cluster, model or job as they were before an edit */
    bool saved;    /**< the plan lies in the saved workspace as it is here */
};

/** All rows in the current sort order (borrowed until rows or their order change). */
const struct hv_row *const *hv_session_rows(const struct hv_session *s, size_t *n);
/** Row of that id, or NULL. */
const struct hv_row *hv_session_row(const struct hv_session *s, uint32_t id);
/**
 * Verdict of a row's plan against the documents as they are now, judged when first asked for and
 * kept until the plan or a document changes. NULL when there is no plan or it cannot be judged
 * (reason in err).
 * @param timeline  also keep spans for drawing. Where that takes long (hv_session_env.apart_from)
 * the answer is NULL until a thread is through, HV_ESTOPPED in err; hv_session_drawing tells.
 */
const struct hv_verdict *hv_session_verdict(struct hv_session *s, uint32_t id, bool timeline,
                                            struct hv_err *err);
/** What a timeline is waiting for: nothing, a thread that makes it, or to be asked for again. */
enum hv_drawing { HV_DRAWING_NONE, HV_DRAWING_RUNS, HV_DRAWING_STOPPED };
/** Is the timeline of a row in the making, and how much of it is done (frac may be NULL)? */
enum hv_drawing hv_session_drawing(const struct hv_session *s, uint32_t id, double *frac);
/** Stops it; false when nothing was in the making. */
bool hv_session_draw_stop(struct hv_session *s, uint32_t id);
/** Lets a timeline that was stopped be made after all. */
void hv_session_draw_again(struct hv_session *s, uint32_t id);
/** The row's plan as built against the documents as they are now; NULL as above. Borrowed as the
 * verdict. */
const struct hv_plan *hv_session_plan(struct hv_session *s, uint32_t id, struct hv_err *err);
/** Lower bound for the documents as they are now; iteration_s is HV_UNKNOWN when there is none.
 * Kept. */
struct hv_bound hv_session_bound(struct hv_session *s);
/** Cost model of the documents as they are now. Borrowed until the next edit. */
struct hv_cost *hv_session_cost(struct hv_session *s);

/* clang-format off */
/** What rows can be sorted by: constant, word, word in headings. */
#define HV_SORT_MAP(X)                      \
    X(HV_SORT_ID,        "order")           \
    X(HV_SORT_NAME,      "name")            \
    X(HV_SORT_STATE,     "state")           \
    X(HV_SORT_TIME,      "time")            \
    X(HV_SORT_TOKENS,    "tokens")          \
    X(HV_SORT_MFU,       "mfu")             \
    X(HV_SORT_COST,      "cost")            \
    X(HV_SORT_MEMORY,    "memory")          \
    X(HV_SORT_BUBBLE,    "bubble")          \
    X(HV_SORT_ENERGY,    "energy")
/* clang-format on */
enum hv_sort {
#define X(c, name) c,
    HV_SORT_MAP(X)
#undef X
        HV_SORT_N
};
const char *hv_sort_name(enum hv_sort k);
/**
 * Sorts rows (kept sorted from then on). Plans with violations come after those without, rows
 * without a figure last, ties by id. Judges what is not judged yet.
 */
void hv_session_sort(struct hv_session *s, enum hv_sort key, bool descending);
enum hv_sort hv_session_sort_key(const struct hv_session *s, bool *descending);

/** Row that screens and commands work on: the last one selected that still exists, else 0. */
uint32_t hv_session_selected(const struct hv_session *s);
void hv_session_select(struct hv_session *s, uint32_t id);

/**
 * Queues a run of a strategy or composition ("uniform+fireflyer") with the options set for it,
 * changed by `options` (an object, borrowed; NULL = none). *id (may be NULL) = the new row. Errors:
 * HV_EUSAGE for an unknown strategy (with the nearest) or a wrong option.
 */
enum hv_status hv_session_run(struct hv_session *s, const char *strategy, const json_t *options,
                              uint32_t *id, struct hv_err *err) HV_NODISCARD;
/** Queues every strategy with the options set for it; returns how many. */
size_t hv_session_run_all(struct hv_session *s);
/** Cancels a queued or running row, the best plan stays. False when it was neither. */
bool hv_session_cancel(struct hv_session *s, uint32_t id);
/** Cancels all; returns how many. */
size_t hv_session_cancel_all(struct hv_session *s);
/** Takes a row away (a running one is cancelled first) as one undo step. False when there is none.
 */
bool hv_session_row_delete(struct hv_session *s, uint32_t id);
/** Renames the plan of a row as one undo step. Errors: HV_EUSAGE for "", "/" and control
 * characters, or a name taken. */
enum hv_status hv_session_row_rename(struct hv_session *s, uint32_t id, const char *name,
                                     struct hv_err *err) HV_NODISCARD;
/**
 * Writes a note (one line, at most 1,000 bytes) on a row's plan, as one undo step; "" takes it
 * away. It is kept in the plan (`x-note`) and saved with it. Errors: HV_EUSAGE for a row without a
 * plan.
 */
enum hv_status hv_session_row_note(struct hv_session *s, uint32_t id, const char *note,
                                   struct hv_err *err) HV_NODISCARD;
/** Adds a row from a plan tree (import, paste, edit by hand). Takes over `plan`. Errors: HV_EINPUT.
 */
enum hv_status hv_session_row_add(struct hv_session *s, const char *name, json_t *plan,
                                  uint32_t *id, struct hv_err *err) HV_NODISCARD;
/** Writes the plan of a row, `simulated` included and inputs inline, to a file. Errors: HV_EUSAGE,
 * HV_EIO. */
enum hv_status hv_session_export(struct hv_session *s, uint32_t id, const char *path,
                                 struct hv_err *err) HV_NODISCARD;
size_t hv_session_n_running(const struct hv_session *s);
size_t hv_session_n_queued(const struct hv_session *s);

/* ---- log and recording (session_log.c) ---------------------------------------------------------
 */

/** One line of the log. */
struct hv_log_line {
    double at_s; /**< seconds since 1970; by the session's clock where it was given one */
    enum hv_log_level level;
    bool command; /**< `text` is a line for the prompt that makes this change again */
    char *area;   /**< "run", "command", a strategy's name */
    char *text;   /**< clean, without newline */
};
/** Adds a line (of a text with newlines several). */
void hv_session_log(struct hv_session *s, enum hv_log_level level, const char *area,
                    const char *fmt, ...) HV_PRINTF(4, 5);
/** The last lines (2,000 at least), oldest first; borrowed until the next change of the session. */
const struct hv_log_line *hv_session_log_lines(const struct hv_session *s, size_t *n);
/**
 * Writes every change from now on to a file (made anew) as a script for `--script`: what was
 * changed since the workspace was saved first, then each edit, run, undo and export as its `:`
 * line. NULL ends the recording. Errors: HV_EIO.
 */
enum hv_status hv_session_record(struct hv_session *s, const char *path,
                                 struct hv_err *err) HV_NODISCARD;
/** File of the recording, or NULL. */
const char *hv_session_recording(const struct hv_session *s);

/* ---- Lua (session_lua.c) ------------------------------------------------------------------------
 */

/**
 * Runs a line of Lua in a worker with a copy of the workspace (started when there is none). What it
 * says goes to the log, what it changes of `workspace` comes back as edits that can be undone.
 */
void hv_session_lua(struct hv_session *s, const char *text);
/** Was the last line the beginning of something? The next one is put behind it. */
bool hv_session_lua_wants_more(const struct hv_session *s);
/** Does a line run? */
bool hv_session_lua_busy(const struct hv_session *s);
/** Ends the line that runs; false when none does. Variables begin anew. */
bool hv_session_lua_stop(struct hv_session *s);

/* ---- saving (session_save.c, session_recover.c)
 * --------------------------------------------------- */

/**
 * Saves the whole workspace where it came from, or to `path` (a folder, made when missing; a name
 * ending in .json = one file with everything inline). Either all files are written or none: they
 * are written beside the old ones first and renamed when all are safe. Shipped and foreign files
 * are never written: a document that came from one and was changed goes into the workspace. Errors:
 * HV_EUSAGE when there is no path yet, HV_EIO (also once when another program wrote the workspace
 * since it was read: saving again overwrites it); nothing is lost, undo and dirty mark stay.
 */
enum hv_status hv_session_save(struct hv_session *s, const char *path,
                               struct hv_err *err) HV_NODISCARD;
/** Writes unsaved edits to the recovery file now (hv_session_tick does when due). */
enum hv_status hv_session_autosave(struct hv_session *s, struct hv_err *err) HV_NODISCARD;
/** True when edits of an earlier program that died are there for this workspace. */
bool hv_session_recovery_offered(const struct hv_session *s);
/** Appends what recovery would change: "cluster, 2 plans". */
void hv_session_recovery_describe(const struct hv_session *s, struct hv_str *out);
/** Appends what it would change, line by line as commands: "set cluster.nodes[0].count 4". */
void hv_session_recovery_diff(const struct hv_session *s, struct hv_str *out);
/** Takes them over: each document one undo step, plans become rows; the old recovery file goes. */
enum hv_status hv_session_recover(struct hv_session *s, struct hv_err *err) HV_NODISCARD;
/** Throws them away. */
void hv_session_recovery_discard(struct hv_session *s);

#endif
