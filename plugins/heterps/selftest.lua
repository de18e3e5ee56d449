-- Self-tests of HeterPS: provisioning and the searches for types.
local instance = require "instance"
local provisioning = require "provisioning"
local recurrent = require "learn.recurrent"
local search = require "search"
local type_search = require "type_search"

local BEST_COST = 8.04 -- of the small instance
local ENUMERATED = "all 16 assignments, computed apart"
local SEEDS = 20 -- of the searches

--- Four layers on CPUs or GPUs, rate 2.
local function small_instance()
  return {
    types = { { price = 0.04 }, { price = 2.42 } },
    compute = { { 1, 8, 8, 4 }, { 2, 1, 1, 0.5 } },
    exchange = { { 0.5, 0.5, 0.5, 0.5 }, { 0.8, 0.8, 0.8, 0.8 } },
    choices = { 2, 2, 2, 2 },
    alpha = 0.9, beta = 0.8, batch = 1, rate = 2, examples = 1,
  }
end

local function cost_of(q, assignment)
  local _, cost = provisioning.stages(q, assignment)
  return cost
end

--- Devices of the stages of an assignment, as text.
local function devices_of(q, assignment)
  local k = {}
  for i, stage in ipairs((provisioning.stages(q, assignment))) do
    k[i] = stage.k
  end
  return table.concat(k, " ")
end

--- The rate of the slowest stage by Amdahl's law.
local function rate_of(q, assignment)
  local rate = math.huge
  for _, stage in ipairs((provisioning.stages(q, assignment))) do
    local compute = 0
    for l = stage.first, stage.last do
      compute = compute + q.compute[stage.type][l]
    end
    rate = math.min(rate, 1 / (compute * (0.1 + 0.9 / stage.k)),
      1 / (q.exchange[stage.type][1] * (0.2 + 0.8 / stage.k)))
  end
  return rate
end

local function check_small(t)
  local q = small_instance()
  local costs = {}
  for assignment in search.choices(q.choices) do
    costs[#costs + 1] = cost_of(q, assignment)
  end
  table.sort(costs)
  t.near("4 layers, 2 types: assignments that reach rate 2", #costs, 4, 0, ENUMERATED)
  local best, cost = type_search.enumerate(q)
  t.equal("cheapest types (1: CPU, 2: GPU)", table.concat(best, " "), "1 2 2 1", ENUMERATED)
  t.near("cheapest cost", cost, BEST_COST, 1e-9, ENUMERATED)
  t.equal("devices of its stages", devices_of(q, best), "3 6 36", ENUMERATED)
  t.near("rate of its slowest stage", rate_of(q, best), 2, 1e-9, "the rate that was asked for")
  t.near("second lowest cost", costs[2], 10.95, 5e-3, ENUMERATED)
  t.equal("devices of CPU 1, GPU 2 to 4", devices_of(q, { 1, 2, 2, 2 }), "3 9", ENUMERATED)
  t.ok("all layers on CPUs: rate out of reach", provisioning.stages(q, { 1, 1, 1, 1 }) == nil,
    "by hand: 0.1 of 21 s is serial")
  local _, single = type_search.compared(q, { search = "single" })
  t.near("cost of the best single type, 81 GPUs", single, 98.01, 1e-9, "by hand: 81 x 2.42 / 2")
end

--- In how many of SEEDS seeds run(q, {seed, …}) gives the best assignment.
local function optima(q, run, name)
  local n = 0
  for seed = 1, SEEDS do
    local found = run(q, { rounds = 50, penalty = 100, seed = seed, cell = name, search = name })
    if found and (cost_of(q, found) or math.huge) < BEST_COST + 1e-9 then
      n = n + 1
    end
  end
  return n
end

local function check_reinforce(t)
  local q = small_instance()
  local seen, likeliest = 0, 0
  for seed = 1, 100 do
    local _, cost, likely = type_search.reinforce(q,
      { rounds = 50, learning = 0.003, penalty = 100, seed = seed })
    if cost < BEST_COST + 1e-9 then
      seen = seen + 1
    end
    if (cost_of(q, likely) or math.huge) < BEST_COST + 1e-9 then
      likeliest = likeliest + 1
    end
  end
  t.ok(("REINFORCE, 50 rounds of 10: optimum seen with %d of 100 seeds, at least 95"):format(seen),
    seen >= 95, "section 5, computed apart: 100")
  t.ok(("REINFORCE, 50 rounds of 10: its likeliest plan is the optimum with %d of 100 seeds,"
    .. " at least 85"):format(likeliest), likeliest >= 85, "section 5, computed apart: 94")
end

local function check_searches(t)
  local q = small_instance()
  for _, cell in ipairs { "lstm", "rnn" } do
    local n = optima(q, type_search.recurrent, cell)
    t.ok(("%s, 50 rounds of 10: optimum seen with %d of 20 seeds, at least 19"):format(cell, n),
      n >= 19, ENUMERATED)
  end
  for _, name in ipairs { "genetic", "bayes" } do
    local n = optima(q, type_search.compared, name)
    t.ok(("%s: optimum seen with %d of 20 seeds, at least 19"):format(name, n), n >= 19, ENUMERATED)
  end
  local net = recurrent.new { inputs = 3, choices = 3, cell = "lstm", hidden = 4, seed = 5 }
  local inputs = { { 1, 0, 0.5 }, { 0, 1, -1 }, { 0.3, 0.2, 2 } }
  local rows = { { 0.7, { 2, 1, 3 } }, { -0.4, { 1, 1, 2 } } }
  t.near("gradient of the LSTM: largest difference to finite differences",
    recurrent.gradient_error(net, inputs, rows), 0, 1e-6, "central differences of 1e-5")
end

--- Four layers of 2 s on one type whose devices hold `most` layers, one unit per second: devices of
-- the stages, and the cost.
local function held(most)
  local q = { types = { { price = 3 } }, compute = { { 2, 2, 2, 2 } },
    exchange = { { 0, 0, 0, 0 } }, alpha = 1, beta = 1, batch = 1, rate = 1, examples = 1 }
  function q.short(stages)
    for _, stage in ipairs(stages) do
      if stage.last - stage.first + 1 > most then
        return stage
      end
    end
    return nil
  end
  local stages, cost = provisioning.stages(q, { 1, 1, 1, 1 })
  if not stages then
    return "none"
  end
  local k = {}
  for i, stage in ipairs(stages) do
    k[i] = stage.k
  end
  return ("%s: %g"):format(table.concat(k, " "), cost)
end

local function check_memory(t)
  t.equal("devices that hold 4 layers: devices and cost of the stages", held(4), "8: 24",
    "by hand: 8 s in 1 s, 8 devices of 3")
  t.equal("devices that hold 2 layers: two stages", held(2), "4 4: 24", "by hand")
  t.equal("devices that hold 3 layers: two even stages", held(3), "4 4: 24", "by hand")
  t.equal("devices that hold 1 layer: four stages", held(1), "2 2 2 2: 24", "by hand")
  t.equal("devices that hold no layer: no stages", held(0), "none", "by hand")
end

--- An instance of four layers and two types with drawn prices and times.
local function drawn_instance(random)
  local q = { types = {}, compute = {}, exchange = {}, choices = {}, alpha = 0.9, beta = 0.8,
    batch = 1, rate = 1, examples = 1 }
  for l = 1, 4 do
    q.choices[l] = 2
  end
  for type = 1, 2 do
    q.types[type] = { price = random(9), available = 20 + random(200) }
    q.compute[type] = {}
    q.exchange[type] = {}
    for l = 1, 4 do
      q.compute[type][l] = random(6)
      q.exchange[type][l] = random()
    end
  end
  return q
end

local function check_drawn(t)
  local random = search.generator(9)
  local right, reached = true, 0
  for _ = 1, 60 do
    local q = drawn_instance(random)
    local _, least = type_search.enumerate(q)
    local _, single = type_search.compared(q, { search = "single" })
    local _, greedy = type_search.compared(q, { search = "greedy", rounds = 100 })
    local _, genetic = type_search.compared(q, { search = "genetic", rounds = 100, seed = 1 })
    least, single = least or math.huge, single or math.huge
    greedy, genetic = greedy or math.huge, genetic or math.huge
    if least < math.huge then
      reached = reached + 1
    end
    for _, cost in ipairs { single, greedy, genetic } do
      right = right and cost >= least - 1e-9
    end
    right = right and greedy <= single and genetic <= single
  end
  t.ok("60 random instances: no search beats the enumeration, none is worse than one type for all",
    right, "property")
  t.ok(("60 random instances: %d can reach the rate, more than 5"):format(reached), reached > 5,
    "property")
end

--- The time of a unit on a run of layers by Amdahl's law.
local function amdahl(q, type, first, last, k)
  local compute = 0
  for l = first, last do
    compute = compute + q.compute[type][l]
  end
  return math.max(compute * (1 - q.alpha + q.alpha / k),
    q.exchange[type][first] * (1 - q.beta + q.beta / k))
end

--- The least cost of an instance by the paper's equations, over all types of the layers and all
-- numbers of devices: time of the slowest stage x sum of price x k, of those that reach the rate.
local function least_of_all(q)
  local least = math.huge
  local function number(runs, i, left, slowest, price)
    if i > #runs then
      least = math.min(least, slowest * price)
      return
    end
    local run = runs[i]
    for k = 1, left[run.type] do
      local time = amdahl(q, run.type, run.first, run.last, k)
      if time <= (1 + 1e-9) / q.rate then
        left[run.type] = left[run.type] - k
        number(runs, i + 1, left, math.max(slowest, time), price + q.types[run.type].price * k)
        left[run.type] = left[run.type] + k
      end
    end
  end
  for assignment in search.choices(q.choices) do
    local runs = {}
    for l, type in ipairs(assignment) do
      if l > 1 and assignment[l - 1] == type then
        runs[#runs].last = l
      else
        runs[#runs + 1] = { type = type, first = l, last = l }
      end
    end
    number(runs, 1, { q.types[1].available, q.types[2].available }, 0, 0)
  end
  return least
end

local function check_paper(t)
  local random = search.generator(17)
  local reached, right, dearest = 0, true, 0
  for _ = 1, 100 do
    local q = drawn_instance(random)
    q.rate = 0.1 + random()
    for type = 1, 2 do
      q.types[type].available = random(7)
    end
    local least = least_of_all(q)
    local _, cost = type_search.enumerate(q)
    cost = cost or math.huge
    if least < math.huge then
      reached = reached + 1
    end
    right = right and (cost == least or math.abs(cost / least - 1) < 1e-9)
    if cost > least then
      dearest = math.max(dearest, cost / least - 1)
    end
  end
  t.ok(("100 random instances, %d reach the rate: cost of the best types and devices, with the time"
    .. " that they take, against all of them; at most %.1f %% dearer"):format(reached,
    100 * dearest), right and reached > 20, "section 4: cost = time x sum of price x k")
end

local function check_learned(t)
  local random = search.generator(5)
  local right = true
  for seed = 1, 40 do
    local q = drawn_instance(random)
    local _, single = type_search.compared(q, { search = "single" })
    for _, name in ipairs { "reinforce", "rnn" } do
      local found = type_search.best(q, { search = name, rounds = 1, seed = seed })
      right = right and (not single or cost_of(q, found) <= single)
    end
  end
  t.ok("40 random instances: one round of learning costs no more than the best single type", right,
    "property")
end

local function check_prices(t)
  local devices = {
    { kind = "a", usd_per_h = 3, flops_per_s = 2e14 }, { kind = "b", flops_per_s = 1e14 },
    { kind = "a", usd_per_h = 3, flops_per_s = 2e14 },
  }
  local types, unpriced = instance.types(devices)
  t.equal("a kind with a price and one without: prices", ("%g %g"):format(types[1].price,
    types[2].price), "2 1", "FLOP/s of both, not dollars beside FLOP/s")
  t.equal("the kind without a price", table.concat(unpriced, " "), "b", "by hand")
  devices[2].usd_per_h = 1
  devices[3].usd_per_h = 1.5
  types = instance.types(devices)
  t.equal("one kind at two prices is two types", ("%g %g %g"):format(types[1].price,
    types[2].price, types[3].price), "3 1 1.5", "by hand")
end

return function(t)
  check_small(t)
  check_reinforce(t)
  check_searches(t)
  check_memory(t)
  check_drawn(t)
  check_paper(t)
  check_learned(t)
  check_prices(t)
end
