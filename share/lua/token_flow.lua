-- Layers of a model on nodes so that most tokens flow through (Helix, Mei et al., arXiv 2406.01566,
-- sections 3 and 4): nodes hold runs of consecutive layers, a token goes from node to node until
-- all layers are done. An instance: layers, rates = for each node the list of tokens per second
-- with 1, 2, … layers (its length is the most it holds), link = function(i, j): tokens per second
-- from node i to j (0: source, #rates + 1: sink), strict = true: a node's run must start where the
-- one before ended (else it computes only what is missing).
local numbers = require "numbers"
local search = require "search"

local token_flow = {}

--- May tokens that have passed runs[i] go on to runs[j]?
local function follows(q, a, b)
  if q.strict then
    return a[2] == b[1]
  end
  return b[1] <= a[2] and a[2] < b[2]
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
  local n, edges, name = #q.rates, {}, {}
  local function add(from, to, capacity, what)
    edges[#edges + 1], name[#edges + 1] = { from, to, math.min(capacity, 1e15) }, what
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
      end
      for j = 1, n do
        local rate = j ~= i and runs[j] and a[2] < q.layers and follows(q, a, runs[j])
          and q.link(i, j) or 0
        if rate > 0 then
          add(2 * i + 2, 2 * j + 1, rate, { i, j })
        end
      end
    end
  end
  if #edges == 0 then
    return 0, {}
  end
  local r, flows = hv.opt.maxflow { edges = edges, source = 1, sink = 2 }, {}
  for e, f in ipairs(r.flows) do
    if name[e] and f > 0 then
      flows[#flows + 1] = { name[e][1], name[e][2], f }
    end
  end
  return r.value, flows
end

--- No placement passes more: Σ over nodes of the largest k · rate(k), over the layers.
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

--- Nodes in this order fill, each with as many layers as it holds, where least rate is (as Petals
-- does).
local function filled(q, order)
  local covered, runs = {}, {}
  for l = 1, q.layers do
    covered[l] = 0
  end
  for _, i in ipairs(order) do
    local k, at, least = math.min(#q.rates[i], q.layers), 0, math.huge
    for first = 0, q.layers - k do
      local sum = 0
      for l = first + 1, first + k do
        sum = sum + covered[l]
      end
      if sum < least then
        at, least = first, sum
      end
    end
    runs[i] = { at, at + k }
    for l = at + 1, at + k do
      covered[l] = covered[l] + q.rates[i][k]
    end
  end
  return runs
end

--- The nodes of a list dealt to S stages by rate, with layers by the stages' rates, written into
-- `runs`; false where a stage cannot hold its layers.
local function staged(q, list, S, runs)
  local rates = {}
  local o = { total = q.layers, time = {}, min = {}, caps = {} }
  for k, i in ipairs(list) do
    rates[k] = q.rates[i][1]
  end
  local stage_of = hv.opt.distribute({ items = rates, slots = S, objective = "lpt" }).counts
  for s = 1, S do
    o.time[s], o.min[s], o.caps[s] = 0, 1, q.layers
  end
  for k, s in ipairs(stage_of) do
    o.time[s], o.caps[s] = o.time[s] + rates[k], math.min(o.caps[s], #q.rates[list[k]])
  end
  local room = 0
  for s = 1, S do
    if o.time[s] <= 0 then
      return false
    end
    o.time[s], room = 1 / o.time[s], room + o.caps[s]
  end
  local cut = room >= q.layers and hv.opt.distribute(o)
  local ranges = cut and numbers.ranges(cut.counts)
  for k, s in ipairs(ranges and stage_of or {}) do
    runs[list[k]] = ranges[s]
  end
  return ranges and true or false
end

--- The best number of stages for a list of nodes, the others idle or as `base` has them: the flow,
-- and the runs.
local function best_stages(q, list, base, flow)
  local most, best = -1, nil
  for S = 1, math.min(#list, q.layers) do
    local runs = { table.unpack(base, 1, #q.rates) }
    if staged(q, list, S, runs) then
      local f = flow(runs)
      if f > most then
        most, best = f, runs
      end
    end
  end
  return most, best
end

--- Placements to begin with: stages over all nodes (as Swarm), stages of nodes of one kind each
-- (the homogeneous ones side by side), and nodes that fill where least is (as Petals).
local function starts(q, flow)
  local all, idle, kinds, of = {}, {}, {}, {}
  for i, rates in ipairs(q.rates) do
    all[i], idle[i] = i, false
    if not of[rates] then
      of[rates] = {}
      kinds[#kinds + 1] = of[rates]
    end
    table.insert(of[rates], i)
  end
  local apart, alone = idle, false
  for _, list in ipairs(#kinds > 1 and kinds or {}) do
    local f, runs = best_stages(q, list, apart, flow)
    if runs and f > 0 then
      apart, alone = runs, true
    end
  end
  return { select(2, best_stages(q, all, idle, flow)) or filled(q, all), alone and apart or nil,
    filled(q, all) }
end

--- Runs with a boundary between layers moved by d, for all nodes that begin or end there; nil where
-- one cannot.
local function shifted(q, runs, boundary, d)
  local out = {}
  for i, run in ipairs(runs) do
    local a, b = run and run[1], run and run[2]
    a, b = a == boundary and a + d or a, b == boundary and b + d or b
    if run and (b <= a or b - a > #q.rates[i]) then
      return nil
    end
    out[i] = run and { a, b }
  end
  return out
end

--- Placements near one: every boundary moved, by one layer and by more.
local function near(q, runs)
  local list, seen = {}, { [0] = true, [q.layers] = true }
  for _, run in ipairs(runs) do
    for _, boundary in ipairs(run or {}) do
      for _, d in ipairs(not seen[boundary] and { 1, -1, 2, -2, 4, -4 } or {}) do
        local inside = boundary + d > 0 and boundary + d < q.layers
        list[#list + 1] = inside and shifted(q, runs, boundary, d) or nil
      end
      seen[boundary] = true
    end
  end
  return list
end

--- Local search: from the obvious placements and from nodes that fill in drawn orders, boundaries
-- between runs are moved and each node's run is changed while the flow grows.
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
  local values, random, best, left = {}, search.generator(o and o.seed or 1), nil, o and o.budget
    or 2000
  local budget, enough = left, token_flow.bound(q) * (o and o.enough or 1) * (1 - 1e-9)
  local function cost(runs)
    if o and o.stopping and left < budget and o.stopping() then
      left = 0
      return 0 -- nothing flows through what nobody has time for
    end
    left = left - 1
    return -(token_flow.flow(q, runs))
  end
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
  for i = 1, #q.rates do
    values[i] = token_flow.runs(q, i)
  end
  local ready = starts(q, function(runs) return -cost(runs) end)
  for k = 1, 3 do
    if ready[k] and (not best or left > 0 and -best.cost < enough) then
      climb(ready[k])
    end
  end
  while left > 0 and -best.cost < enough do
    local order = {}
    for i = 1, #q.rates do
      table.insert(order, random(#order + 1), i)
    end
    climb(filled(q, order))
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
    for d = 1, n - 1 do
      local j = (i + d - 1) % n + 1
      others[d] = { j, q.link(i, j), d }
    end
    table.sort(others, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[3] < b[3] end)
    kept[i] = {}
    for d = 1, math.min(neighbours, n - 1) do
      kept[i][others[d][1]] = others[d][2] > 0 or nil
    end
  end
  return kept
end

--- Σ factor · e_i added to terms.
local function with_ends(terms, ends, factor)
  for v, c in pairs(ends) do
    terms[v] = (terms[v] or 0) + factor * c
  end
  return terms
end

--- Nodes of the program: s_i the first layer, b_ik how many, e_i = s_i + Σ k b_ik where they end.
local function program_nodes(p, q)
  local list = {}
  for i, rates in ipairs(q.rates) do
    local first = p:var { upper = q.layers - 1, integer = true }
    local node, one = { first = first, ends = { [first] = 1 }, into = {}, out = {}, capacity = {} },
      {}
    for k, rate in ipairs(rates) do
      local b = p:var { upper = 1, integer = true }
      one[b], node.ends[b], node.capacity[b] = 1, k, rate
    end
    p:row(one, "=", 1)
    p:row(node.ends, "<=", q.layers)
    list[i] = node
  end
  return list
end

--- Links of the program: f_ij is the flow, d_ij the link in use. Gives the terms of what leaves the
-- source.
local function program_links(p, q, nodes, kept)
  local m, n, most, goal = q.layers, #nodes, token_flow.bound(q), {}
  local function link(i, j)
    local f, d = p:var {}, p:var { upper = 1, integer = true }
    -- nothing passes more than the bound
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
    local f, d = link(0, i)
    goal[f] = 1
    p:row({ [a.first] = 1, [d] = m }, "<=", m)
    f, d = link(i, n + 1)
    p:row(with_ends({ [d] = -m, [f] = 0 }, a.ends, 1), ">=", 0)
    for j in pairs(kept[i]) do
      local b = nodes[j]
      d = select(2, link(i, j))
      p:row(with_ends({ [b.first] = 1, [d] = m + 1 }, a.ends, -1), "<=", m + 1) -- s_j ≤ e_i
      p:row(with_ends(with_ends({ [d] = -(m + 1) }, b.ends, 1), a.ends, -1), ">=", -m) -- e_i < e_j
      if q.strict then
        p:row(with_ends({ [b.first] = -1, [d] = m + 1 }, a.ends, 1), "<=", m + 1)
      end
    end
  end
  return goal
end

--- The paper's integer program. What a search has found already is the warm start: only more than
-- that is looked for, and it ends at a share of the bound.
-- @function token_flow.program
-- @tparam table q instance, with the keys named at the top
-- @tparam[opt] table o {time_limit_s for lp_solve, neighbours = all: links out of a node, as
-- token_flow.pruned, above = tokens per second that must be exceeded, enough = 1: share of the
-- bound at which it ends}
-- @treturn number flow, then the runs; nil when none was found
-- @units tokens per second
-- @raise none
-- @usage local q = { layers = 1, rates = { { 5 } }, link = function() return 9 end }
-- assert(math.abs(require("token_flow").program(q) - 5) < 1e-6)
function token_flow.program(q, o)
  o = o or {}
  local p = hv.opt.lp { sense = "max" }
  local nodes = program_nodes(p, q)
  local goal = program_links(p, q, nodes, token_flow.pruned(q, o.neighbours or #nodes))
  for _, node in ipairs(nodes) do
    local balance, limit = {}, {}
    for f in pairs(node.into) do
      balance[f], limit[f] = 1, 1
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
  p:objective(goal)
  p:row(goal, "<=", token_flow.bound(q))
  if o.above then
    p:row(goal, ">=", o.above * (1 + 1e-6))
  end
  local r, runs = p:solve { time_limit_s = o.time_limit_s, gap = 1 - (o.enough or 1) }, {}
  if not r.x then
    return nil
  end
  for i, node in ipairs(nodes) do
    local last = 0
    for v, c in pairs(node.ends) do
      last = last + c * r.x[v]
    end
    runs[i] = { math.floor(r.x[node.first] + 0.5), math.floor(last + 0.5) }
  end
  return r.objective, runs, r.proven
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
    local best
    for i, w in ipairs(weights) do
      local ok = w > 0 and not (masked and masked(i))
      local after = ok and ((load[i] or 0) + 1) / w
      if ok and (not best or after < best[2] - 1e-12) then
        best = { i, after }
      end
    end
    out[r] = best and best[1] or false
    if best then
      load[best[1]] = (load[best[1]] or 0) + 1
    end
  end
  return out
end

return token_flow
