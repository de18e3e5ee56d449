-- The pipeline of least latency over all devices of a group (HexGen, section 4): the sum of the
-- times of its stages and of the hops between them is least. Layers are dealt by that sum, so each
-- goes to the fastest stage with memory for it, not to where the slowest stage stays fastest. q is
-- an instance of group_pipeline.lua. Exact, as the sum divides: hops between machines depend on
-- their order only, the rest on the split and the layers of each machine.
local splits = require "splits"

local least_latency = {}

local ROUNDING = 1e-12 -- sums of hops that differ by less are equal

--- Indices of the stages of a split, the fastest per layer first.
local function fastest_first(q, machine, split)
  local order = {}
  for i in ipairs(split) do
    order[i] = i
  end
  table.sort(order, function(a, b)
    local a_s, b_s = q.layer_s(machine, split[a]), q.layer_s(machine, split[b])
    if a_s ~= b_s then
      return a_s < b_s
    end
    return a < b
  end)
  return order
end

--- Offers one split to `best` = by number of layers {s, split}: its stages get a layer each, the
-- others go to the fastest stage that has memory.
local function offer_split(q, machine, split, best)
  local seconds = (#split - 1) * q.hop_s(machine, machine)
  for _, tp in ipairs(split) do
    if q.most_layers(machine, tp) < 1 then
      return
    end
    seconds = seconds + q.layer_s(machine, tp)
  end
  local n = #split
  local function offer()
    if n <= q.layers and (not best[n] or seconds < best[n].s) then
      best[n] = { s = seconds, split = split }
    end
  end
  offer()
  for _, i in ipairs(fastest_first(q, machine, split)) do
    local layer_s = q.layer_s(machine, split[i])
    for _ = 2, math.min(q.most_layers(machine, split[i]), q.layers) do
      seconds = seconds + layer_s
      n = n + 1
      offer()
    end
  end
end

--- The least seconds on `count` devices of a machine by number of layers: {s, split}, nil where it
-- cannot hold so many. Remembered in the instance by class and count.
local function machine_table(q, machine, count)
  q.by_layers = q.by_layers or {}
  local key = q.machines[machine].class .. " " .. count
  if not q.by_layers[key] then
    local best = {}
    for _, split in ipairs(splits.of(q, count)) do
      offer_split(q, machine, split, best)
    end
    q.by_layers[key] = best
  end
  return q.by_layers[key]
end

--- Layers of each member so that the sum of their times is least: dynamic programming over members
-- and layers. nil where they do not hold the model.
local function layers_of(q, tables)
  local least_s, taken = { [0] = 0 }, {}
  for i, by_layers in ipairs(tables) do
    local next_s, own = {}, {}
    for before, before_s in pairs(least_s) do
      for n = 1, q.layers - before do
        local row = by_layers[n]
        local sum_s = row and before_s + row.s
        local known_s = next_s[before + n]
        if sum_s and (not known_s or sum_s < known_s
            or sum_s == known_s and n > own[before + n]) then
          next_s[before + n] = sum_s
          own[before + n] = n
        end
      end
    end
    least_s, taken[i] = next_s, own
  end
  if not least_s[q.layers] then
    return nil
  end
  local counts, left = {}, q.layers
  for i = #tables, 1, -1 do
    counts[i] = taken[i][left]
    left = left - counts[i]
  end
  return counts
end

--- Order of the members with the least sum of hops between machines; as they are listed where no
-- order is better.
local function order_of(q, members)
  local cost, listed, listed_s = {}, {}, 0
  for i, a in ipairs(members) do
    cost[i], listed[i] = {}, i
    for k, b in ipairs(members) do
      cost[i][k] = i == k and 0 or q.hop_s(a.machine, b.machine)
    end
    listed_s = listed_s + (i > 1 and cost[i - 1][i] or 0)
  end
  local path = #members > 1 and hv.opt.path { cost = cost, kind = "tsp_open" }
  if path and path.value < listed_s * (1 - ROUNDING) then
    return path.order
  end
  return listed
end

--- The stages of a split of a machine with `n` layers in all: {machine, tp, layers}.
local function stages_of(q, machine, split, n)
  local stages = {}
  for i, tp in ipairs(split) do
    stages[i] = { machine = machine, tp = tp, layers = 1 }
  end
  local left = n - #split
  for _, i in ipairs(fastest_first(q, machine, split)) do
    local more = math.min(left, q.most_layers(machine, split[i]) - 1)
    stages[i].layers = 1 + more
    left = left - more
  end
  return stages
end

--- The stages of least latency in order: list of {machine, tp, layers}; nil where the devices do
-- not hold the model. `members` = list of {machine, count}.
function least_latency.stages(q, members)
  local tables = {}
  for i, member in ipairs(members) do
    tables[i] = machine_table(q, member.machine, member.count)
  end
  local counts = layers_of(q, tables)
  if not counts then
    return nil
  end
  local list = {}
  for _, i in ipairs(order_of(q, members)) do
    local split = tables[i][counts[i]].split
    local stages = stages_of(q, members[i].machine, split, counts[i])
    table.move(stages, 1, #stages, #list + 1, list)
  end
  return list
end

return least_latency
