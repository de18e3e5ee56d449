/**
 * Placement of an operator graph on equal accelerators and CPUs with the least load of the busiest.
 *
 * Nodes of one class stay together. A device's load is the compute of its nodes plus transfers: the
 * output of a node costs its source's transfer time once per (source, other device) pair, paid by
 * both sides, on accelerators only. Each accelerator holds at most `memory` bytes; CPUs are not
 * limited. Instances of this kind: Tarnawski et al., NeurIPS 2020 (msr-fiddle/dnn-partitioning).
 */
#ifndef HV_SOLVER_OPTIM_DAG_H
#define HV_SOLVER_OPTIM_DAG_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/optim/partition.h"

/** One node. */
struct hv_dag_node {
    double accel, cpu; /**< time on either kind of device */
    double bytes;      /**< memory on an accelerator */
    size_t color;      /**< class, < n_classes */
    bool backward;     /**< runs in the backward pass */
    bool cpu_only;     /**< cannot run on an accelerator */
};

/** One edge; `cost` is the transfer time of the source's output. */
struct hv_dag_edge {
    size_t from, to;
    double cost;
};

/** An instance. Everything is borrowed; devices are numbered accelerators first. */
struct hv_dag {
    size_t n_nodes, n_edges, n_classes;
    const struct hv_dag_node *nodes;
    const struct hv_dag_edge *edges;
    size_t n_accelerators, n_cpus;
    double memory;
};

/** Answer; arrays live in the arena of the call. */
struct hv_dag_result {
    bool feasible, proven, stopped;
    double objective;  /**< load of the busiest device */
    double bound;      /**< no placement is better */
    double contiguous; /**< of the best split of one topological order, before local search */
    size_t *device;    /**< one per node */
    double *load;      /**< one per device */
    const char *method, *proof;
};

/**
 * Loads of all devices under a placement; the judge of every answer.
 * @param load  n_accelerators + n_cpus numbers, written
 * Returns the largest load, or infinity when memory, classes or kinds of device are violated.
 */
double hv_dag_judge(const struct hv_dag *g, const size_t *device, double *load);

/**
 * A good placement: the best contiguous split of topological orders by dynamic program
 * (O(classes · edges + classes² · devices)), then annealing of class moves and swaps with a fixed
 * seed and number of steps. The bound is the mean of the compute, so `proven` is rare.
 */
enum hv_status hv_dag_solve(const struct hv_dag *g, const struct hv_part_limits *limits,
                            struct hv_arena *arena, struct hv_dag_result *out,
                            struct hv_err *err) HV_NODISCARD;

#endif
