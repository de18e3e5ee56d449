-- Tests of share/lua: search, policy, oracle, matrix, events. `hetviz selftest
-- tests/lua/searches.lua`.
local events = require "events"
local matrix = require "matrix"
local numbers = require "numbers"
local oracle = require "testing.oracle"
local policy = require "learn.policy"
local search = require "search"

--- A landscape over lists of three digits with local optima; its optimum is known by looking at
-- all.
local function rugged(s)
  local x = s[1] * 16 + s[2] * 4 + s[3]
  return (x * 37 + 11) % 64 + ((s[1] + s[2]) % 3) * 5
end

local digits = { { 0, 1, 2, 3 }, { 0, 1, 2, 3 }, { 0, 1, 2, 3 } }

local function neighbours(s)
  local out = {}
  for i = 1, #s do
    for _, d in ipairs { -1, 1 } do
      local t = { s[1], s[2], s[3] }
      t[i] = t[i] + d
      if t[i] >= 0 and t[i] <= 3 then
        out[#out + 1] = t
      end
    end
  end
  return out
end

local function problem(more)
  local p = { state = { 0, 0, 0 }, moves = neighbours, cost = rugged, values = digits, seed = 7 }
  for k, v in pairs(more) do
    p[k] = v
  end
  return p
end

--- Costs of a trace fall, evaluations are told honestly, the same seed gives the same answer.
local function check_contract(t, name, more)
  local calls = 0
  local p = problem(more)
  p.cost = function(s)
    calls = calls + 1
    return rugged(s)
  end
  local a = search[name](p)
  local falling = true
  for i = 2, #a.trace do
    falling = falling and a.trace[i][2] < a.trace[i - 1][2]
  end
  t.ok(name .. ": the trace falls", falling)
  t.near(name .. ": evaluations", a.evaluations, calls, 0)
  t.ok(name .. ": inside the budget", calls <= (more.budget or math.huge))
  t.near(name .. ": cost of the state", rugged(a.state), a.cost, 0)
  local b = search[name](problem(more))
  t.ok(name .. ": same seed, same answer", a.cost == b.cost and a.evaluations == b.evaluations)
end

local function check_searches(t)
  local all = search.enumerate { states = search.product(digits), cost = rugged }
  t.near("states", all.evaluations, 64, 0, "4 to the power 3")
  for _, name in ipairs { "hill", "coordinate", "beam", "anneal", "mcmc", "ga" } do
    check_contract(t, name, { budget = 300, rounds = 6, hot = 20, temperature = 10 })
    t.ok(name .. ": not below the optimum",
      search[name](problem { budget = 300, rounds = 6 }).cost >= all.cost)
  end
  t.near("a wide beam finds the optimum",
    search.beam(problem { width = 64, rounds = 9, key = table.concat }).cost, all.cost, 0,
    "enumeration")
  local cut = search.enumerate { states = search.product(digits), cost = rugged, budget = 5 }
  t.ok("a cut enumeration says so", not cut.complete and cut.evaluations == 5)
  local count, last = 0, nil
  for s in search.choices({ 2, 3, 1 }, 6) do
    count, last = count + 1, table.concat(s, " ")
  end
  t.ok("choices: all states, the last in the end", count == 6 and last == "2 3 1")
  t.ok("choices: too many", search.choices({ 2, 3, 1 }, 5) == nil
      and search.choices({ 9, 0 }, 5)() == nil)
  t.ok("no state is allowed",
    search.hill(problem { cost = function() return nil end }).cost == math.huge)
  t.ok("factors", #search.factor(12, 3) == 18 and search.factor(12, 3)[1][3] == 12, "d3(12) = 18")
end

--- Travelling order of five places: best-first proves the optimum of all permutations.
local function check_best_first(t)
  local d = { { 0, 3, 9, 4, 7 }, { 3, 0, 2, 8, 6 }, { 9, 2, 0, 5, 1 }, { 4, 8, 5, 0, 3 },
    { 7, 6, 1, 3, 0 } }
  local function length(order)
    local sum = 0
    for i = 2, #order do
      sum = sum + d[order[i - 1]][order[i]]
    end
    return sum
  end
  local best = search.enumerate { states = numbers.permutations(5), cost = length }
  local found = search.best_first {
    state = {}, bound = length,
    cost = function(s) return #s == 5 and length(s) or nil end,
    moves = function(s)
      local used, out = {}, {}
      for _, i in ipairs(s) do
        used[i] = true
      end
      for i = 1, 5 do
        if not used[i] then
          out[#out + 1] = { table.unpack(s) }
          table.insert(out[#out], i)
        end
      end
      return out
    end,
  }
  t.near("best-first", found.cost, best.cost, 0, "all 120 orders")
  t.ok("best-first proves it with less", found.complete and found.evaluations < 325)
  local tree = search.mcts {
    state = "", budget = 400, seed = 3, cost = function(s) return 63 - tonumber(s, 2) end,
    moves = function(s) return #s < 6 and { s .. "0", s .. "1" } or {} end,
  }
  t.near("tree search", tree.cost, 0, 0)
end

local function check_policy(t)
  local p = policy.softmax { 1000, 1000, -1000 }
  local likely = policy.likeliest { { 0.2, 0.5, 0.3 }, { 0.4, 0.4, 0.2 } }
  t.ok("the likeliest, of equals the first", table.concat(likely, " ") == "2 1")
  t.ok("softmax of large logits", p[1] == 0.5 and p[3] == 0)
  for _, name in ipairs { "reinforce", "ppo" } do
    local r = policy[name] {
      choices = { 4, 4, 4 }, budget = 1200, seed = 2,
      cost = function(s) return (s[1] - 2) ^ 2 + (s[2] - 3) ^ 2 + (s[3] - 1) ^ 2 end,
    }
    t.near(name .. " finds the optimum", r.cost, 0, 0)
    t.ok(name .. " prefers it", r.probabilities[2][3] > 0.5 and r.evaluations == 1200)
  end
end

--- Even cuts are a heuristic for contiguous parts; the exact partition is the optimum.
local function check_oracle(t)
  local cases = { { 5, 1, 1, 1, 4 }, { 3, 3, 3, 3 }, { 9, 1, 1, 9, 1, 1 } }
  local function longest(cut, case)
    local from, most = 1, 0
    for _, last in ipairs(cut) do
      local sum = 0
      for i = from, last do
        sum = sum + case[i]
      end
      most, from = math.max(most, sum), last + 1
    end
    return most
  end
  local function exact(case)
    local cut = {}
    for i, range in ipairs(hv.opt.partition { n = #case, parts = 2, load = case }.stages) do
      cut[i] = range[2]
    end
    return cut
  end
  local q = {
    cases = cases, cost = longest, states = function(case) return oracle.cuts(#case, 2) end,
    solve = exact,
  }
  local r = oracle.compare(q)
  t.ok("hv.opt.partition is exact", r.optimal == 3 and #r.wrong == 0)
  q.solve = function(case) return { 1, #case } end
  r = oracle.compare(q)
  t.ok("a bad heuristic is told", r.optimal < 3 and r.worst > 0.2 and r.mean <= r.worst)
  q.solve = function() return nil end
  t.near("no answer is wrong", #oracle.compare(q).wrong, 3, 0)
  t.near("cuts of 6 into 3", #oracle.cuts(6, 3), 10, 0, "5 choose 2")
end

local function check_least_pipeline(t)
  t.near("least pipeline", oracle.least_pipeline({ { 5, 3 }, { [4] = 6, [8] = 2 } }, 4), 14, 0,
    "3 + 2 + 3 x 3")
end

local function check_matrix(t)
  local a = { { 4, 1, 2 }, { 1, 3, 0 }, { 2, 0, 5 } }
  local values, vectors = matrix.eigen(a)
  t.near("trace", values[1] + values[2] + values[3], 12, 1e-12)
  t.near("determinant", values[1] * values[2] * values[3], 43, 1e-10, "4·15 − 5 − 12")
  local off = 0
  for k, v in ipairs(vectors) do
    for i = 1, 3 do
      local sum = 0
      for j = 1, 3 do
        sum = sum + a[i][j] * v[j]
      end
      off = math.max(off, math.abs(sum - values[k] * v[i]))
    end
  end
  t.near("A v = λ v", off, 0, 1e-12)
  t.ok("errors", not pcall(matrix.eigen, { { 1, 2 }, { 3, 4 } })
      and not pcall(matrix.mul, { { 1 } }, { { 1 }, { 2 } }))
end

local function check_events(t)
  local q, random, times = events.queue(), search.generator(5), {}
  for i = 1, 200 do
    times[i] = random(20)
    q:push(times[i], i)
  end
  table.sort(times)
  local ordered, last = true, { 0, 0 }
  for i = 1, 200 do
    local time, event = q:pop()
    ordered = ordered and time == times[i] and (time > last[1] or event > last[2])
    last = { time, event }
  end
  t.ok("in order of time, then of pushing", ordered and #q == 0 and q:pop() == nil)
  q:push(3, "x")
  q:push(9, "y")
  local now, count = events.run(q, function() end, 5)
  t.ok("the horizon", now == 3 and count == 1 and q:peek() == 9)
  t.ok("times are numbers", not pcall(q.push, q, 0 / 0) and not pcall(q.push, q, "1"))
end

return {
  api = 1, id = "searches", title = "Tests of the libraries", kind = "test", system = "none",
  reference = "none", summary = "Checks search, policy, oracle, matrix and events.",
  plan = function() return nil, "this file only tests libraries" end,
  selftest = function(t)
    check_searches(t)
    check_best_first(t)
    check_policy(t)
    check_oracle(t)
    check_least_pipeline(t)
    check_matrix(t)
    check_events(t)
  end,
}
