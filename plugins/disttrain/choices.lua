-- The choices of DistTrain's search: tensor degrees, replicas, depth and samples of a micro-batch,
-- with GPUs by the closed form and the iteration time by formula.
local candidates = require "candidates"
local gpu_split = require "gpu_split"
local inventory = require "inventory"
local iteration_time = require "iteration_time"
local numbers = require "numbers"
local sample_time = require "sample_time"
local search = require "search"

local choices = {}

--- Gives a choice its GPUs: the backbone what its degrees say, the rest in proportion to the work
-- of encoder and generator, no more than a tensor group per sample. false where they are too few.
local function give_gpus(c, n, ranges)
  local lm = c.tp.lm * c.dp * c.depth
  local work = { me = (c.C.me or 0) * c.tp.me, lm = 1e-12, mg = (c.C.mg or 0) * c.tp.mg }
  c.gpus = gpu_split.in_proportion(n - lm, work, c.tp)
  c.gpus.lm = lm
  local samples = c.dp * c.m
  for _, key in ipairs { "me", "mg" } do
    local least = ranges[key] and c.tp[key] or 0 -- also where its layers take no time
    c.gpus[key] = math.min(math.max(c.gpus[key], least), samples * c.tp[key])
  end
  return c.gpus.me + lm + c.gpus.mg <= n
end

--- Adds to `list` all choices of one order of the devices. `ranges` = parts of the model, `tps` =
-- tensor degrees. A choice: {order, ranges, tp, dp, depth, m = samples per micro-batch and replica,
-- batch, recompute, C = seconds per sample of each part, gpus, claim_s, rank}.
function choices.add(ctx, list, order, ranges, tps, recompute)
  local n, batch = #order, ctx.job.global_batch
  local kinds = inventory.kinds(order)
  local sides = (ranges.me and 1 or 0) + (ranges.mg and 1 or 0)
  local backbone_layers = ranges.lm[2] - ranges.lm[1] + 1
  for point in candidates.in_time(search.product { tps, tps, numbers.powers(n),
    numbers.powers(64), numbers.powers(8) }) do
    local c = { tp = { me = point[1], lm = point[2], mg = point[1] }, dp = point[3],
      depth = point[4], m = point[5], batch = batch, recompute = recompute, C = {},
      order = order, ranges = ranges }
    if c.tp.lm * c.dp * c.depth <= n - sides and batch % (c.dp * c.m) == 0
      and c.depth <= backbone_layers then
      for key, range in pairs(ranges) do
        c.C[key] = sample_time.seconds(ctx, range, kinds, c.tp[key], recompute)
      end
      if give_gpus(c, n, ranges) then
        c.claim_s = iteration_time.of(c)
        c.rank = #list + 1
        list[c.rank] = c
      end
    end
  end
end

return choices
