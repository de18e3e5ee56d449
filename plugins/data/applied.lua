-- The systems of the family on another strategy's plan: its data-parallel ranks hold and send what
-- the system says. Knobs that the system searches are simulated as in its own search.
local composition = require "composition"
local inventory = require "inventory"
local knobs = require "knobs"
local prices = require "prices"

local applied = {}

--- The ranks of a stage that hold the same layers, as knobs see them.
local function point_of(stage, knob)
  local cp = stage.cp or 1
  return { tp = (prices.degree(stage)), dp = stage.dp or 1,
    cp = type(cp) == "table" and (cp.degree or 1) or cp, knob = knob }
end

--- The first stage with two or more such ranks; and whether replicas reduce between them.
local function shared(made)
  local first, copies = nil, 0
  for _, replica in ipairs(made.replicas) do
    copies = copies + (replica.count or 1)
    for _, stage in ipairs(replica.stages) do
      local point = point_of(stage, {})
      first = first or point.dp * point.cp > 1 and stage or nil
    end
  end
  return first, copies > 1
end

--- The values of the system's knobs that are tried on a plan, before they are refined.
local function choices(own, ctx, stage)
  if not own.groups then
    return own.knobs or { {} }
  end
  local size = inventory.node_size(inventory.nodes((inventory.priced(ctx))))
  return own.groups(size, own.whole_nodes)(point_of(stage, {}))
end

--- Keeps what a strategy before fixed of the states and the system leaves open.
local function keep_fixed(ctx, stage, before)
  local open = type(before) == "table" and type(stage.zero) == "table"
  for key, value in pairs(open and before or {}) do
    if stage.zero[key] == nil and composition.is_fixed(ctx, "zero." .. key, value) then
      stage.zero[key] = value
    end
  end
end

--- Gives a stage the system's states; why not, or nil.
local function set_stage(ctx, own, stage, knob, at)
  local point = point_of(stage, knob)
  local ranks = point.dp * point.cp
  local before = stage.zero
  stage.zero = nil
  if ranks < 2 then
    return nil
  elseif ranks % (knob.shard_group or 1) ~= 0 then
    return ("%s.zero.shard_group: %d ranks do not divide into groups of %d"):format(at, ranks,
      knob.shard_group)
  end
  own.stage(point, stage)
  keep_fixed(ctx, stage, before)
end

--- The plan with the system in it.
local function change(ctx, own, made, knob)
  local plan = composition.copy(made)
  for r, replica in ipairs(plan.replicas) do
    for s, stage in ipairs(replica.stages) do
      local why = set_stage(ctx, own, stage, knob, ("replicas[%d].stages[%d]"):format(r - 1, s - 1))
      if why then
        return nil, why
      end
    end
  end
  if own.plan then
    local priority = plan.sync and plan.sync.priority
    own.plan({ knob = knob }, plan)
    plan.sync.priority = priority
  end
  return plan
end

--- The best plan with one knob after the other at its other values.
local function refined(own, make, plan, knob)
  for _, row in ipairs(own.refine or {}) do
    local list = { knob }
    for _, value in ipairs(row.values) do
      local other = composition.copy(knob)
      other[row.knob] = value
      list[#list + 1] = other
    end
    plan, knob = composition.fastest(list, make)
  end
  return plan
end

--- The plan of another strategy with the system that runs, or nil and why not.
function applied.apply(made, ctx)
  local why = composition.clash(ctx)
  if why then
    return nil, why
  end
  local own, start = knobs[ctx.system.id], composition.start(made)
  local stage, copies = shared(start)
  if not stage and not (copies and own.replicated) then
    return nil, ("no stage of the plan has two data-parallel ranks, which %s needs")
      :format(ctx.system.id)
  end
  local function make(knob)
    return change(ctx, own, start, knob)
  end
  if own.first_fit then
    local reason
    for _, knob in ipairs(choices(own, ctx, stage)) do
      local plan, refused = composition.fastest({ knob }, make)
      if plan then
        return plan
      end
      reason = reason or refused
    end
    return nil, reason or "no group of ranks divides the plan's data-parallel ranks"
  end
  local plan, knob = composition.fastest(choices(own, ctx, stage), make)
  if not plan then
    return nil, knob or "no group of ranks divides the plan's data-parallel ranks"
  end
  return refined(own, make, plan, knob)
end

return applied
