--- The rivals' own sample inputs that no plugin's self-test has room for: the value of *their* objective that
-- our search finds, beside theirs and the time it took them. `hetviz selftest tests/lua/rivals.lua`.
-- Sources: Oobleck 3b7a0c2, csrc/planning on the profile of its own test generator (seed 0); DT-FM cda948f,
-- scheduler/heuristic_evolutionary_solver on its built-in cases (64 devices, 8 stages of 8 replicas); Varuna
-- a2145cc, simulate-varuna, whose times are drawn: what it printed is one draw, and so is ours.
local opportunistic = require "opportunistic"
local placing = require "placing"

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
    t.ok(("Oobleck, 34 layers on %d x 4 GPUs: T %.6f, theirs %.6f"):format(n, ours, theirs),
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
  end,
}
