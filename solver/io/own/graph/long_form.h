/**
 * Reader and writer of operator graphs in long form: `dims`, `tensors`, `ops` with `in` and `out`.
 */
#ifndef HV_SOLVER_IO_OWN_GRAPH_LONG_FORM_H
#define HV_SOLVER_IO_OWN_GRAPH_LONG_FORM_H

#include "solver/base/json/json.h"
#include "solver/workload/graph/tensor_graph.h"

#define HV_LONG_OPS  1000000 /**< operators of a graph */
#define HV_LONG_DIMS 10000   /**< named dimensions */

/** Reads the members `dims`, `tensors` and `ops` of p. Everything lives in the arena. Errors:
 * HV_EINPUT with the place and, for unknown names, the nearest known one. */
enum hv_status hv_long_graph_read(const struct hv_jp *p, struct hv_arena *arena,
                                  struct hv_tensor_graph *out, struct hv_err *err) HV_NODISCARD;
/** The graph as an object of `dims`, `tensors` and `ops`, as the reader takes it. Owner: the
 * caller. */
json_t *hv_long_graph_json(const struct hv_tensor_graph *g);
/** Error at p for a name that is none of n: what was expected, and the nearest one. */
enum hv_status hv__unknown_name(const struct hv_jp *p, const char *what, const char *name,
                                const char *const *known, size_t n, struct hv_err *err);
/** The same for a name that is none of the n dimensions of a graph. */
enum hv_status hv__unknown_dim(const struct hv_jp *p, const char *what,
                               const struct hv_tensor_graph *g, const uint32_t *dims, size_t n,
                               const char *name, struct hv_err *err);

#endif
