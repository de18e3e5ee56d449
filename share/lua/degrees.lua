--- Search over degrees (tensor, context, pipeline, data, expert), chunks, micro-batch and further
-- knobs, for families whose systems fix some of them and search the rest.
-- Points that divide nothing evenly, or whose first micro-batch alone exceeds a memory, are left
-- out; the others are simulated in the order of an estimate, until none that is left can be faster.
-- Where the job's routing has many iterations, some of them stand for all until the first few plans
-- are known, which are then simulated whole.
--
-- Prices are those of hv.cost.stage, with its gathers of weights and its memory: a floor or a bound
-- of our own would forget one of them and leave out the right plan. They are kept for the run, so
-- that all rows of a family that run in it price each stage once.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local search = require "search"

local degrees = {}

-- Of many iterations of a routing, those that stand for all, and plans that are simulated whole.
local SOME_ITERATIONS, FINALISTS = 3, 3
local FAR_BETTER = 0.95 -- of the value of the plan simulated whole last

-- Prices by the text of their question, for the run.
local prices = {}

--- A value as a text that is the same for equal values.
local function text_of(value)
  if type(value) ~= "table" then
    return tostring(value)
  end
  local parts = {}
  for key, member in pairs(value) do -- the sandbox sorts the keys
    parts[#parts + 1] = tostring(key) .. "=" .. text_of(member)
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

--- hv.cost.stage, asked once.
local function price(question)
  local key = text_of(question)
  prices[key] = prices[key] or hv.cost.stage(question)
  return prices[key]
end

--- Devices with what tells stages apart: kind, group and zone, node.
local function rows_of(devices)
  local rows = {}
  for i, d in ipairs(devices) do
    rows[i] = { id = d.id, class = ("%s/%s/%s"):format(d.kind, d.group or "", d.zone or ""),
      node = d.node }
  end
  return rows
end

--- A text that is the same for stages of equal devices: runs of one class in one node, equal runs
-- counted.
local function shape_of(rows, from, size)
  local shape, run, last, times = {}, 0, nil, 0
  local function close()
    if last then
      shape[#shape + 1] = last .. "x" .. times
    end
  end
  for i = from, from + size - 1 do
    run = run + 1
    local next_row = i < from + size - 1 and rows[i + 1] or nil
    if not next_row or next_row.class ~= rows[i].class or next_row.node ~= rows[i].node then
      local text = rows[i].class .. ":" .. run
      if text ~= last then
        close()
        last, times = text, 0
      end
      times = times + 1
      run = 0
    end
  end
  close()
  return table.concat(shape, ";")
end

--- The list of an axis: a list, or a function of the devices that gives one; nil stands for {1}.
local function values_of(axis, devices)
  if type(axis) == "function" then
    axis = axis(devices)
  end
  return axis or { 1 }
end

--- A list, or where `given` is above 0 only that value: an option that fixes a degree.
-- @function degrees.fixed
-- @tparam number given value of the option; 0 or nil: searched
-- @tparam any otherwise the list that is searched, or a function that gives it
-- @treturn any {given}, or `otherwise`
-- @units none
-- @raise none
-- @usage assert(require("degrees").fixed(4, { 1, 2 })[1] == 4)
function degrees.fixed(given, otherwise)
  if given and given > 0 then
    return { given }
  end
  return otherwise
end

--- Tensor degrees inside a node: powers of two that divide the nodes and the heads.
-- @function degrees.tensor
-- @tparam handle ctx the run's input
-- @tparam[opt] integer most the largest (no limit)
-- @treturn function of the devices: the list, for the axis `tp` of degrees.search
-- @units none
-- @raise none
-- @usage local list = require("degrees").tensor(ctx, 4)(require("inventory").priced(ctx))
-- assert(list[1] == 1 and list[#list] <= 4)
function degrees.tensor(ctx, most)
  local layers = ctx.model:layers()
  return function(devices)
    local list = {}
    local size = inventory.node_size(inventory.nodes(devices))
    for _, tp in ipairs(numbers.powers(math.min(size, most or size))) do
      if size % tp == 0 and grids.tp_fits(layers, tp) then
        list[#list + 1] = tp
      end
    end
    return list
  end
end

--- Pipeline depths: divisors of the number of devices and powers of two, up to the layers.
-- @function degrees.depths
-- @tparam handle ctx the run's input
-- @tparam[opt] integer most the largest (no limit)
-- @treturn function of the devices: the list, for the axis `pp` of degrees.search
-- @units none
-- @raise none
-- @usage assert(require("degrees").depths(ctx, 1)(ctx.cluster:devices())[1] == 1)
function degrees.depths(ctx, most)
  return function(devices)
    return grids.depths(#devices, math.min(ctx.model.n_layers, most or math.huge))
  end
end

--- Options of a family that searches degrees: `micro_batch`, `recompute`, `tries`, and of the
-- degrees those named. 0 and "auto": searched.
-- @function degrees.options
-- @tparam table names list of tp, cp, ep, pp and chunks
-- @tparam[opt] table ways list of recomputations that are searched (all three); with one there is
-- no option: the system fixes it
-- @treturn table list of {key, type, default, min, max, choices, help}: `options` of a plugin
-- @units none
-- @raise none
-- @usage assert(#require("degrees").options { "tp", "pp" } == 5)
function degrees.options(names, ways)
  ways = ways or { "none", "selective", "full" }
  local words = {
    tp = "tensor-parallel degree", cp = "context-parallel degree", ep = "expert-parallel degree",
    pp = "pipeline stages", chunks = "chunks of layers per stage",
  }
  local rows = {}
  for i, name in ipairs(names) do
    rows[i] = { key = name, type = "integer", default = 0, min = 0, max = 65536,
      help = words[name] .. "; 0: searched" }
  end
  rows[#rows + 1] = { key = "micro_batch", type = "integer", default = 0, min = 0, max = 65536,
    help = "sequences of a micro-batch on one data-parallel rank; 0: searched" }
  if #ways > 1 then
    rows[#rows + 1] = { key = "recompute", type = "choice", default = "auto",
      choices = table.move(ways, 1, #ways, 2, { "auto" }), help = "recomputation; auto: searched" }
  end
  rows[#rows + 1] = { key = "tries", type = "integer", default = 40, min = 1, max = 100000,
    help = "number of fitting plans that are simulated, in the order of an estimate" }
  return rows
end

--- The axes of a search from such options.
-- @function degrees.axes
-- @tparam handle ctx the run's input
-- @tparam table lists what is searched where an option leaves it open: {tp, cp, ep, pp, chunks}
-- @treturn table {tp, cp, ep, pp, chunks, micro_batch, recompute, tries}, for degrees.search
-- @units none
-- @raise none
-- @usage local axes = require("degrees").axes(ctx, { tp = { 1, 2 } })
-- assert(axes.tp[2] == 2)
function degrees.axes(ctx, lists)
  local o = ctx.options
  local axes = { tries = o.tries }
  for _, name in ipairs { "tp", "cp", "ep", "pp", "chunks", "micro_batch" } do
    axes[name] = degrees.fixed(o[name], lists[name])
  end
  if o.recompute and o.recompute ~= "auto" then
    axes.recompute = { o.recompute }
  end
  return axes
end

--- Every tuple {tp, cp, pp, chunks, ep, micro_batch} of the axes, in a fixed order.
local function tuples(ctx, spec, devices)
  local lists = {}
  for i, name in ipairs { "tp", "cp", "pp", "chunks", "ep" } do
    lists[i] = values_of(spec[name], devices)
  end
  lists[6] = values_of(spec.micro_batch or numbers.powers(math.min(16, ctx.job.global_batch)),
    devices)
  return search.product(lists)
end

--- The point of a tuple of degrees, or nil where something does not divide.
local function point_of(ctx, tuple, devices)
  local tp, cp, pp, chunks, ep, micro_batch = table.unpack(tuple)
  local room = #devices // (tp * cp * pp)
  local dp = room > 0 and grids.usable_dp(ctx.job.global_batch, room, micro_batch)
  if not dp or pp * chunks > ctx.model.n_layers or dp * cp % ep ~= 0
    or (cp > 1 and ctx.job.sequence % cp ~= 0) then
    return nil
  end
  return { tp = tp, cp = cp, pp = pp, chunks = chunks, ep = ep, dp = dp,
    micro_batch = micro_batch, micro_batches = ctx.job.global_batch // (dp * micro_batch) }
end

--- All points with recomputation and knobs; and why the family refuses the one that came furthest:
-- that met most conditions, as the third value of spec.fits says, the first of them.
local function points_of(ctx, spec, devices)
  local list, reason, furthest = {}, nil, -1
  local function add(tuple)
    local shape = point_of(ctx, tuple, devices)
    local fits, why, steps = shape ~= nil, nil, 0
    if fits and spec.fits then
      fits, why, steps = spec.fits(shape)
    end
    if not fits then
      if why and (steps or 0) > furthest then
        reason, furthest = why, steps or 0
      end
      return
    end
    local knobs = spec.knobs or { {} }
    for _, recompute in ipairs(spec.recompute or { "none", "selective", "full" }) do
      local set = {} -- tells points apart that differ in more than knobs
      for _, knob in ipairs(type(knobs) == "function" and knobs(shape) or knobs) do
        local point = { recompute = recompute, knob = knob, rank = #list + 1, set = set }
        for key, value in pairs(shape) do
          point[key] = value
        end
        list[#list + 1] = point
      end
    end
  end
  for tuple in tuples(ctx, spec, devices) do
    add(tuple)
  end
  return list, reason
end

--- The plan of a point: a grid of equal stages, with what the family sets in it.
local function build(ctx, spec, devices, point)
  local ids = {}
  for i, device in ipairs(devices) do
    ids[i] = device.id
  end
  local size = point.tp * point.cp * point.dp
  if spec.place then
    local placed = {}
    for s = 1, point.pp do
      local own = spec.place(point, numbers.slice(ids, (s - 1) * size + 1, size))
      table.move(own, 1, size, (s - 1) * size + 1, placed)
    end
    ids = placed
  end
  local plan = grids.plan(ctx, {
    tp = point.tp, cp = point.cp, dp = point.dp, pp = point.pp, ep = point.ep, zero = 0,
    chunks = point.chunks, ids = ids, recompute = point.recompute,
    counts = grids.layer_counts(ctx.model.n_layers, point.pp, point.chunks, ""),
    micro_batch = point.micro_batch, micro_batches = point.micro_batches,
    sequence_parallel = point.tp > 1, schedule = spec.schedule or "1f1b",
  })
  for s, stage in ipairs(plan.replicas[1].stages) do
    if spec.stage then
      spec.stage(point, stage, s)
    end
  end
  if spec.plan then
    spec.plan(point, plan)
  end
  return plan
end

--- The price of stage s of a plan with so many micro-batches alive, in an iteration of the routing
-- (the first).
local function stage_price(plan, s, in_flight, iteration)
  local question = { micro_batch = plan.micro_batch, in_flight = in_flight, iteration = iteration }
  for key, value in pairs(plan.replicas[1].stages[s]) do
    question[key] = value
  end
  return price(question)
end

--- Seconds of the reduction of a stage's gradients over its data-parallel ranks.
local function reduction_s(ctx, point)
  if point.dp * point.cp == 1 then
    return 0
  end
  local key = ("reduction/%d/%d/%d"):format(point.tp, point.pp, point.dp * point.cp)
  if not prices[key] then
    local n = ctx.model.n_layers
    local bytes = hv.cost.layers { tp = point.tp }:bytes(1, n, "parameters")
      * ctx.job.grad_bytes / point.pp
    local ids = {}
    for i = 1, point.dp * point.cp do
      ids[i] = point.ids[(i - 1) * point.tp + 1]
    end
    local cost = hv.cost.collective { op = "all_reduce", devices = ids, bytes = bytes }
    prices[key] = cost and cost.time_s or 0
  end
  return prices[key]
end

--- Seconds of all passes of 1F1B with chunks, and of the busiest stage per micro-batch.
local function passes_of(point, stage_s)
  local sum_s, longest_s = 0, 0
  for _, own_s in ipairs(stage_s) do
    sum_s = sum_s + own_s
    longest_s = math.max(longest_s, own_s)
  end
  return point.micro_batches * longest_s + (sum_s - longest_s) / point.chunks, longest_s
end

--- Iterates over the prices of the stages of a plan in an iteration of the routing (the first): s,
-- pass. `shapes` gives the shape of the i-th stage of a size, so that equal stages are priced once.
local function passes_in(spec, point, plan, shapes, iteration)
  local seen, stages = {}, plan.replicas[1].stages
  return function(_, before)
    local s = before + 1
    if s > #stages then
      return nil
    end
    local layers = stages[s].layers
    local in_flight = spec.in_flight and spec.in_flight(point, s) or 1
    local key = text_of { s == 1, s == #stages, shapes(point, s), in_flight,
      type(layers[1]) == "number" and layers[2] - layers[1] or layers }
    seen[key] = seen[key] or stage_price(plan, s, in_flight, iteration)
    return s, seen[key]
  end, nil, 0
end

--- Seconds of a pass of both directions, and those of them that a plan cannot do without.
local function both_ways(pass)
  local seconds = pass.forward_s + pass.backward_s
  return seconds, seconds - (pass.exposed.zero or 0)
end

--- Seconds that no plan of the point is faster than: the busiest rank's own work on all
-- micro-batches, in the mean over the iterations of the job's routing.
local function bound_s(spec, point, plan, shapes, n_iterations)
  local sum_s = 0
  if n_iterations == 1 then
    return point.bound_s
  end
  for iteration = 1, n_iterations do
    local least_s = {}
    for s, pass in passes_in(spec, point, plan, shapes, iteration) do
      least_s[s] = select(2, both_ways(pass))
    end
    sum_s = sum_s + select(2, (spec.passes or passes_of)(point, least_s))
  end
  return point.micro_batches * sum_s / n_iterations
end

--- Fills a point with `estimate_s` and `bound_s` (no plan of the point is faster if all iterations
-- of the job's routing are like its first), or `over_bytes` where the first micro-batch does not
-- fit.
local function estimate(ctx, spec, point, plan, shapes)
  local stage_s, least_s, update_s, backward_s = {}, {}, 0, 0
  for s, pass in passes_in(spec, point, plan, shapes) do
    if not pass.memory.fits then
      point.over_bytes = pass.memory.peak_bytes - pass.memory.limit_bytes
      return
    end
    stage_s[s], least_s[s] = both_ways(pass)
    update_s = math.max(update_s,
      pass.optimizer_s + 2 * (pass.gather_s or 0) + (pass.scatter_s or 0))
    backward_s = math.max(backward_s, pass.backward_s)
  end
  local passes = spec.passes or passes_of
  local _, busiest_s = passes(point, least_s)
  point.bound_s = point.micro_batches * busiest_s
  point.estimate_s = passes(point, stage_s) + update_s
    + math.max(0, reduction_s(ctx, point) - backward_s)
end

local function by_estimate(a, b)
  if a.estimate_s ~= b.estimate_s then
    return a.estimate_s < b.estimate_s
  end
  return a.rank < b.rank
end

--- A function of a point and the number of a stage: a text that is the same for stages of equal
-- devices.
local function shapes_on(devices)
  local rows, known = rows_of(devices), {}
  return function(point, s)
    local size = point.tp * point.cp * point.dp
    local key = size .. "/" .. s
    known[key] = known[key] or shape_of(rows, (s - 1) * size + 1, size)
    return known[key]
  end
end

--- The points that fit, by estimate, and the one of least excess.
local function priced_points(ctx, spec, devices, shapes)
  local fitting, nearest = {}, nil
  local ids = {}
  for i, device in ipairs(devices) do
    ids[i] = device.id
  end
  local points, why = points_of(ctx, spec, devices)
  local last -- the last that fits
  for _, point in ipairs(points) do
    if #fitting > 0 and hv.stopping(0.4) then
      break
    end
    point.ids = ids
    estimate(ctx, spec, point, build(ctx, spec, devices, point), shapes)
    local behind = spec.first_fit and last and last.set == point.set
    if point.over_bytes then
      nearest = (not nearest or point.over_bytes < nearest.over_bytes) and point or nearest
    elseif behind then
      last.otherwise = point
      last = point
    else
      fitting[#fitting + 1] = point
      last = point
    end
  end
  table.sort(fitting, by_estimate)
  return fitting, nearest, why
end

--- The state of a search: the best plan so far and why others are none.
local function new_state(ctx)
  local n_iterations = ctx.job.routing and #hv.trace { sources = 1 } or 1
  return { n_valid = 0, n = 0, best_s = math.huge, least_excess_bytes = math.huge, rough = {},
    n_iterations = n_iterations,
    some = n_iterations > 2 * SOME_ITERATIONS and SOME_ITERATIONS or nil }
end

--- Simulates a point in all iterations of the job's routing, or so many; nil where it breaks
-- a rule.
local function judge(ctx, spec, devices, point, state, iterations)
  local plan = build(ctx, spec, devices, point)
  local verdict, why, excess_bytes = candidates.judge(plan, iterations)
  if not verdict and (not state.reason or excess_bytes < state.least_excess_bytes) then
    state.reason, state.least_excess_bytes = why, excess_bytes
  end
  return verdict, plan
end

--- Simulates a point whole; the best so far is kept and reported. Whether it breaks no rule.
local function simulate_whole(ctx, spec, devices, point, state)
  local verdict, plan = judge(ctx, spec, devices, point, state)
  if verdict and verdict.value < state.best_s then
    state.best_s, state.plan, state.point, state.verdict = verdict.value, plan, point, verdict
    if not spec.quiet then
      hv.incumbent(plan)
    end
  end
  return verdict ~= nil
end

--- Simulates a point in some iterations; whole where it is far better than all before.
local function simulate_some(ctx, spec, devices, point, state)
  local verdict = judge(ctx, spec, devices, point, state, state.some)
  if not verdict then
    return false
  end
  local rough = { point = point, value = verdict.value, rank = #state.rough + 1 }
  state.rough[rough.rank] = rough
  if not state.plan or rough.value < FAR_BETTER * state.whole_value then
    rough.is_whole, state.whole_value = true, rough.value
    simulate_whole(ctx, spec, devices, point, state)
  end
  return true
end

--- The best of the points that were simulated in some iterations, whole.
local function finish(ctx, spec, devices, state)
  table.sort(state.rough, function(a, b)
    if a.value ~= b.value then
      return a.value < b.value
    end
    return a.rank < b.rank
  end)
  local n = 0
  for _, rough in ipairs(state.rough) do
    if n >= FINALISTS or (state.plan and hv.stopping()) then
      break
    end
    if rough.is_whole or simulate_whole(ctx, spec, devices, rough.point, state) then
      n = n + 1
    end
  end
end

--- Simulates a point and counts it.
local function simulate(ctx, spec, devices, point, state)
  state.n = state.n + 1
  if (state.some and simulate_some or simulate_whole)(ctx, spec, devices, point, state) then
    state.n_valid = state.n_valid + 1
  end
end

--- A point with one knob changed.
local function with_knob(point, key, value)
  local changed, knob = {}, {}
  for name, member in pairs(point) do
    changed[name] = member
  end
  for name, member in pairs(point.knob) do
    knob[name] = member
  end
  knob[key] = value
  changed.knob = knob
  return changed
end

--- One knob after the other from its list of values, the others as they are in the best plan.
local function refine(ctx, spec, devices, state)
  for _, row in ipairs(state.plan and spec.refine or {}) do
    local values = type(row.values) == "function" and row.values(state.point) or row.values
    for _, value in ipairs(values) do
      if hv.stopping() then
        return
      end
      if text_of(state.point.knob[row.knob]) ~= text_of(value) then
        simulate_whole(ctx, spec, devices, with_knob(state.point, row.knob, value), state)
      end
    end
  end
end

--- Can a plan of the point be better than the best so far? The bound is one of time, whatever the
-- job minimises.
local function may_gain(ctx, spec, devices, point, state, shapes)
  local verdict = state.verdict
  if not verdict or verdict.value ~= verdict.iteration_s or point.bound_s < verdict.value then
    return true
  end
  local plan = build(ctx, spec, devices, point)
  return bound_s(spec, point, plan, shapes, state.n_iterations) < verdict.value
end

--- The search on these devices.
local function search_on(ctx, spec, devices)
  local shapes = shapes_on(devices)
  local points, nearest, why = priced_points(ctx, spec, devices, shapes)
  local state = new_state(ctx)
  local tries = spec.tries or 40
  for _, point in ipairs(points) do
    if state.n_valid >= tries or state.n >= 4 * tries or (state.plan and hv.stopping()) then
      break
    end
    if may_gain(ctx, spec, devices, point, state, shapes) then
      hv.progress(state.n_valid / tries, ("plan %d of %d"):format(state.n + 1, #points))
      local before = state.n_valid
      while point and state.n_valid == before do
        simulate(ctx, spec, devices, point, state)
        point = point.otherwise
      end
    end
  end
  finish(ctx, spec, devices, state)
  refine(ctx, spec, devices, state)
  if not state.plan and #points == 0 and nearest then -- its simulation gives the reason
    simulate_whole(ctx, spec, devices, nearest, state)
  end
  state.reason = state.reason or why
  return state
end

--- The best plan over degrees and knobs. On unequal devices where no point fits, those of the least
-- memory are left out and the search starts again.
-- @function degrees.search
-- @tparam handle ctx the run's input
-- @tparam table spec axes tp, cp, ep, pp, chunks, micro_batch (lists, or functions of the devices
-- that give one; {1}, micro-batches: powers of two up to 16), recompute (all three), `knobs` (list
-- of tables, or a function of the point that gives one: further choices, in point.knob),
-- stage(point, stage, s) and plan(point, plan), which set them in a plan's tables; fits(point) =
-- whether the system has it, why not, and how many conditions it met before (0: the reason of the
-- point that met most is told); place(point, ids) = the devices of a stage in their
-- order; schedule (1f1b); in_flight(point, s) = micro-batches alive at least (1);
-- passes(point, stage_s) = seconds of all passes by the schedule, and those of the busiest rank per
-- micro-batch (1F1B, one rank per stage); refine = list of {knob, values}: knobs that are tried one
-- after the other on the best plan; first_fit = of the knobs of a point the first that fits is
-- taken, not the fastest; tries = fitting plans that are simulated (40); quiet = the
-- plans are only compared with, none becomes the run's answer
-- @treturn table the plan, its point {tp, cp, ep, pp, dp, chunks, micro_batch, micro_batches,
-- recompute, knob} and its verdict; nil and the reason where nothing fits
-- @units those of a plan file
-- @raise what hv.cost.stage and hv.plan.new raise on what the family sets
-- @usage local degrees = require "degrees"
-- local plan, point = degrees.search(ctx, { tp = degrees.tensor(ctx), pp = { 1, 2 }, tries = 4 })
-- print(plan and point.dp)
function degrees.search(ctx, spec)
  local devices, why = inventory.priced(ctx)
  local first_reason
  while #devices > 0 do
    local state = search_on(ctx, spec, devices)
    if state.plan then
      return state.plan, state.point, state.verdict
    end
    first_reason = first_reason or state.reason
    devices = inventory.without_smallest(devices)
  end
  return nil, first_reason or why
    or "no degrees divide the devices, the batch and the layers as the system needs it"
end

--- The plan of degrees.search alone, as `plan` of a plugin returns it.
-- @function degrees.plan
-- @tparam handle ctx the run's input
-- @tparam table spec {tp, pp, fits, stage, …} as degrees.search takes it
-- @treturn table the plan {micro_batch, replicas, …}; nil and the reason where nothing fits
-- @units those of a plan file
-- @raise as degrees.search
-- @usage print(require("degrees").plan(ctx, { tp = { 1 }, pp = { 1, 2 }, tries = 4 }) ~= nil)
function degrees.plan(ctx, spec)
  local made, why = degrees.search(ctx, spec)
  return made, not made and why or nil
end

return degrees
