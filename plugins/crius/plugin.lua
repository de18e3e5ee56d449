-- Crius (Xue et al., arXiv 2403.16125): a scheduler of jobs on pools of unequal GPUs that knows a
-- good parallelism of a job for every number of GPUs. A Cell is a job on G GPUs of one type in S
-- stages. Section 4 estimates it from the two extremes of every stage, all data or all tensor
-- parallel. Section 5 tunes it towards the better extreme of each stage, a heuristic. Section 6
-- gives the jobs of a queue (`jobs` of a job file) their Cells in turn. A Cell never mixes types.
local candidates = require "candidates"
local cells = require "cells"
local claims = require "claims"
local inventory = require "inventory"
local job_cells = require "job_cells"
local prices = require "prices"
local queue = require "queue"
local reasons = require "reasons"

--- The plan of one job: the Cell that the scheduler gives it and those with the best estimates,
-- tuned and simulated.
local function one_job(ctx, devices, types, pool)
  local list = job_cells.all(ctx, types, ctx.jobs[1].devices)
  if #list == 0 then
    return nil, reasons.too_small(ctx, devices, "no Cell of one type", "kind")
  end
  table.sort(list, function(a, b)
    if a.rate ~= b.rate then
      return a.rate > b.rate
    end
    return a.rank < b.rank
  end)
  local played = queue.play(pool, { { arrival_s = 0, work = 1, cells = list } }, {})
  local scheduled = played[1].parts[1].cell
  local fitting = {}
  for k, row in ipairs(list) do
    if k <= ctx.options.tries or row == scheduled then
      local tuned = cells.tune(row.cell)
      fitting[#fitting + 1] = { claim_s = tuned.seconds, rank = #fitting + 1,
        build = function() return job_cells.plan(ctx, row.cell, tuned) end }
    end
  end
  return candidates.best(fitting, ctx.options.tries)
end

--- Gives a Cell of the i-th job seconds(at): the simulated time of an iteration on the devices from
-- the at-th of its type on, nil where it does not fit there.
local function add_seconds(ctx, i, cell)
  local known = {}
  function cell.seconds(at)
    if known[at] == nil then
      local verdict = hv.for_job(ctx, i,
        function() return (require("candidates").judge(cell.plan(at))) end)
      known[at] = verdict and verdict.iteration_s or false
    end
    return known[at] or nil
  end
end

--- The i-th job as queue.play takes it; nil and the reason where it has no Cell. Inside hv.for_job
-- the libraries are loaded anew, as they remember figures of one model and job.
local function queued(ctx, i)
  return hv.for_job(ctx, i, function(own)
    local own_inventory, own_job_cells = require "inventory", require "job_cells"
    local devices, why = own_inventory.usable(own)
    if not devices then
      return nil, why
    end
    local job = ctx.jobs[i]
    local offers = own_job_cells.offers(own, own_inventory.types(devices), ctx.options.cell_tries,
      job.devices)
    if #offers == 0 then
      return nil, require("reasons").too_small(own, devices, "no Cell of one type", "kind")
    end
    for _, cell in ipairs(offers) do
      add_seconds(ctx, i, cell)
    end
    return { arrival_s = job.arrival_s, work = job.iterations or math.huge, weight = job.weight,
      deadline_s = job.deadline_s, cells = offers }
  end)
end

--- Name of the k-th part of a job.
local function part_name(name, k)
  if k == 1 then
    return name
  end
  return ("%s, part %d"):format(name, k)
end

--- Entries of the plan for a job that has these parts in turn.
local function add_entries(entries, name, arrival_s, parts)
  for k, part in ipairs(parts) do
    local entry = {
      name = part_name(name, k), start_s = part.start_s, iterations = part.iterations,
      plan = part.cell.plan(part.at),
    }
    if k == 1 then
      entry.arrival_s = arrival_s
    else
      entry.arrival_s = part.start_s
      entry.continues = part_name(name, k - 1)
    end
    entries[#entries + 1] = entry
  end
end

--- The plan of a queue: an entry for every Cell that a job has in turn.
local function many_jobs(ctx, pool)
  local jobs = {}
  for i, job in ipairs(ctx.jobs) do
    hv.progress((i - 1) / #ctx.jobs, "cells of " .. job.name)
    local made, why = queued(ctx, i)
    if not made then
      return nil, ("job %s: %s"):format(job.name, why)
    end
    jobs[i] = made
  end
  local options = ctx.options
  local played = queue.play(pool, jobs, { depth = options.depth, restart_s = options.restart_s,
    objective = options.objective })
  local entries = {}
  for i, row in ipairs(played) do
    local name = ctx.jobs[i].name
    if #row.parts == 0 then
      return nil, ("job %s never gets devices: jobs without end hold them; give those jobs "
        .. "iterations"):format(name)
    end
    add_entries(entries, name, jobs[i].arrival_s, row.parts)
  end
  return { jobs = entries }
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local types = inventory.types(devices)
  local pool = {}
  for _, type in ipairs(types) do
    pool[type.kind] = #type.devices
  end
  local is_queue = ctx.jobs[1].position ~= nil
  if is_queue then
    return many_jobs(ctx, pool)
  end
  return one_job(ctx, devices, types, pool)
end

--- Eq-P of the plan's stages, each with its share of the exchange; none for a queue, which has no
-- one iteration time.
local function claim(made, ctx)
  made = prices.table_of(made)
  if made.jobs then
    return nil
  end
  local parts, sync_s = claims.parts(ctx, made)
  local pipeline_s = claims.seconds(parts[1], 0)
  return {
    iteration_s = pipeline_s + sync_s,
    terms = { pipeline_s = pipeline_s },
    formula = "Eq-P over stages of a Cell + gradients (Crius, section 4)",
    leaves_out = "transfers between stages, the optimizer's step, and the overlap of gradients "
      .. "with the backward pass",
  }
end

return {
  api = 1, id = "crius", title = "Crius", kind = "hetero",
  system = "Crius: Efficient Heterogeneous GPU Scheduling with Adaptive Parallelism, 2024",
  year = 2024,
  reference = "arXiv:2403.16125",
  summary = "The best Cell of one type: stages by work, data or tensor parallel inside, estimated "
    .. "and tuned.",
  needs = { model = "layers", jobs = "any" },
  effort = "medium",
  options = {
    { key = "halvings", type = "integer", default = 2, min = 0, max = 12,
      help = "how often the number of GPUs of a job may be halved" },
    { key = "micro_batch", type = "integer", default = 32, min = 1, max = 1024,
      help = "largest micro-batch in sequences" },
    { key = "tries", type = "integer", default = 16, min = 1, max = 1000,
      help = "number of Cells that are tuned and simulated, in the order of their estimates" },
    { key = "cell_tries", type = "integer", default = 2, min = 1, max = 1000,
      help = "the same for a job in a queue, for each type and number of GPUs" },
    { key = "depth", type = "integer", default = 3, min = 0, max = 16,
      help = "queue: running jobs that may change their Cell to let in another" },
    { key = "objective", type = "choice", choices = { "throughput", "jct" }, default = "throughput",
      help = "queue: most throughput, each job's relative to its best, or jct, the least sum of "
        .. "times until the jobs are done" },
    { key = "restart_s", type = "number", default = 60, min = 0, max = 1e6,
      help = "queue: seconds to change a Cell" },
  },
  plan = plan,
  claim = claim,
}
