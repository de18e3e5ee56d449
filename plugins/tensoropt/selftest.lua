-- Self-tests of TensorOpt: the catalogue's front, random graphs against enumerated fronts, and
-- plans of the front through the judge on plain links.
local front = require "front"
local oracle = require "testing.oracle"
local splits = require "operator_splits"
local world = require "testing.operator_world"

local FROM = "catalogue: tensoropt; derived, Cai et al. 2022"

local function held(way)
  return way.kept_bytes
end

local function bytes_of(priced, choices)
  local sum = 0
  for i, op in ipairs(priced.ops) do
    sum = sum + held(priced.classes[op.class][choices[i]])
  end
  return sum
end

local function text(points)
  local words = {}
  for i, p in ipairs(points) do
    words[i] = ("(%g,%g)"):format(p.seconds, p.bytes)
  end
  return table.concat(words)
end

--- The front by enumeration.
local function enumerated(priced)
  local all, kept = {}, {}
  world.each(priced, function(choices)
    all[#all + 1] = { seconds = world.sum_of(priced, choices), bytes = bytes_of(priced, choices) }
  end)
  table.sort(all, function(a, b)
    if a.seconds ~= b.seconds then
      return a.seconds < b.seconds
    end
    return a.bytes < b.bytes
  end)
  for _, p in ipairs(all) do
    if #kept == 0 or p.bytes < kept[#kept].bytes then
      kept[#kept + 1] = p
    end
  end
  return kept
end

local function check_diamond(t)
  local priced = world.priced_of({ { 3, 5 }, { 2, 4 }, { 6, 1 }, { 2, 2 } }, world.DIAMOND,
    { { 8, 4 }, { 6, 3 }, { 2, 5 }, { 4, 2 } })
  t.equal("front of the diamond", text(front.of(priced, held)), "(11,21)(12,14)(24,13)(25,11)",
    FROM)
end

local function check_oracle(t)
  local found = oracle.drawn(200, world.random, function(priced)
    return text(front.of(priced, held)) == text(enumerated(priced)) and 1 or 2
  end, function()
    return 1
  end)
  t.equal("200 random graphs against enumeration", found.optimal, 200, FROM)
end

local function check_judge(t)
  t.with(world.chain(), function(ctx)
    local address, mesh = ctx.cluster:address { 1, 2, 3, 4 }, { a = 4 }
    local priced = hv.cost.splits { devices = address, ops = { "*" }, mesh = mesh, micro_batch = 1 }
    local list = assert(front.of(priced, function(way)
      return 8 * way.parameters + way.kept_bytes
    end))
    local function judged(point)
      local stage = splits.stage(point.priced, point.choices, address, mesh)
      return hv.plan.new(splits.plan(stage, 1, 1)):eval()
    end
    local function peak_of(point)
      local verdict = judged(point)
      local peak = 0
      for _, m in ipairs(verdict.memory) do
        peak = math.max(peak, m.peak_bytes)
      end
      return peak
    end
    t.ok(("the smallest of %d points holds less by the judge than the fastest"):format(#list),
      peak_of(list[#list]) < peak_of(list[1]), FROM)
    t.ok("its plan is no slower than the fastest point on one axis",
      assert(hv.strategy("tensoropt")):eval().iteration_s <= judged(list[1]).iteration_s, FROM)
  end)
end

return function(t)
  check_diamond(t)
  check_oracle(t)
  check_judge(t)
end
