-- DAPPLE's dynamic program (section 4.3): prefixes of blocks on allocations of devices, each valued
-- by the latency of the plan in which all other blocks are one stage on all other devices. Per
-- number of blocks and allocation the prefix of least value is kept, which is not exact: the
-- latency is no sum over stages. Self-tests measure how far from exhaustive search it ends.
local latency = require "latency"
local placement = require "placement"

local planner = {}

--- How many of a list of counts.
local function sum_of(counts)
  local n = 0
  for _, count in ipairs(counts) do
    n = n + count
  end
  return n
end

--- The prefix with one more stage of blocks first … last on `taken`; nil where it is not allowed.
local function longer(q, prefix, last, taken, n_taken)
  local first = prefix.last + 1
  local stage = q.stage(first, last, taken, n_taken)
  if not stage then
    return nil
  end
  local timed = table.move(prefix.timed, 1, #prefix.timed, 1, {})
  local stages = table.move(prefix.stages, 1, #prefix.stages, 1, {})
  local before = stages[#stages]
  if before then
    local hop_s = q.hop(prefix.last, before.taken, taken)
    timed[#timed + 1] = { f = hop_s, b = hop_s, ar = 0 }
  end
  timed[#timed + 1] = stage
  stages[#stages + 1] = { first = first, last = last, taken = taken, n = n_taken }
  return { last = last, timed = timed, stages = stages }
end

--- What is free behind a stage.
local function without(free, taken)
  local left = {}
  for i, count in ipairs(free) do
    left[i] = count - taken[i]
  end
  return left
end

--- Numbers of devices that a stage may take of n free ones, some left over.
local function widths(n)
  local list, width = {}, 1
  while width < n do
    list[#list + 1] = width
    width = 2 * width
  end
  return list
end

--- A text that is the same for allocations that leave as much free on machines of the same size.
local function key_of(sizes, free)
  local words = {}
  for i, count in ipairs(free) do
    words[i] = sizes[i] .. ":" .. count
  end
  table.sort(words)
  return table.concat(words, ",")
end

--- The prefixes that are followed: those that use most nearly the share of the devices that they
-- have of the blocks, then those of least value.
local function fairest(q, list)
  if not q.width or #list <= q.width then
    return list
  end
  local whole, rank = sum_of(q.sizes), {}
  for i, prefix in ipairs(list) do
    rank[prefix] = { math.abs(sum_of(prefix.free) / whole - 1 + prefix.last / q.blocks),
      prefix.value, i }
  end
  table.sort(list, function(a, b)
    for i = 1, 3 do
      if rank[a][i] ~= rank[b][i] then
        return rank[a][i] < rank[b][i]
      end
    end
    return false
  end)
  return table.move(list, 1, q.width, 1, {})
end

--- Plans for q = { blocks, sizes = devices per node, micro_batches, stage(first, last, counts, n) =
-- { f, b, ar } or nil, hop(last, counts, counts) = seconds of a transfer behind block `last` }:
-- list of { seconds, stages = list of { first, last, taken = devices by node, n } }, the best one
-- first, one for each number of stages.
function planner.plans(q)
  local finished = {}
  local function finish(prefix, free)
    local whole = longer(q, prefix, q.blocks, free, sum_of(free))
    if not whole then
      return nil
    end
    local seconds, p = (latency.of(whole.timed, q.micro_batches)), #whole.stages
    if not finished[p] or seconds < finished[p].seconds then
      finished[p] = { seconds = seconds, stages = whole.stages }
    end
    return seconds
  end
  local levels = {}
  for j = 0, q.blocks - 1 do
    levels[j] = { list = {}, at = {} }
  end
  --- Keeps a prefix where it is the first or the best with its blocks and devices; where the rest
  -- is too much for one stage, which the same blocks and devices decide, by its own latency.
  local function keep(prefix, free)
    local level, key = levels[prefix.last], key_of(q.sizes, free)
    prefix.free = free
    prefix.value = finish(prefix, free)
      or #prefix.timed > 0 and (latency.of(prefix.timed, q.micro_batches)) or 0
    local at = level.at[key]
    if not at then
      level.list[#level.list + 1] = prefix
      level.at[key] = #level.list
    elseif prefix.value < level.list[at].value then
      level.list[at] = prefix
    end
  end
  keep({ last = 0, timed = {}, stages = {} }, q.sizes)
  for j = 0, q.blocks - 2 do
    for _, prefix in ipairs(fairest(q, levels[j].list)) do
      if q.stopping and q.stopping() and next(finished) then
        break
      end
      for _, n in ipairs(widths(sum_of(prefix.free))) do
        local seen = {}
        for _, pick in ipairs(placement.all) do
          local taken = pick(prefix.free, q.sizes, n)
          local key = table.concat(taken, ",")
          for last = j + 1, seen[key] and j or q.blocks - 1 do
            local grown = longer(q, prefix, last, taken, n)
            if not grown then
              break -- nor does a longer one fit
            end
            keep(grown, without(prefix.free, taken))
          end
          seen[key] = true
        end
      end
    end
  end
  local list = {}
  for _, plan in pairs(finished) do
    list[#list + 1] = plan
  end
  table.sort(list, function(a, b)
    if a.seconds ~= b.seconds then
      return a.seconds < b.seconds
    end
    return #a.stages < #b.stages
  end)
  return list
end

return planner
