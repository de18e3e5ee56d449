-- What the publications' own formulas say of a plan: formulas.lua on the figures of its stages.
local claims = require "claims"
local formulas = require "formulas"
local links = require "links"
local mixture = require "mixture"
local prices = require "prices"

local MiB, GiB = 2 ^ 20, 2 ^ 30

--- Seconds of the forward and of the backward pass of stage s when nothing of it is in parts: what
-- exchanges of ZeRO show in a pass is not its own work.
local function whole_s(ctx, made, s)
  local stage = {}
  for key, value in pairs(made.replicas[1].stages[s]) do
    stage[key] = value
  end
  stage.zero = nil
  local pass = prices.stage(ctx, { micro_batch = made.micro_batch,
    replicas = { { stages = { stage } } } }, 1, 1)
  return pass.forward_s, pass.backward_s
end

--- Figures of stage s: its passes without what ZeRO shows in them, and the devices that reduce
-- together.
local function stage_of(ctx, made, s)
  local stage = made.replicas[1].stages[s]
  local pass = prices.stage(ctx, made, 1, s)
  local forward_s, backward_s = whole_s(ctx, made, s)
  local ids = ctx.cluster:ids(stage.devices)
  local heads = {}
  for i = 1, #ids, (prices.degree(stage)) do
    heads[#heads + 1] = ids[i]
  end
  return { stage = stage, heads = heads, kind = prices.kinds(ctx)[ids[1]], pass = pass,
    forward_s = forward_s, backward_s = backward_s, own_s = forward_s + backward_s,
    from = stage.layers[1] + 1, to = stage.layers[2] }
end

--- Gradients of a stage's layers, the last first, each ready when the backward pass has done it.
local function gradients_of(ctx, made, one)
  local stage, list, ready_s = one.stage, {}, 0
  local query = { tp = stage.tp, micro_batch = math.max(1, made.micro_batch // (stage.dp or 1)),
    recompute = stage.recompute, sequence_parallel = stage.sequence_parallel }
  local chain = prices.chain(ctx, one.kind, query)
  query.kinds = { one.kind }
  local layers = hv.cost.layers(query)
  for l = one.to, one.from, -1 do
    ready_s = ready_s + layers:time(l, l, one.kind, "backward")
    list[#list + 1] = { bytes = prices.gradient_bytes(ctx, chain, l, l), ready_s = ready_s }
  end
  return list, ready_s, chain
end

--- Eq-P of the stages, and the largest of tail(one) = seconds behind the last backward pass.
local function with_tail(ctx, made, tail)
  local own_s, tail_s = {}, 0
  for s in ipairs(made.replicas[1].stages) do
    local one = stage_of(ctx, made, s)
    own_s[s] = one.own_s
    tail_s = math.max(tail_s, tail(one))
  end
  return (claims.pipeline_s(own_s, made.replicas[1].micro_batches)) + tail_s, tail_s
end

--- Claim of systems that reduce buckets beside the backward pass; `pack(gradients)` makes them.
local function overlapped(ctx, made, pack, formula)
  local total_s, tail_s = with_tail(ctx, made, function(one)
    local gradients, backward_s = gradients_of(ctx, made, one)
    local end_s = formulas.end_of(pack(gradients), function(bytes)
      return links.ring(ctx, one.heads, bytes)
    end)
    return math.max(0, end_s - backward_s) + one.pass.optimizer_s
  end)
  return { iteration_s = total_s, terms = { behind_backward_s = tail_s }, formula = formula,
    leaves_out = "latencies of messages, and transfers between stages" }
end

local of = {}

function of.ddp(made, ctx)
  local caps = made.sync.bucket_MiB
  caps = type(caps) == "table" and caps or { caps }
  local bytes = {}
  for i, cap in ipairs(caps) do
    bytes[i] = cap * MiB
  end
  return overlapped(ctx, made, function(gradients)
    return formulas.buckets(gradients, bytes)
  end, "passes + max(backward, last bucket's all-reduce) + step; buckets in one stream")
end

function of.horovod(made, ctx)
  local cap, cycle_s = made.sync.bucket_MiB * MiB, made.sync.cycle_ms / 1e3
  return overlapped(ctx, made, function(gradients)
    return formulas.fused(gradients, cap, cycle_s)
  end, "passes + max(backward, last fused all-reduce of 2 (d - 1) / d bytes) + step")
end

function of.wus(made, ctx)
  local total_s, tail_s = with_tail(ctx, made, function(one)
    local _, _, chain = gradients_of(ctx, made, one)
    local bytes = prices.gradient_bytes(ctx, chain, one.from, one.to)
    return links.ring(ctx, one.heads, bytes)
      + prices.update(ctx, chain, one.from, one.to) / #one.heads
  end)
  return { iteration_s = total_s, terms = { update_s = tail_s },
    formula = "passes + reduce-scatter + update / d + all-gather",
    leaves_out = "overlap with the backward and the next forward pass" }
end

--- Claim of the stages of ZeRO: memory of the states and bytes sent.
local function zero_claim(level)
  return function(made, ctx)
    local job, replica = ctx.job, made.replicas[1]
    local worst_bytes, sent_bytes = 0, 0
    for _, stage in ipairs(replica.stages) do
      local n = hv.cost.layers { tp = stage.tp }:bytes(stage.layers[1] + 1, stage.layers[2],
        "parameters")
      local d = stage.dp or 1
      worst_bytes = math.max(worst_bytes, formulas.states_bytes(n, d, level, job.weight_bytes,
        job.grad_bytes, (job.master_bytes or 0) + (job.optimizer_bytes or 0)))
      sent_bytes = math.max(sent_bytes,
        n * job.weight_bytes * formulas.volume(level, d, replica.micro_batches))
    end
    return { peak_memory_GiB = worst_bytes / GiB, terms = { sent_bytes = sent_bytes },
      formula = ("model states of stage %d over d ranks"):format(level),
      leaves_out = "activations, buffers and layers that are gathered" }
  end
end

for level = 1, 3 do
  of["zero" .. level] = zero_claim(level)
end

function of.fsdp(made, ctx)
  local total_s = with_tail(ctx, made, function(one)
    local group = one.stage.zero.shard_group or one.stage.dp
    local n = one.to - one.from + 1
    local bytes = hv.cost.layers { tp = one.stage.tp }:bytes(one.from, one.to, "parameters")
      * ctx.job.weight_bytes / n
    local shard = {}
    table.move(one.heads, 1, group, 1, shard)
    local gather_s = links.ring(ctx, shard, bytes) / 2
    local zero = one.stage.zero
    local unit = { n = n, forward_s = one.forward_s / n, backward_s = one.backward_s / n,
      gather_s = gather_s, scatter_s = gather_s * ctx.job.grad_bytes / ctx.job.weight_bytes,
      limit = zero.limit, prefetch = zero.prefetch, reshard = zero.reshard }
    local _, all_s = formulas.units(unit)
    return made.replicas[1].micro_batches * math.max(0, all_s - one.own_s) + one.pass.optimizer_s
  end)
  local first = made.replicas[1].stages[1]
  local ranks, nodes = first.dp or 1, mixture.nodes(ctx, ctx.cluster:ids(first.devices))
  local _, sharded, hybrid = formulas.across_hosts(hv.cost.layers { tp = first.tp }:bytes(
    first.layers[1] + 1, first.layers[2], "parameters") * ctx.job.weight_bytes, ranks,
    math.max(1, ranks / nodes))
  return { iteration_s = total_s,
    terms = { across_hosts_bytes = nodes < 2 and 0
      or (first.zero.shard_group or ranks) < ranks and hybrid or sharded },
    formula = "units: gather, pass, scatter in one stream, at most `limit` of them whole",
    leaves_out = "units that differ, weights kept between micro-batches, and the reduction "
      .. "between copies" }
end

function of.mics(made, ctx)
  local stage, replica = made.replicas[1].stages[1], made.replicas[1]
  local d, job = stage.dp or 1, ctx.job
  local p = stage.zero.shard_group or d
  local n = hv.cost.layers { tp = stage.tp }:bytes(stage.layers[1] + 1, stage.layers[2],
    "parameters")
  local inside, across = formulas.two_hops(n * job.grad_bytes, d, p, replica.micro_batches)
  local group = mixture.group(ctx, stage, p)
  local flat, by_nodes = formulas.between_nodes(p, p / mixture.nodes(ctx, group))
  return { peak_memory_GiB = formulas.states_bytes(n, p, 3, job.weight_bytes, job.grad_bytes,
      (job.master_bytes or 0) + (job.optimizer_bytes or 0)) / GiB,
    terms = { inside_group_bytes = inside, between_groups_bytes = across,
      ring_between_nodes_frac = flat, by_nodes_between_nodes_frac = by_nodes },
    formula = "model states over groups of p ranks; gradients in two hops",
    leaves_out = "activations, buffers and layers that are gathered" }
end

local paper = {}

--- The claim of the system that runs.
function paper.claim(made, ctx)
  return of[ctx.system.id](prices.table_of(made), ctx)
end

return paper
