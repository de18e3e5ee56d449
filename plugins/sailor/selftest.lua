-- Self-tests against the authors' own planner on OPT-350M.
local opt350 = require "testing.opt350"
local stage_dp = require "stage_dp"

-- Coefficients of GB/s in log2 of the size in MB, by how many GPUs of a node take part.
local slow, two, four = { -0.0024414231124647644, 0.1408627339370467, 1.116822757126346 },
  { -0.007196511652909052, 0.2316852991952904, 2.1127137995063974 },
  { -0.03667895496478979, 0.4773282044079026, 4.5592610071684785 }
local volta, volta_two, volta_four = { 0.004408380557873316, 0.046579932153075286,
  0.8793574711743694 },
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
  if dp == 1 then
    return 0
  end
  local least, pool, tp = math.huge, nil, 4
  for _, r in ipairs(rows) do
    tp = math.min(tp, r.tp)
    if known[r.pool][r.tp] < least then
      least, pool = known[r.pool][r.tp], r.pool
    end
  end
  local bytes, sum = opt350.run(opt350.parameters[tp], first, last), 0
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
    layers = 26, batch = 1024, quota = { a, v }, region = { "", "" }, usd_per_s = { 0, 0 },
    goal = "time",
    depths = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
      24, 25, 26 },
    sizes = { 1, 2, 4, 8 }, speedup = 1.5, width = 12, budget = 2000, keep = 1,
    degrees = function() return { 1, 2, 4 } end,
    time = function(k, tp, micro_batch, from, to)
      local ms = opt350.pass_ms(names[k], tp, micro_batch, from, to)
      return ms and ms / 1e3
    end,
    fits = function(k, tp, micro_batch, from, to, stage, depth)
      local held = 6 * opt350.run(opt350.parameters[tp], from, to) + (tp == 1 and 2e9 or 3e9)
      return held + opt350.run(opt350.saved[tp], from, to) * micro_batch * (depth - stage
          + 1) <= room[k]
    end,
    hop = function(x, y, micro_batch)
      return send_s((x.pool == 1 and a_from or v_from)[x.tp][y.pool][y.tp],
        8388608 * micro_batch)
    end,
    sync = sync_s,
  }
end

--- Pools, its planner's own estimate and its simulator's throughput (iterations/s), its search in
-- s.
local sailor = { { 32, 96, 0.19012507658823194, 0.1700, 3.5 },
  { 80, 240, 0.36226889201262935, 0.3609, 8.9 },
  { 128, 384, 0.5257456999525578, 0.5229, 22.3 } }

local function test_sailor(t)
  for _, case in ipairs(sailor) do
    local best = stage_dp.search(problem(case[1], case[2]))[1]
    t.ok(("Sailor, %d A100 + %d V100: %.5f/s by its equation (depth %d, dp %d, micro-batch %d), theirs %.5f/s "
        .. "(%.4f/s in its simulator) in %.1f s"):format(case[1], case[2], 1 / best.claim_s,
          best.depth, best.dp,
          best.micro_batch, case[3], case[4], case[5]), 1 / best.claim_s >= case[3] * (1 - 1e-7),
      "Sailor cf2c8e3")
  end
end

return function(t)
  test_sailor(t)
end
