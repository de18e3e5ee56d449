-- Stages of equal depth over pools of devices: which pools serve which stage, when every stage has
-- as many replicas and a stage is as slow as its slowest pool (Sailor, SOSP 2025, section 4.2).
-- Dynamic programming over the stages, the state being what is left of every pool. Pure search;
-- prices come from the caller.
local stage_dp = {}

--- Even ranges of layers {first, last}; the last ones are larger, where less is alive.
local function even_ranges(n, depth)
  local ranges, at = {}, 0
  for s = 1, depth do
    local size = n // depth + (s > depth - n % depth and 1 or 0)
    ranges[s] = { at + 1, at + size }
    at = at + size
  end
  return ranges
end

--- How a stage may run on a pool: by the least degree that fits, and by more as long as twice the
-- degree is at least `q.speedup` times as fast.
local function ways_of(q, c, s)
  local list, from, to = {}, c.ranges[s][1], c.ranges[s][2]
  for k = 1, #q.quota do
    local last
    for _, tp in ipairs(q.degrees(k)) do
      local t = q.time(k, tp, c.micro_batch, from, to)
      if not last and t and q.fits(k, tp, c.micro_batch, from, to, s, c.depth) then
        last = { pool = k, tp = tp, time = t }
        list[#list + 1] = last
      elseif last and t and last.time / t >= q.speedup and tp == 2 * (last.top or last.tp) then
        local more = { pool = k, tp = tp, time = t }
        if list[#list] ~= last then
          list[#list] = nil
        end
        list[#list + 1] = more
        last = { pool = k, tp = last.tp, top = tp, time = t }
      elseif last then
        break
      end
    end
  end
  return list
end

--- One message of a case behind a layer, remembered.
local function message(q, c, a, b, layer)
  local key = (((a.pool * 4096 + a.tp) * 1024 + b.pool) * 4096 + b.tp) * 16384 + layer
  c.messages[key] = c.messages[key] or q.hop(a, b, c.micro_batch, layer)
  return c.messages[key]
end

--- The slowest message between replicas of two neighbours, remembered by what serves them.
local function hop_of(q, c, before, after, layer)
  local key = before.set .. ">" .. after.set .. "@" .. layer
  local most = c.hops[key]
  if not most then
    most = 0
    for _, a in ipairs(before.rows) do
      for _, b in ipairs(after.rows) do
        most = math.max(most, message(q, c, a, b, layer))
      end
    end
    c.hops[key] = most
  end
  return most
end

--- The least time of the slowest stage, with its fastest hops, for which the pools have enough
-- devices.
local function straggler_bound(q, c, dp)
  local times = {}
  for _, ways in ipairs(c.ways) do
    for _, w in ipairs(ways) do
      times[#times + 1] = w.load
    end
  end
  table.sort(times)
  local low, high = 1, #times
  while low < high do
    local middle = (low + high) // 2
    local serves, least, room = {}, {}, 0
    for _, ways in ipairs(c.ways) do
      local seen = {}
      for _, w in ipairs(ways) do
        if w.load <= times[middle] then
          least[w.pool] = math.min(least[w.pool] or w.tp, w.tp)
          serves[w.pool] = (serves[w.pool] or 0) + (seen[w.pool] and 0 or dp)
          seen[w.pool] = true
        end
      end
    end
    for pool, n in pairs(serves) do
      room = room + math.min(n, q.quota[pool] // least[pool])
    end
    if room >= dp * c.depth then
      high = middle else
      low = middle + 1
    end
  end
  return times[low] or math.huge
end

--- Writes into the ways of a case their time with the fastest hop on either side, and into it the
-- least passes and hops from each stage on. False when a stage has no way.
local function set_loads(q, c)
  c.rest = { [c.depth + 1] = 0 }
  for s = c.depth, 1, -1 do
    local t, fastest = math.huge, s > 1 and math.huge or 0
    for _, w in ipairs(c.ways[s]) do
      local into, out = s > 1 and math.huge or 0, s < c.depth and math.huge or 0
      for _, other in ipairs(c.ways[s - 1] or {}) do
        into = math.min(into, message(q, c, other, w, c.ranges[s][1] - 1))
      end
      for _, other in ipairs(c.ways[s + 1] or {}) do
        out = math.min(out, message(q, c, w, other, c.ranges[s][2]))
      end
      w.load, t, fastest = w.time + into + out, math.min(t, w.time), math.min(fastest, into)
    end
    if t == math.huge then
      return false
    end
    c.rest[s] = c.rest[s + 1] + t + 2 * fastest
  end
  return true
end

--- Bounds of one case: x.straggler, x.sync (of the ends, which hold embedding and head, and of
-- their neighbours) and x.bound.
local function set_bounds(q, x)
  local c = x.case
  x.straggler, x.sync = straggler_bound(q, c, x.dp), 0
  for _, s in ipairs { 1, math.min(2, c.depth), math.max(1, c.depth - 1), c.depth } do
    local sync = math.huge
    for _, w in ipairs(c.ways[s]) do
      sync = math.min(sync, q.sync({ { pool = w.pool, tp = w.tp, n = x.dp } }, c.ranges[s][1],
        c.ranges[s][2], x.dp))
    end
    x.sync = math.max(x.sync, sync)
  end
  x.seconds = (x.micro_batches - 1) * x.straggler + c.rest[1] + x.sync
  x.bound = q.goal == "cost" and x.seconds * x.usd or x.seconds
end

--- All depths, micro-batches and numbers of replicas that may fit, least bound first.
local function cases_of(q)
  local list, most = {}, 0
  for _, n in ipairs(q.quota) do
    most = most + n
  end
  for _, depth in ipairs(q.depths) do
    local late = #list > 0 and q.stopping and q.stopping(0.4)
    for _, micro_batch in ipairs(late and {} or q.sizes) do
      local c = { depth = depth, micro_batch = micro_batch, ranges = even_ranges(q.layers, depth),
        ways = {},
        messages = {}, hops = {} }
      local need, usd = 0, 0
      for s = 1, depth do
        c.ways[s] = ways_of(q, c, s)
        local tp, price = math.huge, math.huge
        for _, w in ipairs(c.ways[s]) do
          tp, price = math.min(tp, w.tp), math.min(price, w.tp * q.usd_per_s[w.pool])
        end
        need, usd = need + tp, usd + price
        if tp == math.huge then
          break
        end
      end
      local dp = need < math.huge and set_loads(q, c)
        and math.min(most // need, math.ceil(q.batch / micro_batch)) or 0
      while dp > 0 do
        local m = math.ceil(q.batch / (micro_batch * dp))
        dp = math.ceil(q.batch / (micro_batch * m)) -- as few as take m micro-batches each
        local x = { case = c, dp = dp, micro_batches = m, rank = #list, usd = usd * dp }
        set_bounds(q, x)
        if not q.within or q.within(x.seconds, x.seconds * x.usd) then
          list[#list + 1] = x
        end
        dp = dp > 1 and math.min(dp - 1, math.ceil(q.batch / (micro_batch * (m + 1)))) or 0
      end
    end
  end
  table.sort(list, function(a, b) return a.bound < b.bound or a.bound == b.bound and a.rank < b.rank end)
  return list
end

--- What can serve the stages of a case within `limit`: x.live = ways per stage, x.serves = per
-- stage and pool how many stages from there on it can serve, and with which least degree. False
-- when a stage has no way left.
local function set_live(q, x, limit)
  local c = x.case
  x.live, x.serves, x.syncs = {}, { [c.depth + 1] = {} }, {}
  for s = c.depth, 1, -1 do
    x.live[s], x.serves[s] = {}, {}
    for pool, served in pairs(x.serves[s + 1]) do
      x.serves[s][pool] = { n = served.n, tp = served.tp, s = served.s }
    end
    for _, w in ipairs(c.ways[s]) do
      local seconds = (x.micro_batches - 1) * math.max(x.straggler, w.load) + c.rest[1] + x.sync
      if (q.goal == "cost" and seconds * x.usd or seconds) < limit then
        table.insert(x.live[s], w)
        local served = x.serves[s][w.pool] or { n = 0, tp = w.tp }
        if served.s ~= s then
          served.n, served.s = served.n + 1, s
        end
        served.tp, x.serves[s][w.pool] = math.min(served.tp, w.tp), served
      end
    end
    if #x.live[s] == 0 then
      return false
    end
  end
  return true
end

--- Are enough devices left for the stages from s on?
local function is_room(x, s, left)
  local room = 0
  for pool, served in pairs(x.serves[s]) do
    room = room + math.min(left[pool] // served.tp, x.dp * served.n)
  end
  return room >= x.dp * (x.case.depth - s + 1)
end

--- A staffing of a stage: rows in order of the pools, and what is remembered by it.
local function filling_of(rows)
  table.sort(rows, function(a, b) return a.pool < b.pool end)
  local words, f = {}, { rows = rows, time = 0 }
  for i, r in ipairs(rows) do
    words[i] = r.pool .. "x" .. r.tp
    f.time = math.max(f.time, r.time)
  end
  f.set = table.concat(words, " ")
  return f
end

--- Ways to staff a stage with dp replicas from what is left: as many as there are of a first pool,
-- then of a second one, then of the others in turn; pools of one region.
local function fillings(q, ways, left, dp)
  local list = {}
  local function take(rows, need, w)
    local n = math.min(need, left[w.pool] // w.tp)
    for _, r in ipairs(rows) do
      if r.pool == w.pool or q.region[r.pool] ~= q.region[w.pool] then
        n = 0
      end
    end
    if n > 0 then
      rows[#rows + 1] = { pool = w.pool, tp = w.tp, n = n, time = w.time }
    end
    return need - n
  end
  for _, first in ipairs(ways) do
    if left[first.pool] // first.tp >= dp then
      list[#list + 1] = filling_of({ { pool = first.pool, tp = first.tp, n = dp,
        time = first.time } })
    else
      for _, second in ipairs(left[first.pool] >= first.tp and ways or {}) do
        local rows = {}
        local need = second.pool ~= first.pool and take(rows, take(rows, dp, first), second) or dp
        for i = 1, need < dp and #rows == 2 and #ways or 0 do
          need = need > 0 and take(rows, need, ways[i]) or 0
        end
        if need == 0 then
          list[#list + 1] = filling_of(rows)
        end
      end
    end
  end
  return list
end

--- The all-reduce of a stage, remembered by what serves it.
local function sync_of(q, x, s, filling)
  local key = filling.set .. "/" .. s
  x.syncs[key] = x.syncs[key] or q.sync(filling.rows, x.case.ranges[s][1], x.case.ranges[s][2],
    x.dp)
  return x.syncs[key]
end

--- USD per iteration for messages between two stages' replicas, the first of each side by side, and
-- for the all-reduce of the later one, whose ring passes every change of pool once: what crosses
-- zones has a fare per byte.
local function fares(q, x, s, before, filling)
  if not q.fare then
    return 0
  end
  local c, usd, at, b = x.case, 0, 0, 1
  local first, last, rows, left = c.ranges[s][1], c.ranges[s][2], filling.rows, filling.rows[1].n
  for _, a in ipairs(before and before.rows or {}) do
    local n = a.n
    while n > 0 do -- replicas of `a` that hand on to row b
      local some = math.min(n, left)
      usd = usd + some * x.micro_batches * 2 * q.hop_bytes(c.micro_batch,
        first - 1) * q.fare(a.pool, rows[b].pool)
      n, left = n - some, left - some
      if left == 0 and rows[b + 1] then
        b, left = b + 1, rows[b + 1].n
      end
    end
  end
  for i, r in ipairs(#rows > 1 and rows or {}) do
    at = at + q.fare(r.pool, rows[i % #rows + 1].pool)
  end
  return at > 0 and usd + at * 2 * (x.dp - 1) / x.dp * q.sync_bytes(rows, first, last) or usd
end

--- USD per second of what is taken from the pools, in whole units (nodes).
local function price_of(q, left)
  local sum = 0
  for k, quota in ipairs(q.quota) do
    local unit = q.unit and q.unit[k] or 1
    sum = sum + math.min(quota, (quota - left[k] + unit - 1) // unit * unit) * q.usd_per_s[k]
  end
  return sum
end

--- One state more: `filling` at stage s behind `state`, when its least value, (M - 1) straggler +
-- all passes and hops + the largest all-reduce, in money if wanted, is below `limit`.
local function step(q, x, s, state, filling, limit)
  local c, before = x.case, state.filling
  local hop = before and hop_of(q, c, before, filling, c.ranges[s][1] - 1) or 0
  local new = { from = state, filling = filling, open = filling.time + hop,
    worst = math.max(state.worst, before and state.open + hop or 0), sum = state.sum + filling.time
      + 2 * hop,
    sync = math.max(state.sync, sync_of(q, x, s, filling)) }
  new.seconds = (x.micro_batches - 1) * math.max(x.straggler, new.worst, new.open) + new.sum
    + c.rest[s + 1]
    + math.max(x.sync, new.sync)
  if new.seconds * (q.goal == "cost" and x.usd or 1) >= limit then
    return nil
  end
  new.left = table.move(state.left, 1, #state.left, 1, {})
  for _, r in ipairs(filling.rows) do
    new.left[r.pool] = new.left[r.pool] - r.n * r.tp
  end
  if not is_room(x, s + 1, new.left) then
    return nil
  end
  new.usd, new.fares = math.max(x.usd, price_of(q, new.left)), state.fares
    + fares(q, x, s, before, filling)
  local usd = new.seconds * new.usd + new.fares
  if q.within and not q.within(new.seconds, usd) then
    return nil
  end
  new.value = q.goal == "cost" and usd or new.seconds
  new.at = table.concat(new.left, " ")
  new.key = new.at .. "/" .. filling.set
  return new.value < limit and new or nil
end

--- The best staffing of one case below `limit`; nil when there is none.
local function solve(q, x, limit)
  local states = { { left = q.quota, fares = 0, worst = 0, open = 0, sum = 0, sync = 0, at = "" } }
  if not set_live(q, x, limit) then
    return nil
  end
  for s = 1, x.case.depth do
    local by_key, list, known = {}, {}, {}
    for _, state in ipairs(states) do
      known[state.at] = known[state.at] or fillings(q, x.live[s], state.left, x.dp)
      for _, filling in ipairs(known[state.at]) do
        local new = step(q, x, s, state, filling, limit)
        local old = new and by_key[new.key]
        if new and not old then
          list[#list + 1], by_key[new.key] = new.key, new
        elseif new and new.value < old.value then
          by_key[new.key] = new
        end
      end
    end
    states = {}
    for i, key in ipairs(list) do
      states[i] = by_key[key]
    end
    table.sort(states, function(a, b) return a.value < b.value or a.value == b.value and a.key < b.key end)
    for i = #states, q.width + 1, -1 do
      states[i] = nil
    end
  end
  x.live, x.serves, x.syncs = nil, nil, nil
  return states[1]
end

--- The best plans, one per case at most, best first.
-- @function stage_dp.search
-- @tparam table q {layers = how many, batch = sequences, quota = devices per pool, region = one
-- word per pool, usd_per_s = per pool and device, unit = devices paid together per pool or nil,
-- depths, sizes = lists of stages and micro-batches to try, degrees = function(pool) giving
-- ascending degrees, time = function(pool, tp, micro_batch, first, last) or nil, fits =
-- function(pool, tp, micro_batch, first, last, stage, depth), hop = function(row, row, micro_batch,
-- layer), sync = function(rows, first, last, dp), rows being {pool, tp, n}; goal = "time" or
-- "cost", speedup = that is worth twice the degree, width = states kept per stage, budget = cases
-- solved, keep = plans kept, within = function(seconds, usd) that is true of what may be, or nil,
-- stopping = function(share of the time) or nil; where bytes between pools cost money: fare =
-- function(pool, pool) giving USD per byte, hop_bytes = function(micro_batch, layer), sync_bytes =
-- function(rows, first, last)}
-- @treturn table list of {claim_s, usd, micro_batch, micro_batches, dp, depth, ranges, stages =
-- list of rows {pool, tp, n}}, and how many cases were left out by the budget
-- @units seconds, USD per second and per iteration; layers from 1, ranges inclusive
-- @raise errors of the functions
-- @usage local q = { layers = 2, batch = 4, quota = { 2 }, region = { "" }, usd_per_s = { 0 }, depths = { 1, 2 },
--   sizes = { 1 }, degrees = function() return { 1 } end, time = function(_, _, _, a, b) return b - a + 1 end,
--   fits = function() return true end, hop = function() return 0 end, sync = function() return 1 end,
--   goal = "time", speedup = 1.5, width = 8, budget = 9, keep = 1 }
-- assert(require("stage_dp").search(q)[1].claim_s == 5)
function stage_dp.search(q)
  local found, cases, limit, solved = {}, cases_of(q), math.huge, 0
  for i, x in ipairs(cases) do
    local late = #found > 0 and q.stopping and q.stopping(0.7)
    if x.bound >= limit then
      break
    end
    if solved >= q.budget or late then
      return found, #cases - i + 1
    end
    local best = solve(q, x, limit)
    solved = solved + 1
    if best then
      local made = { claim_s = best.seconds, usd = best.usd * best.seconds + best.fares,
        value = best.value, dp = x.dp,
        micro_batch = x.case.micro_batch, micro_batches = x.micro_batches, depth = x.case.depth,
        ranges = x.case.ranges, stages = {}, rank = i }
      for s = x.case.depth, 1, -1 do
        made.stages[s], best = best.filling.rows, best.from
      end
      found[#found + 1] = made
      table.sort(found, function(a, b) return a.value < b.value or a.value == b.value and a.rank < b.rank end)
      found[q.keep + 1] = nil
      limit = found[q.keep] and found[q.keep].value or math.huge
    end
  end
  return found, 0
end

return stage_dp
