-- Self-tests of mCAP: the catalogue's case by the cut and by the judge, and random chains against
-- exhaustive enumeration.
local claims = require "claims"
local least_peak = require "least_peak"
local oracle = require "testing.oracle"
local plain = require "testing.plain"
local rows = require "testing.rows"

local FROM = "catalogue: mcap; Dreuning et al. 2022"
local STATES, ACTIVATIONS = { 6, 1, 1, 1, 1, 6 }, { 1, 2, 2, 2, 2, 1 }

--- The problem of layers with these states and activations, 1F1B over S stages.
local function problem(states, activations, S, times)
  local q = { n = #states, held = {}, times = {}, micro_batches = 4 }
  for s = 1, S do
    q.held[s], q.times[s] = {}, times or activations
    for l = 1, q.n do
      q.held[s][l] = states[l] + (S + 1 - s) * activations[l]
    end
  end
  return q
end

--- Layers per stage from the last layer of each.
local function counts_of(ends)
  local counts = {}
  for s, last in ipairs(ends) do
    counts[s] = last - (ends[s - 1] or 0)
  end
  return counts
end

--- Eq-P of a cut.
local function seconds(q, counts)
  local stage_s, at = {}, 1
  for s, n in ipairs(counts) do
    stage_s[s] = 0
    for l = at, at + n - 1 do
      stage_s[s] = stage_s[s] + q.times[s][l]
    end
    at = at + n
  end
  return (claims.pipeline_s(stage_s, q.micro_batches))
end

--- Least peak of all cuts, and the least time of those that have it.
local function exhaustive(q)
  local peak, time_s = math.huge, math.huge
  for _, ends in ipairs(oracle.cuts(q.n, #q.held)) do
    local counts = counts_of(ends)
    local own = math.max(table.unpack(least_peak.peaks(q, counts)))
    local own_s = seconds(q, counts)
    if own < peak or own == peak and own_s < time_s then
      peak, time_s = own, own_s
    end
  end
  return peak, time_s
end

local function random_cases(t)
  local n_peak, n_time, cases = 0, 0, 200
  for _ = 1, cases do
    local states, activations, times = {}, {}, {}
    for l = 1, hv.random(5) + 3 do
      states[l], activations[l], times[l] = hv.random(6), hv.random(4), hv.random(9)
    end
    local q = problem(states, activations, hv.random(3) + 1, times)
    local best = least_peak.cut(q)
    local peak, time_s = exhaustive(q)
    n_peak = n_peak + (best.peak == peak and 1 or 0)
    n_time = n_time + (math.abs(best.seconds - time_s) < 1e-9 and 1 or 0)
  end
  t.equal("200 random chains: least peak", n_peak, cases, "exhaustive enumeration")
  t.equal("200 random chains: fastest of them", n_time, cases, "exhaustive enumeration")
end

--- Peak bytes of three stages with these layer counts by the judge, less those of layers without
-- states and activations, in proportion to 9 of the first one: the judge's allocator adds its
-- share.
local function judged(t, counts)
  local function peaks(scale)
    local inputs = plain.measured { nodes = 1, devices = 3, layers = 6, forward_ms = 1,
      backward_ms = 2, parameter_bytes = 0, batch = 8 }
    for l, layer in ipairs(inputs.model.layers) do
      layer.parameter_bytes = scale * STATES[l] / 2 -- weights and as many gradients
      layer.activation_bytes = scale * ACTIVATIONS[l]
    end
    return t.with(inputs, function(ctx)
      local stages, at = {}, 0
      for s, n in ipairs(counts) do
        stages[s] = { devices = ctx.cluster:address { s }, layers = { at, at + n } }
        at = at + n
      end
      local verdict = assert(hv.plan.new({ micro_batch = 1, schedule = { name = "1f1b" },
        replicas = { { micro_batches = 8, stages = stages } } }):eval())
      local list = {}
      for s, own in ipairs(verdict.memory) do
        list[s] = own.peak_bytes
      end
      return list
    end)
  end
  local whole, empty, words = peaks(1e9), peaks(1e-3), {}
  for s in ipairs(whole) do
    local part = (whole[s] - empty[s]) / (whole[1] - empty[1])
    words[s] = ("%.2f"):format(9 * part)
  end
  return table.concat(words, ",")
end

return function(t)
  local q = problem(STATES, ACTIVATIONS, 3)
  local best = least_peak.cut(q)
  t.equal("cut of six layers", table.concat(best.counts, ","), "1,2,3", FROM)
  t.equal("memory of its stages", table.concat(least_peak.peaks(q, best.counts), ","), "9,10,13",
    FROM)
  t.equal("memory of equal layer counts", table.concat(least_peak.peaks(q, { 2, 2, 2 }), ","),
    "16,10,10", FROM)
  t.equal("memory by the judge, in proportion", judged(t, best.counts), "9.00,10.00,13.00", FROM)
  random_cases(t)
  rows.search(t, plain.pipelined())
end
