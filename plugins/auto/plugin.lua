-- hetviz's own planner: solver/planner searches over groups of devices, stages, degrees, layers,
-- batch, recompute and schedule with the judge as the only measure. Plans of other strategies come
-- after it, quick ones first; when all were asked, those that are near are improved by the same
-- search, so the answer is never worse than theirs.

local SHARE = 0.6 -- of the time limit, for the own search, where others are asked too
local NEAR = 1.3 -- how many times the best so far a plan may take to be worth improving
local MANY = 256 -- devices beyond which only strategies are asked that are quick there
local MOST = 4096 -- devices beyond which others are asked by name only

-- Other strategies, those that take least time first; `quick`: a second at most on a thousand
-- devices; `slow`: only by name or with `all`; `stale`: only where the job allows it.
local OTHERS = {
  { "uniform", quick = true }, { "whale", quick = true }, { "oobleck", quick = true },
  { "fireflyer", quick = true }, { "helix" }, { "amp", quick = true }, { "crius" },
  { "hethub", slow = true }, { "flashflex", slow = true }, { "heterps", slow = true },
  { "disttrain", slow = true }, { "dtfm", slow = true }, { "metis", slow = true },
  { "sailor", slow = true }, { "varuna", slow = true },
  { "hetpipe", quick = true, stale = true }, { "preduce", stale = true },
}

--- Ids in a list of words; `some` and `all` are those of the table that suit the case.
local function chosen(text, n_devices, allow_stale)
  local list = {}
  for id in text:gmatch "[%w_-]+" do
    for _, other in ipairs(id == "some" and OTHERS or id == "all" and OTHERS or {}) do
      local small = n_devices <= (other.quick and MOST or MANY)
      local fits = id == "all" or not other.slow and small
      if fits and (allow_stale or not other.stale) then
        list[#list + 1] = other[1]
      end
    end
    if id ~= "some" and id ~= "all" then
      list[#list + 1] = id
    end
  end
  return list
end

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
local function asked(others, job)
  local plans, first = {}, nil
  for _, id in ipairs(others) do
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
  local others = chosen(ctx.options.others, #ctx.cluster:devices(), ctx.job.allow_stale)
  local best, reason = hv.plan.auto { share = #others > 0 and SHARE or 1 }
  local value = best and judged(best, ctx.job)
  local plans, first = asked(others, ctx.job)
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

local function selftest(t)
  t.equal("ids of a list", table.concat(chosen("uniform, whale,dt-fm", 8), " "),
    "uniform whale dt-fm", "arithmetic")
  t.equal("no ids", #chosen("", 8), 0, "arithmetic")
  t.equal("many devices: quick ones", table.concat(chosen("some", 1000), " "),
    "uniform whale oobleck fireflyer amp", "arithmetic")
  t.equal("very many: none", #chosen("some", 10000), 0, "arithmetic")
  t.equal("stale ones where they may be", #chosen("all", 8, true) - #chosen("all", 8), 2,
    "arithmetic")
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
  selftest = selftest,
}
