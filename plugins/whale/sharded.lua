-- One part of the model on many unequal devices at once: every device runs all of it on its share
-- of the batch, or holds its share of every layer (Whale, Jia et al., USENIX ATC 2022, section
-- 3.3.1: the same rule for both).
local deal = require "deal"
local numbers = require "numbers"
local prices = require "prices"
local staged = require "staged"

local sharded = {}

--- The model replicated over groups of tp equal devices, batch shares by speed and memory.
-- @function sharded.replicated
-- @tparam handle ctx the run's input
-- @tparam table c {tp, micro_batch = 1, micro_batches, recompute, zero, sequence_parallel}
-- @tparam table ranks list of {kind, ids, flops_per_s}, as staged.ranks gives it
-- @treturn table candidate {claim_s, build}; or nil, the reason, and by which factor memory is
-- short
-- @units seconds
-- @raise a kind that the cluster has not
-- @usage local staged, nodes = require "staged", require("inventory").nodes(ctx.cluster:devices())
-- print(require("sharded").replicated(ctx, { tp = 1, micro_batch = 1, micro_batches = 1, recompute = "full", zero =
-- 3 },
--   staged.ranks(nodes, 1)))
function sharded.replicated(ctx, c, ranks)
  local chain = prices.chain(ctx, ranks[1].kind, c)
  local items, per_step = staged.rank_items(ctx, c, ranks), ctx.job.global_batch // c.micro_batches
  local ok, short = deal.deal(items, per_step, 1)
  if not ok then
    return nil, staged.shortage(ctx, 1, short and items[short], ranks[short])
  end
  local slowest = 0
  for i, d in ipairs(ranks) do
    slowest = math.max(slowest, items[i].n * prices.time(prices.chain(ctx, d.kind, c), 1, chain.n))
  end
  local ids = staged.join(ranks)
  return {
    claim_s = c.micro_batches * slowest
      + prices.sync(ctx, chain, 1, chain.n, staged.heads(ids, c.tp)),
    build = function()
      local stage = prices.stage_keys(c, { devices = ctx.cluster:address(ids),
        layers = { 0, chain.n }, dp = #ranks, shares = deal.counts(items) })
      return { micro_batch = per_step, schedule = { name = "1f1b" },
        replicas = { { micro_batches = c.micro_batches, stages = { stage } } } }
    end,
  }
end

--- Into how many equal units tensor parallelism can cut every block: whole heads, and heads of keys
-- and values; layers that name none are cut anywhere, here into 64.
-- @function sharded.units
-- @tparam table layers list of {heads, kv_heads}, as model:layers() gives them
-- @treturn integer units
-- @units none
-- @raise none
-- @usage assert(require("sharded").units { { heads = 32, kv_heads = 8 }, { heads = 24, kv_heads = 24 } } == 8)
function sharded.units(layers)
  local units = 0
  for _, l in ipairs(layers) do
    units = numbers.gcd(units, numbers.gcd(l.heads or 0, l.kv_heads or 0))
  end
  return units > 0 and units or 64
end

--- Devices in equal groups, each with its part of every kind; inside a group most memory first,
-- node by node.
-- @function sharded.groups
-- @tparam table nodes list of {kind, ids}, runs of one kind in a node, as inventory.nodes gives
-- them
-- @tparam integer count how many groups; divides the devices of every kind
-- @treturn table list of groups: lists of {id, kind, flops_per_s}
-- @units FLOP per second
-- @raise none
-- @usage print(#require("sharded").groups(require("inventory").nodes(ctx.cluster:devices()), 1)[1])
function sharded.groups(nodes, count)
  local by_kind, order, groups = {}, {}, {}
  for _, run in ipairs(staged.runs(nodes)) do
    for _, node in ipairs(run) do
      local row = by_kind[node.kind]
      if not row then
        row = {}
        by_kind[node.kind], order[#order + 1] = row, row
      end
      for _, id in ipairs(node.ids) do
        row[#row + 1] = { id = id, kind = node.kind, flops_per_s = node.flops_per_s }
      end
    end
  end
  for g = 1, count do
    groups[g] = {}
    for _, row in ipairs(order) do
      local part = numbers.slice(row, (g - 1) * (#row // count) + 1, #row // count)
      table.move(part, 1, #part, #groups[g] + 1, groups[g])
    end
  end
  return groups
end

--- How many groups of one device or more there can be: divisors of the devices of every kind, most
-- groups first.
-- @function sharded.counts
-- @tparam table nodes list of {kind, ids}, runs of one kind in a node, as inventory.nodes gives
-- them
-- @treturn table list of numbers
-- @units none
-- @raise none
-- @usage print(table.concat(require("sharded").counts(require("inventory").nodes(ctx.cluster:devices())), " "))
function sharded.counts(nodes)
  local by_kind, common, list = {}, 0, {}
  for _, node in ipairs(nodes) do
    by_kind[node.kind] = (by_kind[node.kind] or 0) + #node.ids
  end
  for _, n in pairs(by_kind) do
    common = numbers.gcd(common, n)
  end
  for i, n in ipairs(numbers.divisors(common)) do
    list[i] = n
  end
  table.sort(list, function(a, b) return a > b end)
  return list
end

--- The stage of all groups together, with these shares inside each.
local function stage_of(ctx, c, groups, shares)
  local ids = {}
  for _, group in ipairs(groups) do
    for _, d in ipairs(group) do
      ids[#ids + 1] = d.id
    end
  end
  local step = ctx.job.global_batch // c.micro_batches
  return prices.stage_keys({ recompute = c.recompute, zero = c.zero,
    sequence_parallel = c.sequence_parallel,
    tp = { degree = #groups[1], shares = shares } }, { devices = ctx.cluster:address(ids),
      layers = { 0, ctx.model.n_layers }, dp = #groups > 1 and #groups or nil,
      shares = step % #groups ~= 0 and numbers.even(step, #groups) or nil }), step
end

--- Shares with `n` of the units on rank `at` of a group and the rest on the others, one each and
-- what is left on one.
local function probe(size, units, at, n)
  local shares, rest = {}, units - n - (size - 2)
  for i = 1, size do
    shares[i] = i == at and n or 1
  end
  shares[at == 1 and 2 or 1] = rest
  return shares
end

--- Load items of the ranks of a group: units of every layer; what does not shrink with the share
-- counts as fixed.
local function items_of(ctx, c, groups, units)
  local items, known, size = {}, {}, #groups[1]
  for i, d in ipairs(groups[1]) do
    local item = known[d.kind]
    if not item then
      local bytes, most = {}, units - size + 1
      for k, n in ipairs { 1, most } do
        local q, step = stage_of(ctx, c, groups, probe(size, units, i, n))
        q.micro_batch, q.tp_rank = step, i
        local m = hv.cost.memory(q)
        bytes[k], item = m.peak_bytes, { cap = m.limit_bytes }
      end
      item.unit = most > 1 and (bytes[2] - bytes[1]) / (most - 1) or bytes[1]
      item.fixed, item.speed = bytes[1] - item.unit, d.flops_per_s
      known[d.kind] = item
    end
    items[i] = { speed = item.speed, cap = item.cap, fixed = item.fixed, unit = item.unit }
  end
  return items
end

--- Every layer split over the devices of a group, in whole heads by speed and memory; groups share
-- the batch evenly.
-- @function sharded.split
-- @tparam handle ctx the run's input
-- @tparam table c {micro_batches, recompute, zero, sequence_parallel}
-- @tparam table groups list of equal groups, lists of {id, kind, flops_per_s}, as sharded.groups
-- gives them
-- @treturn table candidate {claim_s, build, shares}; or nil, the reason, and by which factor memory
-- is short
-- @units seconds
-- @raise what hv.cost.stage raises
-- @usage local sharded, nodes = require "sharded", require("inventory").nodes(ctx.cluster:devices())
-- local c = { micro_batches = ctx.job.global_batch, recompute = "full", zero = 0 }
-- print(sharded.split(ctx, c, sharded.groups(nodes, 1)))
function sharded.split(ctx, c, groups)
  local size, units = #groups[1], sharded.units(ctx.model:layers())
  if size < 2 or units < size then
    return nil
  end
  local items = items_of(ctx, c, groups, units)
  local ok, short = deal.deal(items, units, 1)
  if not ok then
    return nil, staged.shortage(ctx, 1, short and items[short], groups[1][short])
  end
  local shares = deal.counts(items)
  local stage, step = stage_of(ctx, c, groups, shares)
  local made = { micro_batch = step, schedule = { name = "1f1b" },
    replicas = { { micro_batches = c.micro_batches, stages = { stage } } } }
  return { claim_s = (prices.claim_terms(ctx, made)), build = function() return made end,
    shares = shares }
end

return sharded
