-- Pools of equal devices, one per kind and zone: what planners count in that treat devices of a
-- pool alike, and the devices that replicas get in the end.
local links = require "links"
local numbers = require "numbers"
local prices = require "prices"

local pools = {}

--- The region of a zone: its name without the letter of its part.
local function region_of(zone)
  return zone:match "^(.*%d)%-?%l$" or zone
end

--- What a byte costs from one zone to another.
-- @function pools.fare
-- @tparam string a zone
-- @tparam string b zone
-- @tparam number between USD per GB between regions
-- @tparam number inside USD per GB between zones of one region
-- @treturn number the price of a byte; 0 inside a zone
-- @units USD per byte
-- @raise none
-- @usage local pools = require "pools"
-- assert(pools.fare("us-1a", "us-1b", 0.1, 0.01) == 0.01 / 1e9 and pools.fare("us-1a", "eu-1a", 0.1, 0) == 0.1 / 1e9)
function pools.fare(a, b, between, inside)
  return (a == b and 0 or region_of(a) == region_of(b) and inside or between) / 1e9
end

--- Devices by kind and zone. The price is that of the file, or follows the FLOP/s where it has
-- none.
-- @function pools.of
-- @tparam table devices list of rows of cluster:devices()
-- @treturn table list of {kind, zone, region = zone without the letter of its part, nodes = lists
-- of {id, kind}, n = devices, size = common divisor of its nodes' devices, usd_per_s}
-- @units USD per second and device
-- @raise none
-- @usage print(#require("pools").of(ctx.cluster:devices()))
function pools.of(devices)
  local list, by_key = {}, {}
  for _, d in ipairs(devices) do
    local key = d.kind .. "@" .. (d.zone or "")
    local p = by_key[key]
    if not p then
      p = { kind = d.kind, zone = d.zone or "", region = region_of(d.zone or ""), nodes = {}, n = 0,
        size = 0,
        usd_per_s = (d.usd_per_h or d.flops_per_s / 1e14) / 3600 }
      by_key[key], list[#list + 1] = p, p
    end
    if not p.last or p.last ~= d.node then
      p.nodes[#p.nodes + 1], p.last = {}, d.node
    end
    table.insert(p.nodes[#p.nodes], { id = d.id, kind = d.kind })
    p.n = p.n + 1
  end
  for _, p in ipairs(list) do
    for _, node in ipairs(p.nodes) do
      p.size = numbers.gcd(p.size, #node)
    end
  end
  return list
end

--- The link between two pools, or inside one: between nodes where it has several.
-- @function pools.link
-- @tparam handle ctx the run's input
-- @tparam table a {kind, nodes}, a row of pools.of
-- @tparam table b {kind, nodes}, a row of pools.of
-- @treturn table {bandwidth_bytes_per_s, latency_s}
-- @units bytes per second, seconds
-- @raise none
-- @usage local pools = require "pools"
-- local p = pools.of(ctx.cluster:devices())[1]
-- print(pools.link(ctx, p, p).latency_s)
function pools.link(ctx, a, b)
  local from = a.nodes[1][1].id
  local to = a ~= b and b.nodes[1][1].id or a.nodes[2] and a.nodes[2][1].id
    or a.nodes[1][#a.nodes[1]].id
  return from == to and { bandwidth_bytes_per_s = math.huge, latency_s = 0 }
    or links.link(ctx, from, to)
end

--- Devices of every replica of every stage, large degrees first, so that tensor groups stay inside
-- nodes.
-- @function pools.place
-- @tparam table list of rows of pools.of
-- @tparam table found {dp, stages = lists of {pool, tp, n}} as stage_dp.search gives it
-- @treturn table list of replicas, each a list of stages {devices, tp}; nil when groups do not pack
-- into nodes
-- @units none
-- @raise none
-- @usage local pools = require "pools"
-- local list = pools.of(ctx.cluster:devices())
-- assert(#pools.place(list, { dp = 1, stages = { { { pool = 1, tp = 1, n = 1 } } } }) == 1)
function pools.place(list, found)
  local wanted, at, rows = {}, {}, {}
  for r = 1, found.dp do
    rows[r] = {}
  end
  for s, stage in ipairs(found.stages) do
    local from = 0
    for _, r in ipairs(stage) do
      wanted[#wanted + 1] = { s = s, pool = r.pool, tp = r.tp, from = from, n = r.n,
        rank = #wanted }
      from = from + r.n
    end
  end
  table.sort(wanted, function(a, b) return a.tp > b.tp or a.tp == b.tp and a.rank < b.rank end)
  for _, w in ipairs(wanted) do
    at[w.pool] = at[w.pool] or { 1, 0 }
    local nodes, place = list[w.pool].nodes, at[w.pool]
    for r = w.from + 1, w.from + w.n do
      while nodes[place[1]] and #nodes[place[1]] - place[2] < w.tp do
        place[1], place[2] = place[1] + 1, 0
      end
      if not nodes[place[1]] then
        return nil
      end
      rows[r][w.s] = { devices = numbers.slice(nodes[place[1]], place[2] + 1, w.tp), tp = w.tp }
      place[2] = place[2] + w.tp
    end
  end
  return rows
end

--- Zones of the copies of a stage, by their first device.
local function zones_of(ctx, zone, replica, stage)
  local ids, list, count = ctx.cluster:ids(stage.devices), {}, replica.count or 1
  for c = 1, count do
    list[c] = zone[ids[(c - 1) * (#ids // count) + 1]]
  end
  return list
end

--- What an iteration of a plan pays for bytes between zones: activations and gradients of stages,
-- and the all-reduce, whose ring passes every change of zone once.
-- @function pools.egress_usd
-- @tparam handle ctx the run's input
-- @tparam table made plan with the keys of a plan file, its replicas of equally many stages
-- @tparam number between USD per GB between regions
-- @tparam number inside USD per GB between zones of one region
-- @treturn number the money of an iteration
-- @units USD
-- @raise as hv.cost.layers
-- @usage print(require("pools").egress_usd(ctx, { micro_batch = 1, replicas = {} }, 0.1, 0.01))
function pools.egress_usd(ctx, made, between, inside)
  if between == 0 and inside == 0 or #made.replicas == 0 then
    return 0
  end
  local zone, usd, rings, kinds = {}, 0, {}, prices.kinds(ctx)
  for _, d in ipairs(ctx.cluster:devices()) do
    zone[d.id] = d.zone or ""
  end
  local outputs = hv.cost.layers { kinds = { ctx.cluster:devices()[1].kind },
    micro_batch = 1 }:sizes "output"
  for _, replica in ipairs(made.replicas) do
    local before
    for s, stage in ipairs(replica.stages) do
      local now, bytes = zones_of(ctx, zone, replica, stage),
        made.micro_batch * (outputs[stage.layers[1]] or 0)
      for c, z in ipairs(before and now or {}) do
        usd = usd + replica.micro_batches * 2 * bytes * pools.fare(before[c], z, between, inside)
      end
      rings[s] = rings[s] or {}
      table.move(now, 1, #now, #rings[s] + 1, rings[s])
      before = now
    end
  end
  for s, ring in ipairs(rings) do
    local stage, fare = made.replicas[1].stages[s], 0
    for i, z in ipairs(ring) do
      fare = fare + pools.fare(z, ring[i % #ring + 1], between, inside)
    end
    local own = prices.chain(ctx, kinds[ctx.cluster:ids(stage.devices)[1]],
      { tp = 1, micro_batch = 1 })
    usd = usd + fare * 2 * (#ring - 1) / #ring * prices.gradient_bytes(ctx, own, stage.layers[1]
        + 1, stage.layers[2])
  end
  return usd
end

return pools
