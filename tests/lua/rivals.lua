--- The rivals' own sample inputs that no plugin's self-test has room for: the value of *their* objective that
-- our search finds, beside theirs and the time it took them. `hetviz selftest tests/lua/rivals.lua`.
-- Sources: Oobleck 3b7a0c2, csrc/planning on the profile of its own test generator (seed 0); DT-FM cda948f,
-- scheduler/heuristic_evolutionary_solver on its built-in cases (64 devices, 8 stages of 8 replicas); Varuna
-- a2145cc, simulate-varuna, whose times are drawn: what it printed is one draw, and so is ours.
local opportunistic = require "opportunistic"
-- scheduler/heuristic_evolutionary_solver on its built-in cases (64 devices, 8 stages of 8 replicas).
local alleviate = require "alleviate"
local asymmetric = require "asymmetric"
local operators = require "operators"
local placing = require "placing"
local ragged = require "ragged"

-- Oobleck: 34 layers on nodes of 4 GPUs, milliseconds; T of its templates for 1 to 4 nodes (0.9 s of CPU).
local oobleck = {
  forward_backward = {
    3.11828506, 0.7460040756, 1.42675588, 0.9567511234, 1.979201262, 0.9871428021, 1.64590878, 1.145739858,
    2.120598808, 3.619126843, 1.150464903, 1.375455279, 1.522163822, 1.645250409, 2.6343161, 0.4856424257,
    1.118947284, 2.369539833, 0.7433459644, 2.647037352, 1.510986228, 3.019265022, 2.752033553, 1.693452914,
    1.790542706, 0.8641608061, 3.258081993, 1.590059202, 2.1296577, 3.046708564, 2.159960958, 0.6163081509,
    0.2562995372, 2.792924333,
  },
  all_reduce = {
    [2] = {
    0.2589167503, 0.8767703708, 0.966548903, 0.002357564719, 0.7347509912, 0.04063202665, 0.6825296187,
    0.1301576944, 0.7600898367, 0.7270999543, 0.5245146032, 0.286831048, 0.176935536, 0.2070979756,
    0.6141334981, 0.133956156, 0.7564677019, 0.6114741873, 0.1657580289, 0.1680013763, 0.2316288448,
    0.8073817566, 0.9611344661, 0.7673627198, 0.9728331111, 0.4042166876, 0.6882831697, 0.9208518221,
    0.04870695777, 0.4667483085, 0.1147402517, 0.4960068821, 0.5162479487, 0.9947020061,
    },
    [4] = {
    0.4049341375, 0.8424602231, 0.6762017843, 0.5283459769, 0.9196888444, 0.8439546857, 0.7885664914,
    0.3622398699, 0.7619950131, 0.7516139341, 0.2016215865, 0.8097488285, 0.9867958187, 0.3402803793,
    0.2283020906, 0.6418933847, 0.5627357352, 0.6735909267, 0.3983974119, 0.8495661703, 0.742388068,
    0.3812446667, 0.6820845368, 0.9679724862, 0.9999026771, 0.9367888564, 0.4794484586, 0.1844749659,
    0.91961044, 0.7772036679, 0.4798230842, 0.7344217421, 0.4158612133, 0.4238451321,
    },
  },
  times = { 234.50214583689575, 262.19336474959675, 252.42179808694303, 254.02099225617005 },
}

--- Seconds of every layer on so many GPUs: shared work, and an all-reduce each way among them.
local function layer_times(gpus)
  local times, sums = {}, oobleck.all_reduce[gpus]
  for i, t in ipairs(oobleck.forward_backward) do times[i] = t / gpus + (sums and 2 * sums[i] or 0) end
  return times
end

-- GPUs of a node's stages: its planner halves them.
local shapes = { { 4 }, { 2, 2 }, { 2, 1, 1 }, { 1, 1, 2 }, { 1, 1, 1, 1 } }

--- The least T = sum t + (2S + k + 1) t_k + sum from k of templates on n nodes (its code's coefficients).
local function best_template(n, times)
  local best = math.huge
  local function extend(left, gpus)
    if left == 0 then
      local load, stages = {}, #gpus
      for s, g in ipairs(gpus) do load[s] = times[g] end
      local one = stages == 1
      local found = hv.opt.partition { n = #load[1], parts = stages, load = load,
        weights = { one and 2 or 2 * stages + 1, one and 0 or 1, 1 } }
      best = math.min(best, found.value)
      return
    end
    for _, shape in ipairs(shapes) do
      local more = table.move(gpus, 1, #gpus, 1, {})
      extend(left - 1, table.move(shape, 1, #shape, #more + 1, more))
    end
  end
  extend(n, {})
  return best
end

local function test_oobleck(t)
  local times = { [1] = layer_times(1), [2] = layer_times(2), [4] = layer_times(4) }
  for n, theirs in ipairs(oobleck.times) do
    local ours = best_template(n, times)
    t.ok(("Oobleck, 34 layers on %d x 4 GPUs: T %.6f, theirs %.6f (all four in 0.9 s of CPU)"):format(n, ours, theirs),
      ours <= theirs * (1 + 1e-9), "Oobleck's own planner")
  end
end

--- An instance of equal devices in classes: their number, delay (ms) and Gbit/s inside and between.
local function instance(sizes, inside, between)
  local q = { class = {}, delay = {}, rate = {}, stages = 8, seed = 1, dp_bytes = 0.65e9,
    pp_bytes = 0.47124922275543213e9 }
  for a, n in ipairs(sizes) do
    q.delay[a], q.rate[a] = {}, {}
    for b in ipairs(sizes) do
      local link = a == b and (inside[a] or inside[1]) or between
      q.delay[a][b], q.rate[a][b] = link[1] / 1e3, link[2] * 1e9 / 8
    end
    for _ = 1, n do q.class[#q.class + 1] = a end
  end
  return q
end

-- DT-FM: instance, its best, the CPU seconds it took. Cases 3 and 4 are in the plugin's self-test.
local function test_dtfm(t)
  local cases = {
    { "0, data centre", instance({ 8, 8, 8, 8, 8, 8, 8, 8 }, { { 0, 100 } }, { 0, 3.125 }), 3.439799129486084, 1.9 },
    { "1, spot", instance({ 4, 4, 4, 4, 4, 4, 4, 4, 32 }, { { 0, 100 }, [9] = { 0, 1.25 } }, { 0, 1.25 }),
      49.50393035888672, 2.6 },
    { "2, universities", instance({ 32, 32 }, { { 1, 5 } }, { 11, 1.12 }), 16.086839732578824, 2.2 },
  }
  for _, case in ipairs(cases) do
    local _, seconds = placing.place(case[2])
    t.ok(("DT-FM, case %s: COMM %.4f s, theirs %.4f s in %.1f s of CPU"):format(case[1], seconds[1], case[3], case[4]),
      seconds[1] <= case[3] * (1 + 1e-9), "DT-FM cda948f, 40 candidates")
  end
end

-- Varuna: 32 stages x 512 micro-batches of 10 and 20 ms, hops of 1 ms, 3 ms behind every fourth GPU, all-reduce 50 ms;
-- it draws N(0, 2 ms) on passes and N(0, 10 ms) on hops, none below 0. The smaller case is in the plugin's self-test.
local function test_varuna(t)
  local drawn = opportunistic.drawn
  local order = hv.sim.schedule("varuna", { ranks = 32, micro_batches = 512 }).order
  local ms = 50 + opportunistic.play(order, {
    time = function(kind) return kind == "BW" and drawn(20, 2, 0) or drawn(10, 2, 0) end,
    hop = function(a, b)
      local base = math.min(a, b) % 4 == 0 and 3 or 1
      return drawn(base, 10, a < b and 0 or base)
    end })
  t.near("Varuna, 32 stages x 512, ms of one draw; theirs 22991.194 of one, in 0.15 s of CPU", ms, 22991.194, 115,
    "Varuna's own simulator")
end

-- Aceso: its plan for GPT 1.3B on 4 GPUs, operators recomputed (1) in each stage; 60 s of search, 16.5 s of CPU.
local aceso = {
  "000111100011000011110000000001111000000000111100000000011110000000001111000000",
  "000111100011000011110001100001111000000000001100000000000110000000000011000000000",
  "11110000000000011000000000001100000000000110000000000011000000000001100000000000110",
  "0011000011110001100000011000110000000000011000000000000000000000000000000",
}

local function test_aceso(t)
  local q, times, bytes, at = operators.instance(require "aceso_profile"), {}, 0, 0
  for s, flags in ipairs(aceso) do
    local p = q.price { from = at + 1, to = at + #flags, tp = 1, dp = 1, micro_batch = 1, index = s, behind = 4 - s,
      flags = flags }
    at, times[s], bytes = at + #flags, p.time_s, math.max(bytes, p.bytes)
  end
  local list, worst = alleviate.times(times, 512)
  t.near("Aceso, its plan by its equations here, s", list[worst], 58.76092188572894, 1e-5, "Aceso fa80ad0")
  t.near("and its memory, MB", bytes, 11976.221, 1e-6, "Aceso fa80ad0")
  local way = { { time = 0, saved = 0, peak = 0 }, { time = 2, saved = 4, peak = 1 },
    { time = 5, saved = 9, peak = 3 } }
  t.near("Aceso, recomputation of 2 layers that saves 8", operators.recompute({ way, way }, 8, 2), 4, 1e-9,
    "by hand: of two micro-batches one layer saves 2 x 4 - 1, two save 2 x 8 - 1")
  for _, case in ipairs { { 4, 1, 58.76092188572894 }, { 3, 2 }, { 2, 2 } } do
    local e = alleviate.run(q, { stages = case[1], micro_batch = case[2], budget = 100 })
    local best = case[3] or 1e9
    t.ok(("Aceso, GPT 1.3B on 4 GPUs, %d stages: %.4f s%s"):format(case[1], e.time_s,
      case[3] and (", theirs %.4f s in 16.5 s of CPU"):format(best) or ""), e.over == 0 and e.time_s <= best,
      "Aceso fa80ad0, its cost equation and profile")
  end
end

-- FlashFlex: Llama-7B on the machines of its README (8 devices each: TFLOP/s, GB, GB/s inside), batch 64, its plan as
-- pipelines of stages { machine, devices, layers }, the time it states and its CPU seconds. It states the time of half
-- the batch: it ends with two pipelines, but each runs the 16 sequences of four.
local flashflex = {
  { name = "cluster 1", stated = 53.271, cpu_s = 7.85,
    machines = { { 56.9, 12, 20 }, { 80, 24, 2 }, { 165.2, 24, 2 }, { 165.2, 24, 2 }, { 165.2, 24, 2 } },
    plan = {
      { { 1, 2, 1 }, { 1, 2, 1 }, { 1, 2, 1 }, { 2, 2, 3 }, { 2, 2, 4 }, { 2, 2, 4 }, { 3, 2, 4 }, { 3, 1, 1 }, { 3,
      1, 1 }, { 4, 1, 1 }, { 4, 1, 1 }, { 4, 1, 1 }, { 5, 2, 4 }, { 5, 2, 4 }, { 5, 1, 1 } },
      { { 1, 1, 1 }, { 1, 1, 1 }, { 2, 1, 2 }, { 2, 1, 2 }, { 3, 2, 4 }, { 3, 1, 2 }, { 3, 1, 2 }, { 4, 2, 5 }, { 4,
      2, 5 }, { 4, 1, 2 }, { 5, 1, 2 }, { 5, 1, 2 }, { 5, 1, 2 } },
    } },
  { name = "cluster 2", stated = 54.888, cpu_s = 4.49,
    machines = { { 56.9, 12, 20 }, { 80, 24, 2 }, { 165.2, 24, 2 }, { 312, 80, 200 } },
    plan = {
      { { 1, 4, 2 }, { 1, 4, 2 }, { 2, 4, 6 }, { 2, 2, 2 }, { 2, 2, 3 }, { 3, 4, 6 }, { 3, 2, 3 }, { 3, 2, 3 }, { 4,
      1, 5 } },
      { { 4, 2, 9 }, { 4, 2, 9 }, { 4, 2, 10 }, { 4, 1, 4 } },
    } },
}

local function readme_cluster(case)
  local T, G, q = 2 ^ 40, 2 ^ 30, { flops = {}, memory = {}, machine = {}, hidden = 4096, layers = 32, tokens = 4096,
    vocab = 32000, micro_batch = 1, recompute = true, batch = 64 }
  for m, machine in ipairs(case.machines) do
    for d = 8 * m - 7, 8 * m do q.flops[d], q.memory[d], q.machine[d] = machine[1] * T, machine[2] * G, m end
  end
  function q.bw(a, b) return (q.machine[a] == q.machine[b] and case.machines[q.machine[a]][3] or 0.5) * G end
  function q.tp(size) return size & (size - 1) == 0 end
  function q.most(stage, s, stages)
    local n, ends = 0, s == 1 or s == stages
    while n < 32 and ragged.memory_bytes(q, { devices = stage.devices, layers = n + 1 }, ends)
      <= q.memory[stage.devices[1]] do n = n + 1 end
    return n
  end
  return q
end

--- Its plan with so many micro-batches for every pipeline.
local function its_plan(case, micro_batches)
  local next_of, list = {}, {}
  for p, stages in ipairs(case.plan) do
    list[p] = { micro_batches = micro_batches }
    for s, row in ipairs(stages) do
      local devices, at = {}, next_of[row[1]] or 8 * row[1] - 7
      for i = 1, row[2] do devices[i] = at + i - 1 end
      next_of[row[1]], list[p][s] = at + row[2], { devices = devices, layers = row[3] }
    end
  end
  return list
end

local function test_flashflex(t)
  for _, case in ipairs(flashflex) do
    local q, atoms = readme_cluster(case), {}
    for d = 1, #q.flops do atoms[d] = { d } end
    local whole = ragged.total_s(q, its_plan(case, 32))
    t.near(("FlashFlex, %s: its plan with half the batch, s"):format(case.name), ragged.total_s(q, its_plan(case, 16)),
      case.stated, 5e-4, "FlashFlex 5ee1726")
    local ours = asymmetric.run(q, atoms, { rounds = 8, budget = 30, seed = 1 })[1].claim_s
    t.ok(("FlashFlex, %s: %.2f s, theirs %.2f s in %.1f s of CPU (it states %.2f)"):format(case.name, ours, whole,
      case.cpu_s, case.stated), ours <= whole, "its own objective, whole batch")
  end
end

return {
  api = 1, id = "rivals-test", title = "Rivals' own inputs", kind = "test",
  system = "none", reference = "none", summary = "Checks searches against what other planners found.",
  plan = function()
    return nil, "tests only"
  end,
  selftest = function(t)
    test_oobleck(t)
    test_dtfm(t)
    test_varuna(t)
    test_aceso(t)
    test_flashflex(t)
  end,
}
