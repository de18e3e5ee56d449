--- Prices per layer as planners use them: seconds and bytes of runs of layers on one device kind,
-- with the embedding in the first layer and the head in the last, and the memory of a stage.
-- Layers count from 1, runs are inclusive; all figures are remembered for the run.
local inventory = require "inventory"

local prices = {}

local chains, limits = {}, {}

--- Layers from..to on one rank, as hv.cost.stage takes them.
local function rank_of(ctx, kind, q, from, to)
  local tp = q.tp or 1
  return {
    devices = ctx.cluster:address(inventory.first(ctx, kind, tp)), layers = { from - 1, to },
    tp = tp, recompute = q.recompute, sequence_parallel = q.sequence_parallel,
    micro_batch = q.micro_batch, in_flight = 1,
  }
end

--- Their memory, by hv.cost.memory.
local function memory_of(ctx, kind, q, from, to)
  return hv.cost.memory(rank_of(ctx, kind, q, from, to))
end

--- Bytes of weights, gradients and optimizer states.
local function states_bytes(memory)
  return memory.weights + memory.gradients + memory.optimizer
end

--- The layer whose states are taken as typical: the middle one, or where that has no parameters the
-- one with most. `layers` is the table of hv.cost.layers.
local function typical_layer(n, layers)
  local middle = (n + 1) // 2
  local most = layers:bytes(middle, middle, "parameters")
  if most > 0 then
    return middle
  end
  local best = middle
  for l = 1, n do
    local own = layers:bytes(l, l, "parameters")
    if own > most then
      best = l
      most = own
    end
  end
  return best
end

--- Bytes of states, of saved activations and of gradients of each layer; the first has those of
-- the embedding besides, the last those of the head. `ends` has the memory of the first layer, of
-- the last and of all.
local function bytes_by_layer(n, layers, ends, states_per_parameter, gradients_per_parameter)
  local state, saved, gradient = {}, {}, {}
  local function set(l, memory)
    state[l] = states_bytes(memory)
    saved[l] = memory.activation_bytes
    gradient[l] = memory.gradients
  end
  for l = 1, n do
    state[l] = layers:bytes(l, l, "parameters") * states_per_parameter
    saved[l] = layers:bytes(l, l, "saved")
    gradient[l] = layers:bytes(l, l, "parameters") * gradients_per_parameter
  end
  set(1, ends.first)
  set(n, ends.last)
  if n == 1 then
    set(1, ends.all)
  end
  return state, saved, gradient
end

--- Adds to a chain the running sums `state`, `saved` and `gradient` of its layers, what a tied
-- embedding counts twice in a stage with both ends (`tied_state`, `tied_gradient`), the `fixed`
-- bytes of a stage, `last_extra` = transient bytes that the last layer needs more than others, and
-- `part` = shares of the states that ZeRO 1, 2 and 3 shard. Overhead that grows with the states
-- counts as states. `pipelined` are the bytes that a stage with a stage before and behind it needs
-- besides: buffers of its boundaries and the communicators with its neighbours and, under tensor
-- parallelism, for the norm of all gradients; `end_less` are those that the first and the last need
-- less, unless they share a tied embedding; `reduced` those of the group that reduces gradients.
local function add_memory(ctx, chain, kind, q, layers)
  local n = chain.n
  local typical = typical_layer(n, layers)
  local first, middle = memory_of(ctx, kind, q, 1, 1), memory_of(ctx, kind, q, typical, typical)
  local last, all = memory_of(ctx, kind, q, n, n), memory_of(ctx, kind, q, 1, n)
  local middle_states = states_bytes(middle)
  local grown_bytes = states_bytes(all) - middle_states
  local growth = 0 -- of the overhead per byte of states
  if grown_bytes > 0 then
    growth = (all.overhead - middle.overhead) / grown_bytes
  end
  local fixed = middle.overhead - growth * middle_states
  local parameters = math.max(1, layers:bytes(typical, typical, "parameters"))
  local state, saved, gradient = bytes_by_layer(n, layers,
    { first = first, last = last, all = all }, middle_states / parameters,
    middle.gradients / parameters)
  chain.state = { [0] = 0 }
  chain.saved = { [0] = 0 }
  chain.gradient = { [0] = 0 }
  local held = 1 + middle.fragmentation -- bytes that the allocator holds per byte in use
  for l = 1, n do
    chain.state[l] = chain.state[l - 1] + state[l] * (1 + growth)
    chain.saved[l] = chain.saved[l - 1] + saved[l] * held
    chain.gradient[l] = chain.gradient[l - 1] + gradient[l]
  end
  chain.tied_state = math.max(0, chain.state[n] - states_bytes(all) * (1 + growth))
  chain.tied_gradient = math.max(0, chain.gradient[n] - all.gradients)
  chain.fixed = fixed + middle.transient * held
  chain.last_extra = math.max(0, last.transient - middle.transient) * held
  local groups = (q.tp or 1) > 1 and 3 or 2
  chain.pipelined = groups * middle.communicator + middle.boundary * held
  chain.end_less = chain.tied_state > 0 and 0 or middle.communicator
  chain.reduced = middle.communicator
  local whole = math.max(1, middle_states)
  chain.part = { middle.optimizer / whole, middle.gradients / whole, middle.weights / whole }
end

--- The chain of one device kind under { tp, micro_batch, recompute, sequence_parallel }:
-- { n, times = seconds per layer (forward and backward), output_bytes, … }.
-- micro_batch counts sequences on one data-parallel rank.
function prices.chain(ctx, kind, q)
  local key = ("%s/%d/%g/%s/%s"):format(kind, q.tp or 1, q.micro_batch or 1, q.recompute or "none",
    tostring(q.sequence_parallel or false))
  if not chains[key] then
    local layers = hv.cost.layers {
      kinds = { kind }, tp = q.tp, micro_batch = q.micro_batch, recompute = q.recompute,
      sequence_parallel = q.sequence_parallel,
    }
    local chain = {
      n = ctx.model.n_layers, times = {}, sum = { [0] = 0 }, lists = {}, kind = kind, query = q,
      output_bytes = layers:bytes(1, 1, "output"),
    }
    for l = 1, chain.n do
      chain.times[l] = layers:time(l, l, kind, "both")
      chain.sum[l] = chain.sum[l - 1] + chain.times[l]
    end
    add_memory(ctx, chain, kind, q, layers)
    chains[key] = chain
  end
  return chains[key]
end

--- Seconds of layers from..to, forward and backward.
function prices.time(chain, from, to)
  return chain.sum[to] - chain.sum[from - 1]
end

--- Share of the states that stays on a rank under zero over `holders` ranks and with `versions`
-- copies of the weights (asynchronous pipelines).
local function kept_frac(chain, o)
  local zero, holders = o.zero or 0, o.holders or 1
  local frac = ((o.versions or 1) - 1) * chain.part[3]
  for level, part in ipairs(chain.part) do
    if zero >= level then
      frac = frac + part / holders
    else
      frac = frac + part
    end
  end
  return frac
end

--- Bytes that the last layer needs besides, where it is one of the layers up to `to`.
local function last_extra(chain, to)
  return to == chain.n and chain.last_extra or 0
end

--- Bytes that a stage between two others needs besides its layers, as prices.layer_bytes counts
-- them. o.holders as in prices.bytes.
function prices.overhead_bytes(_, chain, o)
  return chain.fixed + chain.pipelined + (o and o.holders == 1 and 0 or chain.reduced)
end

--- Activations of one micro-batch kept for layers from..to.
function prices.saved_bytes(chain, from, to)
  return chain.saved[to] - chain.saved[from - 1] + last_extra(chain, to)
end

--- Weights, gradients and optimizer of layers from..to, with what the allocator adds.
local function states_of(chain, from, to)
  local both_ends = from == 1 and to == chain.n
  return chain.state[to] - chain.state[from - 1] - (both_ends and chain.tied_state or 0)
end

--- Bytes of a stage of layers from..to besides its layers: of a whole model nothing for neighbours.
local function overhead_of(ctx, chain, from, to, o)
  local bytes = prices.overhead_bytes(ctx, chain, o)
  if from == 1 and to == chain.n then
    return bytes - chain.pipelined
  end
  if from == 1 or to == chain.n then
    bytes = bytes - chain.end_less
  end
  return bytes
end

--- Weights, gradients, optimizer and overhead of layers from..to under { zero, holders }. Unless
-- o.holders is 1, a group of ranks reduces the gradients.
function prices.state_bytes(ctx, chain, from, to, o)
  return overhead_of(ctx, chain, from, to, o) + states_of(chain, from, to) * kept_frac(chain, o)
end

--- Peak bytes of a stage with layers from..to under { in_flight, zero, holders }.
function prices.bytes(ctx, chain, from, to, o)
  return prices.state_bytes(ctx, chain, from, to, o)
    + (chain.saved[to] - chain.saved[from - 1]) * (o.in_flight or 1)
    + (from <= to and last_extra(chain, to) or 0)
end

--- The same per layer, without the overhead: a list for hv.opt.partition, not to be changed.
function prices.layer_bytes(_, chain, o)
  local frac, in_flight = kept_frac(chain, o), o.in_flight or 1
  local key = frac .. "/" .. in_flight
  local list = chain.lists[key]
  if list then
    return list
  end
  list = {}
  for l = 1, chain.n do
    list[l] = (chain.state[l] - chain.state[l - 1]) * frac
      + (chain.saved[l] - chain.saved[l - 1]) * in_flight
  end
  list[chain.n] = list[chain.n] + chain.last_extra
  list[1] = math.max(0, list[1] - chain.end_less)
  list[chain.n] = math.max(0, list[chain.n] - chain.end_less)
  chain.lists[key] = list
  return list
end

--- Bytes of the gradients of layers from..to on one rank.
function prices.gradient_bytes(_, chain, from, to)
  local both_ends = from == 1 and to == chain.n
  return chain.gradient[to] - chain.gradient[from - 1] - (both_ends and chain.tied_gradient or 0)
end

--- Seconds of the optimizer's step over layers from..to on one rank that holds their states whole.
-- @function prices.update
-- @tparam handle ctx the run's input
-- @tparam table chain {kind, query, state, n, …}, as prices.chain gives it
-- @tparam integer from first layer
-- @tparam integer to last layer
-- @treturn number seconds
-- @units seconds; layers from 1, inclusive
-- @raise none
-- @usage local prices = require "prices"
-- local chain = prices.chain(ctx, ctx.cluster:devices()[1].kind, { tp = 1, micro_batch = 1 })
-- assert(prices.update(ctx, chain, 1, chain.n) > prices.update(ctx, chain, 1, 1))
function prices.update(ctx, chain, from, to)
  if not chain.update then
    local all = hv.cost.stage(rank_of(ctx, chain.kind, chain.query, 1, chain.n))
    chain.update = all.optimizer_s / math.max(1, chain.state[chain.n])
  end
  return (chain.state[to] - chain.state[from - 1]) * chain.update
end

--- Bytes that a plan may use of a device (or of those of a node or stage: a row with `kind`).
function prices.capacity(ctx, row)
  local kind = row.kind
  limits[kind] = limits[kind] or memory_of(ctx, kind, { tp = 1, micro_batch = 1 }, 1, 1).limit_bytes
  return limits[kind]
end

--- Seconds of an all-reduce of so many bytes over these devices.
local function all_reduce_s(bytes, ids)
  if #ids < 2 then
    return 0
  end
  local cost = hv.cost.collective { op = "all_reduce", devices = ids, bytes = bytes }
  return cost and cost.time_s or 0
end

--- Seconds of the all-reduce of the gradients of layers from..to over these devices.
function prices.sync(ctx, chain, from, to, ids)
  return all_reduce_s(prices.gradient_bytes(ctx, chain, from, to), ids)
end

--- "stage 3 needs 93.1 GiB on T4-16GB, which has 14.6 GiB": `stage` counts from 1, the text from
-- 0 as plan files and the judge do; rows have `kind`.
function prices.short(ctx, stage, bytes, row)
  return ("stage %d needs %.1f GiB on %s, which has %.1f GiB"):format(stage - 1, bytes / 2 ^ 30,
    row.kind, prices.capacity(ctx, row) / 2 ^ 30)
end

--- A plan's stage from { tp, recompute, zero, sequence_parallel } and the other keys; defaults are
-- left out.
function prices.stage_keys(c, keys)
  keys.tp = c.tp
  keys.recompute = c.recompute ~= "none" and c.recompute or nil
  keys.zero = (c.zero or 0) > 0 and c.zero or nil
  keys.sequence_parallel = c.sequence_parallel or nil
  return keys
end

--- Kind of every device by number.
function prices.kinds(ctx)
  return setmetatable({}, { __index = function(_, id) return inventory.kind(ctx, id) end })
end

--- Tensor-parallel degree of a plan's stage, and what the rank with most has of a layer.
-- @function prices.degree
-- @tparam table stage a stage with the keys of a plan file
-- @treturn integer the degree, then the largest share
-- @units shares
-- @raise none
-- @usage local degree, most = require("prices").degree { tp = { shares = { 3, 1 } } }
-- assert(degree == 2 and most == 0.75)
function prices.degree(stage)
  local tp = stage.tp or 1
  if type(tp) ~= "table" then
    return tp, 1 / tp
  end
  local shares = tp.shares or {}
  local sum, largest = 0, 0
  for _, share in ipairs(shares) do
    sum = sum + share
    largest = math.max(largest, share)
  end
  local degree = math.max(1, tp.degree or #shares)
  if sum > 0 then
    return degree, largest / sum
  end
  return degree, 1 / degree
end

--- The chain whose gradients those of a plan's stage are, and which part of them its largest tensor
-- shard has: 1, but where shards are unequal the chain is whole, as their devices may be of several
-- kinds.
-- @function prices.shard
-- @tparam handle ctx the run's input
-- @tparam table stage {tp, …}, with the keys of a plan file
-- @tparam string kind of its devices
-- @treturn table {n, kind, …} as prices.chain gives it, then the part
-- @units shares
-- @raise a kind that the cluster has not
-- @usage local kind = ctx.cluster:devices()[1].kind
-- assert(select(2, require("prices").shard(ctx, { tp = { shares = { 3, 1 } } }, kind)) == 0.75)
function prices.shard(ctx, stage, kind)
  local degree, largest = prices.degree(stage)
  if type(stage.tp) == "table" then
    return prices.chain(ctx, kind, { tp = 1, micro_batch = 1 }), largest
  end
  return prices.chain(ctx, kind, { tp = degree, micro_batch = 1 }), 1
end

--- Seconds of the all-reduce of the gradients of a stage, with all its chunks, over its
-- data-parallel ranks and copies, the stage being one of a plan table; kinds as from prices.kinds.
function prices.stage_sync(ctx, stage, kinds)
  local ids = ctx.cluster:ids(stage.devices)
  local heads = {} -- first device of each tensor group
  for i = 1, #ids, (prices.degree(stage)) do
    heads[#heads + 1] = ids[i]
  end
  local chain, part = prices.shard(ctx, stage, kinds[ids[1]])
  local ranges = type(stage.layers[1]) == "number" and { stage.layers } or stage.layers
  local bytes = 0
  for _, range in ipairs(ranges) do
    bytes = bytes + prices.gradient_bytes(ctx, chain, range[1] + 1, range[2])
  end
  return part * all_reduce_s(bytes, heads)
end

--- A plan, given as a handle or as a table, as a table.
function prices.table_of(made)
  return type(made) == "userdata" and made:table() or made
end

--- hv.cost.stage of stage s of replica r of a plan table.
function prices.stage(_, made, r, s)
  local replica = made.replicas[r]
  local q = {}
  for key, value in pairs(replica.stages[s]) do
    q[key] = value
  end
  q.micro_batch = q.micro_batch or replica.micro_batch or made.micro_batch
  q.count = replica.count
  q.after = nil -- it is priced alone
  return hv.cost.stage(q)
end

--- Seconds of the stages of replica r of a plan table, forward and backward.
function prices.stage_times(ctx, made, r)
  local stage_s = {}
  for s in ipairs(made.replicas[r].stages) do
    local pass = prices.stage(ctx, made, r, s)
    stage_s[s] = pass.forward_s + pass.backward_s
  end
  return stage_s
end

--- Eq-P with the stage times of a plan's first replica, and the largest all-reduce: total, the
-- slowest stage, the all-reduce; in seconds.
function prices.claim_terms(ctx, made)
  made = prices.table_of(made)
  local replica, kinds = made.replicas[1], prices.kinds(ctx)
  local sum_s, slowest_s, sync_s = 0, 0, 0
  for s, stage in ipairs(replica.stages) do
    local pass = prices.stage(ctx, made, 1, s)
    local stage_s = pass.forward_s + pass.backward_s
    sum_s = sum_s + stage_s
    slowest_s = math.max(slowest_s, stage_s)
    sync_s = math.max(sync_s, prices.stage_sync(ctx, stage, kinds))
  end
  return sum_s + (replica.micro_batches - 1) * slowest_s + sync_s, slowest_s, sync_s
end

return prices
