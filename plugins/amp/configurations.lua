-- The configurations that AMP compares (Li et al., NeurIPS 2022): degrees, placement of the ranks
-- on the devices (section 3.4), and micro-batch.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local pipeline = require "pipeline"
local search = require "search"

local configurations = {}

--- The distinct pipelines of a configuration as pipeline.joined gives them, and how many pipelines
-- there are. Together "stages": the dp ranks of a stage are neighbours, and all pipelines are one
-- row whose stages have dp ranks. Together "pipelines": the stages of a pipeline are neighbours.
local function pipelines_of(configuration)
  local tp, dp, pp = configuration.tp, configuration.dp, configuration.pp
  local stages_together = configuration.together == "stages"
  local stage_size = stages_together and tp * dp or tp
  local rows = {}
  for r = 1, #configuration.order // (stage_size * pp) do
    rows[r] = {}
    for s = 1, pp do
      local first = ((r - 1) * pp + s - 1) * stage_size + 1
      rows[r][s] = {
        devices = numbers.slice(configuration.order, first, stage_size),
        tp = tp,
        dp = stages_together and dp or 1,
        zero = configuration.zero,
        holders = dp,
      }
    end
  end
  return pipeline.joined(rows), #rows
end

--- Tensor degrees that divide the nodes and split every layer.
local function tensor_degrees(nodes, layers)
  local degrees = {}
  for _, tp in ipairs(numbers.divisors(inventory.node_size(nodes))) do
    if grids.tp_fits(layers, tp) then
      degrees[#degrees + 1] = tp
    end
  end
  return degrees
end

--- Whether the degrees divide the devices and the batch. With dp 1 both placements are the same, of
-- which "stages" counts.
local function is_possible(configuration, n_devices, n_layers, global_batch)
  local tp, dp, pp = configuration.tp, configuration.dp, configuration.pp
  return tp * dp * pp == n_devices and pp <= n_layers
    and global_batch % (dp * configuration.micro_batch) == 0
    and (dp > 1 or configuration.together == "stages")
end

--- Adds pipelines, numbers of sequences and the lower bound, as pipeline.within_bound takes them.
-- `known` holds the pipelines of configurations that differ in the micro-batch only.
local function complete(ctx, configuration, known, order_number)
  local key = ("%d/%d/%s/%s"):format(configuration.tp, configuration.dp, configuration.together,
    order_number)
  known[key] = known[key] or { pipelines_of(configuration) }
  configuration.list = known[key][1]
  configuration.pipelines = known[key][2]
  configuration.entering = configuration.micro_batch
  if configuration.together == "stages" then
    configuration.entering = configuration.micro_batch * configuration.dp
  end
  configuration.total = ctx.job.global_batch // configuration.entering
  pipeline.set(configuration.list, configuration.micro_batch, "none")
  configuration.bound = pipeline.bound(ctx, configuration.list, configuration.total)
end

--- All configurations on these nodes, in the order of search.product, until a share of the run's
-- time is used.
function configurations.all(ctx, nodes)
  local layers = ctx.model:layers()
  local n_devices = 0
  for _, node in ipairs(nodes) do
    n_devices = n_devices + #node.ids
  end
  local orders = inventory.orders(nodes)
  local order_numbers = {}
  for i, order in ipairs(orders) do
    order_numbers[order] = i
  end
  local outputs = hv.cost.layers { kinds = { nodes[1].kind }, micro_batch = 1 }:sizes "output"
  local list, known = {}, {}
  for values in candidates.in_time(search.product {
    tensor_degrees(nodes, layers), numbers.divisors(n_devices),
    numbers.powers(ctx.options.micro_batch), orders, { "stages", "pipelines" },
  }) do
    local configuration = {
      tp = values[1], dp = values[2], pp = n_devices // (values[1] * values[2]),
      micro_batch = values[3], order = values[4], together = values[5],
      zero = ctx.options.zero, values = values, outputs = outputs,
    }
    if is_possible(configuration, n_devices, #layers, ctx.job.global_batch) then
      complete(ctx, configuration, known, order_numbers[configuration.order])
      list[#list + 1] = configuration
      configuration.rank = #list
    end
  end
  return list
end

--- The configurations of the list that differ from this one in exactly one value.
function configurations.neighbours(list, configuration)
  local near = {}
  for _, other in ipairs(list) do
    local same = 0
    for i, value in ipairs(configuration.values) do
      if other.values[i] == value then
        same = same + 1
      end
    end
    if same == #configuration.values - 1 then
      near[#near + 1] = other
    end
  end
  return near
end

return configurations
