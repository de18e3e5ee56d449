-- Pipeline templates (Oobleck, section 4.1): the best cut of the model over consecutive nodes. A
-- template belongs to a sequence of node kinds rather than to a number of nodes; with equal nodes
-- that is the paper. Settings `c` are those of `settings`, nodes those of `node_sequence`.
local formula = require "formula"
local gpu_split = require "gpu_split"
local numbers = require "numbers"
local prices = require "prices"
local refinement = require "refinement"

local templates = {}

local MOST_SPLIT = 8       -- GPUs of a node that is split unevenly
local EXACT_SPLITS = 700   -- splits of a template's nodes that are all tried (two nodes of 8 GPUs)
local ROUNDING = 1e-12     -- relative difference of times that counts as equal
local MAY_HOLD_FRAC = 0.95 -- of the states' bytes; the rest allows for what is priced per rank

--- The price chain of every stage; neighbours of the same kind and degree share one.
local function chains_of(ctx, stages, c)
  local chains = {}
  for s, stage in ipairs(stages) do
    local before = stages[s - 1]
    if before and before.kind == stage.kind and before.tp == stage.tp then
      chains[s] = chains[s - 1]
    else
      chains[s] = prices.chain(ctx, stage.kind, { tp = stage.tp, micro_batch = c.micro_batch,
        recompute = c.recompute, sequence_parallel = stage.tp > 1 })
    end
  end
  return chains
end

--- A lower bound of T in seconds: no layer is faster than on its fastest stage, and the slowest
-- stage takes at least as long as work spread over the speeds of all.
local function lower_bound(chains, c)
  local speed = 0
  local fastest_s = math.huge
  for _, chain in ipairs(chains) do
    local all_s = prices.time(chain, 1, chain.n)
    speed = speed + 1 / all_s
    fastest_s = math.min(fastest_s, all_s)
  end
  local weights = formula.weights(#chains, c.rule)
  return fastest_s + (weights[1] + weights[3]) / speed
end

--- The lower bound of T in seconds of a pipeline with these stages.
function templates.lower_bound(ctx, stages, c)
  return lower_bound(chains_of(ctx, stages, c), c)
end

--- The best cut of the model over these stages by T; stage s of S (from 1) has memory for S - s + 1
-- micro-batches. nil where a stage has no room for layers.
local function cut_layers(ctx, stages, chains, c)
  local load = {}
  local memory = {}
  local capacity = {}
  for s, stage in ipairs(stages) do
    local chain = chains[s]
    load[s] = chain.times
    memory[s] = prices.layer_bytes(ctx, chain, { in_flight = #stages - s + 1 })
    capacity[s] = prices.capacity(ctx, stage) - prices.overhead_bytes(ctx, chain) - (c.reserve or 0)
    if capacity[s] <= 0 then
      return nil
    end
  end
  return hv.opt.partition { n = chains[1].n, parts = #stages, load = load, memory = memory,
    capacity = capacity, weights = formula.weights(#stages, c.rule) }
end

--- The kinds and sizes of nodes in order, which a template belongs to.
function templates.signature(nodes)
  local words = {}
  for i, node in ipairs(nodes) do
    node.sign = node.sign or node.kind .. "/" .. #node.ids
    words[i] = node.sign
  end
  return table.concat(words, " ")
end

--- Can these nodes together hold the states of the model? Splitting layers does not make them
-- smaller.
local function may_hold(ctx, nodes, c)
  local have_bytes = 0
  for _, node in ipairs(nodes) do
    have_bytes = have_bytes + #node.ids * prices.capacity(ctx, node)
  end
  local chain = prices.chain(ctx, nodes[1].kind, { tp = 1, micro_batch = c.micro_batch,
    recompute = c.recompute })
  return have_bytes >= MAY_HOLD_FRAC * chain.state[chain.n]
end

--- The template with these splits where it is faster than `best` (nil or false: none yet), else
-- nil.
local function better(ctx, nodes, splits, c, best)
  local stages = gpu_split.stages(nodes, splits, c.layers)
  if not stages then
    return nil
  end
  local chains = chains_of(ctx, stages, c)
  local limit_s = best and best.time_s * (1 - ROUNDING) or math.huge
  if lower_bound(chains, c) >= limit_s then
    return nil
  end
  local cut = cut_layers(ctx, stages, chains, c)
  if cut and cut.value < limit_s then
    return { time_s = cut.value, steady_s = cut.value / #stages, splits = splits, cut = cut }
  end
end

--- The template of a node sequence with every node in equal stages: { time_s = T, steady_s = T / S,
-- splits, cut, key }, or false. Remembered in `c.memo`.
function templates.of(ctx, nodes, c)
  local key = templates.signature(nodes)
  if c.memo[key] == nil then
    local most_gpus = 0
    for _, node in ipairs(nodes) do
      most_gpus = math.max(most_gpus, #node.ids)
    end
    local best = false
    for _, parts in ipairs(may_hold(ctx, nodes, c) and numbers.powers(most_gpus) or {}) do
      best = better(ctx, nodes, gpu_split.even(nodes, parts), c, best) or best
    end
    if best then
      best.key = key
    end
    c.memo[key] = best
  end
  return c.memo[key]
end

--- Splits to try for every node; nil where a node has too many GPUs.
local function split_choices(nodes)
  local lists = {}
  local known = {}
  for i, node in ipairs(nodes) do
    local n_gpus = #node.ids
    if n_gpus > MOST_SPLIT then
      return nil
    end
    known[n_gpus] = known[n_gpus] or gpu_split.all(n_gpus)
    lists[i] = known[n_gpus]
  end
  return lists
end

--- The template of a node sequence with nodes of up to 8 GPUs split unevenly where that is faster;
-- false where none fits. Replaces the template in `c.memo`.
function templates.refined(ctx, nodes, c)
  local found = templates.of(ctx, nodes, c)
  if not found or found.refined then
    return found
  end
  local lists = split_choices(nodes)
  if not lists then
    return found
  end
  local start = { state = found.splits, template = found }
  local best = refinement.best(lists, start, EXACT_SPLITS, function(state, before)
    local made = better(ctx, nodes, state, c, before.template)
    return made and { state = state, template = made }
  end, hv.stopping).template
  best.key = found.key
  best.refined = true
  c.memo[found.key] = best
  return best
end

return templates
