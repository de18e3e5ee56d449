/**
 * Everything of the simulator in one include. Numbers in, numbers out: no device, no model, no
 * plan.
 */
#ifndef HV_SOLVER_SIM_SIM_H
#define HV_SOLVER_SIM_SIM_H

#include "solver/sim/closed.h"
#include "solver/sim/events.h"
#include "solver/sim/fold.h"
#include "solver/sim/lanes.h"
#include "solver/sim/pipeline.h"
#include "solver/sim/pipeline_play.h"
#include "solver/sim/schedule.h"
#include "solver/sim/steady.h"
#include "solver/sim/tasks.h"
#include "solver/sim/tessel.h"

#endif
