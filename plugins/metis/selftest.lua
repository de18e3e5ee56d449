-- Self-tests against the authors' own planner on OPT-350M.
local numbers = require "numbers"
local opt350 = require "testing.opt350"
local stage_search = require "stage_search"

--- Metis' problem on 8 A100 and 8 V100, 4 per node, batch 128 (1b37058 by its constants: twice the
-- optimizer of the first profile it lists, A100 tp 2 bs 2, with its parameters; links of 200 and
-- 100, in 2^20 bytes per ms and elements of activations; 0.001 ms per micro-batch). Mended:
-- replicas' memory with what is alive, by their own type.
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
      for _, k in ipairs(stage.kinds) do
        least = math.min(least, rate[k.kind])
      end
    end
    return least * 2 ^ 20
  end
  local q = { layers = 26, batch = 128, orders = { a, v }, counts = { 1, 2, 4, 8, 16, 32, 64, 128 },
    stages = 16,
    variance = 1, length = 4, most = 400, max_tp = 4, budget = 4000, keep = 1, every = 0.001 }
  function q.pace(kind, tp)
    return opt350.pass_ms(kind, tp, 1, 1, 26)
  end
  -- a share is run as powers of two up to 4, as far as they were profiled
  function q.times(kind, tp, share)
    local list = {}
    for l = 1, 26 do
      local left = share
      list[l] = 0
      for _, bs in ipairs { 4, 2, 1 } do
        while left >= bs do
          local ms = opt350.pass_ms(kind, tp, bs, l, l)
          list[l], left = list[l] + ms, left - bs
        end
      end
    end
    return share <= 16 and list or nil
  end
  function q.split(entering, paces, same)
    if same then
      return entering % #paces == 0 and entering // #paces <= 4 and numbers.even(entering, #paces)
        or {}
    end
    return hv.opt.distribute { total = entering, time = paces }.counts
  end
  function q.held(kind, tp, share, alive)
    local list = {}
    for l = 1, 26 do
      list[l] = 5 * opt350.run(opt350.parameters[tp], l, l) + opt350.run(opt350.saved[tp], l,
        l) * share * alive
    end
    return list, room[kind]
  end
  function q.sync(stage, from, to)
    return 2 * (stage.dp - 1) / stage.dp * opt350.run(opt350.parameters[2], from,
      to) / stage.tp / slowest(stage)
  end
  function q.step(stage, from, to)
    return 2 * 39.286 * (to - from + 1) / 26 / stage.tp
  end
  function q.hop(stage, after)
    return stage.kinds[1].share * 2048 * 1024 / slowest(stage, after)
  end
  return q
end

local function test_metis(t)
  local q = metis_problem()
  local function stage(kind, share)
    return { kinds = { { kind = kind, share = share } }, dp = 8, tp = 1,
      times = q.times(kind, 1, share) }
  end
  local src = "Metis 1b37058, opt350 on 8 + 8"
  t.near("Metis, its equation on its 4th plan (V100 7 layers, A100 19, 16 micro-batches), ms",
    stage_search.price(q, { stage("v", 1), stage("a", 1) }, { { 1, 7 }, { 8, 26 } }, 16),
    2714.292788085938, 1e-9, src)
  t.near("its printed best is the first stage of its plan alone, layers 1 to 20 of 26, ms",
    stage_search.price(q, { stage("a", 4) }, { { 1, 20 } }, 4), 2418.8400444335925, 1e-9, src)
  local whole = stage_search.price(q, { stage("a", 4), stage("v", 4) }, { { 1, 20 }, { 21, 26 } },
    4)
  t.near("that plan with both stages, ms", whole, 2418.840044 + 3 * (699.71 - 588.367) + 699.71
      + 0.08, 0.001,
    "its equation: V100 sets the pace; the sum, a hop")
  local best = stage_search.search(q)[1]
  t.ok(("Metis, 8 A100 + 8 V100: %.2f ms by its equation (%d stages, %d micro-batches), theirs %.2f (2418.84 without "
      .. "its second stage) and at best 2714.29, in 0.99 s of CPU"):format(best.claim_s,
        #best.stages,
        best.micro_batches, whole), best.claim_s <= 2714.292788085938, src)
end

return function(t)
  test_metis(t)
end
