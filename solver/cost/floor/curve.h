/** Inside cost: what a part costs at the best choice of sizes of its passes. */
#ifndef HV_SOLVER_COST_FLOOR_CURVE_H
#define HV_SOLVER_COST_FLOOR_CURVE_H

#include "solver/cost/floor/floor.h"

/** Fills what is read from the cells of a part; what hv_cost_even_s remembers is in the arena, and
 * lives as long as the cells do. O(weights × cells). */
void hv__fill_curve(struct hv_cost_by_size *c, struct hv_arena *arena);

#endif
