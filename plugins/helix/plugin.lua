-- Helix (Mei et al., ASPLOS'25, arXiv 2406.01566): layers on unequal, far apart GPUs so that most
-- tokens flow through, by a max-flow graph of nodes (which hold runs of layers) and links, in local
-- search or an integer program; requests go from hop to hop by interleaved weighted round robin
-- over the flow, past nodes whose caches are full to a mark (the judge plays that). With mode =
-- serve its plans do that; else, for a training job, the same graph chooses among placements that
-- can be trained, where all nodes of a stage hold the same run and share each micro-batch in
-- proportion to their rates.
local inventory = require "inventory"
local prices = require "prices"
local search = require "search"
local serving = require "serving"
local token_flow = require "token_flow"
local train = require "train"

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local o = ctx.options
  if o.mode == "train" then
    return train.plan(ctx, devices, o)
  end
  return serving.plan(ctx, devices, { budget = o.flows, seed = ctx.seed, enough = o.enough,
    program_s = o.program_s,
    neighbours = o.neighbours, strict = not o.partial, mark = o.high_water < 1 and o.high_water
      or nil })
end

--- The flow of the plan's own stages.
local function claim(made, ctx)
  made = prices.table_of(made)
  local formula = "max flow over nodes and links (Helix, section 4.3)"
  if made.mode == "serve" then
    local rate, bound = serving.claim(ctx, made)
    return { tokens_per_s = rate, terms = { bound_tokens_per_s = bound }, formula = formula }
  end
  local rate = train.flow(ctx, made)
  return { tokens_per_s = rate, iteration_s = ctx.job.global_batch * ctx.job.sequence / rate,
    formula = formula }
end

--- The best flows of all placements of the small oracle, largest first.
local function oracle_flows(between, ends)
  local q = { layers = 2, rates = { { 10, 5 }, { 4, 2 }, { 4, 2 } },
    link = function(i, j) return (i == 0 or j == 4) and ends or between end }
  local flows = {}
  for v in search.product { token_flow.runs(q, 1), token_flow.runs(q, 2), token_flow.runs(q, 3) } do
    flows[#flows + 1] = token_flow.flow(q, v)
  end
  table.sort(flows, function(a, b) return a > b end)
  return flows, q
end

local function selftest(t)
  local src, q, runs = "Helix-ASPLOS25 148b733, README", require("data.cluster24")()
  t.near("24 nodes: upper bound, tokens per second", token_flow.bound(q), 2803.860988272896, 1e-6,
    src)
  t.near("24 nodes: max flow of its placement", token_flow.flow(q, runs), 1289.5557702751464, 1e-6,
    src)
  for k, want in pairs { [1] = 952.107, [2] = 531.703, [3] = 757.853 } do
    local rates = q.rates[({ 7, 1, 2 })[k]]
    t.near(({ "Petals: an A100 with 12 layers", "homogeneous: an L4 with 7",
      "Swarm: a T4 with 4" })[k], rates[#rates],
      want, 6e-4, src)
  end
  q.strict = true
  t.near("24 nodes: its placement needs no partial inference", token_flow.flow(q, runs),
    1289.5557702751464, 1e-6, src)
  q.strict = nil
  q.link = function(i, j) return (i == 0 or j == #q.rates + 1) and 1e9 / 2 or 1e9 / 16386 end
  local found = select(2, token_flow.place(q, { budget = 300 }))
  t.ok(("24 nodes, all links of 1 GB/s: local search, %.1f tokens per second, theirs 1289.6"):format(found),
    found >= 1289.5557702751464, src)
  local twins = { layers = 4, rates = { { 8, 4, 8 / 3 }, { 8, 4, 8 / 3 } },
    link = function() return 1e9 end }
  found = select(2, token_flow.place(twins, { budget = 20 }))
  t.near("two nodes of 8/k, 4 layers: two each", found, 4, 1e-9, "by hand")
  local links = 0
  for _, row in ipairs(token_flow.pruned(q, 12)) do
    for _ in pairs(row) do
      links = links + 1
    end
  end
  t.near("24 nodes: links of the program at 12 neighbours", links, 24 * 12, 0,
    "Helix, section 4.5: degree 12")
  local fan = { layers = 2, rates = { { 10 }, { 4 }, { 4 } }, link = function() return 1e9 end }
  t.near("a node of 10 before two of 4", token_flow.program(fan), 8, 1e-6, "by hand")
  t.near("pruned to one neighbour each", token_flow.program(fan, { neighbours = 1 }), 4, 1e-6,
    "by hand")
  t.ok("no more than 8, where 8 is known", not token_flow.program(fan, { above = 8 }),
    "by hand: warm start")
  local overlap = { layers = 3, rates = { { 9, 9 }, { 3, 3 } }, link = function() return 1e9 end }
  local runs12 = { { 0, 2 }, { 1, 3 } }
  t.near("runs 1-2 and 2-3 with partial inference", token_flow.flow(overlap, runs12), 3, 1e-9,
    "by hand")
  overlap.strict = true
  t.near("and without", token_flow.flow(overlap, runs12), 0, 0, "by hand")
  t.near("without, by the program: 1-2 and 3", token_flow.program(overlap), 3, 1e-6, "by hand")
  src = "catalogue: helix, oracle"
  local flows, small = oracle_flows(1e9, 1e9)
  t.equal("2 layers on 3 nodes, free links", ("%g %g %g %g"):format(table.unpack(flows)), "9 9 9 8",
    src)
  t.near("bound", token_flow.bound(small), 9, 1e-9, src)
  t.near("integer program", token_flow.program(small), 9, 1e-6, src)
  t.near("local search", select(2, token_flow.place(small)), 9, 1e-9, src)
  flows, small = oracle_flows(1, 1e9)
  t.equal("1 token/s between nodes", ("%g %g"):format(table.unpack(flows)), "9 7", src)
  t.near("integer program", token_flow.program(small), 9, 1e-6, src)
  flows, small = oracle_flows(1, 1)
  t.equal("1 token/s on all links", ("%g %g"):format(table.unpack(flows)), "3 2", src)
  t.near("integer program", token_flow.program(small), 3, 1e-6, src)
  t.equal("requests over flows of 3 and 1", table.concat(token_flow.deal({ 3, 1 }, 8), " "),
    "1 1 1 2 1 1 1 2",
    "interleaved weighted round robin by hand")
end

return {
  api = 1, id = "helix", title = "Helix", kind = "hetero",
  system = "Helix: Serving Large Language Models over Heterogeneous GPUs and Network via Max-Flow, ASPLOS 2025",
  reference = "arXiv:2406.01566",
  summary = "Layers on nodes by max flow: serves, or trains with shares by the nodes' rates.",
  needs = { model = "layers" },
  effort = "medium", serves = true,
  options = {
    { key = "mode", type = "choice", choices = { "train", "serve" }, default = "train",
      help = "a plan that trains, or one that serves requests" },
    { key = "flows", type = "integer", default = 300, min = 1, max = 100000,
      help = "serve: max flows computed in the search for a placement, per tensor degree" },
    { key = "enough", type = "number", default = 0.98, min = 0.1, max = 1,
      help = "serve: share of the upper bound at which that search ends" },
    { key = "program_s", type = "number", default = 0, min = 0, max = 3600,
      help = "serve: seconds of the paper's integer program, for 24 servers or fewer that are still below that share" },
    { key = "neighbours", type = "integer", default = 12, min = 1, max = 1000,
      help = "serve: links out of a server that the integer program keeps, the widest" },
    { key = "partial", type = "boolean", default = true,
      help = "serve: partial inference: tokens may enter a server behind its first layer" },
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
