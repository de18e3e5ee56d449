-- Self-tests of Oobleck: templates beside those of the authors' own planner, combinations and batch
-- split of the catalogue, and repairs by enumeration.
local batch_split = require "batch_split"
local combinations = require "combinations"
local formula = require "formula"
local gpu_split = require "gpu_split"
local oracle = require "testing.oracle"
local planner = require "data.planner"
local recovery = require "recovery"
local refinement = require "refinement"
local search = require "search"

local CATALOGUE = "catalogue: oobleck"
local PLANNER = "Oobleck's own planner"
local RECOVERY = "section 5"
local BY_HAND = "by hand"

-- Combinations ---------------------------------------------------------------------------------

local function check_combinations(t)
  local sizes = combinations.sizes(7, 2, 1)
  t.equal("template sizes of 7 nodes, n0 = 2, 1 failure", table.concat(sizes, " "), "2 3 4 5",
    CATALOGUE)
  local all = combinations.all(7, sizes, 2, 1000)
  t.equal("7 nodes: number of combinations with 2 pipelines or more", #all, 3, CATALOGUE)
  t.equal("7 nodes: sizes of each combination", combinations.text(sizes, all), "2 2 3; 2 5; 3 4",
    CATALOGUE)
  local two_to_seven = { 2, 3, 4, 5, 6, 7 }
  t.equal("13 nodes: number of combinations of any number of pipelines",
    #combinations.all(13, two_to_seven, 0, 1000), 17, CATALOGUE)
  t.equal("13 nodes, 3 failures: number of combinations with 4 pipelines or more",
    #combinations.all(13, two_to_seven, 4, 1000), 10, CATALOGUE)
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

--- Does every combination use n nodes, and is none listed twice?
local function are_right(all, sizes, n)
  local seen = {}
  for _, counts in ipairs(all) do
    local sum = 0
    for i, count in ipairs(counts) do
      sum = sum + count * sizes[i]
    end
    local key = table.concat(counts, " ")
    if sum ~= n or seen[key] then
      return false
    end
    seen[key] = true
  end
  return true
end

local function check_enumeration(t)
  local all_complete = true
  local all_right = true
  local all_counted = true
  for n = 1, 12 do
    local sizes = {}
    for i = 1, n do
      sizes[i] = i
    end
    local all, complete = combinations.all(n, sizes, 0, 10000)
    all_complete = all_complete and complete
    all_right = all_right and are_right(all, sizes, n)
    all_counted = all_counted and #all == integer_partitions(n, n)
  end
  t.ok("1 to 12 nodes: the list of combinations is complete", all_complete, "property")
  t.ok("1 to 12 nodes: every combination uses all nodes, none is listed twice", all_right,
    "property")
  t.ok("1 to 12 nodes: there are as many combinations as integer partitions", all_counted,
    "enumeration")
  local some, complete = combinations.all(30, { 1, 2, 3 }, 0, 5)
  t.equal("30 nodes: number of combinations with a cap of 5", #some, 5, BY_HAND)
  t.equal("30 nodes: a capped list is reported as complete", complete, false, BY_HAND)
end

-- Batch split ----------------------------------------------------------------------------------

--- The least of the largest steady_s[i] * n_i over whole numbers n_i >= 1 with sum counts[i] * n_i
-- = total, by a linear program (lp_solve).
local function least_slowest(steady_s, counts, total)
  local program = hv.opt.lp { sense = "min" }
  local slowest = program:var { lower = 0 }
  local sum = {}
  for i, count in ipairs(counts) do
    local n = program:var { lower = 1, integer = true }
    sum[n] = count
    program:row({ [n] = steady_s[i], [slowest] = -1 }, "<=", 0)
  end
  program:row(sum, "=", total)
  program:objective { [slowest] = 1 }
  return program:solve({}).objective
end

local function check_by_template(t)
  local even = batch_split.by_template({ { steady_s = 4, count = 1 }, { steady_s = 3, count = 1 } },
    14)
  t.equal("batch of 14 on pipelines of 4 and 3 s: micro-batches", table.concat(even.counts, ","),
    "6,8", CATALOGUE)
  t.near("batch of 14 on pipelines of 4 and 3 s: objective of the variance", even.value, 0, 1e-9,
    CATALOGUE)
  local used = { { steady_s = 6, count = 2 }, { steady_s = 4, count = 1 } }
  local uneven = batch_split.by_template(used, 16)
  t.equal("batch of 16 on two pipelines of 6 s and one of 4 s: micro-batches",
    table.concat(uneven.counts, ","), "5,6", CATALOGUE)
  t.near("batch of 16 on two pipelines of 6 s and one of 4 s: objective of the variance",
    uneven.value, 18, 1e-9, CATALOGUE)
  t.near("batch of 16 on two pipelines of 6 s and one of 4 s: least time of the slowest, s",
    batch_split.by_template(used, 16, "slowest").value, least_slowest({ 6, 4 }, { 2, 1 }, 16),
    1e-9, CATALOGUE .. ", linear alternative")
end

local function check_by_pipeline(t)
  local seven = { { steady_s = 1, count = 7 } }
  t.equal("64 micro-batches on 7 equal pipelines",
    table.concat(batch_split.by_pipeline(seven, 64)[1], ","), "10,9,9,9,9,9,9",
    "by hand: no whole number is a seventh")
  t.ok("6 micro-batches on 7 equal pipelines: no split", batch_split.by_pipeline(seven, 6) == nil,
    BY_HAND)
  local sum = 0
  for _, list in ipairs(batch_split.by_pipeline({ { steady_s = 3, count = 2 },
    { steady_s = 5, count = 3 } }, 41)) do
    for _, n in ipairs(list) do
      sum = sum + n
    end
  end
  t.equal("2 pipelines of 3 s and 3 of 5 s: sum of the batch of 41", sum, 41, "property")
end

-- Templates ------------------------------------------------------------------------------------

--- The best cut of layers with these times into stages, by T of the published code.
local function best_cut(times, n_stages)
  return hv.opt.partition { n = #times, parts = n_stages, load = times,
    weights = formula.weights(n_stages, "code") }
end

local function code_weights(n_stages)
  return formula.weights(n_stages, "code")
end

local function check_formula(t)
  t.near("T1 + T2 + T3 of 4 equal stages of 1 s with 10 micro-batches, s",
    formula.pipeline_s({ 1, 1, 1, 1 }, 10), 13, 0, "Eq-P")
  local two = best_cut({ 2, 4, 6 }, 2)
  t.near("layers of 2, 4 and 6 s on 2 nodes: T, s", two.value, 54, 0, CATALOGUE)
  t.equal("layers of 2, 4 and 6 s on 2 nodes: last layer of the first stage", two.stages[1][2], 2,
    CATALOGUE)
  local slowest_s = two.values[2]
  t.equal("layers of 2, 4 and 6 s on 2 nodes: T1, T2 = (2 S + k + 1) t_k and T3, s",
    ("%g %g %g"):format(two.values[1] + slowest_s, (2 * 2 + 1 + 1) * slowest_s, slowest_s),
    "12 36 6", CATALOGUE)
  local three = best_cut({ 1, 2, 3, 4, 5, 6 }, 3)
  t.near("layers of 1 to 6 s on 3 nodes: T, s", three.value, 108, 0, CATALOGUE)
  t.equal("layers of 1 to 6 s on 3 nodes: stage times, s",
    ("%g|%g|%g"):format(table.unpack(three.values)), "6|9|6", CATALOGUE)
  t.near("layers of 1 and 2 s on one node: T = 4 t, s", best_cut({ 1, 2 }, 1).value, 12, 0,
    CATALOGUE)
  local times = { 3, 1, 4, 1, 5, 9, 2, 6 }
  for n = 1, 5 do
    t.near(("8 layers into %d stage(s): T of the best of all cuts"):format(n),
      best_cut(times, n).value, oracle.weighted_cut(times, n, code_weights), 1e-9, "oracle")
  end
end

local function check_one_gpu_nodes(t)
  t.near("34 layers on one node of 4 GPUs: T = 4 t of the published stage, ms",
    4 * (25.7160315068991 + 32.9095049523248), 234.502145836896, 1e-9, PLANNER)
  local published = planner.one_gpu
  for n = 2, 8 do
    t.near(("34 layers on %d nodes of one GPU: T, ms"):format(n),
      best_cut(published.layer_ms, n).value, published.template_ms[n], 1e-6, PLANNER)
  end
end

--- Milliseconds of every layer on so many GPUs: shared work, and an all-reduce in each direction.
local function layer_times(n_gpus)
  local published = planner.four_gpus
  local all_reduce_ms = published.all_reduce_ms[n_gpus]
  local times = {}
  for i, layer_ms in ipairs(published.layer_ms) do
    times[i] = layer_ms / n_gpus + (all_reduce_ms and 2 * all_reduce_ms[i] or 0)
  end
  return times
end

--- The least T of templates on n nodes of 4 GPUs, which are split by halves; `times` are those of
-- layers by number of GPUs.
local function best_template(n_nodes, times)
  local best = math.huge
  local function extend(nodes_left, stage_gpus)
    if nodes_left == 0 then
      local load = {}
      for s, n_gpus in ipairs(stage_gpus) do
        load[s] = times[n_gpus]
      end
      local cut = hv.opt.partition { n = #load[1], parts = #load, load = load,
        weights = formula.weights(#load, "code") }
      best = math.min(best, cut.value)
      return
    end
    for _, split in ipairs(gpu_split.all(4)) do
      local more = table.move(stage_gpus, 1, #stage_gpus, 1, {})
      extend(nodes_left - 1, table.move(split, 1, #split, #more + 1, more))
    end
  end
  extend(n_nodes, {})
  return best
end

local function check_four_gpu_nodes(t)
  local times = { [1] = layer_times(1), [2] = layer_times(2), [4] = layer_times(4) }
  for n, theirs in ipairs(planner.four_gpus.template_ms) do
    local ours = best_template(n, times)
    t.ok(("Oobleck, 34 layers on %d x 4 GPUs: T %.6f, theirs %.6f (all four in 0.9 s of CPU)")
      :format(n, ours, theirs), ours <= theirs * (1 + 1e-9), PLANNER)
  end
end

--- Does every split of a node use all of its GPUs?
local function uses_all(n_gpus)
  for _, split in ipairs(gpu_split.all(n_gpus)) do
    local sum = 0
    for _, part in ipairs(split) do
      sum = sum + part
    end
    if sum ~= n_gpus then
      return false
    end
  end
  return true
end

local function check_gpu_splits(t)
  t.equal("number of splits of 1, 2, 4 and 8 GPUs", ("%d %d %d %d"):format(#gpu_split.all(1),
    #gpu_split.all(2), #gpu_split.all(4), #gpu_split.all(8)), "1 2 5 26",
    CATALOGUE .. ", trap: equal halves; by hand 1 + n²")
  t.equal("number of splits of 7 GPUs, a node that lost one", #gpu_split.all(7), 16,
    "by hand: whole, or 5 ways of 4 x 3 of 3")
  local all_used = true
  local counts = {}
  for n_gpus = 1, 8 do
    all_used = all_used and uses_all(n_gpus)
    counts[n_gpus] = #gpu_split.all(n_gpus)
  end
  t.ok("1 to 8 GPUs: every split of a node uses all of its GPUs", all_used, "property")
  t.equal("number of splits of 1 to 8 GPUs", table.concat(counts, " "), "1 2 3 5 6 20 16 26",
    "by hand: 3 as 1 + 2 x 1, 5 as 1 + 5 x 1, 6 as 1 + 3 x 3 + 5 x 2, 7 as 1 + 5 x 3")
end

--- One random objective over the splits of `n_nodes` nodes of 4 GPUs. Returns the least value of
-- all states, the value that refinement finds with all states and by coordinate descent, and the
-- value of the start.
local function refined(n_nodes, random)
  local lists = {}
  local seed = {}
  local start = {}
  for i = 1, n_nodes do
    lists[i] = gpu_split.all(4)
    seed[i] = random()
    start[i] = lists[i][1]
  end
  local function value(state)
    local v = 0
    for i, split in ipairs(state) do
      v = v + math.abs(math.sin(#split * 7 + 100 * seed[i] + split[1] * (i + 1) + v))
    end
    return v
  end
  local function try(state, best)
    local v = value(state)
    return v < best.value - 1e-12 and { state = state, value = v } or nil
  end
  local function never()
    return false
  end
  local least = math.huge
  for state in search.product(lists) do
    least = math.min(least, value(state))
  end
  local first = { state = start, value = value(start) }
  return least, refinement.best(lists, first, 1000, try, never).value,
    refinement.best(lists, first, 0, try, never).value, first.value
end

local function check_refinement(t)
  local random = search.generator(3)
  local all_exact = true
  local never_worse = true
  for case = 1, 20 do
    local least, exhaustive, descent, first = refined(1 + case % 3, random)
    all_exact = all_exact and math.abs(exhaustive - least) < 1e-12
    never_worse = never_worse and descent <= first and descent >= least - 1e-12
  end
  t.ok("20 random cases with few splits: refinement finds the optimum", all_exact, "oracle")
  t.ok("20 random cases by coordinate descent: never worse than the start", never_worse, "property")
end

-- Recovery -------------------------------------------------------------------------------------

local function two_or_more(nodes)
  return #nodes >= 2
end

local function check_examples(t)
  local kept = recovery.repair({ { 1, 2 }, { 3, 4, 5 } }, { [5] = true }, two_or_more)
  t.equal("pipelines 1 2 | 3 4 5 lose node 5: a smaller template is used", recovery.text(kept),
    "1 2 | 3 4", RECOVERY)
  local borrowed = recovery.repair({ { 1, 2 }, { 3, 4, 5 } }, { [1] = true }, two_or_more)
  t.equal("pipelines 1 2 | 3 4 5 lose node 1: a node is borrowed", recovery.text(borrowed),
    "2 5 | 3 4", RECOVERY)
  local merged = recovery.repair({ { 1, 2 }, { 3, 4 } }, { [1] = true }, two_or_more)
  t.equal("pipelines 1 2 | 3 4 lose node 1: they are merged", recovery.text(merged), "3 4 2",
    RECOVERY)
  local function not_node_9(nodes)
    return nodes[#nodes] ~= 9
  end
  t.ok("no template uses node 9: the repair ends without pipelines",
    recovery.repair({ { 9 }, { 1 } }, {}, not_node_9) == nil, BY_HAND)
  t.ok("pipeline 1 2 loses node 1: no pipelines are left",
    recovery.repair({ { 1, 2 } }, { [1] = true }, two_or_more) == nil, RECOVERY)
end

--- Nodes of a sequence by position, and which are gone with a device.
local function check_sequences(t)
  local sequence = { { ids = { 1, 2 } }, { ids = { 3 } }, { ids = { 4, 5 } } }
  local gone = recovery.gone(sequence, { 5 })
  t.ok("device 5 is lost: only the third node is gone", not gone[1] and not gone[2] and gone[3],
    BY_HAND)
  t.equal("nodes 3 and 1 in the order of the sequence: devices of the second",
    table.concat(recovery.nodes(sequence, { 3, 1 })[2].ids, " "), "4 5", BY_HAND)
  t.equal("pipelines as text", recovery.text { { 1, 2 }, { 3 } }, "1 2 | 3", BY_HAND)
  local cluster = {}
  function cluster.ids(_, address)
    return address == "first" and { 1, 4 } or { 2, 5 }
  end
  local made = { replicas = { { count = 2, stages =
      { { devices = "first" }, { devices = "second" } } } } }
  local pipelines = recovery.pipelines({ cluster = cluster }, made, sequence)
  t.equal("nodes of two copies of a plan's pipeline", recovery.text(pipelines), "1 | 3", BY_HAND)
end

--- Is every node but the two lost ones in exactly one pipeline of two nodes or more?
local function is_repaired(pipelines, first_lost, second_lost)
  local seen = {}
  local count = 0
  for _, nodes in ipairs(pipelines) do
    if #nodes < 2 then
      return false
    end
    for _, node in ipairs(nodes) do
      if seen[node] or node == first_lost or node == second_lost then
        return false
      end
      seen[node] = true
      count = count + 1
    end
  end
  return count == (first_lost == second_lost and 8 or 7)
end

local function check_pairs(t)
  local right = true
  for first_lost = 1, 9 do
    for second_lost = first_lost, 9 do
      local pipelines = { { 1, 2 }, { 3, 4, 5 }, { 6, 7, 8, 9 } }
      local lost = { [first_lost] = true, [second_lost] = true }
      right = right and is_repaired(recovery.repair(pipelines, lost, two_or_more), first_lost,
        second_lost)
    end
  end
  t.ok("9 nodes, every pair of failures: all other nodes are in use, no pipeline is too small",
    right, "enumeration")
end

--- Are all nodes that are left in pipelines of `least` nodes or more after the repair; or are there
-- no pipelines where fewer than `least` nodes are left?
local function is_whole(pipelines, lost, n_left, least)
  local function fits(nodes)
    return #nodes >= least
  end
  local made = recovery.repair(pipelines, lost, fits)
  local n_used = 0
  for _, own in ipairs(made or {}) do
    n_used = n_used + #own
    if not fits(own) then
      return false
    end
  end
  return (made ~= nil) == (n_left >= least) and (not made or n_used == n_left)
end

--- Pipelines over nodes 1, 2, … of these sizes.
local function pipelines_of(sizes)
  local pipelines = {}
  local n_nodes = 0
  for k, size in ipairs(sizes) do
    pipelines[k] = {}
    for i = 1, size do
      pipelines[k][i] = n_nodes + i
    end
    n_nodes = n_nodes + size
  end
  return pipelines
end

--- Does every loss of nodes, from every combination, leave pipelines that hold the model and use
-- all nodes that are left, as long as one pipeline can?
local function every_loss(n_nodes, least)
  local sizes = combinations.sizes(n_nodes, least, 0)
  for _, counts in ipairs((combinations.all(n_nodes, sizes, 1, 1000))) do
    for mask = 0, (1 << n_nodes) - 1 do
      local lost = {}
      local n_left = n_nodes
      for i = 1, n_nodes do
        if mask >> (i - 1) & 1 == 1 then
          lost[i] = true
          n_left = n_left - 1
        end
      end
      if not is_whole(pipelines_of(combinations.expanded(sizes, counts)), lost, n_left, least) then
        return false
      end
    end
  end
  return true
end

local function check_losses(t)
  t.ok("8 nodes, n0 = 1, 2 and 3, every mix and loss: all nodes in use while one pipeline fits",
    every_loss(8, 1) and every_loss(8, 2) and every_loss(8, 3), "enumeration")
end

return function(t)
  check_combinations(t)
  check_enumeration(t)
  check_by_template(t)
  check_by_pipeline(t)
  check_formula(t)
  check_one_gpu_nodes(t)
  check_four_gpu_nodes(t)
  check_gpu_splits(t)
  check_refinement(t)
  check_examples(t)
  check_sequences(t)
  check_pairs(t)
  check_losses(t)
end
