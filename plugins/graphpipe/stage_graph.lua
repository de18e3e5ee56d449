-- Stages of a graph of modules by dynamic programming over its series-parallel parts (GraphPipe):
-- a part on so many devices, with so many stages on the longest path behind it, is cut
-- into parts in a row, or its branches get devices of their own. The depth behind a part decides
-- how many micro-batches its stages hold, so that parts are solved from the sink on.
local stage_graph = {}

--- Adds {t, depth, …} to a front of least time against least depth.
local function add(front, one)
  for i = #front, 1, -1 do
    local other = front[i]
    if other.t <= one.t and other.depth <= one.depth then
      return
    elseif other.t >= one.t and other.depth >= one.depth then
      table.remove(front, i)
    end
  end
  front[#front + 1] = one
end

--- A function (units, depth behind) → front that remembers its answers.
local function remembered(f)
  local known = {}
  return function(m, behind)
    local key = m .. "/" .. behind
    if not known[key] then
      known[key] = {}
      f(m, behind, known[key])
    end
    return known[key]
  end
end

--- Value of a vertex: a chain of its layers on exactly m units.
local function chain_of(q, v)
  local runs = {}
  local function run(n)
    runs[n] = runs[n] or remembered(function(m, behind, front)
      for last = 1, n do -- layers of the last stage
        local first = n - last + 1
        for width = 1, first == 1 and m or m - 1 do
          local t = (first > 1 or width == m) and q.price(v, first, n, width, behind + 1)
          if t and first == 1 then
            add(front, { t = t, depth = behind + 1,
              stage = { vertex = v, first = 1, last = n, width = width, depth = behind + 1 } })
          elseif t then
            for _, before in ipairs(run(first - 1)(m - width, behind + 1)) do
              add(front, { t = math.max(t, before.t), depth = before.depth, left = before,
                stage = { vertex = v, first = first, last = n, width = width,
                  depth = behind + 1 } })
            end
          end
        end
      end
    end)
    return runs[n]
  end
  return run(q.layers[v])
end

local function nothing(m, behind)
  return m == 0 and { { t = 0, depth = behind } } or {}
end

--- Values of parts side by side: the devices are divided, the longest branch decides.
local function side_by_side(left, right)
  return remembered(function(m, behind, front)
    for own = 0, m do
      for _, a in ipairs(left(own, behind)) do
        for _, b in ipairs(right(m - own, behind)) do
          add(front, { t = math.max(a.t, b.t), depth = math.max(a.depth, b.depth), left = a,
            right = b })
        end
      end
    end
  end)
end

--- Values of parts one after the other: the second one, whose depth is known, comes first.
local function in_a_row(left, right)
  return remembered(function(m, behind, front)
    for own = 0, m do
      for _, b in ipairs(right(own, behind)) do
        for _, a in ipairs(left(m - own, b.depth)) do
          add(front, { t = math.max(a.t, b.t), depth = a.depth, left = a, right = b })
        end
      end
    end
  end)
end

local function collect(one, list)
  if one.left then
    collect(one.left, list)
  end
  if one.stage then
    list[#list + 1] = one.stage
  end
  if one.right then
    collect(one.right, list)
  end
  return list
end

--- The edges with a source in front of what has nothing before it and a sink behind.
local function closed(q)
  local n, edges, has_before, has_behind = #q.layers, {}, {}, {}
  for e, edge in ipairs(q.edges) do
    edges[e] = { edge[1], edge[2] }
    has_behind[edge[1]], has_before[edge[2]] = true, true
  end
  for v = 1, n do
    if not has_before[v] then
      edges[#edges + 1] = { n + 1, v }
    end
    if not has_behind[v] then
      edges[#edges + 1] = { v, n + 2 }
    end
  end
  return edges, n + 1, n + 2
end

--- The stages of least bottleneck. q = {layers = number per vertex, edges = list of {from, to},
-- units = devices or groups of devices, price(vertex, first, last, width, depth) = seconds of a
-- stage per micro-batch, or nil where it does not hold what lives in it at this depth, which is the
-- number of stages from it to the sink}. Returns {t, depth, stages = list of {vertex, first, last,
-- width, depth}}; nil and the reason where there are none. Exact; units may stay unused.
function stage_graph.solve(q)
  local edges, source, sink = closed(q)
  local whole, why = hv.opt.series { edges = edges, source = source, sink = sink,
    leaf = function() return nothing end,
    series = function(left, v, right)
      return in_a_row(left, in_a_row(chain_of(q, v), right))
    end,
    parallel = side_by_side }
  if not whole then
    return nil, why
  end
  local best
  for m = 1, q.units do
    for _, one in ipairs(whole(m, 0)) do
      if not best or one.t < best.t or (one.t == best.t and one.depth < best.depth) then
        best = one
      end
    end
  end
  if not best then
    return nil, "no stages of whole layers fit"
  end
  return { t = best.t, depth = best.depth, stages = collect(best, {}) }
end

--- Fill, steady part and drain of micro-batches: (m + depth − 1) bottlenecks.
function stage_graph.seconds(bottleneck_s, micro_batches, depth)
  return (micro_batches + depth - 1) * bottleneck_s
end

return stage_graph
