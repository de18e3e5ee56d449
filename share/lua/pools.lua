-- Pools of equal devices, one per kind and zone: what planners count in that treat devices of a pool alike, and
-- the devices that replicas get in the end.
local layout = require "layout"
local wires = require "wires"

local pools = {}

--- Devices by kind and zone. The price is that of the file, or follows the FLOP/s where it has none.
-- @function pools.of
-- @tparam table devices list of rows of cluster:devices()
-- @treturn table list of {kind, region = zone without the letter of its part, nodes = lists of {id, kind}, n = devices,
-- size = common divisor of its nodes' devices, usd_per_s}
-- @units USD per second and device
-- @raise none
-- @usage print(#require("pools").of(ctx.cluster:devices()))
function pools.of(devices)
  local list, by_key = {}, {}
  for _, d in ipairs(devices) do
    local key = d.kind .. "@" .. (d.zone or "")
    local p = by_key[key]
    if not p then
      p = { kind = d.kind, region = (d.zone or ""):match "^(.*%d)%-?%l$" or d.zone or "", nodes = {}, n = 0,
        size = 0, usd_per_s = (d.usd_per_h or d.flops_per_s / 1e14) / 3600 }
      by_key[key], list[#list + 1] = p, p
    end
    if not p.last or p.last ~= d.node then p.nodes[#p.nodes + 1], p.last = {}, d.node end
    table.insert(p.nodes[#p.nodes], { id = d.id, kind = d.kind })
    p.n = p.n + 1
  end
  for _, p in ipairs(list) do
    for _, node in ipairs(p.nodes) do p.size = layout.gcd(p.size, #node) end
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
  local to = a ~= b and b.nodes[1][1].id or a.nodes[2] and a.nodes[2][1].id or a.nodes[1][#a.nodes[1]].id
  return from == to and { bandwidth_bytes_per_s = math.huge, latency_s = 0 } or wires.link(ctx, from, to)
end

--- Devices of every replica of every stage, large degrees first, so that tensor groups stay inside nodes.
-- @function pools.place
-- @tparam table list of rows of pools.of
-- @tparam table found {dp, stages = lists of {pool, tp, n}} as residual.search gives it
-- @treturn table list of replicas, each a list of stages {devices, tp}; nil when groups do not pack into nodes
-- @units none
-- @raise none
-- @usage local pools = require "pools"
-- local list = pools.of(ctx.cluster:devices())
-- assert(#pools.place(list, { dp = 1, stages = { { { pool = 1, tp = 1, n = 1 } } } }) == 1)
function pools.place(list, found)
  local wanted, at, rows = {}, {}, {}
  for r = 1, found.dp do rows[r] = {} end
  for s, stage in ipairs(found.stages) do
    local from = 0
    for _, r in ipairs(stage) do
      wanted[#wanted + 1] = { s = s, pool = r.pool, tp = r.tp, from = from, n = r.n, rank = #wanted }
      from = from + r.n
    end
  end
  table.sort(wanted, function(a, b) return a.tp > b.tp or a.tp == b.tp and a.rank < b.rank end)
  for _, w in ipairs(wanted) do
    at[w.pool] = at[w.pool] or { 1, 0 }
    local nodes, place = list[w.pool].nodes, at[w.pool]
    for r = w.from + 1, w.from + w.n do
      while nodes[place[1]] and #nodes[place[1]] - place[2] < w.tp do place[1], place[2] = place[1] + 1, 0 end
      if not nodes[place[1]] then return nil end
      rows[r][w.s] = { devices = layout.slice(nodes[place[1]], place[2] + 1, w.tp), tp = w.tp }
      place[2] = place[2] + w.tp
    end
  end
  return rows
end

return pools
