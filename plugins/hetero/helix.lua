-- Helix (Mei et al., ASPLOS'25, arXiv 2406.01566): layers on unequal, far apart GPUs so that most tokens flow through,
-- by a max-flow graph of nodes (which hold runs of layers) and links, in local search or an integer program; requests
-- go from hop to hop by interleaved weighted round robin over the flow, past nodes whose caches are full to a mark (the
-- judge plays that). With mode = serve its plans do that; else, for a training job, the same graph chooses among
-- placements that can be trained, where all nodes of a stage hold the same run and share each micro-batch in proportion
-- to their rates.
local chain = require "chain"
local layout = require "layout"
local pipes = require "pipes"
local prices = require "prices"
local search = require "search"
local serving = require "serving"
local wires = require "wires"

--- Nodes as the graph's: { kind, ids, rate of one layer in sequences per second }.
local function nodes_of(ctx, devices, c)
  local nodes = layout.nodes(devices)
  for _, node in ipairs(nodes) do
    local own = prices.chain(ctx, node.kind, { tp = 1, micro_batch = 1, recompute = c.recompute })
    node.rate = #node.ids * own.n / prices.time(own, 1, own.n)
  end
  return nodes
end

--- Nodes dealt to S stages: the fastest first, each to the stage with least rate so far.
local function dealt(nodes, S)
  local rates, stages = {}, {}
  for i, node in ipairs(nodes) do rates[i] = node.rate end
  local r = hv.opt.distribute { items = rates, slots = S, objective = "lpt" }
  for s = 1, S do stages[s] = { nodes = {}, rate = 0, size = 0 } end
  for i, s in ipairs(r.counts) do
    table.insert(stages[s].nodes, nodes[i])
    stages[s].rate, stages[s].size = stages[s].rate + nodes[i].rate, layout.gcd(stages[s].size, #nodes[i].ids)
  end
  return stages
end

--- The graph of a division into stages with these counts of layers: tokens per second that pass.
local function flow_of(ctx, stages, counts)
  local q, runs, heads, at = { layers = ctx.model.n_layers, rates = {}, strict = true }, {}, {}, 0
  local out = prices.chain(ctx, stages[1].nodes[1].kind, { tp = 1, micro_batch = 1 }).output_bytes / ctx.job.sequence
  for s, stage in ipairs(stages) do
    for _, node in ipairs(stage.nodes) do
      local rates, k = {}, counts[s]
      for n = 1, k do rates[n] = node.rate / n * ctx.job.sequence end
      q.rates[#q.rates + 1], runs[#runs + 1], heads[#heads + 1] = rates, { at, at + k }, node.ids[1]
    end
    at = at + counts[s]
  end
  function q.link(i, j)
    if i == 0 or j > #heads then return 1e15 end
    return wires.bandwidth(ctx, heads[i], heads[j]) / out / 2 -- activations there, gradients back
  end
  return (serving.flow(q, runs))
end

--- The plan of stages: one pipeline, ranks of tp devices, shares by rate; nil where a share would be nothing.
local function built(ctx, stages, counts, c)
  local rows, ranges = {}, layout.ranges(counts)
  for s, stage in ipairs(stages) do
    local ids, times, least, tp = {}, {}, {}, math.min(c.tp, stage.size)
    for _, node in ipairs(stage.nodes) do
      table.move(node.ids, 1, #node.ids, #ids + 1, ids)
      for _ = 1, #node.ids // tp do times[#times + 1], least[#least + 1] = #node.ids / node.rate / tp, 1 end
    end
    local r = #times <= c.micro_batch and hv.opt.distribute { total = c.micro_batch, time = times, min = least }
    if not r or not layout.tp_fits(ctx.model:layers(), tp) or #ids % tp ~= 0 then return nil end
    local even = true
    for _, n in ipairs(r.counts) do even = even and n == r.counts[1] end
    rows[s] = prices.stage_keys({ tp = tp, recompute = c.recompute, zero = c.zero, sequence_parallel = tp > 1 }, {
      devices = ctx.cluster:address(ids), layers = ranges[s], dp = #times > 1 and #times or nil,
      shares = not even and r.counts or nil })
  end
  return { micro_batch = c.micro_batch, schedule = { name = "1f1b" },
    replicas = { { micro_batches = ctx.job.global_batch // c.micro_batch, stages = rows } } }
end

local function plan(ctx)
  local devices, why = pipes.devices(ctx)
  if not devices then return nil, why end
  if ctx.options.mode == "serve" then
    local o = ctx.options
    return serving.plan(ctx, devices, { budget = o.flows, seed = ctx.seed, enough = o.enough, program_s = o.program_s,
      mark = o.high_water < 1 and o.high_water or nil })
  end
  local list = {}
  for v in search.product { layout.powers(64), { 1, 2, 4, 8 }, { "none", "selective", "full" },
    layout.divisors(ctx.job.global_batch) } do
    local c = { tp = v[2], recompute = v[3], micro_batch = v[4], zero = ctx.options.zero }
    local nodes = nodes_of(ctx, devices, c)
    local stages = v[1] <= math.min(#nodes, ctx.model.n_layers) and dealt(nodes, v[1])
    local time = {}
    for s, stage in ipairs(stages or {}) do time[s] = 1 / stage.rate end
    local cut = stages and hv.opt.distribute { total = ctx.model.n_layers, time = time, min = layout.even(v[1], v[1]) }
    local made = cut and built(ctx, stages, cut.counts, c)
    if made then
      local rank, M = #list + 1, ctx.job.global_batch / c.micro_batch
      local ideal = ctx.job.global_batch * ctx.job.sequence / flow_of(ctx, stages, cut.counts)
      list[rank] = { claim_s = ideal * (1 + (v[1] - 1) / M), rank = rank, build = function() return made end }
    end
  end
  local best, reason = layout.best(list, ctx.options.tries)
  if best then return best end
  return nil, reason or chain.too_small(ctx, devices, "no division of whole nodes into stages")
end

--- The flow of the plan's own stages.
local function claim(made, ctx)
  made = prices.table_of(made)
  if made.mode == "serve" then
    local rate, bound = serving.claim(ctx, made)
    return { tokens_per_s = rate, terms = { bound_tokens_per_s = bound },
      formula = "max flow over servers and links (Helix, section 4.3)" }
  end
  local of, stages, counts = {}, {}, {}
  for _, d in ipairs(ctx.cluster:devices()) do of[d.id] = d end
  for s, stage in ipairs(made.replicas[1].stages) do
    local rows = {}
    for i, id in ipairs(ctx.cluster:ids(stage.devices)) do rows[i] = of[id] end
    stages[s] = { nodes = nodes_of(ctx, rows, { recompute = stage.recompute or "none" }) }
    counts[s] = stage.layers[2] - stage.layers[1]
  end
  local rate = flow_of(ctx, stages, counts)
  return { tokens_per_s = rate, iteration_s = ctx.job.global_batch * ctx.job.sequence / rate,
    formula = "max flow over nodes and links (Helix, section 4.3)" }
end

--- The best flows of all placements of the small oracle, largest first.
local function oracle_flows(between, ends)
  local q = { layers = 2, rates = { { 10, 5 }, { 4, 2 }, { 4, 2 } },
    link = function(i, j) return (i == 0 or j == 4) and ends or between end }
  local flows = {}
  for v in search.product { serving.runs(q, 1), serving.runs(q, 2), serving.runs(q, 3) } do
    flows[#flows + 1] = serving.flow(q, v)
  end
  table.sort(flows, function(a, b) return a > b end)
  return flows, q
end

local function selftest(t)
  local src, q, runs = "Helix-ASPLOS25 148b733, README", require("helix_cluster")()
  t.near("24 nodes: upper bound, tokens per second", serving.bound(q), 2803.860988272896, 1e-6, src)
  t.near("24 nodes: max flow of its placement", serving.flow(q, runs), 1289.5557702751464, 1e-6, src)
  for k, want in pairs { [1] = 952.107, [2] = 531.703, [3] = 757.853 } do
    local rates = q.rates[({ 7, 1, 2 })[k]]
    t.near(({ "Petals: an A100 with 12 layers", "homogeneous: an L4 with 7", "Swarm: a T4 with 4" })[k], rates[#rates],
      want, 6e-4, src)
  end
  q.link = function(i, j) return (i == 0 or j == #q.rates + 1) and 1e9 / 2 or 1e9 / 16386 end
  local found = select(2, serving.place(q, { budget = 300 }))
  t.ok(("24 nodes, all links of 1 GB/s: local search, %.1f tokens per second, theirs 1289.6"):format(found),
    found >= 1289.5557702751464, src)
  local twins = { layers = 4, rates = { { 8, 4, 8 / 3 }, { 8, 4, 8 / 3 } }, link = function() return 1e9 end }
  t.near("two nodes of 8/k, 4 layers: two each", select(2, serving.place(twins, { budget = 20 })), 4, 1e-9, "by hand")
  src = "catalogue: helix, oracle"
  local flows, small = oracle_flows(1e9, 1e9)
  t.equal("2 layers on 3 nodes, free links", ("%g %g %g %g"):format(table.unpack(flows)), "9 9 9 8", src)
  t.near("bound", serving.bound(small), 9, 1e-9, src)
  t.near("integer program", serving.program(small), 9, 1e-6, src)
  t.near("local search", select(2, serving.place(small)), 9, 1e-9, src)
  flows, small = oracle_flows(1, 1e9)
  t.equal("1 token/s between nodes", ("%g %g"):format(table.unpack(flows)), "9 7", src)
  t.near("integer program", serving.program(small), 9, 1e-6, src)
  flows, small = oracle_flows(1, 1)
  t.equal("1 token/s on all links", ("%g %g"):format(table.unpack(flows)), "3 2", src)
  t.near("integer program", serving.program(small), 3, 1e-6, src)
  t.equal("requests over flows of 3 and 1", table.concat(serving.deal({ 3, 1 }, 8), " "), "1 1 1 2 1 1 1 2",
    "interleaved weighted round robin by hand")
end

return {
  api = 1, id = "helix", title = "Helix", kind = "hetero",
  system = "Helix: Serving Large Language Models over Heterogeneous GPUs and Network via Max-Flow, ASPLOS 2025",
  reference = "arXiv:2406.01566",
  summary = "Layers on nodes by max flow: serves, or trains with shares by the nodes' rates.",
  needs = { model = "layers" },
  options = {
    { key = "mode", type = "choice", choices = { "train", "serve" }, default = "train",
      help = "a plan that trains, or one that serves requests" },
    { key = "flows", type = "integer", default = 300, min = 1, max = 100000,
      help = "serve: max flows computed in the search for a placement, per tensor degree" },
    { key = "enough", type = "number", default = 0.98, min = 0.1, max = 1,
      help = "serve: share of the upper bound at which that search ends" },
    { key = "program_s", type = "number", default = 0, min = 0, max = 3600,
      help = "serve: seconds of the paper's integer program, for 8 servers or fewer that are still below that share" },
    { key = "high_water", type = "number", default = 0.85, min = 0.01, max = 1,
      help = "serve: share of a node's room for caches above which it gets no request" },
    { key = "zero", type = "integer", default = 1, min = 0, max = 3,
      help = "optimizer states sharded over a stage's ranks: 1; gradients too: 2; weights too: 3" },
    { key = "tries", type = "integer", default = 24, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
