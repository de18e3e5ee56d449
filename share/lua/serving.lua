-- Layers of a model on nodes so that most tokens flow through (Helix, Mei et al., arXiv 2406.01566, sections 3 and 4):
-- nodes hold runs of consecutive layers, a token goes from node to node until all layers are done. An instance:
-- layers, rates = for each node the list of tokens per second with 1, 2, … layers (its length is the most it holds),
-- link = function(i, j): tokens per second from node i to j (0: source, #rates + 1: sink), strict = true: a node's run
-- must start where the one before ended (else it computes only what is missing).
local layout = require "layout"
local search = require "search"
local wires = require "wires"

local BATCHES = { 1, 4, 16, 64, 128, 256 } -- sequences of a pass that are judged

local serving = {}

--- May tokens that have passed runs[i] go on to runs[j]?
local function follows(q, a, b)
  if q.strict then return a[2] == b[1] end
  return b[1] <= a[2] and a[2] < b[2]
end

--- The most tokens per second through a placement.
-- @function serving.flow
-- @tparam table q instance, with the keys named at the top
-- @tparam table runs {first − 1, last} of each node, in layers; false where it is idle
-- @treturn number tokens per second, and the list of {from, to, tokens per second} (0: source, n + 1: sink)
-- @units tokens per second
-- @raise none
-- @usage local q = { layers = 1, rates = { { 5 } }, link = function() return 9 end }
-- assert(require("serving").flow(q, { { 0, 1 } }) == 5)
function serving.flow(q, runs)
  local n, edges, name = #q.rates, {}, {}
  local function add(from, to, capacity, what)
    edges[#edges + 1], name[#edges + 1] = { from, to, math.min(capacity, 1e15) }, what
  end
  for i = 1, n do
    local a = runs[i]
    if a then
      add(2 * i + 1, 2 * i + 2, q.rates[i][a[2] - a[1]])
      if a[1] == 0 then add(1, 2 * i + 1, q.link(0, i), { 0, i }) end
      if a[2] == q.layers then add(2 * i + 2, 2, q.link(i, n + 1), { i, n + 1 }) end
      for j = 1, n do
        local rate = j ~= i and runs[j] and a[2] < q.layers and follows(q, a, runs[j]) and q.link(i, j) or 0
        if rate > 0 then add(2 * i + 2, 2 * j + 1, rate, { i, j }) end
      end
    end
  end
  if #edges == 0 then return 0, {} end
  local r, flows = hv.opt.maxflow { edges = edges, source = 1, sink = 2 }, {}
  for e, f in ipairs(r.flows) do
    if name[e] and f > 0 then flows[#flows + 1] = { name[e][1], name[e][2], f } end
  end
  return r.value, flows
end

--- No placement passes more: Σ over nodes of the largest k · rate(k), over the layers.
-- @function serving.bound
-- @tparam table q instance, with the keys named at the top
-- @treturn number tokens per second
-- @units tokens per second
-- @raise none
-- @usage assert(require("serving").bound { layers = 2, rates = { { 5, 2 } } } == 2.5)
function serving.bound(q)
  local sum = 0
  for _, rates in ipairs(q.rates) do
    local most = 0
    for k, rate in ipairs(rates) do most = math.max(most, k * rate) end
    sum = sum + most / q.layers
  end
  return sum
end

--- All runs a node can hold.
-- @function serving.runs
-- @tparam table q instance, with the keys named at the top
-- @tparam integer i node
-- @treturn table list of {first − 1, last}
-- @units none: layers
-- @raise none
-- @usage assert(#require("serving").runs({ layers = 2, rates = { { 1, 1 } } }, 1) == 3)
function serving.runs(q, i)
  local list = {}
  for first = 0, q.layers - 1 do
    for k = 1, math.min(#q.rates[i], q.layers - first) do list[#list + 1] = { first, first + k } end
  end
  return list
end

--- Nodes in this order fill, each with as many layers as it holds, where least rate is (as Petals does).
local function filled(q, order)
  local covered, runs = {}, {}
  for l = 1, q.layers do covered[l] = 0 end
  for _, i in ipairs(order) do
    local k, at, least = math.min(#q.rates[i], q.layers), 0, math.huge
    for first = 0, q.layers - k do
      local sum = 0
      for l = first + 1, first + k do sum = sum + covered[l] end
      if sum < least then at, least = first, sum end
    end
    runs[i] = { at, at + k }
    for l = at + 1, at + k do covered[l] = covered[l] + q.rates[i][k] end
  end
  return runs
end

--- The nodes of a list dealt to S stages by rate, with layers by the stages' rates, written into `runs`; false where a
-- stage cannot hold its layers.
local function staged(q, list, S, runs)
  local rates = {}
  local o = { total = q.layers, time = {}, min = {}, caps = {} }
  for k, i in ipairs(list) do rates[k] = q.rates[i][1] end
  local stage_of = hv.opt.distribute({ items = rates, slots = S, objective = "lpt" }).counts
  for s = 1, S do o.time[s], o.min[s], o.caps[s] = 0, 1, q.layers end
  for k, s in ipairs(stage_of) do
    o.time[s], o.caps[s] = o.time[s] + rates[k], math.min(o.caps[s], #q.rates[list[k]])
  end
  local room = 0
  for s = 1, S do
    if o.time[s] <= 0 then return false end
    o.time[s], room = 1 / o.time[s], room + o.caps[s]
  end
  local cut = room >= q.layers and hv.opt.distribute(o)
  local ranges = cut and layout.ranges(cut.counts)
  for k, s in ipairs(ranges and stage_of or {}) do runs[list[k]] = ranges[s] end
  return ranges and true or false
end

--- The best number of stages for a list of nodes, the others idle or as `base` has them: the flow, and the runs.
local function best_stages(q, list, base, flow)
  local most, best = -1, nil
  for S = 1, math.min(#list, q.layers) do
    local runs = { table.unpack(base, 1, #q.rates) }
    if staged(q, list, S, runs) then
      local f = flow(runs)
      if f > most then most, best = f, runs end
    end
  end
  return most, best
end

--- Placements to begin with: stages over all nodes (as Swarm), stages of nodes of one kind each (the homogeneous ones
-- side by side), and nodes that fill where least is (as Petals).
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
    if runs and f > 0 then apart, alone = runs, true end
  end
  return { select(2, best_stages(q, all, idle, flow)) or filled(q, all), alone and apart or nil, filled(q, all) }
end

--- Runs with a boundary between layers moved by d, for all nodes that begin or end there; nil where one cannot.
local function shifted(q, runs, boundary, d)
  local out = {}
  for i, run in ipairs(runs) do
    local a, b = run and run[1], run and run[2]
    a, b = a == boundary and a + d or a, b == boundary and b + d or b
    if run and (b <= a or b - a > #q.rates[i]) then return nil end
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

--- Local search: from the obvious placements and from nodes that fill in drawn orders, boundaries between runs are
-- moved and each node's run is changed while the flow grows.
-- @function serving.place
-- @tparam table q instance, with the keys named at the top; nodes with the same list in rates are of one kind
-- @tparam[opt] table o {budget = 2000 flows, seed = 1, enough = 1: share of the bound at which it ends}
-- @treturn table list of runs, then their flow and how many flows were computed
-- @units tokens per second
-- @raise none
-- @usage local q = { layers = 1, rates = { { 5 }, { 4 } }, link = function() return 99 end }
-- assert(select(2, require("serving").place(q)) == 9)
function serving.place(q, o)
  local values, random, best, left = {}, search.generator(o and o.seed or 1), nil, o and o.budget or 2000
  local budget, enough = left, serving.bound(q) * (o and o.enough or 1) * (1 - 1e-9)
  local function cost(runs)
    left = left - 1
    return -(serving.flow(q, runs))
  end
  local function climb(start)
    local r = search.hill { state = start, budget = math.max(1, left), cost = cost,
      moves = function(runs) return near(q, runs) end }
    if -r.cost < enough and left > 0 then
      r = search.coordinate { state = r.state or start, values = values, budget = left, cost = cost }
    end
    if r.state and (not best or r.cost < best.cost) then best = r end
  end
  for i = 1, #q.rates do values[i] = serving.runs(q, i) end
  local ready = starts(q, function(runs) return -cost(runs) end)
  for k = 1, 3 do
    if ready[k] and (not best or left > 0 and -best.cost < enough) then climb(ready[k]) end
  end
  while left > 0 and -best.cost < enough do
    local order = {}
    for i = 1, #q.rates do table.insert(order, random(#order + 1), i) end
    climb(filled(q, order))
  end
  return best.state, -best.cost, budget - left
end

--- The paper's integer program: s_i first layer, b_ik how many, f_ij flow, d_ij is the edge in use.
-- @function serving.program
-- @tparam table q instance, with the keys named at the top
-- @tparam[opt] number time_limit_s for lp_solve
-- @treturn number flow, then the runs; nil when none was found
-- @units tokens per second
-- @raise none
-- @usage local q = { layers = 1, rates = { { 5 } }, link = function() return 9 end }
-- assert(math.abs(require("serving").program(q) - 5) < 1e-6)
function serving.program(q, time_limit_s)
  local p, n, m = hv.opt.lp { sense = "max" }, #q.rates, q.layers
  local s, ends, flow, goal = {}, {}, {}, {}
  for i = 1, n do
    s[i] = p:var { upper = m - 1, integer = true }
    ends[i] = { [s[i]] = 1 } -- e_i = s_i + Σ k b_ik
    local one, capacity = {}, {}
    for k, rate in ipairs(q.rates[i]) do
      local b = p:var { upper = 1, integer = true }
      one[b], ends[i][b], capacity[b] = 1, k, rate
    end
    p:row(one, "=", 1)
    p:row(ends[i], "<=", m)
    flow[i] = { into = {}, out = {}, capacity = capacity }
  end
  local function edge(i, j, capacity)
    local f, d = p:var {}, p:var { upper = 1, integer = true }
    p:row({ [f] = 1, [d] = -math.min(capacity, 1e6) }, "<=", 0)
    if flow[i] then flow[i].out[f] = 1 end
    if flow[j] then flow[j].into[f] = 1 end
    return f, d
  end
  --- Σ factor · e_i as terms.
  local function with_ends(terms, i, factor)
    for v, c in pairs(ends[i]) do terms[v] = (terms[v] or 0) + factor * c end
    return terms
  end
  for i = 1, n do
    local f, d = edge(0, i, q.link(0, i))
    goal[f] = 1
    p:row({ [s[i]] = 1, [d] = m }, "<=", m)
    f, d = edge(i, n + 1, q.link(i, n + 1))
    p:row(with_ends({ [d] = -m, [f] = 0 }, i, 1), ">=", 0)
    for j = 1, n do
      if j ~= i and q.link(i, j) > 0 then
        f, d = edge(i, j, q.link(i, j))
        p:row(with_ends({ [s[j]] = 1, [d] = m + 1, [f] = 0 }, i, -1), "<=", m + 1) -- s_j ≤ e_i
        p:row(with_ends(with_ends({ [d] = -(m + 1) }, j, 1), i, -1), ">=", -m) -- e_i < e_j
        if q.strict then p:row(with_ends({ [s[j]] = -1, [d] = m + 1 }, i, 1), "<=", m + 1) end
      end
    end
  end
  for i = 1, n do
    local balance, limit = {}, {}
    for f in pairs(flow[i].into) do balance[f], limit[f] = 1, 1 end
    for f in pairs(flow[i].out) do balance[f] = -1 end
    for b, rate in pairs(flow[i].capacity) do limit[b] = -rate end
    p:row(balance, "=", 0)
    p:row(limit, "<=", 0)
  end
  p:objective(goal)
  local r, runs = p:solve { time_limit_s = time_limit_s }, {}
  if not r.x then return nil end
  for i = 1, n do
    local last = 0
    for v, c in pairs(ends[i]) do last = last + c * r.x[v] end
    runs[i] = { math.floor(r.x[s[i]] + 0.5), math.floor(last + 0.5) }
  end
  return r.objective, runs
end

--- Interleaved weighted round robin: `count` requests over candidates with these weights, each to the one whose load
-- after it, over its weight, is least.
-- @function serving.deal
-- @tparam table weights list of tokens per second of each candidate
-- @tparam integer count requests
-- @tparam[opt] function masked function(candidate): true while its cache is above the high-water mark
-- @treturn table list of the candidate of each request, false where all are masked
-- @units any for weights
-- @raise none
-- @usage assert(table.concat(require("serving").deal({ 2, 1 }, 3), " ") == "1 1 2")
function serving.deal(weights, count, masked)
  local load, out = {}, {}
  for r = 1, count do
    local best
    for i, w in ipairs(weights) do
      local ok = w > 0 and not (masked and masked(i))
      local after = ok and ((load[i] or 0) + 1) / w
      if ok and (not best or after < best[2] - 1e-12) then best = { i, after } end
    end
    out[r] = best and best[1] or false
    if best then load[best[1]] = (load[best[1]] or 0) + 1 end
  end
  return out
end

local memory_rates = {} -- bytes per second of kinds, by their data sheets

local function memory_rate(ctx, kind)
  for _, d in ipairs(memory_rates[kind] and {} or ctx.cluster:devices()) do
    memory_rates[d.kind] = d.memory_bytes_per_s or math.huge
  end
  return memory_rates[kind]
end

--- Bytes of keys and values of one token, mean over the layers.
local function cache_bytes(ctx)
  local sum, layers = 0, ctx.model:layers()
  for _, l in ipairs(layers) do
    sum = sum + ((l.heads or 0) > 0 and 2 * (l.kv_heads or l.heads) * ctx.model.hidden / l.heads * 2 or 0)
  end
  return sum / #layers
end

--- What a stage of tp devices of a kind does with one layer: its prompts and one more token of each sequence, in turn,
-- for which weights and caches pass the memory once; and the most layers it holds, with half of its memory for the
-- weights (the other half for caches).
-- @function serving.pace
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam string kind of device
-- @tparam number memory_bytes of one device
-- @tparam integer tp tensor degree
-- @tparam integer batch sequences of a pass
-- @treturn number tokens per second, then layers, then bytes that leave it for all prompts
-- @units tokens per second, bytes
-- @raise a kind that the cluster has not
-- @usage local d = ctx.cluster:devices()[1]
-- print(require("serving").pace(ctx, d.kind, d.memory_bytes, 1, 4))
function serving.pace(ctx, kind, memory_bytes, tp, batch)
  local n, job = ctx.model.n_layers, ctx.job
  local function forward(tokens)
    local t = hv.cost.layers { kinds = { kind }, tp = tp, micro_batch = batch, tokens = tokens, recompute = "none" }
    return t:time(1, n, kind, "forward") / n, t
  end
  local prompt_s, t = forward(job.sequence - job.output_tokens)
  local bytes = t:bytes(1, n, "parameters") * job.weight_bytes / n
  local token_s, rate = 0, memory_rate(ctx, kind)
  if job.output_tokens > 0 then
    local seen = job.sequence - job.output_tokens / 2
    token_s = math.max((forward(1)), bytes / rate) + batch * seen * cache_bytes(ctx) / tp / rate
  end
  local most = bytes > 0 and math.floor(memory_bytes / 2 / bytes) or n
  return batch * job.sequence / (prompt_s + job.output_tokens * token_s), math.min(n, most), t:bytes(1, 1, "output")
end

--- Servers of tp devices each, inside nodes, as an instance for placement.
-- @function serving.instance
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table devices list of rows of cluster:devices()
-- @tparam integer tp devices of a server
-- @tparam integer batch sequences of a pass
-- @treturn table {layers, rates, …} the instance, then the list of each server's device numbers
-- @units tokens per second
-- @raise none
-- @usage local q, ids = require("serving").instance(ctx, ctx.cluster:devices(), 1, 4)
-- assert(#q.rates == #ids)
function serving.instance(ctx, devices, tp, batch)
  local q, servers, prices, out_bytes = { layers = ctx.model.n_layers, rates = {} }, {}, {}, 1
  for _, node in ipairs(layout.nodes(devices)) do
    if not prices[node.kind] then
      local rate, most, bytes = serving.pace(ctx, node.kind, node.memory_bytes, tp, batch)
      local rates = {}
      for k = 1, most do rates[k] = rate / k end
      prices[node.kind], out_bytes = rates, bytes / (batch * (ctx.job.sequence - ctx.job.output_tokens))
    end
    for at = 1, #node.ids - tp + 1, tp do
      if #prices[node.kind] > 0 then
        servers[#servers + 1], q.rates[#q.rates + 1] = layout.slice(node.ids, at, tp), prices[node.kind]
      end
    end
  end
  function q.link(i, j)
    if i == 0 or j > #servers then return 1e15 end
    return wires.bandwidth(ctx, servers[i][1], servers[j][1]) / math.max(1, out_bytes)
  end
  return q, servers
end

--- The max flow of a plan's own placement by the formulas of placement, whatever the judge says of it.
-- @function serving.claim
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table made {micro_batch, replicas = list of one {stages}}: a plan of mode serve
-- @treturn number tokens per second, then the bound of its servers
-- @units tokens per second
-- @raise none
-- @usage local made = require("serving").plan(ctx, ctx.cluster:devices(), { budget = 20, seed = 1 })
-- assert(made == nil or require("serving").claim(ctx, made) > 0)
function serving.claim(ctx, made)
  local of, q, runs, heads, out_bytes = {}, { layers = ctx.model.n_layers, rates = {} }, {}, {}, 1
  for _, d in ipairs(ctx.cluster:devices()) do of[d.id] = d end
  for s, stage in ipairs(made.replicas[1].stages) do
    local d = of[ctx.cluster:ids(stage.devices)[1]]
    local rate, _, bytes = serving.pace(ctx, d.kind, d.memory_bytes, stage.tp or 1, made.micro_batch)
    q.rates[s], runs[s], heads[s] = {}, stage.layers, d.id
    for k = 1, q.layers do q.rates[s][k] = rate / k end
    out_bytes = bytes / (made.micro_batch * (ctx.job.sequence - ctx.job.output_tokens))
  end
  function q.link(i, j)
    return (i == 0 or j > #heads) and 1e15 or wires.bandwidth(ctx, heads[i], heads[j]) / math.max(1, out_bytes)
  end
  return (serving.flow(q, runs)), serving.bound(q)
end

--- The plan of a placement: a stage per server that holds layers and sees flow, with the flow as the judge finds it.
local function placed(ctx, servers, runs, tp, batch, mark)
  local used = {}
  for i in ipairs(servers) do used[i] = runs[i] and true or false end
  for _ = 1, 2 do -- the second time without those that no token passes
    local stages, at = {}, {}
    for i, ids in ipairs(servers) do
      if used[i] then
        stages[#stages + 1], at[#at + 1] =
          { devices = ctx.cluster:address(ids), layers = runs[i], tp = tp > 1 and tp or nil }, i
      end
    end
    if #stages == 0 then return nil, "no token passes any placement" end
    local made = { mode = "serve", micro_batch = batch, replicas = { { stages = stages } }, cache_mark_frac = mark }
    local verdict, why = hv.plan.new(made):eval()
    if not verdict then return nil, why end
    if #verdict.violations > 0 then return nil, verdict.violations[1].text end
    made.flow = verdict.flow
    local idle = false
    for s, i in ipairs(at) do
      used[i] = false
      for _, f in ipairs(verdict.flow) do used[i] = used[i] or f[1] == s - 1 or f[2] == s - 1 end
      idle = idle or not used[i]
    end
    if not idle then return made, verdict.tokens_per_s end
  end
  return nil, "no token passes some stages of every placement"
end

--- A placement of an instance by local search, or by the integer program where that is asked for and finds more.
local function searched(q, o)
  local runs, most = serving.place(q, o)
  local limit_s = #q.rates <= (o.program_most or 8) and o.program_s or 0
  if limit_s > 0 and most < serving.bound(q) * (o.enough or 1) * (1 - 1e-9) then
    local _, found = serving.program(q, limit_s)
    runs = found and serving.flow(q, found) > most and found or runs
  end
  return runs
end

--- The plan that serves most tokens per second, over degrees and batches: placements for one batch, judged with all
-- of them.
-- @function serving.plan
-- @tparam table ctx {cluster, model, job, …} of plan(ctx)
-- @tparam table devices list of rows of cluster:devices()
-- @tparam table o {budget = flows per placement, seed, enough = 1: share of the bound at which the search ends,
-- program_s = 0: seconds of the integer program, program_most = 8: servers up to which it is asked, mark = share of the
-- room for caches that requests may fill}
-- @treturn table plan, with the keys of a plan file; nil and the reason when no placement holds the model
-- @units tokens per second
-- @raise none
-- @usage local made = require("serving").plan(ctx, ctx.cluster:devices(), { budget = 20, seed = 1 })
-- assert(made == nil or made.mode == "serve")
function serving.plan(ctx, devices, o)
  local best, most, reason, most_held = nil, 0, nil, 0
  for _, tp in ipairs(layout.powers(layout.node_size(layout.nodes(devices)))) do
    local whole = layout.node_size(layout.nodes(devices)) % tp == 0 and layout.tp_fits(ctx.model:layers(), tp)
    local q, servers = serving.instance(ctx, devices, tp, 8)
    local held = 0
    for _, rates in ipairs(q.rates) do held = held + #rates end
    most_held, whole = whole and math.max(most_held, held) or most_held, whole and held >= q.layers
    local runs = whole and #servers > 0 and not hv.stopping() and searched(q, o)
    for _, batch in ipairs(runs and BATCHES or {}) do
      local made, rate = placed(ctx, servers, runs, tp, batch, o.mark)
      if made and rate > most then best, most = made, rate end
      reason = not made and rate or reason
    end
  end
  return best, not best and most_held > 0 and most_held < ctx.model.n_layers
    and ("all devices together hold %d of the %d layers in half of their memory, the other half is for caches"):format(
      most_held, ctx.model.n_layers) or reason or "no server of this cluster holds a layer of the model"
end

return serving
