/**
 * Pipelines whose transfers share links.
 *
 * hv_pipe_time lets every hop take its own time, whatever else is under way. Here a hop is a bundle
 * of flows over links, and what is under way at the same time shares them: flows that meet get
 * equal rates (max-min fair, as TCP and RDMA come close to; Bertsekas and Gallager, Data Networks,
 * 6.5.2), each as fast as its slowest link lets it. Pipelines are played together, event by event.
 */
#ifndef HV_SOLVER_SIM_LINKS_LINKS_H
#define HV_SOLVER_SIM_LINKS_LINKS_H

#include "solver/sim/pipeline/pipeline.h"

/** What one transfer asks of a link: seconds at the link's full rate. */
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
    size_t n_loads; /**< 0: takes latency_s + bytes_s whatever else is under way */
};

/** What the operations of a rank ask of links while they run: exchanges inside them. */
struct hv_link_rank {
    const struct hv_link_load *loads; /**< busy_s: of a second of exchanges */
    size_t n_loads;                   /**< 0: its operations take what they take */
    double flow_bytes_per_s;          /**< of one of its flows, with the links to itself */
};

/** One pipeline; copies of it that run in step are loads of the same hops. */
struct hv_link_pipe {
    const struct hv_pipe *g;
    const struct hv_pipe_cost *c;
    const struct hv_link_hop *hops;   /**< [g->n_hops] */
    const struct hv_link_rank *ranks; /**< [n_ranks], NULL: no operation asks for links */
    const double *frac; /**< [n_pipes × n_stages × HV_OP_KIND_N] with ranks: share of an operation's
                           time that its exchanges take, alone. They are spread evenly over it */
    struct hv_pipe_run *run; /**< as hv_pipe_time left it */
};

/** Pipelines that start together. */
struct hv_links {
    struct hv_link_pipe *pipes;
    size_t n_pipes, n_links;
};

/** When one transfer is on the wire, and how much of its links it keeps busy. */
struct hv_link_transfer {
    double start_s, end_s; /**< of its bytes, without latency */
    size_t pipe;
    int32_t hop, node; /**< node: who sends */
};

/**
 * Does any link have to carry more than it can, in the runs as they are? If not, they are exact as
 * they stand. O(edges + transfers of a link · log of its hops).
 */
bool hv_links_crowded(const struct hv_links *s);

/**
 * Plays all pipes, with operations that last longer where their exchanges get less of a link, and
 * replaces their runs (starts, ends, sums, and hv_pipe_run.edge_s, from `a`). O(operations · log +
 * transfers · what shares links with each at its time).
 */
void hv_links_play(struct hv_arena *a, const struct hv_links *s);

/** Share of a node's time that exchanges of its operations take: the largest of hv_link_pipe.frac.
 * O(operations of the node). */
double hv_links_node_frac(const struct hv_pipe *g, const double *frac, int32_t node);

/** Every transfer of the runs as they are that ends after after_s, in the order of pipes, hops and
 * sending nodes, in `a`. O(hops + edges into nodes that start after after_s). */
struct hv_link_transfer *hv_links_transfers(struct hv_arena *a, const struct hv_links *s,
                                            double after_s, size_t *n);

#endif
