-- Strategies of the layers of each stage by dynamic programming over layers and memory (Galvatron,
-- Miao et al., VLDB 2023, section 3). Instances are those of iteration_time.lua.
local iteration_time = require "iteration_time"

local layer_dp = {}

--- Grains of memory that a stage has for its layers, beside embedding, head and buffers.
local function room_of(q, ends, stage, pp)
  local states, saved = 0, 0
  if stage == 1 or stage == pp then
    states, saved = q.ends_bytes(ends, q.batch // q.chunks // ends.dp, stage, pp)
  end
  local in_flight = 1
  if stage == 1 then
    in_flight = math.min(pp, q.chunks)
  end
  local needed = states + saved * in_flight + q.fixed
  return q.room // q.grain - math.ceil(needed / q.grain) - q.buffer() // q.grain
end

--- The Pareto front of time against memory for n layers of a stage with these strategies. The time
-- of a layer lies between that without (weight 0) and with (weight 1) the exchange of gradients.
local function front_of(q, strategies, n, stage, pp, weight)
  local rows, switch = {}, {}
  for i, strategy in ipairs(strategies) do
    local with, without = iteration_time.layer(q, strategy, pp)
    local in_flight = math.min(pp - stage + 1, q.chunks)
    local saved = q.saved(strategy, q.batch // q.chunks // strategy.dp) * in_flight
    rows[i] = { weight * with + (1 - weight) * without,
      math.ceil((q.states(strategy) + saved) / q.grain) }
    switch[i] = {}
    for j, other in ipairs(strategies) do
      switch[i][j] = { i == j and 0 or q.switch(strategy, other), 0 }
    end
  end
  local nodes, edges = {}, {}
  for l = 1, n do
    nodes[l] = rows
    if l > 1 then
      edges[l - 1] = { l - 1, l, switch }
    end
  end
  local found = hv.opt.graph_dp { nodes = nodes, edges = edges, semiring = "pareto",
    method = "chain" }
  return found and found.front or {}
end

--- The search for one number of stages: the instance, the layers and the strategies of each stage,
-- and the fronts met so far.
local function new_search(q, counts, strategies_of, group)
  local w = { q = q, counts = counts, pp = #counts, lists = {}, fronts = {}, group = group }
  for stage in ipairs(counts) do
    w.lists[stage] = strategies_of(stage)
  end
  return w
end

--- The fastest layers of a stage that leave room for `ends`, of the strategies first..last of its
-- list, and the time of the stage; nil where none fits.
local function filled(w, stage, weight, first, last, ends)
  local own = w.q.at and w.q.at(stage) or w.q
  local key = ("%d %g %d %d"):format(stage, weight, first, last)
  local strategies = table.move(w.lists[stage], first, last, 1, {})
  if not w.fronts[key] then
    w.fronts[key] = front_of(own, strategies, w.counts[stage], stage, w.pp, weight)
  end
  local room = room_of(own, ends, stage, w.pp)
  local best
  for _, point in ipairs(w.fronts[key]) do
    if point.memory <= room and (not best or point.value < best.value) then
      best = point
    end
  end
  if not best then
    return nil
  end
  local choice = {}
  for l, k in ipairs(best.choices) do
    choice[l] = strategies[k]
  end
  local _, ends_time = iteration_time.ends(own, ends, stage, w.pp)
  return { ends = ends, choice = choice }, best.value + ends_time
end

--- The fastest layers of a stage over all groups of its strategies; nil where none fits. Without
-- `ends` the first strategy of a group is that of embedding and head.
local function best_of_groups(w, stage, weight, ends)
  local list = w.lists[stage]
  local size = w.group or #list
  local best, least = nil, math.huge
  for first = 1, #list, size do
    local row, time = filled(w, stage, weight, first, first + size - 1, ends or list[first])
    if row and time < least then
      best = row
      least = time
    end
  end
  return best
end

--- The best layers of all stages; nil where a stage does not fit.
local function all_stages(w, weight, ends)
  local stages = {}
  for stage in ipairs(w.lists) do
    stages[stage] = best_of_groups(w, stage, weight, ends)
    if not stages[stage] then
      return nil
    end
  end
  return stages
end

--- The strategies that embedding and head may have, each the same in all stages; { false } where a
-- group decides.
local function ends_choices(w)
  if w.group then
    return { false }
  end
  local choices = {}
  for _, strategy in ipairs(w.lists[1]) do
    if not strategy.full then
      choices[#choices + 1] = strategy
    end
  end
  return choices
end

--- The best choice for these numbers of layers per stage, { time_s, stages } as iteration_time.of
-- takes them; nil where none fits. strategies_of(stage) gives the list of strategies of a stage.
-- With `group` a stage mixes strategies of one run of so many in its list only, whose first is that
-- of embedding and head; without it all are mixed, for every strategy of embedding and head.
function layer_dp.stages(q, counts, strategies_of, group)
  local w = new_search(q, counts, strategies_of, group)
  if w.pp == 0 then
    return nil
  end
  local best
  -- the authors' code counts the exchange of gradients in full; it takes place once in `chunks`
  for _, weight in ipairs { 1, 1 / q.chunks } do
    for _, ends in ipairs(ends_choices(w)) do
      local stages = all_stages(w, weight, ends)
      local time = stages and iteration_time.of(q, stages)
      if time and (not best or time < best.time_s) then
        best = { time_s = time, stages = stages }
      end
    end
  end
  return best
end

return layer_dp
