-- Cells of a run's job on its cluster, priced by the core: what Crius (Xue et al., arXiv
-- 2403.16125, sections 4 and 5) estimates and tunes, and the plan of one on any block of its type's
-- devices.
local candidates = require "candidates"
local cells = require "cells"
local grids = require "grids"
local links = require "links"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"

local pricing = {}

--- Seconds per byte of the exchange of a stage's tp groups, remembered by where it lies among the
-- type's devices.
local function ring_of(ctx, type, stage, tp)
  type.rings = type.rings or {}
  local key = (stage.at * 65536 + #stage.devices) * 65536 + tp
  if not type.rings[key] then
    local heads = {}
    for i = 1, #stage.devices, tp do
      heads[#heads + 1] = stage.devices[i].id
    end
    type.rings[key] = links.ring(ctx, heads, 1)
  end
  return type.rings[key]
end

--- g of a type's devices from `at` on, remembered.
local function block_of(type, at, g)
  type.blocks = type.blocks or {}
  local key = at * 65536 + g
  type.blocks[key] = type.blocks[key] or numbers.slice(type.devices, at, g)
  return type.blocks[key]
end

--- A Cell as cells.estimate takes it: stages of balanced work, their devices, prices from the core;
-- nil when the GPUs do not divide or a micro-batch is too small. `splits` are the tensor degrees
-- that the heads allow.
local function cell_of(ctx, type, G, S, c)
  local micro_batch, recompute = c.micro_batch, c.recompute
  local own = prices.chain(ctx, type.kind, { tp = 1, micro_batch = 1, recompute = recompute })
  local cut = hv.opt.partition { n = own.n, parts = S, load = own.times }
  local gpus = cut and cells.gpus(cut.values, G)
  if not gpus then
    return nil
  end
  local q = { gpus = gpus, stages = {}, micro_batch = micro_batch, recompute = recompute,
    type = type,
    micro_batches = ctx.job.global_batch // micro_batch }
  local at = 1
  for s, g in ipairs(gpus) do
    q.stages[s] = { devices = block_of(type, at, g), at = at, range = cut.stages[s] }
    at = at + g
  end
  local kinds = { type.kind }
  function q.price(s, dp, tp)
    if micro_batch % dp ~= 0 or type.size % tp ~= 0 or not c.splits[tp] then
      return nil
    end
    local stage = q.stages[s]
    local row = { devices = stage.devices, kinds = kinds, tp = tp, micro_batch = micro_batch // dp,
      recompute = recompute }
    local t = pipeline.tables(ctx, row, math.min(S - s + 1, q.micro_batches))
    if not pipeline.fits(t, stage.range[1], stage.range[2]) then
      return nil
    end
    local priced = prices.chain(ctx, type.kind,
      { tp = tp, micro_batch = micro_batch // dp, recompute = recompute,
        sequence_parallel = tp > 1 })
    local sync = ring_of(ctx, type, stage, tp) * prices.gradient_bytes(ctx, priced, stage.range[1],
      stage.range[2])
    return prices.time(priced, stage.range[1], stage.range[2]) + sync / q.micro_batches
  end
  return q
end

--- How many GPUs of n: half of, as many as and twice what the job asks for, by powers of two; where
-- it asks for none, from all of them down by halves.
local function grants(n, asked, halvings)
  local sizes, out = numbers.powers(n), {}
  local last = asked and math.min(#sizes, #numbers.powers(asked) + 1) or #sizes
  local first = asked and math.max(1, #numbers.powers(asked) - 1) or math.max(1, #sizes - halvings)
  for k = last, first, -1 do
    out[#out + 1] = sizes[k]
  end
  return out
end

--- All Cells of the job that fit, estimated: type, GPUs, stages by powers of two; fewer when the
-- run is told to end.
-- @function pricing.all
-- @tparam handle ctx the run's input, with options halvings and micro_batch
-- @tparam table types list as inventory.types gives it
-- @tparam[opt] integer asked how many GPUs the job asks for
-- @treturn table list of {type = kind, gpus, rate, cell = what cells.tune takes, rank}
-- @units iterations per second
-- @raise as pipeline.tables
-- @usage local inventory = require "inventory"
-- ctx.options.halvings, ctx.options.micro_batch = 0, 1
-- print(#require("pricing").all(ctx, inventory.types(inventory.usable(ctx))))
function pricing.all(ctx, types, asked)
  local list, layers, splits = {}, ctx.model:layers(), {}
  for _, type in ipairs(types) do
    for _, tp in ipairs(numbers.divisors(type.size)) do
      splits[tp] = grids.tp_fits(layers, tp)
    end
    for _, size in ipairs(grants(#type.devices, asked, ctx.options.halvings)) do
      for _, S in ipairs(numbers.powers(math.min(size, ctx.model.n_layers))) do
        for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
          local whole = ctx.job.global_batch % micro_batch == 0
          if #list > 0 and hv.stopping(0.6) then
            return list
          end
          for _, recompute in ipairs(whole and { "none", "selective", "full" } or {}) do
            local q = cell_of(ctx, type, size, S,
              { micro_batch = micro_batch, recompute = recompute, splits = splits })
            local made = q and cells.estimate(q)
            if made then
              list[#list + 1] = { type = type.kind, gpus = size, rate = 1 / made.seconds, cell = q }
              list[#list].rank = #list
              break
            end
          end
        end
      end
    end
  end
  return list
end

--- The plan of a tuned Cell.
-- @function pricing.plan
-- @tparam handle ctx the run's input
-- @tparam table q Cell {stages, type, micro_batch, micro_batches, recompute}, as `cell` of a row of
-- pricing.all
-- @tparam table tuned {choice = {dp, tp} per stage}, what cells.tune made of it
-- @tparam[opt] integer at first of its devices among those of its type (1)
-- @treturn table plan with the keys of a plan file
-- @units none
-- @raise none
-- @usage local cells, pricing, inventory = require "cells", require "pricing", require "inventory"
-- ctx.options.halvings, ctx.options.micro_batch = 0, 1
-- local first = pricing.all(ctx, inventory.types(inventory.usable(ctx)))[1]
-- print(first and #pricing.plan(ctx, first.cell, cells.tune(first.cell)).replicas[1].stages)
function pricing.plan(ctx, q, tuned, at)
  local rows, next_one = {}, at or 1
  for s, stage in ipairs(q.stages) do
    local ids, dp, tp = {}, tuned.choice[s][1], tuned.choice[s][2]
    for i in ipairs(stage.devices) do
      ids[i], next_one = q.type.devices[next_one].id, next_one + 1
    end
    rows[s] = prices.stage_keys({ tp = tp, recompute = q.recompute, sequence_parallel = tp > 1 },
      { devices = ctx.cluster:address(ids), layers = { stage.range[1] - 1, stage.range[2] },
        dp = dp > 1 and dp or nil })
  end
  return { micro_batch = q.micro_batch, schedule = { name = "1f1b" },
    replicas = { { micro_batches = q.micro_batches, stages = rows } } }
end

--- The fastest tuned Cell for every type and grant, each judged: the Cells that a scheduler of jobs
-- chooses from.
-- @function pricing.offers
-- @tparam handle ctx the run's input, as for pricing.all
-- @tparam table types list as inventory.types gives it
-- @tparam integer tries how many estimates are tuned and judged for each
-- @tparam[opt] integer asked how many GPUs the job asks for
-- @treturn table list as queue.play takes it, with plan = function(at); rates are the judge's
-- @units iterations per second, seconds
-- @raise as pipeline.tables
-- @usage local inventory = require "inventory"
-- ctx.options.halvings, ctx.options.micro_batch = 0, 1
-- print(#require("pricing").offers(ctx, inventory.types(inventory.usable(ctx)), 1))
function pricing.offers(ctx, types, tries, asked)
  local groups, order = {}, {}
  for _, cell in ipairs(pricing.all(ctx, types, asked)) do
    local key = cell.type .. "/" .. cell.gpus
    if not groups[key] then
      groups[key], order[#order + 1] = {}, key
    end
    table.insert(groups[key], cell)
  end
  local offers = {}
  for _, key in ipairs(order) do
    local fitting = {}
    for _, cell in ipairs(groups[key]) do
      local tuned = nil
      local function plan(at)
        tuned = tuned or cells.tune(cell.cell)
        return pricing.plan(ctx, cell.cell, tuned, at)
      end
      fitting[#fitting + 1] = { claim_s = 1 / cell.rate, rank = cell.rank, cell = cell,
        build = plan }
    end
    local made, seconds, chosen = candidates.best(fitting, tries)
    if made then
      local cell = chosen.cell
      offers[#offers + 1] = { type = cell.type, gpus = cell.gpus, rate = 1 / seconds,
        plan = chosen.build }
    end
  end
  return offers
end

return pricing
