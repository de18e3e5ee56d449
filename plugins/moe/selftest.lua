-- Self-tests of the systems: the numbers of the catalogue by their formulas, and through the judge
-- on plain links and rates, with the knobs that the system sets. Names are those of `verified` in
-- plugin.lua; [D] marks what is derived, not printed in the publication.
local formulas = require "formulas"
local knobs = require "knobs"
local plain = require "testing.plain"
local every_row = require "testing.rows"
local target = require "target"

local MB = 1e6

--- `moe` of a system for the inputs of ctx; what the measured layers do not say is in `layer`.
local function moe_of(ctx, id, layer, options, knob, stage)
  layer.block, layer.layer = 0, 1
  local world = { ctx = ctx, layers = { layer }, options = options or {} }
  local devices = {}
  for i = 1, ctx.cluster.n_devices do
    devices[i] = i
  end
  stage = stage or { dp = #devices, ep = #devices, layers = { 0, ctx.model.n_layers } }
  stage.devices = ctx.cluster:address(devices)
  return knobs[id].moe(world, stage, #devices, knob or knobs[id].usual or {})
end

--- Verdict of a plan of one stage on all devices, its experts shared by `ep` of them (all).
local function verdict_of(ctx, moe, ep, stage)
  stage = stage or {}
  stage.ep, stage.moe = ep or ctx.cluster.n_devices, moe
  local plan = plain.plan(ctx, stage, { kind = "allreduce", overlap = false })
  return assert(hv.plan.new(plan):eval())
end

--- Whether a verdict simulates all that the plan sets.
local function whole(t, verdict)
  t.equal("nothing is approximated", table.concat(verdict.approximated, "; "), "")
end

--- Layers of which only the experts take time: ms_per_token, fixed_ms, bytes of a token.
local function pieces(q)
  return { expert_ms_per_token = { P = { q.ms_per_token or 1e-12, q.back_ms_per_token or 0 } },
    expert_fixed_ms = q.fixed_ms and { P = { q.fixed_ms, 0 } } or nil, backward_ms = { P = 0 },
    dispatch_bytes_per_token = q.bytes or 0, experts = q.experts, top_k = q.top_k,
    parameter_bytes = 0, activation_bytes = 0, output_bytes = 0 }
end

--- Tokens of every source for every expert as the only iteration of a job's routing.
local function routing(sources)
  return { kind = "trace", counts = { { sources } } }
end

local function gshard(t)
  local from = "catalogue: gshard; Lepikhin et al. 2021, section 2.2"
  t.equal("places of a group", formulas.capacity(1, 2, 1024, 16, 4), 128, from)
  t.equal("least places", formulas.capacity(1, 2, 8, 16, 4), 4, from)
  local even = {}
  for e = 1, 16 do
    even[e] = 1 / 16
  end
  t.near("balanced loss", formulas.gshard_loss(even, even), 1 / 16 ^ 2, 1e-15, from)
  -- loads of 300, 10, 129 and 361 with places for 200: everyone computes 200, 261 are dropped
  local world = { nodes = 4, sequence = 200, pieces = pieces { ms_per_token = 0.01, experts = 4 },
    routing = routing { { 300, 10, 129, 361 } } }
  t.with(plain.measured(world), function(ctx)
    local verdict = verdict_of(ctx, moe_of(ctx, "gshard", { experts = 4 }, { capacity = 1 }))
    t.near("places by the judge", verdict.iteration_s * 1e3, 2, 1e-9, from)
    t.near("what has no place is dropped", verdict.dropped_frac, (100 + 161) / 800, 1e-9, from)
    t.ok("dropped tokens are not exact", not verdict.exact, from)
    whole(t, verdict)
  end)
end

local function switch(t)
  local from = "catalogue: switch; Fedus et al. 2022, equations 3 and 4"
  local loads = { 7, 4, 3, 2 }
  local places = formulas.capacity(1.25, 1, 16, 4)
  t.equal("places", places, 5, from)
  t.equal("dropped", formulas.dropped(loads, places), 2, from)
  local shares = {}
  for e, load in ipairs(loads) do
    shares[e] = load / 16
  end
  t.near("loss", formulas.switch_loss(0.01, shares, shares), 0.0121875, 1e-12, from)
  local world = { nodes = 4, sequence = 16, pieces = pieces { ms_per_token = 1, experts = 4 },
    routing = routing { loads } }
  t.with(plain.measured(world), function(ctx)
    local verdict = verdict_of(ctx, moe_of(ctx, "switch", { experts = 4 }, { capacity = 1.25 }))
    t.near("dropped by the judge", verdict.dropped_frac, 0.125, 1e-9, from)
    t.near("all places are computed", verdict.iteration_s * 1e3, 4 * 5, 1e-9, from)
    whole(t, verdict)
  end)
end

--- Milliseconds of an exchange of so many bytes per rank, by the judge: a quarter of the dispatches
-- and combines of a pass in both directions. 8 nodes of 8, 200 GB/s and 5 us inside, 25 GB/s and
-- 20 us for each device outside.
local function exchange_ms(t, bytes, all_to_all)
  local world = { nodes = 8, devices = 8, nic_GBps = 200, nics = 8, latency_us = 20,
    intra_GBps = 200, intra_us = 5, sequence = 64, memory_GiB = 1e6,
    pieces = pieces { bytes = bytes / 64, experts = 64 } }
  return t.with(plain.measured(world), function(ctx)
    local moe = moe_of(ctx, "tutel", { experts = 64 }, { capacity = 1 },
      { degree = 1, all_to_all = all_to_all })
    local verdict = verdict_of(ctx, moe)
    whole(t, verdict)
    return verdict.iteration_s * 1e3 / 4
  end)
end

local function tutel(t)
  local from = "catalogue: tutel; Hwang et al. 2023, section 3.3; tutel, fast_dispatch.py"
  t.equal("places, aligned", formulas.aligned_capacity(1.25, 2, 1000, 16, 4), 156, from)
  t.equal("places of one", formulas.aligned_capacity(1, 1, 1000, 64, 1), 16, from)
  t.equal("messages", formulas.two_hop_messages(128, 8), 22, from)
  local near, far = { alpha_s = 5e-6, bytes_per_s = 200e9 }, { alpha_s = 20e-6, bytes_per_s = 25e9 }
  local want = { { "1 MB", 1, 1.191, 0.214, 5e-4 }, { "64 MB", 64, 3.43, 2.695, 5e-3 },
    { "1 GB", 1000, 36.7, 39.6, 5e-2 } }
  for _, w in ipairs(want) do
    local bytes = w[2] * MB
    t.near(w[1] .. ": flat [D]", exchange_ms(t, bytes, "flat"), w[3], w[5], from)
    t.near(w[1] .. ": two hops [D]", exchange_ms(t, bytes, "2dh"), w[4], w[5], from)
    t.near(w[1] .. ": the formula, flat", formulas.flat_s(64, 8, bytes, near, far) * 1e3, w[3],
      w[5], from)
    t.near(w[1] .. ": the formula, two hops", formulas.two_hops_s(64, 8, bytes, near, far) * 1e3,
      w[4], w[5], from)
  end
  local order = {}
  for i, size in ipairs { 8, 128, 250, 262, 512 } do
    order[i] = exchange_ms(t, size * MB, "2dh") < exchange_ms(t, size * MB, "flat") and "2" or "1"
  end
  t.equal("two hops below 256 MB, flat above [D]", table.concat(order), "22211", from)
  t.ok("shards where tokens are fewer than parameters", formulas.shards_tokens(1e6, 2, 3e6)
    and not formulas.shards_tokens(1e6, 4, 3e6), from)
end

local function dsmoe(t)
  local from = "catalogue: dsmoe; Rajbhandari et al. 2022, sections 4.2 and 5.2"
  t.equal("steps of a coordinated exchange", formulas.coordinated_steps(128, 8), 24, from)
  local list = {}
  for i, experts in ipairs { 32, 64, 128 } do
    list[i] = ("%d %d"):format(formulas.expert_ranks(experts, 128))
  end
  t.equal("ranks by layer [D]", table.concat(list, ", "), "32 4, 64 2, 128 1", from)
  -- two layers with 2 and 4 experts on four nodes: 1000 tokens of 10 kB leave for one other rank of
  -- two, and for three of four, over 10 GB/s; there and back in both directions
  local two, four = pieces { bytes = 10000, experts = 2 }, pieces { bytes = 10000, experts = 4 }
  local inputs = plain.measured { nodes = 4, sequence = 1000, layers = 2, pieces = two }
  inputs.model.layers[2] = four
  t.with(inputs, function(ctx)
    local world = { ctx = ctx, options = { capacity = 1 }, layers = {
      { block = 0, layer = 1, experts = 2 }, { block = 1, layer = 2, experts = 4 } } }
    local stage = { dp = 4, ep = 4, layers = { 0, 2 } }
    local verdict = verdict_of(ctx, knobs.dsmoe.moe(world, stage, 4, knobs.dsmoe.usual), 4)
    t.near("degrees by layer through the judge", verdict.iteration_s * 1e3,
      4 * (0.5 + 0.75), 1e-6, from)
    whole(t, verdict)
  end)
end

-- Tokens of four experts, each token with two of them: the case of the two kernels without drops.
local LOADS = { 300, 10, 129, 73 }

--- Verdict on one device that computes 1 ms a row, for the tokens of LOADS.
local function rows_ms(t, moe)
  local world = { nodes = 1, sequence = 256, pieces = pieces { ms_per_token = 1, experts = 4,
    top_k = 2 }, routing = routing { LOADS } }
  return t.with(plain.measured(world), function(ctx)
    local verdict = verdict_of(ctx, moe(ctx), 1)
    whole(t, verdict)
    return verdict.iteration_s * 1e3
  end)
end

local function scattermoe(t)
  local from = "catalogue: scattermoe; Tan et al. 2024"
  local rows = formulas.block_rows(LOADS)
  t.equal("gathered copy of blocks [D]", rows * 1024, 917504, from)
  t.equal("rows [D]", rows, 896, from)
  t.near("rows by the judge [D]", rows_ms(t, function(ctx)
    return moe_of(ctx, "scattermoe", { experts = 4 })
  end), 896, 1e-6, from)
end

local function megablocks(t)
  local from = "catalogue: megablocks; Gale et al. 2023, section 5; megablocks, moe.py"
  t.equal("rows", formulas.block_rows(LOADS), 896, from)
  local places = formulas.capacity(1, 2, 256, 4)
  t.equal("dropped at a factor of 1", formulas.dropped(LOADS, places), 173, from)
  t.equal("rows at a factor of 1", 4 * places, 512, from)
  t.equal("rows of the widest", formulas.widest_rows(LOADS), 1200, from)
  local function own(ctx)
    return moe_of(ctx, "megablocks", { experts = 4 })
  end
  t.near("rows by the judge", rows_ms(t, own), 896, 1e-6, from)
  t.near("rows of the widest by the judge", rows_ms(t, function()
    return { kernel = "padded" }
  end), 1200, 1e-6, from)
end

local function pipemoe(t)
  local from = "catalogue: pipemoe; Shi et al. 2023, section 4"
  local a, e = { alpha_s = 0.1, beta_s = 4 }, { alpha_s = 0.05, beta_s = 10 }
  local list = {}
  for i, r in ipairs { 1, 2, 4, 8, 12 } do
    list[i] = ("%.6g"):format(formulas.chunked_s(a, e, r))
  end
  t.equal("chunks of 1, 2, 4, 8, 12 [D]", table.concat(list, " "), "18.25 14.3 12.4 11.6 11.4667",
    from)
  local r, best_s = formulas.chunks(a, e, 1024)
  t.equal("best chunks [D]", ("%d %.4f"):format(r, best_s), "13 11.4654", from)
  t.near("where the branch of experts is least", formulas.stationary_chunks(a, e), 12.65, 0.005,
    from)
  local slow, light = { alpha_s = 0.1, beta_s = 8 }, { alpha_s = 0.05, beta_s = 4 }
  r, best_s = formulas.chunks(slow, light, 1024)
  t.equal("bound by exchanges [D]", ("%d %.1f"):format(r, best_s), "2 16.4", from)
  t.near("bound by exchanges, one chunk", formulas.chunked_s(slow, light, 1), 20.25, 1e-9, from)
  -- two ranks with an expert each: half of 8000 tokens of 10 kB leaves over 10 GB/s, 4 ms and 0.1
  -- ms a message; experts take 1.25 us a token and 0.05 ms a chunk; forward only
  local one = pieces { ms_per_token = 0.00125, fixed_ms = 0.05, bytes = 10000, experts = 2 }
  one.backward_ms, one.expert_ms_per_token, one.expert_fixed_ms = nil, 0.00125, 0.05
  local world = { nodes = 2, latency_us = 100, sequence = 8000, pieces = one }
  for _, chunks in ipairs { 1, 2, 4, 8, 13 } do
    local ms = t.with(plain.measured(world), function(ctx)
      return plain.ms(plain.plan(ctx, { ep = 2, moe = { all_to_all = "flat", kernel = "grouped",
        degree = chunks } }))
    end)
    t.near(chunks == 13 and "chunks by the judge [D]" or chunks .. " chunks by the judge", ms,
      formulas.chunked_s(a, e, chunks), 1e-6, from)
  end
end

--- All orders of the chunks' work on the device and of their exchanges are tried: the least time.
-- Equal work of chunks goes by number, which loses nothing.
local function exhaustive(seconds, r)
  local best_s = math.huge
  local function orders(names, needs_before)
    local list, current, count = {}, {}, {}
    local function place()
      if #current == #names * r then
        list[#list + 1] = table.move(current, 1, #current, 1, {})
        return
      end
      for i, name in ipairs(names) do
        local n = count[name] or 0
        if n < r and (i == 1 or not needs_before or (count[names[i - 1]] or 0) > n) then
          count[name] = n + 1
          current[#current + 1] = { name, n + 1 }
          place()
          current[#current] = nil
          count[name] = n
        end
      end
    end
    place()
    return list
  end
  local networks = orders({ "a1", "a2" }, true)
  for _, compute in ipairs(orders({ "c1", "d1", "e", "c2", "d2" }, true)) do
    for _, network in ipairs(networks) do
      local ok, played = pcall(hv.sim.tasks, { resources = 2,
        tasks = formulas.chunk_tasks(seconds, compute, network) })
      best_s = math.min(best_s, ok and played.makespan or math.huge)
    end
  end
  return best_s
end

--- Seconds of OptSche's orders.
local function optsche_s(seconds, r)
  return hv.sim.tasks { resources = 2,
    tasks = formulas.chunk_tasks(seconds, formulas.optsche(r)) }.makespan
end

--- Two ranks whose chunks take 1 ms to compress and to decompress, 4 ms to compute and 3 ms to
-- exchange, forward only: 1000 tokens of 2000 B, half of which leave over 0.125 / 3 GB/s in a
-- quarter of their bytes, experts of 8 us a token, two chunks or one; `unordered`: without OptSche.
local function compressed_ms(t, degree, unordered)
  local world = { nodes = 2, nic_GBps = 0.125 / 3, sequence = 1000, pieces = pieces { bytes = 2000,
    experts = 2 } }
  world.pieces.backward_ms, world.pieces.expert_ms_per_token = nil, 0.008
  return t.with(plain.measured(world), function(ctx)
    local moe = moe_of(ctx, "schemoe", { experts = 2 }, { ratio = 4, GBps = 1 }, { degree = degree,
      ratio = 4 })
    if unordered then
      moe.order = nil
    end
    return verdict_of(ctx, moe).iteration_s * 1e3
  end)
end

local function schemoe(t)
  local from = "catalogue: schemoe; Shi et al. 2024, sections 4 and 5"
  t.near("OptSche: two chunks", optsche_s({ c = 1, d = 1, e = 4, a = 3 }, 2), 20, 1e-9, from)
  t.near("one chunk", optsche_s({ c = 2, d = 2, e = 8, a = 6 }, 1), 28, 1e-9, from)
  local beaten, seed = 0, 7
  local function draw()
    seed = (seed * 1103515245 + 12345) % 2 ^ 31
    return 0.5 + seed / 2 ^ 31 * 4
  end
  for _ = 1, 60 do
    local seconds = { c = draw(), e = draw(), a = draw() }
    seconds.d = seconds.c
    beaten = beaten + (exhaustive(seconds, 2) < optsche_s(seconds, 2) - 1e-9 and 1 or 0)
  end
  t.equal("no order is faster", beaten, 0, from .. ", 60 cases, all orders")
  t.near("OptSche: two chunks, by the judge", compressed_ms(t, 2), 20, 1e-9, from)
  t.near("two chunks without its order, by the judge", compressed_ms(t, 2, true), 21, 1e-9, from)
  t.near("one chunk, by the judge", compressed_ms(t, 1), 28, 1e-9, from)
  local function both_ms(inside_GBps)
    return formulas.inside_s(32, 4, 64 * MB, inside_GBps * 1e9) * 1e3,
      formulas.outside_s(32, 4, 64 * MB, 12.5e9) * 1e3
  end
  for _, w in ipairs { { "PCIe", 2, 7.48 }, { "NVLink", 100, 4.54 } } do
    local inside_ms, outside_ms = both_ms(w[2])
    t.equal("inside and outside at once, " .. w[1], ("%.2f %.2f"):format(inside_ms + outside_ms,
      math.max(inside_ms, outside_ms)), ("%.2f 4.48"):format(w[3]), from)
    local world = { nodes = 8, devices = 4, nic_GBps = 50, nics = 4, intra_GBps = w[2],
      sequence = 32, pieces = pieces { bytes = 2 * MB, experts = 32 } }
    t.with(plain.measured(world), function(ctx)
      local moe = moe_of(ctx, "schemoe", { experts = 32 }, { ratio = 1 }, { degree = 1 })
      local verdict = verdict_of(ctx, moe)
      t.near("at once by the judge" .. (w[2] > 2 and ", NVLink" or ""),
        verdict.iteration_s * 1e3 / 4, 4.48, 1e-3, from)
      whole(t, verdict)
    end)
  end
end

local function lina(t)
  local from = "catalogue: lina; Li et al. 2023, sections 4.2 and 4.3"
  --- Ends of two exchanges of 4 ms, ready at 0 and 6, and of a reduction of 12 ms, queued first.
  local function ends(first, chunk_ms)
    local tasks = hv.sim.tasks { resources = { "network", "clock" }, tasks = {
      { resource = "clock", time_s = 6 },
      { resource = "network", time_s = 12, chunk_s = chunk_ms, priority = first and 0 or 2 },
      { resource = "network", time_s = 4, priority = 1 },
      { resource = "network", time_s = 4, priority = 1, after = { 1 } } } }
    local list = {}
    for i = 2, 4 do
      list[i - 1] = ("%g"):format(tasks.spans[i][2])
    end
    return table.concat(list, " ")
  end
  t.equal("first come first served [D]", ends(false), "12 16 20", from)
  t.equal("exchanges first [D]", ends(true, 2), "20 4 10", from)
  t.equal("experts of a device [D]", formulas.packed(16, function(n)
    return 3 * n, 10 * (1 - n / 16)
  end), 4, from)
  -- Four layers of 60 MB of gradients, 9 ms of an all-reduce of 2 · 3/4, beside exchanges of
  -- 4000 tokens of 10 kB, of which 3/4 leave: 3 ms each. Forward 4 (3 + 2 + 3) = 32 ms, a
  -- backward pass of a layer 3 + 4 + 3. First come first served, each reduction is before the
  -- next layer's exchange: 32 + 4 (10 + 9) = 108. Exchanges first: of the chunks of 30 MB, 4.5
  -- ms, one runs behind the experts of each of three layers, which wait 0.5 ms for its end: 32 +
  -- 10 + 3 · 10.5 = 73.5, and then the other 36 - 3 · 4.5 = 22.5: 96.
  local world = { nodes = 4, layers = 4, sequence = 4000, pieces = pieces { ms_per_token = 0.0005,
    back_ms_per_token = 0.001, bytes = 10000, experts = 4 } }
  world.pieces.parameter_bytes = 60 * MB
  t.with(plain.measured(world), function(ctx)
    local plan = plain.plan(ctx, { ep = 4, moe = { all_to_all = "flat" } },
      { kind = "allreduce", bucket_MiB = 25 })
    local fifo_ms = plain.ms(plan)
    knobs.lina.plan({ options = { chunk_MB = 30 } }, plan)
    local verdict = assert(hv.plan.new(plan):eval())
    t.near("first come first served, by the judge [D]", fifo_ms, 108, 1e-6, from)
    t.near("exchanges first, by the judge [D]", verdict.iteration_s * 1e3, 96, 1e-6, from)
    whole(t, verdict)
  end)
end

--- Seconds of tokens and of experts between machines, by the judge: 4 machines of 8 devices that
-- compute in no time, an expert each.
local function moved_s(t, batch)
  local world = { nodes = 4, devices = 8, nic_GBps = 100, memory_GBps = 1e6, memory_GiB = 800,
    TFLOPS = 1e7, hidden = 1024, ffn = 4096, experts = 32, top_k = 2, precision = "bf16",
    sequence = 512, batch = 32 * batch }
  return t.with(plain.transformer(world), function(ctx)
    local found = {}
    for _, move in ipairs { "tokens", "experts" } do
      local stage = { ep = 32, moe = { all_to_all = "flat", move = move } }
      local plan = plain.plan(ctx, stage, { kind = "allreduce", overlap = false })
      plan.micro_batch, plan.replicas[1].micro_batches = 32 * batch, 1
      found[move] = assert(hv.plan.new(plan):eval())
    end
    local layers = require("mixture").layers(ctx)
    local stage = { dp = 32, ep = 32, layers = { 0, 2 } }
    stage.devices = plain.plan(ctx).replicas[1].stages[1].devices
    local own = knobs.janus.moe({ ctx = ctx, layers = layers, options = {} }, stage, 32 * batch,
      { prefetch = 0 })
    return found.tokens.breakdown_s.ep, found.experts.breakdown_s.ep, own.move or "tokens"
  end)
end

local function janus(t)
  local from = "catalogue: janus; Liu et al. 2023, section 3.2"
  --- A case of n = 4 machines of m = 8 ranks with an expert each of 8h² parameters.
  local function case(sequences, length, top_k, hidden)
    return { tokens = sequences * length, top_k = top_k, hidden = hidden, machines = 4, ranks = 8,
      experts_per_rank = 1, parameters = 8 * hidden ^ 2 }
  end
  t.near("R of 32 sequences", formulas.ratio(case(32, 512, 2, 1024)), 2, 1e-12, from)
  t.near("R of 128 sequences", formulas.ratio(case(128, 512, 2, 1024)), 8, 1e-12, from)
  t.near("R of four experts a token", formulas.ratio(case(256, 128, 4, 768)), 10.67, 0.005, from)
  local tokens, experts = formulas.between_machines(case(32, 512, 2, 1024))
  t.equal("elements of tokens", tokens, 402653184, from)
  t.equal("elements of experts", experts, 201326592, from)
  local right, whole_ratio = true, true
  for _, batch in ipairs { 4, 8, 32, 128 } do
    local ratio = formulas.ratio(case(batch, 512, 2, 1024))
    local by_tokens_s, by_experts_s, moved = moved_s(t, batch)
    right = right and (by_experts_s < by_tokens_s) == (ratio > 1)
      and (moved == "experts") == (ratio > 1)
    whole_ratio = whole_ratio and math.abs(by_tokens_s / by_experts_s / ratio - 1) < 1e-3
  end
  t.ok("wins where R is above 1", right, from .. ", R of 0.25, 0.5, 2 and 8")
  t.ok("the judge's times have the ratio R", whole_ratio, from)
end

local function tamoe(t)
  local from = "catalogue: tamoe; Chen et al. 2022, section 4"
  local beta = { { 1, 1, 4, 4 }, { 1, 1, 4, 4 }, { 4, 4, 1, 1 }, { 4, 4, 1, 1 } }
  local shares, even = target.closed(beta)
  local row = {}
  for j, share in ipairs(shares[1]) do
    row[j] = ("%g"):format(100 * share)
  end
  t.equal("shares of two pairs", table.concat(row, " "), "40 40 10 10", from)
  t.ok("columns are balanced", even, from)
  local _, slowest = target.solve(beta, 1)
  t.near("the program agrees", 100 * slowest, 40, 1e-6, from)
  local most = 0
  for j, share in ipairs(shares[1]) do
    most = math.max(most, 100 * beta[1][j] * share)
  end
  t.near("slowest pair", most, 40, 1e-9, from)
  local list = {}
  for j, penalty in ipairs(target.penalties(shares[1])) do
    list[j] = ("%g"):format(penalty)
  end
  t.equal("penalties", table.concat(list, " "), "0.1 0.1 0.4 0.4", from)
  -- three ranks, two near each other: the closed form leaves columns uneven, the program does not
  local odd = { { 1, 1, 4 }, { 1, 1, 4 }, { 4, 4, 1 } }
  local _, odd_even = target.closed(odd)
  local solved = target.shares(odd, 1)
  local worst = 0
  for j = 1, 3 do
    worst = math.max(worst, math.abs(solved[1][j] + solved[2][j] + solved[3][j] - 1))
  end
  t.ok("uneven columns by the program", not odd_even and worst < 1e-6, from)
  -- two nodes of two: 400 of 1000 tokens of 10 kB go to the neighbour at 40 GB/s, 200 over 10 GB/s
  local world = { nodes = 2, devices = 2, nic_GBps = 20, nics = 2, intra_GBps = 40,
    sequence = 1000, pieces = pieces { bytes = 10000, experts = 4 } }
  t.with(plain.measured(world), function(ctx)
    local layer = { experts = 4, top_k = 1 }
    local verdict = verdict_of(ctx, moe_of(ctx, "tamoe", layer))
    t.near("shares by the judge", verdict.iteration_s * 1e3 / 4, 400 / 4000 + 200 / 1000, 1e-6,
      from)
    whole(t, verdict)
    local flat = verdict_of(ctx, moe_of(ctx, "fastmoe", layer))
    t.ok("sooner than even shares", verdict.iteration_s < flat.iteration_s, from)
  end)
end

local function fastmoe(t)
  local from = "catalogue: fastmoe; He et al. 2021"
  local world = { nodes = 4, sequence = 25, pieces = pieces { ms_per_token = 0.1, experts = 4 },
    routing = routing { { 40, 30, 20, 10 } } }
  -- worker 0 has ten tokens of its own for each ten that it gets from the three others
  local own = hv.routing { sources = 4, experts = 4, matrix = { { 10, 7.5, 5, 2.5 },
    { 10, 7.5, 5, 2.5 }, { 10, 7.5, 5, 2.5 }, { 10, 7.5, 5, 2.5 } } }
    :apply { owners = { 1, 2, 3, 4 } }
  local received = 0
  for source = 2, 4 do
    received = received + own.bytes[source][1]
  end
  t.near("the busiest worker", own.loads[1] * 0.1, 4, 1e-9, from)
  t.near("bytes to the busiest worker", received, 40 - 10, 1e-9, from)
  t.with(plain.measured(world), function(ctx)
    local verdict = verdict_of(ctx, moe_of(ctx, "fastmoe", { experts = 4 }))
    t.near("busiest by the judge", verdict.iteration_s * 1e3, 4, 1e-9, from)
    whole(t, verdict)
  end)
  world.routing = nil
  t.with(plain.measured(world), function(ctx)
    local verdict = verdict_of(ctx, moe_of(ctx, "fastmoe", { experts = 4 }))
    t.near("balanced, by the judge", verdict.iteration_s * 1e3, 2.5, 1e-9, from)
  end)
end

local tests = { gshard = gshard, switch = switch, tutel = tutel, dsmoe = dsmoe,
  scattermoe = scattermoe, megablocks = megablocks, pipemoe = pipemoe, schemoe = schemoe,
  lina = lina, janus = janus, tamoe = tamoe, fastmoe = fastmoe }

return function(t, system)
  tests[system.id](t)
  local inputs = plain.transformer { nodes = 2, devices = 2, hidden = 1024, ffn = 2048,
    experts = 4, top_k = 2, sequence = 512, batch = 16 }
  inputs.model.layers, inputs.model.moe.first_dense = 4, 0
  every_row.search(t, inputs)
end
