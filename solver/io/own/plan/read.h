/**
 * Internals of the plan reader, shared by plan_file.c, stage_file.c, moe_file.c and sync_file.c.
 * Otherwise only tests include it, to compare the keys with the schema.
 */
#ifndef HV_SOLVER_IO_OWN_PLAN_READ_H
#define HV_SOLVER_IO_OWN_PLAN_READ_H

#include "solver/base/json/json.h"
#include "solver/plan/plan.h"

/* clang-format off */
/** Every object of a plan file: C name, name of its definition in the schema, and its keys in the order in which they are written. */
#define HV_PLAN_OBJECT_MAP(X) \
    X(plan, "format", "name", "strategy", "cluster", "model", "job", "mode", "micro_batch", "replicas", "jobs", "flow", \
      "cache_mark_frac", "partial_inference", "schedule", "sync", "recovery", "claimed", "simulated", "violations", "stopped") \
    X(strategy, "name", "options") \
    X(replica, "count", "micro_batch", "micro_batches", "stages") \
    X(micro_batch_item, "sequences", "tokens", "documents", "scale") \
    X(job_entry, "name", "arrival_s", "start_s", "iterations", "continues", "plan") \
    X(stage, "devices", "module", "layers", "ops", "embedding", "head", "after", "micro_batch", "tp", "sequence_parallel", "cp", \
      "dp", "deal", "shares", "ep", "moe", "zero", "degrees", "recompute", "offload", "in_flight", "mesh", "shard", "place", "fuse") \
    X(tp, "scheme", "degree", "depth", "regather", "shares") \
    X(cp, "scheme", "degree", "ulysses", "inner", "layout", "tile", "order", "backward", "dims") \
    X(moe, "layers", "ep", "capacity_factor", "min_capacity", "expert_shards", "all_to_all", "kernel", "dispatch", "degree", "order", "move", \
      "owners", "copies", "copy_life", "prefetch", "adapt", "off_node_frac", "target", "compress") \
    X(adapt, "policy", "interval", "experts", "placements") \
    X(placement, "iteration", "layers", "owners", "copies") \
    X(compress, "ratio", "GBps") \
    X(zero, "stage", "shard_group", "unit", "reshard", "prefetch", "limit", "gather", "gather_at", "reduce") \
    X(degrees_item, "layers", "tp", "sequence_parallel", "cp", "dp", "zero") \
    X(offload_item, "what", "frac", "to") \
    X(sync, "kind", "algorithm", "bucket_MiB", "overlap", "cycle_ms", "chunk_MiB", "priority", "servers", "staleness", "group", \
      "weights", "wait_ms", "wait_most_ms", "least", "connect")
/* clang-format on */

/** Objects of a plan file: each has its own list of known keys in hv_plan_objects. */
enum hv_plan_object {
#define X(name, ...) HV_PLAN_OBJECT_##name,
    HV_PLAN_OBJECT_MAP(X)
#undef X
        HV_PLAN_OBJECT_N
};

/** The known keys of one object. */
struct hv_plan_object_keys {
    const char *name;
    const char *const *keys;
    size_t n;
};
extern const struct hv_plan_object_keys hv_plan_objects[HV_PLAN_OBJECT_N];

/** Checks that p is an object with known keys only. */
enum hv_status hv_plan_read_object(const struct hv_jp *p, enum hv_plan_object which,
                                   struct hv_err *err) HV_NODISCARD;

/* Limits of whole numbers in a plan: far above any use, and small enough that products fit 64 bits.
 */
enum {
    HV_PLAN_DEGREE_MAX = 1 << 22,
    HV_PLAN_BATCH_MAX = 1 << 22,
    HV_PLAN_MICRO_BATCHES_MAX = 1 << 24,
    HV_PLAN_BLOCKS_MAX = 1 << 20,
    HV_PLAN_CHUNKS_MAX = 1 << 10 /* of an exchange of experts: each is timed */
};

/** State of the readers of the parts. */
struct hv_plan_reader {
    struct hv_plan *plan;
    struct hv_arena *arena; /**< the plan's */
    struct hv_cluster *cluster;
    size_t devices_named; /**< over all stages, to limit the size of files */
};

/** The sub-readers: each fills its part, leaves defaults where a key is absent. */
enum hv_status hv_plan_read_stage(struct hv_plan_reader *rd, const struct hv_jp *p, size_t n_stages,
                                  size_t number, struct hv_stage *s,
                                  struct hv_err *err) HV_NODISCARD;
enum hv_status hv_plan_read_parallel(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                     struct hv_stage *s, struct hv_err *err) HV_NODISCARD;
/** The range [from, to) of whole blocks at `layers` of an object; unchanged where it has none. */
enum hv_status hv_plan_read_span(const struct hv_jp *p, int *from, int *to,
                                 struct hv_err *err) HV_NODISCARD;
enum hv_status hv_plan_read_moe(struct hv_plan_reader *rd, const struct hv_jp *stage,
                                struct hv_stage *s, struct hv_err *err) HV_NODISCARD;
enum hv_status hv_plan_read_schedule(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                     struct hv_err *err) HV_NODISCARD;
enum hv_status hv_plan_read_sync(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                 struct hv_err *err) HV_NODISCARD;
enum hv_status hv_plan_read_claimed(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                    struct hv_err *err) HV_NODISCARD;
enum hv_status hv_plan_read_flow(struct hv_plan_reader *rd, const struct hv_jp *plan,
                                 struct hv_err *err) HV_NODISCARD;
/** Options of a strategy or schedule: every member of `p` but the first `n_skip` names. */
enum hv_status hv_plan_read_options(struct hv_plan_reader *rd, const struct hv_jp *p,
                                    const char *const *skip, size_t n_skip, struct hv_option **out,
                                    size_t *n, struct hv_err *err) HV_NODISCARD;
/** An address or a list of addresses; global device numbers in written order. */
enum hv_status hv_plan_read_devices(struct hv_plan_reader *rd, const struct hv_jp *p,
                                    uint32_t **out, size_t *n, struct hv_err *err) HV_NODISCARD;
/** A list of whole numbers in [lo, hi]. */
enum hv_status hv_plan_read_ints(struct hv_plan_reader *rd, const struct hv_jp *p, int64_t lo,
                                 int64_t hi, int **out, size_t *n, struct hv_err *err) HV_NODISCARD;
/** A list of strings. */
enum hv_status hv_plan_read_strings(struct hv_plan_reader *rd, const struct hv_jp *p,
                                    const char ***out, size_t *n, struct hv_err *err) HV_NODISCARD;
/** An optional whole number into an int. */
enum hv_status hv_plan_read_int(const struct hv_jp *p, const char *key, int64_t lo, int64_t hi,
                                int *out, struct hv_err *err) HV_NODISCARD;

/** Returns from the enclosing function when the call fails. */
#define HV_TRY(call)                                                                               \
    do {                                                                                           \
        enum hv_status hv_try_ = (call);                                                           \
        if (hv_try_ != HV_OK)                                                                      \
            return hv_try_;                                                                        \
    } while (0)
/** Optional word of a plan's word table into an enum field; `err` is in scope. */
#define HV_TRY_WORD(place, key, kind, field)                                                       \
    do {                                                                                           \
        int hv_word_ = (int)(field);                                                               \
        HV_TRY(hv_jp_opt_word((place), (key), kind##_words, kind##_N, &hv_word_, err));            \
        (field) = (enum kind)hv_word_;                                                             \
    } while (0)

/** Errors: HV_EINPUT with the place of the first name of an operator, dimension or axis in a plan
 * with replicas that the model, or the mesh, does not have. O(patterns · operators). */
enum hv_status hv_plan_check_names(const struct hv_jp *plan, const struct hv_plan *p,
                                   const struct hv_model *m, struct hv_err *err) HV_NODISCARD;

#endif
