-- The search of FlashFlex (Yan et al., arXiv 2409.01143, section 4): the graph of devices is cut
-- into pipelines and these into stages; the stages are ordered, the devices of each machine choose
-- their tensor degrees, layers follow memory. Beyond the paper, layers follow speed, and stages are
-- merged, split, swapped or left out while its own objective falls.
local device_graph = require "device_graph"
local formula = require "formula"
local layer_split = require "layer_split"
local numbers = require "numbers"
local search = require "search"

-- Numbers of stages beyond one per machine that are tried.
local MOST_EXTRA_STAGES = 2
-- Evaluations of the search of tensor degrees.
local DEGREES_BUDGET = 200
-- Atoms from which on a pipeline has at most so many of them: half as many as layers, at most 32.
local MANY_ATOMS, MOST_ATOMS = 64, 32

local pipeline_search = {}

--- Ways to cut the devices of a machine into stages: of one size each, the last one smaller; sizes
-- are all devices, then powers of two downwards, reduced to a degree that the layers allow. One way
-- per number of stages.
local function machine_splits(problem, devices)
  local sizes = numbers.powers(#devices)
  sizes[#sizes + 1] = #devices
  local list = {}
  local seen = {} -- by number of stages
  for i = #sizes, 1, -1 do
    local stages = {}
    local left = #devices
    while left > 0 do
      local size = math.min(sizes[i], left)
      while not problem.is_degree(size) do
        size = size - 1
      end
      stages[#stages + 1] = { devices = numbers.slice(devices, #devices - left + 1, size) }
      left = left - size
    end
    if not seen[#stages] then
      seen[#stages] = true
      list[#list + 1] = stages
    end
  end
  return list
end

--- A copy of a pipeline, without layers, in which `stages` stand for the stages first … last.
local function replaced(pipeline, first, last, stages)
  local copy = { micro_batches = pipeline.micro_batches }
  local function add(list, from, to)
    for s = from, to do
      copy[#copy + 1] = { devices = list[s].devices }
    end
  end
  add(pipeline, 1, first - 1)
  add(stages, 1, #stages)
  add(pipeline, last + 1, #pipeline)
  return copy
end

--- The two halves of a stage, the first one larger; nil where a half is no possible degree.
local function halves(problem, devices)
  local second = #devices // 2
  local first = #devices - second
  if #devices < 2 or not problem.is_degree(first) or not problem.is_degree(second) then
    return nil
  end
  return { { devices = numbers.slice(devices, 1, first) },
    { devices = numbers.slice(devices, first + 1, second) } }
end

--- One stage of the devices of two neighbours; nil where they are on different machines or too
-- many.
local function merged(problem, one, other)
  if problem.machine[one[1]] ~= problem.machine[other[1]]
      or not problem.is_degree(#one + #other) then
    return nil
  end
  local both = table.move(other, 1, #other, #one + 1, { table.unpack(one) })
  return { { devices = both } }
end

--- Neighbours of a pipeline in the descent: a stage left out, halved, swapped or merged with the
-- next one.
local function neighbours(problem, pipeline)
  local list = {}
  for s, stage in ipairs(pipeline) do
    local next_stage = pipeline[s + 1]
    if #pipeline > 1 then
      list[#list + 1] = replaced(pipeline, s, s, {})
    end
    local two = halves(problem, stage.devices)
    if two then
      list[#list + 1] = replaced(pipeline, s, s, two)
    end
    if next_stage then
      list[#list + 1] = replaced(pipeline, s, s + 1, { next_stage, stage })
      local one = merged(problem, stage.devices, next_stage.devices)
      if one then
        list[#list + 1] = replaced(pipeline, s, s + 1, one)
      end
    end
  end
  return list
end

--- Seconds of a pipeline whose layers follow memory or speed; false where they do not fit.
local function cost_by_memory(problem, pipeline)
  return layer_split.by_memory(problem, pipeline)
    and formula.pipeline_s(problem, pipeline, pipeline.micro_batches)
end

local function cost_by_speed(problem, pipeline)
  return layer_split.by_speed(problem, pipeline)
    and formula.pipeline_s(problem, pipeline, pipeline.micro_batches)
end

--- The pipeline of one way to cut each machine.
local function pipeline_of(ways, micro_batches)
  local pipeline = { micro_batches = micro_batches }
  for _, stages in ipairs(ways) do
    for _, stage in ipairs(stages) do
      pipeline[#pipeline + 1] = { devices = stage.devices }
    end
  end
  return pipeline
end

--- The best tensor degrees for parts in the order of the pipeline, layers by memory.
local function with_degrees(problem, parts, micro_batches, quick)
  local values = {}
  local first = {}
  for _, part in ipairs(parts) do
    for _, devices in ipairs(device_graph.by_machine(problem, part)) do
      values[#values + 1] = machine_splits(problem, devices)
      first[#first + 1] = values[#values][1]
    end
  end
  local found = search.coordinate {
    state = first, values = values, budget = quick and 1 or DEGREES_BUDGET,
    cost = function(ways)
      return cost_by_memory(problem, pipeline_of(ways, micro_batches))
    end,
  }
  return pipeline_of(found.state or first, micro_batches)
end

--- The pipeline on the atoms of a part, cut into at most so many groups of stages, and its seconds;
-- nil or false where its layers do not fit. Options as in pipeline_search.run.
local function pipeline_on(problem, part, n_groups, micro_batches, options, seed)
  local parts = device_graph.cut(problem, part, math.min(n_groups, #part), false, seed)
  local ordered = device_graph.ordered(problem, parts, options.quick)
  local pipeline = with_degrees(problem, ordered, micro_batches, options.quick)
  local seconds = cost_by_memory(problem, pipeline)
  if options.paper or options.quick then
    return seconds and pipeline, seconds
  end
  local better = search.hill {
    state = pipeline, budget = options.budget,
    moves = function(p) return neighbours(problem, p) end,
    cost = function(p) return cost_by_speed(problem, p) end,
  }
  return better.state, better.cost
end

--- The best pipeline of a part over a few numbers of stages, which the paper draws from a binomial
-- distribution (2, 0.2); nil where none fits.
local function best_pipeline(problem, part, micro_batches, options, seed)
  local n_machines = #device_graph.by_machine(problem, part)
  local best
  local least_s = math.huge
  for extra = 0, options.quick and 0 or MOST_EXTRA_STAGES do
    local pipeline, seconds = pipeline_on(problem, part, n_machines + extra, micro_batches, options,
      seed)
    if pipeline and seconds < least_s then
      best = pipeline
      least_s = seconds
    end
  end
  return best
end

--- A pipeline on the devices at the same positions of another list.
local function copied(pipeline, from, to)
  local device_for = {}
  for i, d in ipairs(from) do
    device_for[d] = to[i]
  end
  local copy = { micro_batches = pipeline.micro_batches }
  for s, stage in ipairs(pipeline) do
    copy[s] = { layers = stage.layers, devices = {} }
    for i, d in ipairs(stage.devices) do
      copy[s].devices[i] = device_for[d]
    end
  end
  return copy
end

--- The best pipeline of every part; nil where one has none. Parts of equal machines get equal
-- pipelines.
local function pipelines_on(problem, parts, options, seed)
  local micro_batches = math.max(1, problem.batch // (problem.micro_batch * #parts))
  local known = {}
  local list = {}
  for i, part in ipairs(parts) do
    local devices, text = device_graph.shape(problem, part)
    if not known[text] then
      known[text] = { devices = devices,
        best = best_pipeline(problem, part, micro_batches, options, seed) }
    end
    local own = known[text]
    if not own.best then
      return nil
    end
    list[i] = copied(own.best, own.devices, devices)
  end
  return list
end

--- Gives pipelines their micro-batches by the time of their longest stage; false where there are
-- fewer micro-batches than pipelines.
local function deal_micro_batches(problem, pipelines)
  local times = {}
  local least = {}
  for i, pipeline in ipairs(pipelines) do
    local _, stage_s = formula.pipeline_s(problem, pipeline, 1)
    times[i] = math.max(table.unpack(stage_s))
    least[i] = 1
  end
  local shares = hv.opt.distribute { total = problem.batch // problem.micro_batch, time = times,
    min = least }
  if not shares then
    return false
  end
  for i, pipeline in ipairs(pipelines) do
    pipeline.micro_batches = shares.counts[i]
  end
  return true
end

--- The walk over numbers of pipelines and of stages, each round with a new cut: a list of {claim_s,
-- pipelines}, best first. Beside the keys of formula.lua, `problem` has batch (sequences),
-- is_degree(n): may n devices of a machine share a layer, and most_layers(stage, s, stages): how
-- many layers fit into stage s. `atoms` are those of device_graph. Keys of `options`:
--   rounds, seed  number of cuts; seed of the random numbers of pipelines
--   budget        evaluations of the descent per pipeline
--   paper, quick  no descent; no search at all
--   stopping()    optional: is the time used?
function pipeline_search.run(problem, atoms, options)
  local random = search.generator(options.seed)
  local most = math.min(#atoms, problem.batch // problem.micro_batch)
  local atoms_per_pipeline = MOST_ATOMS
  if #atoms > MANY_ATOMS then
    atoms_per_pipeline = math.max(1, math.min(MOST_ATOMS, problem.layers // 2))
  end
  local least = (#atoms + atoms_per_pipeline - 1) // atoms_per_pipeline
  local found = {}
  for round = 1, options.rounds do
    if options.stopping and options.stopping() then
      break
    end
    local factor = round <= 8 and 1 << (round - 1) or random(16)
    local parts = device_graph.cut(problem, atoms, math.min(most, least * factor), true, round)
    local pipelines = pipelines_on(problem, parts, options, round)
    if pipelines and deal_micro_batches(problem, pipelines) then
      found[#found + 1] = { claim_s = formula.total_s(problem, pipelines), pipelines = pipelines,
        rank = #found + 1 }
    end
  end
  table.sort(found, function(a, b)
    if a.claim_s ~= b.claim_s then
      return a.claim_s < b.claim_s
    end
    return a.rank < b.rank
  end)
  return found
end

return pipeline_search
