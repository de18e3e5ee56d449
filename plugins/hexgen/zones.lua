-- The instances of the search for a run: one for each zone of the cluster, its nodes as machines,
-- with the price of a layer on each (serving.lua).
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local serving = require "serving"

local zones = {}

local DEGREES = { 1, 2, 3, 4, 6, 8 } -- tensor degrees, where they divide the layers

--- A function(machine, tp): {seconds = of one layer for a batch, most = layers that fit, bytes =
-- that leave a layer}. Remembered by kind and degree.
local function layer_prices(ctx, batch)
  local known = {}
  return function(machine, tp)
    local key = machine.class .. "/" .. tp
    if not known[key] then
      local rate, most, bytes = serving.pace(ctx, machine.kind, machine.memory_bytes, tp, batch)
      known[key] = { seconds = batch * ctx.job.sequence / rate, most = most, bytes = bytes }
    end
    return known[key]
  end
end

--- Seconds in which the requests of a pass go from one stage to the next, between two devices:
-- their prompts in one message of `bytes`, then every generated token in a message of its own.
function zones.hop_s(ctx, from, to, bytes)
  local job = ctx.job
  local token_bytes = bytes / (job.sequence - job.output_tokens)
  return links.seconds(ctx, from, to, bytes)
    + job.output_tokens * links.seconds(ctx, from, to, token_bytes)
end

--- An instance without machines.
local function empty_instance(ctx, price)
  local q = { layers = ctx.model.n_layers, machines = {}, degrees = {}, least_bytes = math.huge }
  local layers = ctx.model:layers()
  for _, tp in ipairs(DEGREES) do
    if grids.tp_fits(layers, tp) then
      q.degrees[#q.degrees + 1] = tp
    end
  end
  function q.layer_s(m, tp)
    return price(q.machines[m], tp).seconds
  end
  function q.most_layers(m, tp)
    return price(q.machines[m], tp).most
  end
  function q.hop_s(a, b)
    local from, to = q.machines[a].ids, q.machines[b].ids
    return zones.hop_s(ctx, from[1], a == b and to[2] or to[1], price(q.machines[a], 1).bytes)
  end
  return q
end

--- The instances of the zones of `devices`, in order of first mention, for passes of `batch`
-- sequences. Machines have kind and ids = device numbers besides the keys of group_pipeline.lua.
function zones.instances(ctx, devices, batch)
  local zone_of = {}
  for _, device in ipairs(devices) do
    zone_of[device.id] = device.zone or ""
  end
  local price = layer_prices(ctx, batch)
  local list, by_zone = {}, {}
  for _, node in ipairs(inventory.nodes(devices)) do
    local zone = zone_of[node.ids[1]]
    local q = by_zone[zone]
    if not q then
      q = empty_instance(ctx, price)
      by_zone[zone] = q
      list[#list + 1] = q
    end
    local machine = { size = #node.ids, memory_bytes = node.memory_bytes, class = node.kind,
      kind = node.kind, ids = node.ids }
    table.insert(q.machines, machine)
    local one_copy_bytes = q.layers * node.memory_bytes / (price(machine, 1).most + 1)
    q.least_bytes = math.min(q.least_bytes, one_copy_bytes)
  end
  return list
end

return zones
