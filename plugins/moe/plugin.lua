-- Mixtures of experts: how tokens reach their experts, and how these compute. One search over
-- degrees, micro-batch and recomputation (degrees) for all systems; each fixes its exchange and its
-- kernels, and decides what its publication decides (knobs.lua).
-- How many experts a token goes to and how wide they are is the model's: gates of one, two or more
-- are none of a plan, and neither are losses that balance them. States of the optimizer are in
-- parts (ZeRO 1) unless the option says otherwise.
local composition = require "composition"
local degrees = require "degrees"
local inventory = require "inventory"
local knobs = require "knobs"
local mixture = require "mixture"
local numbers = require "numbers"
local paper = require "paper"
local prices = require "prices"

--- What the rows of knobs.lua need of a run; nil and the reason where the model has no experts.
local function world_of(ctx)
  local layers, why = mixture.layers(ctx)
  if not layers then
    return nil, why
  end
  return { ctx = ctx, layers = layers, options = ctx.options }
end

--- The first stage of a point, as far as it is known before plans are made.
local function first_stage(ctx, ids, point)
  return { devices = ctx.cluster:address(numbers.slice(ids, 1, point.tp * point.dp)),
    tp = point.tp, dp = point.dp, ep = point.ep, layers = { 0, ctx.model.n_layers } }
end

--- Whether a system has a point, and why not.
local function fits(world, own, ids, point)
  if point.dp < 2 then
    return false, "no degrees leave two data-parallel ranks on these devices with this batch"
  elseif own.fits and not own.fits(world, point) then
    return false
  end
  if own.stage_fits then
    local ok, why = own.stage_fits(world, point, first_stage(world.ctx, ids, point),
      point.micro_batch * point.dp)
    return ok, why, 1
  end
  return true
end

--- The search of a system: its axes, and how its knobs enter a plan.
local function search_of(ctx, world)
  local own = knobs[ctx.system.id]
  local ids = {}
  for i, device in ipairs((inventory.priced(ctx))) do
    ids[i] = device.id
  end
  local spec = degrees.axes(ctx, { tp = degrees.tensor(ctx), pp = mixture.depths(ctx),
    ep = own.ep and own.ep(world) or mixture.degrees(world.layers, own.shards) })
  if own.knobs then
    function spec.knobs(point)
      return own.knobs(world, point)
    end
  end
  spec.refine = own.refine
  function spec.fits(point)
    return fits(world, own, ids, point)
  end
  function spec.stage(point, stage)
    stage.zero = point.knob.zero or (ctx.options.zero > 0 and ctx.options.zero or nil)
    stage.moe = own.moe(world, stage, point.micro_batch * point.dp, point.knob)
    stage.ep = stage.ep or ctx.system.sets.ep -- also where it is what a plan has without it
  end
  function spec.plan(_, plan)
    if own.plan then
      own.plan(world, plan)
    end
  end
  return spec
end

local function plan(ctx)
  local world, why = world_of(ctx)
  if not world then
    return nil, why
  end
  return degrees.plan(ctx, search_of(ctx, world))
end

--- The plan of another strategy with the system's exchange and kernels.
local function apply(made, ctx)
  local world, why = world_of(ctx)
  local clash = composition.clash(ctx)
  if not world or clash then
    return nil, why or clash
  end
  local own = knobs[ctx.system.id]
  local changed, reason = mixture.apply(prices.table_of(made), function(stage, micro_batch)
    return own.moe(world, stage, micro_batch, own.usual or {})
  end, own.alone)
  if changed and own.plan then
    own.plan(world, changed)
  end
  return changed, reason
end

local function capacity(default, help)
  return { key = "capacity", type = "number", default = default, min = 0, max = 1000, help = help }
end

local SEARCHED = { "degrees", "micro-batch", "recomputation" }

--- What all systems search, and more.
local function searches(...)
  local list = table.move(SEARCHED, 1, #SEARCHED, 1, {})
  for _, what in ipairs { ... } do
    list[#list + 1] = what
  end
  return list
end

return {
  api = 1, kind = "experts", needs = { model = "layers" }, effort = "quick",
  options = mixture.options(), plan = plan, apply = apply, claim = paper.claim,
  systems = {
    {
      id = "gshard", title = "GShard", year = 2021, venue = "ICLR",
      system = "GShard: Scaling Giant Models with Conditional Computation and Automatic Sharding",
      reference = "arXiv:2006.16668",
      summary = "Experts on devices, places for an even share of each rank's tokens, dispatched by "
        .. "one-hot products; a micro-batch is one group, top-k is the model's.",
      sets = { ["moe.kernel"] = "padded", ["moe.all_to_all"] = "flat", ["moe.min_capacity"] = 4,
        ["moe.dispatch"] = "one_hot" },
      searches = searches(),
      options = mixture.options { capacity(1, "places of an expert over its even share") },
      verified = { "places of a group", "least places", "balanced loss", "places by the judge" },
    },
    {
      id = "switch", title = "Switch Transformer", year = 2022, venue = "JMLR",
      system = "Switch Transformers: Scaling to Trillion Parameter Models with Simple and "
        .. "Efficient Sparsity",
      reference = "arXiv:2101.03961",
      summary = "Experts, data and model parallelism with places for 1.25 times the even share; "
        .. "how many experts a token goes to is the model's.",
      sets = { ["moe.kernel"] = "padded", ["moe.all_to_all"] = "flat" },
      searches = searches(),
      options = mixture.options { capacity(1.25, "places of an expert over its even share") },
      verified = { "places", "dropped", "loss", "dropped by the judge" },
    },
    {
      id = "tutel", title = "Tutel", year = 2023, venue = "MLSys",
      system = "Tutel: Adaptive Mixture-of-Experts at Scale",
      reference = "arXiv:2206.03382",
      summary = "Chooses exchange, chunks and parallelism of experts; as many places as needed.",
      sets = { ["moe.kernel"] = "padded" },
      searches = searches("exchange: flat or in two hops", "chunks",
        "tokens to experts, shards of experts, or experts to tokens"),
      options = mixture.options {
        capacity(0, "places over the even share; 0: those of the fullest") },
      verified = { "places, aligned", "places of one", "messages", "1 MB: flat [D]",
        "1 MB: two hops [D]", "64 MB: flat [D]", "64 MB: two hops [D]", "1 GB: flat [D]",
        "1 GB: two hops [D]", "two hops below 256 MB, flat above [D]" },
    },
    {
      id = "dsmoe", title = "DeepSpeed-MoE", year = 2022, venue = "ICML",
      system = "DeepSpeed-MoE: Advancing Mixture-of-Experts Inference and Training to Power "
        .. "Next-Generation AI Scale",
      reference = "arXiv:2201.05596",
      summary = "Each layer shares its experts over as many ranks as it has; exchanges by nodes, "
        .. "or among ranks of equal place in their tensor groups.",
      sets = { ["moe.kernel"] = "padded", ["moe.min_capacity"] = 4 },
      searches = searches("expert degree by layer", "exchange: hierarchical or coordinated"),
      options = mixture.options { capacity(1, "places of an expert over its even share") },
      verified = { "steps of a coordinated exchange", "ranks by layer [D]",
        "degrees by layer through the judge" },
    },
    {
      id = "scattermoe", title = "ScatterMoE", year = 2024,
      system = "Scattered Mixture-of-Experts Implementation", reference = "arXiv:2403.08245",
      summary = "Products that read and write tokens where they are; every rank has all experts.",
      sets = { ["moe.kernel"] = "scatter", ep = 1 }, searches = searches("stage of ZeRO: 1 or 3"),
      options = degrees.options { "tp", "pp" },
      verified = { "gathered copy of blocks [D]", "rows [D]", "rows by the judge [D]" },
    },
    {
      id = "megablocks", title = "MegaBlocks", year = 2023, venue = "MLSys",
      system = "MegaBlocks: Efficient Sparse Training with Mixture-of-Experts",
      reference = "arXiv:2211.15841",
      summary = "No token is dropped: block-sparse products of 128 rows.",
      sets = { ["moe.kernel"] = "block", ["moe.capacity_factor"] = 0 },
      searches = searches("shards of experts"),
      verified = { "rows", "dropped at a factor of 1", "rows at a factor of 1",
        "rows of the widest", "rows by the judge", "rows of the widest by the judge" },
    },
    {
      id = "pipemoe", title = "PipeMoE", year = 2023, venue = "INFOCOM",
      system = "PipeMoE: Accelerating Mixture-of-Experts through Adaptive Pipelining",
      reference = "doi:10.1109/INFOCOM53939.2023.10228874",
      summary = "Chunks of dispatch, experts and combine by a fitted model, each way its own.",
      sets = { ["moe.all_to_all"] = "flat" }, searches = searches("chunks forward and backward"),
      verified = { "chunks of 1, 2, 4, 8, 12 [D]", "best chunks [D]", "bound by exchanges [D]",
        "chunks by the judge [D]" },
    },
    {
      id = "schemoe", title = "ScheMoE", year = 2024, venue = "EuroSys",
      system = "ScheMoE: An Extensible Mixture-of-Experts Distributed Training System with Tasks "
        .. "Scheduling",
      reference = "doi:10.1145/3627703.3650083",
      summary = "Sends inside and between nodes at once; with a ratio above 1, which loses "
        .. "precision, compressed where that is faster: only then chunks have its optimal order.",
      sets = { ["moe.all_to_all"] = "pipe" },
      searches = searches("chunks", "compression where a ratio is given"),
      options = mixture.options {
        { key = "ratio", type = "number", default = 1, min = 1, max = 64,
          help = "bytes over those that are sent; 1: nothing is compressed" },
        { key = "GBps", type = "number", default = 500, min = 1, max = 1e6,
          help = "bytes per second that a device compresses or decompresses, in GB/s" },
      },
      verified = { "OptSche: two chunks", "one chunk", "no order is faster",
        "inside and outside at once, PCIe", "inside and outside at once, NVLink",
        "at once by the judge",
        "OptSche: two chunks, by the judge", "one chunk, by the judge" },
    },
    {
      id = "lina", title = "Lina", year = 2023, venue = "USENIX ATC",
      system = "Accelerating Distributed MoE Training and Inference with Lina",
      reference = "arXiv:2210.17223",
      summary = "Exchanges of tokens go before reductions, in chunks of 30 MB (unverified); "
        .. "experts are packed until they hide their exchange. Its inference is left out.",
      sets = { ["sync.priority"] = "after_all_to_all" },
      searches = searches("experts of a device", "chunks"),
      options = mixture.options { { key = "chunk_MB", type = "number", default = 30, min = 0.1,
        max = 1e5, help = "size of a micro-operation in MB" } },
      verified = { "first come first served [D]", "exchanges first [D]", "experts of a device [D]",
        "first come first served, by the judge [D]", "exchanges first, by the judge [D]" },
    },
    {
      id = "janus", title = "Janus", year = 2023, venue = "SIGCOMM",
      system = "Janus: A Unified Distributed Training Framework for Sparse Mixture-of-Experts "
        .. "Models",
      reference = "doi:10.1145/3603269.3604869",
      summary = "Layer by layer, experts move to tokens where that sends less than tokens to them.",
      sets = { ["moe.all_to_all"] = "flat" },
      searches = searches("experts or tokens by layer", "how early experts set out"),
      verified = { "R of 32 sequences", "R of 128 sequences", "R of four experts a token",
        "elements of tokens", "elements of experts", "wins where R is above 1" },
    },
    {
      id = "tamoe", title = "TA-MoE", year = 2022, venue = "NeurIPS",
      system = "TA-MoE: Topology-Aware Large Scale Mixture-of-Expert Training",
      reference = "arXiv:2302.09915",
      summary = "The gate's target by a program over the links, or, where the job's routing says "
        .. "what tokens want, a limit on what leaves a node.",
      sets = { ["moe.all_to_all"] = "flat" }, searches = searches("shares from rank to rank"),
      options = mixture.options { { key = "off_node", type = "number", default = -1, min = -1,
        max = 1,
        help = "tokens that may leave their node, if the job has a routing; -1: by the target" } },
      verified = { "shares of two pairs", "the program agrees", "slowest pair", "penalties",
        "shares by the judge" },
    },
    {
      id = "fastmoe", title = "FastMoE", year = 2021,
      system = "FastMoE: A Fast Mixture-of-Expert Training System", reference = "arXiv:2103.13262",
      summary = "Experts shared over ranks, every token sent and computed.",
      sets = { ["moe.kernel"] = "grouped", ["moe.all_to_all"] = "flat",
        ["moe.capacity_factor"] = 0 },
      searches = searches(),
      verified = { "the busiest worker", "bytes to the busiest worker", "busiest by the judge" },
    },
  },
}
