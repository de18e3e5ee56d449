-- Sailor (Strati et al., SOSP 2025): plans over pools of GPUs by type and zone. Section 4.2: for
-- every depth, micro-batch and number of replicas, the least tensor degree that fits each type
-- (more where it pays), then dynamic programming over the stages on the devices that are left.
-- Layers and batch are split evenly; a stage stays inside a region. Section 4.3: T = (B - 1)
-- straggler + passes + hops + largest all-reduce. It minimises the time or the money of an
-- iteration, within a budget or above a throughput where they are given.
local candidates = require "candidates"
local claims = require "claims"
local inventory = require "inventory"
local pipeline = require "pipeline"
local pools = require "pools"
local prices = require "prices"
local problem = require "problem"
local reasons = require "reasons"
local stage_dp = require "stage_dp"
local zones = require "zones"

--- The plan of a solution of stage_dp, with the devices of its replicas.
local function plan_of(ctx, replicas, found, recompute)
  local counts = {}
  for s, range in ipairs(found.ranges) do
    counts[s] = range[2] - range[1] + 1
  end
  for _, replica in ipairs(replicas) do
    for _, stage in ipairs(replica) do
      stage.recompute = recompute
    end
  end
  local list = pipeline.deal_evenly(pipeline.joined(replicas),
    ctx.job.global_batch // found.micro_batch, counts)
  return pipeline.plan(ctx, list, found.micro_batch)
end

--- The solutions whose tensor-parallel groups fit into nodes, as candidates of candidates.best.
local function candidates_of(ctx, all, solutions, recompute)
  local list = {}
  for _, found in ipairs(solutions) do
    local replicas = pools.place(all, found)
    if replicas then
      list[#list + 1] = { claim_s = found.value, rank = found.rank,
        build = function() return plan_of(ctx, replicas, found, recompute) end }
    end
  end
  return list
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local options = ctx.options
  local all = pools.of(devices)
  local reason
  for _, recompute in ipairs { "none", "full" } do -- Sailor itself does not recompute
    local p = problem.of(ctx, all, recompute)
    local solutions, n_left_out = stage_dp.search(p)
    if n_left_out > 0 then
      hv.log(("%d cases beyond the budget were left out"):format(n_left_out))
    end
    local list = candidates_of(ctx, all, solutions, recompute)
    if #list > 0 then
      local tries = p.goal == "cost" and 1 or options.tries
      local best, why_not = candidates.best(list, tries)
      if best then
        return best
      end
      reason = why_not or reason
    end
  end
  if options.usd > 0 or options.floor > 0 then
    return nil, "no plan is within the options usd (money per iteration) and floor (iterations "
      .. "per hour)"
  end
  return nil, reason or reasons.too_small(ctx, devices,
    "no even split into stages over pools of one kind and zone")
end

--- Seconds of every stage and of the hop behind it (index 0: none), of the slowest replica; and the
-- largest number of micro-batches.
local function slowest_replica(made, parts)
  local micro_batches = 0
  local stage_s = {}
  local hop_s = { [0] = 0 }
  for r, part in ipairs(parts) do
    micro_batches = math.max(micro_batches, made.replicas[r].micro_batches)
    for s, seconds in ipairs(part.stage_s) do
      stage_s[s] = math.max(stage_s[s] or 0, seconds)
      hop_s[s] = math.max(hop_s[s] or 0, part.hop_s[s] or 0)
    end
  end
  return stage_s, hop_s, micro_batches
end

--- Seconds of the all-reduce of a stage over the replicas of a plan.
local function all_reduce_s(ctx, made, s)
  local heads = {} -- the first device of every tensor-parallel group
  for _, replica in ipairs(made.replicas) do
    local stage = replica.stages[s]
    local ids = ctx.cluster:ids(stage.devices)
    for i = 1, #ids, stage.tp or 1 do
      heads[#heads + 1] = ids[i]
    end
  end
  local first = made.replicas[1].stages[s]
  local own = prices.chain(ctx, prices.kinds(ctx)[heads[1]], { tp = first.tp, micro_batch = 1 })
  return prices.sync(ctx, own, first.layers[1] + 1, first.layers[2], heads)
end

--- The equation on the figures of a plan.
local function claim(made, ctx)
  made = prices.table_of(made)
  local stage_s, hop_s, micro_batches = slowest_replica(made, claims.parts(ctx, made))
  local straggler_s = 0
  local passes_s = 0
  local sync_s = 0
  for s, seconds in ipairs(stage_s) do
    straggler_s = math.max(straggler_s, seconds + hop_s[s - 1] + hop_s[s])
    passes_s = passes_s + seconds + 2 * hop_s[s]
    sync_s = math.max(sync_s, all_reduce_s(ctx, made, s))
  end
  local pipeline_s = (micro_batches - 1) * straggler_s + passes_s
  local egress_usd = zones.egress_usd(ctx, made, ctx.options.egress_usd, ctx.options.zone_usd)
  return {
    iteration_s = pipeline_s + sync_s,
    terms = { pipeline_s = pipeline_s, all_reduce_s = sync_s,
      egress_usd = egress_usd > 0 and egress_usd or nil },
    formula = "(B - 1) straggler + passes + hops + all-reduce (Sailor, section 4.3)",
    leaves_out = "the optimizer's step, the overlap of gradients with the backward pass, and links "
      .. "that several stages or replicas share",
  }
end

return {
  api = 1, id = "sailor", title = "Sailor", kind = "hetero",
  system = "Sailor: Automating Distributed Training over "
    .. "Dynamic, Heterogeneous, and Geo-distributed Clusters, SOSP 2025", year = 2025,
  reference = "arXiv:2504.17096",
  summary = "Even stages over pools of GPUs by type and zone; dynamic programming over the devices "
    .. "that are left.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "goal", type = "choice", choices = { "job", "time", "cost" }, default = "job",
      help = "what is minimised: the objective of the job, the time or the money of an iteration" },
    { key = "usd", type = "number", default = 0, min = 0, max = 1e9,
      help = "largest money of an iteration in USD; 0: no limit" },
    { key = "floor", type = "number", default = 0, min = 0, max = 1e9,
      help = "least number of iterations per hour; 0: no limit" },
    { key = "egress_usd", type = "number", default = 0, min = 0, max = 1000,
      help = "USD per GB sent to another region: part of the money in goal, usd and claim; "
        .. "the simulation counts rent only" },
    { key = "zone_usd", type = "number", default = 0, min = 0, max = 1000,
      help = "USD per GB sent to another zone of the same region: part of the same money" },
    { key = "depth", type = "integer", default = 32, min = 1, max = 4096,
      help = "largest number of stages" },
    { key = "micro_batch", type = "integer", default = 8, min = 1, max = 256,
      help = "largest micro-batch" },
    { key = "budget", type = "integer", default = 600, min = 1, max = 1000000,
      help = "combinations of depth, micro-batch and number of replicas that are solved, least "
        .. "bound first" },
    { key = "width", type = "integer", default = 8, min = 1, max = 1000,
      help = "states of the dynamic programming kept per stage" },
    { key = "tries", type = "integer", default = 24, min = 1, max = 1000,
      help = "number of valid plans that are simulated, least claimed value first" },
  },
  plan = plan,
  claim = claim,
}
