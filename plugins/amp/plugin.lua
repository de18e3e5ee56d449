-- AMP (Li et al., NeurIPS 2022): 3D degrees, placement of the ranks, layers per stage and
-- micro-batch for clusters whose links differ and models whose layers differ. Section 3.3: the time
-- of an iteration is T = sum e + (gas - 1) max stage + sum cuts + T_dp, with e = time of a layer,
-- gas = number of micro-batches. Section 3.4: placements of the ranks on the devices. Section 3.5:
-- the layers are cut into stages by dynamic programming. Section 3.6: pipelines of unequal speed
-- get fixed shares of the micro-batches. This follows the equations of the paper. The released code
-- differs: the value that it keeps for a cut lacks the transfer over the cut, and its all-reduce
-- takes the bandwidth of the last pair of replicas only.
local candidates = require "candidates"
local claims = require "claims"
local configurations = require "configurations"
local inventory = require "inventory"
local links = require "links"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"

--- Configurations that fit, found by simulated annealing over neighbours.
local function annealed(ctx, list)
  local fitting = {}
  local hot = list[1].bound
  search.anneal {
    state = list[1], budget = ctx.options.budget, seed = ctx.seed, hot = hot, cold = hot / 1000,
    moves = function(configuration) return configurations.neighbours(list, configuration) end,
    cost = function(configuration)
      local seen = configuration.done
      if pipeline.evaluate(ctx, configuration) and not seen then
        fitting[#fitting + 1] = configuration
      end
      return configuration.claim_s
    end,
  }
  return fitting
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local list = configurations.all(ctx, inventory.nodes(devices))
  if #list == 0 then
    return nil, "no degrees divide both the devices and the global batch"
  end
  local fitting
  if ctx.options.search == "anneal" then
    fitting = annealed(ctx, list)
  else
    fitting = pipeline.within_bound(list, ctx.options.tries,
      function(configuration) return pipeline.evaluate(ctx, configuration) end)
  end
  if #fitting == 0 then
    return nil, reasons.too_small(ctx, list[1].order, "no choice of degrees")
  end
  return candidates.best(fitting, ctx.options.tries)
end

--- Seconds of the slowest all-reduce of a stage's gradients: over the first devices of its tensor
-- groups in all replicas, with the bytes of the replica that has most.
local function all_reduce_s(made, ctx)
  local kinds = prices.kinds(ctx)
  local groups = {}
  for _, replica in ipairs(made.replicas) do
    for s, stage in ipairs(replica.stages) do
      local ids = ctx.cluster:ids(stage.devices)
      local chain = prices.chain(ctx, kinds[ids[1]], { tp = stage.tp, micro_batch = 1 })
      groups[s] = groups[s] or { heads = {}, bytes = 0 }
      for i = 1, #ids, stage.tp do
        table.insert(groups[s].heads, ids[i])
      end
      groups[s].bytes = math.max(groups[s].bytes,
        prices.gradient_bytes(ctx, chain, stage.layers[1] + 1, stage.layers[2]))
    end
  end
  local longest_s = 0
  for _, group in ipairs(groups) do
    longest_s = math.max(longest_s, links.ring(ctx, group.heads, group.bytes))
  end
  return longest_s
end

--- The equation of section 3.3 on the plan's own figures; each transfer between stages counts once.
local function claim(made, ctx)
  made = prices.table_of(made)
  local parts = claims.parts(ctx, made)
  local pipeline_s = 0
  for r in ipairs(made.replicas) do
    pipeline_s = math.max(pipeline_s, claims.seconds(parts[r], 1))
  end
  local sync_s = all_reduce_s(made, ctx)
  return {
    iteration_s = pipeline_s + sync_s,
    terms = { pipeline_s = pipeline_s, all_reduce_s = sync_s },
    formula = "sum e + (gas - 1) max stage + cuts + T_dp (AMP, section 3.3)",
    leaves_out = "gradients sent back between stages, the optimizer's step, and links that several "
      .. "stages or replicas share",
  }
end

return {
  api = 1, id = "amp", title = "AMP", kind = "hetero",
  system = "AMP: Automatically Finding Model Parallel Strategies with Heterogeneity Awareness, "
    .. "NeurIPS 2022", year = 2022,
  reference = "arXiv:2210.07297",
  summary = "Degrees, placement of the ranks and uneven layers by one equation with the links' "
    .. "speeds.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "search", type = "choice", choices = { "bound", "anneal" }, default = "bound",
      help = "all choices in order of a lower bound until none can win, or simulated annealing" },
    { key = "budget", type = "integer", default = 300, min = 10, max = 100000,
      help = "number of choices that annealing evaluates" },
    { key = "micro_batch", type = "integer", default = 16, min = 1, max = 4096,
      help = "largest micro-batch of a rank in sequences; powers of two up to it are tried" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "ZeRO stage over replicas, 1: optimizer states, 2: and gradients, 3: and weights" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the formula" },
  },
  plan = plan,
  claim = claim,
}
