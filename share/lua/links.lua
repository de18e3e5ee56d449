--- Links between devices. The figures of pairs of nodes are remembered, since planners use the same
-- pairs many times.
local inventory = require "inventory"

local links = {}

local MOST_KNOWN = 50000 -- links that are remembered at the same time
local MANY = 512 -- members of an exchange from which on equal ones are counted instead
local known, n_known = {}, 0

--- Devices of one node keep their pair, those of two nodes share the figure of the nodes.
local function key_of(ctx, a, b)
  local m, n = inventory.node(ctx, a), inventory.node(ctx, b)
  if m == n then
    return a * 1048576 + b
  end
  return -(m * 1048576 + n)
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
      known, n_known = {}, 0
    end
    link = ctx.cluster:link(a, b)
    known[key], n_known = link, n_known + 1
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
  local l = links.link(ctx, a, b)
  return l.latency_s + bytes / l.bandwidth_bytes_per_s
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
  return a == b and math.huge or links.link(ctx, a, b).bandwidth_bytes_per_s
end

--- Seconds of an all-reduce by formula: 2 (p − 1) / p · bytes over the slowest link of the ring.
-- @function links.ring
-- @tparam handle ctx the run's input
-- @tparam table ids list of device numbers, in the ring's order
-- @tparam number bytes size of the tensor
-- @treturn number seconds; 0 for one device
-- @units bytes, seconds
-- @raise a number that no device has
-- @usage print(require("links").ring(ctx, { 1, 2 }, 1e9))
function links.ring(ctx, ids, bytes)
  local least = math.huge
  for i, id in ipairs(ids) do
    least = math.min(least, links.bandwidth(ctx, id, ids[i % #ids + 1]))
  end
  return 2 * (#ids - 1) / math.max(1, #ids) * bytes / least
end

--- What one member of an exchange sends and receives.
local function member_s(ctx, a, ids, bytes)
  local sum = 0
  for _, b in ipairs(ids) do
    sum = sum + 2 * links.seconds(ctx, a, b, bytes)
  end
  return sum
end

--- The slowest of very many members: two stand for all of a kind in a group.
local function many_s(ctx, ids, bytes)
  local count, stand, order, worst = {}, {}, {}, 0
  for _, id in ipairs(ids) do
    local key = inventory.class(ctx, id)
    if not count[key] then
      count[key], stand[key], order[#order + 1] = 0, {}, key
    end
    count[key] = count[key] + 1
    if #stand[key] < 2 then
      table.insert(stand[key], id)
    end
  end
  for _, a in ipairs(order) do
    local sum = 0
    for _, b in ipairs(order) do
      local one, other = stand[a][1], a == b and (stand[b][2] or stand[b][1]) or stand[b][1]
      sum = sum + (count[b] - (a == b and 1 or 0)) * 2 * links.seconds(ctx, one, other, bytes)
    end
    worst = math.max(worst, sum)
  end
  return worst
end

--- Seconds of an all-to-all exchange, as among the replicas of a sharded parameter server: the
-- slowest member sends to every other one and receives as much, one after the other. O(devices²);
-- of more than 512 devices all of a kind in a group count as equal.
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
    return many_s(ctx, ids, bytes)
  end
  local worst = 0
  for _, a in ipairs(ids) do
    worst = math.max(worst, member_s(ctx, a, ids, bytes))
  end
  return worst
end

return links
