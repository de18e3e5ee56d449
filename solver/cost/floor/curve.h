/** Inside cost: least price of a part over all sizes of its passes. */
#ifndef HV_SOLVER_COST_FLOOR_CURVE_H
#define HV_SOLVER_COST_FLOOR_CURVE_H

#include "solver/cost/floor/floor.h"

/** Fills the curves that are read from the cells of a part; results stored by hv_cost_even_s are in
 * the arena and live as long as the cells. O(weights × cells). */
void hv__fill_curve(struct hv_cost_by_size *c, struct hv_arena *arena);

#endif
