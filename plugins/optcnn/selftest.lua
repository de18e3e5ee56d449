-- Self-tests of OptCNN: the catalogue's diamond, random graphs against enumeration, and the
-- strategy's plan through the judge on plain links, against all choices.
local elimination = require "elimination"
local operator_world = require "testing.operator_world"
local oracle = require "testing.oracle"
local splits = require "operator_splits"

local FROM = "catalogue: optcnn; derived, Jia et al. 2018"

--- Operators of one class each with these seconds per way, and edges of seconds.
local function priced_of(nodes, edges)
  local priced = { ops = {}, classes = {}, edges = edges }
  for i, seconds in ipairs(nodes) do
    priced.ops[i], priced.classes[i] = { id = "o" .. i, class = i }, {}
    for k, s in ipairs(seconds) do
      priced.classes[i][k] = { forward_s = s, backward_s = 0, exchange_s = 0, sums_s = 0 }
    end
  end
  return priced
end

local function sum_of(priced, choices)
  local sum = 0
  for i, op in ipairs(priced.ops) do
    sum = sum + splits.seconds(priced.classes[op.class][choices[i]])
  end
  for _, edge in ipairs(priced.edges) do
    sum = sum + edge[3][choices[edge[1]]][choices[edge[2]]]
  end
  return sum
end

--- Calls visit(choices) for all choices.
local function each(priced, visit)
  local choices = {}
  local function from(i)
    if i > #priced.ops then
      return visit(choices)
    end
    for k in ipairs(priced.classes[priced.ops[i].class]) do
      choices[i] = k
      from(i + 1)
    end
  end
  from(1)
end

local function least_sum(priced)
  local least = math.huge
  each(priced, function(choices)
    least = math.min(least, sum_of(priced, choices))
  end)
  return least
end

local function check_diamond(t)
  local priced = priced_of({ { 3, 5 }, { 2, 4 }, { 6, 1 }, { 2, 2 } },
    { { 1, 2, { { 0, 4 }, { 3, 0 } } }, { 1, 3, { { 0, 2 }, { 5, 0 } } },
      { 2, 4, { { 0, 1 }, { 2, 0 } } }, { 3, 4, { { 0, 3 }, { 1, 0 } } } })
  t.equal("the diamond", elimination.least(priced).seconds, 11, FROM)
  local plans = {}
  each(priced, function(choices)
    if sum_of(priced, choices) == 11 then
      plans[#plans + 1] = table.concat(choices, " ")
    end
  end)
  t.equal("plans of 11", table.concat(plans, ", "), "1 1 2 1, 1 1 2 2", FROM)
end

local function random_graph()
  local nodes, edges = {}, {}
  for i = 1, 2 + hv.random(4) do
    nodes[i] = {}
    for k = 1, hv.random(3) do
      nodes[i][k] = hv.random(20)
    end
    for from = 1, i - 1 do
      if hv.random(2) == 1 then
        local rows = {}
        for a = 1, #nodes[from] do
          rows[a] = {}
          for b = 1, #nodes[i] do
            rows[a][b] = hv.random(10) - 1
          end
        end
        edges[#edges + 1] = { from, i, rows }
      end
    end
  end
  return priced_of(nodes, edges)
end

local function check_oracle(t)
  local found = oracle.drawn(200, random_graph, function(priced)
    local solved = elimination.least(priced)
    return solved and sum_of(solved.priced, solved.choices)
  end, least_sum)
  t.equal("200 random graphs against enumeration", found.optimal, 200, FROM)
  t.equal("values below the least", #found.wrong, 0, FROM)
end

local function check_judge(t)
  t.with(operator_world.chain(), function(ctx)
    local address, mesh = ctx.cluster:address { 1, 2, 3, 4 }, { a = 4 }
    local priced = hv.cost.splits { devices = address, ops = { "*" }, mesh = mesh, micro_batch = 1 }
    local least_s, n = math.huge, 0
    each(priced, function(choices)
      local stage = splits.stage(priced, choices, address, mesh)
      least_s = math.min(least_s,
        hv.plan.new(splits.plan(stage, 1, ctx.job.global_batch)):eval().iteration_s)
      n = n + 1
    end)
    local made = assert(hv.strategy("optcnn"))
    local s = made:eval().iteration_s
    t.ok(("its plan against all %d by the judge: %.3g %% above the best"):format(n,
      100 * (s / least_s - 1)), s <= least_s * (1 + 1e-9), FROM)
    t.ok("the sum is never below what is simulated",
      s <= made:table().claimed.iteration_s * (1 + 1e-9), FROM)
  end)
end

return function(t)
  check_diamond(t)
  check_oracle(t)
  check_judge(t)
end
