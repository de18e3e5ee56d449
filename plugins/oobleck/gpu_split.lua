-- GPUs of nodes split into stages (Oobleck, section 4.1.2: by halves). A split is a list of GPUs
-- per stage; the splits of a node sequence are one list per node.
local grids = require "grids"
local numbers = require "numbers"

local gpu_split = {}

--- The largest power of two up to n.
local function power_of_two(n)
  local power = 1
  while 2 * power <= n do
    power = 2 * power
  end
  return power
end

--- n_gpus in `parts` equal stages. Where they do not divide (a node that lost some), stages have
-- the size that the next lower power of two would give, and smaller ones take what is left: 7 in 2
-- as 4, 2, 1.
local function even_split(n_gpus, parts)
  local n_stages = math.min(parts, n_gpus)
  local size
  if n_gpus % n_stages == 0 then
    size = n_gpus // n_stages
  else
    size = power_of_two(power_of_two(n_gpus) * 2 // n_stages)
  end
  local split = {}
  local left = n_gpus
  while left > 0 do
    if size > left then
      size = power_of_two(left)
    end
    split[#split + 1] = size
    left = left - size
  end
  return split
end

--- Every node in `parts` equal stages.
function gpu_split.even(nodes, parts)
  local splits = {}
  local known = {}
  for i, node in ipairs(nodes) do
    local n_gpus = #node.ids
    known[n_gpus] = known[n_gpus] or even_split(n_gpus, parts)
    splits[i] = known[n_gpus]
  end
  return splits
end

--- All splits of a node with n_gpus: by halves, each half split further or not, in the order of the
-- stages. Where n_gpus is no power of two (a node that lost some) the largest power of two below it
-- is split off too.
function gpu_split.all(n_gpus)
  local list = { { n_gpus } }
  local function cut_behind(first)
    for _, left in ipairs(gpu_split.all(first)) do
      for _, right in ipairs(gpu_split.all(n_gpus - first)) do
        local both = table.move(left, 1, #left, 1, {})
        list[#list + 1] = table.move(right, 1, #right, #both + 1, both)
      end
    end
  end
  if n_gpus % 2 == 0 then
    cut_behind(n_gpus // 2)
  end
  if n_gpus ~= power_of_two(n_gpus) then
    cut_behind(power_of_two(n_gpus))
  end
  return list
end

--- Stages { node, tp, kind, memory_bytes, ids } of a node sequence under `splits`; nil where a
-- stage's GPUs cannot split `layers`, or there are more stages than layers.
function gpu_split.stages(nodes, splits, layers)
  local stages = {}
  local fits = {}
  for i, node in ipairs(nodes) do
    local first = 1
    for _, tp in ipairs(splits[i]) do
      if fits[tp] == nil then
        fits[tp] = grids.tp_fits(layers, tp)
      end
      if not fits[tp] or #stages == #layers then
        return nil
      end
      stages[#stages + 1] = { node = node, tp = tp, kind = node.kind,
        memory_bytes = node.memory_bytes, ids = numbers.slice(node.ids, first, tp) }
      first = first + tp
    end
  end
  return stages
end

return gpu_split
