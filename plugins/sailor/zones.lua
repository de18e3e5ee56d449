-- Zones and regions of a cluster, and the price of the bytes that a plan sends between them.
local prices = require "prices"

local zones = {}

--- The region of a zone: its name without the letter at the end ("us-central1-a" is in
-- "us-central1").
function zones.region(zone)
  return zone:match "^(.*%d)%-?%l$" or zone
end

--- USD per byte from zone a to zone b: 0 inside a zone, zone_usd_per_GB inside a region,
-- egress_usd_per_GB otherwise.
function zones.usd_per_byte(a, b, egress_usd_per_GB, zone_usd_per_GB)
  local usd_per_GB
  if a == b then
    usd_per_GB = 0
  elseif zones.region(a) == zones.region(b) then
    usd_per_GB = zone_usd_per_GB
  else
    usd_per_GB = egress_usd_per_GB
  end
  return usd_per_GB / 1e9
end

--- Zone of the first device of every copy of a stage.
local function zones_of_copies(ctx, zone_of, replica, stage)
  local ids = ctx.cluster:ids(stage.devices)
  local count = replica.count or 1
  local list = {}
  for c = 1, count do
    list[c] = zone_of[ids[(c - 1) * (#ids // count) + 1]]
  end
  return list
end

--- USD per iteration for bytes between zones: activations and their gradients between stages, and
-- the all-reduce of every stage, whose ring passes each change of zone once. `made` is a plan with
-- the keys of a plan file whose replicas have the same number of stages; prices as in usd_per_byte.
function zones.egress_usd(ctx, made, egress_usd_per_GB, zone_usd_per_GB)
  if egress_usd_per_GB == 0 and zone_usd_per_GB == 0 or #made.replicas == 0 then
    return 0
  end
  local devices = ctx.cluster:devices()
  local zone_of = {}
  for _, device in ipairs(devices) do
    zone_of[device.id] = device.zone or ""
  end
  local outputs_bytes = hv.cost.layers { kinds = { devices[1].kind },
    micro_batch = 1 }:sizes "output"
  local usd = 0
  local rings = {} -- by stage: the zones of all its copies
  for _, replica in ipairs(made.replicas) do
    local before
    for s, stage in ipairs(replica.stages) do
      local own = zones_of_copies(ctx, zone_of, replica, stage)
      local bytes = made.micro_batch * (outputs_bytes[stage.layers[1]] or 0)
      for c, zone in ipairs(before and own or {}) do
        usd = usd + replica.micro_batches * 2 * bytes
          * zones.usd_per_byte(before[c], zone, egress_usd_per_GB, zone_usd_per_GB)
      end
      rings[s] = rings[s] or {}
      table.move(own, 1, #own, #rings[s] + 1, rings[s])
      before = own
    end
  end
  local kinds = prices.kinds(ctx)
  for s, ring in ipairs(rings) do
    local ring_usd_per_byte = 0
    for i, zone in ipairs(ring) do
      ring_usd_per_byte = ring_usd_per_byte + zones.usd_per_byte(zone, ring[i % #ring + 1],
        egress_usd_per_GB, zone_usd_per_GB)
    end
    local stage = made.replicas[1].stages[s]
    local own = prices.chain(ctx, kinds[ctx.cluster:ids(stage.devices)[1]],
      { tp = 1, micro_batch = 1 })
    usd = usd + ring_usd_per_byte * 2 * (#ring - 1) / #ring
      * prices.gradient_bytes(ctx, own, stage.layers[1] + 1, stage.layers[2])
  end
  return usd
end

return zones
