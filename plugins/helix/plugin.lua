-- Helix (Mei et al., ASPLOS'25, arXiv 2406.01566): layers on unequal, far apart GPUs so that most
-- tokens flow through, by a max-flow graph of nodes (which hold runs of layers) and links, in local
-- search or an integer program. Requests go from hop to hop by interleaved weighted round robin
-- over the flow, past nodes whose caches are full to a mark: the simulator of serving does that.
-- With mode = serve its plans do that; else, for a training job, the same graph, and the exchange
-- of gradients over the nodes of a stage, choose among placements that can be trained, where all
-- nodes of a stage hold the same run and share each micro-batch in proportion to their rates.
local inventory = require "inventory"
local prices = require "prices"
local serving = require "serving"
local train = require "train"
local training_flow = require "training_flow"

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local o = ctx.options
  if o.mode == "train" then
    return train.plan(ctx, devices, o)
  end
  local mark
  if o.high_water < 1 then
    mark = o.high_water
  end
  return serving.plan(ctx, devices, {
    budget = o.flows,
    seed = ctx.seed,
    enough = o.enough,
    program_s = o.program_s,
    neighbours = o.neighbours,
    strict = not o.partial,
    mark = mark,
  })
end

--- The max flow of the plan's own stages.
local function claim(made, ctx)
  made = prices.table_of(made)
  local formula = "max flow over nodes and links (Helix, section 4.3)"
  if made.mode == "serve" then
    local rate, bound = serving.claim(ctx, made)
    return { tokens_per_s = rate, terms = { bound_tokens_per_s = bound }, formula = formula,
      leaves_out = "waiting of requests, and caches that are full" }
  end
  local rate = training_flow.of_plan(ctx, made)
  return { tokens_per_s = rate, iteration_s = ctx.job.global_batch * ctx.job.sequence / rate,
    formula = formula,
    leaves_out = "filling the pipeline, exchanges of gradients and of tensor groups, links that"
      .. " several nodes share" }
end

return {
  api = 1,
  id = "helix",
  title = "Helix",
  kind = "hetero",
  system = "Helix: Serving Large Language Models over Heterogeneous GPUs and Network via Max-Flow,"
    .. " ASPLOS 2025", year = 2025,
  reference = "arXiv:2406.01566",
  summary = "Layers on nodes by max flow: serves, or trains with shares by the nodes' rates.",
  needs = { model = "layers" },
  effort = "medium",
  serves = true,
  options = {
    { key = "mode", type = "choice", choices = { "train", "serve" }, default = "train",
      help = "a plan that trains, or one that serves requests" },
    { key = "flows", type = "integer", default = 300, min = 1, max = 100000,
      help = "serve: max flows computed in the search for a placement, per tensor degree" },
    { key = "enough", type = "number", default = 0.98, min = 0.1, max = 1,
      help = "serve: fraction of the upper bound at which the search ends" },
    { key = "program_s", type = "number", default = 0, min = 0, max = 3600,
      help = "serve: seconds for the paper's integer program, with 24 servers or fewer, below that"
        .. " fraction; 0: not run" },
    { key = "neighbours", type = "integer", default = 12, min = 1, max = 1000,
      help = "serve: widest links out of each server that the integer program keeps" },
    { key = "partial", type = "boolean", default = true,
      help = "serve: partial inference, tokens may enter a server behind its first layer" },
    { key = "high_water", type = "number", default = 0.85, min = 0.01, max = 1,
      help = "serve: fraction of a node's memory for caches above which it gets no request" },
    { key = "zero", type = "integer", default = 1, min = 0, max = 3,
      help = "train: ZeRO stage over a stage's ranks, 1: optimizer states, 2: and gradients, 3: and"
        .. " weights" },
    { key = "tries", type = "integer", default = 36, min = 1, max = 1000,
      help = "train: number of fitting plans that are simulated, in the order of the formula" },
  },
  plan = plan,
  claim = claim,
}
