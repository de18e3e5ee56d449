-- The workers of a plan: every pipeline is one.
local claims = require "claims"
local prices = require "prices"

local plan_workers = {}

--- Workers as { seconds = of a step, sequences = of a step, replica = number of the plan's entry,
-- heads = first device of each stage }; `made` is a plan with the keys of a plan file.
function plan_workers.of(ctx, made)
  local workers = {}
  for r, replica in ipairs(made.replicas) do
    local stage_s = prices.stage_times(ctx, made, r)
    local step_s = claims.pipeline_s(stage_s, replica.micro_batches)
    local sequences = replica.micro_batches * (replica.micro_batch or made.micro_batch)
    local ids = {}
    for s, stage in ipairs(replica.stages) do
      ids[s] = ctx.cluster:ids(stage.devices)
    end
    local count = replica.count or 1
    for k = 0, count - 1 do
      local heads = {}
      for s, list in ipairs(ids) do
        heads[s] = list[k * (#list // count) + 1]
      end
      workers[#workers + 1] = { seconds = step_s, sequences = sequences, replica = r,
        heads = heads }
    end
  end
  return workers
end

return plan_workers
