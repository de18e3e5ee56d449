/**
 * Communication beside compute inside one pass: small task graphs on a compute and a link lane,
 * timed by sim/events/tasks.h.
 *
 * The results are the exposed time (by which the pass is longer than its compute) and the time that
 * overlaps with compute; the caller adds the calibrated slowdown for the latter. Both are per pass,
 * in seconds. Thread: any. Errors: none.
 */
#ifndef HV_SOLVER_COST_NETWORK_OVERLAP_H
#define HV_SOLVER_COST_NETWORK_OVERLAP_H

#include <stddef.h>

/** Communication of a pass: exposed and overlapped part. */
struct hv_overlap {
    double exposed_s, hidden_s;
};

/** A chunk of an exchange: sent, worked on, sent back. */
struct hv_round_trip {
    double out_s, compute_s, back_s;
};
/**
 * `n` equal chunks: all are sent in turn, each is worked on when it has arrived and sent back when
 * that is done, after everything that is sent out. O(n log n). Source of the order: PipeMoE (Shi et
 * al. 2023), Tutel (Hwang et al. 2023).
 */
struct hv_overlap hv_overlap_round_trips(int n, struct hv_round_trip chunk);

/** One step of a ring. */
struct hv_ring_step {
    double compute_s;
    double ahead_s;  /**< transfer of what the next step needs, while this one computes */
    double behind_s; /**< transfer of what this step produced, after it; 0: none */
};
/** A ring of `n` ranks: n steps of compute, n − 1 hops, two buffers. O(n log n). Source: Liu et al.
 * 2023 (Ring Attention). */
struct hv_overlap hv_overlap_ring(int n, struct hv_ring_step step);

/** `n` equal units in a row whose weights are gathered before and whose gradients are scattered
 * after their compute; no padding, compared as bytes. */
struct hv_units {
    double gather_s, compute_s, scatter_s;
    size_t n;
};
/**
 * Runs of units in the order they are computed. The gather of a unit starts at the earliest when
 * the unit `window` places before it is done: 1 = nothing is gathered ahead. O(units log units).
 * Source of the order of gathers and scatters: PyTorch FSDP (Zhao et al. 2023, section 3.3).
 */
struct hv_overlap hv_overlap_units(const struct hv_units *runs, size_t n_runs, size_t window);

#endif
