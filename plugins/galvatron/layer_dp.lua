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

--- Time and memory of a layer of a stage under each strategy. The time lies between that without
-- (weight 0) and with (weight 1) the exchange of gradients.
local function layer_rows(q, strategies, stage, pp, weight)
  local rows = {}
  for i, strategy in ipairs(strategies) do
    local with, without = iteration_time.layer(q, strategy, pp)
    local in_flight = math.min(pp - stage + 1, q.chunks)
    local saved = q.saved(strategy, q.batch // q.chunks // strategy.dp) * in_flight
    rows[i] = { weight * with + (1 - weight) * without,
      math.ceil((q.states(strategy) + saved) / q.grain) }
  end
  return rows
end

--- Costs of the changes between two layers of any strategies.
local function switch_rows(q, strategies)
  local rows = {}
  for i, strategy in ipairs(strategies) do
    rows[i] = {}
    for j, other in ipairs(strategies) do
      rows[i][j] = { i == j and 0 or q.switch(strategy, other), 0 }
    end
  end
  return rows
end

--- Time and memory of the embedding (end 1) or the head (end 2) of a stage under each strategy.
local function end_rows(q, strategies, stage, pp, which)
  local rows = {}
  local in_flight = math.min(pp - stage + 1, q.chunks)
  for i, strategy in ipairs(strategies) do
    local _, time = iteration_time.ends(q, strategy, which, 2)
    local states, saved = q.ends_bytes(strategy, q.batch // q.chunks // strategy.dp, which, 2)
    rows[i] = { time, math.ceil((states + saved * in_flight) / q.grain) }
  end
  return rows
end

--- Costs between choices of two neighbours that are allowed with the same degrees only.
local function tie_rows(before, after)
  local rows = {}
  for i, a in ipairs(before) do
    rows[i] = {}
    for j, b in ipairs(after) do
      local same = a.tp == b.tp and a.sp == b.sp and a.dp == b.dp and a.zero == b.zero
      rows[i][j] = { same and 0 or math.huge, 0 }
    end
  end
  return rows
end

--- The strategies without recomputation, which embedding and head may have; all, where there are no
-- such.
local function plain_of(strategies)
  local list = {}
  for _, strategy in ipairs(strategies) do
    if not strategy.full then
      list[#list + 1] = strategy
    end
  end
  return #list > 0 and list or strategies
end

--- Appends a node and the costs between its choices and those of the node before it.
local function append(chain, rows, costs)
  local n = #chain.nodes
  chain.nodes[n + 1] = rows
  if n > 0 then
    chain.edges[n] = { n, n + 1, costs }
  end
end

--- The Pareto front of time against memory for n layers of a stage with these strategies. `tied`:
-- with embedding and head, each with the degrees of the layer beside it.
local function front_of(q, strategies, n, stage, pp, weight, tied)
  local rows, switch = layer_rows(q, strategies, stage, pp, weight), switch_rows(q, strategies)
  local plain = plain_of(strategies)
  local chain = { nodes = {}, edges = {} }
  if tied and stage == 1 then
    append(chain, end_rows(q, plain, stage, pp, 1))
  end
  for l = 1, n do
    append(chain, rows, l == 1 and tie_rows(plain, strategies) or switch)
  end
  if tied and stage == pp then
    append(chain, end_rows(q, plain, stage, pp, 2), tie_rows(strategies, plain))
  end
  local found = hv.opt.graph_dp { nodes = chain.nodes, edges = chain.edges, semiring = "pareto",
    method = "chain" }
  return found and found.front or {}
end

--- The strategies of a point's layers, whose choices begin at number `from`.
local function layers_of(point, strategies, from, n)
  local choice = {}
  for l = 1, n do
    choice[l] = strategies[point.choices[from + l - 1]]
  end
  return choice
end

--- Grains of memory of the communicators that layers need besides those of one set of degrees.
local function more_groups(q, choice)
  local seen = { [choice[1].tp] = true }
  local more = 0
  for _, strategy in ipairs(choice) do
    if not seen[strategy.tp] then
      seen[strategy.tp] = true
      more = more + q.groups(strategy)
    end
  end
  return math.ceil(more / q.grain)
end

--- The fastest point of a front within `room`, where more_of(point) is added to its memory; nil
-- where none fits.
local function fastest(front, room, more_of)
  local best
  for _, point in ipairs(front) do
    local fits = point.memory <= room and (not best or point.value < best.value)
    if fits and (not more_of or point.memory + more_of(point) <= room) then
      best = point
    end
  end
  return best
end

--- The fastest layers of a stage that leave room for `ends`; nil where none fits.
local function filled(w, stage, weight, ends)
  local own = w.q.at and w.q.at(stage) or w.q
  local strategies, n = w.lists[stage], w.counts[stage]
  local key = ("%d %g"):format(stage, weight)
  if not w.fronts[key] then
    w.fronts[key] = front_of(own, strategies, n, stage, w.pp, weight, false)
  end
  local best = fastest(w.fronts[key], room_of(own, ends, stage, w.pp))
  return best and { ends = ends, choice = layers_of(best, strategies, 1, n) }
end

--- The fastest layers of a stage from a list of strategies, where embedding and head have the
-- degrees of the layers beside them, and their time; nil where none fits.
local function filled_tied(w, stage, weight, strategies)
  local own = w.q.at and w.q.at(stage) or w.q
  local n = w.counts[stage]
  local front = front_of(own, strategies, n, stage, w.pp, weight, true)
  local room = own.room // own.grain - math.ceil(own.fixed / own.grain)
    - own.buffer() // own.grain
  local from = stage == 1 and 2 or 1 -- behind the embedding
  local best = fastest(front, room, function(point)
    return more_groups(own, layers_of(point, strategies, from, n))
  end)
  if not best then
    return nil
  end
  local choice = layers_of(best, strategies, from, n)
  return { ends = choice[1], head = choice[n], choice = choice }, best.value
end

--- The same, where all layers of the stage have one set of degrees.
local function filled_with_one_set(w, stage, weight)
  local sets, order = {}, {}
  for _, strategy in ipairs(w.lists[stage]) do
    local key = ("%d %d %d %d"):format(strategy.tp, strategy.sp, strategy.dp, strategy.zero)
    if not sets[key] then
      sets[key] = {}
      order[#order + 1] = key
    end
    sets[key][#sets[key] + 1] = strategy
  end
  local best, least
  for _, key in ipairs(order) do
    local row, time = filled_tied(w, stage, weight, sets[key])
    if row and (not best or time < least) then
      best, least = row, time
    end
  end
  return best
end

--- The layers of all stages by fill(stage); nil where a stage does not fit.
local function all_stages(w, fill)
  local stages = {}
  for stage in ipairs(w.lists) do
    stages[stage] = fill(stage)
    if not stages[stage] then
      return nil
    end
  end
  return stages
end

--- Keeps the better of `best` and these stages.
local function better_of(w, best, stages)
  local time = stages and iteration_time.of(w.q, stages)
  if time and (not best or time < best.time_s) then
    return { time_s = time, stages = stages }
  end
  return best
end

--- The search for these numbers of layers per stage. strategies_of(stage) gives the list of
-- strategies of a stage. The authors' code counts the exchange of gradients in full for each
-- micro-batch; it takes place once in all `chunks`, so both are tried.
local function new_search(q, counts, strategies_of)
  local w = { q = q, counts = counts, pp = #counts, lists = {}, fronts = {},
    weights = { 1, 1 / q.chunks } }
  for stage in ipairs(counts) do
    w.lists[stage] = strategies_of(stage)
  end
  return w
end

--- The best choice as in the paper, { time_s, stages } as iteration_time.of takes them: embedding
-- and head have one strategy, whatever those of the layers are. nil where none fits.
function layer_dp.stages(q, counts, strategies_of)
  local w = new_search(q, counts, strategies_of)
  local best
  for _, weight in ipairs(w.weights) do
    for _, ends in ipairs(w.pp > 0 and plain_of(w.lists[1]) or {}) do
      best = better_of(w, best, all_stages(w, function(stage)
        return filled(w, stage, weight, ends)
      end))
    end
  end
  return best
end

--- The best choice that a plan can have, as layer_dp.stages gives it: the embedding has the degrees
-- of the first layer, the head those of the last one. fill(w, stage, weight)
-- gives the layers of a stage.
local function best_tied(q, counts, strategies_of, fill)
  local w = new_search(q, counts, strategies_of)
  local best
  for _, weight in ipairs(w.weights) do
    best = better_of(w, best, all_stages(w, function(stage) return fill(w, stage, weight) end))
  end
  return best
end

--- The best choice where the layers of a stage mix all strategies.
function layer_dp.mixed_stages(q, counts, strategies_of)
  return best_tied(q, counts, strategies_of, function(w, stage, weight)
    return (filled_tied(w, stage, weight, w.lists[stage]))
  end)
end

--- The best choice where the layers of a stage have one set of degrees and differ in recomputation.
function layer_dp.even_stages(q, counts, strategies_of)
  return best_tied(q, counts, strategies_of, filled_with_one_set)
end

return layer_dp
