-- Self-tests: estimate and tuning of Cells, and schedules of queues, by hand and by the rules that
-- every schedule keeps.
local cells = require "cells"
local numbers = require "numbers"
local oracle = require "testing.oracle"
local queue = require "queue"
local search = require "search"

local CATALOGUE = "catalogue: crius"

--- The catalogue's job in stages of these GPUs: 16 s of work in all, a tensor degree of 2 is 0.8 as
-- efficient as 1 and so on, the gradient exchange takes 1 s under data parallelism, 4
-- micro-batches.
local function example_cell(gpus)
  local function price(_, dp, tp)
    local work_s = 16 / #gpus
    local exchange_s = 0
    if dp > 1 then
      exchange_s = 1 / 4
    end
    return work_s / dp / (tp * 0.8 ^ math.log(tp, 2)) + exchange_s
  end
  return { gpus = gpus, micro_batches = 4, price = price }
end

local function test_estimate(t)
  local cell = example_cell { 2, 2 }
  t.equal("seconds of a micro-batch on a stage of 2 GPUs, tensor and data parallel",
    ("%g %g"):format(cell.price(1, 1, 2), cell.price(1, 2, 1)), "5 4.25", CATALOGUE)
  local best = cells.estimate(cell)
  t.equal("estimated seconds of 2 stages of 2 GPUs, 4 micro-batches; plans compared",
    ("%g %d"):format(best.seconds, best.plans), "21.25 4", CATALOGUE)
end

--- A random Cell of up to 3 stages of up to 8 GPUs; and the times by stage and tensor degree, of
-- all degrees and of the two extremes.
local function random_cell(random)
  local n_stages = random(3)
  local times = {}
  local extremes = {}
  local cell = { gpus = {}, micro_batches = 1 + random(6) }
  for s = 1, n_stages do
    local gpus = 1 << (random(4) - 1)
    cell.gpus[s] = gpus
    times[s] = {}
    for _, tp in ipairs(numbers.divisors(gpus)) do
      times[s][tp] = 1 + 9 * random()
    end
    extremes[s] = { [1] = times[s][1], [gpus] = times[s][gpus] }
  end
  function cell.price(s, _, tp)
    return times[s][tp]
  end
  return cell, times, extremes
end

local function test_random_cells(t)
  local random = search.generator(5)
  local estimate_holds = true
  local tuning_holds = true
  for _ = 1, 40 do
    local cell, times, extremes = random_cell(random)
    local least = oracle.least_pipeline(times, cell.micro_batches)
    local least_of_extremes = oracle.least_pipeline(extremes, cell.micro_batches)
    local estimate, tuned = cells.estimate(cell).seconds, cells.tune(cell).seconds
    estimate_holds = estimate_holds and estimate >= least - 1e-9
      and math.abs(estimate - least_of_extremes) < 1e-9
    tuning_holds = tuning_holds and tuned >= least - 1e-9 and tuned <= estimate + 1e-9
  end
  t.ok("40 random Cells: the estimate is the extremes' least time, not below that of all plans",
    estimate_holds, CATALOGUE .. ", property")
  t.ok("40 random Cells: the tuned time lies between the least time of all plans and the estimate",
    tuning_holds, CATALOGUE .. ", property")
end

local function cell_of(type, gpus, rate)
  return { type = type, gpus = gpus, rate = rate }
end

--- A job of 8 iterations from 0 s on, and one of 6 from 1 s on.
local function two_jobs()
  return {
    { arrival_s = 0, work = 8, cells = { cell_of("fast", 2, 2), cell_of("fast", 1, 1.5),
      cell_of("slow", 2, 1) } },
    { arrival_s = 1, work = 6, cells = { cell_of("fast", 1, 2), cell_of("slow", 1, 0.5) } },
  }
end

local function test_moving(t)
  local rows = queue.play({ fast = 2, slow = 2 }, two_jobs(), { depth = 1, restart_s = 0.5 })
  t.near("queue, 2 fast and 2 slow GPUs: end of the job that gives up one of two GPUs at 1 s, s",
    rows[1].end_s, 1.5 + 6 / 1.5, 1e-9,
    "by hand: 6 iterations in 4.5 s are 2/3 of its best rate, 2/3 + 1 beats 1 + 0.25")
  t.near("end of the second job, in its best Cell from 1 s on, s", rows[2].end_s, 4, 1e-9,
    "by hand")
  t.near("parts of the first job, which does not move back when the second ends", #rows[1].parts,
    2, 0, "by hand: 3 iterations in 0.5 + 1.5 s against 2 s")
end

local function test_not_moving(t)
  local rows = queue.play({ fast = 2, slow = 2 }, two_jobs(), { depth = 0 })
  t.near("depth 0: rate of the second job on the slow GPU that is free",
    rows[2].parts[1].cell.rate, 0.5, 0, "by hand")
  local jobs = two_jobs()
  jobs[2].cells = { cell_of("fast", 1, 2) }
  rows = queue.play({ fast = 2 }, jobs, { depth = 0 })
  t.near("depth 0, fast GPUs only: start of the second job, when the first ends, s",
    rows[2].start_s, 4, 1e-9, "by hand: until 8 iterations at 2/s")
  jobs[1].work = 40
  jobs[1].deadline_s = 20
  rows = queue.play({ fast = 2, slow = 2 }, jobs, { depth = 1 })
  t.near("depth 1: end of a job with a deadline of 20 s, which is not made late, s",
    rows[1].end_s, 20, 1e-9, "by hand: 40 iterations at 2/s")
end

local function test_objectives(t)
  local jobs = {
    { arrival_s = 0, work = 10, cells = { cell_of("fast", 2, 2), cell_of("fast", 1, 1.2) } },
    { arrival_s = 0, work = 1, cells = { cell_of("fast", 1, 1), cell_of("slow", 1, 0.5) } },
  }
  local rows = queue.play({ fast = 2, slow = 1 }, jobs, { depth = 1 })
  t.near("throughput: end of a short job for which a long one gives up a GPU, s", rows[2].end_s, 1,
    1e-9, "by hand: 0.6 + 1 above 1 + 0.5")
  rows = queue.play({ fast = 2, slow = 1 }, jobs, { depth = 1, objective = "jct" })
  t.near("jct: sum of the ends where the long job keeps its GPUs, s",
    rows[1].end_s + rows[2].end_s, 7, 1e-9, "by hand: 5 + 2 s against 8.3 + 1 s")
end

--- Whether two parts of a schedule use a device at the same time.
local function collide(a, b)
  local share_devices = a.cell.type == b.cell.type and a.at + a.cell.gpus > b.at
    and b.at + b.cell.gpus > a.at
  return share_devices and b.start_s < a.end_s and a.start_s < b.end_s
end

--- Which rule a schedule by queue.play breaks, as a text, nil where it keeps all: every job ends
-- with its work done, none begins before its arrival, no device is used twice at a time.
local function broken_rule(jobs, rows)
  local seen = {}
  for i, row in ipairs(rows) do
    if not row.end_s then
      return ("job %d never ends"):format(i)
    end
    if row.start_s < jobs[i].arrival_s then
      return ("job %d begins before its arrival"):format(i)
    end
    local done = 0
    for _, part in ipairs(row.parts) do
      done = done + part.iterations
      for _, other in ipairs(seen) do
        if collide(part, other) then
          return ("job %d has a device that is taken"):format(i)
        end
      end
      seen[#seen + 1] = part
    end
    if done ~= jobs[i].work then
      return ("job %d does not do its work"):format(i)
    end
  end
end

--- 3 to 6 random jobs that may run on any power of two of the pool's devices.
local function random_jobs(random, pool)
  local jobs = {}
  for i = 1, 2 + random(4) do
    jobs[i] = { arrival_s = random(20), work = random(30), weight = random(3), cells = {} }
    for type, most in pairs(pool) do
      for _, gpus in ipairs(numbers.powers(most)) do
        table.insert(jobs[i].cells, cell_of(type, gpus, (type == "fast" and 2 or 1) * gpus ^ 0.7))
      end
    end
  end
  return jobs
end

local function test_random_queues(t)
  local random = search.generator(11)
  local pool = { fast = 8, slow = 4 }
  local holds = true
  for _ = 1, 40 do
    local jobs, restart_s = random_jobs(random, pool), random(3)
    for _, objective in ipairs { "throughput", "jct" } do
      local rows = queue.play(pool, jobs, { depth = 2, restart_s = restart_s,
        objective = objective })
      holds = holds and broken_rule(jobs, rows) == nil
    end
  end
  t.ok("40 random queues: every job ends, none begins before its arrival, no device is used twice",
    holds, CATALOGUE .. ", property")
end

local function test_rules(t)
  local source = "by hand: two jobs of 3 iterations on 2 of 4 devices"
  local function row(start_s, at, iterations)
    local part = { start_s = start_s, end_s = start_s + 4, iterations = iterations, at = at,
      cell = { type = "a", gpus = 2 } }
    return { start_s = start_s, end_s = start_s + 4, parts = { part } }
  end
  local jobs = { { arrival_s = 0, work = 3 }, { arrival_s = 2, work = 3 } }
  local function rule(first, second)
    return broken_rule(jobs, { first, second })
  end
  t.ok("a schedule side by side breaks no rule", rule(row(0, 1, 3), row(2, 3, 3)) == nil, source)
  t.ok("a schedule one after the other breaks no rule", rule(row(0, 1, 3), row(4, 2, 3)) == nil,
    source)
  t.ok("a device used twice is found",
    rule(row(0, 1, 3), row(3, 2, 3)) == "job 2 has a device that is taken", source)
  t.ok("a begin before the arrival is found",
    rule(row(0, 1, 3), row(1, 3, 3)) == "job 2 begins before its arrival", source)
  t.ok("work that is left is found",
    rule(row(0, 1, 2), row(4, 1, 3)) == "job 1 does not do its work", source)
end

return function(t)
  test_estimate(t)
  test_random_cells(t)
  test_moving(t)
  test_not_moving(t)
  test_objectives(t)
  test_random_queues(t)
  test_rules(t)
end
