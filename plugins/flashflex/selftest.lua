-- Self-tests: the formulas and the cut by the catalogue, and the search on the authors' sample and
-- on the clusters of their README.
local claims = require "claims"
local device_graph = require "device_graph"
local formula = require "formula"
local pipeline_search = require "pipeline_search"
local shipped = require "data.shipped"

local CATALOGUE = "catalogue: flashflex"
local TERA = 2 ^ 40
local GIB = 2 ^ 30

--- Every device as an atom.
local function single_atoms(n)
  local atoms = {}
  for d = 1, n do
    atoms[d] = { d }
  end
  return atoms
end

local function check_formulas(t)
  local p = { flops_per_s = { 312e12, 312e12 }, memory_bytes = {}, hidden = 4096, layers = 32,
    tokens = 4096, vocab = 32000, micro_batch = 1, recompute = true }
  function p.bandwidth()
    return 300e9
  end
  t.near("Llama-7B, sequence of 4096, full recomputation: FLOP of a layer", formula.flops(p),
    7.797244690432e12, 1e-9, CATALOGUE)
  local compute_s = formula.layer_s(p, { devices = { 1 } })
  t.near("compute of that layer on 312 TFLOP/s, ms", 1e3 * compute_s, 24.991, 5e-4, CATALOGUE)
  local _, exchange_s = formula.layer_s(p, { devices = { 1, 2 } })
  t.near("exchange of that layer, tensor degree 2 at 300 GB/s, ms", 1e3 * exchange_s, 0.671, 5e-4,
    CATALOGUE)
  p.recompute = false
  _, exchange_s = formula.layer_s(p, { devices = { 1, 2 } })
  t.near("the same exchange without recomputation, ms", 1e3 * exchange_s, 0.447, 5e-4, CATALOGUE)
  function p.bandwidth()
    return 1.25e9
  end
  t.near("hop between two devices and back at 1.25 GB/s, ms",
    1e3 * formula.hop_s(p, { devices = { 1 } }, { devices = { 2 } }), 53.687, 5e-4, CATALOGUE)
  local activations_bytes = 8 * 4096 * 4096 * 2
  local bytes = formula.memory_bytes(p, { devices = { 1 }, layers = 8 })
    - formula.memory_bytes(p, { devices = { 1 }, layers = 0 }) - activations_bytes
  t.near("weights, gradients and Adam of 8 layers, GiB", bytes / GIB, 12, 1e-9,
    CATALOGUE)
  t.near("GPipe's map of stages 1 2 3, 4 micro-batches", formula.map_s({ 1, 2, 3 }, 4), 15, 0,
    CATALOGUE)
  t.near("GPipe's map of stages 3 1 3, 4 micro-batches", formula.map_s({ 3, 1, 3 }, 4), 18, 0,
    CATALOGUE)
  t.near("Eq-P of stages 1 2 3, 4 micro-batches, beside the map's 15",
    claims.pipeline_s({ 1, 2, 3 }, 4), 15, 0, CATALOGUE)
  t.near("Eq-P of stages 3 1 3, 4 micro-batches, beside the map's 18",
    claims.pipeline_s({ 3, 1, 3 }, 4), 16, 0, CATALOGUE)
end

local function check_sample(t)
  local p = shipped()
  local best_known = { micro_batches = 24, { devices = { 4 }, layers = 4 },
    { devices = { 5 }, layers = 4 }, { devices = { 6 }, layers = 1 },
    { devices = { 1, 2, 3 }, layers = 23 } }
  t.near("shipped sample: objective of the best known plan, s", formula.total_s(p, { best_known }),
    9.8659, 5e-5, "FlashFlex 5ee1726, its TimeCost")
  local best = pipeline_search.run(p, single_atoms(8),
    { rounds = 12, budget = 400, seed = 1 })[1]
  t.ok(("shipped sample: %.4f s, theirs 14.149 s in 1.6 s of CPU, the best known 9.8659"):format(
    best.claim_s), best.claim_s <= 9.86595, "FlashFlex 5ee1726, whole batch")
end

local function check_cut(t)
  local cut = hv.opt.cut { weights = { 4, 4, 1, 1 }, parts = 2, tolerance = 0.01,
    edges = { { 1, 2, 0.01 }, { 1, 3, 1 }, { 1, 4, 1 }, { 2, 3, 1 }, { 2, 4, 1 },
      { 3, 4, 0.01 } } }
  t.near("2 machines of 2 devices, speeds 4 and 1: least cut by inverse bandwidth into parts of "
      .. "equal speed", cut.value, 2.02, 1e-9, "all three pairings enumerated: " .. CATALOGUE)
end

local function check_atoms(t)
  local nodes = { { ids = { 7, 8 } }, { ids = { 3 } }, { ids = { 1, 2 } } }
  local single = device_graph.atoms(nodes, false)
  t.equal("nodes of 2, 1 and 2 devices, each device alone: number of atoms, the last one",
    #single .. " " .. single[5][1], "5 5", "by hand")
  local whole = device_graph.atoms(nodes, true)
  t.equal("nodes of 2, 1 and 2 devices, whole nodes: number of atoms, the last one",
    #whole .. " " .. table.concat(whole[3], " "), "3 4 5", "by hand")
end

-- FlashFlex on Llama-7B and the clusters of its README, batch 64: machines of 8 devices {TFLOP/s,
-- GB, GB/s inside}, its plan as pipelines of stages {machine, devices, layers}, the seconds it
-- states and the CPU seconds of its search. It states the time of half the batch: it ends with two
-- pipelines, but each runs the 16 sequences of one of four.
local readme_cases = {
  { name = "cluster 1", stated_s = 53.271, cpu_s = 7.85,
    machines = {
      { 56.9, 12, 20 }, { 80, 24, 2 }, { 165.2, 24, 2 }, { 165.2, 24, 2 }, { 165.2, 24, 2 },
    },
    plan = {
      { { 1, 2, 1 }, { 1, 2, 1 }, { 1, 2, 1 }, { 2, 2, 3 }, { 2, 2, 4 }, { 2, 2, 4 }, { 3, 2, 4 },
        { 3, 1, 1 }, { 3, 1, 1 }, { 4, 1, 1 }, { 4, 1, 1 }, { 4, 1, 1 }, { 5, 2, 4 }, { 5, 2, 4 },
        { 5, 1, 1 } },
      { { 1, 1, 1 }, { 1, 1, 1 }, { 2, 1, 2 }, { 2, 1, 2 }, { 3, 2, 4 }, { 3, 1, 2 }, { 3, 1, 2 },
        { 4, 2, 5 }, { 4, 2, 5 }, { 4, 1, 2 }, { 5, 1, 2 }, { 5, 1, 2 }, { 5, 1, 2 } },
    } },
  { name = "cluster 2", stated_s = 54.888, cpu_s = 4.49,
    machines = { { 56.9, 12, 20 }, { 80, 24, 2 }, { 165.2, 24, 2 }, { 312, 80, 200 } },
    plan = {
      { { 1, 4, 2 }, { 1, 4, 2 }, { 2, 4, 6 }, { 2, 2, 2 }, { 2, 2, 3 }, { 3, 4, 6 }, { 3, 2, 3 },
        { 3, 2, 3 }, { 4, 1, 5 } },
      { { 4, 2, 9 }, { 4, 2, 9 }, { 4, 2, 10 }, { 4, 1, 4 } },
    } },
}

local function readme_problem(case)
  local p = { flops_per_s = {}, memory_bytes = {}, machine = {}, hidden = 4096, layers = 32,
    tokens = 4096, vocab = 32000, micro_batch = 1, recompute = true, batch = 64 }
  for m, machine in ipairs(case.machines) do
    for d = 8 * m - 7, 8 * m do
      p.flops_per_s[d] = machine[1] * TERA
      p.memory_bytes[d] = machine[2] * GIB
      p.machine[d] = m
    end
  end
  function p.bandwidth(a, b)
    local m, n = p.machine[a], p.machine[b]
    return (m == n and case.machines[m][3] or 0.5) * GIB
  end
  function p.is_degree(n)
    return n & (n - 1) == 0
  end
  function p.most_layers(stage, s, stages)
    return formula.most_layers(p, stage, s, stages)
  end
  return p
end

--- The authors' plan with so many micro-batches for every pipeline.
local function their_plan(case, micro_batches)
  local next_device = {} -- by machine
  for m in ipairs(case.machines) do
    next_device[m] = 8 * m - 7
  end
  local pipelines = {}
  for r, stages in ipairs(case.plan) do
    pipelines[r] = { micro_batches = micro_batches }
    for s, row in ipairs(stages) do
      local machine, n_devices, layers = row[1], row[2], row[3]
      local devices = {}
      for i = 1, n_devices do
        devices[i] = next_device[machine] + i - 1
      end
      next_device[machine] = next_device[machine] + n_devices
      pipelines[r][s] = { devices = devices, layers = layers }
    end
  end
  return pipelines
end

local function check_readme(t)
  for _, case in ipairs(readme_cases) do
    local p = readme_problem(case)
    t.near(("FlashFlex, %s: its plan with half the batch, s"):format(case.name),
      formula.total_s(p, their_plan(case, 16)), case.stated_s, 5e-4, "FlashFlex 5ee1726")
    local whole_s = formula.total_s(p, their_plan(case, 32))
    local best = pipeline_search.run(p, single_atoms(#p.flops_per_s),
      { rounds = 8, budget = 30, seed = 1 })[1]
    t.ok(("FlashFlex, %s: %.2f s, theirs %.2f s in %.1f s of CPU (it states %.2f)"):format(
      case.name, best.claim_s, whole_s, case.cpu_s, case.stated_s), best.claim_s <= whole_s,
      "its own objective, whole batch")
  end
end

return function(t)
  check_formulas(t)
  check_sample(t)
  check_cut(t)
  check_atoms(t)
  check_readme(t)
end
