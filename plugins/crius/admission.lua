-- Which Cells the jobs get when one arrives or ends (Crius, Xue et al., arXiv 2403.16125, section
-- 6). Jobs are those of job_value.lua with cell, at, start_s, left_at_start and iteration_s where
-- they run; `rules` are those of queue.play.
local job_value = require "job_value"
local placement = require "placement"

local admission = {}

local EQUAL_VALUE = 1e-12 -- differences up to this one do not count

--- Tries all Cells of the job that is to be let in, where the running ones have the Cells w.held
-- with the value `total`. A choice in which the new job is in time goes before all others.
local function try_cells(w, total)
  for _, cell in ipairs(w.job.cells) do
    local value = total + job_value.of(w.rules, w.job, cell, 0)
    local in_time = not job_value.is_late(w.job, cell, 0, w.now)
    local is_better = not w.best or in_time and not w.best_in_time
      or in_time == w.best_in_time and value > w.best_value + EQUAL_VALUE
    if is_better and value > w.value_before + EQUAL_VALUE then
      local places = placement.of(w.pool, w.running, w.held, w.job, cell)
      if places then
        w.best = places
        w.best_value = value
        w.best_in_time = in_time
      end
    end
  end
end

--- Tries all Cells of the running jobs from the i-th on, of which `changed` jobs before it got
-- another one; `total` is the value of those before it. Branches that cannot win are left out.
local function try_running(w, i, changed, total)
  if w.best and w.best_in_time and total + w.most_from[i] <= w.best_value + EQUAL_VALUE then
    return
  end
  local job = w.running[i]
  if not job then
    try_cells(w, total)
    return
  end
  w.held[i] = job.cell
  try_running(w, i + 1, changed, total + job_value.of(w.rules, job, job.cell, 0))
  if changed >= w.rules.depth then
    return
  end
  for _, cell in ipairs(job.cells) do
    local makes_late = job_value.is_late(job, cell, w.rules.restart_s, w.now)
      and not job_value.is_late(job, job.cell, 0, w.now)
    if cell ~= job.cell and not makes_late then
      w.held[i] = cell
      try_running(w, i + 1, changed + 1,
        total + job_value.of(w.rules, job, cell, w.rules.restart_s))
    end
  end
end

--- The change of most value that lets `job` in: one of its Cells, and other Cells for at most
-- rules.depth of the running jobs, of which none becomes late. Returns the new places; nil where no
-- change is worth more than to wait.
function admission.let_in(pool, job, running, rules, now)
  local value_before = job_value.waiting(rules, job, running, now)
  for _, other in ipairs(running) do
    value_before = value_before + job_value.of(rules, other, other.cell, 0)
  end
  local most_from = {} -- most that the jobs from the i-th on may add, the new one last
  most_from[#running + 1] = job_value.largest(rules, job)
  for i = #running, 1, -1 do
    most_from[i] = most_from[i + 1] + job_value.largest(rules, running[i])
  end
  local w = { pool = pool, job = job, running = running, rules = rules, now = now, held = {},
    value_before = value_before, most_from = most_from }
  try_running(w, 1, 0, 0)
  return w.best
end

--- The place of a running job in its Cell of most value on free devices; nil where its own Cell is
-- worth as much.
function admission.enlarged(pool, job, running, rules)
  local best
  local most = job_value.of(rules, job, job.cell, 0) + EQUAL_VALUE
  for _, cell in ipairs(job.cells) do
    local value = job_value.of(rules, job, cell, rules.restart_s)
    if cell ~= job.cell and value > most then
      local held = {}
      for i, other in ipairs(running) do
        held[i] = other == job and cell or other.cell
      end
      local places = placement.of(pool, running, held)
      if places then
        best = places[1]
        most = value
      end
    end
  end
  return best
end

return admission
