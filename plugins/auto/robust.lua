-- The choice among plans that are as good as each other: the one that loses least where a run turns
-- out worse than the cluster file says (plan:stress).
local robust = {}

robust.NEAR = 0.06 -- plans no farther apart are as good as each other

--- What the job minimises in the worst case of a plan: its value and what it loses at worst;
-- math.huge where it does not fit any more.
local function at_worst(candidate)
  local stress = candidate.plan:stress()
  candidate.stress = stress
  return stress and candidate.value * (1 + stress.worst_frac) or math.huge
end

--- Of candidates { plan, value }, the first of which is the best, the one with the least value in
-- its worst case among those that are near the best; equal ones keep the first.
function robust.choose(candidates)
  local best = candidates[1]
  local chosen = best
  local least
  for _, c in ipairs(candidates) do
    if c.value <= best.value * (1 + robust.NEAR) then
      local worst = at_worst(c)
      if not least or worst < least then
        chosen = c
        least = worst
      end
    end
  end
  return chosen
end

--- "loses 4.9 % at worst (a node 5% slower)".
local function loss(stress)
  if stress.worst_frac == math.huge then
    return ("does not fit at worst (%s)"):format(stress.worst)
  end
  return ("loses %.1f %% at worst (%s)"):format(100 * stress.worst_frac, stress.worst)
end

--- What the choice costs and gains, as a sentence.
function robust.price(best, chosen)
  if not chosen.stress then
    return "robust: the plans cannot be judged under stress"
  end
  if chosen == best then
    return ("robust: the best plan is the one that loses least; it %s"):format(loss(best.stress))
  end
  return ("robust: %.4g instead of %.4g (+%.1f %%), and %s; the best plan %s"):format(chosen.value,
    best.value, 100 * (chosen.value / best.value - 1), loss(chosen.stress), loss(best.stress))
end

return robust
