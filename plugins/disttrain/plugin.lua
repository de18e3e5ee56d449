-- DistTrain (Zhang et al., arXiv 2408.04275): encoder, backbone and generator of a multimodal model
-- on GPUs of their own. Section 4: the numbers of GPUs of the three, each with its own tensor and
-- data degrees, so that all keep step; the samples of encoder and generator are spread over all of
-- their GPUs, the backbone is a pipeline. Section 5: samples are dealt to groups by size, the
-- largest first to the least loaded, and the order of micro-batches hides the encoder's varying
-- time. A model with modules names its parts; of other models the first and last layers
-- are taken.
local candidates = require "candidates"
local choices = require "choices"
local gpu_split = require "gpu_split"
local grids = require "grids"
local inventory = require "inventory"
local iteration_time = require "iteration_time"
local micro_batches = require "micro_batches"
local model_parts = require "model_parts"
local numbers = require "numbers"
local pipeline = require "pipeline"
local prices = require "prices"
local reasons = require "reasons"
local sample_time = require "sample_time"

-- devices above which a first plan is sought among few choices, in case time is short
local MANY_DEVICES = 256
-- choices with lengths that are kept for each one without: the formula knows no lengths
local LENGTHS_FACTOR = 5

--- The keys in a plan file of replica g of n of a stage.
local function stage_keys(ctx, c, stage, g, n)
  local size = #stage.devices // n
  local dp = size // stage.tp
  local sequences = c.dp * c.m // n
  local ids = {}
  for i, device in ipairs(numbers.slice(stage.devices, (g - 1) * size + 1, size)) do
    ids[i] = device.id
  end
  local place = model_parts.stage_keys(ctx.model:layers(), stage.from, stage.to)
  local shares
  if sequences % dp ~= 0 then
    shares = numbers.even(sequences, dp)
  end
  return prices.stage_keys(
    { tp = stage.tp, recompute = c.recompute, sequence_parallel = stage.tp > 1 },
    { devices = ctx.cluster:address(ids), layers = place.layers, module = place.module,
      dp = dp > 1 and dp or nil, shares = shares })
end

--- The stages of a choice for n pipelines, with their devices; nil where one does not hold its
-- layers.
local function fitting_stages(ctx, c, n)
  local steps = ctx.job.global_batch // (c.dp * c.m)
  local sequences = c.dp * c.m // n
  local stages = gpu_split.stages(c)
  for s, stage in ipairs(stages) do
    stage.devices = numbers.slice(c.order, stage.before + 1, stage.count)
    stage.micro_batch = math.ceil(sequences / (#stage.devices // n // stage.tp))
    stage.recompute = c.recompute
    local alive = math.min(#stages - s + 1, steps)
    if not pipeline.fits(pipeline.tables(ctx, stage, alive), stage.from, stage.to) then
      return nil
    end
  end
  return stages
end

--- The plan of a choice; nil where a stage does not hold its layers. With several `lists` of
-- micro-batches one pipeline for each, on GPUs of its own.
local function plan_of(ctx, c, lists)
  local n = lists and #lists or 1
  local stages = fitting_stages(ctx, c, n)
  if not stages then
    return nil
  end
  local replicas = {}
  for g = 1, n do
    replicas[g] = { stages = {},
      micro_batches = lists and lists[g] or ctx.job.global_batch // (c.dp * c.m) }
    for s, stage in ipairs(stages) do
      replicas[g].stages[s] = stage_keys(ctx, c, stage, g, n)
    end
  end
  return { micro_batch = c.dp * c.m // n, schedule = { name = "1f1b" }, replicas = replicas }
end

--- Can every data-parallel group of a choice have GPUs of its own?
local function has_own_groups(c)
  if c.dp == 1 then
    return false
  end
  for key in pairs(c.ranges) do
    if key ~= "lm" and c.gpus[key] % (c.dp * c.tp[key]) ~= 0 then
      return false
    end
  end
  return true
end

--- The micro-batches of the job's lengths in one way of section 5; nil where a group would have no
-- GPUs of its own.
local function lists_of(ctx, c, way)
  if not micro_batches.together(way) and not has_own_groups(c) then
    return nil
  end
  local me_s = c.C.me and c.dp * c.tp.me * c.m * c.C.me / c.gpus.me or 0
  local interval
  if me_s > 0 then
    interval = c.C.lm * c.m / c.depth / me_s
  end
  return micro_batches.lists(way, { lengths = hv.lengths(), batch = ctx.job.global_batch,
    dp = c.dp, m = c.m, seed = ctx.seed, interval = interval, depth = c.depth })
end

--- Tensor degrees that divide the nodes and the layers.
local function degrees_of(ctx, nodes)
  local tps = {}
  local node_size = inventory.node_size(nodes)
  for _, tp in ipairs(numbers.powers(math.min(8, node_size))) do
    if node_size % tp == 0 and grids.tp_fits(ctx.model:layers(), tp) then
      tps[#tps + 1] = tp
    end
  end
  return tps
end

--- All choices without recomputation, on each of the orders of the devices.
local function all_choices(ctx, orders, ranges, tps)
  local list = {}
  for _, order in ipairs(orders) do
    choices.add(ctx, list, order, ranges, tps)
  end
  return list
end

--- The ways of section 5 that are tried; nil where samples count as equally long.
local function ways_of(options)
  if not options.lengths or #hv.lengths() <= 1 then
    return nil
  end
  if options.reorder ~= "best" then
    return { options.reorder }
  end
  return { "alike", "alike ordered", "given", "dealt", "ordered" }
end

--- A choice in words, by which it is known.
local function name_of(c)
  return ("%s/%d/%d/%d/%d/%d/%s"):format(tostring(c.order), c.tp.me, c.tp.lm, c.dp, c.depth, c.m,
    c.recompute)
end

--- The simulated choices of a search: try(choice) gives whether its plan fits the memory; best =
-- {made, seconds, choice}, tried = how many keep all rules, reason = of the first one that breaks
-- one.
local function simulated(ctx)
  local all = { tried = 0 }
  local fits = {} -- by name
  function all.try(c)
    local name = name_of(c)
    if fits[name] ~= nil then
      return fits[name]
    end
    local made = plan_of(ctx, c)
    fits[name] = made ~= nil
    if not made then
      return false
    end
    local verdict, why = candidates.judge(made)
    if not verdict then
      all.reason = all.reason or why
      return true
    end
    all.tried = all.tried + 1
    if not all.best or verdict.iteration_s < all.best.seconds then
      all.best = { made = made, seconds = verdict.iteration_s, choice = c }
      hv.incumbent(made)
    end
    return true
  end
  return all
end

--- Simulates choices in turns from both orders of the list, with links free and shared, until
-- `tries` of them fit.
local function try_first(ctx, all, list, tries)
  local function fits(c)
    return fitting_stages(ctx, c, 1) ~= nil
  end
  local queues = { choices.queue(ctx, list, choices.before, fits),
    choices.queue(ctx, list, choices.before_shared, fits) }
  local k = 1
  while #queues > 0 and all.tried < tries and not (all.best and hv.stopping()) do
    local queue = queues[k]
    local c = queue.next()
    if not c then
      table.remove(queues, k)
    else
      hv.progress(all.tried / tries, ("%d splits of %d"):format(all.tried, tries))
      if not all.try(c) then
        queue.full(c)
      end
    end
    k = k % math.max(1, #queues) + 1
  end
end

--- The best of the first choices that fit, by simulation, and from there on the best of its
-- neighbours while there is a better one: the formula knows neither exchanges nor what stages wait
-- for each other. nil and the reason, if any, where none fits.
local function best_choice(ctx, ranges, tps, orders)
  local all = simulated(ctx)
  if #orders[1] > MANY_DEVICES then
    try_first(ctx, all, all_choices(ctx, { orders[1] }, ranges, { tps[#tps] }), 1)
  end
  try_first(ctx, all, all_choices(ctx, orders, ranges, tps), all.tried + ctx.options.tries)
  local from
  while all.best and all.best ~= from and not hv.stopping() do
    from = all.best
    for _, c in ipairs(choices.near(ctx, from.choice, tps, orders)) do
      if hv.stopping() then
        break
      end
      all.try(c)
    end
  end
  return all.best and all.best.made, all.reason
end

--- The first choices that fit in each of the ways, as candidates.
local function fitting_ways(ctx, list, ways)
  local most, fitting, count = ctx.options.tries * LENGTHS_FACTOR, {}, {}
  for _, way in ipairs(ways) do
    count[way] = 0
  end
  local queue = choices.queue(ctx, list, choices.before,
    function(c) return fitting_stages(ctx, c, 1) ~= nil end)
  for c in queue.next do
    if #fitting >= most * #ways or hv.stopping() then
      break
    end
    if not plan_of(ctx, c) then
      queue.full(c)
    else
      for _, way in ipairs(ways) do
        local lists = count[way] < most and lists_of(ctx, c, way)
        local made = lists and plan_of(ctx, c, lists)
        if made then
          count[way] = count[way] + 1
          fitting[#fitting + 1] = { claim_s = c.claim_s, rank = #fitting + 1,
            build = function() return made end }
        end
      end
    end
  end
  return fitting
end

local function plan(ctx)
  local devices, why = inventory.usable(ctx)
  if not devices then
    return nil, why
  end
  local ranges = model_parts.of(ctx.model:layers(), ctx.options)
  if not ranges then
    return nil, ("encoder and generator leave no layer of %d for the backbone"):format(
      ctx.model.n_layers)
  end
  local nodes = inventory.nodes(devices)
  local tps = degrees_of(ctx, nodes)
  local orders = inventory.orders(nodes)
  local ways = ways_of(ctx.options)
  local reason
  if ways then
    local fitting = fitting_ways(ctx, all_choices(ctx, orders, ranges, tps), ways)
    if #fitting > 0 then
      return candidates.best(fitting, #fitting)
    end
  else
    local made
    made, reason = best_choice(ctx, ranges, tps, orders)
    if made then
      return made
    end
  end
  if ways and #ways == 1 then
    return nil, "no split of the GPUs that fits gives several data-parallel groups GPUs of their"
      .. " own"
  end
  return nil, reason or reasons.too_small(ctx, devices, "no split of the GPUs over three modules")
end

--- T_iter of section 4 on the plan's stages: those before the backbone are the encoder, those
-- behind it the generator.
local function claim(made, ctx)
  made = prices.table_of(made)
  local n, kinds, layers = #made.replicas, prices.kinds(ctx), ctx.model:layers()
  local ranges = model_parts.of(layers, ctx.options)
  local first_layer = model_parts.first_layers(layers)
  local q = { C = { lm = 0 }, tp = {}, gpus = {}, depth = 0, batch = ctx.job.global_batch }
  for _, stage in ipairs(made.replicas[1].stages) do
    local ids, stage_kinds = ctx.cluster:ids(stage.devices), {}
    for i, id in ipairs(ids) do
      stage_kinds[i] = kinds[id]
    end
    local base = stage.module and first_layer[stage.module] - 1 or 0
    local range = { base + stage.layers[1] + 1, base + stage.layers[2] }
    local tp = stage.tp or 1
    local stage_s = sample_time.seconds(ctx, range, stage_kinds, tp, stage.recompute)
    if range[2] >= ranges.lm[1] and range[1] <= ranges.lm[2] then
      q.C.lm = q.C.lm + stage_s
      q.dp = n * (stage.dp or 1)
      q.depth = q.depth + 1
    else
      local key = range[2] < ranges.lm[1] and "me" or "mg"
      q.C[key] = stage_s
      q.gpus[key] = n * #ids
      q.tp[key] = tp
    end
  end
  q.m = n * made.micro_batch / q.dp
  local total_s, steady_s = iteration_time.of(q)
  return { iteration_s = total_s,
    terms = { warm_up_s = total_s - steady_s, steady_s = steady_s },
    formula = "warm-up of one micro-batch + steady part of the slowest module"
      .. " (DistTrain, section 4)",
    leaves_out = "transfers between stages, the exchange of gradients and the optimizer's step" }
end

return {
  api = 1,
  id = "disttrain",
  title = "DistTrain",
  kind = "hetero",
  system = "DistTrain: Addressing Model and Data Heterogeneity with Disaggregated Training for"
    .. " MLLMs, 2024", year = 2024,
  reference = "arXiv:2408.04275",
  summary = "Encoder, backbone and generator on GPUs of their own; order of data hides uneven"
    .. " samples.",
  needs = { model = "layers" },
  effort = "slow",
  options = {
    { key = "encoder", type = "integer", default = 0, min = 0, max = 1024,
      help = "first layers that are the encoder of a model without modules; 0: an eighth" },
    { key = "generator", type = "integer", default = 0, min = 0, max = 1024,
      help = "last layers that are the generator of a model without modules; 0: an eighth" },
    { key = "lengths", type = "boolean", default = false,
      help = "samples of the job's sequence_lengths without padding, dealt to groups and ordered" },
    { key = "reorder", type = "choice", choices = { "best", "given", "dealt", "ordered" },
      default = "best",
      help = "with lengths, samples to groups on GPUs of their own: in turns, by size, or by size"
        .. " and in order; best: all ways" },
    { key = "tries", type = "integer", default = 12, min = 1, max = 1000,
      help = "number of fitting splits that are simulated, in the order of the formula" },
  },
  plan = plan,
  claim = claim,
}
