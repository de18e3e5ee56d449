-- Replica entries of a plan that serves, from the groups of a search, and the batch of each.
-- An entry: {count, layout, stages = as in plan files, ids = device numbers of each stage, batch,
-- rate = tokens per second alone}.
local numbers = require "numbers"

local replicas = {}

--- Device numbers of every stage of a group. Takes them from next_id = the next free device of each
-- machine.
local function ids_of(q, group, next_id)
  local machine_of = {}
  for i, m in ipairs(group.like) do
    machine_of[m] = group.order[i]
  end
  local ids = {}
  for s, stage in ipairs(group.layout.stages) do
    local m = machine_of[stage.machine]
    local at = next_id[m] or 1
    ids[s] = numbers.slice(q.machines[m].ids, at, stage.tp)
    next_id[m] = at + stage.tp
  end
  return ids
end

--- The stages of an entry as in plan files.
local function stages_of(ctx, entry)
  local stages, at = {}, 0
  for s, stage in ipairs(entry.layout.stages) do
    stages[s] = { devices = ctx.cluster:address(entry.ids[s]), layers = { at, at + stage.layers },
      tp = stage.tp > 1 and stage.tp or nil }
    at = at + stage.layers
  end
  return stages
end

--- The entries of the groups of one instance; groups with the same layout share an entry.
function replicas.entries(ctx, q, groups)
  local list, by_layout, next_id = {}, {}, {}
  for _, group in ipairs(groups) do
    local entry = by_layout[group.layout]
    if not entry then
      entry = { count = 0, ids = {}, layout = group.layout }
      by_layout[group.layout] = entry
      list[#list + 1] = entry
    end
    entry.count = entry.count + 1
    for s, ids in ipairs(ids_of(q, group, next_id)) do
      local all = entry.ids[s] or {}
      entry.ids[s] = table.move(ids, 1, #ids, #all + 1, all)
    end
  end
  for _, entry in ipairs(list) do
    entry.stages = stages_of(ctx, entry)
  end
  return list
end

--- The plan of entries, each with its batch and with the flow that the simulator finds, and its
-- tokens per second; nil, the reason, and the place in the plan.
local function judged(list)
  local made = { mode = "serve", micro_batch = list[1].batch, replicas = {} }
  for r, entry in ipairs(list) do
    made.replicas[r] = {
      count = entry.count > 1 and entry.count or nil,
      stages = entry.stages,
      micro_batch = entry.batch ~= made.micro_batch and entry.batch or nil,
    }
  end
  local verdict, why = hv.plan.new(made):eval()
  if not verdict then
    return nil, why
  end
  local violation = verdict.violations[1]
  if violation then
    return nil, violation.text, violation.where
  end
  made.flow = verdict.flow
  return made, verdict.tokens_per_s
end

--- The entries that can serve, each with the one of `batches` with which it serves most tokens per
-- second alone; and the reason of the last plan that could not.
function replicas.with_batches(list, batches)
  local kept, reason = {}, nil
  for i, entry in ipairs(list) do
    local most, best_batch = 0, nil
    for _, batch in ipairs(batches) do
      entry.batch = batch
      local made, rate_or_reason = judged { entry }
      if not made then
        reason = rate_or_reason
      elseif rate_or_reason > most then
        most = rate_or_reason
        best_batch = batch
      end
    end
    entry.batch = best_batch
    entry.rate = most
    if best_batch then
      kept[#kept + 1] = entry
    end
    hv.progress(i / #list, ("%d of %d kinds of replica"):format(i, #list))
  end
  return kept, reason
end

--- The entry that a place in a plan names, such as "replicas[2].stages[0]"; nil where it names
-- none.
local function entry_at(list, place)
  local index = place and place:match "replicas%[(%d+)%]"
  return index and list[tonumber(index) + 1]
end

--- The plan of all entries together. Their requests in flight may need more memory than each entry
-- alone: then the batch of the entry that does not fit is halved. nil and the reason where that
-- does not help.
function replicas.plan(list, reason)
  for _ = 1, 4 * #list do
    local made, why, place = judged(list)
    if made then
      return made
    end
    reason = why
    local entry = entry_at(list, place)
    if not entry or entry.batch == 1 then
      break
    end
    entry.batch = entry.batch // 2
  end
  return nil, reason
end

--- The flow {from, to, tokens per second} in which the requests of each entry stay in its stages:
-- each serves as many as it can.
-- @tparam table list of {stages, rate}
function replicas.own_flow(list)
  local flow, first = {}, 0
  for _, entry in ipairs(list) do
    local last = first + #entry.stages - 1
    flow[#flow + 1] = { "source", first, entry.rate }
    for s = first, last - 1 do
      flow[#flow + 1] = { s, s + 1, entry.rate }
    end
    flow[#flow + 1] = { last, "sink", entry.rate }
    first = last + 1
  end
  return flow
end

--- The plan `made` of these entries with requests that stay in one entry; as it is where such a
-- flow breaks a rule, as that of entries that share a network card may.
function replicas.apart(made, list)
  local mixed = made.flow
  made.flow = replicas.own_flow(list)
  local verdict = hv.plan.new(made):eval()
  if not verdict or #verdict.violations > 0 then
    made.flow = mixed
  end
  return made
end

return replicas
