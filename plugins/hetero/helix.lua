-- Helix (Mei et al., ASPLOS'25, arXiv 2406.01566): layers on unequal, far apart GPUs so that most tokens flow through,
-- by a max-flow graph of nodes (which hold runs of layers) and links; an integer program for few nodes, local search
-- for many; requests go from hop to hop by interleaved weighted round robin over the flow. Its plans serve: for a
-- training job the same graph chooses among placements that can be trained, where all nodes of a stage hold the same
-- run and share each micro-batch in proportion to their rates.
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

--- Helix's shipped cluster: 4 A100, 8 L4 and 12 T4 serve Llama-2-70B: tokens per second by layers held, its placement
-- { kind, first, last } and its links (Helix-ASPLOS25 148b733, examples/simulation).
local function shipped()
  local a100, l4, t4 = {
    23833.869866324374, 11384.25466586348, 7201.412420877685, 5264.623373853506, 4096.654503856875,
    3124.1430780258565, 2595.6792854008463, 2045.6410473362616, 1754.3818895649893, 1392.6348207247768,
    1212.1768454598214, 952.1073984850639
  }, {
    7557.863040102793, 3625.714747409144, 2171.878169270482, 1476.084625195014, 1017.5727965236067,
    747.7853772615942, 531.7025845523623
  }, {
    5709.207939642649, 2434.367182876655, 1347.8665242379518, 757.8531857227841
  }
  local placement, links, q, runs = {
    { 2, 7, 11 }, { 3, 34, 38 }, { 3, 23, 26 }, { 2, 53, 60 }, { 3, 77, 80 }, { 2, 53, 60 }, { 1, 68, 77 },
    { 3, 26, 30 }, { 3, 30, 34 }, { 1, 37, 49 }, { 1, 60, 68 }, { 2, 42, 49 }, { 3, 33, 37 }, { 3, 38, 42 },
    { 2, 3, 7 }, { 3, 0, 3 }, { 3, 11, 14 }, { 1, 14, 23 }, { 2, 46, 53 }, { 3, 42, 46 }, { 3, 76, 77 },
    { 2, 53, 60 }, { 3, 49, 53 }, { 2, 26, 33 }
  }, {
    { 0, 16 }, { 5, 25 }, { 15, 1 }, { 1, 17 }, { 9, 2 }, { 2, 14 }, { 3, 8 }, { 18, 3 }, { 3, 24 }, { 4, 11 },
    { 19, 4 }, { 23, 4 }, { 7, 5 }, { 6, 11 }, { 19, 6 }, { 23, 6 }, { 11, 7 }, { 8, 9 }, { 13, 10 }, { 10, 23 },
    { 22, 11 }, { 14, 12 }, { 12, 23 }, { 24, 13 }, { 14, 20 }, { 16, 15 }, { 17, 18 }, { 20, 19 }, { 19, 22 },
    { 23, 22 }
  }, { layers = 80, rates = {} }, {}
  local allowed = {}
  for _, l in ipairs(links) do allowed[l[1] * 100 + l[2]] = (l[1] == 0 or l[2] == 25) and 1e9 / 2 or 1e9 / 16386 end
  for i, p in ipairs(placement) do q.rates[i], runs[i] = ({ a100, l4, t4 })[p[1]], { p[2], p[3] } end
  function q.link(i, j) return allowed[i * 100 + j] or 0 end
  return q, runs
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
  local src, q, runs = "Helix-ASPLOS25 148b733, README", shipped()
  t.near("24 nodes: upper bound, tokens per second", serving.bound(q), 2803.860988272896, 1e-6, src)
  t.near("24 nodes: max flow of its placement", serving.flow(q, runs), 1289.5557702751464, 1e-6, src)
  for k, want in pairs { [1] = 952.107, [2] = 531.703, [3] = 757.853 } do
    local rates = q.rates[({ 7, 1, 2 })[k]]
    t.near(({ "Petals: an A100 with 12 layers", "homogeneous: an L4 with 7", "Swarm: a T4 with 4" })[k], rates[#rates],
      want, 6e-4, src)
  end
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
  summary = "Layers on nodes by max flow; for training, nodes of a stage share by their rates.",
  needs = { model = "layers" },
  options = {
    { key = "zero", type = "integer", default = 1, min = 0, max = 3,
      help = "optimizer states sharded over a stage's ranks: 1; gradients too: 2; weights too: 3" },
    { key = "tries", type = "integer", default = 24, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
