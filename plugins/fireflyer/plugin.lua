-- Fire-Flyer (An et al., SC'24, arXiv 2408.14158): data parallelism on PCIe nodes without NVLink.
-- HFReduce (section IV): every GPU copies its gradients to host memory, the CPU adds the node's
-- copies, one copy per node goes through a double binary tree over RDMA, and comes back to the
-- GPUs. HaiScale: the tensor degree is at most 2, across an NVLink bridge, and pipelines are laid
-- through the nodes in turns, so that the ranks of a node, which share its NIC, are at different
-- stages.
local candidates = require "candidates"
local claims = require "claims"
local grids = require "grids"
local inventory = require "inventory"
local node_rates = require "node_rates"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local reduction = require "reduction"
local search = require "search"
local staggered = require "staggered"

--- The plan of another strategy with HFReduce.
local function apply(made)
  made = prices.table_of(made)
  made.sync = made.sync or {}
  made.sync.kind = "allreduce"
  made.sync.algorithm = "hfreduce"
  return made
end

--- Pipelines of `depth` stages inside each kind, in staggered order; nil where the tensor degree
-- divides no node or no layer, or where the model has fewer layers.
local function pipelines_of(ctx, types, tp, depth)
  local layers = ctx.model:layers()
  if depth > #layers or not grids.tp_fits(layers, tp) then
    return nil
  end
  for _, type in ipairs(types) do
    if type.size % tp ~= 0 then
      return nil
    end
  end
  local tps, ordered = {}, {}
  for i, type in ipairs(types) do
    tps[i] = tp
    ordered[i] = { kind = type.kind, devices = staggered.order(type, tp) }
  end
  return pipeline.inside(ordered, tps, depth)
end

--- The choice of pipelines and micro-batch with its lower bound, as pipeline.within_bound takes it.
local function choice_of(ctx, rows, micro_batch, zero, outputs)
  for _, row in ipairs(rows) do
    for _, stage in ipairs(row) do
      stage.zero = zero
      stage.holders = #rows
    end
  end
  local choice = {
    list = pipeline.joined(rows),
    pipelines = #rows,
    micro_batch = micro_batch,
    entering = micro_batch,
    total = ctx.job.global_batch // micro_batch,
    outputs = outputs,
    ways = 2,
  }
  pipeline.set(choice.list, micro_batch, "none")
  choice.bound = pipeline.bound(ctx, choice.list, choice.total)
  return choice
end

--- All choices of tensor degree, depth and micro-batch.
local function choices_of(ctx, types, zero)
  local list, batch = {}, ctx.job.global_batch
  local outputs = hv.cost.layers { kinds = { types[1].kind }, micro_batch = 1 }:sizes "output"
  for point in search.product { { 1, 2 }, numbers.powers(64), numbers.powers(8) } do
    local tp, depth, micro_batch = point[1], point[2], point[3]
    local rows = pipelines_of(ctx, types, tp, depth)
    if rows and #rows > 0 and batch % micro_batch == 0 and batch // micro_batch >= #rows then
      list[#list + 1] = choice_of(ctx, rows, micro_batch, zero, outputs)
    end
  end
  return list
end

--- The best plan with this ZeRO stage; nil and the reason.
local function plan_with(ctx, zero)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local tries = ctx.options.tries
  local list = choices_of(ctx, inventory.types(devices), zero)
  local fitting = pipeline.within_bound(list, tries,
    function(choice) return pipeline.evaluate(ctx, choice) end)
  if #fitting == 0 then
    return nil, reasons.too_small(ctx, devices, "no pipeline with tensor degree 1 or 2", "kind")
  end
  for _, choice in ipairs(fitting) do
    local build = choice.build
    function choice.build()
      return apply(build())
    end
  end
  return candidates.best(fitting, tries)
end

local function plan(ctx)
  local made, why = plan_with(ctx, ctx.options.zero)
  if not made and ctx.options.zero == 0 then
    made = plan_with(ctx, 1)
  end
  if made then
    return made
  end
  return nil, why
end

--- Eq-P, and the part of HFReduce that the last backward pass does not hide (HFReduce uses no
-- compute of the GPUs). As a term beside it: a ring over the same wires.
local function claim(made, ctx)
  made = prices.table_of(made)
  local parts = claims.parts(ctx, made)
  local kinds = prices.kinds(ctx)
  local overlaps = not made.sync or made.sync.overlap ~= false
  local pipeline_s, hfreduce_s, exposed_s, ring_s = 0, 0, 0, 0
  for r, replica in ipairs(made.replicas) do
    pipeline_s = math.max(pipeline_s, claims.seconds(parts[r]))
    for s, stage in ipairs(replica.stages) do
      local ids = ctx.cluster:ids(stage.devices)
      local chain, part = prices.shard(ctx, stage, kinds[ids[1]])
      local bytes = part * prices.gradient_bytes(ctx, chain, stage.layers[1] + 1, stage.layers[2])
      local rates, nodes = node_rates.of(ctx, ids)
      local reduce_s = reduction.hfreduce_s(rates, bytes, nodes)
      local hidden_s = 0
      if overlaps then
        hidden_s = prices.stage(ctx, made, r, s).backward_s
      end
      hfreduce_s = math.max(hfreduce_s, reduce_s)
      ring_s = math.max(ring_s, reduction.ring_s(rates, bytes, nodes))
      exposed_s = math.max(exposed_s, reduce_s - hidden_s)
    end
  end
  return { iteration_s = pipeline_s + exposed_s,
    terms = { pipeline_s = pipeline_s, hfreduce_s = hfreduce_s, shown_s = exposed_s,
      ring_s = ring_s },
    formula = "Eq-P + exposed part of HFReduce, whose longest pipelined step sets its time"
      .. " (Fire-Flyer, section IV; rates are options)",
    leaves_out = "the optimizer's step, the sharing of a node's network by several reductions at "
      .. "once, and network rates below those of the inventory" }
end

return {
  api = 1,
  id = "fireflyer",
  title = "Fire-Flyer",
  kind = "hetero",
  system = "Fire-Flyer AI-HPC: A Cost-Effective Software-Hardware Co-Design for Deep Learning,"
    .. " SC 2024", year = 2024,
  reference = "arXiv:2408.14158",
  summary = "Gradients added in host memory, one copy per node through a tree; pipelines in turns"
    .. " over nodes.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "d2h_GBps", type = "number", default = 20, min = 0.1, max = 1000,
      help = "rate of a copy to or from the host, per GPU: used by the formula, not by the "
        .. "simulation" },
    { key = "host_GBps", type = "number", default = 320, min = 1, max = 10000,
      help = "rate of a node's host memory: used by the formula, not by the simulation" },
    { key = "root_GBps", type = "number", default = 0, min = 0, max = 1000,
      help = "rate of a PCIe root port that several GPUs share, 0: none is shared; used by the "
        .. "formula, not by the simulation" },
    { key = "root_shared", type = "integer", default = 2, min = 1, max = 16,
      help = "GPUs on a shared root port: used by the formula, not by the simulation" },
    { key = "pairs", type = "boolean", default = false,
      help = "pairs of GPUs add their gradients over an NVLink bridge before they copy: used by "
        .. "the formula, not by the simulation" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "ZeRO stage over the replicas, 1: optimizer states (also where nothing fits with 0),"
        .. " 2: and gradients, 3: and weights" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the formula" },
  },
  plan = plan,
  apply = apply,
  claim = claim,
}
