--- The measured layers of OPT-350M that Sailor publishes (eth-easl/sailor cf2c8e3, its profiles, SOSP 2025), of
-- which the Metis run of the same models was made, and both planners' searches on their own terms.
-- `hetviz selftest tests/lua/rivals_opt350.lua`.
local layout = require "layout"
local mixed = require "mixed"
local residual = require "residual"

-- Forward + backward in ms by type, tensor degree and micro-batch: embedding, first block, other 23 blocks, head.
local passes = {
  a = {
    { [1] = { 0.403, 8.692, 8.223, 8.497 }, [2] = { 0.429, 16.226, 15.797, 15.755 },
      [4] = { 0.511, 31.314, 30.919, 30.984 }, [8] = { 0.688, 61.583, 61.165, 61.986 } },
    { [1] = { 0.828, 5.241, 5.306, 4.923 }, [2] = { 0.883, 9.154, 8.949, 8.82 },
      [4] = { 1.022, 17.305, 17.032, 16.333 }, [8] = { 1.441, 33.47, 33.165, 31.901 } }, nil,
    { [1] = { 0.965, 4.337, 4.412, 4.289 }, [2] = { 0.988, 6.317, 6.417, 5.987 },
      [4] = { 1.049, 10.169, 9.855, 9.218 }, [8] = { 1.563, 19.267, 19.017, 17.037 } },
  },
  v = {
    { [1] = { 0.448, 24.987, 24.516, 48.762 }, [2] = { 0.53, 48.674, 48.032, 96.06 },
      [4] = { 0.521, 99.558, 100.553, 196.945 } },
    { [1] = { 0.863, 14.248, 13.734, 24.824 }, [2] = { 1.152, 27.3, 26.936, 50.535 },
      [4] = { 1.606, 52.138, 51.798, 97.264 }, [8] = { 2.572, 106.117, 106.155, 204.469 } }, nil,
    { [1] = { 0.937, 9.03, 8.931, 13.037 }, [2] = { 1.17, 15.643, 15.434, 25.761 },
      [4] = { 1.746, 29.535, 29.392, 50.596 }, [8] = { 3.176, 58.44, 58.495, 101.282 } },
  },
}
-- Bytes of the parameters, and of what a sequence leaves behind: embedding, block, head; by tensor degree.
local parameters = { { 214433792, 50384896, 206053376 }, { 111673344, 25204736, 103292928 }, nil,
  { 60293120, 12614656, 51912704 } }
local saved = { { 8388608, 360726528, 834694144 }, { 8407040, 192954368, 423652352 }, nil,
  { 8407040, 109592576, 218131456 } }

--- Sum of a run of layers, from and to counting from 1, of values { embedding, block, head }.
local function run(values, from, to)
  local sum = (from == 1 and values[1] or 0) + (to == 26 and values[3] or 0)
  return sum + (math.min(to, 25) - math.max(from, 2) + 1) * values[2]
end

--- Milliseconds of a run of layers; nil where it was not measured.
local function pass_ms(type, tp, micro_batch, from, to)
  local t = passes[type][tp] and passes[type][tp][micro_batch]
  if not t then return nil end
  return run({ t[1], t[3], t[4] }, from, to) + (from <= 2 and to >= 2 and t[2] - t[3] or 0)
end

-- Sailor ------------------------------------------------------------------------------------------

-- Coefficients of GB/s in log2 of the size in MB, by how many GPUs of a node take part.
local slow, two, four = { -0.0024414231124647644, 0.1408627339370467, 1.116822757126346 },
  { -0.007196511652909052, 0.2316852991952904, 2.1127137995063974 },
  { -0.03667895496478979, 0.4773282044079026, 4.5592610071684785 }
local volta, volta_two, volta_four = { 0.004408380557873316, 0.046579932153075286, 0.8793574711743694 },
  { -0.011532109309884275, 0.10561766868954804, 1.7758034087071715 },
  { -0.008450897567554275, 0.32345407867588116, 3.446937175278422 }
local a_from = { { { slow, slow, nil, slow }, { volta, slow, nil, slow } },
  { { slow, two, nil, two }, { volta, volta_two, nil, two } }, nil,
  { { slow, two, nil, four }, { volta, volta_two, nil, volta_four } } }
local v_from = { { { volta, volta, nil, volta }, { volta, volta, nil, volta } },
  { { slow, volta_two, nil, volta_two }, { volta, volta_two, nil, volta_two } }, nil,
  { { slow, two, nil, volta_four }, { volta, volta_two, nil, volta_four } } }
-- What it takes for the bandwidth of a pool when it looks for the slowest, in GB/s.
local known = { { 2.420367713517156, 3.674915935759112, nil, 6.03591305104673 },
  { 1.7196406294376426, 2.9035718843939266, nil, 5.787468328312377 } }

local function send_s(c, bytes)
  local x = math.log(bytes / 1e6, 2)
  return bytes * 1e-9 / ((c[1] * x + c[2]) * x + c[3])
end

--- Rings in buckets of 500 MB on the slowest pool's links, with the least degree.
local function sync_s(rows, first, last, dp)
  if dp == 1 then return 0 end
  local least, pool, tp = math.huge, nil, 4
  for _, r in ipairs(rows) do
    tp = math.min(tp, r.tp)
    if known[r.pool][r.tp] < least then least, pool = known[r.pool][r.tp], r.pool end
  end
  local bytes, sum = run(parameters[tp], first, last), 0
  local links = (pool == 1 and a_from or v_from)[tp][pool][tp]
  while bytes > 0 do
    local bucket = math.min(bytes, 500e6)
    sum, bytes = sum + 2 * (dp - 1) * send_s(links, bucket / dp), bytes - bucket
  end
  return sum
end

--- Sailor's problem on so many A100-40 and V100-16 of nodes of 4, by its own prices.
local function problem(a, v)
  local names, room = { "a", "v" }, { 40 * 2 ^ 30, 16 * 2 ^ 30 }
  return {
    layers = 26, batch = 1024, quota = { a, v }, region = { "", "" }, usd_per_s = { 0, 0 }, goal = "time",
    depths = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26 },
    sizes = { 1, 2, 4, 8 }, speedup = 1.5, width = 12, budget = 2000, keep = 1,
    degrees = function() return { 1, 2, 4 } end,
    time = function(k, tp, micro_batch, from, to)
      local ms = pass_ms(names[k], tp, micro_batch, from, to)
      return ms and ms / 1e3
    end,
    fits = function(k, tp, micro_batch, from, to, stage, depth)
      local held = 6 * run(parameters[tp], from, to) + (tp == 1 and 2e9 or 3e9)
      return held + run(saved[tp], from, to) * micro_batch * (depth - stage + 1) <= room[k]
    end,
    hop = function(x, y, micro_batch) return send_s((x.pool == 1 and a_from or v_from)[x.tp][y.pool][y.tp],
      8388608 * micro_batch) end,
    sync = sync_s,
  }
end

--- Pools, its planner's own estimate and its simulator's throughput (iterations/s), its search in s.
local sailor = { { 32, 96, 0.19012507658823194, 0.1700, 3.5 }, { 80, 240, 0.36226889201262935, 0.3609, 8.9 },
  { 128, 384, 0.5257456999525578, 0.5229, 22.3 } }

local function test_sailor(t)
  for _, case in ipairs(sailor) do
    local best = residual.search(problem(case[1], case[2]))[1]
    t.ok(("Sailor, %d A100 + %d V100: %.5f/s by its equation (depth %d, dp %d, micro-batch %d), theirs %.5f/s "
      .. "(%.4f/s in its simulator) in %.1f s"):format(case[1], case[2], 1 / best.claim_s, best.depth, best.dp,
      best.micro_batch, case[3], case[4], case[5]), 1 / best.claim_s >= case[3] * (1 - 1e-7), "Sailor cf2c8e3")
  end
end

-- Metis -------------------------------------------------------------------------------------------

--- Metis' problem on 8 A100 and 8 V100, 4 per node, batch 128 (1b37058 by its constants: twice the optimizer of the
-- first profile it lists, A100 tp 2 bs 2, with its parameters; links of 200 and 100, in 2^20 bytes per ms and elements
-- of activations; 0.001 ms per micro-batch). Mended: replicas' memory with what is alive, by their own type.
local function metis_problem()
  local room, rate = { a = 40 * 2 ^ 30, v = 16 * 2 ^ 30 }, { a = 200, v = 100 }
  local a, v = {}, {}
  for d = 1, 16 do
    a[d] = { kind = d <= 8 and "a" or "v", node = (d + 3) // 4 }
    v[d] = { kind = d <= 8 and "v" or "a", node = (d + 3) // 4 }
  end
  local function slowest(...)
    local least = math.huge
    for _, stage in ipairs { ... } do
      for _, k in ipairs(stage.kinds) do least = math.min(least, rate[k.kind]) end
    end
    return least * 2 ^ 20
  end
  local q = { layers = 26, batch = 128, orders = { a, v }, counts = { 1, 2, 4, 8, 16, 32, 64, 128 }, stages = 16,
    variance = 1, length = 4, most = 400, max_tp = 4, budget = 4000, keep = 1, every = 0.001 }
  function q.pace(kind, tp) return pass_ms(kind, tp, 1, 1, 26) end
  function q.times(kind, tp, share) -- a share is run as powers of two up to 4, as far as they were profiled
    local list = {}
    for l = 1, 26 do
      local left = share
      list[l] = 0
      for _, bs in ipairs { 4, 2, 1 } do
        while left >= bs do
          local ms = pass_ms(kind, tp, bs, l, l)
          list[l], left = list[l] + ms, left - bs
        end
      end
    end
    return share <= 16 and list or nil
  end
  function q.split(entering, paces, same)
    if same then return entering % #paces == 0 and entering // #paces <= 4 and layout.even(entering, #paces) or {} end
    return hv.opt.distribute { total = entering, time = paces }.counts
  end
  function q.held(kind, tp, share, alive)
    local list = {}
    for l = 1, 26 do list[l] = 5 * run(parameters[tp], l, l) + run(saved[tp], l, l) * share * alive end
    return list, room[kind]
  end
  function q.sync(stage, from, to)
    return 2 * (stage.dp - 1) / stage.dp * run(parameters[2], from, to) / stage.tp / slowest(stage)
  end
  function q.step(stage, from, to) return 2 * 39.286 * (to - from + 1) / 26 / stage.tp end
  function q.hop(stage, after) return stage.kinds[1].share * 2048 * 1024 / slowest(stage, after) end
  return q
end

local function test_metis(t)
  local q = metis_problem()
  local function stage(kind, share)
    return { kinds = { { kind = kind, share = share } }, dp = 8, tp = 1, times = q.times(kind, 1, share) }
  end
  local src = "Metis 1b37058, opt350 on 8 + 8"
  t.near("Metis, its equation on its 4th plan (V100 7 layers, A100 19, 16 micro-batches), ms",
    mixed.price(q, { stage("v", 1), stage("a", 1) }, { { 1, 7 }, { 8, 26 } }, 16), 2714.292788085938, 1e-9, src)
  t.near("its printed best is the first stage of its plan alone, layers 1 to 20 of 26, ms",
    mixed.price(q, { stage("a", 4) }, { { 1, 20 } }, 4), 2418.8400444335925, 1e-9, src)
  local whole = mixed.price(q, { stage("a", 4), stage("v", 4) }, { { 1, 20 }, { 21, 26 } }, 4)
  t.near("that plan with both stages, ms", whole, 2418.840044 + 3 * (699.71 - 588.367) + 699.71 + 0.08, 0.001,
    "its equation: V100 sets the pace; the sum, a hop")
  local best = mixed.search(q)[1]
  t.ok(("Metis, 8 A100 + 8 V100: %.2f ms by its equation (%d stages, %d micro-batches), theirs %.2f (2418.84 without "
    .. "its second stage) and at best 2714.29, in 0.99 s of CPU"):format(best.claim_s, #best.stages,
    best.micro_batches, whole), best.claim_s <= 2714.292788085938, src)
end

return {
  api = 1, id = "rivals-opt350-test", title = "Rivals' own inputs, OPT-350M", kind = "test",
  system = "none", reference = "none", summary = "Checks searches against what other planners found.",
  plan = function()
    return nil, "tests only"
  end,
  selftest = function(t)
    test_sailor(t)
    test_metis(t)
  end,
}
