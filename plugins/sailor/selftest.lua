-- Self-tests: the search of stages beside enumeration and by hand, and the authors' planner on
-- OPT-350M.
local opt350 = require "testing.opt350"
local search = require "search"
local stage_dp = require "stage_dp"

local GIB = 2 ^ 30

local function always()
  return true
end

local function zero()
  return 0
end

local function degree_one()
  return { 1 }
end

--- Seconds of one staffing of all stages: rows of {pool, n}, with time and hop.
local function staffing_s(problem, case, rows)
  local n_layers = problem.layers // case.depth
  local micro_batches = math.ceil(problem.batch / (case.size * case.dp))
  local longest = 0
  local sum = 0
  local sync = 0
  for i, row in ipairs(rows) do
    local hop_after = rows[i + 1] and rows[i + 1].hop or 0
    longest = math.max(longest, row.time + row.hop + hop_after)
    sum = sum + row.time + 2 * row.hop
    sync = math.max(sync, problem.sync(row, (i - 1) * n_layers + 1, i * n_layers, case.dp))
  end
  return (micro_batches - 1) * longest + sum + sync
end

--- A stage with so many replicas on each of two pools, behind the stage `before` (or nil).
local function stage_row(problem, case, counts, before)
  local n_layers = problem.layers // case.depth
  local row = { time = 0, hop = 0 }
  for pool, n in ipairs(counts) do
    if n > 0 then
      row[#row + 1] = { pool = pool, tp = 1, n = n }
      row.time = math.max(row.time, problem.time(pool, 1, case.size, 1, n_layers))
    end
  end
  for _, from in ipairs(before or {}) do
    for _, to in ipairs(row) do
      row.hop = math.max(row.hop, problem.hop(from, to))
    end
  end
  return row
end

--- The least seconds over all staffings of even stages by enumeration: every number of replicas on
-- each of two pools, tensor degree 1. `problem` as stage_dp.search takes it.
local function least_by_enumeration(problem)
  local best = math.huge
  local function extend(case, s, rows, left)
    if s > case.depth then
      best = math.min(best, staffing_s(problem, case, rows))
      return
    end
    for count = 0, case.dp do
      local rest = { left[1] - count, left[2] - (case.dp - count) }
      rows[s] = stage_row(problem, case, { count, case.dp - count }, rows[s - 1])
      if rest[1] >= 0 and rest[2] >= 0 then
        extend(case, s + 1, rows, rest)
      end
      rows[s] = nil
    end
  end
  for _, depth in ipairs(problem.depths) do
    for _, size in ipairs(problem.sizes) do
      for dp = 1, problem.quota[1] + problem.quota[2] do
        extend({ depth = depth, size = size, dp = dp }, 1, {}, problem.quota)
      end
    end
  end
  return best
end

--- Two pools of random size, speed and links.
local function random_problem(random)
  local speed = { random(9), random(9) }
  local ring = { random(9), random(20) }
  local links = { random(4), random(9), random(4) }
  local p = { layers = 6, batch = 8 + random(8), quota = { random(7), random(7) },
    region = { "", "" }, usd_per_s = { 0, 0 }, depths = { 1, 2, 3 }, sizes = { 1, 2 },
    goal = "time", speedup = 1.5, width = 32, budget = 1000, keep = 1,
    degrees = degree_one, fits = always }
  function p.time(pool, _, size, first, last)
    return (last - first + 1) * (size + 0.5) * speed[pool]
  end
  function p.hop(from, to)
    return links[from.pool + to.pool - 1]
  end
  function p.sync(rows, first, last, dp)
    return (dp - 1) * (last - first + 1) * math.max(ring[rows[1].pool], ring[rows[#rows].pool])
  end
  return p
end

local function check_enumeration(t)
  local random = search.generator(5)
  local n_equal = 0
  for _ = 1, 40 do
    local problem = random_problem(random)
    local found = stage_dp.search(problem)[1]
    if found and math.abs(found.claim_s - least_by_enumeration(problem)) < 1e-9 then
      n_equal = n_equal + 1
    end
  end
  t.near("random pools, of 40, on which the search finds the least time of all staffings", n_equal,
    40, 0, "enumeration")
end

--- Pools of one device that takes 1 s per layer; messages and all-reduce take no time.
local function unit_problem(keys)
  local p = { sizes = { 1 }, speedup = 1.5, width = 32, budget = 9, keep = 1,
    degrees = degree_one, fits = always, hop = zero, sync = zero }
  for key, value in pairs(keys) do
    p[key] = value
  end
  function p.time(_, _, _, first, last)
    return last - first + 1
  end
  return p
end

local function check_egress(t)
  -- One layer per device. The second stage runs in the other region, or on the dearer device in the
  -- region of the first stage.
  local p = unit_problem { layers = 2, batch = 4, quota = { 1, 1, 1 }, region = { "x", "y", "x" },
    usd_per_s = { 1, 1, 1.5 }, depths = { 2 }, goal = "cost" }
  t.near("two stages, egress costs nothing: USD of 5 s on the two cheapest devices",
    stage_dp.search(p)[1].usd, 10, 1e-9, "by hand: 5 x 2")
  function p.fare(a, b)
    return p.region[a] == p.region[b] and 0 or 0.5
  end
  function p.hop_bytes()
    return 1
  end
  t.near("two stages, egress at 0.5 USD per byte: USD when both stay in one region",
    stage_dp.search(p)[1].usd, 12.5, 1e-9,
    "by hand: 5 x 2.5 against 10 + 4 micro-batches x 2 ways x 0.5")

  p = unit_problem { layers = 2, batch = 2, quota = { 1, 1, 0 }, region = { "x", "x", "x" },
    usd_per_s = { 1, 0.1, 9 }, depths = { 1 }, goal = "time" }
  function p.fare(a, b)
    return a == b and 0 or 0.5
  end
  function p.hop_bytes()
    return 1
  end
  function p.sync_bytes()
    return 3
  end
  t.near("two replicas in two zones: USD for the devices and for the ring of the all-reduce",
    stage_dp.search(p)[1].usd, 5.2, 1e-9,
    "by hand: 2 s x 1.1 + 2 crossings x 2 (1 - 1/2) x 3 bytes x 0.5")
end

-- Coefficients of the bandwidth in GB/s, a polynomial of degree 2 in log2 of the size in MB, by how
-- many GPUs of a node take part.
local a_one = { -0.0024414231124647644, 0.1408627339370467, 1.116822757126346 }
local a_two = { -0.007196511652909052, 0.2316852991952904, 2.1127137995063974 }
local a_four = { -0.03667895496478979, 0.4773282044079026, 4.5592610071684785 }
local v_one = { 0.004408380557873316, 0.046579932153075286, 0.8793574711743694 }
local v_two = { -0.011532109309884275, 0.10561766868954804, 1.7758034087071715 }
local v_four = { -0.008450897567554275, 0.32345407867588116, 3.446937175278422 }
-- Links from an A100 or a V100 pool by its degree, to a pool (1 A100, 2 V100) by that one's degree.
local from_a = {
  { { a_one, a_one, nil, a_one }, { v_one, a_one, nil, a_one } },
  { { a_one, a_two, nil, a_two }, { v_one, v_two, nil, v_two } },
  nil,
  { { a_one, a_two, nil, a_four }, { v_one, v_two, nil, v_four } },
}
local from_v = {
  { { v_one, v_one, nil, v_one }, { v_one, v_one, nil, v_one } },
  { { a_one, v_two, nil, v_two }, { v_one, v_two, nil, v_two } },
  nil,
  { { a_one, a_two, nil, v_four }, { v_one, v_two, nil, v_four } },
}
-- GB/s of a pool by degree, by which it chooses the slowest pool of a ring.
local ring_rate = {
  { 2.420367713517156, 3.674915935759112, nil, 6.03591305104673 },
  { 1.7196406294376426, 2.9035718843939266, nil, 5.787468328312377 },
}

local function link_between(from_pool, from_tp, to_pool, to_tp)
  local from = from_pool == 1 and from_a or from_v
  return from[from_tp][to_pool][to_tp]
end

local function message_s(link, bytes)
  local log_mb = math.log(bytes / 1e6, 2)
  return bytes * 1e-9 / ((link[1] * log_mb + link[2]) * log_mb + link[3])
end

--- Seconds of rings in buckets of 500 MB on the links of the slowest pool, with the least degree.
local function sync_s(rows, first, last, dp)
  if dp == 1 then
    return 0
  end
  local least_rate = math.huge
  local pool
  local tp = 4
  for _, row in ipairs(rows) do
    tp = math.min(tp, row.tp)
    if ring_rate[row.pool][row.tp] < least_rate then
      least_rate = ring_rate[row.pool][row.tp]
      pool = row.pool
    end
  end
  local link = link_between(pool, tp, pool, tp)
  local bytes = opt350.run(opt350.parameters[tp], first, last)
  local seconds = 0
  while bytes > 0 do
    local bucket = math.min(bytes, 500e6)
    seconds = seconds + 2 * (dp - 1) * message_s(link, bucket / dp)
    bytes = bytes - bucket
  end
  return seconds
end

--- Sailor's problem on so many A100-40 and V100-16, 4 per node, with its own prices.
local function opt350_problem(n_a100, n_v100)
  local names = { "a", "v" }
  local room_bytes = { 40 * GIB, 16 * GIB }
  local p = { layers = 26, batch = 1024, quota = { n_a100, n_v100 }, region = { "", "" },
    usd_per_s = { 0, 0 }, goal = "time", depths = {}, sizes = { 1, 2, 4, 8 }, speedup = 1.5,
    width = 12, budget = 2000, keep = 1, sync = sync_s }
  for depth = 1, 26 do
    p.depths[depth] = depth
  end
  function p.degrees()
    return { 1, 2, 4 }
  end
  function p.time(pool, tp, micro_batch, first, last)
    local ms = opt350.pass_ms(names[pool], tp, micro_batch, first, last)
    return ms and ms / 1e3
  end
  function p.fits(pool, tp, micro_batch, first, last, stage, depth)
    local fixed_bytes = 6 * opt350.run(opt350.parameters[tp], first, last)
      + (tp == 1 and 2e9 or 3e9)
    local saved_bytes = opt350.run(opt350.saved[tp], first, last) * micro_batch
      * (depth - stage + 1)
    return fixed_bytes + saved_bytes <= room_bytes[pool]
  end
  function p.hop(from, to, micro_batch)
    return message_s(link_between(from.pool, from.tp, to.pool, to.tp), 8388608 * micro_batch)
  end
  return p
end

-- Devices; iterations per second by its planner's own estimate and by its simulator; seconds of its
-- search.
local published = {
  { n_a100 = 32, n_v100 = 96, claimed = 0.19012507658823194, simulated = 0.1700, search_s = 3.5 },
  { n_a100 = 80, n_v100 = 240, claimed = 0.36226889201262935, simulated = 0.3609, search_s = 8.9 },
  { n_a100 = 128, n_v100 = 384, claimed = 0.5257456999525578, simulated = 0.5229,
    search_s = 22.3 },
}

local function check_authors_planner(t)
  local text = "Sailor, %d A100 + %d V100: %.5f/s by its equation (depth %d, dp %d, "
    .. "micro-batch %d), theirs %.5f/s (%.4f/s in its simulator) in %.1f s"
  for _, case in ipairs(published) do
    local best = stage_dp.search(opt350_problem(case.n_a100, case.n_v100))[1]
    local per_s = 1 / best.claim_s
    t.ok(text:format(case.n_a100, case.n_v100, per_s, best.depth, best.dp, best.micro_batch,
      case.claimed, case.simulated, case.search_s), per_s >= case.claimed * (1 - 1e-7),
      "Sailor cf2c8e3")
  end
end

return function(t)
  check_enumeration(t)
  check_egress(t)
  check_authors_planner(t)
end
