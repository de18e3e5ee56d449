-- AdaPipe (Sun et al., ASPLOS 2024): which units of computation each stage recomputes, and where
-- the stages are cut. Under 1F1B stage s of p keeps p - s + 1 micro-batches, so that late stages
-- have memory to keep what early ones recompute. For every run of layers and stage a knapsack keeps
-- the units that save most (stage_memory); a program over the cuts carries 1F1B's times
-- (stage_cut). The first layer has the embedding with it, the last one the head. A stage of several
-- kinds is priced as its first device, with the room of the smallest.
local degrees = require "degrees"
local grids = require "grids"
local inventory = require "inventory"
local pipeline = require "pipeline"
local prices = require "prices"
local stage_cut = require "stage_cut"
local stage_memory = require "stage_memory"
local units = require "units"

--- Kinds of the devices of stage s of a point.
local function kinds_of(ctx, point, s)
  local rows, size = {}, point.tp * point.dp
  for i = 1, size do
    rows[i] = { kind = inventory.kind(ctx, point.ids[(s - 1) * size + i]) }
  end
  return inventory.kinds(rows)
end

--- Bytes that the allocator takes per byte in use.
local function growth_of(ctx, kind, point)
  local memory = hv.cost.memory { tp = point.tp, layers = { 0, 1 },
    micro_batch = point.micro_batch,
    devices = ctx.cluster:address(inventory.first(ctx, kind, point.tp)) }
  return 1 + memory.fragmentation
end

local layers_known = {}

--- What stage s needs: classes of its layers, sums of states, room, micro-batches alive.
local function stage_of(ctx, point, s)
  local kinds = kinds_of(ctx, point, s)
  local key = ("%s/%d/%d"):format(kinds[1], point.tp, point.micro_batch)
  layers_known[key] = layers_known[key]
    or { classes = units.by_layer(ctx, kinds[1], point), growth = growth_of(ctx, kinds[1], point) }
  local t = pipeline.tables(ctx, { kinds = kinds, tp = point.tp, dp = point.dp,
    micro_batch = point.micro_batch, recompute = "full", zero = 0, holders = point.dp }, 0)
  local known, sums = layers_known[key], { [0] = 0 }
  for l, bytes in ipairs(t.held) do
    sums[l] = sums[l - 1] + bytes
  end
  return { layers = known.classes, growth = known.growth, sums = sums, room = t.room,
    text = table.concat(kinds, "+"), alive = point.pp - s + 1 }
end

--- A text that is the same for runs of alike layers.
local function run_text(own, first, last)
  local n, classes = {}, {}
  for l = first, last do
    local class = own.layers[l]
    if not n[class] then
      classes[#classes + 1] = class
    end
    n[class] = (n[class] or 0) + 1
  end
  for i, class in ipairs(classes) do
    classes[i] = class.number .. "x" .. n[class]
  end
  return table.concat(classes, " ")
end

--- price(first, last, s) of stage_cut.best for a point, remembered by alike runs.
local function price_of(ctx, point)
  local stages, known = {}, {}
  for s = 1, point.pp do
    stages[s] = stage_of(ctx, point, s)
  end
  return function(first, last, s)
    local own = stages[s]
    local key = ("%d/%s/%s"):format(s, own.text, run_text(own, first, last))
    if known[key] == nil then
      local room = (own.room - (own.sums[last] - own.sums[first - 1])) / own.growth / own.alive
      known[key] = room >= 0 and stage_memory.best(own.layers, first, last, room) or false
    end
    return known[key] or nil
  end, stages
end

--- Seconds of a stage by which runs are left out: more than all micro-batches of an even cut with
-- full recomputation.
local function longest_s(ctx, point, price)
  local counts = grids.layer_counts(ctx.model.n_layers, point.pp, 1, "")
  local stages, at = {}, 1
  for s, n in ipairs(counts) do
    stages[s] = price(at, at + n - 1, s)
    if not stages[s] then
      return nil
    end
    at = at + n
  end
  local m = point.micro_batches
  return stage_cut.seconds(stages, m) / (m - point.pp + 1) * (1 + 1e-9)
end

local cuts_known = {}

--- The stages of a point: layers and recomputation of each; false where nothing fits.
local function cut_of(ctx, point)
  local key = ("%d/%d/%d/%d/%d"):format(point.tp, point.pp, point.dp, point.micro_batch, #point.ids)
  if cuts_known[key] == nil then
    local price, stages = price_of(ctx, point)
    local best = stage_cut.best(ctx.model.n_layers, point.pp, point.micro_batches, price,
      longest_s(ctx, point, price))
    for s, stage in ipairs(best and best.stages or {}) do
      stage.layers = { stage.first - 1, stage.last }
      stage.recompute = stage_memory.recompute(stages[s].layers, stage.first, stage.last,
        stage.kept)
    end
    cuts_known[key] = best and best.stages or false
  end
  return cuts_known[key]
end

local function plan(ctx)
  local spec = degrees.axes(ctx, { tp = degrees.tensor(ctx), pp = degrees.depths(ctx) })
  spec.recompute = { "full" } -- where no cut fits, its reason
  function spec.fits(point)
    if point.pp < 2 or point.micro_batches < point.pp then
      return false, "no degrees leave two stages and as many micro-batches on these devices"
    end
    return true
  end
  function spec.in_flight(point, s)
    return point.pp - s + 1
  end
  function spec.stage(point, stage, s)
    local own = cut_of(ctx, point)
    if own then
      stage.layers, stage.recompute = own[s].layers, own[s].recompute
    end
  end
  return degrees.plan(ctx, spec)
end

--- The recurrences on the times of the plan's stages.
local function claim(made, ctx)
  made = prices.table_of(made)
  local stages, replica, recomputed_s = {}, made.replicas[1], {}
  for s in ipairs(replica.stages) do
    local pass = prices.stage(ctx, made, 1, s)
    stages[s] = { forward_s = pass.forward_s, backward_s = pass.backward_s }
    recomputed_s[s] = pass.recompute_s
  end
  return { iteration_s = stage_cut.seconds(stages, replica.micro_batches),
    terms = { most_recomputed_s = math.max(table.unpack(recomputed_s)),
      least_recomputed_s = math.min(table.unpack(recomputed_s)) },
    formula = "W + E + (m - p) M: warm-up, ending and steady phase of 1F1B",
    leaves_out = "transfers between stages, the reduction of gradients, the optimizer's step" }
end

return {
  api = 1, id = "adapipe", title = "AdaPipe", kind = "pipeline", year = 2024, venue = "ASPLOS",
  system = "AdaPipe: Optimizing Pipeline Parallelism with Adaptive Recomputation and Partitioning",
  reference = "doi:10.1145/3620666.3651359",
  summary = "Each stage recomputes only the units that its memory cannot keep; cuts follow.",
  sets = { ["schedule.name"] = "1f1b" },
  searches = { "degrees", "micro-batch", "units kept by stage", "layers per stage" },
  verified = { "split of four layers [D]", "their backward passes [D]", "their makespan [D]",
    "makespan of the order [D]", "full recomputation [D]", "makespan by the judge [D]",
    "200 random chains: as the best of all cuts and sets [D]" },
  needs = { model = "layers" }, effort = "quick",
  options = degrees.options({ "tp", "pp" }, { "full" }), plan = plan, claim = claim,
}
