--- What most people do today: every device counts the same, layers and batch are split evenly,
-- and the degrees are searched. On unequal devices the slowest one sets the pace.
-- Search: tp (powers of two inside a node) x pp x dp x micro-batch x recompute x zero, ranked by
-- Eq-P (sum of stage times + (M - 1) x the largest) and an all-reduce; the best few are simulated.
-- Devices that a grid leaves over stay unused: the last ones in file order, and, only where nothing
-- fits, those of the kind with the least memory.
local candidates = require "candidates"
local claims = require "claims"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"

--- Slowest device kinds of the blocks of devices that the stages take: a list of kinds per stage.
local function stage_kinds(devices, pp, size)
  local kinds = {}
  for s = 1, pp do
    local seen, list = {}, {}
    for i = (s - 1) * size + 1, s * size do
      local d = devices[i]
      if not seen[d.kind] then
        seen[d.kind] = true
        list[#list + 1] = d
      end
    end
    kinds[s] = list
  end
  return kinds
end

--- Eq-P and memory of one candidate: seconds, and GiB above the limit of the worst stage (or <= 0).
local function rate(ctx, c)
  local ranges = numbers.ranges(c.counts)
  local stage_s, over, sync_s = {}, -math.huge, 0
  for s = 1, c.pp do
    local from, to = ranges[s][1] + 1, ranges[s][2]
    stage_s[s] = 0
    for _, d in ipairs(c.kinds[s]) do
      local chain = prices.chain(ctx, d.kind, c)
      stage_s[s] = math.max(stage_s[s], prices.time(chain, from, to))
      local need = prices.bytes(ctx, chain, from, to, {
        in_flight = math.min(c.pp - s + 1, c.micro_batches), zero = c.zero, holders = c.dp,
      })
      over = math.max(over, need - prices.capacity(ctx, d))
    end
    if c.dp > 1 then
      local first = c.devices[(s - 1) * c.tp * c.dp + 1]
      local last = c.devices[s * c.tp * c.dp]
      local chain = prices.chain(ctx, first.kind, c)
      local bytes = prices.gradient_bytes(ctx, chain, from, to)
      local link = ctx.cluster:link(first.id, last.id)
      sync_s = math.max(sync_s,
        2 * (c.dp - 1) / c.dp * bytes * c.tp / link.bandwidth_bytes_per_s)
    end
  end
  return claims.pipeline_s(stage_s, c.micro_batches) + sync_s, over
end

local function candidates_of(ctx, devices)
  local layers = ctx.model:layers()
  local node = inventory.node_size(inventory.nodes(devices))
  local global, list = ctx.job.global_batch, {}
  local ids = {}
  for i, d in ipairs(devices) do
    ids[i] = d.id
  end
  local function try(tp, pp, dp, micro_batch, kinds)
    for _, recompute in ipairs { "none", "selective", "full" } do
      for zero = 0, dp > 1 and 1 or 0 do
        local c = {
          tp = tp, pp = pp, dp = dp, cp = 1, ep = 1, chunks = 1, zero = zero, ids = ids,
          devices = devices, kinds = kinds, recompute = recompute, micro_batch = micro_batch,
          micro_batches = global // (dp * micro_batch), sequence_parallel = tp > 1,
          counts = numbers.even(#layers, pp), schedule = "1f1b", rank = #list + 1,
        }
        c.claim_s, c.over = rate(ctx, c)
        c.build = function()
          return grids.plan(ctx, c)
        end
        list[#list + 1] = c
      end
    end
  end
  for _, tp in ipairs(numbers.powers(node)) do
    if node % tp == 0 and grids.tp_fits(layers, tp) then
      local groups = #devices // tp
      for _, pp in ipairs(grids.depths(groups, #layers)) do
        for _, micro_batch in ipairs(numbers.powers(math.min(16, global))) do
          local dp = grids.usable_dp(global, groups // pp, micro_batch)
          if dp then
            try(tp, pp, dp, micro_batch, stage_kinds(devices, pp, tp * dp))
          end
        end
      end
    end
  end
  return list
end

--- The best grid on these devices, or nil and by how much the nearest one misses.
local function best_grid(ctx, devices)
  local fitting, least = {}, nil
  for _, c in ipairs(candidates_of(ctx, devices)) do
    if c.over <= 0 then
      fitting[#fitting + 1] = c
    elseif not least or c.over < least.over then
      least = c
    end
  end
  if #fitting == 0 then -- the nearest miss says by how much
    fitting[1] = least
  end
  return candidates.best(fitting, ctx.options.tries)
end

--- The devices without those of the kinds with the least memory.
local function without_smallest(devices)
  local least, rest = math.huge, {}
  for _, d in ipairs(devices) do
    least = math.min(least, d.memory_bytes)
  end
  for _, d in ipairs(devices) do
    if d.memory_bytes > least then
      rest[#rest + 1] = d
    end
  end
  return rest
end

--- All devices; where no grid fits on them, without the kind of least memory, and so on.
local function plan(ctx)
  local devices, why = inventory.priced(ctx)
  if #devices == 0 then
    return nil, why
  end
  local first
  while #devices > 0 do
    local best, reason = best_grid(ctx, devices)
    if best then
      return best
    end
    first = first or reason
    devices = without_smallest(devices)
  end
  return nil, first
end

--- Eq-P with the stage times of the plan, and the largest all-reduce.
local function claim(made, ctx)
  local total, max, sync_s = prices.claim_terms(ctx, made)
  return {
    iteration_s = total, terms = { slowest_stage_s = max, all_reduce_s = sync_s },
    formula = "Eq-P: sum of stage times + (M - 1) x the slowest stage, and the largest all-reduce",
  }
end

local function selftest(t)
  local src = "arithmetic"
  t.equal("even split of 10 on 4", table.concat(numbers.even(10, 4), ","), "3,3,2,2", src)
  t.equal("divisors of 12", table.concat(numbers.divisors(12), ","), "1,2,3,4,6,12", src)
  t.equal("32 devices of batch 256", grids.usable_dp(256, 32, 1), 32, src)
  t.equal("largest usable subset of 28", grids.usable_dp(256, 28, 2), 16, src)
  t.near("Eq-P F=[1,2] B=[2,4] M=4", claims.pipeline_s({ 3, 6 }, 4), 27, 0, "catalogue: Eq-P")
  t.equal("depths on 12 groups", table.concat(grids.depths(12, 6), ","), "1,2,3,4,6", src)
  local rest = without_smallest { { id = 1, memory_bytes = 80 }, { id = 2, memory_bytes = 16 },
    { id = 3, memory_bytes = 32 } }
  t.equal("the smallest kind goes first", rest[1].id .. " " .. rest[2].id, "1 3", src)
  local a, b = { kind = "a" }, { kind = "b" }
  local kinds = stage_kinds({ a, a, b, a }, 2, 2)
  t.equal("a mixed stage has two kinds", #kinds[2], 2, src)
end

return {
  api = 1, id = "uniform", title = "Uniform grid", kind = "baseline",
  system = "Megatron-LM with searched degrees", reference = "arXiv:2104.04473",
  summary = "All devices count the same: even layers, even batch, degrees by search.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
