-- Training pipelines whose stages are whole nodes in proportion to their rates: the placements that
-- Helix's graph (training_flow.lua) can compare and that can be trained. All nodes of a stage hold
-- the same run of layers and share each micro-batch by their rates.
local candidates = require "candidates"
local grids = require "grids"
local node_rates = require "node_rates"
local numbers = require "numbers"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"
local training_flow = require "training_flow"

local train = {}

--- Nodes dealt to S stages: the fastest first, each to the stage with least rate so far. A list of
-- {nodes, rate = of all of them, size = greatest common divisor of their numbers of devices}.
local function dealt(nodes, S)
  local rates = {}
  for i, node in ipairs(nodes) do
    rates[i] = node.rate
  end
  local stages = {}
  for s = 1, S do
    stages[s] = { nodes = {}, rate = 0, size = 0 }
  end
  local r = hv.opt.distribute { items = rates, slots = S, objective = "lpt" }
  for i, s in ipairs(r.counts) do
    local stage = stages[s]
    table.insert(stage.nodes, nodes[i])
    stage.rate = stage.rate + nodes[i].rate
    stage.size = numbers.gcd(stage.size, #nodes[i].ids)
  end
  return stages
end

--- Layers of the stages by their rates, at least one each; nil where there are too few.
local function layers_of(ctx, stages)
  local times, least = {}, {}
  for s, stage in ipairs(stages) do
    times[s] = 1 / stage.rate
    least[s] = 1
  end
  local r = hv.opt.distribute { total = ctx.model.n_layers, time = times, min = least }
  return r and r.counts
end

--- Are all numbers of a list equal?
local function all_equal(list)
  for _, n in ipairs(list) do
    if n ~= list[1] then
      return false
    end
  end
  return true
end

--- One stage as in plan files: ranks of tp devices, shares of the micro-batch by rate; nil where a
-- share would be nothing, or where tp divides no node or no layer.
local function stage_of(ctx, stage, layers, c)
  local tp = math.min(c.tp, stage.size)
  local ids, times, least = {}, {}, {}
  for _, node in ipairs(stage.nodes) do
    table.move(node.ids, 1, #node.ids, #ids + 1, ids)
    for _ = 1, #node.ids // tp do
      times[#times + 1] = #node.ids / node.rate / tp
      least[#least + 1] = 1
    end
  end
  if #times > c.micro_batch then
    return nil
  end
  local r = hv.opt.distribute { total = c.micro_batch, time = times, min = least }
  if not r or not grids.tp_fits(ctx.model:layers(), tp) or #ids % tp ~= 0 then
    return nil
  end
  return prices.stage_keys(
    { tp = tp, recompute = c.recompute, zero = c.zero, sequence_parallel = tp > 1 },
    { devices = ctx.cluster:address(ids), layers = layers, dp = #times > 1 and #times or nil,
      shares = not all_equal(r.counts) and r.counts or nil })
end

--- The plan of one pipeline of stages with `counts` layers each; nil where a stage cannot be.
-- c = {tp, recompute, micro_batch, zero}.
local function plan_of(ctx, stages, counts, c)
  local rows, ranges = {}, numbers.ranges(counts)
  for s, stage in ipairs(stages) do
    rows[s] = stage_of(ctx, stage, ranges[s], c)
    if not rows[s] then
      return nil
    end
  end
  return { micro_batch = c.micro_batch, schedule = { name = "1f1b" },
    replicas = { { micro_batches = ctx.job.global_batch // c.micro_batch, stages = rows } } }
end

--- The candidate of S stages, with the time of its flow and of filling the pipeline as its claim;
-- nil where there is none.
local function candidate_of(ctx, devices, S, c)
  local nodes = node_rates.of(ctx, devices, c.recompute)
  if S > math.min(#nodes, ctx.model.n_layers) then
    return nil
  end
  local stages = dealt(nodes, S)
  local counts = layers_of(ctx, stages)
  local made = counts and plan_of(ctx, stages, counts, c)
  if not made then
    return nil
  end
  local micro_batches = ctx.job.global_batch / c.micro_batch
  local flow_s = ctx.job.global_batch * ctx.job.sequence / training_flow.of(ctx, stages, counts)
  return { claim_s = flow_s * (1 + (S - 1) / micro_batches), build = function() return made end }
end

--- The plan of most flow among divisions of all nodes into stages with tensor degrees,
-- micro-batches and recomputation: those that fit are simulated, best flow first. o = {zero = as in
-- plan files, tries = how many are simulated}. nil and the reason when none fits.
function train.plan(ctx, devices, o)
  local list = {}
  for point in candidates.in_time(search.product { numbers.powers(64), { 1, 2, 4, 8 },
    { "none", "selective", "full" }, numbers.divisors(ctx.job.global_batch) }) do
    local candidate = candidate_of(ctx, devices, point[1],
      { tp = point[2], recompute = point[3], micro_batch = point[4], zero = o.zero })
    if candidate then
      candidate.rank = #list + 1
      list[candidate.rank] = candidate
    end
  end
  local best, reason = candidates.best(list, o.tries)
  if best then
    return best
  end
  return nil, reason or reasons.too_small(ctx, devices, "no division of whole nodes into stages")
end

return train
