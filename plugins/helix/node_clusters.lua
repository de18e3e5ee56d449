-- Clusters of nodes that are linked better with each other than with the rest, such as zones.
local links = require "links"

local node_clusters = {}

local MOST_NODES = 128   -- above which all nodes count as one cluster
local MOST_CLUSTERS = 16 -- of a level
local MOST_LEVELS = 4

--- Bandwidths between nodes: of each pair, and the list of different ones, the widest first.
-- Bandwidths that differ by less than a thousandth are equal.
local function bandwidths(ctx, nodes)
  local between, list, seen = {}, {}, {}
  for i, a in ipairs(nodes) do
    between[i] = {}
    for j = 1, i - 1 do
      local rate = tonumber(("%.3g"):format(links.bandwidth(ctx, a.ids[1], nodes[j].ids[1])))
      between[i][j] = rate
      if not seen[rate] then
        seen[rate] = true
        list[#list + 1] = rate
      end
    end
  end
  table.sort(list, function(a, b) return a > b end)
  return between, list
end

--- The clusters that links of at least `rate` make: lists of positions of nodes, in their order.
local function connected(between, n, rate)
  local cluster_of, clusters = {}, {}
  local function join(i, cluster)
    cluster_of[i] = cluster
    table.insert(cluster, i)
    for j = 1, n do
      local link = i > j and between[i][j] or i < j and between[j][i]
      if link and link >= rate and not cluster_of[j] then
        join(j, cluster)
      end
    end
  end
  for i = 1, n do
    if not cluster_of[i] then
      clusters[#clusters + 1] = {}
      join(i, clusters[#clusters])
    end
  end
  for _, cluster in ipairs(clusters) do
    table.sort(cluster)
  end
  return clusters
end

--- Levels of clusters from all nodes in one to smaller ones, by the bandwidth that links inside
-- have: a list of lists of clusters, each a list of positions in `nodes` = list as inventory.nodes
-- gives it.
function node_clusters.levels(ctx, nodes)
  local all = {}
  for i in ipairs(nodes) do
    all[i] = i
  end
  local levels = { { all } }
  if #nodes > MOST_NODES then
    return levels
  end
  local between, rates = bandwidths(ctx, nodes)
  for k = #rates, 1, -1 do
    local clusters = connected(between, #nodes, rates[k])
    if #clusters > #levels[#levels] and #clusters <= MOST_CLUSTERS and #levels < MOST_LEVELS then
      levels[#levels + 1] = clusters
    end
  end
  return levels
end

return node_clusters
