/**
 * The parts that a session is made of; for the files of this folder only. Each part owns its state,
 * private to its files, and calls no function of the session: it reports by return values. The
 * files of this folder apply each change to all parts concerned.
 */
#ifndef HV_UI_SESSION_SESSION_INT_H
#define HV_UI_SESSION_SESSION_INT_H

#include "ui/process/pool.h"
#include "ui/session/doc/documents.h"
#include "ui/session/doc/journal.h"
#include "ui/session/log/log.h"
#include "ui/session/log/recording.h"
#include "ui/session/row/judged.h"
#include "ui/session/row/rows.h"
#include "ui/session/run/console.h"
#include "ui/session/run/strategies.h"
#include "ui/session/session.h"
#include "ui/session/store/place.h"
#include "ui/session/store/recovery.h"

/** An open workspace. */
struct hv_session {
    struct hv_session_env env;
    char *state_dir; /**< NULL: the user's own */
    bool first;      /**< the sample was copied for this session */
    struct hv__docs *docs;
    struct hv__journal *journal;
    struct hv__strategies *strategies;
    struct hv__rows *rows;
    struct hv__cache *cache;
    struct hv_pool *pool; /**< of runs */
    struct hv__console *console;
    struct hv__log *log;
    struct hv__recording *recording;
    struct hv__place *place;
    struct hv__recovery *recovery;
    struct hv_session_limits limits;
    struct hv_str notice, notice_shown;
    uint64_t changes; /**< changes of parts without a counter */
    uint64_t ticked;  /**< hv_session_changes at the last tick */
    bool sort_due;    /**< a run ended: sort again at the end of the tick */
};

/* ---- changes (changes.c) --------------------------------------------------------------------- */

/** Something visible changed. */
void hv__session_moved(struct hv_session *s);
/** Marks the workspace as unsaved. */
void hv__session_touch(struct hv_session *s);
/** Sets the message about an event without user input. */
void hv__session_set_notice(struct hv_session *s, const char *fmt, ...) HV_PRINTF(2, 3);
/** Appends a step (takes ownership of its contents); drops the steps that could be redone. */
void hv__session_journal_push(struct hv_session *s, struct hv__step step);
/** Frees rows that cannot be restored, with their cached results. */
void hv__session_rows_sweep(struct hv_session *s);

/* ---- the whole (session.c) ------------------------------------------------------------------- */

/** A session without a workspace. Owner: hv__session_free. */
struct hv_session *hv__session_new(const struct hv_session_env *env, const char *name);
/** Kills all workers and frees; files stay. */
void hv__session_free(struct hv_session *s);
/* ---- documents (edit.c, strategies.c) -------------------------------------------------------- */

/** Builds the object of a document from a tree and puts both in place; on error nothing changes. */
enum hv_status hv__session_doc_put(struct hv_session *s, enum hv_doc d, json_t *tree,
                                   struct hv_err *err) HV_NODISCARD;
/** As hv__session_doc_put, as a step of the journal. Borrows `tree`; takes over `label`. */
enum hv_status hv__session_doc_change(struct hv_session *s, enum hv_doc d, json_t *tree,
                                      char *label, struct hv_err *err) HV_NODISCARD;
/** Options object set for a strategy, borrowed; NULL = none. */
json_t *hv__session_options_of(const struct hv_session *s, const char *strategy);

/* ---- rows (judging.c, runs.c, console.c) ----------------------------------------------------- */

/** Sorts the shown rows. */
void hv__session_rows_sort(struct hv_session *s);
/** Takes an event of the pool; ctx is the session. */
void hv__session_run_event(void *ctx, const struct hv_pool_event *ev);
/** Carries out the commands of the console; ctx is the session. */
void hv__session_console_commands(void *ctx, const json_t *commands);

/* ---- log of changes (record.c) --------------------------------------------------------------- */

/** Logs a change as the prompt line that repeats it; also records it while a recording is
 * active. */
void hv__session_did(struct hv_session *s, const char *fmt, ...) HV_PRINTF(2, 3);
/** The same for a verb with one or two words, each in quotation marks where it needs them; a word
 * that is NULL is left out. */
void hv__session_did_words(struct hv_session *s, const char *verb, const char *first,
                           const char *second);
/** The same for a change of a document of any origin. */
void hv__session_did_doc(struct hv_session *s, enum hv_doc d, const json_t *before,
                         const json_t *after);

/* ---- recovery (recover.c) -------------------------------------------------------------------- */

/** Writes the recovery file when it is due. */
void hv__session_recovery_tick(struct hv_session *s);
/** Milliseconds until hv__session_recovery_tick is due; −1 = never. */
int hv__session_recovery_timeout_ms(const struct hv_session *s);

#endif
