-- What formulas of pipelines (Eq-P and its kin) need of a plan that stands, and what to say where
-- none does.
local layout = require "layout"
local prices = require "prices"
local wires = require "wires"

local chain = {}

--- What formulas of pipelines need of a plan, by replica: {stage_s (forward and backward of a micro-batch),
-- sum_s, max_s, hop_s = one transfer of the activations between stages s and s + 1, micro_batches};
-- then the largest all-reduce of a stage's gradients.
-- @function chain.parts
-- @tparam handle ctx the run's input
-- @tparam table made plan, table or handle
-- @treturn table list of replicas, and the seconds of the all-reduce
-- @units seconds
-- @raise plans with stages that have several layer ranges
-- @usage local parts, sync_s = require("chain").parts(ctx, hv.strategy("uniform"))
-- print(parts[1].max_s, sync_s)
function chain.parts(ctx, made)
  made = prices.table_of(made)
  local out, sync_s, kinds = {}, 0, prices.kinds(ctx)
  for r, replica in ipairs(made.replicas) do
    local p = { stage_s = {}, hop_s = {}, sum_s = 0, max_s = 0, micro_batches = replica.micro_batches }
    local heads, bytes
    for s, stage in ipairs(replica.stages) do
      local pass, ids = prices.stage(ctx, made, r, s), ctx.cluster:ids(stage.devices)
      local t = pass.forward_s + pass.backward_s
      p.stage_s[s], p.sum_s, p.max_s = t, p.sum_s + t, math.max(p.max_s, t)
      if heads then p.hop_s[s - 1] = wires.seconds(ctx, heads[#heads], ids[1], bytes) end
      heads, bytes = ids, pass.hop_bytes
      sync_s = math.max(sync_s, prices.stage_sync(ctx, stage, kinds))
    end
    out[r] = p
  end
  return out, sync_s
end

--- Eq-P of one replica of chain.parts, with its hops: Σ stages + (M − 1) · longest + ways · Σ hops.
-- @function chain.seconds
-- @tparam table part row of chain.parts
-- @tparam[opt] number ways how often a hop counts (2: activations there, gradients back)
-- @treturn number the time of the pipeline
-- @units seconds
-- @raise none
-- @usage assert(require("chain").seconds { stage_s = { 3, 6 }, hop_s = { 1 }, micro_batches = 4 } == 29)
function chain.seconds(part, ways)
  local hops = 0
  for _, s in ipairs(part.hop_s) do hops = hops + s end
  return (layout.pipeline_s(part.stage_s, part.micro_batches)) + (ways or 2) * hops
end

--- Why no division of the devices holds the model, with the figures to compare.
-- @function chain.too_small
-- @tparam handle ctx the run's input
-- @tparam table devices rows with kind
-- @tparam string what what was tried, as the subject of a sentence
-- @treturn string the reason
-- @units GiB in the text
-- @raise a kind the cluster has not
-- @usage print(require("chain").too_small(ctx, ctx.cluster:devices(), "no grid"))
function chain.too_small(ctx, devices, what)
  local own, have = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = 1, recompute = "full" }), 0
  for _, d in ipairs(devices) do have = have + prices.capacity(ctx, d) end
  return ("%s holds the model: one copy needs %.1f GiB with one micro-batch and full recomputation, %s have %.1f GiB")
    :format(what, prices.bytes(ctx, own, 1, own.n, { in_flight = 1 }) / 2 ^ 30, layout.kinds_text(devices),
      have / 2 ^ 30)
end

return chain
