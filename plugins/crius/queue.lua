-- Schedulers of jobs on pools of devices of several types, as Crius has one (Xue et al., arXiv
-- 2403.16125, section 6): on every arrival and departure a job is let in by the change of most
-- cluster throughput, or of least time until all are done, where jobs that run may get other cells,
-- restart included. Cells and their rates come from the caller.
local queue = {}

--- What a job is worth in a cell, when it starts there `wait_s` from now. "throughput": the share
-- of its best rate, by the work that is left over the time until its end; "jct": that time, less of
-- it being more, nothing for jobs without end.
local function worth(o, r, cell, wait_s)
  if o.objective == "jct" then
    return r.todo < math.huge and -r.weight * (wait_s + r.todo / cell.rate) or 0
  end
  local rate = cell.rate
  if wait_s > 0 and r.todo < math.huge then
    rate = r.todo / (r.todo / rate + wait_s)
  end
  return r.weight * rate / r.best
end

--- The most a job can be worth.
local function most_of(o, r)
  return worth(o, r, { rate = r.best }, 0)
end

--- What a job is worth that stays in the queue: its end after the first of those that run, where
-- ends count.
local function waiting_worth(o, r, running, now)
  local first = math.huge
  for _, other in ipairs(running) do
    first = math.min(first, other.start_s + other.left * other.each_s - now)
  end
  if o.objective ~= "jct" then
    return 0
  end
  return first < math.huge and most_of(o, r) - r.weight * first or -math.huge
end

--- Would the job be late in that cell?
local function late(r, cell, wait_s, now)
  return r.deadline_s and now + wait_s + r.todo / cell.rate > r.arrival_s + r.deadline_s + 1e-9
end

--- First slots of the devices that hold these cells beside the ones that stay: blocks of a cell's
-- size on multiples of it, the largest first. `stay` and `wanted` are lists of {cell, at}; false
-- when a cell finds no block.
local function placed(pool, stay, wanted)
  local taken = {}
  for type, n in pairs(pool) do
    taken[type] = { n = n }
  end
  local function mark(cell, at)
    for k = at, at + cell.gpus - 1 do
      taken[cell.type][k] = true
    end
  end
  local function fits(cell, at)
    for k = at, at + cell.gpus - 1 do
      if taken[cell.type][k] then
        return false
      end
    end
    return not cell.seconds or cell.seconds(at) ~= nil
  end
  for _, w in ipairs(stay) do
    mark(w.cell, w.at)
  end
  local order = table.move(wanted, 1, #wanted, 1, {})
  table.sort(order, function(a, b) return a.cell.gpus > b.cell.gpus end)
  for _, w in ipairs(order) do
    local own, at = taken[w.cell.type], 1
    while own and at + w.cell.gpus - 1 <= own.n and not fits(w.cell, at) do
      at = at + w.cell.gpus
    end
    if not own or at + w.cell.gpus - 1 > own.n then
      return false
    end
    w.at = at
    mark(w.cell, at)
  end
  return true
end

--- The places of a choice of cells: those that stay keep theirs.
local function places(pool, running, held, job, cell)
  local stay, wanted, count = {}, {}, {}
  for i, r in ipairs(running) do
    table.insert(r.cell == held[i] and stay or wanted, { cell = held[i], at = r.at, job = r })
    count[held[i].type] = (count[held[i].type] or 0) + held[i].gpus
  end
  if job then
    table.insert(wanted, { cell = cell, job = job })
    count[cell.type] = (count[cell.type] or 0) + cell.gpus
  end
  for type, n in pairs(count) do
    if n > (pool[type] or 0) then
      return nil
    end
  end
  return placed(pool, stay, wanted) and wanted or nil
end

--- The change worth most that lets `job` in: one of its cells, and other cells for at most `depth`
-- of the running jobs, none of which it may make late. A choice in which the new job is in time
-- goes before all others.
local function admit(pool, job, running, o, now)
  local best, gain, in_time
  local before = waiting_worth(o, job, running, now)
  for _, r in ipairs(running) do
    before = before + worth(o, r, r.cell, 0)
  end
  local left = {} -- most that the jobs from i on may add
  left[#running + 1] = most_of(o, job)
  for i = #running, 1, -1 do
    left[i] = left[i + 1] + most_of(o, running[i])
  end
  local held = {}
  local function try(i, changed, total)
    if gain and in_time and total + left[i] <= gain + 1e-12 then
      return
    end
    if i > #running then
      for _, cell in ipairs(job.cells) do
        local sum, soon = total + worth(o, job, cell, 0), not late(job, cell, 0, now)
        if (not gain or soon and not in_time or soon == in_time and sum > gain + 1e-12)
            and sum > before + 1e-12 then
          local wanted = places(pool, running, held, job, cell)
          if wanted then
            best, gain, in_time = wanted, sum, soon
          end
        end
      end
      return
    end
    local r = running[i]
    held[i] = r.cell
    try(i + 1, changed, total + worth(o, r, r.cell, 0))
    for _, cell in ipairs(changed < o.depth and r.cells or {}) do
      local spoils = late(r, cell, o.restart_s, now) and not late(r, r.cell, 0, now)
      if cell ~= r.cell and not spoils then
        held[i] = cell
        try(i + 1, changed + 1, total + worth(o, r, cell, o.restart_s))
      end
    end
  end
  try(1, 0, 0)
  return best
end

--- A better cell for one of the running jobs where devices are free: the place, or nil.
local function enlarged(pool, r, running, o)
  local best, most = nil, worth(o, r, r.cell, 0) + 1e-12
  for _, cell in ipairs(r.cells) do
    local value = worth(o, r, cell, o.restart_s)
    if cell ~= r.cell and value > most then
      local held = {}
      for i, other in ipairs(running) do
        held[i] = other == r and cell or other.cell
      end
      local wanted = places(pool, running, held)
      if wanted then
        best, most = wanted[1], value
      end
    end
  end
  return best
end

--- Whole iterations that a job has done by `now` in its cell; one begun is lost.
local function done_by(r, now)
  local done = math.max(0, math.min(r.left, (now - r.start_s) // r.each_s))
  while done > 0 and r.start_s + done * r.each_s > now do
    done = done - 1
  end
  return done
end

--- Ends what a job does at `now`.
local function close(r, now)
  local done = done_by(r, now)
  if done > 0 then
    table.insert(r.row.parts, { start_s = r.start_s, end_s = r.start_s + done * r.each_s,
      iterations = done,
      cell = r.cell, at = r.at })
    r.left = r.left - done
    r.todo = r.left
  end
end

--- Plays a queue of jobs: on every arrival and departure the waiting ones are let in, in order, by
-- the change of most cluster throughput (each job's relative to its best cell, by weight, restarts
-- charged); after departures running jobs grow where that pays. Jobs whose cell changes lose the
-- iteration they are in and pay the restart.
-- @function queue.play
-- @tparam table pool devices by type {name = count}
-- @tparam table jobs list of {arrival_s, work = iterations (math.huge: without end), weight = 1,
-- deadline_s from the arrival on, cells = list of {type, gpus (devices), rate = iterations per
-- second by estimate, seconds = function(at) giving the seconds of an iteration on the devices from
-- slot `at` of the type on, nil where it does not fit there; left out: 1 / rate}}
-- @tparam table o {depth = 3: running jobs that may change, restart_s = 0, objective = "throughput"
-- or "jct": the least time until all are done}
-- @treturn table list per job of {parts = list of {start_s, end_s, iterations, cell, at}, start_s,
-- end_s}; no parts where it never fits, no end_s where it has none
-- @units seconds, iterations per second; slots from 1
-- @raise errors of seconds
-- @usage local r = require("queue").play({ a = 1 }, { { arrival_s = 0, work = 4,
--   cells = { { type = "a", gpus = 1, rate = 2 } } } }, {})
-- assert(r[1].end_s == 2)
function queue.play(pool, jobs, o)
  o = { depth = o.depth or 3, restart_s = o.restart_s or 0, objective = o.objective
      or "throughput" }
  local coming, running, waiting, out = {}, {}, {}, {}
  for i, job in ipairs(jobs) do
    local r = { cells = job.cells, left = job.work, todo = job.work, weight = job.weight or 1,
      best = 0,
      arrival_s = job.arrival_s, deadline_s = job.deadline_s, row = { parts = {} }, rank = i }
    for _, cell in ipairs(job.cells) do
      r.best = math.max(r.best, cell.rate)
    end
    out[i], coming[i] = r.row, r
  end
  table.sort(coming, function(a, b) return a.arrival_s < b.arrival_s end)
  local function begin(w, now, wait_s)
    local r = w.job
    r.cell, r.at, r.start_s = w.cell, w.at, now + wait_s
    r.each_s = w.cell.seconds and w.cell.seconds(w.at) or 1 / w.cell.rate
    r.row.start_s = r.row.start_s or r.start_s
  end
  local function change(wanted, now)
    for _, w in ipairs(wanted) do
      local runs = w.job.cell ~= nil
      if runs then
        close(w.job, now) else
        running[#running + 1] = w.job
      end
      begin(w, now, runs and o.restart_s or 0)
    end
  end
  local function let_in(now)
    local still = {}
    for _, r in ipairs(running) do
      r.todo = r.left - done_by(r, now)
    end
    for _, job in ipairs(waiting) do
      local wanted = admit(pool, job, running, o, now)
      if wanted then
        change(wanted, now) else
        still[#still + 1] = job
      end
    end
    waiting = still
  end
  local function ends(r)
    return r.start_s + r.left * r.each_s
  end
  while true do
    local now, first = coming[1] and coming[1].arrival_s or math.huge, nil
    for _, r in ipairs(running) do
      if ends(r) <= now then
        if ends(r) < now or not first then
          now, first = ends(r), r
        end
      end
    end
    if now == math.huge then
      break
    end
    if first then
      close(first, math.huge)
      first.row.end_s = now
      for i, r in ipairs(running) do
        if r == first then
          table.remove(running, i) break
        end
      end
    else
      waiting[#waiting + 1] = table.remove(coming, 1)
    end
    let_in(now)
    for _, r in ipairs(first and running or {}) do
      local w = r.left < math.huge and #waiting == 0 and enlarged(pool, r, running, o)
      if w then
        change({ w }, now)
      end
    end
  end
  for _, r in ipairs(running) do -- without end
    table.insert(r.row.parts, { start_s = r.start_s, cell = r.cell, at = r.at })
  end
  return out
end

return queue
