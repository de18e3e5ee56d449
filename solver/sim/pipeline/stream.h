/**
 * Streams of communication beside the operations of ranks: gathers and scatters of sharded weights
 * (sim/schedule/shards.h) with their times. The tasks of a rank run one after the other, each from
 * the end of the operation that lets it start; operations wait for the gather of their chunk.
 */
#ifndef HV_SOLVER_SIM_PIPELINE_STREAM_H
#define HV_SOLVER_SIM_PIPELINE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** One gather or scatter. */
struct hv_stream_task {
    double time_s;
    int32_t stage; /**< global stage; −1: all of the rank */
    uint8_t pipe;
    bool scatter;
    int32_t before; /**< issued when the node before this one has ended; the rank's end: after its
                       last one */
    int32_t other;  /**< gather: its memory is given back when the node before this one has ended;
                       scatter: the first node whose gradients it has */
};

/** The streams of a compiled order. Borrowed by hv_pipe_cost. */
struct hv_stream {
    const size_t *task_at;              /**< [n_ranks + 1] */
    const struct hv_stream_task *tasks; /**< of each rank in its order, by `before` */
    const int64_t *needs;               /**< [n_nodes] the task that a node waits for, −1: none */
    const double *slowdown; /**< [n_ranks] seconds by which a second beside the stream lengthens an
                               operation */
};

/** Times of the tasks in one run. */
struct hv_stream_run {
    double *start_s, *end_s; /**< [tasks] */
    double *slowed_s;        /**< [n_ranks] by which operations were longer */
    size_t *next;            /**< [n_ranks] scratch: tasks from here on are not issued yet */
};

struct hv_pipe;

/** A run of streams begins: nothing is issued. O(ranks). */
void hv_stream_begin(const struct hv_pipe *g, const struct hv_stream *x, struct hv_stream_run *y);
/** Issues what comes before node n, the node before it having ended at before_s, and returns when
 * the gather that n waits for has ended; 0: it waits for none. O(tasks issued). */
double hv_stream_ready_s(const struct hv_stream *x, struct hv_stream_run *y, int32_t rank,
                         int32_t n, double before_s);
/** Seconds by which the stream lengthens the next node of a rank. O(tasks beside it). */
double hv_stream_slows_s(const struct hv_stream *x, struct hv_stream_run *y, int32_t rank,
                         double start_s, double duration_s);
/** Issues what comes after the last node of each rank. O(tasks issued). */
void hv_stream_finish(const struct hv_pipe *g, const struct hv_stream *x, const double *node_end_s,
                      struct hv_stream_run *y);

#endif
