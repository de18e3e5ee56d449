-- The workers of a plan: every pipeline is one.
local claims = require "claims"
local prices = require "prices"

local plan_workers = {}

--- Workers as { seconds = of a step, sequences = of a step, id = first device }; `made` is a plan
-- with the keys of a plan file.
function plan_workers.of(ctx, made)
  local workers = {}
  for r, replica in ipairs(made.replicas) do
    local stage_s = prices.stage_times(ctx, made, r)
    local step_s = claims.pipeline_s(stage_s, replica.micro_batches)
    local sequences = replica.micro_batches * (replica.micro_batch or made.micro_batch)
    local ids = ctx.cluster:ids(replica.stages[1].devices)
    local count = replica.count or 1
    for k = 0, count - 1 do
      workers[#workers + 1] = { seconds = step_s, sequences = sequences,
        id = ids[k * (#ids // count) + 1] }
    end
  end
  return workers
end

return plan_workers
