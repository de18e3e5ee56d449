-- What a job of a queue is worth to the scheduler in a Cell (Crius, Xue et al., arXiv 2403.16125,
-- section 6). A job here has weight, best_rate = rate of its fastest Cell, iterations_left
-- (infinite where it has no end), arrival_s and deadline_s from the arrival on. `rules` are those
-- of queue.play.
local job_value = {}

--- The value of a job in a Cell that it starts `wait_s` from now. For "throughput" it is the share
-- of its best rate, counted over the time until its end; for "jct" the negative of that time, 0 for
-- a job without end.
function job_value.of(rules, job, cell, wait_s)
  local has_end = job.iterations_left < math.huge
  if rules.objective == "jct" then
    if not has_end then
      return 0
    end
    return -job.weight * (wait_s + job.iterations_left / cell.rate)
  end
  local rate = cell.rate
  if wait_s > 0 and has_end then
    rate = job.iterations_left / (job.iterations_left / rate + wait_s)
  end
  return job.weight * rate / job.best_rate
end

--- The largest value that a job can have.
function job_value.largest(rules, job)
  return job_value.of(rules, job, { rate = job.best_rate }, 0)
end

--- The value of a job that stays in the queue: 0 for "throughput"; for "jct" as if it ran in its
-- best Cell from the end of the first running job on.
function job_value.waiting(rules, job, running, now)
  if rules.objective ~= "jct" then
    return 0
  end
  local first_end_s = math.huge
  for _, other in ipairs(running) do
    first_end_s = math.min(first_end_s,
      other.start_s + other.left_at_start * other.iteration_s - now)
  end
  if first_end_s == math.huge then
    return -math.huge
  end
  return job_value.largest(rules, job) - job.weight * first_end_s
end

--- Whether the job would miss its deadline in that Cell.
function job_value.is_late(job, cell, wait_s, now)
  if not job.deadline_s then
    return false
  end
  local end_s = now + wait_s + job.iterations_left / cell.rate
  return end_s > job.arrival_s + job.deadline_s + 1e-9
end

return job_value
