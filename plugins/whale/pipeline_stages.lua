-- Pipeline stages over nodes of unequal kinds (Whale, section 3.3.2): stages in order of falling
-- memory, layers in proportion to FLOP/s, then the shift of `deal` where memory is short.
local claims = require "claims"
local deal = require "deal"
local grids = require "grids"
local numbers = require "numbers"
local prices = require "prices"
local ranks = require "ranks"

local pipeline_stages = {}

--- `copies` equal pipelines, each with its part of every run of equal nodes. One stage per node, or
-- per run of equal nodes with `merge`. Returns the stages { kind, ids of all pipelines, nodes,
-- size = devices of a node, flops_per_s, memory_bytes }.
function pipeline_stages.deal(runs, copies, merge)
  local stages = {}
  for _, run in ipairs(runs) do
    local per_copy = #run // copies
    local step = merge and per_copy or 1
    for from = 1, per_copy, step do
      local stage = { kind = run[1].kind, ids = {}, nodes = step, size = #run[1].ids,
        flops_per_s = run[1].flops_per_s, memory_bytes = run[1].memory_bytes }
      for copy = 0, copies - 1 do
        for i = from, from + step - 1 do
          local ids = run[copy * per_copy + i].ids
          table.move(ids, 1, #ids, #stage.ids + 1, stage.ids)
        end
      end
      stages[#stages + 1] = stage
    end
  end
  return stages
end

--- Runs of equal nodes, most memory per device first, then the faster first.
function pipeline_stages.runs(nodes)
  local runs = {}
  local by_key = {}
  for i, node in ipairs(nodes) do
    local key = node.kind .. "/" .. #node.ids
    local run = by_key[key]
    if not run then
      run = { first = i }
      by_key[key] = run
      runs[#runs + 1] = run
    end
    run[#run + 1] = node
  end
  table.sort(runs, function(a, b)
    if a[1].memory_bytes ~= b[1].memory_bytes then
      return a[1].memory_bytes > b[1].memory_bytes
    elseif a[1].flops_per_s ~= b[1].flops_per_s then
      return a[1].flops_per_s > b[1].flops_per_s
    end
    return a.first < b.first
  end)
  return runs
end

--- Possible numbers of equal pipelines: the divisors that the lengths of all runs share.
function pipeline_stages.copies(runs)
  local common = 0
  for _, run in ipairs(runs) do
    common = numbers.gcd(common, #run)
  end
  return numbers.divisors(common)
end

--- Sets tp, dp, shares and the price query of every stage; false where a micro-batch has too few
-- sequences for the data-parallel ranks of a stage.
local function set_degrees(list, c)
  for _, stage in ipairs(list) do
    stage.tp = grids.largest_tp(c.layers, stage.size, c.tp)
    stage.dp = #stage.ids // c.copies // stage.tp
    if stage.dp > c.micro_batch then
      return false
    end
    if c.micro_batch % stage.dp ~= 0 then
      stage.shares = numbers.even(c.micro_batch, stage.dp)
    end
    stage.query = {
      tp = stage.tp, micro_batch = math.ceil(c.micro_batch / stage.dp), recompute = c.recompute,
      sequence_parallel = stage.tp > 1,
    }
  end
  return true
end

--- Load item of stage `s` of `list`: a unit is a layer, embedding and head are fixed memory.
local function item_of(ctx, c, list, s)
  local stage = list[s]
  local chain = prices.chain(ctx, stage.kind, stage.query)
  local middle = (chain.n + 1) // 2
  local opts = {
    zero = c.zero, holders = stage.dp * c.copies,
    in_flight = math.min(#list - s + 1, c.micro_batches),
  }
  local function bytes(from, to)
    return prices.bytes(ctx, chain, from, to, opts)
  end
  local unit = bytes(middle, middle) - bytes(middle, middle - 1)
  local fixed = bytes(1, 0)
  if s == 1 then
    fixed = bytes(1, 1) - unit
  end
  if s == #list then
    fixed = math.max(fixed, bytes(chain.n, chain.n) - unit)
  end
  return { speed = stage.flops_per_s * #stage.ids, unit = unit, cap = prices.capacity(ctx, stage),
    fixed = fixed }
end

--- Load items of the stages, and their speeds.
local function items_of(ctx, c, list)
  local items = {}
  local speeds = {}
  for s in ipairs(list) do
    items[s] = item_of(ctx, c, list, s)
    speeds[s] = items[s].speed
  end
  return items, speeds
end

--- Seconds of every stage under `ranges` (from 0, half open), and the largest all-reduce of them.
local function times_of(ctx, list, ranges)
  local stage_s = {}
  local sync_s = 0
  for s, stage in ipairs(list) do
    local chain = prices.chain(ctx, stage.kind, stage.query)
    local from = ranges[s][1] + 1
    local to = ranges[s][2]
    stage_s[s] = prices.time(chain, from, to)
    sync_s = math.max(sync_s, prices.sync(ctx, chain, from, to, ranks.heads(stage.ids, stage.tp)))
  end
  return stage_s, sync_s
end

--- Stage rows of a plan: layers from `ranges`, degrees as set_degrees set them.
local function rows_of(ctx, list, ranges, c)
  local rows = {}
  for s, stage in ipairs(list) do
    rows[s] = prices.stage_keys({ tp = stage.tp, recompute = c.recompute, zero = c.zero,
      sequence_parallel = stage.tp > 1 }, {
        devices = ctx.cluster:address(stage.ids), layers = ranges[s], dp = stage.dp,
        shares = stage.shares,
      })
  end
  return rows
end

--- The candidate { claim_s, build } with the stages `list` (of pipeline_stages.deal); nil where a
-- micro-batch is too small; nil, the reason, and the factor by which memory is short. `c` is { tp =
-- largest degree, copies, micro_batch, micro_batches, recompute, zero, layers }.
function pipeline_stages.candidate(ctx, c, list)
  if not set_degrees(list, c) then
    return nil
  end
  local reference = prices.chain(ctx, list[1].kind, list[1].query)
  local items, speeds = items_of(ctx, c, list)
  for s, n in ipairs(deal.proportional(reference.times, speeds)) do
    items[s].n = n
  end
  local ok, short = deal.shift(items, 1)
  if not ok then
    return nil, ranks.shortage(ctx, short, items[short], list[short])
  end
  local ranges = numbers.ranges(deal.counts(items))
  local stage_s, sync_s = times_of(ctx, list, ranges)
  return {
    claim_s = claims.pipeline_s(stage_s, c.micro_batches) + sync_s,
    build = function()
      return { micro_batch = c.micro_batch, schedule = { name = "1f1b" },
        replicas = { { count = c.copies, micro_batches = c.micro_batches,
          stages = rows_of(ctx, list, ranges, c) } } }
    end,
  }
end

return pipeline_stages
