-- Self-tests of the search and of its equation on the authors' own clusters.
local formula = require "formula"
local pipeline_search = require "pipeline_search"

local function check_atoms(t)
  local nodes = { { ids = { 7, 8 } }, { ids = { 3 } }, { ids = { 1, 2 } } }
  local apart, whole = pipeline_search.atoms(nodes, false), pipeline_search.atoms(nodes, true)
  t.equal("every device", #apart .. " " .. apart[5][1], "5 5")
  t.equal("every node", #whole .. " " .. table.concat(whole[3], " "), "3 4 5")
end

-- FlashFlex: Llama-7B on the machines of its README (8 devices each: TFLOP/s, GB, GB/s inside),
-- batch 64, its plan as pipelines of stages { machine, devices, layers }, the time it states and
-- its CPU seconds. It states the time of half the batch: it ends with two pipelines, but each runs
-- the 16 sequences of four.
local flashflex = {
  { name = "cluster 1", stated = 53.271, cpu_s = 7.85,
    machines = { { 56.9, 12, 20 }, { 80, 24, 2 }, { 165.2, 24, 2 }, { 165.2, 24, 2 },
      { 165.2, 24, 2 } },
    plan = {
      { { 1, 2, 1 }, { 1, 2, 1 }, { 1, 2, 1 }, { 2, 2, 3 }, { 2, 2, 4 }, { 2, 2, 4 }, { 3, 2, 4 },
        { 3, 1, 1 }, { 3,
          1, 1 }, { 4, 1, 1 }, { 4, 1, 1 }, { 4, 1, 1 }, { 5, 2, 4 }, { 5, 2, 4 }, { 5, 1, 1 } },
      { { 1, 1, 1 }, { 1, 1, 1 }, { 2, 1, 2 }, { 2, 1, 2 }, { 3, 2, 4 }, { 3, 1, 2 }, { 3, 1, 2 },
        { 4, 2, 5 }, { 4,
          2, 5 }, { 4, 1, 2 }, { 5, 1, 2 }, { 5, 1, 2 }, { 5, 1, 2 } },
    } },
  { name = "cluster 2", stated = 54.888, cpu_s = 4.49,
    machines = { { 56.9, 12, 20 }, { 80, 24, 2 }, { 165.2, 24, 2 }, { 312, 80, 200 } },
    plan = {
      { { 1, 4, 2 }, { 1, 4, 2 }, { 2, 4, 6 }, { 2, 2, 2 }, { 2, 2, 3 }, { 3, 4, 6 }, { 3, 2, 3 },
        { 3, 2, 3 }, { 4,
          1, 5 } },
      { { 4, 2, 9 }, { 4, 2, 9 }, { 4, 2, 10 }, { 4, 1, 4 } },
    } },
}

local function readme_cluster(case)
  local T, G, q = 2 ^ 40, 2 ^ 30, { flops = {}, memory = {}, machine = {}, hidden = 4096,
    layers = 32, tokens = 4096,
    vocab = 32000, micro_batch = 1, recompute = true, batch = 64 }
  for m, machine in ipairs(case.machines) do
    for d = 8 * m - 7, 8 * m do
      q.flops[d], q.memory[d], q.machine[d] = machine[1] * T, machine[2] * G, m
    end
  end
  function q.bw(a, b)
    return (q.machine[a] == q.machine[b] and case.machines[q.machine[a]][3] or 0.5) * G
  end
  function q.tp(size)
    return size & (size - 1) == 0
  end
  function q.most(stage, s, stages)
    local n, ends = 0, s == 1 or s == stages
    while n < 32 and formula.memory_bytes(q, { devices = stage.devices, layers = n + 1 }, ends)
        <= q.memory[stage.devices[1]] do
      n = n + 1
    end
    return n
  end
  return q
end

--- Its plan with so many micro-batches for every pipeline.
local function its_plan(case, micro_batches)
  local next_of, list = {}, {}
  for p, stages in ipairs(case.plan) do
    list[p] = { micro_batches = micro_batches }
    for s, row in ipairs(stages) do
      local devices, at = {}, next_of[row[1]] or 8 * row[1] - 7
      for i = 1, row[2] do
        devices[i] = at + i - 1
      end
      next_of[row[1]], list[p][s] = at + row[2], { devices = devices, layers = row[3] }
    end
  end
  return list
end

local function test_flashflex(t)
  for _, case in ipairs(flashflex) do
    local q, atoms = readme_cluster(case), {}
    for d = 1, #q.flops do
      atoms[d] = { d }
    end
    local whole = formula.total_s(q, its_plan(case, 32))
    t.near(("FlashFlex, %s: its plan with half the batch, s"):format(case.name),
      formula.total_s(q, its_plan(case, 16)),
      case.stated, 5e-4, "FlashFlex 5ee1726")
    local ours = pipeline_search.run(q, atoms, { rounds = 8, budget = 30, seed = 1 })[1].claim_s
    t.ok(("FlashFlex, %s: %.2f s, theirs %.2f s in %.1f s of CPU (it states %.2f)"):format(
      case.name, ours, whole,
      case.cpu_s, case.stated), ours <= whole, "its own objective, whole batch")
  end
end

return function(t)
  check_atoms(t)
  test_flashflex(t)
end
