-- Types of device for the layers of a model, and how many of each (HeterPS, Liu et al., FGCS 148,
-- 2023, sections 4 and 5): runs of layers of one type are stages, k devices make one faster by
-- Amdahl's law, and the least k that reaches the rate costs least. The types are searched. An
-- instance q is { types = list of { price, available }, features = of every layer as numbers for
-- networks that learn (nil: which layer it is), tried = plans costed so far, compute[t][l] and
-- exchange[t][l] = what `batch` units take on one device of type t, choices[l] = how many types,
-- alpha, beta = parallel shares of both, batch, rate, examples, short = function(stages) or nil,
-- packed = function(runs) giving the least parts of every run that short may let pass, or nil where
-- there are none }.
local bayes = require "learn.bayes"
local numbers = require "numbers"
local policy = require "learn.policy"
local recurrent = require "learn.recurrent"
local search = require "search"

local provisioning = {}

--- Least k with total / batch · (1 − f + f / k) ≤ seconds.
-- @function provisioning.units
-- @tparam number total what the batch takes on one device
-- @tparam number batch units of the batch
-- @tparam number f parallel share
-- @tparam number seconds that a unit may take
-- @treturn integer k; nil when the serial part alone is longer
-- @units any unit of time, the same in both
-- @raise none
-- @usage assert(require("provisioning").units(8, 1, 1, 2) == 4)
function provisioning.units(total, batch, f, seconds)
  if total <= seconds * batch then
    return 1
  end
  local left = seconds * batch / total - (1 - f)
  return left > 1e-12 and math.ceil(f / left - 1e-9) or nil
end

--- Takes n devices of a type from those that are left; false where there are fewer.
local function take(q, left, type, n)
  left[type] = (left[type] or q.types[type].available or math.huge) - n
  return left[type] >= 0
end

--- Runs of layers of one type, each in so many parts, as stages.
local function cut(runs, parts)
  local stages = {}
  for i, run in ipairs(runs) do
    local at = run.first
    for _, n in ipairs(numbers.even(run.last - run.first + 1, parts[i])) do
      stages[#stages + 1], at = { type = run.type, run = i, first = at, last = at + n - 1 }, at + n
    end
  end
  return stages
end

--- Writes the least k into stages; their money per unit of time, or nil where the rate is out of
-- reach.
local function staffed(q, stages)
  local left, money = {}, 0
  for _, s in ipairs(stages) do
    local compute = 0
    for l = s.first, s.last do
      compute = compute + q.compute[s.type][l]
    end
    local a = provisioning.units(compute, q.batch, q.alpha, 1 / q.rate)
    local b = provisioning.units(q.exchange[s.type][s.first], q.batch, q.beta, 1 / q.rate)
    if not a or not b then
      return nil
    end
    s.k = math.max(a, b)
    if not take(q, left, s.type, s.k) then
      return nil
    end
    money = money + q.types[s.type].price * s.k
  end
  return money
end

--- The stages of types per layer, with the devices of each. A run that is too large for the memory
-- of its type's devices (q.short(stages) gives such a stage) is cut into more parts, one more at a
-- time, of very many an eighth more.
-- @function provisioning.stages
-- @tparam table q instance, with the keys named at the top
-- @tparam table assign list of a type per layer
-- @treturn table list of {type, run, first, last, k}, and their cost; nil when the rate is out of
-- reach, devices are too few or a single layer too large
-- @units layers from 1, inclusive; cost as price times examples over rate
-- @raise errors of q.short
-- @usage local q = { types = { { price = 3 } }, compute = { { 4, 4 } }, exchange = { { 0, 0 } }, alpha = 1, beta = 1,
--   batch = 1, rate = 1, examples = 1 }
-- local stages, cost = require("provisioning").stages(q, { 1, 1 })
-- assert(#stages == 1 and stages[1].k == 8 and cost == 24)
function provisioning.stages(q, assign)
  local runs, parts = {}, {}
  for l, t in ipairs(assign) do
    local last = runs[#runs]
    if last and last.type == t then
      last.last = l else
      runs[#runs + 1] = { type = t, first = l, last = l }
    end
  end
  for i in ipairs(runs) do
    parts[i] = 1
  end
  if q.packed then
    parts = q.packed(runs)
    if not parts then
      return nil
    end
  end
  while true do
    local stages = cut(runs, parts)
    -- with one device each, then with as many as it takes
    local short, money = q.short and q.short(stages), nil
    if not short then
      money = staffed(q, stages)
      if not money then
        return nil
      end
      short = q.short and q.short(stages)
    end
    if not short then
      return stages, money * q.examples / q.rate
    end
    local run, n = runs[short.run], parts[short.run]
    local most = run.last - run.first + 1
    parts[short.run] = math.min(most, n + math.max(1, n // 8))
    if n == most then
      return nil
    end
    local left = {}
    for i, other in ipairs(runs) do
      if not take(q, left, other.type, parts[i]) then
        return nil
      end
    end
  end
end

--- The cost, remembered for the rate.
local function cost_of(q, assign)
  local key = table.concat(assign, " ")
  if q.known_rate ~= q.rate then
    q.known, q.known_rate = {}, q.rate
  end
  if q.known[key] == nil then
    q.known[key], q.tried = select(2, provisioning.stages(q, assign)) or false, (q.tried or 0) + 1
  end
  return q.known[key] or nil
end

--- All plans; nil when there are more than 2^16. Ends when the run is told to.
-- @function provisioning.enumerate
-- @tparam table q instance, with the keys named at the top
-- @treturn table list of a type per layer (nil where none reaches the rate), its cost, and how many
-- were looked at; nothing when there are too many
-- @units as provisioning.stages
-- @raise errors of q.short
-- @usage local q = { types = { { price = 3 }, { price = 1 } }, compute = { { 4 }, { 4 } }, exchange = { { 0 }, { 0 } },
--   alpha = 1, beta = 1, batch = 1, rate = 1, examples = 1, choices = { 2 } }
-- assert(require("provisioning").enumerate(q)[1] == 2)
function provisioning.enumerate(q)
  local states, n = search.choices(q.choices, 65536), 0
  if not states then
    return nil
  end
  local function more()
    n = n + 1
    return (n % 256 > 0 or not hv.stopping()) and states() or nil
  end
  local r = search.enumerate { states = more, cost = function(s) return cost_of(q, s) end }
  return r.state, r.cost, r.evaluations
end

--- REINFORCE with rewards −cost, −penalty where the rate is out of reach (section 5).
-- @function provisioning.reinforce
-- @tparam table q instance, with the keys named at the top
-- @tparam table o {rounds = of ten plans, learning = rate of learning, penalty, seed}
-- @treturn table list of a type per layer, the best that was seen; its cost; the list that the
-- policy thinks best in the end
-- @units as provisioning.stages
-- @raise errors of q.short
-- @usage local q = { types = { { price = 3 } }, compute = { { 4 } }, exchange = { { 0 } }, alpha = 1, beta = 1,
--   batch = 1, rate = 1, examples = 1, choices = { 1 } }
-- assert(select(2, require("provisioning").reinforce(q, { rounds = 1, learning = 0.1, penalty = 99, seed = 1 })) == 12)
function provisioning.reinforce(q, o)
  local r = policy.moving { choices = q.choices, cost = function(s) return cost_of(q, s) end,
    penalty = o.penalty,
    budget = 10 * o.rounds, batch = 10, rate = o.learning, gamma = 0.1, seed = o.seed }
  return r.state, r.cost, policy.likeliest(r.probabilities)
end

local FEW = 16 -- layers up to which a network is told which one it reads by a number for each

--- What networks read of every layer: which one it is (of many: where), and its features.
local function inputs_of(q)
  local rows, n = {}, #q.choices
  for l = 1, n do
    rows[l] = n > FEW and { l / n, math.cos(2 * math.pi * l / n), math.sin(2 * math.pi * l / n) }
      or {}
    for k = 1, n <= FEW and n or 0 do
      rows[l][k] = k == l and 1 or 0
    end
    for _, x in ipairs(q.features and q.features[l] or {}) do
      table.insert(rows[l], x)
    end
  end
  return rows
end

--- The same policy gradient on a recurrent network, the paper's LSTM or a plain one ("rnn"), in
-- place of a table.
-- @function provisioning.recurrent
-- @tparam table q instance, with the keys named at the top
-- @tparam table o {cell = "lstm" or "rnn", rounds = of ten plans, penalty, seed}
-- @treturn table list of a type per layer, the best that was seen; its cost; the list that the
-- policy thinks best in the end
-- @units as provisioning.stages
-- @raise errors of q.short
-- @usage local q = { types = { { price = 3 } }, compute = { { 4 } }, exchange = { { 0 } }, alpha = 1, beta = 1,
--   batch = 1, rate = 1, examples = 1, choices = { 1 } }
-- local o = { cell = "lstm", rounds = 1, penalty = 99, seed = 1 }
-- assert(select(2, require("provisioning").recurrent(q, o)) == 12)
function provisioning.recurrent(q, o)
  local r = recurrent.reinforce { inputs = inputs_of(q), choices = #q.types, cell = o.cell,
    penalty = o.penalty,
    cost = function(s) return cost_of(q, s) end, budget = 10 * o.rounds, seed = o.seed }
  return r.state, r.cost, r.likeliest
end

--- The type of every layer by a rule: the one that computes it soonest, but where it exchanges for
-- longer than it computes there the cheapest (sparse layers on CPUs).
local function by_rule(q)
  local out, cheapest = {}, 1
  for t in ipairs(q.types) do
    cheapest = q.types[t].price < q.types[cheapest].price and t or cheapest
  end
  for l in ipairs(q.choices) do
    local fastest = 1
    for t in ipairs(q.types) do
      fastest = q.compute[t][l] < q.compute[fastest][l] and t or fastest
    end
    out[l] = q.exchange[fastest][l] > q.compute[fastest][l] and cheapest or fastest
  end
  return out
end

--- The paper's other searches: "greedy" changes one layer at a time from the best single type on,
-- "genetic" is what its name says, "bayes" is Bayesian optimisation with 60 plans at most,
-- "heuristic" puts layers that exchange more than they compute on the cheapest type and others on
-- the fastest, "single" tries one type for all layers.
-- @function provisioning.other
-- @tparam table q instance, with the keys named at the top
-- @tparam table o {search = "greedy", "genetic", "bayes", "heuristic" or "single", rounds = of ten
-- plans, seed}
-- @treturn table list of a type per layer, and its cost; nil when none reaches the rate
-- @units as provisioning.stages
-- @raise errors of q.short
-- @usage local q = { types = { { price = 3 }, { price = 1 } }, compute = { { 4 }, { 4 } }, exchange = { { 0 }, { 0 } },
--   alpha = 1, beta = 1, batch = 1, rate = 1, examples = 1, choices = { 2 } }
-- assert(select(2, require("provisioning").other(q, { search = "greedy", rounds = 5, seed = 1 })) == 4)
function provisioning.other(q, o)
  local values, best, least = {}, nil, math.huge
  local function cost(s)
    return cost_of(q, s)
  end
  for l, n in ipairs(q.choices) do
    values[l] = {}
    for t = 1, n do
      values[l][t] = t
    end
  end
  for t = 1, #q.types do
    local all = {}
    for l in ipairs(q.choices) do
      all[l] = t
    end
    local c = cost(all)
    if c and c < least then
      best, least = all, c
    end
  end
  if o.search == "single" then
    return best, best and least
  end
  if o.search == "heuristic" then
    local rule = by_rule(q)
    local c = cost(rule)
    return c and rule, c
  end
  local r
  if o.search == "greedy" then
    local start = best
    if not start then -- no single type reaches the rate: the fastest one of every layer
      start = {}
      for l in ipairs(q.choices) do
        start[l] = search.argmin(values[l],
          function(t) return q.compute[t][l] / (q.types[t].available or 1) end)
      end
    end
    r = search.coordinate { state = start, values = values, cost = cost, budget = 10 * o.rounds }
  elseif o.search == "bayes" then
    r = bayes.search { choices = q.choices, cost = cost, penalty = 2 * (best and least or 1),
      budget = 10 * o.rounds, seed = o.seed }
  else
    r = search.ga { values = values, cost = cost, budget = 10 * o.rounds, seed = o.seed }
  end
  if r.state and r.cost < least then
    return r.state, r.cost
  end
  return best, best and least
end

--- The best types by name of a search: "enumerate" (where there are few enough, else as reinforce),
-- "reinforce", whose rate of learning follows the cost of one type for all or of a short greedy
-- search, "lstm", "rnn", or one of provisioning.other.
-- @function provisioning.search
-- @tparam table q instance, with the keys named at the top
-- @tparam table o {search, rounds = of ten plans, seed}
-- @treturn table list of a type per layer; nil when none reaches the rate
-- @units as provisioning.stages
-- @raise errors of q.short
-- @usage local q = { types = { { price = 3 }, { price = 1 } }, compute = { { 4 }, { 4 } }, exchange = { { 0 }, { 0 } },
--   alpha = 1, beta = 1, batch = 1, rate = 1, examples = 1, choices = { 2 } }
-- assert(require("provisioning").search(q, { search = "enumerate", rounds = 5, seed = 1 })[1] == 2)
function provisioning.search(q, o)
  local learned = o.search == "reinforce" or o.search == "lstm" or o.search == "rnn"
  local known = not learned and o.search ~= "enumerate"
  if o.search == "enumerate" then
    local found, _, tried = provisioning.enumerate(q)
    if tried then
      return found
    end
  end
  local best, cost = provisioning.other(q, { search = known and o.search or "single",
    rounds = o.rounds,
    seed = o.seed })
  if not best and not known then
    best, cost = provisioning.other(q, { search = "greedy", rounds = 10 })
  end
  if known or #q.types == 1 or best and hv.stopping() then
    return best
  end
  local scale = cost or 1
  if o.search == "lstm" or o.search == "rnn" then
    return (provisioning.recurrent(q, { cell = o.search, rounds = o.rounds, penalty = 2 * scale,
      seed = o.seed }))
      or best
  end
  return (provisioning.reinforce(q, { rounds = o.rounds, learning = 0.2 / scale,
    penalty = 2 * scale,
    seed = o.seed })) or best
end

return provisioning
