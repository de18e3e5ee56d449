--- Mixtures of experts: the layers of a model that have experts, degrees that share them, the ranks
-- of a group, and what its exchanges and products take, as planners fit them.
local degrees = require "degrees"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"

local mixture = {}

local fitted, groups = {}, {} -- by the text of the question, for the run
local PARTS = { 1, 2, 8 } -- chunks whose times are measured for a fit

--- Layers with experts.
-- @function mixture.layers
-- @tparam handle ctx the run's input
-- @treturn table list of {block = as plans count them, layer = from 1, experts, top_k, parameters =
-- of one expert}; nil and the reason where there are none
-- @units none: counts
-- @raise none
-- @usage local layers, why = require("mixture").layers(ctx)
-- print(layers and layers[1].experts or why)
function mixture.layers(ctx)
  local list = {}
  if ctx.model.kind == "graph" then
    return nil, "a model of kind graph has no layers with experts"
  end
  for i, l in ipairs(ctx.model:layers()) do
    if (l.experts or 0) > 0 then
      list[#list + 1] = { block = i - 1, layer = i, experts = l.experts, top_k = l.top_k,
        parameters = l.expert_parameters }
    end
  end
  if #list == 0 then
    return nil, ("the model %s has no layers with experts"):format(ctx.model.name)
  end
  return list
end

--- Options of a system with experts: degrees, the stage of ZeRO, and its own.
-- @function mixture.options
-- @tparam[opt] table own list of rows of options
-- @treturn table list of rows, `options` of a plugin
-- @units none
-- @raise none
-- @usage assert(#require("mixture").options() > 3)
function mixture.options(own)
  local rows = degrees.options { "tp", "pp", "ep" }
  rows[#rows + 1] = { key = "zero", type = "integer", default = 1, min = 0, max = 3,
    help = "stage of ZeRO" }
  for _, row in ipairs(own or {}) do
    rows[#rows + 1] = row
  end
  return rows
end

--- Runs of layers with experts for which key_of gives the same: {from, to} half open as in plans,
-- with blocks that have no experts between them, the first layer and the key.
function mixture.runs(layers, key_of)
  local list = {}
  for i, layer in ipairs(layers) do
    local key = key_of(layer, i)
    local last = list[#list]
    if last and last.key == key then
      last.to = layer.block + 1
    else
      list[#list + 1] = { from = layer.block, to = layer.block + 1, key = key, layer = layer }
    end
  end
  return list
end

--- Degrees that share the experts of every layer evenly, above 1: divisors of them, and where an
-- expert may be cut over ranks, multiples of all experts.
-- @function mixture.degrees
-- @tparam table layers list of {experts}, as mixture.layers gives it
-- @tparam[opt] integer shards ranks that an expert may be cut over (1)
-- @treturn table list, ascending
-- @units none: numbers of ranks
-- @raise none
-- @usage local list = require("mixture").degrees({ { experts = 6 } })
-- assert(list[1] == 2 and list[3] == 6)
function mixture.degrees(layers, shards)
  local n, list = 0, {}
  for _, layer in ipairs(layers) do
    n = numbers.gcd(layer.experts, n)
  end
  for _, d in ipairs(numbers.divisors(n)) do
    if d > 1 then
      list[#list + 1] = d
    end
  end
  for _, s in ipairs(numbers.powers(shards or 1)) do
    if s > 1 then
      list[#list + 1] = n * s
    end
  end
  return list
end

--- Pipeline depths up to a share of the devices that leaves room for groups of two ranks.
function mixture.depths(ctx)
  return function(devices)
    return grids.depths(math.max(1, #devices // 2), ctx.model.n_layers)
  end
end

--- Ranks of the first group of a stage that shares experts: device numbers, one per rank.
-- @function mixture.group
-- @tparam handle ctx the run's input
-- @tparam table stage {devices, tp, ep} of a plan
-- @tparam[opt] integer ep ranks of the group (the stage's)
-- @treturn table list of device numbers
-- @units none
-- @raise a bad address
-- @usage local stage = { devices = ctx.cluster:address { 1, 2 }, ep = 2 }
-- assert(#require("mixture").group(ctx, stage) == 2)
function mixture.group(ctx, stage, ep)
  local tp = type(stage.tp) == "table" and stage.tp.degree or stage.tp or 1
  ep = ep or stage.ep or 1
  local key = type(stage.devices) == "string" and ("%s/%d/%d"):format(stage.devices, tp, ep)
  if groups[key] then
    return groups[key]
  end
  local ids, group = ctx.cluster:ids(stage.devices), {}
  for i = 1, ep do
    group[i] = ids[(i - 1) * tp + 1]
  end
  if key then
    groups[key] = group
  end
  return group
end

--- Tokens of a micro-batch that a data-parallel rank of a stage has.
function mixture.tokens(ctx, stage, micro_batch)
  local dp = stage.dp or 1
  return micro_batch / dp * ctx.job.sequence
end

--- Least squares of seconds[i] over x[i]: alpha_s + beta_s · x, neither below 0.
-- @function mixture.line
-- @tparam table x list of sizes
-- @tparam table seconds list of measured times
-- @treturn table {alpha_s, beta_s}
-- @units seconds; beta_s per unit of x
-- @raise none
-- @usage local f = require("mixture").line({ 1, 2 }, { 3, 5 })
-- assert(math.abs(f.alpha_s - 1) < 1e-9 and math.abs(f.beta_s - 2) < 1e-9)
function mixture.line(x, seconds)
  local n, sx, st, sxx, sxt = #x, 0, 0, 0, 0
  for i = 1, n do
    sx, st = sx + x[i], st + seconds[i]
    sxx, sxt = sxx + x[i] ^ 2, sxt + x[i] * seconds[i]
  end
  local spread = n * sxx - sx ^ 2
  local beta_s = spread > 0 and math.max(0, (n * sxt - sx * st) / spread) or 0
  return { alpha_s = math.max(0, (st - beta_s * sx) / n), beta_s = beta_s }
end

--- A text that is the same for groups of equal devices on nodes in the same order.
local function pattern(ctx, group)
  local parts = {}
  for i, id in ipairs(group) do
    local apart = i > 1 and inventory.node(ctx, id) ~= inventory.node(ctx, group[i - 1])
    parts[i] = (apart and "|" or "+") .. inventory.class(ctx, id)
  end
  return table.concat(parts)
end

--- Seconds of the products of a layer's experts for so many tokens of a rank, forward.
local function products_s(layer, kind, tp, ep, tokens)
  local sum_s = 0
  local cost = hv.cost.op { op = "ffn", layer = layer, device = kind, tp = tp, ep = ep,
    micro_batch = 1, tokens = tokens, phase = "forward" }
  for _, row in ipairs(cost.why) do
    sum_s = sum_s + (row.name:find("^experts ") and row.unit == "s" and row.value or 0)
  end
  return sum_s
end

--- What a layer's exchange and products take when the tokens of a rank are cut into chunks, fitted
-- by least squares to the times of 1 to 8 chunks: alpha_s + beta_s / chunks of one chunk.
-- @function mixture.fits
-- @tparam handle ctx the run's input
-- @tparam table stage {devices, tp, dp, ep} of a plan
-- @tparam integer micro_batch sequences of the stage's micro-batch
-- @tparam table layer {layer, top_k}, a row of mixture.layers
-- @treturn table {exchange = {alpha_s, beta_s}, expert = {alpha_s, beta_s}}: one all-to-all of the
-- group, and the forward products of a rank
-- @units seconds
-- @raise a kind of device without the job's precision
-- @usage local mixture = require "mixture"
-- local layers = mixture.layers(ctx)
-- local stage = { devices = ctx.cluster:address { 1, 2 }, dp = 2, ep = 2 }
-- print(layers and mixture.fits(ctx, stage, 2, layers[1]).expert.beta_s)
function mixture.fits(ctx, stage, micro_batch, layer)
  local group = mixture.group(ctx, stage)
  local tokens = mixture.tokens(ctx, stage, micro_batch)
  local tp = type(stage.tp) == "table" and stage.tp.degree or stage.tp or 1
  local key = ("%s/%d/%d/%g/%d"):format(pattern(ctx, group), tp, #group, tokens, layer.layer)
  if fitted[key] then
    return fitted[key]
  end
  local kind = inventory.kind(ctx, group[1])
  local x, exchange_s, expert_s = {}, {}, {}
  local bytes = mixture.bytes(ctx, layer, tokens)
  for i, parts in ipairs(PARTS) do
    x[i] = 1 / parts
    local cost = #group > 1 and hv.cost.collective { op = "all_to_all", devices = group,
      bytes = bytes / parts, algorithm = "ring" }
    exchange_s[i] = cost and cost.time_s or 0
    expert_s[i] = products_s(layer.layer, kind, tp, #group, math.max(1, tokens // parts))
  end
  fitted[key] = { exchange = mixture.line(x, exchange_s), expert = mixture.line(x, expert_s) }
  return fitted[key]
end

--- Bytes that a rank hands to one exchange: every token once per expert that it goes to.
function mixture.bytes(ctx, layer, tokens)
  return tokens * layer.top_k * ctx.model.hidden * ctx.job.activation_bytes
end

--- How many nodes a list of devices is on.
function mixture.nodes(ctx, ids)
  local seen, n = {}, 0
  for _, id in ipairs(ids) do
    local node = inventory.node(ctx, id)
    n = n + (seen[node] and 0 or 1)
    seen[node] = true
  end
  return n
end

--- Names the first knob that `knobs` would set to something else than `given` has, with both
-- values; nil where there is none.
local function clash_of(given, knobs, path)
  for key, value in pairs(knobs) do
    local old = given[key]
    if old ~= nil and type(value) ~= "table" and old ~= value then
      return ("%s%s is %s already, and would be %s"):format(path, key, tostring(old),
        tostring(value))
    elseif old ~= nil and type(value) == "table" and type(old) ~= "table" then
      return ("%s%s is set already"):format(path, key)
    end
  end
end

--- Sets knobs of experts in the stages of another strategy's plan that share experts, or in all.
-- @function mixture.apply
-- @tparam table plan with the keys of a plan file, which is changed
-- @tparam function moe_of function(stage, micro_batch) that gives `moe` of a stage
-- @tparam[opt] boolean alone also where every rank has all experts (false)
-- @treturn table the plan {micro_batch, replicas, …}; nil and the reason where no stage shares
-- experts, or a knob is set already
-- @units those of a plan file
-- @raise what moe_of raises
-- @usage local plan = { micro_batch = 1, replicas = { { stages = { { ep = 2 } } } } }
-- require("mixture").apply(plan, function() return { kernel = "block" } end)
-- assert(plan.replicas[1].stages[1].moe.kernel == "block")
function mixture.apply(plan, moe_of, alone)
  local n = 0
  for _, replica in ipairs(plan.replicas or {}) do
    for s, stage in ipairs(replica.stages) do
      if alone or (stage.ep or 1) > 1 then
        local own = moe_of(stage, replica.micro_batch or plan.micro_batch)
        local given = stage.moe or {}
        local clash = #given > 0 and "moe is a list already" or #own > 0 and next(given)
          and "moe is set already" or clash_of(given, own, "moe.")
        if clash then
          return nil, ("stage %d: %s"):format(s - 1, clash)
        end
        for key, value in pairs(given) do
          own[key] = value
        end
        stage.moe = own
        n = n + 1
      end
    end
  end
  if n == 0 then
    return nil, "no stage of the plan shares experts (ep above 1)"
  end
  return plan
end

return mixture
