/** Shared by the files of shared links: rates of transfers in progress. */
#ifndef HV_SOLVER_SIM_LINKS_LINKS_INT_H
#define HV_SOLVER_SIM_LINKS_LINKS_INT_H

#include "solver/sim/links/links.h"

/** A hop, with the transfer of it that is under way. */
struct hv__flight {
    const struct hv_link_hop *hop;
    double flow_per_s;      /**< largest rate of a flow, independent of links */
    double alone_per_s;     /**< as per_s, while nothing else is on its links */
    const double *per_flow; /**< [n_loads] share of the link per unit of flow rate */
    double left;            /**< share of its bytes that had not gone at since_s */
    double since_s;
    double per_s;   /**< share of its bytes per second, until rates change */
    int32_t change; /**< how often its rate has changed */
    int32_t told;   /**< value of `change` in the event of its landing */
    bool alone;     /**< no other is ever on its links */
    bool under_way;
    size_t mark; /**< of the last search that found it */
};

/** A link: the hops that use it, and their loads. */
struct hv__on_link {
    const int32_t *hops;
    size_t n, mark;
    size_t n_up; /**< hops under way */
    double used; /**< share of it that is given away */
    double sum;  /**< share of it that the other flights use per unit of flow rate */
};

/** A rank whose operations use links: the present load of its flight. */
struct hv__exchange {
    size_t pipe;
    int32_t rank;
    const struct hv_link_rank *asks;
    struct hv_link_hop hop;
    struct hv_link_load *loads;
    double *per_flow;
};

/** Moves of one pipe while they are played (moves.c). */
struct hv__moves {
    const struct hv_link_move *items; /**< NULL: the pipe has none */
    size_t *start_at, *end_at;        /**< [n_nodes + 1] into by_start and by_end */
    int32_t *by_start, *by_end;       /**< moves that wait for a node's start, and for its end */
    size_t *behind_at;
    int32_t *behind;  /**< moves that wait for a move */
    size_t *lane_at;  /**< [n_lanes + 1] */
    int32_t *of_lane; /**< moves of each lane, in order */
    size_t *next;     /**< [n_lanes] into of_lane: the first that has not ended */
    uint8_t *open;    /**< [n_moves] what it still waits for */
    int32_t *holds;   /**< [n_nodes] moves that arrive before the node ends */
};

/** All flights, and the flights of each link. Hops, with the lanes of moves, are numbered through
 * all pipes; the ranks whose operations use links come behind them. */
struct hv__sky {
    struct hv__flight *flights;
    size_t n_hops, n_exchanges;
    struct hv__exchange *exchanges;
    struct hv__on_link *links;
    int32_t *found_links, *found; /**< by the last search: links; hops under way */
    size_t n_found_links, n_found, mark;
    double steps; /**< loads looked at so far */
};

/** Lists what waits for what among the moves of a pipe, and adds to open[n_nodes] the moves that a
 * node waits for before it starts. O(nodes + moves). */
void hv__moves_open(struct hv__moves *m, struct hv_arena *a, const struct hv_link_pipe *p,
                    int32_t *open);

/** Lists the hops of each link; none is under way. O(loads). */
void hv__sky_open(struct hv__sky *s, struct hv_arena *a, const struct hv_links *share);
/** Makes the flight of a rank an operation of so many seconds, of which exchanges take `frac`. */
void hv__sky_price(struct hv__sky *s, size_t exchange, double seconds, double frac);
/** A hop's transfer begins (all of it is left) or is through. O(loads). */
void hv__sky_set(struct hv__sky *s, size_t flight, bool under_way, double now_s);
/**
 * Max-min fair rates of everything that shares links with a hop, directly or through others, from
 * now on: raises the rate of all flows alike, and fixes those that meet a full link or their own
 * limit, until all are fixed. found, n_found: those under way. O(rounds · loads), and O(its loads)
 * where it is alone.
 */
void hv__sky_balance(struct hv__sky *s, size_t around, double now_s);

#endif
