--- Devices of the cluster as planners need them: those that can be used, by node and by kind, in
-- the order of the file. The node and the kind of a device are read from the rows of
-- cluster:groups(), so that the work does not grow with the number of devices.
local numbers = require "numbers"

-- Kinds that are permuted at most: 24 orders.
local MOST_PERMUTED = 4

local inventory = {}

--- Can the cost model price the layers on this kind? Else the reason.
local function is_priced(kind)
  local ok, why = pcall(hv.cost.layers, { kinds = { kind } })
  if ok then
    return true
  end
  return false, (why:gsub("^[^ ]*:%d+: ", ""))
end

--- Rows of cluster:devices() whose kind can be priced, in file order, and the reason of the first
-- kind that cannot. CPUs count where `with_hosts` is true.
local function all_priced(ctx, with_hosts, can_price)
  local list = {}
  local is_usable = {} -- by kind
  local reason
  for _, device in ipairs(ctx.cluster:devices()) do
    local kind = device.kind
    local is_candidate = (device.class ~= "cpu" or with_hosts) and (device.flops_per_s or 0) > 0
    if is_usable[kind] == nil and is_candidate then
      local why
      is_usable[kind], why = can_price(kind)
      reason = reason or why
    end
    if is_usable[kind] then
      list[#list + 1] = device
    end
  end
  return list, reason
end

--- Is the list of devices of a fabric to be taken before another one: more of them, then more
-- FLOP per second, then by the name of the fabric, so that the order of the file decides nothing?
local function is_before(a, b)
  if #a.devices ~= #b.devices then
    return #a.devices > #b.devices
  elseif a.flops_per_s ~= b.flops_per_s then
    return a.flops_per_s > b.flops_per_s
  end
  return a.fabric < b.fabric
end

--- The devices of the fabric that has most of them.
local function of_largest_fabric(devices)
  local by_fabric = {}
  for _, device in ipairs(devices) do
    local fabric = device.fabric or ""
    local own = by_fabric[fabric] or { fabric = fabric, devices = {}, flops_per_s = 0 }
    by_fabric[fabric] = own
    own.devices[#own.devices + 1] = device
    own.flops_per_s = own.flops_per_s + device.flops_per_s
  end
  local largest
  for _, own in pairs(by_fabric) do
    if not largest or is_before(own, largest) then
      largest = own
    end
  end
  return largest and largest.devices or {}
end

--- Devices that can be priced: accelerators that compute in the job's precision and, for a model of
-- measured layers, were measured. They are in file order and of the fabric that has most of them
-- (collectives do not cross fabrics); with `all` = true of every fabric, with "hosts" CPUs too.
-- With an empty list comes the reason. Tests pass `can_price(kind)` in place of the cost model.
function inventory.priced(ctx, all, can_price)
  local list, reason = all_priced(ctx, all == "hosts", can_price or is_priced)
  if not all then
    list = of_largest_fabric(list)
  end
  if #list > 0 then
    return list
  end
  return list, reason or "no device of the cluster computes in " .. ctx.job.precision
end

--- Devices grouped into runs of one node and one kind:
-- { { kind, ids, memory_bytes, flops_per_s, group }, ... } in the order of the list.
function inventory.nodes(devices)
  local nodes = {}
  local last
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

--- Devices for stages {tp, dp}, each tensor-parallel group inside the first node that has room for
-- it: for every stage its { ids, kinds = set }; false where the groups do not fit.
function inventory.first_fit(nodes, stages)
  local free = {} -- devices of a node that are left
  for n, node in ipairs(nodes) do
    free[n] = #node.ids
  end
  local first = 1 -- the first node with a device left
  local rows = {}
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
      free[n] = free[n] - stage.tp
      rows[s].kinds[nodes[n].kind] = true
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

--- The devices without those of least memory: where nothing fits on all of them.
function inventory.without_smallest(devices)
  local least_bytes = math.huge
  local rest = {}
  for _, device in ipairs(devices) do
    least_bytes = math.min(least_bytes, device.memory_bytes)
  end
  for _, device in ipairs(devices) do
    if device.memory_bytes > least_bytes then
      rest[#rest + 1] = device
    end
  end
  return rest
end

--- Kinds of rows in words: "4 x A100-SXM-80GB, 3 x V100-SXM2-32GB".
function inventory.kinds_text(rows)
  local kinds = inventory.kinds(rows)
  local count = {}
  for _, row in ipairs(rows) do
    count[row.kind] = (count[row.kind] or 0) + 1
  end
  local words = {}
  for i, kind in ipairs(kinds) do
    words[i] = count[kind] .. " x " .. kind
  end
  return table.concat(words, ", ")
end

local group_rows -- cluster:groups(), once it was read
local last_group -- the row that was found last
local device_rows -- rows of cluster:devices() by id, once they were read

--- How many nodes of a group lie before the device's own; nil where it is not in the group.
local function nodes_before(group, id)
  local offset = id - group.first
  local n = offset // group.stride
  local is_inside = offset >= 0 and n < group.count and offset % group.stride < group.devices
  return is_inside and n or nil
end

--- The row of groups that a device belongs to, and how many nodes lie before its own there; or the
-- device's own row, where a replan has lost a part of its node.
local function row_of(ctx, id)
  local before = last_group and nodes_before(last_group, id)
  if before then
    return last_group, before
  end
  group_rows = group_rows or ctx.cluster:groups()
  for _, group in ipairs(group_rows) do
    before = nodes_before(group, id)
    if before then
      last_group = group
      return group, before
    end
  end
  if not device_rows then
    device_rows = {}
    for _, device in ipairs(ctx.cluster:devices()) do
      device_rows[device.id] = device
    end
  end
  return device_rows[id]
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
  if before then
    return row.first_node + before
  end
  return row and row.node
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

--- A text that is the same for equal devices: the name of the group and the kind.
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
  group_rows = group_rows or ctx.cluster:groups()
  local ids = {}
  for _, group in ipairs(group_rows) do
    local n_nodes = group.kind == kind and group.count or 0
    for node = 0, n_nodes - 1 do
      for i = 0, group.devices - 1 do
        if #ids == n then
          return ids
        end
        ids[#ids + 1] = group.first + node * group.stride + i
      end
    end
  end
  if #ids > 0 then
    return ids
  end
  for _, device in ipairs(ctx.cluster:devices()) do
    if device.kind == kind and #ids < n then
      ids[#ids + 1] = device.id
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
  if #list == 0 then
    return nil, why
  end
  return list
end

--- The devices that can be used, as planners of equal devices need them.
-- @function inventory.world
-- @tparam handle ctx the run's input
-- @treturn table {devices = rows, ids = their numbers, node_size = greatest common divisor of the
-- numbers of devices of nodes, layers = ctx.model:layers()}; nil and the reason where none can
-- be used
-- @units none
-- @raise a model that has no layers
-- @usage local world = require("inventory").world(ctx)
-- assert(#world.ids == #world.devices)
function inventory.world(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local world = { devices = devices, ids = {}, layers = ctx.model:layers(),
    node_size = inventory.node_size(inventory.nodes(devices)) }
  for i, device in ipairs(devices) do
    world.ids[i] = device.id
  end
  return world
end

--- Devices by kind, in order of first mention.
-- @function inventory.types
-- @tparam table devices list of rows of cluster:devices()
-- @treturn table list of {kind, size = greatest common divisor of its nodes' devices, devices}
-- @units none
-- @raise none
-- @usage print(#require("inventory").types(ctx.cluster:devices()))
function inventory.types(devices)
  local list = {}
  local by_kind = {}
  for n, node in ipairs(inventory.nodes(devices)) do
    local own = by_kind[node.kind]
    if not own then
      own = { kind = node.kind, size = 0, devices = {} }
      by_kind[node.kind] = own
      list[#list + 1] = own
    end
    own.size = numbers.gcd(own.size, #node.ids)
    for _, id in ipairs(node.ids) do
      table.insert(own.devices, { id = id, kind = node.kind, node = n })
    end
  end
  return list
end

--- Orders of the devices that planners try: all devices of a kind together, the first four kinds in
-- every order.
-- @function inventory.orders
-- @tparam table nodes list as inventory.nodes gives them
-- @treturn table list of lists of {id, kind, node, …}; the first is the order of the file
-- @units none
-- @raise none
-- @usage local inventory = require "inventory"
-- print(#inventory.orders(inventory.nodes(inventory.priced(ctx))))
function inventory.orders(nodes)
  local kinds = inventory.kinds(nodes)
  local by_kind = {}
  for _, kind in ipairs(kinds) do
    by_kind[kind] = {}
  end
  for n, node in ipairs(nodes) do
    for _, id in ipairs(node.ids) do
      table.insert(by_kind[node.kind], { id = id, kind = node.kind, node = n,
        memory_bytes = node.memory_bytes, flops_per_s = node.flops_per_s })
    end
  end
  local orders = {}
  for i, permutation in ipairs(numbers.permutations(math.min(MOST_PERMUTED, #kinds))) do
    orders[i] = {}
    for k = 1, #kinds do
      local list = by_kind[kinds[permutation[k] or k]]
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
-- @usage local inventory = require "inventory"
-- assert(#inventory.kinds { { kind = "a" }, { kind = "b" }, { kind = "a" } } == 2)
function inventory.kinds(devices)
  local seen = {}
  local kinds = {}
  for _, device in ipairs(devices) do
    if not seen[device.kind] then
      seen[device.kind] = true
      kinds[#kinds + 1] = device.kind
    end
  end
  return kinds
end

return inventory
