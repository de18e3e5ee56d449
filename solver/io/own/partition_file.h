/** Reader of bare optimisation instances: `hetviz.partition/1` (chain, dag) and
 * `hetviz.distribute/1`. */
#ifndef HV_SOLVER_IO_OWN_PARTITION_FILE_H
#define HV_SOLVER_IO_OWN_PARTITION_FILE_H

#include "solver/base/arena.h"
#include "solver/base/json.h"
#include "solver/optim/dag.h"
#include "solver/optim/distribute.h"
#include "solver/optim/partition.h"

/** What an instance file asks for. */
enum hv_instance_kind { HV_INSTANCE_CHAIN, HV_INSTANCE_DAG, HV_INSTANCE_DISTRIBUTE };

/** A read instance; times are in ms, memory of chains in GiB, as in the file. Owner:
 * hv_instance_free. */
struct hv_instance {
    enum hv_instance_kind kind;
    const char *name;              /**< "" when the file gives none */
    struct hv_partition chain;     /**< HV_INSTANCE_CHAIN */
    struct hv_dag dag;             /**< HV_INSTANCE_DAG */
    const struct hv_share *shares; /**< HV_INSTANCE_DISTRIBUTE */
    size_t n_shares;
    int64_t total;
    struct hv_arena arena;
};

/**
 * Fills an instance from a parsed file. Keys `expected` and `source` are not looked at.
 * Errors: HV_EINPUT with position and key path; HV_ELIMIT above 16 million numbers.
 */
enum hv_status hv_instance_read(struct hv_instance *out, const struct hv_json *json,
                                struct hv_err *err) HV_NODISCARD;
/** Frees everything; also right after a failed read. */
void hv_instance_free(struct hv_instance *in);

#endif
