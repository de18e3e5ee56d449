-- The communication cost of a division of vertices into stages (DT-FM, Yuan et al., NeurIPS 2022,
-- section 3): COMM = DATAP + 2 PIPEP. Costs are remembered in the instance (see network.lua) by
-- the classes of a group's vertices.
local communication = {}

-- Groups up to which the shortest path is found exactly.
local EXACT_PATH = 10

--- Sets the bytes of an instance: gradients of a stage and activations between two stages.
function communication.set_bytes(instance, dp_bytes, pp_bytes)
  instance.dp_bytes = dp_bytes
  instance.pp_bytes = pp_bytes
  instance.data_parallel_s = nil
  instance.distance_s = nil
end

--- Seconds to exchange gradients with one device of a group of n, there and back, as the replicas
-- of a sharded parameter server do.
function communication.exchange_s(instance, a, b, n)
  return 2 * (instance.delay_s[a][b] + instance.dp_bytes / (n * instance.rate_bytes_per_s[a][b]))
end

--- Classes of a group's vertices in ascending order, and their text.
local function classes_of(instance, group)
  local classes = {}
  for i, v in ipairs(group) do
    classes[i] = instance.class[v]
  end
  table.sort(classes)
  return classes, table.concat(classes, " ")
end

--- Seconds of the slowest device of a group in its exchange with all others of the group.
local function slowest_exchange_s(instance, classes)
  local block = instance.block or 1
  local count = {} -- devices by class
  local order = {}
  for _, class in ipairs(classes) do
    if not count[class] then
      count[class] = 0
      order[#order + 1] = class
    end
    count[class] = count[class] + block
  end
  local slowest = 0
  for _, a in ipairs(order) do
    local sum = 0
    for _, b in ipairs(order) do
      local n_others = count[b] - (a == b and 1 or 0)
      sum = sum + n_others * communication.exchange_s(instance, a, b, #classes * block)
    end
    slowest = math.max(slowest, sum)
  end
  return slowest
end

--- DATAP of one group whose classes and their text are given.
local function data_parallel_s(instance, classes, text)
  instance.data_parallel_s = instance.data_parallel_s or {}
  local known = instance.data_parallel_s
  if not known[text] then
    known[text] = slowest_exchange_s(instance, classes)
  end
  return known[text]
end

--- Bottleneck perfect matching of two groups: seconds of the slowest pair, and for every member of
-- the first group the index of its partner.
function communication.matching(instance, one, other)
  local cost = {}
  for i, v in ipairs(one) do
    cost[i] = {}
    for j, w in ipairs(other) do
      local a, b = instance.class[v], instance.class[w]
      cost[i][j] = instance.delay_s[a][b] + instance.pp_bytes / instance.rate_bytes_per_s[a][b]
    end
  end
  local matching = hv.opt.assign { cost = cost, objective = "bottleneck" }
  return matching.value, matching.columns
end

--- Distance of two groups whose classes are given as texts.
local function distance_s(instance, one, other, one_text, other_text)
  local key
  if one_text < other_text then
    key = one_text .. "|" .. other_text
  else
    key = other_text .. "|" .. one_text
  end
  instance.distance_s = instance.distance_s or {}
  local known = instance.distance_s
  known[key] = known[key] or communication.matching(instance, one, other)
  return known[key]
end

--- The path from one group on that always goes to the nearest group not yet on it: length, order.
local function nearest_path(distance, start)
  local seen = { [start] = true }
  local path = { start }
  local length = 0
  local at = start
  for _ = 2, #distance do
    local to
    for j = 1, #distance do
      if not seen[j] and (not to or distance[at][j] < distance[at][to]) then
        to = j
      end
    end
    length = length + distance[at][to]
    seen[to] = true
    path[#path + 1] = to
    at = to
  end
  return length, path
end

--- The shortest open path over all groups: exact for few groups, else the shortest one that always
-- goes to the nearest group. Groups of the same text have equal links, so one start of each is
-- enough.
local function open_path(distance, texts)
  if #distance <= EXACT_PATH then
    local path = hv.opt.path { cost = distance, kind = "tsp_open" }
    return path.value, path.order
  end
  local best = math.huge
  local best_order
  local has_started = {}
  for start = 1, #distance do
    if not has_started[texts[start]] then
      has_started[texts[start]] = true
      local length, order = nearest_path(distance, start)
      if length < best then
        best = length
        best_order = order
      end
    end
  end
  return best, best_order
end

--- COMM of a division into groups in seconds, then DATAP, PIPEP and the order of the groups. DATAP
-- is the slowest sharded parameter server of a group's vertices, PIPEP the open-path travelling
-- salesman problem over groups, whose distance is a bottleneck perfect matching.
function communication.cost(instance, groups)
  local data_s = 0
  local distance = {}
  local texts = {}
  for i, group in ipairs(groups) do
    local classes
    classes, texts[i] = classes_of(instance, group)
    data_s = math.max(data_s, data_parallel_s(instance, classes, texts[i]))
    distance[i] = { [i] = 0 }
  end
  for i = 1, #groups do
    for j = 1, i - 1 do
      distance[i][j] = distance_s(instance, groups[i], groups[j], texts[i], texts[j])
      distance[j][i] = distance[i][j]
    end
  end
  if #groups == 1 then
    return data_s, data_s, 0, { 1 }
  end
  local pipeline_s, order = open_path(distance, texts)
  return data_s + 2 * pipeline_s, data_s, pipeline_s, order
end

return communication
