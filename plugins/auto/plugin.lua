-- hetviz's own planner: solver/planner searches jointly over groups of devices, stages, degrees,
-- layers, batch, recomputation and schedule, by the simulated value of complete plans. Then other
-- strategies run, in the order of their effort, and their plans are candidates too. Last, the same
-- search starts from those that are close to the best plan. The answer is never worse than the plan
-- of a strategy that ran.
local others = require "others"
local robust = require "robust"

local OWN_SHARE = 0.6 -- share of the time limit for the own search where other strategies run too
local NEAR = 1.3 -- largest ratio to the best value at which a plan is improved

--- Value of a plan; nil and a reason where the plan breaks a rule.
local function value_of(plan, job)
  local verdict, reason = plan:eval()
  if not verdict then
    return nil, reason
  end
  if #verdict.violations > 0 then
    return nil, verdict.violations[1].text
  end
  if not verdict.exact and not job.allow_stale then
    return nil, "the plan uses stale weights or drops tokens"
  end
  return verdict.value
end

--- Plans of the strategies `ids` that break no rule, a list of { plan, value }, and the reason of
-- the first strategy that has none.
local function plans_of(ids, job)
  local plans = {}
  local first_reason
  for _, id in ipairs(ids) do
    if hv.stopping() then
      break
    end
    local ran, other, why = pcall(hv.strategy, id)
    local value
    if ran and other then
      value, why = value_of(other, job)
    end
    if value then
      plans[#plans + 1] = { plan = other, value = value }
    end
    if not first_reason and ran and why then
      first_reason = id .. ": " .. why
    end
  end
  return plans, first_reason
end

--- The best of `best` and of what the search finds from the plans close to it; `plans` are in the
-- order of their values.
local function improved(best, best_value, plans, job)
  for _, other in ipairs(plans) do
    if other.value >= NEAR * best_value or hv.stopping() then
      break
    end
    local found = hv.plan.auto { start = other.plan }
    local value = found and value_of(found, job)
    if value and value < best_value then
      best = found
      best_value = value
    end
  end
  return best
end

--- Of the best plan, those of others and what searches under stress find, the plan that loses least
-- among those near the best; its claim says what that costs.
local function robust_one(best, plans, job)
  local candidates = { { plan = best, value = value_of(best, job) } }
  for _, other in ipairs(plans) do
    candidates[#candidates + 1] = other
  end
  for _, from in ipairs { { stress = true, start = best }, { stress = true } } do
    local found = not hv.stopping() and hv.plan.auto(from) or nil
    local value = found and value_of(found, job)
    if value then
      candidates[#candidates + 1] = { plan = found, value = value }
    end
  end
  table.sort(candidates, function(a, b) return a.value < b.value end)
  local chosen = robust.choose(candidates)
  local answer = chosen.plan:table()
  answer.claimed = { warnings = { robust.price(candidates[1], chosen) } }
  hv.prefer(robust.NEAR)
  return hv.plan.new(answer)
end

--- The best plan; nil and the reasons of the own search and of the first other strategy without a
-- plan.
local function plan(ctx)
  local ids = others.chosen(hv.strategies(), ctx.options.others, #ctx.cluster:devices(),
    ctx.job.allow_stale)
  local best, reason = hv.plan.auto { share = #ids > 0 and OWN_SHARE or 1 }
  local best_value = best and value_of(best, ctx.job)
  local plans, first_reason = plans_of(ids, ctx.job)
  table.sort(plans, function(a, b) return a.value < b.value end)
  if plans[1] and (not best_value or plans[1].value < best_value) then
    best = plans[1].plan
    best_value = plans[1].value
  end
  if first_reason and reason then
    reason = reason .. "; " .. first_reason
  end
  best = improved(best, best_value, plans, ctx.job)
  if best and ctx.options.robust then
    best = robust_one(best, plans, ctx.job)
  end
  return best, reason
end

return {
  api = 1, id = "auto", title = "hetviz's own planner", kind = "planner",
  system = "hetviz", reference = "solver/planner/planner.h",
  summary = "Joint search over groups of devices, stages, degrees, layers, batch and schedule; "
    .. "anytime.",
  needs = { model = "layers" },
  options = {
    { key = "others", type = "string", default = "some",
      help = "other strategies to run after the own search: ids, some (the quick ones) or all" },
    { key = "robust", type = "boolean", default = false,
      help = "of plans within 6 % of the best, take the one that loses least where exchange is "
        .. "twice as slow, memory 10 % larger or a node 5 % slower" },
  },
  plan = plan,
}
