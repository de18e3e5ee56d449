-- The layout a user has today, judged as it is: one Megatron grid over the devices in file order.
-- Nothing is searched. Ranks are ordered with tp fastest, then cp, then dp, then pipeline stages.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local reduction = require "reduction"

local DEFAULT_TP_LIMIT = 8

--- The largest tensor degree up to the limit that divides a node and splits every layer.
local function default_tp(ctx)
  local tp = 1
  local node_size = inventory.node_size(inventory.nodes(inventory.priced(ctx)))
  for _, degree in ipairs(numbers.divisors(node_size)) do
    if degree <= DEFAULT_TP_LIMIT and grids.tp_fits(ctx.model:layers(), degree) then
      tp = degree
    end
  end
  return tp
end

--- Tensor and data degree from the options, where 0 stands for the default; nil and a reason where
-- the cluster has too few devices.
local function degrees_of(ctx, n_devices)
  local options = ctx.options
  local tp, dp = options.tp, options.dp
  if tp == 0 then
    tp = default_tp(ctx)
  end
  local group = tp * options.pp * options.cp
  if dp == 0 then
    dp = math.max(1, n_devices // group)
  end
  if group * dp > n_devices then
    return nil, ("tp %d x pp %d x cp %d x dp %d = %d devices, the cluster has %d that can compute "
      .. "in %s"):format(tp, options.pp, options.cp, dp, group * dp, n_devices, ctx.job.precision)
  end
  return tp, dp
end

--- The schedule of the options; an empty one is 1F1B, or interleaved where stages have chunks.
local function schedule_of(options)
  if options.schedule ~= "" then
    return options.schedule
  end
  return options.chunks > 1 and "interleaved" or "1f1b"
end

--- What is recomputed. Runs with FSDP (ZeRO 3) that recompute selectively recompute every second
-- matrix product (torchtitan); the attention core is fused and keeps little anyway.
local function recompute_of(options)
  if options.recompute == "selective" and options.zero == 3 then
    return "up+act"
  end
  return options.recompute
end

local function plan(ctx)
  local options = ctx.options
  local devices, why = grids.in_order(inventory.priced(ctx), options.order)
  if not devices then
    return nil, why
  end
  if not grids.is_recompute(options.recompute) then
    return nil, ("recompute: expected %s, found '%s'"):format(grids.recompute_words,
      options.recompute)
  end
  if not grids.is_offload(options.offload) then
    return nil, ("offload: expected weights, optimizer or activations joined by commas, found '%s'")
      :format(options.offload)
  end
  local tp, dp = degrees_of(ctx, #devices)
  if not tp then
    return nil, dp
  end
  local counts
  counts, why = grids.layer_counts(#ctx.model:layers(), options.pp, options.chunks, options.layers)
  if not counts then
    return nil, why
  end
  local micro_batches
  micro_batches, why = grids.micro_batches(ctx.job.global_batch, dp, options.micro_batch)
  if not micro_batches then
    return nil, why
  end
  local ids = {}
  for i, device in ipairs(devices) do
    ids[i] = device.id
  end
  local made = grids.plan(ctx, {
    ids = ids, tp = tp, cp = options.cp, cp_layout = options.cp_layout, dp = dp, pp = options.pp,
    ep = options.ep, chunks = options.chunks, zero = options.zero, counts = counts,
    shard_group = options.shard_group, offload = options.offload,
    recompute = recompute_of(options), schedule = schedule_of(options),
    sequence_parallel = options.sequence_parallel and tp > 1,
    micro_batch = options.micro_batch, micro_batches = micro_batches,
  })
  made.sync.algorithm = options.sync
  made.sync.overlap = reduction.overlaps(options, ctx.job)
  if not options.allow_oom then
    local fits, reason = candidates.judge(made)
    if not fits then
      return nil, reason
    end
  end
  return made
end

return {
  api = 1, id = "manual", title = "Manual layout", kind = "baseline",
  system = "Megatron-LM layout by hand", reference = "arXiv:2104.04473",
  summary = "The layout you have today, judged as it is: the baseline of a comparison.",
  needs = { model = "layers" },
  file_order = true,
  as_given = true,
  options = {
    { key = "tp", type = "integer", default = 0, min = 0, max = 4096,
      help = "tensor-parallel ranks; 0: the largest degree up to 8 that divides node and heads" },
    { key = "pp", type = "integer", default = 1, min = 1, max = 4096, help = "pipeline stages" },
    { key = "dp", type = "integer", default = 0, min = 0, max = 1048576,
      help = "data-parallel ranks; 0: as many as the devices allow" },
    { key = "cp", type = "integer", default = 1, min = 1, max = 4096,
      help = "context-parallel ranks" },
    { key = "cp_layout", type = "choice", default = "zigzag",
      choices = { "contiguous", "zigzag", "striped" },
      help = "how context-parallel ranks share a causal sequence; zigzag balances their work" },
    { key = "ep", type = "integer", default = 1, min = 1, max = 4096,
      help = "expert-parallel ranks, a divisor of dp x cp, or of dp x cp x tp with whole experts" },
    { key = "chunks", type = "integer", default = 1, min = 1, max = 128,
      help = "model chunks per stage (virtual pipeline stages)" },
    { key = "micro_batch", type = "integer", default = 1, min = 1, max = 65536,
      help = "sequences per micro-batch and data-parallel rank" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "ZeRO stage over data ranks, 1: optimizer states, 2: and gradients, 3: and weights" },
    { key = "shard_group", type = "integer", default = 0, min = 0, max = 1048576,
      help = "data ranks that share one ZeRO copy, such as those of a node (HSDP); 0: all" },
    { key = "offload", type = "string", default = "",
      help = "kept in the host's memory: weights, optimizer, activations, joined by commas" },
    { key = "recompute", type = "string", default = "none",
      help = grids.recompute_words .. "; selective under zero 3 is up+act, as in FSDP runs" },
    { key = "sequence_parallel", type = "boolean", default = false,
      help = "shard norms and dropout over the tensor-parallel ranks" },
    { key = "schedule", type = "schedule", default = "",
      help = "schedule, built in or of a plugin; empty: 1f1b, or interleaved with chunks" },
    { key = "layers", type = "string", default = "",
      help = "layers per stage, such as 20,20,24,16; empty: even, with one less in the first and "
        .. "the last stage or one more in the first stages where they do not divide" },
    { key = "order", type = "string", default = "",
      help = "node groups in stage order, such as v,a; empty: file order" },
    { key = "sync", type = "choice", default = "auto",
      choices = { "auto", "ring", "tree", "hierarchical", "nvls", "hfreduce" },
      help = "gradient reduction algorithm" },
    { key = "overlap", type = "choice", default = "auto", choices = { "auto", "yes", "no" },
      help = "reduce gradients beside the backward passes; auto: yes, except in fp16 with zero "
        .. "below 3 (as Megatron-LM and DeepSpeed pipelines did)" },
    { key = "allow_oom", type = "boolean", default = false,
      help = "return the plan even where it does not fit in memory" },
  },
  plan = plan,
}
