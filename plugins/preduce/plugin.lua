-- Partial Reduce (Miao et al., SIGMOD 2021): a worker that has ended its step does not wait for all
-- others; as soon as P workers are ready they average their models among themselves (weights 1 / P,
-- or by staleness). Section 4: the controller serves them in order of arrival, and keeps the groups
-- from freezing into cliques: once the last ceil((N - 1) / (P - 1)) groups do not connect all
-- workers, the next group joins two components. Section 5: the second eigenvalue of the mean group
-- matrix is the rate at which models agree. In Hetu, P workers are awaited no longer than a time
-- that adapts.
local candidates = require "candidates"
local controller = require "controller"
local grids = require "grids"
local inventory = require "inventory"
local mixing = require "mixing"
local numbers = require "numbers"
local pipeline = require "pipeline"
local plan_workers = require "plan_workers"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"

local LEAST_WORKERS = 3
local MOST_WORKERS = 256 -- workers for which the claim plays the controller, as the simulator does
local HORIZON_STEPS = 50 -- steps of the slowest worker that the claim plays
local MOST_KINDS = 3 -- of devices, for which every tensor degree is tried
local MOST_DEPTH = 16
local MOST_MICRO_BATCH = 8

--- The `sync` of a plan with n workers, by the options.
local function sync_of(options, n)
  local sync = { kind = "partial_reduce", group = math.min(options.group, n),
    weights = options.weights }
  if not options.avoid_freezing then
    sync.connect = false
  end
  if options.bound > 0 then
    sync.staleness = options.bound
  end
  if options.wait_ms > 0 then
    sync.wait_ms = options.wait_ms
    sync.wait_most_ms = math.max(options.wait_ms, options.wait_most_ms)
    sync.least = math.min(options.least, n)
  end
  return sync
end

--- Are the data-parallel ranks of a replica equal, so that each can be a pipeline of its own?
local function has_equal_ranks(replica, micro_batch)
  local dp = replica.stages[1].dp or 1
  if (replica.count or 1) ~= 1 or dp == 1 or micro_batch % dp ~= 0 then
    return false
  end
  for _, stage in ipairs(replica.stages) do
    if (stage.dp or 1) ~= dp or stage.shares then
      return false
    end
  end
  return true
end

--- Makes data-parallel ranks pipelines of their own: each can then be a worker.
local function spread(made)
  for _, replica in ipairs(made.replicas) do
    local micro_batch = replica.micro_batch or made.micro_batch
    if has_equal_ranks(replica, micro_batch) then
      local dp = replica.stages[1].dp
      for _, stage in ipairs(replica.stages) do
        stage.dp = nil
      end
      replica.count = dp
      replica.micro_batch = micro_batch // dp
    end
  end
end

--- The plan of another strategy with partial reductions.
local function apply(made, ctx)
  made = prices.table_of(made)
  spread(made)
  local n = #plan_workers.of(ctx, made)
  if n < LEAST_WORKERS then
    return nil, ("at least 3 pipelines are needed, the plan has %d: use more replicas with fewer "
        .. "stages"):format(n)
  end
  made.sync = made.sync or {}
  for key, value in pairs(sync_of(ctx.options, n)) do
    made.sync[key] = value
  end
  return made
end

--- Cuts joined pipelines for m micro-batches each by pipeline.cut with `c`; the sequences per
-- second of all of them, or nil where one does not fit.
local function cut_all(ctx, list, micro_batch, m, c)
  local rate = 0
  for _, p in ipairs(list) do
    p.cut = pipeline.cut(ctx, p.row, m, c)
    p.micro_batches = m
    if not p.cut then
      return nil
    end
    rate = rate + #p.copies * m * micro_batch / p.cut.value
  end
  return rate
end

--- The candidate of pipelines `rows` inside the kinds of devices, each a worker with the same share
-- of the batch, cut by pipeline.cut with `c`; nil where there are too few of them, or the model
-- does not fit.
local function candidate(ctx, rows, micro_batch, c)
  local n = #rows
  local list = pipeline.joined(rows)
  local m = ctx.job.global_batch // (micro_batch * n)
  if n < LEAST_WORKERS or m < 1 then
    return nil
  end
  for _, recompute in ipairs { "none", "selective", "full" } do
    pipeline.set(list, micro_batch, recompute)
    local rate = cut_all(ctx, list, micro_batch, m, c)
    if rate then
      local made = pipeline.plan(ctx, list, micro_batch)
      made.sync = sync_of(ctx.options, n)
      return { claim_s = ctx.job.global_batch / rate, build = function() return made end }
    end
  end
end

--- Choices of depth, micro-batch and the tensor degree of every kind; with many kinds only the
-- least and the largest degree.
local function choices_of(ctx, types)
  local lists = { numbers.powers(MOST_DEPTH), numbers.powers(MOST_MICRO_BATCH) }
  for i, kind in ipairs(types) do
    local degrees = grids.tp_degrees(ctx, kind)
    if #types > MOST_KINDS and #degrees > 2 then
      degrees = { degrees[1], degrees[#degrees] }
    end
    lists[i + 2] = degrees
  end
  return lists
end

--- The candidates of all choices with `reserve` bytes of every device left unused.
local function search_all(ctx, types, outputs, reserve)
  local all = candidates.new()
  local c = { outputs = outputs, ways = 2, reserve = reserve }
  for choice in candidates.in_time(search.product(choices_of(ctx, types))) do
    local depth = choice[1]
    local rows = depth <= ctx.model.n_layers
      and pipeline.inside(types, numbers.slice(choice, 3, #types), depth)
    if rows then
      all.add(candidate(ctx, rows, choice[2], c))
    end
  end
  return all
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local types = inventory.types(devices)
  local outputs = hv.cost.layers { kinds = { types[1].kind }, micro_batch = 1 }:sizes "output"
  local all = candidates.within(function(reserve)
    return search_all(ctx, types, outputs, reserve)
  end)
  if all then
    return all.best(ctx.options.tries)
  end
  return nil, reasons.too_small(ctx, devices, "no set of three pipelines or more", "kind")
end

--- The controller's query for the workers of a plan, without the time of an average.
local function query_of(workers, sync)
  local q = { n = #workers, times = {}, group = sync.group or #workers, horizon = 0,
    avoid = sync.connect ~= false, least = sync.least, bound = sync.staleness,
    wait = sync.wait_ms and sync.wait_ms / 1e3,
    wait_most = (sync.wait_most_ms or sync.wait_ms or 0) / 1e3 }
  for w, worker in ipairs(workers) do
    q.times[w] = worker.seconds
    q.horizon = math.max(q.horizon, HORIZON_STEPS * worker.seconds)
  end
  return q
end

--- Seconds in which these workers average their models: the longest of the stages of the first,
-- each over the devices that stand at the same place in the pipelines of the others.
local function average_seconds(ctx, made, group)
  local kinds = prices.kinds(ctx)
  local longest_s = 0
  for s, stage in ipairs(made.replicas[group[1].replica].stages) do
    local heads = {}
    for i, worker in ipairs(group) do
      heads[i] = worker.heads[math.min(s, #worker.heads)]
    end
    local chain, part = prices.shard(ctx, stage, kinds[heads[1]])
    longest_s = math.max(longest_s,
      part * prices.sync(ctx, chain, stage.layers[1] + 1, stage.layers[2], heads))
  end
  return longest_s
end

--- The function (list of workers by number) that gives the seconds of their average. Groups of
-- equal members are priced once; the order of the members does not matter.
local function average_of(ctx, made, workers)
  local known = {}
  return function(members)
    local sorted = table.move(members, 1, #members, 1, {})
    table.sort(sorted)
    local key = table.concat(sorted, " ")
    if not known[key] then
      local group = {}
      for i, w in ipairs(sorted) do
        group[i] = workers[w]
      end
      known[key] = average_seconds(ctx, made, group)
    end
    return known[key]
  end
end

--- Sequences of all groups together.
local function sequences_of(groups, workers)
  local sequences = 0
  for _, group in ipairs(groups) do
    for _, w in ipairs(group.members) do
      sequences = sequences + workers[w].sequences
    end
  end
  return sequences
end

--- The controller, played with the workers' own times: seconds for as many sequences as the global
-- batch, rho, and how many steps the members of a group are behind on average.
local function claim(made, ctx)
  made = prices.table_of(made)
  local workers = plan_workers.of(ctx, made)
  local sync = made.sync or {}
  if #workers > MOST_WORKERS then
    return { formula = ("partial reduction; the controller is played for up to %d workers"):format(
      MOST_WORKERS) }
  end
  local q = query_of(workers, sync)
  q.reduce_s = average_of(ctx, made, workers)
  local groups, _, n_behind = controller.play(q)
  local steps_behind = 0
  local members = 0
  for steps, count in pairs(n_behind) do
    steps_behind = steps_behind + steps * count
    members = members + count
  end
  local average_s = 0
  for _, group in ipairs(groups) do
    average_s = average_s + q.reduce_s(group.members) / #groups
  end
  local decay = sync.weights == "staleness" and ctx.options.decay or 1
  return {
    iteration_s = ctx.job.global_batch * groups[#groups].at / sequences_of(groups, workers),
    terms = { rho_frac = mixing.rho_by_staleness(q.n, groups, decay),
      staleness_steps = steps_behind / members, reduce_s = average_s,
      members = members / #groups },
    formula = "P / mean time between groups, by the controller's events (P-Reduce, section 4)",
    leaves_out = "transfers between stages, the optimizer's step, and averages that slow each "
      .. "other down on shared links",
  }
end

return {
  api = 1, id = "preduce", title = "Partial Reduce", kind = "hetero",
  system = "Heterogeneity-Aware Distributed Machine Learning Training via Partial Reduce, "
    .. "SIGMOD 2021", year = 2021,
  reference = "doi:10.1145/3448016.3452773",
  summary = "Workers that are ready average among themselves; nobody waits for the slowest.",
  needs = { model = "layers" },
  effort = "medium", stale = true,
  options = {
    { key = "group", type = "integer", default = 3, min = 2, max = 1024,
      help = "number P of workers in a group" },
    { key = "weights", type = "choice", choices = { "constant", "staleness" }, default = "constant",
      help = "weights of the average: 1/P for each member, or less for members that are behind" },
    { key = "decay", type = "number", default = 0.5, min = 0.001, max = 1,
      help = "weights by staleness: factor per step that a member is behind (moving "
        .. "average): used by the claim's rho, not by the simulation" },
    { key = "avoid_freezing", type = "boolean", default = true,
      help = "join components that recent groups have not connected" },
    { key = "wait_ms", type = "number", default = 0, min = 0, max = 1e9,
      help = "time in ms after which a group averages even if it is not full (Hetu); 0: it waits "
        .. "for P workers" },
    { key = "wait_most_ms", type = "number", default = 10, min = 0, max = 1e9,
      help = "largest value of that time in ms when it grows after small groups (Hetu)" },
    { key = "least", type = "integer", default = 2, min = 0, max = 1024,
      help = "groups with fewer members double that time, others shorten it by a tenth (Hetu)" },
    { key = "bound", type = "integer", default = 0, min = 0, max = 1000000,
      help = "steps that a worker may be ahead of the slowest before it waits (stale synchronous); "
        .. "0: any" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the formula" },
  },
  plan = plan,
  apply = apply,
  claim = claim,
}
