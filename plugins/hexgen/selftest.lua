-- Self-tests of HexGen on its authors' shipped case, and of its latency objective on all pipelines
-- of tiny groups.
local genetic = require "genetic"
local group_pipeline = require "group_pipeline"
local regions_of = require "data.regions"
local replicas = require "replicas"
local search = require "search"
local splits = require "splits"

local SOURCE = "HexGen 949414d~1, experimental/optimizer"

local function check_search(t)
  local total = 0
  for i, q in ipairs(regions_of()) do
    local found = genetic.evolve(q, { generations = 400, seed = 1, least_latency = true })
    -- 120.3 GiB hold the model once: with devices of 24 and 48 GiB that takes 144
    t.equal(("shipped case, region %d: replicas, as many as its memory holds"):format(i),
      #found.groups, q.most_groups, SOURCE)
    total = total + #found.groups
  end
  t.ok(("shipped case, 7 machines of 3 tiers: %d replicas, theirs 11 in 4.4 s of CPU"):format(
    total), total >= 11, SOURCE)
end

local function check_pipeline(t)
  local one = group_pipeline.best(regions_of()[1], { 8 }, true)
  t.near("shipped case, one stage on 8 GPUs of 48 GiB: latency, s", one.latency_s,
    80 * ((33 + 192) * 12 * 8192 ^ 2 * 2 / 8e12
      + 28 * (1e-6 * 97 + (32 + 96) * 8192 * 2 / 8e11)), 1e-9, "its code's equations by hand")
end

--- A group of 1 to 3 machines of 1 to 4 devices each, all different, and 3 to 7 layers.
local function drawn_group(random)
  local q = { layers = 2 + random(5), machines = {}, degrees = { 1, 2, 4 } }
  local layer_s, most, hop_s, counts = {}, {}, {}, {}
  for m = 1, random(3) do
    counts[m] = random(4)
    q.machines[m] = { size = counts[m], memory_bytes = 1, class = "class " .. m }
    layer_s[m], most[m], hop_s[m] = {}, {}, {}
    for _, tp in ipairs(q.degrees) do
      layer_s[m][tp] = random(20)
      most[m][tp] = random(5) - 1
    end
    for other = 1, 3 do
      hop_s[m][other] = random(9)
    end
  end
  function q.layer_s(m, tp) return layer_s[m][tp] end
  function q.most_layers(m, tp) return most[m][tp] end
  function q.hop_s(a, b) return hop_s[a][b] end
  return q, counts
end

--- Calls visit(order) with every order of the numbers in `left`, behind those of `order`.
local function each_order(order, left, visit)
  if #left == 0 then
    visit(order)
  end
  for i, m in ipairs(left) do
    local rest = table.move(left, 1, #left, 1, {})
    table.remove(rest, i)
    order[#order + 1] = m
    each_order(order, rest, visit)
    order[#order] = nil
  end
end

--- The least latency of all pipelines of a group, by trying every order of machines, every split of
-- each and every number of layers of each stage; math.huge where none holds the model.
local function least_of_all(q, counts)
  local least_s = math.huge
  local function add_layers(order, at, parts, s, left, last, sum_s)
    if at > #order then
      least_s = left == 0 and math.min(least_s, sum_s) or least_s
      return
    end
    local m = order[at]
    if not parts then
      for _, split in ipairs(splits.of(q, counts[m])) do
        add_layers(order, at, split, 1, left, last, sum_s)
      end
      return
    end
    local hop_s = last and q.hop_s(last, m) or 0
    for n = 1, math.min(left, q.most_layers(m, parts[s])) do
      local end_s = sum_s + hop_s + n * q.layer_s(m, parts[s])
      if s == #parts then
        add_layers(order, at + 1, nil, 1, left - n, m, end_s)
      else
        add_layers(order, at, parts, s + 1, left - n, m, end_s)
      end
    end
  end
  local machines = {}
  for m in ipairs(q.machines) do
    machines[m] = m
  end
  each_order({}, machines, function(order)
    add_layers(order, 1, nil, 1, q.layers, nil, 0)
  end)
  return least_s
end

--- Seconds of a pass through stages; nil where a stage holds more than it can, or a layer is
-- missing.
local function pass_s(q, stages)
  local sum_s, layers = 0, 0
  for s, stage in ipairs(stages) do
    if stage.layers < 1 or stage.layers > q.most_layers(stage.machine, stage.tp) then
      return nil
    end
    layers = layers + stage.layers
    sum_s = sum_s + stage.layers * q.layer_s(stage.machine, stage.tp)
    if stages[s + 1] then
      sum_s = sum_s + q.hop_s(stage.machine, stages[s + 1].machine)
    end
  end
  return layers == q.layers and sum_s or nil
end

local function check_least_latency(t)
  local random = search.generator(3)
  local right, found = 0, 0
  for _ = 1, 200 do
    local q, counts = drawn_group(random)
    local best = group_pipeline.best(q, counts, true)
    local least_s = least_of_all(q, counts)
    if not best then
      right = right + (least_s == math.huge and 1 or 0)
    else
      found = found + 1
      local own_s = pass_s(q, best.stages)
      right = right + (own_s == least_s and best.latency_s == least_s and 1 or 0)
    end
  end
  t.equal("200 random groups: latency is the least of all pipelines, or none holds the model",
    right, 200, "enumeration")
  t.ok("200 random groups: many of them hold the model", found >= 50, "enumeration")
end

--- Two stages on one machine: the sum puts all layers but one where they are fastest, the slowest
-- stage would divide them.
local function check_dealt_layers(t)
  local q = { layers = 8, machines = { { size = 1, class = "a" }, { size = 1, class = "b" } },
    degrees = { 1 } }
  function q.layer_s(m) return m == 1 and 2 or 3 end
  function q.most_layers(m) return m == 1 and 6 or 8 end
  function q.hop_s() return 1 end
  local best = group_pipeline.best(q, { 1, 1 }, true)
  t.equal("8 layers of 2 s and 3 s, room for 6 on the faster: layers by the sum",
    best.stages[1].layers .. "," .. best.stages[2].layers, "6,2", "by hand")
  t.near("and its latency with one hop of 1 s, s", best.latency_s, 19, 0, "by hand")
  best = group_pipeline.best(q, { 1, 1 }, false)
  t.equal("the same by the slowest stage: layers", best.stages[1].layers, 5, "by hand")
end

local function check_own_flow(t)
  local list = { { stages = { 1, 2 }, rate = 5 }, { stages = { 1 }, rate = 4 } }
  local edges = {}
  for i, edge in ipairs(replicas.own_flow(list)) do
    edges[i] = table.concat(edge, " ")
  end
  t.equal("requests of a pipeline of two stages and of one stay in theirs",
    table.concat(edges, ", "), "source 0 5, 0 1 5, 1 sink 5, source 2 4, 2 sink 4", "by hand")
end

return function(t)
  check_least_latency(t)
  check_dealt_layers(t)
  check_own_flow(t)
  check_search(t)
  check_pipeline(t)
end
