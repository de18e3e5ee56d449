-- PipeDream (Narayanan et al., SOSP 2019): stages of a pipeline without flushes, each on as many
-- devices as balances it, by dynamic programming over the levels of the network. Minibatches go to
-- the replicas of a stage in turns. Its value is the time per minibatch in steady state, no
-- iteration time. The paper profiles layers: here their prices are the cost model's, and minibatch
-- and recomputation, which it leaves to the user, are tried by their value and then simulated.
local candidates = require "candidates"
local inventory = require "inventory"
local levels = require "levels"
local links = require "links"
local numbers = require "numbers"
local prices = require "prices"
local reasons = require "reasons"

local MOST_UNITS = 40 -- layers that are cut one by one; longer models are cut at every second, …
local MOST_UNITS_OF_MANY = 16 -- the same on more than two levels
local MOST_COMPONENTS = 8 -- of a level, where more nodes can be several levels
local MOST_PRIME = 32 -- nodes that are one level though they do not divide; else one is left out

--- Factors of a number of nodes, each the largest divisor up to MOST_COMPONENTS; of one node less
-- where a large number has none.
local function factors(nodes)
  local list, left = {}, nodes
  while left > 1 do
    local factor = 1
    for _, divisor in ipairs(numbers.divisors(left)) do
      factor = divisor <= MOST_COMPONENTS and divisor or factor
    end
    if factor == 1 and left > MOST_PRIME then
      return factors(nodes - 1)
    end
    factor = factor > 1 and factor or left
    list[#list + 1] = factor
    left = left // factor
  end
  return list
end

--- Levels of the network, devices of a node first: list of {count, bandwidth}; and the devices.
local function network(ctx, devices)
  local size = inventory.node_size(inventory.nodes(devices))
  local counts = factors(#devices // size)
  if size > 1 or #counts == 0 then
    table.insert(counts, 1, size)
  end
  local list, inner = {}, 1
  for l, count in ipairs(counts) do
    local other = devices[math.min(#devices, inner + 1)]
    list[l] = { count = count, bandwidth = links.bandwidth(ctx, devices[1].id, other.id) }
    inner = inner * count
  end
  local ids = {}
  for i = 1, inner do
    ids[i] = devices[i].id
  end
  return list, ids
end

--- Units of the chain, which are runs of equally many layers: {first, last} of each.
local function units_of(n_layers, n_levels)
  local size, units = math.ceil(n_layers / (n_levels > 2 and MOST_UNITS_OF_MANY or MOST_UNITS)), {}
  for first = 1, n_layers, size do
    units[#units + 1] = { first, math.min(first + size - 1, n_layers) }
  end
  return units
end

--- The chains of all kinds for these passes.
local function chains_of(ctx, kinds, c)
  local list = {}
  for i, kind in ipairs(kinds) do
    list[i] = prices.chain(ctx, kind, { micro_batch = c.micro_batch, recompute = c.recompute })
  end
  return list
end

--- The problem of the dynamic program: the slowest kind computes every unit, and all hold it with
-- `reserve` bytes to spare. What a component holds is spread over its devices, or, for `c.alone`,
-- lies on each of them: how its stages divide it is not known on the level above.
local function problem(ctx, kinds, units, net, c, reserve)
  local chains = chains_of(ctx, kinds, c)
  local output = hv.cost.layers { micro_batch = c.micro_batch }:sizes "output"
  local q = { times = {}, weights = {}, outputs = {}, levels = net, combine = ctx.options.combine }
  for u, unit in ipairs(units) do
    q.times[u] = 0
    for _, chain in ipairs(chains) do
      q.times[u] = math.max(q.times[u], prices.time(chain, unit[1], unit[2]))
    end
    q.weights[u] = prices.gradient_bytes(ctx, chains[1], unit[1], unit[2])
    q.outputs[u] = output[unit[2]]
  end
  function q.fits(first, last, alive, inner)
    for _, chain in ipairs(chains) do
      local need = prices.bytes(ctx, chain, units[first][1], units[last][2],
        { in_flight = alive, versions = alive, holders = 1 })
      if need > (c.alone and 1 or inner) * (prices.capacity(ctx, chain) - reserve) then
        return false
      end
    end
    return true
  end
  return q
end

--- The plan of a solution.
local function plan_of(ctx, units, flat, c)
  local stages = {}
  for s, part in ipairs(flat) do
    stages[s] = { devices = ctx.cluster:address(part.ids), dp = #part.ids,
      deal = #part.ids > 1 and "turns" or nil,
      layers = { units[part.first][1] - 1, units[part.last][2] },
      recompute = c.recompute ~= "none" and c.recompute or nil }
  end
  return { micro_batch = c.micro_batch, schedule = { name = "pipedream" },
    replicas = { { micro_batches = ctx.job.global_batch // c.micro_batch, stages = stages } } }
end

--- Minibatches and recomputations that are tried.
local function choices(ctx)
  local list = {}
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    for _, recompute in ipairs { "none", "selective", "full" } do
      for _, alone in ipairs(ctx.job.global_batch % micro_batch == 0 and { false, true } or {}) do
        list[#list + 1] = { micro_batch = micro_batch, recompute = recompute, alone = alone }
      end
    end
  end
  return list
end

--- The solutions of all choices with `reserve` bytes of every device left unused.
local function search(ctx, world, reserve)
  local all, list = candidates.new(), choices(ctx)
  for i, c in ipairs(list) do
    hv.progress(i / #list, ("minibatch of %d"):format(c.micro_batch))
    local solved = levels.solve(problem(ctx, world.kinds, world.units, world.net, c, reserve))
    if solved then
      local flat = levels.flat(solved.stages, world.counts, world.ids)
      all.add { claim_s = solved.value / c.micro_batch, build = function()
        return plan_of(ctx, world.units, flat, c)
      end }
    end
    if hv.stopping(0.4) and #all.list > 0 then
      break
    end
  end
  return all
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local world = { kinds = inventory.kinds(devices), counts = {} }
  world.net, world.ids = network(ctx, devices)
  world.units = units_of(ctx.model.n_layers, #world.net)
  for l, level in ipairs(world.net) do
    world.counts[l] = level.count
  end
  local first = search(ctx, world, 0)
  local made = #first.list > 0 and first.best(ctx.options.tries)
  if made then
    return made
  end
  local all = candidates.within(function(reserve)
    return reserve == 0 and first or search(ctx, world, reserve)
  end)
  if not all then
    return nil, reasons.too_small(ctx, devices, "no cut of the layers into stages of whole layers, "
      .. "with the minibatches and weight versions that are alive,")
  end
  return all.best(ctx.options.tries)
end

--- Seconds per minibatch of the plan's slowest stage or cut, by the formula of one level over each
-- stage's slowest link.
local function claim(made, ctx)
  made = prices.table_of(made)
  local kinds = prices.kinds(ctx)
  local slowest_s, before = 0, nil
  for s, stage in ipairs(made.replicas[1].stages) do
    local pass = prices.stage(ctx, made, 1, s)
    local ids = ctx.cluster:ids(stage.devices)
    local chain = prices.chain(ctx, kinds[ids[1]], { micro_batch = made.micro_batch })
    local bytes = prices.gradient_bytes(ctx, chain, stage.layers[1] + 1, stage.layers[2])
    local link = { bandwidth = links.bandwidth(ctx, ids[1], ids[#ids]) }
    slowest_s = math.max(slowest_s, levels.stage_s(pass.forward_s + pass.backward_s, bytes, #ids,
      link, 1, ctx.options.combine))
    if before then
      slowest_s = math.max(slowest_s, levels.cut_s({ outputs = { before.bytes } }, 1, #ids,
        { bandwidth = links.bandwidth(ctx, before.id, ids[1]) }))
    end
    before = { id = ids[#ids], bytes = pass.hop_bytes }
  end
  local first = #ctx.cluster:ids(made.replicas[1].stages[1].devices)
  local n = 0
  for _, stage in ipairs(made.replicas[1].stages) do
    n = n + #ctx.cluster:ids(stage.devices)
  end
  return { minibatch_s = slowest_s,
    terms = { in_flight_per_input_replica = math.ceil(n / first),
      stages = #made.replicas[1].stages },
    formula = "A = slowest stage or cut per minibatch in steady state (PipeDream, section 3.1)",
    leaves_out = "the start of the pipeline; it is no iteration time. The judge reduces gradients "
      .. "once per wave, where PipeDream does it per round of the replicas" }
end

return {
  api = 1, id = "pipedream", title = "PipeDream", kind = { "pipeline", "auto-parallel" },
  system = "PipeDream: Generalized Pipeline Parallelism for DNN Training", venue = "SOSP",
  year = 2019, reference = "doi:10.1145/3341301.3359646",
  summary = "Stages with replicas by dynamic programming over the network's levels; no flushes, "
    .. "stale weights.",
  needs = { model = "layers" }, effort = "quick", stale = true,
  sets = { ["schedule.name"] = "pipedream" },
  searches = { "cut", "replicas of every stage", "minibatch", "recomputation" },
  verified = { "four layers on four devices, added up [D]",
    "four layers on four devices, overlapped [D]",
    "data parallelism alone, added up [D]", "data parallelism alone, overlapped [D]",
    "200 random chains against enumeration [D]", "four minibatches by the judge [D]" },
  options = {
    { key = "combine", type = "choice", choices = { "sum", "max" }, default = "sum",
      help = "compute and gradients of a stage added up (released code) or overlapped (paper)" },
    { key = "micro_batch", type = "integer", default = 8, min = 1, max = 1024,
      help = "largest minibatch in sequences; powers of two up to it are tried" },
    { key = "tries", type = "integer", default = 8, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the value" },
  },
  plan = plan, claim = claim,
}
