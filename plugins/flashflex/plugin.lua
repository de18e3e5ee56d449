-- FlashFlex (Yan et al., arXiv 2409.01143; HexiScale): pipelines that differ in stages, tensor
-- degrees and layers. Section 4: the devices' graph is cut into pipelines along slow links by
-- inverse bandwidth (gradients travel on fast ones), each pipeline into stages by bandwidth; the
-- stages are ordered along the heaviest path, every machine's chunk picks its tensor degrees,
-- layers follow memory; a seeded walk over the numbers of pipelines and stages refines. Then,
-- unless asked for the paper alone, layers follow speed and stages are merged, split, swapped or
-- left out as long as the paper's own objective falls (the best plan known for its sample leaves
-- two GPUs out).
local candidates = require "candidates"
local claims = require "claims"
local formula = require "formula"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local pipeline = require "pipeline"
local pipeline_search = require "pipeline_search"
local prices = require "prices"
local reasons = require "reasons"

local MANY = 64 -- atoms from which on cuts are few, and the first plan is kept at once

--- The instance of a run: all figures from the core but the formulas' own; `most` keeps what the
-- judge would find.
local function instance(ctx, devices, c)
  local q = { flops = {}, memory = {}, machine = {}, ids = {}, kinds = {},
    hidden = ctx.model.hidden,
    layers = ctx.model.n_layers, tokens = ctx.job.sequence, vocab = ctx.model.vocab,
    batch = ctx.job.global_batch,
    micro_batch = c.micro_batch, recompute = c.recompute == "full" }
  local number, n_kinds = {}, 0
  for i, d in ipairs(devices) do
    q.flops[i], q.memory[i], q.machine[i] = d.flops_per_s or 1, d.memory_bytes, d.node .. d.kind
    q.ids[i], q.kinds[i] = d.id, d.kind
    if not number[d.kind] then
      n_kinds, number[d.kind] = n_kinds + 1, n_kinds
    end
  end
  local rows, fits = ctx.model:layers(), {}
  local between = {} -- of two machines all pairs are the same
  function q.bw(a, b)
    local m, n = q.machine[a], q.machine[b]
    if m == n then
      return links.bandwidth(ctx, q.ids[a], q.ids[b])
    end
    local row = between[m] or {}
    between[m], row[n] = row, row[n] or links.bandwidth(ctx, q.ids[a], q.ids[b])
    return row[n]
  end
  function q.tp(size)
    if fits[size] == nil then
      fits[size] = grids.tp_fits(rows, size)
    end
    return fits[size]
  end
  local known = {}
  local function most(stage, s, stages)
    local t = pipeline.tables(ctx, { devices = { { kind = q.kinds[stage.devices[1]] } },
      tp = #stage.devices,
      micro_batch = c.micro_batch, recompute = c.recompute }, stages - s + 1)
    return pipeline.most(t, s == 1 or s == stages)
  end
  function q.most(stage, s, stages)
    local size = number[q.kinds[stage.devices[1]]] * 4096 + #stage.devices
    local key = (size * 1048576 + stages - s) * 2 + (s > 1 and 1 or 0)
    known[key] = known[key] or most(stage, s, stages)
    return known[key]
  end
  return q
end

--- The plan of pipelines.
local function built(ctx, q, list, c)
  local replicas = {}
  for r, p in ipairs(list) do
    local stages, at = {}, 0
    for s, stage in ipairs(p) do
      local ids = {}
      for i, d in ipairs(stage.devices) do
        ids[i] = q.ids[d]
      end
      stages[s] = prices.stage_keys({ tp = #ids, recompute = c.recompute, zero = 0,
        sequence_parallel = #ids > 1 },
        { devices = ctx.cluster:address(ids), layers = { at, at + stage.layers } })
      at = at + stage.layers
    end
    replicas[r] = { micro_batches = p.micro_batches, stages = stages }
  end
  return { micro_batch = c.micro_batch, replicas = replicas, schedule = { name = "1f1b" } }
end

--- A plan without any search, in case time is short: its seconds, or nil.
local function keep_first(ctx, devices, atoms)
  for _, recompute in ipairs { "none", "full" } do
    local c = { micro_batch = 1, recompute = recompute }
    local q = instance(ctx, devices, c)
    for _, found in ipairs(pipeline_search.run(q, atoms,
      { rounds = 3, budget = 1, seed = ctx.seed, quick = true })) do
      local made = built(ctx, q, found.pipelines, c)
      local verdict = candidates.judge(made)
      if verdict then
        hv.incumbent(made)
        return verdict.iteration_s
      end
    end
  end
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local atoms, list = pipeline_search.atoms(inventory.nodes(devices), #devices > ctx.options.most),
    {}
  local kept = #atoms > MANY and keep_first(ctx, devices, atoms) or math.huge
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    for _, recompute in ipairs(ctx.job.global_batch % micro_batch == 0 and { "none", "full" }
        or {}) do
      local c = { micro_batch = micro_batch, recompute = recompute }
      local q = instance(ctx, devices, c)
      local rounds = math.ceil(ctx.options.rounds / (#atoms > MANY and 4 or 1))
      local o = { rounds = rounds, budget = 30, seed = ctx.seed, paper = ctx.options.paper,
        stopping = hv.stopping }
      for k, found in ipairs(hv.stopping() and {} or pipeline_search.run(q, atoms, o)) do
        if k > 6 then
          break
        end
        list[#list + 1] = found
        found.rank = #list
        function found.build()
          return built(ctx, q, found.pipelines, c)
        end
        local verdict = #atoms > MANY and k == 1 and candidates.judge(found.build())
        if verdict and verdict.iteration_s < kept then
          kept = verdict.iteration_s
          hv.incumbent(found.build())
        end
      end
    end
  end
  if #list == 0 then
    return nil, reasons.too_small(ctx, devices, "no set of pipelines without sharded states")
  end
  return candidates.best(list, ctx.options.tries)
end

--- FlashFlex's own objective on the plan.
local function claim(made, ctx)
  made = prices.table_of(made)
  local all, place = ctx.cluster:devices(), {}
  for i, d in ipairs(all) do
    place[d.id] = i
  end
  local recompute = made.replicas[1].stages[1].recompute or "none"
  local q = instance(ctx, all, { micro_batch = made.micro_batch, recompute = recompute })
  local list = {}
  for r, replica in ipairs(made.replicas) do
    list[r] = { micro_batches = replica.micro_batches }
    for s, stage in ipairs(replica.stages) do
      list[r][s] = { devices = {}, layers = stage.layers[2] - stage.layers[1] }
      for i, id in ipairs(ctx.cluster:ids(stage.devices)) do
        list[r][s].devices[i] = place[id]
      end
    end
  end
  local total, longest, dp = formula.total_s(q, list)
  return { iteration_s = total, terms = { pipeline_s = longest, gradients_s = dp },
    formula = "1.8 max GPipe map + 1.1 gradients (FlashFlex, section 4; factors of its code)" }
end

local function selftest(t)
  local src = "catalogue: flashflex"
  local q = { flops = { 312e12, 312e12 }, memory = {}, hidden = 4096, layers = 32, tokens = 4096,
    vocab = 32000,
    micro_batch = 1, recompute = true, bw = function() return 300e9 end }
  t.near("Llama-7B: FLOP per layer", formula.flops(q), 7.797244690432e12, 1e-9, src)
  t.near("on 312 TFLOP/s, ms", 1e3 * formula.layer_s(q, { devices = { 1 } }), 24.991, 5e-4, src)
  t.near("exchange of TP 2 at 300 GB/s, ms", 1e3 * select(2,
    formula.layer_s(q, { devices = { 1, 2 } })), 0.671,
    5e-4, src)
  q.recompute = false
  t.near("without recomputation", 1e3 * select(2, formula.layer_s(q, { devices = { 1, 2 } })),
    0.447, 5e-4, src)
  q.bw = function() return 1.25e9 end
  t.near("hop at 1.25 GB/s, ms", 1e3 * formula.hop_s(q, { devices = { 1 } }, { devices = { 2 } }),
    53.687, 5e-4, src)
  local eight, none = { devices = { 1 }, layers = 8 }, { devices = { 1 }, layers = 0 }
  t.near("8 layers, GiB of weights, gradients and Adam",
    (formula.memory_bytes(q, eight) - formula.memory_bytes(q, none) - 8 * 4096 * 4096 * 2) / 2 ^ 30,
    12, 1e-9, src)
  t.near("GPipe's map of 1 2 3, M 4", formula.map_s({ 1, 2, 3 }, 4), 15, 0, src)
  t.near("of 3 1 3", formula.map_s({ 3, 1, 3 }, 4), 18, 0, src)
  t.near("Eq-P of 1 2 3", claims.pipeline_s({ 1, 2, 3 }, 4), 15, 0, src)
  t.near("of 3 1 3", claims.pipeline_s({ 3, 1, 3 }, 4), 16, 0, src)
  q = require("data.shipped")()
  local known = { { devices = { 4 }, layers = 4 }, { devices = { 5 }, layers = 4 },
    { devices = { 6 }, layers = 1 },
    { devices = { 1, 2, 3 }, layers = 23 }, micro_batches = 24 }
  t.near("shipped sample, best known plan, s", formula.total_s(q, { known }), 9.8659, 5e-5,
    "FlashFlex 5ee1726, its TimeCost")
  local atoms = {}
  for d = 1, 8 do
    atoms[d] = { d }
  end
  local ours = pipeline_search.run(q, atoms, { rounds = 12, budget = 400, seed = 1 })[1].claim_s
  t.ok(("shipped sample: %.4f s, theirs 14.149 s in 1.6 s of CPU, the best known 9.8659"):format(
    ours), ours <= 9.86595,
    "FlashFlex 5ee1726, honest batch")
  q.flops, q.layers, q.batch = { 4, 4, 1, 1 }, 4, 4
  for d = 1, 4 do
    q.flops[d] = q.flops[d] * 1e14
  end
  q.machine = { 1, 1, 2, 2 }
  q.bw = function(a, b) return (q.machine[a] == q.machine[b] and 100 or 1) * 1e9 end
  local cut = hv.opt.cut { weights = { 4, 4, 1, 1 }, parts = 2, tolerance = 0.01,
    edges = { { 1, 2, 0.01 }, { 1, 3, 1 }, { 1, 4, 1 }, { 2, 3, 1 }, { 2, 4, 1 }, { 3, 4, 0.01 } } }
  t.near("2 machines x 2: least cut by inverse bandwidth at equal speed", cut.value, 2.02, 1e-9,
    "all three pairings enumerated: " .. src)
end

return {
  api = 1, id = "flashflex", title = "FlashFlex", kind = "hetero",
  system = "FlashFlex: Accommodating Large Language Model Training over Heterogeneous Environment, 2024",
  reference = "arXiv:2409.01143",
  summary = "Graph cuts into pipelines that differ in stages, tensor degrees and layers.",
  needs = { model = "transformer" },
  effort = "slow",
  options = {
    { key = "rounds", type = "integer", default = 8, min = 1, max = 1000,
      help = "cuts tried per micro-batch (a quarter of them beyond 64 machines)" },
    { key = "micro_batch", type = "integer", default = 4, min = 1, max = 64,
      help = "largest micro-batch" },
    { key = "paper", type = "boolean", default = false,
      help = "the paper's steps alone: layers by memory, no descent" },
    { key = "most", type = "integer", default = 32, min = 1, max = 256,
      help = "devices up to which the cut sees each by itself; above, machines" },
    { key = "tries", type = "integer", default = 16, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
