-- Self-tests: the equations, the search beside all configurations of a small case, and both beside
-- the authors' own search and profile.
local bottleneck = require "bottleneck"
local configuration = require "configuration"
local operators = require "operators"
local recomputation = require "recomputation"
local spectrain = require "spectrain"

local CATALOGUE = "catalogue: aceso"
local AUTHORS = "Aceso fa80ad0"

local function test_formulas(t)
  local list, worst = configuration.stage_times({ 3, 5, 4 }, 8)
  t.equal("t (M - 1) + sum t of stages of 3, 5, 4 and 8 micro-batches; the worst stage",
    table.concat(list, " ") .. "; " .. worst, "33 47 40; 2", CATALOGUE)
  t.near("SpecTrain: weight 1 predicted 3 versions ahead at rate 0.1 and velocity 2",
    spectrain.predicted(1, 0.1, 2, 3), 0.4, 1e-12, CATALOGUE)
  local front = { { time = 0, saved = 0, peak = 0 }, { time = 2, saved = 4, peak = 1 },
    { time = 5, saved = 9, peak = 3 } }
  t.near("time of the recomputation in 2 layers that saves 8, 2 micro-batches in flight",
    recomputation.cheapest({ front, front }, 8, 2), 4, 1e-9,
    "by hand: one layer with 4 saves 2 x 4 - 1 = 7, two save 2 x 8 - 1 = 15")
end

--- 8 operators on 4 devices, with time and memory of a stage by simple arithmetic.
local function small_problem()
  local work = { 9, 1, 1, 2, 1, 1, 7, 4 }
  local problem = { n = 8, devices = 4, batch = 8, power = 4, tp = 4 }
  function problem.price(stage)
    local sum = 0
    local devices = stage.tp * stage.dp
    for i = stage.from, stage.to do
      sum = sum + work[i]
    end
    local ideal = stage.micro_batch * sum / devices
    return {
      time_s = ideal * (1 + 0.1 * (stage.tp - 1)) + 0.2 * (devices - 1),
      ideal_s = ideal,
      recompute_s = 0,
      bytes = sum / stage.tp + stage.micro_batch / stage.dp * (stage.behind + 1),
      cap = 24,
    }
  end
  return problem
end

--- Calls visit(config) for all ways to give the stages that `config` lacks the operators and
-- devices that are left, with degrees of 1, 2, 4 and 8.
local function visit_configs(config, stages, operators_left, devices_left, visit)
  if #config == stages then
    if operators_left == 0 then
      visit(config)
    end
    return
  end
  local place = #config + 1
  local stages_behind = stages - place -- each needs an operator and a device
  for n = 1, operators_left - stages_behind do
    for k = 0, 15 do
      local tp, dp = 1 << (k % 4), 1 << (k // 4)
      if tp * dp <= devices_left - stages_behind then
        config[place] = { n = n, tp = tp, dp = dp }
        visit_configs(config, stages, operators_left - n, devices_left - tp * dp, visit)
        config[place] = nil
      end
    end
  end
end

--- The least time of all configurations that fit, with micro-batches that are powers of two.
local function least_time(problem, stages)
  local least, micro_batch = math.huge, 1
  while micro_batch <= problem.batch do
    visit_configs({ micro_batch = micro_batch }, stages, problem.n, problem.devices,
      function(config)
        local rated = configuration.rated(problem, config)
        if rated and rated.over == 0 then
          least = math.min(least, rated.time_s)
        end
      end)
    micro_batch = 2 * micro_batch
  end
  return least
end

local function test_small_problem(t)
  local problem = small_problem()
  for _, stages in ipairs { 1, 2, 4 } do
    local function run(budget)
      return bottleneck.run(problem, { stages = stages, micro_batch = 1, budget = budget })
    end
    local first, found, least = run(0), run(400), least_time(problem, stages)
    t.ok(("8 operators on 4 devices, %d stages: found %.3f s, first %.3f s, least of all %.3f s")
      :format(stages, found.time_s, first.time_s, least),
      found.over == 0 and found.time_s <= 1.05 * least, CATALOGUE .. ", oracle")
  end
end

-- The authors' plan for GPT 1.3B on 4 GPUs after 60 s of search (16.5 s of CPU): the operators of
-- each stage, 1 where they are recomputed.
local AUTHORS_PLAN = {
  "000111100011000011110000000001111000000000111100000000011110000000001111000000",
  "000111100011000011110001100001111000000000001100000000000110000000000011000000000",
  "11110000000000011000000000001100000000000110000000000011000000000001100000000000110",
  "0011000011110001100000011000110000000000011000000000000000000000000000000",
}
local AUTHORS_PLAN_S = 58.76092188572894
local AUTHORS_PLAN_MB = 11976.221

local function test_authors_plan(t)
  local problem = operators.problem(require "data.gpt3_1_3b")
  local times = {}
  local most_bytes = 0
  local at = 0
  for s, flags in ipairs(AUTHORS_PLAN) do
    local price = problem.price { from = at + 1, to = at + #flags, tp = 1, dp = 1,
      micro_batch = 1, index = s, behind = #AUTHORS_PLAN - s, flags = flags }
    at = at + #flags
    times[s] = price.time_s
    most_bytes = math.max(most_bytes, price.bytes)
  end
  local list, worst = configuration.stage_times(times, 512)
  t.near("GPT 1.3B on 4 GPUs, the authors' plan by the equations here, s", list[worst],
    AUTHORS_PLAN_S, 1e-5, AUTHORS)
  t.near("peak memory of its fullest stage, MB", most_bytes, AUTHORS_PLAN_MB, 1e-6, AUTHORS)
end

local function test_authors_search(t)
  local found = bottleneck.run(operators.problem(require "data.gpt3_1_3b"),
    { stages = 4, micro_batch = 1, budget = 40 })
  t.ok(("GPT 1.3B on 4 GPUs of 12 GB, shipped profile, budget 40: %.3f s, theirs 58.761 s in "
    .. "16.5 s of CPU"):format(found.time_s),
    found.over == 0 and found.time_s <= 58.76092, AUTHORS .. ", 60 s of search")
  local problem = operators.problem(require "data.gpt3_1_3b")
  local source = AUTHORS .. ", its cost equation and profile"
  found = bottleneck.run(problem, { stages = 4, micro_batch = 1, budget = 100 })
  t.ok(("GPT 1.3B on 4 GPUs, 4 stages, budget 100: %.4f s, theirs %.4f s in 16.5 s of CPU")
    :format(found.time_s, AUTHORS_PLAN_S),
    found.over == 0 and found.time_s <= AUTHORS_PLAN_S, source)
  for _, stages in ipairs { 3, 2 } do
    found = bottleneck.run(problem, { stages = stages, micro_batch = 2, budget = 100 })
    t.ok(("GPT 1.3B on 4 GPUs, %d stages, budget 100: %.4f s, fits"):format(stages, found.time_s),
      found.over == 0 and found.time_s < math.huge, source)
  end
end

return function(t)
  test_formulas(t)
  test_small_problem(t)
  test_authors_plan(t)
  test_authors_search(t)
end
