-- MPress (Zhou et al., HPCA 2023): more memory for pipelines inside a server. Stages under 1F1B
-- are cut by time alone; what then exceeds a device is copied to peers with room to spare, to the
-- host, or computed again, layer by layer, whatever the pipeline's timeline hides best. The paper
-- profiles and refines step by step; here an integer program places all tensors at once. Its device
-- map is tried in two orders: stages in sequence, and early stages beside late ones.
local candidates = require "candidates"
local inventory = require "inventory"
local links = require "links"
local numbers = require "numbers"
local placing = require "placing"
local prices = require "prices"
local reasons = require "reasons"
local timeline = require "timeline"

--- Figures of the layers of stage s: passes, memory, and rows of equal tensors {first, last layer}.
local function stage_of(ctx, c, s, range)
  local keep = { micro_batch = c.micro_batch, recompute = "none" }
  local again = { micro_batch = c.micro_batch, recompute = "full" }
  local kept, full = prices.chain(ctx, c.kind, keep), prices.chain(ctx, c.kind, again)
  local pass = hv.cost.stage { devices = ctx.cluster:address { c.rows[s].id },
    layers = { range[1] - 1, range[2] }, micro_batch = c.micro_batch,
    in_flight = math.min(c.depth - s + 1, c.micro_batches) }
  local own = { first = range[1], last = range[2], pass = pass, tensors = {} }
  local before
  for l = range[1], range[2] do
    local bytes = kept.saved[l] - kept.saved[l - 1]
    if before and math.abs(before.bytes - bytes) <= 1e-9 * bytes then
      before.count = before.count + 1
    else
      before = { bytes = bytes, count = 1, recompute_s = full.times[l] - kept.times[l],
        input_bytes = full.saved[l] - full.saved[l - 1],
        alive = math.max(0, math.min(c.depth - s + 1, c.micro_batches) - 1) }
      own.tensors[#own.tensors + 1] = before
    end
  end
  return own
end

--- Bandwidth of the devices of a pipeline to the best peer: nil where another node is nearest.
local function peer_bandwidth(ctx, rows, s)
  local best
  for p, row in ipairs(rows) do
    if p ~= s and row.node == rows[s].node then
      best = math.max(best or 0, links.bandwidth(ctx, rows[s].id, row.id))
    end
  end
  return best
end

--- The program of a cut with `reserve` bytes left unused.
local function problem(ctx, c, stages, reserve)
  local forward_s, backward_s, slot_s = {}, {}, 0
  for s, stage in ipairs(stages) do
    forward_s[s], backward_s[s] = stage.pass.forward_s, stage.pass.backward_s
    slot_s = math.max(slot_s, forward_s[s] + backward_s[s])
  end
  local intervals = timeline.intervals(forward_s, backward_s, c.micro_batches)
  local q = { host_bandwidth = c.host_bandwidth, devices = {} }
  for s, stage in ipairs(stages) do
    local memory = stage.pass.memory
    local over = memory.peak_bytes - (memory.limit_bytes - reserve)
    for _, tensor in ipairs(stage.tensors) do
      tensor.interval_s = intervals[s]
    end
    q.devices[s] = { tensors = stage.tensors, overflow_bytes = math.max(0, over),
      spare_bytes = math.max(0, -over), slot_s = slot_s,
      peer_bandwidth = peer_bandwidth(ctx, c.rows, s) }
  end
  return q
end

--- Recomputation of the layers of a stage, one by one.
local function recompute_list(stage, placed)
  local list, any = {}, false
  for i, tensor in ipairs(stage.tensors) do
    for n = 1, tensor.count do
      list[#list + 1] = n <= placed.tensors[i].recompute and "full" or "none"
      any = any or n <= placed.tensors[i].recompute
    end
  end
  return any and list or nil
end

--- Devices of rank s in all copies.
local function copies_of(ctx, c, s)
  local ids = {}
  for copy, rows in ipairs(c.copies) do
    ids[copy] = rows[c.place[s]].id
  end
  return ctx.cluster:address(ids)
end

--- Where an offload goes: a list of addresses.
local function on_devices(address)
  return type(address) == "table" and address or { address }
end

--- What lies elsewhere, as shares of what a stage still saves.
local function offload_list(ctx, c, stage, placed)
  local saved, host, peer = 0, 0, 0
  for i, tensor in ipairs(stage.tensors) do
    local n = placed.tensors[i]
    saved = saved + (tensor.count - n.recompute) * tensor.bytes + n.recompute * tensor.input_bytes
    host = host + n.host * tensor.bytes
    peer = peer + n.peer * tensor.bytes
  end
  local list, on_peers = {}, 0
  for _, bytes in pairs(placed.peers) do
    on_peers = on_peers + bytes
  end
  for p, bytes in pairs(placed.peers) do
    if peer > 0 then
      list[#list + 1] = { what = "activations", frac = peer / saved * bytes / on_peers,
        to = on_devices(copies_of(ctx, c, p)) }
    end
  end
  if host > 0 then
    list[#list + 1] = { what = "activations", frac = host / saved, to = "host" }
  end
  return #list > 0 and list or nil
end

local function plan_of(ctx, c, stages, placed)
  local rows = {}
  for s, stage in ipairs(stages) do
    rows[s] = { devices = copies_of(ctx, c, s), layers = { stage.first - 1, stage.last },
      recompute = recompute_list(stage, placed.devices[s]),
      offload = offload_list(ctx, c, stage, placed.devices[s]) }
  end
  return { micro_batch = c.micro_batch, schedule = { name = "1f1b" },
    replicas = { { count = #c.copies, micro_batches = c.micro_batches, stages = rows } } }
end

--- Places of the stages of a pipeline in a node: in sequence, and early ones beside late ones.
local function places(depth)
  local sequence, folded = {}, {}
  for s = 1, depth do
    sequence[s] = s
    folded[s] = s <= (depth + 1) // 2 and 2 * s - 1 or 2 * (depth - s + 1)
  end
  return depth > 3 and { sequence, folded } or { sequence }
end

--- Adds the candidates of a depth, a micro-batch and a place.
local function add(ctx, all, c, reserve)
  local chain = prices.chain(ctx, c.kind, { micro_batch = c.micro_batch })
  local cut = hv.opt.partition { n = chain.n, parts = c.depth, load = chain.times }
  local stages = {}
  for s, range in ipairs(cut and cut.stages or {}) do
    stages[s] = stage_of(ctx, c, s, range)
  end
  local placed = cut and placing.solve(problem(ctx, c, stages, reserve))
  if placed then
    local longest_s, sum_s = 0, 0
    for _, stage in ipairs(stages) do
      local own_s = stage.pass.forward_s + stage.pass.backward_s
      longest_s, sum_s = math.max(longest_s, own_s), sum_s + own_s
    end
    all.add { claim_s = sum_s + (c.micro_batches - 1) * longest_s + c.micro_batches * placed.value
      / c.depth, build = function() return plan_of(ctx, c, stages, placed) end }
  end
end

--- Pipelines of a depth inside nodes.
local function copies(devices, depth, size)
  local list = {}
  for first = 1, #devices, depth do
    if (first - 1) % size + depth <= size then
      list[#list + 1] = numbers.slice(devices, first, depth)
    end
  end
  return list
end

local function search(ctx, devices, reserve)
  local all = candidates.new()
  local size = inventory.node_size(inventory.nodes(devices))
  local batch = ctx.job.global_batch
  for _, depth in ipairs(numbers.divisors(size)) do
    local own = copies(devices, depth, size)
    for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
      local per_copy = batch // micro_batch // #own
      local fits = per_copy > 0 and per_copy * micro_batch * #own == batch
        and depth <= ctx.model.n_layers and not (hv.stopping(0.4) and #all.list > 0)
      for _, place in ipairs(fits and places(depth) or {}) do
        local c = { depth = depth, micro_batch = micro_batch, micro_batches = per_copy,
          copies = own, place = place, kind = devices[1].kind, rows = {},
          host_bandwidth = devices[1].host_bytes_per_s }
        for s = 1, depth do
          c.rows[s] = own[1][place[s]]
        end
        add(ctx, all, c, reserve)
      end
    end
  end
  return all
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local all = candidates.within(function(reserve)
    return search(ctx, devices, reserve)
  end)
  if not all then
    return nil, reasons.too_small(ctx, devices, "no pipeline inside a node, with activations on "
      .. "peers and hosts or computed again,")
  end
  return all.best(ctx.options.tries)
end

--- The pipeline's formula with what the placement leaves visible.
local function claim(made, ctx)
  made = prices.table_of(made)
  local replica = made.replicas[1]
  local own_s, away_frac = {}, 0
  for s, stage in ipairs(replica.stages) do
    local alone = { micro_batch = made.micro_batch, layers = stage.layers,
      recompute = stage.recompute, devices = ctx.cluster:address {
        ctx.cluster:ids(stage.devices)[1] } }
    local pass = hv.cost.stage(alone)
    own_s[s] = pass.forward_s + pass.backward_s
    for _, one in ipairs(stage.offload or {}) do
      away_frac = math.max(away_frac, one.frac)
    end
  end
  local total_s, longest_s = 0, 0
  for _, seconds in ipairs(own_s) do
    total_s, longest_s = total_s + seconds, math.max(longest_s, seconds)
  end
  return { iteration_s = total_s + (replica.micro_batches - 1) * longest_s,
    terms = { longest_stage_s = longest_s, largest_share_away = away_frac },
    formula = "sum of the stages + (m - 1) x longest, with what is computed again; copies hidden "
      .. "between the passes (MPress)",
    leaves_out = "copies that are not hidden, transfers between stages, and the reduction of "
      .. "gradients over copies of the pipeline" }
end

return {
  api = 1, id = "mpress", title = "MPress", kind = "pipeline",
  system = "MPress: Democratizing Billion-Scale Model Training on Multi-GPU Servers via "
    .. "Memory-Saving Inter-Operator Parallelism", venue = "HPCA", year = 2023,
  reference = "HPCA 2023",
  summary = "Pipelines inside nodes; activations kept, on peers, in the host or computed again, "
    .. "by an integer program.",
  needs = { model = "layers" }, effort = "quick",
  sets = { ["schedule.name"] = "1f1b" },
  searches = { "offload to peers and hosts", "recomputation layer by layer", "pipeline depth",
    "micro-batch", "places of the stages" },
  verified = { "least exposed time [D]", "without peers [D]",
    "200 random placements against enumeration [D]", "idle time of the first stage [D]",
    "bandwidth to the host by the judge" },
  options = { candidates.micro_batch_option(8), candidates.tries_option(8) },
  plan = plan, claim = claim,
}
