/**
 * Internals of timelines with level of detail, shared by build.c, which makes the tables, and
 * lanes.c, which reads and documents them.
 */
#ifndef HV_SOLVER_SIM_LANES_LANES_INT_H
#define HV_SOLVER_SIM_LANES_LANES_INT_H

#include "solver/sim/lanes/lanes.h"

/** Spans of a block, blocks of a group, bytes of a line of memory. */
enum { HV__LANE_BLOCK = 4, HV__LANE_GROUP = 8, HV__LANE_LINE = 64 };

/** A block of spans. Where the last one is not full, the missing spans start at infinity */
struct hv_lane_block {
    double start_s[HV__LANE_BLOCK], end_s[HV__LANE_BLOCK];
    double before_s, after_s;     /* longest before and after it in its group, -1 = none */
    uint8_t before_at, after_at;  /* which that is, counted from the first span of the group */
    uint8_t kind[HV__LANE_BLOCK]; /* of each span, as an index into the lane's kinds */
    double busy_s[];              /* by kind, before the block */
};

/** Blocks of n spans. */
static inline size_t hv__lane_n_blocks(size_t n)
{
    return (n + HV__LANE_BLOCK - 1) / HV__LANE_BLOCK;
}

/** Block i of a list whose blocks lie `stride` bytes apart. */
static inline struct hv_lane_block *hv__lane_block_at(const struct hv_lane_block *blocks,
                                                      size_t stride, size_t i)
{
    return (struct hv_lane_block *)((uintptr_t)blocks + i * stride);
}

/** Block i of a lane. */
static inline const struct hv_lane_block *hv__lane_block_of(const struct hv_lane *lane, size_t i)
{
    return hv__lane_block_at(lane->blocks, lane->stride_bytes, i);
}

/** The longer of two, the first of equals */
static inline struct hv_longest hv__lane_longer(struct hv_longest x, struct hv_longest y)
{
    bool second = y.length_s > x.length_s || (y.length_s >= x.length_s && y.i_span < x.i_span);
    return second ? y : x;
}

/** No span. */
static const struct hv_longest hv__lane_none = {-1, UINT32_MAX};

/** Start of a block's first span, s. */
static inline double hv__lane_block_start(const struct hv_lane *lane, size_t block)
{
    return hv__lane_block_of(lane, block)->start_s[0];
}

/** Cell of the grid that t lies in; never falls as t grows */
static inline size_t hv__lane_cell_of(const struct hv_lane *lane, double t_s)
{
    double x = (t_s - lane->spans[0].start_s) * lane->cells_per_s;
    size_t last = hv__lane_n_blocks(lane->n_spans) - 1;
    if (!(x > 0)) {
        return 0;
    }
    return x >= (double)last ? last : (size_t)x;
}

#endif
