-- Self-tests: the cut of a chain of layers into stages (section 3.5) beside all cuts, and the
-- shares of unequal pipelines (section 3.6).
local oracle = require "testing.oracle"
local pipeline = require "pipeline"
local search = require "search"

local CATALOGUE = "catalogue: amp"

--- The best cut of layers with these times for gas = `max_weight` + 1 micro-batches: layers of each
-- stage as text, and its time. tolls[l] is the time of the transfer behind layer l.
local function best_cut(times, parts, max_weight, tolls)
  local found = hv.opt.partition { n = #times, parts = parts, load = times, sum = 1,
    max = max_weight, toll = tolls }
  local counts = {}
  for s, range in ipairs(found.stages) do
    counts[s] = range[2] - range[1] + 1
  end
  return table.concat(counts, "|"), found.value
end

local function test_four_layers(t)
  local counts, time = best_cut({ 1, 2, 3, 4 }, 2, 3)
  t.equal("best cut of layers of 1 2 3 4 into 2 stages, gas 4, free transfers", counts, "3|1",
    CATALOGUE)
  t.near("its time, sum e + 3 max stage", time, 28, 1e-9, CATALOGUE)
  counts, time = best_cut({ 1, 2, 3, 4 }, 2, 3, { 0, 0, 5 })
  t.equal("best cut with a transfer of 5 behind layer 3", counts, "2|2", CATALOGUE)
  t.near("its time, sum e + 3 max stage + transfer", time, 31, 1e-9, CATALOGUE)
  local times = { {}, {} }
  for cut = 1, 3 do
    for k, tolls in ipairs { { 0, 0, 0 }, { 0, 0, 5 } } do
      local first = cut * (cut + 1) // 2
      times[k][cut] = 10 + tolls[cut] + 3 * math.max(first, 10 - first)
    end
  end
  t.equal("times of the cuts behind layers 1 2 3, free and with the transfer: each best is unique",
    table.concat(times[1], " ") .. "; " .. table.concat(times[2], " "), "37 31 28; 37 31 33",
    CATALOGUE)
end

--- Time of a cut given by the last layer of each stage.
local function cut_time(times, tolls, gas, ends)
  local sum, longest, from = 0, 0, 0
  for s, to in ipairs(ends) do
    local stage = 0
    for l = from + 1, to do
      stage = stage + times[l]
    end
    local toll = 0
    if s < #ends then
      toll = tolls[to]
    end
    sum = sum + stage + toll
    longest = math.max(longest, stage)
    from = to
  end
  return sum + (gas - 1) * longest
end

local function test_random_chains(t)
  local random = search.generator(7)
  local equal = true
  for _ = 1, 60 do
    local times, tolls = {}, {}
    local gas = random(12)
    local parts = 1 + random(3)
    for l = 1, 4 + random(5) do
      times[l] = random(9)
      tolls[l - 1] = random(12) - 1
    end
    local least = math.huge
    for _, ends in ipairs(oracle.cuts(#times, parts)) do
      least = math.min(least, cut_time(times, tolls, gas, ends))
    end
    local _, found = best_cut(times, parts, gas - 1, tolls)
    equal = equal and math.abs(least - found) < 1e-9
  end
  t.ok("60 random chains of 5 to 9 layers: the best cut has the least time of all cuts", equal,
    CATALOGUE .. ", oracle")
end

local function test_shares(t)
  local pipelines = { { cut = { sum = 4, max = 1 }, copies = { 1 } },
    { cut = { sum = 3, max = 2 }, copies = { 1 } } }
  t.near("time of 9 micro-batches dealt to pipelines of 3 + x and 1 + 2 y",
    pipeline.deal(pipelines, 9), 9, 0, "section 3.6, 8 splits by hand")
end

return function(t)
  test_four_layers(t)
  test_random_chains(t)
  test_shares(t)
end
