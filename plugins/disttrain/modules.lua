-- Modules of a model (encoder me, backbone lm, generator mg) on GPUs of their own, and the order of
-- unequal samples (DistTrain, Zhang et al., arXiv 2408.04275).
local numbers = require "numbers"

local modules = {}

--- T_iter of section 4 for module times per sample C on one tensor group { me, lm, mg }, degrees
-- tp, GPUs, depth, replicas dp, samples m per micro-batch and replica, and the batch: warm-up and
-- steady part.
-- @function modules.seconds
-- @tparam table q {C = {me, lm, mg}, tp = {me, mg}, gpus = {me, mg}, depth, dp, m, batch}
-- @treturn number iteration, and its steady part
-- @units seconds; the batch and m are numbers of samples
-- @raise none
-- @usage local q = { C = { me = 1, lm = 2, mg = 1 }, tp = { me = 1, mg = 1 }, gpus = { me = 1, mg = 1 }, depth = 2,
--   dp = 1, m = 1, batch = 3 }
-- assert(require("modules").seconds(q) == 6)
function modules.seconds(q)
  local lm = q.C.lm * q.m
  local function side(key) -- a model may lack it
    return q.C[key] and q.C[key] > 0 and q.dp * q.tp[key] * q.m * q.C[key] / q.gpus[key] or 0
  end
  local me, mg = side "me", side "mg"
  local steady = math.max(lm / q.depth, me, mg) * (q.batch / (q.dp * q.m) - 1)
  return me + lm + mg + steady, steady
end

--- Runs of layers of the three parts: of a model of modules the one with most parameters is the
-- backbone, what is before it the encoder, what is behind it the generator; else the first and the
-- last `side` layers are split off.
-- @function modules.parts
-- @tparam table layers list of the model's layers, as ctx.model:layers() gives them
-- @tparam table side {encoder, generator} numbers of layers, 0: an eighth
-- @treturn table {me, lm, mg} ranges {first, last}; me or mg is missing where there is none; nil:
-- no backbone is left
-- @units none
-- @raise none
-- @usage local p = require("modules").parts({ {}, {}, {}, {} }, { encoder = 1, generator = 1 })
-- assert(p.lm[1] == 2 and p.lm[2] == 3)
function modules.parts(layers, side)
  local n, most, from = #layers, 0, 1
  if not layers[1].module then
    local eighth = math.max(1, n // 8)
    local me = side.encoder > 0 and side.encoder or eighth
    local mg = side.generator > 0 and side.generator or eighth
    return me + mg < n and { me = { 1, me }, lm = { me + 1, n - mg }, mg = { n - mg + 1, n } }
      or nil
  end
  local out, weight = {}, 0
  for l, layer in ipairs(layers) do
    weight = weight + layer.parameters
    if l == n or layers[l + 1].module ~= layer.module then
      if weight > most then
        most, out.lm = weight, { from, l }
      end
      from, weight = l + 1, 0
    end
  end
  out.me = out.lm[1] > 1 and { 1, out.lm[1] - 1 } or nil
  out.mg = out.lm[2] < n and { out.lm[2] + 1, n } or nil
  return out
end

--- Where the layers from..to are, as the keys of a stage say it: inside one module by its name.
-- @function modules.place
-- @tparam table layers list of the model's layers, as ctx.model:layers() gives them
-- @tparam integer from first layer
-- @tparam integer to last layer
-- @treturn table {layers, module}
-- @units none
-- @raise none
-- @usage local k = require("modules").place({ { module = "a" }, { module = "b" }, { module = "b" } }, 2, 3)
-- assert(k.module == "b" and k.layers[1] == 0 and k.layers[2] == 2)
function modules.place(layers, from, to)
  local name, base = layers[from].module, from
  if name == nil or layers[to].module ~= name then
    return { layers = { from - 1, to } }
  end
  while base > 1 and layers[base - 1].module == name do
    base = base - 1
  end
  return { module = name, layers = { from - base, to - base + 1 } }
end

--- The first layer of every module.
-- @function modules.firsts
-- @tparam table layers list of the model's layers, as ctx.model:layers() gives them
-- @treturn table {module = layer}
-- @units none
-- @raise none
-- @usage assert(require("modules").firsts({ { module = "a" }, { module = "b" } }).b == 2)
function modules.firsts(layers)
  local out = {}
  for l = #layers, 1, -1 do
    if layers[l].module then
      out[layers[l].module] = l
    end
  end
  return out
end

--- Stages of a choice in the order of the pipeline: encoder, backbone in `depth` even runs of
-- layers, generator.
-- @function modules.rows
-- @tparam table c {order = list of devices, ranges = {me, lm, mg}, gpus = {me, mg}, tp = {me, lm,
-- mg}, dp, depth}
-- @treturn table list of {devices, tp, dp, from, to}
-- @units none
-- @raise none
-- @usage local rows = require("modules").rows { order = { {}, {}, {} },
--   ranges = { me = { 1, 2 }, lm = { 3, 8 } }, gpus = { me = 1 }, tp = { me = 1, lm = 1 }, dp = 1, depth = 2 }
-- assert(#rows == 3 and rows[3].from == 6)
function modules.rows(c)
  local rows, at = {}, 0
  local function add(size, tp, from, to)
    rows[#rows + 1] = { devices = numbers.slice(c.order, at + 1, size), tp = tp, dp = size // tp,
      from = from, to = to }
    at = at + size
  end
  if c.ranges.me then
    add(c.gpus.me, c.tp.me, c.ranges.me[1], c.ranges.me[2])
  end
  local first = c.ranges.lm[1]
  for _, n in ipairs(numbers.even(c.ranges.lm[2] - first + 1, c.depth)) do
    add(c.tp.lm * c.dp, c.tp.lm, first, first + n - 1)
    first = first + n
  end
  if c.ranges.mg then
    add(c.gpus.mg, c.tp.mg, c.ranges.mg[1], c.ranges.mg[2])
  end
  return rows
end

--- GPUs in proportion to work (the closed form of the steady part), in multiples of the tensor
-- degrees.
-- @function modules.gpus
-- @tparam integer n how many GPUs
-- @tparam table work {me, lm, mg}
-- @tparam table tp {me, lm, mg}
-- @treturn table {me, lm, mg}
-- @units any for work
-- @raise none
-- @usage local one = { me = 1, lm = 1, mg = 1 }
-- assert(require("modules").gpus(4, { me = 1, lm = 2, mg = 1 }, one).lm == 2)
function modules.gpus(n, work, tp)
  local r = hv.opt.distribute { total = n, time = { work.me, work.lm, work.mg },
    objective = "ratio" }
  local out = {}
  for i, key in ipairs { "me", "lm", "mg" } do
    out[key] = work[key] > 0 and math.max(tp[key], (r and r.counts[i] or 0) // tp[key] * tp[key])
      or 0
  end
  return out
end

--- Section 5.1: samples to groups, largest first, each to the least loaded: load per group.
-- @function modules.balanced
-- @tparam table sizes list of sizes of the samples
-- @tparam integer groups how many
-- @treturn table list of the load per group
-- @units any
-- @raise none
-- @usage assert(math.max(table.unpack(require("modules").balanced({ 3, 2, 1 }, 2))) == 3)
function modules.balanced(sizes, groups)
  local r = hv.opt.distribute { items = sizes, slots = groups, objective = "lpt" }
  local loads = {}
  for g = 1, groups do
    loads[g] = 0
  end
  for i, g in ipairs(r.counts) do
    loads[g] = loads[g] + sizes[i]
  end
  return loads
end

--- Positions 1 to n dealt to groups in turns.
local function in_turns(n, groups)
  local out = {}
  for i = 1, n do
    local g = (i - 1) % groups + 1
    out[g] = out[g] or {}
    table.insert(out[g], i)
  end
  return out
end

--- The same with as many samples in every group (data-parallel ranks take steps together): largest
-- first, each to the least loaded group that has room; the given deal, in turns, where its largest
-- load is no more.
-- @function modules.dealt
-- @tparam table sizes list of sizes of the samples, a multiple of the groups
-- @tparam integer groups how many
-- @treturn table list of lists of positions, each in the order of the samples; then the largest
-- load as given and now
-- @units any
-- @raise none
-- @usage local groups, given, now = require("modules").dealt({ 4, 1, 3, 2 }, 2)
-- assert(given == 7 and now == 5 and groups[1][1] == 1 and groups[1][2] == 2)
function modules.dealt(sizes, groups)
  local order, out, loads, room = {}, {}, {}, #sizes // groups
  for i in ipairs(sizes) do
    order[i] = i
  end
  table.sort(order, function(a, b) return sizes[a] > sizes[b] or sizes[a] == sizes[b] and a < b end)
  for g = 1, groups do
    out[g], loads[g] = {}, 0
  end
  for _, i in ipairs(order) do
    local least
    for g = 1, groups do
      if #out[g] < room and (not least or loads[g] < loads[least]) then
        least = g
      end
    end
    table.insert(out[least], i)
    loads[least] = loads[least] + sizes[i]
  end
  local given, before, now = in_turns(#sizes, groups), 0, math.max(table.unpack(loads))
  for _, group in ipairs(given) do
    local sum = 0
    for _, i in ipairs(group) do
      sum = sum + sizes[i]
    end
    before = math.max(before, sum)
  end
  for g = 1, groups do
    table.sort(out[g])
  end
  return before > now and out or given, before, math.min(before, now)
end

--- Micro-batches of one group: m samples each, as they come, or with `alike` those of like size
-- together.
-- @function modules.packed
-- @tparam table tokens list of tokens of all samples
-- @tparam table group list of positions in it
-- @tparam integer m samples of a micro-batch; divides those of the group
-- @tparam boolean alike sort by size first
-- @treturn table list of {sequences, tokens = of all of them}
-- @units tokens
-- @raise none
-- @usage local list = require("modules").packed({ 8, 2, 8, 4 }, { 1, 2, 3, 4 }, 2, true)
-- assert(list[1].tokens == 6 and list[2].tokens == 16)
function modules.packed(tokens, group, m, alike)
  local own, list = {}, {}
  for k, i in ipairs(group) do
    own[k] = tokens[i]
  end
  if alike then
    table.sort(own)
  end
  for from = 1, #own, m do
    local sum = 0
    for k = from, from + m - 1 do
      sum = sum + own[k]
    end
    list[#list + 1] = { sequences = m, tokens = sum }
  end
  return list
end

--- Section 5.2: an order of micro-batches with these encoder times before a backbone that takes
-- `interval` for each: the smallest first, then always the largest that is ready before the
-- backbone runs dry (else the smallest), the shortest kept for the tail.
-- @function modules.reordered
-- @tparam table times list of the encoder time of each micro-batch
-- @tparam number interval time of the backbone
-- @tparam integer tail how many of the shortest are kept for the end
-- @treturn table list of positions in their new order
-- @units any for times
-- @raise none
-- @usage assert(table.concat(require("modules").reordered({ 4, 1, 2 }, 3, 1), " ") == "2 1 3")
function modules.reordered(times, interval, tail)
  local left, order, last = {}, {}, {}
  for i in ipairs(times) do
    left[i] = i
  end
  table.sort(left, function(a, b) return times[a] < times[b] or times[a] == times[b] and a < b end)
  order[1] = table.remove(left, 1)
  for _ = 1, math.min(tail, #left) do
    last[#last + 1] = table.remove(left, 1)
  end
  local encoder, backbone = times[order[1]], times[order[1]] + interval
  while #left > 0 do
    local at = 1
    for k, i in ipairs(left) do
      at = times[i] <= backbone - encoder and k or at
    end
    local i = table.remove(left, at)
    encoder, order[#order + 1] = encoder + times[i], i
    backbone = math.max(encoder, backbone) + interval
  end
  for k = #last, 1, -1 do
    order[#order + 1] = last[k]
  end
  return order
end

--- When an order ends on an encoder with these times, then a backbone.
-- @function modules.two_steps
-- @tparam table order list of positions
-- @tparam table times list of times of the encoder
-- @tparam number interval time of the backbone
-- @treturn number end
-- @units any
-- @raise none
-- @usage assert(require("modules").two_steps({ 1 }, { 2 }, 3) == 5)
function modules.two_steps(order, times, interval)
  local encoder, backbone = 0, 0
  for _, i in ipairs(order) do
    encoder = encoder + times[i]
    backbone = math.max(encoder, backbone) + interval
  end
  return backbone
end

--- The order of section 5.2 where it ends earlier on an encoder and a backbone, else the given one.
-- @function modules.kept
-- @tparam table times list of the encoder time of each micro-batch
-- @tparam number interval time of the backbone
-- @tparam integer tail how many of the shortest are kept for the end
-- @treturn table list of positions
-- @units any for times
-- @raise none
-- @usage assert(table.concat(require("modules").kept({ 4, 1, 2 }, 3, 1), " ") == "2 1 3")
function modules.kept(times, interval, tail)
  local given, new = {}, modules.reordered(times, interval, tail)
  for i in ipairs(times) do
    given[i] = i
  end
  local sooner = modules.two_steps(new, times, interval) < modules.two_steps(given, times, interval)
  return sooner and new or given
end

--- Micro-batches of a job's lengths, each of one length, in the order in which data arrive (drawn).
-- @function modules.batches
-- @tparam table lengths list of {tokens, frac}
-- @tparam integer count how many
-- @tparam integer sequences in each
-- @tparam integer seed of the order
-- @treturn table list of {sequences, tokens = of all of them}
-- @units tokens; those of the lengths are per sequence
-- @raise none
-- @usage assert(#require("modules").batches({ { tokens = 8, frac = 1 } }, 3, 2, 1) == 3)
function modules.batches(lengths, count, sequences, seed)
  local weights, list, random = {}, {}, require("search").generator(seed)
  for i, row in ipairs(lengths) do
    weights[i] = row.frac
  end
  for i, n in ipairs(hv.opt.distribute({ total = count, time = weights,
    objective = "ratio" }).counts) do
    for _ = 1, n do
      list[#list + 1] = { sequences = sequences, tokens = sequences * lengths[i].tokens }
    end
  end
  for i = #list, 2, -1 do
    local j = random(i)
    list[i], list[j] = list[j], list[i]
  end
  return list
end

--- The micro-batches of a batch in one of the ways of section 5, by data-parallel group: "alike":
-- all groups together in micro-batches of like length, "given": samples as they come, dealt to the
-- groups in turns, "dealt": to the least loaded group (5.1), "ordered": of like size together, in
-- the order of section 5.2, "alike ordered": that of "alike".
-- @function modules.lists
-- @tparam string way one of these
-- @tparam table q {lengths = list of {tokens, frac}, batch, dp = groups, m = samples of a
-- micro-batch and group, seed, interval = time of the backbone over that of the encoder (nil: no
-- order), depth = stages of the backbone}
-- @treturn table list per group (or one for all) of {sequences, tokens}
-- @units tokens per sequence
-- @raise none
-- @usage local q = { lengths = { { tokens = 4, frac = 0.5 }, { tokens = 8, frac = 0.5 } }, batch = 8, dp = 2, m = 2,
--   seed = 1, depth = 1 }
-- assert(#require("modules").lists("dealt", q) == 2)
function modules.lists(way, q)
  local lists, tokens, all = {}, {}, {}
  for i, b in ipairs(modules.batches(q.lengths, q.batch, 1, q.seed)) do
    tokens[i], all[i] = b.tokens, i
  end
  local together = way:find "alike"
  local groups = together and { all } or way == "given" and in_turns(#tokens, q.dp)
    or modules.dealt(tokens, q.dp)
  for g, group in ipairs(groups) do
    lists[g] = modules.packed(tokens, group, together and q.dp * q.m or q.m, together
        or way == "ordered")
  end
  for g, list in ipairs(way:find "ordered" and q.interval and lists or {}) do
    local times, mean, out = {}, 0, {}
    for i, b in ipairs(list) do
      times[i], mean = b.tokens, mean + b.tokens / #list
    end
    for k, i in ipairs(modules.reordered(times, mean * q.interval, q.depth)) do
      out[k] = list[i]
    end
    lists[g] = out
  end
  return lists
end

return modules
