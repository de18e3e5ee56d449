-- Tessel (Lin et al., HPCA 2024): the order of the blocks of any placement, also of blocks that
-- hold several devices at once. A repeating middle of shortest period within the devices' memory is
-- searched, then warm-up and cool-down are laid out around it. The paper takes placements as given:
-- here two of its shapes are tried, V (a chain of stages) and M (embedding and head, which a large
-- vocabulary makes heavy, on all devices; the passes of the head are one block). Solvers differ:
-- the paper uses Z3, here it is branch and bound over offsets of micro-batches and orders
-- (hv.sim.repetend), whose best so far is taken after 200,000 branches.
local blocks = require "blocks"
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"
local reasons = require "reasons"

local MOST_STAGES = { V = 8, M = 4 } -- what the search does within a second
local LAYOUTS = 10 -- placements, in the order of their bound, whose repetend is searched

--- Stages of a shape on p units, without prices: {units, layers, embedding, head}.
local function shape_of(n_layers, p, shape)
  local list, all = {}, {}
  for unit, range in ipairs(numbers.ranges(numbers.even(n_layers, p))) do
    all[unit] = unit
    list[unit] = { units = { unit }, layers = range }
  end
  if shape == "M" then
    for _, stage in ipairs(list) do
      stage.embedding, stage.head = false, false
    end
    list[1].head, list[p].embedding = nil, nil -- only what they would have is said
    table.insert(list, 1, { units = all, layers = { 0, 0 }, embedding = true })
    list[#list + 1] = { units = all, layers = { n_layers, n_layers }, head = true,
      joined = true }
  end
  return list
end

--- Degrees of a stage on so many units: a block on several splits tensors inside a node, else data.
local function degrees_of(world, c, n_units)
  local tp = c.tp * n_units
  if tp <= world.node_size and grids.tp_fits(world.layers, tp) then
    return tp, c.dp
  end
  return c.tp, c.dp * n_units
end

--- The stages of a choice with the keys of a plan and their prices; nil where one does not fit.
local function priced(ctx, world, c)
  local stages = shape_of(ctx.model.n_layers, c.p, c.shape)
  local size, room = c.tp * c.dp, {}
  for _, stage in ipairs(stages) do
    local first, n = (stage.units[1] - 1) * size + 1, #stage.units * size
    local tp, dp = degrees_of(world, c, #stage.units)
    if c.batch % dp ~= 0 then
      return nil
    end
    stage.keys = { devices = ctx.cluster:address(numbers.slice(world.ids, first, n)),
      layers = stage.layers, embedding = stage.embedding, head = stage.head, tp = tp, dp = dp,
      sequence_parallel = tp > 1 or nil,
      recompute = c.recompute ~= "none" and stage.layers[1] < stage.layers[2] and c.recompute
        or nil }
    local question = { micro_batch = c.batch, in_flight = 1 }
    for key, value in pairs(stage.keys) do
      question[key] = value
    end
    local pass = hv.cost.stage(question)
    stage.forward_s, stage.backward_s = pass.forward_s, pass.backward_s
    stage.memory = pass.memory.activation_bytes * (1 + pass.memory.fragmentation)
    for _, unit in ipairs(stage.units) do
      room[unit] = room[unit] or pass.memory.limit_bytes - pass.memory.overhead
      room[unit] = room[unit] - (pass.memory.peak_bytes - pass.memory.overhead - stage.memory)
    end
  end
  for _, bytes in ipairs(room) do
    if bytes < 0 then
      return nil
    end
  end
  return stages, room
end

--- All choices {shape, p, tp, dp, batch, micro_batches, recompute} with their stages, by bound.
local function placements(ctx, world)
  local list = {}
  local function add(c)
    local own = {}
    for key, value in pairs(c) do
      own[key] = value
    end
    own.stages, own.room = priced(ctx, world, own)
    if own.stages then
      own.bound_s = (own.micro_batches - 1) * blocks.bound_s(own.stages)
      for _, stage in ipairs(own.stages) do -- the first micro-batch passes all of them
        own.bound_s = own.bound_s + stage.forward_s + stage.backward_s
      end
      own.rank = #list + 1
      list[own.rank] = own
    end
  end
  for _, shape in ipairs(world.shapes) do
    for p = 2, math.min(MOST_STAGES[shape], ctx.model.n_layers) do
      for _, tp in ipairs(numbers.powers(world.node_size)) do
        for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
          local dp = #world.ids // (p * tp)
          dp = dp > 0 and grids.usable_dp(ctx.job.global_batch, dp, micro_batch)
          local fits = dp and grids.tp_fits(world.layers, tp) and not hv.stopping(0.3)
          for _, recompute in ipairs(fits and { "none", "selective", "full" } or {}) do
            add { shape = shape, p = p, tp = tp, dp = dp, batch = micro_batch * dp,
              micro_batches = ctx.job.global_batch // (micro_batch * dp), recompute = recompute }
          end
        end
      end
    end
  end
  table.sort(list, function(a, b)
    if a.bound_s ~= b.bound_s then
      return a.bound_s < b.bound_s
    end
    return a.rank < b.rank
  end)
  return list
end

--- The plan of a choice and the layout of its runs.
local function plan_of(c, runs)
  local units = blocks.order(c.stages, runs, c.p)
  local stages, order = {}, {}
  for s, stage in ipairs(c.stages) do
    stages[s] = stage.keys
  end
  for _, list in ipairs(units) do -- one per device of a unit, or per stage of a chain
    for _ = 1, c.shape == "M" and c.tp * c.dp or 1 do
      order[#order + 1] = list
    end
  end
  return { micro_batch = c.batch, schedule = { name = "explicit", order = order },
    replicas = { { micro_batches = c.micro_batches, stages = stages } } }
end

local function plan(ctx)
  local world, why = inventory.world(ctx)
  if not world then
    return nil, why
  end
  local has_ends = world.layers[1].heads ~= nil -- measured layers have no embedding of their own
  world.shapes = ctx.options.shape == "any" and (has_ends and { "V", "M" } or { "V" })
    or { ctx.options.shape }
  local all, searched = candidates.new(), 0
  for _, c in ipairs(placements(ctx, world)) do
    if searched >= LAYOUTS or hv.stopping(0.6) then
      break
    end
    searched = searched + 1
    hv.progress(searched / LAYOUTS, ("%s of %d stages"):format(c.shape, c.p))
    local found, none = hv.sim.repetend { blocks = (blocks.of(c.stages)), limit = c.room,
      most = ctx.options.repetend, micro_batches = c.micro_batches }
    all.add(found and { claim_s = found.makespan, build = function()
      return plan_of(c, found.runs)
    end }, none, 0)
  end
  if #all.list == 0 then
    return nil, reasons.too_small(ctx, world.devices, "no placement of up to 8 stages")
  end
  return all.best(ctx.options.tries)
end

--- The lists of an order without those that say the same, and the number of each list among them.
local function unlike_lists(order)
  local list, number, known = {}, {}, {}
  for l, tokens in ipairs(order) do
    local text = table.concat(tokens, " ")
    if not known[text] then
      list[#list + 1] = tokens
      known[text] = #list
    end
    number[l] = known[text]
  end
  return list, number
end

--- The end of the plan's order with the times of its stages alone.
local function claim(made, ctx)
  made = prices.table_of(made)
  local rows, stages, place, n_places = made.replicas[1].stages, {}, {}, 0
  local order, number = unlike_lists(made.schedule.order)
  local is_shared = #made.schedule.order > #rows -- a list per device, in order of first mention
  for s, stage in ipairs(rows) do
    local pass, seen = prices.stage(ctx, made, 1, s), {}
    stages[s] = { forward_s = pass.forward_s, backward_s = pass.backward_s, units = {} }
    for _, id in ipairs(is_shared and ctx.cluster:ids(stage.devices) or { s }) do
      n_places = place[id] and n_places or n_places + 1
      place[id] = place[id] or n_places
      local list = number[place[id]]
      if not seen[list] then
        seen[list] = true
        table.insert(stages[s].units, list)
      end
    end
  end
  return { iteration_s = blocks.makespan(stages, order, function(s) return stages[s].units end),
    terms = { period_bound_s = blocks.bound_s(stages) },
    formula = "warm-up + repetends + cool-down of the blocks (Tessel, section IV)",
    leaves_out = "transfers between blocks, and the reduction of gradients" }
end

return {
  api = 1, id = "tessel", title = "Tessel", kind = "pipeline",
  system = "Tessel: Boosting Distributed Execution of Large DNN Models via Flexible Schedule "
    .. "Search",
  venue = "HPCA", year = 2024, reference = "arXiv:2311.15269",
  summary = "The order of blocks, also of blocks on several devices, by search of a repeating "
    .. "middle.",
  needs = { model = "layers" }, effort = "quick",
  sets = { ["schedule.name"] = "explicit" },
  searches = { "order of all blocks", "shape of the placement", "stages", "degrees", "micro-batch",
    "recomputation" },
  verified = { "period of blocks on all devices [D]", "micro-batches in its repetend [D]",
    "period by the judge [D]", "200 random placements against enumeration [D]" },
  options = {
    { key = "shape", type = "choice", choices = { "any", "V", "M" }, default = "any",
      help = "V: a chain of stages; M: embedding and head on all devices besides" },
    { key = "repetend", type = "integer", default = 8, min = 1, max = 63,
      help = "largest number of micro-batches in the repeating middle" },
    { key = "micro_batch", type = "integer", default = 8, min = 1, max = 4096,
      help = "largest micro-batch of a rank in sequences; powers of two up to it are tried" },
    candidates.tries_option(6),
  },
  plan = plan, claim = claim,
}
