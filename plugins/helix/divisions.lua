-- Divisions of nodes into the stages of a pipeline. A division is a list of stages, each a list of
-- positions of nodes; nodes of no stage are idle.
local node_clusters = require "node_clusters"
local numbers = require "numbers"

local divisions = {}

local MOST_STAGES = 8    -- numbers of stages that are all tried; above them powers of two
local FEW_NODES = 5      -- up to which all divisions are tried
local FEW_CLUSTERS = 8   -- up to which the slowest ones may be idle

--- Nodes dealt to S stages: the fastest first, each to the stage with least rate so far.
local function dealt(nodes, list, S)
  local rates, stages = {}, {}
  for k, i in ipairs(list) do
    rates[k] = nodes[i].rate
  end
  for s = 1, S do
    stages[s] = {}
  end
  local r = hv.opt.distribute { items = rates, slots = S, objective = "lpt" }
  for k, s in ipairs(r.counts) do
    table.insert(stages[s], list[k])
  end
  return stages
end

--- The sum of the rates of nodes.
local function rate_of(nodes, list)
  local sum = 0
  for _, i in ipairs(list) do
    sum = sum + nodes[i].rate
  end
  return sum
end

--- Clusters in S stages: where there are as many stages, each cluster gets its share of them and no
-- stage has nodes of two clusters; else whole clusters are dealt to stages. nil where a cluster has
-- fewer nodes than stages.
local function by_clusters(nodes, clusters, S)
  local stages = {}
  if S < #clusters then
    local sums, items = {}, {}
    for c, cluster in ipairs(clusters) do
      sums[c] = { rate = rate_of(nodes, cluster) }
      items[c] = c
    end
    for s, list in ipairs(dealt(sums, items, S)) do
      stages[s] = {}
      for _, c in ipairs(list) do
        table.move(clusters[c], 1, #clusters[c], #stages[s] + 1, stages[s])
      end
    end
    return stages
  end
  local time, least, caps, room = {}, {}, {}, 0
  for c, cluster in ipairs(clusters) do
    time[c] = 1 / rate_of(nodes, cluster)
    least[c] = 1
    caps[c] = #cluster
    room = room + #cluster
  end
  local r = S <= room and hv.opt.distribute { total = S, time = time, min = least, caps = caps }
  if not r then
    return nil
  end
  for c, cluster in ipairs(clusters) do
    for _, list in ipairs(dealt(nodes, cluster, r.counts[c])) do
      stages[#stages + 1] = list
    end
  end
  return stages
end

--- All divisions of few nodes, idle ones among them: calls add(stages) for each.
local function all_of(n, most, add)
  local stage_of = {}
  local function give(i, S, used)
    if i > n then
      if used == S then
        local stages = {}
        for s = 1, S do
          stages[s] = {}
        end
        for node, s in ipairs(stage_of) do
          table.insert(stages[s] or {}, node)
        end
        add(stages)
      end
      return
    end
    for s = 0, S do
      local is_new = s > 0
      for before = 1, i - 1 do
        is_new = is_new and stage_of[before] ~= s
      end
      stage_of[i] = s
      if S - used - (is_new and 1 or 0) <= n - i then
        give(i + 1, S, used + (is_new and 1 or 0))
      end
    end
  end
  for S = 1, most do
    give(1, S, 0)
  end
end

--- Numbers of stages that are tried, at most `most`.
local function numbers_of_stages(most)
  local list = {}
  for S = 1, math.min(most, MOST_STAGES) do
    list[S] = S
  end
  for _, S in ipairs(numbers.powers(math.min(most, 64))) do
    if S > MOST_STAGES then
      list[#list + 1] = S
    end
  end
  return list
end

--- The clusters with most rate, in the order of the list.
local function fastest(nodes, clusters, count)
  local order = {}
  for c, cluster in ipairs(clusters) do
    order[c] = { c = c, rate = rate_of(nodes, cluster) }
  end
  table.sort(order, function(a, b)
    if a.rate ~= b.rate then
      return a.rate > b.rate
    end
    return a.c < b.c
  end)
  local is_kept, list = {}, {}
  for k = 1, count do
    is_kept[order[k].c] = true
  end
  for c, cluster in ipairs(clusters) do
    if is_kept[c] then
      list[#list + 1] = cluster
    end
  end
  return list
end

--- Divisions of nodes with rate into up to `most` stages, each once: all of them where nodes are
-- few; else nodes dealt by rate, over all of them and inside clusters of well linked nodes, the
-- slowest clusters idle or not.
function divisions.of(ctx, nodes, most)
  local list, is_known = {}, {}
  local function add(stages)
    local words = {}
    for s, stage in ipairs(stages or {}) do
      words[s] = table.concat(stage, " ")
    end
    local name = table.concat(words, "/")
    if stages and not is_known[name] then
      is_known[name] = true
      list[#list + 1] = stages
    end
  end
  most = math.min(most, #nodes)
  if #nodes <= FEW_NODES then
    all_of(#nodes, most, add)
    return list
  end
  for _, clusters in ipairs(node_clusters.levels(ctx, nodes)) do
    local least = #clusters <= FEW_CLUSTERS and 1 or #clusters
    for count = #clusters, least, -1 do
      local kept = fastest(nodes, clusters, count)
      for _, S in ipairs(numbers_of_stages(most)) do
        add(by_clusters(nodes, kept, S))
      end
    end
  end
  return list
end

return divisions
