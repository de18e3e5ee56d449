-- A queue of events in order of time, for schedulers of jobs or requests.
local events = {}

local queue = {}
queue.__index = queue
queue.__len = function(q) return q.n end
queue.__name = "events.queue"

--- Whether item a comes before item b: by time, of equal ones by the order of pushing.
local function is_before(a, b)
  if a.time ~= b.time then
    return a.time < b.time
  end
  return a.serial < b.serial
end

--- An empty queue with methods push(time, event), pop() and peek(); #q is its length. O(log n)
-- each.
-- @function events.queue
-- @treturn table {push = function(q, time, event), pop = function(q) giving time and event of the
-- earliest (of equals the one pushed first) or nil, peek = the same without taking it out}
-- @units any unit of time, the caller's
-- @raise a time that is no number
-- @usage local q = require("events").queue()
-- q:push(2, "b")
-- q:push(1, "a")
-- assert(select(2, q:pop()) == "a" and #q == 1)
function events.queue()
  return setmetatable({ n = 0, serial = 0 }, queue)
end

function queue.push(q, time, event)
  if type(time) ~= "number" or time ~= time then
    error("events.queue: push: expected a time, found " .. tostring(time), 2)
  end
  q.n = q.n + 1
  q.serial = q.serial + 1
  local item = { time = time, serial = q.serial, event = event }
  local place = q.n -- in the binary heap, whose item k has the children 2 k and 2 k + 1
  while place > 1 and is_before(item, q[place // 2]) do
    q[place] = q[place // 2]
    place = place // 2
  end
  q[place] = item
end

function queue.pop(q)
  local top, last = q[1], q[q.n]
  if not top then
    return nil
  end
  q[q.n] = nil
  q.n = q.n - 1
  local place = 1
  while q.n > 0 do
    local child = 2 * place
    if child < q.n and is_before(q[child + 1], q[child]) then
      child = child + 1
    end
    if child > q.n or not is_before(q[child], last) then
      break
    end
    q[place] = q[child]
    place = child
  end
  if q.n > 0 then
    q[place] = last
  end
  return top.time, top.event
end

function queue.peek(q)
  if q[1] then
    return q[1].time, q[1].event
  end
  return nil
end

--- Plays a queue: handlers get the time, the event and the queue, and may push more.
-- @function events.run
-- @tparam table q {push, pop, peek} as events.queue makes it
-- @tparam function handler function(time, event, queue); true ends the play
-- @tparam[opt] number horizon events later than this stay in the queue
-- @treturn number time of the last event handled (0 when there was none), and how many there were
-- @units any unit of time, the caller's
-- @raise an event that lies before one handled already; errors of the handler
-- @usage local events = require "events"
-- local q = events.queue()
-- q:push(1, 1)
-- local last = events.run(q, function(t, n, more) if n < 3 then more:push(t + 1, n + 1) end end)
-- assert(last == 3)
function events.run(q, handler, horizon)
  local now, count = 0, 0
  while #q > 0 and q:peek() <= (horizon or math.huge) do
    local time, event = q:pop()
    if time < now and count > 0 then
      error("events.run: an event lies in the past", 2)
    end
    now = time
    count = count + 1
    if handler(time, event, q) then
      break
    end
  end
  return now, count
end

return events
