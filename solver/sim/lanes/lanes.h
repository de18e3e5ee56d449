/**
 * Timelines for painters: lanes of spans with level of detail.
 *
 * The cover of a window of a lane is read from a fixed number of table entries, however many spans
 * fall into it, so a picture takes O(its columns). Built once, then only read.
 */
#ifndef HV_SOLVER_SIM_LANES_LANES_H
#define HV_SOLVER_SIM_LANES_LANES_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/sim/events/tasks.h"
#include "solver/sim/pipeline/pipeline.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Largest number of different kinds of spans. */
#define HV_SPAN_KINDS 16

/** One span. 32 bytes: two share a cache line and none lies in two. */
struct hv_span {
    double start_s, end_s;
    int32_t id;          /**< the caller's own */
    int32_t item, group; /**< the caller's own, shown by a painter: e.g. micro-batch and stage */
    uint8_t kind;        /**< the caller's own, < HV_SPAN_KINDS */
    uint8_t flags;       /**< the caller's own */
};

/** Pyramid of the largest value of every block, of every block of blocks, …: whose, and what. */
struct hv_largest {
    const uint32_t *index;
    const double *value;
};

/** The longest of some spans: its length, and which it is (the first of equals). */
struct hv_longest {
    double length_s;
    uint32_t i_span;
};

/** A block of spans as lanes.c keeps it. */
struct hv_lane_block;

/** One lane: spans in time order that do not overlap. The caller gives all down to n_spans. */
struct hv_lane {
    const char *name;
    enum hv_resource_kind resource;
    int32_t group; /**< the caller's own, e.g. the rank */
    const struct hv_span *spans;
    size_t n_spans;
    uint8_t n_kinds, kinds[HV_SPAN_KINDS]; /**< kinds that occur, ascending */
    const struct hv_lane_block *blocks;
    size_t stride_bytes;  /**< from block to block */
    const uint32_t *grid; /**< [blocks + 1] first block that starts in or after a cell of time */
    double cells_per_s;
    const struct hv_longest *longest; /**< of every block, of every group of blocks, … */
};

/** A timeline. Owner: the arena given to hv_lanes_add. `{0}` is an empty one. */
struct hv_lanes {
    struct hv_lane *items;
    size_t n, cap;
    double end_s;        /**< last end of all */
    unsigned char *room; /**< for the tables of lanes to come: taken from the arena in pieces that
                            grow, because large ones lie in large pages */
    size_t left_bytes, taken_bytes; /**< of the room; of all rooms so far */
};

/** Cover of a window. */
struct hv_cover {
    double busy_frac; /**< covered share of the window, 0…1 */
    double kind_frac; /**< share of the window covered by the dominant kind */
    int kind;         /**< dominant kind, -1 when nothing is there; ties: the lowest */
    int32_t i_span;   /**< the span covering most of the window, -1; ties: the first */
    size_t n_spans;   /**< spans that touch the window */
};

/**
 * Adds a lane; copies the spans, keeps `name`. Errors: HV_EUSAGE when spans overlap, run backwards
 * or have a kind out of range. O(n).
 */
enum hv_status hv_lanes_add(struct hv_arena *a, struct hv_lanes *t, const struct hv_lane *lane,
                            struct hv_err *err) HV_NODISCARD;
/**
 * What the lane holds in n windows side by side, such as the columns of a picture: window i is
 * [at_s[i], at_s[i + 1]). O(n) where a window holds many spans, which are counted by the pyramid.
 */
void hv_lane_columns(const struct hv_lane *lane, const double *at_s, size_t n,
                     struct hv_cover *out);
/**
 * Busy time by kind in n windows side by side, as those of hv_lane_columns: busy_s[i · n_kinds + k]
 * are the seconds of kind kinds[k] in window i. O(n · kinds), however many spans a window holds.
 */
void hv_lane_busy(const struct hv_lane *lane, const double *at_s, size_t n, double *busy_s);
/** The span that covers time t (a span holds its start, not its end), or -1. O(log n). */
int32_t hv_lane_at(const struct hv_lane *lane, double t_s);
/** First span that starts after t, or -1. O(log n). */
int32_t hv_lane_next(const struct hv_lane *lane, double t_s);
/** Last span that starts before t, or -1. O(log n). */
int32_t hv_lane_prev(const struct hv_lane *lane, double t_s);

/** A step function with a range maximum. Owner: the arena. */
struct hv_steps {
    const struct hv_memory_step *steps;
    size_t n;
    struct hv_largest largest; /**< steps by bytes */
};
/** Copies the steps (time order, else HV_EUSAGE) and builds the pyramid. O(n). */
enum hv_status hv_steps_make(struct hv_arena *a, const struct hv_memory_step *steps, size_t n,
                             struct hv_steps *out, struct hv_err *err) HV_NODISCARD;
/** Largest value in [t0, t1); 0 before the first step. O(log n). */
double hv_steps_max(const struct hv_steps *s, double t0_s, double t1_s);
/** Value at t; 0 before the first step. O(log n). */
double hv_steps_at(const struct hv_steps *s, double t_s);

#endif
