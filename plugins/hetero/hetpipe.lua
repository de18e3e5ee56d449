--- HetPipe (Park et al., USENIX ATC'20): virtual workers of whimpy GPUs, each a pipeline, data
-- parallel through parameter servers with bounded staleness (Wave Synchronous Parallel).
-- Section 4: one GPU per stage, Nm minibatches in flight. Section 5: waves and clock distance D.
-- Section 7: allocation policies and the partition that minimises the slowest stage.
local layout = require "layout"
local prices = require "prices"

-- Wave Synchronous Parallel, section 5 ---------------------------------------------------------

--- Missing updates at most: s_global = (D + 1)(s_local + 1) + s_local - 1 with s_local = Nm - 1.
local function global_staleness(in_flight, distance)
  local s_local = in_flight - 1
  return (distance + 1) * (s_local + 1) + s_local - 1
end

--- The first minibatch (from 0) that waits for wave `c` of every worker: (c + D + 2)·Nm - 1.
local function first_waiting(in_flight, distance, c)
  return (c + distance + 2) * in_flight - 1
end

--- Mean seconds per wave of workers with these wave times after `waves` waves: a worker begins
-- wave c when it has ended wave c - 1 and everybody has pushed wave c - D - 1.
local function wave_rate(wave_s, distance, waves)
  local ends, pushed = {}, {}
  for w in ipairs(wave_s) do
    ends[w] = 0
  end
  for c = 1, waves do
    local gate = pushed[c - distance - 1] or 0
    local last = 0
    for w, s in ipairs(wave_s) do
      ends[w] = math.max(ends[w], gate) + s
      last = math.max(last, ends[w])
    end
    pushed[c] = last
  end
  for w in ipairs(ends) do
    ends[w] = ends[w] / waves
  end
  return ends
end

-- Allocation, section 7 ------------------------------------------------------------------------

--- NP: every node is a virtual worker.
local function node_partition(nodes)
  local workers = {}
  for i, node in ipairs(nodes) do
    workers[i] = { { node = node, ids = node.ids } }
  end
  return { workers }
end

--- Nodes by kind and size: lists in the order of first mention.
local function alike(nodes)
  local lists, by_key = {}, {}
  for _, node in ipairs(nodes) do
    local key = node.kind .. "/" .. #node.ids
    if not by_key[key] then
      by_key[key] = {}
      lists[#lists + 1] = by_key[key]
    end
    table.insert(by_key[key], node)
  end
  return lists
end

--- `n` equal workers over these nodes: each takes its part of the GPUs of every node.
local function deal_gpus(nodes, n)
  local workers = {}
  for w = 1, n do
    workers[w] = {}
    for i, node in ipairs(nodes) do
      local per = #node.ids // n
      workers[w][i] = { node = node, ids = layout.slice(node.ids, (w - 1) * per + 1, per) }
    end
  end
  return workers
end

--- ED: equal workers, one GPU (or an equal part) of every node. A large cluster is first cut into
-- blocks with the same mix of nodes: one choice of workers per number of blocks.
local function equal_distribution(nodes)
  local lists, common, choices = alike(nodes), 0, {}
  for _, list in ipairs(lists) do
    common = layout.gcd(common, #list)
  end
  local divisors = layout.divisors(common)
  for d = #divisors, 1, -1 do
    local blocks, workers = divisors[d], {}
    for b = 1, blocks do
      local part = {}
      for _, list in ipairs(lists) do
        local per = #list // blocks
        table.move(list, (b - 1) * per + 1, b * per, #part + 1, part)
      end
      local dealt = deal_gpus(part, layout.node_size(part))
      table.move(dealt, 1, #dealt, #workers + 1, workers)
    end
    choices[#choices + 1] = workers
  end
  return choices
end

--- HD: nodes in order of speed, the strongest joined with the weakest; each pair gives two workers
-- with half of both nodes (VVQQ, VVQQ, RRGG, RRGG for V > R > G > Q).
local function hybrid_distribution(nodes)
  local sorted = table.move(nodes, 1, #nodes, 1, {})
  for i = 2, #sorted do -- stable: equal nodes stay in file order
    local node, j = sorted[i], i - 1
    while j >= 1 and sorted[j].flops_per_s < node.flops_per_s do
      sorted[j + 1] = sorted[j]
      j = j - 1
    end
    sorted[j + 1] = node
  end
  local workers = {}
  for i = 1, #sorted // 2 do
    local pair = { sorted[i], sorted[#sorted + 1 - i] }
    local halves = deal_gpus(pair, layout.node_size(pair) % 2 == 0 and 2 or 1)
    table.move(halves, 1, #halves, #workers + 1, workers)
  end
  if #sorted % 2 == 1 then
    local middle = sorted[#sorted // 2 + 1]
    workers[#workers + 1] = { { node = middle, ids = middle.ids } }
  end
  return { workers }
end

local policies = { NP = node_partition, ED = equal_distribution, HD = hybrid_distribution }

-- Partition of one virtual worker, section 7 ----------------------------------------------------

--- GPUs of a worker as a list { kind, id, memory_bytes, flops_per_s }.
local function gpus_of(worker)
  local gpus = {}
  for _, part in ipairs(worker) do
    for _, id in ipairs(part.ids) do
      gpus[#gpus + 1] = { id = id, kind = part.node.kind, memory_bytes = part.node.memory_bytes,
        flops_per_s = part.node.flops_per_s }
    end
  end
  return gpus
end

--- What makes workers equal: the kinds of their GPUs in order.
local function signature(gpus)
  local kinds = {}
  for i, g in ipairs(gpus) do
    kinds[i] = g.kind
  end
  return table.concat(kinds, " ")
end

--- Seconds that one minibatch spends on the wires of a cut: activation forward and gradient
-- backward over the slowest link of the worker.
local function cut_seconds(ctx, gpus, chain)
  local slowest = math.huge
  for i = 2, #gpus do
    slowest = math.min(slowest, ctx.cluster:link(gpus[i - 1].id, gpus[i].id).bandwidth_bytes_per_s)
  end
  return 2 * chain.output_bytes / slowest
end

--- min max over stages of time on the GPU + transfers, GPUs in any order, memory for
-- min(Nm, k - q) minibatches on stage q from 0, each with the weights it began with.
local function partition(ctx, gpus, in_flight, c)
  local k, load, memory, capacity, last = #gpus, {}, {}, {}, nil
  for q, gpu in ipairs(gpus) do
    local chain = prices.chain(ctx, gpu.kind, c)
    load[q], last = chain.times, chain
    capacity[q] = prices.capacity(ctx, gpu) - prices.overhead_bytes(ctx, chain)
    local alive = math.min(in_flight, k - q + 1)
    memory[q] = prices.layer_bytes(ctx, chain, { in_flight = alive, versions = alive })
  end
  local cut, seconds = {}, k > 1 and cut_seconds(ctx, gpus, last) or 0
  for l = 1, last.n - 1 do
    cut[l] = seconds
  end
  for q = 1, k do
    if capacity[q] <= 0 then
      return nil
    end
  end
  return hv.opt.partition {
    n = last.n, parts = k, load = load, memory = memory, capacity = capacity, cut = cut,
    sum = 0, max = 1, order = "free",
  }
end

--- Nm search: the number in flight with the best steady rate min(1 / max, Nm / sum); the smaller
-- of equals. More than k never helps. Above 16 in steps of a quarter.
local function best_in_flight(ctx, gpus, c, limit)
  local best, nm = nil, 0
  local most = math.min(#gpus, limit)
  while nm < most do
    nm = math.min(most, nm + math.max(1, nm // 4 - 3))
    local p = partition(ctx, gpus, nm, c)
    if not p then
      break -- more in flight needs more memory
    end
    local period = math.max(p.max, p.sum / nm)
    if not best or period < best.period * (1 - 1e-12) then
      best = { period = period, in_flight = nm, partition = p }
    end
  end
  return best
end

--- The figure to name when a worker cannot hold the model: what one minibatch needs over all GPUs.
local function too_small(ctx, gpus, c)
  local chain, have = prices.chain(ctx, gpus[1].kind, c), 0
  for _, gpu in ipairs(gpus) do
    have = have + prices.capacity(ctx, gpu)
  end
  local need = prices.bytes(ctx, chain, 1, chain.n, { in_flight = 1 })
  return ("a virtual worker of %d GPUs (%s) cannot hold the model: it needs %.1f GiB with one "
    .. "minibatch, the worker has %.1f GiB and no cut into %d stages fits"):format(
    #gpus, layout.kinds_text(gpus), need / 2 ^ 30, have / 2 ^ 30, #gpus)
end

-- The plan --------------------------------------------------------------------------------------

--- Equal workers joined: { gpus of every copy }.
local function groups_of(workers)
  local groups, by_key = {}, {}
  for _, worker in ipairs(workers) do
    local gpus = gpus_of(worker)
    local key = signature(gpus)
    if not by_key[key] then
      by_key[key] = {}
      groups[#groups + 1] = by_key[key]
    end
    table.insert(by_key[key], gpus)
  end
  return groups
end

--- Stages of `copies` (equal workers) under one partition.
local function stage_rows(ctx, copies, found, c)
  local rows = {}
  for s, range in ipairs(found.stages) do
    local ids = {}
    for i, gpus in ipairs(copies) do
      ids[i] = gpus[found.order[s]].id
    end
    rows[s] = prices.stage_keys(c, {
      devices = ctx.cluster:address(ids), layers = { range[1] - 1, range[2] },
    })
  end
  return rows
end

--- Partition of every group for the common Nm (waves must be equal), or why not.
local function partitions(ctx, groups, c, limit)
  local nm = limit
  for _, group in ipairs(groups) do
    local best = #group[1] <= #ctx.model:layers() and best_in_flight(ctx, group[1], c, limit)
    if not best then
      return nil, too_small(ctx, group[1], c)
    end
    nm = math.min(nm, best.in_flight)
  end
  local found, slowest = {}, 0
  for g, group in ipairs(groups) do
    found[g] = partition(ctx, group[1], nm, c)
    slowest = math.max(slowest, found[g].max, found[g].sum / nm)
  end
  return found, nm, slowest
end

--- One candidate: workers of a policy with this minibatch and recompute.
local function candidate(ctx, workers, c)
  local total = ctx.job.global_batch // c.micro_batch
  if ctx.job.global_batch % c.micro_batch ~= 0 or total < #workers then
    return nil
  end
  local groups = groups_of(workers)
  local found, nm, slowest = partitions(ctx, groups, c, ctx.options.in_flight)
  if not found then
    return nil, nm
  end
  local shares = layout.even(total, #workers) -- waves are equal; what is left over goes first
  return {
    claim_s = shares[1] * slowest,
    build = function()
      local replicas, at = {}, 1
      for g, group in ipairs(groups) do
        local from = 1
        while from <= #group do -- copies with the same number of minibatches are one entry
          local to = from
          while to < #group and shares[at + to - from + 1] == shares[at] do
            to = to + 1
          end
          local copies = layout.slice(group, from, to - from + 1)
          replicas[#replicas + 1] = {
            count = #copies, micro_batches = shares[at],
            stages = stage_rows(ctx, copies, found[g], c),
          }
          at, from = at + #copies, to + 1
        end
      end
      return {
        micro_batch = c.micro_batch, replicas = replicas,
        schedule = { name = "hetpipe", in_flight = nm },
        sync = { kind = "wsp", staleness = ctx.options.distance,
          servers = ctx.options.local_servers and "local" or "sharded" },
      }
    end,
  }
end

local function plan(ctx)
  local nodes = layout.nodes(layout.devices(ctx))
  if #nodes == 0 then
    return nil, ("no device of the cluster computes in %s"):format(ctx.job.precision)
  end
  local wanted = ctx.options.policy == "best" and { "ED", "HD", "NP" } or { ctx.options.policy }
  local list, reason = {}, nil
  for _, policy in ipairs(wanted) do
    for _, workers in ipairs(policies[policy](nodes)) do
      for _, micro_batch in ipairs(layout.powers(ctx.options.micro_batch)) do
        for _, recompute in ipairs { "none", "full" } do
          local made, why = candidate(ctx, workers,
            { tp = 1, micro_batch = micro_batch, recompute = recompute })
          reason = reason or why
          if made then
            made.rank = #list + 1
            list[made.rank] = made
          end
        end
      end
    end
  end
  if #list == 0 then
    return nil, reason or "the global batch gives no minibatch to every virtual worker"
  end
  local best, why = layout.best(list, ctx.options.tries)
  return best, not best and why or nil
end

--- Section 5: everybody goes at the pace of the slowest worker's waves; a worker needs the time of
-- its slowest stage per minibatch, or all stages for every Nm of them.
local function claim(made, ctx)
  made = prices.table_of(made)
  local nm, distance, slowest = made.schedule.in_flight, made.sync.staleness, 0
  for r, replica in ipairs(made.replicas) do
    local max, sum = 0, 0
    for s in ipairs(replica.stages) do
      local pass = prices.stage(ctx, made, r, s)
      max = math.max(max, pass.forward_s + pass.backward_s)
      sum = sum + pass.forward_s + pass.backward_s
    end
    slowest = math.max(slowest, replica.micro_batches * math.max(max, sum / nm))
  end
  return {
    iteration_s = slowest,
    formula = "minibatches x max(P, sum / Nm) of the slowest worker, P = slowest stage (HetPipe, "
      .. "section 7); s_global = (D + 1)(s_local + 1) + s_local - 1 (section 5)",
    terms = { s_local = nm - 1, s_global = global_staleness(nm, distance) },
  }
end

-- Self-test -------------------------------------------------------------------------------------

--- The paper's integer program (section 7) for a fixed order: x[q][l] = 1 when layer l is on q or
-- before it (monotone), minimise P. Returns P.
local function milp(times, n, most)
  local lp, x = hv.opt.lp { sense = "min" }, {}
  local p = lp:var { lower = 0 }
  for q = 1, #times - 1 do
    x[q] = {}
    for l = 1, n do
      x[q][l] = lp:var { lower = 0, upper = 1, integer = true }
      if l > 1 then
        lp:row({ [x[q][l]] = 1, [x[q][l - 1]] = -1 }, "<=", 0)
      end
      if q > 1 then
        lp:row({ [x[q][l]] = 1, [x[q - 1][l]] = -1 }, ">=", 0)
      end
    end
  end
  for q = 1, #times do
    local load, count, constant = {}, {}, q == #times and n or 0
    for l = 1, n do
      if x[q] then
        load[x[q][l]], count[x[q][l]] = times[q], 1
      end
      if q > 1 then
        load[x[q - 1][l]], count[x[q - 1][l]] = -times[q], -1
      end
    end
    load[p] = -1
    lp:row(load, "<=", -times[q] * constant)
    lp:row(count, "<=", (most[q] or n) - constant)
    lp:row(count, ">=", 1 - constant)
  end
  lp:objective { [p] = 1 }
  return lp:solve {}.objective
end

--- The same by the exact partition.
local function exact(times, n, most)
  local load, memory, capacity = {}, {}, {}
  for q, t in ipairs(times) do
    load[q], memory[q], capacity[q] = {}, {}, most[q] or n
    for l = 1, n do
      load[q][l], memory[q][l] = t, 1
    end
  end
  return hv.opt.partition { n = n, parts = #times, load = load, memory = memory,
    capacity = capacity, sum = 0, max = 1 }
end

local function node_named(kind, flops, first, n)
  local ids = {}
  for i = 1, n do
    ids[i] = first + i
  end
  return { kind = kind, flops_per_s = flops, ids = ids, memory_bytes = 1 }
end

local function kinds_of(workers)
  local words = {}
  for i, worker in ipairs(workers) do
    words[i] = signature(gpus_of(worker)):gsub(" ", "")
  end
  return table.concat(words, " ")
end

local function selftest(t)
  local src = "catalogue: hetpipe"
  t.equal("s_global Nm=4 D=0", global_staleness(4, 0), 6, src)
  t.equal("s_global Nm=4 D=4", global_staleness(4, 4), 22, src)
  t.equal("s_global Nm=1 D=0", global_staleness(1, 0), 0, src)
  t.equal("D=0: minibatch that waits for wave 0", first_waiting(4, 0, 0), 7, src)
  t.equal("D=4: minibatch that waits for wave 0", first_waiting(4, 4, 0), 23, src)
  for _, distance in ipairs { 0, 4 } do
    t.equal("it is the first that may miss s_global + 1 updates",
      first_waiting(4, distance, 0), global_staleness(4, distance) + 1, src)
  end
  local free, tight = exact({ 1, 2 }, 6, {}), exact({ 1, 2 }, 6, { 3 })
  t.near("6 layers, times 1 and 2", free.value, 4, 0, src)
  t.equal("cut of 6 layers", free.stages[1][2], 4, src)
  t.near("fast GPU holds 3 layers", tight.value, 6, 0, src)
  t.equal("cut with 3 layers", tight.stages[1][2], 3, src)
  t.near("the same as integer program", milp({ 1, 2 }, 6, {}), 4, 1e-9, src)
  t.near("with 3 layers at most", milp({ 1, 2 }, 6, { 3 }), 6, 1e-9, src)
  for _, times in ipairs { { 1, 2, 3 }, { 3, 1, 2 }, { 2, 2, 5 } } do
    t.near("integer program = exact partition", milp(times, 9, { 4 }), exact(times, 9, { 4 }).value,
      1e-9, "oracle")
  end
  local rate = wave_rate({ 4, 6 }, 0, 1000)
  t.near("fast worker goes at 6 s per wave", rate[1], 6, 0.01, src)
  t.near("slow worker goes at 6 s per wave", rate[2], 6, 0, src)
  t.near("D = 3 does not change the long run", wave_rate({ 4, 6 }, 3, 10000)[1], 6, 0.01, src)
  local nodes = { node_named("V", 4, 0, 4), node_named("R", 3, 4, 4), node_named("G", 2, 8, 4),
    node_named("Q", 1, 12, 4) }
  t.equal("HD", kinds_of(hybrid_distribution(nodes)[1]), "VVQQ VVQQ RRGG RRGG", src)
  t.equal("ED", kinds_of(equal_distribution(nodes)[1]), "VRGQ VRGQ VRGQ VRGQ", src)
  t.equal("NP", kinds_of(node_partition(nodes)[1]), "VVVV RRRR GGGG QQQQ", src)
end

return {
  api = 1, id = "hetpipe", title = "HetPipe", kind = "hetero",
  system = "HetPipe: Enabling Large DNN Training on (Whimpy) Heterogeneous GPU Clusters, ATC 2020",
  reference = "arXiv:2005.14038",
  summary = "Unequal GPUs as pipelined virtual workers, in step by waves with bounded staleness.",
  needs = { model = "layers" },
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
    { key = "tries", type = "integer", default = 8, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
