/** The answer to a question about layouts as JSON or text. */
#ifndef HV_SOLVER_IO_OWN_GRAPH_SHARD_ANSWER_H
#define HV_SOLVER_IO_OWN_GRAPH_SHARD_ANSWER_H

#include "solver/base/str.h"
#include "solver/io/own/graph/shard_cases.h"

/** A case and what the solver says to it. */
struct hv_shard_answer {
    const struct hv_shard_case *asked;
    struct hv_sharding sharding; /**< as far as the question needs it */
    struct hv_layout result;     /**< OPERATOR */
};

/** Appends the answer: one line of JSON, or some lines of text. Errors: HV_ELIMIT for rules with
 * too many factors. */
enum hv_status hv_shard_answer_print(const struct hv_shard_answer *a, bool json, struct hv_str *out,
                                     struct hv_err *err) HV_NODISCARD;
/** A layout as {dim: [axes, major first]}; a part of an axis is "x:(1)2". Owner: the caller. */
json_t *hv_shard_layout_json(const struct hv_shard_case *c, const struct hv_tensor *t,
                             const struct hv_layout *l);
/** Names of the axes of atoms (bits). Owner: the caller. */
json_t *hv_shard_axes_json(const struct hv_shard_case *c, uint32_t atoms);
/** The exchanges in their order: list of {op, kind, axes, devices, local_bytes, sent_bytes}. Owner:
 * the caller. */
json_t *hv_shard_exchanges_json(const struct hv_shard_answer *a);

#endif
