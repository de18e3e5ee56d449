--- Prices per layer as planners use them: seconds and bytes of runs of layers on one device kind,
-- with the embedding in the first layer and the head in the last, and the memory of a stage.
-- Layers count from 1, runs are inclusive; everything is remembered for the run.
local prices = {}

local chains, statics = {}, {}

--- The chain of one device kind under { tp, micro_batch, recompute, sequence_parallel }:
-- { n, times = seconds per layer (forward and backward), output_bytes }.
-- micro_batch counts sequences on one data-parallel rank.
function prices.chain(ctx, kind, q)
  local key = ("%s/%d/%g/%s/%s"):format(kind, q.tp or 1, q.micro_batch or 1, q.recompute or "none",
    tostring(q.sequence_parallel or false))
  local chain = chains[key]
  if not chain then
    local t = hv.cost.layers {
      kinds = { kind }, tp = q.tp, micro_batch = q.micro_batch, recompute = q.recompute,
      sequence_parallel = q.sequence_parallel,
    }
    chain = { n = ctx.model.n_layers, times = {}, sum = { [0] = 0 }, parameters = { [0] = 0 },
      saved = { [0] = 0 }, output_bytes = t:bytes(1, 1, "output") }
    for l = 1, chain.n do
      chain.times[l] = t:time(l, l, kind, "both")
      chain.sum[l] = chain.sum[l - 1] + chain.times[l]
      chain.parameters[l] = chain.parameters[l - 1] + t:bytes(l, l, "parameters")
      chain.saved[l] = chain.saved[l - 1] + t:bytes(l, l, "saved")
    end
    chains[key] = chain
  end
  return chain
end

--- Seconds of layers from..to, forward and backward.
function prices.time(chain, from, to)
  return chain.sum[to] - chain.sum[from - 1]
end

return prices
