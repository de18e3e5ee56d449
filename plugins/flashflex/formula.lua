-- Cost formulas of fully asymmetric pipelines: every pipeline has its own stages, every stage its
-- own tensor degree and layers (FlashFlex, Yan et al., arXiv 2409.01143, section 4, with the
-- constants of its code). `problem` has flops_per_s[d], memory_bytes[d] and machine[d] of devices,
-- bandwidth(a, b) in bytes per second, hidden, layers, tokens, vocab, micro_batch and recompute. A
-- stage is {devices = list, layers = count}, a pipeline a list of stages with `micro_batches`.
-- Lists of devices remember what their links cost, so they belong to one problem.
local formula = {}

-- Fitted constants of its code.
local PIPELINE_FACTOR = 1.8
local GRADIENTS_FACTOR = 1.1
local BYTES_PER_NUMBER = 2

--- FLOP of one layer for one micro-batch, forward and backward: α b s h² (1 + s/6h + v/16Lh) with
-- α = 96 with recomputation, else 72.
function formula.flops(problem)
  local h, s = problem.hidden, problem.tokens
  local alpha = problem.recompute and 96 or 72
  return alpha * problem.micro_batch * s * h * h * (1 + s / (6 * h)
    + problem.vocab / (16 * problem.layers * h))
end

--- Bytes of the activations of a micro-batch between two layers.
local function activation_bytes(problem)
  return problem.micro_batch * problem.tokens * problem.hidden * BYTES_PER_NUMBER
end

--- Largest over i of Σ_{j ≠ i} 1 / bandwidth, in seconds per byte.
local function slowest_sum(problem, devices)
  local worst = 0
  for i, a in ipairs(devices) do
    local sum = 0
    for j, b in ipairs(devices) do
      if i ~= j then
        sum = sum + 1 / problem.bandwidth(a, b)
      end
    end
    worst = math.max(worst, sum)
  end
  return worst
end

--- Seconds per byte of a broadcast from one device of a list to the others.
local function broadcast_s_per_byte(problem, devices, root)
  local sum = 0
  for _, d in ipairs(devices) do
    if d ~= root then
      sum = sum + 1 / (#devices * problem.bandwidth(root, d))
    end
  end
  return sum
end

--- What the links inside a list of devices cost, in seconds per byte: {exchange = slowest_sum,
-- broadcast = the cheapest one, is_uniform}. Lists of consecutive devices of one machine are
-- uniform and remembered in the problem, others in themselves.
local function links_of(problem, devices)
  if devices.links then
    return devices.links
  end
  local n = #devices
  local first, last = devices[1], devices[n]
  local is_uniform = problem.machine and last - first == n - 1
    and problem.machine[first] == problem.machine[last]
  local key = first * 4096 + n
  if is_uniform then
    problem.known_links = problem.known_links or {}
    devices.links = problem.known_links[key]
  end
  if not devices.links then
    local broadcast = math.huge
    for _, root in ipairs(devices) do
      broadcast = math.min(broadcast, broadcast_s_per_byte(problem, devices, root))
    end
    devices.links = { exchange = slowest_sum(problem, devices), broadcast = broadcast,
      is_uniform = is_uniform }
    if is_uniform then
      problem.known_links[key] = devices.links
    end
  end
  return devices.links
end

--- Seconds of one layer on a stage: compute on the kind of its first device, and the exchange of
-- its tensor-parallel group.
function formula.layer_s(problem, stage)
  local tp = #stage.devices
  local compute_s = formula.flops(problem) / (problem.flops_per_s[stage.devices[1]] * tp)
  local n_exchanges = problem.recompute and 12 or 8
  local exchange_s = n_exchanges * activation_bytes(problem) / tp
    * links_of(problem, stage.devices).exchange
  return compute_s, exchange_s
end

--- Seconds one way between two lists of devices: the best link to a device of the second list, and
-- from that one a broadcast in its list.
local function one_way_s(problem, from, to)
  local bytes = activation_bytes(problem)
  local best = math.huge
  for _, root in ipairs(to) do
    local broadcast_s = 0
    for _, d in ipairs(to) do
      if d ~= root then
        broadcast_s = broadcast_s + bytes / (#to * problem.bandwidth(root, d))
      end
    end
    local nearest_s = math.huge
    for _, d in ipairs(from) do
      nearest_s = math.min(nearest_s, bytes / problem.bandwidth(d, root))
    end
    best = math.min(best, nearest_s + broadcast_s)
  end
  return best
end

--- Seconds of the hop between a stage and the one behind it, and back; remembered in the devices of
-- the first one.
function formula.hop_s(problem, stage, next_stage)
  local from, to = stage.devices, next_stage.devices
  from.hops = from.hops or {}
  if from.hops[to] then
    return from.hops[to]
  end
  local to_links = links_of(problem, to)
  local seconds
  if to_links.is_uniform and links_of(problem, from).is_uniform
      and problem.machine[from[1]] ~= problem.machine[to[1]] then
    -- All links between two machines are equal.
    seconds = 2 * activation_bytes(problem)
      * (1 / problem.bandwidth(from[1], to[1]) + to_links.broadcast)
  else
    seconds = 2 * one_way_s(problem, from, to)
  end
  from.hops[to] = seconds
  return seconds
end

--- The map's time where all stages are at work in some column: columns that fill and empty the
-- pipeline, and `n_full` columns of the longest stage.
local function long_map_s(times, n_full)
  local n = #times
  local total = 0
  local longest_first = 0 -- of the first s stages
  local longest_last = 0 -- of the last s stages
  for s = 1, n - 1 do
    longest_first = math.max(longest_first, times[s])
    longest_last = math.max(longest_last, times[n - s + 1])
    total = total + longest_first + longest_last
  end
  return total + n_full * math.max(longest_first, times[n])
end

--- The map's time where fewer micro-batches than stages are at work: a sliding maximum.
local function short_map_s(times, micro_batches)
  local n = #times
  local total = 0
  local queue = {} -- stages at work that no later one outlasts, from `first` to `last`
  local first, last = 1, 0
  for column = 1, micro_batches + n - 1 do
    if column <= n then
      while last >= first and times[queue[last]] <= times[column] do
        last = last - 1
      end
      last = last + 1
      queue[last] = column
    end
    if queue[first] <= column - micro_batches then
      first = first + 1
    end
    total = total + times[queue[first]]
  end
  return total
end

--- GPipe's map: Σ over its columns of the longest stage at work in it. `times` are those of the
-- stages with their hops; the result is in their unit.
function formula.map_s(times, micro_batches)
  local n_full = micro_batches - #times + 1
  if n_full > 0 then
    return long_map_s(times, n_full)
  end
  return short_map_s(times, micro_batches)
end

--- Bytes that a device of a stage needs: weights, gradients and Adam (four times two bytes), and
-- activations: (12 h² layers / tp + v h / tp) · 8 + (layers / tp + 2) b s h · 2. The term v h is
-- that of the embedding or the head, where `holds_ends` is true.
function formula.memory_bytes(problem, stage, holds_ends)
  local tp = #stage.devices
  local layers = stage.layers / tp
  local end_weights = holds_ends and problem.vocab * problem.hidden / tp or 0
  local weights = 12 * problem.hidden ^ 2 * layers + end_weights
  return weights * BYTES_PER_NUMBER * 4 + (layers + 2) * activation_bytes(problem)
end

--- How many layers fit into stage s of `stages` by that formula; `problem` has memory_bytes by
-- device.
function formula.most_layers(problem, stage, s, stages)
  local room_bytes = problem.memory_bytes[stage.devices[1]]
  local holds_ends = s == 1 or s == stages
  local n = 0
  while n < problem.layers and formula.memory_bytes(problem,
    { devices = stage.devices, layers = n + 1 }, holds_ends) <= room_bytes do
    n = n + 1
  end
  return n
end

--- The stage that holds a layer.
local function holder(pipeline, layer)
  local last = 0
  for _, stage in ipairs(pipeline) do
    last = last + stage.layers
    if layer <= last then
      return stage
    end
  end
end

--- Seconds to exchange the gradients of one layer among the stages that hold it: largest / least
-- tensor degree groups, one after the other.
local function layer_gradients_s(problem, stages)
  local least_tp, largest_tp = math.huge, 0
  for _, stage in ipairs(stages) do
    least_tp = math.min(least_tp, #stage.devices)
    largest_tp = math.max(largest_tp, #stage.devices)
  end
  local n_groups = largest_tp // least_tp
  local sum = 0
  for g = 0, n_groups - 1 do
    local group = {}
    for p, stage in ipairs(stages) do
      group[p] = stage.devices[g * #stage.devices // n_groups + 1]
    end
    sum = sum + 2 * 12 * problem.hidden ^ 2 * BYTES_PER_NUMBER / (least_tp * #group)
      * slowest_sum(problem, group)
  end
  return sum
end

--- Seconds of the exchange of gradients among pipelines that hold all layers.
function formula.gradients_s(problem, pipelines)
  if #pipelines < 2 then
    return 0
  end
  local total = 0
  local known = {} -- by the first devices of the stages
  for layer = 1, problem.layers do
    local stages = {}
    local heads = {}
    for p, pipeline in ipairs(pipelines) do
      stages[p] = holder(pipeline, layer)
      heads[p] = stages[p].devices[1]
    end
    local key = table.concat(heads, " ")
    known[key] = known[key] or layer_gradients_s(problem, stages)
    total = total + known[key]
  end
  return total
end

--- Seconds of one pipeline, its stages with the hops behind them through GPipe's map; and the list
-- of the stages' times.
function formula.pipeline_s(problem, pipeline, micro_batches)
  local times = {}
  for s, stage in ipairs(pipeline) do
    local compute_s, exchange_s = formula.layer_s(problem, stage)
    local next_stage = pipeline[s + 1]
    local hop_s = next_stage and formula.hop_s(problem, stage, next_stage) or 0
    times[s] = stage.layers * (compute_s + exchange_s) + hop_s
  end
  return formula.map_s(times, micro_batches), times
end

--- FlashFlex's objective in seconds: 1.8 · the longest pipeline + 1.1 · the exchange of gradients;
-- then the longest pipeline and the exchange.
function formula.total_s(problem, pipelines)
  local gradients_s = formula.gradients_s(problem, pipelines)
  local longest_s = 0
  for _, pipeline in ipairs(pipelines) do
    local seconds = formula.pipeline_s(problem, pipeline, pipeline.micro_batches)
    longest_s = math.max(longest_s, seconds)
  end
  return PIPELINE_FACTOR * longest_s + GRADIENTS_FACTOR * gradients_s, longest_s, gradients_s
end

return formula
