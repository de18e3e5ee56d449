-- The search of Sailor (SOSP 2025, section 4.2): which pools of devices serve which stage, when all
-- stages have the same number of replicas and a stage is as slow as its slowest pool. Dynamic
-- programming over the stages; a state is what is left of every pool. All prices come from the
-- caller.
local cases = require "cases"
local staffing = require "staffing"

local stage_dp = {}

--- Sets what can serve the stages of a case within `limit`: case.live = choices by stage, and
-- case.serves = by stage and pool {n = how many stages from there on the pool can serve, tp = with
-- which least degree}. False where a stage has no choice left.
local function set_live(problem, case, limit)
  local shape = case.shape
  local depth = shape.depth
  case.live = {}
  case.serves = { [depth + 1] = {} }
  case.syncs = {}
  for s = depth, 1, -1 do
    local live = {}
    local serves = {}
    for pool, served in pairs(case.serves[s + 1]) do
      serves[pool] = { n = served.n, tp = served.tp, stage = served.stage }
    end
    for _, choice in ipairs(shape.choices[s]) do
      local straggler = math.max(case.straggler, choice.load)
      local seconds = (case.micro_batches - 1) * straggler + shape.least_rest[1] + case.sync
      if cases.objective(problem, case, seconds) < limit then
        live[#live + 1] = choice
        local served = serves[choice.pool] or { n = 0, tp = choice.tp }
        if served.stage ~= s then
          served.n = served.n + 1
          served.stage = s
        end
        served.tp = math.min(served.tp, choice.tp)
        serves[choice.pool] = served
      end
    end
    case.live[s] = live
    case.serves[s] = serves
    if #live == 0 then
      return false
    end
  end
  return true
end

--- Are enough devices left for the stages from s on?
local function is_room(case, s, left)
  local room = 0
  for pool, served in pairs(case.serves[s]) do
    room = room + math.min(left[pool] // served.tp, case.dp * served.n)
  end
  return room >= case.dp * (case.shape.depth - s + 1)
end

--- USD per second of what is taken from the pools, in whole units (nodes).
local function rent_usd_per_s(problem, left)
  local sum = 0
  for pool, quota in ipairs(problem.quota) do
    local unit = problem.unit and problem.unit[pool] or 1
    local n_taken = math.min(quota, (quota - left[pool] + unit - 1) // unit * unit)
    sum = sum + n_taken * problem.usd_per_s[pool]
  end
  return sum
end

--- What is left of the pools behind a staffing.
local function left_after(left, staff)
  local rest = table.move(left, 1, #left, 1, {})
  for _, row in ipairs(staff.rows) do
    rest[row.pool] = rest[row.pool] - row.n * row.tp
  end
  return rest
end

--- The state behind `state` with `staff` at stage s; nil where it cannot stay below `limit`. Its
-- seconds are the least of all that continue it: (B - 1) straggler + all passes and hops + the
-- largest all-reduce. `open` is the load of stage s without its hop to the next stage.
local function next_state(problem, case, s, state, staff, limit)
  local shape = case.shape
  local before = state.staff
  local hop = 0
  if before then
    hop = staffing.hop(problem, shape, before, staff, shape.ranges[s][1] - 1)
  end
  local new = { from = state, staff = staff, open = staff.time + hop,
    worst = math.max(state.worst, before and state.open + hop or 0),
    sum = state.sum + staff.time + 2 * hop,
    sync = math.max(state.sync, staffing.sync(problem, case, s, staff)) }
  local straggler = math.max(case.straggler, new.worst, new.open)
  new.seconds = (case.micro_batches - 1) * straggler + new.sum + shape.least_rest[s + 1]
    + math.max(case.sync, new.sync)
  if cases.objective(problem, case, new.seconds) >= limit then
    return nil
  end
  new.left = left_after(state.left, staff)
  if not is_room(case, s + 1, new.left) then
    return nil
  end
  new.usd_per_s = math.max(case.usd_per_s, rent_usd_per_s(problem, new.left))
  new.egress_usd = state.egress_usd + staffing.egress_usd(problem, case, s, before, staff)
  local usd = new.seconds * new.usd_per_s + new.egress_usd
  if problem.within and not problem.within(new.seconds, usd) then
    return nil
  end
  new.value = problem.goal == "cost" and usd or new.seconds
  new.left_text = table.concat(new.left, " ")
  new.key = new.left_text .. "/" .. staff.set
  return new.value < limit and new or nil
end

--- The best `width` states behind stage s, one for each rest of the pools and set of pools.
local function next_states(problem, case, s, states, limit)
  local by_key = {}
  local keys = {}
  local staffings = {} -- by what is left of the pools
  for _, state in ipairs(states) do
    staffings[state.left_text] = staffings[state.left_text]
      or staffing.all(problem, case.live[s], state.left, case.dp)
    for _, staff in ipairs(staffings[state.left_text]) do
      local new = next_state(problem, case, s, state, staff, limit)
      local old = new and by_key[new.key]
      if new and not old then
        keys[#keys + 1] = new.key
        by_key[new.key] = new
      elseif new and new.value < old.value then
        by_key[new.key] = new
      end
    end
  end
  local list = {}
  for i, key in ipairs(keys) do
    list[i] = by_key[key]
  end
  table.sort(list, function(a, b)
    if a.value ~= b.value then
      return a.value < b.value
    end
    return a.key < b.key
  end)
  for i = #list, problem.width + 1, -1 do
    list[i] = nil
  end
  return list
end

--- The last state of the best staffing of a case below `limit`; nil where there is none.
local function solve(problem, case, limit)
  if not set_live(problem, case, limit) then
    return nil
  end
  local states = { { left = problem.quota, egress_usd = 0, worst = 0, open = 0, sum = 0, sync = 0,
    left_text = "" } }
  for s = 1, case.shape.depth do
    states = next_states(problem, case, s, states, limit)
  end
  case.live = nil
  case.serves = nil
  case.syncs = nil
  return states[1]
end

--- The solution that a last state stands for.
local function solution_of(case, state, rank)
  local solution = { claim_s = state.seconds,
    usd = state.usd_per_s * state.seconds + state.egress_usd, value = state.value, rank = rank,
    dp = case.dp, micro_batches = case.micro_batches, micro_batch = case.shape.micro_batch,
    depth = case.shape.depth, ranges = case.shape.ranges, stages = {} }
  for s = case.shape.depth, 1, -1 do
    solution.stages[s] = state.staff.rows
    state = state.from
  end
  return solution
end

local function by_value(a, b)
  if a.value ~= b.value then
    return a.value < b.value
  end
  return a.rank < b.rank
end

--- The best plans, at most one per case, best first: a list of {claim_s, usd, value = what is
-- minimised, micro_batch, micro_batches, dp, depth, ranges, stages = lists of rows {pool, tp, n}};
-- and how many cases the budget left out. Layers count from 1, ranges are inclusive; times in
-- seconds, `rows` are {pool, tp, n}. Keys of `problem`:
--   layers, batch      number of layers; sequences per iteration
--   quota, region, usd_per_s, unit  by pool: devices; a word; price per device; devices that are
--                      paid together (optional)
--   depths, sizes      depths and micro-batches to try
--   goal               "time" or "cost"
--   speedup            acceleration for which the tensor degree is doubled
--   width, budget, keep  states per stage, cases that are solved, plans that are kept
--   degrees(pool)      ascending tensor degrees
--   time(pool, tp, micro_batch, first, last)  of both passes, or nil
--   fits(pool, tp, micro_batch, first, last, stage, depth)  does the memory suffice?
--   hop(row, row, micro_batch, layer), sync(rows, first, last, dp)  message, all-reduce
--   within(seconds, usd)  optional: is such an iteration allowed?
--   fare(pool, pool), hop_bytes(micro_batch, layer), sync_bytes(rows, first, last)  optional, where
--                      bytes between zones cost money: USD per byte; bytes
--   stopping(share of the time)  optional: is it used?
function stage_dp.search(problem)
  local list = cases.of(problem)
  local found = {}
  local limit = math.huge
  for i, case in ipairs(list) do
    local late = #found > 0 and problem.stopping and problem.stopping(0.7)
    if case.bound >= limit then
      break
    end
    if i > problem.budget or late then
      return found, #list - i + 1
    end
    local state = solve(problem, case, limit)
    if state then
      found[#found + 1] = solution_of(case, state, i)
      table.sort(found, by_value)
      found[problem.keep + 1] = nil
      limit = found[problem.keep] and found[problem.keep].value or math.huge
    end
  end
  return found, 0
end

return stage_dp
