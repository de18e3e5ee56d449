--- Grids of equal stages, as Megatron arranges them: degrees, layers per stage, micro-batches,
-- recomputation; with reasons that name the values that would work.
local numbers = require "numbers"

local grids = {}

--- Can every block be split over tp ranks? Heads, key-value heads and feed-forward width decide.
function grids.tp_fits(layers, tp)
  for _, l in ipairs(layers) do
    local heads, kv = l.heads or 0, l.kv_heads or l.heads or 0
    local kv_fits = kv == 0 or kv % tp == 0 or tp % kv == 0
    if heads % tp ~= 0 or not kv_fits or (l.ffn or 0) % tp ~= 0 then
      return false
    end
  end
  return true
end

--- The largest power of two up to `most` that divides `size` devices and splits every block.
function grids.largest_tp(layers, size, most)
  local best = 1
  for _, tp in ipairs(numbers.powers(math.min(size, most))) do
    if size % tp == 0 and grids.tp_fits(layers, tp) then
      best = tp
    end
  end
  return best
end

--- The context-parallel degree as a plan file has it, with the layout of the tokens where that is
-- not the contiguous one.
local function cp_of(g)
  if (g.cp_layout or "contiguous") == "contiguous" then
    return g.cp
  end
  return { degree = g.cp, layout = g.cp_layout }
end

--- Schedule of a plan by name: a built-in one as it is, one of a plugin as the order it makes.
function grids.schedule(name, ranks, micro_batches, chunks)
  for _, s in ipairs(hv.sim.schedules()) do
    if s.lua and s.name == name then
      local made = hv.sim.schedule(name, { ranks = ranks, micro_batches = micro_batches,
        chunks = chunks })
      return { name = "explicit", order = made.order }
    end
  end
  return { name = name }
end

--- Layers of stage s: one range, or one for each of its chunks.
local function layers_of_stage(g, ranges, s)
  if g.chunks == 1 then
    return ranges[s]
  end
  local layers = {}
  for c = 1, g.chunks do
    layers[c] = ranges[(c - 1) * g.pp + s]
  end
  return layers
end

--- Megatron-LM's default size of a gradient bucket for ranks that reduce together, in MiB: 40
-- million parameters, or a million per rank where that is more (DistributedDataParallelConfig).
local function bucket_MiB(ctx, ranks)
  return math.max(40e6, 1e6 * ranks) * ctx.job.grad_bytes / 2 ^ 20
end

--- ZeRO stage as a plan file has it, with the ranks that share a copy where they are not all.
local function zero_of(g)
  if g.zero == 0 then
    return nil
  end
  return (g.shard_group or 0) > 0 and { stage = g.zero, shard_group = g.shard_group } or g.zero
end

local offloadable = { weights = true, optimizer = true, activations = true }

--- What lies in the host's memory, as a plan file has it; nil: nothing.
local function offload_of(g)
  local list = {}
  for what in (g.offload or ""):gmatch("[^,%s]+") do
    list[#list + 1] = { what = what, to = "host" }
  end
  return #list > 0 and list or nil
end

--- Is it a list of weights, optimizer and activations, joined by commas?
function grids.is_offload(text)
  for what in text:gmatch("[^,%s]+") do
    if not offloadable[what] then
      return false
    end
  end
  return true
end

--- Stages of a Megatron grid: stage s takes the s-th block of tp x cp x dp devices, tp fastest,
-- then cp, then dp. `counts` holds layers per chunk in model order (pp x chunks of them).
function grids.plan(ctx, g)
  local size = g.tp * g.cp * g.dp
  local ranges = numbers.ranges(g.counts)
  local stages = {}
  -- a first or last chunk without layers has the embedding or the head alone
  local ends_without_layers = g.counts[1] == 0 or g.counts[#g.counts] == 0
  for s = 1, g.pp do
    stages[s] = {
      devices = ctx.cluster:address(numbers.slice(g.ids, (s - 1) * size + 1, size)),
      layers = layers_of_stage(g, ranges, s), tp = g.tp, dp = g.dp,
      cp = g.cp > 1 and cp_of(g) or nil,
      ep = g.ep > 1 and g.ep or nil,
      sequence_parallel = g.sequence_parallel or nil,
      zero = zero_of(g), offload = offload_of(g),
      recompute = g.recompute ~= "none" and g.recompute or nil,
    }
    if ends_without_layers then
      stages[s].embedding = s == 1
      stages[s].head = s == g.pp
    end
  end
  return {
    micro_batch = g.micro_batch * g.dp,
    replicas = { { micro_batches = g.micro_batches, stages = stages } },
    schedule = grids.schedule(g.schedule, g.pp, g.micro_batches, g.chunks),
    sync = { kind = "allreduce", bucket_MiB = bucket_MiB(ctx, g.dp * g.cp) },
  }
end

--- Largest dp' <= dp whose share of the global batch is whole; devices beyond it stay unused.
function grids.usable_dp(global, dp, micro_batch)
  for d = dp, 1, -1 do
    if global % (d * micro_batch) == 0 then
      return d
    end
  end
end

--- Pipeline depths worth trying on n tensor-parallel groups: divisors of it, and powers of two.
function grids.depths(n, n_layers)
  local seen, list = {}, {}
  for _, set in ipairs { numbers.divisors(n), numbers.powers(n) } do
    for _, d in ipairs(set) do
      if d <= n_layers and not seen[d] then
        seen[d] = true
        list[#list + 1] = d
      end
    end
  end
  table.sort(list)
  return list
end

--- Places of the node groups named in `order`, and how many there are; nil and the reason where the
-- devices have no group of that name.
local function group_places(devices, order)
  local places = {}
  local n = 0
  for name in order:gmatch("[^,%s]+") do
    n = n + 1
    places[name] = n
  end
  local known = {}
  for _, device in ipairs(devices) do
    known[device.group] = true
  end
  for name in pairs(places) do
    if not known[name] then
      return nil, ("order: the cluster has no node group '%s'"):format(name)
    end
  end
  return places, n
end

--- Devices in stage order: node groups named in `order` ("v,a") first, the others behind them; or
-- nil and why not.
function grids.in_order(devices, order)
  if order == "" then
    return devices
  end
  local places, n = group_places(devices, order)
  if not places then
    return nil, n
  end
  local parts = {}
  for i = 1, n + 1 do
    parts[i] = {}
  end
  for _, device in ipairs(devices) do
    table.insert(parts[places[device.group] or n + 1], device)
  end
  local list = {}
  for _, part in ipairs(parts) do
    table.move(part, 1, #part, #list + 1, list)
  end
  return list
end

--- The even layers per chunk; nil and the reason where there are more chunks than layers. Where
-- they do not divide, but would with embedding and head counted as a layer each, the first and the
-- last chunk have a layer less.
local function even_counts(n_layers, pp, chunks)
  local parts = pp * chunks
  if parts > 2 and n_layers % parts ~= 0 and (n_layers + 2) % parts == 0 then
    local counts = numbers.even(n_layers + 2, parts)
    counts[1] = counts[1] - 1
    counts[parts] = counts[parts] - 1
    return counts
  elseif parts > n_layers then
    return nil, ("%d stages x %d chunks are more than the %d layers"):format(pp, chunks, n_layers)
  end
  return numbers.even(n_layers, parts)
end

--- The whole numbers of a text and their sum; nil and the reason where a word is none.
local function counts_in(text)
  local given = {}
  local sum = 0
  for word in text:gmatch("[^,%s]+") do
    local n = tonumber(word)
    if not n or n ~= math.floor(n) or n < 0 then
      return nil, ("layers: expected whole numbers joined by commas, found '%s'"):format(word)
    end
    given[#given + 1] = math.tointeger(n)
    sum = sum + given[#given]
  end
  return given, sum
end

--- Layers per chunk in model order. `text` has one count per stage, or one per stage and chunk; an
-- empty one stands for even counts.
function grids.layer_counts(n_layers, pp, chunks, text)
  if text == "" then
    return even_counts(n_layers, pp, chunks)
  end
  local given, sum = counts_in(text)
  if not given then
    return nil, sum
  end
  local parts = pp * chunks
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
    local per_chunk = numbers.even(given[s], chunks)
    for c = 1, chunks do
      counts[(c - 1) * pp + s] = per_chunk[c]
    end
  end
  return counts
end

--- Micro-batches per iteration, or why there is no whole number of them.
function grids.micro_batches(global, dp, micro_batch)
  local per_step = dp * micro_batch
  if global % per_step == 0 then
    return global // per_step
  end
  local advice = {}
  if global % dp == 0 then
    local below, above = numbers.neighbours(global // dp, micro_batch)
    advice[#advice + 1] = "micro_batch " .. numbers.either(below, above)
  end
  if global % micro_batch == 0 then
    local below, above = numbers.neighbours(global // micro_batch, dp)
    advice[#advice + 1] = "dp " .. numbers.either(below, above)
  end
  local lower = global - global % per_step
  advice[#advice + 1] = ("a global batch of %s%d"):format(
    lower > 0 and lower .. " or " or "", lower + per_step)
  return nil, ("a global batch of %d is not dp %d x micro_batch %d x a whole number; %s works")
    :format(global, dp, micro_batch, table.concat(advice, ", or "))
end

local recompute_units = { "qkv", "core", "out", "up", "act", "down", "norm", "experts" }

--- What `recompute` may be, in words.
grids.recompute_words = "none, selective, full, or units joined by +: "
  .. table.concat(recompute_units, " ")

--- Is it none, selective, full, or units joined by +?
function grids.is_recompute(text)
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

--- Tensor degrees that a kind's nodes and the model's heads allow.
-- @function grids.tp_degrees
-- @tparam handle ctx the run's input
-- @tparam table t {size}, a row of inventory.types
-- @treturn table list of divisors of its size
-- @units none
-- @raise none
-- @usage print(#require("grids").tp_degrees(ctx, { size = 8 }))
function grids.tp_degrees(ctx, t)
  local list = {}
  local layers = ctx.model:layers()
  for _, tp in ipairs(numbers.divisors(t.size)) do
    if grids.tp_fits(layers, tp) then
      list[#list + 1] = tp
    end
  end
  return list
end

return grids
