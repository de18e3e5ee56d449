-- Provisioning (HeterPS, Liu et al., FGCS 148, 2023, section 4): runs of layers of one type of
-- device are stages; k devices make a stage faster by Amdahl's law, compute and exchange each with
-- its own parallel fraction; the least k that reaches the rate costs least.
--
-- An instance q: types = list of {price, available = devices, nil: any number}, compute[t][l] and
-- exchange[t][l] = time that `batch` units take on one device of type t, alpha and beta = parallel
-- fractions of both, batch, rate = units per time to reach, examples = units to train, packed =
-- function(runs) that gives the least parts of every run by memory, or nil where a layer is too
-- large (nil: one part each), short = function(stages) that gives the first stage without enough
-- memory (nil: no limit). A stage: {type, run, first, last = layers from 1, k = devices}.
local numbers = require "numbers"

local provisioning = {}

--- The least k with total / batch · (1 − f + f / k) ≤ limit, where f is the parallel fraction,
-- total the time of the batch on one device and limit the time of a unit; nil when the serial part
-- alone is longer.
function provisioning.devices_for(total, batch, parallel_frac, limit)
  if total <= limit * batch then
    return 1
  end
  local parallel_part = limit * batch / total - (1 - parallel_frac)
  if parallel_part <= 1e-12 then
    return nil
  end
  return math.ceil(parallel_frac / parallel_part - 1e-9)
end

--- Takes n devices of a type from `left` = those not taken yet; false where there are fewer.
local function take(q, left, type, n)
  left[type] = (left[type] or q.types[type].available or math.huge) - n
  return left[type] >= 0
end

--- Runs of consecutive layers of one type: {type, first, last}.
local function runs_of(assignment)
  local runs = {}
  for l, type in ipairs(assignment) do
    local run = runs[#runs]
    if run and run.type == type then
      run.last = l
    else
      runs[#runs + 1] = { type = type, first = l, last = l }
    end
  end
  return runs
end

--- The runs, each cut evenly into parts[i] stages.
local function stages_of(runs, parts)
  local stages = {}
  for i, run in ipairs(runs) do
    local first = run.first
    for _, n in ipairs(numbers.even(run.last - run.first + 1, parts[i])) do
      stages[#stages + 1] = { type = run.type, run = i, first = first, last = first + n - 1 }
      first = first + n
    end
  end
  return stages
end

--- Writes the least k into the stages; their price per unit of time, or nil where the rate is out
-- of reach or devices are too few.
local function staffed(q, stages)
  local left, price = {}, 0
  for _, stage in ipairs(stages) do
    local compute = 0
    for l = stage.first, stage.last do
      compute = compute + q.compute[stage.type][l]
    end
    local exchange = q.exchange[stage.type][stage.first]
    local for_compute = provisioning.devices_for(compute, q.batch, q.alpha, 1 / q.rate)
    local for_exchange = provisioning.devices_for(exchange, q.batch, q.beta, 1 / q.rate)
    if not for_compute or not for_exchange then
      return nil
    end
    stage.k = math.max(for_compute, for_exchange)
    if not take(q, left, stage.type, stage.k) then
      return nil
    end
    price = price + q.types[stage.type].price * stage.k
  end
  return price
end

--- Cuts run i into one more part, or an eighth more where it has many; false where each layer is a
-- part already, or where a device for each part is more than there are.
local function cut_finer(q, runs, parts, i)
  local layers = runs[i].last - runs[i].first + 1
  if parts[i] == layers then
    return false
  end
  parts[i] = math.min(layers, parts[i] + math.max(1, parts[i] // 8))
  local left = {}
  for j, run in ipairs(runs) do
    if not take(q, left, run.type, parts[j]) then
      return false
    end
  end
  return true
end

--- The stages of an assignment = type of every layer, each with its devices, and their cost = price
-- · examples / rate. A run that is too large for the memory of its devices is cut into more parts.
-- nil when the rate is out of reach, devices are too few, or a single layer is too large.
function provisioning.stages(q, assignment)
  local runs = runs_of(assignment)
  local parts = {}
  for i in ipairs(runs) do
    parts[i] = 1
  end
  if q.packed then
    parts = q.packed(runs)
    if not parts then
      return nil
    end
  end
  while true do
    local stages = stages_of(runs, parts)
    local price
    local short = q.short and q.short(stages) -- with one device each
    if not short then
      price = staffed(q, stages)
      if not price then
        return nil
      end
      short = q.short and q.short(stages) -- with as many as the rate needs
    end
    if not short then
      return stages, price * q.examples / q.rate
    end
    if not cut_finer(q, runs, parts, short.run) then
      return nil
    end
  end
end

return provisioning
