/** Internals of the reader of published measurements, shared by its files only. */
#ifndef HV_SOLVER_IO_OWN_VALIDATION_VALIDATION_INT_H
#define HV_SOLVER_IO_OWN_VALIDATION_VALIDATION_INT_H

#include "solver/io/own/validation/validation_file.h"

/** Equal nodes of a row with devices of several kinds; figures that an entry leaves out are the
 * system's. */
struct hv__row_part {
    const char *device, *intra;
    int64_t n, per_node;
    double intra_gbps, inter_gbit;
};

/** A row as written, before it becomes a cluster, a model, a job and a grid. */
struct hv__row {
    struct hv_jp at, models, systems; /**< the row; the file's tables */
    struct hv_jp model, system;       /**< objects, looked up where named */
    const char *id, *kind, *attn, *device, *intra, *precision, *schedule, *recompute, *meter,
        *notes;
    int64_t layers, hidden, heads, kv_heads, head_dim, ffn, vocab, seq, experts, topk, moe_ffn,
        shared_ffn, dense_layers, window, window_every;
    int64_t mla_q, mla_kv, mla_rope, mla_nope, mla_value;
    bool gated, tied;
    int64_t n, per_node;
    double intra_gbps, inter_gbit; /**< GB/s one way; Gbit/s per device; HV_UNKNOWN */
    int64_t tp, pp, vpp, dp, cp, ep, zero, fsdp;
    bool sp;
    int64_t mbs, gbs;
    double iter_s, from_flops_s, mem_gib, mem_max_bytes, calculon_s;
    const char *table;
    bool verified, incomplete, duplicate, oom, overhead_bound, mixed;
    struct hv__row_part *parts; /**< of `mixed`; NULL: one kind */
    size_t n_parts;
    const int *counts; /**< blocks per stage, or NULL */
};

/** Reads one element of `rows` into *out, which must stay where it is. `own`: unknown keys are
 * errors. */
enum hv_status hv__row_read(const struct hv_jp *root, const struct hv_jp *p, bool own,
                            struct hv_arena *arena, struct hv__row *out,
                            struct hv_err *err) HV_NODISCARD;
/** Reason why the row cannot be compared with a prediction, or NULL. Static text. */
const char *hv__row_unusable(const struct hv__row *r);
/** The cluster of a row as a `hetviz.cluster/1` tree, and its model as `hetviz.model/1`. Owner:
 * json_decref. */
json_t *hv__row_cluster(const struct hv__row *r);
json_t *hv__row_model(const struct hv__row *r);

#endif
