--- Devices of the cluster as planners need them: those that can be used, by node and by kind, in
-- the order of the file. Node and kind of a device come from the rows of cluster:groups(), so work
-- does not grow with the number of devices.
local numbers = require "numbers"

local inventory = {}

--- Can the cost model price the layers on this kind? Else the reason.
local function is_priced(kind)
  local ok, why = pcall(hv.cost.layers, { kinds = { kind } })
  return ok, not ok and why:gsub("^[^ ]*:%d+: ", "") or nil
end

--- Devices that can be priced: accelerators that compute in the job's precision and, for a model of
-- measured layers, were measured. In file order; of the fabric that has most of them (collectives
-- do not cross fabrics) unless `all` is true; "hosts": CPUs too. With an empty list comes the
-- reason. Tests replace the question to the cost model by `can_price(kind)`.
function inventory.priced(ctx, all, can_price)
  local by_fabric, most, everywhere, ok, reason = {}, nil, {}, {}, nil
  for _, d in ipairs(ctx.cluster:devices()) do
    if ok[d.kind] == nil and (d.class ~= "cpu" or all == "hosts") and (d.flops_per_s or 0) > 0 then
      local fine, why = (can_price or is_priced)(d.kind)
      ok[d.kind], reason = fine, reason or why
    end
    if ok[d.kind] then
      local fabric = d.fabric or ""
      local list = by_fabric[fabric] or {}
      by_fabric[fabric], everywhere[#everywhere + 1] = list, d
      list[#list + 1] = d
      if not most or #list > #by_fabric[most] then
        most = fabric
      end
    end
  end
  local list = all and everywhere or most and by_fabric[most] or {}
  return list, #list == 0 and (reason or "no device of the cluster computes in "
      .. ctx.job.precision) or nil
end

--- Devices grouped into runs of one node and one kind:
-- { { kind, ids, memory_bytes, flops_per_s, group }, ... } in the order of the list.
function inventory.nodes(devices)
  local nodes, last = {}, nil
  for _, d in ipairs(devices) do
    if not last or last.node ~= d.node or last.kind ~= d.kind then
      last = {
        node = d.node, kind = d.kind, group = d.group, ids = {},
        memory_bytes = d.memory_bytes, flops_per_s = d.flops_per_s,
      }
      nodes[#nodes + 1] = last
    end
    last.ids[#last.ids + 1] = d.id
  end
  return nodes
end

--- Devices for stages {tp, dp}, each tensor group inside the first node that has room for it: for
-- every stage its { ids, kinds = set }; false where the groups do not fit.
function inventory.first_fit(nodes, stages)
  local free, first, rows = {}, 1, {}
  for n, node in ipairs(nodes) do
    free[n] = #node.ids
  end
  for s, stage in ipairs(stages) do
    rows[s] = { ids = {}, kinds = {} }
    for _ = 1, stage.dp do
      while nodes[first] and free[first] == 0 do
        first = first + 1
      end
      local n = first
      while nodes[n] and free[n] < stage.tp do
        n = n + 1
      end
      if not nodes[n] then
        return false
      end
      local ids = nodes[n].ids
      table.move(ids, #ids - free[n] + 1, #ids - free[n] + stage.tp, #rows[s].ids + 1, rows[s].ids)
      free[n], rows[s].kinds[nodes[n].kind] = free[n] - stage.tp, true
    end
  end
  return rows
end

--- Greatest common divisor of the node sizes.
function inventory.node_size(nodes)
  local size = 0
  for _, n in ipairs(nodes) do
    size = numbers.gcd(size, #n.ids)
  end
  return size
end

--- Kinds of rows in words: "4 x A100-SXM-80GB, 3 x V100-SXM2-32GB".
function inventory.kinds_text(rows)
  local order, count = {}, {}
  for _, row in ipairs(rows) do
    if not count[row.kind] then
      order[#order + 1], count[row.kind] = row.kind, 0
    end
    count[row.kind] = count[row.kind] + 1
  end
  for i, kind in ipairs(order) do
    order[i] = count[kind] .. " x " .. kind
  end
  return table.concat(order, ", ")
end

local rows, listed, last = nil, nil, nil

--- The row of groups that a device belongs to, and how many nodes lie before its own there; or the
-- device's own row, where a replan has lost a part of its node.
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
    for _, d in ipairs(ctx.cluster:devices()) do
      listed[d.id] = d
    end
  end
  return listed[id]
end

--- Number of the node that a device is in.
-- @function inventory.node
-- @tparam handle ctx the run's input
-- @tparam integer id device number
-- @treturn integer number of its node, from 1; nil for a device that is not in use
-- @units none
-- @raise none
-- @usage print(require("inventory").node(ctx, 1))
function inventory.node(ctx, id)
  local row, before = row_of(ctx, id)
  return row and (before and row.first_node + before or row.node)
end

--- Kind of a device.
-- @function inventory.kind
-- @tparam handle ctx the run's input
-- @tparam integer id device number
-- @treturn string name of its kind; nil for a device that is not in use
-- @units none
-- @raise none
-- @usage print(require("inventory").kind(ctx, 1))
function inventory.kind(ctx, id)
  local row = row_of(ctx, id)
  return row and row.kind
end

--- What stands for a device among equals: the name of its group and its kind.
-- @function inventory.class
-- @tparam handle ctx the run's input
-- @tparam integer id device number
-- @treturn string the same for all devices of a kind in a group; nil for a device that is not in
-- use
-- @units none
-- @raise none
-- @usage print(require("inventory").class(ctx, 1))
function inventory.class(ctx, id)
  local row = row_of(ctx, id)
  return row and (row.group or row.name) .. "/" .. row.kind
end

--- The first devices of a kind, in order of their numbers.
-- @function inventory.first
-- @tparam handle ctx the run's input
-- @tparam string kind name of a kind
-- @tparam integer n how many at most
-- @treturn table list of device numbers
-- @units none
-- @raise none
-- @usage local d = ctx.cluster:devices()[1]
-- assert(require("inventory").first(ctx, d.kind, 1)[1] <= d.id)
function inventory.first(ctx, kind, n)
  rows = rows or ctx.cluster:groups()
  local ids = {}
  for _, g in ipairs(rows) do
    for k = 0, g.kind == kind and g.count - 1 or -1 do
      for i = 0, g.devices - 1 do
        if #ids == n then
          return ids
        end
        ids[#ids + 1] = g.first + k * g.stride + i
      end
    end
  end
  for _, d in ipairs(#ids == 0 and ctx.cluster:devices() or {}) do
    if d.kind == kind and #ids < n then
      ids[#ids + 1] = d.id
    end
  end
  return ids
end

--- Devices that can be priced: accelerators of the largest fabric that compute in the job's
-- precision and, for a model of measured layers, were measured.
-- @function inventory.usable
-- @tparam handle ctx the run's input
-- @tparam[opt] boolean all also those of other fabrics; "hosts": CPUs too
-- @treturn table list of rows of cluster:devices(); nil and the reason when there are none
-- @units as cluster:devices()
-- @raise none
-- @usage print(#require("inventory").usable(ctx))
function inventory.usable(ctx, all)
  local list, why = inventory.priced(ctx, all)
  return #list > 0 and list or nil, why
end

--- Devices by kind, in order of first mention.
-- @function inventory.types
-- @tparam table devices list of rows of cluster:devices()
-- @treturn table list of {kind, size = greatest common divisor of its nodes' devices, devices}
-- @units none
-- @raise none
-- @usage print(#require("inventory").types(ctx.cluster:devices()))
function inventory.types(devices)
  local list, by_kind = {}, {}
  for n, node in ipairs(inventory.nodes(devices)) do
    local t = by_kind[node.kind]
    if not t then
      t = { kind = node.kind, size = 0, devices = {} }
      by_kind[node.kind], list[#list + 1] = t, t
    end
    t.size = numbers.gcd(t.size, #node.ids)
    for _, id in ipairs(node.ids) do
      table.insert(t.devices, { id = id, kind = node.kind, node = n })
    end
  end
  return list
end

--- Orders of the devices worth trying: kinds as wholes, in every order (of the first four kinds).
-- @function inventory.orders
-- @tparam table nodes list as inventory.nodes gives them
-- @treturn table list of lists of {id, kind, node, …}; the first is the order of the file
-- @units none
-- @raise none
-- @usage local inventory = require "inventory"
-- print(#inventory.orders(inventory.nodes(inventory.priced(ctx))))
function inventory.orders(nodes)
  local by_kind, kinds, orders = {}, {}, {}
  for n, node in ipairs(nodes) do
    if not by_kind[node.kind] then
      by_kind[node.kind], kinds[#kinds + 1] = {}, node.kind
    end
    for _, id in ipairs(node.ids) do
      table.insert(by_kind[node.kind], { id = id, kind = node.kind, node = n,
        memory_bytes = node.memory_bytes,
        flops_per_s = node.flops_per_s })
    end
  end
  for i, perm in ipairs(numbers.permutations(math.min(4, #kinds))) do
    orders[i] = {}
    for k = 1, #kinds do
      local list = by_kind[kinds[perm[k] or k]]
      table.move(list, 1, #list, #orders[i] + 1, orders[i])
    end
  end
  return orders
end

--- Kinds of a list of devices, each once, in order of first mention.
-- @function inventory.kinds
-- @tparam table devices list of rows with kind
-- @treturn table list of names
-- @units none
-- @raise none
-- @usage assert(#require("inventory").kinds { { kind = "a" }, { kind = "b" }, { kind = "a" } } == 2)
function inventory.kinds(devices)
  local seen, kinds = {}, {}
  for _, d in ipairs(devices) do
    if not seen[d.kind] then
      seen[d.kind], kinds[#kinds + 1] = true, d.kind
    end
  end
  return kinds
end

return inventory
