-- FlashFlex (Yan et al., arXiv 2409.01143; HexiScale): pipelines that differ in stages, tensor
-- degrees and layers. Section 4: the graph of devices is cut into pipelines by inverse bandwidth,
-- so that gradients travel on fast links, and each pipeline into stages by bandwidth; stages are
-- ordered along the heaviest path, the devices of each machine choose their tensor degrees, and
-- layers follow memory; a seeded walk over the numbers of pipelines and stages refines this. Unless
-- the option `paper` is set, layers then follow speed, and stages are merged, split, swapped or
-- left out as long as the paper's own objective falls (the best plan known for its sample leaves
-- two GPUs out).
local candidates = require "candidates"
local device_graph = require "device_graph"
local formula = require "formula"
local inventory = require "inventory"
local numbers = require "numbers"
local pipeline_search = require "pipeline_search"
local prices = require "prices"
local problem = require "problem"
local reasons = require "reasons"

-- Atoms from which on fewer cuts are tried and the first plan is reported at once.
local MANY_ATOMS = 64
-- Plans of one micro-batch and recomputation that become candidates.
local MOST_PER_SETTING = 6
-- Evaluations of the descent per pipeline.
local DESCENT_BUDGET = 30

--- The plan of pipelines.
local function plan_of(ctx, p, pipelines, setting)
  local replicas = {}
  for r, pipeline in ipairs(pipelines) do
    local stages = {}
    local first = 0
    for s, stage in ipairs(pipeline) do
      local ids = {}
      for i, d in ipairs(stage.devices) do
        ids[i] = p.ids[d]
      end
      local keys = { tp = #ids, recompute = setting.recompute, zero = 0,
        sequence_parallel = #ids > 1 }
      stages[s] = prices.stage_keys(keys, { devices = ctx.cluster:address(ids),
        layers = { first, first + stage.layers } })
      first = first + stage.layers
    end
    replicas[r] = { micro_batches = pipeline.micro_batches, stages = stages }
  end
  return { micro_batch = setting.micro_batch, replicas = replicas,
    schedule = { name = "1f1b" } }
end

--- Reports a plan found without search, in case the time runs out: its seconds, or nil where none
-- fits.
local function report_first(ctx, devices, atoms)
  for _, recompute in ipairs { "none", "full" } do
    local setting = { micro_batch = 1, recompute = recompute }
    local p = problem.of(ctx, devices, setting)
    local found = pipeline_search.run(p, atoms,
      { rounds = 3, budget = 1, seed = ctx.seed, quick = true })
    for _, solution in ipairs(found) do
      local made = plan_of(ctx, p, solution.pipelines, setting)
      local verdict = candidates.judge(made)
      if verdict then
        hv.incumbent(made)
        return verdict.iteration_s
      end
    end
  end
end

--- Reports a plan where it is valid and faster than the one reported before; the seconds of the
-- fastest one.
local function report_better(made, reported_s)
  local verdict = candidates.judge(made)
  if verdict and verdict.iteration_s < reported_s then
    hv.incumbent(made)
    return verdict.iteration_s
  end
  return reported_s
end

--- The micro-batches and recomputations that are searched.
local function settings_of(ctx)
  local list = {}
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    if ctx.job.global_batch % micro_batch == 0 then
      list[#list + 1] = { micro_batch = micro_batch, recompute = "none" }
      list[#list + 1] = { micro_batch = micro_batch, recompute = "full" }
    end
  end
  return list
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local whole_nodes = #devices > ctx.options.most
  local atoms = device_graph.atoms(inventory.nodes(devices), whole_nodes)
  local is_large = #atoms > MANY_ATOMS
  local reported_s = is_large and report_first(ctx, devices, atoms) or math.huge
  local search_options = { rounds = math.ceil(ctx.options.rounds / (is_large and 4 or 1)),
    budget = DESCENT_BUDGET, seed = ctx.seed, paper = ctx.options.paper, stopping = hv.stopping }
  local list = {}
  for _, setting in ipairs(settings_of(ctx)) do
    if hv.stopping() then
      break
    end
    local p = problem.of(ctx, devices, setting)
    local found = pipeline_search.run(p, atoms, search_options)
    for k = 1, math.min(#found, MOST_PER_SETTING) do
      local solution = found[k]
      list[#list + 1] = solution
      solution.rank = #list
      function solution.build()
        return plan_of(ctx, p, solution.pipelines, setting)
      end
      if is_large and k == 1 then
        reported_s = report_better(solution.build(), reported_s)
      end
    end
  end
  if #list == 0 then
    return nil, reasons.too_small(ctx, devices, "no set of pipelines without sharded states")
  end
  return candidates.best(list, ctx.options.tries)
end

--- The pipelines of a plan, their devices as positions in cluster:devices().
local function pipelines_of(ctx, made, devices)
  local position = {}
  for i, device in ipairs(devices) do
    position[device.id] = i
  end
  local pipelines = {}
  for r, replica in ipairs(made.replicas) do
    pipelines[r] = { micro_batches = replica.micro_batches }
    for s, stage in ipairs(replica.stages) do
      local own = { devices = {}, layers = stage.layers[2] - stage.layers[1] }
      for i, id in ipairs(ctx.cluster:ids(stage.devices)) do
        own.devices[i] = position[id]
      end
      pipelines[r][s] = own
    end
  end
  return pipelines
end

--- FlashFlex's own objective on the plan.
local function claim(made, ctx)
  made = prices.table_of(made)
  local devices = ctx.cluster:devices()
  local p = problem.of(ctx, devices, { micro_batch = made.micro_batch,
    recompute = made.replicas[1].stages[1].recompute or "none" })
  local total_s, longest_s, gradients_s = formula.total_s(p, pipelines_of(ctx, made, devices))
  return {
    iteration_s = total_s,
    terms = { pipeline_s = longest_s, gradients_s = gradients_s },
    formula = "1.8 longest pipeline by GPipe's map + 1.1 exchange of gradients (FlashFlex, "
      .. "section 4; factors of its code)",
    leaves_out = "the optimizer's step, kernels that reach another share of the peak than the "
      .. "factor 1.8 stands for, and links that several pipelines share",
  }
end

return {
  api = 1, id = "flashflex", title = "FlashFlex", kind = "hetero",
  system = "FlashFlex: Accommodating Large Language Model Training over Heterogeneous "
    .. "Environment, 2024", year = 2024,
  reference = "arXiv:2409.01143",
  summary = "Graph cuts into pipelines that differ in stages, tensor degrees and layers.",
  needs = { model = "transformer" },
  effort = "slow",
  options = {
    { key = "rounds", type = "integer", default = 8, min = 1, max = 1000,
      help = "cuts tried per micro-batch and recomputation; a quarter of them where the cut takes "
        .. "more than 64 devices or nodes" },
    { key = "micro_batch", type = "integer", default = 4, min = 1, max = 64,
      help = "largest micro-batch" },
    { key = "paper", type = "boolean", default = false,
      help = "the steps of the paper only: layers by memory, no descent" },
    { key = "most", type = "integer", default = 32, min = 1, max = 256,
      help = "number of devices up to which the cut takes each alone; above, it takes whole "
        .. "nodes" },
    { key = "tries", type = "integer", default = 16, min = 1, max = 1000,
      help = "number of valid plans that are simulated, least claimed time first" },
  },
  plan = plan,
  claim = claim,
}
