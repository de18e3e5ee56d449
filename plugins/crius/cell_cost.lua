-- Cells with prices from the run's cost model.
local cells = require "cells"
local links = require "links"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"

local cell_cost = {}

--- Seconds per byte of the all-reduce over the tensor groups of a stage, remembered in the type by
-- where the stage lies.
local function ring_s_per_byte(ctx, type, stage, tp)
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

--- `count` devices of a type from `at` on, remembered in the type.
local function block_of(type, at, count)
  type.blocks = type.blocks or {}
  local key = at * 65536 + count
  type.blocks[key] = type.blocks[key] or numbers.slice(type.devices, at, count)
  return type.blocks[key]
end

--- The devices and layers of each stage.
local function stages_of(type, gpus, ranges)
  local stages = {}
  local at = 1
  for s, count in ipairs(gpus) do
    stages[s] = { devices = block_of(type, at, count), at = at, range = ranges[s] }
    at = at + count
  end
  return stages
end

--- A Cell of cells.lua on `gpus` devices of a type with `n_stages` stages of balanced work; nil
-- where the GPUs do not divide. `choice` has micro_batch, recompute and tp_fits = tensor degrees
-- that the model allows. The Cell has stages, type, micro_batch and recompute besides.
function cell_cost.cell(ctx, type, gpus, n_stages, choice)
  local micro_batch, recompute = choice.micro_batch, choice.recompute
  local whole = prices.chain(ctx, type.kind,
    { tp = 1, micro_batch = 1, recompute = recompute })
  local cut = hv.opt.partition { n = whole.n, parts = n_stages, load = whole.times }
  local counts = cut and cells.gpus(cut.values, gpus)
  if not counts then
    return nil
  end
  local cell = {
    gpus = counts, stages = stages_of(type, counts, cut.stages), type = type,
    micro_batch = micro_batch, recompute = recompute,
    micro_batches = ctx.job.global_batch // micro_batch,
  }
  local kinds = { type.kind }
  function cell.price(s, dp, tp)
    if micro_batch % dp ~= 0 or type.size % tp ~= 0 or not choice.tp_fits[tp] then
      return nil
    end
    local stage = cell.stages[s]
    local first, last = stage.range[1], stage.range[2]
    local row = { devices = stage.devices, kinds = kinds, tp = tp,
      micro_batch = micro_batch // dp, recompute = recompute }
    local tables = pipeline.tables(ctx, row, math.min(n_stages - s + 1, cell.micro_batches))
    if not pipeline.fits(tables, first, last) then
      return nil
    end
    local chain = prices.chain(ctx, type.kind, { tp = tp, micro_batch = micro_batch // dp,
      recompute = recompute, sequence_parallel = tp > 1 })
    local sync_s = ring_s_per_byte(ctx, type, stage, tp)
      * prices.gradient_bytes(ctx, chain, first, last)
    return prices.time(chain, first, last) + sync_s / cell.micro_batches
  end
  return cell
end

return cell_cost
