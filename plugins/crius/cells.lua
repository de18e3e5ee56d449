-- Cells of Crius (Xue et al., arXiv 2403.16125): a job on a number of GPUs of one type in a number
-- of stages, of which only data or tensor parallelism inside each stage is open. Section 4
-- estimates a Cell, section 5 tunes it.
--
-- A Cell has gpus = GPUs of each stage, micro_batches, and price(stage, dp, tp), which gives the
-- seconds of a micro-batch on a stage with its share of the gradient exchange, or nil where the
-- stage is not possible.
local claims = require "claims"
local numbers = require "numbers"
local search = require "search"

local cells = {}

local MOST_ENUMERATED = 10 -- stages with which all 2^S choices are tried

--- GPUs of stages with these loads, powers of two that add up to `gpus`: the number is doubled
-- where most load is left per GPU. nil where powers of two do not add up.
function cells.gpus(loads, gpus)
  local counts = {}
  local left = gpus - #loads
  for s = 1, #loads do
    counts[s] = 1
  end
  while left > 0 do
    local at
    for s = 1, #loads do
      if counts[s] <= left and (not at or loads[s] / counts[s] > loads[at] / counts[at]) then
        at = s
      end
    end
    if not at then
      return nil
    end
    left = left - counts[at]
    counts[at] = 2 * counts[at]
  end
  return left == 0 and counts or nil
end

--- Eq-P of the stage times of a choice { dp, tp } per stage: sum and M - 1 times the longest; nil
-- where a stage is not possible.
local function choice_s(cell, choice)
  local times = {}
  for s, degrees in ipairs(choice) do
    times[s] = cell.price(s, degrees[1], degrees[2])
    if not times[s] then
      return nil
    end
  end
  return (claims.pipeline_s(times, cell.micro_batches))
end

--- The possible ones of a stage's two extremes, all data parallel and all tensor parallel.
local function extremes(cell, s, gpus)
  local both = { { gpus, 1 }, { 1, gpus } }
  if gpus == 1 then
    both = { { 1, 1 } }
  end
  local possible = {}
  for _, degrees in ipairs(both) do
    if cell.price(s, degrees[1], degrees[2]) then
      table.insert(possible, degrees)
    end
  end
  return possible
end

--- The estimate: the best plan whose stages are all data or all tensor parallel, as { seconds,
-- choice = { dp, tp } per stage, plans = how many were compared }; nil where none is possible.
function cells.estimate(cell)
  local values, first = {}, {}
  for s, gpus in ipairs(cell.gpus) do
    values[s] = extremes(cell, s, gpus)
    if #values[s] == 0 then
      return nil
    end
    first[s] = values[s][1]
  end
  local function cost(choice)
    return choice_s(cell, choice)
  end
  local found
  if #cell.gpus <= MOST_ENUMERATED then
    found = search.enumerate { states = search.product(values), cost = cost }
  else
    found = search.coordinate { state = first, values = values, cost = cost }
  end
  if not found.state then
    return nil
  end
  return { seconds = found.cost, choice = found.state, plans = found.evaluations }
end

--- The degrees that the tuner tries on a stage: those with dp >= tp where it is faster all data
-- parallel, else those with tp >= dp, and last the degrees of the estimate.
local function half_space(cell, s, gpus, estimated)
  local by_data = cell.price(s, gpus, 1) or math.huge
  local by_tensor = cell.price(s, 1, gpus) or math.huge
  local values = {}
  for _, tp in ipairs(numbers.divisors(gpus)) do
    local dp = gpus // tp
    local in_half
    if by_data <= by_tensor then
      in_half = dp >= tp
    else
      in_half = tp >= dp
    end
    if in_half and cell.price(s, dp, tp) then
      table.insert(values, { dp, tp })
    end
  end
  table.insert(values, estimated)
  return values
end

--- The tuned plan, as { seconds, choice }; nil where none is possible. Hybrids in the other half
-- are not tried, so it need not be the optimum.
function cells.tune(cell)
  local estimate = cells.estimate(cell)
  if not estimate then
    return nil
  end
  local values = {}
  for s, gpus in ipairs(cell.gpus) do
    values[s] = half_space(cell, s, gpus, estimate.choice[s])
  end
  local found = search.coordinate { state = estimate.choice, values = values,
    cost = function(choice) return choice_s(cell, choice) end }
  return { seconds = found.cost, choice = found.state }
end

return cells
