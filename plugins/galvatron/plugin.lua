-- Galvatron (Miao et al., VLDB 2023; Hetu-Galvatron): pipeline stages of equal numbers of devices.
-- Inside each a dynamic program over layers, memory and strategies (tensor degree, data degree,
-- what is sharded, recomputation) respects the memory of the devices; then the pipeline's equation
-- decides among numbers of stages and of micro-batches. Embedding and head have the degrees of the
-- layers beside them. The paper has equal devices; where stages differ in speed, a cut of the
-- layers by speed is tried too.
local candidates = require "candidates"
local grids = require "grids"
local instance = require "instance"
local inventory = require "inventory"
local iteration_time = require "iteration_time"
local layer_dp = require "layer_dp"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local strategies = require "strategies"

local LARGEST_TP = 64

--- Layers per stage: even, and by the speeds of the stages where that gives one of them more.
local function divisions(ctx, stages)
  local n_layers = ctx.model.n_layers
  local even = numbers.even(n_layers, #stages)
  local time_s = {}
  for s, devices in ipairs(stages) do
    time_s[s] = pipeline.tables(ctx, { devices = devices, micro_batch = 1 }, 1).total
  end
  local by_speed = hv.opt.distribute { total = n_layers, time = time_s,
    min = numbers.even(#stages, #stages) }
  if by_speed and math.max(table.unpack(by_speed.counts)) > even[1] then
    return { even, by_speed.counts }
  end
  return { even }
end

--- What the layers of a stage recompute, as a plan file has it.
local function recompute_of(choice)
  local levels = {}
  local recomputed = 0
  for l, strategy in ipairs(choice) do
    levels[l] = "none"
    if strategy.full then
      levels[l] = "full"
      recomputed = recomputed + 1
    end
  end
  if recomputed == 0 then
    return "none"
  elseif recomputed == #levels then
    return "full"
  end
  return levels
end

--- The keys of a strategy's degrees, as a plan file has them.
local function degree_keys(strategy, keys)
  keys.dp = strategy.dp > 1 and strategy.dp or nil
  return prices.stage_keys({ tp = strategy.tp, zero = strategy.zero,
    sequence_parallel = strategy.tp > 1, recompute = "none" }, keys)
end

local function same_degrees(a, b)
  return a.tp == b.tp and a.dp == b.dp and a.zero == b.zero
end

--- The runs of layers whose degrees are not those of the stage, its first layer's; nil: there are
-- none.
local function degrees_of(choice, first)
  local entries = {}
  local from = 1
  for l = 2, #choice + 1 do
    if not choice[l] or not same_degrees(choice[l], choice[from]) then
      if not same_degrees(choice[from], choice[1]) then
        entries[#entries + 1] = degree_keys(choice[from],
          { layers = { first + from - 1, first + l - 1 } })
      end
      from = l
    end
  end
  return #entries > 0 and entries or nil
end

--- The plan of the stages that layer_dp.stages found.
local function plan_of(ctx, stages, counts, chunks, found)
  local rows = {}
  local ranges = numbers.ranges(counts)
  for s, row in ipairs(found.stages) do
    local ids = {}
    for i, device in ipairs(stages[s]) do
      ids[i] = device.id
    end
    rows[s] = degree_keys(row.choice[1],
      { layers = ranges[s], devices = ctx.cluster:address(ids) })
    rows[s].degrees = degrees_of(row.choice, ranges[s][1])
    local recompute = recompute_of(row.choice)
    rows[s].recompute = recompute ~= "none" and recompute or nil
  end
  return { micro_batch = ctx.job.global_batch // chunks, schedule = { name = "1f1b" },
    replicas = { { micro_batches = chunks, stages = rows } } }
end

--- The devices in `pp` equal runs; nil where they do not divide.
local function stages_of(devices, pp)
  if #devices % pp ~= 0 then
    return nil
  end
  local stages = {}
  local size = #devices // pp
  for s = 1, pp do
    stages[s] = numbers.slice(devices, (s - 1) * size + 1, size)
  end
  return stages
end

--- Adds the best plans of these stages and layers to the candidates, one for each number of
-- micro-batches; `choose` is a function of layer_dp.
local function add_candidates(ctx, all, stages, counts, largest_tp, reserve_bytes, choose)
  local batch, size = ctx.job.global_batch, #stages[1]
  for _, chunks in ipairs(numbers.divisors(batch)) do
    local list = strategies.all(size, batch // chunks, { tp = math.min(largest_tp, size), sp = 1 })
    local possible = chunks >= #stages and candidates.sizes_fit(chunks, batch // chunks)
    if #list > 0 and possible and not (hv.stopping() and #all.list > 0) then
      local q = instance.of(ctx, stages, chunks, reserve_bytes)
      local found = choose(q, counts, function() return list end)
      if found then
        all.add { claim_s = found.time_s,
          build = function() return plan_of(ctx, stages, counts, chunks, found) end }
      end
    end
  end
end

--- All candidates where `reserve_bytes` of every device stay free.
local function searched(ctx, devices, reserve_bytes, choose)
  local all = candidates.new()
  local largest_tp = grids.largest_tp(ctx.model:layers(),
    inventory.node_size(inventory.nodes(devices)), LARGEST_TP)
  for _, pp in ipairs(grids.depths(#devices, math.min(ctx.options.stages, ctx.model.n_layers))) do
    local stages = stages_of(devices, pp)
    if stages then
      for _, counts in ipairs(divisions(ctx, stages)) do
        add_candidates(ctx, all, stages, counts, largest_tp, reserve_bytes, choose)
      end
    end
  end
  return all
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  -- mixed degrees need more communicators, of which the formula knows nothing: a reserve of their
  -- own, and the simulation decides between the best with and without them, whatever their claims
  local finals = candidates.new()
  for _, choose in ipairs { layer_dp.even_stages, layer_dp.mixed_stages } do
    local all = candidates.within(function(reserve_bytes)
      return searched(ctx, devices, reserve_bytes, choose)
    end)
    local made, reason
    if all then
      made, reason = all.best(ctx.options.tries)
    end
    finals.add(made and { claim_s = 0, build = function() return made end }, reason, 0)
  end
  return finals.best(2, reasons.too_small(ctx, devices, "no pipeline of equal stages"))
end

--- The keys of a plan's stage, or of its entry of degrees, for a layer.
local function keys_at(stage, layer)
  local keys = stage
  for _, entry in ipairs(stage.degrees or {}) do
    if entry.layers[1] <= layer and layer < entry.layers[2] then
      keys = entry
    end
  end
  return keys
end

--- The strategy of each layer of a plan's stage.
local function choice_of(stage)
  local choice = {}
  for l = 1, stage.layers[2] - stage.layers[1] do
    local level = stage.recompute
    if type(level) == "table" then
      level = level[l]
    end
    local keys = keys_at(stage, stage.layers[1] + l - 1)
    choice[l] = { tp = keys.tp or 1, sp = 1, dp = keys.dp or 1, zero = keys.zero or 0,
      full = level == "full" }
  end
  return choice
end

--- Galvatron's iteration time of the plan.
local function claim(made, ctx)
  made = prices.table_of(made)
  local device_of = {}
  for _, device in ipairs(ctx.cluster:devices()) do
    device_of[device.id] = device
  end
  local replica = made.replicas[1]
  local stages, rows = {}, {}
  for s, stage in ipairs(replica.stages) do
    stages[s] = {}
    for i, id in ipairs(ctx.cluster:ids(stage.devices)) do
      stages[s][i] = device_of[id]
    end
    local choice = choice_of(stage)
    rows[s] = { choice = choice, ends = choice[1], head = choice[#choice] }
  end
  local q = instance.of(ctx, stages, replica.micro_batches, 0)
  return {
    iteration_s = iteration_time.of(q, rows),
    formula = "layers' times, then the pipeline's fill and steady state (Galvatron, section 4; "
      .. "its code)",
    leaves_out = "the optimizer's step, and links that several stages share",
  }
end

return {
  api = 1, id = "galvatron", title = "Galvatron", kind = { "hetero", "auto-parallel" },
  system = "Galvatron: Efficient Transformer Training over Multiple GPUs Using Automatic "
    .. "Parallelism, VLDB 2023", year = 2023,
  reference = "doi:10.14778/3570690.3570697",
  summary = "Degrees, sharding and recomputation layer by layer, by dynamic programming over "
    .. "memory.",
  needs = { model = "layers" },
  effort = "medium",
  options = {
    { key = "stages", type = "integer", default = 16, min = 1, max = 1024,
      help = "largest number of pipeline stages" },
    { key = "overlap", type = "number", default = 1.1256, min = 1, max = 4,
      help = "factor by which compute and communication at the same time slow each other down" },
    { key = "tries", type = "integer", default = 48, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the formula" },
  },
  plan = plan,
  claim = claim,
}
