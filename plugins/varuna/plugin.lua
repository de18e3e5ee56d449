-- Varuna (Athlur et al., EuroSys'22): pipelines for slow and unsteady networks, without tensor
-- parallelism. For every depth P that divides the cut-points D = G / P pipelines (devices may be
-- left over) and the largest micro-batch that fits (or the smallest that runs well); the time of
-- each by simulation of its schedule (section 4), never by a formula, and the least wins. The
-- paper's GPUs are equal: here a pipeline runs at the speed of the kinds it meets, in file order,
-- and the slowest pipeline counts.
local candidates = require "candidates"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local opportunistic = require "opportunistic"
local pipeline = require "pipeline"
local prices = require "prices"

--- Seconds of m micro-batches through stages with times { f, b, hop }, lists, and how many inputs
-- stages keep.
local function batch_s(ctx, times, m)
  -- more go on as the later half
  local most, jitter_s = math.max(8 * #times.f, 4096), ctx.options.jitter / 1e3
  local function play(n)
    return hv.sim.schedule("varuna", { ranks = #times.f, micro_batches = n, order = jitter_s > 0,
      times = { f = times.f, b = times.b, w = 0, hop = times.hop } })
  end
  local found = play(math.min(m, most))
  if m > most then
    local half, more = play(most // 2), (m - most) / (most - most // 2)
    for s, n in ipairs(found.peak) do
      found.peak[s] = math.ceil(n + more * (n - half.peak[s]))
    end
    return found.makespan + more * (found.makespan - half.makespan), found.peak
  end
  return jitter_s > 0 and opportunistic.mean(found.order, times, jitter_s, 3) or found.makespan,
    found.peak
end

local tables = {}
--- Times of one layer run on a kind, forward and backward.
local function pass_s(kind, micro_batch, from, to)
  local key = kind .. "/" .. micro_batch
  tables[key] = tables[key] or hv.cost.layers { kinds = { kind }, micro_batch = micro_batch }
  local forward = tables[key]:time(from, to, kind, "forward")
  return forward, tables[key]:time(from, to, kind, "both") - forward
end

--- Simulates pipelines of c = { list, ranges, micro_batch, total, dp }: slowest pipeline, and what
-- is short.
local function simulate(ctx, c)
  -- pipelines of the same times are played once
  local worst, m, known = 0, math.ceil(c.total / c.dp), {}
  for _, p in ipairs(c.list) do
    local times, key = { f = {}, b = {}, hop = {} }, ""
    for s, stage in ipairs(p.row) do
      local range = c.ranges[s]
      times.f[s], times.b[s] = pass_s(stage.kind, c.micro_batch, range[1] + 1, range[2])
      if s > 1 then
        local own = prices.chain(ctx, stage.kind, { tp = 1, micro_batch = c.micro_batch })
        times.hop[s - 1] = links.seconds(ctx, p.row[s - 1].devices[1].id, stage.devices[1].id,
          own.output_bytes)
      end
      key = ("%s %s %s"):format(key, stage.kind, times.hop[s - 1])
    end
    known[key] = known[key] or { batch_s(ctx, times, m) }
    local seconds, peak = table.unpack(known[key])
    worst = math.max(worst, seconds)
    for s, stage in ipairs(p.row) do
      local own = prices.chain(ctx, stage.kind, { tp = 1, micro_batch = c.micro_batch })
      local need = prices.bytes(ctx, own, c.ranges[s][1] + 1, c.ranges[s][2], { in_flight = 1 })
      -- states, one whole activation, inputs of the others
        + (s > 1 and (peak[s] - 1) * own.output_bytes or 0)
      local room = prices.capacity(ctx, stage)
      if need > room then
        return nil, prices.short(ctx, s, need, stage), need - room
      end
    end
  end
  return worst
end

--- Micro-batches to try at a depth, best first: divisors of the batch that leave one for every
-- pipeline; largest first, or those within a twentieth of the least time per sequence, smallest
-- first.
local function sizes_of(ctx, c, kind)
  local list, best = {}, math.huge
  for _, b in ipairs(numbers.divisors(ctx.job.global_batch)) do
    if b * c.dp <= ctx.job.global_batch then
      local f, w = pass_s(kind, b, 1, ctx.model.n_layers)
      list[#list + 1] = { b = b, each = (f + w) / b }
      best = math.min(best, list[#list].each)
    end
  end
  local efficient = ctx.options.micro_batch == "efficient"
  table.sort(list, function(x, y)
    local well, too = efficient and x.each <= 1.05 * best, efficient and y.each <= 1.05 * best
    if well ~= too then
      return well
    end
    return well and x.b < y.b or not well and x.b > y.b
  end)
  return list
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local n, all = ctx.model.n_layers, candidates.new()
  local points = ctx.options.cut_points > 0 and math.min(ctx.options.cut_points, n) or n
  local own = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = 1 })
  local sections = hv.opt.partition { n = n, parts = points, load = own.times }.stages
  for i, depth in ipairs(numbers.divisors(points)) do
    local dp = math.min(#devices // depth, ctx.job.global_batch)
    local list = dp > 0 and pipeline.consecutive(devices, depth, dp)
    local counts = {}
    for s = 1, depth do
      counts[s] = sections[s * points // depth][2] - sections[(s - 1) * points // depth + 1][1] + 1
    end
    for _, size in ipairs(list and sizes_of(ctx, { dp = dp }, devices[1].kind) or {}) do
      local c = { list = list, counts = counts, ranges = numbers.ranges(counts), dp = dp,
        micro_batch = size.b,
        total = ctx.job.global_batch // size.b }
      local seconds, short, miss = simulate(ctx, c)
      if seconds then
        all.add { claim_s = seconds + pipeline.sync_over_ranges(ctx, list, c.ranges),
          build = function()
            return pipeline.plan(ctx, pipeline.deal_evenly(list, c.total, counts), c.micro_batch,
              { name = "varuna" })
          end }
        break
      end
      all.add(nil, short and ("at depth %d with micro-batches of %d, "):format(depth, size.b)
          .. short, miss)
    end
    hv.progress(i / depth, ("depth %d"):format(depth))
    if hv.stopping() and #all.list > 0 then
      break
    end
  end
  return all.best(ctx.options.tries,
    ("no depth that divides %d cut-points is within %d devices"):format(points, #devices))
end

--- Its simulation on the plan's own figures, and the largest all-reduce.
local function claim(made, ctx)
  made = prices.table_of(made)
  local worst, sync, kinds = 0, 0, prices.kinds(ctx)
  for r, replica in ipairs(made.replicas) do
    local times, before, bytes = { f = {}, b = {}, hop = {} }, nil, nil
    for s, stage in ipairs(replica.stages) do
      local pass, id = prices.stage(ctx, made, r, s), ctx.cluster:ids(stage.devices)[1]
      times.f[s], times.b[s] = pass.forward_s, pass.backward_s
      if s > 1 then
        times.hop[s - 1] = links.seconds(ctx, before, id, bytes)
      end
      before, bytes = id, pass.hop_bytes
      sync = math.max(sync, prices.stage_sync(ctx, stage, kinds))
    end
    worst = math.max(worst, (batch_s(ctx, times, replica.micro_batches)))
  end
  return { iteration_s = worst + sync, terms = { pipeline_s = worst, all_reduce_s = sync },
    formula = "simulated batch of the slowest pipeline + all-reduce (Varuna, section 4)" }
end

--- 1F1B on P stages of the catalogue's example: recomputation inside the backward, or free to start
-- early.
local function example(depth, early)
  local f, b, m, again = 8 / depth, {}, 4 * depth, {}
  local order = hv.sim.schedule("1f1b", { ranks = depth, micro_batches = m }).order
  for s, tokens in ipairs(order) do
    b[s], again[s] = 16 / depth + (s < depth and not early and f or 0), {}
    for _, token in ipairs(tokens) do
      if s < depth and early and token:sub(1, 1) ~= "F" then
        table.insert(again[s], "R" .. token:match "%d.*")
      end
      table.insert(again[s], token)
    end
  end
  local sync, dp = 0, 8 // depth
  if dp > 1 then
    sync = 2 * (dp - 1) / dp * 40 / depth
  end
  return hv.sim.schedule(again, { ranks = depth, micro_batches = m, times = { f = f, b = b, w = 0,
    hop = depth > 1 and 0.5 or 0 } }).makespan + sync
end

local function selftest(t)
  local src = "catalogue: varuna"
  for i, depth in ipairs { 1, 2, 4, 8 } do
    t.near(("recomputation in the backward, P %d"):format(depth), example(depth),
      ({ 166, 168, 171, 187 })[i], 0, src)
    t.near(("free to start before the gradient, P %d"):format(depth), example(depth, true),
      ({ 166, 163, 155, 154 })[i], 1e-9, src)
  end
  local order = hv.sim.schedule("varuna", { ranks = 4, micro_batches = 6 }).order
  t.equal("the last stage recomputes nothing", table.concat(order[4], " "):find("R", 1, true), nil,
    "section 4")
  -- its own simulator draws N(0, 2 ms) on passes and N(0, 10 ms) on hops, none of them negative
  local lowest, highest, drawn = math.huge, 0, opportunistic.drawn
  local long = hv.sim.schedule("varuna", { ranks = 8, micro_batches = 64 }).order
  for _ = 1, 8 do
    local ms = 50 + opportunistic.play(long, {
      time = function(kind) return kind == "BW" and drawn(20, 2, 0) or drawn(10, 2, 0) end,
      hop = function(a, b)
        local base = math.min(a, b) % 4 == 0 and 3 or 1
        return drawn(base, 10, a < b and 0 or base)
      end })
    lowest, highest = math.min(lowest, ms), math.max(highest, ms)
  end
  t.ok(("8 stages x 64, 8 draws: %.0f to %.0f ms around 3062.386, theirs of one draw"):format(
    lowest, highest),
    lowest <= 3062.386 and 3062.386 <= highest, "Varuna a2145cc, simulate-varuna")
end

return {
  api = 1, id = "varuna", title = "Varuna", kind = "hetero",
  system = "Varuna: Scalable, Low-cost Training of Massive Deep Learning Models, EuroSys 2022",
  reference = "arXiv:2111.04007",
  summary = "Depth by simulation of a schedule that bears slow links; largest micro-batch, no tensor parallelism.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "micro_batch", type = "choice", choices = { "largest", "efficient" },
      default = "largest",
      help = "largest that fits (the program), or the smallest within 5 % of the best time (the paper)" },
    { key = "cut_points", type = "integer", default = 0, min = 0, max = 4096,
      help = "sections of equal work that stages are made of; 0: as many as layers" },
    { key = "jitter", type = "number", default = 0, min = 0, max = 10000,
      help = "deviation of a hop in ms, a fifth of it on passes; the time is then the mean of 3 draws" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best time first" },
  },
  plan = plan,
  claim = claim,
  selftest = selftest,
}
