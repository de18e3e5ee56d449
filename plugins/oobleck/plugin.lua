--- Oobleck (Jang et al., SOSP'23): pipelines that survive node failures without spares. Section
-- 4.1: pipeline templates for every useful node count. Section 4.2: how many of each, and how many
-- micro-batches each gets, so that all end together. Section 5: recovery. Unequal nodes: nodes are
-- put in order of speed, a pipeline takes consecutive ones, and a template belongs to the sequence
-- of node kinds rather than to a mere count; with equal nodes that is the paper. Inside a node GPUs
-- are split by halves, unevenly where that is faster (nodes of up to 8: all ways on two nodes, by
-- turns beyond).
local candidates = require "candidates"
local checks = require "checks"
local claims = require "claims"
local mixes = require "mixes"
local oracle = require "testing.oracle"
local prices = require "prices"
local recovery = require "recovery"
local sample = require "data.planner"
local templates = require "templates"

--- Weights { c0, c1, tail } of T = sum t + (c0 + c1·k)·t_k + tail·sum over s >= k of t_s, with k
-- (from 0) the rightmost slowest of S stages (section 4.1.2). The published code takes
-- 2S + k + 1, in its one-stage base case 2; the paper N_b - S + k - 1 with N_b = 4S.
local function weights(n_stages, rule)
  if rule == "paper" then
    return { 3 * n_stages - 1, 1, 1 }
  end
  return { n_stages == 1 and 2 or 2 * n_stages + 1, n_stages == 1 and 0 or 1, 1 }
end

--- One way to run the stages, with the templates made for it; `reserve` bytes of every device are
-- left alone.
local function setting(ctx, micro_batch, recompute, reserve)
  local o = ctx.options
  return { micro_batch = micro_batch, recompute = recompute, faults = o.faults,
    most_sizes = o.sizes, reserve = reserve,
    layers = ctx.model:layers(), total = ctx.job.global_batch // micro_batch, memo = {},
    weights = weights,
    rule = o.coefficient, deal = o.deal }
end

--- The best mixes, and the setting that needs the fewest nodes.
local function searched(ctx, sequence, reserve)
  local all, settings = candidates.new(), templates.settings(ctx, sequence,
    function(_, micro_batch, recompute)
      return setting(ctx, micro_batch, recompute, reserve)
    end)
  for i, c in ipairs(settings) do
    local best = mixes.choose(ctx, sequence, c)
    if best then
      all.add { claim_s = best.time_s, build =
          function() return mixes.plan(ctx, best.pipelines, c) end }
    end
    hv.progress(i / #settings, ("templates for setting %d of %d"):format(i, #settings))
    if #all.list == ctx.options.tries or (#all.list > 0 and hv.stopping()) then
      break
    end
  end
  return all, settings[1]
end

local function plan(ctx)
  local sequence, why = templates.sequence(ctx)
  if #sequence == 0 then
    return nil, why
  end
  local first
  local all = candidates.within(function(reserve)
    local found, setting_of = searched(ctx, sequence, reserve)
    first = first or setting_of
    return found
  end)
  if all then
    return all.best(ctx.options.tries)
  end
  local least = first and first.least or #sequence
  if ctx.options.sizes > 0 and (ctx.options.faults + 1) * least <= #sequence then
    return nil, ("no pipelines of %d to %d nodes, the sizes considered, use all %d; consider more (sizes)"):format(
      least, least + ctx.options.sizes - 1, #sequence)
  end
  return nil, templates.shortage(ctx, sequence, ctx.options.faults, first)
end

--- Recovery, section 5. Nodes fail whole in the paper. One that lost some of its GPUs is left out
-- so, or goes on with the rest; both are simulated. Activations are recomputed as before, or more
-- where nothing else fits.
local function replan(ctx, made, lost)
  made = prices.table_of(made)
  local sequence, rule, why = templates.sequence(ctx), ctx.options.damaged, nil
  for _, recompute in ipairs { made.replicas[1].stages[1].recompute or "none", "selective",
    "full" } do
    local all = candidates.new()
    for _, leave in ipairs(rule == "best" and { true, false } or { rule == "leave" }) do
      local c = setting(ctx, made.micro_batch, recompute, 0)
      c.leave = leave
      local mix, short = mixes.repaired(ctx, sequence, made, lost, c)
      why = why or short
      all.add(mix and { claim_s = mix.time_s, build =
          function() return mixes.plan(ctx, mix.pipelines, c) end })
    end
    local best, reason = all.best(2, why)
    if best then
      return best
    end
    why = reason
  end
  return nil, why
end

--- T1 + T2 + T3 of one pipeline with N_b micro-batches: c = N_b - S + k - 1, k from 0 (4.1.2).
local function pipeline_time(stage_s, micro_batches)
  return claims.weighted_s(stage_s, { micro_batches - #stage_s - 1, 1, 1 })
end

local function claim(made, ctx)
  made = prices.table_of(made)
  local slowest, heads, kinds = 0, {}, prices.kinds(ctx)
  for r, replica in ipairs(made.replicas) do
    local ids, stage_s = ctx.cluster:ids(replica.stages[1].devices),
      prices.stage_times(ctx, made, r)
    slowest = math.max(slowest, pipeline_time(stage_s, replica.micro_batches))
    for i = 1, #ids, #ids // (replica.count or 1) do
      heads[#heads + 1] = ids[i]
    end
  end
  local chain = prices.chain(ctx, kinds[heads[1]], { tp = 1, micro_batch = 1 })
  local sync_s = prices.sync(ctx, chain, 1, 1, heads)
  return { iteration_s = slowest + sync_s, terms = { pipeline_s = slowest, first_layer_s = sync_s },
    formula = "max over pipelines of T1 + T2 + T3 with c = N_b - S + k* - 1 (Oobleck, section "
      .. "4.1.2), and the first layer's all-reduce" }
end

local function template_value(times, n_stages)
  return hv.opt.partition { n = #times, parts = n_stages, load = times,
    weights = weights(n_stages, "code") }
end

local function selftest_templates(t, src)
  local two, three = template_value({ 2, 4, 6 }, 2), template_value({ 1, 2, 3, 4, 5, 6 }, 3)
  t.near("T of layers 2 4 6 on 2 nodes", two.value, 54, 0, src)
  t.equal("its cut", two.stages[1][2], 2, src)
  t.equal("its parts T1 T2 T3: sum, (2 S + k + 1) of the slowest, from it on", ("%g %g %g"):format(
    two.values[1] + two.values[2], (2 * 2 + 1 + 1) * two.values[2], two.values[2]), "12 36 6", src)
  t.near("T of layers 1 to 6 on 3 nodes", three.value, 108, 0, src)
  t.equal("its stages", ("%g|%g|%g"):format(table.unpack(three.values)), "6|9|6", src)
  t.near("one stage: 4 t", template_value({ 1, 2 }, 1).value, 12, 0, src)
  t.near("34 layers, one node of 4 GPUs: 4 t of the published stage",
    4 * (25.7160315068991 + 32.9095049523248),
    234.502145836896, 1e-9, "Oobleck's own planner")
  for n = 2, 8 do
    t.near(("34 layers on %d nodes"):format(n), template_value(sample.times, n).value,
      sample.values[n], 1e-6,
      "Oobleck's own planner")
  end
  local times = { 3, 1, 4, 1, 5, 9, 2, 6 }
  for n = 1, 5 do
    t.near(("all cuts of 8 layers into %d"):format(n), template_value(times, n).value,
      oracle.weighted_cut(times, n, weights), 1e-9, "oracle")
  end
end

local function selftest_recovery(t, src)
  local function two(nodes)
    return #nodes >= 2
  end
  local kept = recovery.repair({ { 1, 2 }, { 3, 4, 5 } }, { [5] = true }, two)
  t.equal("a smaller template is used", recovery.text(kept), "1 2 | 3 4", src)
  local borrowed = recovery.repair({ { 1, 2 }, { 3, 4, 5 } }, { [1] = true }, two)
  t.equal("a node is borrowed", recovery.text(borrowed), "2 5 | 3 4", src)
  local merged = recovery.repair({ { 1, 2 }, { 3, 4 } }, { [1] = true }, two)
  t.equal("pipelines are merged", recovery.text(merged), "3 4 2", src)
  -- no template uses node 9
  local function odd(nodes)
    return nodes[#nodes] ~= 9
  end
  t.ok("a node that no template uses ends the repair",
    recovery.repair({ { 9 }, { 1 } }, {}, odd) == nil, "by hand")
  t.ok("nothing is left", recovery.repair({ { 1, 2 } }, { [1] = true }, two) == nil, src)
end

local function selftest(t)
  local src = "catalogue: oobleck"
  local sizes = recovery.sizes(7, 2, 1)
  t.equal("sizes N=7 n0=2 f=1", table.concat(sizes, " "), "2 3 4 5", src)
  local options = recovery.options(7, sizes, 2, 1000)
  t.equal("options N=7", #options, 3, src)
  t.equal("these", recovery.mixes_text(sizes, options), "2 2 3; 2 5; 3 4", src)
  local seven = { 2, 3, 4, 5, 6, 7 }
  t.equal("options N=13 without the filter", #recovery.options(13, seven, 0, 1000), 17, src)
  t.equal("options N=13 with f=3", #recovery.options(13, seven, 4, 1000), 10, src)
  local a = mixes.deal_batch({ { steady_s = 4, count = 1 }, { steady_s = 3, count = 1 } }, 14)
  t.equal("batch 14 on (4, 3)", table.concat(a.counts, ","), "6,8", src)
  t.near("its objective", a.value, 0, 1e-9, src)
  local b = mixes.deal_batch({ { steady_s = 6, count = 2 }, { steady_s = 4, count = 1 } }, 16)
  t.equal("batch 16 on (6, 4), two and one", table.concat(b.counts, ","), "5,6", src)
  t.near("its objective", b.value, 18, 1e-9, src)
  local slowest = mixes.deal_batch({ { steady_s = 6, count = 2 }, { steady_s = 4, count = 1 } }, 16,
    "slowest")
  t.near("the slowest instead, as whole numbers of a linear program", slowest.value,
    checks.slowest({ 6, 4 }, { 2, 1 }, 16), 1e-9, src .. ", linear alternative")
  t.near("4 equal stages, 10 micro-batches", pipeline_time({ 1, 1, 1, 1 }, 10), 13, 0, "Eq-P")
  t.equal("ways to split 1, 2, 4, 8 GPUs by halves", ("%d %d %d %d"):format(#templates.splits(1),
    #templates.splits(2), #templates.splits(4), #templates.splits(8)), "1 2 5 26",
    src .. ", trap: equal halves; by hand 1 + n²")
  t.equal("7 GPUs of a node that lost one", #templates.splits(7), 16,
    "by hand: whole, or 5 ways of 4 x 3 of 3")
  selftest_templates(t, src)
  selftest_recovery(t, "section 5")
end

return {
  api = 1, id = "oobleck", title = "Oobleck", kind = "hetero",
  system = "Oobleck: Resilient Distributed Training of Large Models Using Pipeline Templates, SOSP 2023",
  reference = "doi:10.1145/3600006.3613152",
  summary = "Pipeline templates for node counts; batch split so that all pipelines end together.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "faults", type = "integer", default = 1, min = 0, max = 64,
      help = "simultaneous node failures to survive (one pipeline more than that is kept)" },
    { key = "micro_batch", type = "integer", default = 4, min = 1, max = 1024,
      help = "largest micro-batch to try, in powers of two" },
    { key = "sizes", type = "integer", default = 0, min = 0, max = 4096,
      help = "how many template sizes are considered, from the least n0 on; 0: all, beyond 32 nodes six" },
    { key = "coefficient", type = "choice", choices = { "code", "paper" }, default = "code",
      help = "weight of the slowest stage in T: the published code's or the paper's" },
    { key = "deal", type = "choice", choices = { "variance", "slowest" }, default = "variance",
      help = "micro-batches so that pipelines differ least in time (as in the paper), or that the slowest ends first" },
    { key = "damaged", type = "choice", choices = { "best", "leave", "use" }, default = "best",
      help = "replan: a node that lost some GPUs is left out (as in the paper), used with its rest, or the better" },
    { key = "tries", type = "integer", default = 2, min = 1, max = 100,
      help = "settings of micro-batch and recompute that get exact templates and are simulated" },
  },
  plan = plan,
  replan = replan,
  claim = claim,
  selftest = selftest,
}
