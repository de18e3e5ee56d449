-- Workers that average in groups instead of all together: the controller of Partial Reduce (Miao et
-- al., SIGMOD 2021, section 4) event by event, and how fast its groups mix (section 5).
local claims = require "claims"
local events = require "events"
local matrix = require "matrix"
local numbers = require "numbers"
local prices = require "prices"

local controller = {}

--- Components of the graph that these groups make over n workers: component of each.
local function components(n, groups)
  local of = {}
  local function root(w)
    while of[w] ~= w do
      of[w] = of[of[w]]
      w = of[w]
    end
    return w
  end
  for i = 1, n do
    of[i] = i
  end
  for _, group in ipairs(groups) do
    for _, w in ipairs(group) do
      of[root(w)] = root(group[1])
    end
  end
  for i = 1, n do
    of[i] = root(i)
  end
  return of
end

--- The group that the controller makes of the queue, and the rest; nil when it waits. Workers of
-- the queue are in order of readiness; `late`: whoever is there goes on.
local function next_group(q, queue, history, late)
  if #queue < q.group and not (late and #queue > 0) then
    return nil
  end
  local window, picked, rest = math.ceil((q.n - 1) / (q.group - 1)), {}, {}
  local of = components(q.n, numbers.slice(history, math.max(1, #history - window + 1),
    math.min(window, #history)))
  local split = false
  for i = 2, q.n do
    split = split or of[i] ~= of[1]
  end
  local guarded, seen = q.avoid and split and #history >= window, {}
  for pass = 1, 2 do -- the oldest, the oldest of other components, then whoever waits
    for i, w in ipairs(queue) do
      local fresh = not guarded or pass == 2 or #picked == 0 or not seen[of[w]]
      if #picked < q.group and not picked[-i] and fresh then
        picked[#picked + 1], picked[-i], seen[of[w]] = w, true, true
      end
    end
    -- nobody of another component is ready
    if guarded and pass == 1 and #picked < 2 and not late then
      return nil
    end
  end
  for i, w in ipairs(queue) do
    if not picked[-i] then
      rest[#rest + 1] = w
    end
  end
  return numbers.slice(picked, 1, math.min(q.group, #picked)), rest
end

--- The mean group matrix of groups that come with these shares: 1/P between members, the identity
-- for others.
-- @function controller.mean
-- @tparam integer n workers
-- @tparam table rows list of {share, list of members}, whose shares add up to 1
-- @treturn table the matrix, a list of rows
-- @units shares
-- @raise none
-- @usage assert(require("controller").mean(2, { { 1, { 1, 2 } } })[1][2] == 0.5)
function controller.mean(n, rows)
  local m = matrix.new(n, n, 1)
  for _, row in ipairs(rows) do
    for _, a in ipairs(row[2]) do
      m[a][a] = m[a][a] - row[1]
      for _, b in ipairs(row[2]) do
        m[a][b] = m[a][b] + row[1] / #row[2]
      end
    end
  end
  return m
end

--- The wait of the next group after one of n: Hetu's client doubles it after few, and takes a tenth
-- off after others.
local function next_wait(q, wait, n)
  return wait and (n < (q.least or 0) and math.min(2 * wait, q.wait_most or wait) or 0.9 * wait)
end

--- Plays the controller: workers that have ended their step queue up; P of them average and go on.
-- @function controller.play
-- @tparam table q {n, times = seconds of a step per worker, group = P, reduce_s = of one average,
-- avoid = true: keep groups from freezing into cliques, horizon = when to end; wait = how long a
-- group waits, from its first member on, before it goes on without being full (nil: for ever),
-- doubled by groups of fewer than `least`, to wait_most; bound = steps that a worker may have ended
-- above the slowest when it begins the next (nil or 0: any)}
-- @treturn table list of {time, workers, how many steps each was behind}; then the mean group
-- matrix, and how many members were how many steps behind the foremost of their group
-- @units seconds (or any unit of time, the same in and out)
-- @raise none
-- @usage local g = require("controller").play { n = 2, times = { 1, 2 }, group = 2, reduce_s = 0, horizon = 4 }
-- assert(#g == 2 and g[1][1] == 2)
function controller.play(q)
  local ready, queue, groups, history, steps, stale = events.queue(), {}, {}, {}, {}, {}
  local together = {} -- ready at the same time: by number
  local wait, close = q.wait, nil
  -- steps of their own; `left` have ended no more than the slowest
  local ended, held, slowest, left = {}, {}, 0, q.n
  local function begin(now, w, at)
    held[w] = (q.bound or 0) > 0 and ended[w] > slowest + q.bound and at or nil
    if not held[w] then
      ready:push(math.max(now, at) + q.times[w], w)
    end
  end
  local function count(now, w)
    ended[w] = ended[w] + 1
    if ended[w] ~= slowest + 1 then
      return
    end
    left = left - 1
    if left > 0 then
      return
    end
    slowest = slowest + 1
    for v = 1, q.n do
      left = left + (ended[v] == slowest and 1 or 0)
    end
    for v = 1, q.n do
      if held[v] then
        begin(now, v, held[v])
      end
    end
  end
  for w = 1, q.n do
    ready:push(q.times[w], w)
    steps[w], ended[w] = 1, 0
  end
  events.run(ready, function(now, w)
    if w then -- no number: the time of a group is up
      together[#together + 1] = w
      count(now, w)
    end
    if ready:peek() == now then
      return
    end
    table.sort(together)
    close = close or #together > 0 and wait and now + wait
    if close and #queue == 0 and #together > 0 then
      ready:push(close)
    end
    table.move(together, 1, #together, #queue + 1, queue)
    together = {}
    local group, rest = next_group(q, queue, history, close and now >= close)
    while group do
      wait = next_wait(q, wait, #group)
      queue, groups[#groups + 1], history[#history + 1] = rest, { now + q.reduce_s, group }, group
      local most, gaps = 0, {}
      groups[#groups][3] = gaps
      for _, m in ipairs(group) do
        most = math.max(most, steps[m])
      end
      for _, m in ipairs(group) do
        local behind = most - steps[m]
        gaps[#gaps + 1] = behind
        stale[behind], steps[m] = (stale[behind] or 0) + 1, most + 1
        begin(now, m, now + q.reduce_s)
      end
      close = wait and #queue > 0 and now + wait or nil
      if close then
        ready:push(close)
      end
      group, rest = next_group(q, queue, history)
    end
  end, q.horizon)
  local rows = {}
  for k, g in ipairs(groups) do
    rows[k] = { 1 / #groups, g[2] }
  end
  return groups, controller.mean(q.n, rows), stale
end

--- Groups as text, "12@1 12@2": who, and when their average was ready.
-- @function controller.text
-- @tparam table groups list of {time, workers}
-- @tparam integer count how many of them
-- @treturn string the text
-- @units the unit of the times
-- @raise fewer groups than `count`
-- @usage assert(require("controller").text({ { 1, { 2, 1 } } }, 1) == "21@1")
function controller.text(groups, count)
  local out = {}
  for k = 1, count do
    out[k] = ("%s@%g"):format(table.concat(groups[k][2]), groups[k][1])
  end
  return table.concat(out, " ")
end

--- Second eigenvalue of a mean group matrix: 0 mixes at once, 1 never.
-- @function controller.mixing
-- @tparam table mean symmetric matrix, list of rows of shares
-- @treturn number rho
-- @units a share
-- @raise a matrix that is not symmetric
-- @usage assert(math.abs(require("controller").mixing { { 0.5, 0.5 }, { 0.5, 0.5 } }) < 1e-9)
function controller.mixing(mean)
  return (matrix.eigen(mean))[2] or 0
end

--- Weights of a group's members by how many steps they are behind its foremost: a factor per step,
-- as in a moving average (dynamic partial reduce); 1: equal ones.
-- @function controller.weights
-- @tparam table gaps list of steps behind
-- @tparam number decay factor per step, above 0
-- @treturn table list of weights that sum to 1
-- @units shares
-- @raise none
-- @usage assert(require("controller").weights({ 0, 0 }, 0.5)[1] == 0.5)
function controller.weights(gaps, decay)
  local out, sum = {}, 0
  for i, gap in ipairs(gaps) do
    out[i] = decay ^ gap
    sum = sum + out[i]
  end
  for i in ipairs(out) do
    out[i] = out[i] / sum
  end
  return out
end

--- How fast models agree under groups with weights by staleness: the share of their squared
-- distance from the mean that a group leaves in the mean, at worst. With equal weights it is
-- controller.mixing of the mean matrix, whose W is a projection. For a group G with weights w, J =
-- 1 - 11'/n and d = |G| w - 1 on G: J W'J W J = J (1 off G, |G| ww' - dd'/n on it) J.
-- @function controller.agreeing
-- @tparam integer n workers
-- @tparam table groups list of {time, members, steps behind}, as controller.play gives them
-- @tparam number decay factor per step behind, 1: equal weights
-- @treturn number rho, 0 at once, 1 never
-- @units a share
-- @raise none
-- @usage assert(require("controller").agreeing(2, { { 1, { 1, 2 }, { 0, 0 } } }, 1) < 1e-9)
function controller.agreeing(n, groups, decay)
  local m, mean, all = matrix.new(n, n, 1), {}, 0
  for _, g in ipairs(groups) do
    local size, w = #g[2], controller.weights(g[3], decay)
    for i, a in ipairs(g[2]) do
      m[a][a] = m[a][a] - 1 / #groups
      for k, b in ipairs(g[2]) do
        m[a][b] = m[a][b] + (size * w[i] * w[k] - (size * w[i] - 1) * (
          size * w[k] - 1) / n) / #groups
      end
    end
  end
  for i = 1, n do
    mean[i] = 0
    for k = 1, n do
      mean[i] = mean[i] + m[i][k] / n
    end
    all = all + mean[i] / n
  end
  for i = 1, n do
    for k = 1, n do
      m[i][k] = m[i][k] - mean[i] - mean[k] + all
    end
  end
  return math.max(0, (matrix.eigen(m))[1])
end

--- Workers of a plan, one per pipeline.
-- @function controller.workers
-- @tparam handle ctx the run's input
-- @tparam table made plan with the keys of a plan file
-- @treturn table list of {seconds = of a step, sequences = of a step, id = first device}
-- @units seconds; sequences are a number
-- @raise what hv.cost.stage raises
-- @usage print(require("controller").workers(ctx, require("prices").table_of(hv.strategy("uniform")))[1].seconds)
function controller.workers(ctx, made)
  local workers = {}
  for r, replica in ipairs(made.replicas) do
    local stage_s, count = prices.stage_times(ctx, made, r), replica.count or 1
    local ids = ctx.cluster:ids(replica.stages[1].devices)
    for k = 0, count - 1 do
      workers[#workers + 1] = { seconds = claims.pipeline_s(stage_s, replica.micro_batches),
        sequences = replica.micro_batches * (replica.micro_batch or made.micro_batch),
        id = ids[k * (#ids // count) + 1] }
    end
  end
  return workers
end

return controller
