-- The dynamic program over stages and their replicas, level by level (Narayanan et al. 2019,
-- section 3.1): devices of a server first; what a server then takes for a run of layers is the
-- compute time of that run on the next level, and so on. Units from 1, runs inclusive; seconds,
-- bytes.
local levels = {}

--- Sums over runs: sum[j] - sum[i - 1].
local function sums(list)
  local sum = { [0] = 0 }
  for i, x in ipairs(list) do
    sum[i] = sum[i - 1] + x
  end
  return sum
end

--- Seconds per minibatch of a run on m components of a level, each of which computes it in
-- compute_s: `bytes` of weights are kept equal over `bandwidth`, a share of them by each of the
-- `inner` devices of a component. Added up as in the released code, or overlapped as in the paper.
function levels.stage_s(compute_s, bytes, m, level, inner, combine)
  if combine == "max" then
    return math.max(compute_s, 2 * (m - 1) * bytes / (level.bandwidth * inner)) / m
  end
  return (compute_s + 4 * (m - 1) * bytes / (level.bandwidth * m * inner)) / m
end

--- Seconds per minibatch of a cut behind unit k into a stage of m components, there and back.
function levels.cut_s(q, k, m, level)
  return 2 * q.outputs[k] / (level.bandwidth * m)
end

--- Minibatches alive in a stage of m components behind `before` of a level's: one for each of its
-- components' turns until the gradient is back.
function levels.alive(level, before, m)
  return math.ceil((level.count - before) / m)
end

--- Best values and choices of one level for the runs from unit i: value[j][m], cut[j][m] = {last
-- unit before the last stage, components of the last stage}; 0 where there is no stage before.
local function runs_from(q, level, inner, below, weights, i)
  local value, cut = {}, {}
  local fits = q.fits or function() return true end
  for j = i, #q.times do
    value[j], cut[j] = {}, {}
    for m = 1, level.count do
      local best, choice = math.huge, nil
      if below(i, j) < math.huge and fits(i, j, levels.alive(level, 0, m), inner) then
        best, choice = levels.stage_s(below(i, j), weights[j] - weights[i - 1], m, level, inner,
          q.combine), { 0, m }
      end
      for k = i, j - 1 do
        local bytes = weights[j] - weights[k]
        for own = 1, m - 1 do
          local before_s = value[k][m - own]
          if before_s < best then
            local at_s = math.max(before_s, levels.cut_s(q, k, own, level),
              levels.stage_s(below(k + 1, j), bytes, own, level, inner, q.combine))
            if at_s < best and fits(k + 1, j, levels.alive(level, m - own, own), inner) then
              best, choice = at_s, { k, own }
            end
          end
        end
      end
      value[j][m], cut[j][m] = best, choice
    end
  end
  return value, cut
end

--- Stages of the run i..j on m components of level l: list of {first, last, width = components,
-- inner = stages inside a component, nil on the lowest level}, in order.
local function stages_of(solved, l, i, j, m)
  local list = {}
  while j >= i do
    local k, own = table.unpack(solved[l].cut[i][j][m])
    local first = k > 0 and k + 1 or i
    local inner = l > 1 and stages_of(solved, l - 1, first, j, solved[l - 1].count) or nil
    table.insert(list, 1, { first = first, last = j, width = own, inner = inner })
    if k == 0 then
      break
    end
    j, m = k, m - own
  end
  return list
end

--- The plan of least time per minibatch in steady state. q = {times, weights, outputs = per unit of
-- the chain (outputs: behind it), levels = list of {count = components, bandwidth}, devices of a
-- server first, combine = "sum|max", fits(first, last, alive, inner) = whether `inner` devices
-- together hold that run with so many minibatches alive (always)}. Returns {value, stages as nested
-- lists}; nil where nothing fits. Exact among plans that use all components of every level.
function levels.solve(q)
  local times, weights = sums(q.times), sums(q.weights)
  local n, inner, solved = #q.times, 1, {}
  local function below(i, j)
    return times[j] - times[i - 1]
  end
  for l, level in ipairs(q.levels) do
    local own = { count = level.count, value = {}, cut = {} }
    for i = 1, l < #q.levels and n or 1 do
      own.value[i], own.cut[i] = runs_from(q, level, inner, below, weights, i)
    end
    solved[l] = own
    inner = inner * level.count
    function below(i, j)
      return own.value[i][j][own.count]
    end
  end
  local value = below(1, n)
  if value == math.huge then
    return nil
  end
  return { value = value, stages = stages_of(solved, #q.levels, 1, n, q.levels[#q.levels].count) }
end

--- The stages of nested lists on these devices, those of one component after the other: list of
-- {first, last, ids} in the order of the chain.
function levels.flat(stages, counts, ids, level)
  level = level or #counts
  local size, next_id, list = #ids // counts[level], 1, {}
  for _, stage in ipairs(stages) do
    local by_first = {}
    for _ = 1, stage.width do
      local own = table.move(ids, next_id, next_id + size - 1, 1, {})
      next_id = next_id + size
      local parts = stage.inner and levels.flat(stage.inner, counts, own, level - 1)
        or { { first = stage.first, last = stage.last, ids = own } }
      for _, part in ipairs(parts) do
        local joined = by_first[part.first]
        if joined then
          table.move(part.ids, 1, #part.ids, #joined.ids + 1, joined.ids)
        else
          by_first[part.first] = part
          list[#list + 1] = part
        end
      end
    end
  end
  return list
end

return levels
