-- The plans of a placement: even layers, every micro-batch, as little recomputation as fits.
local communication = require "communication"
local numbers = require "numbers"
local pipeline = require "pipeline"
local placement = require "placement"
local prices = require "prices"

local LARGEST_MICRO_BATCH = 8
-- Share of the memory above which more recomputation is tried too, because layers differ.
local SPARE_FRAC = 0.95

local placed_plans = {}

--- The stages {devices, tp} of a placement for pipeline.tables.
local function stages_of(instance, rows, tp)
  local stages = {}
  for s, row in ipairs(rows) do
    stages[s] = { devices = {}, tp = tp }
    for i, v in ipairs(row) do
      stages[s].devices[i] = { kind = instance.units[v].kind }
    end
  end
  return stages
end

--- Do even layers fit with the micro-batch and recomputation of `setting`? Then, whether memory is
-- to spare; else the reason.
local function fits(ctx, stages, setting)
  local ranges = numbers.ranges(numbers.even(ctx.model.n_layers, #stages))
  local is_to_spare = true
  for s, stage in ipairs(stages) do
    stage.micro_batch = setting.micro_batch
    stage.recompute = setting.recompute
    local in_flight = math.min(#stages - s + 1, setting.micro_batches)
    local tables = pipeline.tables(ctx, stage, in_flight)
    local need_bytes = 0
    for layer = ranges[s][1] + 1, ranges[s][2] do
      need_bytes = need_bytes + tables.held[layer]
    end
    if need_bytes > tables.room then
      return false, prices.short(ctx, s, need_bytes, stage.devices[1])
    end
    is_to_spare = is_to_spare and need_bytes <= SPARE_FRAC * tables.room
  end
  return true, is_to_spare
end

--- The plan of a placement with even layers.
local function plan_of(ctx, instance, rows, tp, setting)
  local ranges = numbers.ranges(numbers.even(ctx.model.n_layers, #rows))
  local keys = { tp = tp, recompute = setting.recompute, sequence_parallel = tp > 1 }
  local stages = {}
  for s, row in ipairs(rows) do
    local ids = {}
    for _, v in ipairs(row) do
      local own = instance.units[v].ids
      table.move(own, 1, #own, #ids + 1, ids)
    end
    stages[s] = prices.stage_keys(keys,
      { devices = ctx.cluster:address(ids), layers = ranges[s] })
  end
  return {
    micro_batch = setting.micro_batch,
    schedule = { name = "1f1b" },
    sync = { kind = "ps", servers = "sharded" },
    replicas = { { count = setting.replicas, micro_batches = setting.micro_batches,
      stages = stages } },
  }
end

--- Adds the candidates of one placement and micro-batch, with as little recomputation as fits;
-- gives the reason of the last one that does not fit.
local function add_settings(ctx, list, placed, micro_batch)
  local reason
  for _, recompute in ipairs { "none", "selective", "full" } do
    local setting = { micro_batch = micro_batch, recompute = recompute,
      replicas = placed.replicas,
      micro_batches = ctx.job.global_batch // (placed.replicas * micro_batch) }
    local ok, detail = fits(ctx, placed.stages, setting)
    if ok then
      list[#list + 1] = { claim_s = placed.communication_s, rank = #list + 1,
        build = function()
          return plan_of(ctx, placed.instance, placed.rows, placed.tp, setting)
        end }
    else
      reason = detail or reason
    end
    local is_to_spare = ok and detail
    if is_to_spare then
      break
    end
  end
  return reason
end

--- Adds the candidates of an instance with instance.stages stages and `tp` devices per vertex to a
-- list: one placement, every micro-batch. Gives the reason of the last one that does not fit, or
-- nil.
function placed_plans.add(ctx, list, instance, tp)
  local replicas = #instance.class // instance.stages * (instance.block or 1)
  local batch = ctx.job.global_batch
  local own = prices.chain(ctx, instance.units[1].kind, { tp = tp, micro_batch = 1 })
  communication.set_bytes(instance,
    prices.gradient_bytes(ctx, own, 1, own.n) / instance.stages,
    own.output_bytes * (batch // replicas) / tp)
  local groups, seconds, order = placement.place(instance)
  local rows = placement.wired(instance, groups, order)
  local placed = { instance = instance, rows = rows, tp = tp, replicas = replicas,
    communication_s = seconds[1], stages = stages_of(instance, rows, tp) }
  local reason
  for _, micro_batch in ipairs(numbers.powers(LARGEST_MICRO_BATCH)) do
    if batch % (replicas * micro_batch) == 0 then
      reason = add_settings(ctx, list, placed, micro_batch) or reason
    end
  end
  return reason
end

return placed_plans
