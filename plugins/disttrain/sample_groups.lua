-- Samples of unequal size to data-parallel groups (section 5.1).
local sample_groups = {}

--- Positions 1 to n dealt to groups in turns: a list of lists.
function sample_groups.in_turns(n, groups)
  local out = {}
  for i = 1, n do
    local g = (i - 1) % groups + 1
    out[g] = out[g] or {}
    table.insert(out[g], i)
  end
  return out
end

--- Positions by falling size; equal ones as they come.
local function largest_first(sizes)
  local order = {}
  for i in ipairs(sizes) do
    order[i] = i
  end
  table.sort(order, function(a, b)
    if sizes[a] ~= sizes[b] then
      return sizes[a] > sizes[b]
    end
    return a < b
  end)
  return order
end

--- The largest sum of sizes of a group.
local function largest_load(sizes, groups)
  local most = 0
  for _, group in ipairs(groups) do
    local sum = 0
    for _, i in ipairs(group) do
      sum = sum + sizes[i]
    end
    most = math.max(most, sum)
  end
  return most
end

--- As many samples to every group, at most one more to some, since data-parallel ranks take their
-- steps together: largest first, each to the least loaded group that has room; in turns, where that
-- has no larger load. Gives a list of lists of positions, each in the order
-- of the samples, the largest load in turns, and the largest load now.
function sample_groups.by_size(sizes, groups)
  local out, loads, room = {}, {}, math.ceil(#sizes / groups)
  for g = 1, groups do
    out[g] = {}
    loads[g] = 0
  end
  for _, i in ipairs(largest_first(sizes)) do
    local least
    for g = 1, groups do
      if #out[g] < room and (not least or loads[g] < loads[least]) then
        least = g
      end
    end
    table.insert(out[least], i)
    loads[least] = loads[least] + sizes[i]
  end
  for g = 1, groups do
    table.sort(out[g])
  end
  local given = sample_groups.in_turns(#sizes, groups)
  local before, now = largest_load(sizes, given), math.max(table.unpack(loads))
  if before > now then
    return out, before, now
  end
  return given, before, before
end

return sample_groups
