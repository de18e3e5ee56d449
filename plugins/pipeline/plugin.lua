-- Pipeline parallelism: which micro-batch runs when on which chunk. One search over degrees,
-- chunks, micro-batch and recomputation (degrees) for all systems; each has its own orders (knobs),
-- and the layers are cut exactly within the memory of what its order keeps alive (cut).
-- The publications assume equal layers and devices, and but for ptdp, bfpp and chimera leave the
-- degrees to the user: here all are searched.
local applied = require "applied"
local cut = require "cut"
local degrees = require "degrees"
local formulas = require "formulas"
local inventory = require "inventory"
local knobs = require "knobs"
local orders = require "orders"
local paper = require "paper"
local reasons = require "reasons"
local work = require "work"

--- Why the system cannot run this model; nil where it can.
local function unfit(ctx)
  return ctx.system.id == "seq1f1b" and reasons.unsliced(ctx) or nil
end

--- What the knobs of a point depend on besides it.
local function about_run(ctx)
  local about = { node_size = inventory.node_size(inventory.nodes((inventory.priced(ctx)))) }
  local lin, quad
  function about.slices(k, multiple)
    if not lin then
      lin, quad = work.of_model(ctx)
    end
    if ctx.job.sequence // k < math.max(1, multiple) then
      return nil
    end
    return formulas.whole(formulas.slices(ctx.job.sequence, k, lin, quad, multiple))
  end
  return about
end

--- The knobs that can be laid out at a point; nil and the reason where none can.
local function knobs_at(own, point, about)
  local fits, why = own.of(point, about)
  local list = {}
  for _, knob in ipairs(fits or {}) do
    point.knob = knob
    local facts, reason = orders.facts(point)
    why = why or reason
    if facts then
      list[#list + 1] = knob
    end
  end
  point.knob = nil
  return list, why
end

--- The schedules tried on the best plan, where they can be laid out: `refine` of degrees.search.
local function refinement(own)
  local function values(point)
    local list = {}
    for _, schedule in ipairs(own.refine(point)) do
      if orders.facts(setmetatable({ knob = { schedule = schedule } }, { __index = point })) then
        list[#list + 1] = schedule
      end
    end
    return list
  end
  return own.refine and { { knob = "schedule", values = values } }
end

--- The search of a system: its axes, and how its knobs enter a plan.
local function search_of(ctx)
  local own, about = knobs[ctx.system.id], about_run(ctx)
  local spec = degrees.axes(ctx, { tp = degrees.tensor(ctx), pp = degrees.depths(ctx),
    chunks = own.chunks })
  function spec.fits(point)
    if point.pp < 2 then
      return false, "no degrees leave two stages on these devices"
    end
    local list, why = knobs_at(own, point, about)
    return #list > 0, why, 1
  end
  function spec.knobs(point)
    return (knobs_at(own, point, about))
  end
  spec.in_flight, spec.passes = orders.alive_at_least, orders.passes
  spec.refine = refinement(own)
  function spec.stage(point, stage, s)
    local function places(_, at)
      return knobs.place(point, at)
    end
    stage.layers = orders.layers(point, cut.counts(ctx, point, places), s)
    stage.devices = ctx.cluster:address(knobs.place(point, s))
    if point.knob.zero then
      stage.zero = { stage = point.knob.zero, unit = point.knob.unit }
    end
  end
  function spec.plan(point, plan)
    plan.schedule = point.knob.schedule
  end
  return spec
end

local function plan(ctx)
  local why = unfit(ctx)
  if why then
    return nil, why
  end
  return degrees.plan(ctx, search_of(ctx))
end

--- Another strategy's plan with the system's schedule.
local function apply(made, ctx)
  local about, why = about_run(ctx), unfit(ctx)
  if why then
    return nil, why
  end
  return applied.apply(made, ctx, function(own, point)
    return knobs_at(own, point, about)
  end)
end

local SEARCHED = { "degrees", "micro-batch", "recomputation", "layers per stage" }

--- What all systems search, and these.
local function searches(...)
  local list = table.move(SEARCHED, 1, #SEARCHED, 1, {})
  return table.move({ ... }, 1, select("#", ...), #list + 1, list)
end

local chunked = degrees.options { "tp", "pp", "chunks" }

return {
  api = 1, kind = "pipeline", needs = { model = "layers" }, effort = "quick",
  options = degrees.options { "tp", "pp" },
  plan = plan, apply = apply, claim = paper.claim,
  systems = {
    {
      id = "gpipe", title = "GPipe", year = 2019, venue = "NeurIPS",
      system = "GPipe: Efficient Training of Giant Neural Networks using Pipeline Parallelism",
      reference = "arXiv:1811.06965",
      summary = "All forward passes, then all backward passes; stages by exact cut.",
      sets = { ["schedule.name"] = "gpipe" }, searches = searches(),
      verified = { "makespan and bubble, four stages", "makespan with recomputation",
        "by the judge", "by the judge with recomputation" },
    },
    {
      id = "ptdp", title = "Megatron-LM PTD-P", year = 2021, venue = "SC",
      system = "Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM",
      reference = "arXiv:2104.04473",
      options = chunked,
      summary = "Tensor, pipeline and data degrees; 1F1B over interleaved chunks.",
      searches = searches("chunks", "interleaved, or 1f1b with one chunk"),
      verified = { "parameters of GPT-3", "FLOP of an iteration", "days for GPT-3",
        "days for a trillion parameters", "bubble with 1, 2 and 4 chunks",
        "bubble by the judge, 1, 2 and 4 chunks", "bytes between stages" },
    },
    {
      id = "zb", title = "Zero Bubble", year = 2024, venue = "ICLR",
      system = "Zero Bubble Pipeline Parallelism", reference = "arXiv:2401.10241",
      options = chunked,
      summary = "Backward passes in two; weight gradients fill the bubbles, as memory allows. "
        .. "Validation behind the optimizer's step is not simulated.",
      searches = searches("variant: zb-h1, zb-h2, zb-1p, zb-2p or zb-v"),
      verified = { "bubbles of 1f1b, zb-h1 and zb-h2", "longest spans with W = 2",
        "bubbles in the orders", "by the judge", "zero bubble against 1f1b" },
    },
    {
      id = "chimera", title = "Chimera", year = 2021, venue = "SC",
      system = "Chimera: Efficiently Training Large-Scale Neural Networks with Bidirectional "
        .. "Pipelines", reference = "arXiv:2107.06925",
      summary = "Pipelines in both directions, each in the bubbles of the other; several copies of "
        .. "the weights.",
      sets = { ["schedule.name"] = "chimera" }, searches = searches("pipelines", "mode"),
      verified = { "bubble ratio, D = N = 4", "slots with equal passes",
        "slots with backward passes twice as long", "by the judge" },
    },
    {
      id = "hanayo", title = "Hanayo", year = 2023, venue = "SC",
      system = "Hanayo: Harnessing Wave-like Pipeline Parallelism for Enhanced Large Model "
        .. "Training Efficiency", reference = "arXiv:2308.15762", options = chunked,
      summary = "Waves over the devices and back: Chimera's bubble with one copy of the weights.",
      sets = { ["schedule.name"] = "hanayo" }, searches = searches("waves"),
      verified = { "devices of the chunks [D]", "makespan with 1, 2 and 4 waves [D]",
        "lower bounds [D]", "ratios as recalled [U]", "by the judge, 1, 2 and 4 waves [D]" },
    },
    {
      id = "ctrlmem", title = "Controllable memory (V schedules)", year = 2024, venue = "NeurIPS",
      system = "Pipeline Parallelism with Controllable Memory", reference = "arXiv:2405.15362",
      summary = "Two chunks per device in a V; from a third of 1F1B's activations to no bubble.",
      searches = searches("variant of two chunks: v-min, v-half, zb-v or v-adaptive",
        "memory limit"),
      verified = { "nominal bubbles, p = 8, m = 32", "bubbles of the orders",
        "activations of the orders", "bubbles by the judge", "activations by the judge" },
    },
    {
      id = "bfpp", title = "Breadth-first pipeline", year = 2023, venue = "MLSys",
      system = "Breadth-First Pipeline Parallelism", reference = "arXiv:2211.05953",
      options = chunked,
      summary = "All micro-batches through a chunk before the next; sharded weights are gathered "
        .. "once per pass.",
      sets = { ["schedule.name"] = "breadth-first" },
      searches = searches("chunks", "whole, optimizer's or all states in parts"),
      verified = { "bubbles with 4 chunks and 1", "bubbles by the judge",
        "sharded on slow links: before interleaving", "not sharded: no gain" },
    },
    {
      id = "seq1f1b", title = "Seq1F1B", year = 2024,
      system = "Seq1F1B: Efficient Sequence-Level Pipeline Parallelism for Large Language Model "
        .. "Training", reference = "arXiv:2406.03488",
      summary = "1F1B over slices of a sequence that are cut to equal work.",
      sets = { ["schedule.name"] = "seq1f1b" }, searches = searches("slices"),
      verified = { "slices of the published configuration", "their shares of the work",
        "attention alone", "activations alive", "equal slices by the judge",
        "long sequences: equal work before equal lengths" },
    },
    {
      id = "bpipe", title = "BPipe", year = 2023, venue = "ICML",
      system = "BPipe: Memory-Balanced Pipeline Parallelism for Training Large Language Models",
      reference = "PMLR 202:16639",
      summary = "1F1B; early stages keep activations on late ones, in pairs within a node.",
      sets = { ["schedule.name"] = "bpipe" }, searches = searches("pairs within nodes"),
      verified = { "kept with 8, 4 and 16 stages [D]", "kept in the order [D]",
        "most kept by the judge, with what is on the way [D]", "pairs on one node" },
    },
  },
}
