-- Self-tests of Whale: shares of a batch, heads and layers by speed and memory, and pipeline stages
-- over nodes of two kinds.
local deal = require "deal"
local layer_split = require "layer_split"
local nested = require "nested"
local pipeline_stages = require "pipeline_stages"
local ranks = require "ranks"
local search = require "search"

local CATALOGUE = "catalogue: whale"
local SHIFT = "section 3.3.1, by hand"
local BY_HAND = "by hand"

--- Compares a list as text.
local function equal_list(t, name, got, want, source, separator)
  t.equal(name, table.concat(got, separator or " "), want, source)
end

--- The catalogue's example: 48 sequences on four devices of speeds 2, 2, 1 and 1.
local function check_batch(t)
  local speeds = { 2, 2, 1, 1 }
  local items = deal.items(speeds, 0, 0, { 1, 1, 1, 1 })
  deal.deal(items, 48, 0)
  equal_list(t, "48 sequences on speeds 2 2 1 1, without memory limits: shares", deal.counts(items),
    "16,16,8,8", CATALOGUE, ",")
  items = deal.items(speeds, 4, 1, { 32, 32, 10, 10 })
  t.near("memory of 8 sequences of 1 GiB with 4 GiB of states, GiB", 4 + 8 * 1, 12, 0, CATALOGUE)
  t.near("time of 16 sequences on speed 2, before the shift", 16 / items[1].speed, 8, 0, CATALOGUE)
  t.ok("memories 32 32 10 10 GiB: the shift finds shares that fit", deal.deal(items, 48, 0),
    CATALOGUE)
  equal_list(t, "memories 32 32 10 10 GiB: shares after the shift", deal.counts(items),
    "18,18,6,6", CATALOGUE, ",")
  t.near("time of the busiest device after the shift", items[1].n / items[1].speed, 9, 0, CATALOGUE)
  items = deal.items(speeds, 4, 1, { 20, 20, 10, 10 })
  t.ok("48 sequences do not fit into room for 16 + 16 + 6 + 6", deal.deal(items, 48, 0) == nil,
    CATALOGUE)
end

--- Heads of a layer that is split over two devices of speeds 3 and 1.
local function check_heads(t)
  local items = deal.items({ 3, 1 }, 2, 1, { 80, 80 })
  deal.deal(items, 8, 1)
  equal_list(t, "8 heads split over speeds 3 1: shares", deal.counts(items), "6,2", SHIFT, ",")
  items = deal.items({ 3, 1 }, 2, 1, { 7, 80 })
  t.ok("8 heads, room for 5 on the fast device: the shift finds shares that fit",
    deal.deal(items, 8, 1), SHIFT)
  equal_list(t, "8 heads, room for 5 on the fast device: shares after the shift",
    deal.counts(items), "5,3", SHIFT, ",")
  t.equal("layers of 32 heads (8 of keys and values) and of 24 (12): units of a split",
    layer_split.units { { heads = 32, kv_heads = 8 }, { heads = 24, kv_heads = 12 } }, 4, BY_HAND)
end

--- Layers per stage.
local function check_layers(t)
  equal_list(t, "6 equal layers on stages of speeds 2 1: layers per stage",
    deal.proportional({ 1, 1, 1, 1, 1, 1 }, { 2, 1 }), "4,2", BY_HAND, ",")
  equal_list(t, "3 equal layers on stages of speeds 9 1 1: every stage gets one",
    deal.proportional({ 1, 1, 1 }, { 9, 1, 1 }), "1,1,1", BY_HAND, ",")
end

--- Checks the units of items after deal.deal, whose first result is `ok`. Returns: do the units add
-- up to `total` and, where `ok`, fit into every memory; and is `ok` set exactly where all memories
-- together hold the total?
local function judge_deal(items, total, ok)
  local sum = 0
  local room = 0
  local is_over = false
  for _, item in ipairs(items) do
    sum = sum + item.n
    room = room + math.max(0, (item.cap - item.fixed) // item.unit)
    is_over = is_over or item.n > 0 and item.fixed + item.n * item.unit > item.cap
  end
  return sum == total and not (ok and is_over), (ok ~= nil) == (total <= room)
end

--- judge_deal rejects wrong shares and wrong answers.
local function check_judge(t)
  local items = { { fixed = 1, unit = 1, cap = 4, n = 3 }, { fixed = 5, unit = 1, cap = 4, n = 0 } }
  local kept, right = judge_deal(items, 3, true)
  t.ok("the check of shares accepts 3 units that fit", kept and right, BY_HAND)
  t.ok("the check of shares rejects a lost unit", not judge_deal(items, 4, true), BY_HAND)
  items[1].n = 4
  kept, right = judge_deal(items, 4, true)
  t.ok("the check of shares rejects a full device that is reported to fit", not kept and not right,
    BY_HAND)
  t.ok("the check of shares accepts that 4 units do not fit", select(2, judge_deal(items, 4, nil)),
    BY_HAND)
end

local function check_random_loads(t)
  local random = search.generator(7)
  local all_kept = true
  local all_right = true
  for _ = 1, 200 do
    local speeds = {}
    local caps = {}
    for i = 1, 1 + random(5) do
      speeds[i] = random(8)
      caps[i] = 4 + random(40)
    end
    local items = deal.items(speeds, 4, 1, caps)
    local total = random(60)
    local kept, right = judge_deal(items, total, deal.deal(items, total, 0))
    all_kept = all_kept and kept
    all_right = all_right and right
  end
  t.ok("200 random loads: shares add up to the batch, and none exceeds its memory", all_kept,
    CATALOGUE .. ", invariants")
  t.ok("200 random loads: infeasible exactly where the batch exceeds the sum of memories",
    all_right, "by hand: room of all devices")
end

--- All small loads of three items: the third is slow and takes two bytes per unit.
local function check_small_loads(t)
  local all_kept = true
  local all_right = true
  for first_speed = 1, 4 do
    for second_speed = 1, 4 do
      for cap = 4, 12 do
        local items = {
          { speed = first_speed, fixed = 1, unit = 1, cap = cap },
          { speed = second_speed, fixed = 1, unit = 1, cap = 9 },
          { speed = 1, fixed = 0, unit = 2, cap = 12 },
        }
        local ok = deal.deal(items, 15, 0)
        local sum = 0
        for _, item in ipairs(items) do
          sum = sum + item.n
          all_right = all_right and (not ok or deal.use(item) <= 1 + 1e-9)
        end
        all_kept = all_kept and sum == 15
        local room = cap - 1 + 8 + 6
        all_right = all_right and (ok ~= nil) == (room >= 15)
      end
    end
  end
  t.equal("144 loads of three devices: shares add up to the 15 sequences", all_kept, true,
    "invariant")
  t.equal("144 loads of three devices: feasible exactly where memory is enough, and then within it",
    all_right, true, "by hand: room of all devices")
end

--- Two nodes of a fast kind and four of a kind with more memory, two devices each.
local function check_stages(t)
  local nodes = {}
  for i = 1, 6 do
    local is_big = i > 2
    nodes[i] = { kind = is_big and "big" or "fast", ids = { 2 * i - 1, 2 * i },
      memory_bytes = is_big and 2 or 1, flops_per_s = 1 }
  end
  local runs = pipeline_stages.runs(nodes)
  t.equal("kind of the first run of nodes, most memory first", runs[1][1].kind, "big",
    "section 3.3.2")
  equal_list(t, "possible numbers of equal pipelines of 2 + 4 nodes", pipeline_stages.copies(runs),
    "1 2", BY_HAND)
  local list = pipeline_stages.deal(runs, 2, false)
  t.equal("number of stages of two pipelines, a node each", #list, 3, BY_HAND)
  equal_list(t, "devices of stage 1 of two pipelines", list[1].ids, "5 6 9 10", BY_HAND)
  equal_list(t, "devices of stage 1 of one pipeline, a run of equal nodes per stage",
    pipeline_stages.deal(runs, 1, true)[1].ids, "5 6 7 8 9 10 11 12", BY_HAND)
  runs = pipeline_stages.runs {
    { kind = "fast", ids = { 1 }, memory_bytes = 16, flops_per_s = 9 },
    { kind = "big", ids = { 2 }, memory_bytes = 32, flops_per_s = 3 },
  }
  t.equal("kind of the first of two runs, the slower has more memory", runs[1][1].kind, "big",
    "section 3.3.2")
  equal_list(t, "first devices of tensor-parallel groups of 2", ranks.heads({ 5, 6, 9, 10 }, 2),
    "5 9", BY_HAND)
  equal_list(t, "devices of two rows in order", ranks.join { { ids = { 1 } }, { ids = { 3, 2 } } },
    "1 3 2", BY_HAND)
  t.equal("number of groups of 2 devices in six nodes of 2", #ranks.of_nodes(nodes, 2), 6, BY_HAND)
  t.equal("no reason without an item that is short", ranks.shortage(nil, 1, nil, nodes[1]), nil,
    BY_HAND)
end

--- Lists of teams as text: sizes of the groups, "x" how many, "*" where they mix kinds.
local function nests_of(ctx, nodes, uneven_only)
  local list = {}
  nested.each(ctx, nodes, uneven_only, function(teams)
    local names = {}
    for i, team in ipairs(teams) do
      names[i] = #team.groups[1] .. "x" .. #team.groups .. (team.mixed and "*" or "")
    end
    list[#list + 1] = table.concat(names, "+")
  end)
  table.sort(list)
  return list
end

--- Split inside replica: which groups there are, and sequences of a step over them.
local function check_nest(t)
  local ctx = { options = { tp = 4 },
    model = { layers = function() return { { heads = 8, kv_heads = 8 } } end } }
  local nodes = { { kind = "a", ids = { 1, 2 }, flops_per_s = 2, memory_bytes = 2 },
    { kind = "b", ids = { 3, 4, 5, 6 }, flops_per_s = 1, memory_bytes = 1 } }
  equal_list(t, "nodes of 2 and 4 devices: nests of unequal groups", nests_of(ctx, nodes, true),
    "1x2+2x2 1x2+4x1 2x1+1x4 2x1+4x1", BY_HAND)
  equal_list(t, "the same with those that other modes have", nests_of(ctx, nodes, false),
    "1x2+2x2 1x2+4x1 2x1+1x4 2x1+2x2 2x1+4x1 3x2*", BY_HAND)
  local teams = { { groups = { { 1, 2 } } }, { groups = { { 3, 4 }, { 5, 6 } } } }
  local splits = { { item = { fixed = 4, unit = 1, cap = 32 } },
    { item = { fixed = 4, unit = 1, cap = 10 } } }
  local counts = nested.outer(nil, teams, splits, { 4, 2 }, 24)
  equal_list(t, "24 sequences on groups of speeds 4 2 2, room for 28 6 6: the first group",
    counts[1], "12", SHIFT, ",")
  equal_list(t, "and the other two", counts[2], "6,6", SHIFT, ",")
  counts = nested.outer(nil, teams, splits, { 4, 2 }, 32)
  equal_list(t, "32 sequences: two of each full group move to the first", counts[1], "20", SHIFT,
    ",")
  equal_list(t, "and the full groups keep what they have room for", counts[2], "6,6", SHIFT, ",")
end

return function(t)
  check_nest(t)
  check_batch(t)
  check_heads(t)
  check_layers(t)
  check_judge(t)
  check_random_loads(t)
  check_small_loads(t)
  check_stages(t)
end
