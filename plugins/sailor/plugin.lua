-- Sailor (Strati et al., SOSP'25): plans over pools of GPUs by type and zone. Section 4.2: for
-- every depth, micro-batch and replica count the least tensor degree that fits each type (more
-- where it pays), then dynamic programming over the stages on what is left; layers and batch split
-- evenly, stages inside a region. T = (B - 1) straggler + passes + hops + largest all-reduce; for
-- throughput, or for money above a throughput or in a budget.
local candidates = require "candidates"
local checks = require "checks"
local claims = require "claims"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local pipeline = require "pipeline"
local pools = require "pools"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"
local stage_dp = require "stage_dp"

--- The problem of a run for stage_dp.search, at the cluster's prices.
local function problem(ctx, rows, recompute)
  local o = ctx.options
  local q = { layers = ctx.model.n_layers, batch = ctx.job.global_batch, quota = {}, unit = {},
    region = {},
    usd_per_s = {}, depths = {}, sizes = {}, speedup = 1.5, width = o.width, budget = o.budget,
    keep = o.tries + 4,
    goal = o.goal == "job" and ctx.job.minimize == "cost" and "cost" or o.goal == "cost" and "cost"
      or "time",
    stopping = hv.stopping }
  for depth = 1, math.min(q.layers, o.depth) do
    q.depths[depth] = depth
  end
  for _, b in ipairs(numbers.powers(o.micro_batch)) do
    q.sizes[#q.sizes + 1] = q.batch % b == 0 and b or nil
  end
  local degrees = {}
  for k, p in ipairs(rows) do
    q.quota[k], q.unit[k], q.region[k], q.usd_per_s[k] = p.n, p.size, p.region, p.usd_per_s
    degrees[k] = grids.tp_degrees(ctx, p)
  end
  local function own(k, tp, micro_batch)
    return prices.chain(ctx, rows[k].kind, { tp = tp, micro_batch = micro_batch,
      recompute = recompute,
      sequence_parallel = tp > 1 })
  end
  local outputs = hv.cost.layers { kinds = { rows[1].kind }, micro_batch = 1 }:sizes "output"
  function q.degrees(k)
    return degrees[k]
  end
  function q.time(k, tp, micro_batch, from, to)
    return prices.time(own(k, tp, micro_batch), from, to)
  end
  function q.fits(k, tp, micro_batch, from, to, stage, depth)
    return prices.bytes(ctx, own(k, tp, micro_batch), from, to, { in_flight = depth - stage + 1 })
    -- the last round leaves some room
      <= prices.capacity(ctx, rows[k]) * (recompute == "none" and 1 or 0.97)
  end
  function q.hop(a, b, micro_batch, layer)
    local l = pools.link(ctx, rows[a.pool], rows[b.pool])
    return l.latency_s + outputs[layer] * micro_batch / l.bandwidth_bytes_per_s
  end
  function q.sync(staff, from, to, dp)
    local bytes, each, latency_s = 0, 0, 0
    for i, r in ipairs(staff) do
      bytes = math.max(bytes, prices.gradient_bytes(ctx, own(r.pool, r.tp, 1), from, to))
      for j = 1, i do
        local l = pools.link(ctx, rows[r.pool], rows[staff[j].pool])
        each, latency_s = math.max(each, 1 / l.bandwidth_bytes_per_s),
          math.max(latency_s, l.latency_s)
      end
    end
    return dp > 1 and 2 * (dp - 1) * (bytes / dp * each + latency_s) or 0
  end
  if o.egress_usd > 0 or o.zone_usd > 0 then
    function q.fare(a, b)
      return pools.fare(rows[a].zone, rows[b].zone, o.egress_usd, o.zone_usd)
    end
    function q.hop_bytes(micro_batch, layer)
      return outputs[layer] * micro_batch
    end
    function q.sync_bytes(staff, from, to)
      local bytes = 0
      for _, r in ipairs(staff) do
        bytes = math.max(bytes, prices.gradient_bytes(ctx, own(r.pool, r.tp, 1), from, to) * r.tp)
      end
      return bytes
    end
  end
  function q.within(seconds, usd)
    return (o.usd == 0 or usd <= o.usd) and (o.floor == 0 or seconds <= 3600 / o.floor)
  end
  return q
end

--- The plan of what was found.
local function built(ctx, rows, found, recompute)
  local counts = {}
  for s, range in ipairs(found.ranges) do
    counts[s] = range[2] - range[1] + 1
  end
  for _, row in ipairs(rows) do
    for _, stage in ipairs(row) do
      stage.recompute = recompute
    end
  end
  local list = pipeline.deal_evenly(pipeline.joined(rows),
    ctx.job.global_batch // found.micro_batch, counts)
  return pipeline.plan(ctx, list, found.micro_batch)
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local all, o, reason = pools.of(devices), ctx.options, nil
  for _, recompute in ipairs { "none", "full" } do -- Sailor itself recomputes nothing
    local q, list = problem(ctx, all, recompute), {}
    local answers, cut = stage_dp.search(q)
    if cut > 0 then
      hv.log(("%d cases beyond the budget were left out"):format(cut))
    end
    for _, found in ipairs(answers) do
      local rows = pools.place(all, found)
      if rows then
        list[#list + 1] = { claim_s = found.value, rank = found.rank, build = function()
          return built(ctx, rows, found, recompute)
        end }
      end
    end
    local best, why_not
    if #list > 0 then
      best, why_not = candidates.best(list, q.goal == "cost" and 1 or o.tries)
    end
    if best then
      return best
    end
    reason = why_not or reason
  end
  if o.usd > 0 or o.floor > 0 then
    return nil, "no plan keeps to the budget and the throughput asked for"
  end
  return nil, reason or reasons.too_small(ctx, devices,
    "no even split into stages over pools of one kind and zone")
end

--- The equation on the plan's own figures: the slowest replica of every stage, the slowest hop.
local function claim(made, ctx)
  made = prices.table_of(made)
  local parts, kinds, m, stage_s, hop_s, sync = claims.parts(ctx, made), prices.kinds(ctx), 0, {},
    { [0] = 0 }, 0
  for r, part in ipairs(parts) do
    m = math.max(m, made.replicas[r].micro_batches)
    for s, t in ipairs(part.stage_s) do
      stage_s[s], hop_s[s] = math.max(stage_s[s] or 0, t),
        math.max(hop_s[s] or 0, part.hop_s[s] or 0)
    end
  end
  local straggler, sum = 0, 0
  for s, t in ipairs(stage_s) do
    straggler, sum = math.max(straggler, t + hop_s[s - 1] + hop_s[s]), sum + t + 2 * hop_s[s]
    local heads, first = {}, made.replicas[1].stages[s]
    for _, replica in ipairs(made.replicas) do
      local ids = ctx.cluster:ids(replica.stages[s].devices)
      for i = 1, #ids, replica.stages[s].tp or 1 do
        heads[#heads + 1] = ids[i]
      end
    end
    local own = prices.chain(ctx, kinds[heads[1]], { tp = first.tp, micro_batch = 1 })
    sync = math.max(sync, prices.sync(ctx, own, first.layers[1] + 1, first.layers[2], heads))
  end
  local egress = pools.egress_usd(ctx, made, ctx.options.egress_usd, ctx.options.zone_usd)
  return { iteration_s = (m - 1) * straggler + sum + sync,
    terms = { pipeline_s = (m - 1) * straggler + sum, all_reduce_s = sync, egress_usd = egress > 0
        and egress or nil },
    formula = "(B - 1) straggler + passes + hops + all-reduce (Sailor, section 4.3)" }
end

local function selftest(t)
  local random, equal = search.generator(5), 0
  for _ = 1, 40 do
    local speed, ring, links = { random(9), random(9) }, { random(9), random(20) },
      { random(4), random(9), random(4) }
    local q = { layers = 6, batch = 8 + random(8), quota = { random(7), random(7) },
      region = { "", "" },
      usd_per_s = { 0, 0 }, depths = { 1, 2, 3 }, sizes = { 1, 2 }, goal = "time", speedup = 1.5,
      width = 32,
      budget = 1000, keep = 1 }
    function q.degrees()
      return { 1 }
    end
    function q.fits()
      return true
    end
    function q.time(k, _, size, from, to)
      return (to - from + 1) * (size + 0.5) * speed[k]
    end
    function q.hop(a, b)
      return links[a.pool + b.pool - 1]
    end
    function q.sync(rows, from, to, dp)
      return (dp - 1) * (to - from + 1) * math.max(ring[rows[1].pool], ring[rows[#rows].pool])
    end
    local found = stage_dp.search(q)[1]
    equal = equal + (found and math.abs(found.claim_s - checks.least_staffing(q)) < 1e-9 and 1 or 0)
  end
  t.near("random pools on which the search equals all staffings tried, of 40", equal, 40, 0,
    "enumeration")
  -- a layer per device: the second stage goes to the other region, or to the dearer device beside
  -- the first
  local q = { layers = 2, batch = 4, quota = { 1, 1, 1 }, region = { "x", "y", "x" },
    usd_per_s = { 1, 1, 1.5 },
    depths = { 2 }, sizes = { 1 }, goal = "cost", speedup = 1.5, width = 32, budget = 9, keep = 1 }
  function q.degrees()
    return { 1 }
  end
  function q.fits()
    return true
  end
  function q.time(_, _, _, from, to)
    return to - from + 1
  end
  function q.hop()
    return 0
  end
  q.sync = q.hop
  t.near("money of 5 s on two devices, egress for nothing", stage_dp.search(q)[1].usd, 10, 1e-9,
    "by hand: 5 x 2")
  function q.fare(a, b)
    return q.region[a] == q.region[b] and 0 or 0.5
  end
  function q.hop_bytes()
    return 1
  end
  t.near("at 0.5 a byte the stages stay in one region", stage_dp.search(q)[1].usd, 12.5, 1e-9,
    "by hand: 5 x 2.5 against 10 + 4 micro-batches x 2 ways x 0.5")
  q.quota, q.depths, q.batch, q.goal = { 1, 1, 0 }, { 1 }, 2, "time"
  q.region, q.usd_per_s = { "x", "x", "x" }, { 1, 0.1, 9 }
  function q.fare(a, b)
    return a == b and 0 or 0.5
  end
  function q.sync_bytes()
    return 3
  end
  local both = stage_dp.search(q)[1]
  t.near("two replicas in two zones: rent and the all-reduce's way there and back", both.usd, 5.2,
    1e-9,
    "by hand: 2 s x 1.1 + 2 crossings x 2 (1 - 1/2) x 3 bytes x 0.5")
end

return {
  api = 1, id = "sailor", title = "Sailor", kind = "hetero",
  system = "Sailor: Automating Distributed Training over "
    .. "Dynamic, Heterogeneous, and Geo-distributed Clusters, SOSP 2025",
  reference = "arXiv:2504.17096",
  summary = "Even stages over pools of GPUs by type and zone; what is left of them decides who serves which.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "goal", type = "choice", choices = { "job", "time", "cost" }, default = "job",
      help = "what is minimised: the job's objective, the iteration's time, its money" },
    { key = "usd", type = "number", default = 0, min = 0, max = 1e9,
      help = "most USD per iteration; 0: no budget" },
    { key = "floor", type = "number", default = 0, min = 0, max = 1e9,
      help = "least iterations per hour; 0: none" },
    { key = "egress_usd", type = "number", default = 0, min = 0, max = 1000,
      help = "USD per GB that leaves a region: part of its money, of goal, usd and claim; the simulation counts rent" },
    { key = "zone_usd", type = "number", default = 0, min = 0, max = 1000,
      help = "USD per GB from one zone to another of the same region, likewise" },
    { key = "depth", type = "integer", default = 32, min = 1, max = 4096,
      help = "most stages that are tried" },
    { key = "micro_batch", type = "integer", default = 8, min = 1, max = 256,
      help = "largest micro-batch" },
    { key = "budget", type = "integer", default = 600, min = 1, max = 1000000,
      help = "depths, micro-batches and replica counts that are solved, least bound first" },
    { key = "width", type = "integer", default = 8, min = 1, max = 1000,
      help = "states kept per stage" },
    { key = "tries", type = "integer", default = 24, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
