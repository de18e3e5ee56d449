-- The problem that stage_dp.search solves, with the options of a run and the prices of its cluster.
local grids = require "grids"
local numbers = require "numbers"
local pools = require "pools"
local prices = require "prices"
local zones = require "zones"

-- Share of the memory that the last round of recomputation may fill.
local FILLED_FRAC = 0.97

local problem = {}

--- What is minimised: "cost" or "time".
local function goal_of(ctx)
  local goal = ctx.options.goal
  if goal == "cost" or goal == "job" and ctx.job.minimize == "cost" then
    return "cost"
  end
  return "time"
end

--- Adds prices of bytes between zones; chain(pool, tp, micro_batch) gives the layers' prices.
local function add_fares(ctx, p, list, chain, outputs_bytes)
  local options = ctx.options
  function p.fare(a, b)
    return zones.usd_per_byte(list[a].zone, list[b].zone, options.egress_usd, options.zone_usd)
  end
  function p.hop_bytes(micro_batch, layer)
    return outputs_bytes[layer] * micro_batch
  end
  function p.sync_bytes(rows, first, last)
    local bytes = 0
    for _, row in ipairs(rows) do
      local own = chain(row.pool, row.tp, 1)
      bytes = math.max(bytes, prices.gradient_bytes(ctx, own, first, last) * row.tp)
    end
    return bytes
  end
end

--- The problem on a list of pools with "none" or "full" recomputation.
function problem.of(ctx, list, recompute)
  local options = ctx.options
  local p = { layers = ctx.model.n_layers, batch = ctx.job.global_batch, quota = {}, unit = {},
    region = {}, usd_per_s = {}, depths = {}, sizes = {}, speedup = 1.5, width = options.width,
    budget = options.budget, keep = options.tries + 4, goal = goal_of(ctx),
    stopping = hv.stopping }
  for depth = 1, math.min(p.layers, options.depth) do
    p.depths[depth] = depth
  end
  for _, micro_batch in ipairs(numbers.powers(options.micro_batch)) do
    if p.batch % micro_batch == 0 then
      p.sizes[#p.sizes + 1] = micro_batch
    end
  end
  local degrees = {}
  for k, pool in ipairs(list) do
    p.quota[k] = pool.n
    p.unit[k] = pool.size
    p.region[k] = pool.region
    p.usd_per_s[k] = pool.usd_per_s
    degrees[k] = grids.tp_degrees(ctx, pool)
  end
  local function chain(k, tp, micro_batch)
    return prices.chain(ctx, list[k].kind, { tp = tp, micro_batch = micro_batch,
      recompute = recompute, sequence_parallel = tp > 1 })
  end
  local outputs_bytes = hv.cost.layers { kinds = { list[1].kind }, micro_batch = 1 }:sizes "output"
  function p.degrees(k)
    return degrees[k]
  end
  function p.time(k, tp, micro_batch, first, last)
    return prices.time(chain(k, tp, micro_batch), first, last)
  end
  function p.fits(k, tp, micro_batch, first, last, stage, depth)
    local filled_frac = recompute == "none" and 1 or FILLED_FRAC
    local bytes = prices.bytes(ctx, chain(k, tp, micro_batch), first, last,
      { in_flight = depth - stage + 1 })
    return bytes <= prices.capacity(ctx, list[k]) * filled_frac
  end
  function p.hop(from, to, micro_batch, layer)
    local link = pools.link(ctx, list[from.pool], list[to.pool])
    return link.latency_s + outputs_bytes[layer] * micro_batch / link.bandwidth_bytes_per_s
  end
  --- A ring over the slowest link between two of its pools.
  function p.sync(rows, first, last, dp)
    local bytes = 0
    local s_per_byte = 0
    local latency_s = 0
    for i, row in ipairs(rows) do
      local own = chain(row.pool, row.tp, 1)
      bytes = math.max(bytes, prices.gradient_bytes(ctx, own, first, last))
      for j = 1, i do
        local link = pools.link(ctx, list[row.pool], list[rows[j].pool])
        s_per_byte = math.max(s_per_byte, 1 / link.bandwidth_bytes_per_s)
        latency_s = math.max(latency_s, link.latency_s)
      end
    end
    if dp == 1 then
      return 0
    end
    return 2 * (dp - 1) * (bytes / dp * s_per_byte + latency_s)
  end
  if options.egress_usd > 0 or options.zone_usd > 0 then
    add_fares(ctx, p, list, chain, outputs_bytes)
  end
  function p.within(seconds, usd)
    local in_budget = options.usd == 0 or usd <= options.usd
    local fast_enough = options.floor == 0 or seconds <= 3600 / options.floor
    return in_budget and fast_enough
  end
  return p
end

return problem
