-- Self-tests of Partial Reduce: rho of mean group matrices, and the controller's groups beside the
-- catalogue, examples by hand, and the simulator.
local controller = require "controller"
local mixing = require "mixing"

local CATALOGUE = "catalogue: preduce"
local WAIT = "Hetu's adaptive wait, by hand"
local BOUND = "stale synchronous bound, by hand"
local WEIGHTS = "weights by staleness, by hand"
local THIRD = 1 / 3

--- The time of an average that takes none.
local function no_time()
  return 0
end

--- rho of groups that occur with these shares: rows { share, members }.
local function rho_of(n, rows)
  return mixing.rho(mixing.mean(n, rows))
end

local function check_rho(t)
  t.near("rho, 4 workers, P = 4", rho_of(4, { { share = 1, members = { 1, 2, 3, 4 } } }), 0, 1e-9,
    CATALOGUE)
  t.near("rho, 3 workers, P = 2, pairs equally often", rho_of(3, {
    { share = THIRD, members = { 1, 2 } },
    { share = THIRD, members = { 1, 3 } },
    { share = THIRD, members = { 2, 3 } },
  }), 0.5, 1e-9, CATALOGUE)
  t.near("rho, 3 workers, P = 2, pair 1 2 half of the time, the others a quarter", rho_of(3, {
    { share = 0.5, members = { 1, 2 } },
    { share = 0.25, members = { 1, 3 } },
    { share = 0.25, members = { 2, 3 } },
  }), 0.625, 1e-9, CATALOGUE)
  t.near("rho, 4 workers, P = 3, all groups equally often: 1 - (P - 1) / (N - 1)", rho_of(4, {
    { share = 0.25, members = { 1, 2, 3 } },
    { share = 0.25, members = { 1, 2, 4 } },
    { share = 0.25, members = { 1, 3, 4 } },
    { share = 0.25, members = { 2, 3, 4 } },
  }), 1 - 2 / 3, 1e-9, CATALOGUE)
  t.near("rho, 3 workers, pair 1 2 two thirds of the time, pair 1 3 one third", rho_of(3, {
    { share = 2 / 3, members = { 1, 2 } },
    { share = THIRD, members = { 1, 3 } },
  }), (1 + math.sqrt(THIRD)) / 2, 1e-9, CATALOGUE)
end

local function check_three_workers(t)
  local q = { n = 3, times = { 1, 1, 2 }, group = 2, reduce_s = no_time, horizon = 6 }
  t.equal("workers of 1 1 2 s, P = 2: members@time of the groups",
    controller.text(controller.play(q), 6), "12@1 12@2 31@3 21@4 12@5 31@6", CATALOGUE)
  q.horizon = 6000
  local groups, mean = controller.play(q)
  t.near("workers of 1 1 2 s, P = 2: gradients per second", 2 * #groups / groups[#groups].at, 2,
    1e-3, CATALOGUE)
  t.near("workers of 1 1 2 s, all-reduce: gradients per second",
    #q.times / math.max(table.unpack(q.times)), 1.5, 1e-12, CATALOGUE)
  t.near("workers of 1 1 2 s, P = 2: rho of the groups played", mixing.rho(mean), 0.7887, 1e-3,
    CATALOGUE)
end

local function check_cliques(t)
  local q = { n = 4, times = { 1, 1, 2, 2 }, group = 2, reduce_s = no_time, horizon = 40 }
  local _, mean = controller.play(q)
  t.near("workers of 1 1 2 2 s in order of arrival, two cliques: rho", mixing.rho(mean), 1, 1e-9,
    CATALOGUE)
  q.avoid = true
  local groups
  groups, mean = controller.play(q)
  t.equal("workers of 1 1 2 2 s, components are joined: members@time of the groups",
    controller.text(groups, 5), "12@1 12@2 34@2 13@4 24@4", CATALOGUE)
  t.ok("workers of 1 1 2 2 s, components are joined: rho below 0.99", mixing.rho(mean) < 0.99,
    CATALOGUE)
end

local function check_wait(t)
  local q = { n = 3, times = { 1, 1, 2 }, group = 3, reduce_s = no_time, horizon = 40, wait = 0.5,
    wait_most = 10 }
  t.equal("workers of 1 1 2 s, P = 3, wait of 0.5 s: members@time of the groups",
    controller.text(controller.play(q), 4), "12@1.5 3@2.45 12@2.905 12@4.2695", WAIT)
  q.least = 2
  local groups = controller.play(q)
  t.equal("the same, groups below 2 members double the wait: members@time of the groups",
    controller.text(groups, 4), "12@1.5 3@2.45 12@3.4 123@4.45", WAIT)
  local members = 0
  for _, group in ipairs(groups) do
    members = members + #group.members
  end
  local simulated = hv.sim.workers { kind = "partial_reduce", period_s = q.times, group = 3,
    wait_s = q.wait, wait_most_s = 10, least = 2, horizon_s = 40 }
  t.near("the same: mean members of a group, beside the simulator", members / #groups,
    simulated.mean_group, 1e-9, WAIT)
end

local function check_bound(t)
  local q = { n = 3, times = { 1, 1, 4 }, group = 2, reduce_s = no_time, horizon = 400, bound = 1 }
  t.equal("workers of 1 1 4 s, at most one step ahead: members@time of the groups",
    controller.text(controller.play(q), 6), "12@1 12@2 31@5 23@9 12@10 31@14", BOUND)
end

local function check_weights(t)
  local weights = mixing.weights({ 0, 1, 1 }, 0.5)
  t.equal("weights of members 0, 1 and 1 steps behind, decay 0.5",
    ("%g %g %g"):format(table.unpack(weights)), "0.5 0.25 0.25", WEIGHTS)
  t.near("decay 1: rho by staleness is rho of the mean matrix", mixing.rho_by_staleness(3, {
    { members = { 1, 2 }, behind = { 0, 3 } },
    { members = { 1, 2 }, behind = { 0, 0 } },
    { members = { 1, 3 }, behind = { 0, 1 } },
  }, 1), (1 + math.sqrt(THIRD)) / 2, 1e-9, CATALOGUE)
  t.near("two workers with weights 2/3 and 1/3: rho by staleness",
    mixing.rho_by_staleness(2, { { members = { 1, 2 }, behind = { 0, 1 } } }, 0.5), 0, 1e-9,
    WEIGHTS)
end

return function(t)
  check_rho(t)
  check_three_workers(t)
  check_cliques(t)
  check_wait(t)
  check_bound(t)
  check_weights(t)
end
