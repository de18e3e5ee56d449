-- Self-tests of HetPipe: staleness and waves, partitions beside an integer program, and the workers
-- of each allocation policy.
local allocation = require "allocation"
local oracle = require "testing.oracle"
local staleness = require "staleness"
local virtual_workers = require "virtual_workers"

local CATALOGUE = "catalogue: hetpipe"
local BY_HAND = "by hand"

local function check_staleness(t)
  t.equal("s_global with Nm = 4, D = 0", staleness.global(4, 0), 6, CATALOGUE)
  t.equal("s_global with Nm = 4, D = 4", staleness.global(4, 4), 22, CATALOGUE)
  t.equal("s_global with Nm = 1, D = 0", staleness.global(1, 0), 0, CATALOGUE)
  t.equal("Nm = 4, D = 0: first minibatch that waits for wave 0", staleness.first_waiting(4, 0, 0),
    7, CATALOGUE)
  t.equal("Nm = 4, D = 4: first minibatch that waits for wave 0", staleness.first_waiting(4, 4, 0),
    23, CATALOGUE)
  t.equal("Nm = 4, D = 4: first minibatch that waits for wave 1", staleness.first_waiting(4, 4, 1),
    27, BY_HAND)
  for _, distance in ipairs { 0, 4 } do
    t.equal(("Nm = 4, D = %d: first waiting minibatch = s_global + 1"):format(distance),
      staleness.first_waiting(4, distance, 0), staleness.global(4, distance) + 1, CATALOGUE)
  end
end

local function check_waves(t)
  local rate = staleness.wave_rate({ 4, 6 }, 0, 1000)
  t.near("waves of 4 and 6 s, D = 0: seconds per wave of the fast worker", rate[1], 6, 0.01,
    CATALOGUE)
  t.near("waves of 4 and 6 s, D = 0: seconds per wave of the slow worker", rate[2], 6, 0, CATALOGUE)
  t.near("waves of 4 and 6 s, D = 3: seconds per wave of the fast worker",
    staleness.wave_rate({ 4, 6 }, 3, 10000)[1], 6, 0.01, CATALOGUE)
end

local function check_partitions(t)
  local free = oracle.chain_partition({ 1, 2 }, 6, {})
  t.near("6 layers on GPUs of 1 and 2 s per layer: slowest stage, s", free.value, 4, 0, CATALOGUE)
  t.equal("6 layers on GPUs of 1 and 2 s per layer: layers of the first", free.stages[1][2], 4,
    CATALOGUE)
  local tight = oracle.chain_partition({ 1, 2 }, 6, { 3 })
  t.near("the same, the first holds 3 layers: slowest stage, s", tight.value, 6, 0, CATALOGUE)
  t.equal("the same, the first holds 3 layers: layers of the first", tight.stages[1][2], 3,
    CATALOGUE)
  t.near("6 layers on GPUs of 1 and 2 s per layer: slowest stage by integer program, s",
    oracle.chain_program({ 1, 2 }, 6, {}), 4, 1e-9, CATALOGUE)
  t.near("the same, the first holds 3 layers: slowest stage by integer program, s",
    oracle.chain_program({ 1, 2 }, 6, { 3 }), 6, 1e-9, CATALOGUE)
  for _, times in ipairs { { 1, 2, 3 }, { 3, 1, 2 }, { 2, 2, 5 } } do
    t.near(("9 layers on GPUs of %d, %d and %d s per layer, integer program beside exact partition")
      :format(table.unpack(times)), oracle.chain_program(times, 9, { 4 }),
      oracle.chain_partition(times, 9, { 4 }).value, 1e-9, "oracle")
  end
end

--- Kinds of the GPUs of every worker as text.
local function kinds_of(list)
  local words = {}
  for i, worker in ipairs(list) do
    words[i] = virtual_workers.signature(virtual_workers.gpus(worker)):gsub(" ", "")
  end
  return table.concat(words, " ")
end

local function check_policies(t)
  local nodes = {}
  for i, kind in ipairs { "V", "R", "G", "Q" } do -- four GPUs each, fastest first
    nodes[i] = { kind = kind, flops_per_s = 5 - i, memory_bytes = 1, ids = { 1, 2, 3, 4 } }
  end
  t.equal("workers of HD on nodes VVVV RRRR GGGG QQQQ",
    kinds_of(allocation.hybrid_distribution(nodes)[1].make()), "VVQQ VVQQ RRGG RRGG", CATALOGUE)
  t.equal("workers of ED on nodes VVVV RRRR GGGG QQQQ",
    kinds_of(allocation.equal_distribution(nodes)[1].make()), "VRGQ VRGQ VRGQ VRGQ", CATALOGUE)
  t.equal("workers of NP on nodes VVVV RRRR GGGG QQQQ",
    kinds_of(allocation.node_partition(nodes)[1].make()), "VVVV RRRR GGGG QQQQ", CATALOGUE)
end

--- Four nodes of two GPUs of kinds a, b, a and b.
local function check_unequal_nodes(t)
  local nodes = {}
  for i, kind in ipairs { "a", "b", "a", "b" } do
    nodes[i] = { kind = kind, flops_per_s = 3 - i % 2, ids = { 2 * i - 1, 2 * i } }
  end
  local choices = allocation.equal_distribution(nodes)
  t.equal("ED on nodes aa bb aa bb: workers of two blocks, then of one",
    choices[1].n .. " " .. choices[2].n, "4 2", BY_HAND)
  t.equal("ED on nodes aa bb aa bb: workers that are made",
    #choices[1].make() .. " " .. #choices[2].make(), "4 2", BY_HAND)
  t.equal("ED on nodes aa bb aa bb: a worker of one block", kinds_of { choices[2].make()[1] },
    "aabb", BY_HAND)
  t.equal("ED on nodes aa bb aa bb: groups of equal workers of two blocks",
    #virtual_workers.groups(choices[1].make()), 1, BY_HAND)
  local larger = allocation.larger(nodes)
  t.equal("two GPUs of every node: choices, workers, GPUs of a worker",
    #larger .. " " .. larger[1].n .. " " .. #virtual_workers.gpus(larger[1].make()[1]), "1 1 8",
    BY_HAND)
  local odd = allocation.hybrid_distribution({ nodes[1], nodes[2], nodes[3] })[1]
  t.equal("HD on nodes aa bb aa: workers, and workers that are made", odd.n .. " " .. #odd.make(),
    "3 3", BY_HAND)
end

return function(t)
  check_staleness(t)
  check_waves(t)
  check_partitions(t)
  check_policies(t)
  check_unequal_nodes(t)
end
