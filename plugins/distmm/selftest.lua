-- Self-tests of DistMM: the catalogue's two towers, 200 random divisions against enumeration, and
-- two towers side by side and in turn through the judge.
local oracle = require "testing.oracle"
local plain = require "testing.plain"
local rows = require "testing.rows"
local towers = require "towers"

local FROM = "catalogue: distmm"

local function check_catalogue(t)
  local works = { 12, 4 }
  local function time(overhead)
    return function(tower, units)
      return works[tower] / units + overhead * (units - 1)
    end
  end
  local found = towers.divide(2, 8, time(0.1))
  t.equal("division", table.concat(found.units, "/"), "6/2", FROM)
  t.near("works 12 and 4 on eight devices [D]", found.value, 2.5, 1e-9, FROM)
  t.near("in turn on eight devices [D]", towers.in_turn(2, 8, time(0.1)), 3.4, 1e-9, FROM)
  t.near("without overhead", towers.divide(2, 8, time(0)).value, 2, 1e-9, FROM)
  t.near("without overhead nothing is gained [D]", towers.in_turn(2, 8, time(0)), 2, 1e-9,
    FROM)
end

--- Random seconds of towers by units: some do not fit, and more units may be slower.
local function random_case()
  local case = { n = 1 + hv.random(3), total = 2 + hv.random(6), seconds = {} }
  for tower = 1, case.n do
    case.seconds[tower] = {}
    for units = 1, case.total do
      case.seconds[tower][units] = hv.random(4) > 1 and hv.random(30) or false
    end
  end
  return case
end

local function check_oracle(t)
  local function enumerated(case, tower, left)
    if tower > case.n then
      return 0
    end
    local best = math.huge
    for own = 1, left do
      local seconds = case.seconds[tower][own]
      if seconds then
        best = math.min(best, math.max(seconds, enumerated(case, tower + 1, left - own)))
      end
    end
    return best
  end
  oracle.exact(t, "200 random divisions against enumeration [D]", FROM, { draw = random_case,
    solve = function(case)
      local r = towers.divide(case.n, case.total, function(tower, units)
        return case.seconds[tower][units] or nil
      end)
      return r and r.value
    end,
    least = function(case)
      return enumerated(case, 1, case.total)
    end })
end

--- Towers of 12 and 4 ms per sample on eight devices, and a module that joins them.
local function world(parameter_bytes)
  local function module(forward_ms, backward_ms, bytes)
    return { kind = "layers", layers = plain.measured { nodes = 1, forward_ms = forward_ms,
      backward_ms = backward_ms, parameter_bytes = bytes }.model.layers }
  end
  local inputs = plain.measured { nodes = 8, backward_ms = 1, parameter_bytes = 1, batch = 24 }
  inputs.model = { format = "hetviz.model/1", name = "m", kind = "modules",
    modules = { a = module(4, 8, parameter_bytes), b = module(4 / 3, 8 / 3, parameter_bytes),
      c = module(1e-6, 1e-6, 1) }, edges = { { "a", "c" }, { "b", "c" } } }
  return inputs
end

--- Milliseconds by the judge of the towers on the devices `a` and `b`.
local function judged_ms(t, inputs, a, b)
  return t.with(inputs, function(ctx)
    local all = { 1, 2, 3, 4, 5, 6, 7, 8 }
    local function stage(ids, module, after)
      return { devices = ctx.cluster:address(ids), module = module, layers = { 0, 1 }, dp = #ids,
        after = after }
    end
    return plain.ms { micro_batch = 24, schedule = { name = "distmm" },
      replicas = { { micro_batches = 1, stages = { stage(a, "a"), stage(b, "b", {}),
        stage(all, "c", { 0, 1 }) } } } }
  end)
end

local function check_judge(t)
  local all, six, two = { 1, 2, 3, 4, 5, 6, 7, 8 }, { 1, 2, 3, 4, 5, 6 }, { 7, 8 }
  local light, heavy = world(1), world(100e6)
  -- 24 samples: 12 · 24 / 6 = 4 · 24 / 2 = (12 + 4) · 24 / 8 = 48 ms
  t.near("side by side by the judge [D]", judged_ms(t, light, six, two), 48, 1e-3, FROM)
  t.near("in turn by the judge [D]", judged_ms(t, light, all, all), 48, 1e-3, FROM)
  t.ok("with gradients to reduce, side by side is faster [D]",
    judged_ms(t, heavy, six, two) < judged_ms(t, heavy, all, all), FROM)
  local own_ms = t.with(heavy, function()
    return assert(hv.strategy "distmm"):eval().iteration_s * 1e3
  end)
  t.ok("the strategy's plan is no slower than 6/2",
    own_ms <= judged_ms(t, heavy, six, two) + 1e-6, FROM)
end

return function(t)
  check_catalogue(t)
  check_oracle(t)
  check_judge(t)
  rows.search(t, world(100e6))
end
