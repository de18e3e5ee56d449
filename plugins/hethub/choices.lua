-- The choices of HetHub (arXiv 2405.16256, section 3): the pipeline crosses the boundaries between
-- types, with an order of the types, a tensor degree per type and a data degree; or data
-- parallelism crosses them, with pipelines inside each type.
local candidates = require "candidates"
local grids = require "grids"
local numbers = require "numbers"
local pipeline = require "pipeline"
local search = require "search"

-- Types that are permuted at most: 120 orders.
local MOST_PERMUTED = 5
-- Largest depth of pipelines inside types.
local MOST_STAGES_INSIDE = 32

local choices = {}

--- One pipeline through the types in an order, whose stages each hold the ranks of all dp
-- pipelines; nil where devices of a type do not divide.
local function pipeline_across(types, order, tps, dp)
  local stages = {}
  for k, i in ipairs(order) do
    local devices = types[i].devices
    local size = tps[k] * dp
    if #devices % size ~= 0 then
      return nil
    end
    for first = 1, #devices, size do
      stages[#stages + 1] = { devices = numbers.slice(devices, first, size), tp = tps[k], dp = dp,
        holders = dp }
    end
  end
  return stages
end

--- Does a pipeline through the types have at most as many stages as there are layers?
local function is_shallow(ctx, types, order, tps, dp)
  local n_stages = 0
  for k, i in ipairs(order) do
    n_stages = n_stages + #types[i].devices // (tps[k] * dp)
  end
  return n_stages <= ctx.model.n_layers
end

--- Do pipelines of so many stages inside the types have at most as many stages as there are layers,
-- and are there at most as many pipelines as sequences?
local function is_fed(ctx, types, tps, depth)
  local n_pipelines = 0
  for i, own in ipairs(types) do
    n_pipelines = n_pipelines + #own.devices // (tps[i] * depth)
  end
  return depth <= ctx.model.n_layers and n_pipelines <= ctx.job.global_batch
end

--- Adds a choice for every micro-batch that divides the batch, with its lower bound.
local function add(ctx, list, pipelines, dp, outputs_bytes)
  local joined = pipeline.joined(pipelines)
  for _, own in ipairs(joined) do
    if #own.row > ctx.model.n_layers then
      return
    end
  end
  local batch = ctx.job.global_batch
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    local entering = micro_batch * dp
    local micro_batches = batch // entering
    if batch % entering == 0 and micro_batches >= #pipelines then
      pipeline.set(joined, micro_batch, "none")
      list[#list + 1] = { list = joined, pipelines = #pipelines, micro_batch = micro_batch,
        entering = entering, total = micro_batches, outputs = outputs_bytes, ways = 2,
        bound = pipeline.bound(ctx, joined, micro_batches) }
    end
  end
end

--- Adds the choices whose pipeline crosses types.
local function add_across(ctx, list, types, degrees, outputs_bytes)
  local common = 0
  for _, own in ipairs(types) do
    common = numbers.gcd(common, #own.devices)
  end
  for _, order in ipairs(numbers.permutations(math.min(#types, MOST_PERMUTED))) do
    local values = { numbers.divisors(common) }
    for k, i in ipairs(order) do
      values[k + 1] = degrees[i]
    end
    for value in candidates.in_time(search.product(values)) do
      local dp = value[1]
      local tps = numbers.slice(value, 2, #order)
      local stages = is_shallow(ctx, types, order, tps, dp)
        and pipeline_across(types, order, tps, dp)
      if stages then
        add(ctx, list, { stages }, dp, outputs_bytes)
      end
    end
  end
end

--- Adds the choices with pipelines inside types.
local function add_inside(ctx, list, types, degrees, outputs_bytes)
  local values = { numbers.powers(MOST_STAGES_INSIDE) }
  for i in ipairs(types) do
    values[i + 1] = degrees[i]
  end
  for value in candidates.in_time(search.product(values)) do
    local depth = value[1]
    local tps = numbers.slice(value, 2, #types)
    local pipelines = is_fed(ctx, types, tps, depth) and pipeline.inside(types, tps, depth)
    if pipelines then
      add(ctx, list, pipelines, 1, outputs_bytes)
    end
  end
end

--- All choices for types (rows of inventory.types), for pipeline.within_bound and
-- pipeline.evaluate. Data parallelism crosses types only where all devices share one fabric. The
-- option `cross` restricts them.
function choices.of(ctx, types, one_fabric)
  local degrees = {}
  for i, own in ipairs(types) do
    degrees[i] = grids.tp_degrees(ctx, own)
  end
  local outputs_bytes = hv.cost.layers { kinds = { types[1].kind }, micro_batch = 1 }:sizes "output"
  local cross = ctx.options.cross
  local list = {}
  if cross ~= "data" then
    add_across(ctx, list, types, degrees, outputs_bytes)
  end
  if one_fabric and cross ~= "pipeline" then
    add_inside(ctx, list, types, degrees, outputs_bytes)
  end
  return list
end

return choices
