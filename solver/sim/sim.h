/**
 * Everything of the simulator in one include. Numbers in, numbers out: no device, no model, no
 * plan.
 */
#ifndef HV_SOLVER_SIM_SIM_H
#define HV_SOLVER_SIM_SIM_H

#include "solver/sim/closed.h"
#include "solver/sim/events/events.h"
#include "solver/sim/events/tasks.h"
#include "solver/sim/events/workers.h"
#include "solver/sim/lanes/lanes.h"
#include "solver/sim/pipeline/fold.h"
#include "solver/sim/pipeline/pipeline.h"
#include "solver/sim/pipeline/play.h"
#include "solver/sim/pipeline/steady.h"
#include "solver/sim/schedule/schedule.h"
#include "solver/sim/schedule/tessel.h"

#endif
