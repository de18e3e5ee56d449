-- HeterPS (Liu et al., FGCS 148, 2023): which type of device runs which layer, and how many of them, for the least
-- money above a rate. Section 4: runs of layers of one type are stages; k devices make a stage faster by Amdahl's
-- law, compute and exchange each with its own parallel fraction; the least k that reaches the rate. Section 5: the
-- types are learned by REINFORCE. Where types to the power of layers are few enough, all are tried beside it.
local chain = require "chain"
local layout = require "layout"
local pipes = require "pipes"
local policy = require "policy"
local prices = require "prices"
local search = require "search"

--- Least k with total / batch · (1 − f + f / k) ≤ seconds; nil when the serial part alone is longer.
local function units(total, batch, f, seconds)
  local left = seconds * batch / total - (1 - f)
  if total <= seconds * batch then return 1 end
  return left > 1e-12 and math.ceil(f / left - 1e-9) or nil
end

--- Stages { type, first, last, k } of types per layer for q { types = { price, available }, compute[t][l],
-- exchange[t][l], choices[l] = how many types, alpha, beta, batch, rate, examples }, and their cost; nil when the rate
-- is out of reach.
local function provisioned(q, assign)
  local stages, used, money = {}, {}, 0
  for l, t in ipairs(assign) do
    local last = stages[#stages]
    if last and last.type == t then last.last = l else stages[#stages + 1] = { type = t, first = l, last = l } end
  end
  for _, s in ipairs(stages) do
    local compute, type = 0, q.types[s.type]
    for l = s.first, s.last do compute = compute + q.compute[s.type][l] end
    local a = units(compute, q.batch, q.alpha, 1 / q.rate)
    local b = units(q.exchange[s.type][s.first], q.batch, q.beta, 1 / q.rate)
    if not a or not b then return nil end
    s.k = math.max(a, b)
    used[s.type] = (used[s.type] or 0) + s.k
    if used[s.type] > (type.available or math.huge) or q.fits and not q.fits(s, #stages) then return nil end
    money = money + type.price * s.k
  end
  return stages, money * q.examples / q.rate
end

local function cost_of(q, assign) return select(2, provisioned(q, assign)) end

--- Section 5: REINFORCE with rewards −cost, −penalty where the rate is out of reach. The best plan seen, its cost, and
-- the plan that the policy thinks best in the end.
local function reinforce(q, o)
  local r = policy.moving { choices = q.choices, cost = function(s) return cost_of(q, s) end, penalty = o.penalty,
    budget = 10 * o.rounds, batch = 10, rate = o.learning, gamma = 0.1, seed = o.seed }
  return r.state, r.cost, policy.likeliest(r.probabilities)
end

--- All plans; nil when there are more than 2^16.
local function enumerated(q)
  local states = search.choices(q.choices, 65536)
  if not states then return nil end
  local r = search.enumerate { states = states, cost = function(s) return cost_of(q, s) end }
  return r.state, r.cost
end

--- The instance of a run: groups of layers as its layers, one sequence as its batch.
local function instance(ctx, types, c)
  local q = { types = {}, compute = {}, exchange = {}, choices = {}, batch = 1, examples = 1, alpha = c.alpha,
    beta = c.beta, ranges = layout.ranges(layout.even(ctx.model.n_layers, math.min(c.groups, ctx.model.n_layers))) }
  for t, type in ipairs(types) do
    local own = prices.chain(ctx, type.kind, { tp = 1, micro_batch = 1, recompute = c.recompute })
    local near = ctx.cluster:link(type.devices[1].id, type.devices[#type.devices].id)
    q.types[t] = { price = type.price, available = #type.devices }
    q.compute[t], q.exchange[t] = {}, {}
    for g, range in ipairs(q.ranges) do
      q.compute[t][g] = prices.time(own, range[1] + 1, range[2])
      q.exchange[t][g] = #type.devices > 1 and 2 * own.output_bytes / near.bandwidth_bytes_per_s or 1e-9
    end
  end
  for g in ipairs(q.ranges) do q.choices[g] = #types end
  function q.fits(s, stages)
    local type = types[s.type]
    local held = pipes.tables(ctx, { devices = { type.devices[1] }, micro_batch = 1, recompute = c.recompute }, stages)
    return pipes.fits(held, q.ranges[s.first][1] + 1, q.ranges[s.last][2])
  end
  return q
end

--- The plan of stages: k devices of a type each, a micro-batch that all of them can share.
local function built(ctx, types, q, stages, recompute)
  local taken, rows, most = {}, {}, 1
  for _, s in ipairs(stages) do most = math.max(most, s.k) end
  local micro_batch = layout.divisor_from(ctx.job.global_batch, most)
  if not micro_batch then return nil end
  for i, s in ipairs(stages) do
    local ids, from = {}, taken[s.type] or 0
    for k = 1, s.k do ids[k] = types[s.type].devices[from + k].id end
    taken[s.type] = from + s.k
    rows[i] = prices.stage_keys({ tp = 1, recompute = recompute }, { devices = ctx.cluster:address(ids),
      layers = { q.ranges[s.first][1], q.ranges[s.last][2] }, dp = s.k > 1 and s.k or nil,
      shares = micro_batch % s.k ~= 0 and layout.even(micro_batch, s.k) or nil })
  end
  return { micro_batch = micro_batch, schedule = { name = "1f1b" }, sync = { kind = "ps", servers = "sharded" },
    replicas = { { micro_batches = ctx.job.global_batch // micro_batch, stages = rows } } }
end

local function plan(ctx)
  local devices, why = pipes.devices(ctx)
  if not devices then return nil, why end
  local types, list, o = pipes.types(devices), {}, ctx.options
  for _, d in ipairs(devices) do
    for _, t in ipairs(types) do t.price = t.kind == d.kind and (d.usd_per_h or d.flops_per_s / 1e14) or t.price end
  end
  for _, recompute in ipairs { "none", "full" } do
    local q = instance(ctx, types, { recompute = recompute, alpha = o.alpha, beta = o.beta, groups = o.groups })
    local full = 0
    for t, type in ipairs(types) do
      local sum = 0
      for _, s in ipairs(q.compute[t]) do sum = sum + s end
      full = full + #type.devices / sum
    end
    for _, share in ipairs(o.rate > 0 and { o.rate / full } or { 1, 0.9, 0.75, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05 }) do
      q.rate = share * full
      local best, cost = enumerated(q)
      if not best or o.search == "reinforce" then
        local learned = reinforce(q, { rounds = o.rounds, learning = 0.2 / (cost or 1), penalty = 2 * (cost or 1),
          seed = ctx.seed })
        best = learned or best
      end
      local stages = best and provisioned(q, best)
      local made = stages and built(ctx, types, q, stages, recompute)
      local rank = #list + 1
      if made then list[rank] = { claim_s = 1 / q.rate, rank = rank, build = function() return made end } end
    end
  end
  if #list > 0 then return layout.best(list, #list) end
  return nil, chain.too_small(ctx, devices, "no cut into runs of layers by type of device", "device")
end

--- The rate of the slowest stage and the money of the plan's devices, from Amdahl's law.
local function claim(made, ctx)
  made = prices.table_of(made)
  local o, slowest, money, kinds, cost = ctx.options, 0, 0, prices.kinds(ctx), {}
  for _, d in ipairs(ctx.cluster:devices()) do cost[d.id] = d.usd_per_h or 0 end
  for _, stage in ipairs(made.replicas[1].stages) do
    local ids = ctx.cluster:ids(stage.devices)
    local own = prices.chain(ctx, kinds[ids[1]], { tp = 1, micro_batch = 1, recompute = stage.recompute })
    local t = prices.time(own, stage.layers[1] + 1, stage.layers[2])
    slowest = math.max(slowest, t * (1 - o.alpha + o.alpha / #ids))
    for _, id in ipairs(ids) do money = money + cost[id] end
  end
  return { iteration_s = ctx.job.global_batch * slowest, cost_usd = money * ctx.job.global_batch * slowest / 3600,
    formula = "batch x slowest stage by Amdahl's law; cost = time x sum of price x k (HeterPS, section 4)" }
end

local function selftest(t)
  local src = "catalogue: heterps"
  local q = { types = { { price = 0.04 }, { price = 2.42 } }, compute = { { 1, 8, 8, 4 }, { 2, 1, 1, 0.5 } },
    exchange = { { 0.5, 0.5, 0.5, 0.5 }, { 0.8, 0.8, 0.8, 0.8 } }, choices = { 2, 2, 2, 2 },
    alpha = 0.9, beta = 0.8, batch = 1, rate = 2, examples = 1 }
  local costs = {}
  for s in search.choices(q.choices) do costs[#costs + 1] = cost_of(q, s) end
  table.sort(costs)
  t.near("feasible assignments of 16", #costs, 4, 0, src)
  local best, cost = enumerated(q)
  t.equal("best types (1 cpu, 2 gpu)", table.concat(best, " "), "1 2 2 1", src)
  t.near("its cost", cost, 8.04, 1e-9, src)
  local k = {}
  for i, s in ipairs((provisioned(q, best))) do k[i] = s.k end
  t.equal("its devices", table.concat(k, " "), "3 6 36", src)
  t.near("the next", costs[2], 10.95, 5e-3, src)
  k = {}
  for i, s in ipairs((provisioned(q, { 1, 2, 2, 2 }))) do k[i] = s.k end
  t.equal("its devices", table.concat(k, " "), "3 9", src)
  local hits, likeliest = 0, 0
  for seed = 1, 100 do
    local _, seen, likely = reinforce(q, { rounds = 50, learning = 0.003, penalty = 100, seed = seed })
    hits = hits + (seen < 8.04 + 1e-9 and 1 or 0)
    likeliest = likeliest + ((cost_of(q, likely) or math.huge) < 8.04 + 1e-9 and 1 or 0)
  end
  t.ok(("the likeliest plan in the end is the optimum in %d of 100, at least 85"):format(likeliest), likeliest >= 85,
    src .. ": 94")
  t.ok(("REINFORCE, 50 rounds of 10: optimum seen in %d of 100 seeds, at least 95"):format(hits), hits >= 95, src)
end

return {
  api = 1, id = "heterps", title = "HeterPS", kind = "hetero",
  system = "HeterPS: Distributed Deep Learning with Reinforcement Learning Based Scheduling, FGCS 2023",
  reference = "arXiv:2111.10635",
  summary = "A type of device per run of layers, by learning; how many of each for the least money.",
  needs = { model = "layers" },
  options = {
    { key = "rate", type = "number", default = 0, min = 0, max = 1e9,
      help = "sequences per second to reach; 0: shares of what all devices could do, the fastest that works" },
    { key = "search", type = "choice", choices = { "reinforce", "enumerate" }, default = "reinforce",
      help = "learn the types, or try all where they are few" },
    { key = "rounds", type = "integer", default = 50, min = 1, max = 10000, help = "rounds of ten plans" },
    { key = "groups", type = "integer", default = 8, min = 1, max = 64, help = "runs of layers that get a type" },
    { key = "alpha", type = "number", default = 0.99, min = 0, max = 1, help = "parallel share of compute" },
    { key = "beta", type = "number", default = 0.95, min = 0, max = 1, help = "parallel share of the exchange" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
