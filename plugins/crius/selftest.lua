-- Self-tests of the check that the queue's schedules are compared with.
local checks = require "checks"

local function check_queue_fault(t)
  local function row(start_s, at, iterations)
    return { start_s = start_s, end_s = start_s + 4, parts = {
      { start_s = start_s, end_s = start_s + 4, iterations = iterations, at = at,
        cell = { type = "a", gpus = 2 } } } }
  end
  local jobs = { { arrival_s = 0, work = 3 }, { arrival_s = 2, work = 3 } }
  t.ok("side by side", checks.queue_fault(jobs, { row(0, 1, 3), row(2, 3, 3) }) == nil)
  t.ok("one after the other", checks.queue_fault(jobs, { row(0, 1, 3), row(4, 2, 3) }) == nil)
  t.ok("a device twice", checks.queue_fault(jobs,
    { row(0, 1, 3), row(3, 2, 3) }) == "job 2 has a device that is taken")
  t.ok("too early", checks.queue_fault(jobs, { row(0, 1, 3),
    row(1, 3, 3) }) == "job 2 begins before its arrival")
  t.ok("work left", checks.queue_fault(jobs, { row(0, 1, 2),
    row(4, 1, 3) }) == "job 1 does not do its work")
end

return function(t)
  check_queue_fault(t)
end
