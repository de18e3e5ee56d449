-- Node and kind of devices by their number, from the rows of cluster:groups() rather than from a list of all devices:
-- a cluster of 160,000 costs what its few rows cost.
local devices = {}

local rows, listed, last = nil, nil, nil

--- The row of groups that a device belongs to, and how many nodes lie before its own there; or the device's own row,
-- where a replan has lost a part of its node.
local function row_of(ctx, id)
  rows = rows or ctx.cluster:groups()
  for i = 0, #rows do
    local g = i == 0 and last or rows[i]
    local at = g and id - g.first or -1
    if at >= 0 and at // g.stride < g.count and at % g.stride < g.devices then
      last = g
      return g, at // g.stride
    end
  end
  if not listed then
    listed = {}
    for _, d in ipairs(ctx.cluster:devices()) do listed[d.id] = d end
  end
  return listed[id]
end

--- Number of the node that a device is in.
-- @function devices.node
-- @tparam handle ctx the run's input
-- @tparam integer id device number
-- @treturn integer number of its node, from 1; nil for a device that is not in use
-- @units none
-- @raise none
-- @usage print(require("devices").node(ctx, 1))
function devices.node(ctx, id)
  local row, before = row_of(ctx, id)
  return row and (before and row.first_node + before or row.node)
end

--- Kind of a device.
-- @function devices.kind
-- @tparam handle ctx the run's input
-- @tparam integer id device number
-- @treturn string name of its kind; nil for a device that is not in use
-- @units none
-- @raise none
-- @usage print(require("devices").kind(ctx, 1))
function devices.kind(ctx, id)
  local row = row_of(ctx, id)
  return row and row.kind
end

--- What stands for a device among equals: the name of its group and its kind.
-- @function devices.class
-- @tparam handle ctx the run's input
-- @tparam integer id device number
-- @treturn string the same for all devices of a kind in a group; nil for a device that is not in use
-- @units none
-- @raise none
-- @usage print(require("devices").class(ctx, 1))
function devices.class(ctx, id)
  local row = row_of(ctx, id)
  return row and (row.group or row.name) .. "/" .. row.kind
end

--- The first devices of a kind, in order of their numbers.
-- @function devices.first
-- @tparam handle ctx the run's input
-- @tparam string kind name of a kind
-- @tparam integer n how many at most
-- @treturn table list of device numbers
-- @units none
-- @raise none
-- @usage local d = ctx.cluster:devices()[1]
-- assert(require("devices").first(ctx, d.kind, 1)[1] <= d.id)
function devices.first(ctx, kind, n)
  rows = rows or ctx.cluster:groups()
  local ids = {}
  for _, g in ipairs(rows) do
    for k = 0, g.kind == kind and g.count - 1 or -1 do
      for i = 0, g.devices - 1 do
        if #ids == n then return ids end
        ids[#ids + 1] = g.first + k * g.stride + i
      end
    end
  end
  for _, d in ipairs(#ids == 0 and ctx.cluster:devices() or {}) do
    if d.kind == kind and #ids < n then ids[#ids + 1] = d.id end
  end
  return ids
end

return devices
