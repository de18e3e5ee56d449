-- Search for the type of device of every layer (HeterPS, Liu et al., FGCS 148, 2023, section 5):
-- REINFORCE on a table or on a recurrent network, and what the paper compares it with. The instance
-- is that of provisioning.lua with choices[l] = how many types layer l may have, features = list of
-- numbers of every layer that networks read (nil: none). An assignment is the list of types per
-- layer.
local bayes = require "learn.bayes"
local policy = require "learn.policy"
local provisioning = require "provisioning"
local recurrent = require "learn.recurrent"
local search = require "search"

local type_search = {}

local MOST_STATES = 65536 -- assignments up to which all are tried
local ROUND = 10 -- plans of a round of learning
local GAMMA = 0.1 -- how fast the baseline of the rewards follows
local FEW_LAYERS = 16 -- up to which a network reads the number of a layer as one input for each

--- The cost of an assignment, remembered for one rate; nil where it does not reach the rate.
local function cost_of(q, assignment)
  if q.known_rate ~= q.rate then
    q.known = {}
    q.known_rate = q.rate
  end
  local key = table.concat(assignment, " ")
  if q.known[key] == nil then
    local _, cost = provisioning.stages(q, assignment)
    q.known[key] = cost or false
  end
  return q.known[key] or nil
end

--- The cheapest of all assignments (nil where none reaches the rate), its cost, and how many were
-- tried; nothing when there are more than 2^16. Ends early when the run is told to stop.
function type_search.enumerate(q)
  local states = search.choices(q.choices, MOST_STATES)
  if not states then
    return nil
  end
  local n = 0
  local function next_state()
    n = n + 1
    if n % 256 == 0 and hv.stopping() then
      return nil
    end
    return states()
  end
  local least = math.huge
  local function cost(assignment)
    if provisioning.bound(q, assignment) >= least then
      return nil
    end
    local own = cost_of(q, assignment)
    least = math.min(least, own or least)
    return own
  end
  local r = search.enumerate { states = next_state, cost = cost }
  return r.state, r.cost, r.evaluations
end

--- REINFORCE on a table of logits, with rewards −cost, and −penalty where the rate is out of reach.
-- o = {rounds = of ten plans, learning = rate of learning, penalty, seed}. Gives the best
-- assignment seen, its cost, and the assignment that the policy finds likeliest in the end.
function type_search.reinforce(q, o)
  local r = policy.moving { choices = q.choices, cost = function(s) return cost_of(q, s) end,
    penalty = o.penalty, budget = ROUND * o.rounds, batch = ROUND, rate = o.learning,
    gamma = GAMMA, seed = o.seed }
  return r.state, r.cost, policy.likeliest(r.probabilities)
end

--- What a network reads of every layer: its number (of few layers one input for each, of many its
-- place), and its features.
local function inputs_of(q)
  local rows, n = {}, #q.choices
  for l = 1, n do
    local row = {}
    if n > FEW_LAYERS then
      row = { l / n, math.cos(2 * math.pi * l / n), math.sin(2 * math.pi * l / n) }
    else
      for k = 1, n do
        row[k] = k == l and 1 or 0
      end
    end
    for _, x in ipairs(q.features and q.features[l] or {}) do
      table.insert(row, x)
    end
    rows[l] = row
  end
  return rows
end

--- REINFORCE on a recurrent network. o = {cell = "lstm", the paper's, or "rnn", rounds = of ten
-- plans, penalty, seed}. Gives what type_search.reinforce gives.
function type_search.recurrent(q, o)
  local r = recurrent.reinforce { inputs = inputs_of(q), choices = #q.types, cell = o.cell,
    penalty = o.penalty, cost = function(s) return cost_of(q, s) end, budget = ROUND * o.rounds,
    seed = o.seed }
  return r.state, r.cost, r.likeliest
end

--- The assignment by rule: each layer on the type that computes it soonest, or on the cheapest one
-- where it exchanges for longer than it computes there (sparse layers go to CPUs).
local function by_rule(q)
  local cheapest = 1
  for t, type in ipairs(q.types) do
    if type.price < q.types[cheapest].price then
      cheapest = t
    end
  end
  local assignment = {}
  for l in ipairs(q.choices) do
    local fastest = 1
    for t in ipairs(q.types) do
      if q.compute[t][l] < q.compute[fastest][l] then
        fastest = t
      end
    end
    if q.exchange[fastest][l] > q.compute[fastest][l] then
      assignment[l] = cheapest
    else
      assignment[l] = fastest
    end
  end
  return assignment
end

--- The cheapest assignment of one type to all layers, and its cost; nil where none reaches the
-- rate.
local function single_type(q)
  local best, least
  for t = 1, #q.types do
    local assignment = {}
    for l in ipairs(q.choices) do
      assignment[l] = t
    end
    local cost = cost_of(q, assignment)
    if cost and (not least or cost < least) then
      best = assignment
      least = cost
    end
  end
  return best, least
end

--- The values of every layer's choice: 1 … q.choices[l].
local function values_of(q)
  local values = {}
  for l, n in ipairs(q.choices) do
    values[l] = {}
    for t = 1, n do
      values[l][t] = t
    end
  end
  return values
end

--- For each layer the type that all of its devices compute soonest.
local function fastest_types(q, values)
  local assignment = {}
  for l in ipairs(q.choices) do
    assignment[l] = search.argmin(values[l],
      function(t) return q.compute[t][l] / (q.types[t].available or 1) end)
  end
  return assignment
end

--- The searches that the paper compares with: "greedy" changes one layer at a time from the best
-- single type on, "genetic", "bayes" is Bayesian optimisation with 60 plans at most, "heuristic" is
-- the rule above, "single" takes one type for all layers. o = {search, rounds = of ten plans,
-- seed}. Gives the best assignment and its cost; nil when none reaches the rate.
function type_search.compared(q, o)
  local single, single_cost = single_type(q)
  if o.search == "single" then
    return single, single_cost
  end
  if o.search == "heuristic" then
    local assignment = by_rule(q)
    local cost = cost_of(q, assignment)
    if cost then
      return assignment, cost
    end
    return nil
  end
  local values = values_of(q)
  local function cost(assignment)
    return cost_of(q, assignment)
  end
  local r
  if o.search == "greedy" then
    r = search.coordinate { state = single or fastest_types(q, values), values = values,
      cost = cost, budget = ROUND * o.rounds }
  elseif o.search == "bayes" then
    r = bayes.search { choices = q.choices, cost = cost, penalty = 2 * (single_cost or 1),
      budget = ROUND * o.rounds, seed = o.seed }
  else
    r = search.ga { values = values, cost = cost, budget = ROUND * o.rounds, seed = o.seed }
  end
  if r.state and r.cost < (single_cost or math.huge) then
    return r.state, r.cost
  end
  return single, single_cost
end

local LEARNED = { reinforce = true, lstm = true, rnn = true }

--- The best assignment that REINFORCE finds, on the table or a network. The cost of one type for
-- all layers, or of a short greedy search, sets the scale of its rewards; it is also the answer
-- where learning finds none that costs less, or where time ends.
local function learned(q, o)
  local start, cost = type_search.compared(q, { search = "single", rounds = o.rounds,
    seed = o.seed })
  if not start then
    start, cost = type_search.compared(q, { search = "greedy", rounds = 10 })
  end
  if #q.types == 1 or start and o.stopping and o.stopping() then
    return start
  end
  local scale = cost or 1
  local found, found_cost
  if o.search == "lstm" or o.search == "rnn" then
    found, found_cost = type_search.recurrent(q, { cell = o.search, rounds = o.rounds,
      penalty = 2 * scale, seed = o.seed })
  else
    found, found_cost = type_search.reinforce(q, { rounds = o.rounds, learning = 0.2 / scale,
      penalty = 2 * scale, seed = o.seed })
  end
  if found and not (start and cost <= found_cost) then
    return found
  end
  return start
end

--- The best assignment by the name of a search: "enumerate" (by REINFORCE where there are too
-- many), "reinforce", "lstm", "rnn", or one of type_search.compared. o = {search, rounds = of ten
-- plans, seed, stopping = function that says when learning is to end (nil: never)}. nil when none
-- reaches the rate.
function type_search.best(q, o)
  if o.search == "enumerate" then
    local found, _, tried = type_search.enumerate(q)
    if tried then
      return found
    end
    return learned(q, o)
  end
  if LEARNED[o.search] then
    return learned(q, o)
  end
  return (type_search.compared(q, o))
end

return type_search
