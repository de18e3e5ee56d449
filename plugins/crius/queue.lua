-- A scheduler of jobs on pools of devices of several types (Crius, Xue et al., arXiv 2403.16125,
-- section 6), played through from the first arrival to the last end.
local admission = require "admission"

local queue = {}

--- The state of a job of the queue, as job_value.lua and admission.lua take it.
local function new_job(job)
  local best_rate = 0
  for _, cell in ipairs(job.cells) do
    best_rate = math.max(best_rate, cell.rate)
  end
  return {
    cells = job.cells, weight = job.weight or 1, best_rate = best_rate,
    left_at_start = job.work, iterations_left = job.work,
    arrival_s = job.arrival_s, deadline_s = job.deadline_s,
    row = { parts = {} },
  }
end

--- Whole iterations that a running job has done by `now` in its Cell; one begun does not count.
local function done_by(job, now)
  local done = (now - job.start_s) // job.iteration_s
  done = math.max(0, math.min(job.left_at_start, done))
  while done > 0 and job.start_s + done * job.iteration_s > now do
    done = done - 1
  end
  return done
end

--- Seconds at which a running job ends in its Cell.
local function end_s(job)
  return job.start_s + job.left_at_start * job.iteration_s
end

--- Adds what a running job has done by `now` in its Cell to its parts.
local function close_part(job, now)
  local done = done_by(job, now)
  if done > 0 then
    table.insert(job.row.parts, {
      start_s = job.start_s, end_s = job.start_s + done * job.iteration_s, iterations = done,
      cell = job.cell, at = job.at,
    })
    job.left_at_start = job.left_at_start - done
    job.iterations_left = job.left_at_start
  end
end

--- Starts the job of a place there, `wait_s` after `now`.
local function begin(place, now, wait_s)
  local job = place.job
  job.cell = place.cell
  job.at = place.at
  job.start_s = now + wait_s
  job.iteration_s = place.cell.seconds and place.cell.seconds(place.at) or 1 / place.cell.rate
  job.row.start_s = job.row.start_s or job.start_s
end

--- Gives jobs their new places; those that run already pay the restart.
local function change_places(state, places, now)
  for _, place in ipairs(places) do
    local wait_s = 0
    if place.job.cell then
      close_part(place.job, now)
      wait_s = state.rules.restart_s
    else
      state.running[#state.running + 1] = place.job
    end
    begin(place, now, wait_s)
  end
end

--- Lets in the waiting jobs that can be, in order.
local function let_in_waiting(state, now)
  for _, job in ipairs(state.running) do
    job.iterations_left = job.left_at_start - done_by(job, now)
  end
  local still_waiting = {}
  for _, job in ipairs(state.waiting) do
    local places = admission.let_in(state.pool, job, state.running, state.rules, now)
    if places then
      change_places(state, places, now)
    else
      still_waiting[#still_waiting + 1] = job
    end
  end
  state.waiting = still_waiting
end

--- Gives running jobs larger Cells where none waits and that pays.
local function enlarge_running(state, now)
  for _, job in ipairs(state.running) do
    if job.left_at_start < math.huge and #state.waiting == 0 then
      local place = admission.enlarged(state.pool, job, state.running, state.rules)
      if place then
        change_places(state, { place }, now)
      end
    end
  end
end

--- The next event: its time, infinite where there is none, and the job that ends, nil for an
-- arrival. An end comes before an arrival at the same time.
local function next_event(state)
  local now, ending = math.huge, nil
  if state.coming[1] then
    now = state.coming[1].arrival_s
  end
  for _, job in ipairs(state.running) do
    if end_s(job) < now or end_s(job) == now and not ending then
      now = end_s(job)
      ending = job
    end
  end
  return now, ending
end

local function end_job(state, job, now)
  close_part(job, math.huge)
  job.row.end_s = now
  for i, other in ipairs(state.running) do
    if other == job then
      table.remove(state.running, i)
      return
    end
  end
end

--- Plays a queue. On every arrival and end the waiting jobs are let in, in order, by the change of
-- most value; after an end running jobs grow where that pays. A job whose Cell changes loses the
-- iteration that it is in and pays the restart.
--
-- Arguments:
--   pool   number of devices by type
--   jobs   list of { arrival_s, work = iterations (math.huge: without end), weight = 1,
--          deadline_s = from the arrival on, cells = list of { type, gpus, rate = estimated
--          iterations per second, seconds = function(at) } }; seconds gives the time of an
--          iteration on the devices from the at-th of the type on, nil where the job does not fit
--          there; without the function it is 1 / rate
--   rules  { depth = 3: running jobs that may change at once, restart_s = 0, objective =
--          "throughput" (largest sum of the jobs' shares of their best rates, by weight) or "jct"
--          (least sum of the jobs' times until they are done, by weight) }
--
-- Returns a list per job of { parts = list of { start_s, end_s, iterations, cell, at }, start_s,
-- end_s }, without parts where it never gets devices and without end_s where it has no end.
function queue.play(pool, jobs, rules)
  local state = {
    pool = pool, coming = {}, running = {}, waiting = {},
    rules = { depth = rules.depth or 3, restart_s = rules.restart_s or 0,
      objective = rules.objective or "throughput" },
  }
  local rows = {}
  for i, job in ipairs(jobs) do
    state.coming[i] = new_job(job)
    rows[i] = state.coming[i].row
  end
  table.sort(state.coming, function(a, b) return a.arrival_s < b.arrival_s end)
  local now, ending = next_event(state)
  while now < math.huge do
    if ending then
      end_job(state, ending, now)
    else
      state.waiting[#state.waiting + 1] = table.remove(state.coming, 1)
    end
    let_in_waiting(state, now)
    if ending then
      enlarge_running(state, now)
    end
    now, ending = next_event(state)
  end
  for _, job in ipairs(state.running) do -- those without end
    table.insert(job.row.parts, { start_s = job.start_s, cell = job.cell, at = job.at })
  end
  return rows
end

return queue
