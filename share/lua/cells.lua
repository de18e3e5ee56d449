-- Cells of Crius (Xue et al., arXiv 2403.16125): a job on so many GPUs of one type in so many stages, of which only
-- data or tensor parallelism inside each stage is open; their estimate, their tuning, and the scheduler that gives
-- jobs of a queue their cells.
local events = require "events"
local layout = require "layout"
local search = require "search"

local cells = {}

--- GPUs of S stages with these loads: powers of two, doubled where most work is left per GPU, all of G.
-- @function cells.gpus
-- @tparam table loads list of the work of each stage
-- @tparam integer G how many GPUs
-- @treturn table list of GPUs per stage; nil when powers of two do not add up to G
-- @units any for loads
-- @raise none
-- @usage assert(table.concat(require("cells").gpus({ 2, 1, 1 }, 4), " ") == "2 1 1")
function cells.gpus(loads, G)
  local count, left = {}, G - #loads
  for s = 1, #loads do count[s] = 1 end
  while left > 0 do
    local at
    for s = 1, #loads do
      if count[s] <= left and (not at or loads[s] / count[s] > loads[at] / count[at]) then at = s end
    end
    if not at then return nil end
    left, count[at] = left - count[at], 2 * count[at]
  end
  return left == 0 and count or nil
end

--- Eq-P of chosen stage times: Σ + (M − 1) · longest.
local function plan_s(q, choice)
  local times = {}
  for s, c in ipairs(choice) do
    times[s] = q.price(s, c[1], c[2])
    if not times[s] then return nil end
  end
  return (layout.pipeline_s(times, q.micro_batches))
end

--- The estimate: every stage all data parallel or all tensor parallel, the best of these at most 2^S plans.
-- @function cells.estimate
-- @tparam table q {gpus = per stage, micro_batches, price = function(stage, dp, tp) giving the seconds of a micro-batch
-- with its share of the exchange, or nil where it does not fit}
-- @treturn table {seconds, choice = {dp, tp} per stage, plans = how many were put together}; nil when none fits
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
      if q.price(s, c[1], c[2]) then table.insert(values[s], c) end
    end
    if #values[s] == 0 then return nil end
    first[s] = values[s][1]
  end
  local function cost(choice) return plan_s(q, choice) end
  local r
  if #q.gpus <= 10 then
    r = search.enumerate { states = search.product(values), cost = cost }
  else
    r = search.coordinate { state = first, values = values, cost = cost }
  end
  return r.state and { seconds = r.cost, choice = r.state, plans = r.evaluations }
end

--- The tuner: where a stage is better all data parallel, hybrids with dp ≥ tp are tried, else those with tp ≥ dp.
-- @function cells.tune
-- @tparam table q with the keys of cells.estimate
-- @treturn table {seconds, choice}; nil when none fits
-- @units seconds
-- @raise errors of price
-- @usage local q = { gpus = { 1 }, micro_batches = 2, price = function() return 3 end }
-- assert(require("cells").tune(q).seconds == 6)
function cells.tune(q)
  local start, values = cells.estimate(q), {}
  if not start then return nil end
  for s, g in ipairs(q.gpus) do
    local by_data, by_tensor = q.price(s, g, 1) or math.huge, q.price(s, 1, g) or math.huge
    values[s] = {}
    for _, tp in ipairs(layout.divisors(g)) do
      local dp = g // tp
      local half = by_data <= by_tensor and dp >= tp or by_data > by_tensor and tp >= dp
      if half and q.price(s, dp, tp) then table.insert(values[s], { dp, tp }) end
    end
    table.insert(values[s], start.choice[s])
  end
  local r = search.coordinate { state = start.choice, values = values, cost = function(c) return plan_s(q, c) end }
  return { seconds = r.cost, choice = r.state }
end

--- Free GPUs by type when these jobs hold their cells.
local function free_of(pool, held)
  local free = {}
  for type, n in pairs(pool) do free[type] = n end
  for _, cell in pairs(held) do free[cell.type] = free[cell.type] - cell.gpus end
  return free
end

--- The change of most cluster throughput that lets `job` in: one of its cells, and other cells for at most `depth`
-- of the running jobs.
local function admit(pool, job, running, depth)
  local best, gain
  local function try(held, i, changed, total)
    for _, cell in ipairs(i > #running and job.cells or {}) do
      local free = free_of(pool, held)
      local sum = total + cell.rate / job.best
      if (free[cell.type] or 0) >= cell.gpus and (not gain or sum > gain + 1e-12) then
        best, gain = { cell = cell, held = { table.unpack(held, 1, #running) } }, sum
      end
    end
    local r = running[i]
    for _, cell in ipairs(r and r.cells or {}) do
      local moved = changed + (cell == r.cell and 0 or 1)
      if moved <= depth then
        held[i] = cell
        try(held, i + 1, moved, total + cell.rate / r.best)
        held[i] = nil
      end
    end
  end
  try({}, 1, 0, 0)
  local before = 0
  for _, r in ipairs(running) do before = before + r.cell.rate / r.best end
  return gain and gain > before + 1e-12 and best or nil
end

--- Plays a queue of jobs: on every arrival and departure jobs are let in, in order, by the change of most cluster
-- throughput (each job's relative to its best cell); jobs whose cell changes pay the restart.
-- @function cells.schedule
-- @tparam table pool GPUs by type {name = count}
-- @tparam table jobs list of {arrival_s, work = iterations, cells = list of {type, gpus, rate = iterations per second}}
-- @tparam table o {depth = 3: running jobs that may change, restart_s = 0}
-- @treturn table list of {start_s, end_s, cell = the first one} per job; end_s missing where it never fits
-- @units seconds, iterations per second
-- @raise none
-- @usage local r = require("cells").schedule({ a = 1 }, { { arrival_s = 0, work = 4,
--   cells = { { type = "a", gpus = 1, rate = 2 } } } }, {})
-- assert(r[1].end_s == 2)
function cells.schedule(pool, jobs, o)
  local queue, running, waiting, out, now = events.queue(), {}, {}, {}, 0
  for i, job in ipairs(jobs) do
    out[i], job.left, job.best, job.cell = {}, job.work, 0, nil
    for _, cell in ipairs(job.cells) do job.best = math.max(job.best, cell.rate) end
    queue:push(job.arrival_s, { job = job, row = out[i] })
  end
  local function advance(to)
    for _, r in ipairs(running) do
      local from = math.max(now, r.ready_s)
      r.left = r.left - math.max(0, to - from) * r.cell.rate
    end
    now = to
  end
  local function expect(r)
    r.serial = (r.serial or 0) + 1
    queue:push(math.max(now, r.ready_s) + r.left / r.cell.rate, { ended = r, serial = r.serial })
  end
  local function let_in()
    local still = {}
    for _, w in ipairs(waiting) do
      local change = admit(pool, w.job, running, o.depth or 3)
      if change then
        for i, r in ipairs(running) do
          if r.cell ~= change.held[i] then
            r.cell, r.ready_s = change.held[i], now + (o.restart_s or 0)
            expect(r)
          end
        end
        local job = w.job
        job.cell, job.ready_s, job.row = change.cell, now, w.row
        w.row.start_s, w.row.cell = now, change.cell
        running[#running + 1] = job
        expect(job)
      else
        still[#still + 1] = w
      end
    end
    waiting = still
  end
  events.run(queue, function(at, e)
    if e.ended and e.ended.serial ~= e.serial then return end
    advance(at)
    if e.ended then
      e.ended.row.end_s = at
      for i, r in ipairs(running) do
        if r == e.ended then table.remove(running, i) end
      end
    else
      waiting[#waiting + 1] = e
    end
    let_in()
  end)
  return out
end

return cells
