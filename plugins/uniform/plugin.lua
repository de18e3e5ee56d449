-- The common practice: every device counts the same, layers and batch are split evenly, and the
-- degrees are searched. On unequal devices the slowest one sets the pace.
-- The search enumerates tp (powers of two inside a node) x pp x dp x micro-batch x recomputation x
-- ZeRO and ranks the grids by grid_cost; the best few are simulated. A grid that does not need all
-- devices leaves out the last ones in file order. Where no grid fits, the devices of least memory
-- are left out too.
local candidates = require "candidates"
local device_kinds = require "device_kinds"
local grid_cost = require "grid_cost"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"

--- Adds the grids of these degrees to the list: every recomputation, without and with sharded
-- optimizer states.
local function add_grids(ctx, list, devices, degrees)
  local ids = {}
  for i, device in ipairs(devices) do
    ids[i] = device.id
  end
  local n_layers = #ctx.model:layers()
  local tp, pp, dp, micro_batch = degrees.tp, degrees.pp, degrees.dp, degrees.micro_batch
  local kinds = device_kinds.of_stages(devices, pp, tp * dp)
  for _, recompute in ipairs { "none", "selective", "full" } do
    for zero = 0, dp > 1 and 1 or 0 do
      local grid = {
        tp = tp, pp = pp, dp = dp, cp = 1, ep = 1, chunks = 1, zero = zero, ids = ids,
        devices = devices, kinds = kinds, recompute = recompute, micro_batch = micro_batch,
        micro_batches = ctx.job.global_batch // (dp * micro_batch), sequence_parallel = tp > 1,
        counts = numbers.even(n_layers, pp), schedule = "1f1b", rank = #list + 1,
      }
      grid.claim_s, grid.over_bytes = grid_cost.of(ctx, grid)
      function grid.build()
        return grids.plan(ctx, grid)
      end
      list[#list + 1] = grid
    end
  end
end

--- All grids on these devices.
local function grids_on(ctx, devices)
  local list = {}
  local layers = ctx.model:layers()
  local global_batch = ctx.job.global_batch
  local node_size = inventory.node_size(inventory.nodes(devices))
  for _, tp in ipairs(numbers.powers(node_size)) do
    if node_size % tp == 0 and grids.tp_fits(layers, tp) then
      local groups = #devices // tp
      for _, pp in ipairs(grids.depths(groups, #layers)) do
        for _, micro_batch in ipairs(numbers.powers(math.min(16, global_batch))) do
          local dp = grids.usable_dp(global_batch, groups // pp, micro_batch)
          if dp then
            add_grids(ctx, list, devices,
              { tp = tp, pp = pp, dp = dp, micro_batch = micro_batch })
          end
        end
      end
    end
  end
  return list
end

--- The best grid on these devices; nil and a reason, which names how much memory the nearest grid
-- lacks.
local function best_grid(ctx, devices)
  local fitting = {}
  local nearest
  for _, grid in ipairs(grids_on(ctx, devices)) do
    if grid.over_bytes <= 0 then
      fitting[#fitting + 1] = grid
    elseif not nearest or grid.over_bytes < nearest.over_bytes then
      nearest = grid
    end
  end
  if #fitting == 0 then -- its simulation gives the reason
    fitting[1] = nearest
  end
  return candidates.best(fitting, ctx.options.tries)
end

--- The best grid on all devices; where none fits, on those without the kind of least memory, and so
-- on.
local function plan(ctx)
  local devices, why = inventory.priced(ctx)
  if #devices == 0 then
    return nil, why
  end
  local first_reason
  while #devices > 0 do
    local best, reason = best_grid(ctx, devices)
    if best then
      return best
    end
    first_reason = first_reason or reason
    devices = inventory.without_smallest(devices)
  end
  return nil, first_reason
end

--- Eq-P with the stage times of the plan, and the largest all-reduce.
local function claim(made, ctx)
  local total_s, slowest_s, sync_s = prices.claim_terms(ctx, made)
  return {
    iteration_s = total_s, terms = { slowest_stage_s = slowest_s, all_reduce_s = sync_s },
    formula = "Eq-P: sum of stage times + (M - 1) x the slowest stage, and the largest all-reduce",
    leaves_out = "transfers between stages, the optimizer's step, and the overlap of gradients "
      .. "with the backward pass",
  }
end

return {
  api = 1, id = "uniform", title = "Uniform grid", kind = "baseline",
  system = "Megatron-LM with searched degrees", reference = "arXiv:2104.04473",
  summary = "All devices count the same: even layers, even batch, degrees by search.",
  needs = { model = "layers" },
  effort = "quick",
  options = {
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the formula" },
  },
  plan = plan,
  claim = claim,
}
