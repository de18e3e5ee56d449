-- DT-FM (Yuan et al., NeurIPS 2022): which of many equal devices behind slow, unequal links holds
-- which stage of which replica. Section 3: COMM = DATAP + 2 PIPEP, where DATAP is the slowest
-- sharded parameter server of a stage's replicas, and PIPEP the open-path travelling salesman
-- problem over the stages, whose distance is a bottleneck perfect matching. Section 4: a genetic
-- algorithm with cyclic partitioning as local search. As in the paper, compute time is no part of
-- the cost.
local candidates = require "candidates"
local communication = require "communication"
local grids = require "grids"
local inventory = require "inventory"
local links = require "links"
local network = require "network"
local numbers = require "numbers"
local pipeline = require "pipeline"
local placement = require "placement"
local prices = require "prices"

local TRIES_OF_BLOCKS = 4 -- plans of a cluster placed in blocks that are simulated
local LARGEST_MICRO_BATCH = 8
-- Share of the memory above which more recomputation is tried too, because layers differ.
local SPARE_FRAC = 0.95

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

--- Adds the candidates of instance.stages stages: one placement, every micro-batch; gives the
-- reason of the last one that does not fit.
local function add_candidates(ctx, list, instance, tp)
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
      reason = add_candidates(ctx, list, own, tp) or reason
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
  }
end

return {
  api = 1, id = "dtfm", title = "DT-FM", kind = "hetero",
  system = "Decentralized Training of Foundation Models in Heterogeneous Environments, "
    .. "NeurIPS 2022",
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
