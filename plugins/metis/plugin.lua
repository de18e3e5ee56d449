-- Metis (Um et al., USENIX ATC'24): one pipeline over all GPUs of a mixed cluster. Every order of
-- the types, groups of a power of two of GPUs as stages (none too small, few permuted), every
-- number of micro-batches; per stage data parallelism first, tensor parallelism where memory is
-- short; layers by speed; a stage that mixes types shares its micro-batch unevenly. T = (B - 1)
-- longest + sum of stages + exchange + longest update + hops + B (loading + synchronising), the
-- last two as its profiles measure them (options, 0 where nobody did). Not taken over from the
-- released code: the stages of a second order of types priced by the first stage alone, bandwidth
-- between nodes read from inside them, five times the memory of one type, times of zero taken for
-- missing, batches that lose a remainder, stages without layers. Cuts of layers and shares are
-- exact where the paper repairs and rounds.
local candidates = require "candidates"
local claims = require "claims"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local prices = require "prices"
local reasons = require "reasons"
local stage_search = require "stage_search"

--- The problem of a run for stage_search.search, at the cluster's prices.
local function problem(ctx, nodes, recompute)
  local o, outputs = ctx.options, hv.cost.layers { kinds = { nodes[1].kind },
    micro_batch = 1 }:sizes "output"
  local q = { layers = ctx.model.n_layers, batch = ctx.job.global_batch,
    orders = inventory.orders(nodes),
    counts = numbers.divisors(ctx.job.global_batch), stages = o.stages, variance = o.variance,
    length = o.permute,
    most = o.groups, max_tp = grids.largest_tp(ctx.model:layers(), inventory.node_size(nodes), 64),
    budget = o.budget,
    keep = o.tries + 4, every = (o.batch_ms + o.sync_ms) / 1000, stopping = hv.stopping }
  local function own(kind, tp, share)
    return prices.chain(ctx, kind, { tp = tp, micro_batch = share, recompute = recompute,
      sequence_parallel = tp > 1 })
  end
  function q.pace(kind, tp)
    return prices.time(own(kind, tp, 1), 1, q.layers)
  end
  function q.split(entering, paces, same)
    if same then
      return numbers.even(entering, #paces)
    end
    local least = {}
    for r = 1, #paces do
      least[r] = 1
    end
    return hv.opt.distribute { total = entering, time = paces, min = least }.counts
  end
  function q.times(kind, tp, share)
    return share <= o.micro_batch and own(kind, tp, share).times or nil
  end
  function q.held(kind, tp, share, alive)
    local c = own(kind, tp, share)
    local slack = recompute == "none" and 1 or 0.97 -- the last round leaves some room
    return prices.layer_bytes(ctx, c, { in_flight = alive }),
      slack * prices.capacity(ctx, { kind = kind }) - prices.overhead_bytes(ctx, c)
  end
  function q.sync(stage, from, to)
    if not stage.ring then
      local heads = {}
      for r = 1, stage.dp do
        heads[r] = stage.order[stage.from + (r - 1) * stage.tp + 1].id
      end
      stage.ring = links.ring(ctx, heads, 1)
    end
    return stage.ring * prices.gradient_bytes(ctx, own(stage.kinds[1].kind, stage.tp, 1), from, to)
  end
  function q.hop(a, b, layer)
    local last, first = a.order[a.from + a.size].id, b.order[b.from + 1].id
    return links.seconds(ctx, last, first, outputs[layer] * a.kinds[1].share)
  end
  --- The optimizer's, of the kind that takes longest.
  function q.step(stage, from, to)
    local most = 0
    for _, k in ipairs(stage.kinds) do
      most = math.max(most, prices.update(ctx, own(k.kind, stage.tp, 1), from, to))
    end
    return most
  end
  return q
end

--- The plan of what was found: one replica whose stages have data-parallel ranks.
local function built(ctx, found, recompute)
  local rows = {}
  for s, stage in ipairs(found.stages) do
    local ids, even = {}, true
    for i = 1, stage.size do
      ids[i] = stage.order[stage.from + i].id
    end
    for _, share in ipairs(stage.shares) do
      even = even and share == stage.shares[1]
    end
    rows[s] = prices.stage_keys({ tp = stage.tp, recompute = recompute,
      sequence_parallel = stage.tp > 1 }, {
        devices = ctx.cluster:address(ids), layers = { found.ranges[s][1] - 1, found.ranges[s][2] },
        dp = stage.dp > 1 and stage.dp or nil, shares = not even and stage.shares or nil })
  end
  return { micro_batch = found.entering, replicas =
      { { micro_batches = found.micro_batches, stages = rows } },
    schedule = { name = "1f1b" } }
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local nodes, reason = inventory.nodes(devices), nil
  for _, recompute in ipairs { "none", "full" } do -- Metis itself recomputes nothing
    local answers, cut, staffed = stage_search.search(problem(ctx, nodes, recompute))
    local list = {}
    if staffed == 0 then
      return nil, ("all %d devices run one pipeline: no number of micro-batches that divides the batch of %d gives "
          .. "each replica of a stage 1 to %d sequences (option micro_batch)"):format(#devices,
            ctx.job.global_batch,
            ctx.options.micro_batch)
    end
    if cut > 0 then
      hv.log(("%d cases beyond the budget were left out"):format(cut))
    end
    for i, found in ipairs(answers) do
      list[i] = { claim_s = found.claim_s, rank = i,
        build = function() return built(ctx, found, recompute) end }
    end
    local best, why_not
    if #list > 0 then
      best, why_not = candidates.best(list, ctx.options.tries)
    end
    if best then
      return best
    end
    reason = why_not or reason
  end
  return nil, reason or reasons.too_small(ctx, devices,
    "no pipeline of groups of a power of two of all devices")
end

--- The equation on the plan's own figures.
local function claim(made, ctx)
  made = prices.table_of(made)
  local parts, sync = claims.parts(ctx, made)
  local pipeline, update = claims.seconds(parts[1], 1), 0
  for s in ipairs(made.replicas[1].stages) do
    update = math.max(update, prices.stage(ctx, made, 1, s).optimizer_s)
  end
  local o, B = ctx.options, parts[1].micro_batches
  local loading, synchronising = B * o.batch_ms / 1000, B * o.sync_ms / 1000
  return { iteration_s = pipeline + sync + update + loading + synchronising,
    terms = { pipeline_s = pipeline, exchange_s = sync, optimizer_s = update, loading_s = loading,
      synchronising_s = synchronising },
    formula = "(B - 1) longest + sum of stages + exchange + longest update + hops + B (loading + synchronising) "
      .. "(Metis, section 4)" }
end

local function selftest(t)
  -- groups of its published answers on 16 GPUs (variance 1, 4 blocks permuted): all are among ours
  local src = "Metis 1b37058, opt350 on 8 + 8"
  local answers = { "8 8", "4 4 4 4", "2 2 2 2 4 4", "4 4 2 2 2 2", "4 2 2 2 2 2 2",
    "4 4 1 1 2 1 1 1 1",
    "4 4 1 1 1 1 1 1 2", "2 2 4 4 2 2" }
  for _, text in ipairs(answers) do
    local _, spaces = text:gsub(" ", "")
    local seen = false
    for _, sizes in ipairs(stage_search.groups(16, spaces + 1, 1, 4, 1000)) do
      seen = seen or table.concat(sizes, " ") == text
    end
    t.ok("groups " .. text, seen, src)
  end
  t.near("sizes of 16 GPUs in 6 stages, in all orders of 4 blocks",
    #stage_search.groups(16, 6, 1, 4, 1000), 6, 0,
    "by hand")
  local function zero()
    return 0
  end
  local q = { layers = 6, batch = 12, counts = { 1, 2, 3, 4, 6, 12 }, stages = 2, variance = 1,
    length = 4, most = 99,
    max_tp = 1, budget = 99, keep = 1, every = 0, sync = zero, step = zero, hop = zero,
    orders = { {}, {} } }
  for d = 1, 2 do -- one GPU three times as fast as the other
    q.orders[1][d], q.orders[2][d] = { kind = d, node = d }, { kind = 3 - d, node = 3 - d }
  end
  function q.pace(kind)
    return kind == 1 and 1 or 3
  end
  function q.split(entering, paces)
    return hv.opt.distribute { total = entering, time = paces }.counts
  end
  function q.times(kind, _, share)
    local list = {}
    for l = 1, 6 do
      list[l] = share * q.pace(kind)
    end
    return list
  end
  function q.held()
    return { 1, 1, 1, 1, 1, 1 }, 6
  end
  local best = stage_search.search(q)[1]
  t.equal("speeds 3 and 1, room: one stage, its batch shared", #best.stages .. ": " .. table.concat(
    best.stages[1].shares, "+"), "1: 9+3", "by hand")
  t.near("its time", best.claim_s, 54, 1e-9, "by hand: 9 sequences x 6 layers")
  function q.held()
    return { 1, 1, 1, 1, 1, 1 }, 4
  end
  function q.step(stage, from, to)
    return stage.kinds[1].kind * (to - from + 1)
  end
  t.near("with updates of 1 and 2 per layer", stage_search.search(q)[1].claim_s, 80, 1e-9,
    "by hand: 76 + max(4 x 1, 2 x 2)")
  q.step = zero
  best = stage_search.search(q)[1]
  t.near("room for 4 layers each: 2 stages of 4 + 2 layers, 12 micro-batches", best.claim_s, 76,
    1e-9,
    "by hand: 11 x 6 + 4 + 6")
  -- what the batch generator takes for every micro-batch: 72 + 48 / B + B is least at 6 or 8
  q.every = 1
  best = stage_search.search(q)[1]
  t.equal("with 1 for loading each: time, micro-batches",
    ("%g %d"):format(best.claim_s, best.micro_batches), "86 6",
    "by hand; the term: Metis 4b24046, cost_estimator.py")
end

return {
  api = 1, id = "metis", title = "Metis", kind = "hetero",
  system = "Metis: Fast Automatic Distributed Training on Heterogeneous GPUs, USENIX ATC 2024",
  reference = "https://www.usenix.org/conference/atc24/presentation/um",
  summary = "One pipeline over all types in every order; groups of a power of two, uneven shares where types mix.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "stages", type = "integer", default = 16, min = 1, max = 256,
      help = "most stages that are tried" },
    { key = "variance", type = "number", default = 0.5, min = 0.01, max = 1,
      help = "least group as a share of the devices per stage" },
    { key = "permute", type = "integer", default = 4, min = 1, max = 8,
      help = "blocks of groups that are permuted; more groups are joined in pairs" },
    { key = "groups", type = "integer", default = 60, min = 1, max = 100000,
      help = "orders of groups tried per number of stages" },
    { key = "micro_batch", type = "integer", default = 16, min = 1, max = 1024,
      help = "most sequences on a replica" },
    { key = "budget", type = "integer", default = 2000, min = 1, max = 1000000,
      help = "orders, groups and micro-batches that are solved, least bound first" },
    { key = "batch_ms", type = "number", default = 0, min = 0, max = 1e6,
      help = "loading of a micro-batch, as its profiles measure it: part of the formula, not of the simulation" },
    { key = "sync_ms", type = "number", default = 0, min = 0, max = 1e6,
      help = "synchronising after a micro-batch's forward and backward pass, likewise" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
