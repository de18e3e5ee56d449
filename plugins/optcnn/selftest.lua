-- Self-tests of OptCNN: the catalogue's diamond, random graphs against enumeration, and the
-- strategy's plan through the judge on plain links, against all choices.
local elimination = require "elimination"
local oracle = require "testing.oracle"
local splits = require "operator_splits"
local world = require "testing.operator_world"

local FROM = "catalogue: optcnn; derived, Jia et al. 2018"

local function least_sum(priced)
  local least = math.huge
  world.each(priced, function(choices)
    least = math.min(least, world.sum_of(priced, choices))
  end)
  return least
end

local function check_diamond(t)
  local priced = world.priced_of({ { 3, 5 }, { 2, 4 }, { 6, 1 }, { 2, 2 } },
    world.DIAMOND)
  t.equal("the diamond", elimination.least(priced).seconds, 11, FROM)
  local plans = {}
  world.each(priced, function(choices)
    if world.sum_of(priced, choices) == 11 then
      plans[#plans + 1] = table.concat(choices, " ")
    end
  end)
  t.equal("plans of 11", table.concat(plans, ", "), "1 1 2 1, 1 1 2 2", FROM)
end

local function check_oracle(t)
  local found = oracle.drawn(200, world.random, function(priced)
    local solved = elimination.least(priced)
    return solved and world.sum_of(solved.priced, solved.choices)
  end, least_sum)
  t.equal("200 random graphs against enumeration", found.optimal, 200, FROM)
  t.equal("values below the least", #found.wrong, 0, FROM)
end

local function check_judge(t)
  t.with(world.chain(), function(ctx)
    local address, mesh = ctx.cluster:address { 1, 2, 3, 4 }, { a = 4 }
    local priced = hv.cost.splits { devices = address, ops = { "*" }, mesh = mesh, micro_batch = 1 }
    local least_s, n = math.huge, 0
    world.each(priced, function(choices)
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
