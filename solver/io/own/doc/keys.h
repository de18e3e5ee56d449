/**
 * Allowed members of the objects in hetviz's own files: one table that the readers use for their
 * checks and that the test of the JSON Schemas reads.
 */
#ifndef HV_SOLVER_IO_OWN_DOC_KEYS_H
#define HV_SOLVER_IO_OWN_DOC_KEYS_H

#include "solver/base/json/json.h"

/* clang-format off */
#define HV_DEVICE_KEYS "vendor", "arch", "class", "fabric", "year", "memory_GiB", "memory_type", "bandwidth_GBps", "rates", "dense_TFLOPS", \
    "matmul_TFLOPS", "link", "pcie_GBps", "tdp_W", "prices", "source", "verified", "note"
/** One row per object: constant, schema file, place of the object's schema in it, member names. */
#define HV_KEYS_MAP(X)                                                                                                                  \
    X(HV_KEYS_DEVICES, "devices", "", "format", "vendor", "fabric", "class", "devices")                                                 \
    X(HV_KEYS_DEVICE, "devices", "/$defs/device", "name", HV_DEVICE_KEYS)                                                               \
    X(HV_KEYS_DEVICE_FLOPS, "devices", "/$defs/flops", "fp32", "tf32", "fp16", "bf16", "fp8", "int8", "fp4")                             \
    X(HV_KEYS_DEVICE_LINK, "devices", "/$defs/link", "kind", "bandwidth_GBps", "domain")                                                \
    X(HV_KEYS_DEVICE_PRICE, "devices", "/$defs/price", "provider", "instance", "usd_per_hour", "spot_usd_per_hour", "date", "source", "verified") \
    X(HV_KEYS_CALIBRATION, "calibration", "", "format", "classes")                                                                      \
    X(HV_KEYS_CALIBRATED_CLASS, "calibration", "/$defs/class", "name", "devices", "source", "like", "parameters", "errors")             \
    X(HV_KEYS_PROFILE, "profile", "", "format", "device", "same_chip", "source", "licence", "date", "note", "bandwidth_GBps",           \
      "kernel_start_us", "gemm", "stream", "attention", "machine", "complete", "samples", "layers")                                     \
    X(HV_KEYS_PROFILE_MACHINE, "profile", "/$defs/machine", "card", "driver", "runtime", "blas", "dnn", "collectives")                  \
    X(HV_KEYS_PROFILE_SAMPLE, "profile", "/$defs/sample", "kind", "variant", "precision", "m", "n", "k", "groups", "batch", "sequence", \
      "heads", "kv_heads", "head_dim", "rows", "width", "bytes", "ranks", "median_us", "spread_frac", "timings", "clock_MHz")           \
    X(HV_KEYS_PROFILE_LAYER, "profile", "/$defs/layer", "hidden", "ffn", "heads", "kv_heads", "head_dim", "sequence", "batch", "pass",  \
      "precision", "measured_us", "predicted_us")                                                                                       \
    X(HV_KEYS_PROFILE_CORE, "profile", "/$defs/attention", "precision", "pass", "error_frac", "log2_sequence", "TFLOPS")                \
    X(HV_KEYS_PROFILE_GEMM, "profile", "/$defs/gemm", "precision", "peak_TFLOPS", "error_frac", "log2_m", "log2_n", "log2_k", "TFLOPS") \
    X(HV_KEYS_PROFILE_STREAM, "profile", "/$defs/stream", "kernel", "error_frac", "log2_bytes", "GBps")                                 \
    X(HV_KEYS_PROFILE_AXIS, "profile", "/$defs/axis", "from", "step", "count")                                                          \
    X(HV_KEYS_CLUSTER, "cluster", "", "format", "name", "nodes", "network", "devices")                                                  \
    X(HV_KEYS_NODE, "cluster", "/$defs/node", "name", "count", "device", "devices", "intra", "nic", "zone", "price_usd_per_hour",       \
      "spot_usd_per_hour", "preemptions_per_hour", "host_memory_GBps", "host_memory_GiB", "state", "domain_nodes")                      \
    X(HV_KEYS_SLOTS, "cluster", "/$defs/slots", "device", "count")                                                                      \
    X(HV_KEYS_INTRA, "cluster", "/$defs/intra", "kind", "bandwidth_GBps", "latency_us", "curve", "groups")                                       \
    X(HV_KEYS_ISLAND, "cluster", "/$defs/island", "devices", "kind", "bandwidth_GBps", "latency_us", "curve", "shared")                          \
    X(HV_KEYS_NIC, "cluster", "/$defs/nic", "bandwidth_GBps", "latency_us", "curve", "count")                                                    \
    X(HV_KEYS_NETWORK, "cluster", "/$defs/network", "bandwidth_GBps", "latency_us", "curve", "links", "matrix_bandwidth_GBps", "matrix_latency_us") \
    X(HV_KEYS_NETWORK_LINK, "cluster", "/$defs/network_link", "between", "bandwidth_GBps", "latency_us")                                \
    X(HV_KEYS_OWN_DEVICE, "cluster", "/$defs/device", "base", HV_DEVICE_KEYS)                                                           \
    X(HV_KEYS_TRANSFORMER, "model", "/$defs/transformer", "format", "name", "kind", "layers", "hidden", "heads", "kv_heads", "head_dim", \
      "ffn", "ffn_kind", "vocab", "tied_embeddings", "norm", "causal", "position", "max_sequence", "moe", "mla", "window",              \
      "attention_bias", "ffn_bias", "attention_extra", "ffn_extra", "embedding_extra", "head_extra", "patch_tokens", "tokens", "attends", "layer_list")                                                                       \
    X(HV_KEYS_MOE, "model", "/$defs/moe", "experts", "top_k", "ffn", "shared_experts", "shared_ffn", "dense_ffn", "every", "first_dense") \
    X(HV_KEYS_MLA, "model", "/$defs/mla", "q_rank", "kv_rank", "rope_dim", "nope_dim", "value_dim")                                     \
    X(HV_KEYS_LAYER_LIST, "model", "/$defs/layer_list", "repeat", "heads", "kv_heads", "head_dim", "ffn", "ffn_kind", "window", "moe", \
      "mla", "attention_bias", "ffn_bias", "attention_extra", "ffn_extra", "attends")                                                              \
    X(HV_KEYS_LAYERS, "model", "/$defs/layers", "format", "name", "kind", "tp", "micro_batch", "layers", "max_sequence")                                     \
    X(HV_KEYS_LAYER, "model", "/$defs/layer", "name", "forward_ms", "backward_ms", "update_ms", "parameter_bytes", "activation_bytes",               \
      "output_bytes", "transfer_ms", "parallel_frac", "attention_block_ms", "kv_bytes_per_token", "expert_fixed_ms",                  \
      "expert_ms_per_token", "dispatch_bytes_per_token", "experts", "top_k")                                                                                   \
    X(HV_KEYS_GRAPH, "model", "/$defs/graph", "format", "name", "kind", "dims", "batch", "tensors", "ops", "edges", "max_sequence")                       \
    X(HV_KEYS_OP, "model", "/$defs/op", "id", "op", "out", "contract", "flops", "parameter_bytes", "bytes", "time_ms", "group", "device_class") \
    X(HV_KEYS_TENSOR, "model", "/$defs/tensor", "dims", "role", "dtype")                                                                \
    X(HV_KEYS_TENSOR_OP, "model", "/$defs/tensor_op", "id", "op", "in", "out", "by", "over", "along", "rows", "parallel", "window",      \
      "groups", "range", "group", "device_class")                                                                                       \
    X(HV_KEYS_TENSOR_USE, "model", "/$defs/tensor_use", "tensor", "as")                                                                 \
    X(HV_KEYS_TENSOR_WINDOW, "model", "/$defs/tensor_window", "of", "tap", "size", "stride", "pad", "dilation")                         \
    X(HV_KEYS_SHARD_CASES, "shard-cases", "", "format", "family", "source", "graphs", "cases")                                          \
    X(HV_KEYS_SHARD_GRAPH, "shard-cases", "/$defs/graph", "dims", "tensors", "ops")                                                     \
    X(HV_KEYS_SHARD_CASE, "shard-cases", "/$defs/case", "id", "graph", "mesh", "shard", "constrain", "out_shard", "outputs",            \
      "propagate_inputs", "grad", "loss", "shape", "from", "to", "op", "means", "shapes", "in", "want", "xla", "torch", "shardy",       \
      "least_bytes", "most_bytes", "agree")                                                                                             \
    X(HV_KEYS_MODULES, "model", "/$defs/modules", "format", "name", "kind", "modules", "edges", "max_sequence")                         \
    X(HV_KEYS_JOB, "job", "", "format", "name", "global_batch", "sequence", "output_tokens", "requests_per_s", "precision", "optimizer", "master_weights",                 \
      "grad_precision", "attention", "dropout", "kernels", "runtime", "target", "sequence_lengths", "memory_reserve_GiB", "objective",     \
      "failures", "jobs", "routing")                                  \
    X(HV_KEYS_QUEUED_JOB, "job", "/$defs/queued", "name", "model", "job", "arrival_s", "weight", "iterations", "devices", "deadline_s") \
    X(HV_KEYS_FAILURES, "job", "/$defs/failures", "per_device_hour", "detect_s", "replace_s", "restart_s", "regroup_s",                \
      "checkpoint_GBps", "checkpoint_interval_s")                                                                                       \
    X(HV_KEYS_LENGTH, "job", "/$defs/length", "tokens", "frac")                                                                         \
    X(HV_KEYS_OBJECTIVE, "job", "/$defs/objective", "minimize", "max_usd_per_hour", "deadline_s", "allow_stale", "allow_drop")          \
    X(HV_KEYS_ROUTING_UNIFORM, "routing", "/$defs/uniform", "format", "name", "kind")                                                    \
    X(HV_KEYS_ROUTING_ZIPF, "routing", "/$defs/zipf", "format", "name", "kind", "skew", "drift", "correlation", "seed", "iterations")    \
    X(HV_KEYS_ROUTING_TRACE, "routing", "/$defs/trace", "format", "name", "kind", "counts", "iterations", "layers", "sources",           \
      "experts")                                                                                                                        \
    X(HV_KEYS_VALIDATION, "validation", "", "format", "name", "runtime", "held_out", "sources", "models", "systems", "rows")                        \
    X(HV_KEYS_VALIDATION_SOURCE, "validation", "/$defs/source", "where", "licence", "date")                                             \
    X(HV_KEYS_VALIDATION_MODEL, "validation", "/$defs/model", "name", "layers", "hidden", "heads", "kv_heads", "head_dim", "ffn",       \
      "gated", "vocab", "seq", "attn", "experts", "topk", "moe_ffn", "shared_ffn", "dense_layers", "tied_embeddings",                   \
      "sliding_window", "sliding_window_every", "q_lora", "kv_lora", "qk_nope", "qk_rope", "v_head")                                    \
    X(HV_KEYS_VALIDATION_SYSTEM, "validation", "/$defs/system", "device", "n", "per_node", "intra", "intra_gbps_uni",                   \
      "inter_gbit_per_gpu", "mixed")                                                                                                    \
    X(HV_KEYS_VALIDATION_NODES, "validation", "/$defs/nodes", "device", "n", "per_node", "intra", "intra_gbps_uni",                     \
      "inter_gbit_per_gpu")                                                                                                             \
    X(HV_KEYS_VALIDATION_PAR, "validation", "/$defs/par", "tp", "pp", "vpp", "dp", "cp", "ep", "zero", "fsdp", "sp")                    \
    X(HV_KEYS_VALIDATION_ROW, "validation", "/$defs/row", "id", "source", "table", "model", "system", "n", "seq", "precision", "par",   \
      "mbs", "gbs", "runtime", "recompute", "schedule", "stage_partition", "kind", "iter_s", "iter_s_from_flops", "mem_gib", "mem_max_bytes",      \
      "mem_meter", "oom", "calculon_s")                                                                                                 \
    X(HV_KEYS_INSTANCE_CHAIN, "instance", "/$defs/chain", "format", "kind", "name", "source", "layers", "stages", "any_stages",         \
      "min_layers", "order", "objective", "ranks", "placement", "rank", "micro_batches", "stage_device", "time_ms",                     \
      "memory_GiB", "capacity_GiB", "comm_ms", "expected")                                                                              \
    X(HV_KEYS_INSTANCE_DAG, "instance", "/$defs/dag", "format", "kind", "name", "source", "accelerators", "cpus",                       \
      "memory_bytes", "objective", "node_fields", "nodes", "edge_fields", "edges", "expected")                                          \
    X(HV_KEYS_INSTANCE_REPLICAS, "instance", "/$defs/replicas", "format", "kind", "name", "source", "layers", "devices",                \
      "capacity_GiB", "widths", "expected")                                                                                             \
    X(HV_KEYS_INSTANCE_WIDTH, "instance", "/$defs/width", "width", "options", "sync_ms", "comm_ms")                                     \
    X(HV_KEYS_INSTANCE_WAY, "instance", "/$defs/option", "name", "time_ms", "fixed_GiB", "held_GiB")                                    \
    X(HV_KEYS_INSTANCE_JOINT, "instance", "/$defs/joint", "format", "kind", "name", "source", "total", "pipelines", "expected")         \
    X(HV_KEYS_INSTANCE_PIPELINE, "instance", "/$defs/pipeline", "name", "layers", "stages", "min_layers", "copies", "min",              \
      "max", "stage_device", "time_ms", "memory_GiB", "capacity_GiB", "comm_ms")                                                        \
    X(HV_KEYS_INSTANCE_DISTRIBUTE, "instance", "/$defs/distribute", "format", "name", "source", "objective", "total",                   \
      "replicas", "items_ms", "slots", "most", "expected")                                                                              \
    X(HV_KEYS_INSTANCE_SHARE, "instance", "/$defs/share", "name", "fixed_ms", "per_microbatch_ms", "time_ms", "size", "min",            \
      "max")                                                                                                                            \
    X(HV_KEYS_TRACE, "trace", "", "format", "name", "rank", "world_size", "devices", "wall_ms", "events", "streams", "kernels",             \
      "operations", "collectives", "communication_ms", "hidden_communication_ms", "steps")                                              \
    X(HV_KEYS_TRACE_DEVICE, "trace", "/$defs/device", "name", "memory_GiB")                                                             \
    X(HV_KEYS_TRACE_STREAM, "trace", "/$defs/stream", "process", "stream", "device", "events", "busy_ms", "idle_ms", "compute_ms",      \
      "communication_ms", "copy_ms")                                                                                                    \
    X(HV_KEYS_TRACE_KERNEL, "trace", "/$defs/kernel", "name", "kind", "count", "total_ms", "mean_us", "max_us")                         \
    X(HV_KEYS_TRACE_COLLECTIVE, "trace", "/$defs/collective", "name", "count", "total_ms", "bytes", "ranks")                            \
    X(HV_KEYS_TRACE_STEP, "trace", "/$defs/step", "name", "ms")                                                                         \
    X(HV_KEYS_WORKSPACE, "workspace", "", "format", "name", "cluster", "model", "job", "strategies", "plans", "jobs")                   \
    X(HV_KEYS_STRATEGY, "workspace", "/$defs/strategy", "id", "options")                                                                \
    X(HV_KEYS_WORKSPACE_JOB, "workspace", "/$defs/job", "name", "model", "job", "arrival_s", "weight", "iterations",                 \
      "devices", "deadline_s")
/* clang-format on */

/** One object of the files. */
enum hv_keys {
#define X(c, ...) c,
    HV_KEYS_MAP(X)
#undef X
        HV_KEYS_N
};

/** Its schema file, the place in it (JSON pointer) and its member names. */
struct hv_key_set {
    const char *schema, *where;
    const char *const *keys;
    size_t n;
};

/** The row of an object. */
const struct hv_key_set *hv_keys_of(enum hv_keys k);
/** Checks that p is an object with no other members than those of the row (and `x-` ones). */
enum hv_status hv_keys_check(const struct hv_jp *p, enum hv_keys k,
                             struct hv_err *err) HV_NODISCARD;

#endif
