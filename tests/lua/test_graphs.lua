-- Tests of hv.graph and hv.shard, and of the builders in share/lua/graphs.
-- `hetviz selftest tests/lua/test_graphs.lua`.
local builder = require "graphs.builder"
local convolutional = require "graphs.convolutional"

local function check_sets(t)
  local edges = { { 1, 2 }, { 1, 3 }, { 2, 4 }, { 3, 4 } }
  local diamond = hv.graph{ ops = { {}, {}, {}, {} }, edges = edges }
  t.near("ideals of a diamond: none, 1, 12, 13, 123, 1234", #diamond:ideals(), 6, 0)
  t.near("as many antichains", #diamond:antichains(), 6, 0)
  t.ok("more than the cap is a reason", diamond:ideals{ cap = 5 } == nil)
  t.ok("a diamond is series-parallel", diamond:sp() ~= nil)
  local cross = hv.graph{ ops = { {}, {}, {}, {}, {}, {} }, edges = { { 1, 2 }, { 1, 3 }, { 2, 4 },
    { 3, 4 }, { 2, 5 }, { 3, 5 }, { 4, 6 }, { 5, 6 } } }
  t.ok("two by two is not", cross:sp() == nil)
  local ring = hv.graph{ ops = { {}, {} }, edges = { { 1, 2 }, { 2, 1 } } }
  t.ok("a ring has no order", ring:topo() == nil)
end

local function check_coarse(t)
  local g = hv.graph(convolutional.resnet{ batch = 2, size = 32 })
  local flops, coarse = 0, g:coarsen(function(op)
    return op.id:match("^stage%d+%.block%d+") or op.id:match("^%a+")
  end)
  local all = 0
  for _, op in ipairs(g:ops()) do
    all = all + op.flops
  end
  for _, op in ipairs(coarse:ops()) do
    flops = flops + op.flops
  end
  t.near("16 blocks, stem, pool, classifier, loss", #coarse:ops(), 20, 0)
  t.near("nothing is lost", flops, all, 1e-12)
  t.near("a chain has an edge less than operators", #coarse:edges(), 19, 0)
  t.near("ideals of a chain", #coarse:ideals(), 21, 0)
  local two = hv.graph{ ops = { {}, {}, {} }, edges = { { 1, 2 }, { 2, 3 } } }
  t.ok("groups that wait for each other", two:coarsen(function(_, i)
    return i ~= 2 and "ends" or nil
  end) == nil)
end

-- Catalogue, gspmd: Y[8, 1024] = X[8, 1024] W[1024, 1024] of 4 bytes on 4 devices.
local function check_product(t)
  local b = builder.new("product")
  local x = b:input("x", { b:dim("batch", 8), b:dim("m", 1024) })
  b:linear{ x, "y", to = b:dim("h", 1024) }
  local g, mesh = hv.graph(b:finish()), { { "d", 4 } }
  local r = hv.shard.lower(g, { x = { d = "m" } }, mesh, { outputs = { "y" } })
  t.near("the sum is reduced: 2 * 3/4 * 32 KiB", r.sent_bytes, 48 * 1024, 0)
  local way = hv.shard.reshard({ d = "partial" }, { d = "h" }, 32768, mesh)
  t.near("and scattered where it may lie split: 24 KiB", way.bytes, 24 * 1024, 0)
  t.ok("by a reduce_scatter", way.steps[1].kind == "reduce_scatter" and #way.steps == 1)
  local all = hv.shard.propagate(g, { x = { batch = { "d" } } }, { mesh = mesh })
  t.ok("a batch goes on to the result", all.layouts.y.batch[1] == "d")
  t.ok("and the weight stays whole", all.layouts["y.weight"] == nil or
    next(all.layouts["y.weight"]) == nil)
end

local function check_reshard(t)
  local mesh = { { "x", 2 }, { "y", 4 } }
  local gather = hv.shard.reshard({ a = { "x", "y" } }, {}, 800, mesh)
  t.near("7 of 8 parts are missing", gather.bytes, 700, 1e-12)
  t.near("from 7 others to each of 8", #gather.pairs, 56, 0)
  local turn = hv.shard.reshard({ y = "a" }, { y = "b" }, 800, mesh)
  t.near("3/4 of a quarter", turn.bytes, 150, 1e-12)
  t.ok("an axis that is not there", not pcall(hv.shard.reshard, { z = "a" }, {}, 8, mesh))
end

return {
  api = 1, id = "test_graphs", title = "graphs", kind = "yours", system = "tests",
  summary = "Tests of operator graphs.",
  plan = function() return nil, "only tests" end,
  selftest = function(t)
    check_sets(t)
    check_coarse(t)
    check_product(t)
    check_reshard(t)
  end,
}
