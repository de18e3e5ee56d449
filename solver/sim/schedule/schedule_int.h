/** Between the generators and schedule.c: the builder they fill. Not for other folders. */
#ifndef HV_SOLVER_SIM_SCHEDULE_SCHEDULE_INT_H
#define HV_SOLVER_SIM_SCHEDULE_SCHEDULE_INT_H

#include "solver/base/vec.h"
#include "solver/sim/schedule/schedule.h"
#include <stdlib.h>

/**
 * A schedule in the making: ops rank by rank, in order. On the heap, freed by hv_schedule_make,
 * except `ops`, which begin in the arena of the schedule where their number is known before.
 */
struct hv_schedule_builder {
    HV_VEC(struct hv_op) ops;
    struct hv_op *reserved; /**< where ops began in the arena, or NULL */
    HV_VEC(size_t) rank_end;
    int32_t n_ranks, n_stages, n_pipes, n_slices, n_groups;
    int32_t *stage_to_rank;   /**< [n_pipes × n_stages]; hv__place_* fill it */
    int32_t *weight_versions; /**< [n_ranks], 1 to begin with */
    HV_VEC(size_t)
    wait_at, waits; /**< as in hv_schedule, with its end; empty: ranks share nothing, or
                       share_resources.c decides */
    int32_t *stash; /**< [n_ranks], 0 = keeps all itself, as to begin with */
    bool free_adjacent_recompute, recompute_waits, parts;
    int16_t slice; /**< slice of the ops added next, -1 = whole */
    uint8_t pipe;  /**< direction of the ops added next */
    bool pairing;  /**< the ops added next belong to pair n_groups */
};

/** Adds one op to the rank being filled. */
void hv__add(struct hv_schedule_builder *b, enum hv_op_kind kind, int32_t stage, int32_t mb);
/** Adds an overlapped pair: the next two ops added by hv__add belong together. */
void hv__pair_begin(struct hv_schedule_builder *b);
/** Ends the pair. */
void hv__pair_end(struct hv_schedule_builder *b);
/** The rank is complete; the next op belongs to the next rank. */
void hv__rank_done(struct hv_schedule_builder *b);
/** Sets the number of directions (1 to begin with); before any placing. */
void hv__set_pipes(struct hv_schedule_builder *b, int32_t n_pipes);
/** Zig-zag: every second pass over the ranks runs backwards (V shape for two chunks). */
void hv__place_zigzag(struct hv_schedule_builder *b);
/** True where the row has an option. */
bool hv__has_option(const struct hv_schedule_row *row, const char *key);
/** Value of an option by key (the key must be in the row). */
int64_t hv__option(const struct hv_schedule_input *in, const char *key);
/** Cost of a stage for schedulers that decide by cost. */
struct hv_stage_cost hv__cost(const struct hv_schedule_input *in, int32_t stage);

/** One hop between neighbouring stages: from `stage` to the next, or back to it. */
double hv__hop(const struct hv_schedule_input *in, int32_t stage, bool back);
/** Micro-batches that a rank may hold, at most `own` (what the schedule allows itself). */
double hv__limit(const struct hv_schedule_input *in, int32_t rank, double own);
/** Micro-batches of one round of a schedule that runs all forwards, then all backwards: all, or as
 * many as every rank may hold. O(ranks). */
int32_t hv__round(const struct hv_schedule_input *in);

/** Refuses (HV_ELIMIT) a schedule that would take too many steps to lay out. */
enum hv_status hv__check_work(const struct hv_schedule_input *in, double steps,
                              struct hv_err *err) HV_NODISCARD;

/** Relative tolerance of searches for the shortest order: times that differ by the order of
 * additions alone are equal, so that a cost that changes does not turn one of equal orders into
 * another. */
#define HV__SHORTER (1 - 1e-12)

/** Refuses (HV_EUSAGE) an odd number of ranks with the even ones next to it; `why` is the verb
 * phrase after the schedule's name ("pairs ranks"). */
enum hv_status hv__check_even_ranks(const struct hv_schedule_input *in, const char *why,
                                    struct hv_err *err) HV_NODISCARD;

/* ---- times.c: times of operations while an order is played
 * ----------------------------------------------------------------------------------------- */

/** Ends so far, and the stages next to each. In an arena. */
struct hv__times {
    const struct hv_schedule_input *in;
    const struct hv_schedule *s;
    int32_t *near_at[2], *near[2]; /**< stages before each stage, and behind it */
    double *end[2]; /**< [stages × micro-batches × slices] of F and of B or BW; infinity: not yet */
};
/** Nothing has run. O(stages · micro-batches · slices). */
void hv__times_begin(struct hv_arena *a, const struct hv_schedule_input *in,
                     const struct hv_schedule *s, struct hv__times *out);
/** When the inputs of an op from other stages are there; those of its own stage come earlier in the
 * order of its rank. Infinity: not known yet. O(stages next to its own). */
double hv__op_ready(const struct hv__times *t, const struct hv_op *op);
/** How long an op takes, by the costs of the input. */
double hv__op_takes(const struct hv__times *t, const struct hv_op *op);
/** Notes the end of an op; true where others may wait for it. */
bool hv__op_ended(const struct hv__times *t, const struct hv_op *op, double at);

/* ---- order_text.c, sched_explicit_shared.c: orders written out
 * ----------------------------------------------------------------------------------------- */

/** Reads one list of an order, in->order[list], as the next rank of `b`. Errors: HV_EINPUT. */
enum hv_status hv__read_order(const struct hv_schedule_input *in, struct hv_schedule_builder *b,
                              int32_t list, struct hv_err *err) HV_NODISCARD;
/** The generator of `explicit` where in->order_per_resource: one list per resource, which all its
 * ranks follow. Errors: HV_EINPUT naming list and token; HV_ENO for several chunks per rank.
 * O(operations of all lists · resources of a rank). */
enum hv_status hv__explicit_shared(const struct hv_schedule_input *in,
                                   struct hv_schedule_builder *b, struct hv_err *err) HV_NODISCARD;

/* ---- share_resources.c: ranks that share resources
 * ----------------------------------------------------------------------------------------- */

/**
 * Puts the operations of ranks on the same resources one behind the other (schedule.waits), unless
 * their order is written out: of those
 * that are next in the orders of their ranks the one that can begin first, of those that begin
 * together a backward, then the older micro-batch. Orders of ranks stay as they are. Errors: HV_ENO
 * for directions and split ranks. O(operations · (ranks + resources of a rank)).
 */
enum hv_status hv__share_resources(struct hv_arena *a, const struct hv_schedule_input *in,
                                   struct hv_schedule *s, struct hv_err *err) HV_NODISCARD;

/* ---- limits.c: orders within the limits of ranks
 * ----------------------------------------------------------------------------------------- */

/** Refuses (HV_ENO) limits that leave a rank no room for one micro-batch. O(ranks). */
enum hv_status hv__check_room(const struct hv_schedule_input *in, struct hv_err *err) HV_NODISCARD;
/**
 * Keeps an order within the limits that `in` gives per rank. An order that is within them stays as
 * it is. In another one, forwards for which a rank has no room are passed over until there is room:
 * see limits.c. Errors: HV_ENO, with the numbers, for an order written out by hand. O(ops), and
 * where forwards are passed over O(ops · ranks + ranks² · micro-batches · operations passed over).
 */
enum hv_status hv__keep_limits(struct hv_arena *a, const struct hv_schedule_input *in,
                               struct hv_schedule *s, struct hv_err *err) HV_NODISCARD;

/* ---- split.c: ranks that take turns, and stages with micro-batches of their own
 * ----------------------------------------------------------------------------------------- */

/** Refuses (HV_ENO) what cannot be split, with the reason. O(ranks). */
enum hv_status hv__check_splits(const struct hv_schedule_input *in,
                                struct hv_err *err) HV_NODISCARD;
/** Input of the schedule in which every lane is a rank, for hv__split, after hv__check_splits. Its
 * arrays lie in the arena. O(ranks + lanes · chunks). */
void hv__whole_input(struct hv_arena *a, const struct hv_schedule_input *in,
                     struct hv_schedule_input *out);
/** The schedule `in` asks for from that of hv__whole_input. O(operations · lanes). */
void hv__split(struct hv_arena *a, const struct hv_schedule_input *in,
               const struct hv_schedule *whole, struct hv_schedule *out);

/* ---- split_two_way.c: turns in schedules of two directions
 * ----------------------------------------------------------------------------------------- */

/** Makes the schedule of an input without splits. */
typedef enum hv_status hv__maker(struct hv_arena *a, const struct hv_schedule_input *in,
                                 struct hv_schedule *out, struct hv_err *err);
/** True where ranks take turns in a schedule of two directions. O(ranks). */
bool hv__has_two_way_turns(const struct hv_schedule_input *in);
/** The schedule of ranks in turns in two directions, after hv__check_splits. Errors: HV_ENO where
 * stages have unlike numbers of ranks; HV_EUSAGE for fewer micro-batches than turns, and what
 * the schedule of one turn refuses. O(operations). */
enum hv_status hv__two_way_turns(struct hv_arena *a, const struct hv_schedule_input *in,
                                 hv__maker *make, struct hv_schedule *out,
                                 struct hv_err *err) HV_NODISCARD;

/** Signature of a generator. */
typedef enum hv_status hv__generator(const struct hv_schedule_input *in,
                                     struct hv_schedule_builder *b, struct hv_err *err);
hv__generator hv__gen_gpipe, hv__gen_1f1b, hv__gen_dapple, hv__gen_pipedream, hv__gen_2bw,
    hv__gen_hetpipe, hv__gen_bpipe, hv__gen_autopipe;
hv__generator hv__gen_interleaved, hv__gen_breadth_first, hv__gen_group_interleaved;
hv__generator hv__gen_zb_h1, hv__gen_zb_h2;
hv__generator hv__gen_terapipe, hv__gen_seq1f1b;
hv__generator hv__gen_zb_1p, hv__gen_zb_15p, hv__gen_zb_2p, hv__gen_zb_v, hv__gen_zb_v_greedy;
hv__generator hv__gen_chimera, hv__gen_hanayo, hv__gen_dynapipe;
hv__generator hv__gen_tessel, hv__gen_graphpipe, hv__gen_distmm;
hv__generator hv__gen_dualpipe, hv__gen_dualpipev, hv__gen_varuna;
hv__generator hv__gen_v_min, hv__gen_v_half, hv__gen_v_adaptive, hv__gen_1f1b_v;
hv__generator hv__gen_zb_list;
hv__generator hv__gen_explicit;

#endif
