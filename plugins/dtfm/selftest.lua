-- Self-tests: the cost of divisions by hand, the search beside enumeration, instances of clusters,
-- and the cases that the authors ship with their program.
local communication = require "communication"
local network = require "network"
local oracle = require "testing.oracle"
local placement = require "placement"
local search = require "search"

local CATALOGUE = "catalogue: dtfm"
local BUDGET = 300

--- Two regions of two devices, two stages, so many bytes of gradients per stage.
local function two_regions(dp_bytes)
  return network.of_regions({ 2, 2 }, { { 1 }, { 50, 1 } }, { { 10 }, { 1, 10 } },
    { stages = 2, dp_bytes = dp_bytes, pp_bytes = 1e8, seed = 1, budget = BUDGET })
end

--- COMM of the better and of the worse division of two regions: stages inside the regions, or
-- across them.
local function check_two_regions(t, dp_GB, expected)
  local instance = two_regions(dp_GB * 1e9)
  local inside = { communication.cost(instance, { { 1, 2 }, { 3, 4 } }) }
  local across = { communication.cost(instance, { { 1, 3 }, { 2, 4 } }) }
  local best = inside[1] < across[1] and inside or across
  local case = ("2 regions, %g GB of gradients: "):format(dp_GB)
  t.equal(case .. "DATAP and 2 PIPEP of the better division, s",
    ("%.3f %.3f"):format(best[2], 2 * best[3]), expected.terms, CATALOGUE)
  t.near(case .. "COMM of the better division, s", best[1], expected.better, 1e-9, CATALOGUE)
  t.near(case .. "COMM of the worse division, s", math.max(inside[1], across[1]), expected.worse,
    1e-9, CATALOGUE)
  local _, seconds = placement.place(instance)
  t.near(case .. "COMM that the search finds, s", seconds[1], expected.better, 1e-9, CATALOGUE)
end

--- Devices with a random link for each pair.
local function random_instance(random, n, stages)
  local delay_ms = {}
  local rate_gbit_per_s = {}
  local sizes = {}
  for a = 1, n do
    delay_ms[a] = {}
    rate_gbit_per_s[a] = {}
    sizes[a] = 1
    for b = 1, a do
      delay_ms[a][b] = random(90)
      rate_gbit_per_s[a][b] = 0.5 + random(9)
    end
  end
  return network.of_regions(sizes, delay_ms, rate_gbit_per_s,
    { stages = stages, dp_bytes = 3e8, pp_bytes = 2e8, seed = 1, budget = BUDGET })
end

--- Does the search find the least COMM of all divisions?
local function finds_least(instance)
  local least = math.huge
  for _, groups in ipairs(oracle.divisions(#instance.class, instance.stages)) do
    least = math.min(least, (communication.cost(instance, groups)))
  end
  local _, seconds = placement.place(instance)
  return seconds[1] <= least * (1 + 1e-9)
end

local function check_enumeration(t)
  local random = search.generator(3)
  local all_least = true
  for _, shape in ipairs { { 6, 2 }, { 6, 3 }, { 8, 2 }, { 8, 4 } } do
    local is_least = finds_least(random_instance(random, shape[1], shape[2]))
    all_least = all_least and is_least
  end
  t.ok("6 and 8 devices on random links, 2 to 4 stages: the search finds the least COMM of all "
      .. "divisions", all_least, CATALOGUE .. ", enumeration")
end

-- Case 3 and case 4 of the authors: 8 stages, 64 devices in 4 and 8 regions.
local worldwide = {
  { name = 3, best_s = 34.8020, limit_s = 34.80205, sizes = { 16, 16, 16, 16 },
    delay_ms = { { 5 }, { 67, 5 }, { 59, 12, 5 }, { 11, 49, 52, 5 } },
    gbit_per_s = { { 2 }, { 1.15, 2 }, { 1.05, 1.25, 2 }, { 1.12, 1.1, 1.02, 2 } } },
  { name = 4, best_s = 49.2184, limit_s = 49.21845, sizes = { 8, 8, 8, 8, 8, 8, 8, 8 },
    delay_ms = {
      { 5 },
      { 67, 5 },
      { 49, 11, 5 },
      { 96, 143, 130, 5 },
      { 124, 172, 159, 34, 5 },
      { 136, 76, 86, 210, 238, 5 },
      { 143, 90, 99, 223, 235, 14, 5 },
      { 124, 67, 77, 199, 228, 12, 24, 5 },
    },
    gbit_per_s = {
      { 2 },
      { 0.79, 2 },
      { 1.1, 1.12, 2 },
      { 0.523, 0.524, 0.694, 2 },
      { 0.46, 0.5, 0.529, 1.1, 2 },
      { 0.42, 1.16, 1.05, 0.366, 0.342, 2 },
      { 0.404, 1.02, 0.799, 0.36, 0.358, 1.14, 2 },
      { 0.482, 1.05, 1.14, 0.465, 0.335, 1.09, 1.08, 2 },
    } },
}
local SHIPPED_DP_BYTES = 0.65e9
local SHIPPED_PP_BYTES = 0.47124922275543213e9

local function check_worldwide(t)
  for _, case in ipairs(worldwide) do
    local instance = network.of_regions(case.sizes, case.delay_ms, case.gbit_per_s,
      { stages = 8, dp_bytes = SHIPPED_DP_BYTES, pp_bytes = SHIPPED_PP_BYTES, seed = 1,
        budget = BUDGET })
    local _, seconds = placement.place(instance)
    t.ok(("shipped case %d: COMM %.4f s, theirs %.4f s in 27 to 35 s of CPU"):format(case.name,
      seconds[1], case.best_s), seconds[1] <= case.limit_s,
      "DT-FM cda948f, best of 500 candidates")
  end
end

--- A group of 600 nodes of two devices; a link in a node has 1 s and 1 byte per second, others 3 s
-- and 2. All checks share it, because links and inventory remember what they have read.
local cluster = {}
function cluster.groups()
  return { { name = "g", kind = "gpu", first = 1, count = 600, stride = 2, devices = 2,
    first_node = 1 } }
end
function cluster.link(_, a, b)
  local is_inside = (a - 1) // 2 == (b - 1) // 2
  return { latency_s = is_inside and 1 or 3, bandwidth_bytes_per_s = is_inside and 1 or 2 }
end

--- The first nodes of the cluster as inventory.nodes gives them.
local function first_nodes(n)
  local nodes = {}
  for i = 1, n do
    nodes[i] = { group = "g", kind = "gpu", ids = { 2 * i - 1, 2 * i } }
  end
  return nodes
end

local function check_network(t)
  local n = 12
  local ctx = { cluster = cluster, job = { global_batch = 8 }, model = { n_layers = 6 }, seed = 1 }
  local single = network.of_cluster(ctx, first_nodes(n), 1, n, 9)
  t.equal("12 nodes of 2 devices, devices placed alone: number of vertices", #single.units, 2 * n,
    "by hand")
  t.equal("delay and rate inside a node, delay and rate between nodes",
    ("%g %g %g %g"):format(single.delay_s[1][1], single.rate_bytes_per_s[1][1],
      single.delay_s[1][2], single.rate_bytes_per_s[1][2]), "1 1 3 2", "by hand")
  t.ok("24 devices in 4 stages: no instance, because 6 replicas do not divide a batch of 8",
    not network.for_stages(ctx, single, 4), "by hand")
  t.ok("24 devices in 6 stages: the whole instance, because 4 replicas divide a batch of 8",
    network.for_stages(ctx, single, 6) == single, "by hand")
  local merged = network.of_cluster(ctx, first_nodes(n), 2, n, 9)
  t.equal("12 equal nodes placed whole: number of vertices and of classes",
    #merged.units .. " " .. #merged.delay_s, "12 1", "by hand")
  local blocks = network.of_cluster(ctx, first_nodes(n), 2, 4, 9)
  t.equal("12 nodes in at most 4 blocks: number of blocks of so many nodes",
    #blocks.units .. " of " .. blocks.block, "3 of 4",
    "by hand: 3 nodes per block at least, 4 divide the batch")
  t.equal("devices of the second block", table.concat(blocks.units[2].ids, " "),
    "9 10 11 12 13 14 15 16", "by hand")
  local two = network.for_stages(ctx, blocks, 2)
  t.equal("3 blocks in 2 stages: number of vertices, nodes per block",
    #two.class .. " " .. two.block, "2 4", "by hand: the third block stays idle")
end

--- An instance of the authors: devices by class, {delay in ms, rate in Gbit/s} inside a class (the
-- first one where a class has none of its own) and between classes.
local function shipped_instance(sizes, inside, between)
  local instance = { class = {}, delay_s = {}, rate_bytes_per_s = {}, stages = 8, seed = 1,
    budget = BUDGET, dp_bytes = SHIPPED_DP_BYTES, pp_bytes = SHIPPED_PP_BYTES }
  for a, n in ipairs(sizes) do
    instance.delay_s[a] = {}
    instance.rate_bytes_per_s[a] = {}
    for b in ipairs(sizes) do
      local link = a == b and (inside[a] or inside[1]) or between
      instance.delay_s[a][b] = link[1] / 1e3
      instance.rate_bytes_per_s[a][b] = link[2] * 1e9 / 8
    end
    for _ = 1, n do
      instance.class[#instance.class + 1] = a
    end
  end
  return instance
end

-- Cases 0 to 2 of the authors: COMM that their program finds and the CPU seconds it takes.
local shipped = {
  { name = "0, data centre", best_s = 3.439799129486084, cpu_s = 1.9,
    instance = shipped_instance({ 8, 8, 8, 8, 8, 8, 8, 8 }, { { 0, 100 } }, { 0, 3.125 }) },
  { name = "1, spot", best_s = 49.50393035888672, cpu_s = 2.6,
    instance = shipped_instance({ 4, 4, 4, 4, 4, 4, 4, 4, 32 },
      { { 0, 100 }, [9] = { 0, 1.25 } }, { 0, 1.25 }) },
  { name = "2, universities", best_s = 16.086839732578824, cpu_s = 2.2,
    instance = shipped_instance({ 32, 32 }, { { 1, 5 } }, { 11, 1.12 }) },
}

local function check_shipped(t)
  for _, case in ipairs(shipped) do
    local _, seconds = placement.place(case.instance)
    t.ok(("DT-FM, case %s: COMM %.4f s, theirs %.4f s in %.1f s of CPU"):format(case.name,
      seconds[1], case.best_s, case.cpu_s), seconds[1] <= case.best_s * (1 + 1e-9),
      "DT-FM cda948f, 40 candidates")
  end
end

return function(t)
  check_two_regions(t, 0.05, { better = 0.662, worse = 1.742, terms = "0.500 0.162" })
  check_two_regions(t, 0.5, { better = 2.102, worse = 4.262, terms = "0.402 1.700" })
  check_enumeration(t)
  check_worldwide(t)
  check_network(t)
  check_shipped(t)
end
