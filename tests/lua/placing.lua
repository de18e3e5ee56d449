-- Tests of share/lua: placing_experts, documents. `hetviz selftest tests/lua/placing.lua`.
local documents = require "documents"
local placing = require "placing_experts"

--- Load of the busiest device, and whether every expert has a slot and every group one node.
local function check_places(t, name, q, slots)
  local n, node_of, busiest, whole = {}, {}, 0, true
  for _, e in ipairs(slots) do
    n[e] = (n[e] or 0) + 1
  end
  local per, size = q.slots // q.nodes, #q.loads // q.groups
  for i, e in ipairs(slots) do
    local group, node = (e - 1) // size, (i - 1) // per
    whole = whole and (node_of[group] or node) == node
    node_of[group] = node
  end
  local each = q.slots // q.devices
  for d = 0, q.devices - 1 do
    local sum = 0
    for i = d * each + 1, (d + 1) * each do
      sum = sum + q.loads[slots[i]] / n[slots[i]]
    end
    busiest = math.max(busiest, sum)
  end
  local all = #slots == q.slots
  for e = 1, #q.loads do
    all = all and n[e] ~= nil
  end
  t.ok(name .. ": every expert has a slot", all)
  t.ok(name .. ": groups stay on a node", whole)
  return busiest
end

local function check_placing(t)
  -- one expert with half of all tokens, four slots more than experts: 8 of 16 over five replicas
  local one = { loads = { 8, 2, 2, 2, 2 }, devices = 3, nodes = 1, slots = 9, groups = 1 }
  local busiest = check_places(t, "a hot expert", one, placing.place(one))
  t.ok("a hot expert: no device has more than a share above the mean",
    busiest <= 16 / 3 + 8 / 5 + 1e-9)
  local two = { loads = { 90, 132, 40, 61, 104, 165, 39, 4, 73, 56, 183, 86 }, devices = 8,
    nodes = 2, slots = 16, groups = 4 }
  local slots, load = placing.place(two)
  t.near("two nodes: load", check_places(t, "two nodes", two, slots), load, 1e-9)
  -- EPLB's own example; its devices have at most 164.5 by its places
  t.ok("two nodes: no busier than EPLB", load <= 164.5)
  t.ok("no room", placing.place { loads = { 1, 1, 1 }, devices = 2, slots = 2 } == nil)
end

local function check_shadows(t)
  local q = { owner_tokens = { 4000, 1500, 1200, 300 }, alpha = 2, hidden = 1024,
    bytes_per_s = 12.5e9, flops_per_s = 50e12 }
  local s = placing.shadow(q)
  t.ok("FasterMoE's case: the hottest alone", #s == 1 and s[1] == 1)
  -- two ranks of two experts: 90 tokens of 120, with shadows 40 + 5, 30 + 10, 10 + 15; the fourth
  -- is none
  local two = { loads = { 50, 40, 20, 10 }, owners = { 1, 1, 2, 2 }, token_s = 1, copy_s = 5 }
  local shadows, time_s = placing.shadows(two)
  t.equal("experts of two ranks", table.concat(shadows, " ") .. " " .. time_s, "1 2 3 25")
  two.most = 1
  t.equal("memory for one", table.concat((placing.shadows(two)), " "), "1")
  q.owner_tokens = { 10, 10, 10, 10 }
  t.ok("even tokens: none", #placing.shadow(q) == 0)
  q.bytes_per_s, q.owner_tokens = 1e15, { 1, 4000, 3000, 2000 }
  t.ok("links without cost: all but the last", #placing.shadow(q) == 3)
end

--- Every document once, on ranks that are equal or disjoint, and within its size on each.
local function check_deal(t, name, lengths, ranks, per_rank)
  local rounds, seen, fits = documents.deal { lengths = lengths, ranks = ranks,
    tokens_per_rank = per_rank }, {}, true
  local work, passed = 0, 0
  for _, round in ipairs(rounds) do
    local on, most = {}, 0
    for k = 1, ranks do
      for _, d in ipairs(round[k]) do
        on[d] = on[d] or {}
        on[d][#on[d] + 1] = k
      end
    end
    for d, list in pairs(on) do
      fits = fits and lengths[d] / #list <= per_rank and not seen[d]
      seen[d] = true
      passed = passed + lengths[d] * (#list - 1)
    end
    for k = 1, ranks do
      local sum, first = 0, nil
      for _, d in ipairs(round[k]) do
        first = first or table.concat(on[d], " ")
        fits = fits and table.concat(on[d], " ") == first
        sum = sum + lengths[d] ^ 2 / #on[d]
      end
      most = math.max(most, sum)
    end
    work = work + most
  end
  for d = 1, #lengths do
    fits = fits and seen[d]
  end
  t.ok(name .. ": every document once, in its group", fits)
  return work, passed
end

local function check_documents(t)
  local work, passed = check_deal(t, "four that fill four ranks", { 8, 4, 4, 8 }, 4, 4)
  -- 8 tokens on two ranks each: 32 a rank; then 4 tokens on two each, as rings are doubled where
  -- ranks have nothing to do: 8 a rank. No rank is idle, and none has more than another.
  t.near("four that fill four ranks: work", work, 32 + 8, 0)
  t.near("four that fill four ranks: passed on", passed, 2 * 8 + 2 * 4, 0)
  work, passed = check_deal(t, "equal ones", { 5, 5, 5, 5, 5, 5, 5, 5 }, 4, 8)
  t.near("equal ones: work", work, 50, 0)
  t.near("equal ones: nothing passed on", passed, 0, 0)
  local lengths, seed = {}, 12345
  for i = 1, 48 do
    seed = (seed * 1103515245 + 12345) % 2 ^ 31
    lengths[i] = 64 + seed % 4000
  end
  work = check_deal(t, "many", lengths, 8, 1024)
  local bound = 0
  for _, x in ipairs(lengths) do
    bound = bound + x ^ 2 / 8
  end
  t.ok("many: near the even share", work <= 1.2 * bound)
  -- 40 tokens on four ranks of ten fill them: 40²/4 a rank, 3 · 40 passed on; then 15 tokens on
  -- two, and 8 on one, doubled to two: the busiest has 15²/2, 15 + 8 are passed on
  local rings = require "document_rings"
  local docs = {}
  for i, length in ipairs { 40, 15, 8 } do
    docs[i] = { at = i, length = length, pairs = length ^ 2, least = (length + 9) // 10 }
  end
  local two = rings.deal(docs, 4)
  t.equal("rings: rounds, work, passed on", ("%d %g %g"):format(#two.rounds, two.work, two.passed),
    ("2 %g %g"):format(1600 / 4 + 225 / 2, 40 * 3 + 15 + 8))
  t.ok("too long for all ranks", documents.deal { lengths = { 100 }, ranks = 2,
    tokens_per_rank = 10 } == nil)
end

return {
  api = 1, id = "placing", title = "Tests of placing experts and documents", kind = "test",
  system = "none", reference = "none", summary = "Checks placing_experts and documents.",
  plan = function()
    return nil, "this file only tests libraries"
  end,
  selftest = function(t)
    check_placing(t)
    check_shadows(t)
    check_documents(t)
  end,
}
