-- The instance of provisioning.lua and type_search.lua for a run: the types of the cluster's
-- devices, groups of the model's layers in place of layers, prices and memory by the core (HeterPS,
-- Liu et al., FGCS 148, 2023, section 4).
local numbers = require "numbers"
local prices = require "prices"
local stage_memory = require "stage_memory"

local instance = {}

local MOST_GROUPS = 120 -- of a model's layers

--- Types of devices, those of one kind and price: {kind, devices, usd_per_h = of one, nil: unknown,
-- price = that, or where any device has none FLOP/s for all types, so that dollars are compared
-- with dollars only}; and the names of the kinds without a price.
function instance.types(devices)
  local types, by_key = {}, {}
  local unpriced = {}
  for _, device in ipairs(devices) do
    local key = ("%s/%s"):format(device.kind, device.usd_per_h)
    local type = by_key[key]
    if not type then
      type = { kind = device.kind, usd_per_h = device.usd_per_h, devices = {},
        flops_per_s = device.flops_per_s }
      by_key[key] = type
      types[#types + 1] = type
      if not device.usd_per_h then
        unpriced[#unpriced + 1] = device.kind
      end
    end
    table.insert(type.devices, device)
  end
  for _, type in ipairs(types) do
    type.price = #unpriced == 0 and type.usd_per_h or type.flops_per_s / 1e14
  end
  return types, unpriced
end

--- Features of every group of layers, each as a fraction of its largest value: parameters, experts,
-- and time of the exchange (section 5).
local function features_of(ctx, q)
  local rows, most, layers = {}, {}, ctx.model:layers()
  for g, range in ipairs(q.ranges) do
    local parameters, experts = 0, 0
    for l = range[1] + 1, range[2] do
      parameters = parameters + layers[l].parameters
      experts = experts + (layers[l].experts or 0)
    end
    rows[g] = { parameters, experts, q.exchange[1][g] }
    for k, x in ipairs(rows[g]) do
      most[k] = math.max(most[k] or 1e-12, x)
    end
  end
  for _, row in ipairs(rows) do
    for k, x in ipairs(row) do
      row[k] = x / most[k]
    end
  end
  return rows
end

--- Adds one type of device: its price, and for each group of layers the times of one sequence.
local function add_type(ctx, q, t, type, recompute)
  local devices = type.devices
  local chain = prices.chain(ctx, type.kind, { tp = 1, micro_batch = 1, recompute = recompute })
  local link = ctx.cluster:link(devices[1].id, devices[#devices].id)
  q.types[t] = { price = type.price, available = #devices }
  q.compute[t] = {}
  q.exchange[t] = {}
  q.full = q.full + #devices / prices.time(chain, 1, chain.n)
  for g, range in ipairs(q.ranges) do
    q.compute[t][g] = prices.time(chain, range[1] + 1, range[2])
    if #devices > 1 then
      q.exchange[t][g] = 2 * chain.output_bytes / link.bandwidth_bytes_per_s
    else
      q.exchange[t][g] = 1e-9
    end
  end
end

--- The instance without a rate; its batch is one sequence. c = {recompute, alpha, beta, groups = at
-- most so many groups of layers, reserve = bytes of a device that are left alone}. Besides the keys
-- of provisioning.lua and type_search.lua: ranges = {from, to} of every group, full = sequences per
-- second when every type runs the whole model on all of its devices, possible = does every group
-- fit a device of some type.
function instance.new(ctx, types, c)
  local groups = math.min(c.groups, ctx.model.n_layers, MOST_GROUPS)
  local q = {
    types = {}, compute = {}, exchange = {}, choices = {},
    batch = 1,
    examples = 1,
    most = ctx.job.global_batch,
    alpha = c.alpha,
    beta = c.beta,
    full = 0,
    ranges = numbers.ranges(numbers.even(ctx.model.n_layers, groups)),
  }
  for t, type in ipairs(types) do
    add_type(ctx, q, t, type, c.recompute)
  end
  q.features = features_of(ctx, q)
  for g in ipairs(q.ranges) do
    q.choices[g] = #types
  end
  stage_memory.add(ctx, q, types, c)
  return q
end

return instance
