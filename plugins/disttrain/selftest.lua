-- Self-tests of DistTrain: the closed form of section 4, the deal and the order of section 5.
local gpu_split = require "gpu_split"
local iteration_time = require "iteration_time"
local micro_batch_order = require "micro_batch_order"
local sample_groups = require "sample_groups"
local search = require "search"

--- The loads of groups when samples go largest first to the least loaded group, with no limit of
-- samples per group.
local function loads_of(sizes, groups)
  local r = hv.opt.distribute { items = sizes, slots = groups, objective = "lpt" }
  local loads = {}
  for g = 1, groups do
    loads[g] = 0
  end
  for i, g in ipairs(r.counts) do
    loads[g] = loads[g] + sizes[i]
  end
  return loads
end

--- When an order of micro-batches ends on an encoder with these times, then on a backbone that
-- takes `interval` for each.
local function end_of(order, times, interval)
  local encoder_end, backbone_end = 0, 0
  for _, i in ipairs(order) do
    encoder_end = encoder_end + times[i]
    backbone_end = math.max(encoder_end, backbone_end) + interval
  end
  return backbone_end
end

--- 1 … n.
local function as_given(n)
  local order = {}
  for i = 1, n do
    order[i] = i
  end
  return order
end

--- The order of section 5.2 where it ends earlier, else the given one.
local function kept_order(times, interval, tail)
  local given, new = as_given(#times), micro_batch_order.of(times, interval, tail)
  if end_of(new, times, interval) < end_of(given, times, interval) then
    return new
  end
  return given
end

local function check_split(t)
  local one = { me = 1, lm = 1, mg = 1 }
  local gpus = gpu_split.in_proportion(100, { me = 10, lm = 80, mg = 10 }, one)
  t.equal("100 GPUs for encoder, backbone and generator of work 10, 80 and 10",
    ("%d %d %d"):format(gpus.me, gpus.lm, gpus.mg), "10 80 10", "section 4 by hand")
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
  local loads = loads_of({ 9, 7, 6, 5, 5, 4, 4 }, 2)
  local larger, smaller = math.max(loads[1], loads[2]), math.min(loads[1], loads[2])
  t.near("bound of largest first for m groups, (4/3 - 1/(3m)) of the optimum, here of 20",
    (4 / 3 - 1 / 6) * 20, 70 / 3, 1e-9, "by hand")
  t.ok("largest first on 9 7 6 5 5 4 4, 2 groups: within the bound", larger <= 70 / 3, "by hand")
  t.near("largest first on 9 7 6 5 5 4 4: the larger load", larger, 22, 0,
    "by hand; the optimum is 20")
  t.near("largest first on 9 7 6 5 5 4 4: the smaller load", smaller, 18, 0, "by hand")
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
  t.near("encoder times 4 1 2, backbone 3: end in the given order", end_of({ 1, 2, 3 }, times, 3),
    13, 0, "by hand")
  t.near("encoder times 4 1 2, backbone 3: end in the new order", end_of(order, times, 3), 11, 0,
    "by hand")
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
    local order = kept_order(times, 5, 2)
    local groups, before, now = sample_groups.by_size(times, 2)
    whole = whole and each_once(8, { order }) and each_once(8, groups)
    lighter = lighter and now <= before
    sooner = sooner and end_of(order, times, 5) <= end_of(as_given(8), times, 5)
  end
  t.ok("60 random batches: every sample is in the order once, and in the groups once", whole,
    "property")
  t.ok("60 random batches: the order that is kept ends no later than the given one", sooner,
    "property")
  t.ok("60 random batches: no group is heavier than the heaviest one in turns", lighter, "property")
end

return function(t)
  check_split(t)
  check_groups(t)
  check_order(t)
  check_drawn(t)
end
