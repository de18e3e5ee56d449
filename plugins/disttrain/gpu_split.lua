-- The split of the GPUs over encoder (me), backbone (lm) and generator (mg).
local numbers = require "numbers"

local gpu_split = {}

--- The closed form of the steady part (section 4): n GPUs in proportion to the work {me, lm, mg} =
-- GPU seconds per sample, so that all three keep step. Gives {me, lm, mg} in fractions of a GPU.
function gpu_split.closed_form(n, work)
  local all = (work.me or 0) + work.lm + (work.mg or 0)
  local gpus = {}
  for _, key in ipairs { "me", "lm", "mg" } do
    gpus[key] = n * (work[key] or 0) / all
  end
  return gpus
end

--- The numbers of stages of the backbone that are tried: the whole numbers around the closed form's
-- share of n GPUs, powers of two and the largest number, none above `most`. Ascending. A stage has
-- `size` GPUs.
function gpu_split.depths(n, work, size, most)
  local share = gpu_split.closed_form(n, work).lm / size
  local is_tried = { [most] = true }
  for depth = math.floor(share) - 1, math.ceil(share) + 1 do
    is_tried[math.max(1, math.min(depth, most))] = true
  end
  for _, depth in ipairs(numbers.powers(most)) do
    is_tried[depth] = true
  end
  local list = {}
  for depth = 1, most do
    if is_tried[depth] then
      list[#list + 1] = depth
    end
  end
  return list
end

--- GPUs of encoder and generator when n are left for both: in proportion to their work, in tensor
-- groups of tp GPUs, at least one where there is such a module and no more than one for each of
-- `samples`. nil where n are too few.
function gpu_split.sides(n, work, tp, samples)
  local groups = n // tp
  local gpus = { me = 0, mg = 0 }
  if work.me and work.mg then
    if groups < 2 then
      return nil
    end
    local all = work.me + work.mg
    local me = all > 0 and math.floor(groups * work.me / all + 0.5) or groups // 2
    gpus.me = math.max(1, math.min(me, groups - 1, samples))
    gpus.mg = math.min(groups - gpus.me, samples)
    gpus.me = math.min(groups - gpus.mg, samples)
  elseif work.me or work.mg then
    if groups < 1 then
      return nil
    end
    gpus[work.me and "me" or "mg"] = math.min(groups, samples)
  end
  gpus.me = gpus.me * tp
  gpus.mg = gpus.mg * tp
  return gpus
end

--- How many devices of the order stand before encoder, backbone and generator. The module with the
-- larger tensor groups comes first where a group would else begin inside a multiple of its size, so
-- that no group crosses nodes.
local function offsets(c)
  local lm = c.tp.lm * c.dp * c.depth
  if c.gpus.me % c.tp.lm == 0 then
    return { me = 0, lm = c.gpus.me, mg = c.gpus.me + lm }
  end
  return { lm = 0, me = lm, mg = lm + c.gpus.me }
end

--- The stages of a choice in the order of the pipeline: encoder, backbone in `depth` even runs of
-- layers, generator. c = {ranges = {me, lm, mg}, gpus = {me, mg}, tp = {me, lm, mg}, dp, depth}. A
-- list of {key = the module, before = devices of the order before its own, count = its devices,
-- tp, dp, from, to}.
function gpu_split.stages(c)
  local stages, before = {}, offsets(c)
  local function add(key, count, from, to)
    stages[#stages + 1] = { key = key, before = before[key], count = count, tp = c.tp[key],
      dp = count // c.tp[key], from = from, to = to }
    before[key] = before[key] + count
  end
  if c.ranges.me then
    add("me", c.gpus.me, c.ranges.me[1], c.ranges.me[2])
  end
  local first = c.ranges.lm[1]
  for _, n in ipairs(numbers.even(c.ranges.lm[2] - first + 1, c.depth)) do
    add("lm", c.tp.lm * c.dp, first, first + n - 1)
    first = first + n
  end
  if c.ranges.mg then
    add("mg", c.gpus.mg, c.ranges.mg[1], c.ranges.mg[2])
  end
  return stages
end

return gpu_split
