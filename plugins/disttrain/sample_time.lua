-- The time of one sample on a module.
local prices = require "prices"

local sample_time = {}

-- Chains by kind, degree and recomputation. prices.chain remembers them too, but builds a text as
-- key in each call, and a search asks for a chain for every stage of every choice.
local known = {}

--- The chain of one sample on a tensor group of a kind. Remembered.
local function chain_of(ctx, kind, tp, recompute)
  local by_tp = known[kind] or {}
  known[kind] = by_tp
  local by_recompute = by_tp[tp] or {}
  by_tp[tp] = by_recompute
  local chain = by_recompute[recompute or "none"]
  if not chain then
    chain = prices.chain(ctx, kind, { tp = tp, micro_batch = 1, recompute = recompute,
      sequence_parallel = tp > 1 })
    by_recompute[recompute or "none"] = chain
  end
  return chain
end

--- Seconds of the layers from..to per sample on one tensor group of a kind.
function sample_time.of_kind(ctx, from, to, kind, tp, recompute)
  return prices.time(chain_of(ctx, kind, tp, recompute), from, to)
end

--- Bytes of the gradients of the layers from..to on a device of such a group.
function sample_time.gradient_bytes(ctx, from, to, kind, tp, recompute)
  return prices.gradient_bytes(ctx, chain_of(ctx, kind, tp, recompute), from, to)
end

--- Bytes that leave a layer for one sample.
function sample_time.output_bytes(ctx, kind)
  return chain_of(ctx, kind, 1).output_bytes
end

--- Seconds of the layers range = {first, last} per sample on one tensor group, of the slowest of
-- `kinds`.
function sample_time.seconds(ctx, range, kinds, tp, recompute)
  local slowest_s = 0
  for _, kind in ipairs(kinds) do
    slowest_s = math.max(slowest_s,
      sample_time.of_kind(ctx, range[1], range[2], kind, tp, recompute))
  end
  return slowest_s
end

return sample_time
