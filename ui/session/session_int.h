/** Shared by the files of the session; not for others. */
#ifndef HV_UI_SESSION_SESSION_INT_H
#define HV_UI_SESSION_SESSION_INT_H

#include "solver/base/arena.h"
#include "solver/base/vec.h"
#include "solver/io/own/workspace.h"
#include "ui/process/pool.h"
#include "ui/session/session.h"

/** Documents that are inputs of plans: the first of enum hv_doc. */
#define HV__INPUTS 3
/** Rows whose timeline is kept at the same time. */
#define HV__TIMELINES 4
/** Bytes of a row's log that are kept (the end of it). */
#define HV__LOG_KEPT 65536

/** A timeline made by a thread, with all that it stands on (session_draw.c). */
struct hv__drawn;
/** The thread that makes one. */
struct hv__drawing;

/** A plan built and judged against the documents as they were at `epoch`. */
struct hv__judged {
    uint64_t epoch; /**< 0 = not judged */
    const json_t *plan_tree;
    struct hv_plan_doc plan;
    struct hv_job_inputs *own; /**< of a plan for many jobs: what each names, and its context */
    size_t n_own;
    struct hv_cost **costs;
    struct hv_arena arena, timeline_arena;
    struct hv_verdict verdict, with_timeline;
    bool has_plan, has_verdict, has_timeline;
    struct hv__drawn *drawn; /**< verdict with the timeline as a thread made it, or NULL */
    bool draw_stopped;       /**< the user ended the thread: it is not begun again by itself */
    struct hv_err err;       /**< why one of them is missing */
};

/** A row with what it owns. */
struct hv__row {
    struct hv_row pub;
    uint32_t job; /**< in the pool; 0 = none */
    bool deleted; /**< taken away, but undo may bring it back */
    char *name, *strategy, *progress, *reason;
    struct hv_str log;
    json_t *options, *plan;
    json_t *made_for[HV__INPUTS]; /**< trees of the documents the plan was made for */
    HV_VEC(struct hv_row_point) points;
    json_t *saved_plan; /**< tree that lies in the saved workspace; NULL = none */
    char *saved_name;
    char *saved_ref; /**< its file as named by the workspace; NULL = inline */
    struct hv__judged judged;
};

/** What a step of the journal changed: a document, the presence of a row (gone or new), its name.
 */
enum hv__step_kind { HV__STEP_DOC, HV__STEP_DELETE, HV__STEP_ADD, HV__STEP_RENAME, HV__STEP_NOTE };
/** One step of the journal. */
struct hv__step {
    enum hv__step_kind kind;
    enum hv_doc doc;
    json_t *before, *after; /**< DOC: trees; NOTE: plans */
    uint32_t row;
    char *name_before, *name_after; /**< RENAME */
    char *label;
    bool joined; /**< made together with the step before it: both or none */
};

/** What a file looked like, to see later whether another program wrote it. */
struct hv__stamp {
    bool known;
    uint64_t file, bytes;
    int64_t changed_s, changed_ns;
};

/** The strategies of a session. */
struct hv__strategies {
    bool later;                    /**< they are still to be read */
    const struct hv_plugin *items; /**< in menu order */
    size_t n;
    struct hv_plugins read;     /**< owner of the items that were read here */
    struct hv_plugin *own;      /**< what `items` points at from the first reload on */
    struct hv_plugins *sources; /**< what an item was read from again; {0} = never */
};

/** An open workspace. */
struct hv_session {
    struct hv_session_env env;
    struct hv__strategies *strategies; /**< apart: asking for them may read them */
    char **worker_argv;
    char *state_dir;
    struct hv_pool *pool;
    struct hv_workspace workspace; /**< as opened or last saved; its tree keeps unknown `x-` keys */
    struct hv__stamp stamp;        /**< of the workspace's file when it was read or saved */
    bool overwrite;                /**< the user was told that it changed: save it all the same */
    bool first;                    /**< the sample was copied for this session */
    bool single_file;              /**< the workspace is one file with everything inline */
    char *path;                    /**< folder or file; NULL = none yet */
    char *name;
    struct hv_inputs inputs;
    json_t *tree[HV_DOC_N];       /**< immutable: an edit makes a new one */
    json_t *saved_tree[HV_DOC_N]; /**< as in the saved workspace; NULL = never saved */
    char *ref[HV_DOC_N];          /**< name in the workspace; NULL = held inline */
    uint64_t generation[HV_DOC_N];
    uint64_t epoch; /**< goes up with every change of an input */
    uint64_t changes;
    HV_VEC(struct hv__step) journal;
    size_t journal_at;             /**< steps before it can be undone, from it on redone */
    HV_VEC(struct hv__row *) rows; /**< all, in order of id, deleted ones included */
    HV_VEC(const struct hv_row *) shown;
    enum hv_sort sort;
    bool descending;
    bool sort_due; /**< a row came to its end: sort again at the end of the tick */
    uint32_t last_id, selected;
    struct hv_session_limits limits;
    struct hv_cost *cost;
    uint64_t cost_epoch, bound_epoch;
    struct hv_arena bound_arena;
    struct hv_bound bound;
    struct hv__drawing *drawing;       /**< NULL = no thread is at work */
    uint32_t timelines[HV__TIMELINES]; /**< rows with a timeline, the latest first */
    struct hv_str notice, notice_shown;
    bool moved;      /**< something visible changed since the last tick */
    double edited_s; /**< clock of the last unsaved change */
    double
        unsafe_s; /**< clock of the first change not yet in the recovery file; HV_UNKNOWN = none */
    HV_VEC(struct hv_log_line) log;
    struct {
        struct hv_pool *pool; /**< of its own: a console is no run */
        uint32_t job;
        uint64_t epoch; /**< state of the documents that the worker has */
        size_t n_waiting;
        bool more;
        struct hv_str chunk;
    } lua;
    int record_fd; /**< of the recording; −1 = none */
    char *record_path;
    size_t record_floor;       /**< steps of the journal when the recording began */
    bool record_runs;          /**< a run was recorded and its end not yet waited for */
    bool grouped;              /**< edits are put together … */
    json_t *pending[HV_DOC_N]; /**< … in these trees; NULL = not edited */
    char *recovery_out;        /**< own recovery file once written */
    char *recovery_in;         /**< file of a program that died; NULL = none */
    json_t *recovery;          /**< its content */
};

/** Remembers what the workspace's file looks like now. */
void hv__session_stamp(struct hv_session *s);
/** The clock, seconds. */
double hv__session_now(const struct hv_session *s);
/** Something was changed that would have to be saved. */
void hv__session_touch(struct hv_session *s);
/** Something visible changed. */
void hv__session_moved(struct hv_session *s);
/** Sets a heap string. */
void hv__session_set_text(char **slot, const char *text);

/* ---- documents ------------------------------------------------------------------------------- */

/** One key of a path. */
struct hv__key {
    const char *name; /**< NULL = element number `index` */
    size_t index;
};
/** A parsed key path; texts in the arena. */
struct hv__path {
    enum hv_doc doc;
    struct hv__key *keys;
    size_t n;
};
/** Parses "cluster.nodes[0].count". Errors: HV_EUSAGE. */
enum hv_status hv__session_path_parse(struct hv_arena *a, const char *text, struct hv__path *out,
                                      struct hv_err *err) HV_NODISCARD;
/** Value at the path in a tree, or NULL. */
json_t *hv__session_path_find(json_t *root, const struct hv__path *p);

/** What is done at the end of a key path. */
enum hv__change { HV__SET, HV__REMOVE, HV__INSERT };
/**
 * New tree that differs from `root` at the path only (the rest is shared). `value` is borrowed.
 * Errors: HV_EUSAGE where the path leads nowhere.
 */
enum hv_status hv__session_path_change(json_t *root, const struct hv__path *p,
                                       enum hv__change change, json_t *value, json_t **out,
                                       struct hv_err *err) HV_NODISCARD;

/** Builds the noun of a document from a tree and puts both in place; on error nothing changes. */
enum hv_status hv__session_doc_put(struct hv_session *s, enum hv_doc d, json_t *tree,
                                   struct hv_err *err) HV_NODISCARD;
/** As hv__session_doc_put, as a step of the journal. Borrows `tree`; takes over `label`. */
enum hv_status hv__session_doc_change(struct hv_session *s, enum hv_doc d, json_t *tree,
                                      char *label, struct hv_err *err) HV_NODISCARD;
/** Appends a step (everything in it is taken over); what could be redone is gone. */
void hv__session_journal_push(struct hv_session *s, struct hv__step step);
void hv__session_journal_free(struct hv_session *s);

/** A value as typed: JSON where it looks like it, else a bare word. Owner of *out: caller. */
enum hv_status hv__session_value(const char *text, json_t **out, struct hv_err *err) HV_NODISCARD;
/** Forgets the edits of a group that has not ended. */
void hv__session_group_drop(struct hv_session *s);

/** The strategies that the environment gives, or leaves for later. Owner: the session. */
struct hv__strategies *hv__strategies_new(const struct hv_session_env *env);
void hv__strategies_free(struct hv__strategies *l);
/** The strategies as a list for the functions of scripting/plugin/plugin.h, which only read it. */
struct hv_plugins hv__session_plugins(const struct hv_session *s);
/** Options object set for a strategy, borrowed; NULL = none. */
json_t *hv__session_options_of(const struct hv_session *s, const char *strategy);

/**
 * Appends the `set`, `insert` and `remove` lines that turn `before` into `after`; returns how many.
 * O(size of both trees); parts that are shared cost nothing.
 */
size_t hv__session_diff(enum hv_doc d, const json_t *before, const json_t *after,
                        struct hv_str *out);
/** A change was made: this line for the prompt makes it again. Logged, and recorded when asked. */
void hv__session_did(struct hv_session *s, const char *fmt, ...) HV_PRINTF(2, 3);
/** The same for a document, whatever changed it. */
void hv__session_did_doc(struct hv_session *s, enum hv_doc d, const json_t *before,
                         const json_t *after);
/** Appends a word of a `:` line, in quotation marks where it needs them. */
void hv__session_add_word(struct hv_str *out, const char *word);
void hv__session_lua_free(struct hv_session *s);
/** Ends the recording. */
void hv__session_record_stop(struct hv_session *s);
void hv__session_log_free(struct hv_session *s);

/* ---- rows ---------------------------------------------------------------------------------------
 */

/** A new queued row without a plan. Owner: the session. */
struct hv__row *hv__session_row_new(struct hv_session *s, const char *name, const char *strategy);
/**
 * As hv_session_row_add, as a step of the journal. Takes over `plan`; `label` NULL: "add NAME".
 */
enum hv_status hv__session_row_add_step(struct hv_session *s, const char *name, json_t *plan,
                                        const char *label, uint32_t *id,
                                        struct hv_err *err) HV_NODISCARD;
/** The row, deleted ones included, or NULL. */
struct hv__row *hv__session_row_any(const struct hv_session *s, uint32_t id);
/** Sets the plan (shared) and what follows from it. */
void hv__session_row_set_plan(struct hv_session *s, struct hv__row *r, json_t *plan);
/** Remembers that the plan was made for the documents as they are now. */
void hv__session_row_made_now(struct hv_session *s, struct hv__row *r);
/** Copies what the owner fields say to the public ones. */
void hv__session_row_publish(const struct hv_session *s, struct hv__row *r);
void hv__session_rows_publish(struct hv_session *s);
bool hv__session_row_is_saved(const struct hv__row *r);
/** The note in a plan (may be NULL), "" when there is none. */
const char *hv__session_note_of(const json_t *plan);
/** The plan with this note, "" = none. Owner: caller. */
json_t *hv__session_note_put(const json_t *plan, const char *note);
/** Undo and redo: the note of `to` instead of that of `from`. */
void hv__session_note_take(struct hv_session *s, struct hv__row *r, json_t *from, json_t *to);
/** A plan name nobody has yet, "base-N". Owner: caller. */
char *hv__session_row_fresh_name(const struct hv_session *s, const char *base);
void hv__session_row_free(struct hv__row *r);
/** Frees deleted rows that no step of the journal can bring back. */
void hv__session_rows_sweep(struct hv_session *s);
/** Builds the list of shown rows in order. */
void hv__session_rows_sort(struct hv_session *s);
/** Forgets what was judged. */
void hv__session_judged_free(struct hv__judged *j);
/** Rows of the pool's events. */
void hv__session_run_event(void *ctx, const struct hv_pool_event *ev);

/* ---- drawing apart ------------------------------------------------------------------------------
 */

/** Inputs and contexts of every job of a plan for many (none of other plans). */
enum hv_status hv__session_open_jobs(const struct hv_inputs *in, const struct hv_plan_doc *plan,
                                     struct hv_job_inputs **own, size_t *n_own,
                                     struct hv_cost ***costs, struct hv_err *err) HV_NODISCARD;
/** Is the timeline of this row, whose plan is built, made by a thread? */
bool hv__session_draws_apart(const struct hv_session *s, const struct hv__row *r);
/** The verdict with the timeline when it is there; else NULL, and a thread is at it unless it was
 * stopped. */
const struct hv_verdict *hv__session_draw(struct hv_session *s, struct hv__row *r,
                                          struct hv_err *err);
/** What is judged here is void: a thread that works on it shall end. */
void hv__session_draw_drop(struct hv_session *s, const struct hv__judged *j);
/** Ends the thread and waits for it. */
void hv__session_draw_free(struct hv_session *s);
void hv__session_draw_tick(struct hv_session *s);
size_t hv__session_draw_fds(const struct hv_session *s, struct pollfd *out, size_t cap);
int hv__session_draw_timeout_ms(const struct hv_session *s);
void hv__drawn_free(struct hv__drawn *d);
/** Memory of its verdict with the timeline; 0 for NULL. */
size_t hv__drawn_bytes(const struct hv__drawn *d);

/* ---- saving
 * --------------------------------------------------------------------------------------- */

/** Looks for edits of a program that died. */
void hv__session_recovery_look(struct hv_session *s);
/** Removes the own recovery file. */
void hv__session_recovery_remove(struct hv_session *s);
/** Writes the recovery file when it is due. */
void hv__session_recovery_tick(struct hv_session *s);
/** Milliseconds until hv__session_recovery_tick is due; −1 = never. */
int hv__session_recovery_timeout_ms(const struct hv_session *s);

#endif
