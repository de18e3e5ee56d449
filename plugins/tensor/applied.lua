-- The layouts of the family on another strategy's plan: tensor-parallel ranks of its stages become
-- lines, grids or cubes, where their number and the micro-batch allow.
local composition = require "composition"
local prices = require "prices"

local applied = {}

--- Why the layout of a stage cannot be another, or nil.
local function misfit(stage, at, scheme, id)
  local tp = stage.tp
  if type(tp) == "table" and (tp.shares or (tp.scheme or "1d") ~= scheme) then
    return ("%s and the plan both decide %s.tp%s; leave one of them out"):format(id, at,
      tp.shares and ".shares" or ".scheme")
  end
end

--- The stages with two or more tensor-parallel ranks, with their address; nil and why not.
local function stages_of(made, ctx, scheme)
  local list = {}
  for r, replica in ipairs(made.replicas) do
    for s, stage in ipairs(replica.stages) do
      if prices.degree(stage) > 1 then
        local at = ("replicas[%d].stages[%d]"):format(r - 1, s - 1)
        local why = misfit(stage, at, scheme, ctx.system.id)
        if why then
          return nil, why
        end
        list[#list + 1] = { stage = stage, micro_batch = replica.micro_batch or made.micro_batch }
      end
    end
  end
  return #list > 0 and list or nil, #list == 0 and "the plan has no tensor-parallel ranks" or nil
end

--- The plan of another strategy with the scheme, or nil and why not; knobs_at(point) = the
-- knobs that ranks and micro-batch of a stage allow, set_stage(point, stage) = the scheme in it.
function applied.apply(made, ctx, scheme, knobs_at, set_stage)
  local clash = composition.clash(ctx)
  if clash then
    return nil, clash
  end
  local start = composition.start(made)
  local stages, why = stages_of(start, ctx, scheme)
  if not stages then
    return nil, why
  end
  local first = stages[1]
  local point = { tp = (prices.degree(first.stage)),
    micro_batch = first.micro_batch // (first.stage.dp or 1) }
  local list = knobs_at(point)
  local plan, reason = composition.fastest(list, function(knob)
    local changed = composition.copy(start)
    for _, one in ipairs(stages_of(changed, ctx, scheme)) do
      set_stage({ tp = (prices.degree(one.stage)), knob = knob }, one.stage)
    end
    return changed
  end)
  if not plan then
    return nil, reason or ("no %s layout of %d ranks splits the heads, the width and the %d "
      .. "sequences of a micro-batch"):format(scheme, point.tp, point.micro_batch)
  end
  return plan
end

return applied
