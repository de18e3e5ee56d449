-- The instance of provisioning.lua for a run: types of the cluster's devices, groups of the model's
-- layers, prices and memory by the core (HeterPS, Liu et al., FGCS 148, 2023, section 4).
local inventory = require "inventory"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"

local instance = {}

local MOST_GROUPS = 120 -- of a model's layers

--- Types of devices with their prices: those of the file, or by FLOP/s where it has none.
-- @function instance.types
-- @tparam table devices list of rows of cluster:devices()
-- @treturn table list of {kind, devices, size, price, known = is it that of the file}
-- @units USD per hour
-- @raise none
-- @usage print(require("instance").types(ctx.cluster:devices())[1].price)
function instance.types(devices)
  local types = inventory.types(devices)
  for _, d in ipairs(devices) do
    for _, t in ipairs(types) do
      if t.kind == d.kind then
        t.price, t.known = d.usd_per_h or d.flops_per_s / 1e14, d.usd_per_h ~= nil
      end
    end
  end
  return types
end

--- Sequences that enter at once: the least divisor of the batch that gives one to every device of
-- the largest stage.
-- @function instance.entering
-- @tparam handle ctx the run's input
-- @tparam table stages list of {k = devices}, nil counting as one
-- @treturn integer sequences
-- @units sequences
-- @raise none
-- @usage print(require("instance").entering(ctx, { { k = 3 } }))
function instance.entering(ctx, stages)
  local most = 1
  for _, s in ipairs(stages) do
    most = math.max(most, s.k or 1)
  end
  return numbers.divisor_from(ctx.job.global_batch, most) or ctx.job.global_batch
end

--- May a stage with so many sequences per device and micro-batches alive stay on its type's
-- devices? Remembered.
local function fitting(ctx, types, ranges, c)
  local known = {}
  return function(s, share, alive)
    local key = (((s.type * 65536 + share) * 65536 + alive) * 128 + s.first) * 128 + s.last
    if known[key] == nil then
      local row = { devices = { types[s.type].devices[1] }, micro_batch = share,
        recompute = c.recompute }
      local t = pipeline.tables(ctx, row, alive)
      known[key] = pipeline.fits({ held = t.held, room = t.room - (c.reserve or 0) },
        ranges[s.first][1] + 1,
        ranges[s.last][2])
    end
    return known[key]
  end
end

--- The least parts of runs { type, first, last } so that all fit one device each with one sequence,
-- from the last run on: a stage keeps as many micro-batches as there are stages from it on.
-- Remembered.
local function packing(fits)
  local known, by_run = {}, {}
  local function part_fits(run, n, tail)
    local at = run.first
    for j, size in ipairs(numbers.even(run.last - run.first + 1, n)) do
      if not fits({ type = run.type, first = at, last = at + size - 1 }, 1, tail + n - j + 1) then
        return false
      end
      at = at + size
    end
    return true
  end
  return function(runs)
    local parts, tail = {}, 0
    for i = #runs, 1, -1 do
      local run = runs[i]
      local name = (run.type * 128 + run.first) * 128 + run.last
      local key = name * 65536 + tail
      if known[key] == nil then
        local n, most = by_run[name] or 1, run.last - run.first + 1
        while n <= most and not part_fits(run, n, tail) do
          n = n + 1
        end
        known[key] = n <= most and n
        if tail == 0 then
          by_run[name] = n
        end
      end
      if not known[key] then
        return nil
      end
      parts[i], tail = known[key], tail + known[key]
    end
    return parts
  end
end

--- What is known of every group, in parts of the largest: parameters, experts, and what goes in
-- (section 5).
local function features(ctx, q)
  local rows, most, layers = {}, {}, ctx.model:layers()
  for g, range in ipairs(q.ranges) do
    local parameters, experts = 0, 0
    for l = range[1] + 1, range[2] do
      parameters, experts = parameters + layers[l].parameters, experts + (layers[l].experts or 0)
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

--- The instance: groups of layers as its layers, one sequence as its batch, without a rate.
-- @function instance.instance
-- @tparam handle ctx the run's input
-- @tparam table types list as instance.types gives it
-- @tparam table c {recompute, alpha, beta, groups = at most so many, reserve = bytes of a device
-- that are left alone}
-- @treturn table {ranges = {from, to} of every group, full = sequences per second when every type
-- runs the whole model on all of its devices, possible = does every group fit a device of some
-- type, and the keys of provisioning.lua}
-- @units seconds, USD per hour
-- @raise as pipeline.tables
-- @usage local instance = require "instance"
-- local types = instance.types(ctx.cluster:devices())
-- print(instance.instance(ctx, types, { recompute = "none", alpha = 1, beta = 1, groups = 4 }).full)
function instance.instance(ctx, types, c)
  local q = { types = {}, compute = {}, exchange = {}, choices = {}, batch = 1, examples = 1,
    alpha = c.alpha,
    beta = c.beta, full = 0,
    ranges = numbers.ranges(numbers.even(ctx.model.n_layers,
      math.min(c.groups, ctx.model.n_layers, MOST_GROUPS))) }
  for t, type in ipairs(types) do
    local own = prices.chain(ctx, type.kind, { tp = 1, micro_batch = 1, recompute = c.recompute })
    local near = ctx.cluster:link(type.devices[1].id, type.devices[#type.devices].id)
    q.types[t] = { price = type.price, available = #type.devices }
    q.compute[t], q.exchange[t], q.full = {}, {}, q.full
      + #type.devices / prices.time(own, 1, own.n)
    for g, range in ipairs(q.ranges) do
      q.compute[t][g] = prices.time(own, range[1] + 1, range[2])
      q.exchange[t][g] = #type.devices > 1 and 2 * own.output_bytes / near.bandwidth_bytes_per_s
        or 1e-9
    end
  end
  q.features = features(ctx, q)
  for g in ipairs(q.ranges) do
    q.choices[g] = #types
  end
  local fits = fitting(ctx, types, q.ranges, c)
  q.possible = true
  for g in ipairs(q.ranges) do
    local some = false
    for t in ipairs(types) do
      some = some or fits({ type = t, first = g, last = g }, 1, 1)
    end
    q.possible = q.possible and some
  end
  q.packed = packing(function(s, share, alive) return fits(s, share, math.min(alive, ctx.job.global_batch)) end)
  --- The first stage that does not fit with its devices, one before they are known.
  function q.short(stages)
    local batch = instance.entering(ctx, stages)
    for i, s in ipairs(stages) do
      local alive = math.min(#stages - i + 1, ctx.job.global_batch // batch)
      if not fits(s, s.k and math.ceil(batch / s.k) or 1, alive) then
        return s
      end
    end
  end
  return q
end

return instance
