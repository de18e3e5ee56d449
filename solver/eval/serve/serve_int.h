/** Internals of the judge of serving plans: stages as servers, and the flow through them. */
#ifndef HV_SOLVER_EVAL_SERVE_SERVE_INT_H
#define HV_SOLVER_EVAL_SERVE_SERVE_INT_H

#include "solver/eval/train/steps.h"

/** A stage, all its copies together; seconds are those of one copy. */
struct hv__server {
    const struct hv_replica *entry; /**< with embedding, head and states of a serving plan */
    struct hv_stage *stage;         /**< in it */
    size_t i_replica, number;
    int from2, to2;          /**< half blocks that it computes, outermost */
    double batch;            /**< sequences of a pass */
    struct hv__rank rank;    /**< its first copy */
    struct hv_memory memory; /**< without requests */
    double cache_bytes;      /**< of one whole sequence on one device */
    double prompt_s, token_s, capacity_tokens_per_s;
    double own_token_s; /**< token_s without its lower limit, one read of the
                           weights */
    double token_bytes; /**< bytes sent to the next stage per token */
    double flow_tokens_per_s;
};

/** All stages of a serving plan, with the flow through them. */
struct hv__servers {
    struct hv__server *items;
    size_t n;
    int n_halves;                    /**< of the model */
    double output;                   /**< tokens of a request that are generated */
    double most;                     /**< max flow */
    double total;                    /**< of the flow in use */
    const struct hv_plan_flow *flow; /**< the plan's, else the max flow */
    size_t n_flow;
    bool given;  /**< the plan has a flow of its own */
    bool scaled; /**< the maximum flow exceeded the NICs of a node */
};

/** Judges a plan of mode serve: capacities, flow, latency, memory, and with `queue` the waiting
 * time of requests. HV_ENO: cannot be priced. O(stages²) links, then max flow and the queue. */
enum hv_status hv__serve(const struct hv__lowered *l, bool queue, struct hv_verdict *out,
                         struct hv_err *err) HV_NODISCARD;
/** Seconds of a message between two stages with `tokens` tokens of every sequence of a batch. */
double hv__hop_s(const struct hv__lowered *l, const struct hv__server *a,
                 const struct hv__server *b, double tokens);
/** True where tokens enter a stage behind its first block. */
bool hv__enters_half_way(const struct hv__servers *all);
/** Max flow through the placement, and the flow in use with all findings about it. O(stages²)
 * links, then Dinic. */
enum hv_status hv__serve_flow(const struct hv__lowered *l, struct hv__servers *all,
                              struct hv_err *err) HV_NODISCARD;

/** Waiting time of requests for slots and for cache memory: sets s->slots, arrivals and queue. */
void hv__serve_queue(const struct hv__lowered *l, const struct hv__servers *all,
                     struct hv_serving *s);
/** Memory of every stage with the cache of the sequences in flight there: their number is the flow
 * through the stage times the time of a request, and at least one batch per copy. */
void hv__serve_memory(const struct hv__lowered *l, const struct hv__servers *all,
                      struct hv_verdict *out);

#endif
