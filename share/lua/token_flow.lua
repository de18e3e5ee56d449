-- Layers of a model on nodes so that most tokens flow through (Helix, Mei et al., arXiv 2406.01566,
-- sections 3 and 4): nodes hold runs of consecutive layers, a token goes from node to node until
-- all layers are done. An instance: layers, rates = for each node the list of tokens per second
-- with 1, 2, … layers (its length is the most it holds), link = function(i, j): tokens per second
-- from node i to j (0: source, #rates + 1: sink), strict = true: a node's run must start where the
-- one before ended (else it computes only what is missing).
local numbers = require "numbers"
local search = require "search"

local token_flow = {}

local UNLIMITED = 1e15 -- tokens per second of an edge without a limit
local ALMOST = 1 - 1e-9 -- of a flow, for rounding
local MOST_ENUMERATED = 100000 -- placements up to which all are looked at

--- May tokens that have passed run a go on to run b?
local function follows(q, a, b)
  if q.strict then
    return a[2] == b[1]
  end
  return b[1] <= a[2] and a[2] < b[2]
end

--- The edges {from, to, capacity} of the max-flow graph, and for those that are links their {from,
-- to} in nodes. Vertices: 1 the source, 2 the sink, 2i + 1 and 2i + 2 the entry and exit of node i.
local function graph_of(q, runs)
  local n, edges, link_of = #q.rates, {}, {}
  local function add(from, to, capacity, link)
    edges[#edges + 1] = { from, to, math.min(capacity, UNLIMITED) }
    link_of[#edges] = link
  end
  local function add_next(i, a)
    for j = 1, n do
      local b = j ~= i and runs[j]
      if b and follows(q, a, b) then
        local rate = q.link(i, j)
        if rate > 0 then
          add(2 * i + 2, 2 * j + 1, rate, { i, j })
        end
      end
    end
  end
  for i = 1, n do
    local a = runs[i]
    if a then
      add(2 * i + 1, 2 * i + 2, q.rates[i][a[2] - a[1]])
      if a[1] == 0 then
        add(1, 2 * i + 1, q.link(0, i), { 0, i })
      end
      if a[2] == q.layers then
        add(2 * i + 2, 2, q.link(i, n + 1), { i, n + 1 })
      else
        add_next(i, a)
      end
    end
  end
  return edges, link_of
end

--- The most tokens per second through a placement.
-- @function token_flow.flow
-- @tparam table q instance, with the keys named at the top
-- @tparam table runs {first − 1, last} of each node, in layers; false where it is idle
-- @treturn number tokens per second, and the list of {from, to, tokens per second} (0: source, n +
-- 1: sink)
-- @units tokens per second
-- @raise none
-- @usage local q = { layers = 1, rates = { { 5 } }, link = function() return 9 end }
-- assert(require("token_flow").flow(q, { { 0, 1 } }) == 5)
function token_flow.flow(q, runs)
  local edges, link_of = graph_of(q, runs)
  if #edges == 0 then
    return 0, {}
  end
  local r, flows = hv.opt.maxflow { edges = edges, source = 1, sink = 2 }, {}
  for e, flow in ipairs(r.flows) do
    local link = link_of[e]
    if link and flow > 0 then
      flows[#flows + 1] = { link[1], link[2], flow }
    end
  end
  return r.value, flows
end

--- Upper bound of all placements: Σ over nodes of the largest k · rate(k), divided by the layers.
-- @function token_flow.bound
-- @tparam table q instance, with the keys named at the top
-- @treturn number tokens per second
-- @units tokens per second
-- @raise none
-- @usage assert(require("token_flow").bound { layers = 2, rates = { { 5, 2 } } } == 2.5)
function token_flow.bound(q)
  local sum = 0
  for _, rates in ipairs(q.rates) do
    local most = 0
    for k, rate in ipairs(rates) do
      most = math.max(most, k * rate)
    end
    sum = sum + most / q.layers
  end
  return sum
end

--- All runs a node can hold.
-- @function token_flow.runs
-- @tparam table q instance, with the keys named at the top
-- @tparam integer i node
-- @treturn table list of {first − 1, last}
-- @units none: layers
-- @raise none
-- @usage assert(#require("token_flow").runs({ layers = 2, rates = { { 1, 1 } } }, 1) == 3)
function token_flow.runs(q, i)
  local list = {}
  for first = 0, q.layers - 1 do
    for k = 1, math.min(#q.rates[i], q.layers - first) do
      list[#list + 1] = { first, first + k }
    end
  end
  return list
end

--- The runs when nodes fill in this order, each with as many layers as it holds, where the sum of
-- rates is least so far (as Petals does).
local function filled(q, order)
  local covered, runs = {}, {}
  for l = 1, q.layers do
    covered[l] = 0
  end
  for _, i in ipairs(order) do
    local k = math.min(#q.rates[i], q.layers)
    local first, least = 0, math.huge
    for from = 0, q.layers - k do
      local sum = 0
      for l = from + 1, from + k do
        sum = sum + covered[l]
      end
      if sum < least then
        first = from
        least = sum
      end
    end
    runs[i] = { first, first + k }
    for l = first + 1, first + k do
      covered[l] = covered[l] + q.rates[i][k]
    end
  end
  return runs
end

--- The nodes of a list dealt to S stages by rate, with layers by the stages' rates, written into
-- `runs`; false where a stage cannot hold its layers.
local function staged(q, list, S, runs)
  local rates = {}
  for k, i in ipairs(list) do
    rates[k] = q.rates[i][1]
  end
  local stage_of = hv.opt.distribute({ items = rates, slots = S, objective = "lpt" }).counts
  local sums, caps, least = {}, {}, {}
  for s = 1, S do
    sums[s] = 0
    caps[s] = q.layers
    least[s] = 1
  end
  for k, s in ipairs(stage_of) do
    sums[s] = sums[s] + rates[k]
    caps[s] = math.min(caps[s], #q.rates[list[k]])
  end
  local times, room = {}, 0
  for s = 1, S do
    if sums[s] <= 0 then
      return false
    end
    times[s] = 1 / sums[s]
    room = room + caps[s]
  end
  if room < q.layers then
    return false
  end
  local cut = hv.opt.distribute { total = q.layers, time = times, min = least, caps = caps }
  if not cut then
    return false
  end
  local ranges = numbers.ranges(cut.counts)
  for k, s in ipairs(stage_of) do
    runs[list[k]] = ranges[s]
  end
  return true
end

--- The best number of stages for a list of nodes, the others idle or as `base` has them: the flow,
-- and the runs (nil where there is no way).
local function best_stages(q, list, base, flow)
  local most, best = -1, nil
  for S = 1, math.min(#list, q.layers) do
    local runs = { table.unpack(base, 1, #q.rates) }
    if staged(q, list, S, runs) then
      local own = flow(runs)
      if own > most then
        most = own
        best = runs
      end
    end
  end
  return most, best
end

--- The nodes of each kind: those with the same list of rates.
local function nodes_by_kind(q)
  local kinds, nodes_of = {}, {}
  for i, rates in ipairs(q.rates) do
    if not nodes_of[rates] then
      nodes_of[rates] = {}
      kinds[#kinds + 1] = nodes_of[rates]
    end
    table.insert(nodes_of[rates], i)
  end
  return kinds
end

--- Stages of nodes of one kind each, the homogeneous pipelines side by side; nil where no kind
-- alone has a flow.
local function homogeneous(q, idle, flow)
  local kinds = nodes_by_kind(q)
  if #kinds < 2 then
    return nil
  end
  local runs, some = idle, false
  for _, list in ipairs(kinds) do
    local own, with_list = best_stages(q, list, runs, flow)
    if with_list and own > 0 then
      runs = with_list
      some = true
    end
  end
  return some and runs or nil
end

--- Placements to begin with: stages over all nodes (as Swarm), homogeneous pipelines, and nodes
-- that fill where least is (as Petals).
local function starts(q, flow)
  local all, idle = {}, {}
  for i in ipairs(q.rates) do
    all[i] = i
    idle[i] = false
  end
  local by_kind = homogeneous(q, idle, flow)
  local _, over_all = best_stages(q, all, idle, flow)
  local list = { over_all or filled(q, all) }
  if by_kind then
    list[#list + 1] = by_kind
  end
  list[#list + 1] = filled(q, all)
  return list
end

--- Runs with a boundary between layers moved by d, for all nodes that begin or end there; nil where
-- one cannot.
local function shifted(q, runs, boundary, d)
  local out = {}
  for i, run in ipairs(runs) do
    if run then
      local first, last = run[1], run[2]
      if first == boundary then
        first = first + d
      end
      if last == boundary then
        last = last + d
      end
      if last <= first or last - first > #q.rates[i] then
        return nil
      end
      out[i] = { first, last }
    else
      out[i] = false
    end
  end
  return out
end

--- Placements near one: every boundary moved, by one layer and by more.
local function near(q, runs)
  local list, seen = {}, { [0] = true, [q.layers] = true }
  local function add_moves(boundary)
    for _, d in ipairs { 1, -1, 2, -2, 4, -4 } do
      if boundary + d > 0 and boundary + d < q.layers then
        list[#list + 1] = shifted(q, runs, boundary, d)
      end
    end
  end
  for _, run in ipairs(runs) do
    for _, boundary in ipairs(run or {}) do
      if not seen[boundary] then
        add_moves(boundary)
        seen[boundary] = true
      end
    end
  end
  return list
end

--- How many placements there are, no node idle; stops to count above `most`.
local function count_placements(values, most)
  local count = 1
  for _, list in ipairs(values) do
    count = count * #list
    if count > most then
      break
    end
  end
  return count
end

--- The nodes in the order in which the enumeration gives them runs: those that compute most first;
-- and for each position what the nodes from there on can compute: rate = of all of them with their
-- best number of layers, work = tokens per second times layers.
local function by_work(q)
  local list = {}
  for i, rates in ipairs(q.rates) do
    list[i] = { node = i, rate = 0, work = 0 }
    for k, rate in ipairs(rates) do
      list[i].rate = math.max(list[i].rate, rate)
      list[i].work = math.max(list[i].work, k * rate)
    end
  end
  table.sort(list, function(a, b)
    if a.work ~= b.work then
      return a.work > b.work
    end
    return a.node < b.node
  end)
  list[#list + 1] = { rate = 0, work = 0 }
  for d = #list - 1, 1, -1 do
    list[d].rate = list[d].rate + list[d + 1].rate
    list[d].work = list[d].work + list[d + 1].work
  end
  return list
end

--- Can layers that nodes with these sums of rates hold still pass more than `flow`, with the rate
-- and the work of other nodes? A token needs every layer on some node.
local function can_pass(covered, flow, others)
  local missing = 0
  for _, sum in ipairs(covered) do
    if sum + others.rate <= flow then
      return false
    end
    missing = missing + math.max(0, flow - sum)
  end
  return missing < others.work or missing == 0
end

--- All placements of a small instance against a best one = {state, cost = -flow}, without those
-- that cannot pass more. `values` = the runs of every node, cost(runs) as in token_flow.place,
-- goes_on(best) = false when the search is to end. Gives the best one.
local function enumerated(q, values, best, cost, goes_on)
  local nodes, covered, runs = by_work(q), {}, {}
  for l = 1, q.layers do
    covered[l] = 0
  end
  local function give(d)
    local i = nodes[d].node
    if not i then
      local own = cost(runs)
      if own < best.cost * (1 + 1e-12) then
        best = { state = { table.unpack(runs) }, cost = own }
      end
      return
    end
    for _, run in ipairs(values[i]) do
      if not goes_on(best) then
        return
      end
      local rate = q.rates[i][run[2] - run[1]]
      for l = run[1] + 1, run[2] do
        covered[l] = covered[l] + rate
      end
      if can_pass(covered, -best.cost * (1 + 1e-9), nodes[d + 1]) then
        runs[i] = run
        give(d + 1)
      end
      for l = run[1] + 1, run[2] do
        covered[l] = covered[l] - rate
      end
    end
  end
  give(1)
  return best
end

--- Local search: from the placements of Swarm, of homogeneous pipelines and of Petals, and from
-- nodes that fill in drawn orders, boundaries between runs are moved and each node's run is changed
-- while the flow grows. Instances with at most MOST_ENUMERATED placements are then enumerated, with
-- as many flows as it takes.
-- @function token_flow.place
-- @tparam table q instance, with the keys named at the top; nodes with the same list in rates are
-- of one kind
-- @tparam[opt] table o {budget = 2000 flows, seed = 1, enough = 1: share of the bound at which it
-- ends, stopping = function that says when to end}
-- @treturn table list of runs, then their flow and how many flows were computed
-- @units tokens per second
-- @raise none
-- @usage local q = { layers = 1, rates = { { 5 }, { 4 } }, link = function() return 99 end }
-- assert(select(2, require("token_flow").place(q)) == 9)
function token_flow.place(q, o)
  o = o or {}
  local budget = o.budget or 2000
  local left = budget
  local enough = token_flow.bound(q) * (o.enough or 1) * ALMOST
  local random = search.generator(o.seed or 1)
  local values = {}
  for i = 1, #q.rates do
    values[i] = token_flow.runs(q, i)
  end
  local function cost(runs)
    if o.stopping and left < budget and o.stopping() then
      left = 0
      return 0 -- no flow: the search takes nothing that comes after the end of its time
    end
    left = left - 1
    return -(token_flow.flow(q, runs))
  end
  local best
  local function climb(start)
    local r = search.hill { state = start, budget = math.max(1, left), cost = cost,
      moves = function(runs) return near(q, runs) end }
    if -r.cost < enough and left > 0 then
      r = search.coordinate { state = r.state or start, values = values, budget = left,
        cost = cost }
    end
    if r.state and (not best or r.cost < best.cost) then
      best = r
    end
  end
  local function goes_on()
    return left > 0 and -best.cost < enough
  end
  for _, start in ipairs(starts(q, function(runs) return -cost(runs) end)) do
    if not best or goes_on() then
      climb(start)
    end
  end
  local is_small = count_placements(values, MOST_ENUMERATED) <= MOST_ENUMERATED
  while not is_small and goes_on() do
    local order = {}
    for i = 1, #q.rates do
      table.insert(order, random(#order + 1), i)
    end
    climb(filled(q, order))
  end
  if is_small then
    local function not_late(found)
      return -found.cost < enough and not (o.stopping and o.stopping())
    end
    best = enumerated(q, values, best, cost, not_late)
  end
  return best.state, -best.cost, budget - left
end

--- The links that a pruned program keeps: of each node those to as many others as pass most from
-- it, among equal ones the next in number.
-- @function token_flow.pruned
-- @tparam table q instance, with the keys named at the top
-- @tparam integer neighbours links that go out of a node at most
-- @treturn table list of tables, kept[i][j] = true
-- @units none
-- @raise none
-- @usage local q = { rates = { {}, {}, {} }, link = function(i, j) return j end }
-- local kept = require("token_flow").pruned(q, 1)
-- assert(kept[1][3] and kept[2][3] and kept[3][2] and not kept[1][2])
function token_flow.pruned(q, neighbours)
  local kept, n = {}, #q.rates
  for i = 1, n do
    local others = {}
    for distance = 1, n - 1 do
      local j = (i + distance - 1) % n + 1
      others[distance] = { node = j, rate = q.link(i, j), distance = distance }
    end
    table.sort(others, function(a, b)
      if a.rate ~= b.rate then
        return a.rate > b.rate
      end
      return a.distance < b.distance
    end)
    kept[i] = {}
    for k = 1, math.min(neighbours, n - 1) do
      if others[k].rate > 0 then
        kept[i][others[k].node] = true
      end
    end
  end
  return kept
end

--- Adds factor · e_i to terms, where `ends` are the terms of e_i.
local function with_ends(terms, ends, factor)
  for v, c in pairs(ends) do
    terms[v] = (terms[v] or 0) + factor * c
  end
  return terms
end

--- Variables and rows of the program's nodes: s_i the layers before the first one, b_ik = 1 where
-- node i holds k layers, e_i = s_i + Σ k b_ik its last layer.
local function program_nodes(p, q)
  local list = {}
  for i, rates in ipairs(q.rates) do
    local first = p:var { upper = q.layers - 1, integer = true }
    local node = { first = first, ends = { [first] = 1 }, into = {}, out = {}, capacity = {} }
    local one = {}
    for k, rate in ipairs(rates) do
      local b = p:var { upper = 1, integer = true }
      one[b] = 1
      node.ends[b] = k
      node.capacity[b] = rate
    end
    p:row(one, "=", 1)
    p:row(node.ends, "<=", q.layers)
    list[i] = node
  end
  return list
end

--- Variables and rows of the program's links: f_ij is the flow, d_ij = 1 where the link is used.
-- Gives the terms of what leaves the source.
local function program_links(p, q, nodes, kept)
  local m, n, goal = q.layers, #nodes, {}
  local most = token_flow.bound(q) -- of the flow on any link
  local function link(i, j)
    local f = p:var {}
    local d = p:var { upper = 1, integer = true }
    p:row({ [f] = 1, [d] = -math.min(q.link(i, j), most) }, "<=", 0)
    if nodes[i] then
      nodes[i].out[f] = 1
    end
    if nodes[j] then
      nodes[j].into[f] = 1
    end
    return f, d
  end
  for i, a in ipairs(nodes) do
    local from_source, source_used = link(0, i)
    goal[from_source] = 1
    p:row({ [a.first] = 1, [source_used] = m }, "<=", m)
    local to_sink, sink_used = link(i, n + 1)
    p:row(with_ends({ [sink_used] = -m, [to_sink] = 0 }, a.ends, 1), ">=", 0)
    for j in pairs(kept[i]) do
      local b = nodes[j]
      local _, d = link(i, j)
      p:row(with_ends({ [b.first] = 1, [d] = m + 1 }, a.ends, -1), "<=", m + 1) -- s_j ≤ e_i
      p:row(with_ends(with_ends({ [d] = -(m + 1) }, b.ends, 1), a.ends, -1), ">=", -m) -- e_i < e_j
      if q.strict then
        p:row(with_ends({ [b.first] = -1, [d] = m + 1 }, a.ends, 1), "<=", m + 1) -- e_i ≤ s_j
      end
    end
  end
  return goal
end

--- Rows of the program: what enters a node leaves it, and is within the rate of its layers.
local function program_rates(p, nodes)
  for _, node in ipairs(nodes) do
    local balance, limit = {}, {}
    for f in pairs(node.into) do
      balance[f] = 1
      limit[f] = 1
    end
    for f in pairs(node.out) do
      balance[f] = -1
    end
    for b, rate in pairs(node.capacity) do
      limit[b] = -rate
    end
    p:row(balance, "=", 0)
    p:row(limit, "<=", 0)
  end
end

--- The run {first − 1, last} of every node in a solution x of the program.
local function runs_of(nodes, x)
  local runs = {}
  for i, node in ipairs(nodes) do
    local last = 0
    for v, c in pairs(node.ends) do
      last = last + c * x[v]
    end
    runs[i] = { math.floor(x[node.first] + 0.5), math.floor(last + 0.5) }
  end
  return runs
end

--- The paper's integer program. What a search has found already is the warm start: the program
-- looks only for a larger flow, and ends at a share of the bound.
-- @function token_flow.program
-- @tparam table q instance, with the keys named at the top
-- @tparam[opt] table o {time_limit_s for lp_solve, neighbours = all: links out of a node, as
-- token_flow.pruned, above = tokens per second that must be exceeded, enough = 1: share of the
-- bound at which it ends}
-- @treturn number flow, then the runs, then whether the flow is proven to be the largest; nil when
-- none was found
-- @units tokens per second
-- @raise none
-- @usage local q = { layers = 1, rates = { { 5 } }, link = function() return 9 end }
-- assert(math.abs(require("token_flow").program(q) - 5) < 1e-6)
function token_flow.program(q, o)
  o = o or {}
  local p = hv.opt.lp { sense = "max" }
  local nodes = program_nodes(p, q)
  local goal = program_links(p, q, nodes, token_flow.pruned(q, o.neighbours or #nodes))
  program_rates(p, nodes)
  p:objective(goal)
  p:row(goal, "<=", token_flow.bound(q))
  if o.above then
    p:row(goal, ">=", o.above * (1 + 1e-6))
  end
  local r = p:solve { time_limit_s = o.time_limit_s, gap = 1 - (o.enough or 1) }
  if not r.x then
    return nil
  end
  return r.objective, runs_of(nodes, r.x), r.proven
end

--- Interleaved weighted round robin: `count` requests over candidates with these weights, each to
-- the one whose load after it, over its weight, is least.
-- @function token_flow.deal
-- @tparam table weights list of tokens per second of each candidate
-- @tparam integer count requests
-- @tparam[opt] function masked function(candidate): true while its cache is above the high-water
-- mark
-- @treturn table list of the candidate of each request, false where all are masked
-- @units any for weights
-- @raise none
-- @usage assert(table.concat(require("token_flow").deal({ 2, 1 }, 3), " ") == "1 1 2")
function token_flow.deal(weights, count, masked)
  local load, out = {}, {}
  for r = 1, count do
    local best, least
    for i, weight in ipairs(weights) do
      if weight > 0 and not (masked and masked(i)) then
        local after = ((load[i] or 0) + 1) / weight
        if not best or after < least - 1e-12 then
          best = i
          least = after
        end
      end
    end
    out[r] = best or false
    if best then
      load[best] = (load[best] or 0) + 1
    end
  end
  return out
end

return token_flow
