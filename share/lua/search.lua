-- Searches over states that the caller describes. All take a problem { state = first state, moves =
-- function(state) giving the list of neighbours, cost = function(state) giving a number or nil
-- where the state is not allowed, budget = largest number of evaluations, seed } and give an answer
-- { state, cost, evaluations, trace = list of { evaluation, cost } at each improvement, complete }.
local events = require "events"

local search = {}

local unpack = table.unpack

local DEFAULT_BUDGET = 10000 -- of searches that end by themselves
local RANDOM_BUDGET = 2000 -- of those that end by their budget only

--- A record of the evaluations of a search: their number, the best state and the trace.
local function recorder(problem, default_budget)
  local r = { evaluations = 0, cost = math.huge, trace = {},
    limit = problem.budget or default_budget }
  function r.full()
    return r.evaluations >= r.limit
  end
  function r.try(state)
    r.evaluations = r.evaluations + 1
    local cost = problem.cost(state) or math.huge
    if cost < r.cost then
      r.state, r.cost = state, cost
      r.trace[#r.trace + 1] = { r.evaluations, cost }
    end
    return cost
  end
  function r.answer(complete)
    return { state = r.state, cost = r.cost, evaluations = r.evaluations, trace = r.trace,
      complete = complete }
  end
  return r
end

local MODULUS, MULTIPLIER = 2147483647, 48271 -- minimal standard (Park and Miller, CACM 1993)

--- A generator of random numbers of its own, so that a search does not depend on what ran before
-- it: a whole number of 1 to n, or without n a fraction.
local function generator(seed)
  local state = (math.tointeger(seed) or 1) % (MODULUS - 1) + 1
  return function(n)
    state = state * MULTIPLIER % MODULUS
    if n then
      return 1 + state * n // MODULUS
    end
    return state / MODULUS
  end
end

--- All combinations of one value per list, in order; the last list turns fastest.
-- @function search.product
-- @tparam table lists list of lists of values
-- @treturn function iterator over lists of one value each; the list is a new one every time
-- @units none
-- @raise none
-- @usage local search = require "search"
-- for c in search.product { { 1, 2 }, { "a", "b" } } do print(c[1], c[2]) end
function search.product(lists)
  local at = {}
  local n = #lists
  for i = 1, n do
    at[i] = 1
    if #lists[i] == 0 then
      return function() end
    end
  end
  local done = false
  return function()
    if done then
      return nil
    end
    local out = {}
    for i = 1, n do
      out[i] = lists[i][at[i]]
    end
    local place = n
    while place >= 1 and at[place] == #lists[place] do
      at[place] = 1
      place = place - 1
    end
    if place < 1 then
      done = true
    else
      at[place] = at[place] + 1
    end
    return out
  end
end

--- All states of decisions with so many values each, in the order of search.product.
-- @function search.choices
-- @tparam table choices list of how many values each decision has
-- @tparam[opt] number most states at most
-- @treturn function iterator over lists of one number from 1 per decision; nil when there are more
-- than `most`
-- @units counts
-- @raise none
-- @usage local search = require "search"
-- for s in search.choices { 2, 3 } do print(s[1], s[2]) end
-- assert(search.choices({ 2, 3 }, 5) == nil)
function search.choices(choices, most)
  local lists = {}
  local count = 1.0 -- a float, which does not overflow
  for i, n in ipairs(choices) do
    lists[i] = {}
    count = count * n
    for k = 1, n do
      lists[i][k] = k
    end
  end
  if most and count > most then
    return nil
  end
  return search.product(lists)
end

--- Ordered factorisations of n into so many factors, each at least 1.
-- @function search.factor
-- @tparam integer n number to split
-- @tparam integer parts how many factors
-- @treturn table list of lists of factors whose product is n, in ascending order of the first
-- factors
-- @units none: counts
-- @raise none
-- @usage local search = require "search"
-- assert(#search.factor(8, 2) == 4)
function search.factor(n, parts)
  if parts == 1 then
    return { { n } }
  end
  local out = {}
  for d = 1, n do
    if n % d == 0 then
      for _, rest in ipairs(search.factor(n // d, parts - 1)) do
        out[#out + 1] = { d, unpack(rest) }
      end
    end
  end
  return out
end

--- The item of least cost; ties go to the first.
-- @function search.argmin
-- @tparam table items list of anything
-- @tparam function cost function(item) giving a number, or nil to leave the item out
-- @treturn any item, its cost and its position; nil when all were left out
-- @units any, the caller's
-- @raise errors of cost
-- @usage local search = require "search"
-- assert(search.argmin({ 3, 1, 2 }, function(x) return x end) == 1)
function search.argmin(items, cost)
  local best, least, place
  for i, item in ipairs(items) do
    local value = cost(item)
    local is_number = value and value == value -- not NaN
    if is_number and (not least or value < least) then
      best = item
      least = value
      place = i
    end
  end
  return best, least, place
end

--- Tries every state of a list or iterator.
-- @function search.enumerate
-- @tparam table problem {states = list or iterator, cost, budget}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, complete}
-- @units any, the caller's; budget and evaluations are counts
-- @raise errors of cost
-- @usage local search = require "search"
-- local r = search.enumerate { states = { 4, 2, 9 }, cost = function(x) return x end }
-- assert(r.state == 2 and r.complete)
function search.enumerate(problem)
  local r = recorder(problem, math.huge)
  local step = problem.states
  if type(step) == "table" then
    local i = 0
    local list = problem.states
    step = function()
      i = i + 1
      return list[i]
    end
  end
  for state in step do
    if r.full() then
      return r.answer(false)
    end
    r.try(state)
  end
  return r.answer(true)
end

--- Best neighbour again and again, until none is better.
-- @function search.hill
-- @tparam table problem {state, moves, cost, budget = 10000}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, complete}; complete
-- = it ended in a local optimum
-- @units any, the caller's; budget and evaluations are counts
-- @raise errors of moves and cost
-- @usage local search = require "search"
-- local r = search.hill { state = 9, moves = function(x) return { x - 1, x + 1 } end,
--   cost = function(x) return x * x end }
-- assert(r.state == 0)
function search.hill(problem)
  local r = recorder(problem, DEFAULT_BUDGET)
  r.try(problem.state)
  local cost_before
  repeat
    cost_before = r.cost
    for _, next_state in ipairs(problem.moves(r.state or problem.state)) do
      if r.full() then
        return r.answer(false)
      end
      r.try(next_state)
    end
  until r.cost >= cost_before
  return r.answer(true)
end

--- One coordinate of a list of numbers or words at a time, from its list of values, until a round
-- changes nothing.
-- @function search.coordinate
-- @tparam table problem {state = list, values = list of one list of values per coordinate, cost,
-- budget = 10000}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, complete}
-- @units any, the caller's; budget and evaluations are counts
-- @raise errors of cost
-- @usage local search = require "search"
-- local r = search.coordinate { state = { 1, 1 }, values = { { 1, 2, 3 }, { 1, 5 } },
--   cost = function(s) return math.abs(s[1] - 2) + math.abs(s[2] - 5) end }
-- assert(r.state[1] == 2 and r.cost == 0)
function search.coordinate(problem)
  local r = recorder(problem, DEFAULT_BUDGET)
  r.try(problem.state)
  local cost_before
  repeat
    cost_before = r.cost
    for i = 1, #problem.state do
      for _, value in ipairs(problem.values[i]) do
        if r.full() then
          return r.answer(false)
        end
        local state = { unpack(r.state or problem.state) }
        if state[i] ~= value then
          state[i] = value
          r.try(state)
        end
      end
    end
  until r.cost >= cost_before
  return r.answer(true)
end

--- The `width` best states of every round live on; a search of width 1 goes on to worse states.
-- @function search.beam
-- @tparam table problem {state, moves, cost, budget = 10000, rounds = 100, width = 8, key =
-- function(state) giving a text, by which states met before are left out}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, complete}; complete
-- = no state had a move left
-- @units any, the caller's; budget, rounds, width and evaluations are counts
-- @raise errors of moves and cost
-- @usage local search = require "search"
-- local r = search.beam { state = 1, rounds = 4, width = 2,
--   moves = function(x) return { 2 * x, 2 * x + 1 } end, cost = function(x) return -x end }
-- assert(r.state == 31)
function search.beam(problem)
  local r = recorder(problem, DEFAULT_BUDGET)
  local seen = {}
  local function is_new(state)
    local key = problem.key and problem.key(state)
    if key == nil then
      return true
    end
    local new = not seen[key]
    seen[key] = true
    return new
  end
  r.try(problem.state)
  is_new(problem.state)
  local beam = { problem.state }
  for _ = 1, problem.rounds or 100 do
    local found = {}
    for _, from in ipairs(beam) do
      for _, state in ipairs(problem.moves(from)) do
        if r.full() then
          return r.answer(false)
        end
        local cost = is_new(state) and r.try(state) or math.huge
        if cost < math.huge then
          found[#found + 1] = { state = state, cost = cost, rank = #found + 1 }
        end
      end
    end
    if #found == 0 then
      return r.answer(true)
    end
    table.sort(found, function(a, b)
      if a.cost ~= b.cost then
        return a.cost < b.cost
      end
      return a.rank < b.rank
    end)
    beam = {}
    for i = 1, math.min(#found, problem.width or 8) do
      beam[i] = found[i].state
    end
  end
  return r.answer(false)
end

--- Best-first branch and bound: goes on from the open state with the least `bound`, a number that
-- no state reached from it undercuts, and leaves out what cannot win.
-- @function search.best_first
-- @tparam table problem {state, moves, bound = function(state), cost = function(state) giving nil
-- where the state is not finished, budget = 10000}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, complete}; complete
-- = proved to be the optimum
-- @units any, the caller's; budget and evaluations are counts
-- @raise errors of moves, bound and cost
-- @usage local search = require "search"
-- local r = search.best_first { state = { 0, 0 }, bound = function(s) return s[2] end,
--   moves = function(s)
--     return s[1] < 3 and { { s[1] + 1, s[2] + 1 }, { s[1] + 1, s[2] + 2 } } or {}
--   end,
--   cost = function(s) return s[1] == 3 and s[2] or nil end }
-- assert(r.cost == 3 and r.complete)
function search.best_first(problem)
  local r = recorder(problem, DEFAULT_BUDGET)
  local open = events.queue()
  open:push(problem.bound(problem.state), problem.state)
  while #open > 0 do
    local bound, state = open:pop()
    if bound >= r.cost then
      return r.answer(true)
    end
    if r.full() then
      return r.answer(false)
    end
    r.try(state)
    for _, next_state in ipairs(problem.moves(state)) do
      local next_bound = problem.bound(next_state)
      if next_bound < r.cost then
        open:push(next_bound, next_state)
      end
    end
  end
  return r.answer(true)
end

--- A random walk; accept(increase, share) gives the probability with which a worse state is taken,
-- from the increase of the cost and the share of the budget that is used.
local function walk(problem, accept)
  local r = recorder(problem, RANDOM_BUDGET)
  local random = generator(problem.seed)
  local state = problem.state
  local cost = r.try(state)
  while not r.full() do
    local moves = problem.moves(state)
    if #moves == 0 then
      return r.answer(true)
    end
    local next_state = moves[random(#moves)]
    local next_cost = r.try(next_state)
    if next_cost <= cost or random() < accept(next_cost - cost, r.evaluations / r.limit) then
      state = next_state
      cost = next_cost
    end
  end
  return r.answer(false)
end

--- Simulated annealing: temperature falls geometrically from `hot` to `cold` over the budget.
-- @function search.anneal
-- @tparam table problem {state, moves, cost, budget = 2000, seed = 1, hot = 1, cold = 0.001}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, complete}
-- @units hot and cold in the unit of cost; budget and evaluations are counts
-- @raise errors of moves and cost
-- @usage local search = require "search"
-- local r = search.anneal { state = 50, budget = 500, hot = 10,
--   moves = function(x) return { x - 1, x + 1 } end,
--   cost = function(x) return math.abs(x - 7) end }
-- assert(r.cost < 43 and r.evaluations == 500)
function search.anneal(problem)
  local hot, cold = problem.hot or 1, problem.cold or 0.001
  return walk(problem, function(increase, share)
    local temperature = hot * (cold / hot) ^ share
    return math.exp(-increase / temperature)
  end)
end

--- Metropolis sampling at one temperature, as FlexFlow searches (Jia et al., MLSys 2019).
-- @function search.mcmc
-- @tparam table problem {state, moves, cost, budget = 2000, seed = 1, temperature = 1}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, complete}
-- @units temperature in the unit of cost; budget and evaluations are counts
-- @raise errors of moves and cost
-- @usage local search = require "search"
-- local r = search.mcmc { state = 5, budget = 200, moves = function(x) return { x - 1, x + 1 } end,
--   cost = function(x) return math.abs(x) end }
-- assert(r.cost <= 5)
function search.mcmc(problem)
  local temperature = problem.temperature or 1
  return walk(problem, function(increase) return math.exp(-increase / temperature) end)
end

--- Genetic algorithm over lists: tournaments of two, one cut, one gene in `mutation` changed, the
-- best always lives on.
-- @function search.ga
-- @tparam table problem {values = list of one list of values per gene, cost, budget = 2000, seed =
-- 1, population = 32, mutation = 0.1}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, complete}
-- @units mutation is a probability; budget, population and evaluations are counts
-- @raise errors of cost
-- @usage local search = require "search"
-- local bits = { { 0, 1 }, { 0, 1 }, { 0, 1 }, { 0, 1 } }
-- local r = search.ga { values = bits, budget = 400,
--   cost = function(s) return 4 - s[1] - s[2] - s[3] - s[4] end }
-- assert(r.cost == 0)
function search.ga(problem)
  local r = recorder(problem, RANDOM_BUDGET)
  local random = generator(problem.seed)
  local values = problem.values
  local size, mutation = problem.population or 32, problem.mutation or 0.1
  local function draw(gene)
    return values[gene][random(#values[gene])]
  end
  local people = {}
  for k = 1, size do
    if r.full() then
      return r.answer(false)
    end
    local state = {}
    for gene = 1, #values do
      state[gene] = draw(gene)
    end
    people[k] = { state = state, cost = r.try(state) }
  end
  local function winner()
    local a = people[random(#people)]
    local b = people[random(#people)]
    if a.cost <= b.cost then
      return a.state
    end
    return b.state
  end
  local function child()
    local a = winner()
    local b = winner()
    local cut = random(#values)
    local state = {}
    for gene = 1, #values do
      state[gene] = gene <= cut and a[gene] or b[gene]
      if random() < mutation then
        state[gene] = draw(gene)
      end
    end
    return state
  end
  while not r.full() do
    local young = { { state = r.state or people[1].state, cost = r.cost } }
    while #young < size and not r.full() do
      local state = child()
      young[#young + 1] = { state = state, cost = r.try(state) }
    end
    people = young
  end
  return r.answer(false)
end

--- The child with the largest upper confidence bound (Kocsis and Szepesvári, ECML 2006), one not
-- yet visited first.
local function best_child(node, explore)
  return (search.argmin(node.children, function(child)
    if child.visits == 0 then
      return -math.huge
    end
    local mean = child.reward / child.visits
    return -(mean + explore * math.sqrt(math.log(node.visits) / child.visits))
  end))
end

--- A random finished state that can be reached from this one.
local function random_end(problem, state, random)
  local moves = problem.moves(state)
  while #moves > 0 do
    state = moves[random(#moves)]
    moves = problem.moves(state)
  end
  return state
end

--- Monte-Carlo tree search for states that are built step by step: selection by upper confidence
-- bounds, random play to an end, reward 1 / (1 + cost / best).
-- @function search.mcts
-- @tparam table problem {state, moves, cost = function(finished state), budget = 2000, seed = 1,
-- explore = 1.4}; a state without moves is finished
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, complete}
-- @units any, the caller's; budget and evaluations are counts
-- @raise errors of moves and cost
-- @usage local search = require "search"
-- local r = search.mcts { state = "", budget = 300,
--   moves = function(s) return #s < 4 and { s .. "0", s .. "1" } or {} end,
--   cost = function(s) return 15 - tonumber(s, 2) end }
-- assert(r.state == "1111")
function search.mcts(problem)
  local r = recorder(problem, RANDOM_BUDGET)
  local random = generator(problem.seed)
  local root = { state = problem.state, visits = 0, reward = 0 }
  local function grow(node)
    if node.children then
      return
    end
    node.children = {}
    for i, state in ipairs(problem.moves(node.state)) do
      node.children[i] = { state = state, visits = 0, reward = 0 }
    end
  end
  while not r.full() do
    local node = root
    local path = { root }
    grow(node)
    while node.visits > 0 and #node.children > 0 do
      node = best_child(node, problem.explore or 1.4)
      grow(node)
      path[#path + 1] = node
    end
    local cost = r.try(random_end(problem, node.state, random))
    local reward = 0
    if cost < math.huge then
      reward = 1 / (1 + cost / math.max(math.abs(r.cost), 1e-12))
    end
    for _, visited in ipairs(path) do
      visited.visits = visited.visits + 1
      visited.reward = visited.reward + reward
    end
  end
  return r.answer(false)
end

search.generator = generator
return search
