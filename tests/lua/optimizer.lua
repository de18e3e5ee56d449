-- Tests of hv.opt's classics from Lua. `hetviz selftest tests/lua/optimizer.lua`.

local function equal(name, got, want)
  if type(got) == "table" then
    got = table.concat(got, " ")
  end
  if got ~= want then
    error(("%s: got %s, expected %s"):format(name, tostring(got), tostring(want)), 2)
  end
end

--- The call must raise an error that contains the text.
local function refuses(name, text, f, ...)
  local ok, message = pcall(f, ...)
  equal(name .. " is refused", ok, false)
  if not tostring(message):find(text, 1, true) then
    error(("%s: %s does not say '%s'"):format(name, tostring(message), text), 2)
  end
end

local function check_answers()
  local k = hv.opt.knapsack { items = { { { 3, 2 }, { 5, 4 } }, { { 1, 1 }, { 4, 3 } } }, cap = 5 }
  equal("knapsack", k.choices, "1 2")
  equal("knapsack value", k.value, 7.0)
  local f = hv.opt.maxflow { edges = { { 1, 2, 3 }, { 2, 3, 2 } }, source = 1, sink = 3 }
  equal("flow", f.value, 2.0)
  equal("source side", f.cut, "1 2")
  local a = hv.opt.assign { cost = { { 1, 9 }, { 2, 3 } } }
  equal("assignment", a.columns, "1 2")
  equal("bottleneck", hv.opt.assign { cost = { { 1, 4 }, { 3, 9 } }, objective = "bottleneck" }.value, 4.0)
  local line = { { 0, 1, 5 }, { 1, 0, 1 }, { 5, 1, 0 } }
  equal("tour", hv.opt.path { cost = line, kind = "tsp_open" }.value, 2.0)
  equal("heaviest", hv.opt.path { cost = line, kind = "heaviest" }.value, 6.0)
  equal("shortest", hv.opt.path { cost = line, from = 1, to = 3 }.order, "1 2 3")
  local c = hv.opt.cut { weights = { 1, 1, 1, 1 }, edges = { { 1, 2, 5 }, { 2, 3, 1 }, { 3, 4, 5 } }, parts = 2 }
  equal("cut", c.value, 1.0)
  local g = hv.opt.graph_dp { nodes = { { 1, 2 }, { 3, 1 } }, edges = { { 1, 2, { { 0, 9 }, { 0, 0 } } } } }
  equal("choices", g.choices, "2 2")
  local front = hv.opt.graph_dp { nodes = { { { 1, 5 }, { 3, 2 } }, { { 2, 2 }, { 2, 3 } } }, edges = {},
    semiring = "pareto", method = "frontier" }.front
  equal("front", #front, 2)
  equal("front memory", front[2].memory, 4.0)
end

--- Values and costs that come from Lua, and errors inside them.
local function check_callbacks()
  local square = function(i, j) return (j - i + 1) ^ 2 end
  local p = hv.opt.partition { n = 6, parts = 3, load = square, sum = 1, max = 0 }
  equal("load as a function", p.value, 12.0)
  p = hv.opt.partition { n = 4, parts = 2, load = function(i, j) if j - i < 2 then return 5 end end }
  equal("runs that are not allowed", p.stages[1][2], 2)
  local spread = function(v) return math.max(v[1], v[2]) - math.min(v[1], v[2]) end
  p = hv.opt.partition { n = 5, parts = 2, load = { 4, 1, 1, 1, 1 }, combine = spread }
  equal("combine", p.value, 0.0)
  equal("combine's cut", p.stages[1][2], 1)
  refuses("combine raises", "no such value", hv.opt.partition,
    { n = 2, parts = 2, load = { 1, 1 }, combine = function() error("no such value") end })
  refuses("combine returns a text", "must return a number", hv.opt.partition,
    { n = 2, parts = 2, load = { 1, 1 }, combine = function() return "x" end })
  refuses("load raises", "deep inside", hv.opt.partition,
    { n = 2, parts = 2, load = function() error("deep inside") end })
  refuses("combine is no function", "combine: expected a function", hv.opt.partition,
    { n = 2, parts = 2, load = { 1, 1 }, combine = 3 })
  refuses("too many runs", "too many runs", hv.opt.partition, { n = 60000, parts = 2, load = square })
end

local function check_no()
  local answer, why = hv.opt.knapsack { items = { { { 1, 9 } } }, cap = 5 }
  equal("knapsack too small", answer, nil)
  equal("by how much", why, "the lightest options weigh 4.0 more than the capacity")
  answer, why = hv.opt.assign { cost = { { 1, math.huge }, { 1, math.huge } } }
  equal("no column", answer, nil)
  equal("rows left over", why, "1 rows at least find no allowed column")
  equal("no path", (hv.opt.path { cost = { { 0, math.huge }, { 1, 0 } }, from = 1, to = 2 }), nil)
end

local function check_refusals()
  refuses("knapsack key", "did you mean 'items'", hv.opt.knapsack, { item = {}, cap = 1 })
  refuses("knapsack cap", "cap: expected a number", hv.opt.knapsack, { items = {} })
  refuses("flow node", "a whole number from 1", hv.opt.maxflow, { edges = { { 0, 2, 1 } }, source = 1, sink = 2 })
  refuses("flow sink", "another node as sink", hv.opt.maxflow, { edges = {}, source = 1, sink = 1 })
  refuses("assign shape", "at least as many columns", hv.opt.assign, { cost = { { 1 }, { 2 } } })
  refuses("path matrix", "square matrix", hv.opt.path, { cost = { { 1, 2 } } })
  refuses("path kind", "expected", hv.opt.path, { cost = { { 0 } }, kind = "longest" })
  refuses("cut node", "has no weight", hv.opt.cut, { weights = { 1 }, edges = { { 1, 2, 1 } }, parts = 1 })
  refuses("choices rows", "expected 2 rows", hv.opt.graph_dp,
    { nodes = { { 1, 2 }, { 1 } }, edges = { { 1, 2, { { 1 } } } } })
  refuses("no chain", "a chain has edges", hv.opt.graph_dp,
    { nodes = { { 1 }, { 1 }, { 1 } }, edges = { { 1, 3, { { 1 } } } }, method = "chain" })
end

return {
  api = 1, id = "optimizer", title = "Tests of the optimizer", kind = "test",
  system = "none", reference = "none", summary = "Checks hv.opt from Lua.",
  plan = function()
    return nil, "this file only tests hv.opt"
  end,
  selftest = function(t)
    check_answers()
    t.ok("answers done by hand", true)
    check_callbacks()
    t.ok("values and costs from Lua", true)
    check_no()
    t.ok("no comes with the reason", true)
    check_refusals()
    t.ok("wrong arguments are named", true)
  end,
}
