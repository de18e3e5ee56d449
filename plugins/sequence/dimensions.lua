-- Dynamic sequence parallelism: along which dimension of its tokens each block is cut. A block is
-- never cut along the dimension that it attends along; between two blocks that are cut otherwise
-- the activations are switched by one all-to-all. A shortest path over blocks x dimensions, from
-- the cut of the embedding to the cut of the head, which are the same (Zhao et al. 2025, section
-- 3.2).
local dimensions = {}

--- Costs of cutting a block along each dimension: 0, or none where it attends along it or `ranks`
-- do not divide it.
local function costs_of(attends, dims, ranks)
  local costs, any = {}, false
  for d, dim in ipairs(dims) do
    local fits = dim.name ~= attends and dim.size % ranks == 0
    costs[d] = fits and 0 or math.huge
    any = any or fits
  end
  return costs, any
end

--- Costs between the dimensions of neighbours.
local function switches(n, switch_s)
  local rows = {}
  for from = 1, n do
    rows[from] = {}
    for to = 1, n do
      rows[from][to] = from == to and 0 or switch_s
    end
  end
  return rows
end

--- The shortest path with this dimension at both ends, or nil.
local function path_from(nodes, ends, n_dims, switch_s)
  local costs = {}
  for d = 1, n_dims do
    costs[d] = d == ends and 0 or math.huge
  end
  local all = { costs }
  table.move(nodes, 1, #nodes, 2, all)
  all[#all + 1] = costs
  local edges = {}
  for i = 1, #all - 1 do
    edges[i] = { i, i + 1, switches(n_dims, switch_s) }
  end
  return hv.opt.graph_dp { nodes = all, edges = edges, method = "chain" }
end

--- The dimension of each block: blocks = what each attends along, dims = list of { name, size },
-- over `ranks`, a switch takes switch_s. Returns { names, switches, inside = those between blocks,
-- seconds }; nil and the number of the block that cannot be cut.
function dimensions.shortest(blocks, dims, ranks, switch_s)
  local nodes, best = {}, nil
  for b, attends in ipairs(blocks) do
    local costs, any = costs_of(attends, dims, ranks)
    if not any then
      return nil, b
    end
    nodes[b] = costs
  end
  for ends = 1, #dims do
    local found = path_from(nodes, ends, #dims, switch_s)
    if found and (not best or found.value < best.value) then
      best = found
    end
  end
  local names, inside = {}, 0
  for b = 1, #blocks do
    names[b] = dims[best.choices[b + 1]].name
    inside = inside + (b > 1 and names[b] ~= names[b - 1] and 1 or 0)
  end
  local ends = (best.choices[1] ~= best.choices[2] and 1 or 0)
    + (best.choices[#blocks + 2] ~= best.choices[#blocks + 1] and 1 or 0)
  return { names = names, inside = inside, switches = inside + ends, seconds = best.value }
end

return dimensions
