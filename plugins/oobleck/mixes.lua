-- Mixes of pipeline templates (Oobleck, sections 4.2 and 5): which templates use every node of a
-- sequence once, with which share of the batch, and the mix after nodes were lost. A mix is {
-- time_s, pipelines = list of { nodes, template, micro_batches } }. Settings `c` are those of
-- `settings`.
local batch_split = require "batch_split"
local combinations = require "combinations"
local numbers = require "numbers"
local prices = require "prices"
local recovery = require "recovery"
local templates = require "templates"

local mixes = {}

local MOST_OPTIONS = 2000 -- combinations that are enumerated
local ALL_SIZES = 32      -- nodes of a cluster up to which all template sizes are considered
local FEW_SIZES = 6       -- sizes beyond that: larger templates do not win and take most time
local KEPT = 24           -- partial mixes kept per node, and mixes whose batch is split exactly
local ROUNDING = 1e-12    -- relative difference of rates that counts as equal

--- Templates in use as batch_split takes them, in order of first mention, and by key.
local function templates_in_use(pipelines)
  local used = {}
  local by_key = {}
  for _, p in ipairs(pipelines) do
    local key = p.template.key
    if not by_key[key] then
      by_key[key] = { steady_s = p.template.steady_s, time_s = p.template.time_s, count = 0 }
      used[#used + 1] = by_key[key]
    end
    by_key[key].count = by_key[key].count + 1
  end
  return used, by_key
end

--- Seconds of the first layer's all-reduce, which no backward pass hides.
local function first_layer_s(ctx, pipelines)
  local heads = {}
  for i, p in ipairs(pipelines) do
    heads[i] = p.nodes[1].ids[1]
  end
  local chain = prices.chain(ctx, pipelines[1].nodes[1].kind, { tp = 1, micro_batch = 1 })
  return prices.sync(ctx, chain, 1, 1, heads)
end

--- The mix of these pipelines with its batch (section 4.2, steps 4 and 5), whose micro_batches are
-- set; nil where there are fewer micro-batches than pipelines. `rule` is that of batch_split.
function mixes.price(ctx, pipelines, total, rule)
  local used, by_key = templates_in_use(pipelines)
  local lists = batch_split.by_pipeline(used, total, rule)
  if not lists then
    return nil
  end
  for i, template in ipairs(used) do
    template.micro_batches = lists[i]
    template.n_given = 0
  end
  local slowest_s = 0
  for _, p in ipairs(pipelines) do
    local template = by_key[p.template.key]
    template.n_given = template.n_given + 1
    p.micro_batches = template.micro_batches[template.n_given]
    slowest_s = math.max(slowest_s, template.time_s * p.micro_batches)
  end
  if #pipelines > 1 then
    slowest_s = slowest_s + first_layer_s(ctx, pipelines)
  end
  return { time_s = slowest_s, pipelines = pipelines }
end

--- Pipelines of these sizes along the node sequence; nil where a template does not fit.
local function lay_out(ctx, sequence, sizes, c)
  local pipelines = {}
  local first = 1
  for i, n in ipairs(sizes) do
    local nodes = numbers.slice(sequence, first, n)
    local found = templates.of(ctx, nodes, c)
    if not found then
      return nil
    end
    pipelines[i] = { nodes = nodes, template = found }
    first = first + n
  end
  return pipelines
end

--- Equal nodes: all mixes by enumeration (section 4.2.1) as lists of sizes; nil where there are too
-- many.
local function enumerate(sequence, sizes, least)
  local options, complete = combinations.all(#sequence, sizes, least, MOST_OPTIONS)
  if not complete then
    return nil
  end
  local lists = {}
  for i, counts in ipairs(options) do
    lists[i] = combinations.expanded(sizes, counts)
  end
  return lists
end

--- Sizes of a partial mix { size, before }, which was built back to front.
local function sizes_of(last)
  local sizes = {}
  while last do
    table.insert(sizes, 1, last.size)
    last = last.before
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

--- Adds a longer partial mix to the KEPT best of a state, which stay in order. Of mixes with the
-- same rate the first is kept: they differ in the order of equal pipelines only, or take as long.
local function offer(state, rate, size, before)
  local at = #state + 1
  while at > 1 and state[at - 1].rate < rate do
    at = at - 1
  end
  local is_known = at > 1 and math.abs(state[at - 1].rate - rate) <= ROUNDING * rate
  if at > KEPT or is_known then
    return
  end
  table.insert(state, at, { rate = rate, size = size, before = before })
  state[KEPT + 1] = nil
end

--- Extends the partial mixes of `from` by one pipeline of `size` nodes that takes time_s. States
-- count pipelines up to `least`.
local function extend(from, to, least, size, time_s)
  for count = 0, least do
    for _, partial in ipairs(from[count] or {}) do
      local before = partial.size and partial
      offer(to[math.min(count + 1, least)], partial.rate + 1 / time_s, size, before)
    end
  end
end

--- Unequal nodes: the KEPT mixes with the largest sum of 1 / T_i, as lists of sizes. That sum
-- minimises max T_i * n_i where batches may be fractions. Dynamic programming over nodes.
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
      if found then
        extend(from, states[at], least, n, found.time_s)
      end
    end
  end
  local lists = {}
  for i, last in ipairs(states[#sequence][least] or {}) do
    lists[i] = sizes_of(last)
  end
  return lists
end

local function are_equal(nodes)
  for _, node in ipairs(nodes) do
    if node.kind ~= nodes[1].kind or #node.ids ~= #nodes[1].ids then
      return false
    end
  end
  return true
end

--- Template sizes that are considered.
local function sizes_considered(sequence, c)
  local sizes = combinations.sizes(#sequence, c.least, c.faults)
  local most = FEW_SIZES
  if c.most_sizes > 0 then
    most = c.most_sizes
  elseif #sequence <= ALL_SIZES then
    most = #sizes
  end
  return numbers.slice(sizes, 1, math.min(#sizes, most))
end

--- Mixes laid out along the sequence with their rate in micro-batches per second, the best KEPT.
local function rated(ctx, sequence, lists, c)
  local list = {}
  for _, sizes in ipairs(lists) do
    local pipelines = lay_out(ctx, sequence, sizes, c)
    if pipelines then
      local rate = 0
      for _, p in ipairs(pipelines) do
        rate = rate + 1 / p.template.time_s
      end
      list[#list + 1] = { rate = rate, pipelines = pipelines }
    end
  end
  keep_best(list)
  return list
end

--- The paper's choice for one setting: { time_s, pipelines }; nil where nothing survives c.faults
-- failures. It needs at most one template per position and size.
function mixes.choose(ctx, sequence, c)
  local sizes = sizes_considered(sequence, c)
  local least = c.faults + 1
  local lists
  if are_equal(sequence) then
    lists = enumerate(sequence, sizes, least)
  end
  lists = lists or compose(ctx, sequence, sizes, least, c)
  local best
  for _, candidate in ipairs(rated(ctx, sequence, lists, c)) do
    for _, p in ipairs(candidate.pipelines) do
      p.template = templates.refined(ctx, p.nodes, c)
    end
    local mix = mixes.price(ctx, candidate.pipelines, c.total, c.deal)
    if mix and (not best or mix.time_s < best.time_s) then
      best = mix
    end
  end
  return best
end

--- The mix that is left of the plan `made` when the devices `lost` are gone (section 5): pipelines
-- are repaired and get templates and a share of the batch again. nil and the reason where none is.
-- With c.leave, nodes of which some devices are lost are left out whole.
function mixes.repaired(ctx, sequence, made, lost, c)
  local function has_template(own)
    return templates.of(ctx, recovery.nodes(sequence, own), c)
  end
  local left = recovery.repair(recovery.pipelines(ctx, made, sequence),
    recovery.gone(sequence, lost, c.leave), has_template)
  if not left then
    return nil, "the nodes that are left cannot hold the model once"
  end
  local pipelines = {}
  for i, own in ipairs(left) do
    local nodes = recovery.nodes(sequence, own)
    pipelines[i] = { nodes = nodes, template = templates.refined(ctx, nodes, c) }
  end
  local mix = mixes.price(ctx, pipelines, c.total, c.deal)
  if not mix then
    return nil, "the batch has fewer micro-batches than pipelines that are left"
  end
  return mix
end

return mixes
