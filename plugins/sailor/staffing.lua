-- Staffings of a stage: which pools its replicas run on (Sailor, SOSP 2025, section 4.2). A
-- staffing is {rows = list of {pool, tp, n = replicas, time} in order of the pools, time = that of
-- its slowest replica, set = a text that names its pools and degrees}.
local cases = require "cases"

local staffing = {}

local function staffing_of(rows)
  table.sort(rows, function(a, b) return a.pool < b.pool end)
  local words = {}
  local time = 0
  for i, row in ipairs(rows) do
    words[i] = row.pool .. "x" .. row.tp
    time = math.max(time, row.time)
  end
  return { rows = rows, time = time, set = table.concat(words, " ") }
end

--- Adds as many replicas as a choice has devices for, where its pool is new and in the region of
-- the other rows; gives how many replicas are still needed.
local function take(problem, rows, need, choice, left)
  local n = math.min(need, left[choice.pool] // choice.tp)
  for _, row in ipairs(rows) do
    local is_other_region = problem.region[row.pool] ~= problem.region[choice.pool]
    if row.pool == choice.pool or is_other_region then
      n = 0
    end
  end
  if n > 0 then
    rows[#rows + 1] = { pool = choice.pool, tp = choice.tp, n = n, time = choice.time }
  end
  return need - n
end

--- The staffing that takes all it can of a first choice, then of a second one, then of the others
-- in turn; nil where that is too little.
local function mixed(problem, choices, first, second, left, dp)
  if second.pool == first.pool then
    return nil
  end
  local rows = {}
  local need = take(problem, rows, dp, first, left)
  need = take(problem, rows, need, second, left)
  if #rows == 2 then
    for _, choice in ipairs(choices) do
      if need > 0 then
        need = take(problem, rows, need, choice, left)
      end
    end
  end
  return need == 0 and staffing_of(rows) or nil
end

--- Ways to staff a stage with dp replicas of these choices from what is left of the pools: one pool
-- where it has enough devices, else several pools of one region.
function staffing.all(problem, choices, left, dp)
  local list = {}
  for _, first in ipairs(choices) do
    local n = left[first.pool] // first.tp
    if n >= dp then
      list[#list + 1] = staffing_of {
        { pool = first.pool, tp = first.tp, n = dp, time = first.time } }
    elseif n > 0 then
      for _, second in ipairs(choices) do
        list[#list + 1] = mixed(problem, choices, first, second, left, dp)
      end
    end
  end
  return list
end

--- Time of the slowest message behind `layer` between replicas of two neighbours, remembered in the
-- shape by their sets.
function staffing.hop(problem, shape, before, after, layer)
  local key = before.set .. ">" .. after.set .. "@" .. layer
  if not shape.hops[key] then
    local longest = 0
    for _, from in ipairs(before.rows) do
      for _, to in ipairs(after.rows) do
        longest = math.max(longest, cases.message(problem, shape, from, to, layer))
      end
    end
    shape.hops[key] = longest
  end
  return shape.hops[key]
end

--- Time of the all-reduce of stage s, remembered in the case by its set.
function staffing.sync(problem, case, s, own)
  local key = own.set .. "/" .. s
  if not case.syncs[key] then
    local range = case.shape.ranges[s]
    case.syncs[key] = problem.sync(own.rows, range[1], range[2], case.dp)
  end
  return case.syncs[key]
end

--- USD per iteration for the messages of all micro-batches between the replicas of two neighbours,
-- which face each other in order of their rows.
local function hops_usd(problem, case, s, before, own)
  local usd = 0
  local b = 1 -- the row of `own` that faces the next replicas
  local left = own.rows[1].n
  for _, from in ipairs(before.rows) do
    local n = from.n
    while n > 0 do
      local facing = math.min(n, left)
      local bytes = problem.hop_bytes(case.shape.micro_batch, case.shape.ranges[s][1] - 1)
      usd = usd + facing * case.micro_batches * 2 * bytes
        * problem.fare(from.pool, own.rows[b].pool)
      n = n - facing
      left = left - facing
      if left == 0 and own.rows[b + 1] then
        b = b + 1
        left = own.rows[b].n
      end
    end
  end
  return usd
end

--- USD per iteration for bytes between zones: the messages into stage s, and its all-reduce, whose
-- ring passes each change of pool once. `before` is nil for the first stage.
function staffing.egress_usd(problem, case, s, before, own)
  if not problem.fare then
    return 0
  end
  local usd = before and hops_usd(problem, case, s, before, own) or 0
  local ring_usd_per_byte = 0
  if #own.rows > 1 then
    for i, row in ipairs(own.rows) do
      local next_row = own.rows[i % #own.rows + 1]
      ring_usd_per_byte = ring_usd_per_byte + problem.fare(row.pool, next_row.pool)
    end
  end
  if ring_usd_per_byte > 0 then
    local range = case.shape.ranges[s]
    usd = usd + ring_usd_per_byte * 2 * (case.dp - 1) / case.dp
      * problem.sync_bytes(own.rows, range[1], range[2])
  end
  return usd
end

return staffing
