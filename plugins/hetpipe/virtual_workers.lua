--- Virtual workers of unequal GPUs: which GPUs form one, and how its pipeline is cut when every
-- stage keeps the weights of each minibatch in flight. A worker is a list of { node, ids }.
local chain_program = require "chain_program"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"

local virtual_workers = {}

local MOST_BINARIES = 512 -- of an integer program

--- Every node is a worker: one choice. Choices are { n = workers, make = function that gives their
-- list }, so that a large cluster's lists need not exist all at the same time.
function virtual_workers.per_node(nodes)
  return { { n = #nodes, make = function()
    local list = {}
    for i, node in ipairs(nodes) do
      list[i] = { { node = node, ids = node.ids } }
    end
    return list
  end } }
end

--- Mean seconds per wave of workers with these wave times after `waves` waves: a worker begins
-- wave c when it has ended wave c - 1 and everybody has pushed wave c - D - 1.
function virtual_workers.wave_rate(wave_s, distance, waves)
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

--- Updates of all workers that a minibatch misses at most under Wave Synchronous Parallel (HetPipe,
-- section 5): s_global = (D + 1)(s_local + 1) + s_local - 1 with s_local = Nm - 1.
-- @function virtual_workers.global_staleness
-- @tparam integer in_flight Nm, minibatches of a worker that run at a time: a wave
-- @tparam integer distance D, waves that a worker may be ahead
-- @treturn integer s_global
-- @units minibatches
-- @raise none
-- @usage assert(require("virtual_workers").global_staleness(4, 0) == 6)
function virtual_workers.global_staleness(in_flight, distance)
  local s_local = in_flight - 1
  return (distance + 1) * (s_local + 1) + s_local - 1
end

--- The first minibatch (from 0) that waits for wave `c` of every worker: (c + D + 2)·Nm - 1.
-- @function virtual_workers.first_waiting
-- @tparam integer in_flight Nm, minibatches of a worker that run at a time: a wave
-- @tparam integer distance D, waves that a worker may be ahead
-- @tparam integer c wave, from 0
-- @treturn integer number of the minibatch
-- @units none: numbers from 0
-- @raise none
-- @usage assert(require("virtual_workers").first_waiting(4, 0, 0) == 7)
function virtual_workers.first_waiting(in_flight, distance, c)
  return (c + distance + 2) * in_flight - 1
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
  local list = {}
  for w = 1, n do
    list[w] = {}
    for i, node in ipairs(nodes) do
      local per = #node.ids // n
      list[w][i] = { node = node, ids = numbers.slice(node.ids, (w - 1) * per + 1, per) }
    end
  end
  return list
end

--- Equal workers, one GPU (or an equal part) of every node. A large cluster is first cut into
-- blocks with the same mix of nodes: one choice of workers per number of blocks.
function virtual_workers.equal(nodes)
  local lists, common, choices, size = alike(nodes), 0, {}, inventory.node_size(nodes)
  for _, list in ipairs(lists) do
    common = numbers.gcd(common, #list)
  end
  local divisors = numbers.divisors(common)
  for d = #divisors, 1, -1 do
    local blocks = divisors[d]
    local function make()
      local made = {}
      for b = 1, blocks do
        local part = {}
        for _, list in ipairs(lists) do
          local per = #list // blocks
          table.move(list, (b - 1) * per + 1, b * per, #part + 1, part)
        end
        local dealt = deal_gpus(part, inventory.node_size(part))
        table.move(dealt, 1, #dealt, #made + 1, made)
      end
      return made
    end
    choices[#choices + 1] = { n = blocks * size, make = make }
  end
  return choices
end

--- Equal workers of several GPUs of every node, for models that one of each does not hold: a choice
-- for every smaller number of workers that divides what nodes have, most workers first.
-- @function virtual_workers.larger
-- @tparam table nodes list as inventory.nodes gives it
-- @treturn table list of choices {n, make}
-- @units none
-- @raise none
-- @usage local c = require("virtual_workers").larger { { ids = { 1, 2, 3, 4 } }, { ids = { 5, 6, 7, 8 } } }
-- assert(#c == 2 and c[1].n == 2 and #c[1].make()[1][2].ids == 2)
function virtual_workers.larger(nodes)
  local choices, divisors = {}, numbers.divisors(inventory.node_size(nodes))
  for d = #divisors - 1, 1, -1 do
    choices[#choices + 1] = { n = divisors[d],
      make = function() return deal_gpus(nodes, divisors[d]) end }
  end
  return choices
end

--- Nodes in order of speed, the strongest joined with the weakest; each pair gives two workers
-- with half of both nodes (VVQQ, VVQQ, RRGG, RRGG for V > R > G > Q).
function virtual_workers.hybrid(nodes)
  local sorted, at = {}, {}
  for i, node in ipairs(nodes) do
    sorted[i], at[node] = node, i
  end
  table.sort(sorted, function(a, b) -- equal nodes stay in file order
    return a.flops_per_s > b.flops_per_s or a.flops_per_s == b.flops_per_s and at[a] < at[b]
  end)
  local function halves(i)
    local pair = { sorted[i], sorted[#sorted + 1 - i] }
    return pair, inventory.node_size(pair) % 2 == 0 and 2 or 1
  end
  local n = #sorted % 2
  for i = 1, #sorted // 2 do
    n = n + select(2, halves(i))
  end
  return { { n = n, make = function()
    local list = {}
    for i = 1, #sorted // 2 do
      local dealt = deal_gpus(halves(i))
      table.move(dealt, 1, #dealt, #list + 1, list)
    end
    if #sorted % 2 == 1 then
      local middle = sorted[#sorted // 2 + 1]
      list[#list + 1] = { { node = middle, ids = middle.ids } }
    end
    return list
  end } }
end

--- GPUs of a worker as a list { kind, id, memory_bytes, flops_per_s }.
function virtual_workers.gpus(worker)
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
function virtual_workers.signature(gpus)
  local kinds = {}
  for i, g in ipairs(gpus) do
    kinds[i] = g.kind
  end
  return table.concat(kinds, " ")
end

--- Seconds that one minibatch spends on the wires of every cut between neighbours of a list:
-- activation forward and gradient backward.
local function cut_seconds(ctx, gpus, chain)
  local list, least, most = {}, math.huge, 0
  for i = 2, #gpus do
    list[i - 1] = 2 * chain.output_bytes / ctx.cluster:link(gpus[i - 1].id,
      gpus[i].id).bandwidth_bytes_per_s
    least, most = math.min(least, list[i - 1]), math.max(most, list[i - 1])
  end
  return list, least, most
end

--- The instance of hv.opt.partition for these GPUs in order; nil where one has no room for layers.
local function instance(ctx, gpus, in_flight, c)
  local k = #gpus
  local p = { parts = k, load = {}, memory = {}, capacity = {}, sum = 0, max = 1 }
  for q, gpu in ipairs(gpus) do
    local chain = prices.chain(ctx, gpu.kind, c)
    p.load[q], p.n, p.chain = chain.times, chain.n, chain
    p.capacity[q] = prices.capacity(ctx, gpu) - prices.overhead_bytes(ctx, chain) - (c.reserve or 0)
    if p.capacity[q] <= 0 then
      return nil
    end
    local alive = math.min(in_flight, k - q + 1)
    p.memory[q] = prices.layer_bytes(ctx, chain, { in_flight = alive, versions = alive })
  end
  return p
end

--- The same as an integer program by lp_solve: {stages, max, sum}, nil where none fits.
local function by_program(p)
  local r = chain_program.solve(p)
  if not r then
    return nil
  end
  r.max, r.sum = 0, 0
  for s, range in ipairs(r.stages) do
    local value = 0
    for l = range[1], range[2] do
      value = value + p.load[s][l]
    end
    if s > 1 then
      value = value + p.cut[s - 1][range[1] - 1]
    end
    if s < p.parts then
      value = value + p.cut[s][range[2]]
    end
    r.max, r.sum = math.max(r.max, value), r.sum + value
  end
  return r
end

--- Solves one order of the GPUs (all of them where `order` is nil, with the slowest wire for every
-- cut).
local function solved(ctx, gpus, order, in_flight, c)
  local listed = {}
  for s = 1, #gpus do
    listed[s] = gpus[order and order[s] or s]
  end
  local p, cut = instance(ctx, listed, in_flight, c), {}
  if not p then
    return nil
  end
  local wire, _, most = cut_seconds(ctx, listed, p.chain)
  p.chain = nil
  for s = 1, order and #gpus - 1 or 1 do
    cut[s] = {}
    for l = 1, p.n - 1 do
      cut[s][l] = order and wire[s] or most
    end
  end
  p.cut, p.order = #gpus > 1 and (order and cut or cut[1]) or nil, order and "fixed" or "free"
  local program = c.program and order and (p.parts - 1) * p.n <= MOST_BINARIES
  local found = program and by_program(p) or hv.opt.partition(p)
  if found and order then
    found.order = order
  end
  return found
end

--- min max over stages of time on the GPU + transfers, GPUs in any order, memory for min(Nm, k - q)
-- minibatches on stage q from 0, each with the weights it began with. The best order is found with
-- the slowest wire for all cuts, then priced with the wires it has, beside the order of the nodes
-- and its reverse.
-- @function virtual_workers.partition
-- @tparam handle ctx the run's input
-- @tparam table gpus list of {kind, id}
-- @tparam integer in_flight Nm
-- @tparam table c {tp = 1, micro_batch, recompute, reserve = bytes of a GPU that are left alone,
-- program = true: the layers in the best order by the integer program of chain_program.solve, where
-- that is small}
-- @treturn table {stages, order = positions in gpus, max, sum, …} as hv.opt.partition gives it; nil
-- where none fits
-- @units seconds
-- @raise a kind that the cluster has not
-- @usage local d = ctx.cluster:devices()[1]
-- print(require("virtual_workers").partition(ctx, { d }, 1, { tp = 1, micro_batch = 1, recompute = "full" }))
function virtual_workers.partition(ctx, gpus, in_flight, c)
  local best = solved(ctx, gpus, nil, in_flight, c)
  if not best then
    return nil
  end
  local _, least, most = cut_seconds(ctx, gpus, prices.chain(ctx, gpus[1].kind, c))
  if c.program then
    return solved(ctx, gpus, best.order, in_flight, c) or best
  end
  if most == 0 or least == most then
    return best
  end
  local forward, back = {}, {}
  for s = 1, #gpus do
    forward[s], back[s] = s, #gpus + 1 - s
  end
  for _, order in ipairs { best.order, forward, back } do
    local found = solved(ctx, gpus, order, in_flight, c)
    if found and (found.max < best.max or found.max == best.max and found.sum < best.sum) then
      best = found
    end
  end
  return best
end

--- Nm search: the number in flight with the best steady rate min(1 / max, Nm / sum); the smaller
-- of equals. More than k never helps. Above 16 in steps of a quarter.
function virtual_workers.in_flight(ctx, gpus, c, limit)
  local best, nm = nil, 0
  local most = math.min(#gpus, limit)
  while nm < most do
    nm = math.min(most, nm + math.max(1, nm // 4 - 3))
    local p = virtual_workers.partition(ctx, gpus, nm, c)
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

--- The figure to name when a worker cannot hold the model: what one minibatch needs over all GPUs,
-- and how many times what it has that is.
function virtual_workers.shortage(ctx, gpus, c)
  local chain, have = prices.chain(ctx, gpus[1].kind, c), 0
  for _, gpu in ipairs(gpus) do
    have = have + prices.capacity(ctx, gpu)
  end
  local need = prices.bytes(ctx, chain, 1, chain.n, { in_flight = 1 })
  return ("a virtual worker of %d GPU%s (%s) cannot hold the model: it needs %.1f GiB with one "
      .. "minibatch, the worker has %.1f GiB and no cut into %d stages fits"):format(#gpus,
        #gpus == 1 and "" or "s",
        inventory.kinds_text(gpus), need / 2 ^ 30, have / 2 ^ 30, #gpus), need / have
end

--- Equal workers joined: { gpus of every copy }.
function virtual_workers.groups(list)
  local groups, by_key = {}, {}
  for _, worker in ipairs(list) do
    local gpus = virtual_workers.gpus(worker)
    local key = virtual_workers.signature(gpus)
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

--- Replica entries of the groups under `found` (a partition each): equal workers with the same
-- number of minibatches are copies of one entry; `shares` has a number for every worker.
function virtual_workers.replicas(ctx, groups, found, shares, c)
  local replicas, at = {}, 1
  for g, group in ipairs(groups) do
    local from = 1
    while from <= #group do
      local to = from
      while to < #group and shares[at + to - from + 1] == shares[at] do
        to = to + 1
      end
      local copies = numbers.slice(group, from, to - from + 1)
      replicas[#replicas + 1] = {
        count = #copies, micro_batches = shares[at],
        stages = stage_rows(ctx, copies, found[g], c),
      }
      at, from = at + #copies, to + 1
    end
  end
  return replicas
end

return virtual_workers
