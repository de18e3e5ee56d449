-- Self-tests of Tessel: the catalogue's blocks on all devices by search and by the judge, and 200
-- random placements against the enumeration of all periodic starts.
local blocks = require "blocks"
local oracle = require "testing.oracle"
local plain = require "testing.plain"
local every_row = require "testing.rows"

local FROM = "catalogue: tessel"

--- The catalogue's placement: embedding and head on four devices, a chain of four stages between.
local function four()
  local all = { 1, 2, 3, 4 }
  local stages = { { units = all, forward_s = 1, backward_s = 2, memory = 0 } }
  for d = 1, 4 do
    stages[d + 1] = { units = { d }, forward_s = 1, backward_s = 2, memory = 1 }
  end
  -- the head's two passes are one block of 2 in the catalogue, and its embedding has one pass
  stages[6] = { units = all, forward_s = 0, backward_s = 2, memory = 0, joined = true }
  stages[1].backward_s = 0
  return stages
end

local function check_catalogue(t)
  local stages = four()
  t.equal("bound of the period [D]", blocks.bound_s(stages), 6, FROM)
  local found = assert(hv.sim.repetend { blocks = (blocks.of(stages)), micro_batches = 12 })
  t.near("period of blocks on all devices [D]", found.period, 6, 1e-9, FROM)
  t.equal("micro-batches in its repetend [D]", found.micro_batches, 6, FROM)
  t.ok("no idle time", found.zero_bubble, FROM)
  local smaller = assert(hv.sim.repetend { blocks = (blocks.of(stages)), limit = 5 })
  t.ok("with less memory the period is longer [D]", smaller.period > 6, FROM)
end

--- Seconds of m micro-batches of the catalogue's placement by the judge, and by blocks.makespan.
local function judged_ms(t, m)
  local inputs = plain.measured { nodes = 1, devices = 4, layers = 6, forward_ms = 0.25,
    backward_ms = 0.5, parameter_bytes = 1, batch = 4 * m }
  inputs.model.layers[1].forward_ms, inputs.model.layers[1].backward_ms = { P = 1 }, { P = 0 }
  inputs.model.layers[6].forward_ms, inputs.model.layers[6].backward_ms = { P = 0 }, { P = 2 }
  return t.with(inputs, function(ctx)
    local stages = four()
    local found = assert(hv.sim.repetend { blocks = (blocks.of(stages)), micro_batches = m })
    local rows = {}
    for s, stage in ipairs(stages) do
      rows[s] = { devices = ctx.cluster:address(stage.units), layers = { s - 1, s },
        dp = #stage.units }
    end
    local order = blocks.order(stages, found.runs, 4)
    return plain.ms { micro_batch = 4, schedule = { name = "explicit", order = order },
        replicas = { { micro_batches = m, stages = rows } } },
      blocks.makespan(stages, order, function(s) return stages[s].units end), found.makespan
  end)
end

local function check_judge(t)
  local at_12, order_12, layout_12 = judged_ms(t, 12)
  t.near("layout by the judge [D]", at_12, layout_12, 1e-6, FROM)
  t.near("layout by its order", order_12, layout_12, 1e-9, FROM)
  t.near("period by the judge [D]", (judged_ms(t, 16) - at_12) / 4, 6, 1e-6, FROM)
  local inputs = plain.measured { nodes = 1, devices = 4, layers = 8, forward_ms = 1,
    backward_ms = 2, parameter_bytes = 1e6, batch = 16 }
  t.with(inputs, function()
    local made = assert(hv.strategy("tessel", { micro_batch = 1, repetend = 4 }))
    t.ok("the strategy's own plan runs", #made:eval().violations == 0, FROM)
  end)
end

--- A random chain of one or two stages on up to three devices, some blocks on several of them.
local function random_case()
  local stages, n_units = {}, hv.random(2)
  for s = 1, 1 + hv.random(2) - (n_units == 1 and 1 or 0) do
    local first = hv.random(n_units)
    local units = { first }
    if n_units > 1 and hv.random(3) == 1 then
      units = { 1, 2 }
    end
    stages[s] = { units = units, forward_s = hv.random(2), backward_s = hv.random(2),
      memory = hv.random(3) - 1 }
  end
  local used = {}
  for _, stage in ipairs(stages) do
    for _, unit in ipairs(stage.units) do
      used[unit] = true
    end
  end
  for unit = 1, n_units do -- every device has a block
    if not used[unit] then
      stages[#stages + 1] = { units = { unit }, forward_s = 1, backward_s = 1, memory = 1 }
    end
  end
  return { stages = stages, n_units = n_units,
    limit = hv.random(2) == 1 and 1 + hv.random(3) or math.huge }
end

--- Does device `unit` stay within the limit, with block k of micro-batch i starting at
-- start[k] + i · period?
local function within(case, list, start, period, unit)
  local function held(at)
    local sum = 0
    for k, block in ipairs(list) do
      for _, d in ipairs(block.devices) do
        if d == unit then
          local from = block.memory >= 0 and start[k] or start[k] + block.time_s
          sum = sum + block.memory * ((at - from) // period + 1)
        end
      end
    end
    return sum
  end
  for k, block in ipairs(list) do
    for _, d in ipairs(block.devices) do
      if d == unit and block.memory > 0 and held(start[k]) > case.limit then
        return false
      end
    end
  end
  return true
end

--- Do blocks k and l, which share a device, never run together?
local function apart(list, start, period, k, l)
  for _, d in ipairs(list[k].devices) do
    for _, other in ipairs(list[l].devices) do
      if d == other then
        local gap = (start[l] - start[k]) % period
        return gap >= list[k].time_s and period - gap >= list[l].time_s
      end
    end
  end
  return true
end

--- The least whole period, by all whole starts: a block waits less than a period and its own time.
local function enumerated(case)
  local list = blocks.of(case.stages)
  local function place(start, k, period)
    if k > #list then
      for unit = 1, case.n_units do
        if not within(case, list, start, period, unit) then
          return false
        end
      end
      return true
    end
    local ready = k == 1 and 0 or start[k - 1] + list[k - 1].time_s
    for at = ready, k == 1 and 0 or ready + period - 1 do
      start[k] = at
      local fits = true
      for l = 1, k - 1 do
        fits = fits and apart(list, start, period, k, l)
      end
      if fits and place(start, k + 1, period) then
        return true
      end
    end
    return false
  end
  local total = 0
  for _, block in ipairs(list) do
    total = total + block.time_s
  end
  for period = math.ceil(blocks.bound_s(case.stages)), total do
    if place({}, 1, period) then
      return period
    end
  end
  return math.huge
end

local function check_oracle(t)
  oracle.exact(t, "200 random placements against enumeration [D]", FROM, { draw = random_case,
    least = enumerated, solve = function(case)
      local r = hv.sim.repetend { blocks = (blocks.of(case.stages)), limit = case.limit }
      return r and math.ceil(r.period - 1e-9) -- the enumeration has whole starts
    end })
end

return function(t)
  check_catalogue(t)
  check_judge(t)
  check_oracle(t)
  every_row.search(t, plain.pipelined())
end
