-- The Cells of a run's job on its cluster (Crius, Xue et al., arXiv 2403.16125, sections 4 and 5):
-- those that fit, the plan of one on any block of its type's devices, and those that a scheduler of
-- jobs chooses from.
local candidates = require "candidates"
local cell_cost = require "cell_cost"
local cells = require "cells"
local grids = require "grids"
local numbers = require "numbers"
local prices = require "prices"

local job_cells = {}

local SEARCH_SHARE = 0.6 -- of the time limit

--- Numbers of GPUs that a job may get of `n`, the largest first: half of, as many as and twice what
-- it asks for, in powers of two; where it asks for none, all of them and halves of that.
local function grants(n, asked, halvings)
  local sizes = numbers.powers(n)
  local out = {}
  local last = #sizes
  local first = math.max(1, #sizes - halvings)
  if asked then
    local place = #numbers.powers(asked)
    last = math.min(#sizes, place + 1)
    first = math.max(1, place - 1)
  end
  for k = last, first, -1 do
    out[#out + 1] = sizes[k]
  end
  return out
end

--- Adds the Cell with the least recomputation with which it fits, estimated, to the list.
local function add_cell(ctx, list, type, gpus, n_stages, micro_batch, tp_fits)
  for _, recompute in ipairs { "none", "selective", "full" } do
    local cell = cell_cost.cell(ctx, type, gpus, n_stages,
      { micro_batch = micro_batch, recompute = recompute, tp_fits = tp_fits })
    local estimate = cell and cells.estimate(cell)
    if estimate then
      list[#list + 1] = { type = type.kind, gpus = gpus, rate = 1 / estimate.seconds, cell = cell,
        rank = #list + 1 }
      return
    end
  end
end

--- All Cells of the job that fit, as a list of { type = kind, gpus, rate = estimated iterations per
-- second, cell, rank }; fewer where the run is told to end. `types` are those of inventory.types,
-- `asked` is the number of GPUs that the job asks for, nil where it asks for none.
function job_cells.all(ctx, types, asked)
  local list = {}
  local layers = ctx.model:layers()
  local tp_fits = {}
  for _, type in ipairs(types) do
    for _, tp in ipairs(numbers.divisors(type.size)) do
      tp_fits[tp] = grids.tp_fits(layers, tp)
    end
    for _, gpus in ipairs(grants(#type.devices, asked, ctx.options.halvings)) do
      for _, n_stages in ipairs(numbers.powers(math.min(gpus, ctx.model.n_layers))) do
        for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
          if #list > 0 and hv.stopping(SEARCH_SHARE) then
            return list
          end
          if ctx.job.global_batch % micro_batch == 0 then
            add_cell(ctx, list, type, gpus, n_stages, micro_batch, tp_fits)
          end
        end
      end
    end
  end
  return list
end

--- The plan of a Cell with the choice of cells.tune, on the devices of its type from `at` on (1
-- where it is left out).
function job_cells.plan(ctx, cell, tuned, at)
  local rows = {}
  local next_device = at or 1
  for s, stage in ipairs(cell.stages) do
    local dp, tp = tuned.choice[s][1], tuned.choice[s][2]
    local ids = {}
    for i in ipairs(stage.devices) do
      ids[i] = cell.type.devices[next_device].id
      next_device = next_device + 1
    end
    local keys = {
      devices = ctx.cluster:address(ids),
      layers = { stage.range[1] - 1, stage.range[2] },
      dp = dp > 1 and dp or nil,
    }
    rows[s] = prices.stage_keys(
      { tp = tp, recompute = cell.recompute, sequence_parallel = tp > 1 }, keys)
  end
  return { micro_batch = cell.micro_batch, schedule = { name = "1f1b" },
    replicas = { { micro_batches = cell.micro_batches, stages = rows } } }
end

--- The Cells of the job by type and number of GPUs: a list of lists.
local function grouped(ctx, types, asked)
  local groups, by_key = {}, {}
  for _, row in ipairs(job_cells.all(ctx, types, asked)) do
    local key = row.type .. "/" .. row.gpus
    if not by_key[key] then
      by_key[key] = {}
      groups[#groups + 1] = by_key[key]
    end
    table.insert(by_key[key], row)
  end
  return groups
end

--- The fastest tuned Cell of each type and number of GPUs by simulation, of the `tries` best
-- estimates, as queue.play takes them: a list of { type, gpus, rate = simulated iterations per
-- second, plan = function(at) }.
function job_cells.offers(ctx, types, tries, asked)
  local offers = {}
  for _, group in ipairs(grouped(ctx, types, asked)) do
    local fitting = {}
    for _, row in ipairs(group) do
      local tuned
      local function build(at)
        tuned = tuned or cells.tune(row.cell)
        return job_cells.plan(ctx, row.cell, tuned, at)
      end
      fitting[#fitting + 1] = { claim_s = 1 / row.rate, rank = row.rank, build = build }
    end
    local made, seconds, chosen = candidates.best(fitting, tries)
    if made then
      offers[#offers + 1] = { type = group[1].type, gpus = group[1].gpus, rate = 1 / seconds,
        plan = chosen.build }
    end
  end
  return offers
end

return job_cells
