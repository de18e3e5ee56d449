-- Self-tests of the four policies: the numbers of the catalogue, walks of a policy alone, and plans
-- of the whole strategies through the judge on plain links and rates. [D] marks what is derived,
-- not printed in the publication.
local engine = require "engine"
local oracle = require "testing.oracle"
local paper = require "paper"
local placing = require "placing_experts"
local plain = require "testing.plain"
local policies = require "policies"
local walk = require "walk"

--- The same tokens from every rank.
local function alike(loads, ranks)
  local layer = {}
  for r = 1, ranks do
    layer[r] = {}
    for e, load in ipairs(loads) do
      layer[r][e] = load / ranks
    end
  end
  return layer
end

--- A routing whose ranks send `rows`, so many iterations long.
local function routing(rows, iterations)
  local counts = {}
  for t = 1, iterations or 1 do
    counts[t] = { rows }
  end
  return { kind = "trace", counts = counts }
end

--- A transformer with experts on devices behind plain links, with a routing of its job.
local function world(q)
  q.optimizer = q.optimizer or "adam"
  return plain.transformer(q)
end

--- Seconds without the sums of gradients, of one stage on all devices that share experts.
local function placed_s(ctx, moe)
  moe.all_to_all = "flat"
  local plan = plain.plan(ctx, { ep = ctx.cluster.n_devices, moe = moe },
    { kind = "allreduce", overlap = false })
  local verdict = assert(hv.plan.new(plan):eval())
  return verdict.iteration_s - verdict.breakdown_s.dp, verdict
end

--- Terms of the claim on a plan of one stage on all devices that share experts; its warning.
local function claimed(ctx, id, moe)
  local claim = paper.of(plain.plan(ctx, { ep = ctx.cluster.n_devices, moe = moe }), ctx, id)
  return claim.terms, claim.warnings and claim.warnings[1]
end

-- Tokens of eight ranks: experts get 4000, 1500, 1200 and 300; nobody has own ones at the hottest.
local FOUR = {
  { 0, 750, 600, 0, 0, 0, 0, 0 }, { 0, 0, 600, 300, 0, 0, 0, 0 },
  { 300, 0, 0, 0, 0, 0, 0, 0 }, { 500, 750, 0, 0, 0, 0, 0, 0 },
  { 800, 0, 0, 0, 0, 0, 0, 0 }, { 800, 0, 0, 0, 0, 0, 0, 0 },
  { 800, 0, 0, 0, 0, 0, 0, 0 }, { 800, 0, 0, 0, 0, 0, 0, 0 } }

local function fastermoe(t)
  local from = "catalogue: fastermoe; He et al. 2022, section 4; released shadow_policy.py"
  local q = placing.shadow_figures { owner_tokens = { 4000, 1500, 1200, 300 }, alpha = 2,
    hidden = 1024, flops_per_s = 50e12, bytes_per_s = 12.5e9 }
  t.near("without shadows", placing.shadows_s(q, {}) * 1e3, 7.256, 5e-4, from)
  local shadows, best_s = placing.shadows(q)
  t.near("one shadow", best_s * 1e3, 4.063, 5e-4, from)
  t.near("two shadows", placing.shadows_s(q, { true, true }) * 1e3, 4.861, 5e-4, from)
  t.equal("which is shadowed", table.concat(shadows, " "), "1", from)
  -- four groups: sends of 1, experts of 2, receives of 1, each in turn on its own
  local tasks = {}
  for g = 1, 4 do
    tasks[g] = { resource = "network", time_s = 1, after = g > 1 and { g - 1 } or nil }
    tasks[4 + g] = { resource = "device", time_s = 2, after = { g, g > 1 and 3 + g or g } }
    tasks[8 + g] = { resource = "network", time_s = 1, after = { 4 + g, g > 1 and 7 + g or 4 } }
  end
  t.near("exchange in four groups", hv.sim.tasks { resources = { "network", "device" },
    tasks = tasks }.makespan, 10, 1e-9, from)
  local inputs = world { nodes = 8, nic_GBps = 12.5, TFLOPS = 50, memory_GBps = 1e6, hidden = 1024,
    ffn = 2048, experts = 8, sequence = 875, routing = routing(FOUR) }
  t.with(inputs, function(ctx)
    local base_s = placed_s(ctx, {})
    local shadow_s, verdict = placed_s(ctx, { copies = { ["0"] = "*" }, copy_life = "iteration" })
    t.near("one shadow by the judge", (base_s - shadow_s) * 1e3, 7.256 - 4.063, 1e-3, from)
    t.equal("nothing is approximated", table.concat(verdict.approximated, "; "), "")
    local two_s = placed_s(ctx, { copies = { ["0"] = "*", ["1"] = "*" },
      copy_life = "iteration" })
    t.ok("a second shadow costs more than it gains", two_s > shadow_s, from)
    local terms = claimed(ctx, "fastermoe", { copies = { ["0"] = "*" } })
    -- products at 1e6 GB/s of memory need 1.3 us more than their FLOP
    t.near("the claim without shadows", terms.unplaced_layer_s * 1e3, 7.256, 2e-3, from)
    t.near("the claim with the plan's shadow", terms.placed_layer_s * 1e3, 4.063, 2e-3, from)
  end)
end

--- Random loads with their ranks and places: all fill their places.
local function random_cases(n)
  local cases = {}
  for i = 1, n do
    local ranks = 2 + hv.random(2)
    local slots = ranks == 3 and 1 + hv.random(2) or 2
    local loads = {}
    for e = 1, ranks * slots do
      loads[e] = hv.random(40)
    end
    cases[i] = { loads = loads, ranks = ranks, slots = slots }
  end
  return cases
end

--- Load of the busiest rank where `division` lists the experts of each.
local function busiest(division, case)
  local most = 0
  for _, group in ipairs(division) do
    local sum = 0
    for _, e in ipairs(group) do
      sum = sum + case.loads[e]
    end
    most = math.max(most, sum)
  end
  return most
end

--- Experts by rank, from ranks by expert.
local function groups_of(owners, ranks)
  local groups = {}
  for rank = 1, ranks do
    groups[rank] = {}
  end
  for e, rank in ipairs(owners) do
    table.insert(groups[rank], e)
  end
  return groups
end

local function smartmoe(t)
  local from = "catalogue: smartmoe; Zhai et al. 2023, section 5"
  local eight = { 8, 7, 6, 5, 4, 3, 2, 1 }
  local owners = policies.longest_first(eight, 4, 2)
  local sums = {}
  for rank, group in ipairs(groups_of(owners, 4)) do
    sums[rank] = ("%g"):format(busiest({ group }, { loads = eight }))
  end
  t.equal("eight experts on four ranks", table.concat(sums, " "), "9 9 9 9", from)
  local six = { 10, 9, 3, 2, 2, 2 }
  owners = policies.longest_first(six, 3, 2)
  sums = {}
  for rank, group in ipairs(groups_of(owners, 3)) do
    sums[rank] = ("%g"):format(busiest({ group }, { loads = six }))
  end
  t.equal("places bind", table.concat(sums, " "), "12 11 5", from)
  local found = oracle.compare { cases = { { loads = six, ranks = 3, slots = 2 } },
    solve = function(case)
      return groups_of(policies.longest_first(case.loads, case.ranks, case.slots), case.ranks)
    end,
    states = function(case) return oracle.divisions(#case.loads, case.ranks) end, cost = busiest }
  t.equal("the optimum with places", found.optimal, 1, from)
  local cases = random_cases(240)
  found = oracle.compare { cases = cases,
    solve = function(case)
      return groups_of(policies.longest_first(case.loads, case.ranks, case.slots), case.ranks)
    end,
    states = function(case) return oracle.divisions(#case.loads, case.ranks) end, cost = busiest }
  t.equal("never below the optimum, in 240 cases", #found.wrong, 0, from)
  t.ok(("heuristic: %d of 240 at the optimum, mean gap %.2f %%, worst %.1f %%"):format(
    found.optimal, 100 * found.mean, 100 * found.worst), found.mean < 0.1,
    "all divisions of 6, 8 and 9 experts")
  -- eight iterations alike: 15 on the busiest of four ranks, then 9, if moves pay in the interval
  local layers = {}
  for i = 1, 8 do
    layers[i] = alike(eight, 4)
  end
  local facts = { ranks = 4, experts = 8, token_s = 1, send_s = 0, copy_s = 0, move_s = 1,
    interval = 2, hidden_s = 0 }
  local moved = walk.layer(facts, policies.smartmoe, layers)
  t.equal("places change once, at the interval", ("%d %d"):format(#moved, moved[1].iteration),
    "1 3", from)
  facts.move_s = 100
  t.equal("moves that do not pay", #walk.layer(facts, policies.smartmoe, layers), 0, from)
  local inputs = world { nodes = 4, nic_GBps = 10, TFLOPS = 10, hidden = 1024, ffn = 4096,
    experts = 8, sequence = 1024, batch = 256, routing = routing(alike(eight, 4), 8) }
  t.with(inputs, function(ctx)
    local placements = { { iteration = 2, owners = { 0, 3, 1, 2, 2, 1, 3, 0 } } }
    local _, still = placed_s(ctx, {})
    local _, verdict = placed_s(ctx, { adapt = { policy = "record", placements = placements } })
    t.ok("even loads by the judge", verdict.routing.mean_s < still.routing.mean_s, from)
    t.near("moves carry their states", verdict.routing.moved_bytes,
      4 * 2 * 1024 * 4096 * 12, 1, from .. ": four experts, weights and both moments")
    -- busiest ranks of 15 and of 9 loads: what they compute is in that proportion, and so are the
    -- three quarters of it that come from other ranks
    local terms = claimed(ctx, "smartmoe", { adapt = { policy = "record",
      placements = placements } })
    t.near("the claim follows the plan's places", terms.placed_layer_s / terms.unplaced_layer_s,
      9 / 15, 1e-9, from)
  end)
end

--- Replicas after each step of expand and shrink, and the most tokens of a replica, as texts.
local function steps(loads, n)
  local list, most = {}, {}
  local function note()
    local busy = 0
    for e, load in ipairs(loads) do
      busy = math.max(busy, load / n[e])
    end
    list[#list + 1], most[#most + 1] = table.concat(n, " "), ("%g"):format(busy)
  end
  note()
  for _ = 1, 20 do
    local hot, cold = policies.expand(loads, n)
    if not hot then
      break
    end
    n[hot], n[cold] = n[hot] + 1, n[cold] - 1
    note()
  end
  return table.concat(list, ", "), table.concat(most, " ")
end

--- Seconds of a whole strategy on a world of experts with this skew.
local function strategies_s(t, skew)
  local inputs = world { nodes = 2, devices = 4, nic_GBps = 100, nics = 4, intra_GBps = 300,
    TFLOPS = 100, memory_GBps = 2000, hidden = 1024, ffn = 4096, experts = 8, top_k = 1,
    precision = "bf16", sequence = 2048, batch = 256,
    routing = { kind = "zipf", skew = skew, drift = 0.1, iterations = 16, seed = 3 } }
  return t.with(inputs, function(ctx)
    local found = {}
    for name, id in pairs { fastmoe = "none", fastermoe = "fastermoe", flexmoe = "flexmoe",
      smartmoe = "smartmoe" } do
      found[name] = assert(hv.plan.new(assert(engine.plan(ctx, id))):eval()).iteration_s
    end
    return found
  end)
end

local function flexmoe(t)
  local from = "catalogue: flexmoe; Nie et al. 2023, section 3"
  local loads = { 60, 20, 10, 10 }
  local replicas, most = steps(loads, { 2, 2, 2, 2 })
  t.equal("replicas", replicas, "2 2 2 2, 3 2 1 2, 4 2 1 1", from)
  t.equal("most tokens of a replica", most, "30 20 15", from)
  t.equal("the last replica stays", (steps({ 60, 1, 1, 1 }, { 1, 1, 1, 1 })), "1 1 1 1", from)
  -- a replica of the first expert on the second rank of two: 30 + 20 tokens, a sum on both ranks
  local two = { ranks = 2, token_s = 3, send_s = 4, copy_s = 5 }
  local places = { owners = { 1, 2 }, copies = { { 2 } } }
  t.near("its model: computation, exchange, reductions", policies.flexmoe_s(two,
    alike({ 60, 20 }, 2), places), 3 * 50 + 4 * (15 + 10) + 5, 1e-9, from)
  t.near("its model without replicas", policies.flexmoe_s(two, alike({ 60, 20 }, 2),
    { owners = { 1, 2 } }), 3 * 60 + 4 * 30, 1e-9, from)
  -- loads that hardly change: no replica goes and comes back
  local layers = {}
  for i = 1, 12 do
    layers[i] = alike({ 60 + i % 2, 20, 10, 10 }, 4)
  end
  local facts = { ranks = 4, experts = 4, token_s = 1, send_s = 0, copy_s = 0.1, move_s = 1,
    interval = 4, threshold = 1.1, slots = 2, hidden_s = 0 }
  t.ok("places settle", #walk.layer(facts, policies.flexmoe, layers) <= 2, from)
  facts.copy_s = 1000
  t.equal("reductions that cost more than replicas gain",
    #walk.layer(facts, policies.flexmoe, layers), 0, from)
  local skewed, even = strategies_s(t, 1.2), strategies_s(t, 0)
  t.ok(("FlexMoE, FasterMoE, FastMoE at a skew of 1.2: %.4f, %.4f, %.4f s"):format(
    skewed.flexmoe, skewed.fastermoe, skewed.fastmoe), skewed.flexmoe <= skewed.fastermoe
    and skewed.fastermoe <= skewed.fastmoe,
    from .. ", 2 nodes of 4, 8 experts, 16 iterations, drift 0.1")
  t.ok("FlexMoE is sooner than FastMoE by more than 1 %", skewed.flexmoe < 0.99 * skewed.fastmoe,
    from)
  t.ok(("no later than SmartMoE, whose moves it has (%.4f s)"):format(skewed.smartmoe),
    skewed.flexmoe <= skewed.smartmoe * (1 + 1e-9), from)
  local far = math.max(math.abs(even.flexmoe / even.fastmoe - 1),
    math.abs(even.fastermoe / even.fastmoe - 1))
  t.ok("alike without skew", far <= 0.01, from)
end

local function prophet(t)
  local from = "catalogue: prophet, own constants; Wang et al. 2023"
  local tokens = { { 70, 10, 10, 10 }, { 60, 20, 10, 10 }, { 50, 10, 30, 10 }, { 5, 5, 5, 85 } }
  local facts = { token_s = 3 / 10, send_s = 4 / 10, share_s = 20 / (4 * 10), hidden_s = 0 }
  local owners = { 1, 2, 3, 4 }
  local best, best_s, by_n = policies.lite(facts, tokens, owners)
  t.near("no copies [D]", policies.prophet_s(facts, tokens, owners, {}), 101.5, 1e-9, from)
  t.near("copies everywhere [D]", by_n[0], 50.5, 1e-9, from)
  t.near("all but one rank [D]", by_n[1], 48.5, 1e-9, from)
  t.near("all but two ranks [D]", by_n[2], 60.5, 1e-9, from)
  t.equal("which ranks", table.concat(best[1], " ") .. " " .. best_s, "2 3 48.5", from)
  facts.hidden_s = 1
  t.near("transfers behind other work", policies.prophet_s(facts, tokens, owners, best), 46.5,
    1e-9, from)
  local inputs = world { nodes = 4, nic_GBps = 10, TFLOPS = 10, memory_GBps = 1e6, hidden = 1024,
    ffn = 4096, experts = 4, sequence = 4096, batch = 64, routing = routing(tokens) }
  t.with(inputs, function(ctx)
    local base_s = placed_s(ctx, {})
    local some_s, verdict = placed_s(ctx, { copies = { ["0"] = { 1, 2 } }, prefetch = 1,
      copy_life = "iteration" })
    t.ok("copies of some ranks through the judge", some_s < base_s, from)
    t.equal("nothing is approximated", table.concat(verdict.approximated, "; "), "")
    local all_s = placed_s(ctx, { copies = { ["0"] = "*" }, prefetch = 1,
      copy_life = "iteration" })
    local early_s = placed_s(ctx, { copies = { ["0"] = "*" }, copy_life = "iteration" })
    t.ok("what sets out early hides", all_s < early_s, from)
    local terms = claimed(ctx, "prophet", { copies = { ["0"] = { 1, 2 } } })
    t.ok("the claim follows the plan's copies", terms.placed_layer_s < terms.unplaced_layer_s, from)
  end)
  inputs.job.routing = nil
  t.with(inputs, function(ctx)
    local _, warning = claimed(ctx, "prophet", {})
    t.ok("no routing is said: " .. tostring(warning), warning ~= nil, from)
  end)
end

local tests = { fastermoe = fastermoe, smartmoe = smartmoe, flexmoe = flexmoe, prophet = prophet }

return function(t, system)
  tests[system.id](t)
end
