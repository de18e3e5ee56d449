-- For the self-tests, schedules of its queue: the rules that every schedule keeps.
local checks = {}

--- Do two parts of a schedule use a device at the same time?
local function collide(p, u)
  local apart = p.at + p.cell.gpus <= u.at or u.at + u.cell.gpus <= p.at
  return not apart and u.cell.type == p.cell.type and u.start_s < p.end_s and p.start_s < u.end_s
end

--- Which rule of any schedule a played queue breaks: every job ends with its work done, none begins
-- before its arrival, no device is used twice at a time.
-- @function checks.queue_fault
-- @tparam table jobs list of {arrival_s, work = iterations}
-- @tparam table played list per job of {parts = list of {start_s, end_s, iterations, cell = {type,
-- gpus}, at}, start_s, end_s}, as queue.play gives it
-- @treturn string what is wrong; nil where all rules are kept
-- @units seconds; slots from 1
-- @raise none
-- @usage local r = { { parts = {} } }
-- assert(require("testing.oracle").queue_fault({ { arrival_s = 0, work = 1 } }, r) == "job 1 never ends")
function checks.queue_fault(jobs, played)
  local uses = {}
  for i, row in ipairs(played) do
    local done = 0
    if not row.end_s then
      return ("job %d never ends"):format(i)
    end
    if row.start_s < jobs[i].arrival_s then
      return ("job %d begins before its arrival"):format(i)
    end
    for _, p in ipairs(row.parts) do
      done = done + p.iterations
      for _, u in ipairs(uses) do
        if collide(p, u) then
          return ("job %d has a device that is taken"):format(i)
        end
      end
      uses[#uses + 1] = p
    end
    if done ~= jobs[i].work then
      return ("job %d does not do its work"):format(i)
    end
  end
end

return checks
