-- Where the stages and replicas of a pipeline lie on unequal links, by what they send alone (DT-FM,
-- Yuan et al., NeurIPS 2022, section 3): COMM = DATAP + 2 PIPEP. An instance: class[v] of every
-- vertex, delay[a][b] and rate[a][b] between classes (seconds, bytes per second), stages, dp_bytes
-- (gradients of a stage), pp_bytes (activations between two stages); budget and seed of the search;
-- block, where a vertex stands for so many devices of its class that stay together in one stage;
-- units[v], where it was made from a cluster: the devices {ids, kind} of a vertex. What groups cost
-- is remembered in it by the classes of their members.
local equal_groups = require "equal_groups"
local links = require "links"
local numbers = require "numbers"

local placement = {}

--- Is the way from either of two vertices to every other one the same?
local function same_links(q, n, m)
  for k = 1, #q.delay do
    if k ~= n and k ~= m and (q.delay[n][k] ~= q.delay[m][k] or q.rate[n][k] ~= q.rate[m][k]) then
      return false
    end
  end
  return true
end

--- An instance whose vertices are a class each (a whole node): those of one kind with equal links
-- become one class, so that what groups cost is remembered far more often. O(vertices² · classes).
-- @function placement.merged
-- @tparam table q {class, delay, rate, units = list of {kind}, …}, an instance as above with
-- class[v] = v
-- @treturn table {class, delay, rate, units, …}: q itself, with fewer classes
-- @units none
-- @raise none
-- @usage local placement = require "placement"
-- local q = { class = { 1, 2 }, delay = { { 0, 3 }, { 3, 0 } }, rate = { { 9, 5 }, { 5, 9 } }, units = { {}, {} } }
-- assert(#placement.merged(q).delay == 1 and q.delay[1][1] == 3 and q.class[2] == 1)
function placement.merged(q)
  local heads, of, second = {}, {}, {}
  for n = 1, #q.delay do
    for c, head in ipairs(heads) do
      if q.units[n].kind == q.units[head].kind and same_links(q, n, head) then
        of[n], second[c] = c, second[c] or n
        break
      end
    end
    if not of[n] then
      heads[#heads + 1] = n
      of[n] = #heads
    end
  end
  local delay, rate = {}, {}
  for c, head in ipairs(heads) do
    delay[c], rate[c] = {}, {}
    for d, other in ipairs(heads) do
      local to = c == d and second[c] or other -- inside a class: two of its vertices
      delay[c][d], rate[c][d] = q.delay[head][to], q.rate[head][to]
    end
  end
  q.class, q.delay, q.rate = of, delay, rate
  return q
end

--- How many nodes of one group stand together, so that at most `most` blocks are placed: of those
-- up to twice the least number the first that divides the batch.
local function block_of(nodes, most, batch)
  local count, least = {}, 1
  for _, node in ipairs(nodes) do
    count[node.group .. node.kind] = (count[node.group .. node.kind] or 0) + 1
  end
  local function blocks(size)
    local sum = 0
    for _, n in pairs(count) do
      sum = sum + n // size
    end
    return sum
  end
  while blocks(least) > most do
    least = least + 1
  end
  for size = least, 2 * least do
    if batch % size == 0 then
      return size
    end
  end
  return least
end

--- Nodes of one group together as one, so many at a time; those that are left over stand idle.
local function in_blocks(nodes, block)
  local list, open = {}, {}
  for _, node in ipairs(nodes) do
    local key = node.group .. node.kind
    local own = open[key] or { kind = node.kind, group = node.group, ids = {}, n = 0 }
    own.n, open[key] = own.n + 1, own
    table.move(node.ids, 1, #node.ids, #own.ids + 1, own.ids)
    if own.n == block then
      list[#list + 1], open[key] = own, nil
    end
  end
  return list
end

--- The instance of a cluster: units of so many devices inside the nodes, delay and rate between the
-- nodes; very many nodes go in blocks of one group and kind, and those that are left over stand
-- idle. O(vertices² · classes).
-- @function placement.network
-- @tparam handle ctx the run's input
-- @tparam table nodes list of nodes as inventory.nodes gives it
-- @tparam integer size devices of a unit
-- @tparam table o {blocks, budget}: vertices up to which each node is placed by itself, and the
-- search's budget
-- @treturn table {class, units = list of {ids, kind}, delay, rate, budget, seed, block}, an
-- instance but for stages, dp_bytes and pp_bytes; block is nil where nodes are placed one by one
-- @units seconds, bytes per second
-- @raise none
-- @usage local inventory, placement = require "inventory", require "placement"
-- local nodes = inventory.nodes(ctx.cluster:devices())
-- assert(#placement.network(ctx, nodes, #nodes[1].ids, { blocks = 160, budget = 100 }).units <= #nodes)
function placement.network(ctx, nodes, size, o)
  local q = { class = {}, units = {}, delay = {}, rate = {}, budget = o.budget, seed = ctx.seed }
  local block = #nodes > o.blocks and block_of(nodes, o.blocks, ctx.job.global_batch) or 1
  if block > 1 then
    nodes, q.block = in_blocks(nodes, block), block
  end
  for n, node in ipairs(nodes) do
    for from = 1, #node.ids - size * block + 1, size * block do
      q.units[#q.units + 1] = { ids = numbers.slice(node.ids, from, size * block),
        kind = node.kind }
      q.class[#q.class + 1] = n
    end
    q.delay[n], q.rate[n] = {}, {}
    for m, other in ipairs(nodes) do
      local far = m ~= n and other.ids[1] or node.ids[#node.ids]
      q.delay[n][m] = node.ids[1] ~= far and links.link(ctx, node.ids[1], far).latency_s or 0
      q.rate[n][m] = links.bandwidth(ctx, node.ids[1], far)
    end
  end
  return #q.class == #nodes and placement.merged(q) or q
end

--- The instance for so many stages: all units where they give whole replicas that divide the batch;
-- of blocks as many as do, the last ones stand idle.
-- @function placement.for_stages
-- @tparam handle ctx the run's input
-- @tparam table q {class, units, delay, rate, …}, an instance as placement.network gives it
-- @tparam integer stages number of stages
-- @treturn table {class, units, delay, rate, …}: q itself or a part of it, without stages; nil
-- where there is none
-- @units none
-- @raise none
-- @usage local inventory, placement = require "inventory", require "placement"
-- local nodes = inventory.nodes(ctx.cluster:devices())
-- local q = placement.network(ctx, nodes, #nodes[1].ids, { blocks = 160, budget = 100 })
-- assert(placement.for_stages(ctx, q, #nodes) == q)
function placement.for_stages(ctx, q, stages)
  local block, n, batch = q.block or 1, #q.class // stages, ctx.job.global_batch
  if block == 1 then
    return #q.class % stages == 0 and batch % n == 0 and q or nil
  end
  while n > 0 and batch % (n * block) ~= 0 do
    n = n - 1
  end
  -- and only depths that layers divide
  if n == 0 or ctx.model.n_layers % stages ~= 0 then
    return nil
  end
  local own = { class = numbers.slice(q.class, 1, n * stages),
    units = numbers.slice(q.units, 1, n * stages) }
  for _, key in ipairs { "delay", "rate", "budget", "seed", "block" } do
    own[key] = q[key]
  end
  return own
end

--- An instance of regions with so many devices each, a class per region.
-- @function placement.regions
-- @tparam table sizes list of device counts
-- @tparam table delay_ms list of lists: delay of every pair, one half of the matrix is enough
-- @tparam table gbits list of lists: Gbit per second of every pair, likewise
-- @tparam table q {stages, dp_bytes, pp_bytes, …}, the rest of the instance
-- @treturn table {class, delay, rate, …}: q itself
-- @units milliseconds and Gbit per second in, seconds and bytes per second out
-- @raise none
-- @usage local placement = require "placement"
-- local q = placement.regions({ 2, 1 }, { { 1 }, { 50, 1 } }, { { 10 }, { 1, 10 } }, { stages = 3 })
-- assert(q.class[3] == 2 and q.delay[1][2] == 0.05 and q.rate[2][1] == 1.25e8)
function placement.regions(sizes, delay_ms, gbits, q)
  q.class, q.delay, q.rate = {}, {}, {}
  for a, n in ipairs(sizes) do
    q.delay[a], q.rate[a] = {}, {}
    for b in ipairs(sizes) do
      q.delay[a][b] = (delay_ms[a][b] or delay_ms[b][a]) / 1e3
      q.rate[a][b] = (gbits[a][b] or gbits[b][a]) * 1e9 / 8
    end
    for _ = 1, n do
      q.class[#q.class + 1] = a
    end
  end
  return q
end

--- Classes of a group's vertices in order, and their text.
local function classes_of(q, part)
  local list = {}
  for i, v in ipairs(part) do
    list[i] = q.class[v]
  end
  table.sort(list)
  return list, table.concat(list, " ")
end

--- DATAP of one group: its slowest member's exchange with all others.
local function data_s(q, list, key)
  q.data = q.data or {}
  if not q.data[key] then
    local worst, count, block, order = 0, {}, q.block or 1, {}
    for _, a in ipairs(list) do
      if not count[a] then
        count[a], order[#order + 1] = 0, a
      end
      count[a] = count[a] + block
    end
    for _, a in ipairs(order) do
      local sum = 0
      for _, b in ipairs(order) do
        local others = count[b] - (a == b and 1 or 0)
        sum = sum + others * 2 * (q.delay[a][b] + q.dp_bytes / (#list * block * q.rate[a][b]))
      end
      worst = math.max(worst, sum)
    end
    q.data[key] = worst
  end
  return q.data[key]
end

--- Bottleneck perfect matching of two groups: seconds, and the partner (index) of every member.
local function matching(q, one, other)
  local cost = {}
  for i, v in ipairs(one) do
    cost[i] = {}
    for j, w in ipairs(other) do
      local a, b = q.class[v], q.class[w]
      cost[i][j] = q.delay[a][b] + q.pp_bytes / q.rate[a][b]
    end
  end
  local m = hv.opt.assign { cost = cost, objective = "bottleneck" }
  return m.value, m.columns
end

--- Distance of two groups whose classes are known as texts.
local function distance(q, one, other, a, b)
  local key = a < b and a .. "|" .. b or b .. "|" .. a
  q.match = q.match or {}
  q.match[key] = q.match[key] or matching(q, one, other)
  return q.match[key]
end

--- Shortest open path: exact for few groups, else the best that always going to the nearest finds.
-- Groups with the same key lie alike, so one start of each is enough.
local function open_path(cost, keys)
  local n, best, order = #cost, math.huge, nil
  if n <= 10 then
    local path = hv.opt.path { cost = cost, kind = "tsp_open" }
    return path.value, path.order
  end
  local tried = {}
  for start = 1, n do
    local seen, at, sum, now = { [start] = true }, start, 0, { start }
    for _ = 2, tried[keys[start]] and 0 or n do
      local to
      for j = 1, n do
        if not seen[j] and (not to or cost[at][j] < cost[at][to]) then
          to = j
        end
      end
      sum, seen[to], at, now[#now + 1] = sum + cost[at][to], true, to, to
    end
    if not tried[keys[start]] and sum < best then
      best, order = sum, now
    end
    tried[keys[start]] = true
  end
  return best, order
end

--- COMM of a division into groups: DATAP, the slowest sharded parameter server of a group, and
-- twice PIPEP, the open-path TSP over groups whose distance is a bottleneck perfect matching.
-- @function placement.score
-- @tparam table q {class, delay, rate, …}, an instance as above
-- @tparam table parts list of groups of vertices
-- @treturn number COMM, then DATAP, PIPEP and the order of the groups
-- @units seconds
-- @raise none
-- @usage local placement = require "placement"
-- local q = { class = { 1, 1 }, delay = { { 1 } }, rate = { { 1 } }, stages = 2, dp_bytes = 0, pp_bytes = 1 }
-- assert(placement.score(q, { { 1 }, { 2 } }) == 4)
function placement.score(q, parts)
  local data, cost, keys = 0, {}, {}
  for i, part in ipairs(parts) do
    local list
    list, keys[i] = classes_of(q, part)
    data, cost[i] = math.max(data, data_s(q, list, keys[i])), { [i] = 0 }
  end
  for i = 1, #parts do
    for j = 1, i - 1 do
      cost[i][j] = distance(q, parts[i], parts[j], keys[i], keys[j])
      cost[j][i] = cost[i][j]
    end
  end
  if #parts == 1 then
    return data, data, 0, { 1 }
  end
  local seconds, order = open_path(cost, keys)
  return data + 2 * seconds, data, seconds, order
end

--- The division of least COMM, by equal_groups.evolve.
-- @function placement.place
-- @tparam table q {class, delay, rate, …}, an instance as above
-- @treturn table list of groups, then {COMM, DATAP, PIPEP} and the groups' order
-- @units seconds
-- @raise a number of vertices that the stages do not divide
-- @usage local placement = require "placement"
-- local q = { class = { 1, 1 }, delay = { { 1 } }, rate = { { 1 } }, stages = 2, dp_bytes = 0, pp_bytes = 1 }
-- assert(#placement.place(q) == 2)
function placement.place(q)
  local r = equal_groups.evolve { -- a candidate costs S² matchings, so many stages get fewer
    n = #q.class, parts = q.stages, seed = q.seed,
    budget = math.max(20, (q.budget or 300) * 64 // math.max(64,
      q.stages * q.stages) * 64 // math.max(64, #q.class)),
    cost = function(parts) return (placement.score(q, parts)) end,
    class = function(v) return q.class[v] end,
    weight = function(v, w)
      local a, b = q.class[v], q.class[w]
      return 2 * (q.delay[a][b] + q.dp_bytes * q.stages / (
        #q.class * (q.block or 1) * q.rate[a][b]))
    end,
  }
  local total, data, path, order = placement.score(q, r.parts)
  return r.parts, { total, data, path }, order
end

--- Pipelines: the groups in the order of the path, each wired to the next by its matching.
-- @function placement.wired
-- @tparam table q {class, delay, rate, …}, an instance as above
-- @tparam table parts list of groups
-- @tparam table order list as placement.score gives it
-- @treturn table list of lists: for each stage the vertices of pipeline 1, 2, …
-- @units none
-- @raise none
-- @usage local placement = require "placement"
-- local q = { class = { 1, 1 }, delay = { { 1 } }, rate = { { 1 } }, stages = 2, dp_bytes = 0, pp_bytes = 1 }
-- assert(placement.wired(q, { { 1 }, { 2 } }, { 2, 1 })[1][1] == 2)
function placement.wired(q, parts, order)
  local rows = { parts[order[1]] }
  for s = 2, #order do
    local _, columns = matching(q, rows[s - 1], parts[order[s]])
    rows[s] = {}
    for i, j in ipairs(columns) do
      rows[s][i] = parts[order[s]][j]
    end
  end
  return rows
end

return placement
