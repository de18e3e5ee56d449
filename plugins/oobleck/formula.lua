-- The iteration time of one pipeline (Oobleck, section 4.1.2): T = T1 + T2 + T3, where T1 is the
-- sum of the stage times t_s, T2 a multiple of the slowest stage's time t_k, and T3 the sum of t_s
-- from the rightmost slowest stage on.
local claims = require "claims"

local formula = {}

--- Weights { c0, c1, tail } of T = sum t_s + (c0 + c1 * k) * t_k + tail * sum over s >= k of t_s,
-- with k (from 0) the rightmost slowest of S stages. `rule` is "code" (the published program: 2 S +
-- k + 1, and 2 for one stage) or "paper" (N_b - S + k - 1 with N_b = 4 S micro-batches).
function formula.weights(n_stages, rule)
  if rule == "paper" then
    return { 3 * n_stages - 1, 1, 1 }
  elseif n_stages == 1 then
    return { 2, 0, 1 }
  end
  return { 2 * n_stages + 1, 1, 1 }
end

--- T1 + T2 + T3 in seconds of a pipeline with N_b micro-batches: the weight of t_k is N_b - S + k -
-- 1, with k from 0.
function formula.pipeline_s(stage_s, micro_batches)
  return claims.weighted_s(stage_s, { micro_batches - #stage_s - 1, 1, 1 })
end

return formula
