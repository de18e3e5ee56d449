-- Tests of share/lua: recovery, templates, mixes, placing, wires. `hetviz selftest tests/lua/pipelines.lua`.
local mixes = require "mixes"
local placing = require "placing"
local recovery = require "recovery"
local search = require "search"
local templates = require "templates"
local wires = require "wires"

--- Is what is left of these pipelines without `lost` whole: all nodes that are left in pipelines that fit, or nothing
-- where fewer than `least` are left?
local function whole(pipelines, lost, n_left, least)
  local function fits(nodes) return #nodes >= least end
  local made, used = recovery.repair(pipelines, lost, fits), 0
  for _, own in ipairs(made or {}) do
    used = used + #own
    if not fits(own) then return false end
  end
  return (made ~= nil) == (n_left >= least) and (not made or used == n_left)
end

--- Pipelines over nodes 1, 2, …: of each size so many.
local function pipelines_of(sizes, counts)
  local pipelines, at = {}, 0
  for k, n in ipairs(counts) do
    for _ = 1, n do
      local own = {}
      for i = 1, sizes[k] do own[i] = at + i end
      pipelines[#pipelines + 1], at = own, at + sizes[k]
    end
  end
  return pipelines
end

--- Does every loss of nodes leave pipelines that hold the model and use all nodes that are left, as long as one can?
local function every_loss(n_nodes, least)
  local sizes = recovery.sizes(n_nodes, least, 0)
  for _, counts in ipairs((recovery.options(n_nodes, sizes, 1, 1000))) do
    for mask = 0, (1 << n_nodes) - 1 do
      local lost, n_left = {}, n_nodes
      for i = 1, n_nodes do
        if mask >> (i - 1) & 1 == 1 then lost[i], n_left = true, n_left - 1 end
      end
      if not whole(pipelines_of(sizes, counts), lost, n_left, least) then return false end
    end
  end
  return true
end

--- One random product of splits: the least value of all, and what refine finds with all tried and by turns.
local function refined(n_nodes, random)
  local lists, seed, start, least = {}, {}, {}, math.huge
  for i = 1, n_nodes do
    lists[i], seed[i] = templates.splits(4), random()
    start[i] = lists[i][1]
  end
  local function value(state)
    local v = 0
    for i, s in ipairs(state) do v = v + math.abs(math.sin(#s * 7 + 100 * seed[i] + s[1] * (i + 1) + v)) end
    return v
  end
  local function try(state, best)
    local v = value(state)
    return v < best.value - 1e-12 and { state = state, value = v } or nil
  end
  local function go() return false end
  for state in search.product(lists) do least = math.min(least, value(state)) end
  local first = { state = start, value = value(start) }
  return least, templates.refine(lists, first, 1000, try, go).value,
    templates.refine(lists, first, 0, try, go).value, first.value
end

local function check_refine(t)
  local random, exact, never_worse = search.generator(3), true, true
  for case = 1, 20 do
    local least, all, by_turns, first = refined(1 + case % 3, random)
    exact = exact and math.abs(all - least) < 1e-12
    never_worse = never_worse and by_turns <= first and by_turns >= least - 1e-12
  end
  t.ok("20 random cases: few splits are all tried", exact, "oracle")
  t.ok("many by turns, never worse than the start", never_worse, "property")
end

--- Are the parts of every way to split g GPUs powers of two or what is left, g in all?
local function split_whole(g)
  for _, split in ipairs(templates.splits(g)) do
    local sum = 0
    for _, part in ipairs(split) do sum = sum + part end
    if sum ~= g then return false end
  end
  return true
end

local function check_splits(t)
  local all, ways = true, {}
  for g = 1, 8 do all, ways[g] = all and split_whole(g), #templates.splits(g) end
  t.ok("every way to split a node uses all of its GPUs", all, "property")
  t.equal("ways to split 1 to 8 GPUs", table.concat(ways, " "), "1 2 3 5 6 20 16 26",
    "by hand: 3 as 1 + 2 x 1, 5 as 1 + 5 x 1, 6 as 1 + 3 x 3 + 5 x 2, 7 as 1 + 5 x 3")
end

local function check_deal(t)
  local dealt = mixes.deal({ { steady_s = 1, count = 7 } }, 64)
  t.equal("64 micro-batches on 7 equal pipelines", table.concat(dealt[1], ","), "10,9,9,9,9,9,9",
    "by hand: no whole number is a seventh")
  t.ok("fewer micro-batches than pipelines", mixes.deal({ { steady_s = 1, count = 7 } }, 6) == nil)
  local sum = 0
  for _, list in ipairs(mixes.deal({ { steady_s = 3, count = 2 }, { steady_s = 5, count = 3 } }, 41)) do
    for _, n in ipairs(list) do sum = sum + n end
  end
  t.equal("unequal templates: the batch is kept", sum, 41, "property")
end

-- One group of 600 nodes of two devices; a link in a node takes 1 s and 1 byte per second, others 3 and 2. There is one
-- for all checks, because wires and devices remember what they have seen.
local cluster = {}
function cluster.groups()
  return { { name = "g", kind = "gpu", first = 1, count = 600, stride = 2, devices = 2, first_node = 1 } }
end
function cluster.link(_, a, b)
  local inside = (a - 1) // 2 == (b - 1) // 2
  return { latency_s = inside and 1 or 3, bandwidth_bytes_per_s = inside and 1 or 2 }
end

--- The first nodes as layout.nodes gives them.
local function nodes_of(n)
  local nodes = {}
  for i = 1, n do nodes[i] = { group = "g", kind = "gpu", ids = { 2 * i - 1, 2 * i } } end
  return nodes
end

local function check_network(t)
  local n = 12
  local ctx = { cluster = cluster, job = { global_batch = 8 }, model = { n_layers = 6 }, seed = 1 }
  local single = placing.network(ctx, nodes_of(n), 1, { blocks = n, budget = 9 })
  t.equal("devices one by one", #single.units, 2 * n)
  t.equal("links inside and between", ("%g %g %g %g"):format(single.delay[1][1], single.rate[1][1],
    single.delay[1][2], single.rate[1][2]), "1 1 3 2")
  t.ok("24 devices in 4 stages are 6 pipelines, which do not divide 8", not placing.for_stages(ctx, single, 4))
  t.ok("and 4 in 6 stages", placing.for_stages(ctx, single, 6) == single)
  local merged = placing.network(ctx, nodes_of(n), 2, { blocks = n, budget = 9 })
  t.equal("whole nodes alike are one class", #merged.units .. " " .. #merged.delay, "12 1")
  local blocks = placing.network(ctx, nodes_of(n), 2, { blocks = 4, budget = 9 })
  t.equal("at most 4 blocks: 3 nodes each at least, 4 divide the batch", #blocks.units .. " of " .. blocks.block,
    "3 of 4")
  t.equal("devices of a block", table.concat(blocks.units[2].ids, " "), "9 10 11 12 13 14 15 16")
  local two = placing.for_stages(ctx, blocks, 2)
  t.equal("two stages of blocks, the third stands idle", #two.class .. " " .. two.block, "2 4")
end

local function check_exchange(t)
  local ctx = { cluster = cluster }
  t.near("an exchange of 3 by hand: 2 (1 + 4) + 2 (3 + 2)", wires.exchange(ctx, { 1, 2, 3 }, 4), 20, 0)
  t.near("one device has nobody", wires.exchange(ctx, { 1 }, 4), 0, 0)
  local heads = {}
  for i = 1, 512 do heads[i] = 2 * i - 1 end
  t.near("512 one by one", wires.exchange(ctx, heads, 4), 511 * 10, 0)
  heads[513] = 1025
  t.near("513 by count", wires.exchange(ctx, heads, 4), 512 * 10, 0)
end

return {
  api = 1, id = "pipelines", title = "Tests of pipelines", kind = "test",
  system = "none", reference = "none", summary = "Checks what templates, placement and recovery share.",
  plan = function()
    return nil, "this file only tests libraries"
  end,
  selftest = function(t)
    t.ok("all mixes of 8 nodes with n0 = 1, 2, 3 after every loss: all nodes in use while one pipeline fits",
      every_loss(8, 1) and every_loss(8, 2) and every_loss(8, 3), "enumeration")
    check_refine(t)
    check_splits(t)
    check_deal(t)
    check_network(t)
    check_exchange(t)
  end,
}
