/** Internals of the graph placement, shared by its files; not for other modules. */
#ifndef HV_SOLVER_OPTIM_DAG_DAG_INT_H
#define HV_SOLVER_OPTIM_DAG_DAG_INT_H

#include "solver/optim/chain/partition_int.h"
#include "solver/optim/dag/dag.h"

/** Neighbours of nodes and members of classes: list k is items[at[k]] … items[at[k + 1] - 1]. */
struct hv__dag_index {
    const struct hv_dag *g;
    size_t *out_at, *out, *in_at, *in, *member_at, *member;
    double *cost; /**< transfer time of a node's output */
};

/** Fills the index; memory from the arena. O(nodes + edges). */
void hv__dag_index(const struct hv_dag *g, struct hv_arena *a, struct hv__dag_index *x);
/** Improves a valid placement by annealing; fixed seed and number of steps unless stopped. `bound`
 * is only reported. */
void hv__dag_search(const struct hv__dag_index *x, struct hv__watch *watch, double bound,
                    struct hv_arena *a, size_t *device);

/**
 * Strongly connected parts of a graph with n nodes and successor lists next[at[c]] …
 * next[at[c + 1] - 1]: component[c] = part of c, numbered in a topological order. Returns the
 * number of parts. O(nodes + edges).
 */
size_t hv__dag_components(const size_t *at, const size_t *next, size_t n, struct hv_arena *a,
                          size_t *component);
/**
 * Groups of classes for contiguous splits, numbered in a topological order: classes on a cycle are
 * one group, and classes that cost nothing go with their only neighbour.
 */
struct hv__dag_groups {
    const struct hv__dag_index *x;
    size_t n, *of;              /**< class → group */
    size_t *member_at, *member; /**< nodes of a group */
    size_t *next_at, *next;     /**< groups after a group, with repeats */
    double *accel, *cpu, *bytes;
    size_t *n_cpu_only; /**< nodes that no accelerator can run; where there are any, accel = 0 */
};

/** Fills the groups. O(nodes + edges). */
void hv__dag_groups(const struct hv__dag_index *x, struct hv_arena *a, struct hv__dag_groups *q);
/** A topological order of the groups: depth first when `deep`, else by levels. */
void hv__dag_order(const struct hv__dag_groups *q, struct hv_arena *a, bool deep, size_t *order);
/**
 * The best contiguous split over all down-sets of the groups. *best and device (per node) are
 * improved when it finds less than *best; returns true when no contiguous split is less than the
 * *best it leaves. At most 2^18 down-sets.
 */
bool hv__dag_contiguous(const struct hv__dag_groups *q, struct hv__watch *watch, double *best,
                        size_t *device);
/** Sums over parts sorted by the accelerator time that they take off per CPU time. */
struct hv__dag_relief {
    size_t n;
    double *accel, *cpu; /**< n + 1 prefix sums */
    double must_cpu;     /**< CPU time of the parts that no accelerator can run */
};

/** Fills the sums from times of n parts on either kind of device. O(n log n). */
void hv__dag_relief(const double *accel, const double *cpu, const size_t *n_cpu_only, size_t n,
                    struct hv_arena *a, struct hv__dag_relief *r);
/** Most accelerator time that parts take off when they, divisible, get so much CPU time. O(log n).
 */
double hv__dag_offload(const struct hv__dag_relief *r, double room);
/** The load at which accelerators and CPUs could divide the parts evenly, if parts were divisible.
 */
double hv__dag_even_bound(const struct hv__dag_relief *r, const struct hv_dag *g);
/** No placement is better than classes spread evenly, nor than the longest class. */
double hv__dag_simple_bound(const struct hv__dag_index *x);
/** One sentence for a graph that has no placement: the missing resource and how much; NULL when
 * there is no such simple reason. It lives in the arena. */
const char *hv__dag_why_infeasible(const struct hv_dag *g, struct hv_arena *arena);

/** Most classes of a graph that hv__dag_exact accepts. */
#define HV__DAG_EXACT_CLASSES ((size_t)64)
/**
 * Branch and bound for the load of the busiest device. *best and device (per node) are improved
 * when it finds less than *best; returns true when nothing is less than the *best it leaves.
 */
bool hv__dag_exact(const struct hv__dag_index *x, struct hv__watch *watch, struct hv_arena *a,
                   double *best, size_t *device);
/**
 * Classes that only fit together on one accelerator (they lie on a cycle of classes), numbered in a
 * topological order of the units. On CPUs such classes could be separated, which the search does
 * not try.
 */
struct hv__dag_units {
    const struct hv__dag_index *x;
    size_t n, *of;              /**< node → unit */
    size_t *member_at, *member; /**< nodes of a unit in topological order */
    size_t *pred_at, *pred;     /**< units before a unit, with repeats */
    double *accel, *bytes;      /**< of a unit on an accelerator */
    bool *cpu_only;
    bool joined;  /**< some unit has several classes */
    double *path; /**< node → least time from its start to the end of the graph */
};

/** True when classes stay together, kinds of device are right and memory suffices; adds compute to
 * `load` and memory to `bytes` (per device). */
bool hv__dag_nodes_fit(const struct hv_dag *g, const size_t *device, double *load, double *bytes,
                       size_t *class_device);
/**
 * The least latency over down-sets: all of them when `order` is NULL, else the prefixes of that
 * order of the units. *best and device (per node) are improved when it finds less than *best.
 * Returns true when no placement (of that family) is better than *best.
 */
bool hv__dag_downsets(const struct hv__dag_units *u, const size_t *order, struct hv__watch *watch,
                      double *best, size_t *device);
/** hv_dag_solve for HV_DAG_LATENCY. */
enum hv_status hv__dag_solve_latency(const struct hv__dag_index *x, struct hv__watch *watch,
                                     struct hv_arena *a, struct hv_dag_result *out,
                                     struct hv_err *err);

#endif
