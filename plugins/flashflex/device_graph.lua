-- The graph of devices, whose edges are bandwidths: its cut into parts of equal speed and the order
-- of parts along the heaviest path (FlashFlex, arXiv 2409.01143, section 4). An atom is a list of
-- devices that the cut leaves together, a part a list of atoms; `problem` is that of formula.lua.
local device_graph = {}

-- Parts up to which the heaviest path is found exactly, and where time is short.
local EXACT, EXACT_QUICK = 18, 8

--- Every device as an atom, or every node where `whole` is true. Nodes have ids; devices are
-- numbered by position in the list of all nodes' devices.
function device_graph.atoms(nodes, whole)
  local atoms = {}
  local last = 0
  for _, node in ipairs(nodes) do
    local size = whole and #node.ids or 1
    for first = last + 1, last + #node.ids, size do
      local atom = {}
      for k = 1, size do
        atom[k] = first + k - 1
      end
      atoms[#atoms + 1] = atom
    end
    last = last + #node.ids
  end
  return atoms
end

--- Cuts atoms into at most k parts of about equal FLOP/s. Edges weigh the bandwidth; where
-- `inverse` is true its inverse, so that fast links connect the parts.
function device_graph.cut(problem, atoms, k, inverse, seed)
  if k == 1 then
    return { atoms }
  end
  local weights = {}
  local edges = {}
  for i, atom in ipairs(atoms) do
    weights[i] = #atom * problem.flops_per_s[atom[1]] / 1e12
    for j = 1, i - 1 do
      local bandwidth = problem.bandwidth(atoms[j][1], atom[1]) / 1e9
      edges[#edges + 1] = { j, i, inverse and 1 / bandwidth or bandwidth }
    end
  end
  local cut = hv.opt.cut { weights = weights, edges = edges, parts = k, tolerance = 0.2,
    seed = seed }
  local by_number = {}
  for i, number in ipairs(cut.parts) do
    by_number[number] = by_number[number] or {}
    table.insert(by_number[number], atoms[i])
  end
  local parts = {}
  for number = 1, k do
    parts[#parts + 1] = by_number[number]
  end
  return parts
end

--- The heaviest of the paths that begin at each part and always go on along the heaviest edge, as
-- in the paper.
local function greedy_path(weight)
  local best
  local best_sum = -1
  for first = 1, #weight do
    local path = { first }
    local seen = { [first] = true }
    local sum = 0
    while #path < #weight do
      local at = path[#path]
      local to
      for j, w in ipairs(weight[at]) do
        if not seen[j] and (not to or w > weight[at][to]) then
          to = j
        end
      end
      path[#path + 1] = to
      seen[to] = true
      sum = sum + weight[at][to]
    end
    if sum > best_sum then
      best = path
      best_sum = sum
    end
  end
  return best
end

--- Parts in the order of the heaviest path of bandwidths; `quick` where time is short.
function device_graph.ordered(problem, parts, quick)
  if #parts < 2 then
    return parts
  end
  local weight = {}
  for i, a in ipairs(parts) do
    weight[i] = {}
    for j, b in ipairs(parts) do
      weight[i][j] = i == j and 0 or problem.bandwidth(a[1][1], b[1][1]) / 1e9
    end
  end
  local order
  if #parts <= (quick and EXACT_QUICK or EXACT) then
    order = hv.opt.path({ cost = weight, kind = "heaviest" }).order
  else
    order = greedy_path(weight)
  end
  local out = {}
  for i, number in ipairs(order) do
    out[i] = parts[number]
  end
  return out
end

--- Devices of a part by machine, in order of first mention.
function device_graph.by_machine(problem, part)
  local chunks = {}
  local chunk_of = {}
  for _, atom in ipairs(part) do
    local machine = problem.machine[atom[1]]
    if not chunk_of[machine] then
      chunk_of[machine] = {}
      chunks[#chunks + 1] = chunk_of[machine]
    end
    local chunk = chunk_of[machine]
    table.move(atom, 1, #atom, #chunk + 1, chunk)
  end
  return chunks
end

--- Devices of a part in order, and a text that is the same for parts of equal machines.
function device_graph.shape(problem, part)
  local devices = {}
  local words = {}
  local number_of = {} -- machines in order of first mention
  local n_machines = 0
  for _, atom in ipairs(part) do
    for _, d in ipairs(atom) do
      local machine = problem.machine[d]
      if not number_of[machine] then
        n_machines = n_machines + 1
        number_of[machine] = n_machines
      end
      devices[#devices + 1] = d
      words[#words + 1] = ("%d:%g:%g"):format(number_of[machine], problem.flops_per_s[d],
        problem.memory_bytes[d])
    end
  end
  return devices, table.concat(words, " ")
end

return device_graph
