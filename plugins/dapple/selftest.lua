-- Self-tests of DAPPLE: the catalogue's case by formula, order and judge, the policies, and the
-- planner against exhaustive search over stages and devices.
local latency = require "latency"
local oracle = require "testing.oracle"
local placement = require "placement"
local plain = require "testing.plain"
local rows = require "testing.rows"
local planner = require "planner"

local FROM = "catalogue: dapple; derived, Fan et al. 2021"
local F, B, M = { 1, 2, 1 }, { 2, 4, 2 }, 4

--- Makespan of the order with the case's passes.
local function makespan(early)
  return hv.sim.schedule("dapple", { ranks = 3, micro_batches = M, options = { early = early },
    times = { f = F, b = B, w = { 0, 0, 0 } }, order = false }).makespan
end

--- Milliseconds by the judge: the case's stages, the first on two devices whose gradients of
-- `gradient_bytes` are reduced at 10 GB/s. Each takes half of the two sequences of a micro-batch.
local function judged_ms(t, early, gradient_bytes)
  local inputs = plain.measured { nodes = 4, layers = 3, nic_GBps = 10, parameter_bytes = 0,
    batch = 2 * M }
  for s, layer in ipairs(inputs.model.layers) do
    local sequences = s == 1 and 1 or 2
    layer.forward_ms, layer.backward_ms = { P = F[s] / sequences }, { P = B[s] / sequences }
  end
  inputs.model.layers[1].parameter_bytes = gradient_bytes
  return t.with(inputs, function(ctx)
    local devices, stages = { { 1, 2 }, { 3 }, { 4 } }, {}
    for s, ids in ipairs(devices) do
      stages[s] = { devices = ctx.cluster:address(ids), layers = { s - 1, s }, dp = #ids }
    end
    return plain.ms { micro_batch = 2, schedule = { name = "dapple", early = early },
      sync = { kind = "allreduce", overlap = false },
      replicas = { { micro_batches = M, stages = stages } } }
  end)
end

--- A random problem: blocks on two machines of two devices, slow links between them.
local function random_problem()
  local q = { blocks = hv.random(3) + 2, sizes = { 2, 2 }, micro_batches = hv.random(8) }
  local f, b, out, weights = {}, {}, {}, {}
  for l = 1, q.blocks do
    f[l], b[l], out[l], weights[l] = hv.random(8), hv.random(16), hv.random(6) / 4, hv.random(12)
  end
  function q.stage(first, last, counts, n)
    local stage = { f = 0, b = 0, ar = 0 }
    for l = first, last do
      stage.f, stage.b = stage.f + f[l] / n, stage.b + b[l] / n
      stage.ar = stage.ar + weights[l]
    end
    local across = counts[1] > 0 and counts[2] > 0
    stage.ar = stage.ar * 2 * (n - 1) / n * (across and 1 or 0.2)
    return stage
  end
  function q.hop(last, before, after)
    local within = before[1] == 0 and after[1] == 0 or before[2] == 0 and after[2] == 0
    return out[last] / math.min(before[1] + before[2], after[1] + after[2])
      * (within and 0.2 or 1)
  end
  return q
end

--- Latency of stages { first, last, taken, n }.
local function seconds_of(q, stages)
  local timed = {}
  for s, stage in ipairs(stages) do
    if s > 1 then
      local hop_s = q.hop(stages[s - 1].last, stages[s - 1].taken, stage.taken)
      timed[#timed + 1] = { f = hop_s, b = hop_s, ar = 0 }
    end
    timed[#timed + 1] = q.stage(stage.first, stage.last, stage.taken, stage.n)
  end
  return (latency.of(timed, q.micro_batches))
end

--- All plans that use every device: cuts into stages, and devices of each machine for each stage.
local function all_plans(q)
  local list = {}
  local function place(ends, s, free, stages)
    local first = (ends[s - 1] or 0) + 1
    for a = s == #ends and free[1] or 0, free[1] do
      for b = s == #ends and free[2] or 0, free[2] do
        if a + b > 0 then
          local own = table.move(stages, 1, #stages, 1, {})
          own[s] = { first = first, last = ends[s], taken = { a, b }, n = a + b }
          if s == #ends then
            list[#list + 1] = own
          else
            place(ends, s + 1, { free[1] - a, free[2] - b }, own)
          end
        end
      end
    end
  end
  for p = 1, math.min(4, q.blocks) do
    for _, ends in ipairs(oracle.cuts(q.blocks, p)) do
      place(ends, 1, q.sizes, {})
    end
  end
  return list
end

local function random_cases(t)
  local cases = {}
  for i = 1, 200 do
    cases[i] = random_problem()
  end
  local r = oracle.compare { cases = cases, states = all_plans,
    solve = function(q) return planner.plans(q)[1].stages end,
    cost = function(stages, q) return seconds_of(q, stages) end }
  t.ok(("200 random cases: %d as the best of all, %.2f %% above it on average"):format(r.optimal,
    100 * r.mean), #r.wrong == 0 and r.mean < 0.05, "exhaustive enumeration")
end

return function(t)
  local stages = {}
  for s = 1, 3 do
    stages[s] = { f = F[s], b = B[s], ar = s == 1 and 3 or 0 }
  end
  local seconds, warm_s, steady_s, end_s, pivot = latency.of(stages, M)
  t.near("pivot formula [D]", seconds, 30, 1e-12, FROM)
  t.equal("its phases [D]", ("%g %g %g, pivot %d"):format(warm_s, steady_s, end_s, pivot),
    "3 18 9, pivot 2", FROM)
  local pa, pb = makespan "pa", makespan "pb"
  t.equal("order without all-reduce, PA and PB [D]", ("%g %g"):format(pa, pb), "28 27", FROM)
  -- the first stage ends last of all, and its gradients are reduced then
  t.equal("order with it, PA and PB [D]", ("%g %g"):format(pa + 3, pb + 3), "31 30", FROM)
  t.equal("by the judge, PA and PB [D]", ("%.4f %.4f"):format(judged_ms(t, "pa", 0),
    judged_ms(t, "pb", 0)), "28.0000 27.0000", FROM)
  t.equal("by the judge with the all-reduce [D]", ("%.4f %.4f"):format(judged_ms(t, "pa", 30e6),
    judged_ms(t, "pb", 30e6)), "31.0000 30.0000", FROM)
  local free, node_sizes = { 4, 2, 4 }, { 4, 4, 4 }
  local words = {}
  for i, pick in ipairs(placement.all) do
    words[i] = table.concat(pick(free, node_sizes, 3), ",")
  end
  t.equal("three devices fresh, appended, scattered", table.concat(words, " "),
    "3,0,0 1,2,0 2,0,1", FROM)
  random_cases(t)
  rows.search(t, plain.pipelined())
end
