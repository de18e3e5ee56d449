-- Oobleck (Jang et al., SOSP 2023): pipelines that survive node failures without spares. Section
-- 4.1: pipeline templates for every useful number of nodes. Section 4.2: how many of each, and how
-- many micro-batches each pipeline gets, so that all end together. Section 5: recovery. Unequal
-- nodes: nodes are put in order of speed, a pipeline takes consecutive ones, and a template belongs
-- to a sequence of node kinds rather than to a number of nodes; with equal nodes that is the paper.
-- Inside a node GPUs are split by halves, unevenly where that is faster (nodes of up to 8 GPUs: all
-- splits of two nodes, coordinate descent beyond).
local candidates = require "candidates"
local formula = require "formula"
local mixes = require "mixes"
local node_sequence = require "node_sequence"
local pipeline_plan = require "pipeline_plan"
local prices = require "prices"
local settings = require "settings"

--- Candidates with the best mix of each setting, and the first setting in order.
local function search(ctx, sequence, reserve)
  local all = candidates.new()
  local list = settings.ordered(ctx, sequence, reserve)
  for i, c in ipairs(list) do
    local mix = mixes.choose(ctx, sequence, c)
    if mix then
      all.add { claim_s = mix.time_s,
        build = function() return pipeline_plan.of(ctx, mix.pipelines, c) end }
    end
    hv.progress(i / #list, ("templates for setting %d of %d"):format(i, #list))
    if #all.list == ctx.options.tries or (#all.list > 0 and hv.stopping()) then
      break
    end
  end
  return all, list[1]
end

--- The reason why no setting has a mix; `first` is the first setting in order, if any.
local function no_mix(ctx, sequence, first)
  local options = ctx.options
  local least = first and first.least or #sequence
  if options.sizes > 0 and (options.faults + 1) * least <= #sequence then
    return ("no pipelines of %d to %d nodes, the sizes considered, use all %d; consider more "
        .. "(sizes)"):format(least, least + options.sizes - 1, #sequence)
  end
  return settings.shortage(ctx, sequence, options.faults, first)
end

local function plan(ctx)
  local sequence, why = node_sequence.of(ctx)
  if #sequence == 0 then
    return nil, why
  end
  local first
  local all = candidates.within(function(reserve)
    local found, found_first = search(ctx, sequence, reserve)
    first = first or found_first
    return found
  end)
  if all then
    return all.best(ctx.options.tries)
  end
  return nil, no_mix(ctx, sequence, first)
end

--- Whether damaged nodes (which lost some GPUs) are left out, as the choices to try.
local function ways_to_leave(ctx)
  if ctx.options.damaged == "best" then
    return { true, false }
  end
  return { ctx.options.damaged == "leave" }
end

--- Recovery (section 5). Nodes fail whole in the paper; a node that lost some of its GPUs is left
-- out, or used with the rest; both are simulated. Activations are recomputed as in the plan that
-- was running, or more where nothing else fits.
local function replan(ctx, made, lost)
  made = prices.table_of(made)
  local sequence = node_sequence.of(ctx)
  local why
  local before = made.replicas[1].stages[1].recompute or "none"
  for _, recompute in ipairs { before, "selective", "full" } do
    local all = candidates.new()
    for _, leave in ipairs(ways_to_leave(ctx)) do
      local c = settings.new(ctx, made.micro_batch, recompute, 0)
      c.leave = leave
      local mix, short = mixes.repaired(ctx, sequence, made, lost, c)
      why = why or short
      all.add(mix and { claim_s = mix.time_s,
        build = function() return pipeline_plan.of(ctx, mix.pipelines, c) end })
    end
    local best, reason = all.best(2, why)
    if best then
      return best
    end
    why = reason
  end
  return nil, why
end

--- The first device of every pipeline of a replica entry.
local function first_devices(ctx, replica)
  local ids = ctx.cluster:ids(replica.stages[1].devices)
  local heads = {}
  for i = 1, #ids, #ids // (replica.count or 1) do
    heads[#heads + 1] = ids[i]
  end
  return heads
end

local function claim(made, ctx)
  made = prices.table_of(made)
  local kinds = prices.kinds(ctx)
  local slowest_s = 0
  local heads = {}
  for r, replica in ipairs(made.replicas) do
    local stage_s = prices.stage_times(ctx, made, r)
    slowest_s = math.max(slowest_s, formula.pipeline_s(stage_s, replica.micro_batches))
    local own = first_devices(ctx, replica)
    table.move(own, 1, #own, #heads + 1, heads)
  end
  local chain = prices.chain(ctx, kinds[heads[1]], { tp = 1, micro_batch = 1 })
  local sync_s = prices.sync(ctx, chain, 1, 1, heads)
  return { iteration_s = slowest_s + sync_s,
    terms = { pipeline_s = slowest_s, first_layer_s = sync_s },
    formula = "max over pipelines of T1 + T2 + T3 with c = N_b - S + k* - 1 (Oobleck, section "
      .. "4.1.2), and the first layer's all-reduce",
    leaves_out = "transfers between stages, the exchange of all gradients but the first layer's, "
      .. "which it takes to overlap with the backward pass, and the optimizer's step" }
end

return {
  api = 1, id = "oobleck", title = "Oobleck", kind = "hetero",
  system = "Oobleck: Resilient Distributed Training of Large Models Using Pipeline Templates, "
    .. "SOSP 2023", year = 2023,
  reference = "doi:10.1145/3600006.3613152",
  summary = "Pipeline templates for node counts; batch split so that all pipelines end together.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "faults", type = "integer", default = 1, min = 0, max = 64,
      help = "number of simultaneous node failures to survive; one pipeline more is kept" },
    { key = "micro_batch", type = "integer", default = 4, min = 1, max = 1024,
      help = "largest micro-batch in sequences; powers of two up to it are tried" },
    { key = "sizes", type = "integer", default = 0, min = 0, max = 4096,
      help = "number of template sizes to consider, from the least size n0 on; 0: all, beyond 32 "
        .. "nodes six" },
    { key = "coefficient", type = "choice", choices = { "code", "paper" }, default = "code",
      help = "weight of the slowest stage in T: that of the published code or of the paper" },
    { key = "deal", type = "choice", choices = { "variance", "slowest" }, default = "variance",
      help = "split of the batch: least variance of the pipelines' times (paper), or least time of "
        .. "the slowest" },
    { key = "damaged", type = "choice", choices = { "best", "leave", "use" }, default = "best",
      help = "replan, a node that lost some GPUs: left out (paper), used with the rest, or the "
        .. "better of both" },
    { key = "tries", type = "integer", default = 2, min = 1, max = 100,
      help = "number of settings (micro-batch, recomputation) that get exact templates and are "
        .. "simulated" },
  },
  plan = plan,
  replan = replan,
  claim = claim,
}
