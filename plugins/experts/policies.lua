-- Four policies that place experts from the tokens of the iteration before, on numbers alone:
-- places = decide(facts, layer, state, t), where `layer` has the tokens of each rank for each
-- expert in iteration t - 1, state.now = {owners, copies} says where experts are, and nil stands
-- for no change. facts = {ranks, experts, token_s = of a token in all passes, send_s = of one that
-- leaves or comes, all exchanges, copy_s = of an expert with copies, weights_s = of sending its
-- weights to all ranks, share_s = of one copy over the
-- mean link, move_s = of an expert that changes its rank for good, hidden_s = of copies behind
-- other work, slots = of a rank, interval = iterations over which a move must pay, and that lie
-- between two decisions unless `every` says so, threshold = most load over the mean that is left as
-- it is, evens = whether steps start from even loads too, most = experts with copies that there is
-- memory for}.
local placing = require "placing_experts"

local policies = {}

--- Tokens of every expert.
function policies.totals(layer)
  local sum = {}
  for _, row in ipairs(layer) do
    for e, n in ipairs(row) do
      sum[e] = (sum[e] or 0) + n
    end
  end
  return sum
end

--- Experts in their usual order on the ranks, an equal number on each.
function policies.by_blocks(experts, ranks)
  local owners = {}
  for e = 1, experts do
    owners[e] = (e - 1) * ranks // experts + 1
  end
  return owners
end

--- Seconds of a layer with experts at `places`: the busiest rank computes, exchanges and copies.
function policies.layer_s(facts, layer, places, lent)
  return hv.sim.replay { trace = { { layer } }, ranks = facts.ranks, token_s = facts.token_s,
    send_s = facts.send_s, copy_s = facts.copy_s, hidden_s = facts.hidden_s, lent = lent,
    policy = function()
      return { places }
    end }.mean_s
end

--- Seconds of the moves between two places for good: the most experts that a rank sends or gets.
function policies.move_s(facts, before, after)
  local out, into, most, n = {}, {}, 0, 0
  for e in ipairs(before.owners) do
    local had = { [before.owners[e]] = true }
    for _, rank in ipairs(before.copies and before.copies[e] or {}) do
      had[rank] = true
    end
    local ranks = { after.owners[e], table.unpack(after.copies and after.copies[e] or {}) }
    for _, rank in ipairs(ranks) do
      if not had[rank] then
        local from = before.owners[e]
        out[from], into[rank] = (out[from] or 0) + 1, (into[rank] or 0) + 1
        most, n = math.max(most, out[from], into[rank]), n + 1
      end
    end
  end
  return most * facts.move_s, n
end

--- Tokens that each rank computes, and those that it gets from other ranks, with experts at places
-- that have lists of copies: the tokens of an expert go evenly to its replicas.
local function spread(layer, places)
  local computed, received = {}, {}
  for rank = 1, #layer do
    computed[rank], received[rank] = 0, 0
  end
  for e, owner in ipairs(places.owners) do
    local on = { owner, table.unpack(places.copies and places.copies[e] or {}) }
    for source, row in ipairs(layer) do
      for _, rank in ipairs(on) do
        computed[rank] = computed[rank] + row[e] / #on
        received[rank] = received[rank] + (rank ~= source and row[e] / #on or 0)
      end
    end
  end
  return computed, received
end

-- FasterMoE: shadows of the hottest experts, sent anew in every iteration.

policies.fastermoe = { lent = true }

function policies.fastermoe.decide(facts, layer, state)
  local copies = {}
  for _, e in ipairs(placing.shadows { loads = policies.totals(layer), owners = state.now.owners,
    token_s = facts.token_s + facts.send_s, copy_s = facts.copy_s, most = facts.most }) do
    copies[e] = "*"
  end
  return { owners = state.now.owners, copies = copies }
end

-- SmartMoE: equal numbers of experts on every rank, the heaviest first on the least loaded.

policies.smartmoe = {}

--- Seconds of a layer by SmartMoE's model: the busiest computation, and the busiest exchange (Zhai
-- et al. 2023, section 5); their parts behind the sum.
function policies.smartmoe_s(facts, layer, places)
  local computed, received = spread(layer, places)
  local compute_s = facts.token_s * math.max(table.unpack(computed))
  local exchange_s = facts.send_s * math.max(table.unpack(received))
  return compute_s + exchange_s, compute_s, exchange_s
end

--- Ranks for sets of experts so that as many as possible stay where they are.
local function name_ranks(sets, owners, ranks)
  local cost = {}
  for set = 1, ranks do
    cost[set] = {}
    for rank = 1, ranks do
      cost[set][rank] = 0
    end
  end
  for e, set in ipairs(sets) do
    cost[set][owners[e]] = cost[set][owners[e]] - 1
  end
  local names = hv.opt.assign { cost = cost, objective = "sum" }
  local named = {}
  for e, set in ipairs(sets) do
    named[e] = names.columns[set]
  end
  return named
end

--- Rank of each expert and the load of the busiest rank: longest processing time first with `slots`
-- places per rank.
function policies.longest_first(loads, ranks, slots)
  local found = hv.opt.distribute { items = loads, slots = ranks, most = slots,
    objective = "lpt" }
  return found.counts, found.value
end

function policies.smartmoe.decide(facts, layer, state, t)
  if (t - 1) % (facts.every or facts.interval) ~= 0 then
    return nil
  end
  local slots = (facts.experts + facts.ranks - 1) // facts.ranks
  local sets = policies.longest_first(policies.totals(layer), facts.ranks, slots)
  local after = { owners = name_ranks(sets, state.now.owners, facts.ranks) }
  local gain_s = policies.layer_s(facts, layer, state.now) - policies.layer_s(facts, layer, after)
  if gain_s * facts.interval <= policies.move_s(facts, state.now, after) then
    return nil
  end
  return after
end

-- FlexMoE: replicas of experts on slots; expand, shrink, migrate.

policies.flexmoe = {}

--- Seconds of a layer by FlexMoE's model: the rank whose computation, exchange and reductions of
-- replicated experts take longest (Nie et al. 2023, section 3).
function policies.flexmoe_s(facts, layer, places)
  local computed, received = spread(layer, places)
  local reductions = {}
  for e, owner in ipairs(places.owners) do
    local copies = places.copies and places.copies[e] or {}
    for _, rank in ipairs(#copies > 0 and { owner, table.unpack(copies) } or {}) do
      reductions[rank] = (reductions[rank] or 0) + 1
    end
  end
  local most_s = 0
  for rank, n in ipairs(computed) do
    most_s = math.max(most_s, facts.token_s * n + facts.send_s * received[rank]
      + facts.copy_s * (reductions[rank] or 0))
  end
  return most_s
end

--- One replica more for the expert with most tokens per replica, one less for that with least, as
-- long as the most falls; ties to the lowest number, and the last replica stays. Returns which
-- expands and which shrinks, or nil. An expert has at most `most` replicas (any number); with
-- `free` slots nothing has to shrink.
function policies.expand(loads, n, most, free)
  local hot, cold
  for e = 1, #loads do
    if n[e] < (most or math.huge) and (not hot or loads[e] / n[e] > loads[hot] / n[hot]) then
      hot = e
    end
  end
  if free or not hot then
    return hot
  end
  for e = 1, #loads do
    if e ~= hot and n[e] > 1 and (not cold or loads[e] / n[e] < loads[cold] / n[cold]) then
      cold = e
    end
  end
  if not cold or loads[cold] / (n[cold] - 1) >= loads[hot] / n[hot] then
    return nil
  end
  return hot, cold
end

--- Ranks that hold each expert, the owner first; how many experts a rank holds; load of each rank
-- with tokens spread evenly over replicas.
local function holders_of(facts, places, loads)
  local holders, held, load = {}, {}, {}
  for rank = 1, facts.ranks do
    held[rank], load[rank] = 0, 0
  end
  for e, owner in ipairs(places.owners) do
    holders[e] = { owner, table.unpack(places.copies and places.copies[e] or {}) }
    for _, rank in ipairs(holders[e]) do
      held[rank], load[rank] = held[rank] + 1, load[rank] + loads[e] / #holders[e]
    end
  end
  return holders, held, load
end

local function places_of(holders)
  local places = { owners = {}, copies = {} }
  for e, ranks in ipairs(holders) do
    places.owners[e] = ranks[1]
    places.copies[e] = #ranks > 1 and table.move(ranks, 2, #ranks, 1, {}) or nil
  end
  return places
end

local function has(list, x)
  for i, y in ipairs(list) do
    if x == y then
      return i
    end
  end
end

--- The least loaded rank with a slot that does not hold expert e.
local function room_for(facts, e, holders, held, load)
  local best
  for rank = 1, facts.ranks do
    if held[rank] < facts.slots and not has(holders[e], rank)
      and (not best or load[rank] < load[best]) then
      best = rank
    end
  end
  return best
end

--- Takes the replica of an expert on its most loaded rank away.
local function shrink(e, holders, held, load)
  local worst = 1
  for i, rank in ipairs(holders[e]) do
    worst = load[rank] > load[holders[e][worst]] and i or worst
  end
  local rank = table.remove(holders[e], worst)
  held[rank] = held[rank] - 1
end

--- The places with one replica more of the hottest expert, or nil.
local function expanded(facts, loads, places)
  local holders, held, load = holders_of(facts, places, loads)
  local n, free = {}, false
  for e, ranks in ipairs(holders) do
    n[e] = #ranks
  end
  for rank = 1, facts.ranks do
    free = free or held[rank] < facts.slots
  end
  local hot, cold = policies.expand(loads, n, facts.ranks, free)
  if not hot then
    return nil
  end
  if cold then
    shrink(cold, holders, held, load)
  end
  local rank = room_for(facts, hot, holders, held, load)
  if not rank then
    return nil
  end
  table.insert(holders[hot], rank)
  return places_of(holders)
end

--- The places with a replica of the busiest rank exchanged for one of the idlest, or nil.
local function migrated(facts, loads, places)
  local holders, held, load = holders_of(facts, places, loads)
  local busy, idle = 1, 1
  for rank = 2, facts.ranks do
    busy = load[rank] > load[busy] and rank or busy
    idle = load[rank] < load[idle] and rank or idle
  end
  local best, best_load = nil, load[busy]
  local given, taken = {}, {} -- replicas that one of both ranks has
  for e, ranks in ipairs(holders) do
    local i, k = has(ranks, busy), has(ranks, idle)
    if i and not k then
      given[#given + 1] = { e, i }
    elseif k and not i then
      taken[#taken + 1] = { e, k }
    end
  end
  for _, x in ipairs(given) do
    for _, y in ipairs(taken) do
      local d = loads[x[1]] / #holders[x[1]] - loads[y[1]] / #holders[y[1]]
      local after = math.max(load[busy] - d, load[idle] + d)
      if after < best_load - 1e-12 then
        best, best_load = { x[1], x[2], y[1], y[2] }, after
      end
    end
  end
  if not best then
    return nil
  end
  holders[best[1]][best[2]], holders[best[3]][best[4]] = idle, busy
  return places_of(holders), held
end

--- The places of SmartMoE's choice: as many experts on every rank, the heaviest first on the least
-- loaded, and no replicas; nil where the slots are too few for that.
local function evened(facts, loads, places)
  local most = (facts.experts + facts.ranks - 1) // facts.ranks
  if most > facts.slots then
    return nil
  end
  local sets = policies.longest_first(loads, facts.ranks, most)
  return { owners = name_ranks(sets, places.owners, facts.ranks), copies = {} }
end

--- Expansions and then migrations from `first` for as long as each lowers cost_s(places); the
-- places and their cost.
local function improved(facts, loads, first, cost_s)
  local places, least_s = first, cost_s(first)
  for _, change in ipairs { expanded, migrated } do
    for _ = 1, facts.ranks do
      local after = change(facts, loads, places)
      local after_s = after and cost_s(after)
      if not after or after_s >= least_s * (1 - 1e-9) then
        break
      end
      places, least_s = after, after_s
    end
  end
  return places, least_s
end

function policies.flexmoe.decide(facts, layer, state)
  local loads = policies.totals(layer)
  local _, _, load = holders_of(facts, state.now, loads)
  local sum, most = 0, 0
  for _, x in ipairs(load) do
    sum, most = sum + x, math.max(most, x)
  end
  if most * facts.ranks <= facts.threshold * sum then
    return nil -- balanced: places that hardly help would go and come
  end
  -- a step is taken where the layer gains more over the interval than its moves take
  local function cost_s(places)
    return policies.layer_s(facts, layer, places)
      + policies.move_s(facts, state.now, places) / facts.interval
  end
  local best, least_s = state.now, cost_s(state.now)
  for _, first in ipairs { state.now, facts.evens and evened(facts, loads, state.now) or nil } do
    local places, places_s = improved(facts, loads, first, cost_s)
    if places_s < least_s * (1 - 1e-9) then
      best, least_s = places, places_s
    end
  end
  return best ~= state.now and best or nil
end

-- Prophet: copies of hot experts on the ranks that have most of their tokens.

policies.prophet = { lent = true, hides = true }

--- Seconds of a layer by Prophet's model: facts {send_s, token_s, share_s = of one copy: its
-- weights or gradients over the mean link, hidden_s}, lite = {[expert] = list of ranks besides its
-- owner}.
function policies.prophet_s(facts, layer, owners, lite)
  local computed, received, copies = {}, {}, 0
  for rank = 1, #layer do
    computed[rank], received[rank] = 0, 0
  end
  for e, owner in ipairs(owners) do
    local on = { [owner] = true }
    for _, rank in ipairs(lite[e] or {}) do
      on[rank] = true
      copies = copies + 1
    end
    for rank, row in ipairs(layer) do
      local at = on[rank] and rank or owner
      computed[at] = computed[at] + row[e]
      received[at] = received[at] + (at ~= rank and row[e] or 0)
    end
  end
  local most_computed, most_received = 0, 0
  for rank = 1, #layer do
    most_computed = math.max(most_computed, computed[rank])
    most_received = math.max(most_received, received[rank])
  end
  local moved_s = copies * facts.share_s
  return facts.send_s * most_received + facts.token_s * most_computed
    + math.max(0, moved_s - (facts.hidden_s or 0)) + math.max(0, moved_s - (facts.hidden_s or 0))
end

--- Ranks besides its owner that get expert e: all but the n with fewest of its tokens.
local function subset(layer, e, owner, n)
  local ranks = {}
  for rank = 1, #layer do
    ranks[#ranks + 1] = rank ~= owner and rank or nil
  end
  table.sort(ranks, function(a, b)
    if layer[a][e] ~= layer[b][e] then
      return layer[a][e] > layer[b][e]
    end
    return a < b
  end)
  return table.move(ranks, 1, #ranks - n, 1, {})
end

--- How many ranks are left out: every number of few ranks, else those that tell sizes apart.
local function left_out(ranks)
  local list, last = {}, -1
  for i = 0, 8 do
    local n = ranks <= 10 and i or (ranks - 2) * i // 8
    if n > last and n <= ranks - 2 then
      list[#list + 1] = n
      last = n
    end
  end
  return list
end

--- The copies of the greedy choice for several n; the best of them, its seconds, and those of each
-- n.
function policies.lite(facts, layer, owners)
  local order, loads = {}, policies.totals(layer)
  for e = 1, #owners do
    order[e] = e
  end
  table.sort(order, function(a, b)
    if loads[a] ~= loads[b] then
      return loads[a] > loads[b]
    end
    return a < b
  end)
  local best, best_s = {}, policies.prophet_s(facts, layer, owners, {})
  local by_n = {}
  for _, n in ipairs(left_out(#layer)) do
    local lite, time_s = {}, policies.prophet_s(facts, layer, owners, {})
    for k, e in ipairs(order) do
      if k > (facts.most or #order) then
        break
      end
      lite[e] = subset(layer, e, owners[e], n)
      local with_s = policies.prophet_s(facts, layer, owners, lite)
      if with_s >= time_s then
        lite[e] = nil
        break
      end
      time_s = with_s
    end
    by_n[n] = time_s
    if time_s < best_s then
      best, best_s = lite, time_s
    end
  end
  return best, best_s, by_n
end

function policies.prophet.decide(facts, layer, state)
  return { owners = state.now.owners, copies = (policies.lite(facts, layer, state.now.owners)) }
end

return policies
