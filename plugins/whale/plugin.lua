--- Whale (Jia et al., USENIX ATC'22): memory-constrained load balance on mixed GPUs. Section 3.3.1:
-- shares follow FLOP/s, then load moves from devices that run out of memory (peaks) to the least
-- busy ones (valleys): samples where a part of the model is replicated, heads of every layer where
-- it is split. Section 3.3.2: pipeline stages in order of falling memory, layers in proportion to
-- FLOP/s, with the same shift.
local candidates = require "candidates"
local checks = require "checks"
local claims = require "claims"
local deal = require "deal"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"
local sharded = require "sharded"
local staged = require "staged"

-- Pipeline -----------------------------------------------------------------------------------

local function pipelined(ctx, c, list)
  if not staged.fit(list, c) then
    return nil
  end
  local reference = prices.chain(ctx, list[1].kind, list[1].query)
  local items, speeds = staged.items(ctx, c, list)
  for s, n in ipairs(deal.proportional(reference.times, speeds)) do
    items[s].n = n
  end
  local ok, short = deal.shift(items, 1)
  if not ok then
    return nil, staged.shortage(ctx, short, items[short], list[short])
  end
  local ranges = numbers.ranges(deal.counts(items))
  local stage_s, sync_s = staged.times(ctx, list, ranges)
  return {
    claim_s = claims.pipeline_s(stage_s, c.micro_batches) + sync_s,
    build = function()
      return { micro_batch = c.micro_batch, schedule = { name = "1f1b" },
        replicas = { { count = c.copies, micro_batches = c.micro_batches,
          stages = staged.rows(ctx, list, ranges, c) } } }
    end,
  }
end

local recomputes = { "none", "selective", "full" }

--- Is this the number of micro-batches that is asked for (the annotation pipeline(n)), or may it be
-- any?
local function asked(ctx, m)
  return ctx.options.micro_batches == 0 or m == ctx.options.micro_batches
end

local function add_replicated(ctx, all, nodes)
  local layers, size = ctx.model:layers(), inventory.node_size(nodes)
  for _, tp in ipairs(numbers.powers(size)) do
    local ranks = size % tp == 0 and grids.tp_fits(layers, tp) and staged.ranks(nodes, tp) or {}
    for _, m in ipairs(numbers.divisors(ctx.job.global_batch)) do
      if #ranks > 0 and ctx.job.global_batch // m >= #ranks and asked(ctx, m) then
        for _, recompute in ipairs(recomputes) do
          all.add(sharded.replicated(ctx, {
            tp = tp, micro_batch = 1, micro_batches = m, recompute = recompute,
            zero = ctx.options.zero, sequence_parallel = tp > 1,
          }, ranks))
        end
      end
    end
  end
end

--- The split annotation: every layer in shards by speed over groups of devices that have some of
-- every kind.
local function add_split(ctx, all, nodes)
  local layers, tried = ctx.model:layers(), 0
  for _, count in ipairs(sharded.counts(nodes)) do
    local groups = sharded.groups(nodes, count)
    local size = #groups[1]
    local fits = size > 1 and size <= ctx.options.tp and size <= sharded.units(layers)
    for _, m in ipairs(fits and numbers.divisors(ctx.job.global_batch) or {}) do
      if ctx.job.global_batch // m >= count and asked(ctx, m)
          and not (tried > 0 and hv.stopping()) then
        for _, recompute in ipairs(recomputes) do
          tried = tried + 1
          all.add(sharded.split(ctx, { micro_batches = m, recompute = recompute,
            zero = ctx.options.zero,
            sequence_parallel = ctx.job.sequence % size == 0 }, groups))
        end
      end
    end
  end
end

local function add_pipelined(ctx, all, nodes)
  local layers, runs = ctx.model:layers(), staged.runs(nodes)
  local function try(copies, merge, tp)
    for _, micro_batch in ipairs(numbers.powers(32)) do
      local m = ctx.job.global_batch // (copies * micro_batch)
      if ctx.job.global_batch % (copies * micro_batch) == 0 and asked(ctx, m) then
        for _, recompute in ipairs(recomputes) do
          all.add(pipelined(ctx, {
            tp = tp, copies = copies, micro_batch = micro_batch, recompute = recompute,
            zero = ctx.options.zero, layers = layers, micro_batches = m,
          }, staged.deal(runs, copies, merge)))
        end
      end
    end
  end
  for _, copies in ipairs(staged.copies(runs)) do
    for _, merge in ipairs { false, true } do
      local n = #staged.deal(runs, copies, merge)
      if n > 1 and n <= #layers then
        for _, tp in ipairs(numbers.powers(ctx.options.tp)) do
          try(copies, merge, tp)
        end
      end
    end
  end
end

local function plan(ctx)
  local devices, why = inventory.priced(ctx)
  local nodes = inventory.nodes(devices)
  if #nodes == 0 then
    return nil, why
  end
  local all = candidates.new()
  local mode = ctx.options.mode
  if mode == "auto" or mode == "replicate" then
    add_replicated(ctx, all, nodes)
  end
  if mode == "auto" or mode == "split" then
    add_split(ctx, all, nodes)
  end
  if mode == "auto" or mode == "pipeline" then
    add_pipelined(ctx, all, nodes)
  end
  return all.best(ctx.options.tries, ctx.options.micro_batches == 0
      and "no division of the devices gives every stage a layer and a sequence"
      or ("%d micro-batches do not divide the batch of %d so that every replica gets a sequence"):format(
        ctx.options.micro_batches, ctx.job.global_batch))
end

--- DP: the slowest share of every step; pipeline: Eq-P; both with the largest all-reduce.
local function claim(made, ctx)
  local total, max, sync_s = prices.claim_terms(ctx, made)
  return {
    iteration_s = total, terms = { slowest_s = max, all_reduce_s = sync_s },
    formula = #prices.table_of(made).replicas[1].stages > 1
      and "Eq-P over stages balanced by FLOP/s + all-reduce (Whale, 3.3.2)"
      or "M x max r_i FLOP / DF_i + all-reduce (Whale, section 3.3.1)",
  }
end

local function selftest(t)
  local src = "catalogue: whale"
  local speeds = { 2, 2, 1, 1 }
  local items = deal.items(speeds, 0, 0, { 1, 1, 1, 1 })
  deal.deal(items, 48, 0)
  t.equal("48 samples on speeds 2 2 1 1", table.concat(deal.counts(items), ","), "16,16,8,8", src)
  items = deal.items(speeds, 4, 1, { 32, 32, 10, 10 })
  t.near("8 samples need", 4 + 8 * 1, 12, 0, src)
  t.near("busiest time before the shift, which does not fit", 16 / items[1].speed, 8, 0, src)
  t.ok("the shift succeeds", deal.deal(items, 48, 0), src)
  t.equal("after the shift", table.concat(deal.counts(items), ","), "18,18,6,6", src)
  t.near("busiest time", items[1].n / items[1].speed, 9, 0, src)
  items = deal.items({ 3, 1 }, 2, 1, { 80, 80 })
  deal.deal(items, 8, 1)
  t.equal("8 heads split over speeds 3 1", table.concat(deal.counts(items), ","), "6,2",
    "section 3.3.1, by hand")
  items = deal.items({ 3, 1 }, 2, 1, { 7, 80 })
  t.ok("the fast device has room for 5: a head moves", deal.deal(items, 8, 1),
    "section 3.3.1, by hand")
  t.equal("heads after the shift", table.concat(deal.counts(items), ","), "5,3",
    "section 3.3.1, by hand")
  t.equal("heads and heads of keys and values are cut whole",
    sharded.units { { heads = 32, kv_heads = 8 },
      { heads = 24, kv_heads = 12 } }, 4, "by hand")
  items = deal.items(speeds, 4, 1, { 20, 20, 10, 10 })
  t.ok("48 samples do not fit 16 + 16 + 6 + 6", deal.deal(items, 48, 0) == nil, src)
  local random, kept, judged = require("search").generator(7), true, true
  for _ = 1, 200 do
    local n, own, caps = 1 + random(5), {}, {}
    for i = 1, n do
      own[i], caps[i] = random(8), 4 + random(40)
    end
    items = deal.items(own, 4, 1, caps)
    local total = random(60)
    local whole, right = checks.dealt(items, total, deal.deal(items, total, 0))
    kept, judged = kept and whole, judged and right
  end
  t.ok("200 random loads: shares add up to the batch, and none is above its memory", kept, src
      .. ", invariants")
  t.ok("and it gives up exactly where the batch is too large for all memory", judged,
    "by hand: room of all devices")
  t.equal("layers follow speed", table.concat(deal.proportional({ 1, 1, 1, 1, 1, 1 }, { 2, 1 }),
    ","),
    "4,2", "by hand")
  t.equal("every stage gets a layer", table.concat(deal.proportional({ 1, 1, 1 }, { 9, 1, 1 }),
    ","),
    "1,1,1", "by hand")
  local runs = staged.runs {
    { kind = "fast", ids = { 1 }, memory_bytes = 16, flops_per_s = 9 },
    { kind = "big", ids = { 2 }, memory_bytes = 32, flops_per_s = 3 },
  }
  t.equal("the stage with most memory comes first", runs[1][1].kind, "big", "section 3.3.2")
end

return {
  api = 1, id = "whale", title = "Whale", kind = "hetero",
  system = "Whale: Efficient Giant Model Training over Heterogeneous GPUs, USENIX ATC 2022",
  reference = "arXiv:2011.09208",
  summary = "Loads follow FLOP/s, then move from full memories to idle ones; large memory first.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "mode", type = "choice", choices = { "auto", "replicate", "split", "pipeline" },
      default = "auto",
      help = "replicate the model with unequal shares of the batch, split layers into unequal shards, or pipeline" },
    { key = "tp", type = "integer", default = 8, min = 1, max = 64,
      help = "most devices that split a layer: of a node, of mode split any" },
    { key = "micro_batches", type = "integer", default = 0, min = 0, max = 1000000,
      help = "micro-batches of an iteration (pipeline annotation); 0: the best of all that divide the batch" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "optimizer states sharded over replicas: 1; gradients too: 2; weights too: 3" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
