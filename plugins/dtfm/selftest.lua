-- Self-tests of placement, and cases of the authors' own program.
local placement = require "placement"

-- One group of 600 nodes of two devices; a link in a node takes 1 s and 1 byte per second, others 3
-- and 2. There is one for all checks, because wires and devices remember what they have seen.
local cluster = {}
function cluster.groups()
  return { { name = "g", kind = "gpu", first = 1, count = 600, stride = 2, devices = 2,
    first_node = 1 } }
end
function cluster.link(_, a, b)
  local inside = (a - 1) // 2 == (b - 1) // 2
  return { latency_s = inside and 1 or 3, bandwidth_bytes_per_s = inside and 1 or 2 }
end

--- The first nodes as inventory.nodes gives them.
local function nodes_of(n)
  local nodes = {}
  for i = 1, n do
    nodes[i] = { group = "g", kind = "gpu", ids = { 2 * i - 1, 2 * i } }
  end
  return nodes
end

local function check_network(t)
  local n = 12
  local ctx = { cluster = cluster, job = { global_batch = 8 }, model = { n_layers = 6 }, seed = 1 }
  local single = placement.network(ctx, nodes_of(n), 1, { blocks = n, budget = 9 })
  t.equal("devices one by one", #single.units, 2 * n)
  t.equal("links inside and between", ("%g %g %g %g"):format(single.delay[1][1], single.rate[1][1],
    single.delay[1][2], single.rate[1][2]), "1 1 3 2")
  t.ok("24 devices in 4 stages are 6 pipelines, which do not divide 8",
    not placement.for_stages(ctx, single, 4))
  t.ok("and 4 in 6 stages", placement.for_stages(ctx, single, 6) == single)
  local merged = placement.network(ctx, nodes_of(n), 2, { blocks = n, budget = 9 })
  t.equal("whole nodes alike are one class", #merged.units .. " " .. #merged.delay, "12 1")
  local blocks = placement.network(ctx, nodes_of(n), 2, { blocks = 4, budget = 9 })
  t.equal("at most 4 blocks: 3 nodes each at least, 4 divide the batch", #blocks.units .. " of "
      .. blocks.block,
    "3 of 4")
  t.equal("devices of a block", table.concat(blocks.units[2].ids, " "), "9 10 11 12 13 14 15 16")
  local two = placement.for_stages(ctx, blocks, 2)
  t.equal("two stages of blocks, the third stands idle", #two.class .. " " .. two.block, "2 4")
end

--- An instance of equal devices in classes: their number, delay (ms) and Gbit/s inside and between.
local function instance(sizes, inside, between)
  local q = { class = {}, delay = {}, rate = {}, stages = 8, seed = 1, dp_bytes = 0.65e9,
    pp_bytes = 0.47124922275543213e9 }
  for a, n in ipairs(sizes) do
    q.delay[a], q.rate[a] = {}, {}
    for b in ipairs(sizes) do
      local link = a == b and (inside[a] or inside[1]) or between
      q.delay[a][b], q.rate[a][b] = link[1] / 1e3, link[2] * 1e9 / 8
    end
    for _ = 1, n do
      q.class[#q.class + 1] = a
    end
  end
  return q
end

-- DT-FM: instance, its best, the CPU seconds it took. Cases 3 and 4 are in the plugin's self-test.
local function test_dtfm(t)
  local cases = {
    { "0, data centre", instance({ 8, 8, 8, 8, 8, 8, 8, 8 }, { { 0, 100 } }, { 0, 3.125 }),
      3.439799129486084, 1.9 },
    { "1, spot", instance({ 4, 4, 4, 4, 4, 4, 4, 4, 32 }, { { 0, 100 }, [9] = { 0, 1.25 } },
      { 0, 1.25 }),
      49.50393035888672, 2.6 },
    { "2, universities", instance({ 32, 32 }, { { 1, 5 } }, { 11, 1.12 }), 16.086839732578824,
      2.2 },
  }
  for _, case in ipairs(cases) do
    local _, seconds = placement.place(case[2])
    t.ok(("DT-FM, case %s: COMM %.4f s, theirs %.4f s in %.1f s of CPU"):format(case[1], seconds[1],
      case[3], case[4]),
      seconds[1] <= case[3] * (1 + 1e-9), "DT-FM cda948f, 40 candidates")
  end
end

return function(t)
  check_network(t)
  test_dtfm(t)
end
