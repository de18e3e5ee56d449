--- Formulas of a pipeline's time, as papers state them (Eq-P and variants), and their terms for a
-- plan.
local links = require "links"
local prices = require "prices"

local claims = {}

--- Pipeline time of M micro-batches, Eq-P: sum of the stage times + (M - 1) x the largest; then the
-- largest.
function claims.pipeline_s(stage_s, micro_batches)
  local sum_s = 0
  local max_s = 0
  for _, t in ipairs(stage_s) do
    sum_s = sum_s + t
    max_s = math.max(max_s, t)
  end
  return sum_s + (micro_batches - 1) * max_s, max_s
end

--- Position of the rightmost slowest stage.
local function rightmost_slowest(stage_s)
  local k = 1
  for s, t in ipairs(stage_s) do
    if t >= stage_s[k] then
      k = s
    end
  end
  return k
end

--- sum t + (w1 + w2·(k - 1))·t_k + w3·(t_k + … + t_S), k the rightmost slowest stage: what
-- hv.opt.partition minimises under `weights` {w1, w2, w3}.
function claims.weighted_s(stage_s, weights)
  local sum_s = 0
  for _, t in ipairs(stage_s) do
    sum_s = sum_s + t
  end
  local k = rightmost_slowest(stage_s)
  local tail_s = 0
  for s = k, #stage_s do
    tail_s = tail_s + stage_s[s]
  end
  return sum_s + (weights[1] + weights[2] * (k - 1)) * stage_s[k] + weights[3] * tail_s
end

--- Terms of replica r of a plan as claims.parts gives them, and its largest all-reduce.
local function part_of(ctx, made, r, kinds)
  local replica = made.replicas[r]
  local part = { stage_s = {}, hop_s = {}, sum_s = 0, max_s = 0,
    micro_batches = replica.micro_batches }
  local sync_s = 0
  local ids_before, bytes_before
  for s, stage in ipairs(replica.stages) do
    local pass = prices.stage(ctx, made, r, s)
    local ids = ctx.cluster:ids(stage.devices)
    local t = pass.forward_s + pass.backward_s
    part.stage_s[s] = t
    part.sum_s = part.sum_s + t
    part.max_s = math.max(part.max_s, t)
    if ids_before then
      part.hop_s[s - 1] = links.seconds(ctx, ids_before[#ids_before], ids[1], bytes_before)
    end
    ids_before = ids
    bytes_before = pass.hop_bytes
    sync_s = math.max(sync_s, prices.stage_sync(ctx, stage, kinds))
  end
  return part, sync_s
end

--- The terms that formulas of pipelines need of a plan, by replica: {stage_s (forward and backward
-- of a micro-batch), sum_s, max_s, hop_s = one transfer of the activations between stages s and s +
-- 1, micro_batches}; then the largest all-reduce of a stage's gradients.
-- @function claims.parts
-- @tparam handle ctx the run's input
-- @tparam table made plan with the keys of a plan file, or a handle
-- @treturn table list of replicas, and the seconds of the all-reduce
-- @units seconds
-- @raise plans with stages that have several layer ranges
-- @usage local parts, sync_s = require("claims").parts(ctx, hv.strategy("uniform"))
-- print(parts[1].max_s, sync_s)
function claims.parts(ctx, made)
  made = prices.table_of(made)
  local kinds = prices.kinds(ctx)
  local parts = {}
  local sync_s = 0
  for r in ipairs(made.replicas) do
    local own_sync_s
    parts[r], own_sync_s = part_of(ctx, made, r, kinds)
    sync_s = math.max(sync_s, own_sync_s)
  end
  return parts, sync_s
end

--- Eq-P of one replica of claims.parts, with its hops: Σ stages + (M − 1) · longest + ways · Σ
-- hops.
-- @function claims.seconds
-- @tparam table part {stage_s, hop_s, micro_batches}, a row of claims.parts
-- @tparam[opt] number ways how often a hop counts (2: activations there, gradients back)
-- @treturn number the time of the pipeline
-- @units seconds
-- @raise none
-- @usage local part = { stage_s = { 3, 6 }, hop_s = { 1 }, micro_batches = 4 }
-- assert(require("claims").seconds(part) == 29)
function claims.seconds(part, ways)
  local hops_s = 0
  for _, s in ipairs(part.hop_s) do
    hops_s = hops_s + s
  end
  return (claims.pipeline_s(part.stage_s, part.micro_batches)) + (ways or 2) * hops_s
end

return claims
