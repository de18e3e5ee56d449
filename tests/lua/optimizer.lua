-- Tests of hv.opt's classics from Lua. `hetviz selftest tests/lua/optimizer.lua`.
local chain_program = require "chain_program"
local search = require "search"

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
  equal("bottleneck", hv.opt.assign { cost = { { 1, 4 }, { 3, 9 } },
    objective = "bottleneck" }.value, 4.0)
  local line = { { 0, 1, 5 }, { 1, 0, 1 }, { 5, 1, 0 } }
  equal("tour", hv.opt.path { cost = line, kind = "tsp_open" }.value, 2.0)
  equal("heaviest", hv.opt.path { cost = line, kind = "heaviest" }.value, 6.0)
  equal("shortest", hv.opt.path { cost = line, from = 1, to = 3 }.order, "1 2 3")
  local c = hv.opt.cut { weights = { 1, 1, 1, 1 },
    edges = { { 1, 2, 5 }, { 2, 3, 1 }, { 3, 4, 5 } }, parts = 2 }
  equal("cut", c.value, 1.0)
  local g = hv.opt.graph_dp { nodes = { { 1, 2 }, { 3, 1 } },
    edges = { { 1, 2, { { 0, 9 }, { 0, 0 } } } } }
  equal("choices", g.choices, "2 2")
  local front = hv.opt.graph_dp { nodes = { { { 1, 5 }, { 3, 2 } }, { { 2, 2 }, { 2, 3 } } },
    edges = {},
    semiring = "pareto", method = "frontier" }.front
  equal("front", #front, 2)
  equal("front memory", front[2].memory, 4.0)
end

--- A fold of a diamond with an edge doubled: longest path and number of paths, and what is no
-- series-parallel graph.
local function check_series()
  local function fold(edges)
    return hv.opt.series { edges = edges, source = 1, sink = 4,
      leaf = function(edge) return { long = 1, paths = 1, first = edge } end,
      series = function(a, vertex, b)
        return { long = a.long + b.long, paths = a.paths * b.paths, first = vertex }
      end,
      parallel = function(a, b)
        return { long = math.max(a.long, b.long), paths = a.paths + b.paths }
      end }
  end
  local whole = fold { { 1, 2 }, { 2, 4 }, { 1, 3 }, { 1, 3 }, { 3, 4 } }
  equal("longest path", whole.long, 2)
  equal("paths", whole.paths, 3)
  local none, why = fold { { 1, 2 }, { 2, 4 }, { 1, 3 }, { 3, 4 }, { 2, 3 } }
  equal("a bridge", none, nil)
  equal("why", why, "the graph is not series-parallel")
  refuses("series leaf", "expected a function", hv.opt.series,
    { edges = { { 1, 2 } }, source = 1, sink = 2 })
  refuses("series terminals", "", hv.opt.series, { edges = { { 1, 2 } }, source = 1, sink = 1,
    leaf = fold, series = fold, parallel = fold })
  refuses("series error", "boom", hv.opt.series, { edges = { { 1, 2 } }, source = 1, sink = 2,
    leaf = function() error "boom" end, series = fold, parallel = fold })
end

--- Values and costs that come from Lua, and errors inside them.
local function check_callbacks()
  local square = function(i, j) return (j - i + 1) ^ 2 end
  local p = hv.opt.partition { n = 6, parts = 3, load = square, sum = 1, max = 0 }
  equal("load as a function", p.value, 12.0)
  p = hv.opt.partition { n = 4, parts = 2, load = function(i, j)
    if j - i < 2 then
      return 5
    end
  end }
  equal("runs that are not allowed", p.stages[1][2], 2)
  local spread = function(v) return math.max(v[1], v[2]) - math.min(v[1], v[2]) end
  p = hv.opt.partition { n = 5, parts = 2, load = { 4, 1, 1, 1, 1 }, combine = spread }
  equal("combine", p.value, 0.0)
  equal("combine's cut", p.stages[1][2], 1)
  refuses("combine raises", "no such value", hv.opt.partition,
    { n = 2, parts = 2, load = { 1, 1 }, combine = function()
      error("no such value")
    end })
  refuses("combine returns a text", "must return a number", hv.opt.partition,
    { n = 2, parts = 2, load = { 1, 1 }, combine = function() return "x" end })
  refuses("load raises", "deep inside", hv.opt.partition,
    { n = 2, parts = 2, load = function()
      error("deep inside")
    end })
  refuses("combine is no function", "combine: expected a function", hv.opt.partition,
    { n = 2, parts = 2, load = { 1, 1 }, combine = 3 })
  refuses("too many runs", "too many runs", hv.opt.partition,
    { n = 60000, parts = 2, load = square })
end

--- Several chunks per rank, and stages with copies.
local function check_stages()
  local ones = { 1, 1, 1, 1, 1, 1, 1, 1 }
  local r = hv.opt.partition { n = 8, parts = 4, load = ones, ranks = 2 }
  equal("chunks of ranks in a loop", r.rank, "1 2 1 2")
  equal("busiest rank", r.value, 4)
  equal("loads", r.loads, "4.0 4.0")
  r = hv.opt.partition { n = 8, parts = 4, load = ones, ranks = 2, placement = "fold" }
  equal("a V", r.rank, "1 2 2 1")
  -- rank 2 is three times slower: it gets 2 of 8 layers
  local slow = { 3, 3, 3, 3, 3, 3, 3, 3 }
  r = hv.opt.partition { n = 8, parts = 4, load = { ones, slow, slow, ones }, ranks = 2,
    rank = { 1, 2, 2, 1 } }
  equal("unequal ranks", r.value, 6)
  refuses("half a chunk", "expected a multiple of the 2 ranks", hv.opt.partition,
    { n = 8, parts = 3, load = ones, ranks = 2 })
  refuses("no such rank", "ranks from 1 to 2", hv.opt.partition,
    { n = 8, parts = 2, load = ones, ranks = 2, rank = { 1, 3 } })
  refuses("ranks and sum", "busiest rank", hv.opt.partition,
    { n = 8, parts = 2, load = ones, ranks = 2, sum = 1 })
  r = hv.opt.partition { n = 4, parts = "any", load = { 1, 1, 1, 1 }, cut = { 9, 1, 9 } }
  equal("as many parts as are best", #r.stages, 2)
  equal("cuts of each boundary", hv.opt.partition { n = 3, parts = 2, load = { 1, 1, 1 },
    cut = { { 5, 0 } } }.value, 2)
  -- 3 devices, no cost to keep copies equal: one stage with three copies, or cuts of 1 + 1 + 1
  local copies = { devices = 3, widths = { { load = { 3, 3, 3 } } } }
  equal("copies", hv.opt.partition { n = 3, replicas = copies }.value, 3)
  copies = { devices = 2, memory = 4, widths = { { width = 1, load = { { 1, 1 }, { 2, 2 } },
    held = { { 3, 3 }, { 1, 1 } }, sync = { 9, 9 } } } }
  r = hv.opt.partition { n = 2, replicas = copies }
  equal("two stages", #r.stages, 2)
  equal("the first holds two samples and recomputes", r.choices, "2 1")
  equal("value with recompute", r.value, 2)
  equal("in flight", r.stages[1].in_flight, 2)
  copies.memory = 0.5
  local none, why = hv.opt.partition { n = 2, replicas = copies }
  equal("too little memory", none, nil)
  equal("with a reason", type(why), "string")
  refuses("replicas and parts", "parts", hv.opt.partition, { n = 2, parts = 2, replicas = copies })
end

--- Times that are curves, tables or functions.
local function check_curves()
  local bent = { { 0, 0 }, { 4, 4 }, { 8, 20 } }
  local d = hv.opt.distribute { total = 10, time = { bent, 1 } }
  equal("points", d.counts, "4 6")
  equal("longest", d.value, 6)
  d = hv.opt.distribute { total = 10, time = { bent, 3 }, objective = "sum" }
  equal("cheapest first", d.counts, "4 6")
  equal("sum", d.value, 22)
  local square = function(share, n) return share * n * n end
  d = hv.opt.distribute { total = 9, shares = 2, time = square, objective = "sum" }
  equal("function", d.counts, "6 3")
  d = hv.opt.distribute { total = 9, shares = 2, time = function(_, n)
    if n <= 5 then
      return n
    end
  end }
  equal("nil is a cap", d.counts, "5 4")
  local root = function(_, n) return n ^ 0.5 end
  equal("minmax takes any that rises", hv.opt.distribute { total = 8, shares = 2,
    time = root }.value, 2)
  refuses("not convex", "not convex", hv.opt.distribute,
    { total = 8, shares = 2, time = root, objective = "sum" })
  refuses("falls", "never fall", hv.opt.distribute,
    { total = 8, time = { { { 0, 2 }, { 9, 1 } } } })
  refuses("time raises", "deep inside", hv.opt.distribute,
    { total = 8, shares = 2, time = function()
      error("deep inside")
    end })
  refuses("too many values", "too many values", hv.opt.distribute,
    { total = 2000000, shares = 2, time = square })
  refuses("point", "expected {count, time}", hv.opt.distribute, { total = 8, time = { { 3 } } })
  refuses("curve as proportion", "no curves", hv.opt.distribute,
    { total = 8, time = { bent }, objective = "ratio" })
end

--- Linear programs: sensitivity and ordered sets.
local function check_programs()
  -- Hillier and Lieberman, Wyndor Glass
  local lp = hv.opt.lp { sense = "max" }
  local x, y = lp:var {}, lp:var {}
  lp:row({ [x] = 1 }, "<=", 4)
  lp:row({ [y] = 2 }, "<=", 12)
  lp:row({ [x] = 3, [y] = 2 }, "<=", 18)
  lp:objective { [x] = 3, [y] = 5 }
  local r = lp:solve { ranges = true }
  local function near(name, range, from, till)
    for k, want in ipairs { from, till } do
      if range[k] ~= want and math.abs(range[k] - want) > 1e-6 then
        error(("%s: got %s, expected %s"):format(name, range[k], want), 2)
      end
    end
  end
  near("cost of x", r.ranges.cost[x], 0, 7.5)
  near("cost of y", r.ranges.cost[y], 2, math.huge)
  near("plant 1", r.ranges.rhs[1], 2, math.huge)
  near("plant 3", r.ranges.rhs[3], 12, 24)
  equal("no ranges unasked", lp:solve {}.ranges, nil)
  equal("as text", lp:text():match("r3: [^\n]*"), "r3: +3 x1 +2 x2 <= 18;")
  equal("as MPS", lp:text("mps"):sub(1, 4), "NAME")
  refuses("format", "invalid option", lp.text, lp, "xml")
  lp = hv.opt.lp { sense = "max" }
  local v = {}
  for k = 1, 4 do
    v[k] = lp:var { upper = 2 }
  end
  lp:objective { [v[1]] = 5, [v[2]] = 1, [v[3]] = 3, [v[4]] = 3 }
  lp:sos(v, 2)
  equal("two neighbours", lp:solve {}.objective, 12)
  lp:sos(v, 1)
  equal("one alone", lp:solve {}.objective, 10)
  refuses("ranges of integers", "integer variables", lp.solve, lp, { ranges = true })
  refuses("set of one", "at least two", lp.sos, lp, { v[1] }, 1)
  refuses("type", "type 1 or 2", lp.sos, lp, v, 3)
  refuses("no variable", "list of variables", lp.sos, lp, { 1, 99 })
end

local function check_no()
  local answer, why = hv.opt.knapsack { items = { { { 1, 9 } } }, cap = 5 }
  equal("knapsack too small", answer, nil)
  equal("by how much", why, "the lightest options weigh 4.0 more than the capacity")
  answer, why = hv.opt.assign { cost = { { 1, math.huge }, { 1, math.huge } } }
  equal("no column", answer, nil)
  equal("rows left over", why, "at least 1 rows have no allowed column")
  equal("no path", (hv.opt.path { cost = { { 0, math.huge }, { 1, 0 } }, from = 1, to = 2 }), nil)
end

local function check_refusals()
  refuses("knapsack key", "did you mean 'items'", hv.opt.knapsack, { item = {}, cap = 1 })
  refuses("knapsack cap", "cap: expected a number", hv.opt.knapsack, { items = {} })
  refuses("flow node", "a whole number from 1", hv.opt.maxflow,
    { edges = { { 0, 2, 1 } }, source = 1, sink = 2 })
  refuses("flow sink", "another node as sink", hv.opt.maxflow, { edges = {}, source = 1, sink = 1 })
  refuses("assign shape", "at least as many columns", hv.opt.assign, { cost = { { 1 }, { 2 } } })
  -- a first row without numbers fixes the width at 0: the next row must not be copied behind it
  local wide = {}
  for k = 1, 2000 do
    wide[k] = k
  end
  refuses("a row behind an empty one", "expected 0 numbers at 2, found 2000", hv.opt.assign,
    { cost = { {}, wide } })
  refuses("a path with an empty row", "expected 0 numbers at 2, found 2000", hv.opt.path,
    { cost = { {}, wide }, kind = "tsp_open" })
  refuses("no columns at all", "at least as many columns", hv.opt.assign, { cost = { {}, {} } })
  refuses("path matrix", "square matrix", hv.opt.path, { cost = { { 1, 2 } } })
  refuses("path kind", "expected", hv.opt.path, { cost = { { 0 } }, kind = "longest" })
  refuses("cut node", "has no weight", hv.opt.cut,
    { weights = { 1 }, edges = { { 1, 2, 1 } }, parts = 1 })
  refuses("choices rows", "expected 2 rows", hv.opt.graph_dp,
    { nodes = { { 1, 2 }, { 1 } }, edges = { { 1, 2, { { 1 } } } } })
  refuses("no chain", "a chain has edges", hv.opt.graph_dp,
    { nodes = { { 1 }, { 1 }, { 1 } }, edges = { { 1, 3, { { 1 } } } }, method = "chain" })
end

--- Random chains with memory and cuts: the integer program and the exact partition give one value.
local function check_chains()
  local random = search.generator(5)
  for _, shape in ipairs { { 2, 8 }, { 3, 10 }, { 4, 16 }, { 4, 24 } } do
    local k, n = shape[1], shape[2]
    local p = { n = n, parts = k, load = {}, memory = {}, capacity = {}, cut = {}, sum = 0,
      max = 1 }
    for s = 1, k do
      local pace = random(3)
      p.load[s], p.memory[s], p.capacity[s], p.cut[s] = {}, {}, 1.6e10 * n / k, s < k and {} or nil
      for l = 1, n do
        p.load[s][l], p.memory[s][l] = pace * (1 + 0.1 * random()), 1e10 * (1 + random() / 2)
        if s < k and l < n then
          p.cut[s][l] = random()
        end
      end
    end
    local exact, program = hv.opt.partition(p), chain_program.solve(p)
    assert((exact == nil) == (program == nil), "both or none")
    assert(not exact or math.abs(exact.value - program.value) <= 1e-7 * exact.value, "one value")
  end
  assert(chain_program.solve { n = 1, parts = 2, load = { { 1 }, { 1 } } } == nil,
    "more parts than layers")
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
    check_series()
    check_callbacks()
    t.ok("values and costs from Lua", true)
    check_stages()
    t.ok("chunks of ranks and copies of stages", true)
    check_curves()
    t.ok("times that are curves", true)
    check_programs()
    t.ok("ranges and ordered sets", true)
    check_chains()
    t.ok("chains as integer programs", true)
    check_no()
    t.ok("no comes with the reason", true)
    check_refusals()
    t.ok("wrong arguments are named", true)
  end,
}
