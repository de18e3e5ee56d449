-- Self-tests of DynaPipe: the catalogue's five sequences, 200 random batches and 200 random
-- divisions against enumeration, and plans through the judge.
local batches = require "batches"
local oracle = require "testing.oracle"
local plain = require "testing.plain"
local rows = require "testing.rows"
local search = require "search"

local FROM = "catalogue: dynapipe; Jiang et al. 2024"

--- Time 1 + n · longest of a run, without padding.
local function time_of(lengths)
  return function(from, to)
    return 1 + (to - from + 1) * math.max(lengths[from], lengths[to])
  end
end

local function check_catalogue(t)
  local lengths = { 8, 4, 4, 2, 2 }
  local time = time_of(lengths)
  local found = batches.solve(5, 3, 1, time)
  local runs = {}
  for r, run in ipairs(found.runs) do
    runs[r] = run[1] .. "-" .. run[2]
  end
  t.equal("micro-batches", table.concat(runs, " "), "1-1 2-3 4-5", FROM)
  t.near("lengths 8 4 4 2 2 on three stages", found.value, 41, 1e-9, FROM)
  t.near("longest", math.max(table.unpack(found.times)), 9, 0, FROM)
  local alone = 0
  for i = 1, 5 do
    alone = alone + time(i, i)
  end
  t.near("every sequence alone", batches.value(3, 1, time(1, 1), alone), 43, 0, FROM)
  t.near("all sequences together", batches.value(3, 1, time(1, 5), time(1, 5)), 123, 0, FROM)
end

--- A random batch, longest sequences first, often with a limit of padded tokens.
local function random_batch()
  local case = { lengths = {}, stages = hv.random(5), replicas = hv.random(3),
    most = hv.random(3) == 1 and 10 + hv.random(30) or math.huge, c0 = hv.random(9) }
  for l = 1, 1 + hv.random(7) do
    case.lengths[l] = hv.random(10)
  end
  table.sort(case.lengths, function(a, b) return a > b end)
  return case
end

--- Time of a run of a random batch; nil above its limit.
local function run_time(case, from, to)
  local work = (to - from + 1) * case.lengths[from]
  return work <= case.most and case.c0 + work + work * case.lengths[from] / 8 or nil
end

--- The least (c - 1) longest + sum / replicas over all cuts.
local function least_of_cuts(case)
  local best = math.huge
  for parts = 1, #case.lengths do
    for _, cut in ipairs(oracle.cuts(#case.lengths, parts)) do
      local sum, longest, first = 0, 0, 1
      for _, last in ipairs(cut) do
        local own = run_time(case, first, last) or math.huge
        sum, longest, first = sum + own, math.max(longest, own), last + 1
      end
      best = math.min(best, (case.stages - 1) * longest + sum / case.replicas)
    end
  end
  return best
end

local function check_batches(t)
  local found = oracle.drawn(200, random_batch, function(case)
    local r = batches.solve(#case.lengths, case.stages, case.replicas,
      function(from, to) return run_time(case, from, to) end)
    return r and r.value
  end, least_of_cuts)
  t.equal("200 random batches against enumeration [D]", found.optimal, 200, FROM)
end

--- The largest sum of a division of all times.
local function largest(times, division, k)
  local sums, most = {}, 0
  for i, part in ipairs(division) do
    sums[part] = (sums[part] or 0) + times[i]
  end
  for part = 1, k do
    most = math.max(most, sums[part] or 0)
  end
  return most
end

--- Random times and a number of parts.
local function random_division()
  local case = { k = 1 + hv.random(3), times = {} }
  for j = 1, 2 + hv.random(5) do
    case.times[j] = hv.random(40)
  end
  return case
end

--- The least largest sum, by all divisions.
local function least_of_divisions(case)
  local lists, own, best = {}, {}, math.huge
  for part = 1, case.k do
    own[part] = part
  end
  for i in ipairs(case.times) do
    lists[i] = own
  end
  for division in search.product(lists) do
    best = math.min(best, largest(case.times, division, case.k))
  end
  return best
end

local function check_division(t)
  local parts, most = batches.divide({ 8, 7, 6, 5, 4 }, 2)
  t.equal("differencing of 8 7 6 5 4", most, 16, "Karmarkar and Karp 1982")
  t.equal("all are in one part", #parts[1] + #parts[2], 5, "Karmarkar and Karp 1982")
  local found = oracle.drawn(200, random_division, function(case)
    local _, sum = batches.divide(case.times, case.k)
    return sum
  end, least_of_divisions)
  t.ok(("no division is better than the best of all [D]: %d of 200 are equal, mean gap %.2f %%")
    :format(found.optimal, 100 * found.mean), #found.wrong == 0, FROM)
end

local function check_orders(t)
  local texts = {}
  for i, order in ipairs(batches.orders({ 1, 2, 3, 4, 5, 6 }, { 1, 9, 8, 5, 4, 2 })) do
    texts[i] = table.concat(order, "")
  end
  t.equal("orders of three clusters, and rising", table.concat(texts, " "),
    "234561 236145 452361 456123 612345 614523 165432", FROM)
end

--- Two layers on two devices that take 1/8 ms for a token forward and 1/4 ms backward; sequences of
-- 32, 16, 8 and 8 tokens.
local function three_lengths()
  local inputs = plain.measured { nodes = 1, devices = 2, layers = 2, batch = 4, sequence = 32,
    pieces = { expert_ms_per_token = { P = { 1 / 8, 1 / 4 } }, backward_ms = { P = 0 },
      experts = 1, dispatch_bytes_per_token = 0, parameter_bytes = 0, activation_bytes = 0,
      output_bytes = 0 } }
  inputs.job.sequence_lengths = { { tokens = 32, frac = 0.25 }, { tokens = 16, frac = 0.25 },
    { tokens = 8, frac = 0.5 } }
  return inputs
end

local function check_lengths(t)
  local list = { { sequences = 1, tokens = 32 }, { sequences = 1, tokens = 16 },
    { sequences = 2, tokens = 16 } }
  t.with(three_lengths(), function(ctx)
    local function judged_ms(order, in_flight)
      local stages, runs = {}, {}
      for s = 1, 2 do
        stages[s] = { devices = ctx.cluster:address { s }, layers = { s - 1, s },
          in_flight = in_flight }
      end
      for i, run in ipairs(order) do
        runs[i] = list[run]
      end
      return plain.ms { micro_batch = 1, schedule = { name = "dynapipe" },
        replicas = { { micro_batches = runs, stages = stages } } }
    end
    -- passes of 4 + 8, 2 + 4 and 2 + 4 ms. The second stage is busy from 4 to 28 without a gap, and
    -- the first one ends the last backward pass at 28 + 4
    local orders = batches.orders({ 1, 2, 3 }, { 12, 6, 6 })
    t.near("three lengths on two stages by the judge [D]", judged_ms(orders[1]), 32, 1e-9, FROM)
    -- two alive: the third forward pass waits for the first backward pass, 16 to 24, ending at 26;
    -- the first stage is then busy until 30, the second until 32, and the last pass back takes 4
    t.near("two of them in flight by the judge [D]", judged_ms(orders[1], 2), 36, 1e-9, FROM)
    -- rising: forward passes until 8; the second stage ends its backward passes at 8, 14 and 26,
    -- and the first one runs the last of 8 from there
    t.near("rising lengths by the judge [D]", judged_ms(orders[7]), 34, 1e-9, FROM)
    -- the longest sequence takes 12 ms in each of two layers, wherever they are
    t.near("the strategy's plan of three lengths [D]", hv.strategy("dynapipe"):eval().iteration_s
      * 1e3, 24, 1e-9, FROM)
  end)
end

local function check_judge(t)
  -- layers of 1 + 2 ms per sequence on three stages: the formula is exact where all are equal
  local inputs = plain.measured { nodes = 1, devices = 3, layers = 3, forward_ms = 1,
    backward_ms = 2, parameter_bytes = 1e3, batch = 3 }
  t.with(inputs, function(ctx)
    local function run(list)
      local stages = {}
      for s = 1, 3 do
        stages[s] = { devices = ctx.cluster:address { s }, layers = { s - 1, s } }
      end
      return plain.ms { micro_batch = 1, schedule = { name = "dynapipe" },
        replicas = { { micro_batches = list, stages = stages } } }
    end
    local one = { sequences = 1 }
    t.near("three stages by the judge [D]", run { one, one, one }, 2 * 3 + 3 * 3, 1e-6, FROM)
    t.near("all in one micro-batch by the judge [D]", run { { sequences = 3 } }, 2 * 9 + 9, 1e-6,
      FROM)
  end)
  t.with(inputs, function()
    local made = assert(hv.strategy "dynapipe")
    t.ok("the strategy's own plan runs", #made:eval().violations == 0, FROM)
  end)
end

return function(t)
  check_catalogue(t)
  check_batches(t)
  check_division(t)
  check_orders(t)
  check_lengths(t)
  check_judge(t)
  rows.search(t, plain.pipelined())
end
