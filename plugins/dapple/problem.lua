-- The cluster, the model and a micro-batch as DAPPLE's planner sees them: blocks of layers, and
-- slots of devices by node.
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local prices = require "prices"

local problem = {}

--- Blocks of layers: list of { first, last }.
local function blocks_of(n_layers, most)
  local list = {}
  for i, range in ipairs(numbers.ranges(numbers.even(n_layers, math.min(n_layers, most)))) do
    list[i] = { range[1] + 1, range[2] }
  end
  return list
end

--- The cluster in at most so many machines and slots, the model in so many blocks: { machines =
-- list of device lists (several nodes where there are too many), slot = devices that are given out
-- together, blocks, n_devices, width = as in planner.plans }.
function problem.cluster(devices, most_blocks, most_slots, width)
  local machines = {}
  for i, node in ipairs(inventory.nodes(devices)) do
    machines[i] = node.ids
  end
  while #machines > most_slots do
    local pairs_of = {}
    for i = 1, #machines, 2 do
      local ids = table.move(machines[i], 1, #machines[i], 1, {})
      local other = machines[i + 1] or {}
      pairs_of[#pairs_of + 1] = table.move(other, 1, #other, #ids + 1, ids)
    end
    machines = pairs_of
  end
  local slot, size = 1, 0
  for _, ids in ipairs(machines) do
    size = numbers.gcd(size, #ids)
  end
  while #devices // slot > most_slots and size % (2 * slot) == 0 do
    slot = 2 * slot
  end
  return { machines = machines, slot = slot, blocks = most_blocks, n_devices = #devices,
    width = width }
end

--- The first devices of every machine that make up `counts` slots.
local function ids_of(cluster, counts)
  local ids = {}
  for i, count in ipairs(counts) do
    for k = 1, count * cluster.slot do
      ids[#ids + 1] = cluster.machines[i][k]
    end
  end
  return ids
end

local layers_known, rings_known = {}, {}

--- Sums of forward and backward seconds of a rank with so many sequences, and its chain.
local function layers_of(ctx, kind, sequences, recompute)
  local key = ("%s/%d/%s"):format(kind, sequences, recompute)
  if not layers_known[key] then
    local layers = hv.cost.layers { kinds = { kind }, tp = 1, micro_batch = sequences,
      recompute = recompute }
    local known = { f = { [0] = 0 }, b = { [0] = 0 },
      chain = prices.chain(ctx, kind, { tp = 1, micro_batch = sequences, recompute = recompute }) }
    for l = 1, ctx.model.n_layers do
      known.f[l] = known.f[l - 1] + layers:time(l, l, kind, "forward")
      known.b[l] = known.b[l - 1] + layers:time(l, l, kind, "backward")
    end
    layers_known[key] = known
  end
  return layers_known[key]
end

--- q of planner.plans for micro-batches of so many sequences and this recomputation.
function problem.of(ctx, cluster, sequences, recompute)
  local blocks = blocks_of(ctx.model.n_layers, cluster.blocks)
  local kind = inventory.kind(ctx, cluster.machines[1][1])
  local sizes = {}
  for i, ids in ipairs(cluster.machines) do
    sizes[i] = #ids // cluster.slot
  end
  local function ring(counts)
    local key = table.concat(counts, ",")
    rings_known[key] = rings_known[key] or links.ring(ctx, ids_of(cluster, counts), 1)
    return rings_known[key]
  end
  local q = { blocks = #blocks, sizes = sizes, layers = blocks,
    micro_batches = ctx.job.global_batch // sequences,
    width = cluster.width, stopping = function() return hv.stopping(0.5) end }
  function q.stage(first, last, counts, n)
    local ranks = n * cluster.slot
    if ranks > sequences then
      return nil -- a rank without a sequence
    end
    local from, to = blocks[first][1], blocks[last][2]
    local own = layers_of(ctx, kind, (sequences + ranks - 1) // ranks, recompute)
    local bytes = prices.bytes(ctx, own.chain, from, to, { in_flight = 1, holders = ranks })
    if bytes > prices.capacity(ctx, { kind = kind }) then
      return nil
    end
    local reduce_s = ranks > 1
      and ring(counts) * prices.gradient_bytes(ctx, own.chain, from, to) or 0
    return { f = own.f[to] - own.f[from - 1], b = own.b[to] - own.b[from - 1], ar = reduce_s }
  end
  function q.hop(_, before, after)
    local a, b = ids_of(cluster, before), ids_of(cluster, after)
    local bytes = layers_of(ctx, kind, 1, recompute).chain.output_bytes * sequences
    local from, to = a[#a], b[1]
    if from == to then
      from = a[1] -- counts of one machine begin with the same device
      to = cluster.machines[1][2] or to
    end
    return links.seconds(ctx, from, to, bytes / math.min(#a, #b))
  end
  return q
end

--- Devices of the stages of a plan: every stage takes the next ones of each machine.
function problem.devices(cluster, stages)
  local at, list = {}, {}
  for s, stage in ipairs(stages) do
    local ids = {}
    for i, count in ipairs(stage.taken) do
      local from = at[i] or 0
      for k = from + 1, from + count * cluster.slot do
        ids[#ids + 1] = cluster.machines[i][k]
      end
      at[i] = from + count * cluster.slot
    end
    list[s] = ids
  end
  return list
end

return problem
