-- The walk of a policy over the iterations of the job's routing, as a plan records it: before every
-- iteration the policy sees the tokens of the one before.
local inventory = require "inventory"
local mixture = require "mixture"
local policies = require "policies"

local walk = {}

local MANY = 1e9 -- iterations

--- Tokens of the ranks of a group that share experts, in the mean over the groups of a stage.
local function folded(layer, ranks)
  local rows, groups = {}, #layer // ranks
  for r = 1, ranks do
    rows[r] = {}
    for e = 1, #layer[1] do
      local sum = 0
      for g = 0, groups - 1 do
        sum = sum + layer[g * ranks + r][e]
      end
      rows[r][e] = sum / groups
    end
  end
  return rows
end

--- Seconds of the forward pass of the layer before, behind which its copies can be sent.
local function before_s(ctx, made, stage, layer)
  local kind = inventory.kind(ctx, mixture.group(ctx, stage)[1])
  local before = math.max(1, layer.layer - 1)
  return hv.cost.layers { kinds = { kind }, tp = stage.tp, recompute = stage.recompute,
    micro_batch = made.micro_batch // stage.dp }:time(before, before, kind, "forward")
end

--- Seconds that policies reckon with, of a stage and a layer, for all tokens of an iteration.
local function facts_of(world, made, stage, layer)
  local ctx, job = world.ctx, world.ctx.job
  local fit = mixture.fits(ctx, stage, made.micro_batch, layer)
  local group = mixture.group(ctx, stage)
  local ranks, rows = #group, mixture.tokens(ctx, stage, made.micro_batch) * layer.top_k
  local tp = stage.tp or 1
  local function seconds(op, bytes, ids)
    return hv.cost.collective { op = op, bytes = bytes / tp, devices = ids }.time_s
  end
  local weights, gradients = layer.parameters * job.weight_bytes, layer.parameters * job.grad_bytes
  local states = job.master_bytes + job.optimizer_bytes
  if stage.zero then
    states = states / math.max(1, stage.dp // ranks)
  end
  local pair = { group[1], group[2] }
  local lent = policies[world.id].lent
  local link_s = seconds("p2p", weights, { group[1], group[#group] })
  return {
    ranks = ranks, experts = layer.experts, interval = 1,
    token_s = 3 * fit.expert.beta_s / rows,
    send_s = 4 * fit.exchange.beta_s / rows * ranks / (ranks - 1),
    copy_s = lent and seconds("broadcast", weights, group) + seconds("reduce", gradients, group)
      or seconds("all_reduce", gradients, pair),
    weights_s = lent and seconds("broadcast", weights, group), share_s = link_s / ranks,
    move_s = seconds("p2p", layer.parameters * (job.weight_bytes + states),
      { group[1], group[#group] }),
    slots = (layer.experts + ranks - 1) // ranks + 1,
    threshold = 1.1, hidden_s = policies[world.id].hides and before_s(ctx, made, stage, layer) or 0,
  }
end

--- Are two places of experts the same?
local function same(a, b)
  local function text(places)
    local parts = { table.concat(places.owners, " ") }
    for e = 1, #places.owners do
      local ranks = places.copies and places.copies[e]
      parts[#parts + 1] = type(ranks) == "table" and table.concat(ranks, " ") or ranks or "-"
    end
    return table.concat(parts, ";")
  end
  return text(a) == text(b)
end

--- Decisions of a policy for one layer over the iterations: list of {iteration (from 1), places}
-- where they change. A routing of one iteration stands for many alike, over which moves always pay.
function walk.layer(facts, policy, layers)
  if #layers == 1 then
    facts.interval, facts.every = MANY, 1
  end
  local usual = { owners = policies.by_blocks(facts.experts, facts.ranks), copies = {} }
  local state, list = { now = usual }, {}
  for t = 2, math.max(2, #layers) do
    local places = policy.decide(facts, layers[t - 1], state, t)
    if places and not same(places, state.now) then
      list[#list + 1] = { iteration = #layers > 1 and t or 1, places = places }
      state.now = places
    end
  end
  return list
end

--- Places as a plan has them: ranks and experts from 0.
local function in_plan(places, usual)
  local owners, copies
  if not same({ owners = places.owners }, { owners = usual }) then
    owners = {}
    for e, rank in ipairs(places.owners) do
      owners[e] = rank - 1
    end
  end
  for e = 1, #places.owners do
    local ranks = places.copies and places.copies[e]
    if ranks == "*" then
      copies = copies or {}
      copies[tostring(e - 1)] = "*"
    elseif ranks and #ranks > 0 then
      copies = copies or {}
      local list = {}
      for i, rank in ipairs(ranks) do
        list[i] = rank - 1
      end
      copies[tostring(e - 1)] = list
    end
  end
  return owners, copies
end

--- Layers of the trace that a stage has, and which are alike: list of {from, to} in blocks and the
-- position in the trace of one of them.
local function runs_of(world, stage, trace)
  local inside, at = {}, {}
  for i, layer in ipairs(world.layers) do
    if layer.block >= stage.layers[1] and layer.block < stage.layers[2] then
      inside[#inside + 1] = layer
      at[layer.block] = i
    end
  end
  return mixture.runs(inside, function(layer)
    return trace[1][at[layer.block]] -- layers that are alike share a list
  end), at
end

--- Tokens of one layer in every iteration, folded onto the ranks of a group.
local function column(trace, position, ranks)
  local layers = {}
  for t, layers_of in ipairs(trace) do
    layers[t] = folded(layers_of[position], ranks)
  end
  return layers
end

--- Places of a record as policies have them: ranks and experts from 1.
local function from_plan(record, usual)
  local places = { owners = usual, copies = {} }
  if record.owners then
    places.owners = {}
    for e, rank in ipairs(record.owners) do
      places.owners[e] = rank + 1
    end
  end
  for e, ranks in pairs(record.copies or {}) do
    local list = ranks
    if type(ranks) == "table" then
      list = {}
      for i, rank in ipairs(ranks) do
        list[i] = rank + 1
      end
    end
    places.copies[tonumber(e) + 1] = list
  end
  return places
end

--- Whether a record is one of a block: of all layers, or of a range with it.
local function has_block(record, block)
  local range = record.layers
  return not range or block >= range[1] and block < range[2]
end

--- Places that a plan records for a block of a stage, one after the other: list that starts with
-- the usual ones.
local function recorded(stage, block, facts)
  local usual = policies.by_blocks(facts.experts, facts.ranks)
  local list, moe = { { owners = usual, copies = {} } }, stage.moe or {}
  for _, row in ipairs(#moe > 0 and moe or { moe }) do
    if has_block(row, block) then
      for _, record in ipairs(row.adapt and row.adapt.placements or { row }) do
        list[#list + 1] = has_block(record, block) and from_plan(record, usual) or nil
      end
    end
  end
  return list
end

--- Figures of a stage's first layer with experts, its tokens in every iteration, and the places
-- that the plan records for it, the usual ones first.
function walk.figures(world, made, stage)
  local ctx = world.ctx
  local share = made.replicas[1].micro_batches * mixture.tokens(ctx, stage, made.micro_batch)
  local trace = hv.trace { sources = stage.dp, tokens = share }
  local runs, at = runs_of(world, stage, trace)
  local layer = runs[1].layer
  local facts = facts_of(world, made, stage, layer)
  return facts, column(trace, at[layer.block], facts.ranks), recorded(stage, layer.block, facts)
end

--- Placements of a stage under its system's policy: `moe` with what the judge follows, and how many
-- times experts are placed anew; nil where nothing is.
-- @param tune what differs from the usual facts: {interval, threshold, slots, most}
function walk.stage(world, made, stage, tune)
  local ctx, policy = world.ctx, policies[world.id]
  local share = made.replicas[1].micro_batches * mixture.tokens(ctx, stage, made.micro_batch)
  local trace = hv.trace { sources = stage.dp, tokens = share }
  local runs, at = runs_of(world, stage, trace)
  local placements, n = {}, 0
  for _, run in ipairs(runs) do
    local facts = facts_of(world, made, stage, run.layer)
    for key, value in pairs(tune) do
      facts[key] = key == "slots" and facts.slots - 1 + value or value
    end
    local usual = policies.by_blocks(facts.experts, facts.ranks)
    for _, one in ipairs(walk.layer(facts, policy, column(trace, at[run.layer.block],
      facts.ranks))) do
      local owners, copies = in_plan(one.places, usual)
      n = n + 1
      placements[n] = { iteration = one.iteration - 1, owners = owners, copies = copies,
        layers = #runs > 1 and { run.from, run.to } or nil, rank = n }
    end
  end
  table.sort(placements, function(a, b)
    return a.iteration ~= b.iteration and a.iteration < b.iteration
      or a.iteration == b.iteration and a.rank < b.rank
  end)
  for _, placement in ipairs(placements) do
    placement.rank = nil
  end
  return n > 0 and placements or nil, #trace
end

return walk
