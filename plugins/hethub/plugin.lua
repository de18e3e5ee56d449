-- HetHub (Xu et al., arXiv 2405.16256): one model over groups of accelerators of several vendors.
-- Section 3: only the pipeline crosses the boundary between them (point to point, by the fast path
-- or through hosts), tensor and data parallelism stay inside a type. A predictor works with the
-- times of one layer per type and degree; stages get layers by the speed of their type within their
-- memory, in the order of types that is predicted to be fastest. Where all devices share one
-- fabric, data parallelism may cross types instead.
local candidates = require "candidates"
local choices = require "choices"
local claims = require "claims"
local inventory = require "inventory"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"

local function plan(ctx)
  local devices, why = inventory.usable(ctx, true)
  if not devices then
    return nil, why
  end
  local types = inventory.types(devices)
  local one_fabric = #inventory.priced(ctx) >= #devices
  local list = choices.of(ctx, types, one_fabric)
  if #list == 0 then
    return nil, ("no degrees divide %s and the batch"):format(inventory.kinds_text(devices))
  end
  local fitting = pipeline.within_bound(list, ctx.options.tries,
    function(choice) return pipeline.evaluate(ctx, choice) end)
  if #fitting == 0 then
    return nil, reasons.too_small(ctx, devices, "no chain of " .. #types .. " types")
  end
  return candidates.best(fitting, ctx.options.tries)
end

--- The predictor on a plan: Eq-P with hops there and back, and the exposed all-reduce. Beside it
-- the paper's measure: the rate of the plan as a share of the sum of what the types reach when no
-- stage waits for another.
local function claim(made, ctx)
  made = prices.table_of(made)
  local parts, all_reduce_s = claims.parts(ctx, made)
  local pipeline_s = 0
  local micro_batches = 0
  local rate = 0 -- micro-batches per second when no stage waits
  for r, part in ipairs(parts) do
    local count = made.replicas[r].count
    pipeline_s = math.max(pipeline_s, claims.seconds(part))
    micro_batches = micro_batches + count * part.micro_batches
    rate = rate + count * #part.stage_s / part.sum_s
  end
  local iteration_s = pipeline_s + all_reduce_s
  return {
    iteration_s = iteration_s,
    terms = { pipeline_s = pipeline_s, all_reduce_s = all_reduce_s,
      of_bound_frac = micro_batches / rate / iteration_s },
    formula = "Eq-P over stages by type + hops + all-reduce (HetHub, section 3)",
    leaves_out = "the optimizer's step, the overlap of gradients with the backward pass, and links "
      .. "that several stages or replicas share",
  }
end

return {
  api = 1, id = "hethub", title = "HetHub", kind = "hetero",
  system = "HETHUB: A Distributed Training System with Heterogeneous Cluster for Large-Scale "
    .. "Models, 2024", year = 2024,
  reference = "arXiv:2405.16256",
  summary = "The pipeline crosses types and vendors; layers by the speed of each type, degrees per "
    .. "type.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "cross", type = "choice", choices = { "auto", "pipeline", "data" }, default = "auto",
      help = "what crosses the boundary between types: the pipeline, data parallelism, or the "
        .. "better of them" },
    { key = "micro_batch", type = "integer", default = 8, min = 1, max = 64,
      help = "largest micro-batch of a rank" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "number of valid plans that are simulated, least claimed time first" },
  },
  plan = plan,
  claim = claim,
}
