-- HeterPS (Liu et al., FGCS 148, 2023, arXiv 2111.10635): which type of device runs which layer,
-- and how many of them, for the least money above a rate. Section 4: runs of layers of one type are
-- stages; k devices make a stage faster by Amdahl's law; the k that reach the rate for the least
-- money, which is the price of all devices for the time that the plan takes. Section 5: the types
-- are learned by REINFORCE; where types to the power of layers are few enough, the claim gives the
-- cost of the best of all assignments beside it. In the paper every run fits one device; here a run
-- that does not is cut into as many stages as its memory needs. The paper also pays for cores of
-- parameter servers: here they are in the price of the nodes.
local candidates = require "candidates"
local instance = require "instance"
local inventory = require "inventory"
local micro_batch = require "micro_batch"
local numbers = require "numbers"
local prices = require "prices"
local provisioning = require "provisioning"
local reasons = require "reasons"
local type_search = require "type_search"

-- devices above which the first plan that fits is kept at once, in case time is short
local MANY_DEVICES = 256
-- rates with a plan, from the highest on, after which lower ones are left out where time decides
local ENOUGH_RATES = 4
-- rates that are tried where none is asked for, as fractions of what all devices reach
local RATE_FRACS = { 1, 0.9, 0.75, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05, 0.02 }

--- The devices that may be used.
local function usable(ctx)
  return inventory.usable(ctx, ctx.options.hosts and "hosts" or nil)
end

--- The instance for the plugin's options.
local function instance_of(ctx, types, recompute, groups, reserve)
  return instance.new(ctx, types, { recompute = recompute, alpha = ctx.options.alpha,
    beta = ctx.options.beta, groups = groups, reserve = reserve })
end

--- The plan of stages with k devices each.
local function plan_of(ctx, types, q, stages, recompute)
  local taken, rows = {}, {}
  local sequences = micro_batch.of(ctx, stages)
  for i, stage in ipairs(stages) do
    local from = taken[stage.type] or 0
    local ids = {}
    for k = 1, stage.k do
      ids[k] = types[stage.type].devices[from + k].id
    end
    taken[stage.type] = from + stage.k
    local shares
    if sequences % stage.k ~= 0 then
      shares = numbers.even(sequences, stage.k)
    end
    rows[i] = prices.stage_keys({ tp = 1, recompute = recompute }, {
      devices = ctx.cluster:address(ids),
      layers = { q.ranges[stage.first][1], q.ranges[stage.last][2] },
      dp = stage.k > 1 and stage.k or nil,
      shares = shares,
    })
  end
  return { micro_batch = sequences, schedule = { name = "1f1b" },
    sync = { kind = "ps", servers = "sharded" },
    replicas = { { micro_batches = ctx.job.global_batch // sequences, stages = rows } } }
end

--- The candidate for the rate of the instance by one search; nil where there is none. Its claim_s,
-- by which candidates are ranked, is the price of an iteration where a rate is asked for, else its
-- time.
local function candidate_for(ctx, types, q, recompute, name)
  local o = ctx.options
  local assignment = type_search.best(q, { search = name, rounds = o.rounds, seed = ctx.seed,
    stopping = hv.stopping })
  if not assignment then
    return nil
  end
  local stages, cost, unit_s = provisioning.stages(q, assignment)
  if not stages then
    return nil
  end
  return { claim_s = ctx.job.global_batch * (o.rate > 0 and cost or unit_s), price = cost / unit_s,
    build = function() return plan_of(ctx, types, q, stages, recompute) end }
end

--- The candidates for all rates, with `reserve` bytes of every device left alone.
local function candidates_of(ctx, types, name, groups, reserve)
  local asks_rate = ctx.options.rate > 0
  local all = candidates.new(MANY_DEVICES < ctx.cluster.n_devices and not asks_rate)
  for _, recompute in ipairs { "none", "full" } do
    local q = instance_of(ctx, types, recompute, groups, reserve)
    local fracs = RATE_FRACS
    if not q.possible then
      fracs = {}
    elseif asks_rate then
      fracs = { ctx.options.rate / q.full }
    end
    local made = 0
    for _, frac in ipairs(fracs) do
      local enough = made == ENOUGH_RATES and ctx.job.minimize ~= "cost"
      if enough or hv.stopping() and #all.list > 0 then
        break
      end
      q.rate = frac * q.full
      local candidate = candidate_for(ctx, types, q, recompute, name)
      if candidate then
        made = made + 1
        all.add(candidate)
      end
    end
  end
  return all
end

--- Is the model's state larger than the memory of all devices together?
local function too_large(ctx, devices)
  local chain = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = 1 })
  local capacity_bytes = 0
  for _, device in ipairs(devices) do
    capacity_bytes = capacity_bytes + prices.capacity(ctx, device)
  end
  return chain.state[chain.n] > capacity_bytes
end

--- Of the candidates of several collections the one that costs least by the formula and keeps all
-- rules: {made, value = its cost, simulated_s}; nil and the reason where there is none. No other is
-- reported: a plan that is faster and costs more would take its place.
local function cheapest_valid(collections)
  local list = {}
  for _, all in ipairs(collections) do
    for _, candidate in ipairs(all.list) do
      list[#list + 1] = candidate
      candidate.rank = #list
    end
  end
  table.sort(list, function(a, b)
    if a.claim_s ~= b.claim_s then
      return a.claim_s < b.claim_s
    end
    return a.rank < b.rank
  end)
  local reason
  for _, candidate in ipairs(list) do
    local made = candidate.build()
    local verdict, why = candidates.judge(made)
    if verdict then
      return { made = made, value = candidate.claim_s, simulated_s = verdict.iteration_s }
    end
    reason = reason or why
  end
  return nil, reason
end

--- The candidate of least simulated time, or of least simulated money where the job says so, as
-- above.
local function best_simulated(ctx, all)
  local weigh
  if ctx.job.minimize == "cost" then
    weigh = function(verdict, candidate) return verdict.iteration_s * candidate.price end
  end
  local made, value = candidates.best(all.list, #all.list, weigh)
  if not made then
    return nil, value
  end
  return { made = made, value = value }
end

--- The best plan of one search with finer and finer groups of layers until one fits: {made, value,
-- simulated_s, groups}; nil and the reason, if any.
local function plan_by(ctx, types, name)
  local groups = ctx.options.groups
  local best, reason
  repeat
    local collections = {}
    local all = candidates.within(function(reserve)
      local own = candidates_of(ctx, types, name, groups, reserve)
      collections[#collections + 1] = own
      return own
    end)
    if all and ctx.options.rate > 0 then
      best, reason = cheapest_valid(collections)
    elseif all then
      best, reason = best_simulated(ctx, all)
    end
    if best then
      best.groups = groups
    end
    groups = 2 * groups
  until best or groups >= 2 * math.min(120, ctx.model.n_layers) or hv.stopping()
  return best, reason
end

--- The best plan of the search that the options name, and of one type of device for all layers,
-- which is found soonest: learning is not to lose to what it starts from.
local function search_plan(ctx, types)
  local name = ctx.options.search
  if name == "single" or name == "heuristic" then
    return plan_by(ctx, types, name)
  end
  local single, why = plan_by(ctx, types, "single")
  if single and hv.stopping() then
    return single
  end
  local best, reason = plan_by(ctx, types, name)
  if single and not (best and best.value <= single.value) then
    best = single
  end
  return best, reason or why
end

--- What the plan misses, in words: the rate that was asked for, prices.
local function warnings_of(ctx, best, unpriced)
  local o, texts = ctx.options, {}
  local reached = best.simulated_s and ctx.job.global_batch / best.simulated_s
  if o.rate > 0 and reached < o.rate * (1 - 1e-6) then
    texts[#texts + 1] = ("the plan misses the rate: %.4g sequences per second were asked for, the "
      .. "simulation gives %.4g, %.1f %% less; the formula leaves out what stages wait for each "
      .. "other and for gradients; set option rate higher"):format(o.rate, reached,
        100 * (1 - reached / o.rate))
  end
  if #unpriced > 0 and (o.rate > 0 or ctx.job.minimize == "cost") then
    texts[#texts + 1] = ("%s without a price: types of device are compared by FLOP/s, not in USD")
      :format(table.concat(unpriced, ", "))
  end
  return texts
end

local function plan(ctx)
  local devices, why = usable(ctx)
  if not devices then
    return nil, why
  end
  local types, unpriced = instance.types(devices)
  local no_room = reasons.too_small(ctx, devices, "no cut into runs of layers by type of device")
  if too_large(ctx, devices) then
    return nil, no_room
  end
  local best, reason = search_plan(ctx, types)
  if best then
    best.made.claimed = { terms = { groups = best.groups },
      warnings = warnings_of(ctx, best, unpriced) }
    return best.made
  elseif reason then
    return nil, reason
  end
  if ctx.options.rate > 0 then
    return nil, ("no types and numbers of devices reach %g sequences per second within the memory")
      :format(ctx.options.rate)
  end
  return nil, no_room
end

--- The least cost of an iteration over all types and numbers of devices that reach a rate, in price
-- units and seconds; nil where they are too many to try.
local function least_cost(ctx, types, groups, rate)
  local least
  for _, recompute in ipairs { "none", "full" } do
    local q = instance_of(ctx, types, recompute, groups)
    q.rate = rate
    local _, cost = type_search.enumerate(q)
    if cost and (not least or cost < least) then
      least = cost
    end
  end
  return least and least * ctx.job.global_batch
end

--- The type of every device, by number.
local function types_by_id(types)
  local type_of = {}
  for t, type in ipairs(types) do
    for _, device in ipairs(type.devices) do
      type_of[device.id] = t
    end
  end
  return type_of
end

--- The stages of a plan by Amdahl's law: seconds of the slowest one for a sequence, the price of
-- all devices, and the same in USD per hour (nil where a device has no price).
local function figures_of(ctx, made, types)
  local o, stages = ctx.options, made.replicas[1].stages
  local q = instance_of(ctx, types, stages[1].recompute or "none", 1)
  local type_of = types_by_id(types)
  local slowest_s, price, usd_per_h = 0, 0, 0
  for _, stage in ipairs(stages) do
    local ids = ctx.cluster:ids(stage.devices)
    local t, k = type_of[ids[1]], #ids
    local chain = prices.chain(ctx, types[t].kind,
      { tp = 1, micro_batch = 1, recompute = stage.recompute })
    local compute_s = prices.time(chain, stage.layers[1] + 1, stage.layers[2])
      * (1 - o.alpha + o.alpha / k)
    local exchange_s = q.exchange[t][1] * (1 - o.beta + o.beta / k)
    slowest_s = math.max(slowest_s, compute_s, exchange_s)
    price = price + types[t].price * k
    usd_per_h = types[t].usd_per_h and usd_per_h and usd_per_h + types[t].usd_per_h * k
  end
  return slowest_s, price, usd_per_h
end

--- The rate of the slowest stage and the money of the plan's devices, by Amdahl's law. As a term
-- beside it: the least cost of all types and numbers of devices that reach the rate that was asked
-- for, else this one, where they are few enough to try. Both costs are left out where a device has
-- no price.
local function claim(made, ctx)
  made = prices.table_of(made)
  local o, batch = ctx.options, ctx.job.global_batch
  local found = made.claimed or {}
  local types, unpriced = instance.types((usable(ctx)))
  local slowest_s, price, usd_per_h = figures_of(ctx, made, types)
  local terms = { sequences_per_s = 1 / slowest_s }
  if o.rate > 0 then
    terms.asked_sequences_per_s = o.rate
  end
  if #unpriced == 0 then
    local groups = found.terms and found.terms.groups or o.groups
    local rate = (1 - 1e-9) * (o.rate > 0 and math.min(o.rate, 1 / slowest_s) or 1 / slowest_s)
    local least = least_cost(ctx, types, groups, rate)
    terms.cheapest_usd = least and math.min(price * batch * slowest_s, least) / 3600
  end
  return { iteration_s = batch * slowest_s,
    cost_usd = usd_per_h and usd_per_h * batch * slowest_s / 3600,
    terms = terms, warnings = found.warnings,
    formula = "batch x slowest stage by Amdahl's law; cost = time x sum of price x k"
      .. " (HeterPS, section 4)",
    leaves_out = "filling the pipeline, transfers between stages, and the exchange of gradients" }
end

return {
  api = 1,
  id = "heterps",
  title = "HeterPS",
  kind = "hetero",
  system = "HeterPS: Distributed Deep Learning with Reinforcement Learning Based Scheduling,"
    .. " FGCS 2023", year = 2023,
  reference = "arXiv:2111.10635",
  summary = "A type of device per run of layers, by learning; how many of each for the least"
    .. " money.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "rate", type = "number", default = 0, min = 0, max = 1e9,
      help = "sequences per second to reach for the least money; 0: the best plan for several"
        .. " fractions of the highest rate" },
    { key = "search", type = "choice", default = "reinforce",
      choices = { "reinforce", "lstm", "rnn", "enumerate", "bayes", "genetic", "greedy",
        "heuristic", "single" },
      help = "learn the types (reinforce, lstm, rnn), try all where they are few, or a search that"
        .. " the paper compares with" },
    { key = "rounds", type = "integer", default = 50, min = 1, max = 10000,
      help = "rounds of the search, ten plans each" },
    { key = "hosts", type = "boolean", default = true,
      help = "CPUs count as a type, where they compute in the job's precision" },
    { key = "groups", type = "integer", default = 8, min = 1, max = 120,
      help = "groups of layers that get a type each; doubled until a plan fits" },
    { key = "alpha", type = "number", default = 0.99, min = 0, max = 1,
      help = "parallel fraction of compute in Amdahl's law" },
    { key = "beta", type = "number", default = 0.95, min = 0, max = 1,
      help = "parallel fraction of the exchange in Amdahl's law" },
  },
  plan = plan,
  claim = claim,
}
