/** Internals of the reader of optimisation instances, shared by its files only. */
#ifndef HV_SOLVER_IO_OWN_INSTANCE_PARTITION_INT_H
#define HV_SOLVER_IO_OWN_INSTANCE_PARTITION_INT_H

#include "solver/io/own/instance/partition_file.h"

/** Reads the members of a `"kind": "chain"` instance. Errors: as hv_instance_read. */
enum hv_status hv__instance_read_chain(struct hv_instance *in, const struct hv_jp *root,
                                       struct hv_err *err) HV_NODISCARD;
/** Reads the members of a `"kind": "dag"` instance. Errors: as hv_instance_read. */
enum hv_status hv__instance_read_dag(struct hv_instance *in, const struct hv_jp *root,
                                     struct hv_err *err) HV_NODISCARD;
/** Reads the members of a `"kind": "replicas"` instance. Errors: as hv_instance_read. */
enum hv_status hv__instance_read_replicas(struct hv_instance *in, const struct hv_jp *root,
                                          struct hv_err *err) HV_NODISCARD;
/** Reads the members of a `"kind": "joint"` instance. Errors: as hv_instance_read. */
enum hv_status hv__instance_read_joint(struct hv_instance *in, const struct hv_jp *root,
                                       struct hv_err *err) HV_NODISCARD;
/** `layers`, `stages` and `min_layers` of a chain. Errors: as hv_instance_read. */
enum hv_status hv__read_chain_sizes(const struct hv_jp *root, struct hv_partition *p,
                                    struct hv_err *err) HV_NODISCARD;
/** Times, memories and cuts of a chain whose sizes are known. Errors: as hv_instance_read. */
enum hv_status hv__read_chain_rows(struct hv_arena *arena, const struct hv_jp *root,
                                   struct hv_partition *p, struct hv_err *err) HV_NODISCARD;
/** Reads the members of a distribution. Errors: as hv_instance_read. */
enum hv_status hv__instance_read_distribute(struct hv_instance *in, const struct hv_jp *root,
                                            struct hv_err *err) HV_NODISCARD;

#endif
