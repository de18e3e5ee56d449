--- Splits of operators over a mesh, for systems that decide per operator: meshes of the devices,
-- the graph of choices that hv.cost.splits prices, and the plan of one stage that choices make.
-- A plan sets the layout of every tensor; what the judge does between operators may be cheaper than
-- the sum of the choices, never dearer.
local candidates = require "candidates"
local inventory = require "inventory"
local numbers = require "numbers"

local splits = {}

-- Axes are named so that the order of their names is that of the mesh: keys of a table have none.
local AXES = { "a", "b", "c" }

--- Ordered ways to write n as a product of at most `most` factors above 1: lists.
local function factorizations(n, most)
  local list = { { n } }
  if most > 1 then
    for _, d in ipairs(numbers.divisors(n)) do
      if d > 1 and d < n then
        for _, rest in ipairs(factorizations(n // d, most - 1)) do
          table.insert(rest, 1, d)
          list[#list + 1] = rest
        end
      end
    end
  end
  return list
end

--- Meshes of n devices with at most `axes` axes, as plans write them. The first axis is the slowest
-- in the order of the devices: with the devices of a node side by side, the last ones are inside
-- nodes.
function splits.meshes(n, axes)
  local list = {}
  for i, sizes in ipairs(factorizations(n, axes)) do
    list[i] = {}
    for k, size in ipairs(sizes) do
      list[i][AXES[k]] = size
    end
  end
  return list
end

--- The mesh in words: "2 x 4".
function splits.mesh_text(mesh)
  local sizes = {}
  for _, axis in ipairs(AXES) do
    sizes[#sizes + 1] = mesh[axis] and ("%d"):format(mesh[axis])
  end
  return table.concat(sizes, " x ")
end

--- Seconds of a way of an operator.
function splits.seconds(way)
  return way.forward_s + way.backward_s + way.exchange_s + way.sums_s
end

--- The graph of choices of hv.cost.splits, as hv.opt.graph_dp takes it: cost(way) is what a way
-- costs, between(seconds) what it costs to go from one layout to another.
-- Operators of a class and edges of a table share their lists.
function splits.problem(priced, cost, between)
  local by_class, by_table = {}, {}
  for c, ways in ipairs(priced.classes) do
    by_class[c] = {}
    for i, way in ipairs(ways) do
      by_class[c][i] = cost(way)
    end
  end
  local nodes, edges = {}, {}
  for i, op in ipairs(priced.ops) do
    nodes[i] = by_class[op.class]
  end
  for e, edge in ipairs(priced.edges) do
    local rows = edge[3]
    if between and not by_table[rows] then
      local own = {}
      for i, row in ipairs(rows) do
        own[i] = {}
        for k, seconds in ipairs(row) do
          own[i][k] = between(seconds)
        end
      end
      by_table[rows] = own
    end
    edges[e] = { edge[1], edge[2], by_table[rows] or rows }
  end
  return { nodes = nodes, edges = edges }
end

--- Keeps of every class the `most` ways of the least seconds, for graphs whose tables are too
-- large: {ops, classes, edges} as hv.cost.splits gives them.
function splits.fewer(priced, most)
  local kept, classes = {}, {}
  for c, ways in ipairs(priced.classes) do
    local order = {}
    for i in ipairs(ways) do
      order[i] = i
    end
    table.sort(order, function(x, y)
      local a, b = splits.seconds(ways[x]), splits.seconds(ways[y])
      if a ~= b then
        return a < b
      end
      return x < y
    end)
    kept[c], classes[c] = {}, {}
    for i = 1, math.min(most, #order) do
      kept[c][i] = order[i]
      classes[c][i] = ways[order[i]]
    end
  end
  local edges, by_table = {}, {}
  for e, edge in ipairs(priced.edges) do
    local from, to = priced.ops[edge[1]].class, priced.ops[edge[2]].class
    if not by_table[edge[3]] then
      local rows = {}
      for i, x in ipairs(kept[from]) do
        rows[i] = {}
        for k, y in ipairs(kept[to]) do
          rows[i][k] = edge[3][x][y]
        end
      end
      by_table[edge[3]] = rows
    end
    edges[e] = { edge[1], edge[2], by_table[edge[3]] }
  end
  return { ops = priced.ops, classes = classes, edges = edges }
end

--- {axis = name of the dimension} from {axis = place}.
local function named(layout, dims)
  local out = {}
  for axis, place in pairs(layout) do
    out[axis] = dims[place]
  end
  return out
end

--- The stage of these choices (a way of its class for every operator): every tensor's layout. A
-- tensor that no operator writes lies as its first reader wants it.
function splits.stage(priced, choices, devices, mesh)
  local shard = {}
  for i, op in ipairs(priced.ops) do
    local way = priced.classes[op.class][choices[i]]
    for k, operand in ipairs(op.operands) do
      if not shard[operand.tensor] then
        shard[operand.tensor] = named(way.operands[k], operand.dims)
      end
    end
    shard[op.id] = named(way.out, op.dims)
  end
  return { devices = devices, ops = { "*" }, mesh = mesh, shard = shard }
end

--- A plan of that stage alone.
function splits.plan(stage, micro_batch, micro_batches)
  return {
    micro_batch = micro_batch,
    replicas = { { micro_batches = micro_batches, stages = { stage } } },
  }
end

--- Sequences of a micro-batch, largest first: the batch in powers of two of micro-batches.
local function micro_batches_of(global_batch)
  local list = {}
  for _, n in ipairs(numbers.powers(global_batch)) do
    if global_batch % n == 0 then
      list[#list + 1] = global_batch // n
    end
  end
  return list
end

--- Adds a candidate for every answer of `solve` on a mesh.
local function add_answers(ctx, all, address, mesh, micro_batch, solve)
  local stage = { devices = address, ops = { "*" }, mesh = mesh, micro_batch = micro_batch }
  local priced, why = hv.cost.splits(stage)
  local answers
  if priced then
    answers, why = solve(priced, stage)
  end
  local n = ctx.job.global_batch // micro_batch
  for _, answer in ipairs(answers or {}) do
    all.add {
      claim_s = n * answer.seconds,
      build = function()
        local plan = splits.plan(splits.stage(answer.priced, answer.choices, address, mesh),
          micro_batch, n)
        plan.claimed = { iteration_s = n * answer.seconds }
        return plan
      end,
    }
  end
  if not answers then
    all.add(nil, why, 0)
  end
end

--- The plan of one stage on all devices that can be priced: the largest micro-batch for which a
-- plan fits, of all meshes the one of the least simulated time. Options: splits.options.
-- solve(priced, stage) gives a list of { seconds, choices, priced = where they count }, or nil and
-- the reason.
function splits.search(ctx, solve)
  if ctx.model.kind ~= "graph" then
    return nil, "operators of a graph are split; `-o graph=true` takes those of a transformer"
  end
  local devices, reason = inventory.priced(ctx)
  if #devices == 0 then
    return nil, reason
  end
  local ids = {}
  for i, device in ipairs(devices) do
    ids[i] = device.id
  end
  local address = ctx.cluster:address(ids)
  local meshes = splits.meshes(#ids, ctx.options.axes)
  for _, micro_batch in ipairs(micro_batches_of(ctx.job.global_batch)) do
    local all = candidates.new(false)
    for m, mesh in ipairs(meshes) do
      if #all.list > 0 and hv.stopping(0.8) then
        break
      end
      hv.progress((m - 1) / #meshes, ("micro-batch %d, mesh %s"):format(micro_batch,
        splits.mesh_text(mesh)))
      add_answers(ctx, all, address, mesh, micro_batch, solve)
    end
    local best, why = all.best(ctx.options.tries, reason)
    if best then
      return best
    end
    reason = why
  end
  return nil, reason
end

--- The options of splits.search.
function splits.options(tries)
  return {
    { key = "axes", type = "integer", default = 2, min = 1, max = 3,
      help = "axes of the meshes that are tried, at most" },
    { key = "tries", type = "integer", default = tries, min = 1, max = 1000,
      help = "number of fitting plans that are simulated, in the order of the sum" },
  }
end

return splits
