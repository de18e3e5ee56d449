-- The best pipeline of one group of devices (HexGen, section 4): stages inside machines, each with
-- a tensor degree of its own, by dynamic programming. An instance q: layers, machines = list of
-- {size = devices, memory_bytes = of a device, class = text, equal for equal machines}, degrees =
-- tensor degrees that are tried, layer_s(m, tp) = seconds of one layer on tp devices of machine m,
-- most_layers(m, tp) = layers that such a stage holds, hop_s(a, b) = seconds from machine a to b (a
-- = b: between two stages of it), most_stages = stages of one machine (nil: 8).
local least_latency = require "least_latency"
local splits = require "splits"

local group_pipeline = {}

local MOST_MACHINES = 8 -- of one group
local STAGE_COUNTS = { 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32 } -- that are tried

--- Seconds of the stages of one split on a machine with `share` layers each, added to `start_s`;
-- nil where a stage holds fewer than `whole` layers.
local function split_s(q, machine, split, start_s, share, whole)
  local sum_s = start_s
  for _, tp in ipairs(split) do
    if q.most_layers(machine, tp) < whole then
      return nil
    end
    sum_s = sum_s + q.layer_s(machine, tp) * share
  end
  return sum_s
end

--- The stages so far, and those of one split behind them.
local function extended(stages, machine, split)
  local list = table.move(stages, 1, #stages, 1, {})
  for _, tp in ipairs(split) do
    list[#list + 1] = { machine = machine, tp = tp }
  end
  return list
end

--- The tensor degrees of S stages with equal layers that take least time: dynamic programming over
-- machines and the number of stages used so far. `members` = list of {machine, count}. A list of
-- {machine, tp}, or nil.
local function degrees_for(q, members, S)
  local least_s, stages = { [0] = 0 }, { [0] = {} }
  local share, whole = q.layers / S, q.layers // S
  for _, member in ipairs(members) do
    local next_s, next_stages = {}, {}
    for used = 0, S do
      local ways = least_s[used] and splits.of(q, member.count) or {}
      for _, split in ipairs(ways) do
        local total = used + #split
        local sum_s
        if total <= S then
          sum_s = split_s(q, member.machine, split, least_s[used], share, whole)
        end
        if sum_s and (not next_s[total] or sum_s < next_s[total]) then
          next_s[total] = sum_s
          next_stages[total] = extended(stages[used], member.machine, split)
        end
      end
    end
    least_s, stages = next_s, next_stages
  end
  return stages[S]
end

--- Writes into the stages the numbers of layers that make the slowest one fastest; false where they
-- do not hold the model.
local function give_layers(q, stages)
  local problem = { total = q.layers, time = {}, caps = {}, min = {} }
  for s, stage in ipairs(stages) do
    problem.time[s] = q.layer_s(stage.machine, stage.tp)
    problem.caps[s] = q.most_layers(stage.machine, stage.tp)
    problem.min[s] = 1
  end
  local result = hv.opt.distribute(problem)
  if not result then
    return false
  end
  for s, stage in ipairs(stages) do
    stage.layers = result.counts[s]
  end
  return true
end

--- Seconds of a request through the stages, and of the slowest stage or hop.
local function times_of(q, stages)
  local sum_s, slowest_s = 0, 0
  for s, stage in ipairs(stages) do
    local next_stage = stages[s + 1]
    local stage_s = q.layer_s(stage.machine, stage.tp) * stage.layers
    local hop_s = 0
    if next_stage then
      hop_s = q.hop_s(stage.machine, next_stage.machine)
    end
    sum_s = sum_s + stage_s + hop_s
    slowest_s = math.max(slowest_s, stage_s, hop_s)
  end
  return sum_s, slowest_s
end

--- The machines that have devices in the group, and the most stages that these make.
local function members_of(q, counts)
  local members, most = {}, 0
  for m in ipairs(q.machines) do
    local count = counts[m] or 0
    if count > 0 then
      members[#members + 1] = { machine = m, count = count }
      most = most + math.min(count, splits.most_stages(q))
    end
  end
  return members, most
end

--- The pipeline that passes most requests in a time: numbers of stages are tried one after the
-- other.
local function of_most_requests(q, members, most)
  local best
  for _, S in ipairs(STAGE_COUNTS) do
    local stages
    if S <= math.min(most, q.layers) and S >= #members then
      stages = degrees_for(q, members, S)
    end
    if stages and give_layers(q, stages) then
      local latency_s, slowest_s = times_of(q, stages)
      if not best or slowest_s < best.slowest_s then
        best = { stages = stages, latency_s = latency_s, slowest_s = slowest_s }
      end
    end
  end
  return best
end

--- The pipeline over all devices of a group that passes most requests in a time or, with `soonest`,
-- passes one request soonest: the sum of its stages and hops is least. `counts` = devices by
-- machine number. Gives {stages = list of {machine, tp, layers}, latency_s, slowest_s}; nil when
-- the model does not fit, or when the group has more than 8 machines.
function group_pipeline.best(q, counts, soonest)
  local members, most = members_of(q, counts)
  if #members > MOST_MACHINES then
    return nil
  end
  if not soonest then
    return of_most_requests(q, members, most)
  end
  local stages = least_latency.stages(q, members)
  if not stages then
    return nil
  end
  local latency_s, slowest_s = times_of(q, stages)
  return { stages = stages, latency_s = latency_s, slowest_s = slowest_s }
end

return group_pipeline
