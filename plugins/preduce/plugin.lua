-- Partial Reduce (Miao et al., SIGMOD'21): a worker that has ended its step does not wait for all
-- others: as soon as P workers are ready they average their models among themselves (weights 1/P,
-- or by staleness). Section 4: the controller takes them first come first served, and keeps the
-- groups from freezing into cliques: once the last ceil((N - 1) / (P - 1)) groups do not connect
-- all workers, the next group joins two components. Section 5: the second eigenvalue of the mean
-- group matrix says how fast they mix. Hetu waits for P no longer than a time it adapts.
local candidates = require "candidates"
local controller = require "controller"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"

local WORKERS_MOST = 256 -- as many as the judge plays

--- How the plan's workers agree, by the options.
local function sync_of(options, n)
  local waits = options.wait_ms > 0
  return { kind = "partial_reduce", group = math.min(options.group, n), weights = options.weights,
    staleness = options.bound > 0 and options.bound or nil,
    connect = not options.avoid_freezing and false or nil, wait_ms = waits and options.wait_ms
      or nil,
    wait_most_ms = waits and math.max(options.wait_ms, options.wait_most_ms) or nil,
    least = waits and math.min(options.least, n) or nil }
end

--- The plan with its data-parallel ranks as pipelines of their own: a rank that waits for nobody is
-- a worker.
local function spread(made)
  for _, r in ipairs(made.replicas) do
    local dp, own = r.stages[1].dp or 1, r.micro_batch or made.micro_batch
    local equal = (r.count or 1) == 1 and dp > 1 and own % dp == 0
    for _, stage in ipairs(r.stages) do
      equal = equal and (stage.dp or 1) == dp and not stage.shares
    end
    for _, stage in ipairs(equal and r.stages or {}) do
      stage.dp = nil
    end
    if equal then
      r.count, r.micro_batch = dp, own // dp
    end
  end
  return made
end

--- The plan with partial reductions.
local function apply(made, ctx)
  made = spread(prices.table_of(made))
  local n = #controller.workers(ctx, made)
  if n < 3 then
    return nil, ("at least 3 pipelines are needed, the plan has %d: more replicas, fewer stages"):format(n)
  end
  made.sync = made.sync or {}
  for key, value in pairs(sync_of(ctx.options, n)) do
    made.sync[key] = value
  end
  return made
end

--- One candidate: pipelines inside the kinds of devices, each a worker with the same share of the
-- batch.
local function candidate(ctx, rows, micro_batch, outputs)
  local n, list = #rows, pipeline.joined(rows)
  local M, rate = ctx.job.global_batch // (micro_batch * n), 0
  if n < 3 or M < 1 then
    return nil
  end
  for _, recompute in ipairs { "none", "selective", "full" } do
    pipeline.set(list, micro_batch, recompute)
    local fits = true
    for _, p in ipairs(list) do
      p.cut = fits and pipeline.cut(ctx, p.row, M, { outputs = outputs, ways = 2 })
      fits, p.micro_batches = p.cut, M
      rate = fits and rate + #p.copies * M * micro_batch / p.cut.value
    end
    if fits then
      local made = pipeline.plan(ctx, list, micro_batch)
      made.sync = sync_of(ctx.options, n)
      return { claim_s = ctx.job.global_batch / rate, build = function() return made end }
    end
    rate = 0
  end
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local types, lists, list = inventory.types(devices), { numbers.powers(16), numbers.powers(8) }, {}
  for i, t in ipairs(types) do
    local tps = grids.tp_degrees(ctx, t)
    lists[i + 2] = #types > 1 and #tps > 2 and { tps[1], tps[#tps] } or tps
  end
  local outputs = hv.cost.layers { kinds = { types[1].kind }, micro_batch = 1 }:sizes "output"
  for v in candidates.in_time(search.product(lists)) do
    local rows = v[1] <= ctx.model.n_layers and pipeline.inside(types, numbers.slice(v, 3, #types),
      v[1])
    local made = rows and candidate(ctx, rows, v[2], outputs)
    if made then
      list[#list + 1], made.rank = made, #list + 1
    end
  end
  if #list > 0 then
    return candidates.best(list, ctx.options.tries)
  end
  return nil, reasons.too_small(ctx, devices, "no set of three pipelines or more", "kind")
end

--- The controller played on the workers' own times: seconds for as many sequences as the global
-- batch, how fast the models mix, and how stale a group's members are on average.
local function claim(made, ctx)
  made = prices.table_of(made)
  local workers, sync, heads = controller.workers(ctx, made), made.sync or {}, {}
  local q = { times = {}, avoid = sync.connect ~= false, least = sync.least, bound = sync.staleness,
    wait = sync.wait_ms and sync.wait_ms / 1e3,
    wait_most = (sync.wait_most_ms or sync.wait_ms or 0) / 1e3 }
  q.n, q.group, q.horizon = #workers, sync.group or #workers, 0
  for w, worker in ipairs(workers) do
    q.times[w], q.horizon = worker.seconds, math.max(q.horizon, 50 * worker.seconds)
    heads[w] = w <= q.group and worker.id or nil
  end
  if q.n > WORKERS_MOST then
    return { formula = ("partial reduction; the controller is played for up to %d workers"):format(
      WORKERS_MOST) }
  end
  local first = made.replicas[1].stages[1]
  local own, part = prices.shard(ctx, first, prices.kinds(ctx)[heads[1]])
  q.reduce_s = part * prices.sync(ctx, own, first.layers[1] + 1, first.layers[2], heads)
  local groups, _, stale = controller.play(q)
  local sequences, behind, members = 0, 0, 0
  for _, g in ipairs(groups) do
    for _, w in ipairs(g[2]) do
      sequences = sequences + workers[w].sequences
    end
  end
  for by, count in pairs(stale) do
    behind, members = behind + by * count, members + count
  end
  return {
    iteration_s = ctx.job.global_batch * groups[#groups][1] / sequences,
    terms = { rho_frac = controller.agreeing(q.n, groups, sync.weights == "staleness"
        and ctx.options.decay or 1),
      staleness_steps = behind / members, reduce_s = q.reduce_s,
      members = members / #groups },
    formula = "P / mean time between groups, by the controller's events (P-Reduce, section 4)",
  }
end

local function selftest(t)
  local src, third = "catalogue: preduce", 1 / 3
  t.near("P = N = 4: rho", controller.mixing(controller.mean(4, { { 1, { 1, 2, 3, 4 } } })), 0,
    1e-9, src)
  local even = controller.mean(3, { { third, { 1, 2 } }, { third, { 1, 3 } }, { third, { 2, 3 } } })
  t.near("P 2 of 3, uniform", controller.mixing(even), 0.5, 1e-9, src)
  local uneven = controller.mean(3, { { 0.5, { 1, 2 } }, { 0.25, { 1, 3 } }, { 0.25, { 2, 3 } } })
  t.near("p12 1/2, others 1/4", controller.mixing(uneven), 0.625, 1e-9, src)
  local all = {}
  for _, g in ipairs { { 1, 2, 3 }, { 1, 2, 4 }, { 1, 3, 4 }, { 2, 3, 4 } } do
    all[#all + 1] = { 0.25, g }
  end
  t.near("P 3 of 4, uniform: 1 - (P - 1) / (N - 1)", controller.mixing(controller.mean(4, all)),
    1 - 2 / 3, 1e-9, src)
  local q = { n = 3, times = { 1, 1, 2 }, group = 2, reduce_s = 0, horizon = 6 }
  t.equal("3 workers of 1 1 2 s, P 2", controller.text(controller.play(q), 6),
    "12@1 12@2 31@3 21@4 12@5 31@6", src)
  q.horizon = 6000
  local groups, mean = controller.play(q)
  t.near("gradients per second (all-reduce: 1.5)", 2 * #groups / groups[#groups][1], 2, 1e-3, src)
  t.near("of all-reduce", #q.times / math.max(table.unpack(q.times)), 1.5, 1e-12, src)
  even = controller.mean(3, { { 2 / 3, { 1, 2 } }, { third, { 1, 3 } } })
  t.near("steady rho, p12 2/3 and p13 1/3", controller.mixing(even), (1 + math.sqrt(third)) / 2,
    1e-9, src)
  t.near("as played", controller.mixing(mean), 0.7887, 1e-3, src)
  q = { n = 4, times = { 1, 1, 2, 2 }, group = 2, reduce_s = 0, horizon = 40 }
  t.near("1 1 2 2 s, first come first served: two cliques, rho",
    controller.mixing(select(2, controller.play(q))), 1,
    1e-9, src)
  q.avoid = true
  t.equal("with avoidance", controller.text(controller.play(q), 5), "12@1 12@2 34@2 13@4 24@4", src)
  t.ok("mixes", controller.mixing(select(2, controller.play(q))) < 0.99, src)
  src = "Hetu's adaptive wait, by hand"
  q = { n = 3, times = { 1, 1, 2 }, group = 3, reduce_s = 0, horizon = 40, wait = 0.5,
    wait_most = 10 }
  t.equal("half a second for the third", controller.text(controller.play(q), 4),
    "12@1.5 3@2.45 12@2.905 12@4.2695", src)
  q.least = 2
  t.equal("doubled by less than 2", controller.text(controller.play(q), 4),
    "12@1.5 3@2.45 12@3.4 123@4.45", src)
  src = "stale synchronous bound, by hand"
  local b = { n = 3, times = { 1, 1, 4 }, group = 2, reduce_s = 0, horizon = 400, bound = 1 }
  t.equal("1 1 4 s, one step ahead at most", controller.text(controller.play(b), 6),
    "12@1 12@2 31@5 23@9 12@10 31@14", src)
  src = "weights by staleness, by hand"
  local w = controller.weights({ 0, 1, 1 }, 0.5)
  t.equal("gaps of 0, 1 and 1 steps, a half each", ("%g %g %g"):format(w[1], w[2], w[3]),
    "0.5 0.25 0.25", src)
  t.near("equal weights mix as the mean matrix says",
    controller.agreeing(3, { { 1, { 1, 2 }, { 0, 3 } },
      { 1, { 1, 2 }, { 0, 0 } }, { 1, { 1, 3 }, { 0, 1 } } }, 1), (1 + math.sqrt(third)) / 2, 1e-9,
    "catalogue: preduce")
  t.near("2/3 and 1/3 of two: agree at once", controller.agreeing(2, { { 1, { 1, 2 }, { 0, 1 } } },
    0.5), 0, 1e-9, src)
  local played = hv.sim.workers { kind = "partial_reduce", period_s = q.times, group = 3,
    wait_s = q.wait,
    wait_most_s = 10, least = 2, horizon_s = 40 }
  local list, members = controller.play(q), 0
  for _, g in ipairs(list) do
    members = members + #g[2]
  end
  t.near("members of a group: as the judge plays it", members / #list, played.mean_group, 1e-9, src)
end

return {
  api = 1, id = "preduce", title = "Partial Reduce", kind = "hetero",
  system = "Heterogeneity-Aware Distributed Machine Learning Training via Partial Reduce, SIGMOD 2021",
  reference = "doi:10.1145/3448016.3452773",
  summary = "Workers that are ready average among themselves; nobody waits for the slowest.",
  needs = { model = "layers" },
  effort = "medium", stale = true,
  options = {
    { key = "group", type = "integer", default = 3, min = 2, max = 1024,
      help = "workers of a group, P" },
    { key = "weights", type = "choice", choices = { "constant", "staleness" }, default = "constant",
      help = "average with 1/P each, or less of members that are behind" },
    { key = "decay", type = "number", default = 0.5, min = 0.001, max = 1,
      help = "weights by staleness: factor per step that a member is behind (moving average)" },
    { key = "avoid_freezing", type = "boolean", default = true,
      help = "join components that no group has connected" },
    { key = "wait_ms", type = "number", default = 0, min = 0, max = 1e9,
      help = "a group goes on after this time, full or not (Hetu); 0: it waits for P workers" },
    { key = "wait_most_ms", type = "number", default = 10, min = 0, max = 1e9,
      help = "what that time may grow to, when groups are small (Hetu's cap)" },
    { key = "least", type = "integer", default = 2, min = 0, max = 1024,
      help = "fewer members double the wait, others make it a tenth shorter" },
    { key = "bound", type = "integer", default = 0, min = 0, max = 1000000,
      help = "steps that a worker may be ahead of the slowest before it waits (stale synchronous); 0: any" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  apply = apply,
  claim = claim,
  selftest = selftest,
}
