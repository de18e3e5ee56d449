--- Pipeline templates and what happens to pipelines when nodes fail: pure list arithmetic of
-- Oobleck (SOSP'23, sections 4 and 5), nodes are any values.
local recovery = {}

--- Template sizes n0 … N - f·n0 (section 4.1.1).
function recovery.sizes(n_nodes, least, faults)
  local list = {}
  for n = least, n_nodes - faults * least do
    list[#list + 1] = n
  end
  return list
end

--- All {x_i >= 0} with sum x_i · sizes_i = n_nodes and sum x_i >= least (coin change, 4.2.1), at
-- most `cap` of them; the second result says whether the list is complete.
function recovery.options(n_nodes, sizes, least, cap)
  local found, x, complete = {}, {}, true
  local function choose(i, left, count)
    if #found >= cap then
      complete = false
    elseif i > #sizes then
      if left == 0 and count >= least then
        found[#found + 1] = table.move(x, 1, #sizes, 1, {})
      end
    else
      for n = left // sizes[i], 0, -1 do
        x[i] = n
        choose(i + 1, left - n * sizes[i], count + n)
      end
    end
  end
  choose(1, n_nodes, 0)
  return found, complete
end

local function smallest(pipelines, not_this)
  local at
  for i, p in ipairs(pipelines) do
    if i ~= not_this and (not at or #p < #pipelines[at]) then
      at = i
    end
  end
  return at
end

local function donor(pipelines, least)
  local at
  for i, p in ipairs(pipelines) do
    if #p > least and (not at or #p > #pipelines[at]) then
      at = i
    end
  end
  return at
end

--- Pipelines (lists of nodes) after the nodes in `lost` are gone (section 5.2): keep what is still
-- large enough, else borrow from the largest with more than `least` nodes, else merge.
-- nil when fewer than `least` nodes are left.
function recovery.repair(pipelines, lost, least)
  local left = {}
  for _, p in ipairs(pipelines) do
    local rest = {}
    for _, node in ipairs(p) do
      if not lost[node] then
        rest[#rest + 1] = node
      end
    end
    if #rest > 0 then
      left[#left + 1] = rest
    end
  end
  while true do
    local short = smallest(left)
    if not short then
      return nil
    elseif #left[short] >= least then
      return left
    end
    local from = donor(left, least)
    if from then
      table.insert(left[short], table.remove(left[from]))
    elseif #left > 1 then
      local into = smallest(left, short)
      table.move(left[short], 1, #left[short], #left[into] + 1, left[into])
      table.remove(left, short)
    else
      return nil
    end
  end
end

return recovery
