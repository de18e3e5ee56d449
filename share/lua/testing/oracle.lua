-- Exhaustive search on small cases, beside which self-tests check heuristics.
local chain_program = require "chain_program"
local claims = require "claims"
local search = require "search"

local oracle = {}

--- Simulated seconds of a plan table or handle without violations, else nil.
local function simulated(plan)
  local verdict = hv.plan.new(plan):eval()
  return verdict and #verdict.violations == 0 and verdict.iteration_s or nil
end

--- Runs a heuristic and an exhaustive search on every case and measures their distance.
-- @function oracle.compare
-- @tparam table q {cases = list, solve = function(case) giving a state, states = function(case)
-- giving a list or iterator of all states, cost = function(state, case) giving a number or nil
-- (states are plans and this their simulated seconds)}
-- @treturn table {cases, optimal = how many the heuristic solved to the optimum, worst = largest
-- relative gap, mean = mean gap, wrong = list of {case, got, best}: costs nil or below the optimum}
-- @units gaps are shares of the optimum's cost; costs in the caller's unit
-- @raise errors of the three functions
-- @usage local oracle = require "testing.oracle"
-- local r = oracle.compare { cases = { 3, 4 }, solve = function(n) return n end,
--   states = function(n) return { 1, n } end, cost = function(s) return s end }
-- assert(r.optimal == 0 and r.worst == 3)
function oracle.compare(q)
  local price = q.cost or simulated
  local out = { cases = #q.cases, optimal = 0, worst = 0, mean = 0, wrong = {} }
  for _, case in ipairs(q.cases) do
    local function cost(s)
      return price(s, case)
    end
    local best = search.enumerate { states = q.states(case), cost = cost }.cost
    local state = q.solve(case)
    local got
    if state ~= nil then
      got = cost(state)
    end
    if best == math.huge and state == nil then
      out.optimal = out.optimal + 1
    elseif not got or got < best - 1e-9 * math.abs(best) then
      out.wrong[#out.wrong + 1] = { case = case, got = got, best = best }
    else
      local gap = (got - best) / math.max(math.abs(best), 1e-300)
      out.optimal = out.optimal + (gap <= 1e-9 and 1 or 0)
      out.worst = math.max(out.worst, gap)
      out.mean = out.mean + gap / #q.cases
    end
  end
  return out
end

--- Draws cases and compares the value that an algorithm finds with the least by enumeration.
-- @function oracle.drawn
-- @tparam integer n how many cases
-- @tparam function draw gives a case
-- @tparam function solve solve(case) gives a value, or nil where there is none
-- @tparam function least least(case) gives the least value, math.huge where there is none
-- @treturn table {cases, optimal, worst, mean, wrong} as oracle.compare
-- @units the caller's
-- @raise errors of the three functions
-- @usage local r = require("testing.oracle").drawn(3, function() return { 2, 1 } end,
--   function(case) return case[2] end, function(case) return math.min(case[1], case[2]) end)
-- assert(r.optimal == 3)
function oracle.drawn(n, draw, solve, least)
  local cases = {}
  for i = 1, n do
    cases[i] = draw()
  end
  return oracle.compare { cases = cases, solve = solve,
    states = function(case)
      local best = least(case)
      return best < math.huge and { best } or {}
    end,
    cost = function(value) return value end }
end

--- Checks that an algorithm is exact on 200 random cases.
-- @function oracle.exact
-- @tparam table t {equal, …} of the self-test
-- @tparam string name of the check
-- @tparam string from its source
-- @tparam table q {draw, solve, least}, as oracle.drawn takes them
-- @treturn table {cases, optimal, worst, mean, wrong} as oracle.compare
-- @units the caller's
-- @raise errors of the three functions
-- @usage local oracle = require "testing.oracle"
-- local t = { equal = function(_, got, want) assert(got == want) end }
-- local function one() return 1 end
-- oracle.exact(t, "of one", "by hand", { draw = one, solve = one, least = one })
function oracle.exact(t, name, from, q)
  local found = oracle.drawn(200, q.draw, q.solve, q.least)
  t.equal(name, found.optimal, 200, from)
  t.equal("values below the least", #found.wrong, 0, from)
  return found
end

--- All ways to cut n items into contiguous parts.
-- @function oracle.cuts
-- @tparam integer n items
-- @tparam integer parts how many, each with at least one item
-- @treturn table list of lists of the last item of each part
-- @units none: numbers from 1
-- @raise none
-- @usage assert(#require("testing.oracle").cuts(4, 2) == 3)
function oracle.cuts(n, parts)
  if parts == 1 then
    return { { n } }
  end
  local out = {}
  for last = parts - 1, n - 1 do
    for _, head in ipairs(oracle.cuts(last, parts - 1)) do
      head[#head + 1] = n
      out[#out + 1] = head
    end
  end
  return out
end

--- The problem of hv.opt.partition for n equal layers: parts take times[i] seconds per layer and
-- hold at most most[i] layers (nil: any number).
local function equal_layers(times, n, most)
  local partition = { n = n, parts = #times, load = {}, memory = {}, capacity = {}, sum = 0,
    max = 1 }
  for part, time in ipairs(times) do
    partition.load[part] = {}
    partition.memory[part] = {}
    partition.capacity[part] = most[part] or n
    for layer = 1, n do
      partition.load[part][layer] = time
      partition.memory[part][layer] = 1
    end
  end
  return partition
end

--- The least time P of the longest part of n equal layers, as an integer program over hv.opt.lp.
-- @function oracle.chain_program
-- @tparam table times list of seconds per layer, one per part
-- @tparam integer n layers
-- @tparam table most list of how many layers a part may have, nil for no limit
-- @treturn number P
-- @units seconds
-- @raise as hv.opt.lp
-- @usage assert(math.abs(require("testing.oracle").chain_program({ 1, 2 }, 6, {}) - 4) < 1e-6)
function oracle.chain_program(times, n, most)
  return chain_program.solve(equal_layers(times, n, most)).value
end

--- The same by hv.opt.partition.
-- @function oracle.chain_partition
-- @tparam table times list of seconds per layer, one per part
-- @tparam integer n layers
-- @tparam table most list of how many layers a part may have, nil for no limit
-- @treturn table as hv.opt.partition
-- @units seconds
-- @raise as hv.opt.partition
-- @usage assert(require("testing.oracle").chain_partition({ 1, 2 }, 6, {}).value == 4)
function oracle.chain_partition(times, n, most)
  return hv.opt.partition(equal_layers(times, n, most))
end

--- The least weighted time over all cuts of a list into parts, by enumeration, as
-- hv.opt.partition with `weights` finds it: sum t + (w1 + w2·(k - 1))·t_k + w3·(t_k + …), where k
-- is the rightmost longest part.
-- @function oracle.weighted_cut
-- @tparam table times list of seconds per layer
-- @tparam integer parts how many
-- @tparam function weights weights(parts) gives { w1, w2, w3 }
-- @treturn number the least value
-- @units seconds
-- @raise none
-- @usage local function eq_p() return { 3, 0, 0 } end
-- assert(require("testing.oracle").weighted_cut({ 1, 2, 3 }, 2, eq_p) == 15)
function oracle.weighted_cut(times, parts, weights)
  local own_weights = weights(parts)
  local best = math.huge
  for _, cut in ipairs(oracle.cuts(#times, parts)) do
    local sums = {}
    local first = 1
    for s, last in ipairs(cut) do
      sums[s] = 0
      for layer = first, last do
        sums[s] = sums[s] + times[layer]
      end
      first = last + 1
    end
    best = math.min(best, claims.weighted_s(sums, own_weights))
  end
  return best
end

--- All divisions of 1 … n into equal groups, the groups in order of their least member.
-- @function oracle.divisions
-- @tparam integer n things, a multiple of parts
-- @tparam integer parts how many groups
-- @treturn table list of lists of groups
-- @units none: numbers from 1
-- @raise none
-- @usage assert(#require("testing.oracle").divisions(4, 2) == 3)
function oracle.divisions(n, parts)
  local list = {}
  local groups = {}
  for s = 1, parts do
    groups[s] = {}
  end
  local n_opened = 0 -- groups that have a member; a thing opens at most the next one
  local function put(v)
    if v > n then
      list[#list + 1] = {}
      for s = 1, parts do
        list[#list][s] = { table.unpack(groups[s]) }
      end
      return
    end
    for s = 1, math.min(parts, n_opened + 1) do
      if #groups[s] < n // parts then
        local before = n_opened
        n_opened = math.max(n_opened, s)
        table.insert(groups[s], v)
        put(v + 1)
        table.remove(groups[s])
        n_opened = before
      end
    end
  end
  put(1)
  return list
end

--- The least Eq-P (claims.pipeline_s) where every stage takes one of its times, by enumeration.
-- @function oracle.least_pipeline
-- @tparam table times list per stage of a table of times, by any key
-- @tparam integer micro_batches M
-- @treturn number the least time of the pipeline
-- @units seconds
-- @raise none
-- @usage assert(require("testing.oracle").least_pipeline({ { 5, 3 }, { 6, 9 } }, 4) == 27)
function oracle.least_pipeline(times, micro_batches)
  local lists = {}
  for s, own in ipairs(times) do
    lists[s] = {}
    for _, time in pairs(own) do
      table.insert(lists[s], time)
    end
  end
  local least = math.huge
  for stage_s in search.product(lists) do
    least = math.min(least, (claims.pipeline_s(stage_s, micro_batches)))
  end
  return least
end

return oracle
