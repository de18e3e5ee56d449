-- Cells of Crius (Xue et al., arXiv 2403.16125): a job on so many GPUs of one type in so many
-- stages, of which only data or tensor parallelism inside each stage is open; their estimate and
-- their tuning. Which job of a queue gets which cell is queue.lua.
local claims = require "claims"
local numbers = require "numbers"
local search = require "search"

local cells = {}

--- GPUs of S stages with these loads: powers of two, doubled where most work is left per GPU, all
-- of G.
-- @function cells.gpus
-- @tparam table loads list of the work of each stage
-- @tparam integer G how many GPUs
-- @treturn table list of GPUs per stage; nil when powers of two do not add up to G
-- @units any for loads
-- @raise none
-- @usage assert(table.concat(require("cells").gpus({ 2, 1, 1 }, 4), " ") == "2 1 1")
function cells.gpus(loads, G)
  local count, left = {}, G - #loads
  for s = 1, #loads do
    count[s] = 1
  end
  while left > 0 do
    local at
    for s = 1, #loads do
      if count[s] <= left and (not at or loads[s] / count[s] > loads[at] / count[at]) then
        at = s
      end
    end
    if not at then
      return nil
    end
    left, count[at] = left - count[at], 2 * count[at]
  end
  return left == 0 and count or nil
end

--- Eq-P of chosen stage times: Σ + (M − 1) · longest.
local function plan_s(q, choice)
  local times = {}
  for s, c in ipairs(choice) do
    times[s] = q.price(s, c[1], c[2])
    if not times[s] then
      return nil
    end
  end
  return (claims.pipeline_s(times, q.micro_batches))
end

--- The estimate: every stage all data parallel or all tensor parallel, the best of these at most
-- 2^S plans.
-- @function cells.estimate
-- @tparam table q {gpus = per stage, micro_batches, price = function(stage, dp, tp) giving the
-- seconds of a micro-batch with its share of the exchange, or nil where it does not fit}
-- @treturn table {seconds, choice = {dp, tp} per stage, plans = how many were put together}; nil
-- when none fits
-- @units seconds
-- @raise errors of price
-- @usage local r = require("cells").estimate { gpus = { 2 }, micro_batches = 1,
--   price = function(_, dp, tp) return dp > tp and 1 or 2 end }
-- assert(r.seconds == 1 and r.plans == 2)
function cells.estimate(q)
  local values, first = {}, {}
  for s, g in ipairs(q.gpus) do
    values[s] = {}
    for _, c in ipairs(g > 1 and { { g, 1 }, { 1, g } } or { { 1, 1 } }) do
      if q.price(s, c[1], c[2]) then
        table.insert(values[s], c)
      end
    end
    if #values[s] == 0 then
      return nil
    end
    first[s] = values[s][1]
  end
  local function cost(choice)
    return plan_s(q, choice)
  end
  local r
  if #q.gpus <= 10 then
    r = search.enumerate { states = search.product(values), cost = cost }
  else
    r = search.coordinate { state = first, values = values, cost = cost }
  end
  return r.state and { seconds = r.cost, choice = r.state, plans = r.evaluations }
end

--- The tuner: where a stage is better all data parallel, hybrids with dp ≥ tp are tried, else those
-- with tp ≥ dp.
-- @function cells.tune
-- @tparam table q with the keys of cells.estimate
-- @treturn table {seconds, choice}; nil when none fits
-- @units seconds
-- @raise errors of price
-- @usage local q = { gpus = { 1 }, micro_batches = 2, price = function() return 3 end }
-- assert(require("cells").tune(q).seconds == 6)
function cells.tune(q)
  local start, values = cells.estimate(q), {}
  if not start then
    return nil
  end
  for s, g in ipairs(q.gpus) do
    local by_data, by_tensor = q.price(s, g, 1) or math.huge, q.price(s, 1, g) or math.huge
    values[s] = {}
    for _, tp in ipairs(numbers.divisors(g)) do
      local dp = g // tp
      local half = by_data <= by_tensor and dp >= tp or by_data > by_tensor and tp >= dp
      if half and q.price(s, dp, tp) then
        table.insert(values[s], { dp, tp })
      end
    end
    table.insert(values[s], start.choice[s])
  end
  local r = search.coordinate { state = start.choice, values = values,
    cost = function(c) return plan_s(q, c) end }
  return { seconds = r.cost, choice = r.state }
end

return cells
