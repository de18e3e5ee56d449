-- The schedules of the family: which ones a system tries at a point of the degrees, where their
-- chunks lie, and what hv.sim.schedule says of them: time and micro-batches alive.
local numbers = require "numbers"

local orders = {}

-- Chunks that lie in a V: every second pass over the ranks runs backwards.
local folded = { ["zb-v"] = true, ["v-half"] = true, ["v-min"] = true, ["v-adaptive"] = true,
  hanayo = true }

-- The order follows from the times of the stages, and with it the micro-batches alive.
local timed = { ["zb-1p"] = true, ["zb-2p"] = true, ["v-adaptive"] = true }

--- Micro-batches of a schedule that are laid out: behind them each takes its work and no more.
local ROUNDS = 4

--- The stage that has chunk c (from 1, in model order).
function orders.stage_of(point, c)
  local pass, at = (c - 1) // point.pp, (c - 1) % point.pp
  if folded[point.knob.schedule.name] and pass % 2 == 1 then
    return point.pp - at
  end
  return at + 1
end

--- The rank, or class of ranks with the same stages, that runs chunk c, and how many there are:
-- with pipelines in both directions a rank runs a share of all stages of its class.
function orders.rank_of(point, c)
  local schedule = point.knob.schedule
  if schedule.name ~= "chimera" then
    return orders.stage_of(point, c), point.pp
  end
  local period = 2 * point.pp // schedule.pipes -- stages that meet no other one on a rank twice
  local at = (c - 1) % period
  return math.min(at, period - 1 - at) + 1, period // 2
end

--- Options of a schedule as hv.sim.schedule takes them: all keys of a plan's schedule but the name;
-- slices by their number.
local function options_of(schedule)
  local options = {}
  for key, value in pairs(schedule) do
    if key == "slices" then
      options.slices = type(value) == "table" and #value or value
    elseif key ~= "name" then
      options[key] = value
    end
  end
  return options
end

local known = {}

--- What a point's schedule does with equal work of one second per rank and micro-batch, a third of
-- it in each kind of pass: { fill_s = makespan - micro-batches, peak = micro-batches alive per
-- rank }; nil and the reason where the schedule does not exist.
function orders.facts(point)
  local schedule, ranks, m = point.knob.schedule, point.pp, point.micro_batches
  local n = math.min(m, ROUNDS * ranks + m % ranks)
  if schedule.name == "gpipe" or schedule.name == "breadth-first" then
    n = math.min(m, 4 * ROUNDS * ranks) -- its memory grows with all of them
  end
  local key = ("%s/%d/%d/%d"):format(orders.text(schedule), ranks, n, point.chunks)
  if not known[key] then
    local options = options_of(schedule)
    local parts = point.chunks * (options.slices or 1)
    local pass_s = 1 / (3 * parts)
    local ok, made = pcall(hv.sim.schedule, schedule.name, { ranks = ranks, micro_batches = n,
      chunks = point.chunks, options = options, order = false,
      times = { f = pass_s, b = pass_s, w = pass_s } })
    known[key] = ok and { fill_s = made.makespan - n, peak = made.peak, parts = parts }
      or { reason = made }
  end
  if known[key].reason then
    return nil, known[key].reason
  end
  return known[key]
end

--- A schedule in one word: "zb-v variant=order".
function orders.text(schedule)
  local words = { schedule.name }
  for key, value in pairs(schedule) do
    if key == "slices" then
      value = type(value) == "table" and table.concat(value, ",") or value
    end
    if key ~= "name" then
      words[#words + 1] = key .. "=" .. tostring(value)
    end
  end
  return table.concat(words, " ")
end

--- Micro-batches alive on the rank of stage s, as a share of its activations.
function orders.alive(point, s)
  local facts = orders.facts(point)
  local slices = point.knob.schedule.slices
  if type(slices) ~= "table" then
    return facts.peak[s] / facts.parts
  end
  local tokens, sum = 0, 0 -- slices run in order: the first ones, the longest, are alive
  for i, length in ipairs(slices) do
    sum = sum + length
    tokens = tokens + (i <= facts.peak[s] % #slices and length or 0)
  end
  return facts.peak[s] // #slices + tokens / sum
end

--- The same as a floor that the simulated plan is never below, for degrees.search.
function orders.alive_at_least(point, s)
  local schedule = point.knob.schedule
  if timed[schedule.name] or schedule.name == "chimera" or point.pp == 1 then
    return 1 / point.chunks
  end
  return orders.alive(point, s)
end

--- Seconds of all passes by the schedule, and those of the busiest rank per micro-batch: `passes`
-- of degrees.search.
function orders.passes(point, stage_s)
  local load_s, size = {}, {}
  for s, own_s in ipairs(stage_s) do
    local rank = orders.rank_of(point, s)
    load_s[rank] = (load_s[rank] or 0) + own_s
    size[rank] = (size[rank] or 0) + 1
  end
  local longest_s, sum_s = 0, 0
  for rank, own_s in ipairs(load_s) do
    longest_s = math.max(longest_s, own_s / size[rank])
    sum_s = sum_s + own_s / size[rank]
  end
  local facts = orders.facts(point)
  return point.micro_batches * longest_s + facts.fill_s * sum_s / #load_s, longest_s
end

--- Layers of stage s as a plan has them, from layers per chunk in model order.
function orders.layers(point, counts, s)
  local ranges = numbers.ranges(counts)
  if point.chunks == 1 then
    return ranges[s]
  end
  local layers = {}
  for c, range in ipairs(ranges) do
    if orders.stage_of(point, c) == s then
      layers[#layers + 1] = range
    end
  end
  return layers
end

return orders
