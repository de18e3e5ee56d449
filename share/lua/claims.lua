--- Formulas of a pipeline's time, as papers state them (Eq-P and variants), and their terms for a
-- plan.
local links = require "links"
local prices = require "prices"

local claims = {}

--- Pipeline time of M micro-batches, Eq-P: sum of the stage times + (M - 1) x the largest.
function claims.pipeline_s(stage_s, micro_batches)
  local sum, max = 0, 0
  for _, t in ipairs(stage_s) do
    sum = sum + t
    max = math.max(max, t)
  end
  return sum + (micro_batches - 1) * max, max
end

--- sum t + (w1 + w2·(k - 1))·t_k + w3·(t_k + … + t_S), k the rightmost slowest stage: what
-- hv.opt.partition minimises under `weights` {w1, w2, w3}.
function claims.weighted_s(stage_s, w)
  local sum, k, tail = 0, 1, 0
  for s, t in ipairs(stage_s) do
    sum = sum + t
    k = t >= stage_s[k] and s or k
  end
  for s = k, #stage_s do
    tail = tail + stage_s[s]
  end
  return sum + (w[1] + w[2] * (k - 1)) * stage_s[k] + w[3] * tail
end

--- What formulas of pipelines need of a plan, by replica: {stage_s (forward and backward of a
-- micro-batch), sum_s, max_s, hop_s = one transfer of the activations between stages s and s + 1,
-- micro_batches}; then the largest all-reduce of a stage's gradients.
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
  local out, sync_s, kinds = {}, 0, prices.kinds(ctx)
  for r, replica in ipairs(made.replicas) do
    local p = { stage_s = {}, hop_s = {}, sum_s = 0, max_s = 0,
      micro_batches = replica.micro_batches }
    local heads, bytes
    for s, stage in ipairs(replica.stages) do
      local pass, ids = prices.stage(ctx, made, r, s), ctx.cluster:ids(stage.devices)
      local t = pass.forward_s + pass.backward_s
      p.stage_s[s], p.sum_s, p.max_s = t, p.sum_s + t, math.max(p.max_s, t)
      if heads then
        p.hop_s[s - 1] = links.seconds(ctx, heads[#heads], ids[1], bytes)
      end
      heads, bytes = ids, pass.hop_bytes
      sync_s = math.max(sync_s, prices.stage_sync(ctx, stage, kinds))
    end
    out[r] = p
  end
  return out, sync_s
end

--- Eq-P of one replica of claims.parts, with its hops: Σ stages + (M − 1) · longest + ways · Σ
-- hops.
-- @function claims.seconds
-- @tparam table part {stage_s, hop_s, micro_batches}, a row of claims.parts
-- @tparam[opt] number ways how often a hop counts (2: activations there, gradients back)
-- @treturn number the time of the pipeline
-- @units seconds
-- @raise none
-- @usage assert(require("claims").seconds { stage_s = { 3, 6 }, hop_s = { 1 }, micro_batches = 4 } == 29)
function claims.seconds(part, ways)
  local hops = 0
  for _, s in ipairs(part.hop_s) do
    hops = hops + s
  end
  return (claims.pipeline_s(part.stage_s, part.micro_batches)) + (ways or 2) * hops
end

return claims
