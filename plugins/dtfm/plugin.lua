-- DT-FM (Yuan et al., NeurIPS 2022): which of many equal devices behind slow, unequal links holds
-- which stage of which replica. Section 3: COMM = DATAP + 2 PIPEP, where DATAP is the slowest
-- sharded parameter server of a stage's replicas, and PIPEP the open-path travelling salesman
-- problem over the stages, whose distance is a bottleneck perfect matching. Section 4: a genetic
-- algorithm with cyclic partitioning as local search. As in the paper, compute time is no part of
-- the cost.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local network = require "network"
local placed_plans = require "placed_plans"
local prices = require "prices"

local TRIES_OF_BLOCKS = 4 -- plans of a cluster placed in blocks that are simulated

--- The nodes of the usable devices. The list of all devices, which is large, ends with this
-- function.
local function nodes_of(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  return inventory.nodes(devices)
end

--- Why no number of stages gives a placement.
local function no_division(ctx, instance)
  local n_units = #instance.class * (instance.block or 1)
  local subject
  if ctx.options.stages == 0 then
    subject = "no number of stages divides"
  else
    subject = ctx.options.stages .. " stages do not divide"
  end
  return ("%s %d units into replicas that divide the batch"):format(subject, n_units)
end

--- The best plan with `tp` devices placed together, which are tensor parallel; or nil and why.
local function best_placement(ctx, nodes, tp)
  local options = ctx.options
  local instance = network.of_cluster(ctx, nodes, tp, options.blocks, options.budget)
  local list = {}
  local reason
  for stages = 1, math.min(ctx.model.n_layers, #instance.class) do
    local is_wanted = options.stages == 0 or options.stages == stages
    local own = is_wanted and not hv.stopping() and network.for_stages(ctx, instance, stages)
    if own then
      hv.progress(stages / #instance.class, stages .. " stages")
      own.stages = stages
      reason = placed_plans.add(ctx, list, own, tp) or reason
    end
  end
  if #list > 0 then
    return candidates.best(list, instance.block and TRIES_OF_BLOCKS or #list)
  end
  if reason then
    return nil, "even layers on equal devices: " .. reason
  end
  return nil, no_division(ctx, instance)
end

local function plan(ctx)
  local nodes, no_nodes = nodes_of(ctx)
  if not nodes then
    return nil, no_nodes
  end
  local n_devices = 0
  for _, node in ipairs(nodes) do
    n_devices = n_devices + #node.ids
  end
  local largest_tp = grids.largest_tp(ctx.model:layers(), inventory.node_size(nodes), 1024)
  local tp = n_devices > ctx.options.most and largest_tp or 1
  local best, why = best_placement(ctx, nodes, tp)
  if best or tp == largest_tp or hv.stopping() then
    return best, why
  end
  return best_placement(ctx, nodes, largest_tp)
end

--- Seconds of the slowest hop from the devices `before` to those of a stage; 0 where there is none
-- before.
local function slowest_hop_s(ctx, before, heads, bytes)
  local slowest = 0
  for i, id in ipairs(before and heads or {}) do
    slowest = math.max(slowest, links.seconds(ctx, before[i], id, bytes))
  end
  return slowest
end

--- COMM of the plan as it stands: communication only.
local function claim(made, ctx)
  made = prices.table_of(made)
  local replica = made.replicas[1]
  local data_s = 0
  local pipeline_s = 0
  local before
  for _, stage in ipairs(replica.stages) do
    local tp = stage.tp or 1
    local ids = ctx.cluster:ids(stage.devices)
    local heads = {} -- the first device of every tensor-parallel group
    for i = 1, #ids, tp do
      heads[#heads + 1] = ids[i]
    end
    local own = prices.chain(ctx, prices.kinds(ctx)[ids[1]],
      { tp = stage.tp, micro_batch = made.micro_batch })
    local gradient_bytes = prices.gradient_bytes(ctx, own, stage.layers[1] + 1, stage.layers[2])
    local sent_bytes = own.output_bytes * replica.micro_batches / tp
    data_s = math.max(data_s, links.exchange(ctx, heads, gradient_bytes / #heads))
    pipeline_s = pipeline_s + slowest_hop_s(ctx, before, heads, sent_bytes)
    before = heads
  end
  return {
    communication_s = data_s + 2 * pipeline_s,
    terms = { data_s = data_s, pipeline_s = pipeline_s },
    formula = "COMM = DATAP + 2 PIPEP, communication only (DT-FM, section 3)",
    leaves_out = "all computation and the overlap of communication with it",
  }
end

return {
  api = 1, id = "dtfm", title = "DT-FM", kind = "hetero",
  system = "Decentralized Training of Foundation Models in Heterogeneous Environments, "
    .. "NeurIPS 2022", year = 2022,
  reference = "arXiv:2206.01288",
  summary = "Equal stages placed on unequal links: bottleneck matchings, open TSP, genetic search.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "stages", type = "integer", default = 0, min = 0, max = 1024,
      help = "number of pipeline stages; 0: the best of all" },
    { key = "budget", type = "integer", default = 100, min = 2, max = 100000,
      help = "placements that are evaluated per number of stages" },
    { key = "most", type = "integer", default = 64, min = 1, max = 512,
      help = "number of devices up to which each is placed alone; above, or where no device alone "
        .. "holds its layers, tensor-parallel groups inside nodes are placed" },
    { key = "blocks", type = "integer", default = 160, min = 16, max = 4096,
      help = "number of nodes up to which each is placed alone; above, blocks of equal nodes are "
        .. "placed, at most that many" },
  },
  plan = plan,
  claim = claim,
}
