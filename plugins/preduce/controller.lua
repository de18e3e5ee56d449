-- The controller of Partial Reduce (section 4), event by event: workers that have ended their step
-- wait in a queue, and groups of them average their models.
local events = require "events"
local mixing = require "mixing"
local numbers = require "numbers"

local controller = {}

--- The component of each of n workers in the graph in which the members of a group are connected.
local function components(n, groups)
  local component = {}
  local function root(w)
    while component[w] ~= w do
      component[w] = component[component[w]]
      w = component[w]
    end
    return w
  end
  for w = 1, n do
    component[w] = w
  end
  for _, group in ipairs(groups) do
    for _, w in ipairs(group) do
      component[root(w)] = root(group[1])
    end
  end
  for w = 1, n do
    component[w] = root(w)
  end
  return component
end

--- The components that the last ceil((N - 1) / (P - 1)) groups leave; nil where there are fewer
-- groups yet, or where they connect all workers.
local function separate_components(q, history)
  local window = math.ceil((q.n - 1) / (q.group - 1))
  if #history < window then
    return nil
  end
  local component = components(q.n, numbers.slice(history, #history - window + 1, window))
  for w = 2, q.n do
    if component[w] ~= component[1] then
      return component
    end
  end
  return nil
end

--- Adds up to q.group workers of the queue to `group`, in order of readiness; with `component` only
-- the first of each component. `taken` are the positions in the queue that are in the group.
local function take(q, queue, group, taken, component)
  local seen = {}
  for i, w in ipairs(queue) do
    if #group < q.group and not taken[i] and not (component and seen[component[w]]) then
      group[#group + 1] = w
      taken[i] = true
      if component then
        seen[component[w]] = true
      end
    end
  end
end

--- The group that the controller makes of the queue, and the rest of it; nil where it waits.
-- `late`: the time of the group is up, and it need not be full.
local function next_group(q, queue, history, late)
  if #queue < q.group and not (late and #queue > 0) then
    return nil
  end
  local component = q.avoid and separate_components(q, history)
  local group = {}
  local taken = {}
  if component then -- join components: first the oldest worker of each
    take(q, queue, group, taken, component)
    if #group < 2 and not late then
      return nil -- nobody of another component is ready
    end
  end
  take(q, queue, group, taken)
  local rest = {}
  for i, w in ipairs(queue) do
    if not taken[i] then
      rest[#rest + 1] = w
    end
  end
  return group, rest
end

--- The wait of the next group after one of n members: Hetu's client doubles it after groups below
-- q.least, up to q.wait_most, and takes a tenth off after others.
local function next_wait(q, wait, n)
  if not wait then
    return nil
  elseif n < (q.least or 0) then
    return math.min(2 * wait, q.wait_most or wait)
  end
  return 0.9 * wait
end

--- The state of a play before the first step. `ready` holds events: the worker that ends its step,
-- or no value where the time of a group is up.
local function new_state(q)
  local state = {
    ready = events.queue(),
    arrived = {},     -- workers that ended their step at this time
    queue = {},       -- workers that wait for a group, in order of readiness
    groups = {},      -- rows { at, members, behind }
    history = {},     -- members of every group
    version = {},     -- steps that the model of a worker contains
    n_behind = {},    -- number of members by steps behind the foremost of their group
    ended = {},       -- steps that a worker has ended
    held = {},        -- workers that q.bound holds back, with the time of their average
    slowest = 0,      -- steps that the slowest worker has ended
    n_slowest = q.n,  -- number of workers that have ended no more than that
    wait = q.wait,    -- of the next group
    close = nil,      -- time at which the open group goes on
  }
  for w = 1, q.n do
    state.ready:push(q.times[w], w)
    state.version[w] = 1
    state.ended[w] = 0
  end
  return state
end

--- Begins the next step of a worker whose average is ready at `at`, or holds it back.
local function begin_step(q, state, now, w, at)
  local bound = q.bound or 0
  if bound > 0 and state.ended[w] > state.slowest + bound then
    state.held[w] = at
  else
    state.held[w] = nil
    state.ready:push(math.max(now, at) + q.times[w], w)
  end
end

--- Counts the step that a worker has ended; where it was the last of the slowest, workers that were
-- held back begin.
local function end_step(q, state, now, w)
  state.ended[w] = state.ended[w] + 1
  if state.ended[w] ~= state.slowest + 1 then
    return
  end
  state.n_slowest = state.n_slowest - 1
  if state.n_slowest > 0 then
    return
  end
  state.slowest = state.slowest + 1
  for v = 1, q.n do
    if state.ended[v] == state.slowest then
      state.n_slowest = state.n_slowest + 1
    end
  end
  for v = 1, q.n do
    if state.held[v] then
      begin_step(q, state, now, v, state.held[v])
    end
  end
end

--- A group averages: its members get the foremost version and begin their next step.
local function average(q, state, now, group)
  local foremost = 0
  for _, w in ipairs(group) do
    foremost = math.max(foremost, state.version[w])
  end
  local row = { at = now + q.reduce_s(group), members = group, behind = {} }
  state.groups[#state.groups + 1] = row
  state.history[#state.history + 1] = group
  for i, w in ipairs(group) do
    local behind = foremost - state.version[w]
    row.behind[i] = behind
    state.n_behind[behind] = (state.n_behind[behind] or 0) + 1
    state.version[w] = foremost + 1
    begin_step(q, state, now, w, row.at)
  end
end

--- Queues the workers that have arrived, and makes groups as long as the controller can.
local function make_groups(q, state, now)
  table.sort(state.arrived) -- workers that are ready at the same time go by number
  if not state.close and #state.arrived > 0 and state.wait then
    state.close = now + state.wait
  end
  if state.close and #state.queue == 0 and #state.arrived > 0 then
    state.ready:push(state.close)
  end
  table.move(state.arrived, 1, #state.arrived, #state.queue + 1, state.queue)
  state.arrived = {}
  local group, rest = next_group(q, state.queue, state.history, state.close and now >= state.close)
  while group do
    state.wait = next_wait(q, state.wait, #group)
    state.queue = rest
    average(q, state, now, group)
    state.close = nil
    if state.wait and #rest > 0 then
      state.close = now + state.wait
      state.ready:push(state.close)
    end
    group, rest = next_group(q, state.queue, state.history)
  end
end

--- Plays the controller. `q` is { n = workers, times = of a step per worker, group = P, reduce_s =
-- function(members), the time of their average, horizon = end of the play, avoid = true: keep
-- groups from freezing into cliques, wait = longest time from the first member of a group on before
-- it goes on without being full (nil: no limit), least and wait_most = see next_wait, bound = steps
-- that a worker may have ended above the slowest when it begins the next (nil or 0: any) }, in
-- seconds or any other unit of time. Returns the groups { at = time of their average, members,
-- behind = steps of each member behind the foremost }, their mean matrix, and the number of members
-- by steps behind.
function controller.play(q)
  local state = new_state(q)
  events.run(state.ready, function(now, w)
    if w then
      state.arrived[#state.arrived + 1] = w
      end_step(q, state, now, w)
    end
    if state.ready:peek() ~= now then
      make_groups(q, state, now)
    end
  end, q.horizon)
  local rows = {}
  for k, group in ipairs(state.groups) do
    rows[k] = { share = 1 / #state.groups, members = group.members }
  end
  return state.groups, mixing.mean(q.n, rows), state.n_behind
end

--- The first `count` groups as text, "12@1 12@2": members, and the time of their average.
function controller.text(groups, count)
  local words = {}
  for k = 1, count do
    words[k] = ("%s@%g"):format(table.concat(groups[k].members), groups[k].at)
  end
  return table.concat(words, " ")
end

return controller
