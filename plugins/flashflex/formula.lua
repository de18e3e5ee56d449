-- Cost formulas of fully asymmetric pipelines: every pipeline has its own stages, every stage its
-- own tensor degree and layers (FlashFlex, Yan et al., arXiv 2409.01143, section 4, with the
-- constants of its code). An instance: flops[d], memory[d], bw(i, j) of devices, hidden, layers,
-- tokens, vocab, micro_batch, recompute, zero3. A stage is { devices = list, layers = count }, a
-- pipeline a list of stages with `micro_batches`. Lists of devices remember what their links cost,
-- so they belong to one instance.
local formula = {}

--- FLOP of one layer for one micro-batch, forward and backward.
-- @function formula.flops
-- @tparam table q instance, with the keys named at the top
-- @treturn number α b s h² (1 + s/6h + v/16Lh), α = 96 with recomputation, else 72
-- @units FLOP
-- @raise none
-- @usage local q = { micro_batch = 1, tokens = 6, hidden = 1, vocab = 0, layers = 1, recompute = true }
-- assert(require("formula").flops(q) == 96 * 6 * 2)
function formula.flops(q)
  local h, s = q.hidden, q.tokens
  return (q.recompute and 96 or 72) * q.micro_batch * s * h * h * (1 + s / (6 * h)
      + q.vocab / (16 * q.layers * h))
end

local function activation_bytes(q)
  return q.micro_batch * q.tokens * q.hidden * 2
end

--- Largest over i of Σ_{j ≠ i} 1 / bw.
local function spread(q, devices)
  local worst = 0
  for i, a in ipairs(devices) do
    local sum = 0
    for j, b in ipairs(devices) do
      sum = sum + (i ~= j and 1 / q.bw(a, b) or 0)
    end
    worst = math.max(worst, sum)
  end
  return worst
end

--- What the links inside a list of devices cost, for one byte: {spread, cast = the cheapest
-- broadcast}. Lists of one machine that follow each other in the instance are remembered in it,
-- others in themselves.
local function inside(q, d)
  local n, key = #d, nil
  local alike = q.machine and d[n] - d[1] == n - 1 and q.machine[d[1]] == q.machine[d[n]]
  if alike then
    q.inside, key = q.inside or {}, d[1] * 4096 + n
    d.inside = d.inside or q.inside[key]
  end
  if not d.inside then
    local cast = math.huge
    for _, b in ipairs(d) do
      local sum = 0
      for _, c in ipairs(d) do
        sum = sum + (c ~= b and 1 / (n * q.bw(b, c)) or 0)
      end
      cast = math.min(cast, sum)
    end
    d.inside = { spread = spread(q, d), cast = cast, alike = alike }
    if alike then
      q.inside[key] = d.inside
    end
  end
  return d.inside
end

--- Seconds of one layer on a stage: compute of its first device's kind, and the exchange of its
-- tensor group.
-- @function formula.layer_s
-- @tparam table q instance, with the keys named at the top
-- @tparam table stage {devices}
-- @treturn number compute, then the exchange
-- @units seconds
-- @raise none
-- @usage local q = { micro_batch = 1, tokens = 6, hidden = 1, vocab = 0, layers = 1, flops = { 2 } }
-- assert(require("formula").layer_s(q, { devices = { 1 } }) == 72 * 6)
function formula.layer_s(q, stage)
  local tp = #stage.devices
  return formula.flops(q) / (q.flops[stage.devices[1]] * tp),
    (q.recompute and 12 or 8) * activation_bytes(q) / tp * inside(q, stage.devices).spread
end

--- Seconds of the hop between two stages and back: the best pair, and a broadcast in the receiving
-- group.
-- @function formula.hop_s
-- @tparam table q instance, with the keys named at the top
-- @tparam table one stage {devices}
-- @tparam table other {devices} of the stage behind it
-- @treturn number seconds
-- @units seconds
-- @raise none
-- @usage local q = { micro_batch = 1, tokens = 1, hidden = 1, bw = function() return 1 end }
-- assert(require("formula").hop_s(q, { devices = { 1 } }, { devices = { 2 } }) == 4)
function formula.hop_s(q, one, other)
  local bytes, best, known = activation_bytes(q), math.huge, one.devices.hops or {}
  one.devices.hops = known
  if known[other.devices] then
    return known[other.devices]
  end
  local to = inside(q, other.devices)
  if to.alike and inside(q, one.devices).alike
      and q.machine[one.devices[1]] ~= q.machine[other.devices[1]] then
    -- every pair is the same
    known[other.devices] = 2 * bytes * (1 / q.bw(one.devices[1], other.devices[1]) + to.cast)
    return known[other.devices]
  end
  for _, b in ipairs(other.devices) do
    local cast, near = 0, math.huge
    for _, c in ipairs(other.devices) do
      cast = cast + (c ~= b and bytes / (#other.devices * q.bw(b, c)) or 0)
    end
    for _, a in ipairs(one.devices) do
      near = math.min(near, bytes / q.bw(a, b))
    end
    best = math.min(best, near + cast)
  end
  known[other.devices] = 2 * best
  return 2 * best
end

--- GPipe's map: Σ over its columns of the longest stage at work in it.
-- @function formula.map_s
-- @tparam table times list of the stages' times, with their hops
-- @tparam integer micro_batches M
-- @treturn number seconds
-- @units any, the same in and out
-- @raise none
-- @usage assert(require("formula").map_s({ 3, 1, 3 }, 4) == 18)
function formula.map_s(times, micro_batches)
  local n, total, full = #times, 0, micro_batches - #times + 1
  local function most(from, to)
    local m = 0
    for s = from, to do
      m = math.max(m, times[s])
    end
    return m
  end
  if full > 0 then -- columns in which all stages work
    local up, down = 0, 0
    for s = 1, n - 1 do
      up, down = math.max(up, times[s]), math.max(down, times[n - s + 1])
      total = total + up + down
    end
    return total + full * most(1, n)
  end
  local queue, first, last = {}, 1, 0 -- stages at work that no later one outlasts
  for c = 1, micro_batches + n - 1 do
    while c <= n and last >= first and times[queue[last]] <= times[c] do
      last = last - 1
    end
    if c <= n then
      last, queue[last + 1] = last + 1, c
    end
    if queue[first] <= c - micro_batches then
      first = first + 1
    end
    total = total + times[queue[first]]
  end
  return total
end

--- Bytes a device of a stage needs: weights, gradients and Adam (four times two bytes), and
-- activations.
-- @function formula.memory_bytes
-- @tparam table q instance, with the keys named at the top
-- @tparam table stage {devices, layers}
-- @tparam boolean ends does the stage hold the embedding or the head
-- @treturn number (12 h² layers / tp + v h) · 8 + (layers / tp + 2) b s h · 2
-- @units bytes
-- @raise none
-- @usage local q = { micro_batch = 0, tokens = 1, hidden = 1, vocab = 1 }
-- assert(require("formula").memory_bytes(q, { devices = { 1 }, layers = 1 }, true) == 104)
function formula.memory_bytes(q, stage, ends)
  local part = stage.layers / #stage.devices
  local weights = 12 * q.hidden ^ 2 * part + (ends and q.vocab * q.hidden / #stage.devices or 0)
  return weights * 2 * 4 + (part + 2) * activation_bytes(q)
end

--- The stage that holds a layer.
local function holder(pipeline, layer)
  local at = 0
  for _, stage in ipairs(pipeline) do
    at = at + stage.layers
    if layer <= at then
      return stage
    end
  end
end

--- Seconds of the gradients' exchange: for each layer tp_max / tp_min groups, the smaller degrees
-- padded.
-- @function formula.dp_s
-- @tparam table q instance, with the keys named at the top
-- @tparam table pipelines list of pipelines that hold all layers
-- @treturn number seconds
-- @units seconds
-- @raise none
-- @usage local q = { hidden = 1, layers = 1, bw = function() return 24 end }
-- local p = { { devices = { 1 }, layers = 1 } }
-- assert(require("formula").dp_s(q, { p, { { devices = { 2 }, layers = 1 } } }) == 1)
function formula.dp_s(q, pipelines)
  local total, known = 0, {}
  for layer = 1, #pipelines > 1 and q.layers or 0 do
    local stages, least, most, key = {}, math.huge, 0, {}
    for p, pipeline in ipairs(pipelines) do
      stages[p] = holder(pipeline, layer)
      key[p] = stages[p].devices[1]
      least, most = math.min(least, #stages[p].devices), math.max(most, #stages[p].devices)
    end
    key = table.concat(key, " ")
    if not known[key] then
      local sum, n = 0, most // least
      for r = 0, n - 1 do
        local group = {}
        for p, stage in ipairs(stages) do
          group[p] = stage.devices[r * #stage.devices // n + 1]
        end
        sum = sum + 2 * 12 * q.hidden ^ 2 * 2 / (least * #group) * spread(q, group)
      end
      known[key] = sum
    end
    total = total + known[key]
  end
  return total
end

--- Seconds of one pipeline: stages with the hops to the next, through GPipe's map.
-- @function formula.pipeline_s
-- @tparam table q instance, with the keys named at the top
-- @tparam table pipeline list of stages with layers
-- @tparam integer micro_batches M
-- @treturn number seconds, and the list of the stages' times
-- @units seconds
-- @raise none
-- @usage local q = { micro_batch = 1, tokens = 6, hidden = 1, vocab = 0, layers = 1, flops = { 2 } }
-- assert(require("formula").pipeline_s(q, { { devices = { 1 }, layers = 1 } }, 2) == 864)
function formula.pipeline_s(q, pipeline, micro_batches)
  local times = {}
  for s, stage in ipairs(pipeline) do
    local compute, exchange = formula.layer_s(q, stage)
    local hop = pipeline[s + 1] and formula.hop_s(q, stage, pipeline[s + 1]) or 0
    times[s] = stage.layers * (compute + exchange) + hop
  end
  return formula.map_s(times, micro_batches), times
end

--- FlashFlex's objective: 1.8 · the longest pipeline + 1.1 · the exchange of gradients (half as
-- much again under ZeRO-3); the factors are fitted constants of its code.
-- @function formula.total_s
-- @tparam table q instance, with the keys named at the top
-- @tparam table pipelines list of pipelines with layers and micro_batches
-- @treturn number seconds, then the longest pipeline and the exchange
-- @units seconds
-- @raise none
-- @usage local q = { micro_batch = 1, tokens = 6, hidden = 1, vocab = 0, layers = 1, flops = { 2 } }
-- local p = { { devices = { 1 }, layers = 1 }, micro_batches = 2 }
-- assert(math.abs(require("formula").total_s(q, { p }) - 1.8 * 864) < 1e-9)
function formula.total_s(q, pipelines)
  local longest, dp = 0, formula.dp_s(q, pipelines)
  for _, p in ipairs(pipelines) do
    longest = math.max(longest, (formula.pipeline_s(q, p, p.micro_batches)))
  end
  return 1.8 * longest + 1.1 * (q.zero3 and 1.5 or 1) * dp, longest, dp
end

return formula
