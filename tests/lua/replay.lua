-- Tests of hv.sim.replay from Lua: four policies of published systems, and what a policy may see.
-- `hetviz selftest tests/lua/replay.lua`.

--- One layer whose sources all send the same numbers, `times` iterations of it.
local function trace(sources, loads, times)
  local layer, out = {}, {}
  for s = 1, sources do
    layer[s] = {}
    for e, n in ipairs(loads) do
      layer[s][e] = n / sources
    end
  end
  for t = 1, times do
    out[t] = { layer }
  end
  return out
end

--- Tokens of every expert in one layer of an iteration.
local function totals(layer)
  local sum = {}
  for _, row in ipairs(layer) do
    for e, n in ipairs(row) do
      sum[e] = (sum[e] or 0) + n
    end
  end
  return sum
end

--- Shadows of the hottest expert after FasterMoE's formula (He et al. 2022; fastmoe,
-- shadow_policy.py): 7.256 ms with 4000 tokens on the busiest of eight ranks, 4.063 ms with its
-- expert on all of them. Nobody has own tokens at the hottest expert.
local function check_shadow(t)
  local layer = {
    { 0, 750, 600, 0, 0, 0, 0, 0 }, { 0, 0, 600, 300, 0, 0, 0, 0 },
    { 300, 0, 0, 0, 0, 0, 0, 0 }, { 500, 750, 0, 0, 0, 0, 0, 0 },
    { 800, 0, 0, 0, 0, 0, 0, 0 }, { 800, 0, 0, 0, 0, 0, 0, 0 },
    { 800, 0, 0, 0, 0, 0, 0, 0 }, { 800, 0, 0, 0, 0, 0, 0, 0 },
  }
  local compute, send = 3 * 4 * 2 * 1024 ^ 2 / 50e12, 4 * 1024 * 4 / 12.5e9
  local copy = 2 * 2 * 1024 ^ 2 * 4 / 12.5e9
  local function greedy(_, last)
    if not last then
      return nil
    end
    local loads, order, places = totals(last[1]), {}, {}
    for e = 1, #loads do
      order[e] = e
    end
    table.sort(order, function(a, b) return loads[a] > loads[b] end)
    local best = (compute + send) * loads[order[1]]
    for i = 1, #order - 1 do
      local time = (compute + send) * loads[order[i + 1]] + i * copy
      if time >= best then
        break
      end
      best, places[order[i]] = time, "*"
    end
    return { { copies = places } }
  end
  local r = hv.sim.replay { trace = { { layer }, { layer } }, policy = greedy, token_s = compute,
    send_s = send, copy_s = copy, lent = true }
  t.near("FasterMoE: without shadows", r.seconds[1] * 1e3, 7.256, 0.001)
  t.near("FasterMoE: one shadow", r.seconds[2] * 1e3, 4.063, 0.001)
  t.ok("shadows are no moves", r.moves == 0)
  local hidden = hv.sim.replay { trace = { { layer }, { layer } }, policy = greedy,
    token_s = compute, send_s = send, copy_s = copy, lent = true, hidden_s = copy }
  t.near("Prophet: hidden behind other layers", hidden.seconds[2], r.seconds[2] - copy, 1e-9)
end

--- Equal numbers of experts per rank, the hottest on the least loaded one (SmartMoE, Zhai et al.
-- 2023): 15 on the busiest rank before, 9 after; moves must pay within the interval.
local function check_balance(t)
  local function lpt(move_s, interval)
    return function(k, last)
      if k % interval ~= 1 % interval or not last then
        return nil
      end
      local loads = totals(last[1])
      local d = hv.opt.distribute { items = loads, slots = 4, most = 2, objective = "lpt" }
      if (15 - d.value) * interval <= 2 * move_s then
        return nil
      end
      return { { owners = d.counts } }
    end
  end
  local q = { trace = trace(4, { 8, 7, 6, 5, 4, 3, 2, 1 }, 8), ranks = 4, move_s = 1,
    move_bytes = 100, policy = lpt(1, 2) }
  local r = hv.sim.replay(q)
  t.near("SmartMoE: by blocks", r.seconds[1], 15, 0)
  t.near("SmartMoE: balanced", r.seconds[8], 9, 0)
  t.near("bytes of moves", r.moved_bytes, 100 * r.moves, 0)
  t.ok("moves take time", r.move_s > 0)
  q.move_s, q.policy = 100, lpt(100, 2)
  t.near("moves that do not pay are not made", hv.sim.replay(q).mean_s, 15, 0)
end

--- One replica more for the expert with most tokens per replica, one less for that with least
-- (FlexMoE, Nie et al. 2023): 30 on the busiest of eight ranks, then 20, then 15.
local function check_replicas(t)
  local n, want = { 2, 2, 2, 2 }, { 30, 20, 15, 15 }
  local function places()
    local owners, copies, rank = {}, {}, 0
    for e = 1, 4 do
      owners[e], copies[e] = rank + 1, {}
      for k = 2, n[e] do
        copies[e][k - 1] = rank + k
      end
      rank = rank + n[e]
    end
    return { { owners = owners, copies = copies } }
  end
  local function expand_and_shrink(_, last)
    if not last then
      return places()
    end
    local loads, hot, cold = totals(last[1]), 1, nil
    for e = 2, 4 do
      hot = loads[e] / n[e] > loads[hot] / n[hot] and e or hot
    end
    for e = 1, 4 do
      local better = e ~= hot and n[e] > 1 and (not cold or loads[e] / n[e] < loads[cold] / n[cold])
      cold = better and e or cold
    end
    local worse = not cold or loads[cold] / (n[cold] - 1) >= loads[hot] / n[hot]
    if not worse then
      n[hot], n[cold] = n[hot] + 1, n[cold] - 1
    end
    return places()
  end
  local r = hv.sim.replay { trace = trace(8, { 60, 20, 10, 10 }, 4), policy = expand_and_shrink,
    ranks = 8 }
  for i = 1, 4 do
    t.near("FlexMoE: iteration " .. i, r.seconds[i], want[i], 1e-9)
  end
  t.ok("new replicas are moves", r.moves > 0)
end

--- A mixture of four experts on four devices, the routing of its job as traces.
local function check_trace(t)
  local plain = require "testing.plain"
  local world = { nodes = 4, hidden = 64, ffn = 64, experts = 4, top_k = 2, sequence = 10 }
  local function trace_of(routing, q)
    world.routing = routing
    return t.with(plain.transformer(world), function()
      return hv.trace(q)
    end)
  end
  local even = trace_of(nil, { sources = 3 })
  t.equal("even: one iteration, one layer with experts, three sources",
    ("%d %d %d"):format(#even, #even[1], #even[1][1]), "1 1 3")
  t.near("even: twice ten tokens over four experts", even[1][1][3][4], 5, 1e-12)
  local counts = { { { { 8, 4, 4, 4 }, { 0, 10, 10, 0 } } },
    { { { 1, 1, 1, 1 }, { 2, 0, 0, 2 } } } }
  local given = trace_of({ kind = "trace", counts = counts }, { sources = 2, tokens = 20 })
  t.equal("a trace: iterations", #given, 2)
  t.near("a trace: scaled to the tokens", given[1][1][1][1], 16, 1e-9)
  t.near("a trace: another source", given[1][1][2][2], 20, 1e-9)
  local zipf = trace_of({ kind = "zipf", skew = 1 }, { sources = 2 })
  t.near("zipf: second against first", zipf[1][1][1][2] / zipf[1][1][1][1], 0.5, 1e-9)
  t.ok("zipf: sources share a list", zipf[1][1][1] == zipf[1][1][2])
  t.ok("a trace of other experts is refused", not pcall(trace_of, { kind = "trace",
    counts = { { { { 1, 1, 1 } } } } }, { sources = 2 }))
  t.with(plain.measured { nodes = 1, backward_ms = 1, parameter_bytes = 1 }, function()
    local none, why = hv.trace { sources = 1 }
    t.equal("no experts", none == nil and why, "the model has no layers with experts")
  end)
end

local function check_contract(t)
  local seen = {}
  local one, other = trace(2, { 3, 1 }, 1)[1], trace(2, { 1, 3 }, 1)[1]
  local function look(k, last)
    seen[k] = last and totals(last[1])[1] or 0
  end
  local r = hv.sim.replay { trace = { one, other, one }, policy = look }
  t.ok("a policy sees the iteration before", seen[1] == 0 and seen[2] == 3 and seen[3] == 1)
  t.near("nothing moved", r.mean_s, 3, 0)
  t.near("slow ones", r.p95_s, 3, 0)
  local d = hv.sim.replay { trace = { one }, capacity_factor = 1 }
  t.near("dropped above the mean", d.dropped_frac, 0.25, 1e-12)
  local refused = {
    { "no trace", { trace = {} } },
    { "a rank that is not there", { trace = { one }, policy = function()
      return { { owners = { 1, 3 } } }
    end } },
    { "an answer that is no list", { trace = { one }, policy = function() return 1 end } },
    { "rows of another length", { trace = { one, { { { 1 }, { 1 } } } } } },
  }
  for _, x in ipairs(refused) do
    t.ok(x[1] .. " is refused", not pcall(hv.sim.replay, x[2]))
  end
end

return {
  api = 1, id = "replay", title = "Tests of replays", kind = "test",
  system = "none", reference = "none", summary = "Checks hv.sim.replay from Lua.",
  plan = function()
    return nil, "this file only tests hv.sim.replay"
  end,
  selftest = function(t)
    check_shadow(t)
    check_balance(t)
    check_replicas(t)
    check_contract(t)
    check_trace(t)
  end,
}
