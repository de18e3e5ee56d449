-- Crius (Xue et al., arXiv 2403.16125): a scheduler of jobs on pools of unequal GPUs that knows the
-- best parallelism of a job for every grant. A Cell is a job on G GPUs of one type in S stages;
-- section 4 estimates it from the two extremes of every stage, all data or all tensor parallel;
-- section 5 tunes the chosen one inside the half-space that better extreme points to (a heuristic:
-- hybrids in the other half are not seen); section 6 gives the jobs of a queue (job file, `jobs`)
-- their Cells in turn. A Cell never mixes types.
local candidates = require "candidates"
local cells = require "cells"
local checks = require "checks"
local claims = require "claims"
local inventory = require "inventory"
local numbers = require "numbers"
local oracle = require "testing.oracle"
local prices = require "prices"
local pricing = require "pricing"
local queue = require "queue"
local reasons = require "reasons"

--- One job: its best Cells, tuned and simulated.
local function one_job(ctx, devices, types, pool)
  local list, fitting = pricing.all(ctx, types, ctx.jobs[1].devices), {}
  if #list == 0 then
    return nil, reasons.too_small(ctx, devices, "no Cell of one type", "kind")
  end
  table.sort(list, function(a, b) return a.rate > b.rate or a.rate == b.rate and a.rank < b.rank end)
  local first = queue.play(pool, { { arrival_s = 0, work = 1, cells = list } }, {})[1].parts[1].cell
  for k, cell in ipairs(list) do -- the scheduler's, then the next best estimates
    if k <= ctx.options.tries or cell == first then
      local tuned = cells.tune(cell.cell)
      fitting[#fitting + 1] = { claim_s = tuned.seconds, rank = #fitting + 1,
        build = function() return pricing.plan(ctx, cell.cell, tuned) end }
    end
  end
  return candidates.best(fitting, ctx.options.tries)
end

--- What the scheduler needs to know of job i: its Cells with their judged rates; nil and why it has
-- none.
local function queued(ctx, i)
  return hv.for_job(ctx, i, function(own)
    local plans, own_inventory = require "pricing", require "inventory"
    local devices, why = own_inventory.usable(own)
    if not devices then
      return nil, why
    end
    local types, job = own_inventory.types(devices), ctx.jobs[i]
    local offers = plans.offers(own, types, ctx.options.cell_tries, job.devices)
    if #offers == 0 then
      return nil, require("reasons").too_small(own, devices, "no Cell of one type", "kind")
    end
    for _, cell in ipairs(offers) do -- on other devices of the type the judge is asked again
      local known = {}
      function cell.seconds(at)
        if known[at] == nil then
          local v = hv.for_job(ctx, i,
            function() return (require("candidates").judge(cell.plan(at))) end)
          known[at] = v and v.iteration_s or false
        end
        return known[at] or nil
      end
    end
    return { arrival_s = job.arrival_s, work = job.iterations or math.huge, weight = job.weight,
      deadline_s = job.deadline_s, cells = offers }
  end)
end

--- The queue as a plan: an entry for every Cell that a job has in turn.
local function many_jobs(ctx, pool)
  local jobs, entries, o = {}, {}, ctx.options
  for i, job in ipairs(ctx.jobs) do
    hv.progress((i - 1) / #ctx.jobs, "cells of " .. job.name)
    local made, why = queued(ctx, i)
    if not made then
      return nil, ("job %s: %s"):format(job.name, why)
    end
    jobs[i] = made
  end
  local played = queue.play(pool, jobs, { depth = o.depth, restart_s = o.restart_s,
    objective = o.objective })
  for i, row in ipairs(played) do
    local name = ctx.jobs[i].name
    if #row.parts == 0 then
      return nil, ("job %s never gets devices: jobs without end hold them (give those iterations)"):format(name)
    end
    for k, part in ipairs(row.parts) do
      entries[#entries + 1] = { name = k == 1 and name or ("%s, part %d"):format(name, k),
        continues = k == 2 and name or k > 2 and ("%s, part %d"):format(name, k - 1) or nil,
        arrival_s = k == 1 and jobs[i].arrival_s or part.start_s, start_s = part.start_s,
        iterations = part.iterations, plan = part.cell.plan(part.at) }
    end
  end
  return { jobs = entries }
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local types, pool = inventory.types(devices), {}
  for _, t in ipairs(types) do
    pool[t.kind] = #t.devices
  end
  -- a queue
  if ctx.jobs[1].position then
    return many_jobs(ctx, pool)
  end
  return one_job(ctx, devices, types, pool)
end

--- Eq-P of the plan's stages, each with its share of the exchange.
local function claim(made, ctx)
  made = prices.table_of(made)
  -- one iteration is none of theirs
  if made.jobs then
    return nil
  end
  local parts, sync_s = claims.parts(ctx, made)
  return { iteration_s = claims.seconds(parts[1], 0) + sync_s,
    terms = { pipeline_s = claims.seconds(parts[1], 0) },
    formula = "Eq-P over stages of a Cell + gradients (Crius, section 4)" }
end

--- The catalogue's job: 4 operators of 4 s, TP efficiency 0.8 per doubling, 1 s of exchange under
-- DP, M = 4.
local function example(gpus)
  return { gpus = gpus, micro_batches = 4, price = function(s, dp, tp)
    local ops, exchange = 16 / #gpus, dp > 1 and 1 / 4 or 0
    return ops / dp / (tp * 0.8 ^ math.log(tp, 2)) + exchange + 0 * s
  end }
end

--- Do random queues obey the rules of any schedule?
local function random_queues(n)
  local random = require("search").generator(11)
  for _ = 1, n do
    local pool, jobs = { fast = 8, slow = 4 }, {}
    for i = 1, 2 + random(4) do
      jobs[i] = { arrival_s = random(20), work = random(30), weight = random(3), cells = {} }
      for type, most in pairs(pool) do
        for _, g in ipairs(numbers.powers(most)) do
          table.insert(jobs[i].cells, { type = type, gpus = g,
            rate = (type == "fast" and 2 or 1) * g ^ 0.7 })
        end
      end
    end
    local restart_s = random(3)
    for _, objective in ipairs { "throughput", "jct" } do
      local played = queue.play(pool, jobs, { depth = 2, restart_s = restart_s,
        objective = objective })
      if checks.queue_fault(jobs, played) then
        return false
      end
    end
  end
  return true
end

local function selftest(t)
  local src, q = "catalogue: crius", example { 2, 2 }
  t.equal("2 operators on 2 GPUs, TP and DP", ("%g %g"):format(q.price(1, 1, 2), q.price(1, 2, 1)),
    "5 4.25", src)
  local best = cells.estimate(q)
  t.equal("best of the grid, plans put together", ("%g %d"):format(best.seconds, best.plans),
    "21.25 4", src)
  local random, never_below, tuned_between = require("search").generator(5), true, true
  for _ = 1, 40 do
    local S, table_of, ends = random(3), {}, {}
    local case = { gpus = {}, micro_batches = 1 + random(6) }
    for s = 1, S do
      case.gpus[s], table_of[s] = 1 << (random(4) - 1), {}
      for _, tp in ipairs(numbers.divisors(case.gpus[s])) do
        table_of[s][tp] = 1 + 9 * random()
      end
      ends[s] = { [1] = table_of[s][1], [case.gpus[s]] = table_of[s][case.gpus[s]] }
    end
    function case.price(s, _, tp)
      return table_of[s][tp]
    end
    local least = oracle.least_pipeline(table_of, case.micro_batches)
    local estimate, tuned = cells.estimate(case).seconds, cells.tune(case).seconds
    never_below = never_below and estimate >= least - 1e-9
      and math.abs(estimate - oracle.least_pipeline(ends, case.micro_batches)) < 1e-9
    tuned_between = tuned_between and tuned >= least - 1e-9 and tuned <= estimate + 1e-9
  end
  t.ok("40 random Cells: the estimate is the extremes' optimum, never below all's", never_below, src
      .. ", property")
  t.ok("the tuned plan lies between both", tuned_between, src .. ", property")
  local function cell(type, gpus, rate)
    return { type = type, gpus = gpus, rate = rate }
  end
  local jobs = {
    { arrival_s = 0, work = 8, cells = { cell("fast", 2, 2), cell("fast", 1, 1.5),
      cell("slow", 2, 1) } },
    { arrival_s = 1, work = 6, cells = { cell("fast", 1, 2), cell("slow", 1, 0.5) } },
  }
  local r = queue.play({ fast = 2, slow = 2 }, jobs, { depth = 1, restart_s = 0.5 })
  t.near("queue: the first job takes both fast GPUs, then gives one up at 1 s, restarts in 0.5 s, ends",
    r[1].end_s, 1.5 + 6 / 1.5, 1e-9,
    "by hand: 6 iterations in 4.5 s are 2/3 of its best rate, 2/3 + 1 beats 1 + 0.25")
  t.near("the second runs at its best Cell from 1 s on", r[2].end_s, 4, 1e-9, "by hand")
  t.near("then the first stays: with a restart two GPUs are no sooner ready", #r[1].parts, 2, 0,
    "by hand: 3 iterations in 0.5 + 1.5 s against 2 s")
  r = queue.play({ fast = 2, slow = 2 }, jobs, { depth = 0 })
  t.near("without moving running jobs it gets a slow GPU", r[2].parts[1].cell.rate, 0.5, 0,
    "by hand")
  jobs[2].cells = { cell("fast", 1, 2) }
  r = queue.play({ fast = 2 }, jobs, { depth = 0 })
  t.near("and waits where it has no other Cell", r[2].start_s, 4, 1e-9,
    "by hand: until 8 iterations at 2/s")
  jobs[1].work, jobs[1].deadline_s = 40, 20
  r = queue.play({ fast = 2, slow = 2 }, jobs, { depth = 1 })
  t.near("a job with a deadline is not made late", r[1].end_s, 20, 1e-9,
    "by hand: 40 iterations at 2/s")
  jobs = { { arrival_s = 0, work = 10, cells = { cell("fast", 2, 2), cell("fast", 1, 1.2) } },
    { arrival_s = 0, work = 1, cells = { cell("fast", 1, 1), cell("slow", 1, 0.5) } } }
  r = queue.play({ fast = 2, slow = 1 }, jobs, { depth = 1 })
  t.near("for throughput a long job makes room for a short one", r[2].end_s, 1, 1e-9,
    "by hand: 0.6 + 1 above 1 + 0.5")
  r = queue.play({ fast = 2, slow = 1 }, jobs, { depth = 1, objective = "jct" })
  t.near("for completion times it stays", r[1].end_s + r[2].end_s, 7, 1e-9,
    "by hand: 5 + 2 s against 8.3 + 1 s")
  t.ok("40 random queues: every job ends, no device twice, no part before its arrival",
    random_queues(40),
    src .. ", property")
end

return {
  api = 1, id = "crius", title = "Crius", kind = "hetero",
  system = "Crius: Efficient Heterogeneous GPU Scheduling with Adaptive Parallelism, 2024",
  reference = "arXiv:2403.16125",
  summary = "The best Cell of one type: stages by work, data or tensor parallel inside, estimated and tuned.",
  needs = { model = "layers", jobs = "any" },
  effort = "medium",
  options = {
    { key = "halvings", type = "integer", default = 2, min = 0, max = 12,
      help = "how often a grant may be halved" },
    { key = "micro_batch", type = "integer", default = 32, min = 1, max = 1024,
      help = "largest micro-batch" },
    { key = "tries", type = "integer", default = 16, min = 1, max = 1000,
      help = "how many Cells are tuned and simulated, best estimate first" },
    { key = "cell_tries", type = "integer", default = 2, min = 1, max = 1000,
      help = "the same for a job in a queue" },
    { key = "depth", type = "integer", default = 3, min = 0, max = 16,
      help = "queue: running jobs that may change" },
    { key = "objective", type = "choice", choices = { "throughput", "jct" }, default = "throughput",
      help = "queue: most throughput, each job's relative to its best, or least time until all are done" },
    { key = "restart_s", type = "number", default = 60, min = 0, max = 1e6,
      help = "queue: seconds to change a Cell" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
