-- HetHub (Xu et al., arXiv 2405.16256): one model over groups of accelerators of several vendors.
-- Section 3: the pipeline crosses the boundary between them (point to point alone, by the fast or
-- the host path), tensor and data parallelism stay inside a type; a predictor from the times of one
-- layer per type and degree; stages get layers by the speed of their type within their memory, in
-- the order of types that is predicted fastest. Where all devices share one fabric, data
-- parallelism may cross types instead.
local candidates = require "candidates"
local claims = require "claims"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"

--- One row of stages, each with the ranks of all dp pipelines: types in this order with these
-- degrees, so many stages per type as its devices give; nil where they do not divide.
local function across_pipeline(types, order, tps, dp)
  local row = {}
  for k, i in ipairs(order) do
    local t, size = types[i], tps[k] * dp
    if #t.devices % size ~= 0 then
      return nil
    end
    for from = 1, #t.devices, size do
      row[#row + 1] = { devices = numbers.slice(t.devices, from, size), tp = tps[k], dp = dp,
        holders = dp }
    end
  end
  return { row }
end

--- Are there as many stages as layers at most? Asked before any list of devices is made.
local function shallow(ctx, types, tps, order, dp)
  local stages = 0
  for k, i in ipairs(order) do
    stages = stages + #types[i].devices // (tps[k] * dp)
  end
  return stages <= ctx.model.n_layers
end

--- Do pipelines inside types of so many stages each get a micro-batch?
local function fed(ctx, types, tps, depth)
  local pipelines = 0
  for i, t in ipairs(types) do
    pipelines = pipelines + #t.devices // (tps[i] * depth)
  end
  return depth <= ctx.model.n_layers and pipelines <= ctx.job.global_batch
end

--- Adds a choice for every micro-batch that divides; rows as above.
local function add(ctx, list, rows, dp, outputs)
  local joined, global = pipeline.joined(rows), ctx.job.global_batch
  for _, p in ipairs(joined) do
    if #p.row > ctx.model.n_layers then
      return
    end
  end
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    local total = global // (dp * micro_batch)
    if global % (dp * micro_batch) == 0 and total >= #rows then
      local c = { list = joined, pipelines = #rows, micro_batch = micro_batch,
        entering = micro_batch * dp,
        total = total, outputs = outputs, ways = 2 }
      pipeline.set(joined, micro_batch, "none")
      c.bound = pipeline.bound(ctx, joined, total)
      list[#list + 1] = c
    end
  end
end

--- All choices: order of types, a tensor degree per type, data degree; or pipelines inside types.
local function choices_of(ctx, types, one_fabric)
  local list, tps, common, cross = {}, {}, 0, ctx.options.cross
  local outputs = hv.cost.layers { kinds = { types[1].kind }, micro_batch = 1 }:sizes "output"
  for i, t in ipairs(types) do
    tps[i], common = grids.tp_degrees(ctx, t), numbers.gcd(common, #t.devices)
  end
  for _, order in ipairs(cross ~= "data" and numbers.permutations(math.min(#types, 5)) or {}) do
    local lists = { numbers.divisors(common) }
    for k, i in ipairs(order) do
      lists[k + 1] = tps[i]
    end
    for v in candidates.in_time(search.product(lists)) do
      local own = numbers.slice(v, 2, #order)
      local rows = shallow(ctx, types, own, order, v[1])
        and across_pipeline(types, order, own, v[1])
      if rows then
        add(ctx, list, rows, v[1], outputs)
      end
    end
  end
  local lists = { numbers.powers(32) }
  for i in ipairs(types) do
    lists[i + 1] = tps[i]
  end
  for v in candidates.in_time(search.product(one_fabric and cross ~= "pipeline" and lists
      or { {} })) do
    local own = numbers.slice(v, 2, #types)
    local rows = #own == #types and fed(ctx, types, own, v[1]) and pipeline.inside(types, own, v[1])
    if rows then
      add(ctx, list, rows, 1, outputs)
    end
  end
  return list
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx, true)
  if not devices then
    return nil, why
  end
  local types, list = inventory.types(devices), choices_of(ctx, inventory.types(devices),
    #inventory.priced(ctx) >= #devices)
  if #list == 0 then
    return nil, ("no degrees divide %s and the batch"):format(inventory.kinds_text(devices))
  end
  local fitting = pipeline.within_bound(list, ctx.options.tries,
    function(c) return pipeline.evaluate(ctx, c) end)
  if #fitting == 0 then
    return nil, reasons.too_small(ctx, devices, "no chain of " .. #types .. " types")
  end
  return candidates.best(fitting, ctx.options.tries)
end

--- The predictor on the plan: Eq-P with hops there and back, the exposed all-reduce; beside it the
-- share of what the types reach together when none waits for another, the paper's measure.
local function claim(made, ctx)
  made = prices.table_of(made)
  local parts, sync_s = claims.parts(ctx, made)
  local seconds, rate, total = 0, 0, 0
  for r, part in ipairs(parts) do
    seconds, total = math.max(seconds, claims.seconds(part)), total
      + made.replicas[r].count * part.micro_batches
    rate = rate + made.replicas[r].count * #part.stage_s / part.sum_s
  end
  return {
    iteration_s = seconds + sync_s,
    terms = { pipeline_s = seconds, all_reduce_s = sync_s,
      of_bound_frac = total / rate / (seconds + sync_s) },
    formula = "Eq-P over stages by type + hops + all-reduce (HetHub, section 3)",
  }
end

--- Layers and 1F1B makespan of every split of 32 layers over two stages with these seconds per
-- layer.
local function splits(first, second)
  local best, at = math.huge, {}
  for n = 1, 31 do
    local r = hv.sim.schedule("1f1b", { ranks = 2, micro_batches = 8, times = {
      f = { n * first / 3, (32 - n) * second / 3 },
      b = { 2 * n * first / 3, 2 * (32 - n) * second / 3 }, w = 0 } })
    at[n] = r.makespan
    best = math.min(best, r.makespan)
  end
  return best, at
end

local function selftest(t)
  local src, ones, twos = "catalogue: hethub", {}, {}
  for l = 1, 32 do
    ones[l], twos[l] = 1, 2
  end
  local fill = hv.opt.distribute { total = 32, time = { 1, 2 }, min = { 1, 1 } }
  t.near("waterfill of 32 layers over 1 and 2: longest stage", fill.value, 22, 0, src)
  t.near("21|11 is as long", math.max(21 * 1, 11 * 2), 22, 0, src)
  local best, at = splits(1, 2)
  t.near("simulated 1F1B, F:B 1:2, M 8: 22|10", at[22], 194, 1e-9, src)
  t.near("is the least of all splits", best, 194, 1e-9, src)
  t.near("21|11", at[21], 197, 1e-9, src)
  t.near("23|9", at[23], 197, 1e-9, src)
  best, at = splits(2, 1)
  t.near("slow stage first: the least", best, 196, 1e-9, src)
  t.near("at 10|22", at[10], 196, 1e-9, src)
  t.near("and at 11|21", at[11], 196, 1e-9, src)
  local cut = hv.opt.partition { n = 32, parts = 2, load = { ones, twos }, sum = 1, max = 7 }
  t.near("the cut by Eq-P takes 22 or 21 layers to the fast stage", cut.max, 22, 0, src)
end

return {
  api = 1, id = "hethub", title = "HetHub", kind = "hetero",
  system = "HETHUB: A Distributed Training System with Heterogeneous Cluster for Large-Scale Models, 2024",
  reference = "arXiv:2405.16256",
  summary = "The pipeline crosses types and vendors; layers by the speed of each type, degrees per type.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "cross", type = "choice", choices = { "auto", "pipeline", "data" }, default = "auto",
      help = "what crosses the boundary between types: the pipeline, data parallelism, or the better" },
    { key = "micro_batch", type = "integer", default = 8, min = 1, max = 64,
      help = "largest micro-batch of a rank" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
