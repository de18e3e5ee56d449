/**
 * Pipeline schedules: which operation every rank runs, and in which order.
 *
 * One table (hv_schedules) holds every schedule that can be named: text, options, rules and the
 * generator. A schedule is a pure order; durations matter only where a scheduler decides by them.
 * Definitions and sources: the paper named in each row.
 *
 * Symbols: p ranks, m micro-batches, v chunks (stages) per rank, stage = global stage in model
 * order.
 */
#ifndef HV_SOLVER_SIM_SCHEDULE_SCHEDULE_H
#define HV_SOLVER_SIM_SCHEDULE_SCHEDULE_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/base/str.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Kind of an operation, in the order of the columns in every per-kind array. */
enum hv_op_kind {
    HV_OP_F,  /**< forward */
    HV_OP_B,  /**< gradient of the input only */
    HV_OP_W,  /**< gradient of the weights only */
    HV_OP_BW, /**< whole backward (B and W in one) */
    HV_OP_R,  /**< forward again, before the backward (recompute) */
    HV_OP_KIND_N
};

/** One operation. 16 bytes. */
struct hv_op {
    uint8_t kind;  /**< enum hv_op_kind */
    uint8_t pipe;  /**< direction in two-directional schedules, else 0 */
    int16_t slice; /**< token slice of the micro-batch; -1 where micro-batches are whole */
    int32_t stage; /**< global stage, 0 = model input */
    int32_t mb;    /**< micro-batch */
    int32_t group; /**< neighbours on a rank with the same group ≥ 0 run as one overlapped pair */
};

/** Edges between stages. NULL edges = a chain 0 → 1 → … */
struct hv_stage_graph {
    int32_t n_edges;
    const int32_t *from,
        *to; /**< [n_edges]; from < to (stages are numbered in topological order) */
};

/** Micro-batches of a stage in schedules whose stages differ in them. All stages run the same
 * samples; micro-batch i of n holds the i-th of n equal parts. */
struct hv_stage_unit {
    int32_t n;           /**< micro-batches of the stage, of all its lanes */
    int32_t lanes, lane; /**< micro-batches in turns: this one runs those with i mod lanes = lane */
};

/**
 * An order of operations for every rank. Owner: the arena it was made in.
 * Invariants after hv_schedule_make: every op once, stages and micro-batches in range, forward and
 * backward of a (stage, micro-batch) on one rank, pairs adjacent. Not yet proved: freedom from
 * deadlock (hv_pipe_compile).
 */
struct hv_schedule {
    int32_t n_ranks, n_stages, n_micro_batches;
    int32_t n_slices;               /**< most slices of one micro-batch; 1 = whole */
    int32_t n_pipes;                /**< 1, or the number of directions */
    int32_t n_groups;               /**< overlapped pairs */
    const int32_t *stage_to_rank;   /**< [n_pipes × n_stages], row per pipe */
    const size_t *rank_at;          /**< [n_ranks + 1] first op of each rank in `ops` */
    const struct hv_op *ops;        /**< [rank_at[n_ranks]] */
    const int32_t *weight_versions; /**< [n_ranks] copies of its weights a rank keeps */
    struct hv_stage_graph graph;
    const struct hv_stage_unit *units; /**< [n_stages]; NULL = every stage runs all
                                          n_micro_batches, which otherwise is the largest n */
    bool free_adjacent_recompute; /**< an R right after its own F is a mark and takes no time */
    bool recompute_waits; /**< R starts when its gradient is there, as inside a backward; else as
                             soon as its order allows */
    bool parts; /**< slices are equal parts of a batch: a micro-batch is whole (slice -1), or
                   its forwards come in n_slices parts that take an equal share each */
    const int32_t *stash; /**< [n_ranks] activations a rank keeps itself, 0 = all; rank n - 1 - r
                             keeps the others of rank r for it. NULL = none does */
    bool async;           /**< no flush: ops of the next batch may start before the last end */
    const size_t *wait_at, *waits; /**< [n_ops + 1], [wait_at[n_ops]]: ops of other ranks on the
                                      same resources that end before; NULL = ranks share none */
    bool by_times; /**< forwards were passed over to keep the limits of ranks, or ranks share
                      resources: the order depends on durations too */
};

/** Options a schedule can have at most. */
#define HV_SCHEDULE_OPTIONS_MAX 4
/** Limits on sizes from outside: larger requests are HV_ELIMIT. */
#define HV_SCHEDULE_RANKS_MAX  65536
#define HV_SCHEDULE_MB_MAX     (1 << 22)
#define HV_SCHEDULE_CHUNKS_MAX 1024
#define HV_SCHEDULE_SLICES_MAX 4096
#define HV_SCHEDULE_OPS_MAX    ((size_t)1 << 26)
/** Limit on the steps of schedulers that play or search an order (about ten seconds). */
#define HV_SCHEDULE_STEPS_MAX 1e10

/** Type of the value of an option. */
enum hv_schedule_option_type { HV_SCHEDULE_INT, HV_SCHEDULE_CHOICE };

/** One option of a schedule. A choice's value is its index in `choices`. */
struct hv_schedule_option {
    const char *key;
    enum hv_schedule_option_type type;
    int64_t def, min, max;      /**< choices: min 0, max = number − 1 */
    const char *const *choices; /**< NULL-terminated; NULL for numbers */
    const char *help; /**< one sentence; explains the meaning of the default 0 where it has one */
};

/** Properties of a schedule (bits). */
enum hv_schedule_flag {
    HV_SCHEDULE_ASYNC = 1,        /**< no flush, stale weights */
    HV_SCHEDULE_CHUNKS = 2,       /**< takes v > 1 */
    HV_SCHEDULE_NEEDS_CHUNKS = 4, /**< needs v > 1 */
    HV_SCHEDULE_SLICES = 8,       /**< cuts sequences into token slices (causal models only) */
    HV_SCHEDULE_SPLIT = 16,       /**< has B and W instead of BW */
    HV_SCHEDULE_TWO_WAY = 32,     /**< several directions, several copies of the weights */
    HV_SCHEDULE_BY_COST = 64,     /**< the order depends on durations */
    HV_SCHEDULE_RECOMPUTE = 128,  /**< may have R */
    HV_SCHEDULE_OVERLAP = 256,    /**< has overlapped pairs */
    HV_SCHEDULE_PARTS = 1024,     /**< cuts some micro-batches into parts */
    HV_SCHEDULE_ORDER = 512,      /**< the order comes from the caller */
    HV_SCHEDULE_GREEDY = 4096,    /**< decides by cost operation by operation, so that orders for
                                     other costs are cheap to try */
    HV_SCHEDULE_STASHES = 8192,   /**< ranks keep activations of others (hv_schedule.stash) */
    HV_SCHEDULE_BY_MEMORY = 2048  /**< the order keeps within limits given per rank, where it can */
};

struct hv_schedule_input;
struct hv_schedule_builder;

/** One row of the table of schedules. All text is for people: help, manual and messages print it.
 */
struct hv_schedule_row {
    const char *name;
    const char *summary;     /**< one line */
    const char *source;      /**< paper and section the order comes from */
    const char *constraints; /**< constraints, as text; "" = none */
    const char *memory;      /**< memory of a rank, as text or as a formula */
    unsigned flags;          /**< enum hv_schedule_flag */
    int32_t chunks;          /**< v when none is given (2 for V shapes) */
    const struct hv_schedule_option *options;
    size_t n_options;
    /** Fills the builder; reports broken constraints as HV_EUSAGE or HV_ENO. */
    enum hv_status (*generate)(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                               struct hv_err *err);
};

/** All rows; *n = how many. The table never changes. */
const struct hv_schedule_row *hv_schedules(size_t *n);
/** Row by name; errors (HV_EUSAGE) name the nearest and list all. */
enum hv_status hv_schedule_find(const char *name, const struct hv_schedule_row **out,
                                struct hv_err *err) HV_NODISCARD;

/** Seconds (or any unit) that a scheduler decides with, per global stage. */
struct hv_stage_cost {
    double f_s, b_s, w_s; /**< forward, input gradient, weight gradient of one micro-batch */
};

/** The tokens of one rank, for `explicit`. */
struct hv_order_text {
    const char *const *tokens;
    size_t n;
};

/** How the ranks of a schedule are split: by stages that the schedule knows as one rank. */
struct hv_stage_split {
    int32_t lanes;  /**< ranks that take whole micro-batches in turns (PipeDream, SOSP 2019, section
                       3.2: 1F1B-RR), ≥ 1 */
    int32_t passes; /**< micro-batches of the stage in one of the schedule's (GraphPipe, ASPLOS
                       2025: kFkB), ≥ 1 */
};

/** Resources that ranks share: two ranks on one of them never run at the same time. */
struct hv_rank_resources {
    int32_t n_resources;          /**< numbered from 0 */
    const int32_t *at, *resource; /**< [ranks + 1], [at[ranks]]: those of each rank */
};

/** Input of a schedule. Start with hv_schedule_input_init, then set the members that differ. */
struct hv_schedule_input {
    const struct hv_schedule_row *row;
    int32_t ranks, micro_batches, chunks;
    int64_t options[HV_SCHEDULE_OPTIONS_MAX]; /**< by position in row->options */
    struct hv_stage_cost cost;                /**< every stage, unless `costs` is set */
    const struct hv_stage_cost *costs;        /**< [n_stages] or NULL */
    double hop_s;                             /**< one hop, for schedulers that decide by cost */
    const double *hops_s; /**< [2 × (n_stages − 1)] hops from each stage to the next, then those
                             back; 0 between stages of one rank. NULL = hop_s everywhere */
    const double *limits; /**< [ranks] micro-batches whose activations a rank may hold, INFINITY =
                             the schedule's own number; or NULL */
    const struct hv_order_text *order; /**< [ranks], or [resources->n_resources]; `explicit` only */
    bool order_per_resource; /**< `order` has a list per resource, and every rank is on one at
                                least; else a list per rank: what ranks share goes to the one that
                                can begin first */
    const struct hv_stage_graph *graph;        /**< NULL = chain */
    const struct hv_rank_resources *resources; /**< NULL = every rank has its own */
    const struct hv_stage_split *splits; /**< [ranks] or NULL: none is split. The result has as many
                                            ranks as there are lanes, those of one rank in a row */
};

/** Defaults of the row: options, chunks, unit times (f = b = w = 1, hop 0). */
void hv_schedule_input_init(struct hv_schedule_input *in, const struct hv_schedule_row *row,
                            int32_t ranks, int32_t micro_batches);
/** Sets an option from text ("group", "8"); errors (HV_EUSAGE) list the known options and allowed
 * values. */
enum hv_status hv_schedule_set_option(struct hv_schedule_input *in, const char *key,
                                      const char *value, struct hv_err *err) HV_NODISCARD;
/** As hv_schedule_set_option for a number. */
enum hv_status hv_schedule_set_int(struct hv_schedule_input *in, const char *key, int64_t value,
                                   struct hv_err *err) HV_NODISCARD;
/** Chunks per rank by the options where none are given (waves of hanayo), else the row's. */
int32_t hv_schedule_usual_chunks(const struct hv_schedule_input *in);

/**
 * Generates the order. Everything in `out` lies in the arena (`graph` too).
 * A schedule that does not look at limits keeps them too: its ranks run its order, except that
 * forwards for which there is no room, and what waits for them, are passed over until there is.
 * Ranks that are split run their part of the order of the schedule: see split.c, split_two_way.c.
 * Errors: HV_EUSAGE for sizes that make no sense and constraints of the schedule that do not hold
 * (with the reason and the nearest size that works where there is one); HV_ENO where memory given
 * to the schedule is too small, or an order written out would break a limit; HV_ELIMIT
 * above the limits; HV_EINPUT for tokens of `explicit`. O(ops) for fixed orders; the files of
 * heuristics state their complexity.
 */
enum hv_status hv_schedule_make(struct hv_arena *a, const struct hv_schedule_input *in,
                                struct hv_schedule *out, struct hv_err *err) HV_NODISCARD;

/** The part of its micro-batch's (or slice's) duration and bytes that an op takes. */
static inline double hv_op_share(const struct hv_schedule *s, const struct hv_op *op)
{
    return s->parts && op->slice >= 0 ? 1.0 / s->n_slices : 1;
}
/** Number of ops. */
static inline size_t hv_schedule_n_ops(const struct hv_schedule *s)
{
    return s->rank_at[s->n_ranks];
}
/** Rank of op i (binary search). O(log ranks). */
int32_t hv_schedule_rank_of(const struct hv_schedule *s, size_t i_op);

/**
 * Most activations alive at once on each rank, counted on the order: +1 at F, −1 at W or BW. Unit:
 * one stage's activation of one micro-batch, or of one token slice where there are slices. O(ops).
 */
void hv_schedule_peak_inflight(const struct hv_schedule *s, int32_t *out_per_rank);

/** Longest token hv_op_format writes, with NUL. */
#define HV_OP_TOKEN_CAP 48
/** Writes "F2.5", "BW0.3" or "F1.0.2" into buf (HV_OP_TOKEN_CAP bytes); returns buf. */
const char *hv_op_format(const struct hv_op *op, char *buf, size_t cap);
/** Appends the token at position i of `ops` and returns how many ops it covers (2 for
 * "{F1.2|BW0.3}"). */
size_t hv_schedule_add_token(const struct hv_schedule *s, size_t i_op, struct hv_str *out);
/**
 * Reads one token: one op, or an overlapped pair "{x|y}" (two ops, group set to `group`).
 * Errors: HV_EINPUT with what was expected. *n_out = 1 or 2.
 */
enum hv_status hv_op_parse(const char *token, int32_t group, struct hv_op out[2], size_t *n_out,
                           struct hv_err *err) HV_NODISCARD;

#endif
