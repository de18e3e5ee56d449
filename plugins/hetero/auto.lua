-- hetviz's own planner: solver/planner searches over groups of devices, stages, degrees, layers,
-- batch, recompute and schedule with the judge as the only measure. What other strategies find is
-- compared after it, so the answer is never worse than theirs.

--- Ids in a list of words.
local function words(text)
  local list = {}
  for id in text:gmatch "[%w_-]+" do
    list[#list + 1] = id
  end
  return list
end

--- Why the plan of another strategy is no answer, or nil when it is one.
local function fault(other)
  local told, reason = other:eval()
  if not told then
    return reason
  end
  if #told.violations > 0 then
    return told.violations[1].text
  end
  return not told.exact and "the plan uses stale weights" or nil
end

--- Its own search, then the plans of the others as candidates: the host keeps the best.
local function plan(ctx)
  local best, reason = hv.plan.auto()
  local first
  for _, id in ipairs(words(ctx.options.others)) do
    if hv.stopping() then
      break
    end
    local ran, other, why = pcall(hv.strategy, id)
    if ran and other then
      hv.incumbent(other)
      if not best then
        why = fault(other)
        best = not why and other or nil
      end
    end
    first = first or ran and why and id .. ": " .. why
  end
  return best, first and reason and reason .. "; " .. first or reason
end

local function selftest(t)
  t.equal("words of a list", table.concat(words "uniform, whale,dt-fm", " "),
    "uniform whale dt-fm", "arithmetic")
  t.equal("no words", #words "", 0, "arithmetic")
end

return {
  api = 1, id = "auto", title = "hetviz's own planner", kind = "planner",
  system = "hetviz", reference = "solver/planner/planner.h",
  summary = "Joint search over groups of devices, stages, degrees, layers, batch and schedule; anytime.",
  needs = { model = "layers" },
  options = {
    { key = "others", type = "string", default = "uniform,whale,oobleck",
      help = "strategies whose plans are candidates too, after its own" },
  },
  plan = plan,
  selftest = selftest,
}
