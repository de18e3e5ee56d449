/**
 * Collectives over some ranks of a group, one after the other on the stream of each rank. Those
 * over several nodes also take the networks of all nodes that they touch, so that two of them never
 * share one. Thread: any.
 */
#ifndef HV_SOLVER_COST_NETWORK_STREAMS_H
#define HV_SOLVER_COST_NETWORK_STREAMS_H

#include "solver/inventory/cluster.h"
#include <stdbool.h>

/** When the streams are free. Owner: hv_streams_close. */
struct hv_streams {
    size_t n;
    double *free_s;  /**< [n] of a rank */
    uint32_t *house; /**< [n] its node or link domain */
    bool *takes;     /**< [n] work space */
};

/** Streams of `n` ranks on every `stride`-th of these devices, all free at 0. O(n log groups). */
struct hv_streams hv_streams_open(const struct hv_cluster *c, const uint32_t *devices, size_t n,
                                  size_t stride);
/** Appends a collective of so many seconds over the ranks with on[rank]; it starts when all that it
 * takes is free. O(n²) over several nodes, else O(n). */
void hv_streams_play(struct hv_streams *x, const bool *on, double time_s);
/** When the last of them ends. O(n). */
double hv_streams_end_s(const struct hv_streams *x);
/** Frees the arrays. */
void hv_streams_close(struct hv_streams *x);

#endif
