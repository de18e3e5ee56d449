-- Galvatron (Miao et al., VLDB'23; Hetu-Galvatron): pipeline stages of equal numbers of devices;
-- inside each a dynamic program over layers, memory and strategies (tensor degree, data degree,
-- what is sharded, recomputation) under the device's memory; then the pipeline's equation decides
-- among numbers of stages and of micro-batches. The library does that for free mixes of strategies;
-- a plan's stage has one set of degrees, so here the layers of a stage differ in recomputation
-- only, and stages in everything. The paper has equal devices; where stages differ, layers are also
-- dealt by their speeds.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local layer_dp = require "layer_dp"
local links = require "links"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"

local GRAIN = 2 ^ 22 -- bytes in which memory is counted

--- The instance of one stage on these devices, by the core's figures; a stage of several kinds is
-- as fast as the slowest, and has the least memory.
local function stage_of(ctx, q, devices, before)
  local own, shape, mid = setmetatable({}, { __index = q }), { devices = devices },
    (q.layers + 1) // 2
  local rings, hops = {}, {}
  local function tables(s, x, alive)
    local row = { devices = devices, kinds = shape.kinds, tp = s.tp, micro_batch = x, zero = s.zero,
      holders = s.dp,
      recompute = s.full and "full" or "none" }
    local t = pipeline.tables(ctx, row, alive)
    shape.kinds = row.kinds
    return t
  end
  local function states(s, l)
    return tables(s, 1, 0).held[l]
  end
  local function saved(s, l, x)
    return tables(s, x, 1).held[l] - tables(s, x, 0).held[l]
  end
  local function time(s, l, x)
    return tables(s, x, 1).times[l]
  end
  local single = { tp = 1, dp = 1, zero = 0, full = true }
  local function gradients(_, l)
    return prices.gradient_bytes(ctx, prices.chain(ctx, devices[1].kind,
      { tp = 1, micro_batch = 1 }), l, l)
  end
  --- What the first and the last layer have more than the middle one.
  local function ends(of, stage, pp, s, x)
    local function more(l)
      return math.max(0, of(s, l, x) - of(s, mid, x))
    end
    return (stage == 1 and more(1) or 0) + (stage == pp and more(q.layers) or 0)
  end
  own.room, own.fixed, own.grain = tables(single, 1, 1).room - q.reserve, 0, GRAIN
  own.gradients = gradients(single, mid)
  function own.work(s, x)
    local t = time(s, mid, x)
    return t / (s.full and 4 or 3), t * (s.full and 3 / 4 or 2 / 3), 0 -- its exchanges are in it
  end
  function own.bus(n, s)
    if n > 1 and not rings[s.tp] then
      local heads = {}
      for i = 1, #devices, s.tp do
        heads[#heads + 1] = devices[i].id
      end
      rings[s.tp] = links.ring(ctx, heads, 1) * n / (2 * (n - 1))
    end
    return n > 1 and rings[s.tp] or 0
  end
  function own.states(s)
    return states(s, mid)
  end
  function own.saved(s, x)
    return saved(s, mid, x)
  end
  function own.hop(pp, x)
    local bytes = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = x }).output_bytes
    hops[x] = hops[x] or before and links.seconds(ctx, before.id, devices[1].id, bytes) or 0
    return 2 * pp * hops[x]
  end
  function own.switch()
    return 0
  end
  function own.buffer()
    return 0
  end
  function own.ends_work(s, x, stage, pp)
    return ends(time, stage, pp, s, x) / 3, 0
  end
  function own.ends_bytes(s, x, stage, pp)
    return ends(states, stage, pp, s), ends(saved, stage, pp, s, x)
  end
  function own.ends_gradients(_, stage, pp)
    return ends(gradients, stage, pp)
  end
  return own
end

--- The instance for these stages, each a list of devices.
local function instance(ctx, stages, chunks, reserve)
  local q, known = { layers = ctx.model.n_layers, batch = ctx.job.global_batch, chunks = chunks,
    reserve = reserve,
    overlap = ctx.options.overlap }, {}
  function q.at(s)
    local before = stages[s - 1]
    known[s] = known[s] or stage_of(ctx, q, stages[s], before and before[#before])
    return known[s]
  end
  return q
end

--- Layers per stage: evenly, and by the stages' speeds where these differ.
local function divisions(ctx, stages)
  local list, time = { numbers.even(ctx.model.n_layers, #stages) }, {}
  for s, devices in ipairs(stages) do
    time[s] = pipeline.tables(ctx, { devices = devices, micro_batch = 1 }, 1).total
  end
  local r = hv.opt.distribute { total = ctx.model.n_layers, time = time,
    min = numbers.even(#stages, #stages) }
  list[2] = r and math.max(table.unpack(r.counts)) > list[1][1] and r.counts or nil
  return list
end

--- The plan of a choice.
local function built(ctx, stages, counts, chunks, found)
  local rows, ranges = {}, numbers.ranges(counts)
  for s, row in ipairs(found.stages) do
    local ids, levels, some, e = {}, {}, 0, row.ends
    for i, d in ipairs(stages[s]) do
      ids[i] = d.id
    end
    for l, one in ipairs(row.choice) do
      levels[l], some = one.full and "full" or "none", some + (one.full and 1 or 0)
    end
    rows[s] = prices.stage_keys({ tp = e.tp, zero = e.zero, sequence_parallel = e.tp > 1,
      recompute = some == 0 and "none" or some == #levels and "full" or levels },
      { layers = ranges[s],
        devices = ctx.cluster:address(ids), dp = e.dp > 1 and e.dp or nil })
  end
  return { micro_batch = ctx.job.global_batch // chunks, schedule = { name = "1f1b" },
    replicas = { { micro_batches = chunks, stages = rows } } }
end

--- The search with so many bytes of every device left alone.
local function searched(ctx, devices, reserve)
  local all, rows, batch = candidates.new(), ctx.model:layers(), ctx.job.global_batch
  local most = grids.largest_tp(rows, inventory.node_size(inventory.nodes(devices)), 64)
  for _, pp in ipairs(grids.depths(#devices, math.min(ctx.options.stages, ctx.model.n_layers))) do
    local stages, size = {}, #devices // pp
    for s = 1, #devices % pp == 0 and pp or 0 do
      stages[s] = numbers.slice(devices, (s - 1) * size + 1, size)
    end
    for _, counts in ipairs(#stages > 0 and divisions(ctx, stages) or {}) do
      for _, chunks in ipairs(numbers.divisors(batch)) do
        local list = layer_dp.strategies(size, batch // chunks,
          { tp = math.min(most, size), sp = 1 })
        if #list > 0 and chunks >= pp and not (hv.stopping() and #all.list > 0) then
          local found = layer_dp.stages(instance(ctx, stages, chunks, reserve), counts,
            function() return list end,
            { group = 2 })
          if found then
            all.add { claim_s = found.time_s, build =
                function() return built(ctx, stages, counts, chunks, found) end }
          end
        end
      end
    end
  end
  return all
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local all = candidates.within(function(reserve) return searched(ctx, devices, reserve) end)
  if all then
    return all.best(ctx.options.tries)
  end
  return nil, reasons.too_small(ctx, devices, "no pipeline of equal stages")
end

--- Galvatron's iteration time of the plan.
local function claim(made, ctx)
  made = prices.table_of(made)
  local of, stages, rows, replica = {}, {}, {}, made.replicas[1]
  for _, d in ipairs(ctx.cluster:devices()) do
    of[d.id] = d
  end
  for s, stage in ipairs(replica.stages) do
    stages[s], rows[s] = {}, { choice = {} }
    for i, id in ipairs(ctx.cluster:ids(stage.devices)) do
      stages[s][i] = of[id]
    end
    for l = 1, stage.layers[2] - stage.layers[1] do
      local level = type(stage.recompute) == "table" and stage.recompute[l] or stage.recompute
      rows[s].choice[l] = { tp = stage.tp or 1, sp = 1, dp = stage.dp or 1, zero = stage.zero or 0,
        full = level == "full" }
    end
    rows[s].ends = rows[s].choice[1]
  end
  return { iteration_s = layer_dp.value(instance(ctx, stages, replica.micro_batches, 0), rows),
    formula = "layers' times, then the pipeline's fill and steady state (Galvatron, section 4; its code)" }
end

local function selftest(t)
  local src = "PKU-DAIR/Hetu-Galvatron cea12ff, its own test"
  local function best(chunks, most, group)
    local q = require("data.own_test")(chunks)
    q.most = most
    local list = layer_dp.strategies(8, 64 // chunks, { tp = most, sp = most })
    local found = layer_dp.stages(q, { 28 }, function() return list end, { group = group })
    return 64e3 / found.time_s, found.stages[1]
  end
  local rate, stage = best(8, 1, 1)
  t.near("28 layers, 8 micro-batches, one strategy for all: samples per second", rate,
    2.5246283459057333, 1e-7, src)
  t.ok("dp 8, weights sharded, recomputed", stage.ends.dp == 8 and stage.ends.zero == 3
      and stage.ends.full, src)
  rate = best(8, 2)
  t.ok(("8 micro-batches, layer by layer: %.4f samples/s, theirs 2.5246"):format(rate),
    rate > 2.5246283459, src)
  rate, stage = best(32, 8)
  t.near("32 micro-batches, layer by layer; theirs 2.6485", rate, 2.6485091403918064, 1e-7, src)
  local kinds, at = { 0, 0, 0 }, function(one) return one.full and 1 or one.zero == 3 and 2 or 3 end
  for _, one in ipairs(stage.choice) do
    kinds[at(one)] = kinds[at(one)] + (one.tp == 4 and one.dp == 2 and 1 or 0)
  end
  t.equal("tp 4, dp 2: layers sharded and recomputed, sharded, neither; the vocabulary's tp",
    table.concat(kinds, " ")
      .. "; " .. stage.ends.tp, "14 12 2; 8", src)
  t.near("pipeline of 3, 2", layer_dp.pipeline({ 3, 2 }, { 3, 2 }, 4), 12, 1e-9,
    "by hand: max(5 + 3 x 2, 3 + 3 x 3)")
end

return {
  api = 1, id = "galvatron", title = "Galvatron", kind = "hetero",
  system = "Galvatron: Efficient Transformer Training over Multiple GPUs Using Automatic Parallelism, VLDB 2023",
  reference = "doi:10.14778/3570690.3570697",
  summary = "Degrees, sharding and recomputation layer by layer, by dynamic programming over memory.",
  needs = { model = "layers" },
  effort = "medium",
  options = {
    { key = "stages", type = "integer", default = 16, min = 1, max = 1024,
      help = "most pipeline stages" },
    { key = "overlap", type = "number", default = 1.1256, min = 1, max = 4,
      help = "how much compute and communication slow each other down" },
    { key = "tries", type = "integer", default = 48, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
