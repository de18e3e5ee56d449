-- Micro-batches of sequences of unequal length (Jiang et al. 2024, sections 4 and 5): contiguous
-- runs of the sorted sequences by dynamic programming, and their division among replicas.
local numbers = require "numbers"

local batches = {}

--- Lengths are padded to a multiple of this.
batches.PADDING = 8

--- Padded length of a run of sorted lengths: that of its longest sequence.
function batches.padded(lengths, from, to)
  local longest = math.max(lengths[from], lengths[to]) -- sorted: at one of the ends
  return (longest + batches.PADDING - 1) // batches.PADDING * batches.PADDING
end

--- Seconds of the runs that end at each position, the shortest first, and all times in order.
local function run_times(n, seconds)
  local cost, all, seen = {}, {}, {}
  for to = 1, n do
    cost[to] = {}
    for from = to, 1, -1 do
      local time = seconds(from, to)
      if not time then
        break
      end
      cost[to][to - from + 1] = time
      if not seen[time] then
        seen[time] = true
        all[#all + 1] = time
      end
    end
  end
  table.sort(all)
  return cost, all
end

--- Least sum of the times of runs, none above `limit`: the sum, and the length of the last run up
-- to each position.
local function least_sum(n, cost, limit)
  local sum, last = { [0] = 0 }, {}
  for to = 1, n do
    local best = math.huge
    for length, time in ipairs(cost[to]) do
      if time <= limit and sum[to - length] + time < best then
        best, last[to] = sum[to - length] + time, length
      end
    end
    sum[to] = best
  end
  return sum[n], last
end

--- The objective: (c - 1) · longest + sum / replicas on c stages.
function batches.value(stages, replicas, longest, sum)
  return (stages - 1) * longest + sum / replicas
end

--- Micro-batches of least (c - 1) longest + sum / replicas on c stages, as contiguous runs: for
-- every time that the longest may take, the least sum of all. seconds(from, to) gives those of a
-- run, nil where memory does not suffice for it and longer ones. Returns {value, runs = list of
-- {from, to}, times}, or nil. Exact.
function batches.solve(n, stages, replicas, seconds)
  local cost, all = run_times(n, seconds)
  local least, last = least_sum(n, cost, math.huge)
  if least == math.huge then
    return nil
  end
  local best
  local function take(choice, sum)
    local runs, times, to, longest = {}, {}, n, 0
    while to > 0 do
      table.insert(runs, 1, { to - choice[to] + 1, to })
      table.insert(times, 1, cost[to][choice[to]])
      longest = math.max(longest, times[1])
      to = to - choice[to]
    end
    local value = batches.value(stages, replicas, longest, sum)
    if not best or value < best.value then
      best = { value = value, runs = runs, times = times }
    end
  end
  take(last, least)
  for _, limit in ipairs(all) do
    if batches.value(stages, replicas, limit, least) >= best.value then
      break -- longer ones only cost more
    end
    local sum, choice = least_sum(n, cost, limit)
    if sum < math.huge then
      take(choice, sum)
    end
  end
  return best
end

--- Divides times among k parts by the largest differencing method (Karmarkar and Karp 1982): the
-- two tuples of largest spread are joined, large parts with small ones, until one is left. Returns
-- lists of the positions in each part, and the largest sum.
function batches.divide(times, k)
  local tuples = {}
  local function spread(tuple)
    return tuple[1].sum - tuple[k].sum
  end
  local function by_sum(a, b)
    if a.sum ~= b.sum then
      return a.sum > b.sum
    end
    return (a[1] or math.huge) < (b[1] or math.huge)
  end
  local function insert(tuple)
    table.sort(tuple, by_sum)
    local at = #tuples + 1
    while at > 1 and spread(tuples[at - 1]) < spread(tuple) do
      at = at - 1
    end
    table.insert(tuples, at, tuple)
  end
  for i, time in ipairs(times) do
    local tuple = { { sum = time, i } }
    for p = 2, k do
      tuple[p] = { sum = 0 }
    end
    insert(tuple)
  end
  while #tuples > 1 do
    local a, b, joined = table.remove(tuples, 1), table.remove(tuples, 1), {}
    for p = 1, k do
      local one, other = a[p], b[k + 1 - p]
      joined[p] = { sum = one.sum + other.sum }
      table.move(one, 1, #one, 1, joined[p])
      table.move(other, 1, #other, #joined[p] + 1, joined[p])
      table.sort(joined[p])
    end
    insert(joined)
  end
  return tuples[1], tuples[1][1].sum
end

--- Orders in which a replica may run its micro-batches: by falling time, by rising time, and by
-- three clusters of like time in every order, as times change least inside a cluster.
function batches.orders(list, times)
  local sorted = table.move(list, 1, #list, 1, {})
  table.sort(sorted, function(a, b)
    if times[a] ~= times[b] then
      return times[a] > times[b]
    end
    return a < b
  end)
  local out, third = {}, math.max(1, (#sorted + 2) // 3)
  for _, clusters in ipairs(numbers.permutations(3)) do
    local order = {}
    for _, c in ipairs(clusters) do
      table.move(sorted, (c - 1) * third + 1, math.min(c * third, #sorted), #order + 1, order)
    end
    out[#out + 1] = order
  end
  local reversed = {}
  for i, one in ipairs(sorted) do
    reversed[#sorted + 1 - i] = one
  end
  out[#out + 1] = reversed
  return out
end

return batches
