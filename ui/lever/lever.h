/**
 * Levers: the numbers of a workspace and of one of its plans that a user may want to change. A
 * trial judges the plan with levers turned and changes no document; accepting makes the same change
 * as undoable steps. The Explain screen tries small changes of single levers, the What-if screen
 * sets them over their whole range.
 */
#ifndef HV_UI_LEVER_LEVER_H
#define HV_UI_LEVER_LEVER_H

#include "ui/session/session.h"

/** The kind of real-world action that a lever stands for. */
enum hv_lever_deed { HV_DEED_BUY, HV_DEED_MOVE, HV_DEED_CHANGE, HV_DEED_SUFFER };
/** "buy", "move", "change", "suffer". */
const char *hv_lever_deed_name(enum hv_lever_deed d);

/* clang-format off */
/** Levers: constant, unit behind the value, deed, what it does. `i` and `j` are its place: group, kind or
 * link i; LAYERS: the first block of stage j of replica entry i;
 * TP: stage j of replica entry i, or all stages where they share it (j = HV_LEVER_ALL). */
#define HV_LEVER_MAP(X)                                                                                       \
    X(BATCH,     "",         CHANGE, "sequences per iteration; changes the number of micro-batches") \
    X(MICRO,     "",         CHANGE, "sequences per micro-batch; the number of micro-batches follows")                         \
    X(SEQUENCE,  "tokens",   CHANGE, "tokens per sequence")                                                     \
    X(SCHEDULE,  "",         CHANGE, "order of the operations in the pipeline")                                      \
    X(CHUNKS,    "",         CHANGE, "virtual chunks per pipeline rank; the schedule determines their blocks") \
    X(RECOMPUTE, "",         CHANGE, "recomputation of activations in every stage")                    \
    X(ZERO,      "",         CHANGE, "sharding of states over the data-parallel ranks of each stage (ZeRO)")          \
    X(TP,        "",         CHANGE, "ranks that share each layer of a stage; the others of its ranks split its micro-batches") \
    X(LAYERS,    "",         MOVE,   "number of blocks before the border of these two stages; moves layers between them") \
    X(NODES,     "nodes",    BUY,    "number of nodes of this group; the plan keeps using the same nodes")              \
    X(FAILED,    "",         SUFFER, "a failed node; the plan drops the ranks or replicas on it") \
    X(SLOW,      "x",        SUFFER, "slowdown of the devices of this group (straggler)")                    \
    X(NIC,       "GB/s",     BUY,    "bandwidth of all NICs of a node of this group together, one direction")          \
    X(INTRA,     "GB/s",     BUY,    "bandwidth of the link of a device inside a node of this group, one direction")                \
    X(NETWORK,   "GB/s",     BUY,    "bandwidth of the network between nodes, one direction")                                    \
    X(LINK,      "GB/s",     BUY,    "bandwidth of this link of the network, one direction")                                 \
    X(FLOPS,     "TFLOP/s",  BUY,    "dense peak rate of this kind of device in the precision of the job; other precisions scale with it") \
    X(HBM,       "GB/s",     BUY,    "memory bandwidth of this kind of device")                                 \
    X(MEMORY,    "GiB",      BUY,    "memory capacity of this kind of device")                                           \
    X(PRICE,     "USD/h",    BUY,    "price of a node of this group")                                           \
    X(PREEMPTED, "/h",       SUFFER, "preemptions per hour of each node of this group")                      \
    X(INTERVAL,  "",         CHANGE, "interval between two checkpoints; the optimal interval depends on the failure rate")         \
    X(RESTART,   "s",        CHANGE, "time to restart all processes after a failure; regroup: time to rebuild the communicators of surviving processes")
/* clang-format on */
/** Place j of a lever that turns all stages. */
#define HV_LEVER_ALL ((size_t)-1)
enum hv_lever_kind {
#define X(c, unit, deed, help) HV_LEVER_##c,
    HV_LEVER_MAP(X)
#undef X
        HV_LEVER_N
};

/** One lever. Everything it points to lives with the list. */
struct hv_lever {
    enum hv_lever_kind kind;
    size_t i, j;              /**< see HV_LEVER_MAP */
    const char *name;         /**< "v nodes" */
    double base;              /**< the present value; of words, its number */
    const double *values;     /**< the possible values, ascending, the base included */
    size_t n_values;          /**< at least 2 */
    const char *const *words; /**< one per value, or NULL: the value is a number */
};

/** All levers of a plan. `{0}` is empty. Owner: hv_levers_free. */
struct hv_levers {
    struct hv_arena arena;
    struct hv_lever *items;
    size_t n;
    uint32_t row;
};

const char *hv_lever_unit(const struct hv_lever *l);        /**< "GB/s", "" where it has none */
const char *hv_lever_help(const struct hv_lever *l);        /**< effect of a change of it */
enum hv_lever_deed hv_lever_deed(const struct hv_lever *l); /**< kind of action */

/**
 * Levers of a row's plan over the documents as they are now, job first, then plan, then cluster.
 * Errors: those of hv_session_plan; the list is empty then. O(groups + kinds + stages).
 */
enum hv_status hv_levers_read(struct hv_session *s, uint32_t row, struct hv_levers *out,
                              struct hv_err *err) HV_NODISCARD;
void hv_levers_free(struct hv_levers *l);
/** The lever of that kind and place, or NULL. */
const struct hv_lever *hv_levers_find(const struct hv_levers *l, enum hv_lever_kind kind, size_t i,
                                      size_t j);
/** Number of the position nearest to a value. */
size_t hv_lever_at(const struct hv_lever *l, double value);
/** The value `steps` positions from the nearest one, clamped to the ends. */
double hv_lever_step(const struct hv_lever *l, double value, int steps);
/** True where the value equals the base. */
bool hv_lever_is_base(const struct hv_lever *l, double value);
/** Appends a value without unit: "12.5", "zb-h1". */
void hv_lever_text(const struct hv_lever *l, double value, struct hv_str *out);
/** Reads a value as typed: a number between the ends, or a word. Errors: HV_EUSAGE. */
enum hv_status hv_lever_parse(const struct hv_lever *l, const char *text, double *out,
                              struct hv_err *err) HV_NODISCARD;

/* clang-format off */
/** Figures of a trial: field, name, better (-1 the lower, 1 the higher). `expected` and `exp.`: under failures
 * and preemptions, where the job or the inventory speaks of them. */
#define HV_FIGURE_MAP(X)                          \
    X(iteration_s,    "s/iter",      -1)          \
    X(tokens_per_s,   "tokens/s",     1)          \
    X(expected_per_s, "expected",     1)          \
    X(usd_per_mtoken, "$/Mtok",      -1)          \
    X(expected_usd,   "$/Mt exp.",   -1)          \
    X(usd_per_h,      "$/h",         -1)          \
    X(peak_frac,      "peak mem",    -1)          \
    X(bubble_frac,    "bubble",      -1)          \
    X(mfu,            "MFU",          1)          \
    X(bound_s,        "bound",       -1)
/* clang-format on */
/** Figures of a trial; HV_UNKNOWN where there is none. */
struct hv_figures {
#define X(field, name, better) double field;
    HV_FIGURE_MAP(X)
#undef X
    bool exact; /**< trains as without a pipeline: no stale weights, nothing dropped */
    size_t n_violations;
    char violation[200]; /**< the first one, "" when the plan fits */
};
/** Figures of a verdict; `peak_frac` is the largest share of a device's memory limit. */
struct hv_figures hv_figures_of(const struct hv_verdict *v);

/**
 * Judges the plan with levers at `values` (one per lever; HV_UNKNOWN or the base = as it is now).
 * No document, plan or row is changed. Errors: HV_EINPUT, HV_EUSAGE, HV_ENO in words where the plan
 * cannot be built or timed that way. O(one judgement), plus building the documents turned.
 */
enum hv_status hv_levers_try(struct hv_session *s, const struct hv_levers *l, const double *values,
                             bool bound, struct hv_figures *out, struct hv_err *err) HV_NODISCARD;

/** Result of a redistribution of the layers. */
struct hv_share {
    struct hv_figures figures; /**< of the plan with the new layers; without the bound */
    bool moved;                /**< the layer counts changed */
    char was[96], now[96];     /**< layers per stage of the slowest pipeline: "22|20" */
};
/**
 * Redistributes the layers of the slowest pipeline for levers at `values`, by linear program and
 * then in whole layers (solver/eval/balance.h), and evaluates the result. Sets the levers of those
 * layers in `values`. Errors: as hv_levers_try; HV_ENO where no layers can be moved. O(two
 * judgements).
 */
enum hv_status hv_levers_share(struct hv_session *s, const struct hv_levers *l, double *values,
                               struct hv_share *out, struct hv_err *err) HV_NODISCARD;
struct hv_balance;
/** Turns the levers of the layers of a pipeline in `values` to whole numbers [b->n]. Errors: HV_ENO
 * where one of them is missing. */
enum hv_status hv_levers_set_layers(const struct hv_levers *l, const struct hv_balance *b,
                                    const int *layers, double *values,
                                    struct hv_err *err) HV_NODISCARD;

/**
 * Applies the change: documents as undoable steps, a changed plan as a new row, which is selected.
 * Appends a description of the change to `said`. Errors: as hv_levers_try; documents are unchanged
 * where their first edit is rejected.
 */
enum hv_status hv_levers_accept(struct hv_session *s, const struct hv_levers *l,
                                const double *values, struct hv_str *said,
                                struct hv_err *err) HV_NODISCARD;

/** A trial kept in memory: the plan with changed levers and its verdict. */
struct hv_trial;
/**
 * As hv_levers_try, but returns the trial; with its timeline where `timeline` is set. Its verdict
 * is valid until the next edit of a document. Owner: hv_trial_free. Errors: as hv_levers_try; *out
 * is NULL then.
 */
enum hv_status hv_trial_new(struct hv_session *s, const struct hv_levers *l, const double *values,
                            bool timeline, struct hv_trial **out, struct hv_err *err) HV_NODISCARD;
/** Its verdict. */
const struct hv_verdict *hv_trial_verdict(const struct hv_trial *t);
/** Its plan. */
const struct hv_plan *hv_trial_plan(const struct hv_trial *t);
/** Frees it; NULL is fine. */
void hv_trial_free(struct hv_trial *t);

#endif
