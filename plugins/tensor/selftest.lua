-- Self-tests of tensor parallelism: volumes of the catalogue by their formulas, and by the judge on
-- one layer. Names are those of `verified` in plugin.lua; [D] marks what is derived.
local axes = require "axes"
local formulas = require "formulas"
local paper = require "paper"
local plain = require "testing.plain"
local rows = require "testing.rows"

--- The traffic of a plan of one layer: { nodes of eight, tp, hidden, heads, micro_batch, sequence,
-- recompute }, elements per rank.
local function traffic_of(t, q)
  local inputs = {
    cluster = plain.cluster { nodes = q.nodes, devices = 8 },
    model = { format = "hetviz.model/1", name = "m", kind = "transformer", layers = 1,
      hidden = q.hidden, heads = q.heads, ffn = 4 * q.hidden, vocab = 64,
      max_sequence = q.sequence },
    job = { format = "hetviz.job/1", global_batch = q.micro_batch, sequence = q.sequence,
      precision = "bf16", optimizer = "adamw" },
  }
  return t.with(inputs, function(ctx)
    local plan = plain.plan(ctx, { tp = q.tp, dp = 1, recompute = q.recompute })
    plan.micro_batch = q.micro_batch
    plan.replicas[1].micro_batches = 1
    local verdict = assert(hv.plan.new(plan):eval())
    return verdict.traffic.tensor
  end)
end

local FOUR_ON_16 = { b = 4, s = 512, h = 1024 }
local EIGHT_ON_64 = { b = 8, s = 512, h = 4096 }

local function tp1d(t)
  local from = "catalogue: tp1d; Shoeybi et al. 2019, section 3"
  local gpt3 = { b = 1, s = 2048, h = 12288 }
  t.near("bytes of a layer of GPT-3 [D]", 2 * 2 * formulas.lines(gpt3, 8), 352321536, 0, from)
  t.near("bytes of one sum [D]", 2 * formulas.lines(gpt3, 8) / 2, 88080384, 0, from)
  t.near("activations of a layer on 8 ranks [D]", formulas.saved_bytes(gpt3, 96, 8) / 1e6, 578.8,
    0.05, from)
  t.near("activations of a layer on 1 rank [D]", formulas.saved_bytes(gpt3, 96, 1) / 1e6, 2868.9,
    0.05, from)
  local sent = traffic_of(t, { nodes = 1, tp = 8, hidden = 12288, heads = 96, micro_batch = 1,
    sequence = 2048 })
  t.near("values of a layer by the judge", 2 * (sent.forward + sent.backward), 352321536, 1, from)
end

local function tp2d(t)
  local from = "catalogue: tp2d; Xu et al. 2021, table 1"
  local forward, backward = formulas.grid(FOUR_ON_16, 16)
  t.near("16 ranks: a line, forward", formulas.lines(FOUR_ON_16, 16), 7864320, 0, from)
  t.near("16 ranks: trees, forward", forward, 13631488, 1e-6, from)
  t.near("16 ranks: trees, backward with recomputation", backward, 40894464, 1e-6, from)
  local trees, _, received = formulas.grid(EIGHT_ON_64, 64)
  t.near("64 ranks: trees, forward", trees, 119537664, 1e-6, from)
  t.near("64 ranks: received, forward [D]", received, 34865152, 1e-6, from)
  t.near("64 ranks: a line, forward", formulas.lines(EIGHT_ON_64, 64), 66060288, 0, from)
  local q = { nodes = 2, hidden = 1024, heads = 16, micro_batch = 4, sequence = 512,
    tp = { scheme = "2d", degree = 16 }, recompute = "full" }
  local grid = traffic_of(t, q)
  t.near("16 ranks: trees by the judge", grid.tree_forward, 13631488, 1, from)
  t.near("16 ranks: trees of the backward pass by the judge", grid.tree_backward, 40894464, 1, from)
  q.tp = 16
  t.ok("a grid of 16 sends more than a line", grid.tree_forward > traffic_of(t, q).forward, from)
end

local function tp25d(t)
  local from = "catalogue: tp25d; Wang et al. 2021, section 3"
  t.equal("transfers of 64 processors: Cannon, 2.5d, here",
    ("%.0f %.0f %.0f"):format(formulas.transfers(64)), "1008 120 32", from)
  local cannon, flat, deep = formulas.transfers(64)
  t.near("31.5 times fewer", cannon / deep, 31.5, 1e-9, from)
  t.near("3.75 times fewer", flat / deep, 3.75, 1e-9, from)
  local forward, between = formulas.grids(EIGHT_ON_64, 4, 4)
  t.near("4 grids of 4 x 4, forward [D]", forward, 43253760, 1e-6, from)
  t.near("sums between 4 grids [D]", between, 18874368, 1e-6, from)
  t.equal("weights of a rank, and in a line [D]",
    ("%.0f %.0f"):format(formulas.weights_held(EIGHT_ON_64, 4),
      formulas.weights_held(EIGHT_ON_64, 8)), "12582912 3145728", from)
  local sent = traffic_of(t, { nodes = 8, hidden = 4096, heads = 64, micro_batch = 16,
    sequence = 256, tp = { scheme = "2.5d", degree = 64, depth = 4 } })
  t.near("4 grids of 4 x 4 by the judge", sent.forward, 43253760, 1, from)
end

local function tp3d(t)
  local from = "catalogue: tp3d; Bian et al. 2021, section 3"
  local forward, again = formulas.cube(EIGHT_ON_64, 4)
  t.near("a cube of 64, forward [D]", forward, 22020096, 1e-6, from)
  t.near("weights of a rank [D]", formulas.weights_held(EIGHT_ON_64, 4, true), 3145728, 1e-6, from)
  local q = { nodes = 8, hidden = 4096, heads = 64, micro_batch = 16, sequence = 256,
    tp = { scheme = "3d", degree = 64 } }
  local sent = traffic_of(t, q)
  t.near("a cube of 64 by the judge", sent.forward, 22020096, 1, from)
  q.tp.regather = true
  t.near("gathering again by the judge", traffic_of(t, q).backward, 22020096 + again, 1, from)
end

--- Axes on devices: every order is a permutation, and the first is the plan's own.
local function places(t)
  local ids = {}
  for i = 1, 24 do
    ids[i] = i
  end
  local sizes = { 6, 2, 2 }
  local own = axes.orders("2d")[1]
  t.equal("the first order leaves the ranks where they are",
    table.concat(axes.place(own, sizes, ids), " "), table.concat(ids, " "), "by hand")
  for _, order in ipairs(axes.orders("2d")) do
    local seen, n = {}, 0
    for _, id in ipairs(axes.place(order, sizes, ids)) do
      n = n + (seen[id] and 0 or 1)
      seen[id] = true
    end
    t.equal("order " .. order .. " uses every device once", n, 24, "by hand")
  end
  -- ranks (d, r, c) with c slowest and d fastest: rank 1 = (0, 0, 1) is 12 devices on
  t.equal("columns slowest", axes.place("321", sizes, ids)[2], 13, "by hand")
end

local tests = { tp1d = tp1d, tp25d = tp25d, tp3d = tp3d }

function tests.tp2d(t)
  tp2d(t)
  places(t)
end

--- Inputs of two layers on so many devices of one node.
local function small(devices, layers)
  return {
    cluster = plain.cluster { nodes = 1, devices = devices, intra_GBps = 100 },
    model = { format = "hetviz.model/1", name = "m", kind = "transformer", layers = layers or 2,
      hidden = 1024, heads = 16, ffn = 4096, vocab = 1000, max_sequence = 512 },
    job = { format = "hetviz.job/1", global_batch = 16, sequence = 512, precision = "bf16",
      optimizer = "adamw" },
  }
end

local LAYOUT = { tp1d = { 4 }, tp2d = { 4, "2d" }, tp25d = { 8, "2.5d", 2 }, tp3d = { 8, "3d" } }

--- The layout of the system in somebody else's plan; without one where its ranks have none.
local function composes(t, system)
  local devices = LAYOUT[system.id][1]
  t.with(small(devices), function(ctx, family)
    local before = plain.plan(ctx, { tp = devices, dp = 1 })
    before.micro_batch, before.replicas[1].micro_batches = 16, 1
    local made = assert(family.apply(before, ctx))
    rows.sets(t, system, made)
    t.equal("applied: broken rules", #assert(hv.plan.new(made):eval()).violations, 0, "by hand")
    before.replicas[1].stages[1].tp, before.replicas[1].stages[1].dp = 1, devices
    local none, why = family.apply(before, ctx)
    t.ok("applied without tensor-parallel ranks: refused",
      none == nil and why:find("no tensor-parallel ranks", 1, true), "by hand")
  end)
end

--- The volumes of the claim are those of the publication.
local function claims(t, system)
  local from = "the formulas that the tests above check, times bytes"
  local devices, scheme, depth = table.unpack(LAYOUT[system.id])
  t.with(small(devices), function(ctx)
    local tp = { scheme = scheme or "1d", degree = devices, depth = depth }
    local plan = plain.plan(ctx, { tp = tp, dp = 1, recompute = "full" })
    plan.micro_batch, plan.replicas[1].micro_batches = 16, 1
    local x = { b = 16, s = 512, h = 1024 }
    local terms = paper.claim(plan, ctx).terms
    local trees, again = formulas.grid(x, devices)
    local grids, between = formulas.grids(x, 2, 2)
    local expected = { tp1d = 2 * formulas.lines(x, devices), tp2d = trees + again,
      tp25d = 3 * grids, tp3d = 2 * formulas.cube(x, 2) }
    t.near("bytes of the claim", terms.sent_bytes, 2 * 2 * expected[system.id], 1, from)
    t.near("sums between grids in the claim", terms.between_depths_s,
      system.id == "tp25d" and 2 * between * ctx.job.grad_bytes / 100e9 or 0, 1e-12, from)
  end)
end

return function(t, system)
  tests[system.id](t)
  claims(t, system)
  composes(t, system)
  rows.search(t, small(LAYOUT[system.id][1]))
end
