-- Self-tests of GraphPipe: the catalogue's two branches by formula, by the search and by the judge,
-- and 200 random graphs against the enumeration of all stages.
local oracle = require "testing.oracle"
local plain = require "testing.plain"
local rows = require "testing.rows"
local stage_graph = require "stage_graph"

local FROM = "catalogue: graphpipe"

--- Two branches of three layers and a layer that joins them: inputs for seven devices.
local function branches(micro_batches)
  local function module(n)
    local world = plain.measured { nodes = 1, layers = n, forward_ms = 1, backward_ms = 2,
      parameter_bytes = 1e6 }
    return { kind = "layers", layers = world.model.layers }
  end
  local inputs = plain.measured { nodes = 1, devices = 7, batch = micro_batches, backward_ms = 1,
    parameter_bytes = 1 }
  inputs.model = { format = "hetviz.model/1", name = "m", kind = "modules",
    modules = { a = module(3), b = module(3), c = module(1) },
    edges = { { "a", "c" }, { "b", "c" } } }
  return inputs
end

--- Milliseconds by the judge of a stage per layer.
local function judged(t, schedule, afters)
  return t.with(branches(4), function(ctx)
    local stages = {}
    for s = 1, 7 do
      local name, at = ("aaabbbc"):sub(s, s), s < 7 and (s - 1) % 3 or 0
      stages[s] = { devices = ctx.cluster:address { s }, module = name, layers = { at, at + 1 },
        after = afters[s] }
    end
    return plain.ms { micro_batch = 1, schedule = { name = schedule },
      replicas = { { micro_batches = 4, stages = stages } } }
  end)
end

local function check_catalogue(t)
  t.near("a chain of depth 7: the formula [D]", stage_graph.seconds(3, 4, 7), 30, 0, FROM)
  t.near("a graph of depth 4: the formula [D]", stage_graph.seconds(3, 4, 4), 21, 0, FROM)
  t.near("a graph of depth 4 by the judge [D]",
    judged(t, "graphpipe", { [4] = {}, [7] = { 2, 5 } }), 21, 1e-6, FROM)
  t.near("a chain of depth 7 by the judge [D]", judged(t, "1f1b", { [4] = { 2 }, [7] = { 5 } }), 30,
    1e-6, FROM)
  t.with(branches(16), function()
    local made = assert(hv.strategy("graphpipe", { micro_batch = 1, tp = 1 }))
    local stages = made:table().replicas[1].stages
    t.equal("stages of the strategy's own plan", #stages, 7, FROM)
    t.near("its time with 16 micro-batches [D]", made:eval().iteration_s * 1e3, 57, 1e-6, FROM)
  end)
  local solved = assert(stage_graph.solve { layers = { 3, 3, 1 }, edges = { { 1, 3 }, { 2, 3 } },
    units = 7, price = function(_, first, last, width)
      return width == 1 and 3 * (last - first + 1) or nil
    end })
  local depths = {}
  for s, stage in ipairs(solved.stages) do
    depths[s] = stage.depth
  end
  t.equal("in flight in the stages [D]", table.concat(depths, " "), "4 3 2 4 3 2 1", FROM)
end

--- A random series-parallel graph of up to four vertices, with layers, times and memory.
local function random_case()
  local shapes = { { 1, {} }, { 2, { { 1, 2 } } }, { 2, {} }, { 3, { { 1, 3 }, { 2, 3 } } },
    { 3, { { 1, 2 }, { 1, 3 } } }, { 3, { { 1, 2 } } },
    { 4, { { 1, 2 }, { 1, 3 }, { 2, 4 }, { 3, 4 } } }, { 3, { { 1, 2 }, { 2, 3 } } } }
  local shape = shapes[hv.random(#shapes)]
  local q = { layers = {}, edges = shape[2], units = shape[1] + hv.random(3) - 1, work = {} }
  for v = 1, shape[1] do
    q.layers[v] = shape[1] < 4 and hv.random(3) or 1
    q.work[v] = {}
    for l = 1, q.layers[v] do
      q.work[v][l] = hv.random(9)
    end
  end
  local room, overhead = hv.random(3) > 1 and 5 + hv.random(25) or math.huge, hv.random(4) - 1
  function q.price(v, first, last, width, depth)
    local work = 0
    for l = first, last do
      work = work + q.work[v][l]
    end
    return depth * work <= room * width and work / width + overhead * (width - 1) or nil
  end
  return q
end

--- All ways to cut n layers into stages with widths of together at most m units.
local function ways(n, m)
  local list = {}
  local function go(first, left, stages)
    if first > n then
      list[#list + 1] = table.move(stages, 1, #stages, 1, {})
    end
    for last = first, n do
      for width = 1, left do
        stages[#stages + 1] = { first = first, last = last, width = width }
        go(last + 1, left - width, stages)
        stages[#stages] = nil
      end
    end
  end
  go(1, m, {})
  return list
end

--- The least bottleneck of all stages, by enumeration: depths by the edges, the sink first.
local function enumerated(q)
  local best, chosen = math.huge, {}
  local function behind(v)
    local depth = 0
    for _, edge in ipairs(q.edges) do
      if edge[1] == v then
        depth = math.max(depth, behind(edge[2]) + #chosen[edge[2]])
      end
    end
    return depth
  end
  local function judge()
    local longest = 0
    for v, stages in ipairs(chosen) do
      for s, stage in ipairs(stages) do
        longest = math.max(longest, q.price(v, stage.first, stage.last, stage.width,
          behind(v) + #stages - s + 1) or math.huge)
      end
    end
    best = math.min(best, longest)
  end
  local function choose(v, left)
    if v > #q.layers then
      return judge()
    end
    for _, stages in ipairs(ways(q.layers[v], left)) do
      local used = 0
      for _, stage in ipairs(stages) do
        used = used + stage.width
      end
      chosen[v] = stages
      choose(v + 1, left - used)
    end
  end
  choose(1, q.units)
  return best
end

local function check_oracle(t)
  oracle.exact(t, "200 random graphs against enumeration [D]", FROM, { draw = random_case,
    least = enumerated, solve = function(q)
      local solved = stage_graph.solve(q)
      return solved and solved.t
    end })
end

return function(t)
  check_catalogue(t)
  check_oracle(t)
  rows.search(t, branches(4))
end
