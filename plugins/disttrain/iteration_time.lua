-- The iteration time of disaggregated modules (DistTrain, Zhang et al., arXiv 2408.04275, section
-- 4).
local iteration_time = {}

--- T_iter of stages with these seconds for a micro-batch, of which there are `steps`: the first
-- micro-batch through all of them, then the steady part of the slowest one.
function iteration_time.of_stages(stage_s, steps)
  local sum_s, slowest_s = 0, 0
  for _, seconds in ipairs(stage_s) do
    sum_s = sum_s + seconds
    slowest_s = math.max(slowest_s, seconds)
  end
  return sum_s + slowest_s * (steps - 1)
end

--- T_iter of a choice q = {C = {me, lm, mg} seconds per sample of a module on one tensor group, tp
-- = {me, mg} tensor degrees, gpus = {me, mg}, depth = stages of the backbone, dp = its replicas, m
-- = samples per micro-batch and replica, batch = samples}: warm-up with one micro-batch, then the
-- steady part of the slowest module. A model may lack an encoder or a generator. Gives the
-- iteration and its steady part, in seconds.
function iteration_time.of(q)
  local lm_s = q.C.lm * q.m
  local function side_s(key) -- its samples are spread over all of its GPUs
    if not q.C[key] or q.C[key] <= 0 then
      return 0
    end
    return q.dp * q.tp[key] * q.m * q.C[key] / q.gpus[key]
  end
  local me_s = side_s "me"
  local mg_s = side_s "mg"
  local steady_s = math.max(lm_s / q.depth, me_s, mg_s) * (q.batch / (q.dp * q.m) - 1)
  return me_s + lm_s + mg_s + steady_s, steady_s
end

return iteration_time
