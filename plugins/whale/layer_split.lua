-- Every layer split over the devices of a group in unequal shards (Whale, section 3.3.1: the split
-- annotation, under the same rule as shares of the batch).
local deal = require "deal"
local numbers = require "numbers"
local pipeline_stages = require "pipeline_stages"
local prices = require "prices"
local ranks = require "ranks"

local layer_split = {}

local ANY_UNITS = 64 -- units of layers that name no heads

--- Number of equal units into which tensor parallelism can cut every layer: whole heads, and whole
-- heads of keys and values. Layers that name no heads can be cut anywhere, here into 64 units.
function layer_split.units(layers)
  local units = 0
  for _, layer in ipairs(layers) do
    units = numbers.gcd(units, numbers.gcd(layer.heads or 0, layer.kv_heads or 0))
  end
  if units > 0 then
    return units
  end
  return ANY_UNITS
end

--- Devices by kind: lists of { id, kind, flops_per_s }, most memory first, node by node.
local function devices_by_kind(nodes)
  local by_kind = {}
  local lists = {}
  for _, run in ipairs(pipeline_stages.runs(nodes)) do
    for _, node in ipairs(run) do
      local list = by_kind[node.kind]
      if not list then
        list = {}
        by_kind[node.kind] = list
        lists[#lists + 1] = list
      end
      for _, id in ipairs(node.ids) do
        list[#list + 1] = { id = id, kind = node.kind, flops_per_s = node.flops_per_s }
      end
    end
  end
  return lists
end

--- `count` equal groups of devices { id, kind, flops_per_s }, each with its part of every kind;
-- `count` divides the devices of every kind.
function layer_split.groups(nodes, count)
  local lists = devices_by_kind(nodes)
  local groups = {}
  for g = 1, count do
    groups[g] = {}
    for _, list in ipairs(lists) do
      local part = numbers.slice(list, (g - 1) * (#list // count) + 1, #list // count)
      table.move(part, 1, #part, #groups[g] + 1, groups[g])
    end
  end
  return groups
end

--- Possible numbers of groups: the divisors that the device counts of all kinds share, largest
-- first.
function layer_split.counts(nodes)
  local by_kind = {}
  for _, node in ipairs(nodes) do
    by_kind[node.kind] = (by_kind[node.kind] or 0) + #node.ids
  end
  local common = 0
  for _, n in pairs(by_kind) do
    common = numbers.gcd(common, n)
  end
  local list = {}
  for i, n in ipairs(numbers.divisors(common)) do
    list[i] = n
  end
  table.sort(list, function(a, b) return a > b end)
  return list
end

--- The stage of all groups together with these shares inside each, and the sequences of a step.
local function stage_of(ctx, c, groups, shares)
  local ids = {}
  for _, group in ipairs(groups) do
    for _, device in ipairs(group) do
      ids[#ids + 1] = device.id
    end
  end
  local step = c.step or ctx.job.global_batch // c.micro_batches
  local place = { devices = ctx.cluster:address(ids), layers = { 0, ctx.model.n_layers } }
  if #groups > 1 then
    place.dp = #groups
  end
  if step % #groups ~= 0 then
    place.shares = numbers.even(step, #groups)
  end
  local stage = prices.stage_keys({ recompute = c.recompute, zero = c.zero,
    sequence_parallel = c.sequence_parallel,
    tp = { degree = #groups[1], shares = shares } }, place)
  return stage, step
end

--- Shares of a group of `size` with `n` units on the rank `at`, one unit on every other rank and
-- what is left on one of them.
local function probe(size, units, at, n)
  local shares = {}
  for i = 1, size do
    shares[i] = i == at and n or 1
  end
  shares[at == 1 and 2 or 1] = units - n - (size - 2)
  return shares
end

--- Memory of the rank `at` with `n` of the units, as hv.cost.memory gives it.
local function memory_with(ctx, c, groups, units, at, n)
  local query, step = stage_of(ctx, c, groups, probe(#groups[1], units, at, n))
  query.micro_batch = step
  query.tp_rank = at
  return hv.cost.memory(query)
end

--- Load item of the rank `at`: bytes of one unit from the least and the largest share; what does
-- not shrink with the share is fixed.
local function item_of(ctx, c, groups, units, at)
  local most = units - #groups[1] + 1
  local with_one = memory_with(ctx, c, groups, units, at, 1)
  local with_most = memory_with(ctx, c, groups, units, at, most)
  local unit = with_one.peak_bytes
  if most > 1 then
    unit = (with_most.peak_bytes - with_one.peak_bytes) / (most - 1)
  end
  return { speed = groups[1][at].flops_per_s, cap = with_most.limit_bytes,
    fixed = with_one.peak_bytes - unit, unit = unit }
end

--- Load items of the ranks of a group; ranks of one kind have the figures of the first of them.
local function items_of(ctx, c, groups, units)
  local items = {}
  local known = {}
  for i, device in ipairs(groups[1]) do
    known[device.kind] = known[device.kind] or item_of(ctx, c, groups, units, i)
    local item = known[device.kind]
    items[i] = { speed = item.speed, cap = item.cap, fixed = item.fixed, unit = item.unit }
  end
  return items
end

--- The candidate { claim_s, build, shares } that splits every layer over the devices of a group, in
-- whole heads by speed and memory; groups share the batch evenly. nil where the layers have too few
-- units; nil, the reason, and the factor by which memory is short. `c` is { micro_batches,
-- recompute, zero, sequence_parallel }.
function layer_split.candidate(ctx, c, groups)
  local size = #groups[1]
  local units = layer_split.units(ctx.model:layers())
  if size < 2 or units < size then
    return nil
  end
  local items = items_of(ctx, c, groups, units)
  local ok, short = deal.deal(items, units, 1)
  if not ok then
    return nil, ranks.shortage(ctx, 1, short and items[short], groups[1][short])
  end
  local shares = deal.counts(items)
  local stage, step = stage_of(ctx, c, groups, shares)
  local made = { micro_batch = step, schedule = { name = "1f1b" },
    replicas = { { micro_batches = c.micro_batches, stages = { stage } } } }
  return { claim_s = (prices.claim_terms(ctx, made)), build = function() return made end,
    shares = shares }
end

--- Peak bytes of the rank `at` of a group with these shares and `load` sequences, and its limit.
local function bytes_of(ctx, c, groups, shares, at, load)
  local query = stage_of(ctx, c, groups, shares)
  query.shares = nil
  query.micro_batch = load * #groups
  query.tp_rank = at
  local memory = hv.cost.memory(query)
  return memory.peak_bytes, memory.limit_bytes
end

--- The rank of a group that has room for fewest sequences, as a load item of the group: a unit is a
-- sequence.
local function group_item(ctx, c, groups, shares, load)
  local tightest, least
  for at in ipairs(groups[1]) do
    local bytes, cap = bytes_of(ctx, c, groups, shares, at, load)
    local unit = math.max(1, bytes_of(ctx, c, groups, shares, at, load + 1) - bytes)
    local item = { cap = cap, unit = unit, fixed = bytes - load * unit }
    local room = (cap - item.fixed) / unit
    if not least or room < least then
      tightest, least = item, room
    end
  end
  return tightest
end

--- The split of every layer over the devices of groups that take `load` sequences of a step each,
-- by speed and memory: { tp = as in plan files, sequence_parallel, item = load item of a group };
-- nil, the reason, and the factor by which memory is short. `c` is { micro_batches, recompute, zero
-- }.
function layer_split.balance(ctx, c, groups, load)
  local size = #groups[1]
  local units = layer_split.units(ctx.model:layers())
  local own = { micro_batches = c.micro_batches, recompute = c.recompute, zero = c.zero,
    sequence_parallel = ctx.job.sequence % size == 0, step = load * #groups }
  local items = items_of(ctx, own, groups, units)
  local ok, short = deal.deal(items, units, 1)
  if not ok then
    return nil, ranks.shortage(ctx, 1, short and items[short], groups[1][short])
  end
  local shares = deal.counts(items)
  return { tp = { degree = size, shares = shares }, sequence_parallel = own.sequence_parallel,
    item = group_item(ctx, own, groups, shares, load) }
end

return layer_split
