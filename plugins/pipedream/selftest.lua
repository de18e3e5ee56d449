-- Self-tests of PipeDream: the catalogue's example, 200 random chains against the enumeration of
-- all nested plans, and a plan through the judge on plain links.
local levels = require "levels"
local oracle = require "testing.oracle"
local plain = require "testing.plain"
local every_row = require "testing.rows"

local FROM = "catalogue: pipedream"

--- The catalogue's chain, in seconds and bytes.
local function four(combine)
  return { times = { 6e-3, 6e-3, 2e-3, 2e-3 }, weights = { 1e6, 1e6, 20e6, 20e6 },
    outputs = { 8e6, 8e6, 1e6, 0 }, levels = { { count = 4, bandwidth = 10e9 } },
    combine = combine }
end

local function shape(stages)
  local words = {}
  for i, stage in ipairs(stages) do
    words[i] = ("%d-%d x%d"):format(stage.first, stage.last, stage.width)
  end
  return table.concat(words, " ")
end

local function check_catalogue(t)
  local rows = { { "sum", "added up", 4.178, 7.15 }, { "max", "overlapped", 4.000, 6.30 } }
  for _, row in ipairs(rows) do
    local q = four(row[1])
    local solved = levels.solve(q)
    t.near("four layers on four devices, " .. row[2] .. " [D]", 1e3 * solved.value, row[3], 0.0005,
      FROM)
    t.equal("split and replicas, " .. row[2], shape(solved.stages), "1-2 x3 3-4 x1", FROM)
    t.near("data parallelism alone, " .. row[2] .. " [D]",
      1e3 * levels.stage_s(16e-3, 42e6, 4, q.levels[1], 1, row[1]), row[4], 1e-9, FROM)
  end
end

local function total(list, i, j)
  local sum = 0
  for k = i, j do
    sum = sum + list[k]
  end
  return sum
end

--- The least value of all nested plans of the units i..j on m components of level l, `before`
-- components of it being taken: every first stage with every rest.
local function enumerated(q, l, i, j, m, before)
  if i > j then
    return m == 0 and 0 or math.huge
  end
  local level, inner = q.levels[l], 1
  for below = 1, l - 1 do
    inner = inner * q.levels[below].count
  end
  local best = math.huge
  for last = i, j do
    for width = 1, m do
      local alive = math.ceil((level.count - before) / width)
      if q.fits(i, last, alive, inner) then
        local compute = l == 1 and total(q.times, i, last)
          or enumerated(q, l - 1, i, last, q.levels[l - 1].count, 0)
        local bytes = total(q.weights, i, last) / inner
        local own
        if q.combine == "max" then
          own = math.max(compute, 2 * (width - 1) * bytes / level.bandwidth) / width
        else
          own = (compute + 4 * (width - 1) * bytes / (level.bandwidth * width)) / width
        end
        if before > 0 then -- the cut in front of this stage
          own = math.max(own, 2 * q.outputs[i - 1] / (level.bandwidth * width))
        end
        best = math.min(best, math.max(own,
          enumerated(q, l, last + 1, j, m - width, before + width)))
      end
    end
  end
  return best
end

--- A random chain on one level or two, often with a limit of memory.
local function random_case()
  local q = { times = {}, weights = {}, outputs = {},
    combine = hv.random(2) == 1 and "sum" or "max",
    levels = { { count = hv.random(3), bandwidth = hv.random(9) } } }
  if hv.random(2) == 1 then
    q.levels[2] = { count = hv.random(3), bandwidth = hv.random(4) }
  end
  for l = 1, hv.random(5) do
    q.times[l], q.weights[l], q.outputs[l] = hv.random(20), hv.random(9), hv.random(9)
  end
  local room = hv.random(3) == 1 and math.huge or 5 + hv.random(60)
  function q.fits(first, last, alive, inner)
    return alive * total(q.weights, first, last) <= inner * room
  end
  return q
end

local function check_oracle(t)
  local found = oracle.drawn(200, random_case, function(q)
    local solved = levels.solve(q)
    return solved and solved.value
  end, function(q)
    return enumerated(q, #q.levels, 1, #q.times, q.levels[#q.levels].count, 0)
  end)
  t.equal("200 random chains against enumeration [D]", found.optimal, 200, FROM)
  t.equal("values below the least", #found.wrong, 0, FROM)
end

local function check_judge(t)
  -- 6 + 6 + 2 + 2 ms of passes as in the catalogue: three devices in turns take 12 ms each, and the
  -- last one 4 ms: a minibatch every 4 ms
  local inputs = plain.measured { nodes = 1, devices = 4, layers = 4, backward_ms = 4,
    forward_ms = 2, parameter_bytes = 1e6, batch = 120 }
  for l = 3, 4 do
    inputs.model.layers[l].forward_ms, inputs.model.layers[l].backward_ms = { P = 0.5 }, { P = 1.5 }
  end
  t.with(inputs, function(ctx)
    local function stage(ids, from, to)
      return { devices = ctx.cluster:address(ids), layers = { from, to }, dp = #ids,
        deal = #ids > 1 and "turns" or nil }
    end
    local verdict = assert(hv.plan.new { micro_batch = 1, schedule = { name = "pipedream" },
      replicas = { { micro_batches = 120,
        stages = { stage({ 1, 2, 3 }, 0, 2), stage({ 4 }, 2, 4) } } } }:eval())
    t.near("four minibatches by the judge [D]", verdict.iteration_s * 1e3 / 30, 16, 1e-6, FROM)
    t.ok("updates are stale", verdict.exact == false, FROM)
  end)
  t.with(inputs, function()
    local made = assert(hv.strategy("pipedream", { combine = "max" }))
    t.near("the strategy's own plan, per minibatch",
      made:eval().iteration_s * 1e3 / made:table().replicas[1].micro_batches, 4, 1e-6, FROM)
  end)
end

return function(t)
  check_catalogue(t)
  check_oracle(t)
  check_judge(t)
  t.equal("minibatches in flight, 3 of 4 devices at the input",
    levels.alive({ count = 4 }, 0, 3), 2, "catalogue: hetero_auto, pipedream")
  every_row.search(t, plain.pipelined())
end
