-- hetviz's own planner: solver/planner searches over groups of devices, stages, degrees, layers,
-- batch, recompute and schedule with the judge as the only measure. Plans of other strategies come
-- after it, quick ones first; when all were asked, those that are near are improved by the same
-- search, so the answer is never worse than theirs.

local others = require "others"

local SHARE = 0.6 -- of the time limit, for the own search, where others are asked too
local NEAR = 1.3 -- how many times the best so far a plan may take to be worth improving
--- What a judged plan is worth, or nil and why the plan is no answer.
local function judged(plan, job)
  local told, reason = plan:eval()
  if not told then
    return nil, reason
  end
  if #told.violations > 0 then
    return nil, told.violations[1].text
  end
  if not told.exact and not job.allow_stale then
    return nil, "the plan uses stale weights"
  end
  return told.value
end

--- The plans of others that are answers, { plan, worth }, and why the first was none.
local function asked(ids, job)
  local plans, first = {}, nil
  for _, id in ipairs(ids) do
    if hv.stopping() then
      break
    end
    local ran, other, why = pcall(hv.strategy, id)
    local worth
    if ran and other then
      worth, why = judged(other, job)
    end
    if worth then
      plans[#plans + 1] = { plan = other, worth = worth }
    end
    first = first or ran and why and id .. ": " .. why
  end
  return plans, first
end

--- Its own search, then the plans of the others as candidates.
local function plan(ctx)
  local ids = others.chosen(hv.strategies(), ctx.options.others, #ctx.cluster:devices(),
    ctx.job.allow_stale)
  local best, reason = hv.plan.auto { share = #ids > 0 and SHARE or 1 }
  local value = best and judged(best, ctx.job)
  local plans, first = asked(ids, ctx.job)
  table.sort(plans, function(a, b) return a.worth < b.worth end)
  if plans[1] and (not value or plans[1].worth < value) then
    best, value = plans[1].plan, plans[1].worth
  end
  for _, other in ipairs(plans) do
    if other.worth >= NEAR * value or hv.stopping() then
      break
    end
    local more = hv.plan.auto { start = other.plan }
    local worth = more and judged(more, ctx.job)
    if worth and worth < value then
      best, value = more, worth
    end
  end
  return best, first and reason and reason .. "; " .. first or reason
end

return {
  api = 1, id = "auto", title = "hetviz's own planner", kind = "planner",
  system = "hetviz", reference = "solver/planner/planner.h",
  summary = "Joint search over groups of devices, stages, degrees, layers, batch and schedule; anytime.",
  needs = { model = "layers" },
  options = {
    { key = "others", type = "string", default = "some",
      help = "strategies whose plans are candidates too, after its own; some: quick ones; all" },
  },
  plan = plan,
}
