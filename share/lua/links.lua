--- Links between devices, and times of messages over them by formula. The figures of pairs of nodes
-- are remembered, since planners use the same pairs many times.
local inventory = require "inventory"

local links = {}

local MOST_KNOWN = 50000  -- links that are remembered at the same time
local MANY = 512          -- members of an exchange above which equal ones are counted instead
local KEY_BASE = 1048576  -- above every number of a device or node

local known = {}
local n_known = 0

--- Two devices of one node have their own key, those of two nodes share the key of the nodes.
local function key_of(ctx, a, b)
  local node_a = inventory.node(ctx, a)
  local node_b = inventory.node(ctx, b)
  if node_a == node_b then
    return a * KEY_BASE + b
  end
  return -(node_a * KEY_BASE + node_b)
end

--- The link of two devices: {bandwidth_bytes_per_s, latency_s}.
-- @function links.link
-- @tparam handle ctx the run's input
-- @tparam integer a device number
-- @tparam integer b device number
-- @treturn table {bandwidth_bytes_per_s, latency_s}
-- @units bytes per second, seconds
-- @raise a number that no device has
-- @usage print(require("links").link(ctx, 1, 2).latency_s)
function links.link(ctx, a, b)
  local key = key_of(ctx, a, b)
  local link = known[key]
  if not link then
    if n_known == MOST_KNOWN then
      known = {}
      n_known = 0
    end
    link = ctx.cluster:link(a, b)
    known[key] = link
    n_known = n_known + 1
  end
  return link
end

--- Seconds of one message between two devices.
-- @function links.seconds
-- @tparam handle ctx the run's input
-- @tparam integer a device number
-- @tparam integer b device number
-- @tparam number bytes size of the message
-- @treturn number latency + bytes / bandwidth; 0 for one device
-- @units bytes, seconds
-- @raise a number that no device has
-- @usage assert(require("links").seconds(ctx, 1, 1, 1e9) == 0)
function links.seconds(ctx, a, b, bytes)
  if a == b then
    return 0
  end
  local link = links.link(ctx, a, b)
  return link.latency_s + bytes / link.bandwidth_bytes_per_s
end

--- Bandwidth between two devices; infinite for one.
-- @function links.bandwidth
-- @tparam handle ctx the run's input
-- @tparam integer a device number
-- @tparam integer b device number
-- @treturn number bandwidth
-- @units bytes per second
-- @raise a number that no device has
-- @usage print(require("links").bandwidth(ctx, 1, 2))
function links.bandwidth(ctx, a, b)
  if a == b then
    return math.huge
  end
  return links.link(ctx, a, b).bandwidth_bytes_per_s
end

--- Seconds of a ring all-reduce by formula: 2 (p − 1) / p · bytes over the slowest link.
-- @function links.ring
-- @tparam handle ctx the run's input
-- @tparam table ids list of device numbers, in the ring's order
-- @tparam number bytes size of the tensor
-- @treturn number seconds; 0 for one device
-- @units bytes, seconds
-- @raise a number that no device has
-- @usage print(require("links").ring(ctx, { 1, 2 }, 1e9))
function links.ring(ctx, ids, bytes)
  local slowest = math.huge
  for i, id in ipairs(ids) do
    slowest = math.min(slowest, links.bandwidth(ctx, id, ids[i % #ids + 1]))
  end
  return 2 * (#ids - 1) / math.max(1, #ids) * bytes / slowest
end

--- Seconds in which one member of an exchange sends to all others and receives from them.
local function member_s(ctx, a, ids, bytes)
  local sum_s = 0
  for _, b in ipairs(ids) do
    sum_s = sum_s + 2 * links.seconds(ctx, a, b, bytes)
  end
  return sum_s
end

--- Classes of equal devices (inventory.class) in order of first mention: { count, first, second },
-- two devices of each where there are as many.
local function classes_of(ctx, ids)
  local list = {}
  local by_key = {}
  for _, id in ipairs(ids) do
    local key = inventory.class(ctx, id)
    local class = by_key[key]
    if not class then
      class = { count = 0, first = id }
      by_key[key] = class
      list[#list + 1] = class
    elseif not class.second then
      class.second = id
    end
    class.count = class.count + 1
  end
  return list
end

--- Seconds of the slowest member of a large exchange: its classes stand for their devices.
local function exchange_of_classes(ctx, ids, bytes)
  local classes = classes_of(ctx, ids)
  local slowest_s = 0
  for _, a in ipairs(classes) do
    local sum_s = 0
    for _, b in ipairs(classes) do
      local n_others = b.count
      local other = b.first
      if a == b then
        n_others = b.count - 1
        other = b.second or b.first
      end
      sum_s = sum_s + n_others * 2 * links.seconds(ctx, a.first, other, bytes)
    end
    slowest_s = math.max(slowest_s, sum_s)
  end
  return slowest_s
end

--- Seconds of an all-to-all exchange, as among the replicas of a sharded parameter server: the
-- slowest member sends to every other one and receives as much, one after the other. O(devices²);
-- of more than 512 devices all of one kind in a group count as equal.
-- @function links.exchange
-- @tparam handle ctx the run's input
-- @tparam table ids list of device numbers
-- @tparam number bytes size of one message
-- @treturn number seconds; 0 for one device
-- @units bytes, seconds
-- @raise a number that no device has
-- @usage local links = require "links"
-- assert(links.exchange(ctx, { 1, 2 }, 1e9) == 2 * links.seconds(ctx, 1, 2, 1e9))
function links.exchange(ctx, ids, bytes)
  if #ids > MANY then
    return exchange_of_classes(ctx, ids, bytes)
  end
  local slowest_s = 0
  for _, a in ipairs(ids) do
    slowest_s = math.max(slowest_s, member_s(ctx, a, ids, bytes))
  end
  return slowest_s
end

return links
