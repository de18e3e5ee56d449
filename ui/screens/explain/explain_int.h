/** Private to the files of the Explain screen: data of one plan, its rows, layout of its panels. */
#ifndef HV_UI_SCREENS_EXPLAIN_EXPLAIN_INT_H
#define HV_UI_SCREENS_EXPLAIN_EXPLAIN_INT_H

#include "solver/base/vec.h"
#include "solver/eval/balance.h"
#include "solver/eval/experts/loads.h"
#include "ui/lever/lever.h"
#include "ui/screens/facts/shown.h"

/** Panels in the order of Tab. */
enum hv_explain_panel { HV_EXPLAIN_TREE, HV_EXPLAIN_BARS, HV_EXPLAIN_TEXT, HV_EXPLAIN_PANEL_N };

/** Where the evidence of a row is. */
enum hv_evidence_kind {
    HV_EVIDENCE_NONE,
    HV_EVIDENCE_GANTT,   /**< lane and time */
    HV_EVIDENCE_CLUSTER, /**< a node group by name */
    HV_EVIDENCE_MODEL,   /**< model and job */
    HV_EVIDENCE_LEVER,   /**< What-if with a lever turned */
};
/** Evidence: what Enter opens. */
struct hv_evidence {
    enum hv_evidence_kind kind;
    size_t replica, stage; /**< GANTT: the lane */
    double at_s;           /**< GANTT */
    const char *name;      /**< CLUSTER */
    size_t lever;          /**< LEVER: number in the list */
    double value;
};

/** Columns of the rows about what to do. */
enum hv_explain_cell {
    HV_EXPLAIN_STEP,
    HV_EXPLAIN_CHANGE,
    HV_EXPLAIN_MTOK,
    HV_EXPLAIN_HOUR,
    HV_EXPLAIN_CELL_N
};

/** One row of the tree. Texts live with the data. */
struct hv_explain_row {
    uint64_t id; /**< the same for the same thing */
    int depth;
    bool folds, open;    /**< it has rows below; they are shown */
    const char *name;    /**< column of its own below a chapter, else NULL */
    const char *value;   /**< right of the name */
    const char *text;    /**< the sentence, or formula and source */
    double frac;         /**< drawn as a bar where known */
    const double *strip; /**< [n_strip] drawn as a column each, 1 = half a cell; NULL: none */
    size_t n_strip;
    const char *detail; /**< more for the text panel, or NULL */
    const char *full;   /**< the sentence of which `text` is a part, or NULL: `text` is all */
    const char *cells[HV_EXPLAIN_CELL_N]; /**< figures in columns behind the text; [0] NULL: none */
    const char *note;                     /**< behind them, or NULL */
    unsigned style;
    struct hv_evidence evidence;
};

/** A trial of one lever: its value and the resulting figures. */
struct hv_explain_try {
    size_t lever;
    double value;
    bool done, failed;
    struct hv_figures figures;
    char reason[160]; /**< why it failed */
};

/** The layers of the slowest replica entry shared out freely, and its simulated step time. */
struct hv_explain_share {
    bool done, ok;         /**< was worked out; there is something to share */
    struct hv_arena arena; /**< of all below */
    struct hv_balance balance;
    int *whole;        /**< [n] the best whole layers */
    double whole_s;    /**< step with them, HV_UNKNOWN: cannot be judged (err) */
    double *checked_s; /**< [n] change of that step with room for one layer more there */
    bool *tried;       /**< [n] */
    struct hv_err err;
};

/** Load of the ranks with experts over the iterations of the job's routing, against their mean. */
struct hv_explain_loads {
    bool done, ok;         /**< was worked out; there is an uneven routing and a layer for it */
    struct hv_arena arena; /**< of all below */
    struct hv_hottest_expert hot;
    struct hv_expert_loads of;    /**< the layer of the hottest expert */
    size_t columns, each;         /**< each: iterations per column */
    double *strips;               /**< [ranks × columns] the largest of its iterations */
    double *means;                /**< [ranks] */
    double mean, most;            /**< of the busiest rank, over iterations */
    struct hv_expert_waste waste; /**< of the stage with most rows that hold no token; 0: none */
    size_t waste_replica, waste_stage;
};

/** Data of one plan. */
struct hv_explain_data {
    uint32_t row;
    const json_t *plan; /**< tree it was made from */
    uint64_t generation[HV_DOC_N];
    struct hv_plan_facts facts; /**< borrowed from the session */
    struct hv_err err;          /**< why there is no verdict */
    struct hv_levers levers;
    struct hv_figures base;
    HV_VEC(struct hv_explain_try) tries;
    size_t n_done;
    enum hv_explain_cell sort; /**< column that what to do is sorted by */
    int wrap_w;                /**< columns of the tree: longer sentences are wrapped; 0 = never */
    struct hv_explain_share share;
    struct hv_explain_loads loads;
    struct hv_arena arena; /**< texts of the rows */
    HV_VEC(struct hv_explain_row) rows;
    HV_VEC(uint64_t) open; /**< ids of rows unfolded */
    int64_t drawn_ms;
};

/** State of the screen. */
struct hv_explain {
    struct hv_explain_data *data; /**< refreshed also while drawing */
    struct hv_table table;
    enum hv_explain_panel focus;
    size_t bars_top, text_top;
};

/** Rows that are always there have these ids; chapters and terms count on from their stage's. */
enum {
    HV_ID_CAUSES = 1,
    HV_ID_ADVICE,
    HV_ID_OTHERS,
    HV_ID_BOUND,
    HV_ID_APPROXIMATED,
    HV_ID_RUNTIME,
    HV_ID_FAILURES,
    HV_ID_EXPERTS,
    HV_ID_BUY,
    HV_ID_WOULD,
    HV_ID_BETTER,
    HV_ID_LAYERS,
    HV_ID_COLUMNS,
    HV_ID_STAGE = 1000,
    HV_ID_SHARE = 1 << 30
};

/** Updates the data to the selected row and the present documents; true where the plan or its state
 * changed. */
bool hv_explain_sync(struct hv_explain_data *d, struct hv_session *s);
/** Frees everything. */
void hv_explain_free(struct hv_explain_data *d);
/** Builds the rows anew. O(rows). */
void hv_explain_build(struct hv_explain_data *d, struct hv_session *s);
/** Adds a row below the last one. */
struct hv_explain_row *hv_explain_add(struct hv_explain_data *d, uint64_t id, int depth,
                                      const char *text);
/** Adds a heading that folds; true when what is below it is to be added. */
bool hv_explain_heading(struct hv_explain_data *d, uint64_t id, int depth, const char *text);
/** "s1", or "r0 s1" where there are several replica entries; lives with the data. */
const char *hv_explain_stage_name(struct hv_explain_data *d, size_t replica, size_t stage);
/** The lane of a stage at a time as evidence. */
struct hv_evidence hv_explain_on_lane(size_t replica, size_t stage, double at_s);
/** True where the row with that id is unfolded. */
bool hv_explain_is_open(const struct hv_explain_data *d, uint64_t id);
/** Folds or unfolds. */
void hv_explain_fold(struct hv_explain_data *d, uint64_t id, bool open);
/** Adds the sentences: slowest stage, losses, balance, memory, links, unused devices,
 * violations. */
void hv_explain_causes(struct hv_explain_data *d, struct hv_session *s);
/** A stage with its chapters and terms. */
void hv_explain_stages(struct hv_explain_data *d, struct hv_session *s);

/** Lists the trials to run. */
void hv_explain_plan_tries(struct hv_explain_data *d);
/** Runs trials until `budget_s` is spent (at least one); true while some remain. */
bool hv_explain_try_some(struct hv_explain_data *d, struct hv_session *s, double budget_s);
/** Computes the redistribution of the layers; runs several trials. */
void hv_explain_share_try(struct hv_explain_data *d, struct hv_session *s);
/** Its rows: the optimum, then times and memory of the stages with their duals, tightest first. */
void hv_explain_share_rows(struct hv_explain_data *d);
/** True while trials remain. */
bool hv_explain_is_busy(const struct hv_explain_data *d);
/** Adds the expected throughput under failures and preemptions, where it is known. */
void hv_explain_failures(struct hv_explain_data *d);
/** The figures of the plan's experts, worked out once for a plan. O(iterations · ranks · experts +
 * stages · blocks). */
const struct hv_explain_loads *hv_explain_loads_of(struct hv_explain_data *d, struct hv_session *s);
/** Adds the load of every rank with experts over the iterations of the job's routing, where that is
 * uneven. O(iterations · ranks · experts). */
void hv_explain_experts(struct hv_explain_data *d, struct hv_session *s);
/** How much less time a token takes with a finished trial; of more nodes, how much lower the bound
 * is. */
double hv_explain_gain(const struct hv_explain_data *d, const struct hv_explain_try *t);
/** True for an improvement: a gain without more violations and without a loss of exactness. */
bool hv_explain_is_good(const struct hv_explain_data *d, const struct hv_explain_try *t);
/** Adds what to do: free, to buy, and what would help; in columns, sorted by d->sort. */
void hv_explain_actions(struct hv_explain_data *d, struct hv_session *s);
/** Breaks sentences that are wider than d->wrap_w into rows below each other. O(text). */
void hv_explain_wrap(struct hv_explain_data *d);

/** Panels for a body; empty ones are not shown. */
void hv_explain_place(const struct hv_explain *st, struct hv_rect body,
                      struct hv_rect out[HV_EXPLAIN_PANEL_N]);
/** Draws everything. */
void hv_explain_draw(const void *state, const void *model, const struct hv_view_ctx *ctx);
/** Table source over the rows, for moves and find. */
struct hv_table_source hv_explain_source(const struct hv_explain_data *d);

#endif
