-- Division of things into equal groups: a genetic search whose children are refined by cycles of
-- moves between the groups (GCMA of DT-FM, Yuan et al., NeurIPS 2022, section 4), and a descent by
-- swaps.
local search = require "search"

local equal_groups = {}

--- The member of `part` that gains most by going to `target`: what its fastest link here costs less
-- the mean cost there.
local function best_mover(q, part, target, moved)
  local best, gain
  for i, v in ipairs(part) do
    if not moved[v] then
      local fastest, mean = math.huge, 0
      for _, w in ipairs(part) do
        fastest = w ~= v and math.min(fastest, q.weight(v, w)) or fastest
      end
      for _, w in ipairs(target) do
        mean = mean + q.weight(v, w) / math.max(1, #target)
      end
      if fastest < math.huge and (not gain or fastest - mean > gain) then
        best, gain = i, fastest - mean
      end
    end
  end
  return best, gain
end

local function move(parts, v, from, to)
  for i, w in ipairs(parts[from]) do
    if w == v then
      table.remove(parts[from], i)
    end
  end
  table.insert(parts[to], v)
end

--- One chain of moves from group `start` and the best place to close it: the moves, and how many
-- count.
local function chain_from(q, parts, start)
  local at, visited, moved, total, log, best = start, { [start] = true }, {}, 0, {},
    { gain = 1e-12, n = 0 }
  for _ = 2, #parts do
    local to, index, most
    for s = 1, #parts do
      local i, gain
      if not visited[s] then
        i, gain = best_mover(q, parts[at], parts[s], moved)
      end
      if i and (not most or gain > most) then
        to, index, most = s, i, gain
      end
    end
    if not to then
      break
    end
    local v = parts[at][index]
    move(parts, v, at, to)
    log[#log + 1], moved[v], visited[to], total, at = { v, at, to }, true, true, total + most, to
    local back, gain = best_mover(q, parts[at], parts[start], moved)
    if back and total + gain > best.gain then
      best = { gain = total + gain, n = #log, back = parts[at][back], from = at }
    end
  end
  return log, best
end

--- Cyclic partitioning: chains of moves through the groups, each closed into a cycle at its best
-- length; at most one per group, while they gain.
local function refine(q, parts)
  for start = 1, #parts do
    local log, best = chain_from(q, parts, start)
    for k = #log, best.n + 1, -1 do
      move(parts, log[k][1], log[k][3], log[k][2])
    end
    if best.n == 0 then
      return
    end
    move(parts, best.back, best.from, start)
  end
end

--- A child: the genes of one parent, five of the other's, members of full groups given to others.
local function crossed(random, one, other, n_parts)
  local genes, count, room = { table.unpack(one) }, {}, #one // n_parts
  for _ = 1, 5 do
    local v = random(#genes)
    genes[v] = other[v]
  end
  for s = 1, n_parts do
    count[s] = 0
  end
  for _, s in ipairs(genes) do
    count[s] = count[s] + 1
  end
  local from = random(#genes)
  for k = 0, #genes - 1 do
    local v = (from + k) % #genes + 1
    for s = 1, count[genes[v]] > room and n_parts or 0 do
      if count[s] < room then
        count[genes[v]], count[s], genes[v] = count[genes[v]] - 1, count[s] + 1, s
        break
      end
    end
  end
  return genes
end

local function parts_of(genes, n_parts)
  local parts = {}
  for s = 1, n_parts do
    parts[s] = {}
  end
  for v, s in ipairs(genes) do
    table.insert(parts[s], v)
  end
  return parts
end

local function genes_of(parts)
  local genes = {}
  for s, part in ipairs(parts) do
    for _, v in ipairs(part) do
      genes[v] = s
    end
  end
  return genes
end

--- The obvious divisions: in order, dealt in turns; the rest drawn.
local function first_people(random, n, n_parts, size)
  local people, order = {}, {}
  for v = 1, n do
    order[v] = v
  end
  for p = 1, size do
    local genes = {}
    for i = n, 2, -1 do
      local j = p > 2 and random(i) or i
      order[i], order[j] = order[j], order[i]
    end
    for i, v in ipairs(order) do
      genes[v] = p == 2 and (i - 1) % n_parts + 1 or (i - 1) // (n // n_parts) + 1
    end
    people[p] = genes
  end
  return people
end

--- Swaps two things of different classes in different groups as long as that helps, `left` times at
-- most.
local function descend(q, parts, cost, left)
  repeat
    local before = cost
    for a = 1, #parts do
      for b = a + 1, #parts do
        local seen = {}
        for i, v in ipairs(parts[a]) do
          for j, w in ipairs(parts[b]) do
            local cv, cw = q.class(v), q.class(w)
            local key = cv .. "/" .. cw
            if left > 0 and cv ~= cw and not seen[key] and parts[a][i] == v
                and parts[b][j] == w then
              seen[key], left = true, left - 1
              parts[a][i], parts[b][j] = w, v
              local now = q.cost(parts)
              if now < cost then
                cost, seen, v = now, {}, w else
                parts[a][i], parts[b][j] = v, w
              end
            end
          end
        end
      end
    end
  until cost >= before
  return cost
end

--- Divides 1 … n into equal groups of least cost: the obvious divisions first, then children of two
-- parents, refined by cycles, which replace the worse parent; the best is taken down by swaps (four
-- per candidate).
-- @function equal_groups.evolve
-- @tparam table q {n, parts = how many groups, cost = function(list of groups), weight =
-- function(i, j): how dear two things are together, class = function(i): things of one class are
-- alike, budget = 300 candidates, population = 40, seed = 1}
-- @treturn table {parts = list of groups, cost, evaluations, trace = list of {evaluation, cost}}
-- @units any, the caller's
-- @raise n that the number of groups does not divide
-- @usage local equal_groups = require "equal_groups"
-- local r = equal_groups.evolve { n = 4, parts = 2, class = function(i) return i end,
--   weight = function(i, j) return math.abs(i - j) end,
--   cost = function(g) return math.abs(g[1][1] - g[1][2]) + math.abs(g[2][1] - g[2][2]) end }
-- assert(r.cost == 2)
function equal_groups.evolve(q)
  if q.n % q.parts ~= 0 then
    error(("groups.evolve: %d things in %d equal groups"):format(q.n, q.parts), 2)
  end
  local random = search.generator(q.seed or 1)
  local size = q.parts == 1 and 1 or math.min(q.population or 40, q.budget or 300)
  local people, costs = first_people(random, q.n, q.parts, size), {}
  local out = { cost = math.huge, trace = {}, evaluations = 0 }
  local function try(parts)
    local cost = q.cost(parts)
    out.evaluations = out.evaluations + 1
    if cost < out.cost then
      out.parts, out.cost = parts_of(genes_of(parts), q.parts), cost
      out.trace[#out.trace + 1] = { out.evaluations, cost }
    end
    return cost
  end
  for p, genes in ipairs(people) do
    costs[p] = try(parts_of(genes, q.parts))
  end
  while out.evaluations < (q.budget or 300) and q.parts > 1 do
    local one, other = random(#people), random(#people)
    local parts = parts_of(crossed(random, people[one], people[other], q.parts), q.parts)
    refine(q, parts)
    local cost, worse = try(parts), costs[one] > costs[other] and one or other
    if cost < costs[worse] then
      people[worse], costs[worse] = genes_of(parts), cost
    end
  end
  local swapped = parts_of(genes_of(out.parts), q.parts)
  out.cost = descend(q, swapped, out.cost, 4 * (q.budget or 300))
  out.parts = swapped
  for _, part in ipairs(swapped) do
    table.sort(part)
  end
  return out
end

return equal_groups
