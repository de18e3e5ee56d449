-- Workers that average in groups instead of all together: the controller of Partial Reduce (Miao et al., SIGMOD 2021,
-- section 4) event by event, and how fast its groups mix (section 5).
local events = require "events"
local layout = require "layout"
local matrix = require "matrix"

local groupwise = {}

--- Components of the graph that these groups make over n workers: component of each.
local function components(n, groups)
  local of = {}
  for i = 1, n do of[i] = i end
  for _, group in ipairs(groups) do
    for _, w in ipairs(group) do
      local from, to = of[w], of[group[1]]
      for i = 1, n do of[i] = of[i] == from and to or of[i] end
    end
  end
  return of
end

--- The group that the controller makes of the queue, and the rest; nil when it waits. Workers of the queue are in
-- order of readiness.
local function next_group(q, queue, history)
  if #queue < q.group then return nil end
  local window, picked, rest = math.ceil((q.n - 1) / (q.group - 1)), {}, {}
  local of = components(q.n, layout.slice(history, math.max(1, #history - window + 1), math.min(window, #history)))
  local split = false
  for i = 2, q.n do split = split or of[i] ~= of[1] end
  local guarded, seen = q.avoid and split and #history >= window, {}
  for pass = 1, 2 do -- the oldest, the oldest of other components, then whoever waits
    for i, w in ipairs(queue) do
      local fresh = not guarded or pass == 2 or #picked == 0 or not seen[of[w]]
      if #picked < q.group and not picked[-i] and fresh then
        picked[#picked + 1], picked[-i], seen[of[w]] = w, true, true
      end
    end
    if guarded and pass == 1 and #picked < 2 then return nil end -- nobody of another component is ready
  end
  for i, w in ipairs(queue) do
    if not picked[-i] then rest[#rest + 1] = w end
  end
  return layout.slice(picked, 1, q.group), rest
end

--- Plays the controller: workers that have ended their step queue up; P of them average and go on.
-- @function groupwise.play
-- @tparam table q {n, times = seconds of a step per worker, group = P, reduce_s = of one average, avoid = true:
-- keep groups from freezing into cliques, horizon = when to end}
-- @treturn table list of {time, workers}; then the mean group matrix, and how many members were how many steps
-- behind the foremost of their group
-- @units seconds (or any unit of time, the same in and out)
-- @raise none
-- @usage local g = require("groupwise").play { n = 2, times = { 1, 2 }, group = 2, reduce_s = 0, horizon = 4 }
-- assert(#g == 2 and g[1][1] == 2)
function groupwise.play(q)
  local ready, queue, groups, history, steps, stale = events.queue(), {}, {}, {}, {}, {}
  local together = {} -- ready at the same time: by number
  local mean = matrix.new(q.n)
  for w = 1, q.n do
    ready:push(q.times[w], w)
    steps[w] = 1
  end
  events.run(ready, function(now, w)
    together[#together + 1] = w
    if ready:peek() == now then return end
    table.sort(together)
    table.move(together, 1, #together, #queue + 1, queue)
    together = {}
    local group, rest = next_group(q, queue, history)
    while group do
      queue, groups[#groups + 1], history[#history + 1] = rest, { now + q.reduce_s, group }, group
      local most = 0
      for _, m in ipairs(group) do most = math.max(most, steps[m]) end
      for _, m in ipairs(group) do
        local behind = most - steps[m]
        stale[behind], steps[m] = (stale[behind] or 0) + 1, most + 1
        ready:push(now + q.reduce_s + q.times[m], m)
      end
      group, rest = next_group(q, queue, history)
    end
  end, q.horizon)
  for _, g in ipairs(groups) do
    for i = 1, q.n do mean[i][i] = mean[i][i] + 1 / #groups end
    for _, a in ipairs(g[2]) do
      mean[a][a] = mean[a][a] - 1 / #groups
      for _, b in ipairs(g[2]) do mean[a][b] = mean[a][b] + 1 / #g[2] / #groups end
    end
  end
  return groups, mean, stale
end

--- Second eigenvalue of a mean group matrix: 0 mixes at once, 1 never.
-- @function groupwise.mixing
-- @tparam table mean symmetric matrix, list of rows of shares
-- @treturn number rho
-- @units a share
-- @raise a matrix that is not symmetric
-- @usage assert(math.abs(require("groupwise").mixing { { 0.5, 0.5 }, { 0.5, 0.5 } }) < 1e-9)
function groupwise.mixing(mean) return (matrix.eigen(mean))[2] or 0 end

return groupwise
