/**
 * Pipelines whose transfers share links.
 *
 * hv_pipe_time gives every hop its own time, whatever other transfers are in progress. Here a hop
 * is a bundle of flows over links, and simultaneous transfers share the links: flows on the same
 * link get equal rates (max-min fair, as TCP and RDMA come close to; Bertsekas and Gallager, Data
 * Networks, 6.5.2), each limited by its slowest link. Transfers of one hop, or of the hops of one
 * channel, are no flows beside each other: they go one after the other, in the order in which they
 * are ready. Pipelines are simulated together, event by event.
 */
#ifndef HV_SOLVER_SIM_LINKS_LINKS_H
#define HV_SOLVER_SIM_LINKS_LINKS_H

#include "solver/sim/pipeline/pipeline.h"

/** Load of one transfer on a link: seconds at the link's full rate. */
struct hv_link_load {
    int32_t link;
    double busy_s;
};

/** A hop of a pipe: every transfer of it. */
struct hv_link_hop {
    double latency_s;  /**< behind the last byte; keeps no link busy */
    double bytes_s;    /**< with all links to itself: the largest load, or longer */
    double flow_bytes; /**< of one flow of it; flows of different transfers that meet get equal
                          rates */
    const struct hv_link_load *loads;
    size_t n_loads;  /**< 0: takes latency_s + bytes_s independently of other transfers */
    int32_t channel; /**< of its pipe, from 1: hops that one sender serves in turn. They share a
                        link that each of them fills. 0: it has one of its own */
};

/** Load of a rank's operations on links while they run: communication inside passes. */
struct hv_link_rank {
    const struct hv_link_load *loads; /**< busy_s: of a second of exchanges */
    size_t n_loads;                   /**< 0: its operations keep their durations */
    double flow_bytes_per_s;          /**< of one of its flows, with the links to itself */
};

/**
 * What a rank keeps leaves its memory, or comes back, beside its operations: an eviction, an
 * offload. Moves of one lane run one after the other in the order of their numbers, as copies in
 * one stream do; the lane shares links with every other transfer.
 */
struct hv_link_move {
    int32_t lane;   /**< of its pipe */
    int32_t node;   /**< it waits for the end of this node, -1: for none */
    bool at_start;  /**< it waits for the start of the node only: copies leave while it runs */
    double delay_s; /**< and for so long after that */
    int32_t behind; /**< and for the last byte of this move of the pipe, -1: for none */
    int32_t gates;  /**< node that waits for it, -1: none */
    bool streams;   /**< the node waits for its first byte to start and for its last to end */
    bool back;      /**< what it brings arrives the latency of the lane after its last byte; others
                       give memory back with the last byte */
    double scale;   /**< its bytes over those of the lane's hop */
};

/** Start and end of a move's bytes in a run, without latency. */
struct hv_link_moved {
    double start_s, end_s;
};

/** One pipeline; copies of it that run in step are loads of the same hops. */
struct hv_link_pipe {
    const struct hv_pipe *g;
    const struct hv_pipe_cost *c;
    const struct hv_link_hop *hops;   /**< [hv_link_n_hops] */
    const struct hv_link_rank *ranks; /**< [n_ranks], NULL: no operation uses links */
    const double *frac; /**< [n_pipes × n_stages × HV_OP_KIND_N] with ranks: share of an operation's
                           time that its exchanges take, alone. They are spread evenly over it */
    const struct hv_link_rank
        *streams; /**< [n_ranks] of tasks of c->stream; NULL: none uses links */
    const double
        *task_frac; /**< [tasks] with streams: share of a task's time in which it uses them */
    struct hv_pipe_run *run;    /**< as hv_pipe_time left it */
    const double *not_before_s; /**< [n_nodes] a node starts no sooner; NULL: at any time */
    /** hops [g->n_hops, g->n_hops + n_lanes) are those of lanes of moves. 0: there are no moves. */
    int32_t n_lanes;
    const struct hv_link_move *moves; /**< [n_moves] */
    size_t n_moves;
    struct hv_link_moved *moved; /**< [n_moves], filled by hv_links_play */
};

/** Hops of a pipe with the lanes of its moves. */
static inline int32_t hv_link_n_hops(const struct hv_link_pipe *p)
{
    return p->g->n_hops + p->n_lanes;
}

/** Pipelines that start together. */
struct hv_links {
    struct hv_link_pipe *pipes;
    size_t n_pipes, n_links;
    double steps; /**< by hv_links_play: loads looked at while rates were shared */
};

/** Start and end of one transfer on the network, its hop and its sender. */
struct hv_link_transfer {
    double start_s, end_s; /**< of its bytes, without latency */
    size_t pipe;
    int32_t hop, node; /**< node: the sender; of a move the node it waits for, or -1 */
};

/**
 * True where any link is overloaded in the given runs. If not, the runs of pipes without moves are
 * exact. O(edges + transfers of a link · log of its hops).
 */
bool hv_links_crowded(const struct hv_links *s);

/**
 * Simulates all pipes, with operations and tasks of streams that last longer where their
 * communication gets less of a link, and replaces their runs (starts, ends, sums,
 * hv_pipe_run.edge_s and, with moves, hv_pipe_run.held, from `a`).
 * O(operations · log + transfers · transfers that share links with each at its time).
 */
void hv_links_play(struct hv_arena *a, struct hv_links *s);

/** Share of a node's time that exchanges of its operations take, by hv_link_pipe.frac: of an
 * overlapped pair those of both in the time of the pair. O(operations of the node). */
double hv_links_node_frac(const struct hv_pipe *g, const struct hv_pipe_cost *c, const double *frac,
                          int32_t node);

/** Every transfer of the runs as they are that ends after after_s, in the order of pipes, hops and
 * sending nodes, behind them the moves of the pipe, in `a`. O(hops + edges into nodes that start
 * after after_s). */
struct hv_link_transfer *hv_links_transfers(struct hv_arena *a, const struct hv_links *s,
                                            double after_s, size_t *n);

#endif
