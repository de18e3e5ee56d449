-- Checks a heuristic beside exhaustive search on cases small enough for it.
local search = require "search"

local oracle = {}

--- Runs a heuristic and an exhaustive search on every case and says how far the heuristic is off.
-- @function oracle.compare
-- @tparam table q {cases = list, solve = function(case) giving a state, states = function(case) giving a
-- list or iterator of all states, cost = function(state, case) giving a number or nil}
-- @treturn table {cases, optimal = how many the heuristic solved to the optimum, worst = largest
-- relative gap, mean = mean gap, wrong = list of {case, got, best}: costs nil or below the optimum}
-- @units gaps are shares of the optimum's cost; costs in the caller's unit
-- @raise errors of the three functions
-- @usage local oracle = require "oracle"
-- local r = oracle.compare { cases = { 3, 4 }, solve = function(n) return n end,
--   states = function(n) return { 1, n } end, cost = function(s) return s end }
-- assert(r.optimal == 0 and r.worst == 3)
function oracle.compare(q)
  local out = { cases = #q.cases, optimal = 0, worst = 0, mean = 0, wrong = {} }
  for _, case in ipairs(q.cases) do
    local function cost(s) return q.cost(s, case) end
    local best = search.enumerate { states = q.states(case), cost = cost }.cost
    local state = q.solve(case)
    local got = state ~= nil and cost(state) or nil
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

--- All ways to cut n items into contiguous parts.
-- @function oracle.cuts
-- @tparam integer n items
-- @tparam integer parts how many, each with at least one item
-- @treturn table list of lists of the last item of each part
-- @units none: numbers from 1
-- @raise none
-- @usage assert(#require("oracle").cuts(4, 2) == 3)
function oracle.cuts(n, parts)
  if parts == 1 then return { { n } } end
  local out = {}
  for last = parts - 1, n - 1 do
    for _, head in ipairs(oracle.cuts(last, parts - 1)) do
      head[#head + 1] = n
      out[#out + 1] = head
    end
  end
  return out
end

--- All permutations of 1 … n, in lexical order.
-- @function oracle.permutations
-- @tparam integer n how many, at most 9
-- @treturn table list of lists
-- @units none: numbers from 1
-- @raise n above 9
-- @usage assert(#require("oracle").permutations(4) == 24)
function oracle.permutations(n)
  if n > 9 then error("oracle.permutations: expected at most 9, found " .. n, 2) end
  local out, now, used = {}, {}, {}
  local function place(k)
    if k > n then
      out[#out + 1] = { table.unpack(now) }
      return
    end
    for i = 1, n do
      if not used[i] then
        used[i], now[k] = true, i
        place(k + 1)
        used[i] = nil
      end
    end
  end
  place(1)
  return out
end

--- All divisions of 1 … n into equal groups, the groups in order of their least member.
-- @function oracle.divisions
-- @tparam integer n things, a multiple of parts
-- @tparam integer parts how many groups
-- @treturn table list of lists of groups
-- @units none: numbers from 1
-- @raise none
-- @usage assert(#require("oracle").divisions(4, 2) == 3)
function oracle.divisions(n, parts)
  local list, now, opened = {}, {}, 0
  local function put(v)
    if v > n then
      list[#list + 1] = {}
      for s = 1, parts do list[#list][s] = { table.unpack(now[s]) } end
      return
    end
    for s = 1, math.min(parts, opened + 1) do
      local fresh = s > opened
      now[s], opened = now[s] or {}, math.max(opened, s)
      if #now[s] < n // parts then
        table.insert(now[s], v)
        put(v + 1)
        table.remove(now[s])
      end
      if fresh then opened = opened - 1 end
    end
  end
  put(1)
  return list
end

return oracle
