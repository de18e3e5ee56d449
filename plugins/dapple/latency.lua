-- DAPPLE's objective (Fan et al., PPoPP 2021, section 4): an approximation of the time of a
-- synchronous 1F1B pipeline by the phases of its pivot stage. Boundaries between stages count as
-- stages of their own, with the transfer as their passes and no gradients.
local latency = {}

--- The pivot: the stage whose steady phase is longest, less the passes between it and the pivot so
-- far; from the last stage down.
local function pivot_of(stages, m)
  local Q, between_s = #stages, 0
  for s = #stages - 1, 1, -1 do
    local own_s = stages[s].f + stages[s].b
    if (m - 1) * own_s > (m - 1) * (stages[Q].f + stages[Q].b) + between_s then
      Q, between_s = s, 0
    else
      between_s = between_s + own_s
    end
  end
  return Q
end

--- Seconds of stages { f, b, ar = all-reduce of its gradients } with m micro-batches: the whole,
-- warm-up, steady phase, ending, pivot.
function latency.of(stages, m)
  local Q = pivot_of(stages, m)
  local warm_s, end_s = 0, -math.huge
  for s = 1, Q do
    warm_s = warm_s + stages[s].f
  end
  local passes_s = 0
  for s = Q, 1, -1 do
    passes_s = passes_s + stages[s].b
    end_s = math.max(end_s, stages[s].ar + passes_s)
  end
  passes_s = 0
  for s = Q + 1, #stages do
    passes_s = passes_s + stages[s].b
    end_s = math.max(end_s, stages[s].ar - passes_s)
  end
  local steady_s = (m - 1) * (stages[Q].f + stages[Q].b)
  return warm_s + steady_s + end_s, warm_s, steady_s, end_s, Q
end

return latency
