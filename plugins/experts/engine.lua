-- The search of the family: base plans, the placements of a policy on them, the judge's fastest.
local candidates = require "candidates"
local composition = require "composition"
local degrees = require "degrees"
local mixture = require "mixture"
local prices = require "prices"
local search = require "search"
local walk = require "walk"

local engine = {}

-- Plans that are simulated in a search with copies.
local TRIES_WITH_COPIES = 8

-- How many experts of a layer have copies at the most: any number, or what memory may allow.
local LIMITS = { {}, { most = 8 }, { most = 2 } }

-- What each system tries: values of the policy's own figures, how many of the hottest experts have
-- copies while degrees are searched, chunks of the exchange on the best plan, and knobs of `moe` it
-- goes with.
local variants = {
  fastermoe = { tunes = LIMITS, copied = { 0, 2 }, chunks = { 2, 4, 8 }, life = "iteration" },
  smartmoe = { tunes = { { interval = 1 }, { interval = 4 }, { interval = 8 } }, copied = { 0 } },
  flexmoe = { tunes = { { slots = 1, interval = 4, threshold = 1.1 },
    { slots = 1, interval = 8, threshold = 1.02 },
    { slots = 2, interval = 4, threshold = 1.02 }, { slots = 4, interval = 8, threshold = 1.02 },
    { slots = 0, interval = 1, threshold = 1, evens = true },
    { slots = 0, interval = 4, threshold = 1, evens = true },
    { slots = 1, interval = 4, threshold = 1.02, evens = true } },
    copied = { 0, 2 } },
  none = { tunes = {}, copied = { 0 } },
  prophet = { tunes = LIMITS, copied = { 0, 2 }, life = "iteration", prefetch = 1 },
}

--- `moe` of a stage without placements.
local function usual_moe(ctx)
  local moe = { all_to_all = "flat", kernel = "grouped" }
  if ctx.options.off_node and ctx.options.off_node < 1 then
    moe.off_node_frac = ctx.options.off_node
  end
  return moe
end

--- The experts with most tokens in the first iteration of the job's routing, as `copies` of a plan.
local function hottest(n)
  local loads = hv.trace { sources = 1 }[1][1][1]
  local order, copies = {}, {}
  for e = 1, #loads do
    order[e] = e
  end
  table.sort(order, function(a, b)
    return loads[a] > loads[b] or loads[a] == loads[b] and a < b
  end)
  for i = 1, math.min(n, #order) do
    copies[tostring(order[i] - 1)] = "*"
  end
  return copies
end

--- The plan of degrees for one expert degree, found with copies of so many experts and returned
-- without them; nil and the reason.
local function base_plan(world, ep, n_copied)
  local ctx, own = world.ctx, variants[world.id]
  local copies = n_copied > 0 and hottest(n_copied) or nil
  local spec = degrees.axes(ctx, { tp = degrees.tensor(ctx), pp = mixture.depths(ctx) })
  spec.ep = { ep }
  spec.quiet = copies ~= nil -- these copies are none of the policy's
  spec.tries = copies and math.min(ctx.options.tries, TRIES_WITH_COPIES) or ctx.options.tries
  function spec.fits(point)
    return point.dp >= 2, "no degrees leave two data-parallel ranks on these devices"
  end
  function spec.stage(_, stage)
    stage.zero = ctx.options.zero > 0 and ctx.options.zero or nil
    stage.moe = usual_moe(ctx)
    stage.moe.copies = copies
    stage.moe.copy_life = copies and own.life or nil
  end
  local made, why = degrees.plan(ctx, spec)
  for _, stage in ipairs(made and made.replicas[1].stages or {}) do
    stage.moe.copies, stage.moe.copy_life = nil, nil
  end
  return made, why
end

--- Rows of `moe` for placements of a routing without iterations: one per run of layers.
local function places_by_layer(moe, placements)
  local rows = {}
  for i, placement in ipairs(placements) do
    rows[i] = composition.copy(moe)
    rows[i].layers, rows[i].owners, rows[i].copies = placement.layers, placement.owners,
      placement.copies
  end
  return #rows == 1 and not rows[1].layers and rows[1] or rows
end

--- The plan with the policy's placements in every stage; nil where it places nothing.
local function placed_plan(world, base, tune)
  local made, any = composition.copy(base), false
  local own = variants[world.id]
  for _, stage in ipairs(made.replicas[1].stages) do
    local placements, iterations = walk.stage(world, made, stage, tune)
    if placements then
      local moe = stage.moe
      any, moe.copy_life, moe.prefetch = true, own.life, own.prefetch
      if iterations > 1 then
        moe.adapt = { policy = "record", placements = placements }
      else
        stage.moe = places_by_layer(moe, placements)
      end
    end
  end
  return any and made or nil
end

--- The figures of a policy that an option fixes, or all that are tried.
local function tunes_of(world)
  local list, o = {}, world.ctx.options
  for i, tune in ipairs(variants[world.id].tunes) do
    list[i] = composition.copy(tune)
    list[i].interval = (o.interval or 0) > 0 and o.interval or tune.interval
    list[i].slots = (o.slots or 0) > 0 and o.slots or tune.slots
    list[i].threshold = (o.threshold or 0) > 0 and o.threshold or tune.threshold
  end
  return list
end

--- Judges a plan and keeps it where it is the fastest so far.
local function try(state, made)
  local verdict, why = candidates.judge(made)
  if not verdict then
    state.reason = state.reason or why
  elseif not state.value or verdict.value < state.value then
    state.value, state.plan = verdict.value, made
    hv.incumbent(made)
  end
end

--- One base plan, as it is and with all that the policy tries.
local function try_policies(world, state, base)
  for _, tune in ipairs(world.ctx.job.routing and tunes_of(world) or {}) do
    local made = not (state.plan and hv.stopping()) and placed_plan(world, base, tune)
    if made then
      try(state, made)
    end
  end
  try(state, base)
end

--- The best plan with its exchange in chunks.
local function try_chunks(state, counts)
  local best = state.plan
  for _, n in ipairs(best and counts or {}) do
    local made = composition.copy(best)
    for _, stage in ipairs(made.replicas[1].stages) do
      for _, moe in ipairs(#stage.moe > 0 and stage.moe or { stage.moe }) do
        moe.degree = n
      end
    end
    try(state, made)
  end
end

--- Base plans by expert degree and experts with copies, each with the policy of system `id`;
-- "none": without any.
function engine.plan(ctx, id)
  local layers, why = mixture.layers(ctx)
  if not layers then
    return nil, why
  end
  local own = variants[id]
  local world, state = { ctx = ctx, id = id, layers = layers }, {}
  local copied_counts = ctx.job.routing and own.copied or { 0 }
  for point in search.product { degrees.fixed(ctx.options.ep, mixture.degrees(layers)),
    copied_counts } do
    local base, reason = base_plan(world, table.unpack(point))
    state.reason = state.reason or reason
    if base then
      try_policies(world, state, base)
    end
  end
  try_chunks(state, own.chunks)
  return state.plan, not state.plan and state.reason or nil
end

--- The plan of another strategy with the policy's placements.
function engine.apply(made, ctx, id)
  local layers, why = mixture.layers(ctx)
  local clash = composition.clash(ctx)
  if not layers or clash then
    return nil, why or clash
  end
  local shares, reason = mixture.apply(prices.table_of(made), function(stage)
    return stage.moe or {}
  end)
  if not shares or not ctx.job.routing then
    return shares, reason
  end
  for _, stage in ipairs(shares.replicas[1].stages) do
    stage.moe = stage.moe or {}
    if #stage.moe > 0 or stage.moe.owners or stage.moe.copies or stage.moe.adapt then
      return nil, "stage.moe: another part of the plan places experts already"
    end
  end
  local world = { ctx = ctx, id = id, layers = layers }
  return placed_plan(world, shares, tunes_of(world)[1]) or shares
end

return engine
