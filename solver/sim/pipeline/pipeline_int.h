/** Declarations shared by the files about priced pipelines. Not for other folders. */
#ifndef HV_SOLVER_SIM_PIPELINE_PIPELINE_INT_H
#define HV_SOLVER_SIM_PIPELINE_PIPELINE_INT_H

#include "solver/sim/pipeline/pipeline.h"

/** True where node y of h equals node x of g, d micro-batches later. */
bool hv__same_node(const struct hv_pipe *g, int32_t x, const struct hv_pipe *h, int32_t y,
                   int32_t d);

/** Latest ends of tasks, [tasks] on the heap (caller frees): those behind the last node of a rank,
 * which they limit in nodes_s, [n_nodes] latest ends of nodes. Rewinds run->stream->next to them.
 * O(tasks). */
double *hv__stream_latest(const struct hv_pipe *g, const struct hv_stream *x,
                          const struct hv_pipe_run *run, double *nodes_s) HV_NODISCARD;
/** Limits the task that node n waits for, and all that is issued before n, by the latest start of
 * n; from later nodes of a rank to earlier ones. O(tasks issued). */
void hv__stream_let(const struct hv_pipe *g, const struct hv_stream *x, struct hv_stream_run *y,
                    int32_t rank, int32_t n, double late_s, double *tasks_s, double *nodes_s);

/** A change of what a stream holds. */
struct hv__change {
    double at_s, gathered_bytes, unsent_bytes;
};
/** Changes of what the stream of a rank holds, in order of time; on the heap (caller frees).
 * O(tasks · log). */
struct hv__change *hv__stream_changes(const struct hv_pipe_run *run,
                                      const struct hv_pipe_memory *mem, int32_t rank,
                                      size_t *n) HV_NODISCARD;

/** The bytes that a node adds at its start, holds while it runs, and adds at its end. */
struct hv__node_bytes {
    double start, transient, end;
};
/** Those of node n by the tables (memory.c). O(its operations). */
struct hv__node_bytes hv__node_bytes(const struct hv_pipe *g, const struct hv_pipe_memory *mem,
                                     int32_t n);

#endif
