-- The choices of DistTrain's search: tensor degrees, replicas, depth and samples of a micro-batch,
-- with GPUs by the closed form and the iteration time by formula.
local candidates = require "candidates"
local gpu_split = require "gpu_split"
local inventory = require "inventory"
local iteration_time = require "iteration_time"
local links = require "links"
local numbers = require "numbers"
local sample_time = require "sample_time"
local search = require "search"

-- depths that are kept for each choice of degrees and micro-batch, best first by the formula
local KEPT_DEPTHS = 3

local choices = {}

--- Runs of devices of one kind in an order: a list of {kind, last = position of its last device}.
local function runs_of(order)
  local runs = {}
  for i, device in ipairs(order) do
    if i == 1 or order[i - 1].kind ~= device.kind then
      runs[#runs + 1] = { kind = device.kind }
    end
    runs[#runs].last = i
  end
  return runs
end

--- The largest of value(kind) over the kinds of the `count` devices behind the first `before`.
local function largest(runs, before, count, value)
  local most, first = 0, 1
  for _, run in ipairs(runs) do
    if run.last > before and first <= before + count then
      most = math.max(most, value(run.kind))
    end
    first = run.last + 1
  end
  return most
end

--- Seconds per byte of the slowest link of a ring through the `count` devices behind the first
-- `before`. Remembered in q.
local function ring_of(ctx, q, before, count)
  local by_count = q.rings[before] or {}
  q.rings[before] = by_count
  if not by_count[count] then
    local slowest = links.bandwidth(ctx, q.order[before + count].id, q.order[before + 1].id)
    for i = before + 1, before + count - 1 do
      slowest = math.min(slowest, links.bandwidth(ctx, q.order[i].id, q.order[i + 1].id))
    end
    by_count[count] = 1 / slowest
  end
  return by_count[count]
end

--- Seconds in which the activations of so many samples pass from a stage to the next one, if they
-- share the slowest link between the first or last devices of both.
local function hop_s(ctx, q, stage, next_stage, samples)
  local slowest_s = 0
  for _, i in ipairs { stage.before + 1, stage.before + stage.count } do
    for _, j in ipairs { next_stage.before + 1, next_stage.before + next_stage.count } do
      slowest_s = math.max(slowest_s,
        links.seconds(ctx, q.order[i].id, q.order[j].id, samples * q.output_bytes))
    end
  end
  return slowest_s
end

--- The formula on the stages of a choice, each as long as its slowest device takes for as many
-- samples as the fullest of its ranks has, and the longest exchange of gradients, which the formula
-- leaves out. Then the same where what passes between stages shares one link.
local function seconds_of(ctx, c, q)
  local stage_s, samples, exchange_s, shared_s = {}, c.dp * c.m, 0, {}
  local stages = gpu_split.stages(c)
  for s, stage in ipairs(stages) do
    stage_s[s] = math.ceil(samples / stage.dp) * largest(q.runs, stage.before, stage.count,
      function(kind)
        return sample_time.of_kind(ctx, stage.from, stage.to, kind, stage.tp, c.recompute)
      end)
    local bytes = sample_time.gradient_bytes(ctx, stage.from, stage.to, q.kinds[1], stage.tp,
      c.recompute)
    exchange_s = math.max(exchange_s, 2 * (stage.dp - 1) / stage.dp * bytes
      * ring_of(ctx, q, stage.before, stage.count))
    shared_s[2 * s - 1] = stage_s[s]
    shared_s[2 * s] = stages[s + 1] and 2 * hop_s(ctx, q, stage, stages[s + 1], samples)
  end
  local steps = c.batch // samples
  return iteration_time.of_stages(stage_s, steps) + exchange_s,
    iteration_time.of_stages(shared_s, steps) + exchange_s
end

--- The choice of a point with so many stages of the backbone; nil where the GPUs do not suffice.
local function choice_of(ctx, q, point, depth)
  local lm = point.tp.lm * point.dp * depth
  local gpus = gpu_split.sides(#q.order - lm, point.work, point.tp.me, point.dp * point.m)
  if not gpus then
    return nil
  end
  gpus.lm = lm
  local c = { tp = point.tp, dp = point.dp, depth = depth, m = point.m, gpus = gpus,
    batch = ctx.job.global_batch, recompute = q.recompute, C = point.C, order = q.order,
    ranges = q.ranges }
  c.formula_s = iteration_time.of(c)
  return c
end

--- A point {tp, dp, m} with the seconds of a sample on each module, C, and the work in GPU seconds
-- per sample; nil where the batch or the GPUs do not allow it.
local function point_of(ctx, q, tp_side, tp_lm, dp, m)
  if ctx.job.global_batch % (dp * m) ~= 0 or tp_lm * dp > #q.order then
    return nil
  end
  local point = { tp = { me = tp_side, lm = tp_lm, mg = tp_side }, dp = dp, m = m, C = {},
    work = {} }
  for key, range in pairs(q.ranges) do
    point.C[key] = sample_time.seconds(ctx, range, q.kinds, point.tp[key], q.recompute)
    point.work[key] = point.C[key] * point.tp[key]
  end
  return point
end

--- The choices of a point in the depths around the closed form, of which at most `most` are kept by
-- the formula for equal GPUs.
local function depths_of(ctx, q, point, most)
  local found = {}
  local layers = q.ranges.lm[2] - q.ranges.lm[1] + 1
  local size = point.tp.lm * point.dp
  for _, depth in ipairs(gpu_split.depths(#q.order, point.work, size,
    math.min(layers, #q.order // size))) do
    found[#found + 1] = choice_of(ctx, q, point, depth)
  end
  table.sort(found, function(a, b)
    if a.formula_s ~= b.formula_s then
      return a.formula_s < b.formula_s
    end
    return a.depth < b.depth
  end)
  found = numbers.slice(found, 1, math.min(#found, most))
  for _, c in ipairs(found) do
    c.claim_s, c.shared_s = seconds_of(ctx, c, q)
  end
  return found
end

--- Is a choice better than another one by the formula?
function choices.before(a, b)
  if a.claim_s ~= b.claim_s then
    return a.claim_s < b.claim_s
  end
  return a.rank < b.rank
end

--- Is it better where what passes between stages shares one link?
function choices.before_shared(a, b)
  if a.shared_s ~= b.shared_s then
    return a.shared_s < b.shared_s
  end
  return a.rank < b.rank
end

--- What the choices of one order of the devices have in common: {order, ranges = parts of the
-- model, recompute, kinds, runs, rings = what ring_of remembers, output_bytes of one sample}.
local function common(ctx, order, ranges, recompute)
  order.rings = order.rings or {}
  return { order = order, ranges = ranges, recompute = recompute, kinds = inventory.kinds(order),
    runs = runs_of(order), rings = order.rings,
    output_bytes = sample_time.output_bytes(ctx, order[1].kind) }
end

--- Adds to `list` the choices of one order of the devices, without recomputation. `ranges` = parts
-- of the model, `tps` = tensor degrees. A choice: {order, ranges, tp, dp, depth, m = samples per
-- micro-batch and replica, batch, recompute, C = seconds per sample of each part, gpus, claim_s =
-- seconds by the formula, shared_s = where what passes between stages shares one link, rank}.
function choices.add(ctx, list, order, ranges, tps)
  local q = common(ctx, order, ranges, "none")
  for values in candidates.in_time(search.product { tps, tps,
    numbers.divisors(ctx.job.global_batch), numbers.powers(8) }) do
    local point = point_of(ctx, q, table.unpack(values))
    for _, c in ipairs(point and depths_of(ctx, q, point, KEPT_DEPTHS) or {}) do
      c.rank = #list + 1
      list[c.rank] = c
    end
  end
end

--- A choice with other recomputation.
local function with_recompute(ctx, c, recompute)
  local q = common(ctx, c.order, c.ranges, recompute)
  local point = point_of(ctx, q, c.tp.me, c.tp.lm, c.dp, c.m)
  local other = choice_of(ctx, q, point, c.depth)
  other.claim_s, other.shared_s = seconds_of(ctx, other, q)
  other.rank = c.rank
  return other
end

--- The choices of a list in the order of `before`: next() gives one after the other, nil at the
-- end; full(choice) says that the last one lacks memory, so that the same with recomputation takes
-- its place further on, if fits(choice) says that full recomputation is enough.
function choices.queue(ctx, list, before, fits)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted, before)
  local waiting, taken = {}, 0 -- waiting: the best one last
  local queue = {}
  function queue.next()
    local first, again = sorted[taken + 1], waiting[#waiting]
    if again and not (first and before(first, again)) then
      return table.remove(waiting)
    end
    taken = taken + 1
    return first
  end
  function queue.full(c)
    local least = c.recompute == "none" and with_recompute(ctx, c, "full")
    local some = least and fits(least) and { with_recompute(ctx, c, "selective"), least } or {}
    for _, other in ipairs(some) do
      local low, high = 1, #waiting + 1
      while low < high do
        local middle = (low + high) // 2
        if before(other, waiting[middle]) then
          low = middle + 1
        else
          high = middle
        end
      end
      table.insert(waiting, low, other)
    end
  end
  return queue
end

--- The neighbours of a choice: one stage of the backbone more or less, another tensor degree of the
-- sides or of the backbone, other replicas and samples, other recomputation, another one of the
-- orders of the devices.
function choices.near(ctx, c, tps, orders)
  local list = {}
  local function add(recompute, tp_side, tp_lm, dp, m, depth, order)
    local q = common(ctx, order or c.order, c.ranges, recompute)
    local point = dp and point_of(ctx, q, tp_side, tp_lm, dp, m)
    local layers = c.ranges.lm[2] - c.ranges.lm[1] + 1
    local most = point and math.min(layers, #c.order // (tp_lm * dp)) or 0
    if depth and depth >= 1 and depth <= most then
      list[#list + 1] = choice_of(ctx, q, point, depth)
    elseif not depth and most >= 1 then
      list[#list + 1] = depths_of(ctx, q, point, 1)[1]
    end
  end
  local tp_side = c.tp.me
  for _, depth in ipairs { c.depth - 1, c.depth + 1 } do
    add(c.recompute, tp_side, c.tp.lm, c.dp, c.m, depth)
  end
  for _, tp in ipairs(tps) do
    add(c.recompute, tp, c.tp.lm, c.dp, c.m, c.depth)
    add(c.recompute, tp_side, tp, c.dp, c.m)
  end
  local fewer, more = numbers.neighbours(c.batch, c.dp)
  for _, dp in pairs { fewer, more } do
    local depth = math.max(1, c.depth * c.dp // dp) -- on as many GPUs
    for _, m in ipairs { c.m, math.max(1, c.m * c.dp // dp) } do
      add(c.recompute, tp_side, c.tp.lm, dp, m)
      add(c.recompute, tp_side, c.tp.lm, dp, m, depth)
    end
  end
  for _, m in ipairs { c.m // 2, 2 * c.m } do
    if m >= 1 then
      add(c.recompute, tp_side, c.tp.lm, c.dp, m, c.depth)
    end
  end
  for _, recompute in ipairs { "none", "selective", "full" } do
    add(recompute, tp_side, c.tp.lm, c.dp, c.m, c.depth)
  end
  for _, order in ipairs(orders) do
    add(c.recompute, tp_side, c.tp.lm, c.dp, c.m, c.depth, order)
  end
  return list
end

return choices
