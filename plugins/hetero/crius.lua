-- Crius (Xue et al., arXiv 2403.16125): a scheduler of jobs on pools of unequal GPUs that knows the best parallelism
-- of a job for every grant. A Cell is a job on G GPUs of one type in S stages; section 4 estimates it from the two
-- extremes of every stage, all data or all tensor parallel; section 5 tunes the chosen one inside the half-space that
-- the better extreme points to (a heuristic: hybrids in the other half are not seen); section 6 gives queued jobs
-- their Cells. A run has one job, so its Cells compete with each other alone; a Cell never mixes types.
local cells = require "cells"
local chain = require "chain"
local layout = require "layout"
local pipes = require "pipes"
local prices = require "prices"
local wires = require "wires"

--- A Cell as cells.estimate takes it: stages of balanced work, their devices, prices from the core; nil when the
-- GPUs do not divide or a micro-batch is too small.
local function cell_of(ctx, type, G, S, micro_batch, recompute)
  local own = prices.chain(ctx, type.kind, { tp = 1, micro_batch = 1, recompute = recompute })
  local cut = hv.opt.partition { n = own.n, parts = S, load = own.times }
  local gpus = cut and cells.gpus(cut.values, G)
  if not gpus then return nil end
  local q = { gpus = gpus, stages = {}, micro_batch = micro_batch, recompute = recompute, type = type,
    micro_batches = ctx.job.global_batch // micro_batch }
  local at, layers = 0, ctx.model:layers()
  for s, g in ipairs(gpus) do
    q.stages[s] = { devices = layout.slice(type.devices, at + 1, g), range = cut.stages[s] }
    at = at + g
  end
  function q.price(s, dp, tp)
    if micro_batch % dp ~= 0 or type.size % tp ~= 0 or not layout.tp_fits(layers, tp) then return nil end
    local stage, need = q.stages[s], 0
    local row = { devices = stage.devices, tp = tp, micro_batch = micro_batch // dp, recompute = recompute }
    local t = pipes.tables(ctx, row, math.min(S - s + 1, q.micro_batches))
    for l = stage.range[1], stage.range[2] do need = need + t.held[l] end
    if need > t.room then return nil end
    local priced = prices.chain(ctx, type.kind, { tp = tp, micro_batch = micro_batch // dp, recompute = recompute,
      sequence_parallel = tp > 1 })
    local heads = {}
    for i = 1, #stage.devices, tp do heads[#heads + 1] = stage.devices[i].id end
    local sync = wires.ring(ctx, heads, prices.gradient_bytes(ctx, priced, stage.range[1], stage.range[2]))
    return prices.time(priced, stage.range[1], stage.range[2]) + sync / q.micro_batches
  end
  return q
end

--- All Cells of the job that fit, estimated: type, GPUs down from all of the type by halves, stages by powers of two.
local function cells_of(ctx, types)
  local list = {}
  for _, type in ipairs(types) do
    local n = #type.devices
    local sizes = layout.powers(n)
    for k = #sizes, math.max(1, #sizes - ctx.options.halvings), -1 do
      for _, S in ipairs(layout.powers(math.min(sizes[k], ctx.model.n_layers))) do
        for _, micro_batch in ipairs(layout.powers(ctx.options.micro_batch)) do
          local whole = ctx.job.global_batch % micro_batch == 0
          for _, recompute in ipairs(whole and { "none", "selective", "full" } or {}) do
            local q = cell_of(ctx, type, sizes[k], S, micro_batch, recompute)
            local made = q and cells.estimate(q)
            if made then
              list[#list + 1] = { type = type.kind, gpus = sizes[k], rate = 1 / made.seconds, cell = q }
              list[#list].rank = #list
              break
            end
          end
        end
      end
    end
  end
  return list
end

--- The plan of a tuned Cell.
local function built(ctx, q, tuned)
  local rows = {}
  for s, stage in ipairs(q.stages) do
    local ids, dp, tp = {}, tuned.choice[s][1], tuned.choice[s][2]
    for i, d in ipairs(stage.devices) do ids[i] = d.id end
    rows[s] = prices.stage_keys({ tp = tp, recompute = q.recompute, sequence_parallel = tp > 1 },
      { devices = ctx.cluster:address(ids), layers = { stage.range[1] - 1, stage.range[2] },
        dp = dp > 1 and dp or nil })
  end
  return { micro_batch = q.micro_batch, schedule = { name = "1f1b" },
    replicas = { { micro_batches = q.micro_batches, stages = rows } } }
end

local function plan(ctx)
  local devices, why = pipes.devices(ctx)
  if not devices then return nil, why end
  local types, pool = pipes.types(devices), {}
  for _, t in ipairs(types) do pool[t.kind] = #t.devices end
  local list, fitting = cells_of(ctx, types), {}
  if #list == 0 then return nil, chain.too_small(ctx, devices, "no Cell of one type", "kind") end
  table.sort(list, function(a, b) return a.rate > b.rate or a.rate == b.rate and a.rank < b.rank end)
  local first = cells.schedule(pool, { { arrival_s = 0, work = 1, cells = list } }, {})[1].cell
  for k, cell in ipairs(list) do -- the scheduler's, then the next best estimates
    if k <= ctx.options.tries or cell == first then
      local tuned = cells.tune(cell.cell)
      fitting[#fitting + 1] = { claim_s = tuned.seconds, rank = #fitting + 1,
        build = function() return built(ctx, cell.cell, tuned) end }
    end
  end
  return layout.best(fitting, ctx.options.tries)
end

--- Eq-P of the plan's stages, each with its share of the exchange.
local function claim(made, ctx)
  local parts, sync_s = chain.parts(ctx, made)
  return { iteration_s = chain.seconds(parts[1], 0) + sync_s, terms = { pipeline_s = chain.seconds(parts[1], 0) },
    formula = "Eq-P over stages of a Cell + gradients (Crius, section 4)" }
end

--- The catalogue's job: 4 operators of 4 s, TP efficiency 0.8 per doubling, 1 s of exchange under DP, M = 4.
local function example(gpus)
  return { gpus = gpus, micro_batches = 4, price = function(s, dp, tp)
    local ops, exchange = 16 / #gpus, dp > 1 and 1 / 4 or 0
    return ops / dp / (tp * 0.8 ^ math.log(tp, 2)) + exchange + 0 * s
  end }
end

local function selftest(t)
  local src, q = "catalogue: crius", example { 2, 2 }
  t.near("2 operators on 2 GPUs, TP", q.price(1, 1, 2), 5, 1e-9, src)
  t.near("DP", q.price(1, 2, 1), 4.25, 1e-9, src)
  local best = cells.estimate(q)
  t.near("best of the grid", best.seconds, 21.25, 1e-9, src)
  t.near("plans put together", best.plans, 4, 0, src)
  local random, never_below, tuned_between = require("search").generator(5), true, true
  for _ = 1, 40 do
    local S, table_of = random(3), {}
    local case = { gpus = {}, micro_batches = 1 + random(6) }
    for s = 1, S do
      case.gpus[s], table_of[s] = 1 << (random(4) - 1), {}
      for _, tp in ipairs(layout.divisors(case.gpus[s])) do table_of[s][tp] = 1 + 9 * random() end
    end
    function case.price(s, _, tp) return table_of[s][tp] end
    local lists, least = {}, math.huge
    for s = 1, S do
      lists[s] = {}
      for tp in pairs(table_of[s]) do table.insert(lists[s], tp) end
    end
    for v in require("search").product(lists) do
      local times = {}
      for s, tp in ipairs(v) do times[s] = table_of[s][tp] end
      least = math.min(least, (layout.pipeline_s(times, case.micro_batches)))
    end
    local estimate, tuned = cells.estimate(case).seconds, cells.tune(case).seconds
    never_below = never_below and estimate >= least - 1e-9
    tuned_between = tuned_between and tuned >= least - 1e-9 and tuned <= estimate + 1e-9
  end
  t.ok("40 random Cells: the estimate is never below the exhaustive optimum", never_below, src .. ", property")
  t.ok("the tuned plan lies between both", tuned_between, src .. ", property")
  local function cell(type, gpus, rate) return { type = type, gpus = gpus, rate = rate } end
  local jobs = {
    { arrival_s = 0, work = 8, cells = { cell("fast", 2, 2), cell("fast", 1, 1.5), cell("slow", 2, 1) } },
    { arrival_s = 1, work = 6, cells = { cell("fast", 1, 2), cell("slow", 1, 0.5) } },
  }
  local r = cells.schedule({ fast = 2, slow = 2 }, jobs, { depth = 1, restart_s = 0.5 })
  t.near("queue: the first job takes both fast GPUs, then gives one up at 1 s, restarts in 0.5 s, ends",
    r[1].end_s, 1.5 + 6 / 1.5, 1e-9, "by hand: 0.75 + 1 beats 1 + 0.25")
  t.near("the second runs at its best Cell from 1 s on", r[2].end_s, 4, 1e-9, "by hand")
  r = cells.schedule({ fast = 2, slow = 2 }, jobs, { depth = 0 })
  t.near("without moving running jobs it gets a slow GPU", r[2].cell.rate, 0.5, 0, "by hand")
end

return {
  api = 1, id = "crius", title = "Crius", kind = "hetero",
  system = "Crius: Efficient Heterogeneous GPU Scheduling with Adaptive Parallelism, 2024",
  reference = "arXiv:2403.16125",
  summary = "The best Cell of one type: stages by work, data or tensor parallel inside, estimated and tuned.",
  needs = { model = "layers" },
  options = {
    { key = "halvings", type = "integer", default = 2, min = 0, max = 12, help = "how often a grant may be halved" },
    { key = "micro_batch", type = "integer", default = 32, min = 1, max = 1024, help = "largest micro-batch" },
    { key = "tries", type = "integer", default = 16, min = 1, max = 1000,
      help = "how many Cells are tuned and simulated, best estimate first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
