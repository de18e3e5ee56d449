-- Axes of tensor parallelism on devices: the sides of the grids that a degree may be, and the
-- orders in which the axes go over the nodes.
local numbers = require "numbers"

local axes = {}

--- Orders of n axes as lists, the slowest axis first.
local function orders(n)
  local list = {}
  for i, order in ipairs(numbers.permutations(n)) do
    list[i] = table.concat(order, "")
  end
  return list
end

--- Sizes of the axes of a group of `tp` ranks of a scheme, slowest first as a plan orders its
-- ranks, behind the data-parallel one.
function axes.sizes(scheme, tp, depth)
  if scheme == "1d" then
    return { tp }
  elseif scheme == "3d" then
    local q = math.floor(tp ^ (1 / 3) + 0.5)
    return { q, q, q }
  end
  local q = math.floor(math.sqrt(tp / depth) + 0.5)
  return scheme == "2.5d" and { depth, q, q } or { q, q }
end

--- Names of the orders that can be tried: axes from 1 (data-parallel) on, slowest first, as
-- digits; the first is a plan's own.
function axes.orders(scheme)
  return orders(1 + #axes.sizes(scheme, 1, 1))
end

--- The devices of a stage in the order of its ranks, where neighbours along the last axis of
-- `order` are neighbours in `ids`.
function axes.place(order, sizes, ids)
  local perm, stride, at = {}, {}, 1
  for digit in order:gmatch "%d" do
    perm[#perm + 1] = tonumber(digit)
  end
  for i = #perm, 1, -1 do
    stride[perm[i]] = at
    at = at * sizes[perm[i]]
  end
  local placed = {}
  for rank = 0, #ids - 1 do
    local rest, place = rank, 0
    for axis = #sizes, 1, -1 do
      place = place + rest % sizes[axis] * stride[axis]
      rest = rest // sizes[axis]
    end
    placed[rank + 1] = ids[place + 1]
  end
  return placed
end

--- Grids that a scheme can make of at most n devices: { { tp, depth, side } }, by tp.
function axes.grids(scheme, n)
  local list = {}
  for side = 2, n do
    local square = side * side
    if square > n then
      break
    elseif scheme == "2d" then
      list[#list + 1] = { tp = square, depth = 1, side = side }
    elseif scheme == "3d" and square * side <= n then
      list[#list + 1] = { tp = square * side, depth = side, side = side }
    elseif scheme == "2.5d" then
      for depth = 2, math.min(side, n // square) do
        list[#list + 1] = { tp = square * depth, depth = depth, side = side }
      end
    end
  end
  table.sort(list, function(a, b)
    if a.tp ~= b.tp then
      return a.tp < b.tp
    end
    return a.depth < b.depth
  end)
  return list
end

return axes
