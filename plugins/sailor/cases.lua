-- The cases of Sailor's search (SOSP 2025, section 4.2): a depth, a micro-batch and a number of
-- replicas, with a lower bound of their iteration. `problem` is that of stage_dp.search; a choice
-- is {pool, tp, time}, a way to run one replica of a stage.
local cases = {}

--- Even ranges of layers {first, last}; the last stages are larger, because they keep fewer
-- micro-batches.
local function even_ranges(n_layers, depth)
  local ranges = {}
  local last = 0
  for s = 1, depth do
    local is_larger = s > depth - n_layers % depth
    local size = n_layers // depth + (is_larger and 1 or 0)
    ranges[s] = { last + 1, last + size }
    last = last + size
  end
  return ranges
end

--- The choices of a stage on one pool: with the least degree that fits, and with the largest one
-- that is reached by doubling while twice the degree is `problem.speedup` times as fast.
local function choices_on_pool(problem, shape, s, pool)
  local first, last = shape.ranges[s][1], shape.ranges[s][2]
  local least, larger
  for _, tp in ipairs(problem.degrees(pool)) do
    local time = problem.time(pool, tp, shape.micro_batch, first, last)
    local before = larger or least
    if not before then
      if time and problem.fits(pool, tp, shape.micro_batch, first, last, s, shape.depth) then
        least = { pool = pool, tp = tp, time = time }
      end
    elseif time and before.time / time >= problem.speedup and tp == 2 * before.tp then
      larger = { pool = pool, tp = tp, time = time }
    else
      break
    end
  end
  return least, larger
end

--- The choices of a stage on all pools.
local function choices_of(problem, shape, s)
  local list = {}
  for pool = 1, #problem.quota do
    local least, larger = choices_on_pool(problem, shape, s, pool)
    list[#list + 1] = least
    list[#list + 1] = larger
  end
  return list
end

--- Time of a message behind `layer` between replicas of two choices, remembered in the shape.
function cases.message(problem, shape, from, to, layer)
  local key = (((from.pool * 4096 + from.tp) * 1024 + to.pool) * 4096 + to.tp) * 16384 + layer
  if not shape.messages[key] then
    shape.messages[key] = problem.hop(from, to, shape.micro_batch, layer)
  end
  return shape.messages[key]
end

--- How many replicas the pools have room for, where stages take only choices whose load is at most
-- `limit`.
local function room_within(problem, shape, dp, limit)
  local n_served = {} -- by pool: replicas of all stages that it can serve
  local least_tp = {}
  for _, choices in ipairs(shape.choices) do
    local seen = {}
    for _, choice in ipairs(choices) do
      local pool = choice.pool
      if choice.load <= limit then
        least_tp[pool] = math.min(least_tp[pool] or choice.tp, choice.tp)
        n_served[pool] = (n_served[pool] or 0) + (seen[pool] and 0 or dp)
        seen[pool] = true
      end
    end
  end
  local room = 0
  for pool, n in pairs(n_served) do
    room = room + math.min(n, problem.quota[pool] // least_tp[pool])
  end
  return room
end

--- The least load of the slowest stage for which the pools have enough devices.
local function straggler_bound(problem, shape, dp)
  local loads = {}
  for _, choices in ipairs(shape.choices) do
    for _, choice in ipairs(choices) do
      loads[#loads + 1] = choice.load
    end
  end
  table.sort(loads)
  local low, high = 1, #loads
  while low < high do
    local middle = (low + high) // 2
    if room_within(problem, shape, dp, loads[middle]) >= dp * shape.depth then
      high = middle
    else
      low = middle + 1
    end
  end
  return loads[low] or math.huge
end

--- Sets the load of every choice, its time with the fastest hop on either side, and
-- shape.least_rest[s], the least passes and hops from stage s on. False where a stage has no
-- choice.
local function set_loads(problem, shape)
  local depth, ranges = shape.depth, shape.ranges
  shape.least_rest = { [depth + 1] = 0 }
  for s = depth, 1, -1 do
    local least_time = math.huge
    local least_in = s > 1 and math.huge or 0
    for _, choice in ipairs(shape.choices[s]) do
      local hop_in = s > 1 and math.huge or 0
      for _, other in ipairs(shape.choices[s - 1] or {}) do
        hop_in = math.min(hop_in,
          cases.message(problem, shape, other, choice, ranges[s][1] - 1))
      end
      local hop_out = s < depth and math.huge or 0
      for _, other in ipairs(shape.choices[s + 1] or {}) do
        hop_out = math.min(hop_out, cases.message(problem, shape, choice, other, ranges[s][2]))
      end
      choice.load = choice.time + hop_in + hop_out
      least_time = math.min(least_time, choice.time)
      least_in = math.min(least_in, hop_in)
    end
    if least_time == math.huge then
      return false
    end
    shape.least_rest[s] = shape.least_rest[s + 1] + least_time + 2 * least_in
  end
  return true
end

--- What the search minimises, for a case that takes so long: USD or seconds.
function cases.objective(problem, case, seconds)
  if problem.goal == "cost" then
    return seconds * case.usd_per_s
  end
  return seconds
end

--- Sets the lower bounds of a case: straggler, sync (the all-reduce of the first and the last two
-- stages, which hold embedding and head), seconds and bound (in what is minimised).
local function set_bounds(problem, case)
  local shape = case.shape
  local depth = shape.depth
  case.straggler = straggler_bound(problem, shape, case.dp)
  case.sync = 0
  for _, s in ipairs { 1, math.min(2, depth), math.max(1, depth - 1), depth } do
    local least = math.huge
    for _, choice in ipairs(shape.choices[s]) do
      local rows = { { pool = choice.pool, tp = choice.tp, n = case.dp } }
      least = math.min(least,
        problem.sync(rows, shape.ranges[s][1], shape.ranges[s][2], case.dp))
    end
    case.sync = math.max(case.sync, least)
  end
  case.seconds = (case.micro_batches - 1) * case.straggler + shape.least_rest[1] + case.sync
  case.bound = cases.objective(problem, case, case.seconds)
end

--- A depth and a micro-batch, with the choices of all stages; then the devices and the USD per
-- second that a replica needs at least. nil where a stage has no choice.
local function shape_of(problem, depth, micro_batch)
  local shape = { depth = depth, micro_batch = micro_batch,
    ranges = even_ranges(problem.layers, depth), choices = {}, messages = {}, hops = {} }
  local n_devices = 0
  local usd_per_s = 0
  for s = 1, depth do
    shape.choices[s] = choices_of(problem, shape, s)
    local least_tp = math.huge
    local least_usd_per_s = math.huge
    for _, choice in ipairs(shape.choices[s]) do
      least_tp = math.min(least_tp, choice.tp)
      least_usd_per_s = math.min(least_usd_per_s,
        choice.tp * problem.usd_per_s[choice.pool])
    end
    if least_tp == math.huge then
      return nil
    end
    n_devices = n_devices + least_tp
    usd_per_s = usd_per_s + least_usd_per_s
  end
  if not set_loads(problem, shape) then
    return nil
  end
  return shape, n_devices, usd_per_s
end

--- Appends the cases of a depth and a micro-batch: every number of replicas that the devices allow,
-- of those with the same number of micro-batches the least.
local function append_cases(problem, depth, micro_batch, n_devices, list)
  local shape, replica_devices, replica_usd_per_s = shape_of(problem, depth, micro_batch)
  if not shape then
    return
  end
  local batch = problem.batch
  local dp = math.min(n_devices // replica_devices, math.ceil(batch / micro_batch))
  while dp > 0 do
    local micro_batches = math.ceil(batch / (micro_batch * dp))
    dp = math.ceil(batch / (micro_batch * micro_batches))
    local case = { shape = shape, dp = dp, micro_batches = micro_batches, rank = #list,
      usd_per_s = replica_usd_per_s * dp }
    set_bounds(problem, case)
    if not problem.within or problem.within(case.seconds, case.seconds * case.usd_per_s) then
      list[#list + 1] = case
    end
    if dp == 1 then
      return
    end
    dp = math.min(dp - 1, math.ceil(batch / (micro_batch * (micro_batches + 1))))
  end
end

--- All cases that may fit, least bound first.
function cases.of(problem)
  local n_devices = 0
  for _, n in ipairs(problem.quota) do
    n_devices = n_devices + n
  end
  local list = {}
  for _, depth in ipairs(problem.depths) do
    local late = #list > 0 and problem.stopping and problem.stopping(0.4)
    for _, micro_batch in ipairs(late and {} or problem.sizes) do
      append_cases(problem, depth, micro_batch, n_devices, list)
    end
  end
  table.sort(list, function(a, b)
    if a.bound ~= b.bound then
      return a.bound < b.bound
    end
    return a.rank < b.rank
  end)
  return list
end

return cases
