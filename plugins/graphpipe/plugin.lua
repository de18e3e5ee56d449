-- GraphPipe (Jeon et al., ASPLOS 2025): stages that form a graph as the model's modules do, so that
-- branches run side by side and a stage holds as many micro-batches as the longest path behind it
-- has stages. Devices, cuts and widths by dynamic programming over series-parallel parts, the
-- bottleneck least; the paper searches the bottleneck by bisection, which gives the same. A stage
-- is data-parallel, or tensor-parallel inside a node where that is faster or is what fits. A stage
-- holds layers of one module. The paper's devices are equal: here stages are priced on the first
-- devices, and the judge decides. Micro-batches of single stages are tried on the best plan.
local candidates = require "candidates"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"
local prices = require "prices"
local reasons = require "reasons"
local stage_graph = require "stage_graph"

local MOST_UNITS = 16 -- groups of devices that are dealt to stages
local MOST_BLOCKS = 12 -- runs of layers of a module that are not cut

--- Modules in an order in which each is behind what feeds it: {name, blocks = {from, to} from 0},
-- and the edges between them. A model without modules is one.
local function modules_of(ctx)
  local layers, counts, graph = ctx.model:layers(), {}, ctx.model:graph()
  for _, layer in ipairs(layers) do
    local name = layer.module or ""
    counts[name] = (counts[name] or 0) + 1
  end
  local list = {}
  local function add(name)
    local n, own = counts[name], { name = name ~= "" and name or nil, blocks = {} }
    local size = math.ceil(n / MOST_BLOCKS)
    for from = 0, n - 1, size do
      own.blocks[#own.blocks + 1] = { from, math.min(from + size, n) }
    end
    list[#list + 1] = own
  end
  if counts[""] then
    add ""
    return list, {}
  end
  local place, edges = {}, {}
  while #list < #graph.ops do -- the edges of a model form no circle
    for o, op in ipairs(graph.ops) do
      local is_ready = not place[o]
      for _, edge in ipairs(graph.edges) do
        is_ready = is_ready and (edge[2] ~= o or place[edge[1]])
      end
      if is_ready then
        add(op.id)
        place[o] = #list
      end
    end
  end
  for e, edge in ipairs(graph.edges) do
    edges[e] = { place[edge[1]], place[edge[2]] }
  end
  return list, edges
end

--- Ways to run a stage of n devices: tensor degrees inside a node that divide it.
local function ways(world, n, micro_batch)
  local list = {}
  for _, tp in ipairs(numbers.powers(world.largest_tp)) do
    if n % tp == 0 and micro_batch % (n // tp) == 0 and grids.tp_fits(world.layers, tp) then
      list[#list + 1] = { tp = tp, dp = n // tp }
    end
  end
  return list
end

--- Keys of a stage of a plan on these devices.
local function stage_keys(ctx, world, stage, way, ids, recompute)
  local module = world.modules[stage.vertex]
  return { devices = ctx.cluster:address(ids), module = module.name,
    layers = { module.blocks[stage.first][1], module.blocks[stage.last][2] },
    tp = way.tp, dp = way.dp, sequence_parallel = way.tp > 1 or nil,
    recompute = recompute ~= "none" and recompute or nil }
end

--- The problem of stage_graph for a micro-batch and a recomputation, and best(vertex, first, last,
-- width, depth) = the fastest way of a stage that fits.
local function problem(ctx, world, c)
  local known = {}
  local function passes(v, first, last, width)
    local key = ("%d/%d/%d/%d"):format(v, first, last, width)
    if not known[key] then
      known[key] = {}
      local n = width * world.unit
      local ids = numbers.slice(world.ids, 1, n)
      for w, way in ipairs(ways(world, n, c.micro_batch)) do
        local question = stage_keys(ctx, world, { vertex = v, first = first, last = last }, way,
          ids, c.recompute)
        question.micro_batch, question.in_flight = c.micro_batch, 1
        local pass = hv.cost.stage(question)
        known[key][w] = { way = way, t = pass.forward_s + pass.backward_s, memory = pass.memory }
      end
    end
    return known[key]
  end
  local function best(v, first, last, width, depth)
    local fastest
    for _, one in ipairs(passes(v, first, last, width)) do
      local memory = one.memory
      local alive = math.min(depth, c.micro_batches)
      local need = memory.peak_bytes
        + (alive - 1) * memory.activation_bytes * (1 + memory.fragmentation)
      if need <= memory.limit_bytes - c.reserve and (not fastest or one.t < fastest.t) then
        fastest = one
      end
    end
    return fastest
  end
  local q = { layers = {}, edges = world.edges, units = world.units,
    price = function(...)
      local one = best(...)
      return one and one.t
    end }
  for v, module in ipairs(world.modules) do
    q.layers[v] = #module.blocks
  end
  return q, best
end

--- Numbers of the stages that feed each stage, from 0 as in plans.
local function feeding(world, stages)
  local last_of, afters = {}, {}
  for s, stage in ipairs(stages) do
    last_of[stage.vertex] = s
  end
  for s, stage in ipairs(stages) do
    afters[s] = {}
    if stage.first > 1 then
      afters[s][1] = s - 2
    else
      for _, edge in ipairs(world.edges) do
        if edge[2] == stage.vertex then
          table.insert(afters[s], last_of[edge[1]] - 1)
        end
      end
    end
  end
  return afters
end

--- The plan of a solution: stages in the order of the modules.
local function plan_of(ctx, world, solved, best, c)
  local list = {}
  for v in ipairs(world.modules) do
    for _, stage in ipairs(solved.stages) do
      if stage.vertex == v then
        list[#list + 1] = stage
      end
    end
  end
  local stages, next_id = {}, 1
  local afters = feeding(world, list)
  for s, stage in ipairs(list) do
    local n = stage.width * world.unit
    local way = best(stage.vertex, stage.first, stage.last, stage.width, stage.depth).way
    stages[s] = stage_keys(ctx, world, stage, way, numbers.slice(world.ids, next_id, n),
      c.recompute)
    stages[s].after = #world.modules > 1 and s > 1 and afters[s] or nil
    next_id = next_id + n
  end
  return { micro_batch = c.micro_batch, schedule = { name = "graphpipe" },
    replicas = { { micro_batches = c.micro_batches, stages = stages } } }
end

--- The solutions for all micro-batches and recomputations with `reserve` bytes left unused.
local function search(ctx, world, reserve)
  local all = candidates.new()
  for _, micro_batch in ipairs(numbers.powers(ctx.options.micro_batch)) do
    for _, recompute in ipairs { "none", "selective", "full" } do
      local enough = hv.stopping(0.4) and #all.list > 0
      if ctx.job.global_batch % micro_batch == 0 and not enough then
        local c = { micro_batch = micro_batch, recompute = recompute, reserve = reserve,
          micro_batches = ctx.job.global_batch // micro_batch }
        local q, best = problem(ctx, world, c)
        local solved, why = stage_graph.solve(q)
        all.add(solved and {
          claim_s = stage_graph.seconds(solved.t, c.micro_batches, solved.depth),
          build = function() return plan_of(ctx, world, solved, best, c) end }, why, 0)
      end
    end
  end
  return all
end

--- The plan with larger micro-batches of single stages where they make it faster.
local function with_stage_micro_batches(made)
  local verdict = made and candidates.judge(made)
  local best_s = verdict and verdict.iteration_s or 0
  for _, stage in ipairs(verdict and made.replicas[1].stages or {}) do
    for _, times in ipairs { 2, 4 } do
      local before = stage.micro_batch
      stage.micro_batch = times * made.micro_batch
      local tried = made.replicas[1].micro_batches % times == 0 and not hv.stopping()
        and candidates.judge(made)
      if tried and tried.iteration_s < best_s * (1 - 1e-9) then
        best_s = tried.iteration_s
      else
        stage.micro_batch = before
      end
    end
  end
  return made
end

local function plan(ctx)
  local world, why = inventory.world(ctx)
  if not world then
    return nil, why
  end
  world.largest_tp = ctx.options.tp > 0 and math.min(world.node_size, ctx.options.tp)
    or world.node_size
  world.unit = numbers.divisor_from(#world.ids, #world.ids / MOST_UNITS)
  world.units = #world.ids // world.unit
  world.modules, world.edges = modules_of(ctx)
  local reason
  local all = candidates.within(function(reserve)
    local found = search(ctx, world, reserve)
    reason = reason or found.reason
    return found
  end)
  if not all then
    if reason == "the graph is not series-parallel" then
      return nil, "GraphPipe divides series-parallel graphs of modules, and this one is none"
    end
    return nil, reasons.too_small(ctx, world.devices, "no graph of stages")
  end
  local made, none = all.best(ctx.options.tries)
  return with_stage_micro_batches(made), none
end

--- (m + depth − 1) times the slowest stage.
local function claim(made, ctx)
  made = prices.table_of(made)
  local replica, depth = made.replicas[1], {}
  for s = #replica.stages, 1, -1 do
    depth[s] = depth[s] or 1
    for _, before in ipairs(replica.stages[s].after or { s > 1 and s - 2 or nil }) do
      depth[before + 1] = math.max(depth[before + 1] or 1, depth[s] + 1)
    end
  end
  local deepest = math.max(table.unpack(depth))
  local longest_s = 0
  for s, own_s in ipairs(prices.stage_times(ctx, made, 1)) do
    local size = replica.stages[s].micro_batch or made.micro_batch
    longest_s = math.max(longest_s, own_s * made.micro_batch / size)
  end
  return { iteration_s = stage_graph.seconds(longest_s, replica.micro_batches, deepest),
    terms = { bottleneck_s = longest_s, depth = deepest },
    formula = "(m + longest path - 1) x slowest stage (GraphPipe)",
    leaves_out = "transfers, the reduction of gradients, and stages that differ" }
end

return {
  api = 1, id = "graphpipe", title = "GraphPipe", kind = "pipeline",
  system = "GraphPipe: Improving Performance and Scalability of DNN Training with Graph Pipeline "
    .. "Parallelism", venue = "ASPLOS", year = 2025, reference = "arXiv:2406.17145",
  summary = "Stages form a graph as the modules do; cuts and devices by series-parallel dynamic "
    .. "programming.",
  needs = { model = "layers" }, effort = "quick",
  sets = { ["schedule.name"] = "graphpipe" },
  searches = { "cut", "devices of every stage", "micro-batch, also of single stages",
    "recomputation", "tensor degree of every stage" },
  verified = { "a chain of depth 7: the formula [D]", "a graph of depth 4: the formula [D]",
    "a graph of depth 4 by the judge [D]", "a chain of depth 7 by the judge [D]",
    "its time with 16 micro-batches [D]", "200 random graphs against enumeration [D]" },
  options = {
    candidates.micro_batch_option(8),
    { key = "tp", type = "integer", default = 0, min = 0, max = 1024,
      help = "largest tensor degree of a stage; 0: a node; 1: stages are data-parallel alone" },
    candidates.tries_option(8),
  },
  plan = plan, claim = claim,
}
