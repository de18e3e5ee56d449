-- Fire-Flyer (An et al., SC'24, arXiv 2408.14158): data parallelism on PCIe nodes without NVLink.
-- HFReduce: every GPU copies its gradients to host memory, the CPU adds the node's copies, one copy
-- per node goes through a double binary tree over RDMA, and comes back to the GPUs; in chunks, so
-- the slowest of these steps sets the pace, not their sum. HaiScale: tensor parallelism at most
-- across an NVLink bridge of two, and pipelines laid through the nodes in turns, so that the ranks
-- of a node, which share its NIC, are at different stages.
local candidates = require "candidates"
local claims = require "claims"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local search = require "search"

--- Seconds of HFReduce of `bytes` per GPU over n nodes with q { gpus, d2h, h2d, memory, nic
-- (rates), passes = times that host memory sees a GPU's byte, root = shared root port rate, sharing
-- = GPUs on it, zone = rate between zones (one edge of either tree crosses it, with half of the
-- bytes up and half down), pairs, chunk_s }.
local function hfreduce_s(q, bytes, n)
  local host = q.pairs and bytes / 2 or bytes -- pairs add up over their bridge before they copy
  local steps = {
    to_host_s = host / q.d2h, from_host_s = host / q.h2d,
    memory_s = q.passes * q.gpus * host / q.memory,
    nic_s = n > 1 and 2 * bytes / q.nic or 0, root_s = q.root and q.sharing * host / q.root or 0,
    zone_s = q.zone and bytes / q.zone or 0,
  }
  local longest = 0
  for _, s in pairs(steps) do
    longest = math.max(longest, s)
  end
  local hops = n > 1 and 2 * math.ceil(math.log(n, 2) - 1e-9) or 0
  return longest + hops * q.chunk_s, steps, hops
end

--- Ring all-reduce over the same wires: every GPU's 2 (N - 1) / N through its root port and the
-- node's NIC.
local function ring_s(q, bytes, n)
  local share = 2 * (n * q.gpus - 1) / (n * q.gpus) * bytes
  return math.max(share / q.d2h, n > 1 and share / q.nic or 0, q.root and q.sharing * share / q.root
      or 0)
end

--- Rates of the nodes of a plan, from the options and the links.
local function rates(ctx, ids)
  local o, heads, count, size, nic = ctx.options, {}, {}, 0, math.huge
  local of, zone, between = {}, {}, nil
  for _, d in ipairs(ctx.cluster:devices()) do
    of[d.id], zone[d.id] = d.node, d.zone or ""
  end
  for _, id in ipairs(ids) do
    local node = of[id]
    if not count[node] then
      heads[#heads + 1], count[node] = id, 0
    end
    count[node] = count[node] + 1
    size = math.max(size, count[node])
  end
  for i = 2, #heads do
    local rate = links.bandwidth(ctx, heads[i - 1], heads[i])
    if zone[heads[i - 1]] == zone[heads[i]] then
      nic = math.min(nic, rate)
    end
    if zone[heads[i - 1]] ~= zone[heads[i]] then
      between = math.min(between or rate, rate)
    end
  end
  local own = o.root_GBps > 0 and o.root_GBps * 1e9 or nil
  return { gpus = size, d2h = o.d2h_GBps * 1e9, h2d = o.d2h_GBps * 1e9, memory = o.host_GBps * 1e9,
    nic = nic,
    zone = between, root = own, sharing = o.root_shared, passes = 3, pairs = o.pairs,
    chunk_s = 1e-5 }, #heads
end

--- A kind's devices in turns: slot by slot, each slot starting one node later.
local function in_turns(t, tp)
  local by_node, order, out = {}, {}, {}
  for _, d in ipairs(t.devices) do
    if not by_node[d.node] then
      by_node[d.node], order[#order + 1] = {}, d.node
    end
    table.insert(by_node[d.node], d)
  end
  for slot = 0, #by_node[order[1]] // tp - 1 do
    for k = 0, #order - 1 do
      local node = by_node[order[(k + slot) % #order + 1]]
      table.move(node, slot * tp + 1, (slot + 1) * tp, #out + 1, out)
    end
  end
  return #out == #t.devices and out or t.devices
end

--- The plan of another strategy with HFReduce.
local function apply(made)
  made = prices.table_of(made)
  made.sync = made.sync or {}
  made.sync.kind, made.sync.algorithm = "allreduce", "hfreduce"
  return made
end

--- The best plan with states sharded so far.
local function plan_with(ctx, zero)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local types, list, layers = inventory.types(devices), {}, ctx.model:layers()
  local outputs = hv.cost.layers { kinds = { types[1].kind }, micro_batch = 1 }:sizes "output"
  for v in search.product { { 1, 2 }, numbers.powers(64), numbers.powers(8) } do
    local tp, depth, micro_batch, tps, turned = v[1], v[2], v[3], {}, {}
    local fits = depth <= #layers and grids.tp_fits(layers, tp)
    for i, t in ipairs(types) do
      tps[i], fits = tp, fits and t.size % tp == 0
      turned[i] = { kind = t.kind, devices = fits and in_turns(t, tp) or {} }
    end
    local rows, total = fits and pipeline.inside(turned, tps, depth),
      ctx.job.global_batch // micro_batch
    if rows and #rows > 0 and ctx.job.global_batch % micro_batch == 0 and total >= #rows then
      for _, row in ipairs(rows) do
        for _, stage in ipairs(row) do
          stage.zero, stage.holders = zero, #rows
        end
      end
      local c = { list = pipeline.joined(rows), pipelines = #rows, micro_batch = micro_batch,
        entering = micro_batch,
        total = total, outputs = outputs, ways = 2 }
      pipeline.set(c.list, micro_batch, "none")
      c.bound = pipeline.bound(ctx, c.list, total)
      list[#list + 1] = c
    end
  end
  local fitting = pipeline.within_bound(list, ctx.options.tries,
    function(c) return pipeline.evaluate(ctx, c) end)
  if #fitting == 0 then
    return nil, reasons.too_small(ctx, devices, "no pipeline with tensor degree 1 or 2", "kind")
  end
  for _, c in ipairs(fitting) do
    local build = c.build
    function c.build()
      return apply(build())
    end
  end
  return candidates.best(fitting, ctx.options.tries)
end

local function plan(ctx)
  local made, why = plan_with(ctx, ctx.options.zero)
  if not made and ctx.options.zero == 0 then
    made = plan_with(ctx, 1)
  end
  return made, not made and why or nil
end

--- Eq-P and what of HFReduce the last backward pass does not hide (it takes no compute of the
-- GPUs); beside it the ring over the same wires.
local function claim(made, ctx)
  made = prices.table_of(made)
  local parts, longest, worst, shown, ring, kinds = claims.parts(ctx, made), 0, 0, 0, 0,
    prices.kinds(ctx)
  local beside = not made.sync or made.sync.overlap ~= false
  for r, replica in ipairs(made.replicas) do
    longest = math.max(longest, claims.seconds(parts[r]))
    for s, stage in ipairs(replica.stages) do
      local ids = ctx.cluster:ids(stage.devices)
      local own, part = prices.shard(ctx, stage, kinds[ids[1]])
      local bytes = part * prices.gradient_bytes(ctx, own, stage.layers[1] + 1, stage.layers[2])
      local q, n = rates(ctx, ids)
      local reduce_s = (hfreduce_s(q, bytes, n))
      worst, ring = math.max(worst, reduce_s), math.max(ring, ring_s(q, bytes, n))
      shown = math.max(shown, reduce_s - (beside and prices.stage(ctx, made, r, s).backward_s or 0))
    end
  end
  return { iteration_s = longest + shown,
    terms = { pipeline_s = longest, hfreduce_s = worst, shown_s = shown, ring_s = ring },
    formula = "Eq-P + what shows of HFReduce, max of its pipelined steps (Fire-Flyer, section IV; rates are options)" }
end

local function selftest(t)
  local src = "catalogue: fireflyer"
  local q = { gpus = 8, d2h = 20e9, h2d = 20e9, memory = 320e9, nic = 25e9, passes = 3,
    chunk_s = 0 }
  local s, steps, hops = hfreduce_s(q, 1e9, 16)
  t.near("1 GB on 16 nodes, s", s, 0.080, 1e-12, src)
  t.near("to the host", steps.to_host_s, 0.05, 1e-12, src)
  t.near("from the host", steps.from_host_s, 0.05, 1e-12, src)
  t.near("host memory, 24 passes", steps.memory_s, 0.075, 1e-12, src)
  t.near("NIC, both directions of the tree", steps.nic_s, 0.08, 1e-12, src)
  t.near("double tree over 16 nodes: hops", hops, 8, 0, src)
  t.near("ceiling by host memory, GB/s", q.memory / (q.passes * q.gpus) / 1e9, 13.3, 0.05, src)
  q.root, q.sharing = 16e9, 2
  s = hfreduce_s(q, 1e9, 16)
  t.near("two GPUs on a root port of 16 GB/s: 8 GB/s", 1 / s, 8, 1e-12, src .. ", by hand")
  t.near("their ring over it", ring_s(q, 1e9, 16), 2 * 2 * 127 / 128 / 16, 1e-12, "by hand")
  q.root, q.zone = nil, 10e9
  t.near("10 GB/s between zones", hfreduce_s(q, 1e9, 16), 0.1, 1e-12,
    "half of the bytes of either tree each way")
  q.zone, q.pairs = nil, true
  s, steps = hfreduce_s(q, 1e9, 16)
  t.near("NVLink pairs: memory", steps.memory_s, 0.0375, 1e-12, src)
  t.near("the NIC is still the slowest", s, 0.08, 1e-12, src)
  q.chunk_s = 1e-3
  t.near("chunks of 1 ms add 8 hops", hfreduce_s(q, 1e9, 16), 0.088, 1e-12, src .. ", by hand")
  local devices = {}
  for i = 1, 8 do
    devices[i] = { id = i, node = (i + 3) // 4 }
  end
  local text = {}
  for i, d in ipairs(in_turns({ devices = devices }, 2)) do
    text[i] = d.id
  end
  t.equal("pairs of two nodes in turns", table.concat(text, " "), "1 2 5 6 7 8 3 4", "by hand")
end

return {
  api = 1, id = "fireflyer", title = "Fire-Flyer", kind = "hetero",
  system = "Fire-Flyer AI-HPC: A Cost-Effective Software-Hardware Co-Design for Deep Learning, SC 2024",
  reference = "arXiv:2408.14158",
  summary = "Gradients added in host memory, one copy per node through a tree; pipelines in turns over nodes.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "d2h_GBps", type = "number", default = 20, min = 0.1, max = 1000,
      help = "copy to or from the host, per GPU" },
    { key = "host_GBps", type = "number", default = 320, min = 1, max = 10000,
      help = "host memory of a node" },
    { key = "root_GBps", type = "number", default = 0, min = 0, max = 1000,
      help = "root port that GPUs share on their way to the host, as two of a Fire-Flyer node do; 0: none" },
    { key = "root_shared", type = "integer", default = 2, min = 1, max = 16,
      help = "GPUs that share such a port" },
    { key = "pairs", type = "boolean", default = false,
      help = "NVLink bridges between pairs add up before they copy" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "optimizer states sharded over replicas: 1 (also where nothing fits with 0); gradients: 2; weights: 3" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "how many plans that fit are simulated, best formula first" },
  },
  plan = plan,
  apply = apply,
  claim = claim,
  selftest = selftest,
}
