--- Stages over nodes of unequal kinds: runs of equal nodes dealt out to equal pipelines, degrees
-- inside a stage, and the stage rows of a plan.
local deal = require "deal"
local grids = require "grids"
local numbers = require "numbers"
local prices = require "prices"

local staged = {}

--- The devices of rows { ids }, one after the other.
function staged.join(rows)
  local ids = {}
  for _, row in ipairs(rows) do
    table.move(row.ids, 1, #row.ids, #ids + 1, ids)
  end
  return ids
end

--- The first device of every tensor-parallel group of a list.
function staged.heads(ids, tp)
  local heads = {}
  for i = 1, #ids, tp do
    heads[#heads + 1] = ids[i]
  end
  return heads
end

--- Groups of tp devices inside the nodes, as ranks { kind, ids, flops_per_s, memory_bytes }.
function staged.ranks(nodes, tp)
  local ranks = {}
  for _, node in ipairs(nodes) do
    for from = 1, #node.ids - tp + 1, tp do
      ranks[#ranks + 1] = {
        kind = node.kind, ids = numbers.slice(node.ids, from, tp),
        flops_per_s = node.flops_per_s, memory_bytes = node.memory_bytes,
      }
    end
  end
  return ranks
end

--- `k` equal pipelines: each takes the k-th part of every run of equal nodes. Stages in order of
-- falling memory; one stage per node, or per run of equal nodes (`merge`).
function staged.deal(runs, k, merge)
  local rows = {}
  for _, run in ipairs(runs) do
    local per, step = #run // k, merge and #run // k or 1
    for from = 1, per, step do
      local stage = { kind = run[1].kind, ids = {}, nodes = step, size = #run[1].ids,
        flops_per_s = run[1].flops_per_s, memory_bytes = run[1].memory_bytes }
      for copy = 0, k - 1 do
        for i = from, from + step - 1 do
          local ids = run[copy * per + i].ids
          table.move(ids, 1, #ids, #stage.ids + 1, stage.ids)
        end
      end
      rows[#rows + 1] = stage
    end
  end
  return rows
end

--- Runs of equal nodes, most memory per device first, then faster first.
function staged.runs(nodes)
  local runs, by_key = {}, {}
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

--- Load items of the stages: units are layers; embedding and head count as fixed memory.
function staged.items(ctx, c, list)
  local items, speeds = {}, {}
  for s, stage in ipairs(list) do
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
    items[s] = {
      speed = stage.flops_per_s * #stage.ids, unit = unit, cap = prices.capacity(ctx, stage),
      fixed = bytes(1, 0),
    }
    if s == 1 then
      items[s].fixed = bytes(1, 1) - unit
    end
    if s == #list then
      items[s].fixed = math.max(items[s].fixed, bytes(chain.n, chain.n) - unit)
    end
    speeds[s] = items[s].speed
  end
  return items, speeds
end

--- Load items of the ranks of one stage that is replicated over all of them: units are sequences,
-- the states of all layers count as fixed memory.
-- @function staged.rank_items
-- @tparam handle ctx the run's input
-- @tparam table c {tp, micro_batch, recompute, sequence_parallel, zero}
-- @tparam table ranks list of {kind, flops_per_s}, as staged.ranks gives it
-- @treturn table list of {speed, cap, fixed, unit} for `loads`
-- @units FLOP per second, bytes
-- @raise a kind that the cluster has not
-- @usage local d = ctx.cluster:devices()[1]
-- print(require("staged").rank_items(ctx, { tp = 1, micro_batch = 1 }, { d })[1].unit)
function staged.rank_items(ctx, c, ranks)
  local items = {}
  for i, d in ipairs(ranks) do
    local own = prices.chain(ctx, d.kind, c)
    items[i] = {
      speed = d.flops_per_s, cap = prices.capacity(ctx, d),
      fixed = prices.state_bytes(ctx, own, 1, own.n, { zero = c.zero, holders = #ranks }),
      unit = prices.saved_bytes(own, 1, own.n),
    }
  end
  return items
end

--- Which stage lacks memory for its load, and by which factor it needs more than it has.
-- @function staged.shortage
-- @tparam handle ctx the run's input
-- @tparam integer stage its number, from 1
-- @tparam table item {fixed, unit, cap, n}, its load; nil where none is known to be short
-- @tparam table row {kind} of the stage or rank
-- @treturn string the reason, then the factor; nothing without an item
-- @units GiB in the text
-- @raise a kind that the cluster has not
-- @usage local d = ctx.cluster:devices()[1]
-- print(require("staged").shortage(ctx, 1, { fixed = 0, n = 9, unit = 2, cap = 12 }, d))
function staged.shortage(ctx, stage, item, row)
  if not item then
    return nil
  end
  return prices.short(ctx, stage, deal.use(item) * item.cap, row), deal.use(item)
end

--- Sets tp, dp, shares and the price query of every stage; false when a micro-batch is too small.
function staged.fit(list, c)
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

--- How many equal pipelines the runs can be dealt out to.
function staged.copies(runs)
  local common = 0
  for _, run in ipairs(runs) do
    common = numbers.gcd(common, #run)
  end
  return numbers.divisors(common)
end

--- Seconds of every stage under `ranges` (from 0, half open), and the largest all-reduce of them.
function staged.times(ctx, list, ranges)
  local stage_s, sync_s = {}, 0
  for s, stage in ipairs(list) do
    local chain = prices.chain(ctx, stage.kind, stage.query)
    local from, to = ranges[s][1] + 1, ranges[s][2]
    stage_s[s] = prices.time(chain, from, to)
    sync_s = math.max(sync_s, prices.sync(ctx, chain, from, to, staged.heads(stage.ids, stage.tp)))
  end
  return stage_s, sync_s
end

--- Stage rows of a plan: layers from `ranges`, degrees as staged.fit set them.
function staged.rows(ctx, list, ranges, c)
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

return staged
