-- Training pipelines whose stages are whole nodes: the placements that Helix's graph
-- (training_flow.lua) can compare and that can be trained. All nodes of a stage hold the same run
-- of layers and share each micro-batch by their rates; after the last one they exchange their
-- gradients, which serving does not have: divisions are ranked by the time of their flow and of
-- that exchange.
local candidates = require "candidates"
local claims = require "claims"
local divisions = require "divisions"
local grids = require "grids"
local links = require "links"
local node_rates = require "node_rates"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"
local training_flow = require "training_flow"

local train = {}

local KEPT = 10 -- divisions that are tried with all micro-batches and recomputation
local DEGREES = { 1, 2, 4, 8 }
local ALONE_FRAC = 1.1 -- of the memory of a stage that holds all layers, for the formula

--- The stages of a division on nodes with rates: a list of {nodes, rate = of all of them, size =
-- greatest common divisor of their numbers of devices}.
local function stages_of(nodes, division)
  local stages = {}
  for s, list in ipairs(division) do
    local stage = { nodes = {}, rate = 0, size = 0 }
    for k, i in ipairs(list) do
      stage.nodes[k] = nodes[i]
      stage.rate = stage.rate + nodes[i].rate
      stage.size = numbers.gcd(stage.size, #nodes[i].ids)
    end
    stages[s] = stage
  end
  return stages
end

--- Layers of the stages by their rates, at least one and at most caps[s] each (nil: any number);
-- nil where there are too few.
local function layers_of(ctx, stages, caps)
  local times, least = {}, {}
  for s, stage in ipairs(stages) do
    times[s] = 1 / stage.rate
    least[s] = 1
  end
  local r = hv.opt.distribute { total = ctx.model.n_layers, time = times, min = least,
    caps = caps }
  return r and r.counts
end

--- Are all numbers of a list equal?
local function all_equal(list)
  for _, n in ipairs(list) do
    if n ~= list[1] then
      return false
    end
  end
  return true
end

--- The ranks of a stage, of tp devices each: {tp, ids, shares = sequences of each by rate}; nil
-- where a share would be nothing, or where tp divides no node or no layer.
local function ranks_of(ctx, stage, c)
  local tp = math.min(c.tp, stage.size)
  local ids, times, least = {}, {}, {}
  for _, node in ipairs(stage.nodes) do
    table.move(node.ids, 1, #node.ids, #ids + 1, ids)
    for _ = 1, #node.ids // tp do
      times[#times + 1] = #node.ids / node.rate / tp
      least[#least + 1] = 1
    end
  end
  if #times > c.micro_batch or stage.size % tp ~= 0
    or not grids.tp_fits(ctx.model:layers(), tp) then
    return nil
  end
  local r = hv.opt.distribute { total = c.micro_batch, time = times, min = least }
  return r and { tp = tp, ids = ids, shares = r.counts }
end

--- Times, bytes and room of a stage by layer (pipeline.tables), one for each kind of its nodes with
-- the largest share of a rank of that kind. `alive` = micro-batches that the stage keeps.
local function tables_of(ctx, stage, ranks, alive, c)
  local r, largest = 1, {}
  for _, node in ipairs(stage.nodes) do
    for _ = 1, #node.ids // ranks.tp do
      largest[node.kind] = math.max(largest[node.kind] or 0, ranks.shares[r])
      r = r + 1
    end
  end
  local list = {}
  for kind, share in pairs(largest) do
    list[#list + 1] = pipeline.tables(ctx, { kinds = { kind }, tp = ranks.tp, micro_batch = share,
      recompute = c.recompute, zero = c.zero, holders = #ranks.shares }, alive)
  end
  return list
end

--- The most layers that a stage may hold, counted from the first layer of the model on, or with
-- `last` from the last one. With `alone` it holds all of them: the lists count a tied embedding
-- twice then, so that the simulation decides where a little is missing.
local function most_layers(tables, last, alone)
  local most = math.huge
  for _, t in ipairs(tables) do
    local sum, count, n, room = 0, 0, #t.held, t.room * (alone and ALONE_FRAC or 1)
    while count < n and sum + t.held[last and n - count or count + 1] <= room do
      sum = sum + t.held[last and n - count or count + 1]
      count = count + 1
    end
    most = math.min(most, count)
  end
  return most
end

--- Seconds of a micro-batch on a stage with the layers range = {first − 1, last}.
local function stage_seconds(tables, range)
  local longest_s = 0
  for _, t in ipairs(tables) do
    local sum_s = 0
    for l = range[1] + 1, range[2] do
      sum_s = sum_s + t.times[l]
    end
    longest_s = math.max(longest_s, sum_s)
  end
  return longest_s
end

--- One stage as in plan files.
local function stage_row(ctx, ranks, layers, c)
  local dp = #ranks.shares
  return prices.stage_keys(
    { tp = ranks.tp, recompute = c.recompute, zero = c.zero, sequence_parallel = ranks.tp > 1 },
    { devices = ctx.cluster:address(ranks.ids), layers = layers, dp = dp > 1 and dp or nil,
      shares = not all_equal(ranks.shares) and ranks.shares or nil })
end

--- The plan of one pipeline of stages with these ranks and `counts` layers each.
local function plan_of(ctx, ranks, counts, c)
  local rows, layers = {}, numbers.ranges(counts)
  for s, own in ipairs(ranks) do
    rows[s] = stage_row(ctx, own, layers[s], c)
  end
  return { micro_batch = c.micro_batch, schedule = { name = "1f1b" },
    replicas = { { micro_batches = ctx.job.global_batch // c.micro_batch, stages = rows } } }
end

--- Seconds of the flow of a batch through stages with `counts` layers each. Remembered in
-- stages.flows.
local function flow_s(ctx, stages, counts)
  stages.flows = stages.flows or {}
  local key = table.concat(counts, " ")
  if not stages.flows[key] then
    stages.flows[key] = ctx.job.global_batch * ctx.job.sequence
      / training_flow.of(ctx, stages, counts)
  end
  return stages.flows[key]
end

--- Seconds of the longest exchange of gradients in a stage, with ranks of tp devices.
local function exchange_s(ctx, stages, counts, tp)
  stages.exchanges = stages.exchanges or {}
  local key = table.concat(counts, " ") .. "/" .. tp
  if not stages.exchanges[key] then
    local longest_s = 0
    for s, range in ipairs(numbers.ranges(counts)) do
      local seconds = training_flow.exchange_s(ctx, stages[s].nodes, range,
        math.min(tp, stages[s].size))
      longest_s = math.max(longest_s, seconds)
    end
    stages.exchanges[key] = longest_s
  end
  return stages.exchanges[key]
end

--- Seconds of an iteration: the flow of the batch, filling the pipeline, and the exchange.
local function seconds_of(ctx, stages, counts, tp, micro_batch)
  local micro_batches = ctx.job.global_batch / micro_batch
  return flow_s(ctx, stages, counts) * (1 + (#stages - 1) / micro_batches)
    + exchange_s(ctx, stages, counts, tp)
end

--- Seconds in which the activations of a micro-batch pass from a stage to the next one, if they
-- share the slowest link between nodes of both.
local function hop_s(ctx, stages, s, micro_batch)
  local key = s .. "/" .. micro_batch
  stages.hops = stages.hops or {}
  if not stages.hops[key] then
    local bytes = micro_batch * training_flow.output_bytes(ctx, stages[1].nodes[1].kind)
    local slowest_s = 0
    for _, a in ipairs(stages[s].nodes) do
      for _, b in ipairs(stages[s + 1].nodes) do
        slowest_s = math.max(slowest_s, links.seconds(ctx, a.ids[1], b.ids[1], bytes))
      end
    end
    stages.hops[key] = slowest_s
  end
  return stages.hops[key]
end

--- Seconds of the stages in turn, with their tensor groups and the shares that ranks have; and the
-- same with what passes between them over one link.
local function pipeline_s(ctx, stages, tables, counts, micro_batch)
  local stage_s, all_s = {}, {}
  for s, range in ipairs(numbers.ranges(counts)) do
    stage_s[s] = stage_seconds(tables[s], range)
    all_s[2 * s - 1] = stage_s[s]
    all_s[2 * s] = s < #stages and 2 * hop_s(ctx, stages, s, micro_batch) or nil
  end
  local micro_batches = ctx.job.global_batch // micro_batch
  return (claims.pipeline_s(stage_s, micro_batches)), (claims.pipeline_s(all_s, micro_batches))
end

--- The candidate of a division; nil where there is none: free_s = the longer of the flow and the
-- stages in turn, with the exchange, hidden_s = without it, shared_s = with it and with hops over
-- one link. c = {tp, recompute, micro_batch, zero}.
local function candidate_of(ctx, stages, c)
  local ranks, tables, caps, room = {}, {}, {}, 0
  local micro_batches = ctx.job.global_batch // c.micro_batch
  for s, stage in ipairs(stages) do
    ranks[s] = ranks_of(ctx, stage, c)
    if not ranks[s] then
      return nil
    end
    tables[s] = tables_of(ctx, stage, ranks[s], math.min(#stages - s + 1, micro_batches), c)
    caps[s] = most_layers(tables[s], s > 1 and s == #stages, #stages == 1)
    room = room + caps[s]
    if caps[s] < 1 then
      return nil
    end
  end
  local counts = room >= ctx.model.n_layers and layers_of(ctx, stages, caps)
  if not counts then
    return nil
  end
  local exchanged_s = exchange_s(ctx, stages, counts, c.tp)
  local turns_s, shared_s = pipeline_s(ctx, stages, tables, counts, c.micro_batch)
  local flowing_s = seconds_of(ctx, stages, counts, c.tp, c.micro_batch)
  return {
    free_s = math.max(flowing_s, turns_s + exchanged_s),
    hidden_s = math.max(flowing_s - exchanged_s, turns_s),
    shared_s = math.max(flowing_s, shared_s + exchanged_s),
    build = function() return plan_of(ctx, ranks, counts, c) end,
  }
end

--- The least seconds of a division over all degrees, each with the smallest micro-batch that gives
-- every rank a sequence; nil where the batch is too small.
local function estimate(ctx, stages)
  local counts = layers_of(ctx, stages)
  local least_s
  for _, tp in ipairs(counts and DEGREES or {}) do
    local ranks = 1
    for _, stage in ipairs(stages) do
      local n = 0
      for _, node in ipairs(stage.nodes) do
        n = n + #node.ids
      end
      ranks = math.max(ranks, n // math.min(tp, stage.size))
    end
    local micro_batch = numbers.divisor_from(ctx.job.global_batch, ranks)
    local seconds = micro_batch and seconds_of(ctx, stages, counts, tp, micro_batch)
    if seconds and not (least_s and least_s <= seconds) then
      least_s = seconds
    end
  end
  return least_s
end

--- The divisions with least seconds by the formula, the best of every number of stages among them.
local function kept_divisions(ctx, nodes)
  local list = {}
  for _, division in ipairs(divisions.of(ctx, nodes, ctx.model.n_layers)) do
    if #list > 0 and hv.stopping(0.3) then
      break
    end
    local seconds = estimate(ctx, stages_of(nodes, division))
    if seconds then
      list[#list + 1] = { division = division, claim_s = seconds, rank = #list + 1 }
    end
  end
  table.sort(list, function(a, b)
    if a.claim_s ~= b.claim_s then
      return a.claim_s < b.claim_s
    end
    return a.rank < b.rank
  end)
  local kept, has_number = {}, {}
  for k, row in ipairs(list) do
    if k <= KEPT or not has_number[#row.division] then
      kept[#kept + 1] = row.division
      has_number[#row.division] = true
    end
  end
  return kept
end

--- The best of the candidates by simulation, a third of the tries each: in the order in which links
-- are free, without exchanges, which may hide behind computation, and in the order in which links
-- are shared. nil and the reason when none fits.
local function best_of(list, tries)
  local best, least_s, reason
  local function try(key)
    for _, candidate in ipairs(list) do
      candidate.claim_s = candidate[key]
    end
    local own, value = candidates.best(list, math.max(1, tries // 3))
    if own and not (best and least_s <= value) then
      best = own
      least_s = value
    elseif not own then
      reason = reason or value
    end
  end
  try "free_s"
  if tries >= 3 and not (best and hv.stopping()) then
    try "hidden_s"
    try "shared_s"
  end
  return best, reason
end

--- The plan of least time among divisions of whole nodes into stages with tensor degrees,
-- micro-batches and recomputation: those that fit are simulated, in the order of the formula. o =
-- {zero = as in plan files, tries = how many are simulated}. nil and the reason when none fits.
function train.plan(ctx, devices, o)
  local list, kept = {}, nil
  for _, recompute in ipairs { "none", "selective", "full" } do
    local nodes = node_rates.of(ctx, devices, recompute)
    kept = kept or kept_divisions(ctx, nodes)
    for _, division in ipairs(kept) do
      local stages = stages_of(nodes, division)
      for point in candidates.in_time(search.product { DEGREES,
        numbers.divisors(ctx.job.global_batch) }) do
        local candidate = candidate_of(ctx, stages, { tp = point[1], recompute = recompute,
          micro_batch = point[2], zero = o.zero })
        if candidate then
          candidate.rank = #list + 1
          list[candidate.rank] = candidate
        end
      end
    end
  end
  local best, reason = best_of(list, o.tries)
  if best then
    return best
  end
  return nil, reason or reasons.too_small(ctx, devices, "no division of whole nodes into stages")
end

return train
