/**
 * Time of a pipeline schedule.
 *
 * Two steps: hv_pipe_compile turns an order into a graph of dependencies once; hv_pipe_time prices
 * it, as often as durations change, in one pass without a heap. Everything else reads the priced
 * run: idle time by cause, memory, critical path, slack.
 *
 * Rules (the same for every schedule):
 *   F(s,i,q) waits for F of the stages before s, and for F(s,i,q−1) where there are token slices;
 *   B(s,i,q) waits for B of the stages after s, for F (or R) of (s,i,q), and for B(s,i,q+1);
 *   R waits for F (with hv_schedule.recompute_waits also for what its B waits for); W waits for B;
 * BW is a B whose successors wait until all of it has ended; a rank runs its ops one after
 * the other in the order given; a hop is charged on edges that cross ranks and blocks nothing else.
 */
#ifndef HV_SOLVER_SIM_PIPELINE_PIPELINE_H
#define HV_SOLVER_SIM_PIPELINE_PIPELINE_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/sim/pipeline/stream.h"
#include "solver/sim/schedule/schedule.h"

/** Data edge into a node. */
struct hv_pipe_edge {
    int32_t node; /**< the node that must have ended */
    int32_t hop;  /**< index into hv_pipe_cost.hop_s, or -1 when both are on one rank, or on
                     resources  that ranks share */
};

/** Nodes [from, to) of one rank, run one after the other. */
struct hv_pipe_stretch {
    int32_t from, to;
};

/**
 * A compiled order. Nodes are ops, except that an overlapped pair is one node. Nodes of a rank are
 * numbered consecutively in its order. Owner: the arena; borrows the schedule's arrays.
 */
struct hv_pipe {
    struct hv_schedule s; /**< the order it was made from (arrays borrowed) */
    int32_t n_nodes;
    int32_t n_hops;              /**< 2 × n_pipes × n_edges */
    const int32_t *node_of_op;   /**< [n_ops], NULL when every op is a node of its own */
    const int32_t *first_op;     /**< [n_nodes + 1], NULL like node_of_op */
    const int32_t *rank_node_at; /**< [n_ranks + 1] first node of each rank */
    const uint8_t *first_bits;   /**< bit n % 8 of byte n / 8: node n is the first of its rank */
    size_t n_stretches;
    const struct hv_pipe_stretch *stretches; /**< an order in which every node comes after those it
                                                waits for */
    /* data edges that order on the rank does not imply already: read by hv_pipe_edge_of */
    const int32_t *dep;    /**< [n_nodes] the one node waited for or -1; NULL: edges are listed */
    const int32_t *hop_of; /**< [2 × n_pipes × n_stages] with dep: hop of the edge into (backward,
                              pipe, stage), -1 = none */
    const int32_t *edge_at;           /**< [n_nodes + 1] into edges, NULL with dep */
    const struct hv_pipe_edge *edges; /**< NULL with dep */
};

/** True where node n is the first of its rank. Else node n − 1 comes before it. */
static inline bool hv_pipe_is_first(const struct hv_pipe *g, int32_t n)
{
    return g->first_bits[n / 8] >> (n % 8) & 1;
}

/** Index of the hop cost of stage edge e. `backward`: gradients from the later to the earlier
 * stage. */
static inline int32_t hv_pipe_hop(const struct hv_pipe *g, bool backward, int32_t pipe,
                                  int32_t edge)
{
    return ((backward ? g->s.n_pipes : 0) + pipe) * g->s.graph.n_edges + edge;
}

/** Hop of the one edge into an op, with dep. */
static inline int32_t hv_pipe_dep_hop(const struct hv_pipe *g, const struct hv_op *op)
{
    size_t row = (size_t)op->pipe + (op->kind == HV_OP_F ? 0 : (size_t)g->s.n_pipes);
    return g->hop_of[row * (size_t)g->s.n_stages + (size_t)op->stage];
}
/** Number of data edges into node n. */
static inline int32_t hv_pipe_n_edges(const struct hv_pipe *g, int32_t n)
{
    return g->dep ? g->dep[n] >= 0 : g->edge_at[n + 1] - g->edge_at[n];
}
/** The k-th data edge into node n. */
static inline struct hv_pipe_edge hv_pipe_edge_of(const struct hv_pipe *g, int32_t n, int32_t k)
{
    if (g->dep) {
        return (struct hv_pipe_edge){g->dep[n], hv_pipe_dep_hop(g, &g->s.ops[n])};
    }
    return g->edges[g->edge_at[n] + k];
}

/** Number of that edge among all of the graph. */
static inline size_t hv_pipe_edge_number(const struct hv_pipe *g, int32_t n, int32_t k)
{
    return g->dep ? (size_t)n : (size_t)(g->edge_at[n] + k);
}
/** Most numbers of edges. */
static inline size_t hv_pipe_n_all_edges(const struct hv_pipe *g)
{
    return g->dep ? (size_t)g->n_nodes : (size_t)g->edge_at[g->n_nodes];
}

/**
 * Builds the graph and proves that it can run.
 * Errors: HV_ENO with the blocked head op of (up to eight) ranks and what each waits for; HV_EINPUT
 * where the schedule is not valid (schedule/check_int.h). O(ops + edges) time, about 8 bytes per op
 * (20 where stages are no chain) besides two tables of 4 bytes per possible forward while it runs.
 */
enum hv_status hv_pipe_compile(struct hv_arena *a, const struct hv_schedule *s, struct hv_pipe *out,
                               struct hv_err *err) HV_NODISCARD;

/**
 * Durations. Set `stage_s`, or `op_s`. Units are free as long as they agree; names say seconds.
 */
struct hv_pipe_cost {
    const double *stage_s; /**< [n_stages × HV_OP_KIND_N]: of a whole micro-batch, of a slice where
                              there are */
    const double *rank_scale; /**< [n_ranks] factor on stage_s, or NULL */
    const double *mb_scale;   /**< [n_micro_batches × n_slices] factor on stage_s, or NULL */
    const double
        *op_s; /**< [n_ops] every duration by itself (overrides the three above), or NULL */
    const double
        *pair_s; /**< [n_groups] duration of each overlapped pair; NULL = the sum of the two */
    const double *hop_s; /**< [n_hops] by hv_pipe_hop, or NULL: every hop costs hop_all_s */
    double hop_all_s;
    /** Micro-batches and slices of unequal size: [n_micro_batches × n_slices] factor on the part of
     * a hop that is not latency, or NULL; and [n_hops] that latency, or NULL: 0. */
    const double *hop_scale, *hop_latency_s;
    const struct hv_stream *stream; /**< gathers and scatters beside the nodes; NULL: there are
                                       none. Only hv_pipe_time and sim/links/ know it */
};

/** Time of a hop by its index, 0 for none. */
static inline double hv_pipe_hop_s(const struct hv_pipe_cost *c, int32_t hop)
{
    return hop < 0 ? 0 : c->hop_s ? c->hop_s[hop] : c->hop_all_s;
}
/** Factor on the bytes of the hops into an op. */
static inline double hv_pipe_hop_scale(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                                       const struct hv_op *op)
{
    size_t slice = op->slice > 0 ? (size_t)op->slice : 0;
    return c->hop_scale ? c->hop_scale[(size_t)op->mb * (size_t)g->s.n_slices + slice] : 1;
}
/** Time of a hop into an op. */
static inline double hv_pipe_op_hop_s(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                                      const struct hv_op *op, int32_t hop)
{
    double time_s = hv_pipe_hop_s(c, hop);
    if (!c->hop_scale || hop < 0) {
        return time_s;
    }
    double latency_s = c->hop_latency_s ? c->hop_latency_s[hop] : 0;
    return latency_s + (time_s - latency_s) * hv_pipe_hop_scale(g, c, op);
}
/** The op of node n that a hop ends at: of an overlapped pair the one of its direction. */
const struct hv_op *hv_pipe_hop_end(const struct hv_pipe *g, int32_t n, int32_t hop);
/** Duration of op i by itself. */
double hv_pipe_op_duration_s(const struct hv_pipe *g, const struct hv_pipe_cost *c, size_t i);
/** Duration of node n. */
double hv_pipe_node_duration_s(const struct hv_pipe *g, const struct hv_pipe_cost *c, int32_t n);

/** Idle time and use of one rank within [0, makespan]. */
struct hv_pipe_rank {
    double busy_s;
    double warmup_s;   /**< idle before its first backward, without comm_s and stream_s */
    double steady_s;   /**< idle between, likewise */
    double cooldown_s; /**< idle after its last forward, likewise, up to the makespan */
    double comm_s;     /**< the part of all gaps that was spent waiting for a hop */
    double stream_s; /**< the part of all gaps that was spent waiting for a gather of the stream */
    double first_s, last_s; /**< first start, last end */
};

/** The last move (sim/links/links.h) that held back the start or the end of a node. */
struct hv_pipe_held {
    double until_s; /**< when it had arrived; 0: none held it back */
    int32_t node;   /**< that the move waited for itself, -1 = none */
};

/** A priced run. Allocate with hv_pipe_run_new, price as often as wanted. */
struct hv_pipe_run {
    double *node_start_s, *node_end_s; /**< [n_nodes] */
    double makespan_s;                 /**< last end (wall) */
    double longest_span_s; /**< largest last end − first start of a rank ("cost" of the zero-bubble
                              papers) */
    double busy_s;         /**< over all ranks */
    double bubble_frac;    /**< idle share of the ranks over the makespan */
    double span_bubble_frac; /**< 1 − busy / (ranks × longest span): bubble rate of the zero-bubble
                                papers */
    const double *edge_s; /**< [hv_pipe_n_all_edges] time of each data edge, where transfers shared
                             links (sim/links/links.h); NULL: the times of hops */
    struct hv_stream_run *stream; /**< times of hv_pipe_cost.stream; NULL where there is none. Tasks
                                     may end after the makespan, which is that of nodes */
    const struct hv_pipe_held *held; /**< [n_nodes] by moves beside the operations; NULL: there are
                                        none */
};

/** The rank of a node. O(log ranks). */
int32_t hv_pipe_rank_of(const struct hv_pipe *g, int32_t node);
/** Seconds between the end of an edge's sender and its arrival, in a run. */
static inline double hv_pipe_edge_s(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                                    const struct hv_pipe_run *run, int32_t n, int32_t k)
{
    return run->edge_s ? run->edge_s[hv_pipe_edge_number(g, n, k)]
                       : hv_pipe_op_hop_s(g, c, hv_pipe_hop_end(g, n, hv_pipe_edge_of(g, n, k).hop),
                                          hv_pipe_edge_of(g, n, k).hop);
}

/** Arrays for one run of g. */
void hv_pipe_run_new(struct hv_arena *a, const struct hv_pipe *g, struct hv_pipe_run *out);
/** Adds those for a stream; before hv_pipe_time with costs that have it. */
void hv_pipe_stream_new(struct hv_arena *a, const struct hv_pipe *g, const struct hv_stream *x,
                        struct hv_pipe_run *out);
/** End of the last task of a rank's stream; 0: it has none. O(1). */
double hv_pipe_stream_end_s(const struct hv_stream *x, const struct hv_stream_run *y, int32_t rank);
/**
 * Prices the graph: starts, ends, makespan, spans, bubble; times of the stream. Never fails (all
 * durations must be known and ≥ 0). O(nodes + edges + tasks beside nodes), no allocation.
 */
void hv_pipe_time(const struct hv_pipe *g, const struct hv_pipe_cost *c, struct hv_pipe_run *run);

/** Fills the sums of a run from its starts and ends, in whatever order they lie. O(nodes). */
void hv_pipe_summarise(const struct hv_pipe *g, struct hv_pipe_run *run);

/** Start and end of op i. */
static inline double hv_pipe_op_start_s(const struct hv_pipe *g, const struct hv_pipe_run *r,
                                        size_t i)
{
    return r->node_start_s[g->node_of_op ? (size_t)g->node_of_op[i] : i];
}
/** End of op i. */
static inline double hv_pipe_op_end_s(const struct hv_pipe *g, const struct hv_pipe_run *r,
                                      size_t i)
{
    return r->node_end_s[g->node_of_op ? (size_t)g->node_of_op[i] : i];
}
/** First op of a node; the node covers ops [hv_pipe_first_op(n), hv_pipe_first_op(n + 1)). */
static inline size_t hv_pipe_first_op(const struct hv_pipe *g, int32_t node)
{
    return g->first_op ? (size_t)g->first_op[node] : (size_t)node;
}

/** True where node n started when a move that it waited for had arrived. */
static inline bool hv_pipe_is_held(const struct hv_pipe_run *run, int32_t n)
{
    return run->held && run->held[n].until_s > 0 && run->held[n].until_s >= run->node_start_s[n];
}

/** The longest hop among the edges that delayed node n, 0 = none; infinite where a move did. O(its
 * edges). */
double hv_pipe_waited_s(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                        const struct hv_pipe_run *run, int32_t n);

/** Splits the idle time of every rank by cause into out[n_ranks]. O(nodes + edges). */
void hv_pipe_idle(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                  const struct hv_pipe_run *run, struct hv_pipe_rank *out);

/**
 * Bytes that ops allocate and give back. Tables are [n_stages × HV_OP_KIND_N].
 * At its start an op adds start_bytes; while it runs transient_bytes more are there; at its end
 * end_bytes are added (negative = given back). hv_pipe_memory_simple fills the usual case.
 */
struct hv_pipe_memory {
    const double *start_bytes, *end_bytes;
    const double *transient_bytes; /**< or NULL */
    const double *mb_scale;   /**< [n_micro_batches × n_slices] factor on all three, or NULL */
    const int32_t *table_of;  /**< [n_micro_batches × n_slices] number of a micro-batch's own among
                                 several tables that follow each other; NULL = there is one */
    const double *base_bytes; /**< [n_ranks] weights and so on, or NULL */
    const struct hv_stream *stream; /**< gathers hold weights, scatters gradients; or NULL */
    const double *task_bytes;       /**< [tasks] of the stream */
};
/** Bytes of one op in one of the tables (NULL: 0). */
static inline double hv_pipe_op_bytes(const struct hv_schedule *s, const struct hv_pipe_memory *m,
                                      const double *table, const struct hv_op *op)
{
    size_t q = op->slice > 0 ? (size_t)op->slice : 0;
    size_t at = (size_t)op->mb * (size_t)s->n_slices + q;
    size_t row = (size_t)op->stage;
    if (!table) {
        return 0;
    }
    row += m->table_of ? (size_t)m->table_of[at] * (size_t)s->n_stages : 0;
    return table[row * HV_OP_KIND_N + op->kind] * hv_op_share(s, op) *
           (m->mb_scale ? m->mb_scale[at] : 1);
}
/**
 * Usual deltas: +activation at F, −(activation − kept for W) at the end of B, −kept at the end of
 * W, −activation at the end of BW. With recompute, `activation` counts the bytes that F keeps and
 * `full` those that R adds (freed with the backward); full_bytes NULL = no recompute. Fills both
 * tables.
 */
void hv_pipe_memory_simple(const struct hv_schedule *s, const double *activation_bytes,
                           const double *kept_for_w_bytes, const double *full_bytes,
                           double *start_bytes, double *end_bytes);

/** Most bytes a rank holds, and since when. */
struct hv_pipe_peak {
    double peak_bytes;
    double peak_at_s; /**< start of the first op during which the peak is reached */
    double end_bytes; /**< bytes after the last op, without base and stream */
    double gathered_bytes, unsent_bytes; /**< of the peak: weights that are gathered, gradients that
                                            are not scattered yet */
};
/** One step of a memory trace: from at_s on, the rank holds `bytes`. */
struct hv_memory_step {
    double at_s, bytes;
};
/** Peak per rank into out[n_ranks]. O(ops + tasks of the stream). */
void hv_pipe_peaks(const struct hv_pipe *g, const struct hv_pipe_run *run,
                   const struct hv_pipe_memory *mem, struct hv_pipe_peak *out);
/**
 * The trace of one rank (without activations kept for another, see hv_schedule.stash): at most 2 ×
 * its ops and tasks + 1 steps into out (NULL = only count). Returns how many. Steps are in time
 * order; several at one time are joined to the last.
 */
size_t hv_pipe_trace(const struct hv_pipe *g, const struct hv_pipe_run *run,
                     const struct hv_pipe_memory *mem, int32_t rank, struct hv_memory_step *out);

/** Reason why a node on the critical path could not start earlier. */
enum hv_pipe_reason {
    HV_PIPE_START, /**< it starts at 0 */
    HV_PIPE_ORDER, /**< the op before it on its rank */
    HV_PIPE_DATA,  /**< a result from its own rank or without hop cost */
    HV_PIPE_HOP,   /**< a result from another rank, hop included */
    HV_PIPE_GATHER /**< the stream gathered its chunk, from the end of the link before on */
};
/** One link of the critical path. */
struct hv_pipe_link {
    int32_t node;
    enum hv_pipe_reason reason; /**< dependency on the link before */
    double hop_s;               /**< cost of that hop, or wait for that gather; 0 without */
};
/** The critical path from start to the last end, in time order. Owner: the arena. O(path + edges on
 * it). */
void hv_pipe_critical(struct hv_arena *a, const struct hv_pipe *g, const struct hv_pipe_cost *c,
                      const struct hv_pipe_run *run, const struct hv_pipe_link **out,
                      size_t *out_n);
/** What determined the end of node `last`, as hv_pipe_critical; -1: nothing. */
void hv_pipe_critical_to(struct hv_arena *a, const struct hv_pipe *g, const struct hv_pipe_cost *c,
                         const struct hv_pipe_run *run, int32_t last,
                         const struct hv_pipe_link **out, size_t *out_n);
/** Slack of each node, by which it could end later without a later makespan, into out[n_nodes].
 * O(nodes + edges). */
void hv_pipe_slack(const struct hv_pipe *g, const struct hv_pipe_cost *c,
                   const struct hv_pipe_run *run, double *out_s);

#endif
