-- Iterative bottleneck alleviation (Aceso, Liu et al., EuroSys 2024, sections 3 and 4): a
-- pipeline's configuration is improved by reconfiguration primitives applied to its bottleneck
-- stage, several in a row where one does not help. An instance: n = operators in order, devices,
-- batch = sequences of an iteration, power = largest stage, tp = largest tensor degree, and price =
-- function(stage): { time_s = one micro-batch forward and backward, ideal_s = the same without
-- losses from tensor or data parallelism, recompute_s, bytes, cap }, nil where the stage is not
-- possible. A stage handed to price has from, to, tp, dp, micro_batch (sequences that enter the
-- pipeline at once), index and behind (stages behind it).
local bottleneck = {}

-- What a primitive does to time, memory and communication of the stage it is applied to (Aceso,
-- table 1).
local EFFECTS = {
  { "move_out", -1, -1, 0 }, { "inc_dp", -1, -1, 1 }, { "dec_dp", 1, 1, -1 },
  { "inc_tp", -1, -1, 1 },
  { "dec_tp", 1, 1, -1 }, { "inc_batch", -1, 1, 0 }, { "dec_batch", 1, -1, 0 },
  { "tp_to_dp", 0, 1, -1 },
  { "dp_to_tp", 0, -1, 1 },
}

local function copy_of(c)
  local out = { micro_batch = c.micro_batch, free = c.free }
  for s, stage in ipairs(c) do
    out[s] = { n = stage.n, tp = stage.tp, dp = stage.dp }
  end
  return out
end

--- A text that is the same for the same configuration.
local function key_of(c)
  local parts = { c.micro_batch }
  for s, stage in ipairs(c) do
    parts[s + 1] = ("%d:%d:%d"):format(stage.n, stage.tp, stage.dp)
  end
  return table.concat(parts, " ")
end

--- Time of each stage as the slowest one: t (M − 1) + Σ t; the pipeline takes the largest.
-- @function bottleneck.times
-- @tparam table times list of the stages' times for one micro-batch
-- @tparam integer micro_batches M
-- @treturn table list of times; then the place of the largest
-- @units any, the same in and out
-- @raise none
-- @usage local list, worst = require("bottleneck").times({ 3, 5, 4 }, 8)
-- assert(list[2] == 47 and worst == 2)
function bottleneck.times(times, micro_batches)
  local sum, list, worst = 0, {}, 1
  for _, t in ipairs(times) do
    sum = sum + t
  end
  for s, t in ipairs(times) do
    list[s] = t * (micro_batches - 1) + sum
    worst = list[s] > list[worst] and s or worst
  end
  return list, worst
end

--- A configuration with its prices: { time_s, over = largest share of memory, if above 1, stages,
-- list }.
local function judged(q, c)
  local e, times, at = { config = c, over = 0, stages = {} }, {}, 0
  for s, stage in ipairs(c) do
    local p = stage.n > 0 and c.micro_batch % stage.dp == 0
      and q.price { from = at + 1, to = at + stage.n,
        tp = stage.tp, dp = stage.dp, micro_batch = c.micro_batch, index = s, behind = #c - s,
        config = c }
    if not p then
      return nil
    end
    at, e.stages[s], times[s] = at + stage.n, p, p.time_s
    e.over = math.max(e.over, p.bytes > p.cap and p.bytes / p.cap or 0)
  end
  e.list, e.worst = bottleneck.times(times, q.batch // c.micro_batch)
  e.time_s = e.list[e.worst]
  return e
end

--- Is a better than b: what fits first, then the faster one.
local function better(a, b)
  if a.over ~= b.over then
    return a.over < b.over
  end
  return a.time_s < b.time_s * (1 - 1e-9)
end

--- Stages from the worst one on: by memory while something does not fit, else by time.
local function targets(e)
  local order, value = {}, {}
  for s, p in ipairs(e.stages) do
    order[s], value[s] = s, e.over > 0 and p.bytes / p.cap or e.list[s]
  end
  table.sort(order, function(a, b) return value[a] > value[b] or value[a] == value[b] and a < b end)
  return order
end

--- Partners of a stage, most idle efficient time first (or most free memory).
local function partners(e, s)
  local order, idle = {}, {}
  for p, stage in ipairs(e.stages) do
    local own = e.config[p].tp * e.config[p].dp
    idle[p] = e.over > 0 and 1 - stage.bytes / stage.cap
      or (e.time_s - e.list[p]) * own * math.min(1, stage.ideal_s / stage.time_s)
    if p ~= s then
      order[#order + 1] = p
    end
  end
  table.sort(order, function(a, b) return idle[a] > idle[b] or idle[a] == idle[b] and a < b end)
  return order
end

--- Operators passed on along the stages from s to its partner, so that s loses a share of what it
-- has too much: stages between them pass on as many as they get.
local function moved(e, s, partner, share)
  local c = copy_of(e.config)
  local t, own = e.stages[s].time_s, e.config[s].n
  local gap = e.over > 0 and e.stages[s].bytes - math.min(e.stages[s].cap, e.stages[partner].bytes)
    or t - e.stages[partner].time_s
  local k = math.max(1, math.floor(own * share * gap / (e.over > 0 and e.stages[s].bytes or t)
      + 0.5))
  if gap <= 0 or k >= own then
    return nil
  end
  c[s].n, c[partner].n = own - k, c[partner].n + k
  return c
end

--- Twice (or half) the devices of a stage along one dimension, taken from those not in use or from
-- a partner.
local function resized(q, e, s, dim, grow)
  local list = {}
  local function try(change)
    local c = copy_of(e.config)
    local before = c[s].tp * c[s].dp
    if not grow and c[s][dim] % 2 ~= 0 then
      return
    end
    c[s][dim] = grow and c[s][dim] * 2 or c[s][dim] // 2
    if c[s].tp * c[s].dp <= q.power and change(c, before) then
      list[#list + 1] = c
    end
  end
  try(function(c, before)
    c.free = c.free - (c[s].tp * c[s].dp - before)
    return c.free >= 0
  end)
  for k, p in ipairs(partners(e, s)) do
    for _, d in ipairs(k <= 3 and { "tp", "dp" } or {}) do
      try(function(c, before)
        local more, had = c[s].tp * c[s].dp - before, c[p].tp * c[p].dp
        if more > 0 then
          while had - c[p].tp * c[p].dp < more and c[p][d] % 2 == 0 do
            c[p][d] = c[p][d] // 2
          end
        else
          c[p][d] = c[p][d] * 2
        end
        c.free = c.free - more - (c[p].tp * c[p].dp - had)
        return c.free >= 0 and c[p].tp * c[p].dp <= q.power
      end)
    end
  end
  return list
end

--- All configurations that a primitive makes of e at stage s.
local function applied(q, e, s, name)
  local list, c = {}, copy_of(e.config)
  if name == "move_out" then
    for k, p in ipairs(partners(e, s)) do
      for _, share in ipairs(k <= 4 and { 0.6, 0.3, 0.1, 0 } or {}) do
        list[#list + 1] = moved(e, s, p, share)
      end
    end
  elseif name == "inc_batch" or name == "dec_batch" then
    c.micro_batch = name == "inc_batch" and 2 * c.micro_batch or c.micro_batch // 2
    if c.micro_batch >= 1 and q.batch % c.micro_batch == 0 then
      list[1] = c
    end
  elseif name == "tp_to_dp" or name == "dp_to_tp" then
    local from, to = name:match("(%a+)_to_(%a+)")
    if c[s][from] % 2 == 0 then
      c[s][from], c[s][to] = c[s][from] // 2, c[s][to] * 2
      list[1] = c
    end
  else
    list = resized(q, e, s, name:sub(5), name:sub(1, 3) == "inc")
  end
  return list
end

-- Parts of a stage's time, with the column of EFFECTS that says what a primitive does to them:
-- computation, losses from communication and small pieces, recomputation (which pays for memory).
local PARTS = {
  { 2, function(p) return p.ideal_s end }, { 4,
    function(p) return p.time_s - p.ideal_s - p.recompute_s end },
  { 3, function(p) return p.recompute_s end },
}

--- Primitives in groups, those first that lower the part in which the stage stands out most and
-- raise no part that is above the average; while memory is short, first of all those that save it.
local function groups_of(e, s)
  local groups, taken, parts = {}, {}, {}
  local function add(wanted)
    local group = {}
    for i, row in ipairs(EFFECTS) do
      if not taken[i] and wanted(row) then
        taken[i], group[#group + 1] = true, row[1]
      end
    end
    if #group > 0 then
      groups[#groups + 1] = group
    end
  end
  if e.over > 0 then
    add(function(row) return row[3] < 0 end)
  end
  for i, part in ipairs(PARTS) do
    local sum, own = 0, part[2](e.stages[s])
    for _, p in ipairs(e.stages) do
      sum = sum + part[2](p)
    end
    parts[i] = { rank = i, column = part[1], share = sum > 0 and own / sum or 0,
      high = own * #e.stages > sum }
  end
  table.sort(parts, function(a, b) return a.share > b.share or a.share == b.share and a.rank < b.rank end)
  for _, part in ipairs(parts) do
    local function lowers(row)
      return row[part.column] < 0
    end
    add(function(row)
      local harms = false
      for _, other in ipairs(parts) do
        harms = harms or other ~= part and other.high and row[other.column] > 0
      end
      return lowers(row) and not harms
    end)
    add(lowers)
  end
  add(function() return true end)
  return groups
end

--- Up to `hops` primitives in a row until something is better than `base`; remembers in `w` what
-- was seen.
local function hop(w, e, base, s, hops)
  for _, group in ipairs(groups_of(e, s)) do
    local found, best = {}, base
    for _, name in ipairs(group) do
      for _, c in ipairs(applied(w.q, e, s, name)) do
        local key = key_of(c)
        if w.left <= 0 or w.stopping() then
          return best ~= base and best
        end
        if not w.seen[key] then
          w.seen[key], w.left = true, w.left - 1
          local other = judged(w.q, c)
          if other then
            found[#found + 1], w.all[#w.all + 1], other.rank = other, other, #w.all + 1
            if better(other, best) then
              best = other
            end
          end
        end
      end
    end
    if best ~= base then
      return best
    end
    table.sort(found, function(a, b) return better(a, b) or not better(b, a) and a.rank < b.rank end)
    for k = 1, hops > 1 and math.min(3, #found) or 0 do
      local deeper = hop(w, found[k], base, targets(found[k])[1], hops - 1)
      if deeper then
        return deeper
      end
    end
  end
  return nil
end

--- Single operators over each border, as long as that helps: the paper's fine tuning.
local function tuned(w, e)
  repeat
    local before = e
    for s = 1, #e.config - 1 do
      for _, step in ipairs { 1, -1 } do
        local c = copy_of(e.config)
        c[s].n, c[s + 1].n = c[s].n + step, c[s + 1].n - step
        local other = not w.stopping() and judged(w.q, c)
        if other and better(other, e) then
          e = other
        end
      end
    end
  until e == before
  return e
end

--- Even operators and devices for S stages: tensor parallel as far as possible, then data parallel.
local function start(q, stages, micro_batch)
  local c, each = {}, 1
  while each * 2 * stages <= q.devices and each * 2 <= q.power do
    each = each * 2
  end
  local function dp()
    return math.max(1, each // q.tp)
  end
  while each > 1 and q.batch % (micro_batch * dp()) ~= 0 do
    each = each // 2
  end
  for s = 1, stages do
    c[s] = { n = q.n // stages + (s <= q.n % stages and 1 or 0), tp = each // dp(), dp = dp() }
  end
  c.micro_batch, c.free = micro_batch * dp(), q.devices - each * stages
  return c
end

--- The search for one number of stages.
-- @function bottleneck.run
-- @tparam table q instance, with the keys named at the top
-- @tparam table o {stages, micro_batch = of one rank in the first configuration, hops = 7, budget =
-- configurations, stopping = function that says when to end}
-- @treturn table the best configuration {config = {micro_batch, list of {n, tp, dp}}, time_s, over
-- = share of memory where it does not fit, else 0, stages = prices}, how many were priced, a list
-- of the best that fit; nil when none can be priced
-- @units seconds, bytes
-- @raise errors of price
-- @usage local q = { n = 4, devices = 2, batch = 4, power = 2, tp = 2, price = function(s)
--   return { time_s = s.micro_batch * (s.to - s.from + 1), ideal_s = 1, recompute_s = 0, bytes = 1, cap = 2 } end }
-- assert(require("bottleneck").run(q, { stages = 2, micro_batch = 1, budget = 10 }).time_s == 10)
function bottleneck.run(q, o)
  local w = { q = q, left = o.budget, seen = {}, all = {}, stopping = o.stopping
      or function() return false end }
  local first = start(q, o.stages, o.micro_batch)
  local now = judged(q, first)
  if not now then
    return nil, 1
  end
  local best = now
  w.seen[key_of(first)] = true
  while w.left > 0 and not w.stopping() do
    local found
    for k, s in ipairs(targets(now)) do
      found = found or k <= 3 and hop(w, now, now, s, o.hops or 7)
    end
    now.done = true
    if not found then -- from the best one not yet explored, unless it is far off
      for _, e in ipairs(w.all) do
        local near = not e.done and (best.over > 0 or e.over == 0 and e.time_s < 1.2 * best.time_s)
        if near and (not found or better(e, found)) then
          found = e
        end
      end
    end
    if not found then
      break
    end
    now = found
    if better(now, best) then
      best = now
    end
  end
  best = tuned(w, best)
  local fitting = { best.over == 0 and best or nil }
  table.sort(w.all, function(a, b) return better(a, b) or not better(b, a) and a.rank < b.rank end)
  for k = 1, 3 do
    if w.all[k] and w.all[k].over == 0 then
      fitting[#fitting + 1] = w.all[k]
    end
  end
  return best, o.budget - w.left, fitting
end

--- The least time of all configurations that fit, for a few operators and devices: what the search
-- is checked against.
-- @function bottleneck.enumerated
-- @tparam table q instance, with the keys named at the top
-- @tparam integer stages number of stages
-- @treturn number time; infinite where nothing fits
-- @units seconds
-- @raise errors of price
-- @usage local q = { n = 2, devices = 1, batch = 1, price = function()
--   return { time_s = 3, bytes = 1, cap = 1 } end }
-- assert(require("bottleneck").enumerated(q, 1) == 3)
function bottleneck.enumerated(q, stages)
  local best = math.huge
  local function extend(c, left, free)
    if #c == stages then
      local e = left == 0 and judged(q, c)
      best = e and e.over == 0 and math.min(best, e.time_s) or best
      return
    end
    local s, more = #c + 1, stages - #c - 1 -- those to come need one each
    for n = 1, left - more do
      for p = 0, 15 do
        local tp, dp = 1 << (p % 4), 1 << (p // 4)
        if tp * dp <= free - more then
          c[s] = { n = n, tp = tp, dp = dp }
          extend(c, left - n, free - tp * dp)
          c[s] = nil
        end
      end
    end
  end
  local micro_batch = 1
  while micro_batch <= q.batch do
    extend({ micro_batch = micro_batch }, q.n, q.devices)
    micro_batch = 2 * micro_batch
  end
  return best
end

return bottleneck
