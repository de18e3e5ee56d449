-- Seconds of a slice of a micro-batch in a stage, forward and backward with its transfers. As in
-- the paper (section 3.3) they grow linearly with the tokens before the slice: each length is
-- priced without any and with all others before it.
local links = require "links"

local slice_times = {}

local known = {}

--- Seconds and output bytes of `tokens` tokens behind `context` others in a middle layer.
local function layer(kind, point, size, tokens, context)
  local layers = hv.cost.layers { kinds = { kind }, tp = point.tp, micro_batch = size,
    tokens = tokens, context = context, recompute = point.recompute,
    sequence_parallel = point.tp > 1 }
  local l = (point.n_layers + 1) // 2
  return layers:time(l, l, kind, "both"), layers:bytes(l, l, "output")
end

--- Seconds of a layer, of each length: { at 0 tokens before it, per token before it, bytes }.
local function table_of(kind, point, size, units, per_unit)
  local key = ("%s/%d/%s/%d/%d/%d"):format(kind, point.tp, point.recompute, size, units, per_unit)
  if not known[key] then
    local list = {}
    for n = 1, units do
      local tokens, context = n * per_unit, (units - n) * per_unit
      local alone_s, bytes = layer(kind, point, size, tokens, 0)
      local behind_s = context > 0 and layer(kind, point, size, tokens, context) or alone_s
      list[n] = { seconds = alone_s, bytes = bytes,
        per_token_s = context > 0 and (behind_s - alone_s) / context or 0 }
    end
    known[key] = list
  end
  return known[key]
end

--- seconds(size, first, last) for slices.best: of a stage of `layers` layers of a point { tp,
-- recompute, n_layers }; hop(bytes) = seconds of a transfer to the next stage.
function slice_times.of(kind, point, layers, units, per_unit, hop)
  return function(size, first, last)
    local one = table_of(kind, point, size, units, per_unit)[last - first + 1]
    return layers * (one.seconds + one.per_token_s * (first - 1) * per_unit) + 2 * hop(one.bytes)
  end
end

--- hop(bytes) between two devices.
function slice_times.hop(ctx, from, to)
  local link = links.link(ctx, from, to)
  return function(bytes)
    return link.latency_s + bytes / link.bandwidth_bytes_per_s
  end
end

return slice_times
