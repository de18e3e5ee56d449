--- Pipeline templates over a sequence of nodes (Oobleck, SOSP'23, section 4), by node kinds rather than
-- by node count alone: the best cut of the model over consecutive nodes, mixes of templates that use
-- every node once, and the batch dealt out to them. A setting `c` is { micro_batch, recompute, layers,
-- weights(n_stages, rule), rule, memo = {}, faults, most_sizes, total }; nodes are those of layout.nodes.
local layout = require "layout"
local prices = require "prices"
local recovery = require "recovery"
local search = require "search"

local templates = {}

local MOST_OPTIONS = 2000 -- instance mixes that are enumerated
local ALL_SIZES = 32      -- nodes of a cluster up to which all template sizes are considered
local FEW_SIZES = 6       -- and how many beyond, where larger ones do not win and cost most of the time
local MOST_SPLIT = 8      -- GPUs of a node that is split unevenly
local EXACT_SPLITS = 700  -- splits of all nodes of a template that are all tried (two nodes of 8)
local KEPT = 24           -- partial mixes kept per node, and mixes whose batch is dealt exactly

--- Every node in min(parts, GPUs) equal stages: GPUs per stage, one list per node; nil where that cannot be.
local function even(nodes, parts)
  local splits, known = {}, {}
  for i, node in ipairs(nodes) do
    local g = #node.ids
    local n = math.min(parts, g)
    if g % n ~= 0 then
      return nil
    end
    known[g] = known[g] or {}
    splits[i] = known[g]
    for s = 1, n do splits[i][s] = g // n end
  end
  return splits
end

--- Stages of a node sequence with these GPUs per stage, or nil where the model cannot be split so.
local function stages_of(nodes, splits, layers)
  local stages, fits = {}, {}
  for i, node in ipairs(nodes) do
    local at = 1
    for _, tp in ipairs(splits[i]) do
      if fits[tp] == nil then fits[tp] = layout.tp_fits(layers, tp) end
      if not fits[tp] or #stages == #layers then
        return nil
      end
      stages[#stages + 1] = { node = node, tp = tp, kind = node.kind,
        memory_bytes = node.memory_bytes, ids = layout.slice(node.ids, at, tp) }
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
    capacity[s] = prices.capacity(ctx, stage) - prices.overhead_bytes(ctx, chain)
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

--- The template with these GPUs per stage where it is faster than `best` (or there is none), else nil.
local function better(ctx, nodes, splits, c, best)
  local stages = stages_of(nodes, splits, c.layers)
  if not stages then return nil end
  local chains, bound = price_stages(ctx, stages, c)
  if best and bound >= best.time_s * (1 - 1e-12) then return nil end
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
    for _, parts in ipairs(may_hold(ctx, nodes, c) and layout.powers(most) or {}) do
      local splits = even(nodes, parts)
      best = splits and better(ctx, nodes, splits, c, best) or best
    end
    if best then best.key = key end
    c.memo[key] = best
  end
  return c.memo[key]
end

--- The ways in which the planner splits g GPUs of a node (section 4.1.2: by halves, each part further or not), in
-- order of the stages.
function templates.splits(g)
  local list = { { g } }
  for _, a in ipairs(g % 2 == 0 and templates.splits(g // 2) or {}) do
    for _, b in ipairs(templates.splits(g // 2)) do
      local both = table.move(a, 1, #a, 1, {})
      list[#list + 1] = table.move(b, 1, #b, #both + 1, both)
    end
  end
  return list
end

--- The best state of a product of choices from a start on: all of them where there are at most `most`, else by turns,
-- one place after the other until nothing helps. `try(state, best)` gives a result with .state that is better than
-- `best`, or nil.
function templates.refine(lists, best, most, try, stopping)
  local all = 1
  for _, list in ipairs(lists) do all = all * #list end
  if all <= most then
    for state in search.product(lists) do
      if stopping() then break end
      best = try(table.move(state, 1, #state, 1, {}), best) or best
    end
    return best
  end
  local again = true
  while again do
    again = false
    for i, list in ipairs(lists) do
      for _, choice in ipairs(list) do
        if stopping() then return best end
        local state = table.move(best.state, 1, #best.state, 1, {})
        state[i] = choice
        local found = choice ~= best.state[i] and try(state, best)
        if found then best, again = found, true end
      end
    end
  end
  return best
end

--- The template of a node sequence with stages of unequal numbers of GPUs where that is faster: nodes of up to 8 GPUs
-- by halves. Remembered; the first call counts.
function templates.refined(ctx, nodes, c)
  local found = templates.of(ctx, nodes, c)
  if not found or found.refined then return found end
  local lists, same = {}, {}
  for i, node in ipairs(nodes) do
    local g = #node.ids
    same[g] = same[g] or templates.splits(g)
    if g > MOST_SPLIT then return found end
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

-- Instances and batch -------------------------------------------------------------------------

--- Section 4.2.2: micro-batches per template so that the variance of T_i / S_i · nb_i is least.
-- `used` = { { steady_s, count } }. With many templates the largest instead of the variance.
function templates.deal_batch(used, total)
  local time, sizes, min = {}, {}, {}
  for i, u in ipairs(used) do
    time[i], sizes[i], min[i] = u.steady_s, u.count, 1
  end
  return hv.opt.distribute { total = total, time = time, sizes = sizes, min = min,
    objective = #used <= 8 and "minvar" or "minmax" }
end

--- The batch for every instance: as many for all of a template (4.2.2); where no whole numbers do that, instance by
-- instance so that the slowest ends first, those of a template within one of each other. A list of micro-batches per
-- template; nil where there are fewer than instances.
function templates.deal(used, total)
  local dealt, out = templates.deal_batch(used, total), {}
  if dealt then
    for i, u in ipairs(used) do
      out[i] = {}
      for k = 1, u.count do out[i][k] = dealt.counts[i] end
    end
    return out
  end
  local time, min, owner = {}, {}, {}
  for i, u in ipairs(used) do
    out[i] = {}
    for _ = 1, u.count do
      time[#time + 1], min[#min + 1], owner[#owner + 1] = u.steady_s, 1, i
    end
  end
  dealt = hv.opt.distribute { total = total, time = time, min = min, objective = "minmax" }
  if not dealt then
    return nil
  end
  for k, n in ipairs(dealt.counts) do table.insert(out[owner[k]], n) end
  for _, list in ipairs(out) do
    local sum, n = 0, #list
    for _, x in ipairs(list) do sum = sum + x end
    for k = 1, n do list[k] = sum // n + (k <= sum % n and 1 or 0) end
  end
  return out
end

--- A mix of pipelines { template, nodes } with its batch: section 4.2, steps 4 and 5.
function templates.price_mix(ctx, pipelines, total)
  local used, by_key = {}, {}
  for _, p in ipairs(pipelines) do
    local u = by_key[p.template.key]
    if not u then
      u = { steady_s = p.template.steady_s, time_s = p.template.time_s, count = 0 }
      by_key[p.template.key] = u
      used[#used + 1] = u
    end
    u.count = u.count + 1
  end
  local counts, slowest, heads = templates.deal(used, total), 0, {}
  if not counts then
    return nil
  end
  for i, u in ipairs(used) do
    u.micro_batches, u.given = counts[i], 0
  end
  for i, p in ipairs(pipelines) do
    local u = by_key[p.template.key]
    u.given = u.given + 1
    p.micro_batches = u.micro_batches[u.given]
    slowest = math.max(slowest, u.time_s * p.micro_batches)
    heads[i] = p.nodes[1].ids[1]
  end
  if #heads > 1 then -- the first layer's gradients are reduced last, nothing hides them
    local chain = prices.chain(ctx, pipelines[1].nodes[1].kind, { tp = 1, micro_batch = 1 })
    slowest = slowest + prices.sync(ctx, chain, 1, 1, heads)
  end
  return { time_s = slowest, pipelines = pipelines }
end

--- Lays sizes out along the node sequence; nil where a template does not fit.
local function lay_out(ctx, sequence, sizes, c)
  local pipelines, at = {}, 1
  for i, n in ipairs(sizes) do
    local nodes = layout.slice(sequence, at, n)
    local found = templates.of(ctx, nodes, c)
    if not found then
      return nil
    end
    pipelines[i] = { nodes = nodes, template = found }
    at = at + n
  end
  return pipelines
end

--- Equal nodes: all mixes by enumeration (4.2.1) as lists of sizes; nil when there are too many.
local function enumerate(sequence, sizes, least)
  local options, complete = recovery.options(#sequence, sizes, least, MOST_OPTIONS)
  if not complete then
    return nil
  end
  local mixes = {}
  for i, x in ipairs(options) do
    mixes[i] = {}
    for k, n in ipairs(x) do
      for _ = 1, n do
        table.insert(mixes[i], sizes[k])
      end
    end
  end
  return mixes
end

--- Sizes of a mix that was built back to front: { size, before }.
local function sizes_of(last)
  local sizes, n = {}, 0
  while last do
    n = n + 1
    sizes[n], last = last.size, last.before
  end
  for i = 1, n // 2 do sizes[i], sizes[n - i + 1] = sizes[n - i + 1], sizes[i] end
  return sizes
end

--- Keeps the mixes with the highest rate; of equals those found first.
local function keep_best(list)
  for i, mix in ipairs(list) do
    mix.found = i
  end
  table.sort(list, function(a, b)
    if a.rate ~= b.rate then
      return a.rate > b.rate
    end
    return a.found < b.found
  end)
  for i = #list, KEPT + 1, -1 do
    list[i] = nil
  end
end

--- Adds a longer mix to the KEPT best of a state, which stay in order. Of mixes with the same rate the
-- first is kept: they differ in the order of equal pipelines only, or cost the same.
local function offer(state, rate, size, before)
  local at = #state + 1
  while at > 1 and state[at - 1].rate < rate do at = at - 1 end
  local same = at > 1 and math.abs(state[at - 1].rate - rate) <= 1e-12 * rate
  if at > KEPT or same then return end
  table.insert(state, at, { rate = rate, size = size, before = before })
  state[KEPT + 1] = nil
end

--- Unequal nodes: compositions of the sequence with the largest sum of 1 / T_i, which minimises
-- max T_i·nb_i when batches may be fractions. The KEPT best, by dynamic programming over nodes.
local function compose(ctx, sequence, sizes, least, c)
  local states = { [0] = { [0] = { { rate = 0 } } } }
  for at = 1, #sequence do
    states[at] = {}
    for count = 0, least do states[at][count] = {} end
    for _, n in ipairs(sizes) do
      local from = states[at - n]
      local found = from and templates.of(ctx, layout.slice(sequence, at - n + 1, n), c)
      for count = 0, found and least or -1 do
        for _, partial in ipairs(from[count] or {}) do
          offer(states[at][math.min(count + 1, least)], partial.rate + 1 / found.time_s, n,
            partial.size and partial)
        end
      end
    end
  end
  local mixes = {}
  for i, last in ipairs(states[#sequence][least] or {}) do
    mixes[i] = sizes_of(last)
  end
  return mixes
end

--- The paper's choice for one micro-batch size and recompute setting: { time_s, pipelines }.
function templates.choose(ctx, sequence, c)
  local sizes = recovery.sizes(#sequence, c.least, c.faults)
  local most = c.most_sizes > 0 and c.most_sizes or #sequence <= ALL_SIZES and #sizes or FEW_SIZES
  sizes = layout.slice(sizes, 1, math.min(#sizes, most))
  local least, equal = c.faults + 1, true
  for _, node in ipairs(sequence) do
    equal = equal and node.kind == sequence[1].kind and #node.ids == #sequence[1].ids
  end
  local mixes = equal and enumerate(sequence, sizes, least)
    or compose(ctx, sequence, sizes, least, c)
  local rated = {}
  for _, mix in ipairs(mixes) do
    local pipelines, rate = lay_out(ctx, sequence, mix, c), 0
    for _, p in ipairs(pipelines or {}) do
      rate = rate + 1 / p.template.time_s
    end
    if pipelines then
      rated[#rated + 1] = { rate = rate, sizes = mix, pipelines = pipelines }
    end
  end
  keep_best(rated)
  local best
  for _, r in ipairs(rated) do
    for _, p in ipairs(r.pipelines) do p.template = templates.refined(ctx, p.nodes, c) end
    local mix = templates.price_mix(ctx, r.pipelines, c.total)
    if mix and (not best or mix.time_s < best.time_s) then
      best = mix
    end
  end
  return best
end

--- A plan of pipelines: neighbours with the same template and micro-batches are copies of one entry.
function templates.plan(ctx, pipelines, c)
  local replicas, i = {}, 1
  while i <= #pipelines do
    local first, last = pipelines[i], i
    while last < #pipelines and pipelines[last + 1].template == first.template
      and pipelines[last + 1].micro_batches == first.micro_batches do
      last = last + 1
    end
    local stages, copies = {}, {}
    for p = i, last do
      copies[#copies + 1] = stages_of(pipelines[p].nodes, first.template.splits, c.layers)
    end
    for s, range in ipairs(first.template.cut.stages) do
      local ids = {}
      for _, copy in ipairs(copies) do
        table.move(copy[s].ids, 1, #copy[s].ids, #ids + 1, ids)
      end
      stages[s] = prices.stage_keys({ tp = copies[1][s].tp, recompute = c.recompute,
        sequence_parallel = copies[1][s].tp > 1 }, {
        devices = ctx.cluster:address(ids), layers = { range[1] - 1, range[2] },
      })
    end
    replicas[#replicas + 1] = { count = #copies, micro_batches = first.micro_batches,
      stages = stages }
    i = last + 1
  end
  return {
    micro_batch = c.micro_batch, replicas = replicas, schedule = { name = "1f1b" },
    sync = { kind = "allreduce" }, recovery = "peers",
  }
end

--- Nodes in order of falling speed, equal kinds together, file order otherwise; none and why not.
function templates.sequence(ctx)
  local devices, why = layout.devices(ctx)
  local nodes = layout.nodes(devices)
  for i, node in ipairs(nodes) do
    node.at = i
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
      if templates.of(ctx, layout.slice(sequence, from, n), c) then
        return n
      end
    end
  end
end

--- Seconds of an iteration when every node works all the time and every pipeline has n0 nodes that
-- fill once: what the settings to look at are ranked by. Nodes that no template can use count nothing.
local function rough(ctx, sequence, c)
  local speed, known = 0, {}
  for _, node in ipairs(sequence) do
    local key = signature { node }
    if not known[key] then
      known[key] = 0
      for _, parts in ipairs(layout.powers(2 * #node.ids - 1)) do
        local splits = even({ node }, parts)
        local stages = splits and stages_of({ node }, splits, c.layers)
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
  for _, micro_batch in ipairs(layout.powers(ctx.options.micro_batch)) do
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

--- Why there is no plan that survives so many faults; `c` is the setting that needs the fewest nodes.
function templates.shortage(ctx, sequence, faults, c)
  local have = 0
  for _, node in ipairs(sequence) do
    have = have + #node.ids * prices.capacity(ctx, node)
  end
  local chain = prices.chain(ctx, sequence[1].kind, { tp = 1, micro_batch = 1, recompute = "full" })
  local need = prices.bytes(ctx, chain, 1, chain.n, { in_flight = 1 })
  return ("to survive %d node failure%s takes %d pipelines; one needs %s nodes and %.1f GiB, the "
    .. "cluster has %d nodes with %.1f GiB"):format(faults, faults == 1 and "" or "s", faults + 1,
    c and ("at least %d"):format(c.least) or "more than all", need / 2 ^ 30, #sequence,
    have / 2 ^ 30)
end

return templates
