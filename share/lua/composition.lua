--- A strategy on somebody else's plan, in `apply`: copies, knobs that two strategies fix, and the
-- fastest of several changes.
local candidates = require "candidates"
local prices = require "prices"

local composition = {}

--- A copy of a table and of what is in it.
-- @function composition.copy
-- @tparam any value what is copied: a table with all its keys, and the tables in it
-- @treturn any its copy; other values as they are
-- @units those of the value
-- @raise none
-- @usage local list = { { 1 } }
-- assert(require("composition").copy(list)[1] ~= list[1])
function composition.copy(value)
  if type(value) ~= "table" then
    return value
  end
  local copy = {}
  for key, member in pairs(value) do
    copy[key] = composition.copy(member)
  end
  return copy
end

--- Knobs as paths of plans have them: a ZeRO stage by its number is `zero.stage`.
local function paths_of(sets)
  local paths = {}
  for path, value in pairs(sets or {}) do
    paths[path == "zero" and "zero.stage" or path] = value
  end
  return paths
end

--- Has a strategy before the one that runs fixed a knob to something else? What those only searched
-- may be changed. ctx.before = the systems whose plan is changed, in order.
-- @function composition.taken
-- @tparam handle ctx the run's input
-- @tparam string path of the knob in a plan, as `sets` of rows have it
-- @tparam any value what the system that runs sets
-- @treturn string what clashes, with both strategies, the knob and its values; nil: nothing
-- @units none
-- @raise none
-- @usage local ctx = { system = { id = "b" },
--   before = { { id = "a", sets = { ["zero.stage"] = 3 } } } }
-- local why = require("composition").taken(ctx, "zero.stage", 2)
-- assert(why:find "a and b both decide zero.stage")
function composition.taken(ctx, path, value)
  for _, other in ipairs(ctx.before or {}) do
    local fixed = paths_of(other.sets)[path]
    if fixed ~= nil and fixed ~= value then
      return ("%s and %s both decide %s (%s and %s); leave one of them out"):format(other.id,
        ctx.system.id, path, tostring(fixed), tostring(value))
    end
  end
end

--- Is a knob fixed to this value by a strategy before the one that runs?
-- @function composition.is_fixed
-- @tparam handle ctx the run's input
-- @tparam string path of the knob in a plan, as `sets` of rows have it
-- @tparam any value what the plan has
-- @treturn boolean whether it is to stay
-- @units none
-- @raise none
-- @usage local ctx = { before = { { id = "a", sets = { ["zero.unit"] = "layer" } } } }
-- assert(require("composition").is_fixed(ctx, "zero.unit", "layer"))
function composition.is_fixed(ctx, path, value)
  for _, other in ipairs(ctx.before or {}) do
    if value ~= nil and paths_of(other.sets)[path] == value then
      return true
    end
  end
  return false
end

--- The same as composition.taken for all knobs that the row of the system that runs says it `sets`.
-- @function composition.clash
-- @tparam handle ctx the run's input
-- @treturn string the first that clashes; nil: none
-- @units none
-- @raise none
-- @usage local ctx = { system = { id = "b", sets = { zero = 2 } }, before = { { id = "a" } } }
-- assert(require("composition").clash(ctx) == nil)
function composition.clash(ctx)
  for path, value in pairs(paths_of(ctx.system.sets)) do
    local why = composition.taken(ctx, path, value)
    if why then
      return why
    end
  end
end

--- The fastest of several changes of a plan.
-- @function composition.fastest
-- @tparam table choices a list of whatever a change is
-- @tparam function change function(choice) that gives the changed plan, with the keys of a plan
-- file, or nil and why not
-- @treturn table the fastest plan that breaks no rule, with the keys of a plan file, then its
-- choice; nil and the reason of the first that breaks one or cannot be made
-- @units those of a plan file
-- @raise outside a run
-- @usage local composition = require "composition"
-- local made = hv.strategy("uniform"):table()
-- assert(composition.fastest({ 1 }, function() return composition.copy(made) end))
function composition.fastest(choices, change)
  local best, least, best_choice, reason = nil, math.huge, nil, nil
  for _, choice in ipairs(choices) do
    local plan, why = change(choice)
    local verdict
    if plan then
      verdict, why = candidates.judge(plan)
    end
    if verdict and verdict.value < least then
      best, least, best_choice = plan, verdict.value, choice
    end
    reason = reason or not verdict and why or nil
    if best and hv.stopping() then
      break
    end
  end
  if best then
    return best, best_choice
  end
  return nil, reason
end

--- A copy of a plan without what its own strategy claimed, and without a simulation of it.
-- @function composition.start
-- @tparam any made a plan: a table with the keys of a plan file, or a handle
-- @treturn table the plan with the keys of a plan file
-- @units those of a plan file
-- @raise none
-- @usage assert(require("composition").start({ claimed = {} }).claimed == nil)
function composition.start(made)
  local plan = composition.copy(prices.table_of(made))
  plan.claimed, plan.simulated = nil, nil
  return plan
end

return composition
