-- Self-tests of sequence parallelism: the numbers of the catalogue by their formulas, and by the
-- judge on plain links with the knobs that the system sets. Names are those of `verified` in
-- plugin.lua; [D] marks what is derived, not printed in the publication.
local dimensions = require "dimensions"
local formulas = require "formulas"
local plain = require "testing.plain"
local every_row = require "testing.rows"
local schemes = require "schemes"
local worlds = require "worlds"

-- A rank of 8 with 65536 tokens, hidden 4096, 32 heads; and with fewer heads of keys.
local function shape(ranks, kv_heads)
  return { tokens = 65536 / ranks, width = 4096, keys = 4096 * (kv_heads or 32) / 32, heads = 32 }
end

--- Values that a rank sends by the judge.
local function sent(t, id, q)
  return worlds.laid(t, id, q).traffic.context
end

local tests = {}

function tests.rsa(t)
  local from = "catalogue: rsa; Li et al. 2023, sections 3.2 and 3.3"
  local forward, backward = formulas.self_attention(shape(8), 8)
  t.near("values forward", forward, 469762048, 0, from)
  t.near("values of both passes", forward + backward, 1879048192, 0, from)
  t.near("bytes of the scores", formulas.scores_bytes(32, 8192, 65536) / 1e9, 34.36, 0.005, from)
  local q = { ranks = 8, causal = false }
  local verdict = worlds.laid(t, "rsa", q)
  t.near("values forward by the judge", verdict.traffic.context.forward, 469762048, 0, from)
  t.near("values of both passes by the judge",
    verdict.traffic.context.forward + verdict.traffic.context.backward, 1879048192, 0, from)
  local tensor = worlds.judged(t, q, { tp = 8 }).traffic.tensor
  t.near("as many as tensor parallelism sends, by the judge", tensor.forward + tensor.backward,
    1879048192, 0, from)
  local fused = worlds.laid(t, "ring", q)
  local statistics = 4 * 8192 * 32
  t.near("bytes of the scores by the judge", (verdict.memory[1].activations_bytes
    - fused.memory[1].activations_bytes + statistics) / 1e9, 34.36, 0.005, from)
end

--- Megabytes of activations of one layer by the judge: two layers less one.
local function layer_MB(t, q, stage)
  local bytes = {}
  for layers = 1, 2 do
    q.layers = layers
    local own = {}
    for key, value in pairs(stage) do
      own[key] = value
    end
    bytes[layers] = worlds.judged(t, q, own).memory[1].activations_bytes
  end
  return (bytes[2] - bytes[1]) / 1e6
end

function tests.megatron_sp(t)
  local from = "catalogue: megatron_sp; Korthikanti et al. 2023, tables 2 and 3"
  local rows = {
    { "GPT-3", { s = 2048, b = 1, h = 12288, a = 96 }, "2868.9 578.8 358.6 107.0 50.3", 70.2,
      2.70 },
    { "MT-NLG", { s = 2048, b = 1, h = 20480, a = 128 }, "4110.4 880.8 513.8 178.3 83.9", 65.3,
      1.64 },
  }
  for _, row in ipairs(rows) do
    local name, q, want, saved, more = table.unpack(row)
    local list = {}
    for i, kind in ipairs { "none", "tp", "sp", "selective", "full" } do
      list[i] = ("%.1f"):format(formulas.activation_bytes(kind, q, 8) / 1e6)
    end
    local saved_frac, more_frac = formulas.selective(q)
    t.equal("MB of a layer: " .. name, table.concat(list, " "), want, from)
    t.near("selective saves: " .. name, 100 * saved_frac, saved, 0.05, from)
    t.near("selective computes again: " .. name, 100 * more_frac, more, 0.005, from)
  end
  local gpt3 = { hidden = 12288, heads = 96, sequence = 2048, causal = true, dropout = "on",
    attention = "unfused" }
  local stage = { tp = 8, sequence_parallel = true }
  t.near("MB of a layer of GPT-3 by the judge", layer_MB(t, gpt3, stage), 358.6, 0.05, from)
  stage.recompute = "selective"
  t.near("with the core computed again, by the judge", layer_MB(t, gpt3, stage), 107.0, 0.05, from)
end

function tests.usp(t)
  local from = "catalogue: usp; Fang and Zhao 2024, section 3"
  local want = { [32] = { 469762048, 268435456, 167772160, 117440512 },
    [8] = { 117440512, 92274688, 79691776, 73400320 } }
  for _, kv_heads in ipairs { 32, 8 } do
    for i, u in ipairs { 1, 2, 4, 8 } do
      local name = ("%d x %d ranks, %d heads of keys"):format(u, 8 // u, kv_heads)
      local q = shape(8, kv_heads)
      local heads = formulas.heads(q, u)
      t.near(name .. " [D]", heads + formulas.ring(q, 8 // u), want[kv_heads][i], 1, from)
      t.near(name .. ", by the judge", sent(t, "usp", { ranks = 8, kv_heads = kv_heads,
        want = { ulysses = u } }).forward, want[kv_heads][i], 1, from)
    end
  end
  -- 16384 tokens of a rank: blocks of attention hide a ring between nodes, nothing an all-to-all
  local function placed(order)
    return worlds.laid(t, "usp", { ranks = 16, sequence = 262144, kv_heads = 8,
      want = { ulysses = 8, order = order } }).iteration_s
  end
  t.ok("by the judge: heads inside nodes, ring between them",
    placed "heads_inner" < placed "ring_inner", from)
end

function tests.ulysses(t, system)
  local from = "catalogue: ulysses; Jacobs et al. 2024, section 3.2"
  local here, tensor = formulas.heads_per_link(65536, 4096, 8)
  t.equal("values over a link, and of tensor parallelism", ("%.0f %.0f"):format(here, tensor),
    "134217728 1073741824", from)
  t.near("ratio", tensor / here, 8, 0, from)
  t.near("values sent [D]", formulas.heads(shape(8), 8), 117440512, 0, from)
  local values = sent(t, "ulysses", { ranks = 8 })
  t.equal("values sent, by the judge", ("%.0f %.0f"):format(values.forward, values.backward),
    "117440512 117440512", from)
  -- 16 ranks, 8 heads
  local few = { nodes = 2, heads = 8, hidden = 1024, sequence = 16384, options = { cp = 16 } }
  t.with(worlds.of(few), function(ctx, family)
    local plan, why = family.plan(ctx)
    t.ok("more ranks than heads: refused", plan == nil and why:find("8 attention heads", 1, true),
      from)
  end)
  local verdict = worlds.laid(t, "usp", { ranks = 16, heads = 8, hidden = 1024, sequence = 16384,
    want = { ulysses = 8 } })
  t.equal("more ranks than heads: usp is not", #verdict.violations, 0, from)
  t.equal("the row that is tested", system.id, "ulysses", from)
end

function tests.ring(t)
  local from = "catalogue: ring; Liu et al. 2024, section 3.2 and table 2"
  t.near("tokens that hide a hop: A100, NVLink", formulas.hidden_from(312e12, 300e9), 1040, 0.5,
    from)
  t.near("tokens that hide a hop: A100, InfiniBand", formulas.hidden_from(312e12, 12.5e9), 24960,
    0.5, from)
  t.near("tokens that hide a hop: TPUv4", formulas.hidden_from(275e12, 268e9), 1026, 0.5, from)
  t.with(worlds.of { ranks = 8 }, function()
    local function blocks(layout)
      local work = hv.attention_work { ranks = 4, layout = layout, tokens = 16, tile = 1 }
      local sum, each = 0, {}
      for _, most in ipairs(work.steps) do
        sum = sum + most / 16
      end
      for i, own in ipairs(work.per_rank) do
        each[i] = ("%g"):format(own / 16)
      end
      return sum, table.concat(each, " ")
    end
    local steps, each = blocks "contiguous"
    t.equal("work of four ranks", each, "0.625 1.625 2.625 3.625", from)
    t.near("blocks of the slowest of each step", steps, 3.625, 1e-12, from)
    t.near("blocks of the slowest of each step, zigzag", (blocks "zigzag"), 2.125, 1e-12, from)
    local many, sum = hv.attention_work { ranks = 8, tokens = 8192, tile = 1 }, 0
    for _, most in ipairs(many.steps) do
      sum = sum + most / 1024 ^ 2
    end
    t.near("blocks that 8 ranks wait for", sum, formulas.contiguous_blocks(8), 1e-3, from)
  end)
  local values = sent(t, "ring", { ranks = 8 })
  t.equal("values of n - 1 hops, and back with n of sums, by the judge",
    ("%.0f %.0f"):format(values.forward, values.backward), "469762048 1006632960", from)
  local forward, backward = formulas.ring(shape(8), 8)
  t.equal("the formula", ("%.0f %.0f"):format(forward, backward), "469762048 1006632960", from)
  -- without a mask and with next to no compute, n - 1 hops of 64 MiB at 10 GB/s remain forward
  local q = { ranks = 8, nodes = 8, devices = 1, nic_GBps = 10, TFLOPS = 1e6, causal = false }
  local function pass(ctx)
    return hv.cost.stage { devices = ctx.cluster:address { 1, 2, 3, 4, 5, 6, 7, 8 },
      layers = { 0, 1 }, cp = worlds.layout("ring", q), micro_batch = 1 }.forward_s
  end
  local slow_s = t.with(worlds.of(q), pass)
  q.nic_GBps = 1e6
  local fast_s = t.with(worlds.of(q), pass)
  t.near("seconds of the hops, by the judge", slow_s - fast_s,
    formulas.ring_s(8, 0, 2 * 8192 * 4096 * 2 / 10e9), 5e-3, from)
end

function tests.striped(t)
  local from = "catalogue: striped; Brandon et al. 2023, section 3"
  t.with(worlds.of {}, function()
    local work = hv.attention_work { ranks = 4, layout = "striped", tokens = 16, tile = 1 }
    local steps, each, sum = {}, {}, 0
    for i, most in ipairs(work.steps) do
      steps[i] = ("%g"):format(most / 16)
      sum = sum + most / 16
    end
    for i, own in ipairs(work.per_rank) do
      each[i] = ("%g"):format(own / 16)
    end
    t.equal("slowest of each step", table.concat(steps, " "), "0.625 0.625 0.625 0.625", from)
    t.near("blocks of the slowest of each step", sum, 2.5, 1e-12, from)
    table.sort(each)
    t.equal("work of four ranks", table.concat(each, " "), "1.75 2 2.25 2.5", from)
    local many = hv.attention_work { ranks = 64, layout = "striped", tokens = 64 * 1024, tile = 1 }
    local half = 0
    for _, most in ipairs(many.steps) do
      half = half + most / 1024 ^ 2
    end
    t.near("many tokens: half of the blocks", half / 64, 0.5, 1e-3, from)
  end)
  local function time(id, want, ranks)
    return worlds.laid(t, id, { ranks = ranks or 8, sequence = 16384, want = want }).iteration_s
  end
  local striped, zigzag = time("striped"), time("burst")
  t.ok("by the judge: zigzag below striped at tile 128, both below contiguous",
    zigzag < striped and striped < time("ring"), from)
  local cp = worlds.layout("striped", { ranks = 8, sequence = 16384 })
  cp.tile = 1024
  t.ok("by the judge: larger tiles take longer", striped
    < worlds.judged(t, { sequence = 16384 }, { cp = cp }).iteration_s, from)
  t.near("values as those of a ring, by the judge", sent(t, "striped", { ranks = 8 }).forward,
    469762048, 0, from)
end

function tests.distflash(t)
  local from = "catalogue: distflash; Li et al. 2024, section 3.1"
  t.equal("steps and idle cells of 8 ranks, with and without helpers [D]",
    table.concat({ formulas.helper_steps(8) }, " "), "5 4 8 28", from)
  local forward, backward = formulas.helpers(shape(8), 8)
  t.equal("values in the mean [D]", ("%.0f %.0f"):format(forward, backward),
    "234881024 469762048", from)
  local values = sent(t, "distflash", { ranks = 8 })
  t.equal("values in the mean, by the judge",
    ("%.0f %.0f"):format(values.forward, values.backward), "234881024 469762048", from)
  t.ok("the busiest rank sends more", values.most_forward > values.forward, from)
  local function time(id)
    return worlds.laid(t, id, { ranks = 8, sequence = 16384 }).iteration_s
  end
  t.ok("by the judge: below a contiguous ring", time("distflash") < time("ring"), from)
  -- what is computed again: with the core's output kept, its exchange is not repeated
  local kept = worlds.judged(t, {}, { cp = worlds.layout("distflash", { ranks = 8 }),
    recompute = "qkv+out+up+act+down+norm" }).traffic.context
  local full = worlds.judged(t, {}, { cp = worlds.layout("distflash", { ranks = 8 }),
    recompute = "full" }).traffic.context
  t.near("checkpoints behind attention repeat no exchange", kept.backward, 469762048, 0, from)
  t.near("others repeat it", full.backward, 469762048 + 234881024, 0, from)
end

function tests.burst(t)
  local from = "catalogue: burst; Sun et al. 2024, section 3, and its code"
  local q = shape(8)
  local _, kv = formulas.hop(q)
  local _, queries = formulas.hop(q, "q_do")
  t.equal("values of a backward hop, and of a ring's [D]", ("%.0f %.0f"):format(queries, kv),
    "101187584 134217728", from)
  t.near("ratio [D]", queries / kv, 0.754, 0.0005, from)
  t.near("GB of a backward pass [D]", formulas.ring_backward_bytes(q, 8, "q_do") / 1e9, 1.424,
    0.0005, from)
  t.near("GB of a ring's backward pass [D]", formulas.ring_backward_bytes(q, 8) / 1e9, 3.087,
    0.0005, from)
  t.near("values of a backward hop, by the judge", sent(t, "burst", { ranks = 8 }).hop_backward,
    101187584, 0, from)
  t.near("values of a ring's, by the judge", sent(t, "ring", { ranks = 8 }).hop_backward, 134217728,
    0, from)
  -- on slow links, both zigzag: queries go around faster than keys and sums of their gradients,
  -- unless there are few heads of keys
  local function time(kv_heads, backward)
    local cp = worlds.layout("burst", { ranks = 8 })
    cp.backward = backward
    return worlds.judged(t, { nodes = 8, devices = 1, nic_GBps = 5, kv_heads = kv_heads,
      sequence = 16384 }, { cp = cp }).iteration_s
  end
  t.ok("by the judge: below a ring, as many heads of keys", time(32, "q_do") < time(32, "kv"), from)
  t.ok("by the judge: not below a ring, g/a = 1/8", time(4, "q_do") >= time(4, "kv"), from)
  -- two nodes: windows of a node's ranks hide what goes between nodes
  local function windows(inner)
    return worlds.laid(t, "burst", { ranks = 16, nic_GBps = 50, intra_GBps = 400,
      want = { inner = inner } }).iteration_s
  end
  t.ok("by the judge: an inner ring per node", windows(8) < windows(nil), from)
end

function tests.loongtrain(t)
  local from = "catalogue: loongtrain; Gu et al. 2024, section 4"
  local hop = 64 * 2 ^ 20
  local near_s, far_s = hop / 200e9, hop / 25e9
  t.near("ms of a single ring [D]", 1e3 * formulas.ring_s(8, 1e-3, far_s), 19.79, 0.005, from)
  t.near("ms of a double ring [D]", 1e3 * formulas.ring_s(8, 1e-3, near_s, 4, far_s), 8, 1e-9, from)
  -- the same by the judge: 4096 tokens per rank, blocks of 1 ms without a mask (4 s² h FLOP), two
  -- nodes of four with a NIC of 25 GB/s each; a step merges outputs for 3 % of its block
  local step = 1.03e-3
  local q = { nodes = 2, devices = 4, nic_GBps = 100, nics = 4, intra_GBps = 200, causal = false,
    sequence = 32768, TFLOPS = 4 * 4096 ^ 3 / 1e-3 / 1e12 }
  t.with(worlds.of(q), function()
    local hops = {}
    for i, far in ipairs { 2, 5 } do
      hops[i] = ("%.3f"):format(1e3 * hv.cost.collective { op = "p2p", devices = { 1, far },
        bytes = hop }.time_s)
    end
    t.equal("ms of a hop in a node, and between nodes [D]", table.concat(hops, " "), "0.336 2.684",
      from)
  end)
  local forward = {}
  for _, w in ipairs { 1, 4 } do
    forward[w] = t.with(worlds.of(q), function(ctx)
      local cp = worlds.layout("loongtrain", { ranks = 8, causal = false },
        { ulysses = 1, inner = w > 1 and w or nil })
      cp.inner = w
      return hv.cost.stage { devices = ctx.cluster:address { 1, 2, 3, 4, 5, 6, 7, 8 },
        layers = { 0, 1 }, cp = cp, micro_batch = 1 }.forward_s
    end)
  end
  local single_s = 7 * far_s + step -- the last block waits for seven hops
  local double_s = 1e-3 + 7 * step -- four rings between nodes, each behind a window of four steps
  t.near("ms that the double ring saves, by the judge", 1e3 * (forward[1] - forward[4]),
    1e3 * (single_s - double_s), 1e-3, from)
  local values = sent(t, "loongtrain", { ranks = 16, want = { ulysses = 1, inner = 8 } })
  t.near("nested rings have the hops of one, by the judge", values.forward, 503316480, 0, from)
  -- copies of keys: 8 heads parts of 4 heads of keys send two copies
  t.near("copies of keys, by the judge", sent(t, "loongtrain", { ranks = 8, kv_heads = 4,
    want = { ulysses = 8 } }).forward, formulas.heads(shape(8, 4), 8), 1, from)
end

--- The least number of switches over all ways to cut blocks, in a circle.
local function fewest_switches(case)
  local n, d = #case.blocks, #case.dims
  local best = math.huge
  for code = 0, d ^ n - 1 do
    local cuts, rest, fits = {}, code, true
    for b = 1, n do
      cuts[b] = case.dims[rest % d + 1]
      rest = rest // d
      fits = fits and cuts[b].name ~= case.blocks[b] and cuts[b].size % case.ranks == 0
    end
    local switches = 0
    for b = 1, n do
      switches = switches + (cuts[b].name ~= cuts[b > 1 and b - 1 or n].name and 1 or 0)
    end
    best = fits and math.min(best, switches) or best
  end
  return best
end

--- Random small models against every way to cut them.
local function against_all_cuts(t, from)
  local equal, cases = 0, 240
  for _ = 1, cases do
    local case = { blocks = {}, dims = {}, ranks = hv.random(2) * 2 }
    for d = 1, 1 + hv.random(2) do
      case.dims[d] = { name = ("xyz"):sub(d, d), size = 4 * hv.random(3) - 2 * (hv.random(4) // 4) }
    end
    for b = 1, hv.random(6) do
      case.blocks[b] = case.dims[hv.random(#case.dims)].name
    end
    local found = dimensions.shortest(case.blocks, case.dims, case.ranks, 1)
    local best = fewest_switches(case)
    if found and found.switches == best or not found and best == math.huge then
      equal = equal + 1
    end
  end
  t.equal("cuts of random blocks, against all", equal, cases, from)
end

function tests.dsp(t)
  local from = "catalogue: dsp; Zhao et al. 2025, section 3 and table 1"
  local M, n = 268435456, 8
  local q = { tokens = M / 4096 / n, width = 4096, keys = 4096, heads = 32 }
  local dims = { { name = "S", size = 1024 }, { name = "T", size = 16 } }
  local switches = dimensions.shortest({ "S", "T" }, dims, n, 1).switches
  local pair = switches * formulas.switch(M / n, n)
  t.equal("values of a pair of blocks, and of all-to-alls of heads", ("%.0f %.0f"):format(
    pair * n / (n - 1), 2 * formulas.heads(q, n) * n / (n - 1)), "67108864 268435456", from)
  local path = dimensions.shortest({ "S", "T", "S", "T" }, dims, n, 1)
  t.equal("switches between four blocks, then with both ends", path.inside .. " " .. path.switches,
    "3 4", from)
  t.equal("cut of each block", table.concat(path.names, " "), "T S T S", from)
  t.equal("equal neighbours share a cut", dimensions.shortest({ "S", "S", "T", "T" }, dims, n,
    1).switches, 2, from)
  local video = { causal = false, layers = 2, batch = 4, sequence = 16384,
    tokens = { time = 16, space = 1024 }, attends = { "space", "time" } }
  local here = worlds.judged(t, video, { cp = { scheme = "dsp", degree = 8,
    dims = { "time", "space" } } })
  local heads = worlds.judged(t, video, { cp = { scheme = "ulysses", degree = 8 } })
  t.near("values of a pair of blocks, by the judge", here.traffic.context.forward,
    67108864 * 7 / 8, 1, from)
  t.near("less than all-to-alls of heads, by the judge",
    1 - here.traffic.context.forward / heads.traffic.context.forward, 0.75, 1e-9, from)
  t.ok("by the judge: below all-to-alls of heads", here.iteration_s < heads.iteration_s, from)
  against_all_cuts(t, from)
  video.layers, video.attends, video.options = 4, { "space", "time" }, { cp = 8, pp = 1, tp = 1 }
  t.with(worlds.of(video), function(ctx, family)
    local plan = family.plan(ctx)
    local cp = plan.replicas[1].stages[1].cp
    t.equal("dimensions in the row's plan", table.concat(cp.dims, " "), "time space time space",
      from)
    t.near("its values by the judge", hv.plan.new(plan):eval().traffic.context.forward,
      4 * formulas.switch(M / n, n), 1, from)
  end)
  t.with(worlds.of { options = { cp = 8 } }, function(ctx, family)
    local plan, why = family.plan(ctx)
    t.ok("one dimension of tokens: no gain", plan == nil and why:find("no gain here", 1, true),
      from)
  end)
end

function tests.wallfacer(t)
  local from = "catalogue: wallfacer; derived from Liu et al. 2024"
  local rows = {
    [16] = { { 1, 503316480 }, { 2, 268435456 }, { 4, 201326592 } },
    [64] = { { 1, 528482304 }, { 2, 268435456 }, { 4, 150994944 }, { 8, 117440512 } },
  }
  for _, n in ipairs { 16, 64 } do
    for _, row in ipairs(rows[n]) do
      local c, want = table.unpack(row)
      local name = ("%d ranks in teams of %d"):format(n, c)
      t.near(name .. " [D]", (formulas.teams(shape(n), n, c)), want, 1, from)
      t.near(name .. ", by the judge", sent(t, "wallfacer", { ranks = n,
        want = { inner = c > 1 and c or nil } }).forward, want, 1, from)
    end
  end
  -- teams hold the tokens of all their ranks: 3 (c - 1) tensors in 16 bits and larger buffers
  local function buffers(c)
    return worlds.laid(t, "wallfacer", { ranks = 16, want = { inner = c } }).memory[1].peak_bytes
  end
  t.ok("by the judge: teams need memory", buffers(4) > buffers(nil), from)
  local whole = worlds.laid(t, "wallfacer", { ranks = 16, nic_GBps = 25, sequence = 4096,
    want = { inner = 4, order = "heads_inner" } })
  t.equal("a team of the root of the ranks: no ring", #whole.violations, 0, from)
end

--- What the row says of short sequences, and that it says nothing of long ones where it gains.
local function gains(t, id)
  local from = "by hand: two exchanges a layer against none"
  local short = { heads = 8, hidden = 1024, sequence = 2048, layers = 2, batch = 16 }
  t.with(worlds.of(short), function(ctx, family)
    local plan = family.plan(ctx)
    local claim = family.claim(plan, ctx)
    local here_s = hv.plan.new(plan):eval().iteration_s
    local text = claim.warnings and claim.warnings[1] or "no warning"
    t.ok("short sequences: no gain here, with the figures", text:find("no gain here", 1, true)
      and text:find(("%.4g s with whole"):format(claim.terms.without_s), 1, true)
      and here_s > claim.terms.without_s, from)
  end)
  if id ~= "rsa" then
    local long = { sequence = 131072, layers = 2, batch = 1, options = { pp = 1 },
      causal = id ~= "ring" } -- whose contiguous parts wait for the last rank of a causal mask
    t.with(worlds.of(long), function(ctx, family)
      local plan = family.plan(ctx)
      local claim = family.claim(plan, ctx)
      t.ok("long sequences: a gain, and no warning", claim.warnings == nil
        and (not claim.terms.without_s
        or hv.plan.new(plan):eval().iteration_s < claim.terms.without_s), from)
    end)
  end
end

--- The least time over all layouts and shardings of the plan that a row made.
local function least_s(id, made, q)
  local best_s, stage = math.huge, made.replicas[1].stages[1]
  for _, cp in ipairs(schemes[id].candidates { ranks = q.devices, heads = 32, causal = true,
    sequence = q.sequence, options = {} }) do
    for _, zero in ipairs(schemes.shardings(id, stage.dp * q.devices)) do
      stage.cp, stage.zero = cp, zero
      best_s = math.min(best_s, hv.plan.new(made):eval().iteration_s)
    end
  end
  return best_s
end

--- The system in somebody else's plan: eight data-parallel ranks of a sequence each.
local function composes(t)
  local from = "by hand"
  local q = { heads = 8, hidden = 1024, sequence = 8192, layers = 2, batch = 16 }
  t.with(worlds.of(q), function(ctx, family)
    local before = plain.plan(ctx)
    local plan = family.apply(before, ctx)
    every_row.sets(t, ctx.system, plan)
    local stage = plan.replicas[1].stages[1]
    t.equal("applied: ranks of all sequences", stage.dp * stage.cp.degree, 8, from)
    t.equal("applied: sequences of an iteration", plan.micro_batch * plan.replicas[1].micro_batches,
      16, from)
    t.equal("applied: broken rules", #hv.plan.new(plan):eval().violations, 0, from)
    local again, why = family.apply(plan, ctx)
    t.ok("applied twice: a clash", again == nil and why:find("both decide", 1, true), from)
  end)
end

--- What the row finds in small random worlds, against all layouts and shardings.
local function against_all_layouts(t, id)
  local mean, worst, cases = 0, 0, 40
  for _ = 1, cases do
    local q = { nodes = 2, devices = 4 * hv.random(2), batch = 2, layers = 2,
      nic_GBps = 5 * 2 ^ hv.random(5), intra_GBps = 50 * 2 ^ hv.random(3),
      kv_heads = 2 ^ (1 + hv.random(4)), sequence = 4096 * 2 ^ hv.random(4) }
    q.options = { tp = 1, pp = 1, micro_batch = 1, recompute = "none", cp = q.devices }
    t.with(worlds.of(q), function(ctx, family)
      local made = family.plan(ctx)
      local got_s = hv.plan.new(made):eval().iteration_s
      local gap = got_s / least_s(id, made, q) - 1
      mean, worst = mean + gap / cases, math.max(worst, math.abs(gap))
    end)
  end
  t.near(("layouts against all of %d worlds: mean gap %.4f %%, worst"):format(cases, 100 * mean),
    worst, 0, 1e-9, "every layout simulated")
end

local searched = { usp = true, burst = true, loongtrain = true, wallfacer = true }

--- The row's own search on eight devices; that of dsp on a video, whose tokens have two dimensions.
local function searches(t, id)
  every_row.search(t, worlds.of(id == "dsp" and { causal = false, layers = 4, batch = 4,
    sequence = 16384, tokens = { time = 16, space = 1024 },
    attends = { "space", "time" } } or { heads = 8, hidden = 1024, sequence = 8192, layers = 2,
    batch = 16 }))
end

return function(t, system)
  tests[system.id](t, system)
  searches(t, system.id)
  if system.id ~= "dsp" and system.id ~= "megatron_sp" then
    gains(t, system.id)
    composes(t)
  end
  if searched[system.id] then
    against_all_layouts(t, system.id)
  end
end
