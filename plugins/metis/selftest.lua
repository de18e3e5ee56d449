-- Self-tests: the published groups, pipelines solved by hand, and the authors' planner on OPT-350M.
local device_groups = require "device_groups"
local formula = require "formula"
local numbers = require "numbers"
local opt350 = require "testing.opt350"
local search = require "search"
local stage_search = require "stage_search"

local SOURCE = "Metis 1b37058, opt350 on 8 + 8"
local MIB = 2 ^ 20
local GIB = 2 ^ 30

local function zero()
  return 0
end

local function check_groups(t)
  -- Groups of the published answers on 16 GPUs (variance 1, 4 blocks permuted).
  local answers = { "8 8", "4 4 4 4", "2 2 2 2 4 4", "4 4 2 2 2 2", "4 2 2 2 2 2 2",
    "4 4 1 1 2 1 1 1 1", "4 4 1 1 1 1 1 1 2", "2 2 4 4 2 2" }
  for _, answer in ipairs(answers) do
    local _, n_spaces = answer:gsub(" ", "")
    local is_listed = false
    for _, sizes in ipairs(device_groups.list(16, n_spaces + 1, 1, 4, 1000)) do
      is_listed = is_listed or table.concat(sizes, " ") == answer
    end
    t.ok("groups " .. answer .. " of a published answer are tried", is_listed, SOURCE)
  end
  t.near("lists of sizes of 16 GPUs in 6 stages, orders of 4 blocks",
    #device_groups.list(16, 6, 1, 4, 1000), 6, 0, "by hand")
end

--- 6 equal layers, 12 sequences, one GPU of kind 1 and one of kind 2, which takes three times as
-- long; each has room for so many layers.
local function two_gpu_problem(room)
  local p = { layers = 6, batch = 12, micro_batch_counts = { 1, 2, 3, 4, 6, 12 }, max_stages = 2,
    max_tp = 1, variance = 1, max_blocks = 4, max_orders = 99, budget = 99, keep = 1,
    per_micro_batch = 0, exchange = zero, update = zero, hop = zero, orders = { {}, {} } }
  for d = 1, 2 do
    p.orders[1][d] = { kind = d, node = d }
    p.orders[2][d] = { kind = 3 - d, node = 3 - d }
  end
  function p.sequence_time(kind)
    return kind == 1 and 1 or 3
  end
  function p.shares(sequences, sequence_times)
    return hv.opt.distribute { total = sequences, time = sequence_times }.counts
  end
  function p.layer_times(kind, _, share)
    local times = {}
    for layer = 1, 6 do
      times[layer] = share * p.sequence_time(kind)
    end
    return times
  end
  function p.memory()
    return { 1, 1, 1, 1, 1, 1 }, room
  end
  return p
end

local function check_two_gpus(t)
  local best = stage_search.search(two_gpu_problem(6))[1]
  t.equal("times 1 and 3 per layer, room for all layers: number of stages, shares of the batch",
    #best.stages .. ": " .. table.concat(best.stages[1].shares, "+"), "1: 9+3", "by hand")
  t.near("times 1 and 3 per layer, room for all layers: time of the best plan", best.claim_s, 54,
    1e-9, "by hand: 9 sequences x 6 layers")

  local problem = two_gpu_problem(4)
  function problem.update(stage, first, last)
    return stage.kinds[1].kind * (last - first + 1)
  end
  t.near("room for 4 layers each, optimizer updates of 1 and 2 per layer: time of the best plan",
    stage_search.search(problem)[1].claim_s, 80, 1e-9, "by hand: 76 + max(4 x 1, 2 x 2)")

  problem.update = zero
  t.near("room for 4 layers each, 2 stages of 4 + 2 layers, 12 micro-batches: "
      .. "time of the best plan",
    stage_search.search(problem)[1].claim_s, 76, 1e-9, "by hand: 11 x 6 + 4 + 6")

  -- 72 + 48 / B + B is least for 6 and 8 micro-batches; 8 does not divide the batch.
  problem.per_micro_batch = 1
  best = stage_search.search(problem)[1]
  t.equal("room for 4 layers each, 1 for loading each micro-batch: time, number of micro-batches",
    ("%g %d"):format(best.claim_s, best.micro_batches), "86 6",
    "by hand; the term: Metis 4b24046, cost_estimator.py")
end

--- Metis' constants on 8 A100 (kind "a") and 8 V100 (kind "v"), 4 GPUs per node, batch 128. As in
-- 1b37058: links of 200 and 100, in units of 2^20 elements of activations or bytes of gradients per
-- ms; the optimizer takes twice the time of the first profile it lists (A100, tensor degree 2,
-- micro-batch 2) and its parameters; 0.001 ms per micro-batch. Corrected here: the memory of a
-- replica follows its own type and the micro-batches it keeps.
local function opt350_problem()
  local room_bytes = { a = 40 * GIB, v = 16 * GIB }
  local link_rate = { a = 200, v = 100 }
  local a_first = {}
  local v_first = {}
  for d = 1, 16 do
    local node = (d + 3) // 4
    a_first[d] = { kind = d <= 8 and "a" or "v", node = node }
    v_first[d] = { kind = d <= 8 and "v" or "a", node = node }
  end
  local function slowest_link(...)
    local least = math.huge
    for _, stage in ipairs { ... } do
      for _, row in ipairs(stage.kinds) do
        least = math.min(least, link_rate[row.kind])
      end
    end
    return least * MIB
  end
  local p = { layers = 26, batch = 128, orders = { a_first, v_first },
    micro_batch_counts = { 1, 2, 4, 8, 16, 32, 64, 128 }, max_stages = 16, max_tp = 4,
    variance = 1, max_blocks = 4, max_orders = 400, budget = 4000, keep = 1,
    per_micro_batch = 0.001 }
  function p.sequence_time(kind, tp)
    return opt350.pass_ms(kind, tp, 1, 1, 26)
  end
  --- A share runs as passes of 4, 2 and 1 sequences, the micro-batches that were profiled.
  function p.layer_times(kind, tp, share)
    if share > 16 then
      return nil
    end
    local times = {}
    for layer = 1, 26 do
      local left = share
      times[layer] = 0
      for _, sequences in ipairs { 4, 2, 1 } do
        while left >= sequences do
          times[layer] = times[layer] + opt350.pass_ms(kind, tp, sequences, layer, layer)
          left = left - sequences
        end
      end
    end
    return times
  end
  function p.shares(sequences, sequence_times, same_kind)
    local n = #sequence_times
    if not same_kind then
      return hv.opt.distribute { total = sequences, time = sequence_times }.counts
    end
    if sequences % n == 0 and sequences // n <= 4 then
      return numbers.even(sequences, n)
    end
    return {}
  end
  function p.memory(kind, tp, share, in_flight)
    local held = {}
    for layer = 1, 26 do
      held[layer] = 5 * opt350.run(opt350.parameters[tp], layer, layer)
        + opt350.run(opt350.saved[tp], layer, layer) * share * in_flight
    end
    return held, room_bytes[kind]
  end
  function p.exchange(stage, first, last)
    local bytes = opt350.run(opt350.parameters[2], first, last)
    return 2 * (stage.dp - 1) / stage.dp * bytes / stage.tp / slowest_link(stage)
  end
  function p.update(stage, first, last)
    return 2 * 39.286 * (last - first + 1) / 26 / stage.tp
  end
  function p.hop(stage, next_stage)
    return stage.kinds[1].share * 2048 * 1024 / slowest_link(stage, next_stage)
  end
  return p
end

local function check_authors_planner(t)
  local problem = opt350_problem()
  local function stage(kind, share)
    return { kinds = { { kind = kind, share = share } }, dp = 8, tp = 1,
      times = problem.layer_times(kind, 1, share) }
  end
  t.near("Metis, its equation on its 4th plan (V100 7 layers, A100 19, 16 micro-batches), ms",
    formula.iteration(problem, { stage("v", 1), stage("a", 1) }, { { 1, 7 }, { 8, 26 } }, 16),
    2714.292788085938, 1e-9, SOURCE)
  t.near("Metis, the time it prints for its best plan is that of the first stage alone, "
      .. "layers 1 to 20 of 26, ms",
    formula.iteration(problem, { stage("a", 4) }, { { 1, 20 } }, 4), 2418.8400444335925, 1e-9,
    SOURCE)
  local whole_ms = formula.iteration(problem, { stage("a", 4), stage("v", 4) },
    { { 1, 20 }, { 21, 26 } }, 4)
  t.near("Metis, its best plan with both stages, ms", whole_ms,
    2418.840044 + 3 * (699.71 - 588.367) + 699.71 + 0.08, 0.001,
    "its equation: the V100 stage is the longest; sum of both stages and the hop")
  local best = stage_search.search(problem)[1]
  local text = "Metis, 8 A100 + 8 V100: %.2f ms by its equation (%d stages, %d micro-batches), "
    .. "theirs %.2f (2418.84 without its second stage) and at best 2714.29, in 0.99 s of CPU"
  t.ok(text:format(best.claim_s, #best.stages, best.micro_batches, whole_ms),
    best.claim_s <= 2714.292788085938, SOURCE)
end

--- A problem of 4 + 2 devices with drawn times and memory of 8 layers.
local function drawn_problem(random)
  local p = { layers = 8, batch = 12, micro_batch_counts = numbers.divisors(12), max_stages = 6,
    max_tp = 2, variance = 0.5, max_blocks = 4, max_orders = 99, budget = 1e9,
    per_micro_batch = random(), orders = { {}, {} } }
  for d = 1, 6 do
    p.orders[1][d] = { kind = d <= 4 and 1 or 2, node = d <= 4 and 1 or 2 }
    p.orders[2][d] = { kind = d <= 2 and 2 or 1, node = d <= 2 and 2 or 1 }
  end
  local times, held = { {}, {} }, {}
  for layer = 1, 8 do
    times[1][layer] = random(9)
    times[2][layer] = times[1][layer] * 3
    held[layer] = random(4)
  end
  local room = { 8 + random(12), 4 + random(8) }
  function p.layer_times(kind, tp, share)
    local list = {}
    for layer = 1, 8 do
      list[layer] = times[kind][layer] * share / tp * (tp == 1 and 1 or 1.2)
    end
    return list
  end
  function p.sequence_time(kind, tp)
    local sum = 0
    for _, time in ipairs(p.layer_times(kind, tp, 1)) do
      sum = sum + time
    end
    return sum
  end
  function p.shares(sequences, sequence_times)
    return hv.opt.distribute { total = sequences, time = sequence_times }.counts
  end
  function p.memory(kind, tp, share, in_flight)
    local list = {}
    for layer = 1, 8 do
      list[layer] = held[layer] * (1 + 0.1 * share * in_flight) / tp
    end
    return list, room[kind]
  end
  local exchange_time = random()
  function p.exchange(stage, first, last)
    return stage.dp > 1 and exchange_time * (last - first + 1) or 0
  end
  p.update = zero
  function p.hop()
    return exchange_time
  end
  return p
end

local function check_bounds(t)
  local random = search.generator(13)
  local equal, solved = true, 0
  for _ = 1, 25 do
    local p = drawn_problem(random)
    p.keep = 1e9 -- no case is left out by its bound
    local all = stage_search.search(p)
    p.keep = 1
    local best, cut = stage_search.search(p)
    if all[1] then
      solved = solved + 1
      equal = equal and best[1] and math.abs(best[1].claim_s / all[1].claim_s - 1) < 1e-9
    end
    equal = equal and cut.left_out == 0
  end
  t.ok(("25 random problems, %d with a plan: bounds leave out no better one"):format(solved),
    equal and solved > 15, "all cases solved")
end

local function check_cut(t)
  local p = drawn_problem(search.generator(13))
  p.keep = 1
  p.budget = 1
  local found, cut = stage_search.search(p)
  t.ok(("a budget of 1: %d of %d combinations are said to be left out"):format(cut.left_out,
    cut.cases), #found > 0 and cut.left_out > 0 and cut.bound <= found[1].claim_s, "property")
  local _, has_more = device_groups.list(16, 6, 1, 4, 5)
  local all, no_more = device_groups.list(16, 6, 1, 4, 6)
  t.ok("6 orders of groups, at most 5 and at most 6: are there more?",
    has_more and not no_more and #all == 6, "by hand")
end

return function(t)
  check_groups(t)
  check_two_gpus(t)
  check_authors_planner(t)
  check_bounds(t)
  check_cut(t)
end
