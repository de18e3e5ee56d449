-- Bayesian optimisation of a row of choices: a Gaussian process over how many choices differ, the
-- next point by the improvement that it expects (Mockus 1978; Jones, Schonlau and Welch, Journal of
-- Global Optimization 13, 1998).
-- Library: heterps is its one user so far; placement by learned search needs it next.
local search = require "search"

local bayes = {}

local MOST = 60 -- points of the process: the time of a candidate grows with their square
local CANDIDATES = 16 -- for each evaluation, half of them near the best state

--- The kernel: falls with the share of choices that differ between two rows.
local function kernel(a, b)
  local different = 0
  for i, x in ipairs(a) do
    if b[i] ~= x then
      different = different + 1
    end
  end
  return math.exp(-3 * different / #a)
end

--- Adds a point with its value: the next row of the Cholesky factor L of the kernel matrix with a
-- little noise. gp = {points, factor = rows of L, y}.
local function add_point(gp, point, y)
  local n, row = #gp.points + 1, {}
  for i = 1, n - 1 do
    local sum = kernel(point, gp.points[i])
    for k = 1, i - 1 do
      sum = sum - row[k] * gp.factor[i][k]
    end
    row[i] = sum / gp.factor[i][i]
  end
  local left = 1 + 1e-6
  for k = 1, n - 1 do
    left = left - row[k] ^ 2
  end
  row[n] = math.sqrt(math.max(left, 1e-9))
  gp.points[n] = point
  gp.factor[n] = row
  gp.y[n] = y
end

--- L⁻¹ v by forward substitution.
local function solved(gp, v)
  local out = {}
  for i = 1, #gp.points do
    local sum = v[i]
    for k = 1, i - 1 do
      sum = sum - gp.factor[i][k] * out[k]
    end
    out[i] = sum / gp.factor[i][i]
  end
  return out
end

--- Density and distribution function of the standard normal distribution (Zelen and Severo,
-- Handbook of Mathematical Functions 26.2.17).
local function normal(z)
  local density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
  local t = 1 / (1 + 0.2316419 * math.abs(z))
  local last = 1.781477937 + t * (-1.821255978 + t * 1.330274429)
  local tail = density * t * (0.319381530 + t * (-0.356563782 + t * last))
  if z > 0 then
    return density, 1 - tail
  end
  return density, tail
end

--- The expected improvement below `best` at a point. The values of the process: mean, spread =
-- standard deviation, a = L⁻¹ (y − mean) / spread.
local function expected_improvement(gp, values, best, point)
  local k = {}
  for i, other in ipairs(gp.points) do
    k[i] = kernel(point, other)
  end
  local at, variance = values.mean, 1
  for i, x in ipairs(solved(gp, k)) do
    at = at + values.spread * x * values.a[i]
    variance = variance - x * x
  end
  local deviation = values.spread * math.sqrt(math.max(variance, 1e-12))
  local density, below = normal((best - at) / deviation)
  return (best - at) * below + deviation * density
end

--- Mean, spread and a of the values so far, as expected_improvement takes them.
local function values_of(gp)
  local n, mean, variance = #gp.y, 0, 0
  for _, y in ipairs(gp.y) do
    mean = mean + y / n
  end
  for _, y in ipairs(gp.y) do
    variance = variance + (y - mean) ^ 2 / n
  end
  local spread = math.max(math.sqrt(variance), 1e-12)
  local scaled = {}
  for i, y in ipairs(gp.y) do
    scaled[i] = (y - mean) / spread
  end
  return { mean = mean, spread = spread, a = solved(gp, scaled) }
end

--- A candidate: every choice drawn, or the best state so far with one or two draws changed.
local function candidate(random, choices, best)
  local out = {}
  if not best then
    for i, n in ipairs(choices) do
      out[i] = random(n)
    end
    return out
  end
  table.move(best, 1, #choices, 1, out)
  for _ = 1, 1 + random(2) do
    local i = random(#choices)
    out[i] = random(choices[i])
  end
  return out
end

--- A point as the key of a table.
local function key_of(point)
  return table.concat(point, " ")
end

--- Searches a row of choices.
-- @function bayes.search
-- @tparam table q {choices = list of how many values each decision has, cost = function(list of
-- chosen numbers from 1), penalty = cost where it is nil, budget = 60, first = 10 drawn before the
-- process is asked, seed}
-- @treturn table {state, cost, evaluations}; at most 60 evaluations
-- @units any, the caller's
-- @raise errors of cost
-- @usage local r = require("learn.bayes").search {
--   choices = { 3, 3, 3 }, penalty = 99, seed = 1, budget = 27,
--   cost = function(s) return math.abs(s[1] - 2) + math.abs(s[2] - 3) + s[3] end }
-- assert(r.cost == 1)
function bayes.search(q)
  local random, seen, gp = search.generator(q.seed), {}, { points = {}, factor = {}, y = {} }
  local out = { cost = math.huge, evaluations = 0 }
  local budget, first = math.min(q.budget or MOST, MOST), q.first or 10
  local function evaluate(point)
    local cost = q.cost(point)
    out.evaluations = out.evaluations + 1
    seen[key_of(point)] = true
    if cost and cost < out.cost then
      out.state = point
      out.cost = cost
    end
    add_point(gp, point, cost or q.penalty)
  end
  --- The new candidate of largest expected improvement; nil where all are known.
  local function next_point()
    local values = values_of(gp)
    local best = math.min(out.cost, q.penalty)
    local pick, most = nil, -1
    for k = 1, CANDIDATES do
      local near_best = k > CANDIDATES // 2
      local point = candidate(random, q.choices, near_best and out.state or nil)
      if not seen[key_of(point)] then
        local gain = 0
        if #gp.y >= first then
          gain = expected_improvement(gp, values, best, point)
        end
        if gain > most then
          pick = point
          most = gain
        end
      end
    end
    return pick
  end
  while out.evaluations < budget do
    local point = next_point()
    if not point then
      break
    end
    evaluate(point)
  end
  return out
end

return bayes
