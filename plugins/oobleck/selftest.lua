-- Self-tests of templates, mixes and recovery; templates of the authors' own planner.
local mixes = require "mixes"
local recovery = require "recovery"
local search = require "search"
local templates = require "templates"

--- Compares lists as text.
local function equal(t, name, got, want, source)
  t.equal(name, type(got) == "table" and table.concat(got, " ") or got, want, source)
end

--- Nodes of a sequence by position, and which are gone with a device.
local function check_sequences(t)
  local sequence = { { ids = { 1, 2 } }, { ids = { 3 } }, { ids = { 4, 5 } } }
  local gone = recovery.gone(sequence, { 5 })
  equal(t, "gone", (gone[1] or gone[2] or not gone[3]) and "wrong" or "third", "third")
  equal(t, "in order", recovery.nodes(sequence, { 3, 1 })[2].ids, "4 5")
  equal(t, "in words", recovery.text { { 1, 2 }, { 3 } }, "1 2 | 3")
  local cluster = {}
  function cluster.ids(_, address)
    return address == "first" and { 1, 4 } or { 2, 5 }
  end
  local made = { replicas = { { count = 2, stages =
      { { devices = "first" }, { devices = "second" } } } } }
  local pipelines = recovery.pipelines({ cluster = cluster }, made, sequence)
  equal(t, "pipelines of a plan", recovery.text(pipelines), "1 | 3")
end

--- Number of ways to write n as a sum of numbers up to `largest`.
local function integer_partitions(n, largest)
  if n == 0 then
    return 1
  end
  local count = 0
  for k = math.min(n, largest), 1, -1 do
    count = count + integer_partitions(n - k, k)
  end
  return count
end

--- Does every option use n nodes, and is none listed twice?
local function options_are_right(options, sizes, n)
  local seen = {}
  for _, counts in ipairs(options) do
    local sum, key = 0, table.concat(counts, " ")
    for i, count in ipairs(counts) do
      sum = sum + count * sizes[i]
    end
    if sum ~= n or seen[key] then
      return false
    end
    seen[key] = true
  end
  return true
end

local function check_options(t)
  local whole, right, counted = true, true, true
  for n = 1, 12 do
    local sizes = {}
    for i = 1, n do
      sizes[i] = i
    end
    local options, complete = recovery.options(n, sizes, 0, 10000)
    whole = whole and complete
    right = right and options_are_right(options, sizes, n)
    counted = counted and #options == integer_partitions(n, n)
  end
  t.ok("1 to 12 nodes: the list of options is complete", whole, "property")
  t.ok("1 to 12 nodes: every option uses all nodes, none is listed twice", right, "property")
  t.ok("1 to 12 nodes: there are as many options as integer partitions", counted, "enumeration")
  local some, complete = recovery.options(30, { 1, 2, 3 }, 0, 5)
  t.equal("a cap on the number of options", #some, 5)
  t.equal("a capped list is reported as incomplete", complete, false)
end

--- Is every node but the two lost ones in exactly one pipeline, and has each pipeline two nodes or
-- more?
local function is_repaired(pipelines, a, b)
  local seen, count = {}, 0
  for _, nodes in ipairs(pipelines) do
    if #nodes < 2 then
      return false
    end
    for _, node in ipairs(nodes) do
      if seen[node] or node == a or node == b then
        return false
      end
      seen[node], count = true, count + 1
    end
  end
  return count == (a == b and 8 or 7)
end

local function check_repairs(t)
  local function two_or_more(nodes)
    return #nodes >= 2
  end
  local right = true
  for a = 1, 9 do
    for b = a, 9 do
      local pipelines = { { 1, 2 }, { 3, 4, 5 }, { 6, 7, 8, 9 } }
      right = right and is_repaired(recovery.repair(pipelines, { [a] = true, [b] = true },
        two_or_more), a, b)
    end
  end
  t.ok("every pair of failures: all other nodes are in use, no pipeline is too small", right,
    "enumeration")
end

--- Is what is left of these pipelines without `lost` whole: all nodes that are left in pipelines
-- that fit, or nothing where fewer than `least` are left?
local function whole(pipelines, lost, n_left, least)
  local function fits(nodes)
    return #nodes >= least
  end
  local made, used = recovery.repair(pipelines, lost, fits), 0
  for _, own in ipairs(made or {}) do
    used = used + #own
    if not fits(own) then
      return false
    end
  end
  return (made ~= nil) == (n_left >= least) and (not made or used == n_left)
end

--- Pipelines over nodes 1, 2, …: of each size so many.
local function pipelines_of(sizes, counts)
  local pipelines, at = {}, 0
  for k, n in ipairs(counts) do
    for _ = 1, n do
      local own = {}
      for i = 1, sizes[k] do
        own[i] = at + i
      end
      pipelines[#pipelines + 1], at = own, at + sizes[k]
    end
  end
  return pipelines
end

--- Does every loss of nodes leave pipelines that hold the model and use all nodes that are left, as
-- long as one can?
local function every_loss(n_nodes, least)
  local sizes = recovery.sizes(n_nodes, least, 0)
  for _, counts in ipairs((recovery.options(n_nodes, sizes, 1, 1000))) do
    for mask = 0, (1 << n_nodes) - 1 do
      local lost, n_left = {}, n_nodes
      for i = 1, n_nodes do
        if mask >> (i - 1) & 1 == 1 then
          lost[i], n_left = true, n_left - 1
        end
      end
      if not whole(pipelines_of(sizes, counts), lost, n_left, least) then
        return false
      end
    end
  end
  return true
end

--- One random product of splits: the least value of all, and what refine finds with all tried and
-- by turns.
local function refined(n_nodes, random)
  local lists, seed, start, least = {}, {}, {}, math.huge
  for i = 1, n_nodes do
    lists[i], seed[i] = templates.splits(4), random()
    start[i] = lists[i][1]
  end
  local function value(state)
    local v = 0
    for i, s in ipairs(state) do
      v = v + math.abs(math.sin(#s * 7 + 100 * seed[i] + s[1] * (i + 1) + v))
    end
    return v
  end
  local function try(state, best)
    local v = value(state)
    return v < best.value - 1e-12 and { state = state, value = v } or nil
  end
  local function go()
    return false
  end
  for state in search.product(lists) do
    least = math.min(least, value(state))
  end
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
    for _, part in ipairs(split) do
      sum = sum + part
    end
    if sum ~= g then
      return false
    end
  end
  return true
end

local function check_splits(t)
  local all, ways = true, {}
  for g = 1, 8 do
    all, ways[g] = all and split_whole(g), #templates.splits(g)
  end
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
  for _, list in ipairs(mixes.deal({ { steady_s = 3, count = 2 }, { steady_s = 5, count = 3 } },
    41)) do
    for _, n in ipairs(list) do
      sum = sum + n
    end
  end
  t.equal("unequal templates: the batch is kept", sum, 41, "property")
end

-- Oobleck: 34 layers on nodes of 4 GPUs, milliseconds; T of its templates for 1 to 4 nodes (0.9 s
-- of CPU).
local oobleck = {
  forward_backward = {
    3.11828506, 0.7460040756, 1.42675588, 0.9567511234, 1.979201262, 0.9871428021, 1.64590878,
    1.145739858,
    2.120598808, 3.619126843, 1.150464903, 1.375455279, 1.522163822, 1.645250409, 2.6343161,
    0.4856424257,
    1.118947284, 2.369539833, 0.7433459644, 2.647037352, 1.510986228, 3.019265022, 2.752033553,
    1.693452914,
    1.790542706, 0.8641608061, 3.258081993, 1.590059202, 2.1296577, 3.046708564, 2.159960958,
    0.6163081509,
    0.2562995372, 2.792924333,
  },
  all_reduce = {
    [2] = {
      0.2589167503, 0.8767703708, 0.966548903, 0.002357564719, 0.7347509912, 0.04063202665,
      0.6825296187,
      0.1301576944, 0.7600898367, 0.7270999543, 0.5245146032, 0.286831048, 0.176935536,
      0.2070979756,
      0.6141334981, 0.133956156, 0.7564677019, 0.6114741873, 0.1657580289, 0.1680013763,
      0.2316288448,
      0.8073817566, 0.9611344661, 0.7673627198, 0.9728331111, 0.4042166876, 0.6882831697,
      0.9208518221,
      0.04870695777, 0.4667483085, 0.1147402517, 0.4960068821, 0.5162479487, 0.9947020061,
    },
    [4] = {
      0.4049341375, 0.8424602231, 0.6762017843, 0.5283459769, 0.9196888444, 0.8439546857,
      0.7885664914,
      0.3622398699, 0.7619950131, 0.7516139341, 0.2016215865, 0.8097488285, 0.9867958187,
      0.3402803793,
      0.2283020906, 0.6418933847, 0.5627357352, 0.6735909267, 0.3983974119, 0.8495661703,
      0.742388068,
      0.3812446667, 0.6820845368, 0.9679724862, 0.9999026771, 0.9367888564, 0.4794484586,
      0.1844749659,
      0.91961044, 0.7772036679, 0.4798230842, 0.7344217421, 0.4158612133, 0.4238451321,
    },
  },
  times = { 234.50214583689575, 262.19336474959675, 252.42179808694303, 254.02099225617005 },
}

--- Seconds of every layer on so many GPUs: shared work, and an all-reduce each way among them.
local function layer_times(gpus)
  local times, sums = {}, oobleck.all_reduce[gpus]
  for i, t in ipairs(oobleck.forward_backward) do
    times[i] = t / gpus + (sums and 2 * sums[i] or 0)
  end
  return times
end

-- GPUs of a node's stages: its planner halves them.
local shapes = { { 4 }, { 2, 2 }, { 2, 1, 1 }, { 1, 1, 2 }, { 1, 1, 1, 1 } }

--- The least T = sum t + (2S + k + 1) t_k + sum from k of templates on n nodes (its code's
-- coefficients).
local function best_template(n, times)
  local best = math.huge
  local function extend(left, gpus)
    if left == 0 then
      local load, stages = {}, #gpus
      for s, g in ipairs(gpus) do
        load[s] = times[g]
      end
      local one = stages == 1
      local found = hv.opt.partition { n = #load[1], parts = stages, load = load,
        weights = { one and 2 or 2 * stages + 1, one and 0 or 1, 1 } }
      best = math.min(best, found.value)
      return
    end
    for _, shape in ipairs(shapes) do
      local more = table.move(gpus, 1, #gpus, 1, {})
      extend(left - 1, table.move(shape, 1, #shape, #more + 1, more))
    end
  end
  extend(n, {})
  return best
end

local function test_oobleck(t)
  local times = { [1] = layer_times(1), [2] = layer_times(2), [4] = layer_times(4) }
  for n, theirs in ipairs(oobleck.times) do
    local ours = best_template(n, times)
    t.ok(("Oobleck, 34 layers on %d x 4 GPUs: T %.6f, theirs %.6f (all four in 0.9 s of CPU)"):format(n, ours, theirs),
      ours <= theirs * (1 + 1e-9), "Oobleck's own planner")
  end
end

return function(t)
  check_sequences(t)
  check_options(t)
  check_repairs(t)
  t.ok("all mixes of 8 nodes with n0 = 1, 2, 3 after every loss: all nodes in use while one pipeline fits",
    every_loss(8, 1) and every_loss(8, 2) and every_loss(8, 3), "enumeration")
  check_refine(t)
  check_splits(t)
  check_deal(t)
  test_oobleck(t)
end
