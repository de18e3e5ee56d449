-- The cut of a model over the GPUs of a virtual worker, one GPU per stage, with Nm minibatches in
-- flight (HetPipe, sections 4 and 7): the slowest stage is minimised, and every stage keeps the
-- weights of each of its minibatches. `gpus` is a list of { kind, id }. `c` is { tp = 1,
-- micro_batch, recompute, reserve = bytes of a GPU that are left unused }.
local chain_program = require "chain_program"
local inventory = require "inventory"
local prices = require "prices"

local partition = {}

local MOST_BINARIES = 512 -- of an integer program
local ROUNDING = 1e-12    -- relative difference of periods that counts as equal

--- Seconds that one minibatch spends on the link of every cut between neighbours, activation
-- forward and gradient backward; then the least and the largest.
local function cut_seconds(ctx, gpus, chain)
  local list = {}
  local least_s = math.huge
  local most_s = 0
  for i = 2, #gpus do
    local link = ctx.cluster:link(gpus[i - 1].id, gpus[i].id)
    list[i - 1] = 2 * chain.output_bytes / link.bandwidth_bytes_per_s
    least_s = math.min(least_s, list[i - 1])
    most_s = math.max(most_s, list[i - 1])
  end
  return list, least_s, most_s
end

--- The instance of hv.opt.partition for these GPUs in order, and a price chain of the model; nil
-- where a GPU has no room for layers. Stage q (from 1) of k has min(Nm, k - q + 1) minibatches.
local function instance_of(ctx, gpus, in_flight, c)
  local k = #gpus
  local instance = { parts = k, load = {}, memory = {}, capacity = {}, sum = 0, max = 1 }
  local chain
  for q, gpu in ipairs(gpus) do
    chain = prices.chain(ctx, gpu.kind, c)
    instance.load[q] = chain.times
    instance.n = chain.n
    instance.capacity[q] = prices.capacity(ctx, gpu) - prices.overhead_bytes(ctx, chain)
      - (c.reserve or 0)
    if instance.capacity[q] <= 0 then
      return nil
    end
    local alive = math.min(in_flight, k - q + 1)
    instance.memory[q] = prices.layer_bytes(ctx, chain, { in_flight = alive, versions = alive })
  end
  return instance, chain
end

--- Times that every cut position of an instance takes on a link.
local function same_for_all(instance, seconds)
  local list = {}
  for l = 1, instance.n - 1 do
    list[l] = seconds
  end
  return list
end

--- Seconds of stage s with these layers: the GPU's work and the transfers in and out.
local function stage_s(instance, s, first, last)
  local value = 0
  for l = first, last do
    value = value + instance.load[s][l]
  end
  if s > 1 then
    value = value + instance.cut[s - 1][first - 1]
  end
  if s < instance.parts then
    value = value + instance.cut[s][last]
  end
  return value
end

--- The solution { stages, max, sum } by the paper's integer program (lp_solve); nil where none
-- fits.
local function by_program(instance)
  local found = chain_program.solve(instance)
  if not found then
    return nil
  end
  found.max = 0
  found.sum = 0
  for s, range in ipairs(found.stages) do
    local value = stage_s(instance, s, range[1], range[2])
    found.max = math.max(found.max, value)
    found.sum = found.sum + value
  end
  return found
end

--- The best cut with the GPUs in any order, every cut with the slowest link of the list.
local function in_any_order(ctx, gpus, in_flight, c)
  local instance, chain = instance_of(ctx, gpus, in_flight, c)
  if not instance then
    return nil
  end
  if #gpus > 1 then
    local _, _, most_s = cut_seconds(ctx, gpus, chain)
    instance.cut = same_for_all(instance, most_s)
  end
  instance.order = "free"
  return hv.opt.partition(instance)
end

--- The best cut with the GPUs in this order (positions in `gpus`), every cut with its own link; by
-- the integer program with `program`, where that is small.
local function in_order(ctx, gpus, order, in_flight, c, program)
  local listed = {}
  for s, position in ipairs(order) do
    listed[s] = gpus[position]
  end
  local instance, chain = instance_of(ctx, listed, in_flight, c)
  if not instance then
    return nil
  end
  if #gpus > 1 then
    instance.cut = {}
    for s, seconds in ipairs(cut_seconds(ctx, listed, chain)) do
      instance.cut[s] = same_for_all(instance, seconds)
    end
  end
  instance.order = "fixed"
  local found
  if program and (instance.parts - 1) * instance.n <= MOST_BINARIES then
    found = by_program(instance)
  end
  found = found or hv.opt.partition(instance)
  if found then
    found.order = order
  end
  return found
end

--- The best of the orders best.order, that of the nodes, and its reverse, with the links they have.
local function best_with_links(ctx, gpus, best, in_flight, c)
  local forward = {}
  local backward = {}
  for s = 1, #gpus do
    forward[s] = s
    backward[s] = #gpus + 1 - s
  end
  for _, order in ipairs { best.order, forward, backward } do
    local found = in_order(ctx, gpus, order, in_flight, c)
    if found and (found.max < best.max or found.max == best.max and found.sum < best.sum) then
      best = found
    end
  end
  return best
end

--- The partition { stages, order = positions in gpus, max, sum } with the least slowest stage,
-- which counts its transfers; nil where none fits. The best order is found with the slowest link
-- for all cuts, then priced with the links it has, beside the order of the nodes and its reverse.
-- With `program` the layers are cut in the best order by the paper's integer program, where that is
-- small.
function partition.of(ctx, gpus, in_flight, c, program)
  local best = in_any_order(ctx, gpus, in_flight, c)
  if not best then
    return nil
  end
  if program then
    return in_order(ctx, gpus, best.order, in_flight, c, program) or best
  end
  local _, least_s, most_s = cut_seconds(ctx, gpus, prices.chain(ctx, gpus[1].kind, c))
  if most_s == 0 or least_s == most_s then
    return best
  end
  return best_with_links(ctx, gpus, best, in_flight, c)
end

--- The number Nm of minibatches in flight with the best steady period max(max, sum / Nm), the
-- smaller of equals; nil where no partition fits. More than one per GPU, or than `limit`, is not
-- tried; above 16 the steps are a quarter.
function partition.in_flight(ctx, gpus, c, limit)
  local best_period_s
  local best
  local most = math.min(#gpus, limit)
  local nm = 0
  while nm < most do
    nm = math.min(most, nm + math.max(1, nm // 4 - 3))
    local found = partition.of(ctx, gpus, nm, c)
    if not found then
      break -- more in flight need more memory
    end
    local period_s = math.max(found.max, found.sum / nm)
    if not best or period_s < best_period_s * (1 - ROUNDING) then
      best_period_s = period_s
      best = nm
    end
  end
  return best
end

--- The reason why a worker cannot hold the model, and the factor by which one minibatch needs more
-- memory than all its GPUs have.
function partition.shortage(ctx, gpus, c)
  local have_bytes = 0
  for _, gpu in ipairs(gpus) do
    have_bytes = have_bytes + prices.capacity(ctx, gpu)
  end
  local chain = prices.chain(ctx, gpus[1].kind, c)
  local need_bytes = prices.bytes(ctx, chain, 1, chain.n, { in_flight = 1 })
  return ("a virtual worker of %d GPU%s (%s) cannot hold the model: it needs %.1f GiB with one "
      .. "minibatch, the worker has %.1f GiB and no cut into %d stages fits"):format(#gpus,
        #gpus == 1 and "" or "s", inventory.kinds_text(gpus), need_bytes / 2 ^ 30,
        have_bytes / 2 ^ 30, #gpus), need_bytes / have_bytes
end

return partition
