-- The time of one sample on a module.
local prices = require "prices"

local sample_time = {}

--- Seconds of the layers range = {first, last} per sample on one tensor group, of the slowest of
-- `kinds`.
function sample_time.seconds(ctx, range, kinds, tp, recompute)
  local key = { tp = tp, micro_batch = 1, recompute = recompute, sequence_parallel = tp > 1 }
  local slowest_s = 0
  for _, kind in ipairs(kinds) do
    local chain = prices.chain(ctx, kind, key)
    slowest_s = math.max(slowest_s, prices.time(chain, range[1], range[2]))
  end
  return slowest_s
end

return sample_time
