-- Division of things into equal groups: a genetic search whose children are refined by cycles of
-- moves between the groups (DT-FM, Yuan et al., NeurIPS 2022, section 4: genetic algorithm with
-- cyclic partitioning), then a descent by swaps. `problem` is that of equal_groups.evolve. A
-- division is held as groups (lists of members) or as genes (the group of each thing).
local search = require "search"

local POPULATION = 40
local CROSSED_GENES = 5 -- genes that a child takes from its second parent
local SWAPS_PER_CANDIDATE = 4 -- evaluations of the descent, per candidate of the budget

local equal_groups = {}

--- Index of the member of `group` that gains most by going to `target`, and its gain: its least
-- weight to another member of its group less its mean weight to the members of the target. nil
-- where every member has moved or is alone.
local function best_mover(problem, group, target, has_moved)
  local best, best_gain
  for i, v in ipairs(group) do
    if not has_moved[v] then
      local least = math.huge
      for _, w in ipairs(group) do
        if w ~= v then
          least = math.min(least, problem.weight(v, w))
        end
      end
      local mean = 0
      for _, w in ipairs(target) do
        mean = mean + problem.weight(v, w) / math.max(1, #target)
      end
      if least < math.huge and (not best_gain or least - mean > best_gain) then
        best = i
        best_gain = least - mean
      end
    end
  end
  return best, best_gain
end

--- Moves a member from one group to the end of another.
local function move(groups, v, from, to)
  for i, w in ipairs(groups[from]) do
    if w == v then
      table.remove(groups[from], i)
    end
  end
  table.insert(groups[to], v)
end

--- The move from group `at` to a group not yet visited that gains most: the group, the member's
-- index and the gain; nil where there is none.
local function best_move(problem, groups, at, visited, has_moved)
  local to, index, best_gain
  for s = 1, #groups do
    if not visited[s] then
      local i, gain = best_mover(problem, groups[at], groups[s], has_moved)
      if i and (not best_gain or gain > best_gain) then
        to = s
        index = i
        best_gain = gain
      end
    end
  end
  return to, index, best_gain
end

--- Moves members along a chain of groups that begins at `start`. Gives the moves {member, from, to}
-- and the best place to close the chain to a cycle: {gain, n_moves, back = member that returns to
-- the start, from = its group}; n_moves is 0 where no cycle gains.
local function chain_from(problem, groups, start)
  local at = start
  local visited = { [start] = true }
  local has_moved = {}
  local total_gain = 0
  local moves = {}
  local closing = { gain = 1e-12, n_moves = 0 }
  for _ = 2, #groups do
    local to, index, gain = best_move(problem, groups, at, visited, has_moved)
    if not to then
      break
    end
    local v = groups[at][index]
    move(groups, v, at, to)
    moves[#moves + 1] = { member = v, from = at, to = to }
    has_moved[v] = true
    visited[to] = true
    total_gain = total_gain + gain
    at = to
    local back, back_gain = best_mover(problem, groups[at], groups[start], has_moved)
    if back and total_gain + back_gain > closing.gain then
      closing = { gain = total_gain + back_gain, n_moves = #moves, back = groups[at][back],
        from = at }
    end
  end
  return moves, closing
end

--- Cyclic partitioning: one cycle of moves through the groups from each group on, each of its best
-- length, until a cycle does not gain.
local function refine(problem, groups)
  for start = 1, #groups do
    local moves, closing = chain_from(problem, groups, start)
    for k = #moves, closing.n_moves + 1, -1 do
      move(groups, moves[k].member, moves[k].to, moves[k].from)
    end
    if closing.n_moves == 0 then
      return
    end
    move(groups, closing.back, closing.from, start)
  end
end

--- A child: the genes of one parent with five of the other's; then members of groups that are too
-- large go to the first group with room, from a random thing on.
local function crossed(random, one, other, n_groups)
  local genes = { table.unpack(one) }
  local n = #genes
  local size = n // n_groups
  for _ = 1, CROSSED_GENES do
    local v = random(n)
    genes[v] = other[v]
  end
  local count = {}
  for s = 1, n_groups do
    count[s] = 0
  end
  for _, s in ipairs(genes) do
    count[s] = count[s] + 1
  end
  local first = random(n)
  for k = 0, n - 1 do
    local v = (first + k) % n + 1
    if count[genes[v]] > size then
      for s = 1, n_groups do
        if count[s] < size then
          count[genes[v]] = count[genes[v]] - 1
          count[s] = count[s] + 1
          genes[v] = s
          break
        end
      end
    end
  end
  return genes
end

local function groups_of(genes, n_groups)
  local groups = {}
  for s = 1, n_groups do
    groups[s] = {}
  end
  for v, s in ipairs(genes) do
    table.insert(groups[s], v)
  end
  return groups
end

local function genes_of(groups)
  local genes = {}
  for s, group in ipairs(groups) do
    for _, v in ipairs(group) do
      genes[v] = s
    end
  end
  return genes
end

local function shuffle(random, list)
  for i = #list, 2, -1 do
    local j = random(i)
    list[i], list[j] = list[j], list[i]
  end
end

--- The first population: things in order, things dealt in turns, and random divisions.
local function first_population(random, n, n_groups, size)
  local order = {}
  for v = 1, n do
    order[v] = v
  end
  local population = {}
  for p = 1, size do
    if p > 2 then
      shuffle(random, order)
    end
    local genes = {}
    for i, v in ipairs(order) do
      if p == 2 then
        genes[v] = (i - 1) % n_groups + 1
      else
        genes[v] = (i - 1) // (n // n_groups) + 1
      end
    end
    population[p] = genes
  end
  return population
end

--- Swaps members of two groups where that lowers the cost. Of two classes one pair is tried until
-- the next gain. `state` is {cost, left = evaluations that are left}.
local function swap_between(problem, groups, a, b, state)
  local one, other = groups[a], groups[b]
  local tried = {} -- pairs of classes since the last gain
  for i = 1, #one do
    for j = 1, #other do
      local v, w = one[i], other[j]
      local class_v, class_w = problem.class(v), problem.class(w)
      local key = class_v .. "/" .. class_w
      if state.left > 0 and class_v ~= class_w and not tried[key] then
        tried[key] = true
        state.left = state.left - 1
        one[i] = w
        other[j] = v
        local cost = problem.cost(groups)
        if cost < state.cost then
          state.cost = cost
          tried = {}
        else
          one[i] = v
          other[j] = w
        end
      end
    end
  end
end

--- Swaps members of all pairs of groups as long as that helps, with so many evaluations at most;
-- gives the cost that is reached.
local function descend(problem, groups, cost, evaluations)
  local state = { cost = cost, left = evaluations }
  repeat
    local before = state.cost
    for a = 1, #groups do
      for b = a + 1, #groups do
        swap_between(problem, groups, a, b, state)
      end
    end
  until state.cost >= before
  return state.cost
end

--- Divides 1 … n into equal groups of least cost: groups (lists in ascending order), and their
-- cost. Children of two random parents are refined and replace the worse parent where they are
-- better; the best division of all is improved by swaps. Keys of `problem`:
--   n, parts      number of things and of groups; parts must divide n
--   cost(groups)  what is minimised
--   weight(v, w)  cost of two things in one group, which guides the refinement
--   class(v)      things of one class are equal
--   budget, seed  divisions that are evaluated, and the seed of the random numbers
function equal_groups.evolve(problem)
  local n_groups = problem.parts
  if problem.n % n_groups ~= 0 then
    error(("equal_groups.evolve: %d things in %d equal groups"):format(problem.n, n_groups), 2)
  end
  local random = search.generator(problem.seed)
  local size = n_groups == 1 and 1 or math.min(POPULATION, problem.budget)
  local population = first_population(random, problem.n, n_groups, size)
  local best_groups
  local best_cost = math.huge
  local function evaluate(groups)
    local cost = problem.cost(groups)
    if cost < best_cost then
      best_groups = groups_of(genes_of(groups), n_groups)
      best_cost = cost
    end
    return cost
  end
  local costs = {}
  for p, genes in ipairs(population) do
    costs[p] = evaluate(groups_of(genes, n_groups))
  end
  local n_children = n_groups > 1 and problem.budget - size or 0
  for _ = 1, n_children do
    local one, other = random(size), random(size)
    local genes = crossed(random, population[one], population[other], n_groups)
    local child = groups_of(genes, n_groups)
    refine(problem, child)
    local cost = evaluate(child)
    local worse = costs[one] > costs[other] and one or other
    if cost < costs[worse] then
      population[worse] = genes_of(child)
      costs[worse] = cost
    end
  end
  best_cost = descend(problem, best_groups, best_cost, SWAPS_PER_CANDIDATE * problem.budget)
  for _, group in ipairs(best_groups) do
    table.sort(group)
  end
  return best_groups, best_cost
end

return equal_groups
