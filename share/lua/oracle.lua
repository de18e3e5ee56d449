-- Checks a heuristic beside exhaustive search on cases small enough for it.
local layout = require "layout"
local programs = require "programs"
local search = require "search"

local oracle = {}

--- Simulated seconds of a plan table or handle without violations, else nil.
local function simulated(plan)
  local verdict = hv.plan.new(plan):eval()
  return verdict and #verdict.violations == 0 and verdict.iteration_s or nil
end

--- Runs a heuristic and an exhaustive search on every case and says how far the heuristic is off.
-- @function oracle.compare
-- @tparam table q {cases = list, solve = function(case) giving a state, states = function(case) giving a
-- list or iterator of all states, cost = function(state, case) giving a number or nil (states are plans
-- and this their simulated seconds)}
-- @treturn table {cases, optimal = how many the heuristic solved to the optimum, worst = largest
-- relative gap, mean = mean gap, wrong = list of {case, got, best}: costs nil or below the optimum}
-- @units gaps are shares of the optimum's cost; costs in the caller's unit
-- @raise errors of the three functions
-- @usage local oracle = require "oracle"
-- local r = oracle.compare { cases = { 3, 4 }, solve = function(n) return n end,
--   states = function(n) return { 1, n } end, cost = function(s) return s end }
-- assert(r.optimal == 0 and r.worst == 3)
function oracle.compare(q)
  local price = q.cost or simulated
  local out = { cases = #q.cases, optimal = 0, worst = 0, mean = 0, wrong = {} }
  for _, case in ipairs(q.cases) do
    local function cost(s) return price(s, case) end
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

--- n equal layers in parts of different speed that may hold so many.
local function equal_layers(times, n, most)
  local p = { n = n, parts = #times, load = {}, memory = {}, capacity = {}, sum = 0, max = 1 }
  for q, t in ipairs(times) do
    p.load[q], p.memory[q], p.capacity[q] = {}, {}, most[q] or n
    for l = 1, n do p.load[q][l], p.memory[q][l] = t, 1 end
  end
  return p
end

--- min max over parts of n equal layers, as an integer program over hv.opt.lp.
-- @function oracle.chain_program
-- @tparam table times list of seconds per layer, one per part
-- @tparam integer n layers
-- @tparam table most list of how many layers a part may have, nil for no limit
-- @treturn number P
-- @units seconds
-- @raise as hv.opt.lp
-- @usage assert(math.abs(require("oracle").chain_program({ 1, 2 }, 6, {}) - 4) < 1e-6)
function oracle.chain_program(times, n, most) return programs.chain(equal_layers(times, n, most)).value end

--- The same by hv.opt.partition.
-- @function oracle.chain_partition
-- @tparam table times list of seconds per layer, one per part
-- @tparam integer n layers
-- @tparam table most list of how many layers a part may have, nil for no limit
-- @treturn table as hv.opt.partition
-- @units seconds
-- @raise as hv.opt.partition
-- @usage assert(require("oracle").chain_partition({ 1, 2 }, 6, {}).value == 4)
function oracle.chain_partition(times, n, most) return hv.opt.partition(equal_layers(times, n, most)) end

--- min over all cuts of a list into parts of sum t + (w1 + w2·(k - 1))·t_k + w3·(t_k + …), k the rightmost
-- largest part: what hv.opt.partition does with `weights`, by trying all of them.
-- @function oracle.weighted_cut
-- @tparam table times list of seconds per layer
-- @tparam integer parts how many
-- @tparam function weights weights(parts) gives { w1, w2, w3 }
-- @treturn number the least value
-- @units seconds
-- @raise none
-- @usage local function eq_p() return { 3, 0, 0 } end
-- assert(require("oracle").weighted_cut({ 1, 2, 3 }, 2, eq_p) == 15)
function oracle.weighted_cut(times, parts, weights)
  local best, w = math.huge, weights(parts)
  for _, cut in ipairs(oracle.cuts(#times, parts)) do
    local sums, from = {}, 1
    for s, last in ipairs(cut) do
      sums[s] = 0
      for layer = from, last do
        sums[s] = sums[s] + times[layer]
      end
      from = last + 1
    end
    best = math.min(best, layout.weighted_s(sums, w))
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

--- The least Eq-P (layout.pipeline_s) where every stage takes one of its times, by trying all combinations.
-- @function oracle.least_pipeline
-- @tparam table times list per stage of a table of times, by any key
-- @tparam integer micro_batches M
-- @treturn number the least time of the pipeline
-- @units seconds
-- @raise none
-- @usage assert(require("oracle").least_pipeline({ { 5, 3 }, { 6, 9 } }, 4) == 27)
function oracle.least_pipeline(times, micro_batches)
  local lists, least = {}, math.huge
  for s, own in ipairs(times) do
    lists[s] = {}
    for _, t in pairs(own) do table.insert(lists[s], t) end
  end
  for stage_s in search.product(lists) do
    least = math.min(least, (layout.pipeline_s(stage_s, micro_batches)))
  end
  return least
end

--- Do two parts of a schedule use a device at the same time?
local function collide(p, u)
  local apart = p.at + p.cell.gpus <= u.at or u.at + u.cell.gpus <= p.at
  return not apart and u.cell.type == p.cell.type and u.start_s < p.end_s and p.start_s < u.end_s
end

--- Which rule of any schedule a played queue breaks: every job ends with its work done, none begins before its
-- arrival, no device is used twice at a time.
-- @function oracle.queue_fault
-- @tparam table jobs list of {arrival_s, work = iterations}
-- @tparam table played list per job of {parts = list of {start_s, end_s, iterations, cell = {type, gpus}, at}, start_s,
-- end_s}, as job_queue.play gives it
-- @treturn string what is wrong; nil where all rules are kept
-- @units seconds; slots from 1
-- @raise none
-- @usage local r = { { parts = {} } }
-- assert(require("oracle").queue_fault({ { arrival_s = 0, work = 1 } }, r) == "job 1 never ends")
function oracle.queue_fault(jobs, played)
  local uses = {}
  for i, row in ipairs(played) do
    local done = 0
    if not row.end_s then return ("job %d never ends"):format(i) end
    if row.start_s < jobs[i].arrival_s then return ("job %d begins before its arrival"):format(i) end
    for _, p in ipairs(row.parts) do
      done = done + p.iterations
      for _, u in ipairs(uses) do
        if collide(p, u) then return ("job %d has a device that is taken"):format(i) end
      end
      uses[#uses + 1] = p
    end
    if done ~= jobs[i].work then return ("job %d does not do its work"):format(i) end
  end
end

--- Checks units dealt out by `loads`: do they add up, each item inside its cap where the dealing says so, and does it
-- say so exactly where all caps together hold the total?
-- @function oracle.dealt
-- @tparam table items list of {fixed, unit, cap, n}
-- @tparam integer total how many units were dealt
-- @tparam boolean ok what loads.deal said: nil where the units do not fit
-- @treturn boolean the units are kept and fit; then a boolean: it said the right thing
-- @units any, the same for fixed, unit and cap
-- @raise none
-- @usage local items = { { fixed = 1, unit = 2, cap = 7, n = 3 } }
-- assert(require("oracle").dealt(items, 3, true) and not select(2, require("oracle").dealt(items, 3, nil)))
function oracle.dealt(items, total, ok)
  local sum, room, over = 0, 0, false
  for _, item in ipairs(items) do
    sum, room = sum + item.n, room + math.max(0, (item.cap - item.fixed) // item.unit)
    over = over or item.n > 0 and item.fixed + item.n * item.unit > item.cap
  end
  return sum == total and not (ok and over), (ok ~= nil) == (total <= room)
end

--- Least of the largest steady_i x n_i over whole numbers n_i of 1 and more with the sum of count_i x n_i = total, by
-- the linear program (lp_solve).
-- @function oracle.slowest
-- @tparam table steady list of times
-- @tparam table counts list of how often each counts
-- @tparam integer total sum
-- @treturn number the largest
-- @units those of the times
-- @raise none
-- @usage assert(math.abs(require("oracle").slowest({ 1, 2 }, { 1, 1 }, 3) - 2) < 1e-9)
function oracle.slowest(steady, counts, total)
  local lp = hv.opt.lp { sense = "min" }
  local longest, sum = lp:var { lower = 0 }, {}
  for i, n in ipairs(counts) do
    local x = lp:var { lower = 1, integer = true }
    sum[x] = n
    lp:row({ [x] = steady[i], [longest] = -1 }, "<=", 0)
  end
  lp:row(sum, "=", total)
  lp:objective { [longest] = 1 }
  return lp:solve({}).objective
end

--- The least time over all staffings of even stages by plain enumeration: every count of two pools at degree 1.
-- @function oracle.least_staffing
-- @tparam table q {layers, batch, quota = of two pools, depths, sizes, time, hop, sync} as residual.search takes them
-- @treturn number the least time
-- @units seconds
-- @raise errors of the functions
-- @usage local zero = function() return 0 end
-- local q = { layers = 2, batch = 2, quota = { 1, 0 }, depths = { 1 }, sizes = { 1 }, hop = zero, sync = zero,
--   time = function() return 3 end }
-- assert(require("oracle").least_staffing(q) == 6)
function oracle.least_staffing(q)
  local best = math.huge
  local function extend(c, s, rows, left)
    local n = q.layers // c.depth
    if s > c.depth then
      local worst, sum, sync, m = 0, 0, 0, math.ceil(q.batch / (c.size * c.dp))
      for i, row in ipairs(rows) do
        local after = rows[i + 1] and rows[i + 1].hop or 0
        worst, sum = math.max(worst, row.time + row.hop + after), sum + row.time + 2 * row.hop
        sync = math.max(sync, q.sync(row, (i - 1) * n + 1, i * n, c.dp))
      end
      best = math.min(best, (m - 1) * worst + sum + sync)
      return
    end
    for count = 0, c.dp do
      local row, rest = { time = 0, hop = 0 }, table.move(left, 1, 2, 1, {})
      for k, of in ipairs { count, c.dp - count } do
        if of > 0 then row[#row + 1] = { pool = k, tp = 1, n = of } end
        row.time = math.max(row.time, of > 0 and q.time(k, 1, c.size, 1, n) or 0)
        rest[k] = rest[k] - of
      end
      for _, a in ipairs(rows[s - 1] or {}) do
        for _, b in ipairs(row) do row.hop = math.max(row.hop, q.hop(a, b)) end
      end
      rows[s] = row
      if rest[1] >= 0 and rest[2] >= 0 then extend(c, s + 1, rows, rest) end
      rows[s] = nil
    end
  end
  for _, depth in ipairs(q.depths) do
    for _, size in ipairs(q.sizes) do
      for dp = 1, q.quota[1] + q.quota[2] do extend({ depth = depth, size = size, dp = dp }, 1, {}, q.quota) end
    end
  end
  return best
end

return oracle
