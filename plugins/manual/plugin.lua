--- The layout a user has today, judged as it is: one Megatron grid over the devices in file order.
-- Nothing is searched. Rank order: tp fastest, then cp, then dp, pipeline stages slowest.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"

local function options_or_defaults(ctx, world)
  local o = ctx.options
  local tp = o.tp
  if tp == 0 then -- as much of a node as the attention heads allow, eight at most
    tp = 1
    local node = inventory.node_size(inventory.nodes(inventory.priced(ctx)))
    for _, d in ipairs(numbers.divisors(node)) do
      if d <= 8 and grids.tp_fits(ctx.model:layers(), d) then
        tp = d
      end
    end
  end
  local group = tp * o.pp * o.cp
  return tp, o.dp > 0 and o.dp or math.max(1, world // group), group
end

--- Are gradients reduced beside the backward passes? Where the user does not say: Megatron-LM and
-- DeepSpeed's pipeline engine did it after the last one in their fp16 years; sharded weights never
-- wait.
local function overlaps(o, job)
  return o.overlap == "yes" or o.overlap == "auto" and (job.precision ~= "fp16" or o.zero == 3)
end

local function plan(ctx)
  local o = ctx.options
  local devices, why = grids.in_order(inventory.priced(ctx), o.order)
  if not devices then
    return nil, why
  elseif not grids.is_recompute(o.recompute) then
    return nil, ("recompute: expected %s, found '%s'"):format(grids.recompute_words, o.recompute)
  end
  local tp, dp, group = options_or_defaults(ctx, #devices)
  if group * dp > #devices then
    return nil, ("tp %d x pp %d x cp %d x dp %d = %d devices, the cluster has %d that can compute "
        .. "in %s"):format(tp, o.pp, o.cp, dp, group * dp, #devices, ctx.job.precision)
  end
  local counts
  counts, why = grids.layer_counts(#ctx.model:layers(), o.pp, o.chunks, o.layers)
  if not counts then
    return nil, why
  end
  local n
  n, why = grids.micro_batches(ctx.job.global_batch, dp, o.micro_batch)
  if not n then
    return nil, why
  end
  local ids = {}
  for i, d in ipairs(devices) do
    ids[i] = d.id
  end
  local schedule = o.schedule
  if schedule == "" then
    schedule = o.chunks > 1 and "interleaved" or "1f1b"
  end
  local recompute = o.recompute
  if recompute == "selective" and o.zero == 3 then
    -- FSDP runs say "selective" of products: torchtitan keeps every second one; the attention core
    -- is fused and keeps next to nothing anyway
    recompute = "up+act"
  end
  local made = grids.plan(ctx, {
    ids = ids, tp = tp, cp = o.cp, cp_layout = o.cp_layout, dp = dp, pp = o.pp, ep = o.ep,
    chunks = o.chunks, zero = o.zero, counts = counts, recompute = recompute, schedule = schedule,
    sequence_parallel = o.sequence_parallel and tp > 1,
    micro_batch = o.micro_batch, micro_batches = n,
  })
  made.sync = { kind = "allreduce", algorithm = o.sync, overlap = overlaps(o, ctx.job) }
  if not o.allow_oom then
    local fits, reason = candidates.judge(made)
    if not fits then
      return nil, reason
    end
  end
  return made
end

--- Self-test: the arithmetic of the grid, without a cluster.
local function selftest(t)
  local src = "arithmetic"
  local c = grids.layer_counts(9, 4, 1, "")
  t.equal("9 layers on 4 stages", table.concat(c, ","), "3,2,2,2", src)
  t.equal("126 layers on 16 stages", table.concat(grids.layer_counts(126, 16, 1, ""), ","),
    "7," .. ("8,"):rep(14) .. "7", "Llama 3, section 3.3.2: first and last stage one layer less")
  c = grids.layer_counts(80, 4, 1, "20,20,24,16")
  t.equal("counts given", table.concat(c, ","), "20,20,24,16", src)
  t.equal("counts over chunks", table.concat(grids.layer_counts(10, 2, 2, "6,4"), ","), "3,2,3,2",
    src)
  t.ok("a wrong sum is refused", grids.layer_counts(80, 4, 1, "20,20,20,21") == nil, src)
  t.ok("recompute units", grids.is_recompute("core+act") and grids.is_recompute("full"), src)
  t.ok("unknown units", not grids.is_recompute("core+foo") and not grids.is_recompute(""), src)
  t.ok("fp16 reduces after the last backward", not overlaps({ overlap = "auto", zero = 1 },
    { precision = "fp16" }), src)
  t.ok("bf16 and sharded weights beside it", overlaps({ overlap = "auto", zero = 0 },
    { precision = "bf16" }) and overlaps({ overlap = "auto", zero = 3 }, { precision = "fp16" }),
    src)
  t.ok("as told", overlaps({ overlap = "yes", zero = 0 }, { precision = "fp16" })
      and not overlaps({ overlap = "no", zero = 3 }, { precision = "bf16" }), src)
  t.equal("micro-batches", grids.micro_batches(256, 4, 2), 32, src)
  local none, why = grids.micro_batches(256, 3, 2)
  t.ok("no whole number", none == nil, src)
  t.ok("the nearest dp is named", why:find("dp 2 or 4", 1, true) ~= nil, src)
  local fake = { cluster = {} }
  function fake.cluster.address(_, ids)
    return table.concat(ids, " ")
  end
  local g = grids.plan(fake, {
    ids = { 1, 2, 3, 4, 5, 6, 7, 8 }, tp = 2, cp = 1, dp = 2, pp = 2, ep = 1, chunks = 2, zero = 0,
    counts = { 3, 2, 3, 2 }, recompute = "none", schedule = "interleaved",
    sequence_parallel = false, micro_batch = 1, micro_batches = 4,
  })
  local first = g.replicas[1].stages[1]
  t.equal("a stage is a block of devices", first.devices, "1 2 3 4", "Megatron-LM rank order")
  t.equal("chunk 2 of stage 1", first.layers[2][1], 5, "interleaved: ranges s, s + pp, …")
  t.equal("sequences entering at once", g.micro_batch, 2, "formats.md: dp inside the stage")
end

return {
  api = 1, id = "manual", title = "Manual layout", kind = "baseline",
  system = "Megatron-LM layout by hand", reference = "arXiv:2104.04473",
  summary = "The layout you have today, judged as it is; the row that others are compared with.",
  needs = { model = "layers" },
  options = {
    { key = "tp", type = "integer", default = 0, min = 0, max = 4096,
      help = "tensor-parallel ranks; 0: as much of a node as the heads allow, 8 at most" },
    { key = "pp", type = "integer", default = 1, min = 1, max = 4096, help = "pipeline stages" },
    { key = "dp", type = "integer", default = 0, min = 0, max = 1048576,
      help = "data-parallel ranks; 0: what the devices leave" },
    { key = "cp", type = "integer", default = 1, min = 1, max = 4096,
      help = "context-parallel ranks" },
    { key = "cp_layout", type = "choice", default = "zigzag",
      choices = { "contiguous", "zigzag", "striped" },
      help = "how context-parallel ranks share a causal sequence; zigzag balances their work" },
    { key = "ep", type = "integer", default = 1, min = 1, max = 4096,
      help = "expert-parallel ranks; divides dp x cp, or dp x cp x tp with experts left whole" },
    { key = "chunks", type = "integer", default = 1, min = 1, max = 128,
      help = "model chunks per stage (virtual pipeline stages)" },
    { key = "micro_batch", type = "integer", default = 1, min = 1, max = 65536,
      help = "sequences per micro-batch and data-parallel rank" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "sharded over data-parallel ranks: 1 optimizer, 2 and gradients, 3 and weights" },
    { key = "recompute", type = "string", default = "none",
      help = grids.recompute_words .. "; selective under zero 3 means up+act, as FSDP runs do it" },
    { key = "sequence_parallel", type = "boolean", default = false,
      help = "shard norms and dropout over the tensor-parallel ranks" },
    { key = "schedule", type = "schedule", default = "",
      help = "schedule name, also of a plugin with order(p); empty: 1f1b, with chunks interleaved" },
    { key = "layers", type = "string", default = "",
      help = "layers per stage, 20,20,24,16; empty: even; first and last one less, or else the "
        .. "first ones one more" },
    { key = "order", type = "string", default = "",
      help = "node groups in stage order, v,a; empty: file order" },
    { key = "sync", type = "choice", default = "auto",
      choices = { "auto", "ring", "tree", "hierarchical", "nvls", "hfreduce" },
      help = "gradient reduction algorithm" },
    { key = "overlap", type = "choice", default = "auto", choices = { "auto", "yes", "no" },
      help = "reduce gradients beside the backward passes; auto: not in fp16 with zero below 3, as "
        .. "Megatron-LM and DeepSpeed pipelines ran" },
    { key = "allow_oom", type = "boolean", default = false,
      help = "judge the plan even where it does not fit in memory" },
  },
  plan = plan,
  selftest = selftest,
}
