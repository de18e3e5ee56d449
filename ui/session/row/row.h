/** A row of the plans table, as read by code outside of ui/session. */
#ifndef HV_UI_SESSION_ROW_ROW_H
#define HV_UI_SESSION_ROW_ROW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/** States of a row: constant, word in tables. */
#define HV_ROW_MAP(X)                                \
    X(HV_ROW_QUEUED,         "queued")               \
    X(HV_ROW_RUNNING,        "running")              \
    X(HV_ROW_DONE,           "done")                 \
    X(HV_ROW_INFEASIBLE,     "infeasible")           \
    X(HV_ROW_NOT_APPLICABLE, "does not apply")       \
    X(HV_ROW_FAILED,         "failed")               \
    X(HV_ROW_CANCELLED,      "cancelled")
/** Sort keys of rows: constant, word. */
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
enum hv_row_state {
#define X(c, name) c,
    HV_ROW_MAP(X)
#undef X
        HV_ROW_STATE_N
};
/** Sort keys of the table of plans. */
enum hv_sort {
#define X(c, name) c,
    HV_SORT_MAP(X)
#undef X
        HV_SORT_N
};
/** "queued", "does not apply". */
const char *hv_row_state_name(enum hv_row_state st);
/** "order", "memory". */
const char *hv_sort_name(enum hv_sort k);

/** A point of the best-so-far chart. */
struct hv_row_point {
    double at_s;        /**< since the start of the run */
    double iteration_s; /**< of the best plan then; HV_UNKNOWN when the worker did not report it */
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
    double progress_frac;        /**< HV_UNKNOWN when the worker did not report it */
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
    bool outdated; /**< the plan was made for cluster, model or job before an edit */
    bool saved;    /**< the plan lies in the saved workspace as it is here */
    bool deleted;  /**< undo may restore it; lists of rows omit it */
};

#endif
