-- HetPipe (Park et al., USENIX ATC 2020): virtual workers of whimpy GPUs, each a pipeline, data
-- parallel through parameter servers with bounded staleness (Wave Synchronous Parallel). Section 4:
-- one GPU per stage, Nm minibatches in flight. Section 5: waves and clock distance D. Section 7:
-- allocation policies and the partition that minimises the slowest stage.
local allocation = require "allocation"
local candidates = require "candidates"
local claims = require "claims"
local inventory = require "inventory"
local numbers = require "numbers"
local partition = require "partition"
local prices = require "prices"
local staleness = require "staleness"
local virtual_workers = require "virtual_workers"

-- NP: every node is a worker; ED: an equal part of every node; HD: the strongest node joined with
-- the weakest, each pair giving two workers with half of both.
local POLICIES = { NP = allocation.node_partition, ED = allocation.equal_distribution,
  HD = allocation.hybrid_distribution }

-- Number of nodes above which the first plan that fits is kept at once, in case time runs out.
local MANY = 1000

--- The partition of every group for the common Nm (waves must be equal), Nm, and the longest period
-- in seconds; or nil, the reason, and the factor by which memory is short.
local function partitions(ctx, groups, c)
  local nm = ctx.options.in_flight
  for _, group in ipairs(groups) do
    local gpus = group[1]
    local own = #gpus <= #ctx.model:layers()
      and partition.in_flight(ctx, gpus, c, ctx.options.in_flight)
    if not own then
      return nil, partition.shortage(ctx, gpus, c)
    end
    nm = math.min(nm, own)
  end
  local found = {}
  local period_s = 0
  for g, group in ipairs(groups) do
    found[g] = partition.of(ctx, group[1], nm, c, ctx.options.partition == "program")
    period_s = math.max(period_s, found[g].max, found[g].sum / nm)
  end
  return found, nm, period_s
end

--- The candidate of one choice of workers, whose groups of equal workers are `groups`. It keeps no
-- list of devices; `build` makes the workers again. nil, the reason, and the factor by which memory
-- is short where it does not fit.
local function candidate(ctx, choice, groups, c)
  local found, nm, period_s = partitions(ctx, groups, c)
  if not found then
    local why, short = nm, period_s
    return nil, why, short
  end
  local total = ctx.job.global_batch // c.micro_batch
  return {
    claim_s = (total + choice.n - 1) // choice.n * period_s,
    build = function()
      local shares = numbers.even(total, choice.n) -- waves are equal; first workers get the rest
      return {
        micro_batch = c.micro_batch,
        replicas = virtual_workers.replicas(ctx, virtual_workers.groups(choice.make()), found,
          shares, c),
        schedule = { name = "hetpipe", in_flight = nm },
        sync = { kind = "wsp", staleness = ctx.options.distance,
          servers = ctx.options.local_servers and "local" or "sharded" },
      }
    end,
  }
end

--- Adds the candidates of one choice: every minibatch that leaves one for each worker.
local function add(ctx, all, choice, reserve)
  local batch = ctx.job.global_batch
  local groups
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    if batch % micro_batch == 0 and batch // micro_batch >= choice.n and not hv.stopping() then
      groups = groups or virtual_workers.groups(choice.make())
      for _, recompute in ipairs { "none", "full" } do
        all.add(candidate(ctx, choice, groups,
          { tp = 1, micro_batch = micro_batch, recompute = recompute, reserve = reserve }))
      end
    end
  end
end

--- The nodes, and the reason where there are none. The list of all devices, which takes most of the
-- memory that Lua may hold, ends with this function.
local function nodes_of(ctx)
  local devices, why = inventory.priced(ctx)
  return inventory.nodes(devices), why
end

--- The candidates with `reserve` bytes of every GPU left unused. Workers of several GPUs of every
-- node are tried only where those with one GPU of each do not hold the model.
local function search(ctx, nodes, reserve)
  local all = candidates.new()
  local policy = ctx.options.policy
  local function try(choice)
    local had_none = #all.list == 0
    add(ctx, all, choice, reserve)
    if had_none and #all.list > 0 and #nodes > MANY then
      hv.incumbent(all.list[1].build())
    end
  end
  for _, name in ipairs(policy == "best" and { "ED", "HD", "NP" } or { policy }) do
    for _, choice in ipairs(POLICIES[name](nodes)) do
      try(choice)
    end
  end
  if (policy == "best" or policy == "ED") and #nodes <= MANY then
    for _, choice in ipairs(allocation.larger(nodes)) do
      if #all.list == 0 then
        try(choice)
      end
    end
  end
  return all
end

local function plan(ctx)
  local nodes, none = nodes_of(ctx)
  if #nodes == 0 then
    return nil, none
  end
  local why
  local all = candidates.within(function(reserve)
    local found = search(ctx, nodes, reserve)
    why = why or found.reason
    return found
  end)
  if not all then
    return nil, why or "the global batch gives no minibatch to every virtual worker"
  end
  return all.best(ctx.options.tries)
end

--- Seconds per minibatch of a worker, whose replica is `part` of claims.parts: its slowest stage
-- with activations and gradients in and out, or all stages for every Nm minibatches.
local function period_of(part, nm)
  local slowest_s = 0
  for s, own_s in ipairs(part.stage_s) do
    local hops_s = (part.hop_s[s - 1] or 0) + (part.hop_s[s] or 0)
    slowest_s = math.max(slowest_s, own_s + 2 * hops_s)
  end
  local one_s = claims.seconds({ stage_s = part.stage_s, hop_s = part.hop_s, micro_batches = 1 }, 2)
  return math.max(slowest_s, one_s / nm)
end

--- All workers run at the pace of the slowest worker's waves (section 5).
local function claim(made, ctx)
  made = prices.table_of(made)
  local nm = made.schedule.in_flight
  local slowest_s = 0
  for r, part in ipairs((claims.parts(ctx, made))) do
    slowest_s = math.max(slowest_s, made.replicas[r].micro_batches * period_of(part, nm))
  end
  return { iteration_s = slowest_s,
    formula = "minibatches x max(P, sum / Nm) of the slowest worker, P = slowest stage (HetPipe, "
      .. "section 7); s_global = (D + 1)(s_local + 1) + s_local - 1 (section 5)",
    leaves_out = "pushes and pulls through the parameter servers, which overlap with the next wave "
      .. "and count only where they take longer, and the waiting of unequal stages for each other",
    terms = { s_local = nm - 1, s_global = staleness.global(nm, made.sync.staleness) } }
end

return {
  api = 1, id = "hetpipe", title = "HetPipe", kind = "hetero",
  system = "HetPipe: Enabling Large DNN Training on (Whimpy) Heterogeneous GPU Clusters, ATC 2020",
  year = 2020,
  reference = "arXiv:2005.14038",
  summary = "Unequal GPUs as pipelined virtual workers, in step by waves with bounded staleness.",
  needs = { model = "layers" },
  effort = "quick", stale = true,
  options = {
    { key = "policy", type = "choice", choices = { "best", "NP", "ED", "HD" }, default = "best",
      help = "GPUs of a worker: NP one node, ED a part of every node, HD a strong node with a weak "
        .. "one; best: all three are tried" },
    { key = "distance", type = "integer", default = 0, min = 0, max = 1000,
      help = "clock distance D: waves that the fastest worker may be ahead of the slowest" },
    { key = "in_flight", type = "integer", default = 32, min = 1, max = 1024,
      help = "largest number Nm of minibatches in flight in a worker" },
    { key = "micro_batch", type = "integer", default = 4, min = 1, max = 1024,
      help = "largest minibatch in sequences; powers of two up to it are tried" },
    { key = "local_servers", type = "boolean", default = false,
      help = "parameter shards on the nodes that run their stage (ED-local)" },
    { key = "partition", type = "choice", choices = { "exact", "program" }, default = "exact",
      help = "layers per GPU by dynamic programming, or by the paper's integer program (lp_solve), "
        .. "which has the same optimum" },
    { key = "tries", type = "integer", default = 8, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the formula" },
  },
  plan = plan,
  claim = claim,
}
