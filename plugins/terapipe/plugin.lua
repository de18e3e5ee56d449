-- TeraPipe (Li et al., ICML 2021): pipelining within a sequence. In causal models a slice of tokens
-- needs only those before it, so that slices of one sequence are in several stages at once. Their
-- lengths and the sizes of micro-batches come from one program (slices); around it tensor and
-- pipeline degrees and recomputation are enumerated, ranked by the program's value and simulated.
-- A plan has one list of slices for all its micro-batches: where the program gives sizes different
-- ones, the best common list is taken. The keys and values of earlier slices stay on every stage.
local candidates = require "candidates"
local degrees = require "degrees"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"
local slice_times = require "slice_times"
local slices = require "slices"

--- Sizes of micro-batches on one rank, and the units that a sequence is cut into.
local function grain(ctx, batch)
  local sizes, size = {}, 1
  while size <= math.min(8, batch) do
    sizes[#sizes + 1] = size
    size = 2 * size
  end
  local units = ctx.options.units
  while ctx.job.sequence % units ~= 0 do
    units = units - 1
  end
  return sizes, units
end

--- The problem of a point for the program.
local function problem_of(ctx, point)
  local sizes, units = grain(ctx, point.batch)
  local per_unit = ctx.job.sequence // units
  local hop = slice_times.hop(ctx, point.ids[1], point.ids[point.tp * point.dp + 1])
  local layers = (ctx.model.n_layers + point.pp - 1) // point.pp
  return { units = units, batch = point.batch, sizes = sizes, stages = point.pp,
    epsilon = ctx.options.epsilon, per_unit = per_unit, seconds = slice_times.of(
      inventory.kind(ctx, point.ids[1]), point, layers, units, per_unit, hop) }
end

--- The best answer with one list of slices: the program's, or the best of its lists for all.
local function common_of(q, best)
  local chosen, tried = nil, {}
  for _, part in ipairs(best.parts) do
    local text = table.concat(part.lengths, ",")
    if not tried[text] then
      tried[text] = true
      local own = slices.common(q, part.lengths)
      chosen = (not chosen or own.value < chosen.value) and own or chosen
    end
  end
  return chosen
end

--- Micro-batches as a plan has them: a number where all are alike, else a list.
local function micro_batches_of(parts, dp)
  local list = {}
  for i, part in ipairs(parts) do
    list[i] = { sequences = part.size * dp }
  end
  if list[1].sequences == list[#list].sequences then
    return #list
  end
  return list
end

--- The plan of a point with these micro-batches and slices.
local function build(ctx, point, q, answer)
  local counts = grids.layer_counts(ctx.model.n_layers, point.pp, 1, "")
  local plan = grids.plan(ctx, { tp = point.tp, cp = 1, dp = point.dp, pp = point.pp, ep = 1,
    zero = 0, chunks = 1, ids = point.ids, recompute = point.recompute, counts = counts,
    micro_batch = answer.parts[1].size, micro_batches = 1, sequence_parallel = point.tp > 1,
    schedule = "terapipe" })
  plan.replicas[1].micro_batches = micro_batches_of(answer.parts, point.dp)
  plan.schedule.slices = {}
  for i, n in ipairs(answer.parts[1].lengths) do
    plan.schedule.slices[i] = n * q.per_unit
  end
  return plan
end

--- By how many bytes the worst of both end stages exceeds its memory with the activations of all
-- sequences: 0 where it fits.
local function excess_bytes(ctx, point)
  local size = point.tp * point.dp
  local counts = grids.layer_counts(ctx.model.n_layers, point.pp, 1, "")
  local most = 0
  for _, s in ipairs { 1, point.pp } do
    local from = s == 1 and 0 or ctx.model.n_layers - counts[s]
    local memory = hv.cost.memory { tp = point.tp, dp = point.dp, recompute = point.recompute,
      sequence_parallel = point.tp > 1, layers = { from, from + counts[s] },
      devices = ctx.cluster:address(numbers.slice(point.ids, (s - 1) * size + 1, size)),
      micro_batch = point.dp, in_flight = point.batch }
    most = math.max(most, memory.peak_bytes - memory.limit_bytes)
  end
  return most
end

--- The tuples { tp, pp, recompute } with enough devices.
local function tuples(ctx, devices)
  local function axis(name, list)
    local given = degrees.fixed(ctx.options[name], list)
    return type(given) == "function" and given(devices) or given
  end
  local recompute = ctx.options.recompute
  return search.product { axis("tp", degrees.tensor(ctx)), axis("pp", degrees.depths(ctx)),
    recompute == "auto" and { "none", "selective", "full" } or { recompute } }
end

local function plan(ctx)
  local devices, why = inventory.priced(ctx)
  why = #devices == 0 and why or reasons.unsliced(ctx)
  if why then
    return nil, why
  end
  local ids = {}
  for i, device in ipairs(devices) do
    ids[i] = device.id
  end
  local all = candidates.new()
  for tuple in candidates.in_time(tuples(ctx, devices)) do
    local tp, pp, recompute = table.unpack(tuple)
    local room = #devices // (tp * pp)
    local dp = room > 0 and grids.usable_dp(ctx.job.global_batch, room, 1)
    if dp and pp > 1 and pp <= ctx.model.n_layers then
      local point = { tp = tp, pp = pp, dp = dp, recompute = recompute, ids = ids,
        batch = ctx.job.global_batch // dp, n_layers = ctx.model.n_layers }
      local over_bytes = excess_bytes(ctx, point)
      if over_bytes > 0 then
        all.add(nil, ("the activations of all sequences need %.1f GiB too much with %d stages and "
          .. "tensor degree %d"):format(over_bytes / 2 ^ 30, pp, tp), over_bytes)
      else
        local q = problem_of(ctx, point)
        local answer = common_of(q, slices.best(q))
        all.add { claim_s = answer.value, build = function()
          return build(ctx, point, q, answer)
        end }
      end
    end
  end
  return all.best(ctx.options.tries, "no degrees leave two stages on these devices")
end

--- The program's objective for the plan's slices and micro-batches.
local function claim(made, ctx)
  made = prices.table_of(made)
  local replica = made.replicas[1]
  local stage = replica.stages[1]
  local dp, lengths = stage.dp or 1, made.schedule.slices
  local ids = {}
  for _, own in ipairs(replica.stages) do
    local more = ctx.cluster:ids(own.devices)
    table.move(more, 1, #more, #ids + 1, ids)
  end
  local point = { tp = (prices.degree(stage)), pp = #replica.stages, dp = dp, ids = ids,
    recompute = stage.recompute or "none", batch = ctx.job.global_batch // dp,
    n_layers = ctx.model.n_layers }
  local q = problem_of(ctx, point)
  local units, sum_s, longest_s = {}, 0, 0
  for i, tokens in ipairs(lengths) do
    units[i] = tokens // q.per_unit
  end
  local list = replica.micro_batches
  for i = 1, type(list) == "table" and #list or list do
    local sequences = type(list) == "table" and list[i].sequences or made.micro_batch
    local own_s, own_longest_s = slices.of(q, sequences // dp, units)
    sum_s, longest_s = sum_s + own_s, math.max(longest_s, own_longest_s)
  end
  return { iteration_s = sum_s + (point.pp - 1) * longest_s,
    terms = { slices_s = sum_s, longest_slice_s = longest_s },
    formula = "sum of all slices + (K - 1) longest slice",
    leaves_out = "embedding and head, the reduction of gradients, the optimizer's step" }
end

return {
  api = 1, id = "terapipe", title = "TeraPipe", kind = "pipeline", year = 2021, venue = "ICML",
  system = "TeraPipe: Token-Level Pipeline Parallelism for Training Large-Scale Language Models",
  reference = "arXiv:2102.07988",
  summary = "Slices of a sequence in several stages at once; lengths and batches by a program.",
  sets = { ["schedule.name"] = "terapipe" },
  searches = { "degrees", "recomputation", "slices", "micro-batches" },
  verified = { "objective with a floor of two tokens", "its slices", "its longest slice",
    "one slice", "objective without a floor", "200 random cases: as the best of all",
    "makespan of its slices by the judge" },
  needs = { model = "transformer" }, effort = "quick",
  options = {
    { key = "tp", type = "integer", default = 0, min = 0, max = 65536,
      help = "tensor-parallel degree; 0: searched" },
    { key = "pp", type = "integer", default = 0, min = 0, max = 65536,
      help = "pipeline stages; 0: searched" },
    { key = "recompute", type = "choice", default = "auto",
      choices = { "auto", "none", "selective", "full" }, help = "recomputation; auto: searched" },
    { key = "units", type = "integer", default = 16, min = 1, max = 128,
      help = "parts of a sequence that slices are made of; the next smaller divisor is taken" },
    { key = "epsilon", type = "number", default = 0.01, min = 0, max = 1,
      help = "share by which tried bounds of the longest slice are apart; 0: the exact program" },
    { key = "tries", type = "integer", default = 16, min = 1, max = 100000,
      help = "number of fitting plans that are simulated, in the order of the program's value" },
  },
  plan = plan, claim = claim,
}
