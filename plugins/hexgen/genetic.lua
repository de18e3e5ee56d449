-- Replicas that serve a model from groups of unequal devices: a genetic search over partitions of
-- machines' devices into groups (HexGen, Jiang et al., ICML 2024, section 4). The instance q is
-- that of group_pipeline.lua with least_bytes = memory that holds the model once.
--
-- A group: {counts = devices by machine number, order = its machines, bytes = its memory, layout =
-- its pipeline, like = the machines that the layout names in place of `order` (groups of equal
-- machines share one layout), worth}.
local group_pipeline = require "group_pipeline"
local search = require "search"

local genetic = {}

local SURVIVORS = 10 -- partitions that have children
local CHILDREN = 10 -- of a generation

--- A group of devices with its pipeline; nil where it does not hold the model. Pipelines are
-- remembered by the classes and numbers of devices.
local function group_of(run, counts)
  local q = run.q
  local bytes, names, order = 0, {}, {}
  for m, machine in ipairs(q.machines) do
    if (counts[m] or 0) > 0 then
      bytes = bytes + counts[m] * machine.memory_bytes
      names[#names + 1] = ("%s %d"):format(machine.class, counts[m])
      order[#order + 1] = m
    end
  end
  if bytes < q.least_bytes then
    return nil
  end
  local key = table.concat(names, " ")
  if run.known[key] == nil then
    local layout = group_pipeline.best(q, counts, run.least_latency)
    if layout then
      run.known[key] = { layout = layout, worth = run.worth(layout), order = order }
    else
      run.known[key] = false
    end
  end
  local known = run.known[key]
  if not known then
    return nil
  end
  return { counts = counts, order = order, bytes = bytes, layout = known.layout,
    like = known.order, worth = known.worth }
end

--- A partition with what it is worth; among equal ones that with less `spread` is better: its
-- memory is more concentrated in few groups.
local function scored(groups)
  local worth, spread = 0, 0
  for _, group in ipairs(groups) do
    worth = worth + group.worth
    spread = spread - group.bytes * group.bytes
  end
  return { groups = groups, worth = worth, spread = spread }
end

--- Devices by machine with n more (or fewer) of machine m.
local function moved(counts, m, n)
  local out = {}
  for machine, count in pairs(counts) do
    out[machine] = count
  end
  out[m] = (out[m] or 0) + n
  if out[m] == 0 then
    out[m] = nil
  end
  return out
end

--- Devices by machine of two groups together.
local function joined(one, other)
  local out = one
  for m, n in pairs(other) do
    out = moved(out, m, n)
  end
  return out
end

--- Any machine of a group.
local function drawn_machine(random, group)
  return group.order[random(#group.order)]
end

--- A group cut in two: in halves, or anywhere in each machine.
local function cut(random, group, in_halves)
  local one, other = {}, {}
  for _, m in ipairs(group.order) do
    local n = group.counts[m]
    local k
    if in_halves then
      k = n // 2
    else
      k = random(n + 1) - 1
    end
    if k > 0 then
      one[m] = k
    end
    if n > k then
      other[m] = n - k
    end
  end
  return { one, other }
end

--- The machine with most devices in a group.
local function dominant_machine(group)
  local dominant = group.order[1]
  for _, m in ipairs(group.order) do
    if group.counts[m] > group.counts[dominant] then
      dominant = m
    end
  end
  return dominant
end

--- One device of group a goes to b: half of the time of the machine with most devices in b, where a
-- has such. With `exchange` one of b goes to a.
local function transferred(random, a, b, exchange)
  local dominant = dominant_machine(b)
  local m
  if a.counts[dominant] and random(2) == 1 then
    m = dominant
  else
    m = drawn_machine(random, a)
  end
  local one, other = moved(a.counts, m, -1), moved(b.counts, m, 1)
  if exchange then
    local back = drawn_machine(random, b)
    one, other = moved(one, back, 1), moved(other, back, -1)
  end
  return { one, other }
end

--- A mutation of group a, and of b where there is one: the list of counts of the groups that come
-- out of it, and whether b is used up. A cut has 4 of 10 draws (2 of them in halves), a transfer 3,
-- an exchange 3; one of 20 of the tenth draws joins the groups.
local function mutated(random, a, b)
  local draw = random(10)
  if not b or draw <= 4 then
    return cut(random, a, draw <= 2), false
  end
  if draw == 10 and random(20) == 1 then
    return { joined(a.counts, b.counts) }, true
  end
  return transferred(random, a, b, draw >= 8), true
end

--- A first partition: machines in order, taken together until they hold the model, or cut into
-- groups of `part` devices where these hold it. Devices that are left over join the last group.
local function in_order(run, part)
  local groups, counts = {}, {}
  for m, machine in ipairs(run.q.machines) do
    local left = machine.size
    local piece = left >= part and group_of(run, { [m] = part })
    while piece and left >= part do
      groups[#groups + 1] = group_of(run, { [m] = part })
      left = left - part
    end
    if left > 0 then
      counts[m] = left
      local group = group_of(run, counts)
      if group then
        groups[#groups + 1] = group
        counts = {}
      end
    end
  end
  local last = groups[#groups]
  if last then
    groups[#groups] = group_of(run, joined(last.counts, counts)) or last
  end
  return groups
end

--- A child of a partition: one group mutated, or two; nil where a new group does not hold the
-- model.
local function child_of(run, parent)
  local i = run.random(#parent)
  local j = run.random(#parent)
  local parts, both = mutated(run.random, parent[i], i ~= j and parent[j] or nil)
  local groups = {}
  for k, group in ipairs(parent) do
    if k ~= i and not (both and k == j) then
      groups[#groups + 1] = group
    end
  end
  for _, counts in ipairs(parts) do
    local group = group_of(run, counts)
    if not group then
      return nil
    end
    groups[#groups + 1] = group
  end
  return scored(groups)
end

--- Is partition a better than b? Among equal ones that which was made first.
local function better(a, b)
  if a.worth ~= b.worth then
    return a.worth > b.worth
  end
  if a.spread ~= b.spread then
    return a.spread < b.spread
  end
  return a.rank < b.rank
end

--- The partitions to begin with: all devices as one group, machines in order, machines cut evenly
-- by each tensor degree.
local function first_partitions(run)
  local all = {}
  for m, machine in ipairs(run.q.machines) do
    all[m] = machine.size
  end
  local starts = { { group_of(run, all) }, in_order(run, math.huge) }
  for _, degree in ipairs(run.q.degrees) do
    starts[#starts + 1] = in_order(run, degree)
  end
  return starts
end

--- The genetic search. o = {generations, children = of a generation (nil: 10), seed, worth =
-- function(layout) of a replica (nil: 1 each), least_latency = pipelines of least latency, stopping
-- = function that tells when to end}. Gives {groups, worth, evaluations}; nil when no group holds
-- the model.
function genetic.evolve(q, o)
  local run = {
    q = q,
    known = {},
    random = search.generator(o.seed),
    least_latency = o.least_latency,
    worth = o.worth or function() return 1 end,
  }
  local population, evaluations = {}, 0
  local function add(partition)
    evaluations = evaluations + 1
    if partition then
      partition.rank = evaluations
      population[#population + 1] = partition
    end
  end
  for _, groups in ipairs(first_partitions(run)) do
    if #groups > 0 then
      add(scored(groups))
    end
  end
  if #population == 0 then
    return nil
  end
  for _ = 1, o.generations do
    if o.stopping and o.stopping() then
      break
    end
    for _ = 1, o.children or CHILDREN do
      add(child_of(run, population[run.random(#population)].groups))
    end
    table.sort(population, better)
    for k = #population, SURVIVORS + 1, -1 do
      population[k] = nil
    end
  end
  table.sort(population, better)
  return { groups = population[1].groups, worth = population[1].worth, evaluations = evaluations }
end

return genetic
