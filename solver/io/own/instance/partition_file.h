/** Reader of bare optimisation instances: `hetviz.partition/1` (chain, dag, replicas, joint) and
 * `hetviz.distribute/1`. */
#ifndef HV_SOLVER_IO_OWN_INSTANCE_PARTITION_FILE_H
#define HV_SOLVER_IO_OWN_INSTANCE_PARTITION_FILE_H

#include "solver/base/arena.h"
#include "solver/base/json/json.h"
#include "solver/optim/batch/distribute.h"
#include "solver/optim/batch/with_layers.h"
#include "solver/optim/chain/chunks.h"
#include "solver/optim/chain/replicas.h"
#include "solver/optim/dag/dag.h"

/** Problem that an instance file poses. */
enum hv_instance_kind {
    HV_INSTANCE_CHAIN,
    HV_INSTANCE_DAG,
    HV_INSTANCE_REPLICAS,
    HV_INSTANCE_JOINT,
    HV_INSTANCE_DISTRIBUTE
};
/** Objective of a distribution. */
enum hv_instance_goal {
    HV_INSTANCE_MINMAX,
    HV_INSTANCE_SUM,
    HV_INSTANCE_MINVAR,
    HV_INSTANCE_RATIO,
    HV_INSTANCE_LPT
};

/** A read instance; times are in ms, memory of chains in GiB, as in the file. Owner:
 * hv_instance_free. */
struct hv_instance {
    enum hv_instance_kind kind;
    const char *name;          /**< "" when the file gives none */
    struct hv_partition chain; /**< HV_INSTANCE_CHAIN */
    struct hv_dag dag;         /**< HV_INSTANCE_DAG */
    const size_t *rank; /**< HV_INSTANCE_CHAIN: the rank of each stage; NULL = one stage each */
    size_t n_ranks;
    struct hv_replicas replicas;   /**< HV_INSTANCE_REPLICAS */
    struct hv_batch_layers joint;  /**< HV_INSTANCE_JOINT */
    enum hv_instance_goal goal;    /**< HV_INSTANCE_DISTRIBUTE */
    const struct hv_share *shares; /**< all goals but LPT */
    size_t n_shares;
    int64_t total;
    const double *items; /**< LPT */
    size_t n_items, n_slots, most;
    struct hv_arena arena;
};

/**
 * Fills an instance from a parsed file. Keys `expected` and `source` are ignored. Errors: HV_EINPUT
 * with position and key path; HV_ELIMIT above 16 million numbers.
 */
enum hv_status hv_instance_read(struct hv_instance *out, const struct hv_json *json,
                                struct hv_err *err) HV_NODISCARD;
/**
 * Reads an instance from a file, from standard input ("-") or by the name of a shipped one.
 * Errors: as hv_instance_read; HV_EIO.
 */
enum hv_status hv_instance_load(struct hv_instance *out, const char *path_or_name,
                                struct hv_err *err) HV_NODISCARD;
/** Frees everything; also right after a failed read. */
void hv_instance_free(struct hv_instance *in);

#endif
