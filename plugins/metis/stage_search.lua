-- The search of Metis (USENIX ATC 2024, sections 4 and 5): one pipeline over all devices whose
-- stages are groups of a power of two of neighbouring devices of any type. It chooses the order of
-- the types, the sizes of the groups and their order, the number of micro-batches, data and tensor
-- degree per stage, and layers per stage. All prices come from the caller.
local device_groups = require "device_groups"
local formula = require "formula"
local group_stage = require "group_stage"

-- Cases whose stages together hold less than this share of the layers are left out. It is below 1
-- because the share of a stage is estimated from the mean layer, and layers differ.
local LEAST_MODEL_FRAC = 0.98

local stage_search = {}

--- Micro-batches that stage s of n keeps under 1F1B.
local function in_flight_of(s, n, micro_batches)
  return math.min(n - s + 1, micro_batches)
end

--- Divides the layers among stages: the result of hv.opt.partition, or nil where they do not fit;
-- and for each stage the memory that is left when layers follow speed.
local function cut_layers(problem, stages, micro_batches)
  local partition = { n = problem.layers, parts = #stages, load = {}, memory = {}, capacity = {},
    sum = 1, max = micro_batches - 1 }
  local model_fracs = {}
  local rate = 0
  local model_frac = 0
  for s, stage in ipairs(stages) do
    local memory = group_stage.memory(problem, stage,
      in_flight_of(s, #stages, micro_batches))
    partition.load[s] = stage.times
    partition.memory[s] = memory.held
    partition.capacity[s] = memory.room
    model_fracs[s] = memory.model_frac
    rate = rate + 1 / stage.total
    model_frac = model_frac + memory.model_frac
  end
  local slack = {}
  for s, stage in ipairs(stages) do
    slack[s] = partition.capacity[s]
    if model_fracs[s] > 0 then
      local layers_frac = 1 / stage.total / rate
      slack[s] = partition.capacity[s] * (1 - layers_frac / model_fracs[s])
    end
  end
  if model_frac >= LEAST_MODEL_FRAC and math.min(table.unpack(partition.capacity)) > 0 then
    return hv.opt.partition(partition) or nil, slack
  end
  return nil, slack
end

--- The stages of a case with these tensor degrees; nil where one of them cannot run.
local function stages_of(problem, case, tps)
  local stages = {}
  local from = 0
  for s, size in ipairs(case.sizes) do
    stages[s] = group_stage.at(problem, case.order, from, size, tps[s], case.sequences)
    if not stages[s] then
      return nil
    end
    from = from + size
  end
  return stages
end

--- The stage with the least slack whose tensor degree can be doubled; nil where there is none.
local function tightest_stage(problem, case, tps, slack)
  local tightest
  for s, size in ipairs(case.sizes) do
    local can_double = size // tps[s] % 2 == 0 and tps[s] < problem.max_tp
    if can_double and (not tightest or slack[s] < slack[tightest]) then
      tightest = s
    end
  end
  return tightest
end

--- The priced plan of a case, or nil where it cannot run. Stages start with data parallelism only;
-- the tensor degree of the stage with the least memory left is doubled until the layers fit. While
-- a stage cannot run, the stage of most replicas is taken instead.
local function solve(problem, case)
  local tps = {}
  for s in ipairs(case.sizes) do
    tps[s] = 1
  end
  for _ = 1, 16 * #case.sizes do
    local stages = stages_of(problem, case, tps)
    local slack = {}
    local cut
    if stages then
      cut, slack = cut_layers(problem, stages, case.micro_batches)
    else
      for s, size in ipairs(case.sizes) do
        slack[s] = -size // tps[s]
      end
    end
    if cut then
      return {
        claim_s = formula.iteration(problem, stages, cut.stages, case.micro_batches),
        rank = case.rank, ranges = cut.stages, stages = stages,
        micro_batches = case.micro_batches, sequences = case.sequences,
      }
    end
    local tightest = tightest_stage(problem, case, tps, slack)
    if not tightest then
      return nil
    end
    tps[tightest] = 2 * tps[tightest]
  end
end

--- A lower bound of a case: the longest stage takes at least its share when the work is divided
-- over all stages in proportion to their rates, each at its best degree; every stage has at least
-- one layer, and the others are on the fastest one. Infinite where the layers cannot fit, nil where
-- a stage can run at no degree.
local function bound_of(problem, case)
  local rate = 0
  local model_frac = 0
  local sum = 0
  local fastest = math.huge
  local from = 0
  for s, size in ipairs(case.sizes) do
    local best = group_stage.best(problem, case.order, from, size, case.sequences,
      in_flight_of(s, #case.sizes, case.micro_batches))
    if best.rate == 0 then
      return nil
    end
    rate = rate + best.rate
    model_frac = model_frac + best.model_frac
    sum = sum + best.layer_time
    fastest = math.min(fastest, best.layer_time)
    from = from + size
  end
  if model_frac < LEAST_MODEL_FRAC then
    return math.huge
  end
  case.least_sum = math.max(1 / rate, sum + (problem.layers - #case.sizes) * fastest)
  return (case.micro_batches - 1) / rate + case.least_sum
    + case.micro_batches * problem.per_micro_batch
end

--- A higher bound of a case: the longest stage takes at least what it takes when whole layers, each
-- as short as the shortest, are divided within the memory. Infinite where they do not fit.
local function whole_bound_of(problem, case)
  local time, least, caps = {}, {}, {}
  local from, room = 0, 0
  for s, size in ipairs(case.sizes) do
    local best = group_stage.best(problem, case.order, from, size, case.sequences,
      in_flight_of(s, #case.sizes, case.micro_batches))
    time[s] = best.layer_time
    least[s] = 1
    caps[s] = best.most_layers
    if caps[s] < 1 then
      return math.huge
    end
    room = room + caps[s]
    from = from + size
  end
  if room < problem.layers then
    return math.huge
  end
  local r = hv.opt.distribute { total = problem.layers, time = time, min = least, caps = caps }
  return (case.micro_batches - 1) * r.value + case.least_sum
    + case.micro_batches * problem.per_micro_batch
end

--- Is this share of the run's time used?
local function is_late(problem, time_frac)
  return problem.stopping and problem.stopping(time_frac)
end

--- Appends the cases of one order and one list of sizes, one per number of micro-batches, to
-- `cases` where their layers may fit; gives how many of them can run, memory aside.
local function append_cases(problem, order, sizes, cases)
  local n_runnable = 0
  for _, micro_batches in ipairs(problem.micro_batch_counts) do
    local case = { order = order, sizes = sizes, micro_batches = micro_batches,
      sequences = problem.batch // micro_batches, rank = #cases }
    case.bound = bound_of(problem, case)
    if case.bound then
      n_runnable = n_runnable + 1
    end
    if case.bound and case.bound < math.huge then
      cases[#cases + 1] = case
    end
  end
  return n_runnable
end

--- All cases whose layers may fit, least bound first; and what was left out, as
-- stage_search.search says it.
local function cases_of(problem)
  local cases = {}
  local cut = { runnable = 0, cut_numbers = 0, late = false }
  local n_devices = #problem.orders[1]
  for n_stages = 1, math.min(problem.max_stages, problem.layers, n_devices) do
    local lists, has_more = device_groups.list(n_devices, n_stages, problem.variance,
      problem.max_blocks, problem.max_orders)
    cut.cut_numbers = cut.cut_numbers + (has_more and 1 or 0)
    for _, order in ipairs(problem.orders) do
      for _, sizes in ipairs(lists) do
        if #cases == 0 or not is_late(problem, 0.4) then
          cut.runnable = cut.runnable + append_cases(problem, order, sizes, cases)
        else
          cut.late = true
        end
      end
    end
  end
  table.sort(cases, function(a, b)
    if a.bound ~= b.bound then
      return a.bound < b.bound
    end
    return a.rank < b.rank
  end)
  cut.cases = #cases
  return cases, cut
end

local function by_claim(a, b)
  if a.claim_s ~= b.claim_s then
    return a.claim_s < b.claim_s
  end
  return a.rank < b.rank
end

--- The best pipelines, best first: a list of {claim_s, stages, ranges, micro_batches, sequences =
-- per micro-batch}; and what the search left out: {runnable = cases that can run, memory aside,
-- cases = those whose layers may fit, left_out = of them by the budget or for want of time, bound =
-- the least time that one of those may have, cut_numbers = numbers of stages with more orders of
-- groups than max_orders, late = true where cases were not even listed for want of time}.
-- Layers count from 1, ranges are inclusive; times are in the caller's unit. Keys of `problem`:
--   layers, batch       number of layers; sequences per iteration
--   orders              lists of devices {kind, node}
--   micro_batch_counts  numbers of micro-batches to try
--   max_stages, max_tp  largest number of stages and tensor degree
--   variance, max_blocks, max_orders  as device_groups.list takes them, per number of stages
--   budget, keep        cases that are solved; plans that are kept
--   per_micro_batch     time that every micro-batch takes beside its passes
--   sequence_time(kind, tp)        time of one sequence through all layers
--   shares(sequences, sequence_times, same_kind)  sequences of each replica
--   layer_times(kind, tp, share)   times by layer, or nil where there are none
--   memory(kind, tp, share, in_flight, dp)  bytes by layer, and the bytes there is room for
--   exchange, update(stage, first, last)    time of the gradients' exchange, of the optimizer
--   hop(stage, next_stage, layer)  time of the activations behind a layer
--   stopping(share of the time)    optional: is it used?
function stage_search.search(problem)
  for _, order in ipairs(problem.orders) do
    order.stages = {}
    order.best = {}
  end
  local cases, cut = cases_of(problem)
  cut.left_out = 0
  local found = {}
  local limit = math.huge
  local n_solved = 0
  for i, case in ipairs(cases) do
    local late = #found > 0 and is_late(problem, 0.7)
    if case.bound >= limit then
      break
    end
    if n_solved >= problem.budget or late then
      cut.left_out = #cases - i + 1
      cut.bound = case.bound
      break
    end
    local is_hopeless = whole_bound_of(problem, case) >= limit
    n_solved = n_solved + (is_hopeless and 0 or 1)
    local solution = not is_hopeless and solve(problem, case)
    if solution and solution.claim_s < limit then
      found[#found + 1] = solution
      table.sort(found, by_claim)
      found[problem.keep + 1] = nil
      limit = found[problem.keep] and found[problem.keep].claim_s or math.huge
    end
  end
  return found, cut
end

return stage_search
