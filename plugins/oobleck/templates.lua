--- Pipeline templates over a sequence of nodes (Oobleck, SOSP'23, section 4.1), by node kinds
-- rather than by node count alone: the best cut of the model over consecutive nodes. `mixes` makes
-- pipelines of them. A setting `c` is { micro_batch, recompute, layers, weights(n_stages, rule),
-- rule, memo = {}, faults, most_sizes, total, reserve = bytes of a device that are left alone };
-- nodes are those of inventory.nodes.
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"
local search = require "search"

local templates = {}

local MOST_SPLIT = 8      -- GPUs of a node that is split unevenly
local EXACT_SPLITS = 700  -- splits of all nodes of a template that are all tried (two nodes of 8)

--- The largest power of two up to n.
local function power(n)
  local p = 1
  while 2 * p <= n do
    p = 2 * p
  end
  return p
end

--- g GPUs in `parts` equal stages; where they do not divide (a node that lost some) in stages of
-- the size that the next power of two would give, and of smaller ones for what is left: 7 in 2 as
-- 4, 2, 1.
local function even_split(g, parts)
  local split, n = {}, math.min(parts, g)
  local left, most = g, g % n == 0 and g // n or power(power(g) * 2 // n)
  while left > 0 do
    most = most <= left and most or power(left)
    split[#split + 1], left = most, left - most
  end
  return split
end

--- Every node so: GPUs per stage, one list per node.
local function even(nodes, parts)
  local splits, known = {}, {}
  for i, node in ipairs(nodes) do
    local g = #node.ids
    known[g] = known[g] or even_split(g, parts)
    splits[i] = known[g]
  end
  return splits
end

--- Stages of a node sequence with these GPUs per stage, or nil where the model cannot be split so.
function templates.stages(nodes, splits, layers)
  local stages, fits = {}, {}
  for i, node in ipairs(nodes) do
    local at = 1
    for _, tp in ipairs(splits[i]) do
      if fits[tp] == nil then
        fits[tp] = grids.tp_fits(layers, tp)
      end
      if not fits[tp] or #stages == #layers then
        return nil
      end
      stages[#stages + 1] = { node = node, tp = tp, kind = node.kind,
        memory_bytes = node.memory_bytes, ids = numbers.slice(node.ids, at, tp) }
      at = at + tp
    end
  end
  return stages
end

--- Chains of the stages and a lower bound of T: no layer is faster than on its best stage, and the
-- slowest stage is at least the mean over all speeds.
local function price_stages(ctx, stages, c)
  local chains, speed, fastest = {}, 0, math.huge
  for s, stage in ipairs(stages) do
    local before = stages[s - 1]
    local chain = before and before.kind == stage.kind and before.tp == stage.tp and chains[s - 1]
      or prices.chain(ctx, stage.kind, { tp = stage.tp, micro_batch = c.micro_batch,
        recompute = c.recompute, sequence_parallel = stage.tp > 1 })
    chains[s] = chain
    local all = prices.time(chain, 1, chain.n)
    speed = speed + 1 / all
    fastest = math.min(fastest, all)
  end
  local w = c.weights(#stages, c.rule)
  return chains, fastest + (w[1] + w[3]) / speed
end

--- The best cut of the model over these stages: T by the rule, memory for S - s micro-batches.
local function cut_layers(ctx, stages, chains, c)
  local load, memory, capacity = {}, {}, {}
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
    capacity = capacity, weights = c.weights(#stages, c.rule) }
end

local function signature(nodes)
  local words = {}
  for i, node in ipairs(nodes) do
    node.sign = node.sign or node.kind .. "/" .. #node.ids
    words[i] = node.sign
  end
  return table.concat(words, " ")
end

--- Can these nodes together hold the states of the model at all? Splitting layers does not make
-- them smaller (5 % are left for what is priced per rank).
local function may_hold(ctx, nodes, c)
  local have = 0
  for _, node in ipairs(nodes) do
    have = have + #node.ids * prices.capacity(ctx, node)
  end
  local chain = prices.chain(ctx, nodes[1].kind, { tp = 1, micro_batch = c.micro_batch,
    recompute = c.recompute })
  return have >= 0.95 * chain.state[chain.n]
end

--- The template with these GPUs per stage where it is faster than `best` (or there is none), else
-- nil.
local function better(ctx, nodes, splits, c, best)
  local stages = templates.stages(nodes, splits, c.layers)
  if not stages then
    return nil
  end
  local chains, bound = price_stages(ctx, stages, c)
  if best and bound >= best.time_s * (1 - 1e-12) then
    return nil
  end
  local cut = cut_layers(ctx, stages, chains, c)
  if cut and not (best and cut.value >= best.time_s * (1 - 1e-12)) then
    return { time_s = cut.value, steady_s = cut.value / #stages, splits = splits, cut = cut }
  end
end

--- The template of a node sequence: { time_s = T, stages, cut } or nil. Remembered in `c.memo`.
function templates.of(ctx, nodes, c)
  local key = signature(nodes)
  if c.memo[key] == nil then
    local best = false
    local most = 0
    for _, node in ipairs(nodes) do
      most = math.max(most, #node.ids)
    end
    for _, parts in ipairs(may_hold(ctx, nodes, c) and numbers.powers(most) or {}) do
      best = better(ctx, nodes, even(nodes, parts), c, best) or best
    end
    if best then
      best.key = key
    end
    c.memo[key] = best
  end
  return c.memo[key]
end

--- The ways in which the planner splits g GPUs of a node (section 4.1.2: by halves, each part
-- further or not), in order of the stages. Where g is none of 2's powers (a node that lost some)
-- the largest below it is split off too.
function templates.splits(g)
  local list = { { g } }
  local function cut(first)
    for _, a in ipairs(templates.splits(first)) do
      for _, b in ipairs(templates.splits(g - first)) do
        local both = table.move(a, 1, #a, 1, {})
        list[#list + 1] = table.move(b, 1, #b, #both + 1, both)
      end
    end
  end
  if g % 2 == 0 then
    cut(g // 2)
  end
  if g ~= power(g) then
    cut(power(g))
  end
  return list
end

--- The best state of a product of choices from a start on: all of them where there are at most
-- `most`, else by turns, one place after the other until nothing helps. `try(state, best)` gives a
-- result with .state that is better than `best`, or nil.
function templates.refine(lists, best, most, try, stopping)
  local all = 1
  for _, list in ipairs(lists) do
    all = all * #list
  end
  if all <= most then
    for state in search.product(lists) do
      if stopping() then
        break
      end
      best = try(table.move(state, 1, #state, 1, {}), best) or best
    end
    return best
  end
  local again = true
  while again do
    again = false
    for i, list in ipairs(lists) do
      for _, choice in ipairs(list) do
        if stopping() then
          return best
        end
        local state = table.move(best.state, 1, #best.state, 1, {})
        state[i] = choice
        local found = choice ~= best.state[i] and try(state, best)
        if found then
          best, again = found, true
        end
      end
    end
  end
  return best
end

--- The template of a node sequence with stages of unequal numbers of GPUs where that is faster:
-- nodes of up to 8 GPUs by halves. Remembered; the first call counts.
function templates.refined(ctx, nodes, c)
  local found = templates.of(ctx, nodes, c)
  if not found or found.refined then
    return found
  end
  local lists, same = {}, {}
  for i, node in ipairs(nodes) do
    local g = #node.ids
    same[g] = same[g] or templates.splits(g)
    if g > MOST_SPLIT then
      return found
    end
    lists[i] = same[g]
  end
  local start = { state = found.splits, template = found }
  local best = templates.refine(lists, start, EXACT_SPLITS, function(state, before)
    local made = better(ctx, nodes, state, c, before.template)
    return made and { state = state, template = made }
  end, hv.stopping).template
  best.key, best.refined = found.key, true
  c.memo[found.key] = best
  return best
end

--- Nodes in order of falling speed, equal kinds together, file order otherwise; none and why not.
-- Nodes of which a device is lost are marked: { damaged = true }.
function templates.sequence(ctx)
  local devices, why = inventory.priced(ctx)
  local nodes, whole = inventory.nodes(devices), {}
  for _, g in ipairs(ctx.cluster:groups()) do -- runs of nodes that lost nothing
    for i = g.first_node, g.first_node + g.count - 1 do
      whole[i] = true
    end
  end
  for i, node in ipairs(nodes) do
    node.at, node.damaged = i, not whole[node.node]
  end
  table.sort(nodes, function(a, b)
    local x, y = a.flops_per_s * #a.ids, b.flops_per_s * #b.ids
    if x ~= y then
      return x > y
    elseif a.kind ~= b.kind then
      return a.kind < b.kind
    end
    return a.at < b.at
  end)
  for i, node in ipairs(nodes) do
    node.order = i
  end
  return nodes, why
end

--- n0: the least number of consecutive nodes whose memory holds the model (section 4.1.1).
local function least_nodes(ctx, sequence, c)
  for n = 1, #sequence do
    for from = 1, #sequence - n + 1 do
      if templates.of(ctx, numbers.slice(sequence, from, n), c) then
        return n
      end
    end
  end
end

--- Seconds of an iteration when every node works all the time and every pipeline has n0 nodes that
-- fill once: what the settings to look at are ranked by. Nodes that no template can use count
-- nothing.
local function rough(ctx, sequence, c)
  local speed, known = 0, {}
  for _, node in ipairs(sequence) do
    local key = signature { node }
    if not known[key] then
      known[key] = 0
      for _, parts in ipairs(numbers.powers(2 * #node.ids - 1)) do
        local stages = templates.stages({ node }, even({ node }, parts), c.layers)
        if stages then
          local _, bound = price_stages(ctx, { stages[1] }, c)
          known[key] = 1 / bound
          break
        end
      end
    end
    speed = speed + known[key]
  end
  return (c.total + #sequence * (c.least - 1) / c.least) / speed
end

--- The settings worth exact templates, best first, each with its n0; make(ctx, micro_batch,
-- recompute) gives one.
function templates.settings(ctx, sequence, make)
  local list = {}
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    for _, recompute in ipairs { "none", "selective", "full" } do
      local c = make(ctx, micro_batch, recompute)
      c.least = ctx.job.global_batch % micro_batch == 0 and least_nodes(ctx, sequence, c)
      if c.least then
        c.rough_s, c.rank = rough(ctx, sequence, c), #list + 1
        list[c.rank] = c
      end
    end
  end
  table.sort(list, function(a, b)
    if a.rough_s ~= b.rough_s then
      return a.rough_s < b.rough_s
    end
    return a.rank < b.rank
  end)
  return list
end

local function counted(n)
  return ("%d node%s"):format(n, n == 1 and "" or "s")
end

--- Why there is no plan that survives so many faults; `c` is the setting that needs the fewest
-- nodes.
function templates.shortage(ctx, sequence, faults, c)
  local have = 0
  for _, node in ipairs(sequence) do
    have = have + #node.ids * prices.capacity(ctx, node)
  end
  local chain = prices.chain(ctx, sequence[1].kind, { tp = 1, micro_batch = 1, recompute = "full" })
  local need = prices.bytes(ctx, chain, 1, chain.n, { in_flight = 1 })
  return ("to survive %d node failure%s takes %d pipelines; one needs %s and %.1f GiB, the "
      .. "cluster has %s with %.1f GiB"):format(faults, faults == 1 and "" or "s", faults + 1,
        c and "at least " .. counted(c.least) or "more than all nodes", need / 2 ^ 30,
        counted(#sequence), have / 2 ^ 30)
end

return templates
