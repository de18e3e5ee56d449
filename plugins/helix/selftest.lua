-- Self-tests of Helix: max flows and placements, on the authors' cluster and on small instances.
local cluster24 = require "data.cluster24"
local search = require "search"
local token_flow = require "token_flow"

local SHIPPED = "Helix-ASPLOS25 148b733, README"
local SHIPPED_FLOW = 1289.5557702751464 -- of the authors' placement
local ENUMERATED = "all placements, computed apart"

local function no_limit()
  return 1e9
end

local function check_shipped(t)
  local q, runs = cluster24()
  t.near("24 nodes: upper bound, tokens per second", token_flow.bound(q), 2803.860988272896, 1e-6,
    SHIPPED)
  t.near("24 nodes: max flow of its placement, tokens per second", token_flow.flow(q, runs),
    SHIPPED_FLOW, 1e-6, SHIPPED)
  local slowest_nodes = {
    { node = 7, rate = 952.107, label = "Petals' placement: an A100 with 12 layers" },
    { node = 1, rate = 531.703, label = "homogeneous placement: an L4 with 7 layers" },
    { node = 2, rate = 757.853, label = "Swarm's placement: a T4 with 4 layers" },
  }
  for _, row in ipairs(slowest_nodes) do
    local rates = q.rates[row.node]
    t.near(row.label .. ", tokens per second", rates[#rates], row.rate, 6e-4, SHIPPED)
  end
  q.strict = true
  t.near("24 nodes: max flow of its placement without partial inference", token_flow.flow(q, runs),
    SHIPPED_FLOW, 1e-6, SHIPPED)
end

local function check_search(t)
  local q = cluster24()
  function q.link(i, j) -- all links of 1 GB/s
    local bytes = 16386
    if i == 0 or j == #q.rates + 1 then
      bytes = 2
    end
    return 1e9 / bytes
  end
  local _, found = token_flow.place(q, { budget = 300 })
  t.ok(("24 nodes, all links of 1 GB/s: local search, %.1f tokens per second, theirs 1289.6")
    :format(found), found >= SHIPPED_FLOW, SHIPPED)
  local twins = { layers = 4, rates = { { 8, 4, 8 / 3 }, { 8, 4, 8 / 3 } }, link = no_limit }
  _, found = token_flow.place(twins, { budget = 20 })
  t.near("4 layers on two nodes of 8/k: local search, two layers each", found, 4, 1e-9, "by hand")
  local links = 0
  for _, row in ipairs(token_flow.pruned(q, 12)) do
    for _ in pairs(row) do
      links = links + 1
    end
  end
  t.near("24 nodes: links of the integer program at 12 neighbours", links, 24 * 12, 0,
    "Helix, section 4.5: degree 12")
end

local function check_program(t)
  local fan = { layers = 2, rates = { { 10 }, { 4 }, { 4 } }, link = no_limit }
  t.near("integer program: a node of 10 before two of 4", token_flow.program(fan), 8, 1e-6,
    "by hand")
  t.near("integer program: the same, pruned to one neighbour each",
    token_flow.program(fan, { neighbours = 1 }), 4, 1e-6, "by hand")
  t.ok("integer program: no flow above 8, where 8 is known",
    not token_flow.program(fan, { above = 8 }), "by hand: warm start")
  local overlap = { layers = 3, rates = { { 9, 9 }, { 3, 3 } }, link = no_limit }
  local runs = { { 0, 2 }, { 1, 3 } }
  t.near("nodes with layers 1-2 and 2-3: max flow with partial inference",
    token_flow.flow(overlap, runs), 3, 1e-9, "by hand")
  overlap.strict = true
  t.near("nodes with layers 1-2 and 2-3: max flow without it", token_flow.flow(overlap, runs), 0, 0,
    "by hand")
  t.near("integer program without partial inference: layers 1-2 and 3", token_flow.program(overlap),
    3, 1e-6, "by hand")
end

--- The instance of two layers on three nodes with these links, and the flows of all placements,
-- largest first.
local function small_flows(between, ends)
  local q = { layers = 2, rates = { { 10, 5 }, { 4, 2 }, { 4, 2 } } }
  function q.link(i, j)
    if i == 0 or j == 4 then
      return ends
    end
    return between
  end
  local flows = {}
  for runs in search.product { token_flow.runs(q, 1), token_flow.runs(q, 2),
    token_flow.runs(q, 3) } do
    flows[#flows + 1] = token_flow.flow(q, runs)
  end
  table.sort(flows, function(a, b) return a > b end)
  return q, flows
end

local function check_small(t)
  local q, flows = small_flows(1e9, 1e9)
  t.equal("2 layers on 3 nodes, free links: the four best flows",
    ("%g %g %g %g"):format(table.unpack(flows)), "9 9 9 8", ENUMERATED)
  t.near("2 layers on 3 nodes, free links: upper bound", token_flow.bound(q), 9, 1e-9, ENUMERATED)
  t.near("2 layers on 3 nodes, free links: integer program", token_flow.program(q), 9, 1e-6,
    ENUMERATED)
  local _, found = token_flow.place(q)
  t.near("2 layers on 3 nodes, free links: local search", found, 9, 1e-9, ENUMERATED)
  q, flows = small_flows(1, 1e9)
  t.equal("2 layers on 3 nodes, 1 token/s between nodes: the two best flows",
    ("%g %g"):format(table.unpack(flows)), "9 7", ENUMERATED)
  t.near("2 layers on 3 nodes, 1 token/s between nodes: integer program", token_flow.program(q), 9,
    1e-6, ENUMERATED)
  q, flows = small_flows(1, 1)
  t.equal("2 layers on 3 nodes, 1 token/s on all links: the two best flows",
    ("%g %g"):format(table.unpack(flows)), "3 2", ENUMERATED)
  t.near("2 layers on 3 nodes, 1 token/s on all links: integer program", token_flow.program(q), 3,
    1e-6, ENUMERATED)
end

--- The largest flow over all placements of a drawn instance, and that of the search.
local function drawn_flows(random)
  local n, layers = 2 + random(2), 1 + random(3)
  local q = { layers = layers, rates = {}, strict = random(2) == 1 }
  for i = 1, n do
    q.rates[i] = {}
    local rate = random(12)
    for k = 1, random(layers) do
      q.rates[i][k] = rate / k
    end
  end
  local rates = {} -- of links
  for i = 0, n + 1 do
    rates[i] = {}
    for j = 0, n + 1 do
      rates[i][j] = random(8)
    end
  end
  function q.link(i, j)
    return rates[i][j]
  end
  local lists, most = {}, 0
  for i = 1, n do
    lists[i] = token_flow.runs(q, i)
  end
  for runs in search.product(lists) do
    most = math.max(most, (token_flow.flow(q, runs)))
  end
  return most, (select(2, token_flow.place(q, { budget = 300 })))
end

local function check_drawn(t)
  local random, least, missed = search.generator(31), 1, 0
  for _ = 1, 60 do
    local most, found = drawn_flows(random)
    if found < most * (1 - 1e-9) then
      missed = missed + 1
      least = math.min(least, found / most)
    end
  end
  t.ok(("60 random instances of 3 or 4 nodes and 2 to 4 layers: the search misses the largest flow "
    .. "in %d, and has at least %.0f %% of it"):format(missed, 100 * least), missed == 0,
    "all placements")
end

local function check_requests(t)
  t.equal("8 requests over flows of 3 and 1", table.concat(token_flow.deal({ 3, 1 }, 8), " "),
    "1 1 1 2 1 1 1 2", "interleaved weighted round robin by hand")
end

return function(t)
  check_shipped(t)
  check_search(t)
  check_program(t)
  check_small(t)
  check_drawn(t)
  check_requests(t)
end
