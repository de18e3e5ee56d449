-- Rates of the nodes that a stage runs on, from the plugin's options and the cluster's links.
local links = require "links"

local node_rates = {}

local MEMORY_PASSES = 3 -- host memory moves a GPU's byte so often: copy in, add, copy out
local CHUNK_S = 1e-5 -- latency of a chunk on one hop of the tree

--- One device of each node, in the order of `ids`, and the largest number of devices of a node.
local function first_of_nodes(ids, node_of)
  local heads, count, largest = {}, {}, 0
  for _, id in ipairs(ids) do
    local node = node_of[id]
    if not count[node] then
      heads[#heads + 1] = id
      count[node] = 0
    end
    count[node] = count[node] + 1
    largest = math.max(largest, count[node])
  end
  return heads, largest
end

--- Bytes per second of the slowest link between neighbours of `heads`: inside zones (infinite where
-- there is none), and between zones (nil where there is none).
local function slowest_links(ctx, heads, zone_of)
  local inside, between = math.huge, nil
  for i = 2, #heads do
    local rate = links.bandwidth(ctx, heads[i - 1], heads[i])
    if zone_of[heads[i - 1]] == zone_of[heads[i]] then
      inside = math.min(inside, rate)
    else
      between = math.min(between or rate, rate)
    end
  end
  return inside, between
end

--- The rates for reduction.lua of the nodes of the devices `ids`, and how many nodes there are.
function node_rates.of(ctx, ids)
  local node_of, zone_of = {}, {}
  for _, device in ipairs(ctx.cluster:devices()) do
    node_of[device.id] = device.node
    zone_of[device.id] = device.zone or ""
  end
  local heads, gpus = first_of_nodes(ids, node_of)
  local nic_bytes_per_s, zone_bytes_per_s = slowest_links(ctx, heads, zone_of)
  local options = ctx.options
  local root_bytes_per_s
  if options.root_GBps > 0 then
    root_bytes_per_s = options.root_GBps * 1e9
  end
  local rates = {
    gpus = gpus,
    d2h_bytes_per_s = options.d2h_GBps * 1e9,
    h2d_bytes_per_s = options.d2h_GBps * 1e9,
    memory_bytes_per_s = options.host_GBps * 1e9,
    memory_passes = MEMORY_PASSES,
    nic_bytes_per_s = nic_bytes_per_s,
    root_bytes_per_s = root_bytes_per_s,
    root_gpus = options.root_shared,
    zone_bytes_per_s = zone_bytes_per_s,
    pairs = options.pairs,
    chunk_s = CHUNK_S,
  }
  return rates, #heads
end

return node_rates
