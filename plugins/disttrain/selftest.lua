-- Self-tests of DistTrain: the closed form of section 4, the deal and the order of section 5.
local gpu_split = require "gpu_split"
local iteration_time = require "iteration_time"
local micro_batch_order = require "micro_batch_order"
local micro_batches = require "micro_batches"
local sample_groups = require "sample_groups"
local search = require "search"

--- 1 … n.
local function as_given(n)
  local order = {}
  for i = 1, n do
    order[i] = i
  end
  return order
end

local function check_split(t)
  local one = { me = 1, lm = 1, mg = 1 }
  local work = { me = 10, lm = 80, mg = 10 }
  local gpus = gpu_split.closed_form(100, work)
  t.equal("100 GPUs for encoder, backbone and generator of work 10, 80 and 10",
    ("%g %g %g"):format(gpus.me, gpus.lm, gpus.mg), "10 80 10", "section 4 by hand")
  t.equal("the same, stages of 10 GPUs: the stages of the backbone that are tried",
    table.concat(gpu_split.depths(100, work, 10, 10), " "), "1 2 4 7 8 9 10",
    "8 by the closed form, its neighbours, powers of two, the largest")
  local sides = gpu_split.sides(20, work, 2, 100)
  t.equal("the 20 GPUs beside them, in tensor groups of two", ("%d %d"):format(sides.me, sides.mg),
    "10 10", "by hand: equal work")
  sides = gpu_split.sides(20, { me = 30, lm = 80, mg = 10 }, 1, 12)
  t.equal("work 30 and 10, no more than one for each of 12 samples",
    ("%d %d"):format(sides.me, sides.mg), "12 8", "by hand: 15 and 5 without that")
  local q = { C = { me = 10, lm = 80, mg = 10 }, tp = one, gpus = gpus, depth = 80, dp = 1, m = 1,
    batch = 2 }
  local _, steady_s = iteration_time.of(q)
  t.near("steady time of a micro-batch on 10, 80 and 10 GPUs, s", steady_s, 1, 1e-9,
    "section 4 by hand")
  q.gpus = { me = 100 / 3, lm = 100 / 3, mg = 100 / 3 }
  q.depth = 100 / 3
  _, steady_s = iteration_time.of(q)
  t.near("steady time of a micro-batch on a third of the GPUs each, s", steady_s, 2.4, 1e-9,
    "section 4 by hand: 80 / 33.3")
end

local function check_groups(t)
  local dealt, _, larger = sample_groups.by_size({ 9, 7, 6, 5, 5, 4, 4 }, 2)
  t.equal("largest first on 9 7 6 5 5 4 4: samples of the groups",
    #dealt[1] .. " " .. #dealt[2], "4 3", "by hand")
  t.near("bound of largest first for m groups, (4/3 - 1/(3m)) of the optimum, here of 20",
    (4 / 3 - 1 / 6) * 20, 70 / 3, 1e-9, "by hand")
  t.ok("largest first on 9 7 6 5 5 4 4, 2 groups: within the bound", larger <= 70 / 3, "by hand")
  t.near("largest first on 9 7 6 5 5 4 4: the larger load", larger, 22, 0,
    "by hand; the optimum is 20")
  local groups, in_turns, now = sample_groups.by_size({ 9, 1, 8, 2, 7, 3 }, 2)
  t.equal("9 1 8 2 7 3 in two groups of three: largest load in turns, by size, and the groups",
    ("%d %d: %s | %s"):format(in_turns, now, table.concat(groups[1], " "),
      table.concat(groups[2], " ")), "24 16: 1 4 6 | 2 3 5", "section 5.1 by hand")
end

local function check_order(t)
  local times = { 4, 1, 2 }
  local order = micro_batch_order.of(times, 3, 1)
  t.equal("encoder times 4 1 2, backbone 3: order", table.concat(order, " "), "2 1 3",
    "section 5.2 by hand")
  t.near("encoder times 4 1 2, backbone 3: end in the given order",
    micro_batch_order.end_of({ 1, 2, 3 }, times, 3), 13, 0, "by hand")
  t.near("encoder times 4 1 2, backbone 3: end in the new order",
    micro_batch_order.end_of(order, times, 3), 11, 0, "by hand")
end

--- Is every number from 1 to n once in the lists?
local function each_once(n, lists)
  local seen, count = {}, 0
  for _, list in ipairs(lists) do
    for _, i in ipairs(list) do
      seen[i] = true
      count = count + 1
    end
  end
  return #seen == n and count == n
end

local function check_drawn(t)
  local random = search.generator(11)
  local whole, sooner, lighter = true, true, true
  for _ = 1, 60 do
    local times = {}
    for i = 1, 8 do
      times[i] = random(9)
    end
    local order = micro_batch_order.kept(times, 5, 2)
    local groups, before, now = sample_groups.by_size(times, 2)
    whole = whole and each_once(8, { order }) and each_once(8, groups)
    lighter = lighter and now <= before
    sooner = sooner and micro_batch_order.end_of(order, times, 5)
      <= micro_batch_order.end_of(as_given(8), times, 5)
  end
  t.ok("60 random batches: every sample is in the order once, and in the groups once", whole,
    "property")
  t.ok("60 random batches: the order that is kept ends no later than the given one", sooner,
    "property")
  t.ok("60 random batches: no group is heavier than the heaviest one in turns", lighter, "property")
end

--- When a list of micro-batches ends: the encoder takes a second for each token.
local function end_of_list(list, interval)
  local times = {}
  for i, micro_batch in ipairs(list) do
    times[i] = micro_batch.tokens
  end
  return micro_batch_order.end_of(as_given(#times), times, interval)
end

local function check_lists(t)
  local random = search.generator(3)
  local sooner, tokens_kept = true, true
  for seed = 1, 40 do
    local q = { lengths = {}, batch = 24, dp = 2, m = 1, seed = seed, depth = 1 + random(4),
      interval = 0.5 + random() }
    for i = 1, 4 do
      q.lengths[i] = { tokens = 100 * random(9), frac = 0.25 }
    end
    local given, ordered = micro_batches.lists("alike", q)[1],
      micro_batches.lists("alike ordered", q)[1]
    local sum = 0
    for i, micro_batch in ipairs(given) do
      sum = sum + micro_batch.tokens - ordered[i].tokens
    end
    tokens_kept = tokens_kept and sum == 0 and #given == #ordered
    local mean = 0
    for _, micro_batch in ipairs(given) do
      mean = mean + micro_batch.tokens / #given
    end
    sooner = sooner and end_of_list(ordered, mean * q.interval)
      <= end_of_list(given, mean * q.interval) * (1 + 1e-12)
  end
  t.ok("40 batches of drawn lengths: a plan's micro-batches in order end no later than as given",
    sooner, "property")
  t.ok("40 batches of drawn lengths: the order keeps all tokens", tokens_kept, "property")
end

return function(t)
  check_split(t)
  check_groups(t)
  check_order(t)
  check_drawn(t)
  check_lists(t)
end
