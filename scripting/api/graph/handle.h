/** Handles of operator graphs: what hv.graph and hv.shard work on. Includes Lua. */
#ifndef HV_SCRIPTING_API_GRAPH_HANDLE_H
#define HV_SCRIPTING_API_GRAPH_HANDLE_H

#include "scripting/host/host_int.h"
#include "solver/base/json/json.h"
#include "solver/optim/graph/precedence.h"
#include "solver/workload/graph/tensor_graph.h"

#define HV__GRAPH "hv.graph"

/** An operator as a plugin sees it. */
struct hv__graph_op {
    const char *id, *op;
    double flops, parameters, output_bytes; /**< HV_UNKNOWN: not given */
};

/** A graph. Everything lives in its arena, but `doc`. */
struct hv__graph {
    struct hv_arena arena;
    json_t *doc; /**< as it was given: dims, tensors, ops; or ops and edges */
    const struct hv_tensor_graph *tensors; /**< long form; NULL: operators and edges only */
    size_t n_ops;
    struct hv__graph_op *ops;
    struct hv_precedence flow; /**< edges between operators, each pair once */
    double *edge_bytes;        /**< per edge */
};

/** The graph at i. */
struct hv__graph *hv__graph_at(lua_State *L, int i);
/** Pushes a handle of a graph in long or short form; takes over `doc`. Raises an error for one that
 * is not right, which begins with the name of the function. */
struct hv__graph *hv__graph_push(lua_State *L, json_t *doc, const char *fn);
/** Number of an operator by id or number (from 1) at i, from 0. Raises an error. */
size_t hv__graph_op_at(lua_State *L, int i, const struct hv__graph *g, const char *fn);
/** A tree that lives as long as the userdata that is pushed for it. */
void hv__keep_json(lua_State *L, json_t *v);
/** hv.graph and graph handles. */
void hv__api_graph(lua_State *L);
/** hv.shard. */
void hv__api_shard(lua_State *L);

#endif
