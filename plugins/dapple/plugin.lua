-- DAPPLE (Fan et al., PPoPP 2021): contiguous stages with replicas on devices that three policies
-- choose, by a program over layers and allocations whose objective is the latency of a synchronous
-- 1F1B pipeline (planner, placement, latency). Sizes of the micro-batch and recomputation are tried
-- around it; the first plans are simulated, with the warm-up of both of the paper's schedules.
-- Layers are taken in at most 12 blocks, devices in at most 16 slots, so that the program ends
-- soon. The paper's devices are alike: a cluster of several kinds is priced as its first one.
local candidates = require "candidates"
local claims = require "claims"
local degrees = require "degrees"
local inventory = require "inventory"
local latency = require "latency"
local numbers = require "numbers"
local planner = require "planner"
local prices = require "prices"
local problem = require "problem"
local search = require "search"

--- The plan of stages that the planner chose.
local function build(ctx, cluster, q, found, o)
  local devices, stages = problem.devices(cluster, found.stages), {}
  for s, stage in ipairs(found.stages) do
    local n = #devices[s]
    stages[s] = { devices = ctx.cluster:address(devices[s]), dp = n,
      layers = { q.layers[stage.first][1] - 1, q.layers[stage.last][2] },
      recompute = o.recompute ~= "none" and o.recompute or nil,
      shares = o.sequences % n ~= 0 and numbers.even(o.sequences, n) or nil }
  end
  return { micro_batch = o.sequences, schedule = { name = "dapple", early = o.early },
    replicas = { { micro_batches = q.micro_batches, stages = stages } } }
end

--- Micro-batches that divide the global batch and can give every device a sequence in some number
-- of stages, up to four for each.
local function sizes(ctx, cluster)
  if ctx.options.micro_batch > 0 then
    return { ctx.options.micro_batch }
  end
  local list, n = {}, cluster.n_devices
  for _, size in ipairs(numbers.powers(math.min(ctx.job.global_batch, 4 * n))) do
    local stages = math.min(cluster.blocks, ctx.model.n_layers)
    if ctx.job.global_batch % size == 0 and size >= cluster.slot and size * stages >= n then
      list[#list + 1] = size
    end
  end
  return list
end

--- Adds the planner's plans for all sizes of the micro-batch and recomputations.
local function add_all(ctx, cluster, all)
  local recompute = ctx.options.recompute
  local ways = recompute == "auto" and { "none", "selective", "full" } or { recompute }
  for choice in candidates.in_time(search.product { sizes(ctx, cluster), ways }, 0.5) do
    local sequences, way = choice[1], choice[2]
    local q = problem.of(ctx, cluster, sequences, way)
    for _, found in ipairs(planner.plans(q)) do
      for _, early in ipairs { "pa", "pb" } do
        all.add { claim_s = found.seconds, build = function()
          return build(ctx, cluster, q, found,
            { sequences = sequences, recompute = way, early = early })
        end }
      end
    end
  end
end

-- Blocks of layers and slots of devices with which the program ends soon; and finer ones, where no
-- stage of the coarse ones fits, with so many prefixes followed.
local GRAINS = { { 10, 16 }, { 20, 32, 12 }, { 40, 64, 6 } }

local function plan(ctx)
  local devices, why = inventory.priced(ctx)
  if #devices == 0 then
    return nil, why
  end
  local all = candidates.new()
  for _, grain in ipairs(GRAINS) do
    if #all.list == 0 then
      add_all(ctx, problem.cluster(devices, grain[1], grain[2], grain[3]), all)
    end
  end
  return all.best(ctx.options.tries, "no micro-batch gives every device of a stage a sequence, or "
    .. "no layers fit into a device")
end

--- The objective on the stages of the plan.
local function claim(made, ctx)
  made = prices.table_of(made)
  local replica, kinds, timed = made.replicas[1], prices.kinds(ctx), {}
  local part = claims.parts(ctx, made)[1]
  for s, stage in ipairs(replica.stages) do
    if s > 1 then
      timed[#timed + 1] = { f = part.hop_s[s - 1], b = part.hop_s[s - 1], ar = 0 }
    end
    local pass = prices.stage(ctx, made, 1, s)
    timed[#timed + 1] = { f = pass.forward_s, b = pass.backward_s,
      ar = prices.stage_sync(ctx, stage, kinds) }
  end
  local seconds, warm_s, steady_s, end_s, pivot = latency.of(timed, replica.micro_batches)
  return { iteration_s = seconds, formula = "Tw + Ts + Te by the pivot stage: an approximation",
    terms = { warm_up_s = warm_s, steady_s = steady_s, ending_s = end_s,
      pivot_and_boundaries = pivot },
    leaves_out = "waiting that no pivot shows, reductions beside passes, the optimizer's step" }
end

local options = degrees.options {}
for _, row in ipairs(options) do
  if row.key == "micro_batch" then
    row.help = "sequences that enter the pipeline at once; 0: searched"
  end
end

return {
  api = 1, id = "dapple", title = "DAPPLE", kind = { "pipeline", "auto-parallel" },
  system = "DAPPLE: A Pipelined Data Parallel Approach for Training Large Models",
  year = 2021, venue = "PPoPP", reference = "arXiv:2007.01045",
  summary = "Replicated stages on devices by three policies; early backward passes.",
  sets = { ["schedule.name"] = "dapple" },
  searches = { "stages", "replicas of each stage", "placement policy", "micro-batch",
    "recomputation", "warm-up" },
  verified = { "pivot formula [D]", "its phases [D]", "order without all-reduce, PA and PB [D]",
    "order with it, PA and PB [D]", "by the judge, PA and PB [D]",
    "by the judge with the all-reduce [D]" },
  needs = { model = "layers" }, effort = "quick",
  options = options, plan = plan, claim = claim,
}
