-- Blocks of a placement and their order on the devices (Lin et al. 2024, sections III and IV): the
-- repeating middle comes from hv.sim.repetend, which also lays out warm-up and cool-down.
local blocks = {}

--- The blocks of a chain of stages {units = list of numbers, forward_s, backward_s, memory, joined
-- = whether its passes are one block, on the last stage}: forward passes in order, then backward
-- passes from the last stage on; and the passes of each block, as words of an order.
function blocks.of(stages)
  local list, passes = {}, {}
  local function add(stage, time_s, memory, words)
    list[#list + 1] = { time_s = time_s, memory = memory, devices = stage.units,
      after = #list > 0 and { #list } or nil }
    passes[#list] = words
  end
  for s, stage in ipairs(stages) do
    if stage.joined then
      add(stage, stage.forward_s + stage.backward_s, 0, { "F" .. s - 1, "BW" .. s - 1 })
    else
      add(stage, stage.forward_s, stage.memory, { "F" .. s - 1 })
    end
  end
  for s = #stages, 1, -1 do
    if not stages[s].joined then
      add(stages[s], stages[s].backward_s, -stages[s].memory, { "BW" .. s - 1 })
    end
  end
  return list, passes
end

--- Operations per unit, as a plan's explicit order has them: of all runs of a repetend's layout.
function blocks.order(stages, runs, n_units)
  local lists = {}
  local _, passes = blocks.of(stages)
  for unit = 1, n_units do
    lists[unit] = {}
  end
  for _, run in ipairs(runs) do
    for _, pass in ipairs(passes[run[1] // 1 | 0]) do
      local token = ("%s.%d"):format(pass, run[2] // 1 - 1)
      for _, unit in ipairs(stages[tonumber(pass:match "%d+") + 1].units) do
        table.insert(lists[unit], token)
      end
    end
  end
  return lists
end

--- Work of the busiest unit per micro-batch: no period is shorter.
function blocks.bound_s(stages)
  local load, most = {}, 0
  for _, stage in ipairs(stages) do
    for _, unit in ipairs(stage.units) do
      load[unit] = (load[unit] or 0) + stage.forward_s + stage.backward_s
      most = math.max(most, load[unit])
    end
  end
  return most
end

--- End of an order of operations, per device or per stage, on stages with these times: every
-- operation on all units of its stage, in the order of their lists.
function blocks.makespan(stages, order, units_of_list)
  local number, tasks, last_on = {}, {}, {}
  local n = #stages
  local queue = {} -- tokens of all lists in an order that every list agrees with
  local at, left = {}, 0
  for l, list in ipairs(order) do
    at[l] = 1
    left = left + #list
  end
  local moved = true
  while moved do
    moved = false
    for l, list in ipairs(order) do
      local token = list[at[l]]
      local s = token and tonumber(token:match "%d+") + 1
      local ready = token ~= nil
      for _, other in ipairs(token and units_of_list(s) or {}) do
        ready = ready and order[other][at[other]] == token
      end
      if ready then
        for _, other in ipairs(units_of_list(s)) do
          at[other] = at[other] + 1
        end
        queue[#queue + 1] = { token = token, s = s, list = l }
        moved = true
      end
    end
  end
  for i, one in ipairs(queue) do
    number[one.token] = i
  end
  for i, one in ipairs(queue) do
    local micro_batch = one.token:match "%.(%d+)"
    local is_forward = one.token:sub(1, 1) == "F"
    local before = is_forward and one.s > 1 and ("F%d.%s"):format(one.s - 2, micro_batch)
      or not is_forward and (one.s < n and ("BW%d.%s"):format(one.s, micro_batch)
        or ("F%d.%s"):format(n - 1, micro_batch)) or nil
    local after = { before and number[before] }
    for _, list in ipairs(units_of_list(one.s)) do
      after[#after + 1] = last_on[list]
      last_on[list] = i
    end
    tasks[i] = { resource = units_of_list(one.s), after = after,
      time_s = is_forward and stages[one.s].forward_s or stages[one.s].backward_s }
  end
  return hv.sim.tasks { tasks = tasks, resources = #order }.makespan
end

return blocks
