-- Training pipelines whose stages are whole nodes in proportion to their rates: the placements that
-- Helix's graph of nodes and links (Mei et al., arXiv 2406.01566) can compare and that can be
-- trained. All nodes of a stage hold the same run of layers and share each micro-batch by their
-- rates.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"
local token_flow = require "token_flow"

local train = {}

--- Nodes as the graph's: { kind, ids, rate of one layer in sequences per second }.
local function nodes_of(ctx, devices, c)
  local nodes = inventory.nodes(devices)
  for _, node in ipairs(nodes) do
    local own = prices.chain(ctx, node.kind, { tp = 1, micro_batch = 1, recompute = c.recompute })
    node.rate = #node.ids * own.n / prices.time(own, 1, own.n)
  end
  return nodes
end

--- Nodes dealt to S stages: the fastest first, each to the stage with least rate so far.
local function dealt(nodes, S)
  local rates, stages = {}, {}
  for i, node in ipairs(nodes) do
    rates[i] = node.rate
  end
  local r = hv.opt.distribute { items = rates, slots = S, objective = "lpt" }
  for s = 1, S do
    stages[s] = { nodes = {}, rate = 0, size = 0 }
  end
  for i, s in ipairs(r.counts) do
    table.insert(stages[s].nodes, nodes[i])
    stages[s].rate, stages[s].size = stages[s].rate + nodes[i].rate,
      numbers.gcd(stages[s].size, #nodes[i].ids)
  end
  return stages
end

--- The graph of a division into stages with these counts of layers: tokens per second that pass.
local function flow_of(ctx, stages, counts)
  local q, runs, heads, at = { layers = ctx.model.n_layers, rates = {}, strict = true }, {}, {}, 0
  local out = prices.chain(ctx, stages[1].nodes[1].kind,
    { tp = 1, micro_batch = 1 }).output_bytes / ctx.job.sequence
  for s, stage in ipairs(stages) do
    for _, node in ipairs(stage.nodes) do
      local rates, k = {}, counts[s]
      for n = 1, k do
        rates[n] = node.rate / n * ctx.job.sequence
      end
      q.rates[#q.rates + 1], runs[#runs + 1], heads[#heads + 1] = rates, { at, at + k }, node.ids[1]
    end
    at = at + counts[s]
  end
  function q.link(i, j)
    if i == 0 or j > #heads then
      return 1e15
    end
    return links.bandwidth(ctx, heads[i], heads[j]) / out / 2 -- activations there, gradients back
  end
  return (token_flow.flow(q, runs))
end

--- The plan of stages: one pipeline, ranks of tp devices, shares by rate; nil where a share would
-- be nothing.
local function built(ctx, stages, counts, c)
  local rows, ranges = {}, numbers.ranges(counts)
  for s, stage in ipairs(stages) do
    local ids, times, least, tp = {}, {}, {}, math.min(c.tp, stage.size)
    for _, node in ipairs(stage.nodes) do
      table.move(node.ids, 1, #node.ids, #ids + 1, ids)
      for _ = 1, #node.ids // tp do
        times[#times + 1], least[#least + 1] = #node.ids / node.rate / tp, 1
      end
    end
    local r = #times <= c.micro_batch and hv.opt.distribute { total = c.micro_batch, time = times,
      min = least }
    if not r or not grids.tp_fits(ctx.model:layers(), tp) or #ids % tp ~= 0 then
      return nil
    end
    local even = true
    for _, n in ipairs(r.counts) do
      even = even and n == r.counts[1]
    end
    rows[s] = prices.stage_keys({ tp = tp, recompute = c.recompute, zero = c.zero,
      sequence_parallel = tp > 1 }, {
        devices = ctx.cluster:address(ids), layers = ranges[s], dp = #times > 1 and #times or nil,
        shares = not even and r.counts or nil })
  end
  return { micro_batch = c.micro_batch, schedule = { name = "1f1b" },
    replicas = { { micro_batches = ctx.job.global_batch // c.micro_batch, stages = rows } } }
end

--- The plan of most flow, among divisions of all nodes into stages with degrees, micro-batches and
-- recomputation; those that fit are simulated, best flow first.
-- @function train.plan
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table devices list of rows of cluster:devices()
-- @tparam table o {zero = as in plan files, tries = how many are simulated}
-- @treturn table plan, with the keys of a plan file; nil and the reason when none fits
-- @units those of a plan file
-- @raise as hv.cost.layers
-- @usage local made = require("train").plan(ctx, ctx.cluster:devices(), { zero = 1, tries = 2 })
-- assert(made == nil or #made.replicas == 1)
function train.plan(ctx, devices, o)
  local list = {}
  for v in candidates.in_time(search.product { numbers.powers(64), { 1, 2, 4, 8 },
    { "none", "selective", "full" },
    numbers.divisors(ctx.job.global_batch) }) do
    local c = { tp = v[2], recompute = v[3], micro_batch = v[4], zero = o.zero }
    local nodes = nodes_of(ctx, devices, c)
    local stages = v[1] <= math.min(#nodes, ctx.model.n_layers) and dealt(nodes, v[1])
    local time = {}
    for s, stage in ipairs(stages or {}) do
      time[s] = 1 / stage.rate
    end
    local cut = stages and hv.opt.distribute { total = ctx.model.n_layers, time = time,
      min = numbers.even(v[1], v[1]) }
    local made = cut and built(ctx, stages, cut.counts, c)
    if made then
      local rank, M = #list + 1, ctx.job.global_batch / c.micro_batch
      local ideal = ctx.job.global_batch * ctx.job.sequence / flow_of(ctx, stages, cut.counts)
      list[rank] = { claim_s = ideal * (1 + (v[1] - 1) / M), rank = rank,
        build = function() return made end }
    end
  end
  local best, reason = candidates.best(list, o.tries)
  if best then
    return best
  end
  return nil, reason or reasons.too_small(ctx, devices, "no division of whole nodes into stages")
end

--- The max flow of a plan's own stages.
-- @function train.flow
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table made {replicas = list of one {stages}}: a plan that trains
-- @treturn number tokens per second
-- @units tokens per second
-- @raise as hv.cost.layers
-- @usage local made = require("train").plan(ctx, ctx.cluster:devices(), { zero = 1, tries = 2 })
-- assert(made == nil or require("train").flow(ctx, made) > 0)
function train.flow(ctx, made)
  local of, stages, counts = {}, {}, {}
  for _, d in ipairs(ctx.cluster:devices()) do
    of[d.id] = d
  end
  for s, stage in ipairs(made.replicas[1].stages) do
    local rows = {}
    for i, id in ipairs(ctx.cluster:ids(stage.devices)) do
      rows[i] = of[id]
    end
    stages[s] = { nodes = nodes_of(ctx, rows, { recompute = stage.recompute or "none" }) }
    counts[s] = stage.layers[2] - stage.layers[1]
  end
  return flow_of(ctx, stages, counts)
end

return train
