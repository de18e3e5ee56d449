-- DT-FM (Yuan et al., NeurIPS'22): which of many equal devices behind slow, unequal links holds
-- which stage of which replica. Section 3: COMM = DATAP + 2 PIPEP, where DATAP is the slowest
-- sharded parameter server of a stage's replicas, and PIPEP the open-path TSP over stages whose
-- distance is a bottleneck perfect matching. Section 4: a genetic algorithm with cyclic
-- partitioning as local search. Compute is ignored on purpose. What a group costs is remembered by
-- how many devices of which node it has.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local oracle = require "testing.oracle"
local pipeline = require "pipeline"
local placement = require "placement"
local prices = require "prices"
local search = require "search"

local FEW = 4 -- plans of a very large cluster that are simulated
-- share of the memory above which more recomputation is offered too: layers are not all alike
local SPARE = 0.95

--- Stages of a placement as rows of pipeline.tables.
local function stages_of(q, rows, size)
  local stages = {}
  for s, row in ipairs(rows) do
    stages[s] = { devices = {}, tp = size }
    for i, v in ipairs(row) do
      stages[s].devices[i] = { kind = q.units[v].kind }
    end
  end
  return stages
end

--- Do even layers fit under this setting, and with room to spare? Else what they lack.
local function fits(ctx, stages, c)
  local ranges, easily = numbers.ranges(numbers.even(ctx.model.n_layers, #stages)), true
  for s, stage in ipairs(stages) do
    stage.micro_batch, stage.recompute = c.micro_batch, c.recompute
    local t, need = pipeline.tables(ctx, stage, math.min(#stages - s + 1, c.micro_batches)), 0
    for l = ranges[s][1] + 1, ranges[s][2] do
      need = need + t.held[l]
    end
    if need > t.room then
      return false, prices.short(ctx, s, need, stage.devices[1])
    end
    easily = easily and need <= SPARE * t.room
  end
  return true, nil, easily
end

--- The plan of a placement with even layers.
local function built(ctx, q, rows, size, c)
  local ranges, stages = numbers.ranges(numbers.even(ctx.model.n_layers, #rows)), {}
  for s, row in ipairs(rows) do
    local ids = {}
    for _, v in ipairs(row) do
      table.move(q.units[v].ids, 1, #q.units[v].ids, #ids + 1, ids)
    end
    stages[s] = prices.stage_keys({ tp = size, recompute = c.recompute,
      sequence_parallel = size > 1 },
      { devices = ctx.cluster:address(ids), layers = ranges[s] })
  end
  return { micro_batch = c.micro_batch, schedule = { name = "1f1b" },
    sync = { kind = "ps", servers = "sharded" },
    replicas = { { count = c.replicas, micro_batches = c.micro_batches, stages = stages } } }
end

--- Adds the plans of S stages: one placement, every micro-batch, as little recomputation as fits.
local function add(ctx, list, q, size)
  local D, global, reason = #q.class // q.stages * (q.block or 1), ctx.job.global_batch, nil
  local own = prices.chain(ctx, q.units[1].kind, { tp = size, micro_batch = 1 })
  q.dp_bytes = prices.gradient_bytes(ctx, own, 1, own.n) / q.stages
  q.pp_bytes, q.data, q.match = own.output_bytes * (global // D) / size, nil, nil
  local parts, seconds, order = placement.place(q)
  local rows = placement.wired(q, parts, order)
  local stages = stages_of(q, rows, size)
  for _, micro_batch in ipairs(numbers.powers(8)) do
    for _, recompute in ipairs(global % (D * micro_batch) == 0 and { "none", "selective", "full" }
        or {}) do
      local c = { micro_batch = micro_batch, recompute = recompute, replicas = D,
        micro_batches = global // (D * micro_batch) }
      local ok, why, easily = fits(ctx, stages, c)
      reason = why or reason
      if ok then
        list[#list + 1] = { claim_s = seconds[1], rank = #list + 1,
          build = function() return built(ctx, q, rows, size, c) end }
      end
      if easily then
        break
      end
    end
  end
  return reason
end

--- The nodes, how many devices are placed together, and how many split a layer inside nodes at
-- most. The list of all devices ends here: of a very large cluster it is most of what Lua may hold.
local function nodes_of(ctx)
  local all, why = inventory.usable(ctx)
  if not all then
    return nil, why
  end
  local nodes = inventory.nodes(all)
  local most = grids.largest_tp(ctx.model:layers(), inventory.node_size(nodes), 1024)
  return nodes, #all > ctx.options.most and most or 1, most
end

--- The best plan with `size` devices placed together, split tensor parallel; nil and why not.
local function placed(ctx, nodes, size)
  local q, list, reason = placement.network(ctx, nodes, size, ctx.options), {}, nil
  for stages = 1, math.min(ctx.model.n_layers, #q.class) do
    local asked = ctx.options.stages == 0 or ctx.options.stages == stages
    local own = asked and not hv.stopping() and placement.for_stages(ctx, q, stages)
    if own then
      hv.progress(stages / #q.class, stages .. " stages")
      own.stages = stages
      reason = add(ctx, list, own, size) or reason
    end
  end
  if #list > 0 then
    return candidates.best(list, q.block and FEW or #list)
  end
  return nil, reason and "even layers on equal devices: " .. reason
    or ("%s %d units into replicas that divide the batch"):format(ctx.options.stages == 0
        and "no number of stages cuts"
        or ctx.options.stages .. " stages do not cut", #q.class * (q.block or 1))
end

local function plan(ctx)
  local nodes, size, most = nodes_of(ctx)
  if not nodes then
    return nil, size
  end
  local best, why = placed(ctx, nodes, size)
  if best or size == most or hv.stopping() then
    return best, why
  end
  return placed(ctx, nodes, most) -- where no device alone holds its part
end

--- COMM of the plan as it stands: communication alone, compute is no part of the formula.
local function claim(made, ctx)
  made = prices.table_of(made)
  local r, data, path, before = made.replicas[1], 0, 0, nil
  for _, stage in ipairs(r.stages) do
    local ids, heads = ctx.cluster:ids(stage.devices), {}
    for i = 1, #ids, stage.tp or 1 do
      heads[#heads + 1] = ids[i]
    end
    local kind = prices.kinds(ctx)[ids[1]]
    local own = prices.chain(ctx, kind, { tp = stage.tp, micro_batch = made.micro_batch })
    local bytes, hop = prices.gradient_bytes(ctx, own, stage.layers[1] + 1, stage.layers[2]), 0
    for i, a in ipairs(heads) do
      local sent = own.output_bytes * r.micro_batches / (stage.tp or 1)
      hop = before and math.max(hop, links.seconds(ctx, before[i], a, sent)) or 0
    end
    data = math.max(data, links.exchange(ctx, heads, bytes / #heads))
    path, before = path + hop, heads
  end
  return { communication_s = data + 2 * path, terms = { data_s = data, pipeline_s = path },
    formula = "COMM = DATAP + 2 PIPEP, communication alone (DT-FM, section 3)" }
end

--- Does the search find the least COMM of all divisions?
local function finds_least(q)
  local best = math.huge
  for _, parts in ipairs(oracle.divisions(#q.class, q.stages)) do
    best = math.min(best, (placement.score(q, parts)))
  end
  return select(2, placement.place(q))[1] <= best * (1 + 1e-9)
end

local function selftest(t)
  local src = "catalogue: dtfm"
  local function two(dp_GB)
    return placement.regions({ 2, 2 }, { { 1 }, { 50, 1 } }, { { 10 }, { 1, 10 } },
      { stages = 2, dp_bytes = dp_GB * 1e9, pp_bytes = 1e8, seed = 1 })
  end
  for dp_GB, want in pairs { [0.5] = { 2.102, 4.262, "0.402 1.700" },
    [0.05] = { 0.662, 1.742, "0.500 0.162" } } do
    local q = two(dp_GB)
    local inside, across = { placement.score(q, { { 1, 2 }, { 3, 4 } }) },
      { placement.score(q, { { 1, 3 }, { 2,
        4 } }) }
    local best = inside[1] < across[1] and inside or across
    t.equal("its DATAP and 2 PIPEP", ("%.3f %.3f"):format(best[2], 2 * best[3]), want[3], src)
    t.near(("2 regions, %g GB of gradients: best"):format(dp_GB), best[1], want[1], 1e-9, src)
    t.near("and the alternative", math.max(inside[1], across[1]), want[2], 1e-9, src)
    t.near("found", select(2, placement.place(q))[1], want[1], 1e-9, src)
  end
  local random, all = search.generator(3), true
  for _, shape in ipairs { { 6, 2 }, { 6, 3 }, { 8, 2 }, { 8, 4 } } do
    local delay, rate, ones = {}, {}, {}
    for a = 1, shape[1] do
      delay[a], rate[a], ones[a] = {}, {}, 1
      for b = 1, a do
        delay[a][b], rate[a][b] = random(90), 0.5 + random(9)
      end
    end
    all = all and finds_least(placement.regions(ones, delay, rate,
      { stages = shape[2], dp_bytes = 3e8,
        pp_bytes = 2e8 }))
  end
  t.ok("6 and 8 devices on random links: the search reaches the enumerated optimum", all, src
      .. ", oracle")
  local q = placement.regions({ 16, 16, 16, 16 },
    { { 5 }, { 67, 5 }, { 59, 12, 5 }, { 11, 49, 52, 5 } },
    { { 2 }, { 1.15, 2 }, { 1.05, 1.25, 2 }, { 1.12, 1.1, 1.02, 2 } },
    { stages = 8, dp_bytes = 0.65e9, pp_bytes = 0.47124922275543213e9, seed = 1 })
  local cases = "DT-FM cda948f, best of 500 candidates"
  local text, best = "shipped case %d: %.4f s, theirs %.4f s in 27 to 35 s of CPU",
    select(2, placement.place(q))[1]
  t.ok(text:format(3, best, 34.8020), best <= 34.80205, cases)
  q = placement.regions({ 8, 8, 8, 8, 8, 8, 8, 8 }, {
    { 5 }, { 67, 5 }, { 49, 11, 5 }, { 96, 143, 130, 5 }, { 124, 172, 159, 34, 5 },
    { 136, 76, 86, 210, 238, 5 },
    { 143, 90, 99, 223, 235, 14, 5 }, { 124, 67, 77, 199, 228, 12, 24, 5 } }, {
      { 2 }, { 0.79, 2 }, { 1.1, 1.12, 2 }, { 0.523, 0.524, 0.694, 2 },
      { 0.46, 0.5, 0.529, 1.1, 2 },
      { 0.42, 1.16, 1.05, 0.366, 0.342, 2 }, { 0.404, 1.02, 0.799, 0.36, 0.358, 1.14, 2 },
      { 0.482, 1.05, 1.14, 0.465, 0.335, 1.09, 1.08, 2 } },
    { stages = 8, dp_bytes = 0.65e9, pp_bytes = 0.47124922275543213e9, seed = 1 })
  best = select(2, placement.place(q))[1]
  t.ok(text:format(4, best, 49.2184), best <= 49.21845, cases)
end

return {
  api = 1, id = "dtfm", title = "DT-FM", kind = "hetero",
  system = "Decentralized Training of Foundation Models in Heterogeneous Environments, NeurIPS 2022",
  reference = "arXiv:2206.01288",
  summary = "Equal stages placed on unequal links: bottleneck matchings, open TSP, genetic search.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "stages", type = "integer", default = 0, min = 0, max = 1024,
      help = "pipeline stages; 0: best of all" },
    { key = "budget", type = "integer", default = 100, min = 2, max = 100000,
      help = "placements per depth" },
    { key = "most", type = "integer", default = 64, min = 1, max = 512,
      help = "devices up to which each is placed by itself; above, or where none holds its part, groups inside nodes" },
    { key = "blocks", type = "integer", default = 160, min = 16, max = 4096,
      help = "nodes up to which each is placed by itself; above, as many blocks of equal nodes" },
  },
  plan = plan, claim = claim,
  selftest = selftest,
}
