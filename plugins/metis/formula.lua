-- Metis' estimate of an iteration (USENIX ATC 2024, section 4).
local formula = {}

--- (B - 1) · longest stage + sum of the stages + largest exchange of gradients + largest optimizer
-- update + hops + B · time per micro-batch, in the caller's unit of time. `costs` has the functions
-- exchange, update and hop and the number per_micro_batch as stage_search.search takes them; each
-- stage has `times` by layer; ranges are {first, last} layer per stage, from 1, inclusive.
function formula.iteration(costs, stages, ranges, micro_batches)
  local sum = 0
  local longest = 0
  local exchange = 0
  local update = 0
  local hops = 0
  for s, range in ipairs(ranges) do
    local stage = stages[s]
    local stage_time = 0
    for layer = range[1], range[2] do
      stage_time = stage_time + stage.times[layer]
    end
    sum = sum + stage_time
    longest = math.max(longest, stage_time)
    exchange = math.max(exchange, costs.exchange(stage, range[1], range[2]))
    update = math.max(update, costs.update(stage, range[1], range[2]))
    if s < #ranges then
      hops = hops + costs.hop(stage, stages[s + 1], range[2])
    end
  end
  return (micro_batches - 1) * longest + sum + exchange + update + hops
    + micro_batches * costs.per_micro_batch
end

return formula
