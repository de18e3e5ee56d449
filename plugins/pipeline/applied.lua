-- The schedules of the family on another strategy's plan. Its degrees and devices stay, and its cut
-- of the layers where a stage keeps one range; chunks are cut as in the family's own search. Where
-- the system pairs devices, those of the plan are paired.
local composition = require "composition"
local cut = require "cut"
local knobs = require "knobs"
local orders = require "orders"

local applied = {}

--- What all stages have alike where a plan can be given another order; nil and the knob that is in
-- the way.
local function point_of(ctx, made)
  local replica = made.replicas[1]
  local first = replica.stages[1]
  local point = { tp = first.tp or 1, cp = 1, dp = first.dp or 1, pp = #replica.stages,
    micro_batches = replica.micro_batches, recompute = first.recompute or "none", ids = {} }
  if #made.replicas > 1 or (replica.count or 1) > 1 then
    return nil, "replicas: the plan has several pipelines"
  elseif type(point.micro_batches) ~= "number" or replica.micro_batch then
    return nil, "replicas[0].micro_batches: they differ in size"
  elseif point.pp < 2 then
    return nil, "replicas[0].stages: the plan has one stage"
  end
  for s, stage in ipairs(replica.stages) do
    local at = ("replicas[0].stages[%d]."):format(s - 1)
    if type(stage.layers[1]) ~= "number" then
      return nil, at .. "layers: the stages have chunks of an order already"
    elseif type(stage.tp or 1) ~= "number" or (stage.tp or 1) ~= point.tp
      or (stage.dp or 1) ~= point.dp then
      return nil, at .. "tp, dp: the stages differ in their degrees"
    end
    for _, key in ipairs { "after", "shares", "deal", "degrees" } do
      if stage[key] then
        return nil, at .. key .. ": stages of this kind have an order of their own"
      end
    end
    for _, id in ipairs(ctx.cluster:ids(stage.devices)) do
      point.ids[#point.ids + 1] = id
    end
  end
  local cp = first.cp
  point.cp = type(cp) == "table" and (cp.degree or 1) or cp or 1
  if #point.ids ~= point.tp * point.cp * point.dp * point.pp then
    return nil, "replicas[0].stages[0].devices: not a rank for each"
  end
  point.micro_batch = math.max(1, made.micro_batch // point.dp)
  point.dp = point.dp * point.cp
  return point
end

--- Chunks of the system's search that the layers allow, and the orders of each: list of points.
local function points_of(ctx, own, shape, knobs_at)
  local list, reason = {}, nil
  for _, chunks in ipairs(own.chunks or { 1 }) do
    if shape.pp * chunks <= ctx.model.n_layers then
      local point = setmetatable({ chunks = chunks }, { __index = shape })
      local found, why = knobs_at(own, point)
      reason = reason or why
      for _, knob in ipairs(found) do
        list[#list + 1] = setmetatable({ chunks = chunks, knob = knob }, { __index = shape })
      end
    end
  end
  return list, reason or #list == 0 and ("%d stages have no chunks of %d layers"):format(shape.pp,
    ctx.model.n_layers) or nil
end

--- Gives the stages of a plan the chunks, the devices and the states of a point.
local function set_stages(ctx, plan, point)
  local function places(_, s)
    return knobs.place(point, s)
  end
  local counts = point.chunks > 1 and cut.counts(ctx, point, places)
  for s, stage in ipairs(plan.replicas[1].stages) do
    if counts then
      stage.layers = orders.layers(point, counts, s)
    end
    if point.knob.paired then
      stage.devices = ctx.cluster:address(places(nil, s))
    end
    if point.knob.zero then
      stage.zero = { stage = point.knob.zero, unit = point.knob.unit }
    end
  end
end

--- The plan of another strategy with the schedule of the system that runs, or nil and why not;
-- knobs_at(own, point) = knobs that can be laid out at a point, and why none.
function applied.apply(made, ctx, knobs_at)
  local why = composition.clash(ctx)
  if why then
    return nil, why
  end
  local start, own = composition.start(made), knobs[ctx.system.id]
  local shape, misfit = point_of(ctx, start)
  if not shape then
    return nil, ("%s does not fit this plan: %s"):format(ctx.system.id, misfit)
  end
  local points, reason = points_of(ctx, own, shape, knobs_at)
  local plan, point = composition.fastest(points, function(choice)
    local knob = choice.knob
    local taken = composition.taken(ctx, "schedule.name", knob.schedule.name)
      or knob.zero and composition.taken(ctx, "zero.stage", knob.zero)
    if taken then
      return nil, taken
    end
    local changed = composition.copy(start)
    changed.schedule = composition.copy(knob.schedule)
    set_stages(ctx, changed, choice)
    return changed
  end)
  if not plan then
    return nil, point or reason
  end
  return plan
end

return applied
