-- Pools of equal devices, one per kind and zone: the search treats the devices of a pool alike, and
-- gives replicas their devices at the end.
local links = require "links"
local numbers = require "numbers"
local zones = require "zones"

local pools = {}

--- Pools of rows of cluster:devices(): a list of {kind, zone, region, nodes = lists of {id, kind},
-- n = devices, size = greatest common divisor of its nodes' devices, usd_per_s = per device}. The
-- price is that of the file; where it has none, 1 USD per hour for every 100 TFLOP/s.
function pools.of(devices)
  local list = {}
  local by_key = {}
  for _, device in ipairs(devices) do
    local zone = device.zone or ""
    local key = device.kind .. "@" .. zone
    local pool = by_key[key]
    if not pool then
      pool = { kind = device.kind, zone = zone, region = zones.region(zone), nodes = {}, n = 0,
        size = 0, usd_per_s = (device.usd_per_h or device.flops_per_s / 1e14) / 3600 }
      by_key[key] = pool
      list[#list + 1] = pool
    end
    if not pool.last_node or pool.last_node ~= device.node then
      pool.nodes[#pool.nodes + 1] = {}
      pool.last_node = device.node
    end
    table.insert(pool.nodes[#pool.nodes], { id = device.id, kind = device.kind })
    pool.n = pool.n + 1
  end
  for _, pool in ipairs(list) do
    for _, node in ipairs(pool.nodes) do
      pool.size = numbers.gcd(pool.size, #node)
    end
  end
  return list
end

--- The link {bandwidth_bytes_per_s, latency_s} between two pools, or inside one: between its nodes
-- where it has several.
function pools.link(ctx, a, b)
  local from = a.nodes[1][1].id
  local to
  if a ~= b then
    to = b.nodes[1][1].id
  elseif a.nodes[2] then
    to = a.nodes[2][1].id
  else
    to = a.nodes[1][#a.nodes[1]].id
  end
  if from == to then
    return { bandwidth_bytes_per_s = math.huge, latency_s = 0 }
  end
  return links.link(ctx, from, to)
end

--- The rows of all stages with the replicas they serve (first+1 … first+n), large tensor degrees
-- first.
local function by_degree(stages)
  local wanted = {}
  for s, stage in ipairs(stages) do
    local first = 0
    for _, row in ipairs(stage) do
      wanted[#wanted + 1] = { stage = s, pool = row.pool, tp = row.tp, first = first, n = row.n,
        rank = #wanted }
      first = first + row.n
    end
  end
  table.sort(wanted, function(a, b)
    if a.tp ~= b.tp then
      return a.tp > b.tp
    end
    return a.rank < b.rank
  end)
  return wanted
end

--- Devices of every replica of every stage: a list of replicas, each a list of stages {devices,
-- tp}. Large degrees come first, so that tensor-parallel groups stay inside nodes; nil where the
-- groups do not fit into nodes. `found` has dp and stages = lists of {pool, tp, n} as
-- stage_dp.search gives them.
function pools.place(list, found)
  local replicas = {}
  for r = 1, found.dp do
    replicas[r] = {}
  end
  local cursors = {} -- by pool: its node, and how many devices of it are taken
  for _, want in ipairs(by_degree(found.stages)) do
    local nodes = list[want.pool].nodes
    cursors[want.pool] = cursors[want.pool] or { node = 1, taken = 0 }
    local cursor = cursors[want.pool]
    for r = want.first + 1, want.first + want.n do
      while nodes[cursor.node] and #nodes[cursor.node] - cursor.taken < want.tp do
        cursor.node = cursor.node + 1
        cursor.taken = 0
      end
      local node = nodes[cursor.node]
      if not node then
        return nil
      end
      replicas[r][want.stage] = { tp = want.tp,
        devices = numbers.slice(node, cursor.taken + 1, want.tp) }
      cursor.taken = cursor.taken + want.tp
    end
  end
  return replicas
end

return pools
