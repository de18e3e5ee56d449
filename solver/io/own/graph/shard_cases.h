/**
 * `hetviz.shard-cases/1`: questions about layouts. A case gives a graph on a mesh with a few
 * layouts; or a tensor and two layouts; or one operator with the placements of its operands per
 * axis of the mesh; or a graph without mesh, whose rules are asked for.
 */
#ifndef HV_SOLVER_IO_OWN_GRAPH_SHARD_CASES_H
#define HV_SOLVER_IO_OWN_GRAPH_SHARD_CASES_H

#include "solver/base/json/json.h"
#include "solver/workload/graph/sharded.h"

/** What a case asks. */
enum hv_shard_question {
    HV_ASK_RULES,    /**< rules of all primitives of the graph */
    HV_ASK_GRAPH,    /**< layouts, bytes, memory of a graph */
    HV_ASK_RESHARD,  /**< bytes from one layout to another */
    HV_ASK_OPERATOR, /**< one operator: bytes for its result in the layout `want` */
    HV_ASK_NOTHING   /**< shapes without an operator: cannot be answered */
};

/** A case. */
struct hv_shard_case {
    const char *id;
    enum hv_shard_question question;
    const struct hv_tensor_graph *graph;
    struct hv_mesh mesh;
    const char **axis; /**< names of the axes of the mesh */
    struct hv_sharding_request request;
    struct hv_shape shape; /**< RESHARD */
    struct hv_layout from, to;
    struct hv_layout *operand; /**< OPERATOR: layouts of operands */
    struct hv_layout want;     /**< the result's; only where want_text is given */
    const char **want_text;    /**< placements as they were written, per axis; NULL: not given */
};

/** All cases of a file. Owner: hv_shard_cases_free. */
struct hv_shard_cases {
    struct hv_arena arena;
    struct hv_shard_case *cases;
    size_t n;
};

/** Loads a file of cases, or a model (file, or name in share/models); *is_cases tells which. Owner:
 * hv_json_free. Errors: HV_EIO, HV_EINPUT. */
enum hv_status hv_shard_doc_load(struct hv_json *out, const char *path_or_name, bool *is_cases,
                                 struct hv_err *err) HV_NODISCARD;
/** Reads the cases of a document. Errors: HV_EINPUT with the place and the nearest name. */
enum hv_status hv_shard_cases_read(struct hv_shard_cases *out, const struct hv_json *doc,
                                   struct hv_err *err) HV_NODISCARD;
void hv_shard_cases_free(struct hv_shard_cases *c);

#endif
