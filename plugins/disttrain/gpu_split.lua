-- The split of the GPUs over encoder (me), backbone (lm) and generator (mg).
local numbers = require "numbers"

local gpu_split = {}

--- n GPUs in proportion to the work {me, lm, mg}, the closed form of the steady part (section 4),
-- in multiples of the tensor degrees tp; at least one tensor group where there is work.
function gpu_split.in_proportion(n, work, tp)
  local r = hv.opt.distribute { total = n, time = { work.me, work.lm, work.mg },
    objective = "ratio" }
  local gpus = {}
  for i, key in ipairs { "me", "lm", "mg" } do
    if work[key] > 0 then
      local count = r and r.counts[i] or 0
      gpus[key] = math.max(tp[key], count // tp[key] * tp[key])
    else
      gpus[key] = 0
    end
  end
  return gpus
end

--- The stages of a choice in the order of the pipeline: encoder, backbone in `depth` even runs of
-- layers, generator. c = {order = list of devices, ranges = {me, lm, mg}, gpus = {me, mg}, tp =
-- {me, lm, mg}, dp, depth}. A list of {devices, tp, dp, from, to}.
function gpu_split.stages(c)
  local stages, taken = {}, 0
  local function add(gpus, tp, from, to)
    stages[#stages + 1] = { devices = numbers.slice(c.order, taken + 1, gpus), tp = tp,
      dp = gpus // tp, from = from, to = to }
    taken = taken + gpus
  end
  if c.ranges.me then
    add(c.gpus.me, c.tp.me, c.ranges.me[1], c.ranges.me[2])
  end
  local first = c.ranges.lm[1]
  for _, n in ipairs(numbers.even(c.ranges.lm[2] - first + 1, c.depth)) do
    add(c.tp.lm * c.dp, c.tp.lm, first, first + n - 1)
    first = first + n
  end
  if c.ranges.mg then
    add(c.gpus.mg, c.tp.mg, c.ranges.mg[1], c.ranges.mg[2])
  end
  return stages
end

return gpu_split
