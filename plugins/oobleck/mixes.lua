--- Mixes of pipeline templates (Oobleck, SOSP'23, sections 4.2 and 5): which templates use every
-- node of a sequence once, how the batch is dealt out to the pipelines, the plan they give, and the
-- mix after nodes were lost. Settings `c` and templates are those of `templates`, with least (n0)
-- where a mix is chosen. A mix is { time_s, pipelines = list of { nodes, template, micro_batches }
-- }.
local numbers = require "numbers"
local prices = require "prices"
local recovery = require "recovery"
local templates = require "templates"

local mixes = {}

local MOST_OPTIONS = 2000 -- mixes that are enumerated
local ALL_SIZES = 32      -- nodes of a cluster up to which all template sizes are considered
-- and how many beyond, where larger ones do not win and cost most of the time
local FEW_SIZES = 6
local KEPT = 24           -- partial mixes kept per node, and mixes whose batch is dealt exactly

--- Micro-batches per template so that the variance of T_i / S_i · nb_i is least (section 4.2.2);
-- with many templates, or where it is asked for, the largest instead of the variance.
-- @function mixes.deal_batch
-- @tparam table used list of {steady_s, count}, a template each: seconds per micro-batch, how many
-- pipelines have it
-- @tparam integer total micro-batches of all pipelines
-- @tparam[opt] string rule "slowest": the largest is to be least
-- @treturn table {counts, value} as hv.opt.distribute gives it; nil where whole numbers do not add
-- up
-- @units seconds
-- @raise none
-- @usage local dealt = require("mixes").deal_batch({ { steady_s = 4, count = 1 }, { steady_s = 3, count = 1 } }, 14)
-- assert(dealt.counts[1] == 6 and dealt.counts[2] == 8)
function mixes.deal_batch(used, total, rule)
  local time, sizes, min = {}, {}, {}
  for i, u in ipairs(used) do
    time[i], sizes[i], min[i] = u.steady_s, u.count, 1
  end
  return hv.opt.distribute { total = total, time = time, sizes = sizes, min = min,
    objective = rule ~= "slowest" and #used <= 8 and "minvar" or "minmax" }
end

--- The batch for every pipeline: as many for all of a template (4.2.2); where no whole numbers do
-- that, one by one so that the slowest ends first, those of a template within one of each other.
-- @function mixes.deal
-- @tparam table used list of {steady_s, count}, a template each: seconds per micro-batch, how many
-- pipelines have it
-- @tparam integer total micro-batches of all pipelines
-- @tparam[opt] string rule as of mixes.deal_batch
-- @treturn table per template the list of its pipelines' micro-batches; nil where there are fewer
-- than pipelines
-- @units seconds
-- @raise none
-- @usage local dealt = require("mixes").deal({ { steady_s = 1, count = 3 } }, 10)
-- assert(dealt[1][1] == 4 and dealt[1][3] == 3)
function mixes.deal(used, total, rule)
  local dealt, out = mixes.deal_batch(used, total, rule), {}
  if dealt then
    for i, u in ipairs(used) do
      out[i] = {}
      for k = 1, u.count do
        out[i][k] = dealt.counts[i]
      end
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
  for k, n in ipairs(dealt.counts) do
    table.insert(out[owner[k]], n)
  end
  for _, list in ipairs(out) do
    local sum, n = 0, #list
    for _, x in ipairs(list) do
      sum = sum + x
    end
    for k = 1, n do
      list[k] = sum // n + (k <= sum % n and 1 or 0)
    end
  end
  return out
end

--- A mix of pipelines with its batch: section 4.2, steps 4 and 5.
-- @function mixes.price
-- @tparam handle ctx the run's input
-- @tparam table pipelines list of {nodes, template}; micro_batches is set in them
-- @tparam integer total micro-batches of all pipelines
-- @tparam[opt] string rule as of mixes.deal_batch
-- @treturn table {time_s, pipelines}; nil where there are fewer micro-batches than pipelines
-- @units seconds
-- @raise none
-- @usage local templates, mixes = require "templates", require "mixes"
-- local c = { micro_batch = 1, recompute = "full", layers = ctx.model:layers(), memo = {}, faults = 1, most_sizes = 0,
--   total = 64, least = 1, weights = function(stages) return { 2 * stages + 1, 1, 1 } end }
-- local sequence = templates.sequence(ctx)
-- local whole = { nodes = sequence, template = templates.of(ctx, sequence, c) }
-- assert(mixes.price(ctx, { whole }, 64).pipelines[1].micro_batches == 64)
function mixes.price(ctx, pipelines, total, rule)
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
  local counts, slowest, heads = mixes.deal(used, total, rule), 0, {}
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
    local nodes = numbers.slice(sequence, at, n)
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
  local lists = {}
  for i, x in ipairs(options) do
    lists[i] = {}
    for k, n in ipairs(x) do
      for _ = 1, n do
        table.insert(lists[i], sizes[k])
      end
    end
  end
  return lists
end

--- Sizes of a mix that was built back to front: { size, before }.
local function sizes_of(last)
  local sizes, n = {}, 0
  while last do
    n = n + 1
    sizes[n], last = last.size, last.before
  end
  for i = 1, n // 2 do
    sizes[i], sizes[n - i + 1] = sizes[n - i + 1], sizes[i]
  end
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

--- Adds a longer mix to the KEPT best of a state, which stay in order. Of mixes with the same rate
-- the first is kept: they differ in the order of equal pipelines only, or cost the same.
local function offer(state, rate, size, before)
  local at = #state + 1
  while at > 1 and state[at - 1].rate < rate do
    at = at - 1
  end
  local same = at > 1 and math.abs(state[at - 1].rate - rate) <= 1e-12 * rate
  if at > KEPT or same then
    return
  end
  table.insert(state, at, { rate = rate, size = size, before = before })
  state[KEPT + 1] = nil
end

--- Unequal nodes: compositions of the sequence with the largest sum of 1 / T_i, which minimises
-- max T_i·nb_i when batches may be fractions. The KEPT best, by dynamic programming over nodes.
local function compose(ctx, sequence, sizes, least, c)
  local states = { [0] = { [0] = { { rate = 0 } } } }
  for at = 1, #sequence do
    states[at] = {}
    for count = 0, least do
      states[at][count] = {}
    end
    for _, n in ipairs(sizes) do
      local from = states[at - n]
      local found = from and templates.of(ctx, numbers.slice(sequence, at - n + 1, n), c)
      for count = 0, found and least or -1 do
        for _, partial in ipairs(from[count] or {}) do
          offer(states[at][math.min(count + 1, least)], partial.rate + 1 / found.time_s, n,
            partial.size and partial)
        end
      end
    end
  end
  local lists = {}
  for i, last in ipairs(states[#sequence][least] or {}) do
    lists[i] = sizes_of(last)
  end
  return lists
end

--- The paper's choice for one micro-batch size and recompute setting; it looks at one template per
-- position and size at most.
-- @function mixes.choose
-- @tparam handle ctx the run's input
-- @tparam table sequence list of nodes as templates.sequence gives it
-- @tparam table c {micro_batch, recompute, layers, weights, memo, faults, least, most_sizes, total}
-- @treturn table {time_s, pipelines}; nil where nothing survives so many faults
-- @units seconds
-- @raise none
-- @usage local templates, mixes = require "templates", require "mixes"
-- local c = { micro_batch = 1, recompute = "full", layers = ctx.model:layers(), memo = {}, faults = 1, most_sizes = 0,
--   total = 64, least = 1, weights = function(stages) return { 2 * stages + 1, 1, 1 } end }
-- local sequence = templates.sequence(ctx)
-- assert(#mixes.choose(ctx, sequence, c).pipelines >= 2)
function mixes.choose(ctx, sequence, c)
  local sizes = recovery.sizes(#sequence, c.least, c.faults)
  local most = c.most_sizes > 0 and c.most_sizes or #sequence <= ALL_SIZES and #sizes or FEW_SIZES
  sizes = numbers.slice(sizes, 1, math.min(#sizes, most))
  local least, equal = c.faults + 1, true
  for _, node in ipairs(sequence) do
    equal = equal and node.kind == sequence[1].kind and #node.ids == #sequence[1].ids
  end
  local lists = equal and enumerate(sequence, sizes, least)
    or compose(ctx, sequence, sizes, least, c)
  local rated = {}
  for _, mix in ipairs(lists) do
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
    for _, p in ipairs(r.pipelines) do
      p.template = templates.refined(ctx, p.nodes, c)
    end
    local mix = mixes.price(ctx, r.pipelines, c.total, c.deal)
    if mix and (not best or mix.time_s < best.time_s) then
      best = mix
    end
  end
  return best
end

--- A plan of pipelines: neighbours with the same template and micro-batches are copies of one
-- entry.
-- @function mixes.plan
-- @tparam handle ctx the run's input
-- @tparam table pipelines list of {nodes, template, micro_batches}
-- @tparam table c {micro_batch, recompute, layers} and the rest of a setting
-- @treturn table a plan: {micro_batch, replicas, schedule, sync, recovery}
-- @units none
-- @raise none
-- @usage local templates, mixes = require "templates", require "mixes"
-- local c = { micro_batch = 1, recompute = "full", layers = ctx.model:layers(), memo = {}, faults = 1, most_sizes = 0,
--   total = 64, least = 1, weights = function(stages) return { 2 * stages + 1, 1, 1 } end }
-- local sequence = templates.sequence(ctx)
-- assert(#mixes.plan(ctx, mixes.choose(ctx, sequence, c).pipelines, c).replicas >= 1)
function mixes.plan(ctx, pipelines, c)
  local replicas, i = {}, 1
  while i <= #pipelines do
    local first, last = pipelines[i], i
    while last < #pipelines and pipelines[last + 1].template == first.template
        and pipelines[last + 1].micro_batches == first.micro_batches do
      last = last + 1
    end
    local stages, copies = {}, {}
    for p = i, last do
      copies[#copies + 1] = templates.stages(pipelines[p].nodes, first.template.splits, c.layers)
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

--- The mix that is left of a plan when devices were lost (section 5): pipelines are repaired, get
-- templates again and a new share of the batch.
-- @function mixes.repaired
-- @tparam handle ctx the run's input
-- @tparam table sequence list of nodes as templates.sequence gives it
-- @tparam table made {replicas, …}, the plan that was running
-- @tparam table lost list of device numbers
-- @tparam table c {micro_batch, recompute, layers, weights, memo, total; leave = true: nodes of
-- which some devices are lost are left out whole}
-- @treturn table {time_s, pipelines}; nil and why not
-- @units seconds
-- @raise none
-- @usage local templates, mixes = require "templates", require "mixes"
-- local c = { micro_batch = 1, recompute = "full", layers = ctx.model:layers(), memo = {}, faults = 1, most_sizes = 0,
--   total = 64, least = 1, weights = function(stages) return { 2 * stages + 1, 1, 1 } end }
-- local sequence = templates.sequence(ctx)
-- local made = mixes.plan(ctx, mixes.choose(ctx, sequence, c).pipelines, c)
-- assert(mixes.repaired(ctx, sequence, made, { 1 }, c))
function mixes.repaired(ctx, sequence, made, lost, c)
  local function template(own)
    return templates.of(ctx, recovery.nodes(sequence, own), c)
  end
  local left = recovery.repair(recovery.pipelines(ctx, made, sequence),
    recovery.gone(sequence, lost, c.leave), template)
  if not left then
    return nil, "the nodes that are left cannot hold the model once"
  end
  for i, own in ipairs(left) do
    local nodes = recovery.nodes(sequence, own)
    left[i] = { nodes = nodes, template = templates.refined(ctx, nodes, c) }
  end
  local mix = mixes.price(ctx, left, c.total, c.deal)
  if not mix then
    return nil, "the batch cannot be dealt out to the pipelines that are left"
  end
  return mix
end

return mixes
