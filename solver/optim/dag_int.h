/** Inside of the graph placement, shared by its files; not for other modules. */
#ifndef HV_SOLVER_OPTIM_DAG_INT_H
#define HV_SOLVER_OPTIM_DAG_INT_H

#include "solver/optim/dag.h"
#include "solver/optim/partition_int.h"

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

#endif
