-- DynaPipe (Jiang et al., EuroSys 2024): micro-batches of sequences of unequal length. They are
-- sorted, cut into micro-batches by dynamic programming over padded times, divided among replicas
-- by the largest differencing method, and run by a schedule that injects a micro-batch where memory
-- allows it, in the best order of clusters of like times. Differences: a job's lengths are a
-- distribution, of which a batch has its mean numbers; a sequence has one length (the paper orders
-- pairs of encoder-decoder models by a travelling-salesman path); recomputation is one choice for a
-- plan; degrees are searched too, the schedule itself orders its transfers, and a micro-batch has
-- at most 64 sequences.
local batches = require "batches"
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"
local reasons = require "reasons"

local MOST_REPLICAS = 64
local MOST_STAGES = 16
local MOST_SEQUENCES = 64 -- of a micro-batch

--- Lengths of a batch, longest first: every length as often as its share says, the rest of the
-- sequences going to the largest remainders.
local function lengths_of(ctx)
  local rows, list, left = {}, {}, ctx.job.global_batch
  for i, row in ipairs(hv.lengths()) do
    local share = row.frac * ctx.job.global_batch
    local whole = share // 1 | 0
    rows[i] = { tokens = row.tokens, n = whole, rest = share - whole, rank = i }
    left = left - whole
  end
  table.sort(rows, function(a, b)
    return a.rest > b.rest or (a.rest == b.rest and a.rank < b.rank)
  end)
  for i = 1, left do
    local row = rows[(i - 1) % #rows + 1]
    row.n = row.n + 1
  end
  for _, row in ipairs(rows) do
    for _ = 1, row.n do
      list[#list + 1] = row.tokens
    end
  end
  table.sort(list, function(a, b) return a > b end)
  return list
end

--- Seconds and saved bytes of the slowest stage for n sequences of `tokens` each.
local function pricer(c)
  local known = {}
  return function(n, tokens)
    local key = n .. "/" .. tokens
    if not known[key] then
      local t = hv.cost.layers { kinds = { c.kind }, tp = c.tp, micro_batch = n, tokens = tokens,
        recompute = c.recompute, sequence_parallel = c.tp > 1 or nil }
      local one = { seconds = 0, bytes = 0 }
      for _, range in ipairs(c.ranges) do
        one.seconds = math.max(one.seconds, t:time(range[1] + 1, range[2], c.kind, "both"))
        one.bytes = math.max(one.bytes, t:bytes(range[1] + 1, range[2], "saved"))
      end
      known[key] = one
    end
    return known[key]
  end
end

--- Bytes that the fullest stage has for activations.
local function room_of(ctx, c)
  local room = math.huge
  for s, range in ipairs(c.ranges) do
    local memory = hv.cost.memory { devices = ctx.cluster:address(numbers.slice(c.ids,
        (s - 1) * c.tp + 1, c.tp)), layers = range, tp = c.tp, micro_batch = 1, in_flight = 1,
      recompute = c.recompute, sequence_parallel = c.tp > 1 or nil }
    room = math.min(room, memory.limit_bytes - (memory.peak_bytes - memory.activation_bytes))
  end
  return room
end

--- The micro-batches of a choice, divided among replicas: fills c and gives its value, or nil.
local function solve(ctx, lengths, c)
  local price, room = pricer(c), room_of(ctx, c)
  local function cost(from, to)
    local one = price(to - from + 1, batches.padded(lengths, from, to))
    return one.bytes * c.pp <= room and one.seconds or nil -- pp of them are alive under 1F1B
  end
  c.solved = batches.solve(#lengths, c.pp, c.replicas, function(from, to)
    return to - from < MOST_SEQUENCES and cost(from, to) or nil
  end)
  if not c.solved or #c.solved.runs < c.replicas then
    return nil
  end
  c.parts = batches.divide(c.solved.times, c.replicas)
  for _, part in ipairs(c.parts) do
    if #part == 0 then
      return nil
    end
  end
  return batches.value(c.pp, 1, math.max(table.unpack(c.solved.times)), c.parts[1].sum)
end

--- The plan of a choice; `which` = which of batches.orders every replica takes.
local function plan_of(ctx, lengths, c, which)
  local replicas, size = {}, c.tp * c.pp
  for r, part in ipairs(c.parts) do
    local list, stages = {}, {}
    for i, run in ipairs(batches.orders(part, c.solved.times)[which]) do
      local from, to = table.unpack(c.solved.runs[run])
      local n = to - from + 1
      list[i] = { sequences = n, tokens = n * batches.padded(lengths, from, to) }
    end
    for s, range in ipairs(c.ranges) do
      stages[s] = { devices = ctx.cluster:address(numbers.slice(c.ids,
          (r - 1) * size + (s - 1) * c.tp + 1, c.tp)), layers = range, tp = c.tp,
        sequence_parallel = c.tp > 1 or nil,
        recompute = c.recompute ~= "none" and c.recompute or nil, in_flight = c.in_flight }
    end
    replicas[r] = { micro_batches = list, stages = stages }
  end
  return { micro_batch = 1, replicas = replicas, schedule = { name = "dynapipe" },
    sync = { kind = "allreduce" } }
end

--- All choices {pp, tp, replicas, recompute} with their micro-batches.
local function search(ctx, world)
  local all, lengths = candidates.new(), world.lengths
  for _, pp in ipairs(numbers.powers(math.min(MOST_STAGES, ctx.model.n_layers, #world.ids))) do
    for _, tp in ipairs(numbers.powers(world.node_size)) do
      local replicas = math.min(#world.ids // (pp * tp), MOST_REPLICAS, #lengths)
      local fits = replicas > 0 and grids.tp_fits(world.layers, tp)
      for _, recompute in ipairs(fits and { "none", "selective", "full" } or {}) do
        local late = hv.stopping(0.4) and #all.list > 0
        local c = { pp = pp, tp = tp, replicas = replicas, recompute = recompute, ids = world.ids,
          kind = world.kind, ranges = numbers.ranges(numbers.even(ctx.model.n_layers, pp)) }
        local value = not late and solve(ctx, lengths, c)
        if value then
          all.add { claim_s = value, choice = c, build = function()
            return plan_of(ctx, lengths, c, 1)
          end }
        end
        if value and pp > 1 then -- a micro-batch is injected only while so few are alive
          local tight = {}
          for key, member in pairs(c) do
            tight[key] = member
          end
          tight.in_flight = pp
          all.add { claim_s = value, choice = tight, build = function()
            return plan_of(ctx, lengths, tight, 1)
          end }
        end
      end
    end
  end
  return all
end

local function plan(ctx)
  local world, why = inventory.world(ctx)
  if not world then
    return nil, why
  end
  world.kind, world.lengths = world.devices[1].kind, lengths_of(ctx)
  local all = search(ctx, world)
  if #all.list == 0 then
    return nil, reasons.too_small(ctx, world.devices, "no pipeline of equal stages")
  end
  local made, best_s, chosen = candidates.best(all.list, ctx.options.tries)
  if not made then
    return nil, best_s
  end
  for which = 2, hv.stopping() and 1 or 7 do
    local other = plan_of(ctx, world.lengths, chosen.choice, which)
    local verdict = candidates.judge(other)
    if verdict and verdict.iteration_s < best_s * (1 - 1e-9) then
      made, best_s = other, verdict.iteration_s
      hv.incumbent(made)
    end
  end
  return made
end

--- (c − 1) · longest micro-batch + the busiest replica's sum.
local function claim(made, ctx)
  made = prices.table_of(made)
  local stages = made.replicas[1].stages
  local c = { tp = stages[1].tp or 1, recompute = stages[1].recompute or "none", ranges = {},
    kind = prices.kinds(ctx)[ctx.cluster:ids(stages[1].devices)[1]] }
  for s, stage in ipairs(stages) do
    c.ranges[s] = stage.layers
  end
  local price, longest_s, busiest_s = pricer(c), 0, 0
  for _, replica in ipairs(made.replicas) do
    local times, sum_s = {}, 0
    for i, one in ipairs(replica.micro_batches) do
      times[i] = price(one.sequences, one.tokens // one.sequences).seconds
      sum_s = sum_s + times[i]
      longest_s = math.max(longest_s, times[i])
    end
    busiest_s = math.max(busiest_s, sum_s)
  end
  return { iteration_s = batches.value(#stages, 1, longest_s, busiest_s),
    terms = { longest_micro_batch_s = longest_s, busiest_replica_s = busiest_s },
    formula = "(c - 1) x longest + sum of a replica's micro-batches (DynaPipe, section 4)",
    leaves_out = "transfers between stages, the reduction of gradients, and waiting for "
      .. "micro-batches that differ" }
end

return {
  api = 1, id = "dynapipe", title = "DynaPipe", kind = "pipeline",
  system = "DynaPipe: Optimizing Multi-task Training through Dynamic Pipelines",
  venue = "EuroSys", year = 2024, reference = "arXiv:2311.10418",
  summary = "Micro-batches of sequences of unequal length by dynamic programming, divided among "
    .. "replicas.",
  needs = { model = "layers" }, effort = "quick",
  sets = { ["schedule.name"] = "dynapipe" },
  searches = { "micro-batches", "replica of every micro-batch", "order of the micro-batches",
    "micro-batches in flight", "degrees", "recomputation" },
  verified = { "lengths 8 4 4 2 2 on three stages", "every sequence alone",
    "all sequences together", "200 random batches against enumeration [D]",
    "no division is better than the best of all [D]", "three stages by the judge [D]",
    "three lengths on two stages by the judge [D]", "two of them in flight by the judge [D]",
    "rising lengths by the judge [D]", "the strategy's plan of three lengths [D]" },
  options = { candidates.tries_option(8) },
  plan = plan, claim = claim,
}
