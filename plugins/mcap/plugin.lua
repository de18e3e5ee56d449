-- mCAP (Dreuning et al., Euro-Par 2022): stage boundaries that balance the peak memory of the
-- devices, so that larger models and batches fit. The paper profiles a few partitions to learn what
-- each layer adds to the peak, predicts the peaks of others, and searches by brute force or
-- Bayesian optimisation. Here the memory model takes the place of the profile, and the search is
-- exact: the bytes of a layer depend on the stage that holds it, which keeps so many micro-batches.
-- Cuts of the same peak are told apart by their time. The paper has one pipeline; depth, replicas,
-- micro-batch and recomputation are searched around it.
local degrees = require "degrees"
local grids = require "grids"
local inventory = require "inventory"
local least_peak = require "least_peak"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"

--- Micro-batches that stage s keeps alive.
local function alive(schedule, p, m, s)
  return schedule == "gpipe" and m or math.min(m, p + 1 - s)
end

--- The problem of least_peak.cut for a point; kinds_of(s) = kinds of the devices of stage s.
local function problem_of(ctx, point, kinds_of)
  local q = { n = ctx.model.n_layers, held = {}, fixed = {}, times = {},
    micro_batches = point.micro_batches }
  for s = 1, point.pp do
    local kinds = kinds_of(s)
    local t = pipeline.tables(ctx, { kinds = kinds, tp = point.tp, dp = point.dp,
      micro_batch = point.micro_batch, recompute = point.recompute, zero = 0, holders = point.dp },
      alive(ctx.options.schedule, point.pp, point.micro_batches, s))
    local limit = math.huge
    for _, kind in ipairs(kinds) do
      limit = math.min(limit, prices.capacity(ctx, { kind = kind }))
    end
    q.held[s], q.times[s], q.fixed[s] = t.held, t.times, limit - t.room
  end
  return q
end

--- Layers per stage of a point, remembered for the run.
local known = {}

local function counts_of(ctx, point, kinds_of)
  local key = ("%d/%d/%d/%d/%s/%d"):format(point.tp, point.pp, point.dp, point.micro_batch,
    point.recompute, #point.ids)
  if not known[key] then
    local best = least_peak.cut(problem_of(ctx, point, kinds_of))
    known[key] = best and best.counts or grids.layer_counts(ctx.model.n_layers, point.pp, 1, "")
  end
  return known[key]
end

local function plan(ctx)
  local name = ctx.options.schedule
  local spec = degrees.axes(ctx, { tp = { 1 }, pp = degrees.depths(ctx) })
  spec.schedule = name
  function spec.fits(point)
    return point.pp > 1, "no degrees leave two stages on these devices"
  end
  function spec.in_flight(point, s)
    return alive(name, point.pp, point.micro_batches, s)
  end
  function spec.stage(point, stage, s)
    local size = point.tp * point.dp
    local function kinds_of(at)
      local rows = {}
      for i = 1, size do
        rows[i] = { kind = inventory.kind(ctx, point.ids[(at - 1) * size + i]) }
      end
      return inventory.kinds(rows)
    end
    stage.layers = numbers.ranges(counts_of(ctx, point, kinds_of))[s]
  end
  return degrees.plan(ctx, spec)
end

--- Peak of the worst stage by the prices of layers, which the cut balances.
local function claim(made, ctx)
  made = prices.table_of(made)
  local replica = made.replicas[1]
  local stages = replica.stages
  local point = { pp = #stages, tp = (prices.degree(stages[1])), dp = stages[1].dp or 1,
    micro_batches = replica.micro_batches, recompute = stages[1].recompute or "none" }
  point.micro_batch = made.micro_batch // point.dp
  local counts = {}
  local q = problem_of(ctx, point, function(s)
    local rows = {}
    for i, id in ipairs(ctx.cluster:ids(stages[s].devices)) do
      rows[i] = { kind = inventory.kind(ctx, id) }
    end
    return inventory.kinds(rows)
  end)
  for s, stage in ipairs(stages) do
    counts[s] = stage.layers[2] - stage.layers[1]
  end
  local peaks = least_peak.peaks(q, counts)
  local most, least = math.max(table.unpack(peaks)), math.min(table.unpack(peaks))
  return { peak_memory_GiB = most / 2 ^ 30, terms = { least_peak_GiB = least / 2 ^ 30 },
    formula = "max over stages of states + micro-batches alive x activations + workspace",
    leaves_out = "memory of schedules over time: every stage is charged its largest number alive" }
end

local options = degrees.options { "pp" }
table.insert(options, 1, { key = "schedule", type = "choice", default = "gpipe",
  choices = { "gpipe", "1f1b" },
  help = "order of the passes, which decides how many micro-batches a stage keeps" })

return {
  api = 1, id = "mcap", title = "mCAP", kind = "pipeline", year = 2022, venue = "Euro-Par",
  system = "mCAP: Memory-Centric Partitioning for Large-Scale Pipeline-Parallel DNN Training",
  reference = "doi:10.1007/978-3-031-12597-3_10",
  summary = "Stages cut to the least peak memory, ties by time; exact instead of profiled.",
  sets = { ["tp"] = 1 },
  searches = { "pipeline depth", "micro-batch", "recomputation", "layers per stage by peak" },
  verified = { "cut of six layers", "memory of its stages", "memory of equal layer counts",
    "memory by the judge, in proportion", "200 random chains: least peak",
    "200 random chains: fastest of them" },
  needs = { model = "layers" }, effort = "quick",
  options = options, plan = plan, claim = claim,
}
