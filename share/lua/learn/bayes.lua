-- Bayesian optimisation of a row of choices: a Gaussian process over how many choices differ, the
-- next point by the improvement that it expects (Mockus 1978; Jones, Schonlau and Welch, Journal of
-- Global Optimization 13, 1998).
-- Library: heterps is its one user so far; placement by learned search needs it next.
local search = require "search"

local bayes = {}

local MOST = 60 -- points the process remembers: a candidate costs their square
local CANDIDATES = 16 -- looked at per evaluation, half of them near the best

--- How alike two rows of choices are: falls with the share of them that differ.
local function alike(a, b)
  local apart = 0
  for i, x in ipairs(a) do
    apart = apart + (b[i] ~= x and 1 or 0)
  end
  return math.exp(-3 * apart / #a)
end

--- Adds the next row of Cholesky's factor L of the kernel with a little noise, and of L⁻¹ y.
local function add_point(gp, point, y)
  local n, row = #gp.points + 1, {}
  for i = 1, n - 1 do
    local sum = alike(point, gp.points[i])
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
  gp.points[n], gp.factor[n], gp.y[n] = point, row, y
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

--- Normal density and distribution (Zelen and Severo, Handbook of Mathematical Functions 26.2.17).
local function normal(z)
  local density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
  local t = 1 / (1 + 0.2316419 * math.abs(z))
  local last = 1.781477937 + t * (-1.821255978 + t * 1.330274429)
  local tail = density * t * (0.319381530 + t * (-0.356563782 + t * last))
  return density, z > 0 and 1 - tail or tail
end

--- The improvement below `best` that the process expects at a point; `a` = L⁻¹ (y − mean).
local function expected(gp, a, mean, spread, best, point)
  local k, left = {}, 1
  for i, p in ipairs(gp.points) do
    k[i] = alike(point, p)
  end
  local v, at = solved(gp, k), mean
  for i, x in ipairs(v) do
    at, left = at + spread * x * a[i], left - x * x
  end
  local deviation = spread * math.sqrt(math.max(left, 1e-12))
  local density, share = normal((best - at) / deviation)
  return (best - at) * share + deviation * density
end

--- Candidates: drawn anew, or the best so far with one or two choices changed.
local function candidate(random, choices, best)
  local out = {}
  for i, n in ipairs(choices) do
    out[i] = best and best[i] or random(n)
  end
  for _ = 1, best and 1 + random(2) or 0 do
    local i = random(#choices)
    out[i] = random(choices[i])
  end
  return out
end

--- Searches a row of choices.
-- @function bayes.search
-- @tparam table q {choices = list of how many values each decision has, cost = function(list of
-- chosen numbers from 1), penalty = cost where it is nil, budget = 60, first = 10 drawn before the
-- process is asked, seed}
-- @treturn table {state, cost, evaluations}; at most 60 evaluations
-- @units any, the caller's
-- @raise errors of cost
-- @usage local r = require("learn.bayes").search { choices = { 3, 3, 3 }, penalty = 99, seed = 1, budget = 27,
--   cost = function(s) return math.abs(s[1] - 2) + math.abs(s[2] - 3) + s[3] end }
-- assert(r.cost == 1)
function bayes.search(q)
  local random, seen, gp = search.generator(q.seed), {}, { points = {}, factor = {}, y = {} }
  local out = { cost = math.huge, evaluations = 0 }
  local function try(point)
    local cost = q.cost(point)
    out.evaluations, seen[table.concat(point, " ")] = out.evaluations + 1, true
    if cost and cost < out.cost then
      out.state, out.cost = point, cost
    end
    add_point(gp, point, cost or q.penalty)
  end
  local budget = math.min(q.budget or MOST, MOST)
  while out.evaluations < budget do
    local n, mean, spread, pick, most = #gp.y, 0, 0, nil, -1
    for _, y in ipairs(gp.y) do
      mean = mean + y / n
    end
    for _, y in ipairs(gp.y) do
      spread = spread + (y - mean) ^ 2 / n
    end
    spread = math.max(math.sqrt(spread), 1e-12)
    local scaled = {}
    for i, y in ipairs(gp.y) do
      scaled[i] = (y - mean) / spread
    end
    local a, best = solved(gp, scaled), math.min(out.cost, q.penalty)
    for k = 1, CANDIDATES do
      local point = candidate(random, q.choices, k > CANDIDATES // 2 and out.state or nil)
      local fresh = not seen[table.concat(point, " ")]
      local gain = fresh and (n < (q.first or 10) and 0
          or expected(gp, a, mean, spread, best, point)) or -1
      if fresh and gain > most then
        pick, most = point, gain
      end
    end
    -- hardly anything is left
    if not pick then
      break
    end
    try(pick)
  end
  return out
end

return bayes
