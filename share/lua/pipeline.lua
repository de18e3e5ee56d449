--- Pipelines as planners build them: rows of stages { devices = rows of cluster:devices(), tp, dp,
-- micro_batch (of one rank), recompute, zero, holders } with times and memory by layer, their exact
-- cut, and the plan they make. A row holds only what describes a stage; layers come from the cut.
-- Joined pipelines are { row, copies = all rows that are equal to it, cut, micro_batches }.
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local prices = require "prices"

local pipeline = {}

local ROUNDING = 1e-9 -- relative error of a quotient that should be whole

--- Pipelines inside each kind: `depth` stages of tps[i] devices each.
-- @function pipeline.inside
-- @tparam table types list as inventory.types gives it
-- @tparam table tps list of the tensor degree per kind
-- @tparam integer depth stages of every pipeline
-- @treturn table list of pipelines; nil when the devices of a kind do not divide
-- @units none
-- @raise none
-- @usage local types = { { devices = { { id = 1 }, { id = 2 } } } }
-- assert(#require("pipeline").inside(types, { 1 }, 1) == 2)
function pipeline.inside(types, tps, depth)
  local rows = {}
  for i, kind in ipairs(types) do
    local tp = tps[i]
    local size = tp * depth
    if #kind.devices % size ~= 0 then
      return nil
    end
    for first = 1, #kind.devices, size do
      local row = {}
      for s = 1, depth do
        row[s] = { devices = numbers.slice(kind.devices, first + (s - 1) * tp, tp), tp = tp,
          dp = 1 }
      end
      rows[#rows + 1] = row
    end
  end
  return rows
end

-- Tables of stages by everything that they depend on, and lists of times by what those depend on.
local tables = {}
local times_known = {}

--- Times, bytes and room of a stage by layer, of all its kinds together.
local function tables_of(ctx, stage, in_flight)
  local t = { times = {}, total = 0, room = math.huge }
  local tp = stage.tp or 1
  local query = { tp = stage.tp, micro_batch = stage.micro_batch,
    recompute = stage.recompute or "none", sequence_parallel = tp > 1 }
  for _, kind in ipairs(stage.kinds) do
    local chain = prices.chain(ctx, kind, query)
    for l, seconds in ipairs(chain.times) do
      t.times[l] = math.max(t.times[l] or 0, seconds)
    end
    t.held = prices.layer_bytes(ctx, chain, { in_flight = in_flight, zero = stage.zero,
      holders = stage.holders })
    t.room = math.min(t.room, prices.capacity(ctx, { kind = kind })
        - prices.overhead_bytes(ctx, chain, stage))
  end
  for _, seconds in ipairs(t.times) do
    t.total = t.total + seconds
  end
  return t
end

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
  local time_key = table.concat(stage.kinds, "+") .. ("/%d/%g/%s"):format(stage.tp or 1,
    stage.micro_batch, stage.recompute or "none")
  local key = time_key .. ("/%d/%d/%d"):format(in_flight, stage.zero or 0, stage.holders or 1)
  if not tables[key] then
    local t = tables_of(ctx, stage, in_flight)
    times_known[time_key] = times_known[time_key] or t.times
    t.times = times_known[time_key] -- one list for any number in flight
    tables[key] = t
  end
  return tables[key]
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
  local need_bytes = 0
  for l = from, to do
    need_bytes = need_bytes + t.held[l]
  end
  return need_bytes <= t.room
end

--- How many layers fit into a stage, wherever in the model it is: every layer counts as the middle
-- one, and a stage with an end of the model has less room by what the larger end takes more.
-- @function pipeline.most
-- @tparam table t {held, room} of the stage, as pipeline.tables gives it
-- @tparam boolean ends is the stage the first or the last
-- @treturn integer layers, at most the model's
-- @units bytes
-- @raise none
-- @usage local t = { held = { 4, 2, 3 }, room = 6 }
-- assert(require("pipeline").most(t, false) == 3 and require("pipeline").most(t, true) == 2)
function pipeline.most(t, ends)
  local middle_bytes = t.held[(#t.held + 1) // 2]
  local left_bytes = t.room
  if ends then
    left_bytes = left_bytes - (math.max(t.held[1], t.held[#t.held]) - middle_bytes)
  end
  local n = 0
  while n < #t.held and left_bytes >= middle_bytes do
    n = n + 1
    left_bytes = left_bytes - middle_bytes
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
      stage.micro_batch = micro_batch
      stage.recompute = recompute
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

--- A lower bound in seconds of the longest stage from `start_s` on: stages together must have time
-- for n whole layers, none of which is faster than the fastest layer of its stage. `kinds` are
-- {least = seconds of that layer, stages = number of such stages}.
local function longest_stage_s(kinds, n, start_s)
  local bound_s = start_s
  while true do
    local layers = 0
    local next_s = math.huge
    for _, kind in ipairs(kinds) do
      if kind.least <= 0 then
        return bound_s -- layers that take no time fit anywhere
      end
      local per_stage = (bound_s / kind.least * (1 + ROUNDING)) // 1
      layers = layers + kind.stages * per_stage
      next_s = math.min(next_s, (per_stage + 1) * kind.least)
    end
    if layers >= n then
      return bound_s
    end
    bound_s = next_s
  end
end

--- Lower bounds of one pipeline: {rate = micro-batches per second, first_s = seconds of the first
-- micro-batch}.
local function bounds_of(ctx, row)
  local speed = 0
  local first_s = math.huge
  local n_layers = 0
  local kinds = {}
  local by_table = {}
  for _, stage in ipairs(row) do
    local t = pipeline.tables(ctx, stage, 1)
    speed = speed + 1 / t.total
    first_s = math.min(first_s, t.total)
    n_layers = #t.times
    if not by_table[t] then
      t.least = t.least or least_of(t.times)
      by_table[t] = { least = t.least, stages = 0 }
      kinds[#kinds + 1] = by_table[t]
    end
    by_table[t].stages = by_table[t].stages + 1
  end
  return { rate = 1 / longest_stage_s(kinds, n_layers, 1 / speed), first_s = first_s }
end

--- A lower bound of the time of every cut of these pipelines: the longest stage takes at least as
-- long as work spread over all stages, in whole layers; the first micro-batch takes at least the
-- fastest stage's time for all layers; and every pipeline gets one micro-batch.
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
  local n = 0
  local fill_s = 0
  local rate = 0
  local lead = 0 -- micro-batches in the time that first ones take longer than others
  for _, p in ipairs(list) do
    local own = bounds_of(ctx, p.row)
    n = n + #p.copies
    fill_s = math.max(fill_s, own.first_s)
    rate = rate + #p.copies * own.rate
    lead = lead + #p.copies * own.rate * own.first_s
  end
  return math.max(fill_s, (total - n + lead) / rate)
end

--- Seconds per byte from one stage to the next: the mean over replicas of the link to the first
-- rank of a tensor group.
local function hop_of(ctx, before, stage)
  if not stage.hop then
    local dp = stage.dp or 1
    local tp = stage.tp or 1
    local sum = 0
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
-- counts: 1 forward only, 2 with its gradient; in_flight = function(stage, stages), by 1F1B;
-- reserve = bytes of every device that are left unused, 0}
-- @treturn table {counts = layers per stage, sum = of times and hops, max, value}; nil and the
-- reason when it does not fit
-- @units seconds, bytes
-- @raise as pipeline.tables
-- @usage local d = ctx.cluster:devices()[1]
-- local row = { { devices = { d }, micro_batch = 1, recompute = "full" } }
-- print(require("pipeline").cut(ctx, row, 8, { outputs = {} }))
function pipeline.cut(ctx, row, micro_batches, q)
  local instance = { parts = #row, load = {}, memory = {}, capacity = {}, sum = 1,
    max = micro_batches - 1 }
  local toll = {}
  for s, stage in ipairs(row) do
    local alive = q.in_flight and q.in_flight(s, #row) or #row - s + 1
    local t = pipeline.tables(ctx, stage, math.min(alive, micro_batches))
    instance.load[s] = t.times
    instance.memory[s] = t.held
    instance.capacity[s] = t.room - (q.reserve or 0)
    instance.n = #t.times
    if instance.capacity[s] <= 0 then
      return nil, stage.kinds[1] .. " has no memory for layers"
    end
    if s > 1 then
      local hop = hop_of(ctx, row[s - 1], stage) * (q.ways or 1) * stage.micro_batch
      toll[s - 1] = {}
      for l = 1, instance.n - 1 do
        toll[s - 1][l] = hop * q.outputs[l]
      end
    end
  end
  if #row > 1 then
    instance.toll = toll
  end
  local cut, why = hv.opt.partition(instance)
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
    q.time[i] = p.cut.max
    q.fixed[i] = p.cut.sum - p.cut.max
    q.sizes[i] = #p.copies
    q.min[i] = 1
  end
  local split = hv.opt.distribute(q)
  if not split then
    return nil
  end
  for i, p in ipairs(list) do
    p.micro_batches = split.counts[i]
  end
  return split.value
end

--- The devices that reduce the gradients of stage s: the first of every tensor group, over all
-- copies of joined pipelines.
local function heads_of(list, s)
  local heads = {}
  for _, p in ipairs(list) do
    for _, row in ipairs(p.copies) do
      for i = 1, #row[s].devices, p.row[s].tp or 1 do
        heads[#heads + 1] = row[s].devices[i].id
      end
    end
  end
  return heads
end

--- Bytes of the gradients of stage s, the largest over joined pipelines.
local function stage_gradient_bytes(ctx, list, s)
  local bytes = 0
  for _, p in ipairs(list) do
    local stage = p.row[s]
    local range = numbers.ranges(p.cut.counts)[s]
    local chain = prices.chain(ctx, stage.devices[1].kind, { tp = stage.tp, micro_batch = 1 })
    bytes = math.max(bytes, prices.gradient_bytes(ctx, chain, range[1] + 1, range[2]))
  end
  return bytes
end

--- Largest 2 (dp − 1) / dp · bytes over the slowest link, over the stages of joined pipelines. The
-- seconds per byte of each stage are remembered in list.ring.
-- @function pipeline.sync
-- @tparam handle ctx the run's input
-- @tparam table list of pipeline.joined, with cut, all with as many stages
-- @treturn number seconds
-- @units seconds
-- @raise none
-- @usage print(require("pipeline").sync(ctx, {}))
function pipeline.sync(ctx, list)
  list.ring = list.ring or {}
  local most_s = 0
  for s = 1, #list > 0 and #list[1].row or 0 do
    list.ring[s] = list.ring[s] or links.ring(ctx, heads_of(list, s), 1)
    most_s = math.max(most_s, list.ring[s] * stage_gradient_bytes(ctx, list, s))
  end
  return most_s
end

--- Seconds of a choice with the given recomputation; nil where it does not fit.
local function price_with(ctx, c, recompute)
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

--- Prices a choice with the least recomputation that its memory allows: exact cuts, micro-batches
-- dealt to unequal pipelines, the slowest all-reduce. The result is remembered in the choice.
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
  if not c.done then
    for _, recompute in ipairs { "none", "selective", "full" } do
      c.claim_s = price_with(ctx, c, recompute)
      c.recompute = recompute
      if c.claim_s then
        break
      end
    end
    c.done = true
  end
  function c.build()
    price_with(ctx, c, c.recompute) -- stages are shared with other choices: set them again
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
  for i, c in ipairs(list) do
    c.rank = i
  end
  table.sort(list, function(a, b)
    if a.bound ~= b.bound then
      return a.bound < b.bound
    end
    return a.rank < b.rank
  end)
  local fitting = {}
  local best_s = {} -- times of the `tries` best, in order
  for i, c in ipairs(list) do
    if best_s[tries] and c.bound >= best_s[tries] or #fitting > 0 and hv.stopping(0.7)
        or hv.stopping() then
      break
    end
    hv.progress(i / #list, ("choice %d of %d"):format(i, #list))
    c.claim_s = evaluate(c)
    if c.claim_s then
      fitting[#fitting + 1] = c
      best_s[#best_s + 1] = c.claim_s
      table.sort(best_s)
      best_s[tries + 1] = nil
    end
  end
  return fitting
end

--- The stage row of a plan for stage s of joined pipelines, with these layers.
local function stage_row(ctx, p, s, layers)
  local stage = p.row[s]
  local ids = {}
  for _, row in ipairs(p.copies) do
    for _, device in ipairs(row[s].devices) do
      ids[#ids + 1] = device.id
    end
  end
  local place = { devices = ctx.cluster:address(ids), layers = layers, shares = stage.shares }
  if (stage.dp or 1) > 1 then
    place.dp = stage.dp
  end
  return prices.stage_keys({ tp = stage.tp, recompute = stage.recompute, zero = stage.zero,
    sequence_parallel = (stage.tp or 1) > 1 }, place)
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
    local ranges = numbers.ranges(p.cut.counts)
    local stages = {}
    for s in ipairs(p.row) do
      stages[s] = stage_row(ctx, p, s, ranges[s])
    end
    replicas[i] = { count = #p.copies, micro_batches = p.micro_batches, stages = stages }
  end
  return { micro_batch = micro_batch, replicas = replicas,
    schedule = schedule or { name = "1f1b" } }
end

--- Pipelines of consecutive devices; those with the same kinds and node borders are joined.
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
      local device = devices[(r - 1) * depth + s]
      rows[r][s] = { devices = { device }, kind = device.kind, tp = 1 }
    end
  end
  return numbers.joined(rows, function(row)
    local words = {}
    for s, stage in ipairs(row) do
      local is_same_node = s > 1 and row[s - 1].devices[1].node == stage.devices[1].node
      words[s] = stage.kind .. (is_same_node and "=" or "/")
    end
    return table.concat(words)
  end)
end

--- Deals micro-batches to equal pipelines as evenly as possible: rows of pipelines with the same
-- number each.
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
  local n_pipelines = 0
  for _, p in ipairs(list) do
    n_pipelines = n_pipelines + #p.copies
  end
  local base = total // n_pipelines
  local n_left = total % n_pipelines -- the first ones get one more
  local rows = {}
  local function add(p, first, n, micro_batches)
    if n > 0 then
      local copies = numbers.slice(p.copies, first, n)
      rows[#rows + 1] = { row = copies[1], copies = copies, micro_batches = micro_batches,
        cut = { counts = counts } }
    end
  end
  for _, p in ipairs(list) do
    local n_more = math.min(n_left, #p.copies)
    n_left = n_left - n_more
    add(p, 1, n_more, base + 1)
    add(p, n_more + 1, #p.copies - n_more, base)
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
  local most_s = 0
  for s, range in ipairs(ranges) do
    local ids = {}
    for _, p in ipairs(list) do
      for _, row in ipairs(p.copies) do
        ids[#ids + 1] = row[s].devices[1].id
      end
    end
    local stage = list[1].row[s]
    local chain = prices.chain(ctx, stage.kind, { tp = stage.tp, micro_batch = 1 })
    most_s = math.max(most_s, prices.sync(ctx, chain, range[1] + 1, range[2], ids))
  end
  return most_s
end

return pipeline
