-- DAPPLE's three ways to place a stage on devices (section 4.2). Devices of a node are alike, so
-- that an allocation is a list of counts, one per node.
local placement = {}

--- Takes n devices node by node in the order of `before(a, b)`; ties in the order of the nodes.
local function in_order(free, n, before)
  local order = {}
  for i = 1, #free do
    order[i] = i
  end
  table.sort(order, function(a, b)
    local first = before(a, b)
    if first == nil then
      return a < b
    end
    return first
  end)
  local taken = {}
  for i = 1, #free do
    taken[i] = 0
  end
  for _, i in ipairs(order) do
    taken[i] = math.min(n, free[i])
    n = n - taken[i]
  end
  return taken
end

--- Fresh first: a machine that is not in use, so that a stage is within one.
function placement.fresh(free, sizes, n)
  return in_order(free, n, function(a, b)
    local fresh_a, fresh_b = free[a] == sizes[a], free[b] == sizes[b]
    if fresh_a ~= fresh_b then
      return fresh_a
    end
    return nil
  end)
end

--- Append first: machines that are partly in use are filled.
function placement.append(free, sizes, n)
  return in_order(free, n, function(a, b)
    local used_a, used_b = free[a] < sizes[a], free[b] < sizes[b]
    if used_a ~= used_b then
      return used_a
    end
    return nil
  end)
end

--- Scatter first: one device after the other from the machine with most that are free.
function placement.scatter(free, _, n)
  local taken, left = {}, { table.unpack(free) }
  for i = 1, #free do
    taken[i] = 0
  end
  for _ = 1, n do
    local most = 1
    for i = 2, #left do
      most = left[i] > left[most] and i or most
    end
    taken[most], left[most] = taken[most] + 1, left[most] - 1
  end
  return taken
end

placement.all = { placement.fresh, placement.append, placement.scatter }

return placement
