-- Learned choices without a neural network: a table of logits per decision, trained by policy
-- gradients. Enough for placements and orders of a few dozen decisions.
-- Library: heterps is its one user so far; systems that learn placements need it next.
local search = require "search"

local policy = {}

--- Probabilities from logits, without overflow.
-- @function policy.softmax
-- @tparam table logits list of numbers
-- @tparam[opt] number temperature 1: as they are; smaller: sharper
-- @treturn table list of probabilities that sum to 1
-- @units shares
-- @raise none
-- @usage local p = require("learn.policy").softmax { 0, 0 }
-- assert(p[1] == 0.5)
function policy.softmax(logits, temperature)
  local most = -math.huge
  for _, x in ipairs(logits) do
    most = math.max(most, x)
  end
  local out, sum = {}, 0
  for i, x in ipairs(logits) do
    out[i] = math.exp((x - most) / (temperature or 1))
    sum = sum + out[i]
  end
  for i = 1, #out do
    out[i] = out[i] / sum
  end
  return out
end

--- Index drawn with the given probabilities.
-- @function policy.draw
-- @tparam function random a generator of search.generator
-- @tparam table probabilities list of shares that sum to 1
-- @treturn integer index
-- @units shares
-- @raise none
-- @usage assert(require("learn.policy").draw(require("search").generator(1), { 0, 1 }) == 2)
function policy.draw(random, probabilities)
  local x = random()
  for i, p in ipairs(probabilities) do
    x = x - p
    if x < 0 then
      return i
    end
  end
  return #probabilities
end

--- Adds weight · (hit − probability) to the gradient of every logit; hit is 1 for the chosen value,
-- else 0.
local function add_gradient(gradient, state, probabilities, weight)
  for i, chosen in ipairs(state) do
    for k, p in ipairs(probabilities[i]) do
      local hit = k == chosen and 1 or 0
      gradient[i][k] = gradient[i][k] + weight * (hit - p)
    end
  end
end

--- Logarithm of the probability of a state now over that when it was drawn.
local function log_ratio(state, now, before)
  local sum = 0
  for i, chosen in ipairs(state) do
    sum = sum + math.log(now[i][chosen]) - math.log(before[i][chosen])
  end
  return sum
end

--- Probabilities of every decision.
local function all_softmax(logits)
  local out = {}
  for i, row in ipairs(logits) do
    out[i] = policy.softmax(row)
  end
  return out
end

--- Advantages of a batch: by how many standard deviations a cost is below the mean; −2 for states
-- without a cost.
local function advantages(costs)
  local mean, n = 0, 0
  for _, cost in ipairs(costs) do
    if cost < math.huge then
      mean = mean + cost
      n = n + 1
    end
  end
  mean = mean / math.max(n, 1)
  local variance = 0
  for _, cost in ipairs(costs) do
    if cost < math.huge then
      variance = variance + (cost - mean) ^ 2
    end
  end
  local deviation = math.sqrt(variance / math.max(n, 1))
  local out = {}
  for i, cost in ipairs(costs) do
    if cost == math.huge then
      out[i] = -2
    elseif deviation > 0 then
      out[i] = (mean - cost) / deviation
    else
      out[i] = 0
    end
  end
  return out
end

--- One value of every decision, drawn.
local function drawn_state(random, probabilities)
  local state = {}
  for i, row in ipairs(probabilities) do
    state[i] = policy.draw(random, row)
  end
  return state
end

--- Logits of 0 for every value of every decision.
local function zero_logits(choices)
  local logits = {}
  for i, n in ipairs(choices) do
    logits[i] = {}
    for k = 1, n do
      logits[i][k] = 0
    end
  end
  return logits
end

--- Draws a batch, then calls update(logits, states, probabilities, advantages), until the budget
-- ends.
local function train(problem, update)
  local random, logits = search.generator(problem.seed), zero_logits(problem.choices)
  local out = { cost = math.huge, evaluations = 0, trace = {}, complete = false }
  local budget, batch = problem.budget or 1000, problem.batch or 16
  while out.evaluations < budget do
    local probabilities = all_softmax(logits)
    local states, costs = {}, {}
    for b = 1, math.min(batch, budget - out.evaluations) do
      local state = drawn_state(random, probabilities)
      local cost = problem.cost(state) or math.huge
      out.evaluations = out.evaluations + 1
      states[b] = state
      costs[b] = cost
      if cost < out.cost then
        out.state = state
        out.cost = cost
        out.trace[#out.trace + 1] = { out.evaluations, cost }
      end
    end
    update(logits, states, probabilities, advantages(costs))
  end
  out.probabilities = all_softmax(logits)
  return out
end

--- Zeros in the shape of rows.
-- @function policy.zeros
-- @tparam table rows list of lists of numbers
-- @treturn table list of lists of 0
-- @units none
-- @raise none
-- @usage assert(#require("learn.policy").zeros({ { 1, 2 } })[1] == 2)
function policy.zeros(rows)
  local out = {}
  for i, row in ipairs(rows) do
    out[i] = {}
    for k = 1, #row do
      out[i][k] = 0
    end
  end
  return out
end

--- A step of gradient ascent.
local function step(logits, gradient, rate)
  for i, row in ipairs(gradient) do
    for k, g in ipairs(row) do
      logits[i][k] = logits[i][k] + rate * g
    end
  end
end

--- The likeliest value of every decision; ties go to the first.
-- @function policy.likeliest
-- @tparam table probabilities list of lists, as policy.reinforce and its kin give them
-- @treturn table list of numbers from 1: the state that the policy thinks best
-- @units shares
-- @raise none
-- @usage assert(require("learn.policy").likeliest({ { 0.2, 0.7, 0.1 } })[1] == 2)
function policy.likeliest(probabilities)
  local state = {}
  for i, row in ipairs(probabilities) do
    local best = 1
    for k = 2, #row do
      if row[k] > row[best] then
        best = k
      end
    end
    state[i] = best
  end
  return state
end

--- Policy gradient with the batch's mean as baseline (Williams, Machine Learning 8, 1992).
-- @function policy.reinforce
-- @tparam table problem {choices = list of how many values each decision has, cost = function(list
-- of chosen numbers from 1), budget = 1000, batch = 16, rate = 0.3, seed = 1}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, probabilities =
-- list of lists}
-- @units any, the caller's; probabilities are shares; budget, batch and evaluations are counts
-- @raise errors of cost
-- @usage local r = require("learn.policy").reinforce { choices = { 3, 3 },
--   cost = function(s) return math.abs(s[1] - 2) + math.abs(s[2] - 3) end, budget = 300 }
-- assert(r.cost == 0)
function policy.reinforce(problem)
  return train(problem, function(logits, states, probabilities, advantage)
    local gradient = policy.zeros(logits)
    for b, state in ipairs(states) do
      add_gradient(gradient, state, probabilities, advantage[b] / #states)
    end
    step(logits, gradient, problem.rate or 0.3)
  end)
end

--- Policy gradient as HeterPS trains it (Liu et al., FGCS 148, 2023, section 5): rewards −cost, the
-- gradient summed over a batch, the baseline following the batches' means.
-- @function policy.moving
-- @tparam table problem {choices = list of how many values each decision has, cost = function(list
-- of chosen numbers from 1), penalty = cost where it is nil, budget = 1000, batch = 16, rate =
-- 0.003, gamma = 0.1: how fast the baseline follows, seed = 1}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, probabilities =
-- list of lists}
-- @units any, the caller's; probabilities are shares; budget, batch and evaluations are counts
-- @raise errors of cost
-- @usage local r = require("learn.policy").moving { choices = { 3, 3 }, penalty = 9, rate = 0.1,
--   cost = function(s) return math.abs(s[1] - 2) + math.abs(s[2] - 3) end, budget = 300 }
-- assert(r.cost == 0)
function policy.moving(problem)
  local gamma = problem.gamma or 0.1
  local baseline
  local rewards = {} -- of the current batch
  local function rewarded_cost(state)
    local cost = problem.cost(state)
    rewards[#rewards + 1] = -(cost or problem.penalty)
    return cost
  end
  local rewarded = setmetatable({ cost = rewarded_cost }, { __index = problem })
  return train(rewarded, function(logits, states, probabilities)
    local mean, gradient = 0, policy.zeros(logits)
    for _, r in ipairs(rewards) do
      mean = mean + r / #rewards
    end
    baseline = baseline or mean
    for b, state in ipairs(states) do
      add_gradient(gradient, state, probabilities, rewards[b] - baseline)
    end
    step(logits, gradient, problem.rate or 0.003)
    baseline = (1 - gamma) * baseline + gamma * mean
    rewards = {}
  end)
end

--- Proximal policy optimisation with clipped ratios (Schulman et al., arXiv 1707.06347).
-- @function policy.ppo
-- @tparam table problem {choices = list of how many values each decision has, cost, budget = 1000,
-- batch = 16, rate = 0.3, epochs = 4, clip = 0.2, seed = 1}
-- @treturn table {state, cost, evaluations, trace = list of {evaluation, cost}, probabilities =
-- list of lists}
-- @units any, the caller's; probabilities are shares; budget, batch, epochs and evaluations are
-- counts
-- @raise errors of cost
-- @usage local r = require("learn.policy").ppo { choices = { 3, 3 },
--   cost = function(s) return math.abs(s[1] - 2) + math.abs(s[2] - 3) end, budget = 300 }
-- assert(r.cost == 0)
function policy.ppo(problem)
  local clip = problem.clip or 0.2
  return train(problem, function(logits, states, before, advantage)
    for _ = 1, problem.epochs or 4 do
      local now, gradient = all_softmax(logits), policy.zeros(logits)
      for b, state in ipairs(states) do
        local ratio = math.exp(log_ratio(state, now, before))
        local own = advantage[b]
        local clipped = own > 0 and ratio > 1 + clip or own < 0 and ratio < 1 - clip
        if not clipped then
          add_gradient(gradient, state, now, ratio * own / #states)
        end
      end
      step(logits, gradient, problem.rate or 0.3)
    end
  end)
end

return policy
