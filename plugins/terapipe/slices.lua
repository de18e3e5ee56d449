-- TeraPipe's program: lengths of the token slices of every micro-batch, and the micro-batches that
-- a batch is cut into, so that sum of all slices + (K - 1) longest slice is least. For a bound on
-- the longest slice the best slices of one micro-batch of each size follow from prefixes, and the
-- sizes from a knapsack over the batch; all lengths of slices are tried as the bound.
local slices = {}

--- Seconds of all slices by size: of units first … last at (first - 1) · units + last.
local function times_of(q)
  local times = {}
  for i, size in ipairs(q.sizes) do
    times[i] = {}
    for first = 1, q.units do
      for last = first, q.units do
        times[i][(first - 1) * q.units + last] = q.seconds(size, first, last)
      end
    end
  end
  return times
end

--- Distinct seconds of all slices of all sizes, ascending, those within `epsilon` of the one before
-- left out.
local function bounds_of(q, times)
  local list = {}
  for _, own in ipairs(times) do
    for _, seconds in pairs(own) do
      list[#list + 1] = seconds
    end
  end
  table.sort(list)
  local kept = {}
  for i, seconds in ipairs(list) do
    local next_s = list[i + 1]
    if not next_s or next_s > (kept[#kept] or 0) * (1 + q.epsilon) and next_s ~= seconds then
      kept[#kept + 1] = seconds
    end
  end
  return kept
end

--- Best slices of a micro-batch with none above bound_s, `times` being those of its size: their
-- sum and, by last unit, the unit before the slice; nil where there are none.
local function prefixes(times, units, bound_s)
  local sum_s, before = { [0] = 0 }, {}
  for last = 1, units do
    local least_s, from = math.huge, nil
    for first = last, 1, -1 do
      local own_s, rest_s = times[(first - 1) * units + last], sum_s[first - 1]
      if own_s <= bound_s and rest_s and rest_s + own_s < least_s then
        least_s, from = rest_s + own_s, first - 1
      end
    end
    if from then
      sum_s[last], before[last] = least_s, from
    end
  end
  return sum_s[units], before
end

--- Fewest seconds of micro-batches that make up the batch, one_s = seconds by size: their sum and
-- the last size for every part of the batch; nil where none make it up.
local function batch_of(q, one_s)
  local sum_s, size_of = { [0] = 0 }, {}
  for n = 1, q.batch do
    for i, size in ipairs(q.sizes) do
      local rest_s = one_s[i] and size <= n and sum_s[n - size]
      if rest_s and (not sum_s[n] or rest_s + one_s[i] < sum_s[n]) then
        sum_s[n], size_of[n] = rest_s + one_s[i], i
      end
    end
  end
  return sum_s[q.batch], size_of
end

--- Units of each slice from the chain of `before`.
local function lengths_of(q, before)
  local list, last = {}, q.units
  while last > 0 do
    table.insert(list, 1, last - before[last])
    last = before[last]
  end
  return list
end

--- Micro-batches { size, lengths } of the batch, largest size first.
local function parts_of(q, size_of, lengths)
  local parts, n = {}, q.batch
  while n > 0 do
    local i = size_of[n]
    parts[#parts + 1] = { size = q.sizes[i], lengths = lengths(i) }
    n = n - q.sizes[i]
  end
  table.sort(parts, function(a, b)
    return a.size > b.size
  end)
  return parts
end

--- The best of q = { units of a sequence, batch = sequences, sizes = micro-batches that may be
-- made, stages = K, seconds(size, first, last) of a slice, epsilon = share by which bounds may be
-- apart (0: exact) }: { value, longest_s, parts = list of { size, lengths } }; nil where no sizes
-- make up the batch.
function slices.best(q)
  local best
  local times = times_of(q)
  for _, bound_s in ipairs(bounds_of(q, times)) do
    if best and (q.stages - 1) * bound_s >= best.value then
      break
    end
    local one_s, chains = {}, {}
    for i in ipairs(q.sizes) do
      one_s[i], chains[i] = prefixes(times[i], q.units, bound_s)
    end
    local sum_s, size_of = batch_of(q, one_s)
    local value = sum_s and sum_s + (q.stages - 1) * bound_s
    if value and (not best or value < best.value) then
      best = { value = value, longest_s = bound_s, size_of = size_of, chains = chains }
    end
  end
  if not best then
    return nil
  end
  return { value = best.value, longest_s = best.longest_s,
    parts = parts_of(q, best.size_of, function(i) return lengths_of(q, best.chains[i]) end) }
end

--- Seconds of a micro-batch in these slices, and of the longest one.
function slices.of(q, size, lengths)
  local sum_s, longest_s, at = 0, 0, 0
  for _, n in ipairs(lengths) do
    local own_s = q.seconds(size, at + 1, at + n)
    sum_s, longest_s, at = sum_s + own_s, math.max(longest_s, own_s), at + n
  end
  return sum_s, longest_s
end

--- The best batch whose micro-batches all have these slices: as slices.best.
function slices.common(q, lengths)
  local best
  for _, limit in ipairs(q.sizes) do
    local _, bound_s = slices.of(q, limit, lengths)
    local one_s = {}
    for i, size in ipairs(q.sizes) do
      local sum_s, longest_s = slices.of(q, size, lengths)
      one_s[i] = longest_s <= bound_s and sum_s or nil
    end
    local sum_s, size_of = batch_of(q, one_s)
    local value = sum_s and sum_s + (q.stages - 1) * bound_s
    if value and (not best or value < best.value) then
      best = { value = value, longest_s = bound_s,
        parts = parts_of(q, size_of, function() return lengths end) }
    end
  end
  return best
end

return slices
