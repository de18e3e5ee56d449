--- Pipelines as planners build them: rows of stages { devices = rows of cluster:devices(), tp, dp,
-- micro_batch (of one rank), recompute, zero, holders } with times and memory by layer, their exact
-- cut, and the plan they make. A row holds only what describes a stage; layers come from the cut.
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local prices = require "prices"

local pipeline = {}

--- Pipelines inside each kind: `depth` stages of tps[i] devices each.
-- @function pipeline.inside
-- @tparam table types list as inventory.types gives it
-- @tparam table tps list of the tensor degree per kind
-- @tparam integer depth stages of every pipeline
-- @treturn table list of pipelines; nil when the devices of a kind do not divide
-- @units none
-- @raise none
-- @usage assert(#require("pipeline").inside({ { devices = { { id = 1 }, { id = 2 } } } }, { 1 }, 1) == 2)
function pipeline.inside(types, tps, depth)
  local rows = {}
  for i, t in ipairs(types) do
    local size = tps[i] * depth
    if #t.devices % size ~= 0 then
      return nil
    end
    for from = 1, #t.devices, size do
      rows[#rows + 1] = {}
      for s = 1, depth do
        rows[#rows][s] = { devices = numbers.slice(t.devices, from + (s - 1) * tps[i], tps[i]),
          tp = tps[i], dp = 1 }
      end
    end
  end
  return rows
end

local tables = {}

--- A stage by layer: where it mixes kinds, the slowest and the one with least memory count.
-- @function pipeline.tables
-- @tparam handle ctx the run's input
-- @tparam table stage {devices, tp, dp, micro_batch, recompute, zero, holders}
-- @tparam integer in_flight micro-batches alive
-- @treturn table {times = forward and backward of each layer, total = their sum, held = bytes of
-- each layer, room = bytes for layers}; equal stages share one table
-- @units seconds, bytes
-- @raise a kind that the cluster has not
-- @usage local d = ctx.cluster:devices()[1]
-- local s = require("pipeline").tables(ctx, { devices = { d }, tp = 1, micro_batch = 1 }, 1)
-- print(s.times[1], s.held[1] < s.room)
function pipeline.tables(ctx, stage, in_flight)
  stage.kinds = stage.kinds or inventory.kinds(stage.devices)
  local recompute = stage.recompute or "none"
  local key = table.concat(stage.kinds, "+") .. ("/%d/%g/%s"):format(stage.tp or 1,
    stage.micro_batch, recompute)
  local full = key .. ("/%d/%d/%d"):format(in_flight, stage.zero or 0, stage.holders or 1)
  if tables[full] then
    return tables[full]
  end
  local out = { times = {}, total = 0, room = math.huge }
  local q = { tp = stage.tp, micro_batch = stage.micro_batch, recompute = recompute,
    sequence_parallel = (stage.tp or 1) > 1 }
  for _, kind in ipairs(stage.kinds) do
    local own = prices.chain(ctx, kind, q)
    for l, t in ipairs(own.times) do
      out.times[l] = math.max(out.times[l] or 0, t)
    end
    out.held = prices.layer_bytes(ctx, own, { in_flight = in_flight, zero = stage.zero,
      holders = stage.holders })
    out.room = math.min(out.room, prices.capacity(ctx, { kind = kind }) - prices.overhead_bytes(ctx,
      own))
  end
  tables[key] = tables[key] or out.times -- one list for whatever is in flight
  out.times, tables[full] = tables[key], out
  for _, t in ipairs(out.times) do
    out.total = out.total + t
  end
  return out
end

--- Do these layers fit into a stage?
-- @function pipeline.fits
-- @tparam table t {held, room} of the stage, as pipeline.tables gives it
-- @tparam integer from first layer
-- @tparam integer to last layer
-- @treturn boolean true where they fit
-- @units bytes; layers from 1
-- @raise none
-- @usage assert(not require("pipeline").fits({ held = { 2, 3, 3 }, room = 5 }, 2, 3))
function pipeline.fits(t, from, to)
  local need = 0
  for l = from, to do
    need = need + t.held[l]
  end
  return need <= t.room
end

--- How many layers fit into a stage, wherever in the model it is: all count as the middle one, and
-- a stage with an end of the model keeps room for what the larger end has more.
-- @function pipeline.most
-- @tparam table t {held, room} of the stage, as pipeline.tables gives it
-- @tparam boolean ends is the stage the first or the last
-- @treturn integer layers, at most the model's
-- @units bytes
-- @raise none
-- @usage local t = { held = { 4, 2, 3 }, room = 6 }
-- assert(require("pipeline").most(t, false) == 3 and require("pipeline").most(t, true) == 2)
function pipeline.most(t, ends)
  local middle, n, left = t.held[(#t.held + 1) // 2], 0, t.room
  left = left - (ends and math.max(t.held[1], t.held[#t.held]) - middle or 0)
  while n < #t.held and left >= middle do
    n, left = n + 1, left - middle
  end
  return n
end

--- Gives all stages of joined pipelines their micro-batch (of one rank) and recomputation.
-- @function pipeline.set
-- @tparam table list of pipeline.joined
-- @tparam integer micro_batch sequences on one rank
-- @tparam string recompute as in plan files
-- @treturn nil nothing
-- @units sequences
-- @raise none
-- @usage require("pipeline").set({}, 1, "full")
function pipeline.set(list, micro_batch, recompute)
  for _, p in ipairs(list) do
    for _, stage in ipairs(p.row) do
      stage.micro_batch, stage.recompute = micro_batch, recompute
    end
  end
end

local function least_of(list)
  local least = math.huge
  for _, x in ipairs(list) do
    least = math.min(least, x)
  end
  return least
end

--- The longest stage takes at least so long: n whole layers fit into no less, none of a stage
-- faster than its fastest; `kinds` are {least = seconds of that, stages = how many such stages}.
local function longest(kinds, n, start)
  local at = start
  while true do
    local layers, next_at = 0, math.huge
    for _, k in ipairs(kinds) do
      -- layers that take no time fit anywhere
      if k.least <= 0 then
        return at
      end
      local each = (at / k.least * (1 + 1e-9)) // 1
      layers, next_at = layers + k.stages * each, math.min(next_at, (each + 1) * k.least)
    end
    if layers >= n then
      return at
    end
    at = next_at
  end
end

--- No cut of these pipelines into micro-batches ends earlier: the longest stage takes at least what
-- work spread over all stages would, in whole layers, the first micro-batch at least the fastest
-- stage's time for all layers, and every pipeline gets one.
-- @function pipeline.bound
-- @tparam handle ctx the run's input
-- @tparam table list of pipeline.joined
-- @tparam integer total micro-batches of all of them
-- @treturn number seconds
-- @units seconds
-- @raise as pipeline.tables
-- @usage local d = ctx.cluster:devices()[1]
-- local pipeline = require "pipeline"
-- print(pipeline.bound(ctx, pipeline.joined { { { devices = { d }, micro_batch = 1 } } }, 8))
function pipeline.bound(ctx, list, total)
  local rate, fill, n, lead = 0, 0, 0, 0
  for _, p in ipairs(list) do
    -- micro-batches per second, the first one
    local own, first, kinds, by_table, layers = 0, math.huge, {}, {}, 0
    for _, stage in ipairs(p.row) do
      local t = pipeline.tables(ctx, stage, 1)
      own, first, layers = own + 1 / t.total, math.min(first, t.total), #t.times
      if not by_table[t] then
        t.least = t.least or least_of(t.times)
        by_table[t] = { least = t.least, stages = 0 }
        kinds[#kinds + 1] = by_table[t]
      end
      by_table[t].stages = by_table[t].stages + 1
    end
    own = 1 / longest(kinds, layers, 1 / own)
    n, fill = n + #p.copies, math.max(fill, first)
    rate, lead = rate + #p.copies * own, lead + #p.copies * own * first
  end
  return math.max(fill, (total - n + lead) / rate)
end

--- Seconds per byte from one stage to the next: over the ranks of a tensor group the slowest link,
-- over replicas the mean.
local function hop_of(ctx, before, stage)
  if not stage.hop then
    local sum, dp, tp = 0, stage.dp or 1, stage.tp or 1
    for i = 0, dp - 1 do
      local from = before.devices[i * (#before.devices // dp) + 1] or before.devices[1]
      sum = sum + 1 / links.bandwidth(ctx, from.id, stage.devices[i * tp + 1].id)
    end
    stage.hop = sum / dp
  end
  return stage.hop
end

--- The exact cut of one pipeline within its memory: Σ stages + (M − 1) · longest + hops.
-- @function pipeline.cut
-- @tparam handle ctx the run's input
-- @tparam table row list of stages
-- @tparam integer micro_batches M
-- @tparam table q {outputs = bytes behind each layer for one sequence, ways = how often a hop
-- counts: 1 forward only, 2 with its gradient; in_flight = function(stage, stages), by 1F1B}
-- @treturn table {counts = layers per stage, sum = of times and hops, max, value}; nil and the
-- reason when it does not fit
-- @units seconds, bytes
-- @raise as pipeline.tables
-- @usage local d = ctx.cluster:devices()[1]
-- local row = { { devices = { d }, micro_batch = 1, recompute = "full" } }
-- print(require("pipeline").cut(ctx, row, 8, { outputs = {} }))
function pipeline.cut(ctx, row, micro_batches, q)
  local c = { parts = #row, load = {}, memory = {}, capacity = {}, toll = {}, sum = 1,
    max = micro_batches - 1 }
  for s, stage in ipairs(row) do
    local alive = q.in_flight and q.in_flight(s, #row) or #row - s + 1
    local t = pipeline.tables(ctx, stage, math.min(alive, micro_batches))
    c.load[s], c.memory[s], c.capacity[s], c.n = t.times, t.held, t.room, #t.times
    if t.room <= 0 then
      return nil, stage.kinds[1] .. " has no memory for layers"
    end
    if s > 1 then
      local hop, toll = hop_of(ctx, row[s - 1], stage) * (q.ways or 1) * stage.micro_batch, {}
      for l = 1, c.n - 1 do
        toll[l] = hop * q.outputs[l]
      end
      c.toll[s - 1] = toll
    end
  end
  c.toll = #row > 1 and c.toll or nil
  local cut, why = hv.opt.partition(c)
  if not cut then
    return nil, why
  end
  cut.counts = {}
  for s, range in ipairs(cut.stages) do
    cut.counts[s] = range[2] - range[1] + 1
  end
  return cut
end

--- Pipelines of equal stages joined: { row = the first, copies = all of them }.
-- @function pipeline.joined
-- @tparam table rows list of pipelines
-- @treturn table list in order of first mention
-- @units none
-- @raise none
-- @usage assert(#require("pipeline").joined {} == 0)
function pipeline.joined(rows)
  return numbers.joined(rows, function(row)
    local parts = {}
    for s, stage in ipairs(row) do
      stage.kinds = inventory.kinds(stage.devices)
      parts[s] = table.concat(stage.kinds, "+") .. "/" .. #stage.devices .. "/" .. (stage.tp or 1)
    end
    return table.concat(parts, " ")
  end)
end

--- Deals micro-batches to joined pipelines so that the last one ends earliest (AMP, section 3.6, by
-- an exact split instead of enumeration); writes micro_batches into each.
-- @function pipeline.deal
-- @tparam table list of pipeline.joined, with cut
-- @tparam integer total micro-batches
-- @treturn number seconds of the slowest; nil when they cannot be dealt
-- @units seconds
-- @raise none
-- @usage local list = { { cut = { sum = 3, max = 1 }, copies = { {} } } }
-- assert(require("pipeline").deal(list, 5) == 7 and list[1].micro_batches == 5)
function pipeline.deal(list, total)
  local q = { total = total, time = {}, fixed = {}, sizes = {}, min = {} }
  for i, p in ipairs(list) do
    q.time[i], q.fixed[i] = p.cut.max, p.cut.sum - p.cut.max
    q.sizes[i], q.min[i] = #p.copies, 1
  end
  local split = hv.opt.distribute(q)
  for i, p in ipairs(split and list or {}) do
    p.micro_batches = split.counts[i]
  end
  return split and split.value
end

--- Largest 2 (dp − 1) / dp · bytes over the slowest link, over the stages of joined pipelines.
-- @function pipeline.sync
-- @tparam handle ctx the run's input
-- @tparam table list of pipeline.joined, with cut, all with as many stages
-- @treturn number seconds
-- @units seconds
-- @raise none
-- @usage print(require("pipeline").sync(ctx, {}))
function pipeline.sync(ctx, list)
  local most = 0
  list.ring = list.ring or {}
  for s = 1, #list > 0 and #list[1].row or 0 do
    local heads, bytes = {}, 0
    for _, p in ipairs(list) do
      local stage, to = p.row[s], numbers.ranges(p.cut.counts)[s]
      local own = prices.chain(ctx, stage.devices[1].kind, { tp = stage.tp, micro_batch = 1 })
      bytes = math.max(bytes, prices.gradient_bytes(ctx, own, to[1] + 1, to[2]))
      for _, row in ipairs(list.ring[s] and {} or p.copies) do
        for i = 1, #row[s].devices, stage.tp or 1 do
          heads[#heads + 1] = row[s].devices[i].id
        end
      end
    end
    list.ring[s] = list.ring[s] or links.ring(ctx, heads, 1)
    most = math.max(most, list.ring[s] * bytes)
  end
  return most
end

--- Prices a choice with as little recomputation as its memory allows: exact cuts, micro-batches
-- dealt to unequal pipelines, the slowest all-reduce. Remembered in it.
-- @function pipeline.evaluate
-- @tparam handle ctx the run's input
-- @tparam table c {list = pipeline.joined, pipelines = how many, total = micro-batches of all,
-- micro_batch = of a rank, entering = sequences that enter a pipeline at once, outputs and ways as
-- in pipeline.cut}; gets claim_s and build, a function that makes the plan
-- @treturn number seconds; nil when it does not fit
-- @units seconds
-- @raise as pipeline.tables
-- @usage local c = { list = {}, pipelines = 0, total = 1, micro_batch = 1, done = true }
-- assert(require("pipeline").evaluate(ctx, c) == nil)
function pipeline.evaluate(ctx, c)
  local function priced(recompute)
    pipeline.set(c.list, c.micro_batch, recompute)
    for _, p in ipairs(c.list) do
      p.cut = pipeline.cut(ctx, p.row, math.max(1, c.total // c.pipelines), c)
      if not p.cut then
        return nil
      end
    end
    local seconds = pipeline.deal(c.list, c.total)
    return seconds and seconds + pipeline.sync(ctx, c.list)
  end
  for _, recompute in ipairs(c.done and {} or { "none", "selective", "full" }) do
    c.claim_s, c.recompute = priced(recompute), recompute
    if c.claim_s then
      break
    end
  end
  c.done = true
  function c.build() -- the stages are shared with other choices
    priced(c.recompute)
    return pipeline.plan(ctx, c.list, c.entering)
  end
  return c.claim_s
end

--- Evaluates choices in order of their lower bound until no other can be among the best.
-- @function pipeline.within_bound
-- @tparam table list choices with bound; they get rank, and claim_s where they work out
-- @tparam integer tries how many of the best are wanted
-- @tparam function evaluate function(choice) giving seconds, or nil where it does not fit
-- @treturn table list of choices that fit, all of the best among them
-- @units seconds
-- @raise errors of evaluate
-- @usage local list = { { bound = 2 }, { bound = 1 } }
-- assert(#require("pipeline").within_bound(list, 1, function(c) return c.bound end) == 1)
function pipeline.within_bound(list, tries, evaluate)
  local fitting, best = {}, {}
  for i, c in ipairs(list) do
    c.rank = i
  end
  table.sort(list, function(a, b) return a.bound < b.bound or a.bound == b.bound and a.rank < b.rank end)
  for i, c in ipairs(list) do
    if best[tries] and c.bound >= best[tries] or #fitting > 0 and hv.stopping(0.7)
        or hv.stopping() then
      break
    end
    hv.progress(i / #list, ("choice %d of %d"):format(i, #list))
    c.claim_s = evaluate(c)
    if c.claim_s then
      fitting[#fitting + 1], best[#best + 1] = c, c.claim_s
      table.sort(best)
      best[tries + 1] = nil
    end
  end
  return fitting
end

--- The plan of joined pipelines with cut and micro_batches.
-- @function pipeline.plan
-- @tparam handle ctx the run's input
-- @tparam table list of pipeline.joined
-- @tparam integer micro_batch sequences that enter a pipeline at once
-- @tparam[opt] table schedule with the keys of plan files ({name = "1f1b"})
-- @treturn table plan with the keys of a plan file
-- @units those of a plan file
-- @raise none
-- @usage print(#require("pipeline").plan(ctx, {}, 1).replicas)
function pipeline.plan(ctx, list, micro_batch, schedule)
  local replicas = {}
  for i, p in ipairs(list) do
    local ranges, rows = numbers.ranges(p.cut.counts), {}
    for s, stage in ipairs(p.row) do
      local ids = {}
      for _, row in ipairs(p.copies) do
        for _, d in ipairs(row[s].devices) do
          ids[#ids + 1] = d.id
        end
      end
      rows[s] = prices.stage_keys({ tp = stage.tp, recompute = stage.recompute, zero = stage.zero,
        sequence_parallel = (stage.tp or 1) > 1 },
        { devices = ctx.cluster:address(ids), layers = ranges[s],
          dp = (stage.dp or 1) > 1 and stage.dp or nil, shares = stage.shares })
    end
    replicas[i] = { count = #p.copies, micro_batches = p.micro_batches, stages = rows }
  end
  return { micro_batch = micro_batch, replicas = replicas, schedule = schedule
      or { name = "1f1b" } }
end

--- Pipelines of consecutive devices, those that meet the same kinds and node borders together.
-- @function pipeline.consecutive
-- @tparam table devices list of rows of cluster:devices()
-- @tparam integer depth stages of every pipeline, one device each
-- @tparam integer most how many pipelines; the devices behind them stay unused
-- @treturn table list of {row = first pipeline, a list of {devices, kind, tp = 1}, copies = all of
-- them}
-- @units none
-- @raise none
-- @usage local inventory = require "inventory"
-- print(#require("pipeline").consecutive(inventory.priced(ctx), 1, 2))
function pipeline.consecutive(devices, depth, most)
  local rows = {}
  for r = 1, most do
    rows[r] = {}
    for s = 1, depth do
      local d = devices[(r - 1) * depth + s]
      rows[r][s] = { devices = { d }, kind = d.kind, tp = 1 }
    end
  end
  return numbers.joined(rows, function(row)
    local words = {}
    for s, stage in ipairs(row) do
      words[s] = stage.kind .. (s > 1 and row[s - 1].devices[1].node == stage.devices[1].node
          and "=" or "/")
    end
    return table.concat(words)
  end)
end

--- Deals micro-batches to equal pipelines as evenly as they go: rows of pipelines with as many
-- each.
-- @function pipeline.deal_evenly
-- @tparam table list of {row, copies}
-- @tparam integer total micro-batches of all pipelines
-- @tparam table counts list of the layers per stage
-- @treturn table list of {row, copies, micro_batches, cut = {counts}} as pipeline.plan takes it
-- @units none
-- @raise none
-- @usage local two = { { row = {}, copies = { {}, {} } } }
-- assert(#require("pipeline").deal_evenly(two, 5, {}) == 2)
function pipeline.deal_evenly(list, total, counts)
  local dp, rows = 0, {}
  for _, p in ipairs(list) do
    dp = dp + #p.copies
  end
  local left, base = total % dp, total // dp
  for _, p in ipairs(list) do
    local more = math.min(left, #p.copies)
    left = left - more
    for _, part in ipairs { { 1, more, base + 1 }, { more + 1, #p.copies - more, base } } do
      if part[2] > 0 then
        local copies = numbers.slice(p.copies, part[1], part[2])
        rows[#rows + 1] = { row = copies[1], copies = copies, micro_batches = part[3],
          cut = { counts = counts } }
      end
    end
  end
  return rows
end

--- The largest all-reduce of a stage's gradients over all pipelines.
-- @function pipeline.sync_over_ranges
-- @tparam handle ctx the run's input
-- @tparam table list of {row, copies}
-- @tparam table ranges list of {from, to} per stage, from 0, half open
-- @treturn number seconds
-- @units seconds
-- @raise a kind that the cluster has not
-- @usage assert(require("pipeline").sync_over_ranges(ctx, {}, {}) == 0)
function pipeline.sync_over_ranges(ctx, list, ranges)
  local most = 0
  for s, range in ipairs(ranges) do
    local ids, stage = {}, list[1].row[s]
    for _, p in ipairs(list) do
      for _, row in ipairs(p.copies) do
        ids[#ids + 1] = row[s].devices[1].id
      end
    end
    local own = prices.chain(ctx, stage.kind, { tp = stage.tp, micro_batch = 1 })
    most = math.max(most, prices.sync(ctx, own, range[1] + 1, range[2], ids))
  end
  return most
end

return pipeline
