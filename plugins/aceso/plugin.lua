-- Aceso (Liu et al., EuroSys'24): one pipeline whose stages have tensor and data degrees of their
-- own, found by repairing the bottleneck. Section 4: the stage with most time (or too much memory)
-- gives operators or takes devices, changes its degrees or the micro-batch, by up to seven
-- primitives in a row; what is recomputed is chosen anew after every move; every number of stages
-- is searched by itself. The paper has equal devices: a stage of several kinds is as fast as its
-- slowest, with the least memory. Its operators are a plan's layers, recomputation a plan's units.
local bottleneck = require "bottleneck"
local candidates = require "candidates"
local claims = require "claims"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local operators = require "operators"
local prices = require "prices"
local reasons = require "reasons"

-- How much a layer may recompute, from nothing to all; only those that pay are considered.
local LEVELS = { "none", "selective", "core+act", "core+act+norm", "core+act+norm+out", "full" }

local fronts = {}

--- The chain without recomputation, and the front of time against memory of every layer.
local function fronts_of(ctx, kind, tp, rank_batch)
  local key = ("%s/%d/%d"):format(kind, tp, rank_batch)
  if fronts[key] then
    return fronts[key][1], fronts[key][2]
  end
  local chains, groups, q = {}, {}, { tp = tp, micro_batch = rank_batch,
    sequence_parallel = tp > 1 }
  for k, level in ipairs(LEVELS) do
    q.recompute = level
    chains[k] = prices.chain(ctx, kind, q)
  end
  local base = chains[1]
  for l = 1, base.n do
    local front = { { time = 0, saved = 0, peak = 0, level = "none" } }
    for k, c in ipairs(chains) do
      local way = { time = c.times[l] - base.times[l], level = LEVELS[k],
        peak = math.max(0, c.fixed - base.fixed),
        saved = (base.saved[l] - base.saved[l - 1]) - (c.saved[l] - c.saved[l - 1]) }
      if way.saved > front[#front].saved and way.time >= front[#front].time then
        front[#front + 1] = way
      end
    end
    groups[l] = front
  end
  fronts[key] = { base, groups }
  return base, groups
end

--- Price of a stage on one kind of device, by Aceso's equations with the core's figures.
local function priced(ctx, kind, stage, q)
  local base, groups = fronts_of(ctx, kind, stage.tp, stage.micro_batch // stage.dp)
  local alive = math.min(stage.behind + 1, q.batch // stage.micro_batch)
  local o = { in_flight = alive, zero = ctx.options.zero, holders = stage.dp }
  local bytes, cap = prices.bytes(ctx, base, stage.from, stage.to, o),
    prices.capacity(ctx, { kind = kind }) - q.reserve
  groups = numbers.slice(groups, stage.from, stage.to - stage.from + 1)
  local again, saved, peak, ways = operators.recompute(groups, bytes - cap, alive)
  local single = prices.chain(ctx, kind, { tp = 1, micro_batch = 1 })
  local time = prices.time(base, stage.from, stage.to)
  local ideal = prices.time(single, stage.from,
    stage.to) * stage.micro_batch / (stage.tp * stage.dp)
  return { time_s = time + (again or 0), ideal_s = math.min(ideal, time), recompute_s = again or 0,
    cap = cap,
    bytes = again and bytes - saved * alive + peak or bytes, ways = ways,
    output_bytes = base.output_bytes }
end

--- The instance of a run: layers are the operators.
local function instance(ctx, devices, reserve)
  local nodes, rows, known, places, most = inventory.nodes(devices), ctx.model:layers(), {}, {}, 1
  for _, node in ipairs(nodes) do
    for _, tp in ipairs(numbers.powers(#node.ids)) do
      most = grids.tp_fits(rows, tp) and math.max(most, tp) or most
    end
  end
  local q = { n = ctx.model.n_layers, devices = #devices, batch = ctx.job.global_batch, tp = most,
    power = 1,
    reserve = reserve }
  while q.power * 2 <= q.devices do
    q.power = q.power * 2
  end
  function q.place(c)
    local sizes = {}
    for s, stage in ipairs(c) do
      sizes[s] = stage.tp .. "x" .. stage.dp
    end
    local key = table.concat(sizes, " ")
    if places[key] == nil then
      places[key] = inventory.first_fit(nodes, c)
    end
    return places[key]
  end
  function q.price(stage)
    local place = stage.tp <= most and grids.tp_fits(rows, stage.tp) and q.place(stage.config)
    if not place then
      return nil
    end
    local worst, at = nil, place[stage.index]
    for kind in pairs(at.kinds) do
      local key = ("%s %d %d %d %d %d %d"):format(kind, stage.from, stage.to, stage.tp, stage.dp,
        stage.micro_batch,
        stage.behind)
      known[key] = known[key] or priced(ctx, kind, stage, q)
      local p = known[key]
      worst = worst or { time_s = 0, ideal_s = 0, recompute_s = p.recompute_s, bytes = 0,
        cap = p.cap,
        output_bytes = p.output_bytes }
      if p.bytes / p.cap > worst.bytes / worst.cap then
        worst.bytes, worst.cap, worst.ways = p.bytes, p.cap, p.ways
      end
      worst.time_s, worst.ideal_s = math.max(worst.time_s, p.time_s),
        math.max(worst.ideal_s, p.ideal_s)
    end
    local before, after = place[stage.index - 1], place[stage.index + 1]
    local hop = before and links.seconds(ctx, before.ids[#before.ids], at.ids[1],
      worst.output_bytes) or 0
    hop = hop + (after and links.seconds(ctx, at.ids[#at.ids], after.ids[1], worst.output_bytes)
        or 0)
    worst.time_s = worst.time_s + hop
    return worst
  end
  return q
end

--- The plan of a configuration.
local function built(ctx, q, e)
  local rows, at, place = {}, 0, q.place(e.config)
  for s, stage in ipairs(e.config) do
    local levels, all = {}, true
    for l, way in ipairs(e.stages[s].ways) do
      levels[l], all = way.level, all and way.level == "none"
    end
    rows[s] = prices.stage_keys({ tp = stage.tp, zero = ctx.options.zero,
      sequence_parallel = stage.tp > 1,
      recompute = all and "none" or levels }, { devices = ctx.cluster:address(place[s].ids),
        layers = { at, at + stage.n }, dp = stage.dp > 1 and stage.dp or nil })
    at = at + stage.n
  end
  return { micro_batch = e.config.micro_batch, schedule = { name = "1f1b" },
    replicas = { { micro_batches = q.batch // e.config.micro_batch, stages = rows } } }
end

--- The search over numbers of stages with so many bytes of every device left alone.
local function searched(ctx, devices, reserve)
  local q, all, counts = instance(ctx, devices, reserve), candidates.new(#devices > 256), {}
  local budget = #devices > 256 and ctx.options.budget // 4 or ctx.options.budget
  for _, s in ipairs { 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128 } do
    counts[#counts + 1] = s <= math.min(ctx.options.stages, q.n, q.devices) and s or nil
  end
  local function stopping()
    return #all.list > 0 and hv.stopping(0.7)
  end
  for i, stages in ipairs(counts) do
    for _, micro_batch in ipairs(stopping() and {} or q.batch % 2 == 0 and { 1, 2 } or { 1 }) do
      local _, _, fitting = bottleneck.run(q, { stages = stages, micro_batch = micro_batch,
        hops = ctx.options.hops,
        budget = budget, stopping = stopping })
      for _, e in ipairs(fitting or {}) do
        all.add { claim_s = e.time_s, build = function() return built(ctx, q, e) end }
      end
    end
    hv.progress(i / #counts, ("%d stages"):format(stages))
  end
  return all
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  local all = devices and candidates.within(
    function(reserve) return searched(ctx, devices, reserve) end)
  if not all then
    return nil, why or reasons.too_small(ctx, devices, "no pipeline of one copy")
  end
  return all.best(ctx.options.tries)
end

--- Aceso's iteration time of the plan: transfers in and out are in every stage's time.
local function claim(made, ctx)
  local part = claims.parts(ctx, made)[1]
  local times = {}
  for s, t in ipairs(part.stage_s) do
    times[s] = t + (part.hop_s[s - 1] or 0) + (part.hop_s[s] or 0)
  end
  local list, worst = bottleneck.times(times, part.micro_batches)
  return { iteration_s = list[worst], terms = { bottleneck_s = times[worst] },
    formula = "max over stages of t (M - 1) + sum t, no gradients (Aceso, section 3.3)" }
end

--- 8 operators on 4 devices: time and memory of a stage by arithmetic.
local function small()
  local work, q = { 9, 1, 1, 2, 1, 1, 7, 4 }, { n = 8, devices = 4, batch = 8, power = 4, tp = 4 }
  function q.price(s)
    local sum, own = 0, s.tp * s.dp
    for i = s.from, s.to do
      sum = sum + work[i]
    end
    local time = s.micro_batch * sum / own * (1 + 0.1 * (s.tp - 1)) + 0.2 * (own - 1)
    return { time_s = time, ideal_s = s.micro_batch * sum / own, recompute_s = 0,
      bytes = sum / s.tp + s.micro_batch / s.dp * (s.behind + 1), cap = 24 }
  end
  return q
end

local function selftest(t)
  local src, list, worst = "catalogue: aceso", bottleneck.times({ 3, 5, 4 }, 8)
  t.equal("stages of 3, 5, 4, 8 micro-batches; worst", table.concat(list, " ") .. "; " .. worst,
    "33 47 40; 2", src)
  t.near("SpecTrain: 3 versions at 0.1 x 2", require("spectrain").predicted(1, 0.1, 2, 3), 0.4,
    1e-12, src)
  local q = small()
  for _, stages in ipairs { 1, 2, 4 } do
    local function run(budget)
      return bottleneck.run(q, { stages = stages, micro_batch = 1, budget = budget })
    end
    local first, found, least = run(0), run(400), bottleneck.enumerated(q, stages)
    t.ok(("8 operators on 4 devices, %d stages: %.3f, start %.3f, of all %.3f"):format(stages,
      found.time_s,
      first.time_s, least), found.over == 0 and found.time_s <= 1.05 * least, src .. ", oracle")
  end
  local ours = bottleneck.run(operators.instance(require "data.gpt3_1_3b"),
    { stages = 4, micro_batch = 1,
      budget = 40 })
  t.ok(("GPT 1.3B on 4 GPUs of 12 GB, shipped profile: %.3f s, theirs 58.761 s in 16.5 s of CPU"):format(ours.time_s),
    ours.over == 0 and ours.time_s <= 58.76092, "Aceso fa80ad0, 60 s of search")
end

return {
  api = 1, id = "aceso", title = "Aceso", kind = "hetero",
  system = "Aceso: Efficient Parallel DNN Training through Iterative Bottleneck Alleviation, EuroSys 2024",
  reference = "doi:10.1145/3627703.3629554",
  summary = "The bottleneck stage repaired again and again: operators, devices, degrees, batch, recomputation.",
  needs = { model = "layers" },
  effort = "medium",
  options = {
    { key = "budget", type = "integer", default = 200, min = 1, max = 100000,
      help = "configurations per number of stages (a quarter of them beyond 256 devices)" },
    { key = "hops", type = "integer", default = 7, min = 1, max = 16,
      help = "primitives in a row" },
    { key = "stages", type = "integer", default = 16, min = 1, max = 128,
      help = "most pipeline stages" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "optimizer states sharded over a stage's ranks: 1; gradients too: 2; weights too: 3" },
    { key = "tries", type = "integer", default = 16, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
