-- Provisioning (HeterPS, Liu et al., FGCS 148, 2023, section 4): runs of layers of one type of
-- device are stages; k devices make a stage faster by Amdahl's law, compute and exchange each with
-- its own parallel fraction. The cost is the time of the slowest stage times the price of all
-- devices, so that devices are numbered for the rate that the plan reaches, which is at least the
-- one that was asked for: the least k of every stage, or more where whole devices make that
-- cheaper.
--
-- An instance q: types = list of {price, available = devices, nil: any number}, compute[t][l] and
-- exchange[t][l] = time that `batch` units take on one device of type t, alpha and beta = parallel
-- fractions of both, batch, rate = units per time to reach, examples = units to train, most =
-- devices of a stage (nil: any number), packed = function(runs) that gives the least parts of every
-- run by memory, or nil where a layer is too large (nil: one part each), short = function(stages)
-- that gives the first stage without enough memory (nil: no limit). A stage: {type, run, first,
-- last = layers from 1, k = devices}.
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

--- Sets the times of a stage's compute and exchange for `batch` units on one device.
local function set_times(q, stage)
  stage.compute = 0
  for l = stage.first, stage.last do
    stage.compute = stage.compute + q.compute[stage.type][l]
  end
  stage.exchange = q.exchange[stage.type][stage.first]
end

--- The time of a unit on a stage with its devices, by Amdahl's law.
local function unit_time(q, stage)
  return math.max(stage.compute * (1 - q.alpha + q.alpha / stage.k),
    stage.exchange * (1 - q.beta + q.beta / stage.k)) / q.batch
end

--- Writes the least k for the rate into the stages. Gives the devices of each type that are left;
-- nil where the rate is out of reach or devices are too few.
local function staffed(q, stages)
  local left = {}
  for _, stage in ipairs(stages) do
    set_times(q, stage)
    local for_compute = provisioning.devices_for(stage.compute, q.batch, q.alpha, 1 / q.rate)
    local for_exchange = provisioning.devices_for(stage.exchange, q.batch, q.beta, 1 / q.rate)
    if not for_compute or not for_exchange then
      return nil
    end
    stage.k = math.max(for_compute, for_exchange)
    if stage.k > (q.most or math.huge) or not take(q, left, stage.type, stage.k) then
      return nil
    end
  end
  return left
end

--- The time of a unit on the slowest stage, and the price of all devices per unit of time.
local function time_and_price(q, stages)
  local slowest, price = 0, 0
  for _, stage in ipairs(stages) do
    stage.time = unit_time(q, stage)
    slowest = math.max(slowest, stage.time)
    price = price + q.types[stage.type].price * stage.k
  end
  return slowest, price
end

--- A bound of time x price from below where no stage takes longer than `time` for a unit: as many
-- devices as that takes, in fractions of one. It grows as the time falls.
local function least_cost(q, stages, time)
  local sum = 0
  for _, stage in ipairs(stages) do
    local for_compute = time * q.batch - stage.compute * (1 - q.alpha)
    local for_exchange = time * q.batch - stage.exchange * (1 - q.beta)
    if for_compute <= 0 or for_exchange <= 0 then
      return math.huge
    end
    sum = sum + q.types[stage.type].price
      * math.max(stage.compute * q.alpha / for_compute, stage.exchange * q.beta / for_exchange)
  end
  return sum * time
end

--- A cost that no plan of an assignment is below: the parallel part of the compute of every layer
-- on its type, at that type's price.
function provisioning.bound(q, assignment)
  local sum = 0
  for l, type in ipairs(assignment) do
    sum = sum + q.types[type].price * q.compute[type][l]
  end
  return sum * q.alpha * q.examples / q.batch
end

--- One more device for each of the slowest stages; false where there are no more.
local function faster(q, stages, left, slowest)
  for _, stage in ipairs(stages) do
    if stage.time >= slowest * (1 - 1e-12) then
      stage.k = stage.k + 1
      if stage.k > (q.most or math.huge) or not take(q, left, stage.type, 1) then
        return false
      end
    end
  end
  return true
end

--- Writes into the stages the numbers of devices that cost least per unit, of all that reach the
-- rate and have enough memory: from the least ones on, devices go to the slowest stages until no
-- more can pay. Gives the cost and the time of a unit; nil where the rate is out of reach or
-- devices are too few; where only memory is short, the first stage that lacks it as third.
local function cheapest(q, stages)
  local left = staffed(q, stages)
  if not left then
    return nil
  end
  local best, short
  repeat
    local slowest, price = time_and_price(q, stages)
    local cost = price * slowest
    if not best or cost < best.cost * (1 - 1e-12) then
      local lacking = q.short and q.short(stages)
      short = short or lacking
      if not lacking then
        best = { cost = cost, time = slowest, k = {} }
        for i, stage in ipairs(stages) do
          best.k[i] = stage.k
        end
      end
    end
    local pays = least_cost(q, stages, slowest) < (best and best.cost or math.huge)
  until not best or not pays or not faster(q, stages, left, slowest)
  if not best then
    return nil, nil, short
  end
  for i, stage in ipairs(stages) do
    stage.k = best.k[i]
  end
  return best.cost, best.time
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

--- The stages of an assignment = type of every layer, each with its devices, their cost = time of
-- all examples · price, and the time of a unit on the slowest one. A run that is too large for the
-- memory of its devices is cut into more parts. nil when the rate is out of reach, devices are too
-- few, or a single layer is too large.
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
    local short = q.short and q.short(stages) -- with one device each
    if not short then
      local cost, time
      cost, time, short = cheapest(q, stages)
      if cost then
        return stages, cost * q.examples, time
      elseif not short then
        return nil
      end
    end
    if not cut_finer(q, runs, parts, short.run) then
      return nil
    end
  end
end

return provisioning
