-- Tests of share/lua: what planners share. `hetviz selftest tests/lua/libraries.lua`.
local candidates = require "candidates"
local claims = require "claims"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local pipeline = require "pipeline"

--- Raises an error unless both are equal; lists are compared as texts.
local function equal(name, got, want)
  if type(got) == "table" then
    got = table.concat(got, " ")
  end
  if got ~= want then
    error(("%s: got %s, expected %s"):format(name, tostring(got), tostring(want)), 2)
  end
end

local function check_splits()
  equal("even", numbers.even(10, 4), "3 3 2 2")
  equal("even, more parts than units", numbers.even(2, 3), "1 1 0")
  local ranges = numbers.ranges { 2, 3 }
  equal("ranges 1", ranges[1], "0 2")
  equal("ranges 2", ranges[2], "2 5")
  equal("divisors of 1", numbers.divisors(1), "1")
  equal("divisors of 36", numbers.divisors(36), "1 2 3 4 6 9 12 18 36")
  equal("the divisor from 5 on", numbers.divisor_from(36, 5), 6)
  equal("a divisor itself", numbers.divisor_from(36, 9), 9)
  equal("no divisor from 37 on", numbers.divisor_from(36, 37), nil)
  equal("powers", numbers.powers(9), "1 2 4 8")
  equal("no powers", #numbers.powers(0), 0)
  equal("gcd", numbers.gcd(12, 18), 6)
  equal("gcd with 0", numbers.gcd(0, 5), 5)
  equal("slice", numbers.slice({ 5, 6, 7, 8 }, 2, 2), "6 7")
  local below, above = numbers.neighbours(256, 3)
  equal("neighbours", numbers.either(below, above), "2 or 4")
  equal("neighbours at the end", numbers.either(numbers.neighbours(8, 9)), "8")
  local total, max = claims.pipeline_s({ 3, 6 }, 4)
  equal("Eq-P", total, 27)
  equal("Eq-P max", max, 6)
  equal("weighted", claims.weighted_s({ 6, 9, 6 }, { 7, 1, 1 }), 21 + 8 * 9 + 15)
end

--- Divisors and even splits against their definitions.
local function check_definitions()
  for n = 1, 60 do
    local count = 0
    for d = 1, n do
      count = count + (n % d == 0 and 1 or 0)
    end
    equal("number of divisors of " .. n, #numbers.divisors(n), count)
    for parts = 1, 9 do
      local sum, most, least = 0, 0, n
      for _, x in ipairs(numbers.even(n, parts)) do
        sum, most, least = sum + x, math.max(most, x), math.min(least, x)
      end
      equal("even keeps the sum", sum, n)
      equal("even differs by one at most", most - least <= 1, true)
    end
  end
end

--- Candidates: the reason with the least miss stays, of equals the first.
local function check_candidates()
  local all = candidates.new()
  all.add(nil, "far", 3)
  all.add(nil, "near", 1.5)
  all.add(nil, "as near", 1.5)
  all.add(nil)
  local best, why = all.best(1, "nobody said")
  equal("none", best, nil)
  equal("the nearest miss", why, "near")
  equal("no reason at all", select(2, candidates.new().best(1, "nobody said")), "nobody said")
  all.add { claim_s = 1 }
  all.add { claim_s = 1 }
  equal("rank", all.list[2].rank, 2)
end

--- Layers that a stage holds; kinds of devices.
local function check_pipes()
  local t = { held = { 5, 2, 2, 3 }, room = 7 }
  equal("they fit exactly", pipeline.fits(t, 1, 2), true)
  equal("one byte too many", pipeline.fits(t, 2, 4) and not pipeline.fits(t, 1, 3), true)
  equal("no layers fit", pipeline.fits({ held = { 1 }, room = 0 }, 1, 0), true)
  equal("layers of a stage inside", pipeline.most(t, false), 3)
  equal("of one with an end", pipeline.most(t, true), 2)
  equal("at most the model's", pipeline.most({ held = { 1, 1 }, room = 9 }, false), 2)
  equal("none", pipeline.most({ held = { 9, 1 }, room = 8 }, true), 0)
  equal("kinds", inventory.kinds { { kind = "b" }, { kind = "a" }, { kind = "b" } }, "b a")
end

--- Devices: cpus, unknown speeds, kinds without a price and the smaller fabric are left out.
local function check_devices()
  local rows = {
    { id = 0, kind = "x", class = "gpu", node = "a[0]", flops_per_s = 1, fabric = "f" },
    { id = 1, kind = "cpu", class = "cpu", node = "a[0]", flops_per_s = 1, fabric = "f" },
    { id = 2, kind = "x", class = "gpu", node = "a[0]", flops_per_s = 1, fabric = "f" },
    { id = 3, kind = "y", class = "gpu", node = "b[0]", fabric = "f" },
    { id = 4, kind = "z", class = "gpu", node = "c[0]", flops_per_s = 1, fabric = "g" },
    { id = 5, kind = "x", class = "gpu", node = "a[1]", flops_per_s = 1, fabric = "f" },
  }
  local ctx = { cluster = {} }
  function ctx.cluster.devices()
    return rows
  end
  local function any()
    return true
  end
  local nodes = inventory.nodes(inventory.priced(ctx, false, any))
  equal("nodes", #nodes, 2)
  equal("devices of the first node", nodes[1].ids, "0 2")
  equal("node size", inventory.node_size(nodes), 1)
  equal("of all fabrics", #inventory.priced(ctx, true, any), 4)
  equal("CPUs too", #inventory.priced(ctx, "hosts", any), 5)
  local function without(gone)
    return function(kind) return kind ~= gone, kind == gone and kind .. " has no price" or nil end
  end
  equal("the fabric that is left", inventory.priced(ctx, false, without "x")[1].kind, "z")
  local none, why = inventory.priced({ cluster = { devices = function() return { rows[1] } end } },
    false, without "x")
  equal("none, and why", #none .. " " .. why, "0 x has no price")
end

--- Tensor parallelism.
local function check_tensors()
  local blocks = { { heads = 32, kv_heads = 8, ffn = 100 } }
  equal("4 divides all", grids.tp_fits(blocks, 4), true)
  equal("8 does not divide ffn", grids.tp_fits(blocks, 8), false)
  blocks = { { heads = 32, kv_heads = 2, ffn = 128 } }
  equal("kv heads may be copied", grids.tp_fits(blocks, 8), true)
end

return {
  api = 1, id = "libraries", title = "Tests of the libraries", kind = "test",
  system = "none", reference = "none", summary = "Checks what planners share.",
  plan = function()
    return nil, "this file only tests libraries"
  end,
  selftest = function(t)
    check_splits()
    t.ok("even, ranges, divisors, powers and Eq-P", true)
    check_definitions()
    t.ok("divisors and even splits against their definitions", true)
    check_candidates()
    t.ok("candidates and the nearest miss", true)
    check_pipes()
    t.ok("layers of a stage and kinds", true)
    check_devices()
    t.ok("which devices and nodes are used", true)
    check_tensors()
    t.ok("where tensor parallelism fits", true)
  end,
}
