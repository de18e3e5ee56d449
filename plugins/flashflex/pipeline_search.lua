-- The search of FlashFlex (Yan et al., arXiv 2409.01143, section 4) over pipelines as in `ragged`:
-- the graph of devices is cut into pipelines, these into stages; stages are ordered, chunks of
-- machines choose their tensor degrees, layers follow memory. Beyond the paper: layers by speed,
-- and stages merged, split, swapped or left out while its own objective falls.
local formula = require "formula"
local numbers = require "numbers"
local search = require "search"

local walk = {}

--- Cuts atoms (lists of devices) into k parts of equal FLOP/s; edges weigh the bandwidth or its
-- inverse.
local function parted(q, atoms, k, inverse, seed)
  if k == 1 then
    return { atoms }
  end
  local weights, edges, parts = {}, {}, {}
  for i, atom in ipairs(atoms) do
    weights[i] = #atom * q.flops[atom[1]] / 1e12
    for j = 1, i - 1 do
      local bw = q.bw(atoms[j][1], atom[1]) / 1e9
      edges[#edges + 1] = { j, i, inverse and 1 / bw or bw }
    end
  end
  local r = hv.opt.cut { weights = weights, edges = edges, parts = k, tolerance = 0.2, seed = seed }
  for s = 1, k do
    parts[s] = {}
  end
  for i, s in ipairs(r.parts) do
    table.insert(parts[s], atoms[i])
  end
  for s = k, 1, -1 do
    if #parts[s] == 0 then
      table.remove(parts, s)
    end
  end
  return parts
end

-- Parts up to which the heaviest path is found exactly, and where time is short.
local EXACT, EXACT_QUICK = 18, 8

--- The heaviest of the paths that begin at each part and go on to the heaviest edge left (the
-- paper's way).
local function greedy(weight)
  local best, most = nil, -1
  for first = 1, #weight do
    local path, seen, sum = { first }, { [first] = true }, 0
    while #path < #weight do
      local at, to = path[#path], nil
      for j, w in ipairs(weight[at]) do
        if not seen[j] and (not to or w > weight[at][to]) then
          to = j
        end
      end
      path[#path + 1], seen[to], sum = to, true, sum + weight[at][to]
    end
    if sum > most then
      best, most = path, sum
    end
  end
  return best
end

--- Parts along the heaviest path of bandwidths.
local function ordered(q, parts, quick)
  local cost, out = {}, {}
  if #parts < 2 then
    return parts
  end
  for i, a in ipairs(parts) do
    cost[i] = {}
    for j, b in ipairs(parts) do
      cost[i][j] = i == j and 0 or q.bw(a[1][1], b[1][1]) / 1e9
    end
  end
  local exact = #parts <= (quick and EXACT_QUICK or EXACT)
  local order = exact and hv.opt.path({ cost = cost, kind = "heaviest" }).order or greedy(cost)
  for i, s in ipairs(order) do
    out[i] = parts[s]
  end
  return out
end

--- Ways to cut g devices of one machine into stages: all together, and halves again and again.
local function splits(q, devices)
  local list, seen = {}, {}
  local sizes = numbers.powers(#devices)
  sizes[#sizes + 1] = #devices
  for i = #sizes, 1, -1 do
    local rest, stages = #devices, {}
    while rest > 0 do
      local size = math.min(sizes[i], rest)
      while not q.tp(size) do
        size = size - 1
      end
      stages[#stages + 1] = { devices = numbers.slice(devices, #devices - rest + 1, size) }
      rest = rest - size
    end
    if not seen[#stages] then
      list[#list + 1], seen[#stages] = stages, true
    end
  end
  return list
end

--- Moves single layers between stages as long as the pipeline gets faster; o has time, fixed and
-- caps of the stages.
local function downhill(p, o)
  local times = {}
  local function set(s, layers)
    p[s].layers = layers
    times[s] = layers * o.time[s] + o.fixed[s]
  end
  for s, stage in ipairs(p) do
    set(s, stage.layers)
  end
  local now, moved = formula.map_s(times, p.micro_batches), true
  while moved do
    moved = false
    for i, a in ipairs(p) do
      for j, b in ipairs(p) do
        if i ~= j and a.layers > 1 and b.layers < o.caps[j] then
          set(i, a.layers - 1)
          set(j, b.layers + 1)
          local s = formula.map_s(times, p.micro_batches)
          if s < now * (1 - 1e-12) then
            now, moved = s, true
          else
            set(i, a.layers + 1)
            set(j, b.layers - 1)
          end
        end
      end
    end
  end
end

--- Gives stages their layers: in proportion to memory (the paper), or to speed and then layer by
-- layer downhill. False when they do not fit.
local function layered(q, p, by_memory)
  local o = { total = q.layers, time = {}, fixed = {}, min = {}, caps = {} }
  o.objective = by_memory and "ratio" or "minmax"
  for s, stage in ipairs(p) do
    local compute, exchange = formula.layer_s(q, stage)
    o.time[s] = by_memory and #stage.devices * q.memory[stage.devices[1]] or compute + exchange
    o.fixed[s] = p[s + 1] and formula.hop_s(q, stage, p[s + 1]) or 0
    o.min[s], o.caps[s] = 1, q.most(stage, s, #p)
    if o.caps[s] < 1 then
      return false
    end
  end
  if by_memory then
    o.fixed = nil
  end
  local r = #p <= q.layers and hv.opt.distribute(o)
  if not r then
    return false
  end
  for s, stage in ipairs(p) do
    stage.layers = r.counts[s]
  end
  if not by_memory and #p <= 12 then
    downhill(p, o)
  end
  return true
end

--- A copy of a pipeline whose stages from..to are these instead.
local function with(p, from, to, stages)
  local out = { micro_batches = p.micro_batches }
  for s = 1, from - 1 do
    out[s] = { devices = p[s].devices }
  end
  for _, stage in ipairs(stages) do
    out[#out + 1] = { devices = stage.devices }
  end
  for s = to + 1, #p do
    out[#out + 1] = { devices = p[s].devices }
  end
  return out
end

--- Neighbours of a pipeline: a stage left out, halved, joined with the next of its machine, or
-- swapped with it.
local function moves(q, p)
  local list = {}
  for s, stage in ipairs(p) do
    local d, next_stage = stage.devices, p[s + 1]
    if #p > 1 then
      list[#list + 1] = with(p, s, s, {})
    end
    if #d > 1 and q.tp(#d - #d // 2) and q.tp(#d // 2) then
      list[#list + 1] = with(p, s, s, { { devices = numbers.slice(d, 1, #d - #d // 2) },
        { devices = numbers.slice(d, #d - #d // 2 + 1, #d // 2) } })
    end
    if next_stage then
      list[#list + 1] = with(p, s, s + 1, { next_stage, stage })
      if q.machine[d[1]] == q.machine[next_stage.devices[1]] and q.tp(#d + #next_stage.devices) then
        local both = table.move(next_stage.devices, 1, #next_stage.devices, #d + 1,
          { table.unpack(d) })
        list[#list + 1] = with(p, s, s + 1, { { devices = both } })
      end
    end
  end
  return list
end

local function cost_of(q, p, by_memory)
  return layered(q, p, by_memory) and formula.pipeline_s(q, p,
    p.micro_batches)
end

--- A part's devices by machine, in order of first mention.
local function chunks_of(q, part)
  local chunks, by_machine = {}, {}
  for _, atom in ipairs(part) do
    local m = q.machine[atom[1]]
    if not by_machine[m] then
      by_machine[m], chunks[#chunks + 1] = {}, m
    end
    table.move(atom, 1, #atom, #by_machine[m] + 1, by_machine[m])
  end
  for i, m in ipairs(chunks) do
    chunks[i] = by_machine[m]
  end
  return chunks
end

--- Steps 2 to 6 for the atoms of one pipeline: its stages, or nil.
local function pipeline(q, atoms, k, o, seed)
  local values = {}
  for _, part in ipairs(ordered(q, parted(q, atoms, math.min(k, #atoms), false, seed), o.quick)) do
    for _, devices in ipairs(chunks_of(q, part)) do
      values[#values + 1] = splits(q, devices)
    end
  end
  local function built(state)
    local p = { micro_batches = o.micro_batches }
    for _, stages in ipairs(state) do
      for _, stage in ipairs(stages) do
        p[#p + 1] = { devices = stage.devices }
      end
    end
    return p
  end
  local state = {}
  for i, list in ipairs(values) do
    state[i] = list[1]
  end
  local r = search.coordinate { state = state, values = values, budget = o.quick and 1 or 200,
    cost = function(s) return cost_of(q, built(s), true) end }
  local p = built(r.state or state)
  local now = cost_of(q, p, true)
  if o.paper or o.quick then
    return now and p, now
  end
  local better = search.hill { state = p, budget = o.budget,
    moves = function(s) return moves(q, s) end,
    cost = function(s) return cost_of(q, s, false) end }
  return better.state, better.cost
end

--- Devices of a part in order, and a text that is the same for parts of the same machines.
local function shape_of(q, part)
  local flat, names, key, n = {}, {}, {}, 0
  for _, atom in ipairs(part) do
    for _, d in ipairs(atom) do
      local m = q.machine[d]
      if not names[m] then
        n, names[m] = n + 1, n + 1
      end
      flat[#flat + 1], key[#key + 1] = d, ("%d:%g:%g"):format(names[m], q.flops[d], q.memory[d])
    end
  end
  return flat, table.concat(key, " ")
end

--- A pipeline on the devices at the same places of another list.
local function copied(p, from, to)
  local place, out = {}, { micro_batches = p.micro_batches }
  for i, d in ipairs(from) do
    place[d] = to[i]
  end
  for s, stage in ipairs(p) do
    out[s] = { layers = stage.layers, devices = {} }
    for i, d in ipairs(stage.devices) do
      out[s].devices[i] = place[d]
    end
  end
  return out
end

--- The best pipeline of a part over a few numbers of stages, which the paper draws from a binomial
-- (2, 0.2).
local function best_pipeline(q, part, o, seed)
  local best, least = nil, math.huge
  for extra = 0, o.quick and 0 or 2 do
    local p, seconds = pipeline(q, part, #chunks_of(q, part) + extra, o, seed)
    if p and seconds < least then
      best, least = p, seconds
    end
  end
  return best
end

--- What the cut leaves together: every device by itself, or every node's devices.
-- @function pipeline_search.atoms
-- @tparam table nodes list of rows with ids, as inventory.nodes gives them
-- @tparam boolean whole nodes stay together
-- @treturn table lists of positions in the list of all nodes' devices
-- @units none
-- @raise none
-- @usage assert(require("pipeline_search").atoms({ { ids = { 7 } }, { ids = { 8, 9 } } }, true)[2][1] == 2)
function walk.atoms(nodes, whole)
  local atoms, at = {}, 0
  for _, node in ipairs(nodes) do
    local size = whole and #node.ids or 1
    for first = at + 1, at + #node.ids, size do
      local atom = {}
      for k = 1, size do
        atom[k] = first + k - 1
      end
      atoms[#atoms + 1] = atom
    end
    at = at + #node.ids
  end
  return atoms
end

--- The walk over numbers of pipelines and of stages, each round with a new cut. Needs of the
-- instance, beside what `ragged` wants: batch (sequences), machine[d], tp = function(size): may so
-- many devices of a machine share a layer, most = function(stage, s, stages): how many layers fit.
-- @function pipeline_search.run
-- @tparam table q instance, with the keys named at the top
-- @tparam table atoms lists of devices of one machine that the cut leaves together
-- @tparam table o {rounds, budget = evaluations of the descent per pipeline, seed, paper = true: no
-- descent, quick: no search at all, stopping = function that says when to end}
-- @treturn table list of {claim_s, pipelines}, best first
-- @units seconds
-- @raise none
-- @usage local q = { flops = { 1 }, memory = { 1 }, machine = { 1 }, hidden = 1, layers = 1, tokens = 1, vocab = 1,
--   micro_batch = 1, batch = 1, tp = function() return true end, most = function() return 1 end }
-- assert(#require("pipeline_search").run(q, { { 1 } }, { rounds = 1, budget = 1, seed = 1 }) == 1)
function walk.run(q, atoms, o)
  local found, random, most = {}, search.generator(o.seed),
    math.min(#atoms, q.batch // q.micro_batch)
  -- machines of a pipeline at most:
  local through = #atoms > 64 and math.max(1, math.min(32, q.layers // 2)) or 32
  local least = (#atoms + through - 1) // through -- of many, half as many as there are layers
  for round = 1, o.rounds do
    local k = math.min(most, least * (round <= 8 and 1 << (round - 1) or random(16)))
    local list, ok, parts = {}, not (o.stopping and o.stopping()), parted(q, atoms, k, true, round)
    o.micro_batches = math.max(1, q.batch // (q.micro_batch * #parts))
    local known = {} -- parts of the same machines get the same stages
    for i, part in ipairs(ok and parts or {}) do
      local flat, key = shape_of(q, part)
      known[key] = known[key] or { flat = flat, best = best_pipeline(q, part, o, round) }
      list[i] = known[key].best and copied(known[key].best, known[key].flat, flat)
      ok = ok and list[i]
    end
    if ok then
      local times, counts = {}, {}
      for i, p in ipairs(list) do
        local _, stage_s = formula.pipeline_s(q, p, 1)
        times[i], counts[i] = math.max(table.unpack(stage_s)), 1
      end
      local r = hv.opt.distribute { total = q.batch // q.micro_batch, time = times, min = counts }
      for i, p in ipairs(r and list or {}) do
        p.micro_batches = r.counts[i]
      end
      if r then
        found[#found + 1] = { claim_s = formula.total_s(q, list), pipelines = list, rank = #found
            + 1 }
      end
    end
  end
  table.sort(found, function(a, b) return a.claim_s < b.claim_s or a.claim_s == b.claim_s and a.rank < b.rank end)
  return found
end

return walk
