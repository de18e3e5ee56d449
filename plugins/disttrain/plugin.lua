-- DistTrain (Zhang et al., arXiv 2408.04275): encoder, backbone and generator of a multimodal model
-- on GPUs of their own. Section 4: x, y and z GPUs with their own tensor and data degrees so that
-- all three keep step: side modules' samples spread over all their GPUs, the backbone is a
-- pipeline. Section 5: samples are dealt to groups by size, the largest first to the least loaded,
-- and the order of micro-batches hides the encoder's varying time: the smallest first, then what
-- fits the next interval. Models of modules say which part is which; of others the ends are taken.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local modules = require "modules"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"

--- Seconds of a module per sample on one tensor group of the slowest kind among the devices.
local function sample_s(ctx, range, kinds, tp, recompute)
  local worst, q = 0, { tp = tp, micro_batch = 1, recompute = recompute,
    sequence_parallel = tp > 1 }
  for _, k in ipairs(kinds) do
    worst = math.max(worst, prices.time(prices.chain(ctx, k, q), range[1], range[2]))
  end
  return worst
end

--- The plan of a choice, or nil where a stage does not hold its layers; with several `lists` of
-- micro-batches one pipeline for each, on GPUs of its own.
local function built(ctx, c, lists)
  local rows, M, n = modules.rows(c), ctx.job.global_batch // (c.dp * c.m), lists and #lists or 1
  local micro_batch, replicas = c.dp * c.m // n, {}
  for s, row in ipairs(rows) do
    local each = #row.devices // n
    local dp = each // row.tp
    row.micro_batch, row.recompute = math.ceil(micro_batch / dp), c.recompute
    if not pipeline.fits(pipeline.tables(ctx, row, math.min(#rows - s + 1, M)), row.from,
      row.to) then
      return nil
    end
    local place = modules.place(ctx.model:layers(), row.from, row.to)
    for g = 1, n do
      local ids = {}
      for i, d in ipairs(numbers.slice(row.devices, (g - 1) * each + 1, each)) do
        ids[i] = d.id
      end
      replicas[g] = replicas[g] or { micro_batches = lists and lists[g] or M, stages = {} }
      replicas[g].stages[s] = prices.stage_keys({ tp = row.tp, recompute = c.recompute,
        sequence_parallel = row.tp > 1 }, { devices = ctx.cluster:address(ids),
          layers = place.layers,
          module = place.module, dp = dp > 1 and dp or nil,
          shares = micro_batch % dp ~= 0 and numbers.even(micro_batch, dp) or nil })
    end
  end
  return { micro_batch = micro_batch, schedule = { name = "1f1b" }, replicas = replicas }
end

--- All choices of one order of the devices: tensor degrees, replicas, depth and samples; GPUs by
-- the closed form.
local function add_choices(ctx, list, order, ranges, tps, recompute)
  local n, global, kinds = #order, ctx.job.global_batch, inventory.kinds(order)
  for v in candidates.in_time(search.product { tps, tps, numbers.powers(n), numbers.powers(64),
    numbers.powers(8) }) do
    local c = { tp = { me = v[1], lm = v[2], mg = v[1] }, dp = v[3], depth = v[4], m = v[5],
      batch = global,
      recompute = recompute, C = {} }
    local lm = c.tp.lm * c.dp * c.depth
    local fits = lm <= n - (ranges.me and 1 or 0) - (ranges.mg and 1 or 0)
      and global % (c.dp * c.m) == 0
      and c.depth <= ranges.lm[2] - ranges.lm[1] + 1
    if fits then
      for key, range in pairs(ranges) do
        c.C[key] = sample_s(ctx, range, kinds, c.tp[key], recompute)
      end
      local work = { me = (c.C.me or 0) * c.tp.me, lm = 1e-12, mg = (c.C.mg or 0) * c.tp.mg }
      c.gpus = modules.gpus(n - lm, work, c.tp)
      c.gpus.lm = lm
      local most = c.dp * c.m
      for _, key in ipairs { "me", "mg" } do
        local least = ranges[key] and c.tp[key] or 0 -- also where its layers take no time
        c.gpus[key] = math.min(math.max(c.gpus[key], least), most * c.tp[key])
      end
      if c.gpus.me + lm + c.gpus.mg <= n then
        c.claim_s, c.rank = modules.seconds(c), #list + 1
        c.order, c.ranges = order, ranges
        list[#list + 1] = c
      end
    end
  end
end

--- The micro-batches of the job's lengths in a way of section 5; nil where they are all as long, or
-- where a group would have no GPUs of its own.
local function lists_of(ctx, c, way)
  local rows = hv.lengths()
  for key in pairs(way:find "alike" and {} or c.ranges) do
    if c.dp == 1 or key ~= "lm" and c.gpus[key] % (c.dp * c.tp[key]) ~= 0 then
      return nil
    end
  end
  local me = c.C.me and c.dp * c.tp.me * c.m * c.C.me / c.gpus.me or 0
  return modules.lists(way, { lengths = rows, batch = ctx.job.global_batch, dp = c.dp, m = c.m,
    seed = ctx.seed,
    interval = me > 0 and c.C.lm * c.m / c.depth / me or nil, depth = c.depth })
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local ranges, list, fitting, tps = modules.parts(ctx.model:layers(), ctx.options), {}, {}, {}
  if not ranges then
    return nil, ("%d layers leave none for the backbone"):format(ctx.model.n_layers)
  end
  local nodes = inventory.nodes(devices)
  for _, tp in ipairs(numbers.powers(math.min(8, inventory.node_size(nodes)))) do
    if inventory.node_size(nodes) % tp == 0 and grids.tp_fits(ctx.model:layers(), tp) then
      tps[#tps + 1] = tp
    end
  end
  for _, order in ipairs(inventory.orders(nodes)) do
    for _, recompute in ipairs { "none", "selective", "full" } do
      add_choices(ctx, list, order, ranges, tps, recompute)
    end
  end
  table.sort(list, function(a, b) return a.claim_s < b.claim_s or a.claim_s == b.claim_s and a.rank < b.rank end)
  local ways = ctx.options.reorder ~= "best" and { ctx.options.reorder }
    or { "alike", "alike ordered", "given", "dealt", "ordered" }
  ways = ctx.options.lengths and #hv.lengths() > 1 and ways or { "none" }
  -- the formula knows no lengths
  local most, have = ctx.options.tries * (ways[1] == "none" and 1 or 5), {}
  for _, way in ipairs(ways) do
    have[way] = 0
  end
  for _, c in ipairs(list) do
    local made = #fitting < most * #ways and not hv.stopping() and built(ctx, c)
    for _, way in ipairs(made and ways or {}) do
      local lists = way ~= "none" and have[way] < most and lists_of(ctx, c, way)
      local own, rank = lists and built(ctx, c, lists) or way == "none" and made, #fitting + 1
      if own then
        have[way] = have[way] + 1
        fitting[rank] = { claim_s = c.claim_s, rank = rank, build = function() return own end }
      end
    end
  end
  if #fitting == 0 and #ways == 1 and ways[1] ~= "none" then
    return nil, "no split of the GPUs that fits gives several data-parallel groups GPUs of their own"
  end
  if #fitting == 0 then
    return nil, reasons.too_small(ctx, devices, "no split of the GPUs over three modules")
  end
  return candidates.best(fitting, #fitting)
end

--- T_iter of section 4 on the plan's stages: those before the backbone are the encoder, those
-- behind the generator.
local function claim(made, ctx)
  made = prices.table_of(made)
  local r, n, kinds, all = made.replicas[1], #made.replicas, prices.kinds(ctx), ctx.model:layers()
  local ranges, q = modules.parts(all, ctx.options),
    { C = { lm = 0 }, tp = {}, gpus = { lm = 0 }, depth = 0 }
  local first = modules.firsts(all)
  for _, stage in ipairs(r.stages) do
    local ids, seen, base = ctx.cluster:ids(stage.devices), {}, stage.module
      and first[stage.module] - 1 or 0
    for i, id in ipairs(ids) do
      seen[i] = kinds[id]
    end
    local range = { base + stage.layers[1] + 1, base + stage.layers[2] }
    local key = range[2] < ranges.lm[1] and "me" or range[1] > ranges.lm[2] and "mg" or "lm"
    local tp = stage.tp or 1
    local t = sample_s(ctx, range, seen, tp, stage.recompute)
    q.C[key], q.gpus[key], q.tp[key] = (key == "lm" and q.C.lm or 0) + t, n * #ids, tp
    if key == "lm" then
      q.dp, q.depth = n * (stage.dp or 1), q.depth + 1
    end
  end
  q.m, q.batch = n * made.micro_batch / q.dp, ctx.job.global_batch
  local total, steady = modules.seconds(q)
  return { iteration_s = total, terms = { warm_up_s = total - steady, steady_s = steady },
    formula = "warm-up of one micro-batch + steady part of the slowest module (DistTrain, section 4)" }
end

local function selftest(t)
  local src, one = "catalogue: disttrain", { me = 1, lm = 1, mg = 1 }
  local gpus = modules.gpus(100, { me = 10, lm = 80, mg = 10 }, one)
  t.equal("100 GPUs for work of 10, 80 and 10", ("%d %d %d"):format(gpus.me, gpus.lm, gpus.mg),
    "10 80 10", src)
  local q = { C = { me = 10, lm = 80, mg = 10 }, tp = one, gpus = gpus, depth = 80, dp = 1, m = 1,
    batch = 2 }
  t.near("steady time of a micro-batch", select(2, modules.seconds(q)), 1, 1e-9, src)
  q.gpus, q.depth = { me = 100 / 3, lm = 100 / 3, mg = 100 / 3 }, 100 / 3
  t.near("in rigid thirds", select(2, modules.seconds(q)), 2.4, 1e-9, src)
  local loads = modules.balanced({ 9, 7, 6, 5, 5, 4, 4 }, 2)
  t.near("bound of largest first, 4/3 - 1/3m times the optimum of 20", (4 / 3 - 1 / 6) * 20, 70 / 3,
    1e-9, src)
  t.ok("it is kept", math.max(loads[1], loads[2]) <= 70 / 3, src)
  t.near("largest first, 2 groups: the larger load", math.max(loads[1], loads[2]), 22, 0, src
      .. " (optimum 20)")
  t.near("the other", math.min(loads[1], loads[2]), 18, 0, src)
  local groups, in_turns, now = modules.dealt({ 9, 1, 8, 2, 7, 3 }, 2)
  t.equal("three samples each of 9 1 8 2 7 3: in turns 24, largest first",
    ("%d %d: %s | %s"):format(in_turns, now,
      table.concat(groups[1], " "), table.concat(groups[2], " ")), "24 16: 1 4 6 | 2 3 5",
    "section 5.1, by hand")
  local order = modules.reordered({ 4, 1, 2 }, 3, 1)
  t.equal("encoder 4 1 2, backbone 3: order", table.concat(order, " "), "2 1 3", "by hand")
  t.near("end as given", modules.two_steps({ 1, 2, 3 }, { 4, 1, 2 }, 3), 13, 0, "by hand")
  t.near("end reordered", modules.two_steps(order, { 4, 1, 2 }, 3), 11, 0, "by hand")
  local random, whole, sooner, lighter = search.generator(11), true, true, true
  for _ = 1, 60 do
    local times, given, seen = {}, {}, {}
    for i = 1, 8 do
      times[i], given[i] = random(9), i
    end
    local new, by_group = modules.kept(times, 5, 2), {}
    local both, before, after = modules.dealt(times, 2)
    for k = 1, 4 do
      by_group[both[1][k]], by_group[both[2][k]] = true, true
    end
    for _, i in ipairs(new) do
      seen[i] = true
    end
    whole = whole and #seen == 8 and #new == 8 and #by_group == 8
    lighter = lighter and after <= before
    sooner = sooner and modules.two_steps(new, times, 5) <= modules.two_steps(given, times, 5)
  end
  t.ok("60 random batches: every sample once", whole, src .. ", property")
  t.ok("never later than in the given order", sooner, src .. ", property")
  t.ok("no group heavier than in the given deal", lighter, src .. ", property")
end

return {
  api = 1, id = "disttrain", title = "DistTrain", kind = "hetero",
  system = "DistTrain: Addressing Model and Data Heterogeneity with Disaggregated Training for MLLMs, 2024",
  reference = "arXiv:2408.04275",
  summary = "Encoder, backbone and generator on GPUs of their own; order of data hides uneven samples.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "encoder", type = "integer", default = 0, min = 0, max = 1024,
      help = "first layers; 0: an eighth" },
    { key = "generator", type = "integer", default = 0, min = 0, max = 1024,
      help = "last layers; 0: an eighth" },
    { key = "lengths", type = "boolean", default = false,
      help = "samples of the job's sequence_lengths without padding, dealt to groups and ordered in the best way" },
    { key = "reorder", type = "choice", choices = { "best", "given", "dealt", "ordered" },
      default = "best",
      help = "with lengths, each group on GPUs of its own: in turns, largest to the least loaded, these in order" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many splits that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
