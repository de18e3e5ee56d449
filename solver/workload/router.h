/**
 * Routing of tokens over the experts of a model, layer by layer and iteration by iteration: even,
 * by a Zipf law, or as recorded (hetviz.routing/1; schema share/schema/routing.schema.json).
 *
 * Pure numbers: which tokens of which rank want which expert. Where experts are, and what this
 * costs, is in solver/cost. Thread: any; a router is never changed after it is built.
 */
#ifndef HV_SOLVER_WORKLOAD_ROUTER_H
#define HV_SOLVER_WORKLOAD_ROUTER_H

#include "solver/base/arena.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/** Kinds of routing: constant, name in files. */
#define HV_ROUTER_MAP(X)               \
    X(HV_ROUTER_UNIFORM, "uniform")    \
    X(HV_ROUTER_ZIPF,    "zipf")       \
    X(HV_ROUTER_TRACE,   "trace")
/* clang-format on */
/** How tokens choose experts. */
enum hv_router_kind {
#define X(c, name) c,
    HV_ROUTER_MAP(X)
#undef X
        HV_ROUTER_N
};
const char *hv_router_name(enum hv_router_kind k); /**< name in files */

/** Most iterations, layers, sources and experts of a router, and counts of a trace. */
#define HV_ROUTER_AXIS_MOST   65536
#define HV_ROUTER_COUNTS_MOST (1u << 28)

/** A router. Borrowed from the arena of its document. */
struct hv_router {
    enum hv_router_kind kind;
    size_t iterations; /**< that differ; they follow each other, and begin again after the last */
    /** zipf: the expert of place i of E gets a share in proportion to (i + 1)^-skew. */
    double skew;
    double drift;       /**< by how much places change from one iteration to the next, 0 to 1 */
    double correlation; /**< of the places in one layer with those in the first, 0 to 1 */
    uint64_t seed;
    /** trace: sizes, and for each (iteration, layer, source) its entries [at[i], at[i + 1]). */
    size_t layers, sources, experts;
    const size_t *at; /**< [iterations × layers × sources + 1]; NULL: every row has an entry for
                         each expert, in order */
    const uint16_t *expert; /**< of the entry; NULL with `at` */
    /** Copies of tokens that the expert of the entry gets: in `counts` where all are whole and
     * below 65536, else in `tokens`. The other one is NULL. */
    const uint16_t *counts;
    const float *tokens;
};

/** True where every expert gets the same number of tokens: no router, or a uniform one. */
bool hv_router_is_even(const struct hv_router *r);

/** Where a router is asked: a layer with experts, counted among those alone, in an iteration. */
struct hv_router_at {
    size_t iteration, layer;
    size_t experts;            /**< of the layer */
    int top_k;                 /**< experts that a token goes to; no expert gets a token twice */
    size_t first, sources, of; /**< ranks first … first + sources - 1 of `of` that have the tokens
                                  of the layer in equal parts of the trace's sources */
};

/** A number that is equal for places whose routing is equal, whatever the ranks are: 0 where all
 * are alike. O(1). */
uint64_t hv_router_class(const struct hv_router *r, size_t iteration, size_t layer);
/** True where ranks do not send alike. */
bool hv_router_has_sources(const struct hv_router *r);

/**
 * Fills out[s · experts + e]: what source s sends to expert e, in units of what a source sends in
 * the mean over all `of` ranks. O(sources · experts · log experts), for traces O(entries +
 * sources · experts); a trace of another number of experts or layers is HV_UNKNOWN everywhere.
 */
void hv_router_tokens(const struct hv_router *r, const struct hv_router_at *at, double *out);

/**
 * As hv_router_tokens, added up over the experts of each owner: fills sent[s · n + owner[e]]. Only
 * for traces of whole counts for each expert whose sources divide evenly among the ranks: false
 * elsewhere, and `sent` is left alone. O(entries), several times faster than the tokens one by one.
 */
bool hv_router_sent(const struct hv_router *r, const struct hv_router_at *at, const uint32_t *owner,
                    size_t n, double *sent);

/** Share of all tokens of the layer that find no place, where each of the `of` ranks gives every
 * expert at most `capacity` (of what it sends in the mean). O(of · experts). */
double hv_router_dropped(const struct hv_router *r, const struct hv_router_at *at, double capacity);

#endif
