-- Seconds of the forward and the backward pass of consecutive layers on one device. The tables of a
-- kind of device and a micro-batch are kept for the run.
local pass_times = {}

local tables = {}

--- Forward and backward seconds of layers `from` to `to` (from 1) on a device of `kind`.
function pass_times.of(kind, micro_batch, from, to)
  local key = kind .. "/" .. micro_batch
  tables[key] = tables[key] or hv.cost.layers { kinds = { kind }, micro_batch = micro_batch }
  local forward_s = tables[key]:time(from, to, kind, "forward")
  return forward_s, tables[key]:time(from, to, kind, "both") - forward_s
end

return pass_times
