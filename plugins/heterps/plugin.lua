-- HeterPS (Liu et al., FGCS 148, 2023, arXiv 2111.10635): which type of device runs which layer,
-- and how many of them, for the least money above a rate. Section 4: runs of layers of one type are
-- stages; k devices make a stage faster by Amdahl's law; the least k that reaches the rate. Section
-- 5: the types are learned by REINFORCE; where types to the power of layers are few enough, the
-- claim gives the cost of the best of all assignments beside it. In the paper every run fits one
-- device; here a run that does not is cut into as many stages as its memory needs. The paper also
-- pays for cores of parameter servers: here they are in the price of the nodes.
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

--- The plan of stages with k devices each; nil where a device would get no sequence.
local function plan_of(ctx, types, q, stages, recompute)
  local taken, rows = {}, {}
  local sequences = micro_batch.of(ctx, stages)
  for i, stage in ipairs(stages) do
    if stage.k > sequences then
      return nil
    end
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

--- The candidate for the rate of the instance; nil where there is none. `late` = function that
-- tells whether the search shall be left out.
local function candidate_for(ctx, types, q, recompute, late)
  local o = ctx.options
  if late() then
    return nil
  end
  local assignment = type_search.best(q, { search = o.search, rounds = o.rounds, seed = ctx.seed })
  if not assignment then
    return nil
  end
  local stages, usd = provisioning.stages(q, assignment)
  local made = stages and plan_of(ctx, types, q, stages, recompute)
  if not made then
    return nil
  end
  return { claim_s = 1 / q.rate, usd_per_s = usd * q.rate, build = function() return made end }
end

--- The candidates for all rates, with `reserve` bytes of every device left alone.
local function candidates_of(ctx, types, groups, reserve)
  local all = candidates.new(MANY_DEVICES < ctx.cluster.n_devices)
  local function late()
    return hv.stopping() and #all.list > 0
  end
  for _, recompute in ipairs { "none", "full" } do
    local q = instance_of(ctx, types, recompute, groups, reserve)
    local fracs = RATE_FRACS
    if not q.possible then
      fracs = {}
    elseif ctx.options.rate > 0 then
      fracs = { ctx.options.rate / q.full }
    end
    local made = 0
    for _, frac in ipairs(fracs) do
      if made == ENOUGH_RATES and ctx.job.minimize ~= "cost" then
        break
      end
      q.rate = frac * q.full
      local candidate = candidate_for(ctx, types, q, recompute, late)
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

--- The best plan with finer and finer groups of layers until one fits; nil and the reason, if any.
local function search_plan(ctx, types)
  local weigh -- the least money where a rate is asked for or the job says so, else the least time
  if ctx.options.rate > 0 or ctx.job.minimize == "cost" then
    weigh = function(verdict, candidate) return verdict.iteration_s * candidate.usd_per_s end
  end
  local groups = ctx.options.groups
  local best, reason
  repeat
    local all = candidates.within(function(reserve)
      return candidates_of(ctx, types, groups, reserve)
    end)
    if all then
      best, reason = all.best(#all.list, nil, weigh)
    end
    groups = 2 * groups
  until best or groups >= 2 * math.min(120, ctx.model.n_layers) or hv.stopping()
  return best, reason
end

local function plan(ctx)
  local devices, why = usable(ctx)
  if not devices then
    return nil, why
  end
  local types = instance.types(devices)
  local no_room = reasons.too_small(ctx, devices, "no cut into runs of layers by type of device")
  if too_large(ctx, devices) then
    return nil, no_room
  end
  local best, reason = search_plan(ctx, types)
  if best or reason then
    return best, reason
  end
  if ctx.options.rate > 0 then
    return nil, ("no types and numbers of devices reach %g sequences per second within the memory")
      :format(ctx.options.rate)
  end
  return nil, no_room
end

--- The rate of the slowest stage and the money of the plan's devices, by Amdahl's law. As a term
-- beside it: the least cost of all types and numbers of devices that reach this rate, where they
-- are few enough to try. The cost is left out where the cluster file gives no prices.
local function claim(made, ctx)
  made = prices.table_of(made)
  local o, batch = ctx.options, ctx.job.global_batch
  local stages = made.replicas[1].stages
  local types = instance.types((usable(ctx)))
  local q = instance_of(ctx, types, stages[1].recompute or "none", o.groups)
  local type_of = {}
  for t, type in ipairs(types) do
    for _, device in ipairs(type.devices) do
      type_of[device.id] = t
    end
  end
  local slowest_s, usd_per_h, known = 0, 0, true
  for _, stage in ipairs(stages) do
    local ids = ctx.cluster:ids(stage.devices)
    local t, k = type_of[ids[1]], #ids
    local chain = prices.chain(ctx, types[t].kind,
      { tp = 1, micro_batch = 1, recompute = stage.recompute })
    local compute_s = prices.time(chain, stage.layers[1] + 1, stage.layers[2])
      * (1 - o.alpha + o.alpha / k)
    local exchange_s = q.exchange[t][1] * (1 - o.beta + o.beta / k)
    slowest_s = math.max(slowest_s, compute_s, exchange_s)
    usd_per_h = usd_per_h + types[t].price * k
    known = known and types[t].known
  end
  q.rate = (1 - 1e-9) / slowest_s
  local _, least = type_search.enumerate(q)
  local usd = usd_per_h * batch * slowest_s / 3600
  local cost_usd, cheapest_usd
  if known then
    cost_usd = usd
    cheapest_usd = least and math.min(usd, least * batch / 3600)
  end
  return { iteration_s = batch * slowest_s, cost_usd = cost_usd,
    terms = { cheapest_usd = cheapest_usd },
    formula = "batch x slowest stage by Amdahl's law; cost = time x sum of price x k"
      .. " (HeterPS, section 4)" }
end

return {
  api = 1,
  id = "heterps",
  title = "HeterPS",
  kind = "hetero",
  system = "HeterPS: Distributed Deep Learning with Reinforcement Learning Based Scheduling,"
    .. " FGCS 2023",
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
