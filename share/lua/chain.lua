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
-- @tparam table made plan with the keys of a plan file, or a handle
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
-- @tparam table part {stage_s, hop_s, micro_batches}, a row of chain.parts
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

--- Kinds whose devices have less than `need` as "8 x T4-16GB have 117.6 GiB", and what to do about them.
local function kinds_short(ctx, devices, need)
  local by, order, texts = {}, {}, {}
  for _, d in ipairs(devices) do
    if not by[d.kind] then by[d.kind], order[#order + 1] = {}, d.kind end
    table.insert(by[d.kind], d)
  end
  for _, kind in ipairs(order) do
    local have = #by[kind] * prices.capacity(ctx, by[kind][1])
    if have < need then
      texts[#texts + 1] = ("%s have %.1f GiB"):format(layout.kinds_text(by[kind]), have / 2 ^ 30)
    end
  end
  if #texts == 0 then return nil end
  local all = #texts == #order
  return table.concat(texts, ", "), all and "take a strategy that mixes kinds"
    or "leave these out (state drain) or take a strategy that mixes kinds"
end

--- Why no division of the devices holds the model, with the figures that are short: of all devices together, of a kind
-- where pipelines stay inside kinds, of a device where runs of layers sit on one.
-- @function chain.too_small
-- @tparam handle ctx the run's input
-- @tparam table devices list of rows with kind
-- @tparam string what what was tried, as the subject of a sentence
-- @tparam[opt] string inside "kind" or "device": what a pipeline, or a run of layers, stays inside
-- @treturn string the reason
-- @units GiB in the text
-- @raise a kind the cluster has not
-- @usage print(require("chain").too_small(ctx, ctx.cluster:devices(), "no grid"))
function chain.too_small(ctx, devices, what, inside)
  local own, have, most = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = 1, recompute = "full" }), 0, 0
  for _, d in ipairs(devices) do
    local room = prices.capacity(ctx, d)
    have, most = have + room, math.max(most, room)
  end
  local need = prices.bytes(ctx, own, 1, own.n, { in_flight = 1 })
  local text = ("%s holds the model: one copy needs %.1f GiB with one micro-batch and full recomputation"):format(what,
    need / 2 ^ 30)
  local short, advice
  if inside == "kind" and have >= need then short, advice = kinds_short(ctx, devices, need) end
  if short then
    return ("%s, each pipeline stays inside one kind of device, and %s: %s"):format(text, short, advice)
  elseif have >= need and inside == "device" and most < need then
    return ("%s, every type of device runs one part of it, each on one device, and the largest has %.1f GiB"):format(
      text, most / 2 ^ 30)
  elseif have >= need then
    return ("%s; %s have %.1f GiB together, but not in the pieces that were tried"):format(text,
      layout.kinds_text(devices), have / 2 ^ 30)
  end
  return ("%s, %s have %.1f GiB"):format(text, layout.kinds_text(devices), have / 2 ^ 30)
end

return chain
