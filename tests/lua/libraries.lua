-- Tests of share/lua: what planners share. `hetviz selftest tests/lua/libraries.lua`.
local asymmetric = require "asymmetric"
local candidates = require "candidates"
local layout = require "layout"
local loads = require "loads"
local pipes = require "pipes"
local recovery = require "recovery"
local stages = require "stages"
local workers = require "workers"

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
  equal("the divisor from 5 on", layout.divisor_from(36, 5), 6)
  equal("a divisor itself", layout.divisor_from(36, 9), 9)
  equal("no divisor from 37 on", layout.divisor_from(36, 37), nil)
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

--- Runs of equal nodes, most memory first; their nodes dealt out to equal pipelines.
local function check_stages()
  local nodes = {}
  for i = 1, 6 do
    local big = i > 2
    nodes[i] = { kind = big and "big" or "fast", ids = { 2 * i - 1, 2 * i }, memory_bytes = big and 2 or 1,
      flops_per_s = 1 }
  end
  local runs = stages.runs(nodes)
  equal("most memory first", runs[1][1].kind, "big")
  equal("pipelines", stages.copies(runs), "1 2")
  local list = stages.deal(runs, 2, false)
  equal("stages", #list, 3)
  equal("both pipelines' nodes", list[1].ids, "5 6 9 10")
  equal("merged", stages.deal(runs, 1, true)[1].ids, "5 6 7 8 9 10 11 12")
  equal("heads", stages.heads({ 5, 6, 9, 10 }, 2), "5 9")
  equal("join", stages.join { { ids = { 1 } }, { ids = { 3, 2 } } }, "1 3 2")
  equal("ranks", #stages.ranks(nodes, 2), 6)
  equal("no item, no reason", stages.shortage(nil, 1, nil, nodes[1]), nil)
  equal("weighted", layout.weighted_s({ 6, 9, 6 }, { 7, 1, 1 }), 21 + 8 * 9 + 15)
end

--- Layers that a stage holds; kinds of devices; what the cut of a graph of devices leaves together.
local function check_pipes()
  local t = { held = { 5, 2, 2, 3 }, room = 7 }
  equal("they fit exactly", pipes.fits(t, 1, 2), true)
  equal("one byte too many", pipes.fits(t, 2, 4) and not pipes.fits(t, 1, 3), true)
  equal("no layers fit", pipes.fits({ held = { 1 }, room = 0 }, 1, 0), true)
  equal("layers of a stage inside", pipes.most(t, false), 3)
  equal("of one with an end", pipes.most(t, true), 2)
  equal("at most the model's", pipes.most({ held = { 1, 1 }, room = 9 }, false), 2)
  equal("none", pipes.most({ held = { 9, 1 }, room = 8 }, true), 0)
  equal("kinds", pipes.kinds { { kind = "b" }, { kind = "a" }, { kind = "b" } }, "b a")
  local nodes = { { ids = { 7, 8 } }, { ids = { 3 } }, { ids = { 1, 2 } } }
  local apart, whole = asymmetric.atoms(nodes, false), asymmetric.atoms(nodes, true)
  equal("every device", #apart .. " " .. apart[5][1], "5 5")
  equal("every node", #whole .. " " .. table.concat(whole[3], " "), "3 4 5")
end

--- Nodes of a sequence by position, and which are gone with a device.
local function check_sequences()
  local sequence = { { ids = { 1, 2 } }, { ids = { 3 } }, { ids = { 4, 5 } } }
  local gone = recovery.gone(sequence, { 5 })
  equal("gone", (gone[1] or gone[2] or not gone[3]) and "wrong" or "third", "third")
  equal("in order", recovery.nodes(sequence, { 3, 1 })[2].ids, "4 5")
  equal("in words", recovery.text { { 1, 2 }, { 3 } }, "1 2 | 3")
  local cluster = {}
  function cluster.ids(_, address)
    return address == "first" and { 1, 4 } or { 2, 5 }
  end
  local made = { replicas = { { count = 2, stages = { { devices = "first" }, { devices = "second" } } } } }
  local pipelines = recovery.pipelines({ cluster = cluster }, made, sequence)
  equal("pipelines of a plan", recovery.text(pipelines), "1 | 3")
end

--- Workers of unequal nodes.
local function check_workers()
  local nodes = {}
  for i, kind in ipairs { "a", "b", "a", "b" } do
    nodes[i] = { kind = kind, flops_per_s = 3 - i % 2, ids = { 2 * i - 1, 2 * i } }
  end
  local choices = workers.equal(nodes)
  equal("two blocks, then one", choices[1].n .. " " .. choices[2].n, "4 2")
  equal("as many as are said", #choices[1].make() .. " " .. #choices[2].make(), "4 2")
  equal("a part of every node", workers.signature(workers.gpus(choices[2].make()[1])), "a a b b")
  local larger = workers.larger(nodes)
  equal("two GPUs of every node", #larger .. " " .. larger[1].n .. " " .. #workers.gpus(larger[1].make()[1]),
    "1 1 8")
  equal("staleness", workers.global_staleness(4, 4) .. " " .. workers.first_waiting(4, 4, 1), "22 27")
  equal("groups of equal workers", #workers.groups(choices[1].make()), 1)
  local odd = workers.hybrid({ nodes[1], nodes[2], nodes[3] })[1]
  equal("an odd node is a worker of its own", odd.n .. " " .. #odd.make(), "3 3")
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
  local function any() return true end
  local nodes = layout.nodes(layout.devices(ctx, false, any))
  equal("nodes", #nodes, 2)
  equal("devices of the first node", nodes[1].ids, "0 2")
  equal("node size", layout.node_size(nodes), 1)
  equal("of all fabrics", #layout.devices(ctx, true, any), 4)
  equal("CPUs too", #layout.devices(ctx, "hosts", any), 5)
  local function without(gone)
    return function(kind) return kind ~= gone, kind == gone and kind .. " has no price" or nil end
  end
  equal("the fabric that is left", layout.devices(ctx, false, without "x")[1].kind, "z")
  local none, why = layout.devices({ cluster = { devices = function() return { rows[1] } end } }, false, without "x")
  equal("none, and why", #none .. " " .. why, "0 x has no price")
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
  system = "none", reference = "none", summary = "Checks what planners share.",
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
    check_candidates()
    t.ok("candidates and the nearest miss", true)
    check_stages()
    t.ok("runs, stages and heads", true)
    check_pipes()
    t.ok("layers of a stage, kinds and atoms", true)
    check_sequences()
    t.ok("nodes that are gone", true)
    check_workers()
    t.ok("virtual workers", true)
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
