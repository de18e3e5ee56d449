--- HetPipe (Park et al., USENIX ATC'20): virtual workers of whimpy GPUs, each a pipeline, data
-- parallel through parameter servers with bounded staleness (Wave Synchronous Parallel).
-- Section 4: one GPU per stage, Nm minibatches in flight. Section 5: waves and clock distance D.
-- Section 7: allocation policies and the partition that minimises the slowest stage.
local candidates = require "candidates"
local claims = require "claims"
local inventory = require "inventory"
local numbers = require "numbers"
local oracle = require "testing.oracle"
local prices = require "prices"
local virtual_workers = require "virtual_workers"

-- NP: every node is a worker; ED: an equal part of every node; HD: the strongest node joined with
-- the weakest, each pair giving two workers with half of both.
local policies = { NP = virtual_workers.per_node, ED = virtual_workers.equal,
  HD = virtual_workers.hybrid }

-- nodes from which on the first plan that fits is kept at once, in case time is short
local MANY = 1000

--- Partition of every group for the common Nm (waves must be equal), or why not.
local function partitions(ctx, groups, c, limit)
  local nm = limit
  for _, group in ipairs(groups) do
    local best = #group[1] <= #ctx.model:layers()
      and virtual_workers.in_flight(ctx, group[1], c, limit)
    if not best then
      return nil, virtual_workers.shortage(ctx, group[1], c)
    end
    nm = math.min(nm, best.in_flight)
  end
  local found, slowest = {}, 0
  for g, group in ipairs(groups) do
    c.program = ctx.options.partition == "program"
    found[g] = virtual_workers.partition(ctx, group[1], nm, c)
    c.program = nil
    slowest = math.max(slowest, found[g].max, found[g].sum / nm)
  end
  return found, nm, slowest
end

--- One candidate: workers of a choice, joined in groups, with this minibatch and recompute. It
-- keeps no list of devices; what is built deals them out again.
local function candidate(ctx, choice, groups, c)
  local total = ctx.job.global_batch // c.micro_batch
  local found, nm, slowest = partitions(ctx, groups, c, ctx.options.in_flight)
  -- the reason, and by how much
  if not found then
    return nil, nm, slowest
  end
  return {
    claim_s = (total + choice.n - 1) // choice.n * slowest,
    build = function()
      local shares = numbers.even(total, choice.n) -- waves are equal; what is left over goes first
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
  local groups
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    local batch = ctx.job.global_batch
    if batch % micro_batch == 0 and batch // micro_batch >= choice.n and not hv.stopping() then
      groups = groups or virtual_workers.groups(choice.make())
      for _, recompute in ipairs { "none", "full" } do
        all.add(candidate(ctx, choice, groups,
          { tp = 1, micro_batch = micro_batch, recompute = recompute, reserve = reserve }))
      end
    end
  end
end

--- The nodes. The list of all devices, most of what Lua may hold, ends here.
local function nodes_of(ctx)
  local devices, none = inventory.priced(ctx)
  return inventory.nodes(devices), none
end

--- The candidates with so many bytes of every GPU left alone. Workers of several GPUs of every node
-- only where those with one of each do not hold the model.
local function offered(ctx, nodes, reserve)
  local all, policy = candidates.new(), ctx.options.policy
  local function try(choices)
    for _, choice in ipairs(choices) do
      local before = #all.list
      add(ctx, all, choice, reserve)
      if before == 0 and #all.list > 0 and #nodes > MANY then
        hv.incumbent(all.list[1].build())
      end
    end
  end
  for _, name in ipairs(policy == "best" and { "ED", "HD", "NP" } or { policy }) do
    try(policies[name](nodes))
  end
  for _, choice in ipairs((policy == "best" or policy == "ED") and #nodes <= MANY
      and virtual_workers.larger(nodes) or {}) do
    if #all.list == 0 then
      try { choice }
    end
  end
  return all
end

local function plan(ctx)
  local nodes, none = nodes_of(ctx)
  if #nodes == 0 then
    return nil, none
  end
  local short
  local all = candidates.within(function(reserve)
    local found = offered(ctx, nodes, reserve)
    short = short or found.reason
    return found
  end)
  if not all then
    return nil, short or "the global batch gives no minibatch to every virtual worker"
  end
  return all.best(ctx.options.tries)
end

--- Section 5: all go at the pace of the slowest worker's waves; it needs the time of its slowest
-- stage per minibatch, with activations and gradients in and out, or all stages for every Nm of
-- them.
local function claim(made, ctx)
  made = prices.table_of(made)
  local nm, distance, slowest = made.schedule.in_flight, made.sync.staleness, 0
  for r, part in ipairs((claims.parts(ctx, made))) do
    local longest = 0
    for s, t in ipairs(part.stage_s) do
      longest = math.max(longest, t + 2 * ((part.hop_s[s - 1] or 0) + (part.hop_s[s] or 0)))
    end
    slowest = math.max(slowest, made.replicas[r].micro_batches * math.max(longest, claims.seconds(
      { stage_s = part.stage_s, hop_s = part.hop_s, micro_batches = 1 }, 2) / nm))
  end
  return { iteration_s = slowest,
    formula = "minibatches x max(P, sum / Nm) of the slowest worker, P = slowest stage (HetPipe, "
      .. "section 7); s_global = (D + 1)(s_local + 1) + s_local - 1 (section 5)",
    leaves_out = "pushes and pulls through the parameter servers, which hide behind the next wave and show where they "
      .. "take longer, and the waiting of stages for each other where they are unequal",
    terms = { s_local = nm - 1, s_global = virtual_workers.global_staleness(nm, distance) } }
end

--- Kinds of the GPUs of every worker, in words.
local function kinds_of(list)
  local words = {}
  for i, worker in ipairs(list) do
    words[i] = virtual_workers.signature(virtual_workers.gpus(worker)):gsub(" ", "")
  end
  return table.concat(words, " ")
end

local function selftest(t)
  local src = "catalogue: hetpipe"
  t.equal("s_global Nm=4 D=0", virtual_workers.global_staleness(4, 0), 6, src)
  t.equal("s_global Nm=4 D=4", virtual_workers.global_staleness(4, 4), 22, src)
  t.equal("s_global Nm=1 D=0", virtual_workers.global_staleness(1, 0), 0, src)
  t.equal("D=0: minibatch that waits for wave 0", virtual_workers.first_waiting(4, 0, 0), 7, src)
  t.equal("D=4: minibatch that waits for wave 0", virtual_workers.first_waiting(4, 4, 0), 23, src)
  for _, distance in ipairs { 0, 4 } do
    t.equal("it is the first that may miss s_global + 1 updates",
      virtual_workers.first_waiting(4, distance, 0), virtual_workers.global_staleness(4, distance)
        + 1, src)
  end
  local free = oracle.chain_partition({ 1, 2 }, 6, {})
  local tight = oracle.chain_partition({ 1, 2 }, 6, { 3 })
  t.near("6 layers, times 1 and 2", free.value, 4, 0, src)
  t.equal("cut of 6 layers", free.stages[1][2], 4, src)
  t.near("fast GPU holds 3 layers", tight.value, 6, 0, src)
  t.equal("cut with 3 layers", tight.stages[1][2], 3, src)
  t.near("the same as integer program", oracle.chain_program({ 1, 2 }, 6, {}), 4, 1e-9, src)
  t.near("with 3 layers at most", oracle.chain_program({ 1, 2 }, 6, { 3 }), 6, 1e-9, src)
  for _, times in ipairs { { 1, 2, 3 }, { 3, 1, 2 }, { 2, 2, 5 } } do
    t.near("integer program = exact partition", oracle.chain_program(times, 9, { 4 }),
      oracle.chain_partition(times, 9, { 4 }).value, 1e-9, "oracle")
  end
  local rate = virtual_workers.wave_rate({ 4, 6 }, 0, 1000)
  t.near("fast worker goes at 6 s per wave", rate[1], 6, 0.01, src)
  t.near("slow worker goes at 6 s per wave", rate[2], 6, 0, src)
  t.near("D = 3 does not change the long run", virtual_workers.wave_rate({ 4, 6 }, 3, 10000)[1], 6,
    0.01, src)
  local nodes = {}
  for i, kind in ipairs { "V", "R", "G", "Q" } do -- four GPUs each, fastest first
    nodes[i] = { kind = kind, flops_per_s = 5 - i, memory_bytes = 1, ids = { 1, 2, 3, 4 } }
  end
  t.equal("HD", kinds_of(virtual_workers.hybrid(nodes)[1].make()), "VVQQ VVQQ RRGG RRGG", src)
  t.equal("ED", kinds_of(virtual_workers.equal(nodes)[1].make()), "VRGQ VRGQ VRGQ VRGQ", src)
  t.equal("NP", kinds_of(virtual_workers.per_node(nodes)[1].make()), "VVVV RRRR GGGG QQQQ", src)
end

return {
  api = 1, id = "hetpipe", title = "HetPipe", kind = "hetero",
  system = "HetPipe: Enabling Large DNN Training on (Whimpy) Heterogeneous GPU Clusters, ATC 2020",
  reference = "arXiv:2005.14038",
  summary = "Unequal GPUs as pipelined virtual workers, in step by waves with bounded staleness.",
  needs = { model = "layers" },
  effort = "quick", stale = true,
  options = {
    { key = "policy", type = "choice", choices = { "best", "NP", "ED", "HD" }, default = "best",
      help = "GPUs of a worker: NP a node, ED a part of every node, HD strong with weak" },
    { key = "distance", type = "integer", default = 0, min = 0, max = 1000,
      help = "clock distance D: waves that the fastest worker may be ahead" },
    { key = "in_flight", type = "integer", default = 32, min = 1, max = 1024,
      help = "most minibatches in flight in a worker (Nm)" },
    { key = "micro_batch", type = "integer", default = 4, min = 1, max = 1024,
      help = "largest minibatch to try, in powers of two" },
    { key = "local_servers", type = "boolean", default = false,
      help = "parameter shards on the nodes that run their stage (ED-local)" },
    { key = "partition", type = "choice", choices = { "exact", "program" }, default = "exact",
      help = "layers on GPUs by dynamic programming, or by the paper's integer program (lp_solve), to the same value" },
    { key = "tries", type = "integer", default = 8, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
