-- Tests of share/lua: layout and recovery. `hetviz selftest tests/lua/libraries.lua`.
local layout = require "layout"
local loads = require "loads"
local recovery = require "recovery"

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
  equal("even", layout.even(10, 4), "3 3 2 2")
  equal("even, more parts than units", layout.even(2, 3), "1 1 0")
  local ranges = layout.ranges { 2, 3 }
  equal("ranges 1", ranges[1], "0 2")
  equal("ranges 2", ranges[2], "2 5")
  equal("divisors of 1", layout.divisors(1), "1")
  equal("divisors of 36", layout.divisors(36), "1 2 3 4 6 9 12 18 36")
  equal("powers", layout.powers(9), "1 2 4 8")
  equal("no powers", #layout.powers(0), 0)
  equal("gcd", layout.gcd(12, 18), 6)
  equal("gcd with 0", layout.gcd(0, 5), 5)
  equal("slice", layout.slice({ 5, 6, 7, 8 }, 2, 2), "6 7")
  local below, above = layout.neighbours(256, 3)
  equal("neighbours", layout.either(below, above), "2 or 4")
  equal("neighbours at the end", layout.either(layout.neighbours(8, 9)), "8")
  local total, max = layout.pipeline_s({ 3, 6 }, 4)
  equal("Eq-P", total, 27)
  equal("Eq-P max", max, 6)
end

--- Divisors and even splits against their definitions.
local function check_definitions()
  for n = 1, 60 do
    local count = 0
    for d = 1, n do
      count = count + (n % d == 0 and 1 or 0)
    end
    equal("number of divisors of " .. n, #layout.divisors(n), count)
    for parts = 1, 9 do
      local sum, most, least = 0, 0, n
      for _, x in ipairs(layout.even(n, parts)) do
        sum, most, least = sum + x, math.max(most, x), math.min(least, x)
      end
      equal("even keeps the sum", sum, n)
      equal("even differs by one at most", most - least <= 1, true)
    end
  end
end

--- Invariants on many small instances: the sum is kept and every item fits.
local function check_loads()
  local kept, fitting = true, true
  for a = 1, 4 do
    for b = 1, 4 do
      for cap = 4, 12 do
        local items = {
          { speed = a, fixed = 1, unit = 1, cap = cap },
          { speed = b, fixed = 1, unit = 1, cap = 9 },
          { speed = 1, fixed = 0, unit = 2, cap = 12 },
        }
        local ok, sum = loads.deal(items, 15, 0), 0
        for _, item in ipairs(items) do
          sum = sum + item.n
          fitting = fitting and (not ok or loads.use(item) <= 1 + 1e-9)
        end
        kept = kept and sum == 15
        local room = cap - 1 + 8 + 6
        fitting = fitting and (ok ~= nil) == (room >= 15)
      end
    end
  end
  equal("shares add up to the batch", kept, true)
  equal("feasible exactly where the memory is enough", fitting, true)
end

--- Devices: cpus, drained nodes, unknown speeds and the smaller fabric are left out.
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
  local nodes = layout.nodes(layout.devices(ctx))
  equal("nodes", #nodes, 2)
  equal("devices of the first node", nodes[1].ids, "0 2")
  equal("node size", layout.node_size(nodes), 1)
end

--- Tensor parallelism.
local function check_tensors()
  local blocks = { { heads = 32, kv_heads = 8, ffn = 100 } }
  equal("4 divides all", layout.tp_fits(blocks, 4), true)
  equal("8 does not divide ffn", layout.tp_fits(blocks, 8), false)
  blocks = { { heads = 32, kv_heads = 2, ffn = 128 } }
  equal("kv heads may be copied", layout.tp_fits(blocks, 8), true)
end

--- Every option adds up, none is there twice, and the number is that of integer partitions.
local function check_options()
  local function partitions(n, largest)
    if n == 0 then
      return 1
    end
    local count = 0
    for k = math.min(n, largest), 1, -1 do
      count = count + partitions(n - k, k)
    end
    return count
  end
  for n = 1, 12 do
    local sizes, seen = {}, {}
    for i = 1, n do
      sizes[i] = i
    end
    local options, complete = recovery.options(n, sizes, 0, 10000)
    equal("complete", complete, true)
    equal("options of " .. n, #options, partitions(n, n))
    for _, x in ipairs(options) do
      local sum, key = 0, table.concat(x, " ")
      for i, k in ipairs(x) do
        sum = sum + k * sizes[i]
      end
      equal("option adds up", sum, n)
      equal("seen before", seen[key], nil)
      seen[key] = true
    end
  end
  local some, complete = recovery.options(30, { 1, 2, 3 }, 0, 5)
  equal("cap", #some, 5)
  equal("the cap is told", complete, false)
end

local function two_or_more(nodes)
  return #nodes >= 2
end

--- Repair: never below the least size, no node lost or doubled, for every pair of failures.
local function check_repairs()
  for a = 1, 9 do
    for b = a, 9 do
      local pipelines = { { 1, 2 }, { 3, 4, 5 }, { 6, 7, 8, 9 } }
      local left = recovery.repair(pipelines, { [a] = true, [b] = true }, two_or_more)
      local seen, count = {}, 0
      for _, p in ipairs(left) do
        equal("not too small", #p >= 2, true)
        for _, node in ipairs(p) do
          equal("a node twice or dead", (seen[node] or node == a or node == b) == true, false)
          seen[node], count = true, count + 1
        end
      end
      equal("all nodes that are left", count, a == b and 8 or 7)
    end
  end
end

return {
  api = 1, id = "libraries", title = "Tests of the libraries", kind = "test",
  system = "none", reference = "none", summary = "Checks layout and recovery.",
  plan = function()
    return nil, "this file only tests libraries"
  end,
  selftest = function(t)
    check_splits()
    t.ok("even, ranges, divisors, powers and Eq-P", true)
    check_definitions()
    t.ok("divisors and even splits against their definitions", true)
    check_loads()
    t.ok("loads are kept and fit", true)
    check_devices()
    t.ok("which devices and nodes are used", true)
    check_tensors()
    t.ok("where tensor parallelism fits", true)
    check_options()
    t.ok("options are the integer partitions", true)
    check_repairs()
    t.ok("repair keeps every node and the least size", true)
  end,
}
