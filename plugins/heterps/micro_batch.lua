-- The micro-batch of a plan.
local numbers = require "numbers"

local micro_batch = {}

--- Sequences that enter the pipeline at once: the least divisor of the batch that gives one to
-- every device of the largest stage. `stages` = list of {k = devices, nil: 1}.
function micro_batch.of(ctx, stages)
  local most = 1
  for _, stage in ipairs(stages) do
    most = math.max(most, stage.k or 1)
  end
  return numbers.divisor_from(ctx.job.global_batch, most) or ctx.job.global_batch
end

return micro_batch
