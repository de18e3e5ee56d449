--- The layout a user has today, judged as it is: one Megatron grid over the devices in file order.
-- Nothing is searched. Rank order: tp fastest, then cp, then dp, pipeline stages slowest.
local layout = require "layout"

local function options_or_defaults(ctx, world)
  local o = ctx.options
  local tp = o.tp
  if tp == 0 then -- as much of a node as the attention heads allow, eight at most
    tp = 1
    local node = layout.node_size(layout.nodes(layout.devices(ctx)))
    for _, d in ipairs(layout.divisors(node)) do
      if d <= 8 and layout.tp_fits(ctx.model:layers(), d) then
        tp = d
      end
    end
  end
  local group = tp * o.pp * o.cp
  return tp, o.dp > 0 and o.dp or math.max(1, world // group), group
end

--- Devices in stage order: node groups named by the option first, the others behind them.
local function ordered_devices(ctx)
  local devices = layout.devices(ctx)
  if ctx.options.order == "" then
    return devices
  end
  local wanted, n = {}, 0
  for name in ctx.options.order:gmatch("[^,%s]+") do
    n = n + 1
    wanted[name] = n
  end
  local known = {}
  for _, d in ipairs(devices) do
    known[d.group] = true
  end
  for name in pairs(wanted) do
    if not known[name] then
      return nil, ("order: the cluster has no node group '%s'"):format(name)
    end
  end
  local parts = {}
  for i = 1, n + 1 do
    parts[i] = {}
  end
  for _, d in ipairs(devices) do
    table.insert(parts[wanted[d.group] or n + 1], d)
  end
  local list = {}
  for _, part in ipairs(parts) do
    table.move(part, 1, #part, #list + 1, list)
  end
  return list
end

--- Layers per chunk in model order. `text` has one count per stage, or one per stage and chunk.
local function layer_counts(n_layers, pp, chunks, text)
  local parts = pp * chunks
  if text == "" then
    if parts > 2 and n_layers % parts ~= 0 and (n_layers + 2) % parts == 0 then
      local counts = layout.even(n_layers + 2, parts) -- embedding and head count as a layer each
      counts[1], counts[parts] = counts[1] - 1, counts[parts] - 1
      return counts
    elseif parts > n_layers then
      return nil, ("%d stages x %d chunks are more than the %d layers"):format(pp, chunks, n_layers)
    end
    return layout.even(n_layers, parts)
  end
  local given, sum = {}, 0
  for word in text:gmatch("[^,%s]+") do
    local n = tonumber(word)
    if not n or n ~= math.floor(n) or n < 1 then
      return nil, ("layers: expected whole numbers joined by commas, found '%s'"):format(word)
    end
    given[#given + 1] = math.tointeger(n)
    sum = sum + given[#given]
  end
  if #given ~= pp and #given ~= parts then
    return nil, ("layers: expected one count for each of the %d stages, found %d"):format(pp,
      #given)
  elseif sum ~= n_layers then
    return nil, ("layers: the counts add up to %d, the model has %d layers"):format(sum, n_layers)
  elseif #given == parts then
    return given
  end
  local counts = {}
  for s = 1, pp do -- a stage's layers spread evenly over its chunks
    local per_chunk = layout.even(given[s], chunks)
    for c = 1, chunks do
      counts[(c - 1) * pp + s] = per_chunk[c]
    end
  end
  return counts
end

--- Micro-batches per iteration, or why there is no whole number of them.
local function micro_batches(global, dp, micro_batch)
  local per_step = dp * micro_batch
  if global % per_step == 0 then
    return global // per_step
  end
  local advice = {}
  if global % dp == 0 then
    local below, above = layout.neighbours(global // dp, micro_batch)
    advice[#advice + 1] = "micro_batch " .. layout.either(below, above)
  end
  if global % micro_batch == 0 then
    local below, above = layout.neighbours(global // micro_batch, dp)
    advice[#advice + 1] = "dp " .. layout.either(below, above)
  end
  local lower = global - global % per_step
  advice[#advice + 1] = ("a global batch of %s%d"):format(
    lower > 0 and lower .. " or " or "", lower + per_step)
  return nil, ("a global batch of %d is not dp %d x micro_batch %d x a whole number; %s works")
    :format(global, dp, micro_batch, table.concat(advice, ", or "))
end

local recompute_units = { "qkv", "core", "out", "up", "act", "down", "norm", "experts" }
local recompute_words = "none, selective, full, or units joined by +: "
  .. table.concat(recompute_units, " ")

--- Is it none, selective, full, or units joined by +?
local function is_recompute(text)
  local known = {}
  for _, unit in ipairs(recompute_units) do
    known[unit] = true
  end
  if text == "none" or text == "selective" or text == "full" then
    return true
  end
  for word in (text .. "+"):gmatch("([^+]*)%+") do
    if not known[word] then
      return false
    end
  end
  return true
end

local function plan(ctx)
  local o = ctx.options
  local devices, why = ordered_devices(ctx)
  if not devices then
    return nil, why
  elseif not is_recompute(o.recompute) then
    return nil, ("recompute: expected %s, found '%s'"):format(recompute_words, o.recompute)
  end
  local tp, dp, group = options_or_defaults(ctx, #devices)
  if group * dp > #devices then
    return nil, ("tp %d x pp %d x cp %d x dp %d = %d devices, the cluster has %d that can compute "
      .. "in %s"):format(tp, o.pp, o.cp, dp, group * dp, #devices, ctx.job.precision)
  end
  local counts
  counts, why = layer_counts(#ctx.model:layers(), o.pp, o.chunks, o.layers)
  if not counts then
    return nil, why
  end
  local n
  n, why = micro_batches(ctx.job.global_batch, dp, o.micro_batch)
  if not n then
    return nil, why
  end
  local ids = {}
  for i, d in ipairs(devices) do
    ids[i] = d.id
  end
  local schedule = o.schedule
  if schedule == "" then
    schedule = o.chunks > 1 and "interleaved" or "1f1b"
  end
  local recompute = o.recompute
  if recompute == "selective" and o.zero == 3 then
    -- FSDP runs say "selective" of products: torchtitan keeps every second one; the attention core
    -- is fused and keeps next to nothing anyway
    recompute = "up+act"
  end
  local made = layout.grid(ctx, {
    ids = ids, tp = tp, cp = o.cp, cp_layout = o.cp_layout, dp = dp, pp = o.pp, ep = o.ep,
    chunks = o.chunks, zero = o.zero, counts = counts, recompute = recompute, schedule = schedule,
    sequence_parallel = o.sequence_parallel and tp > 1,
    micro_batch = o.micro_batch, micro_batches = n,
  })
  made.sync = { kind = "allreduce", algorithm = o.sync }
  if not o.allow_oom then
    local fits, reason = layout.judge(made)
    if not fits then
      return nil, reason
    end
  end
  return made
end

--- Self-test: the arithmetic of the grid, without a cluster.
local function selftest(t)
  local src = "arithmetic"
  local c = layer_counts(9, 4, 1, "")
  t.equal("9 layers on 4 stages", table.concat(c, ","), "3,2,2,2", src)
  t.equal("126 layers on 16 stages", table.concat(layer_counts(126, 16, 1, ""), ","),
    "7," .. ("8,"):rep(14) .. "7", "Llama 3, section 3.3.2: first and last stage one layer less")
  c = layer_counts(80, 4, 1, "20,20,24,16")
  t.equal("counts given", table.concat(c, ","), "20,20,24,16", src)
  t.equal("counts over chunks", table.concat(layer_counts(10, 2, 2, "6,4"), ","), "3,2,3,2", src)
  t.ok("a wrong sum is refused", layer_counts(80, 4, 1, "20,20,20,21") == nil, src)
  t.ok("recompute units", is_recompute("core+act") and is_recompute("full"), src)
  t.ok("unknown units", not is_recompute("core+foo") and not is_recompute(""), src)
  t.equal("micro-batches", micro_batches(256, 4, 2), 32, src)
  local none, why = micro_batches(256, 3, 2)
  t.ok("no whole number", none == nil, src)
  t.ok("the nearest dp is named", why:find("dp 2 or 4", 1, true) ~= nil, src)
  local fake = { cluster = {} }
  function fake.cluster.address(_, ids)
    return table.concat(ids, " ")
  end
  local g = layout.grid(fake, {
    ids = { 1, 2, 3, 4, 5, 6, 7, 8 }, tp = 2, cp = 1, dp = 2, pp = 2, ep = 1, chunks = 2, zero = 0,
    counts = { 3, 2, 3, 2 }, recompute = "none", schedule = "interleaved",
    sequence_parallel = false, micro_batch = 1, micro_batches = 4,
  })
  local first = g.replicas[1].stages[1]
  t.equal("a stage is a block of devices", first.devices, "1 2 3 4", "Megatron-LM rank order")
  t.equal("chunk 2 of stage 1", first.layers[2][1], 5, "interleaved: ranges s, s + pp, …")
  t.equal("sequences entering at once", g.micro_batch, 2, "formats.md: dp inside the stage")
end

return {
  api = 1, id = "manual", title = "Manual layout", kind = "baseline",
  system = "Megatron-LM layout by hand", reference = "arXiv:2104.04473",
  summary = "The layout you have today, judged as it is; the row that others are compared with.",
  needs = { model = "layers" },
  options = {
    { key = "tp", type = "integer", default = 0, min = 0, max = 4096,
      help = "tensor-parallel ranks; 0: as much of a node as the heads allow, 8 at most" },
    { key = "pp", type = "integer", default = 1, min = 1, max = 4096, help = "pipeline stages" },
    { key = "dp", type = "integer", default = 0, min = 0, max = 1048576,
      help = "data-parallel ranks; 0: what the devices leave" },
    { key = "cp", type = "integer", default = 1, min = 1, max = 4096,
      help = "context-parallel ranks" },
    { key = "cp_layout", type = "choice", default = "zigzag",
      choices = { "contiguous", "zigzag", "striped" },
      help = "how context-parallel ranks share a causal sequence; zigzag balances their work" },
    { key = "ep", type = "integer", default = 1, min = 1, max = 4096,
      help = "expert-parallel ranks; divides dp x cp, or dp x cp x tp with experts left whole" },
    { key = "chunks", type = "integer", default = 1, min = 1, max = 128,
      help = "model chunks per stage (virtual pipeline stages)" },
    { key = "micro_batch", type = "integer", default = 1, min = 1, max = 65536,
      help = "sequences per micro-batch and data-parallel rank" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3,
      help = "sharded over data-parallel ranks: 1 optimizer, 2 and gradients, 3 and weights" },
    { key = "recompute", type = "string", default = "none",
      help = recompute_words .. "; selective under zero 3 means up+act, as FSDP runs do it" },
    { key = "sequence_parallel", type = "boolean", default = false,
      help = "shard norms and dropout over the tensor-parallel ranks" },
    { key = "schedule", type = "schedule", default = "",
      help = "schedule name, also of a plugin with order(p); empty: 1f1b, with chunks interleaved" },
    { key = "layers", type = "string", default = "",
      help = "layers per stage, 20,20,24,16; empty: even; first and last one less, or else the "
        .. "first ones one more" },
    { key = "order", type = "string", default = "",
      help = "node groups in stage order, v,a; empty: file order" },
    { key = "sync", type = "choice", default = "auto",
      choices = { "auto", "ring", "tree", "hierarchical", "nvls", "hfreduce" },
      help = "gradient reduction algorithm" },
    { key = "allow_oom", type = "boolean", default = false,
      help = "judge the plan even where it does not fit in memory" },
  },
  plan = plan,
  selftest = selftest,
}
