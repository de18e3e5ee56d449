-- Stages as runs of operators with measured times and sizes, priced by the equations of Aceso (Liu
-- et al., EuroSys 2024, section 3.3; factors of its code for mixed precision): which operators are
-- recomputed is chosen exactly, not in order of size as there. Rows of a table: { forward,
-- backward, input, output, weights, activations, reserved forward, reserved backward }, times in
-- microseconds, sizes in MB.
local operators = {}

--- Ways to recompute operators from..to of a layer, none worse than another in time and memory:
-- runs of operators (one or two) whose activations are dropped but the last one's. {time, saved,
-- peak}.
local function ways_of(rows, keeps, from, to)
  local runs, ways, front = {}, { { time = 0, saved = 0, peak = 0 } }, {}
  for i = from, to do
    local time, saved = rows[i][1], 0
    for j = i + 1, to do
      time, saved = time + rows[j][1], saved + keeps[j - 1]
      runs[#runs + 1] = { from = i, to = j, time = time, saved = saved, peak = saved }
      ways[#ways + 1] = runs[#runs]
    end
  end
  for a, one in ipairs(runs) do
    for b = a + 1, #runs do
      local two = runs[b]
      if two.from > one.to + 1 then
        ways[#ways + 1] = { time = one.time + two.time, saved = one.saved + two.saved,
          peak = math.max(one.peak, two.peak) }
      end
    end
  end
  table.sort(ways, function(x, y)
    if x.time ~= y.time then
      return x.time < y.time
    end
    return x.saved > y.saved or x.saved == y.saved and x.peak < y.peak
  end)
  local most = -1
  for _, way in ipairs(ways) do
    if way.saved > most then
      front[#front + 1], most = way, way.saved
    end
  end
  return front
end

--- The cheapest recomputation of groups of layers that brings what is kept to `cap`: seconds more,
-- what is saved, the largest part alive at once. `alive` counts the micro-batches whose activations
-- are kept.
-- @function operators.recompute
-- @tparam table groups list of fronts, each a list of {time, saved, peak}, the first one without
-- recomputation
-- @tparam number need bytes to save, of all micro-batches, before what comes alive again
-- @tparam integer alive micro-batches
-- @treturn number time, bytes saved of one micro-batch, peak, list of the chosen entries; nil when
-- it cannot be saved
-- @units those of the fronts
-- @raise none
-- @usage local way = { { time = 0, saved = 0, peak = 0 }, { time = 2, saved = 5, peak = 1 } }
-- assert(require("operators").recompute({ way, way }, 3, 1) == 2)
function operators.recompute(groups, need, alive)
  local peaks, seen, best, saved, peak, chosen = {}, { [0] = true }, nil, nil, nil, {}
  if need <= 0 then
    for g, front in ipairs(groups) do
      chosen[g] = front[1]
    end
    return 0, 0, 0, chosen
  end
  for _, front in ipairs(groups) do
    for _, way in ipairs(front) do
      if not seen[way.peak] then
        seen[way.peak], peaks[#peaks + 1] = true, way.peak
      end
    end
  end
  table.sort(peaks)
  for _, limit in ipairs(peaks) do
    local items, allowed, total = {}, {}, 0
    for g, front in ipairs(groups) do
      items[g], allowed[g] = {}, {}
      local most = front[#front].saved
      for _, way in ipairs(front) do
        if way.peak <= limit then
          table.insert(items[g], { -way.time, most - way.saved })
          table.insert(allowed[g], way)
        end
      end
      total = total + most
    end
    local cap = total - (need + limit) / alive
    local r = cap >= 0 and hv.opt.knapsack { items = items, cap = cap }
    if r and (not best or -r.value < best) then
      best, saved, peak, chosen = -r.value, 0, 0, {}
      for g, k in ipairs(r.choices) do
        chosen[g] = allowed[g][k]
        saved, peak = saved + allowed[g][k].saved, math.max(peak, allowed[g][k].peak)
      end
    end
  end
  return best, saved, peak, chosen
end

--- What given flags (1: recomputed) mean for a run of operators: time, saved, peak. Nothing is
-- saved across layers.
local function flagged(rows, keeps, kinds, at, from, flags)
  local time, saved, peak, run = 0, 0, 0, 0
  for k = 1, #flags do
    local i = from + k - 1
    if flags:byte(k) == 49 then
      time = time + rows[kinds[i]][1]
      if flags:byte(k + 1) == 49 then
        run = run + keeps[kinds[i]]
        saved = saved + (at[i + 1] == at[i] and keeps[kinds[i]] or 0)
      end
    end
    if flags:byte(k + 1) ~= 49 or at[i + 1] ~= at[i] then
      peak, run = math.max(peak, run), 0
    end
  end
  return time, saved, peak
end

--- GB/s for a message of so many MB, by the table of powers of two.
local function bandwidth(profile, size)
  local k, list = math.floor(math.log(size, 2)), profile.bandwidth
  return list[math.max(1, math.min(#list, k >= 1 and k or 1))]
end

--- An instance for `alleviate` from a profile { layers, first, last = operators of a layer, batch,
-- devices, cap, bandwidth, names, ["micro-batch/tp"] = rows }. Softmax keeps nothing of its own and
-- dropout half as much again, since their buffers are shared (its option consider_shared_space).
-- @function operators.instance
-- @tparam table profile measured figures, with those keys
-- @treturn table {n, devices, batch, power, price}
-- @units seconds and MB
-- @raise none
-- @usage assert(require("operators").instance(require "data.gpt3_1_3b").n == 315)
function operators.instance(profile)
  local kinds, at, fronts, tables, known = {}, {}, {}, {}, {}
  local function add(kind, place)
    kinds[#kinds + 1], at[#at + 1] = kind, place
  end
  for kind = 1, profile.first - 1 do
    add(kind, 0)
  end
  for layer = 1, profile.layers do
    for kind = profile.first, profile.last do
      add(kind, layer)
    end
  end
  for kind = profile.last + 1, #profile.names do
    add(kind, 0)
  end
  local q = { n = #kinds, devices = profile.devices, batch = profile.batch, power = profile.devices,
    tp = profile.devices }

  local function table_of(key)
    if tables[key] or not profile[key] then
      return tables[key]
    end
    local t = { rows = profile[key], keeps = {}, sums = { [0] = { 0, 0, 0, 0 } } }
    for kind, row in ipairs(t.rows) do
      local name = profile.names[kind]
      t.keeps[kind] = name:find("softmax") and 0 or row[6] * (name:find("attention%-dropout$")
          and not name:find("post") and 1.5 or 1)
    end
    for i, kind in ipairs(kinds) do
      local row, sum = t.rows[kind], t.sums[i - 1]
      t.sums[i] = { sum[1] + row[1] + row[2], sum[2] + row[5], sum[3] + t.keeps[kind], sum[4] }
    end
    tables[key] = t
    return t
  end

  --- Fronts of the layers, or parts of layers, in a run of operators.
  local function groups_of(key, t, from, to)
    local groups, i = {}, from
    while i <= to do
      local last = i
      while last < to and at[last + 1] == at[i] and at[i] > 0 do
        last = last + 1
      end
      if last > i then
        local name = ("%s/%d/%d"):format(key, kinds[i], kinds[last])
        fronts[name] = fronts[name] or ways_of(t.rows, t.keeps, kinds[i], kinds[last])
        groups[#groups + 1] = fronts[name]
      end
      i = last + 1
    end
    return groups
  end

  local function priced(stage)
    local from, to, rank_batch = stage.from, stage.to, stage.micro_batch // stage.dp
    local key = rank_batch .. "/" .. stage.tp
    local t, whole = table_of(key), table_of(stage.micro_batch .. "/1")
    if not t then
      return nil
    end
    local function sum(column, of)
      return of.sums[to][column] - of.sums[from - 1][column]
    end
    local rows, input = t.rows, t.rows[kinds[from]][3]
    local output, weights, kept = rows[kinds[to]][4], sum(2, t), input + sum(3, t)
    local forward, backward = 0, 0
    for i = from, to - 1 do
      forward, backward = math.max(forward, rows[kinds[i]][7]),
        math.max(backward, rows[kinds[i]][8])
    end
    -- weights and gradients, two main copies and four for the optimizer; all in flight, and one at
    -- work
    local bytes = 8 * weights + kept * (stage.behind + 1) + math.max(forward + backward, weights)
    local again, saved, peak
    if stage.flags then
      again, saved, peak = flagged(rows, t.keeps, kinds, at, from, stage.flags)
    else
      again, saved, peak = operators.recompute(groups_of(key, t, from, to), bytes - profile.cap,
        stage.behind + 1)
    end
    local hop = input / bandwidth(profile, input)
      + (output > 0 and output / bandwidth(profile, output) or 0)
    local time = sum(1, t) / 1e6
    local ideal = whole and sum(1, whole) / 1e6 / (stage.tp * stage.dp) or time
    bytes = again and bytes - saved * (stage.behind + 1) + peak or bytes
    return { time_s = time + hop / 1e3 + (again or 0) / 1e6, ideal_s = math.min(ideal, time),
      recompute_s = (again or 0) / 1e6, bytes = bytes, cap = profile.cap }
  end

  --- The price of a stage; with `flags`, a text of 0 and 1 per operator, they say what is
  -- recomputed.
  function q.price(stage)
    if stage.flags then
      return priced(stage)
    end
    local name = ("%d/%d/%d/%d/%d/%d"):format(stage.from, stage.to, stage.tp, stage.dp,
      stage.micro_batch, stage.behind)
    if known[name] == nil then
      known[name] = priced(stage) or false
    end
    return known[name] or nil
  end
  return q
end

return operators
