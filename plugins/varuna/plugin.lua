-- Varuna (Athlur et al., EuroSys 2022): pipelines for slow and unsteady networks, without tensor
-- parallelism. For every depth P that divides the number of cut-points: D = G / P pipelines
-- (devices may be left over) and the largest micro-batch that fits, or the smallest that is
-- efficient. The time of each is found by simulation of its schedule (section 4), never by a
-- formula, and the least wins. The paper's GPUs are equal: here a pipeline takes devices in file
-- order and runs at the speed of their kinds, and the slowest pipeline counts.
local batch_time = require "batch_time"
local candidates = require "candidates"
local inventory = require "inventory"
local links = require "links"
local micro_batches = require "micro_batches"
local numbers = require "numbers"
local pipeline = require "pipeline"
local pipelines = require "pipelines"
local prices = require "prices"

--- Layers per stage at `depth`: each stage is a run of sections, which are the layers between two
-- cut-points.
local function layer_counts(sections, depth)
  local counts = {}
  for s = 1, depth do
    local first = sections[(s - 1) * #sections // depth + 1]
    local last = sections[s * #sections // depth]
    counts[s] = last[2] - first[1] + 1
  end
  return counts
end

--- Adds the candidate of one depth: the first micro-batch that fits.
local function add_depth(ctx, all, devices, sections, depth)
  local dp = math.min(#devices // depth, ctx.job.global_batch)
  if dp == 0 then
    return
  end
  local counts = layer_counts(sections, depth)
  local list = pipeline.consecutive(devices, depth, dp)
  for _, micro_batch in ipairs(micro_batches.ordered(ctx, dp, devices[1].kind)) do
    local c = { list = list, ranges = numbers.ranges(counts), dp = dp, micro_batch = micro_batch,
      total = ctx.job.global_batch // micro_batch }
    local seconds, short, short_bytes = pipelines.slowest(ctx, c)
    if seconds then
      all.add { claim_s = seconds + pipeline.sync_over_ranges(ctx, list, c.ranges),
        build = function()
          return pipeline.plan(ctx, pipeline.deal_evenly(list, c.total, counts), micro_batch,
            { name = "varuna" })
        end }
      return
    end
    all.add(nil, ("at depth %d with micro-batches of %d, %s"):format(depth, micro_batch, short),
      short_bytes)
  end
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local n_layers = ctx.model.n_layers
  local cut_points = n_layers
  if ctx.options.cut_points > 0 then
    cut_points = math.min(ctx.options.cut_points, n_layers)
  end
  local chain = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = 1 })
  local sections = hv.opt.partition { n = n_layers, parts = cut_points, load = chain.times }.stages
  local all = candidates.new()
  for i, depth in ipairs(numbers.divisors(cut_points)) do
    add_depth(ctx, all, devices, sections, depth)
    hv.progress(i / depth, ("depth %d"):format(depth))
    if hv.stopping() and #all.list > 0 then
      break
    end
  end
  return all.best(ctx.options.tries,
    ("no depth that divides %d cut-points is within %d devices"):format(cut_points, #devices))
end

--- Times { f, b, hop } of the stages of replica r of a plan, and its largest all-reduce.
local function times_of(ctx, made, r)
  local kinds = prices.kinds(ctx)
  local times = { f = {}, b = {}, hop = {} }
  local sync_s = 0
  local before_id, before_bytes
  for s, stage in ipairs(made.replicas[r].stages) do
    local pass = prices.stage(ctx, made, r, s)
    local id = ctx.cluster:ids(stage.devices)[1]
    times.f[s] = pass.forward_s
    times.b[s] = pass.backward_s
    if s > 1 then
      times.hop[s - 1] = links.seconds(ctx, before_id, id, before_bytes)
    end
    before_id = id
    before_bytes = pass.hop_bytes
    sync_s = math.max(sync_s, prices.stage_sync(ctx, stage, kinds))
  end
  return times, sync_s
end

--- Varuna's own simulation with the times of the plan, and the largest all-reduce.
local function claim(made, ctx)
  made = prices.table_of(made)
  local slowest_s = 0
  local sync_s = 0
  for r, replica in ipairs(made.replicas) do
    local times, own_sync_s = times_of(ctx, made, r)
    sync_s = math.max(sync_s, own_sync_s)
    slowest_s = math.max(slowest_s, (batch_time.of(ctx, times, replica.micro_batches)))
  end
  return { iteration_s = slowest_s + sync_s,
    terms = { pipeline_s = slowest_s, all_reduce_s = sync_s },
    formula = "simulated batch of the slowest pipeline + all-reduce (Varuna, section 4)",
    leaves_out = "the optimizer's step, the overlap of gradients with the backward pass, and links "
      .. "that several pipelines share" }
end

return {
  api = 1, id = "varuna", title = "Varuna", kind = "pipeline",
  system = "Varuna: Scalable, Low-cost Training of Massive Deep Learning Models, EuroSys 2022",
  year = 2022,
  reference = "arXiv:2111.04007",
  summary = "Depth by simulation of a schedule that tolerates slow links; largest micro-batch, no "
    .. "tensor parallelism.",
  sets = { ["schedule.name"] = "varuna", tp = 1 },
  searches = { "depth", "micro-batch", "layers per stage" },
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "micro_batch", type = "choice", choices = { "largest", "efficient" },
      default = "largest",
      help = "the largest that fits (published code), or the smallest within 5 % of the least time "
        .. "per sequence (paper)" },
    { key = "cut_points", type = "integer", default = 0, min = 0, max = 4096,
      help = "number of sections of equal work that stages are made of; 0: one per layer" },
    { key = "jitter", type = "number", default = 0, min = 0, max = 10000,
      help = "standard deviation of a message's time in ms, a fifth of it for passes; above 0 the "
        .. "time is the mean of 3 draws" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of their time" },
  },
  plan = plan,
  claim = claim,
}
