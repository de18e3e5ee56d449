/**
 * Placement of an operator graph on equal accelerators and CPUs with the least load of the busiest.
 *
 * Nodes of one class stay together. A device's load is the compute of its nodes plus transfers:
 * every device that sends or receives the output of a node pays that node's transfer time once, on
 * accelerators only. Each accelerator holds at most `memory` bytes; CPUs are not
 * limited. Instances of this kind: Tarnawski et al., NeurIPS 2020 (msr-fiddle/dnn-partitioning).
 */
#ifndef HV_SOLVER_OPTIM_DAG_DAG_H
#define HV_SOLVER_OPTIM_DAG_DAG_H

#include "solver/base/arena.h"
#include "solver/base/status.h"
#include "solver/optim/chain/partition.h"

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

/** Figure to minimise. */
enum hv_dag_objective {
    HV_DAG_MAX_LOAD, /**< the load of the busiest device: the time per sample of a stream */
    HV_DAG_LATENCY,  /**< the end of one sample, see hv_dag_latency */
};

/** An instance. Everything is borrowed; devices are numbered accelerators first. */
struct hv_dag {
    size_t n_nodes, n_edges, n_classes;
    const struct hv_dag_node *nodes;
    const struct hv_dag_edge *edges;
    size_t n_accelerators, n_cpus;
    double memory;
    enum hv_dag_objective objective;
};

/** Answer; arrays live in the arena of the call. */
struct hv_dag_result {
    bool feasible, proven, stopped;
    double objective;       /**< load of the busiest device, or the latency */
    double bound;           /**< no placement is better */
    double contiguous;      /**< of the best contiguous split, before any other search */
    bool contiguous_proven; /**< no contiguous split is better (max load only) */
    size_t *device;         /**< one per node */
    double *load;           /**< one per device; for the latency: when the device ends */
    const char *method, *proof;
};

/**
 * Loads of all devices under a placement; every answer is evaluated by it.
 * @param load  n_accelerators + n_cpus numbers, written
 * Returns the largest load, or infinity when memory, classes or kinds of device are violated.
 */
double hv_dag_judge(const struct hv_dag *g, const size_t *device, double *load);

/**
 * Latency of one sample under a placement; every answer to HV_DAG_LATENCY is evaluated by it.
 *
 * An accelerator runs its nodes as one block: it begins when its last input has arrived, fetches
 * each source once, computes, and sends each of its outputs that is used elsewhere; all its results
 * are available at its end. Nodes on CPUs run as soon as their inputs are there, side by side and
 * without transfers (Tarnawski et al., 2020, section 3 and their program latency-greedy).
 * @param end  n_accelerators + n_cpus numbers, written: when each device ends
 * Returns infinity when memory, classes or kinds of device are violated, or when two blocks wait
 * for each other. O(nodes + edges).
 */
double hv_dag_latency(const struct hv_dag *g, const size_t *device, double *end);

/**
 * A good placement for HV_DAG_MAX_LOAD: the best contiguous split (hv_dag_split), then annealing of
 * class moves and swaps with a fixed seed and number of steps. The bound is the mean of the
 * compute; for at most 64 classes a branch and bound follows, whose end within 400,000 steps is the
 * proof. For HV_DAG_LATENCY: a dynamic program over down-sets of the graph, whose entries carry the
 * end times of the nodes that others wait for and are ruled out by dominance and by the longest
 * path. Exact and proven where the graph has at most 4096 down-sets and the entries stay within
 * limits, unless classes lie on a cycle of classes and there are CPUs; else over the prefixes of
 * two topological orders, with the longest path as bound. O(down-sets² · frontier · entries).
 * Errors: HV_EINPUT for a graph with a cycle (latency only); HV_ELIMIT.
 */
enum hv_status hv_dag_solve(const struct hv_dag *g, const struct hv_solve_limits *limits,
                            struct hv_arena *arena, struct hv_dag_result *out,
                            struct hv_err *err) HV_NODISCARD;

/**
 * The best contiguous split for HV_DAG_MAX_LOAD: devices get the differences of a chain of
 * down-sets of the classes in forward order, the backward pass follows its classes.
 *
 * First the best splits of two topological orders (O(classes · edges + classes² · devices)); then a
 * dynamic program over all down-sets, where sets and pairs are skipped that the best split so far
 * rules out. `contiguous_proven` where that ends: at most 2^18 down-sets and 3·10^9 pairs.
 * `contiguous` and `objective` are the same, the bound is the simple one. Errors: HV_ELIMIT.
 */
enum hv_status hv_dag_split(const struct hv_dag *g, const struct hv_solve_limits *limits,
                            struct hv_arena *arena, struct hv_dag_result *out,
                            struct hv_err *err) HV_NODISCARD;

#endif
