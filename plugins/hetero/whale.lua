--- Whale (Jia et al., USENIX ATC'22): memory-constrained load balance on mixed GPUs.
-- Section 3.3.1: shares follow FLOP/s, then load moves from devices that run out of memory (peaks)
-- to the least busy ones (valleys). Section 3.3.2: pipeline stages in order of falling memory,
-- layers in proportion to FLOP/s, with the same shift.
local layout = require "layout"
local prices = require "prices"

-- Shares -------------------------------------------------------------------------------------

local function memory_use(item)
  return (item.fixed + item.n * item.unit) / item.cap
end

local function fits(item, extra)
  return item.fixed + (item.n + extra) * item.unit <= item.cap * (1 + 1e-9)
end

--- Index of the least key among the indices in `set`; key() returns two numbers compared in order.
local function least(items, set, key)
  local best, a, b
  for i, item in ipairs(items) do
    if set[i] then
      local x, y = key(item)
      if not best or x < a or x == a and y < b then
        best, a, b = i, x, y
      end
    end
  end
  return best
end

local function peak_key(item)
  return -memory_use(item), 0
end

local function valley_key(item)
  return item.n / item.speed, memory_use(item)
end

--- Section 3.3.1, steps 2 and 3: shifts single units of load until every item { n, speed, fixed,
-- unit, cap } fits. `keep` units stay on every item. Returns true, or nil and the first item
-- that cannot be relieved. Ties go to the lowest number.
local function shift(items, keep)
  local oom, free = {}, {}
  for i, item in ipairs(items) do
    if fits(item, 0) then
      free[i] = true
    else
      oom[i] = true
    end
  end
  while next(oom) do
    local peak = least(items, oom, peak_key)
    local valley = least(items, free, valley_key)
    if not valley or items[peak].n <= keep then
      return nil, peak
    elseif fits(items[valley], 1) then
      items[peak].n = items[peak].n - 1
      items[valley].n = items[valley].n + 1
      if fits(items[peak], 0) then
        oom[peak] = nil
      end
    else
      free[valley] = nil
    end
  end
  return true
end

--- Section 3.3.1, step 1: `total` units in proportion to speed, at least `keep` on every item.
local function deal(items, total, keep)
  local rates, min = {}, {}
  for i, item in ipairs(items) do
    rates[i], min[i] = item.speed, keep
  end
  local r = hv.opt.distribute { total = total, time = rates, min = min, objective = "ratio" }
  if not r then
    return nil
  end
  for i, item in ipairs(items) do
    item.n = r.counts[i]
  end
  return shift(items, keep)
end

local function counts_of(items)
  local counts = {}
  for i, item in ipairs(items) do
    counts[i] = item.n
  end
  return counts
end

-- Data parallelism ---------------------------------------------------------------------------

--- One TaskGraph replicated over groups of tp devices, batch shares by speed and memory.
local function replicated(ctx, c, ranks)
  local chain = prices.chain(ctx, ranks[1].kind, c)
  local items, per_step = {}, ctx.job.global_batch // c.micro_batches
  for i, d in ipairs(ranks) do
    local own = prices.chain(ctx, d.kind, c)
    items[i] = {
      speed = d.flops_per_s, cap = prices.capacity(ctx, d),
      fixed = prices.state_bytes(ctx, own, 1, own.n, { zero = c.zero, holders = #ranks }),
      unit = prices.saved_bytes(own, 1, own.n),
    }
  end
  local ok, short = deal(items, per_step, 1)
  if not ok then
    if not short then
      return nil
    end
    local item = items[short]
    local need = item.fixed + item.n * item.unit
    return nil, prices.short(ctx, 1, need, ranks[short]), need / item.cap
  end
  local slowest = 0
  for i, d in ipairs(ranks) do
    slowest = math.max(slowest, items[i].n * prices.time(prices.chain(ctx, d.kind, c), 1, chain.n))
  end
  local heads = {}
  for i, d in ipairs(ranks) do
    heads[i] = d.ids[1]
  end
  return {
    claim_s = c.micro_batches * slowest + prices.sync(ctx, chain, 1, chain.n, heads),
    build = function()
      local ids = {}
      for _, d in ipairs(ranks) do
        table.move(d.ids, 1, #d.ids, #ids + 1, ids)
      end
      local stage = prices.stage_keys(c, {
        devices = ctx.cluster:address(ids), layers = { 0, chain.n }, dp = #ranks,
        shares = counts_of(items),
      })
      return {
        micro_batch = per_step, schedule = { name = "1f1b" },
        replicas = { { micro_batches = c.micro_batches, stages = { stage } } },
      }
    end,
  }
end

--- Groups of tp devices inside the nodes, as ranks { kind, ids, flops_per_s, memory_bytes }.
local function ranks_of(nodes, tp)
  local ranks = {}
  for _, node in ipairs(nodes) do
    for from = 1, #node.ids - tp + 1, tp do
      ranks[#ranks + 1] = {
        kind = node.kind, ids = layout.slice(node.ids, from, tp),
        flops_per_s = node.flops_per_s, memory_bytes = node.memory_bytes,
      }
    end
  end
  return ranks
end

-- Pipeline -----------------------------------------------------------------------------------

--- `k` equal pipelines: each takes the k-th part of every run of equal nodes. Stages in order of
-- falling memory; one stage per node, or per run of equal nodes (`merge`).
local function stages_of(runs, k, merge)
  local stages = {}
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
      stages[#stages + 1] = stage
    end
  end
  return stages
end

--- Runs of equal nodes, most memory per device first (section 3.3.2), then faster first.
local function runs_of(nodes)
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

--- Layers per stage so that work follows FLOP/s: cuts where the prefix of work crosses the prefix
-- of speed, at least one layer each.
local function proportional(work, speeds)
  local total_work, total_speed = 0, 0
  for _, w in ipairs(work) do
    total_work = total_work + w
  end
  for _, s in ipairs(speeds) do
    total_speed = total_speed + s
  end
  local counts, at, done, target = {}, 0, 0, 0
  for s = 1, #speeds do
    target = target + total_work * speeds[s] / total_speed
    local n = 0
    while at < #work - (#speeds - s)
      and (n == 0 or s == #speeds or done + work[at + 1] / 2 <= target) do
      at = at + 1
      n = n + 1
      done = done + work[at]
    end
    counts[s] = n
  end
  return counts
end

--- Load items of the stages: units are layers; embedding and head count as fixed memory.
local function stage_items(ctx, c, stages)
  local items, speeds = {}, {}
  for s, stage in ipairs(stages) do
    local chain = prices.chain(ctx, stage.kind, stage.query)
    local middle = (chain.n + 1) // 2
    local opts = {
      zero = c.zero, holders = stage.dp * c.copies,
      in_flight = math.min(#stages - s + 1, c.micro_batches),
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
    if s == #stages then
      items[s].fixed = math.max(items[s].fixed, bytes(chain.n, chain.n) - unit)
    end
    speeds[s] = items[s].speed
  end
  return items, speeds
end

--- Sets tp, dp, shares and the price query of every stage; false when a micro-batch is too small.
local function fit_stages(stages, c, tp_of)
  for _, stage in ipairs(stages) do
    stage.tp = tp_of(stage.size, c.tp)
    stage.dp = #stage.ids // c.copies // stage.tp
    if stage.dp > c.micro_batch then
      return false
    end
    if c.micro_batch % stage.dp ~= 0 then
      stage.shares = layout.even(c.micro_batch, stage.dp)
    end
    stage.query = {
      tp = stage.tp, micro_batch = math.ceil(c.micro_batch / stage.dp), recompute = c.recompute,
      sequence_parallel = stage.tp > 1,
    }
  end
  return true
end

local function pipelined(ctx, c, stages, tp_of)
  if not fit_stages(stages, c, tp_of) then
    return nil
  end
  local reference = prices.chain(ctx, stages[1].kind, stages[1].query)
  local items, speeds = stage_items(ctx, c, stages)
  for s, n in ipairs(proportional(reference.times, speeds)) do
    items[s].n = n
  end
  local ok, short = shift(items, 1)
  if not ok then
    local item = items[short]
    return nil, prices.short(ctx, short, item.fixed + item.n * item.unit, stages[short]),
      (item.fixed + item.n * item.unit) / item.cap
  end
  local ranges, stage_s, sync_s = layout.ranges(counts_of(items)), {}, 0
  for s, stage in ipairs(stages) do
    local chain, heads = prices.chain(ctx, stage.kind, stage.query), {}
    local from, to = ranges[s][1] + 1, ranges[s][2]
    stage_s[s] = prices.time(chain, from, to)
    for i = 1, #stage.ids, stage.tp do
      heads[#heads + 1] = stage.ids[i]
    end
    sync_s = math.max(sync_s, prices.sync(ctx, chain, from, to, heads))
  end
  return {
    claim_s = layout.pipeline_s(stage_s, c.micro_batches) + sync_s,
    build = function()
      local rows = {}
      for s, stage in ipairs(stages) do
        rows[s] = prices.stage_keys({ tp = stage.tp, recompute = c.recompute, zero = c.zero,
          sequence_parallel = stage.tp > 1 }, {
          devices = ctx.cluster:address(stage.ids), layers = ranges[s], dp = stage.dp,
          shares = stage.shares,
        })
      end
      return {
        micro_batch = c.micro_batch, schedule = { name = "1f1b" },
        replicas = { { count = c.copies, micro_batches = c.micro_batches, stages = rows } },
      }
    end,
  }
end

-- The plan -----------------------------------------------------------------------------------

--- Collects candidates and remembers the nearest miss.
local function collector()
  local all = { list = {}, reason = nil, miss = math.huge }
  function all.add(candidate, reason, miss)
    if candidate then
      candidate.rank = #all.list + 1
      all.list[candidate.rank] = candidate
    elseif reason and miss < all.miss then
      all.reason, all.miss = reason, miss
    end
  end
  return all
end

local recomputes = { "none", "selective", "full" }

local function add_replicated(ctx, all, nodes)
  local layers, size = ctx.model:layers(), layout.node_size(nodes)
  for _, tp in ipairs(layout.powers(size)) do
    local ranks = size % tp == 0 and layout.tp_fits(layers, tp) and ranks_of(nodes, tp) or {}
    for _, m in ipairs(layout.divisors(ctx.job.global_batch)) do
      if #ranks > 0 and ctx.job.global_batch // m >= #ranks then
        for _, recompute in ipairs(recomputes) do
          all.add(replicated(ctx, {
            tp = tp, micro_batch = 1, micro_batches = m, recompute = recompute,
            zero = ctx.options.zero, sequence_parallel = tp > 1,
          }, ranks))
        end
      end
    end
  end
end

local function add_pipelined(ctx, all, nodes)
  local layers, runs = ctx.model:layers(), runs_of(nodes)
  local common = 0
  for _, run in ipairs(runs) do
    common = layout.gcd(common, #run)
  end
  local function tp_of(size, most) -- largest power of two up to `most` that node and heads allow
    local best = 1
    for _, tp in ipairs(layout.powers(math.min(size, most))) do
      best = size % tp == 0 and layout.tp_fits(layers, tp) and tp or best
    end
    return best
  end
  local function try(copies, merge, tp)
    for _, micro_batch in ipairs(layout.powers(32)) do
      if ctx.job.global_batch % (copies * micro_batch) == 0 then
        for _, recompute in ipairs(recomputes) do
          all.add(pipelined(ctx, {
            tp = tp, copies = copies, micro_batch = micro_batch, recompute = recompute,
            zero = ctx.options.zero,
            micro_batches = ctx.job.global_batch // (copies * micro_batch),
          }, stages_of(runs, copies, merge), tp_of))
        end
      end
    end
  end
  for _, copies in ipairs(layout.divisors(common)) do
    for _, merge in ipairs { false, true } do
      local n = #stages_of(runs, copies, merge)
      if n > 1 and n <= #layers then
        for _, tp in ipairs(layout.powers(ctx.options.tp)) do
          try(copies, merge, tp)
        end
      end
    end
  end
end

local function plan(ctx)
  local nodes = layout.nodes(layout.devices(ctx))
  if #nodes == 0 then
    return nil, ("no device of the cluster computes in %s"):format(ctx.job.precision)
  end
  local all = collector()
  if ctx.options.mode ~= "pipeline" then
    add_replicated(ctx, all, nodes)
  end
  if ctx.options.mode ~= "replicate" then
    add_pipelined(ctx, all, nodes)
  end
  if #all.list == 0 then
    return nil, all.reason or "no division of the devices gives every stage a layer and a sequence"
  end
  local best, reason = layout.best(all.list, ctx.options.tries)
  return best, not best and (reason or all.reason) or nil
end

--- DP: the slowest share of every step; pipeline: Eq-P; both with the largest all-reduce.
local function claim(made, ctx)
  made = prices.table_of(made)
  local replica, stage_s, sync_s, kinds = made.replicas[1], {}, 0, prices.kinds(ctx)
  for s, stage in ipairs(replica.stages) do
    local pass = prices.stage(ctx, made, 1, s)
    stage_s[s] = pass.forward_s + pass.backward_s
    sync_s = math.max(sync_s, prices.stage_sync(ctx, stage, kinds))
  end
  local total, max = layout.pipeline_s(stage_s, replica.micro_batches)
  return {
    iteration_s = total + sync_s, terms = { slowest_s = max, all_reduce_s = sync_s },
    formula = #stage_s > 1 and "Eq-P over stages balanced by FLOP/s + all-reduce (Whale, 3.3.2)"
      or "M x max r_i FLOP / DF_i + all-reduce (Whale, section 3.3.1)",
  }
end

--- Invariants on many small instances: the sum is kept and every item fits.
local function check_invariants(t)
  local kept, fitting = true, true
  for a = 1, 4 do
    for b = 1, 4 do
      for cap = 4, 12 do
        local items = {
          { speed = a, fixed = 1, unit = 1, cap = cap },
          { speed = b, fixed = 1, unit = 1, cap = 9 },
          { speed = 1, fixed = 0, unit = 2, cap = 12 },
        }
        local ok, sum = deal(items, 15, 0), 0
        for _, item in ipairs(items) do
          sum = sum + item.n
          fitting = fitting and (not ok or memory_use(item) <= 1 + 1e-9)
        end
        kept = kept and sum == 15
        local room = cap - 1 + 8 + 6
        fitting = fitting and (ok ~= nil) == (room >= 15)
      end
    end
  end
  t.ok("shares add up to the batch", kept, "invariant")
  t.ok("feasible exactly where the memory is enough", fitting, "invariant, by counting")
end

local function selftest(t)
  local src = "catalogue: whale"
  local function items_of(fixed, unit, caps)
    local items = {}
    for i, speed in ipairs { 2, 2, 1, 1 } do
      items[i] = { speed = speed, fixed = fixed, unit = unit, cap = caps[i] }
    end
    return items
  end
  local items = items_of(0, 0, { 1, 1, 1, 1 })
  deal(items, 48, 0)
  t.equal("48 samples on speeds 2 2 1 1", table.concat(counts_of(items), ","), "16,16,8,8", src)
  items = items_of(4, 1, { 32, 32, 10, 10 })
  t.near("8 samples need", 4 + 8 * 1, 12, 0, src)
  t.ok("the shift succeeds", deal(items, 48, 0), src)
  t.equal("after the shift", table.concat(counts_of(items), ","), "18,18,6,6", src)
  t.near("busiest time", items[1].n / items[1].speed, 9, 0, src)
  items = items_of(4, 1, { 20, 20, 10, 10 })
  t.ok("48 samples do not fit 16 + 16 + 6 + 6", deal(items, 48, 0) == nil, src)
  check_invariants(t)
  t.equal("layers follow speed", table.concat(proportional({ 1, 1, 1, 1, 1, 1 }, { 2, 1 }), ","),
    "4,2", "by hand")
  t.equal("every stage gets a layer", table.concat(proportional({ 1, 1, 1 }, { 9, 1, 1 }), ","),
    "1,1,1", "by hand")
  local runs = runs_of {
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
  options = {
    { key = "mode", type = "choice", choices = { "auto", "replicate", "pipeline" },
      default = "auto",
      help = "replicate the model with unequal shares, pipeline it, or the better of both" },
    { key = "tp", type = "integer", default = 8, min = 1, max = 64,
      help = "most devices of a node that split a layer (split annotation)" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "optimizer states sharded over replicas: 1; gradients too: 2; weights too: 3" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
