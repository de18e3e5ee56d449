--- Oobleck (Jang et al., SOSP'23): pipelines that survive node failures without spares.
-- Section 4.1: pipeline templates for every useful node count. Section 4.2: how many of each, and
-- how many micro-batches each gets, so that all end together. Section 5: recovery.
-- Unequal nodes: nodes are put in order of speed, a pipeline takes consecutive ones, and a template
-- belongs to the sequence of node kinds rather than to a mere count; with equal nodes that is the
-- paper. Inside a node every stage has the same number of GPUs (node size / a power of two).
local layout = require "layout"
local prices = require "prices"
local recovery = require "recovery"

local MOST_OPTIONS = 2000 -- instance mixes that are enumerated
local KEPT = 24           -- partial mixes kept per node, and mixes whose batch is dealt exactly

--- One way to run the stages, with the templates made for it.
local function setting(ctx, micro_batch, recompute)
  return { micro_batch = micro_batch, recompute = recompute, memo = {},
    rule = ctx.options.coefficient, layers = ctx.model:layers() }
end

-- Templates, section 4.1 -----------------------------------------------------------------------

--- Weights { c0, c1, tail } of T = sum t + (c0 + c1·k)·t_k + tail·sum over s >= k of t_s, with k
-- (from 0) the rightmost slowest of S stages (section 4.1.2). The published code takes
-- 2S + k + 1, in its one-stage base case 2; the paper N_b - S + k - 1 with N_b = 4S.
local function weights(n_stages, rule)
  if rule == "paper" then
    return { 3 * n_stages - 1, 1, 1 }
  end
  return { n_stages == 1 and 2 or 2 * n_stages + 1, n_stages == 1 and 0 or 1, 1 }
end

--- Stages of a node sequence: every node in min(parts, GPUs) stages, or nil where that cannot be.
local function stages_of(nodes, parts, layers)
  local stages = {}
  for _, node in ipairs(nodes) do
    local n = math.min(parts, #node.ids)
    local tp = #node.ids // n
    if #node.ids % n ~= 0 or not layout.tp_fits(layers, tp) then
      return nil
    end
    for i = 1, n do
      stages[#stages + 1] = { node = node, tp = tp, kind = node.kind,
        memory_bytes = node.memory_bytes, ids = layout.slice(node.ids, (i - 1) * tp + 1, tp) }
    end
  end
  return #stages <= #layers and stages or nil
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
  local w = weights(#stages, c.rule)
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
    capacity = capacity, weights = weights(#stages, c.rule) }
end

local function signature(nodes)
  local words = {}
  for i, node in ipairs(nodes) do
    words[i] = node.kind .. "/" .. #node.ids
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

--- The template of a node sequence: { time_s = T, stages, cut } or nil. Remembered in `c.memo`.
local function template(ctx, nodes, c)
  local key = signature(nodes)
  if c.memo[key] == nil then
    local best = false
    local most = 0
    for _, node in ipairs(nodes) do
      most = math.max(most, #node.ids)
    end
    for _, parts in ipairs(may_hold(ctx, nodes, c) and layout.powers(most) or {}) do
      local stages = stages_of(nodes, parts, c.layers)
      local chains, bound
      if stages then
        chains, bound = price_stages(ctx, stages, c)
      end
      local cut = stages and not (best and bound >= best.time_s)
        and cut_layers(ctx, stages, chains, c)
      if cut and (not best or cut.value < best.time_s) then
        best = { time_s = cut.value, steady_s = cut.value / #stages, parts = parts, cut = cut,
          key = key }
      end
    end
    c.memo[key] = best
  end
  return c.memo[key]
end

-- Instances and batch, section 4.2 --------------------------------------------------------------

--- Section 4.2.2: micro-batches per template so that the variance of T_i / S_i · nb_i is least.
-- `used` = { { steady_s, count } }. With many templates the largest instead of the variance.
local function deal_batch(used, total)
  local time, sizes, min = {}, {}, {}
  for i, u in ipairs(used) do
    time[i], sizes[i], min[i] = u.steady_s, u.count, 1
  end
  return hv.opt.distribute { total = total, time = time, sizes = sizes, min = min,
    objective = #used <= 8 and "minvar" or "minmax" }
end

--- A mix of pipelines { template, nodes } with its batch: section 4.2, steps 4 and 5.
local function price_mix(ctx, pipelines, total)
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
  local dealt = deal_batch(used, total)
  if not dealt then
    return nil
  end
  local slowest, heads = 0, {}
  for i, u in ipairs(used) do
    u.micro_batches = dealt.counts[i]
    slowest = math.max(slowest, u.time_s * u.micro_batches)
  end
  for i, p in ipairs(pipelines) do
    p.micro_batches = by_key[p.template.key].micro_batches
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
    local found = template(ctx, nodes, c)
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

--- Unequal nodes: compositions of the sequence with the largest sum of 1 / T_i, which minimises
-- max T_i·nb_i when batches may be fractions. The KEPT best, by dynamic programming over nodes.
local function compose(ctx, sequence, sizes, least, c)
  local states = { [0] = { [0] = { { rate = 0, sizes = {} } } } }
  for at = 1, #sequence do
    states[at] = {}
    for _, n in ipairs(sizes) do
      local from = states[at - n]
      local found = from and template(ctx, layout.slice(sequence, at - n + 1, n), c)
      for count = 0, found and least or -1 do
        local list, to = from[count] or {}, math.min(count + 1, least)
        states[at][to] = states[at][to] or {}
        for _, partial in ipairs(list) do
          local longer = table.move(partial.sizes, 1, #partial.sizes, 1, {})
          longer[#longer + 1] = n
          table.insert(states[at][to], { rate = partial.rate + 1 / found.time_s, sizes = longer })
        end
      end
    end
    for count = 0, least do
      keep_best(states[at][count] or {})
    end
  end
  local mixes = {}
  for i, s in ipairs(states[#sequence][least] or {}) do
    mixes[i] = s.sizes
  end
  return mixes
end

--- The paper's choice for one micro-batch size and recompute setting: { time_s, pipelines }.
local function choose(ctx, sequence, sizes, c)
  local least, equal = ctx.options.faults + 1, true
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
    local mix = price_mix(ctx, r.pipelines, ctx.job.global_batch // c.micro_batch)
    if mix and (not best or mix.time_s < best.time_s) then
      best = mix
    end
  end
  return best
end

-- The plan --------------------------------------------------------------------------------------

--- Replica entries: neighbours with the same template and micro-batches are copies of one entry.
local function replicas_of(ctx, pipelines, c)
  local replicas, i = {}, 1
  while i <= #pipelines do
    local first, last = pipelines[i], i
    while last < #pipelines and pipelines[last + 1].template == first.template
      and pipelines[last + 1].micro_batches == first.micro_batches do
      last = last + 1
    end
    local stages, copies = {}, {}
    for p = i, last do
      copies[#copies + 1] = stages_of(pipelines[p].nodes, first.template.parts, c.layers)
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
    sync = { kind = "allreduce" },
  }
end

--- Nodes in order of falling speed, equal kinds together, file order otherwise.
local function sequence_of(ctx)
  local nodes = layout.nodes(layout.devices(ctx))
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
  return nodes
end

--- n0: the least number of consecutive nodes whose memory holds the model (section 4.1.1).
local function least_nodes(ctx, sequence, c)
  for n = 1, #sequence do
    for from = 1, #sequence - n + 1 do
      if template(ctx, layout.slice(sequence, from, n), c) then
        return n
      end
    end
  end
end

local function sizes_for(ctx, sequence, least)
  local sizes = recovery.sizes(#sequence, least, ctx.options.faults)
  return layout.slice(sizes, 1, math.min(#sizes, ctx.options.sizes))
end

--- Seconds of an iteration when every node works all the time and every pipeline has n0 nodes that
-- fill once: what the settings to look at are ranked by.
local function rough(ctx, sequence, c)
  local speed = 0
  for _, node in ipairs(sequence) do
    local stages = stages_of({ node }, 1, c.layers) or stages_of({ node }, #node.ids, c.layers)
    local _, bound = price_stages(ctx, { stages[1] }, c)
    speed = speed + 1 / bound
  end
  local total = ctx.job.global_batch / c.micro_batch
  return (total + #sequence * (c.least - 1) / c.least) / speed
end

--- The settings worth exact templates, best first, each with its n0.
local function settings_of(ctx, sequence)
  local list = {}
  for _, micro_batch in ipairs(layout.powers(ctx.options.micro_batch)) do
    for _, recompute in ipairs { "none", "selective", "full" } do
      local c = setting(ctx, micro_batch, recompute)
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

--- What the whole cluster has and what one pipeline over all of it needs, in GiB.
local function memory_figures(ctx, sequence)
  local have, c = 0, { tp = 1, micro_batch = 1, recompute = "full" }
  for _, node in ipairs(sequence) do
    have = have + #node.ids * prices.capacity(ctx, node)
  end
  local chain = prices.chain(ctx, sequence[1].kind, c)
  return prices.bytes(ctx, chain, 1, chain.n, { in_flight = 1 }) / 2 ^ 30, have / 2 ^ 30
end

local function plan(ctx)
  local sequence = sequence_of(ctx)
  if #sequence == 0 then
    return nil, ("no device of the cluster computes in %s"):format(ctx.job.precision)
  end
  local list, settings = {}, settings_of(ctx, sequence)
  for i, c in ipairs(settings) do
    local best = choose(ctx, sequence, sizes_for(ctx, sequence, c.least), c)
    if best then
      list[#list + 1] = { claim_s = best.time_s, rank = i,
        build = function()
          return replicas_of(ctx, best.pipelines, c)
        end }
    end
    hv.progress(i / #settings, ("templates for setting %d of %d"):format(i, #settings))
    if #list == ctx.options.tries or (#list > 0 and hv.stopping()) then
      break
    end
  end
  if #list == 0 then
    local need, have = memory_figures(ctx, sequence)
    return nil, ("to survive %d node failure%s takes %d pipelines; one needs %s nodes and "
      .. "%.1f GiB, the cluster has %d nodes with %.1f GiB"):format(ctx.options.faults,
      ctx.options.faults == 1 and "" or "s", ctx.options.faults + 1,
      settings[1] and ("at least %d"):format(settings[1].least) or "more than all", need, #sequence,
      have)
  end
  local best, reason = layout.best(list, ctx.options.tries)
  return best, not best and reason or nil
end

-- Recovery, section 5 -----------------------------------------------------------------------------

--- Pipelines of a plan as lists of positions in the node sequence.
local function pipelines_of(ctx, made, sequence)
  local position, pipelines = {}, {}
  for at, node in ipairs(sequence) do
    for _, id in ipairs(node.ids) do
      position[id] = at
    end
  end
  for _, replica in ipairs(made.replicas) do
    local count = replica.count or 1
    for copy = 1, count do
      local own, seen = {}, {}
      for _, stage in ipairs(replica.stages) do
        local ids = ctx.cluster:ids(stage.devices)
        local part = #ids // count
        for i = (copy - 1) * part + 1, copy * part do
          local at = position[ids[i]]
          if at and not seen[at] then
            seen[at] = true
            own[#own + 1] = at
          end
        end
      end
      pipelines[#pipelines + 1] = own
    end
  end
  return pipelines
end

local function replan(ctx, made, lost)
  local sequence, gone, is_lost = sequence_of(ctx), {}, {}
  made = prices.table_of(made)
  for _, id in ipairs(lost) do
    is_lost[id] = true
  end
  for i, node in ipairs(sequence) do
    for _, id in ipairs(node.ids) do
      gone[i] = gone[i] or is_lost[id]
    end
  end
  local first = made.replicas[1].stages[1]
  local c = setting(ctx, made.micro_batch, first.recompute or "none")
  local function nodes_at(own)
    local nodes = {}
    for i, at in ipairs(own) do
      nodes[i] = sequence[at]
    end
    table.sort(nodes, function(a, b)
      return a.order < b.order
    end)
    return nodes
  end
  local left = recovery.repair(pipelines_of(ctx, made, sequence), gone, function(own)
    return template(ctx, nodes_at(own), c)
  end)
  if not left then
    return nil, "the nodes that are left cannot hold the model once"
  end
  local pipelines = {}
  for i, own in ipairs(left) do
    local nodes = nodes_at(own)
    pipelines[i] = { nodes = nodes, template = template(ctx, nodes, c) }
  end
  local mix = price_mix(ctx, pipelines, ctx.job.global_batch // c.micro_batch)
  if not mix then
    return nil, "the batch cannot be dealt out to the pipelines that are left"
  end
  return replicas_of(ctx, mix.pipelines, c)
end

-- Claim and self-test ---------------------------------------------------------------------------

--- T1 + T2 + T3 of one pipeline with N_b micro-batches: c = N_b - S + k - 1, k from 0 (4.1.2).
local function pipeline_time(stage_s, micro_batches)
  local sum, k, tail = 0, 1, 0
  for s, t in ipairs(stage_s) do
    sum = sum + t
    if t >= stage_s[k] then
      k = s
    end
  end
  for s = k, #stage_s do
    tail = tail + stage_s[s]
  end
  return sum + (micro_batches - #stage_s + k - 2) * stage_s[k] + tail
end

local function claim(made, ctx)
  made = prices.table_of(made)
  local slowest, heads, kinds = 0, {}, prices.kinds(ctx)
  for r, replica in ipairs(made.replicas) do
    local stage_s, ids = {}, ctx.cluster:ids(replica.stages[1].devices)
    for s in ipairs(replica.stages) do
      local pass = prices.stage(ctx, made, r, s)
      stage_s[s] = pass.forward_s + pass.backward_s
    end
    slowest = math.max(slowest, pipeline_time(stage_s, replica.micro_batches))
    for i = 1, #ids, #ids // (replica.count or 1) do
      heads[#heads + 1] = ids[i]
    end
  end
  local chain = prices.chain(ctx, kinds[heads[1]], { tp = 1, micro_batch = 1 })
  local sync_s = prices.sync(ctx, chain, 1, 1, heads)
  return { iteration_s = slowest + sync_s, terms = { pipeline_s = slowest, first_layer_s = sync_s },
    formula = "max over pipelines of T1 + T2 + T3 with c = N_b - S + k* - 1 (Oobleck, section "
      .. "4.1.2), and the first layer's all-reduce" }
end

-- Forward + backward of 34 layers in ms: the planner's own test generator, random seed 0, and the
-- T of its templates on nodes of one GPU (Oobleck 3b7a0c2, csrc/planning, run once).
local dummy = {
    3.11828506035, 0.746004075596, 1.42675588029, 0.956751123415, 1.97920126178, 0.987142802138,
    1.64590877954, 1.14573985785, 2.12059880815, 3.61912684285, 1.15046490305, 1.37545527851,
    1.52216382232, 1.6452504092, 2.63431609998, 0.485642425718, 1.11894728432, 2.36953983325,
    0.74334596444, 2.64703735191, 1.51098622788, 3.01926502193, 2.75203355321, 1.69345291414,
    1.7905427062, 0.864160806141, 3.25808199288, 1.59005920207, 2.12965769986, 3.04670856393,
    2.15996095752, 0.616308150922, 0.256299537213, 2.79292433281,
}
local dummy_times = { [2] = 275.789441626341, [3] = 265.153028342426, [4] = 266.918920405485,
  [5] = 274.173092893116, [6] = 267.424221438280, [7] = 262.738164684253, [8] = 278.476622516917 }

local function template_value(times, n_stages)
  return hv.opt.partition { n = #times, parts = n_stages, load = times,
    weights = weights(n_stages, "code") }
end

--- T of the best cut by trying all of them (n stages from layer `from` on).
local function brute(times, n, from, done)
  if n == 0 then
    if from <= #times then
      return math.huge
    end
    local w, sum, k, tail = weights(#done, "code"), 0, 1, 0
    for s, t in ipairs(done) do
      sum = sum + t
      k = t >= done[k] and s or k
    end
    for s = k, #done do
      tail = tail + done[s]
    end
    return sum + (w[1] + w[2] * (k - 1)) * done[k] + w[3] * tail
  end
  local best, t = math.huge, 0
  for to = from, #times - n + 1 do
    t = t + times[to]
    done[#done + 1] = t
    best = math.min(best, brute(times, n - 1, to + 1, done))
    done[#done] = nil
  end
  return best
end

local function selftest_templates(t, src)
  local two, three = template_value({ 2, 4, 6 }, 2), template_value({ 1, 2, 3, 4, 5, 6 }, 3)
  t.near("T of layers 2 4 6 on 2 nodes", two.value, 54, 0, src)
  t.equal("its cut", two.stages[1][2], 2, src)
  t.near("T of layers 1 to 6 on 3 nodes", three.value, 108, 0, src)
  t.equal("its stages", ("%g|%g|%g"):format(table.unpack(three.values)), "6|9|6", src)
  t.near("one stage: 4 t", template_value({ 1, 2 }, 1).value, 12, 0, src)
  t.near("34 layers, one node of 4 GPUs: 4 t of the published stage",
    4 * (25.7160315068991 + 32.9095049523248), 234.502145836896, 1e-9, "Oobleck's own planner")
  for n = 2, 8 do
    t.near(("34 layers on %d nodes"):format(n), template_value(dummy, n).value, dummy_times[n],
      1e-6, "Oobleck's own planner")
  end
  local times = { 3, 1, 4, 1, 5, 9, 2, 6 }
  for n = 1, 5 do
    t.near(("all cuts of 8 layers into %d"):format(n), template_value(times, n).value,
      brute(times, n, 1, {}), 1e-9, "oracle")
  end
end

local function selftest_recovery(t, src)
  local function text(pipelines)
    local words = {}
    for i, p in ipairs(pipelines) do
      words[i] = table.concat(p, " ")
    end
    return table.concat(words, " | ")
  end
  local function two(nodes)
    return #nodes >= 2
  end
  local kept = recovery.repair({ { 1, 2 }, { 3, 4, 5 } }, { [5] = true }, two)
  t.equal("a smaller template is used", text(kept), "1 2 | 3 4", src)
  local borrowed = recovery.repair({ { 1, 2 }, { 3, 4, 5 } }, { [1] = true }, two)
  t.equal("a node is borrowed", text(borrowed), "2 5 | 3 4", src)
  local merged = recovery.repair({ { 1, 2 }, { 3, 4 } }, { [1] = true }, two)
  t.equal("pipelines are merged", text(merged), "3 4 2", src)
  t.ok("nothing is left", recovery.repair({ { 1, 2 } }, { [1] = true }, two) == nil, src)
end

local function selftest(t)
  local src = "catalogue: oobleck"
  local sizes = recovery.sizes(7, 2, 1)
  t.equal("sizes N=7 n0=2 f=1", table.concat(sizes, " "), "2 3 4 5", src)
  local options = recovery.options(7, sizes, 2, 1000)
  t.equal("options N=7", #options, 3, src)
  local seven = { 2, 3, 4, 5, 6, 7 }
  t.equal("options N=13 without the filter", #recovery.options(13, seven, 0, 1000), 17, src)
  t.equal("options N=13 with f=3", #recovery.options(13, seven, 4, 1000), 10, src)
  local a = deal_batch({ { steady_s = 4, count = 1 }, { steady_s = 3, count = 1 } }, 14)
  t.equal("batch 14 on (4, 3)", table.concat(a.counts, ","), "6,8", src)
  t.near("its objective", a.value, 0, 1e-9, src)
  local b = deal_batch({ { steady_s = 6, count = 2 }, { steady_s = 4, count = 1 } }, 16)
  t.equal("batch 16 on (6, 4), two and one", table.concat(b.counts, ","), "5,6", src)
  t.near("its objective", b.value, 18, 1e-9, src)
  t.near("4 equal stages, 10 micro-batches", pipeline_time({ 1, 1, 1, 1 }, 10), 13, 0, "Eq-P")
  selftest_templates(t, src)
  selftest_recovery(t, "section 5")
end

return {
  api = 1, id = "oobleck", title = "Oobleck", kind = "hetero",
  system = "Oobleck: Resilient Distributed Training of Large Models Using Pipeline Templates, "
    .. "SOSP 2023",
  reference = "doi:10.1145/3600006.3613152",
  summary = "Pipeline templates for node counts; batch split so that all pipelines end together.",
  needs = { model = "layers" },
  options = {
    { key = "faults", type = "integer", default = 1, min = 0, max = 64,
      help = "simultaneous node failures to survive (one pipeline more than that is kept)" },
    { key = "micro_batch", type = "integer", default = 4, min = 1, max = 1024,
      help = "largest micro-batch to try, in powers of two" },
    { key = "sizes", type = "integer", default = 6, min = 1, max = 4096,
      help = "how many template sizes are considered, from the least n0 on" },
    { key = "coefficient", type = "choice", choices = { "code", "paper" }, default = "code",
      help = "weight of the slowest stage in T: the published code's or the paper's" },
    { key = "tries", type = "integer", default = 2, min = 1, max = 100,
      help = "settings of micro-batch and recompute that get exact templates and are simulated" },
  },
  plan = plan,
  replan = replan,
  claim = claim,
  selftest = selftest,
}
