-- Self-tests of the pipeline systems: the numbers of the catalogue by their formulas, in the
-- orders, and on plain links through the judge. Names are those of `verified` in plugin.lua; [D]
-- marks what is derived, [U] what is recalled only.
local cut = require "cut"
local degrees = require "degrees"
local formulas = require "formulas"
local knobs = require "knobs"
local oracle = require "testing.oracle"
local orders = require "orders"
local plain = require "testing.plain"
local rows = require "testing.rows"
local work = require "work"
local world = require "world"

--- An order with passes of f, b, w per rank: makespan and so on, as hv.sim.schedule gives them.
local function laid_out(name, p, m, times, options, chunks)
  local v = chunks or 1
  return hv.sim.schedule(name, { ranks = p, micro_batches = m, chunks = v, options = options,
    times = { f = times[1] / v, b = times[2] / v, w = times[3] / v }, order = false })
end

--- Numbers as a text, whole ones without a fraction.
local function text_of(list)
  local words = {}
  for i, x in ipairs(list) do
    words[i] = ("%g"):format(tonumber(("%.6f"):format(x)))
  end
  return table.concat(words, ",")
end

--- A random chain: layers alike but for the ends, stages of one or two kinds with little room.
local function random_chain()
  local case = { p = hv.random(2) + 1, v = hv.random(2), n = 0, tables = {} }
  case.n = case.p * case.v + hv.random(4) + 1
  local inner_s, held, ends_s = hv.random(), hv.random(), { hv.random(), hv.random() }
  for s = 1, case.p do
    local t = { times = {}, held = {}, room = held * (case.n / case.p + hv.random(3)) }
    local speed = s == 1 and 1 or hv.random(2)
    for l = 1, case.n do
      local is_end = l == 1 and 1 or l == case.n and 2
      t.times[l] = speed * (inner_s + (is_end and ends_s[is_end] or 0))
      t.held[l] = held * (is_end and 1.5 or 1)
    end
    case.tables[s] = t
  end
  local name = hv.random(2) == 1 and case.v == 2 and "zb-v" or "interleaved"
  case.point = world.point(case.p, 4, case.v, { schedule = { name = name } })
  return case
end

--- Work of the busiest rank of a case with these counts; nil where they do not fit.
local function busiest_s(case, counts)
  local load_s, bytes, at = {}, {}, 1
  for c, n in ipairs(counts) do
    local s = orders.stage_of(case.point, c)
    for l = at, at + n - 1 do
      load_s[s] = (load_s[s] or 0) + case.tables[s].times[l]
      bytes[s] = (bytes[s] or 0) + case.tables[s].held[l]
    end
    at = at + n
  end
  local most_s = 0
  for s, t in ipairs(case.tables) do
    if bytes[s] > t.room * (1 + 1e-9) then
      return nil
    end
    most_s = math.max(most_s, load_s[s])
  end
  return most_s
end

--- All counts per chunk of a case.
local function all_counts(case)
  local list = {}
  for i, ends in ipairs(oracle.cuts(case.n, case.p * case.v)) do
    list[i] = {}
    for c, last in ipairs(ends) do
      list[i][c] = last - (ends[c - 1] or 0)
    end
  end
  return list
end

--- The cut of 200 random chains against all of them.
local function exact_cut(t)
  local cases = {}
  for i = 1, 200 do
    cases[i] = random_chain()
  end
  local r = oracle.compare { cases = cases, states = all_counts,
    solve = function(case) return cut.split(case.point, case.tables, case.n) end,
    cost = function(counts, case) return busiest_s(case, counts) end }
  t.equal("cut within memory: equal to the best of all, 200 chains", r.optimal, 200,
    "exhaustive enumeration")
end

--- An order with a pass R that computes forward again before each backward pass.
local function recomputing(order)
  local lists = {}
  for rank, tokens in ipairs(order) do
    lists[rank] = {}
    for _, token in ipairs(tokens) do
      if token:sub(1, 1) ~= "F" then
        table.insert(lists[rank], "R" .. token:match "%d.*")
      end
      table.insert(lists[rank], token)
    end
  end
  return lists
end

local function gpipe(t)
  local from = "catalogue: gpipe; Huang et al. 2019, section 2.3"
  local seconds, bubble = formulas.gpipe(4, 8, 3)
  t.equal("makespan and bubble, four stages", ("%g %.2f"):format(seconds, 100 * bubble),
    "33 27.27", from)
  t.near("makespan with recomputation", (formulas.gpipe(4, 8, 4)), 44, 1e-12, from)
  t.near("the order with recomputation",
    laid_out("gpipe", 4, 8, { 1, 1, 1 }, { recompute = "full" }).makespan, 44, 1e-12, from)
  local early = recomputing(hv.sim.schedule("gpipe", { ranks = 4, micro_batches = 8 }).order)
  t.near("recomputation before the gradient arrives", hv.sim.schedule(early, { ranks = 4,
    micro_batches = 8, times = { f = 1, b = 2, w = 0 } }).makespan, 41, 1e-12, from)
  local schedule = { name = "gpipe" }
  t.near("by the judge", world.judged(t, { p = 4, m = 8, f = 1, b = 2, schedule = schedule }).ms,
    33, 1e-6, from)
  local kept = { recompute = "full" }
  t.near("by the judge with recomputation",
    world.judged(t, { p = 4, m = 8, f = 1, b = 2, schedule = schedule, keys = kept }).ms, 44, 1e-6,
    from)
  t.near("by the judge, recomputation before the gradient arrives", world.judged(t, { p = 4, m = 8,
    f = 1, b = 2, schedule = { name = "explicit", order = early }, keys = kept }).ms, 41, 1e-6,
    from)
  exact_cut(t)
end

local function ptdp(t)
  local from = "catalogue: ptdp; Narayanan et al. 2021, equations 2 to 4, section 2.2"
  local L, h, V, s = 96, 12288, 51200, 2048
  local parameters = formulas.parameters(L, h, V, s)
  t.near("parameters of GPT-3", parameters / 1e9, 174.6, 0.05, from)
  t.near("FLOP of an iteration", formulas.flops(1536, L, h, V, s) / 1e18, 4.511, 5e-4, from)
  t.near("days for GPT-3", formulas.days(300e9, parameters, 1024, 140e12), 33.8, 0.05, from)
  t.near("days for 175e9 parameters", formulas.days(300e9, 175e9, 1024, 140e12), 33.9, 0.05, from)
  t.near("days for a trillion parameters", formulas.days(450e9, 1e12, 3072, 163e12), 83.2, 0.05,
    from)
  t.near("days for 1.008e12", formulas.days(450e9, 1.008e12, 3072, 163e12), 83.9, 0.05, from)
  local by_formula, by_judge = {}, {}
  for i, v in ipairs { 1, 2, 4 } do
    by_formula[i] = formulas.interleaved(8, 16, v)
    local schedule = { name = v == 1 and "1f1b" or "interleaved" }
    local judged = world.judged(t, { p = 8, m = 16, v = v, f = 1, b = 2, schedule = schedule })
    by_judge[i] = judged.ms / 48 - 1
  end
  t.equal("bubble with 1, 2 and 4 chunks", text_of(by_formula), "0.4375,0.21875,0.109375", from)
  t.equal("bubble by the judge, 1, 2 and 4 chunks", text_of(by_judge), "0.4375,0.21875,0.109375",
    from)
  local inputs = { cluster = plain.cluster { nodes = 2, devices = 8 },
    job = { format = "hetviz.job/1", global_batch = 16, sequence = s, precision = "bf16" },
    model = { format = "hetviz.model/1", name = "gpt-3", kind = "transformer", layers = 2,
      hidden = h, heads = 96, kv_heads = 96, head_dim = 128, ffn = 4 * h, ffn_kind = "gelu",
      vocab = V } }
  t.with(inputs, function(ctx)
    local ids = {}
    for i = 1, 8 do
      ids[i] = i
    end
    local stage = hv.cost.stage { devices = ctx.cluster:address(ids), layers = { 0, 1 }, tp = 8,
      sequence_parallel = true, micro_batch = 1 }
    t.equal("bytes between stages", math.tointeger(stage.hop_bytes), 50331648, from)
  end)
end

local function zb(t)
  local from = "catalogue: zb; Qi et al. 2024, sections 2 and 3"
  local names = { "1f1b", "zb-h1", "zb-h2" }
  local bubbles, of_orders, judged, even = {}, {}, {}, { 1, 1, 1 }
  for i, name in ipairs(names) do
    bubbles[i] = formulas.zero_bubble(name, 4, 1, 1, 1)
    of_orders[i] = laid_out(name, 4, 8, even).longest_span - 24
    judged[i] = world.judged(t, { p = 4, m = 8, f = 1, b = 2, schedule = { name = name } }).ms
  end
  t.equal("bubbles of 1f1b, zb-h1 and zb-h2", text_of(bubbles), "9,3,0", from)
  t.equal("bubbles in the orders", text_of(of_orders), "9,3,0", from)
  local spans = {}
  for i = 2, 3 do
    spans[i - 1] = 12 * 4 + formulas.zero_bubble(names[i], 4, 1, 1, 2)
    t.near("the order of " .. names[i] .. " with W = 2",
      laid_out(names[i], 4, 12, { 1, 1, 2 }).longest_span, spans[i - 1], 1e-9, from)
  end
  t.equal("longest spans with W = 2", text_of(spans), "51,48", from)
  t.near("zb-v has no bubble", laid_out("zb-v", 4, 8, even, nil, 2).longest_span, 24, 1e-9, from)
  t.equal("by the judge", text_of(judged), "33,27,27", from)
  t.ok("zero bubble against 1f1b", judged[2] < judged[1] and judged[3] <= judged[2], from)
end

local function chimera(t)
  local from = "catalogue: chimera; Li and Hoefler 2021, sections 3.1 to 3.3"
  t.near("bubble ratio, D = N = 4", formulas.chimera(4), 0.2, 1e-12, from)
  local _, whole = formulas.gpipe(4, 4, 1)
  t.near("ratio of 1F1B and GPipe", whole, 0.4286, 5e-5, from)
  local equal = laid_out("chimera", 4, 4, { 1, 0.5, 0.5 })
  t.near("slots with equal passes", equal.makespan, 10, 1e-12, from)
  t.near("their ratio", equal.bubble, formulas.chimera(4), 1e-12, from)
  local twice = laid_out("chimera", 4, 4, { 1, 1, 1 })
  t.equal("slots with backward passes twice as long", text_of { twice.makespan, twice.bubble },
    "16,0.25", from)
  local judged = {}
  for i, b in ipairs { 1, 2 } do
    judged[i] = world.judged(t, { p = 4, m = 4, f = 1, b = b,
      schedule = { name = "chimera", pipes = 2 } }).ms
  end
  t.equal("by the judge", text_of(judged), "10,16", from)
end

local function hanayo(t)
  local from = "catalogue: hanayo; derived, Liu et al. 2023 has no published order"
  local devices = {}
  local point = world.point(4, 4, 4, { schedule = { name = "hanayo" } })
  for c = 1, 16 do
    devices[c] = orders.stage_of(point, c) - 1
  end
  t.equal("devices of the chunks [D]", table.concat(devices), "0123321001233210", from)
  local makespans, bounds, judged, ratios = {}, {}, {}, {}
  for i, waves in ipairs { 1, 2, 4 } do
    makespans[i] = laid_out("hanayo", 8, 8, { 1, 1, 1 }, { waves = waves }, 2 * waves).makespan
    bounds[i] = formulas.hanayo_bound(8, 8, waves, 3)
    ratios[i] = ("%.1f"):format(100 * formulas.hanayo(8, waves))
    judged[i] = world.judged(t, { p = 8, m = 8, v = 2 * waves, f = 1, b = 2,
      schedule = { name = "hanayo", waves = waves } }).ms
  end
  t.equal("makespan with 1, 2 and 4 waves [D]", text_of(makespans), "38,31.5,27.75", from)
  t.equal("lower bounds [D]", text_of(bounds), "34.5,29.25,26.625", from)
  t.equal("ratios as recalled [U]", table.concat(ratios, ","), "45.2,25.5,13.6", from)
  t.equal("by the judge, 1, 2 and 4 waves [D]", text_of(judged), "38,31.5,27.75", from)
  t.near("1F1B takes", laid_out("1f1b", 8, 8, { 1, 1, 1 }).makespan, 45, 1e-12, from)
end

local function ctrlmem(t)
  local from = "catalogue: ctrlmem; Qi et al. 2024 (NeurIPS), released tables and generator"
  local nominal, bubbles, peaks, judged, alive = {}, {}, {}, {}, {}
  for i, name in ipairs { "v-half", "v-min" } do
    nominal[i] = ("%.2f"):format(100 * formulas.controllable(name, 8, 32))
    local order = laid_out(name, 8, 32, { 2, 2, 2 }, nil, 2)
    bubbles[i] = ("%.2f"):format(100 * order.bubble)
    peaks[i] = math.max(table.unpack(order.peak)) / 2
    local one = world.judged(t, { p = 8, m = 32, v = 2, f = 2, b = 4, schedule = { name = name } })
    judged[i] = ("%.2f"):format(100 * one.bubble)
    alive[i] = math.max(table.unpack(one.alive))
  end
  local of_1f1b = world.judged(t, { p = 8, m = 32, f = 2, b = 4, schedule = { name = "1f1b" } })
  t.equal("nominal bubbles, p = 8, m = 32", table.concat(nominal, ","), "8.97,11.97", from)
  t.near("bubble of 1F1B", 100 * of_1f1b.bubble, 17.9, 0.05, from)
  t.equal("bubbles of the orders", table.concat(bubbles, ","), "8.13,12.33", from)
  t.equal("activations of the orders", text_of(peaks), "5,4", from)
  t.equal("bubbles by the judge", table.concat(judged, ","), "8.13,12.33", from)
  t.equal("activations by the judge", text_of(alive), "5,4", from)
  t.ok("activations: v-min below v-half below 1f1b",
    alive[2] < alive[1] and alive[1] < of_1f1b.alive[1], from)
end

--- Milliseconds of four stages of two ranks, four chunks each, weights of 40 MB per layer behind
-- links of `nic_GBps`: breadth-first and interleaved, with these keys of `zero` each or none.
local function sharded_ms(t, nic_GBps, zero)
  local inputs = plain.measured { nodes = 8, nic_GBps = nic_GBps, layers = 16, forward_ms = 1,
    backward_ms = 2, parameter_bytes = 40e6, batch = 16 }
  local ms = {}
  for i, name in ipairs { "breadth-first", "interleaved" } do
    ms[i] = t.with(inputs, function(ctx)
      local point = world.point(4, 8, 4, { schedule = { name = name } })
      point.dp = 2
      return plain.ms(world.plan(ctx, point, zero and { zero = zero[i] }))
    end)
  end
  return ms[1], ms[2]
end

local function bfpp(t)
  local from = "catalogue: bfpp; Lamy-Poirier 2023, section 4"
  local formula = { formulas.interleaved(4, 8, 4), formulas.interleaved(4, 8, 1) }
  t.equal("bubbles with 4 chunks and 1", text_of(formula), "0.09375,0.375", from)
  local judged = {}
  for i, v in ipairs { 4, 1 } do
    judged[i] = world.judged(t, { p = 4, m = 8, v = v, f = 1, b = 2,
      schedule = { name = "breadth-first" } }).ms / 24 - 1
  end
  t.equal("bubbles by the judge", text_of(judged), "0.09375,0.375", from)
  local chunk, layer = { stage = 3, unit = "chunk" }, { stage = 3, unit = "layer" }
  local breadth_ms, depth_ms = sharded_ms(t, 10, { chunk, layer })
  t.ok("sharded on slow links: before interleaving", breadth_ms < depth_ms, from)
  breadth_ms, depth_ms = sharded_ms(t, 10, { chunk, chunk })
  t.ok("sharded by chunk on slow links: before interleaving", breadth_ms < depth_ms, from)
  breadth_ms, depth_ms = sharded_ms(t, 1e6)
  t.ok("not sharded: no gain", breadth_ms >= depth_ms - 1e-9, from)
end

--- Milliseconds of four stages of one layer of width h on plain rates, 8 sequences of s tokens:
-- whole, in 4 slices of equal work, in 4 of equal length.
local function sliced(t, h, s)
  local inputs = { cluster = plain.cluster { nodes = 1, devices = 4, memory_GBps = 1e6 },
    job = { format = "hetviz.job/1", global_batch = 8, sequence = s, precision = "bf16",
      optimizer = "none" },
    model = { format = "hetviz.model/1", name = "m", kind = "transformer", layers = 4, hidden = h,
      heads = h // 128, kv_heads = h // 128, head_dim = 128, ffn = 4 * h, ffn_kind = "gelu",
      vocab = 128, causal = true } }
  return t.with(inputs, function(ctx)
    local lin, quad = work.of_model(ctx)
    local function ms(schedule)
      return plain.ms(world.plan(ctx, world.point(4, 8, 1, { schedule = schedule })))
    end
    return ms { name = "1f1b" },
      ms { name = "seq1f1b", slices = formulas.whole(formulas.slices(s, 4, lin, quad, 1)) },
      ms { name = "seq1f1b", slices = 4 }
  end)
end

local function seq1f1b(t)
  local from = "catalogue: seq1f1b; Sun et al. 2024 and its code"
  local L, h, f, a, dh, V, s = 24, 4096, 16384, 32, 128, 32000, 16384
  local lin, quad = L * (8 * h * a * dh + 4 * h * f) + 4 * h * V, L * a * (4 * dh + 3)
  local lengths = formulas.slices(s, 4, lin, quad, 2)
  t.equal("slices of the published configuration", text_of(lengths), "4930,4238,3776,3440", from)
  local pre, shares, whole = 0, {}, lin * s + quad * s * s / 2
  for i, x in ipairs(lengths) do
    pre = pre + x
    shares[i] = ("%.4f"):format((lin * x + quad * (pre * x - x * x / 2)) / whole)
  end
  t.equal("their shares of the work", table.concat(shares, ","), "0.2501,0.2500,0.2499,0.2500",
    from)
  local alone = {}
  for i, x in ipairs(formulas.slices(16, 4, 0, 1, 0)) do
    alone[i] = ("%.3f"):format(x)
  end
  t.equal("attention alone", table.concat(alone, ","), "8.000,3.314,2.543,2.144", from)
  local point = world.point(4, 8, 1, { schedule = { name = "seq1f1b", slices = 4 } })
  local alive = {}
  for rank = 1, 4 do
    alive[rank] = orders.alive(point, rank)
  end
  t.equal("activations alive", text_of(alive), "1.75,1.5,1.25,1", from)
  local whole_ms, sliced_ms = sliced(t, 4096, 512)
  t.near("equal slices by the judge", sliced_ms / whole_ms, (8 * 4 + 3) / 4 / (8 + 3), 0.005, from)
  local even_ms
  whole_ms, sliced_ms, even_ms = sliced(t, 1024, 16384)
  t.ok("long sequences: equal work before equal lengths", sliced_ms < even_ms
    and sliced_ms < whole_ms, from)
end

local function bpipe(t)
  local from = "catalogue: bpipe; derived, Kim et al. 2023"
  local kept = {}
  for i, p in ipairs { 8, 4, 16 } do
    kept[i] = text_of(formulas.paired(p))
  end
  t.equal("kept with 8, 4 and 16 stages [D]", table.concat(kept, " "),
    "5,5,5,5,4,4,4,4 3,3,2,2 9,9,9,9,9,9,9,9,8,8,8,8,8,8,8,8", from)
  t.equal("kept in the order [D]", text_of(laid_out("bpipe", 8, 32, { 1, 1, 1 }).peak), kept[1],
    from)
  local schedule = { name = "bpipe" }
  local alive = world.judged(t, { p = 8, m = 32, f = 1, b = 2, schedule = schedule }).alive
  t.equal("most kept by the judge, with what is on the way [D]", math.max(table.unpack(alive)), 5,
    from)
  local point = world.point(8, 32, 1, { schedule = schedule, paired = true })
  point.ids, point.dp = {}, 2
  for i = 1, 16 do
    point.ids[i] = i
  end
  local words = {}
  for s = 1, 4 do
    words[s] = text_of(knobs.place(point, s)) .. "+" .. text_of(knobs.place(point, 9 - s))
  end
  t.equal("pairs on one node", table.concat(words, " "), "1,9+2,10 3,11+4,12 5,13+6,14 7,15+8,16",
    from)
end

local tests = { gpipe = gpipe, ptdp = ptdp, zb = zb, chimera = chimera, hanayo = hanayo,
  ctrlmem = ctrlmem, bfpp = bfpp, seq1f1b = seq1f1b, bpipe = bpipe }

-- Schedules of the systems that choose between several.
local VARIANTS = {
  ptdp = { "interleaved", "1f1b" }, zb = { "zb-h1", "zb-h2", "zb-1p", "zb-2p", "zb-v" },
  ctrlmem = { "v-min", "v-half", "zb-v", "v-adaptive" },
}

--- The whole search on eight devices: its plan runs, with the schedule that the system sets.
local function searched(t, system)
  local inputs = { cluster = plain.cluster { nodes = 2, devices = 4, nic_GBps = 10,
    intra_GBps = 100, memory_GiB = 24 },
    job = { format = "hetviz.job/1", global_batch = 32, sequence = 1024, precision = "bf16" },
    model = { format = "hetviz.model/1", name = "m", kind = "transformer", layers = 16,
      hidden = 2048, heads = 16, kv_heads = 16, head_dim = 128, ffn = 8192, ffn_kind = "gelu",
      vocab = 32000, causal = true } }
  rows.search(t, inputs)
  t.with(inputs, function(ctx, family)
    local name = assert(family.plan(ctx)).schedule.name
    local known = {}
    for _, other in ipairs(VARIANTS[system.id] or { system.sets["schedule.name"] }) do
      known[other] = true
    end
    t.ok("searched on eight devices: a schedule of the system, " .. name, known[name], "search")
    ctx.options.pp = 4
    local before = degrees.search(ctx, degrees.axes(ctx, { tp = { 1 } }))
    local made = assert(family.apply(before, ctx))
    t.ok("applied: a schedule of the system, " .. made.schedule.name, known[made.schedule.name],
      "by hand")
    t.equal("applied: broken rules", #assert(hv.plan.new(made):eval()).violations, 0, "by hand")
    ctx.before = { { id = "other", sets = { ["schedule.name"] = "own" } } }
    local none, why = family.apply(before, ctx)
    t.ok("applied on another order: both are named", none == nil
      and why:find("other and " .. system.id .. " both decide schedule.name", 1, true), "by hand")
  end)
end

return function(t, system)
  tests[system.id](t)
  searched(t, system)
end
