-- Aceso (Liu et al., EuroSys 2024): one pipeline whose stages have tensor and data degrees of their
-- own, found by iterative bottleneck alleviation. Section 4: the stage with most time (or too much
-- memory) passes on operators, takes devices, changes its degrees or the micro-batch, by up to
-- seven primitives in a row; what is recomputed is chosen anew after every change. Every number of
-- stages is searched by itself. The operators of the paper are a plan's layers here, and its
-- recomputed operators a plan's units of recomputation.
local bottleneck = require "bottleneck"
local candidates = require "candidates"
local claims = require "claims"
local cluster_problem = require "cluster_problem"
local configuration = require "configuration"
local inventory = require "inventory"
local prices = require "prices"
local reasons = require "reasons"

-- With more devices the budget is a quarter and the first plans are judged at once.
local MANY_DEVICES = 256

local STAGE_COUNTS = { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128 }
local SEARCH_SHARE = 0.7 -- of the time limit

--- What the layers of a stage recompute, as a plan file has it.
local function recompute_of(entries)
  local levels = {}
  local nothing = true
  for l, entry in ipairs(entries) do
    levels[l] = entry.level
    nothing = nothing and entry.level == "none"
  end
  return nothing and "none" or levels
end

--- The plan of a rated configuration.
local function plan_of(ctx, problem, rated)
  local rows = {}
  local at = 0
  local place = problem.place(rated.config)
  for s, stage in ipairs(rated.config) do
    local keys = {
      devices = ctx.cluster:address(place[s].ids),
      layers = { at, at + stage.n },
      dp = stage.dp > 1 and stage.dp or nil,
    }
    rows[s] = prices.stage_keys({
      tp = stage.tp, zero = ctx.options.zero, sequence_parallel = stage.tp > 1,
      recompute = recompute_of(rated.stages[s].entries),
    }, keys)
    at = at + stage.n
  end
  local micro_batch = rated.config.micro_batch
  return { micro_batch = micro_batch, schedule = { name = "1f1b" },
    replicas = { { micro_batches = problem.batch // micro_batch, stages = rows } } }
end

--- Numbers of stages that are searched.
local function stage_counts(ctx, problem)
  local counts = {}
  for _, stages in ipairs(STAGE_COUNTS) do
    if stages <= math.min(ctx.options.stages, problem.n, problem.devices) then
      counts[#counts + 1] = stages
    end
  end
  return counts
end

--- Candidates of all numbers of stages where `reserve_bytes` of every device stay free.
local function searched(ctx, devices, reserve_bytes, known)
  local problem = cluster_problem.of(ctx, devices, reserve_bytes, known)
  local all = candidates.new(#devices > MANY_DEVICES)
  local budget = ctx.options.budget
  if #devices > MANY_DEVICES then
    budget = budget // 4
  end
  local function stopping()
    return #all.list > 0 and hv.stopping(SEARCH_SHARE)
  end
  local micro_batches = problem.batch % 2 == 0 and { 1, 2 } or { 1 }
  local counts = stage_counts(ctx, problem)
  for i, stages in ipairs(counts) do
    for _, micro_batch in ipairs(stopping() and {} or micro_batches) do
      local _, fitting = bottleneck.run(problem, { stages = stages, micro_batch = micro_batch,
        hops = ctx.options.hops, budget = budget, stopping = stopping })
      for _, rated in ipairs(fitting or {}) do
        all.add { claim_s = rated.time_s,
          build = function() return plan_of(ctx, problem, rated) end }
      end
    end
    hv.progress(i / #counts, ("%d stages"):format(stages))
  end
  return all
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  local known = {}
  local all = devices and candidates.within(
    function(reserve_bytes) return searched(ctx, devices, reserve_bytes, known) end)
  if not all then
    return nil, why or reasons.too_small(ctx, devices, "no pipeline of one copy")
  end
  return all.best(ctx.options.tries)
end

--- Aceso's iteration time of the plan: a stage's time includes its transfers to and from its
-- neighbours.
local function claim(made, ctx)
  local part = claims.parts(ctx, made)[1]
  local times = {}
  for s, stage_s in ipairs(part.stage_s) do
    times[s] = stage_s + (part.hop_s[s - 1] or 0) + (part.hop_s[s] or 0)
  end
  local list, worst = configuration.stage_times(times, part.micro_batches)
  return {
    iteration_s = list[worst],
    terms = { bottleneck_s = times[worst] },
    formula = "max over stages of t (M - 1) + sum t, no gradients (Aceso, section 3.3)",
    leaves_out = "the exchange of gradients, the optimizer's step, gathers of sharded weights, and "
      .. "links that several stages or replicas share",
  }
end

return {
  api = 1, id = "aceso", title = "Aceso", kind = { "hetero", "auto-parallel" },
  system = "Aceso: Efficient Parallel DNN Training through Iterative Bottleneck Alleviation, "
    .. "EuroSys 2024", year = 2024,
  reference = "doi:10.1145/3627703.3629554",
  summary = "The bottleneck stage is relieved step by step: operators, devices, degrees, batch, "
    .. "recomputation.",
  needs = { model = "layers" },
  effort = "medium",
  options = {
    { key = "budget", type = "integer", default = 200, min = 1, max = 100000,
      help = "configurations per number of stages (a quarter of them beyond 256 devices)" },
    { key = "hops", type = "integer", default = 7, min = 1, max = 16,
      help = "largest number of primitives in a row" },
    { key = "stages", type = "integer", default = 16, min = 1, max = 128,
      help = "largest number of pipeline stages" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "ZeRO stage over a stage's data ranks, 1: optimizer states, 2: and gradients, 3: and "
        .. "weights" },
    { key = "tries", type = "integer", default = 16, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the formula" },
  },
  plan = plan,
  claim = claim,
}
