-- Replicas that serve a model from groups of unequal devices (HexGen, Jiang et al., ICML 2024,
-- sections 3 and 4): a genetic search over partitions of machines' devices into groups, and for
-- each group the best pipeline of stages, tensor parallel inside machines, by dynamic programming.
-- An instance: layers, machines = list of { size, memory = bytes of a device, class = text, equal
-- for equal machines }, degrees = tensor degrees, least = bytes that hold the model once,
-- seconds(m, tp) = one layer on tp devices of machine m, cap(m, tp) = most layers there, hop(a, b)
-- = seconds between machines; most = stages of one machine (8).
local search = require "search"

local genetic = {}

--- Ways to cut g devices of a machine into stages, as lists of degrees that fall.
local function splits(q, g)
  q.splits = q.splits or {}
  if q.splits[g] then
    return q.splits[g]
  end
  local list, most = {}, q.most or 8
  local function extend(parts, left, largest)
    if left == 0 then
      list[#list + 1] = { table.unpack(parts) }
      return
    end
    for d = #q.degrees, 1, -1 do
      local tp = q.degrees[d]
      if tp <= left and tp <= largest and #parts < most then
        parts[#parts + 1] = tp
        extend(parts, left - tp, tp)
        parts[#parts] = nil
      end
    end
  end
  extend({}, g, g)
  q.splits[g] = list
  return list
end

--- For S stages of equal layers: the degrees of each machine's stages that take least time, by
-- dynamic programming over machines and the stages they have used.
local function degrees_for(q, members, S)
  local least, parts = { [0] = 0 }, { [0] = {} }
  local share, need = q.layers / S, q.layers // S
  for _, member in ipairs(members) do
    local after, chosen = {}, {}
    for used = 0, S do
      for _, split in ipairs(least[used] and splits(q, member.count) or {}) do
        local cost, to, fits = least[used], used + #split, used + #split <= S
        for _, tp in ipairs(split) do
          fits = fits and q.cap(member.machine, tp) >= need
          cost = cost + q.seconds(member.machine, tp) * share
        end
        if fits and (not after[to] or cost < after[to]) then
          local list = table.move(parts[used], 1, used, 1, {})
          for k, tp in ipairs(split) do
            list[used + k] = { machine = member.machine, tp = tp }
          end
          after[to], chosen[to] = cost, list
        end
      end
    end
    least, parts = after, chosen
  end
  return parts[S]
end

--- Seconds of a request through stages, and of the slowest one with its hop.
local function timed(q, stages)
  local sum, slowest = 0, 0
  for s, stage in ipairs(stages) do
    local after = stages[s + 1]
    local t = q.seconds(stage.machine, stage.tp) * stage.layers
    local hop = after and q.hop(stage.machine, after.machine) or 0
    sum, slowest = sum + t + hop, math.max(slowest, t, hop)
  end
  return sum, slowest
end

--- The best pipeline of a group that uses all its devices.
-- @function genetic.layout
-- @tparam table q instance, with the keys named at the top
-- @tparam table counts list of devices by machine number
-- @tparam[opt] boolean quick least seconds of a request instead of the most requests in a time
-- @treturn table {stages = list of {machine, tp, layers}, latency_s, slowest_s}; nil when the model
-- does not fit, or the group has more than 8 machines
-- @units seconds
-- @raise none
-- @usage local q = { layers = 2, machines = { { size = 1, memory = 9, class = "a" } }, degrees = { 1 },
--   seconds = function() return 3 end, cap = function() return 2 end, hop = function() return 0 end }
-- assert(require("genetic").layout(q, { [1] = 1 }).latency_s == 6)
function genetic.layout(q, counts, quick)
  local members, key, most, best = {}, {}, 0, nil
  for m, machine in ipairs(q.machines) do
    if (counts[m] or 0) > 0 then
      members[#members + 1] = { machine = m, count = counts[m] }
      key[#key + 1], most = ("%s %d"):format(machine.class, counts[m]), most
        + math.min(counts[m], q.most or 8)
    end
  end
  for _, S in ipairs(#members <= 8 and { 1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32 } or {}) do
    local stages = S <= math.min(most, q.layers) and S >= #members and degrees_for(q, members, S)
    local o = { total = q.layers, time = {}, caps = {}, min = {} }
    for s, stage in ipairs(stages or {}) do
      o.time[s], o.caps[s], o.min[s] = q.seconds(stage.machine, stage.tp),
        q.cap(stage.machine, stage.tp), 1
    end
    local r = stages and hv.opt.distribute(o)
    for s, stage in ipairs(r and stages or {}) do
      stage.layers = r.counts[s]
    end
    local sum, slowest = math.huge, math.huge
    if r then
      sum, slowest = timed(q, stages)
    end
    local value = quick and sum or slowest
    if r and (not best or value < best.value) then
      best = { stages = stages, latency_s = sum, slowest_s = slowest, value = value }
    end
  end
  return best
end

--- A group of devices with its pipeline, or nil; remembered by the classes of its machines.
local function group_of(w, counts)
  local bytes, key, order, q = 0, {}, {}, w.q
  for m = 1, #q.machines do
    if (counts[m] or 0) > 0 then
      bytes = bytes + counts[m] * q.machines[m].memory
      key[#key + 1], order[#order + 1] = ("%s %d"):format(q.machines[m].class, counts[m]), m
    end
  end
  if bytes < q.least then
    return nil
  end
  key = table.concat(key, " ")
  if w.known[key] == nil then
    local layout = genetic.layout(q, counts, w.quick)
    w.known[key] = layout and { layout = layout, worth = w.worth(layout), order = order } or false
  end
  local known = w.known[key]
  if not known then
    return nil
  end
  return { counts = counts, order = order, bytes = bytes, layout = known.layout, like = known.order,
    worth = known.worth }
end

--- What a partition is worth, then how far its spare memory is from being in one place.
local function scored(groups)
  local worth, spread = 0, 0
  for _, g in ipairs(groups) do
    worth, spread = worth + g.worth, spread - g.bytes * g.bytes
  end
  return { groups = groups, worth = worth, spread = spread }
end

local function moved(counts, m, n)
  local out = {}
  for k, v in pairs(counts) do
    out[k] = v
  end
  out[m] = (out[m] or 0) + n
  if out[m] == 0 then
    out[m] = nil
  end
  return out
end

--- All that both have.
local function joined(one, other)
  local out = one
  for m, n in pairs(other) do
    out = moved(out, m, n)
  end
  return out
end

--- What becomes of group a, and of b where it takes part: a list of two or one of counts, and
-- whether b is used up. One is halved or cut anywhere, a device goes over (of the machine that has
-- most in b, if it can), two change places, or they are joined.
local function changed(random, a, b)
  local kind = random(10)
  local function any(g)
    return g.order[random(#g.order)]
  end
  if not b or kind <= 4 then
    local one, other = {}, {}
    for _, m in ipairs(a.order) do
      local n = a.counts[m]
      local k = kind <= 2 and n // 2 or random(n + 1) - 1
      one[m], other[m] = k > 0 and k or nil, n > k and n - k or nil
    end
    return { one, other }, false
  elseif kind == 10 and random(20) == 1 then
    return { joined(a.counts, b.counts) }, true
  end
  local dominant = b.order[1]
  for _, m in ipairs(b.order) do
    dominant = b.counts[m] > b.counts[dominant] and m or dominant
  end
  local m = a.counts[dominant] and random(2) == 1 and dominant or any(a)
  local one, other = moved(a.counts, m, -1), moved(b.counts, m, 1)
  if kind >= 8 then
    local back = any(b)
    one, other = moved(one, back, 1), moved(other, back, -1)
  end
  return { one, other }, true
end

--- Machines in order, taken together until they hold the model, or cut into groups of `part`
-- devices where these hold it; what is left over joins the last group.
local function obvious(w, part)
  local groups, counts = {}, {}
  for m, machine in ipairs(w.q.machines) do
    local left = machine.size
    local piece = left >= part and group_of(w, { [m] = part })
    while piece and left >= part do
      groups[#groups + 1], left = group_of(w, { [m] = part }), left - part
    end
    counts[m] = left > 0 and left or nil
    local g = left > 0 and group_of(w, counts)
    if g then
      groups[#groups + 1], counts = g, {}
    end
  end
  local last = groups[#groups]
  groups[#groups] = last and (group_of(w, joined(last.counts, counts)) or last) or nil
  return groups
end

--- A child of one of the people, or nil.
local function child_of(w, parent)
  local i, j, groups = w.random(#parent), w.random(#parent), {}
  local parts, both = changed(w.random, parent[i], i ~= j and parent[j] or nil)
  for k, g in ipairs(parent) do
    if k ~= i and not (both and k == j) then
      groups[#groups + 1] = g
    end
  end
  for _, counts in ipairs(parts) do
    local g = group_of(w, counts)
    if not g then
      return nil
    end
    groups[#groups + 1] = g
  end
  return scored(groups)
end

--- The genetic search: all devices as one group, machines in order, machines cut evenly; then
-- children of the best ten, each with one or two groups changed.
-- @function genetic.evolve
-- @tparam table q instance, with the keys named at the top
-- @tparam table o {generations, children = 10 per generation, seed, worth = function(layout) of a
-- replica (1), quick = true: pipelines of least latency, stopping = function that says when to end}
-- @treturn table {groups = list of {counts, layout, order = its machines, like = those that the
-- layout names instead}, worth, evaluations}; nil when no group holds the model
-- @units seconds
-- @raise none
-- @usage local q = { layers = 1, machines = { { size = 2, memory = 1, class = "a" } }, degrees = { 1 }, least = 1,
--   seconds = function() return 1 end, cap = function() return 1 end, hop = function() return 0 end }
-- assert(#require("genetic").evolve(q, { generations = 20, seed = 1 }).groups == 2)
function genetic.evolve(q, o)
  local w = { q = q, known = {}, random = search.generator(o.seed), quick = o.quick,
    worth = o.worth or function() return 1 end }
  local all, people, evaluations = {}, {}, 0
  for m, machine in ipairs(q.machines) do
    all[m] = machine.size
  end
  local function add(person)
    evaluations = evaluations + 1
    if person then
      person.rank, people[#people + 1] = evaluations, person
    end
  end
  local starts = { { group_of(w, all) }, obvious(w, math.huge) }
  for i, part in ipairs(q.degrees) do
    starts[i + 2] = obvious(w, part)
  end
  for _, groups in ipairs(starts) do
    if #groups > 0 then
      add(scored(groups))
    end
  end
  local function first(a, b)
    if a.worth ~= b.worth then
      return a.worth > b.worth
    end
    return a.spread < b.spread or a.spread == b.spread and a.rank < b.rank
  end
  for _ = 1, #people > 0 and o.generations or 0 do
    if o.stopping and o.stopping() then
      break
    end
    for _ = 1, o.children or 10 do
      add(child_of(w, people[w.random(#people)].groups))
    end
    table.sort(people, first)
    for k = #people, 11, -1 do
      people[k] = nil
    end
  end
  table.sort(people, first)
  return people[1] and { groups = people[1].groups, worth = people[1].worth,
    evaluations = evaluations }
end

return genetic
