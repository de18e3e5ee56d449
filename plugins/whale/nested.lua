-- Nested task graphs (Whale, sections 3.1 to 3.3): split inside replica. Virtual devices are groups
-- of devices that split every layer; the replicas of the model are such groups, of unequal sizes
-- and kinds. Both levels are balanced by section 3.3.1: units of the layers over the devices of a
-- group, then sequences of a step over the groups.
--
-- A team: {groups = lists of devices {id, kind, flops_per_s}, all alike, mixed = groups of several
-- kinds}. A team becomes a replica entry of the plan, its groups are the data-parallel ranks.
local deal = require "deal"
local grids = require "grids"
local layer_split = require "layer_split"
local numbers = require "numbers"
local prices = require "prices"
local ranks = require "ranks"

local nested = {}

local MOST_KINDS = 4 -- of a cluster whose kinds are also mixed in groups
local MOST_NESTS = 1000 -- lists of teams that are tried

--- Nodes by kind: lists of nodes, in the order of first mention.
local function by_kind(nodes)
  local lists, of = {}, {}
  for _, node in ipairs(nodes) do
    if not of[node.kind] then
      of[node.kind] = {}
      lists[#lists + 1] = of[node.kind]
    end
    table.insert(of[node.kind], node)
  end
  return lists
end

--- Teams of the nodes of one kind: groups of each degree, inside nodes.
local function teams_of_kind(ctx, nodes, layers)
  local list = {}
  for _, degree in ipairs(numbers.powers(ctx.options.tp)) do
    local groups = {}
    for _, rank in ipairs(grids.tp_fits(layers, degree) and ranks.of_nodes(nodes, degree) or {}) do
      local group = {}
      for i, id in ipairs(rank.ids) do
        group[i] = { id = id, kind = rank.kind, flops_per_s = rank.flops_per_s }
      end
      groups[#groups + 1] = group
    end
    if #groups > 0 then
      list[#list + 1] = { groups = groups }
    end
  end
  return list
end

--- Teams of nodes of several kinds: equal groups with devices of every kind.
local function teams_of_kinds(ctx, nodes, layers)
  local list = {}
  for _, count in ipairs(layer_split.counts(nodes)) do
    local groups = layer_split.groups(nodes, count)
    local size = #groups[1]
    if size <= ctx.options.tp and size <= layer_split.units(layers) then
      list[#list + 1] = { groups = groups, mixed = true }
    end
  end
  return list
end

--- Calls visit(parts) with every partition of the lists into parts, each the nodes of one list or,
-- with `mix`, of several.
local function each_partition(lists, mix, visit)
  local parts = {}
  local function place(i)
    if i > #lists then
      visit(parts)
      return
    end
    for p = 1, mix and #parts or 0 do
      table.insert(parts[p], lists[i])
      place(i + 1)
      table.remove(parts[p])
    end
    parts[#parts + 1] = { lists[i] }
    place(i + 1)
    parts[#parts] = nil
  end
  place(1)
end

--- The teams that the kinds of a part can form.
local function teams_of(ctx, part, layers)
  if #part == 1 then
    return teams_of_kind(ctx, part[1], layers)
  end
  local nodes = {}
  for _, list in ipairs(part) do
    table.move(list, 1, #list, #nodes + 1, nodes)
  end
  return teams_of_kinds(ctx, nodes, layers)
end

--- Is a list of teams a nest that no other mode has: groups of several sizes, or of several kinds
-- beside others?
local function is_uneven(teams)
  local uneven = false
  for _, team in ipairs(teams) do
    uneven = uneven or team.mixed or #team.groups[1] ~= #teams[1].groups[1]
  end
  return #teams > 1 and uneven
end

--- Does some group of the teams split the layers?
local function splits_some(teams)
  for _, team in ipairs(teams) do
    if #team.groups[1] > 1 then
      return true
    end
  end
  return false
end

--- Calls visit(teams) with every list of teams of which some split the layers, at most 1000: one
-- team for each kind or mix of kinds. With `uneven_only` without those that the modes split and
-- replicate have: one team alone, and groups of one size and one kind each.
function nested.each(ctx, nodes, uneven_only, visit)
  local layers, lists = ctx.model:layers(), by_kind(nodes)
  local left = MOST_NESTS
  each_partition(lists, #lists <= MOST_KINDS, function(parts)
    local choices, teams = {}, {}
    for p, part in ipairs(parts) do
      choices[p] = teams_of(ctx, part, layers)
    end
    local function choose(p)
      if left == 0 then
        return
      elseif p <= #parts then
        for _, team in ipairs(choices[p]) do
          teams[p] = team
          choose(p + 1)
        end
        teams[p] = nil
      elseif splits_some(teams) and (is_uneven(teams) or not uneven_only) then
        left = left - 1
        visit(table.move(teams, 1, #teams, 1, {}))
      end
    end
    choose(1)
  end)
end

--- Sequences of a step that each group gets by speed alone.
local function even_load(teams, step)
  local all = 0
  for _, team in ipairs(teams) do
    for _, device in ipairs(team.groups[1]) do
      all = all + #team.groups * device.flops_per_s
    end
  end
  return function(team)
    local own = 0
    for _, device in ipairs(team.groups[1]) do
      own = own + device.flops_per_s
    end
    return math.max(1, math.ceil(step * own / all)), own
  end
end

--- The inner split of a team's groups under `load` sequences each: what layer_split.balance gives,
-- and the load item of a group for the outer level. Groups of one kind are split evenly.
local function inner(ctx, c, team, load)
  if team.mixed then
    return layer_split.balance(ctx, c, team.groups, load)
  end
  local size = #team.groups[1]
  local q = { tp = size, micro_batch = 1, recompute = c.recompute, sequence_parallel = size > 1 }
  local device = team.groups[1][1]
  local chain = prices.chain(ctx, device.kind, q)
  return { tp = size, sequence_parallel = size > 1, item = {
    cap = prices.capacity(ctx, device), unit = prices.saved_bytes(chain, 1, chain.n),
    fixed = prices.state_bytes(ctx, chain, 1, chain.n,
      { zero = c.zero, holders = #team.groups }),
  } }
end

--- The replica entry of a team whose groups take `counts` sequences of a step.
local function entry_of(ctx, c, team, split, counts)
  local ids, sum = {}, 0
  for g, group in ipairs(team.groups) do
    for _, device in ipairs(group) do
      ids[#ids + 1] = device.id
    end
    sum = sum + counts[g]
  end
  local place = { devices = ctx.cluster:address(ids), layers = { 0, ctx.model.n_layers } }
  if #team.groups > 1 then
    place.dp = #team.groups
    place.shares = counts
  end
  return { micro_batch = sum, micro_batches = c.micro_batches,
    stages = { prices.stage_keys({ tp = split.tp, recompute = c.recompute, zero = c.zero,
      sequence_parallel = split.sequence_parallel }, place) } }
end

--- Deals the sequences of a step to the groups of all teams, by the speeds of a group and the load
-- items of `splits`: a list of counts by team; nil, the reason and the factor by which memory is
-- short.
function nested.outer(ctx, teams, splits, speeds, step)
  local items, of = {}, {}
  for i, team in ipairs(teams) do
    for _ = 1, #team.groups do
      local item = splits[i].item
      items[#items + 1] = { speed = speeds[i], fixed = item.fixed, unit = item.unit,
        cap = item.cap }
      of[#items] = i
    end
  end
  local ok, short = deal.deal(items, step, 1)
  if not ok then
    return nil, ranks.shortage(ctx, 1, short and items[short],
      short and teams[of[short]].groups[1][1])
  end
  local counts = {}
  for k, item in ipairs(items) do
    counts[of[k]] = counts[of[k]] or {}
    table.insert(counts[of[k]], item.n)
  end
  return counts
end

--- M x max r_i FLOP / DF_i over all groups of a plan whose replicas have one stage each, and the
-- largest all-reduce between them: seconds in all, of the slowest share, of the all-reduce.
function nested.terms(ctx, made)
  made = prices.table_of(made)
  local kinds = prices.kinds(ctx)
  local slowest_s, sync_s, heads, shards = 0, 0, {}, {}
  for r, replica in ipairs(made.replicas) do
    local stage = replica.stages[1]
    local ids, pass = ctx.cluster:ids(stage.devices), prices.stage(ctx, made, r, 1)
    slowest_s = math.max(slowest_s, pass.forward_s + pass.backward_s)
    local own = ranks.heads(ids, (prices.degree(stage)))
    table.move(own, 1, #own, #heads + 1, heads)
    local chain, part = prices.shard(ctx, stage, kinds[ids[1]])
    shards[r] = { chain = chain, part = part }
  end
  for _, shard in ipairs(shards) do
    sync_s = math.max(sync_s, shard.part * prices.sync(ctx, shard.chain, 1, shard.chain.n, heads))
  end
  return made.replicas[1].micro_batches * slowest_s + sync_s, slowest_s, sync_s
end

--- The candidate { claim_s, build } of teams (of nested.each); nil, the reason, and the factor by
-- which memory is short. `c` is { micro_batches, recompute, zero }.
function nested.candidate(ctx, c, teams)
  local step = ctx.job.global_batch // c.micro_batches
  local load_of = even_load(teams, step)
  local splits, speeds = {}, {}
  for i, team in ipairs(teams) do
    local load, speed = load_of(team)
    local split, why, use = inner(ctx, c, team, load)
    if not split then
      return nil, why, use
    end
    splits[i], speeds[i] = split, speed
  end
  local counts, why, use = nested.outer(ctx, teams, splits, speeds, step)
  if not counts then
    return nil, why, use
  end
  local made = { micro_batch = step, schedule = { name = "1f1b" }, replicas = {} }
  for i, team in ipairs(teams) do
    made.replicas[i] = entry_of(ctx, c, team, splits[i], counts[i])
  end
  return { claim_s = (nested.terms(ctx, made)), build = function() return made end }
end

return nested
