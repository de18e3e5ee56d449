-- HeterPS (Liu et al., FGCS 148, 2023): which type of device runs which layer, and how many of
-- them, for the least money above a rate. Section 4: runs of layers of one type are stages; k
-- devices make a stage faster by Amdahl's law, compute and exchange each with its own parallel
-- fraction; the least k that reaches the rate. Section 5: the types are learned by REINFORCE. Where
-- types to the power of layers are few enough, all are tried beside it. In the paper every run fits
-- one device; here one that does not is cut into as many stages as its memory needs. What the paper
-- pays for cores of parameter servers is in the price of the nodes.
local candidates = require "candidates"
local instance = require "instance"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"
local provisioning = require "provisioning"
local reasons = require "reasons"
local recurrent = require "learn.recurrent"
local search = require "search"

--- The plan of stages: k devices of a type each.
local function built(ctx, types, q, stages, recompute)
  local taken, rows, micro_batch = {}, {}, instance.entering(ctx, stages)
  for i, s in ipairs(stages) do
    if s.k > micro_batch then
      return nil
    end
    local ids, from = {}, taken[s.type] or 0
    for k = 1, s.k do
      ids[k] = types[s.type].devices[from + k].id
    end
    taken[s.type] = from + s.k
    rows[i] = prices.stage_keys({ tp = 1, recompute = recompute },
      { devices = ctx.cluster:address(ids),
        layers = { q.ranges[s.first][1], q.ranges[s.last][2] }, dp = s.k > 1 and s.k or nil,
        shares = micro_batch % s.k ~= 0 and numbers.even(micro_batch, s.k) or nil })
  end
  return { micro_batch = micro_batch, schedule = { name = "1f1b" },
    sync = { kind = "ps", servers = "sharded" },
    replicas = { { micro_batches = ctx.job.global_batch // micro_batch, stages = rows } } }
end

-- devices from which on the first plan that fits is kept at once, in case time is short
local MANY = 256
local ENOUGH = 4 -- rates with a plan, from the highest on, where time decides
-- of all devices' rate, where none is asked for
local SHARES = { 1, 0.9, 0.75, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05, 0.02 }

--- The plans for all rates, with so many bytes of every device left alone.
local function offered(ctx, types, groups, reserve)
  local all, o = candidates.new(MANY < ctx.cluster.n_devices), ctx.options
  for _, recompute in ipairs { "none", "full" } do
    local q = instance.instance(ctx, types, { recompute = recompute, alpha = o.alpha, beta = o.beta,
      groups = groups,
      reserve = reserve })
    for _, share in ipairs(q.possible and (o.rate > 0 and { o.rate / q.full } or SHARES) or {}) do
      -- slower ones will not win
      if q.made == ENOUGH and ctx.job.minimize ~= "cost" then
        break
      end
      q.rate = share * q.full
      local best = not (hv.stopping() and #all.list > 0)
        and provisioning.search(q, { search = o.search, rounds = o.rounds, seed = ctx.seed })
      local stages, usd = provisioning.stages(q, best or {})
      local made = best and stages and built(ctx, types, q, stages, recompute)
      q.made = (q.made or 0) + (made and 1 or 0)
      all.add(made and { claim_s = 1 / q.rate, usd_per_s = usd * q.rate,
        build = function() return made end })
    end
  end
  return all
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx, ctx.options.hosts and "hosts" or nil)
  if not devices then
    return nil, why
  end
  local types, o = instance.types(devices), ctx.options
  local own, have = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = 1 }), 0
  for _, d in ipairs(devices) do
    have = have + prices.capacity(ctx, d)
  end
  local too_small = reasons.too_small(ctx, devices, "no cut into runs of layers by type of device")
  if own.state[own.n] > have then
    return nil, too_small
  end
  -- the cheapest that reaches the rate, or of all
  local money = o.rate > 0 or ctx.job.minimize == "cost"
  local weigh, groups, best, reason = money
    and function(v, c) return v.iteration_s * c.usd_per_s end or nil, o.groups
  repeat -- finer where nothing fits
    local all = candidates.within(function(reserve) return offered(ctx, types, groups, reserve) end)
    if all then
      best, reason = all.best(#all.list, nil, weigh)
    end
    groups = 2 * groups
  until best or groups >= 2 * math.min(120, ctx.model.n_layers) or hv.stopping()
  if best or reason then
    return best, reason
  end
  if o.rate > 0 then
    return nil, ("no types and numbers of devices reach %g sequences per second within the memory"):format(o.rate)
  end
  return nil, too_small
end

--- The rate of the slowest stage and the money of the plan's devices, from Amdahl's law; beside it
-- what the cheapest of all types and numbers that reach this rate would cost, where they are few
-- enough to try. No prices, no money.
local function claim(made, ctx)
  made = prices.table_of(made)
  local o, slowest, money, known, stages = ctx.options, 0, 0, true, made.replicas[1].stages
  local types = instance.types((inventory.usable(ctx, o.hosts and "hosts" or nil)))
  local q = instance.instance(ctx, types, { recompute = stages[1].recompute or "none",
    alpha = o.alpha, beta = o.beta,
    groups = o.groups })
  local at, batch = {}, ctx.job.global_batch
  for t, type in ipairs(types) do
    for _, d in ipairs(type.devices) do
      at[d.id] = t
    end
  end
  for _, stage in ipairs(stages) do
    local ids = ctx.cluster:ids(stage.devices)
    local t, k = at[ids[1]], #ids
    local own = prices.chain(ctx, types[t].kind,
      { tp = 1, micro_batch = 1, recompute = stage.recompute })
    slowest = math.max(slowest, prices.time(own, stage.layers[1] + 1,
      stage.layers[2]) * (1 - o.alpha + o.alpha / k),
      q.exchange[t][1] * (1 - o.beta + o.beta / k))
    money, known = money + types[t].price * k, known and types[t].known
  end
  q.rate = (1 - 1e-9) / slowest
  local usd, least = money * batch * slowest / 3600, select(2, provisioning.enumerate(q))
  return { iteration_s = batch * slowest, cost_usd = known and usd or nil,
    terms = { cheapest_usd = known and least and math.min(usd, least * batch / 3600) or nil },
    formula = "batch x slowest stage by Amdahl's law; cost = time x sum of price x k (HeterPS, section 4)" }
end

local function selftest(t)
  local src = "catalogue: heterps"
  local q = { types = { { price = 0.04 }, { price = 2.42 } },
    compute = { { 1, 8, 8, 4 }, { 2, 1, 1, 0.5 } },
    exchange = { { 0.5, 0.5, 0.5, 0.5 }, { 0.8, 0.8, 0.8, 0.8 } }, choices = { 2, 2, 2, 2 },
    alpha = 0.9, beta = 0.8, batch = 1, rate = 2, examples = 1 }
  local costs, k = {}, {}
  for s in search.choices(q.choices) do
    costs[#costs + 1] = select(2, provisioning.stages(q, s))
  end
  table.sort(costs)
  t.near("feasible assignments of 16", #costs, 4, 0, src)
  local best, cost = provisioning.enumerate(q)
  t.equal("best types (1 cpu, 2 gpu)", table.concat(best, " "), "1 2 2 1", src)
  t.near("its cost", cost, 8.04, 1e-9, src)
  for i, s in ipairs((provisioning.stages(q, best))) do
    k[i] = s.k
  end
  t.equal("its devices", table.concat(k, " "), "3 6 36", src)
  local rate = math.huge
  for _, s in ipairs((provisioning.stages(q, best))) do
    local compute = 0
    for l = s.first, s.last do
      compute = compute + q.compute[s.type][l]
    end
    rate = math.min(rate, 1 / (compute * (0.1 + 0.9 / s.k)),
      1 / (q.exchange[s.type][1] * (0.2 + 0.8 / s.k)))
  end
  t.near("its rate, met exactly by two stages", rate, 2, 1e-9, src)
  t.near("the next", costs[2], 10.95, 5e-3, src)
  k = {}
  for i, s in ipairs((provisioning.stages(q, { 1, 2, 2, 2 }))) do
    k[i] = s.k
  end
  t.equal("its devices", table.concat(k, " "), "3 9", src)
  local hits, likeliest = 0, 0
  for seed = 1, 100 do
    local _, seen, likely = provisioning.reinforce(q,
      { rounds = 50, learning = 0.003, penalty = 100, seed = seed })
    hits = hits + (seen < 8.04 + 1e-9 and 1 or 0)
    likeliest = likeliest + ((select(2, provisioning.stages(q, likely)) or math.huge) < 8.04 + 1e-9
        and 1 or 0)
  end
  t.ok(("the likeliest plan in the end is the optimum in %d of 100, at least 85"):format(likeliest),
    likeliest >= 85,
    src .. ": 94")
  local function seen_by(run, seeds, name)
    local n = 0
    for seed = 1, seeds do
      local found = run(q, { rounds = 50, penalty = 100, seed = seed, cell = name, search = name })
      n = n + (found and (select(2, provisioning.stages(q, found)) or math.huge) < 8.04 + 1e-9 and 1
          or 0)
    end
    return n
  end
  for _, cell in ipairs { "lstm", "rnn" } do
    local n = seen_by(provisioning.recurrent, 20, cell)
    t.ok(("%s, 50 rounds of 10: optimum seen in %d of 20 seeds, at least 19"):format(cell, n),
      n >= 19, src)
  end
  for _, name in ipairs { "genetic", "bayes" } do
    local n = seen_by(provisioning.other, 20, name)
    t.ok(("%s: optimum seen in %d of 20 seeds, at least 19"):format(name, n), n >= 19, src
        .. ", brute force")
  end
  t.ok("all on CPUs: out of reach", provisioning.stages(q, { 1, 1, 1, 1 }) == nil,
    "by hand: 0.1 of 21 s is serial")
  t.near("all on 81 GPUs, the best single type",
    select(2, provisioning.other(q, { search = "single" })), 98.01, 1e-9,
    "by hand: 81 x 2.42 / 2")
  local net = recurrent.new { inputs = 3, choices = 3, cell = "lstm", hidden = 4, seed = 5 }
  t.near("gradient of the network: as by differences",
    recurrent.gradient_error(net, { { 1, 0, 0.5 }, { 0, 1, -1 },
      { 0.3, 0.2, 2 } }, { { 0.7, { 2, 1, 3 } }, { -0.4, { 1, 1, 2 } } }), 0, 1e-6,
    "differences of 1e-5")
  t.ok(("REINFORCE, 50 rounds of 10: optimum seen in %d of 100 seeds, at least 95"):format(hits),
    hits >= 95, src)
end

return {
  api = 1, id = "heterps", title = "HeterPS", kind = "hetero",
  system = "HeterPS: Distributed Deep Learning with Reinforcement Learning Based Scheduling, FGCS 2023",
  reference = "arXiv:2111.10635",
  summary = "A type of device per run of layers, by learning; how many of each for the least money.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "rate", type = "number", default = 0, min = 0, max = 1e9,
      help = "sequences per second to reach for the least money; 0: shares of what all devices could do, the best" },
    { key = "search", type = "choice", default = "reinforce",
      choices = { "reinforce", "lstm", "rnn", "enumerate", "bayes", "genetic", "greedy",
        "heuristic", "single" },
      help = "learn the types (by a table or networks), try all where they are few, or what the paper compares with" },
    { key = "rounds", type = "integer", default = 50, min = 1, max = 10000,
      help = "rounds of ten plans" },
    { key = "hosts", type = "boolean", default = true,
      help = "CPUs that the job's precision runs on are a type too" },
    { key = "groups", type = "integer", default = 8, min = 1, max = 120,
      help = "groups of layers that get a type; twice as many, and so on, where no plan fits" },
    { key = "alpha", type = "number", default = 0.99, min = 0, max = 1,
      help = "parallel share of compute" },
    { key = "beta", type = "number", default = 0.95, min = 0, max = 1,
      help = "parallel share of the exchange" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
