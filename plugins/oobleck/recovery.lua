-- Pipelines when nodes fail (Oobleck, section 5.2): lists of nodes, which may be any values.
local recovery = {}

--- Position of the smallest pipeline but `besides` for which wanted(pipeline) holds; the first of
-- equals.
local function smallest(pipelines, besides, wanted)
  local best
  for i, p in ipairs(pipelines) do
    if i ~= besides and (not best or #p < #pipelines[best]) and wanted(p) then
      best = i
    end
  end
  return best
end

--- Position of the largest pipeline but `besides` that still fits without its last node.
local function donor(pipelines, besides, fits)
  local best
  for i, p in ipairs(pipelines) do
    if i ~= besides and (not best or #p > #pipelines[best]) and #p > 1
        and fits(table.move(p, 1, #p - 1, 1, {})) then
      best = i
    end
  end
  return best
end

local function any()
  return true
end

--- Pipelines without the nodes of the set `lost`; those that lost all are left out.
local function without(pipelines, lost)
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
  return left
end

--- Pipelines after the nodes of the set `lost` are gone. A pipeline that still fits is kept; one
-- that does not borrows a node from the largest that can spare one, else it merges with the
-- smallest. fits(nodes) is true where a template holds the model. nil where the nodes that are left
-- do not hold it.
function recovery.repair(pipelines, lost, fits)
  local left = without(pipelines, lost)
  while #left > 0 do
    local short = smallest(left, nil, function(p)
      return not fits(p)
    end)
    if not short then
      return left
    end
    local from = donor(left, short, fits)
    local into = smallest(left, short, any)
    if from then
      table.insert(left[short], table.remove(left[from]))
    elseif into then
      table.move(left[short], 1, #left[short], #left[into] + 1, left[into])
      table.remove(left, short)
    else
      return nil
    end
  end
end

--- Position in the sequence of the node of every device.
local function positions(sequence)
  local position = {}
  for at, node in ipairs(sequence) do
    for _, id in ipairs(node.ids) do
      position[id] = at
    end
  end
  return position
end

--- Pipelines of a plan as lists of positions in the node sequence, without nodes that are not in
-- it.
function recovery.pipelines(ctx, made, sequence)
  local position = positions(sequence)
  local pipelines = {}
  for _, replica in ipairs(made.replicas) do
    local count = replica.count or 1
    for copy = 1, count do
      local own = {}
      local seen = {}
      for _, stage in ipairs(replica.stages) do
        local ids = ctx.cluster:ids(stage.devices)
        local per_copy = #ids // count
        for i = (copy - 1) * per_copy + 1, copy * per_copy do
          local at = position[ids[i]]
          if at and not seen[at] then
            seen[at] = true
            own[#own + 1] = at
          end
        end
      end
      pipelines[#pipelines + 1] = own
    end
  end
  return pipelines
end

--- Positions of the nodes that hold one of the devices `lost`, as a set; with `leave` those too
-- that lost other devices (`damaged`, as node_sequence marks them).
function recovery.gone(sequence, lost, leave)
  local is_lost = {}
  for _, id in ipairs(lost) do
    is_lost[id] = true
  end
  local gone = {}
  for i, node in ipairs(sequence) do
    gone[i] = leave and node.damaged or nil
    for _, id in ipairs(node.ids) do
      gone[i] = gone[i] or is_lost[id]
    end
  end
  return gone
end

--- The nodes at the positions `own` of a sequence, in its order.
function recovery.nodes(sequence, own)
  local sorted = table.move(own, 1, #own, 1, {})
  table.sort(sorted)
  local nodes = {}
  for i, at in ipairs(sorted) do
    nodes[i] = sequence[at]
  end
  return nodes
end

--- Pipelines as text: "1 2 | 3 4".
function recovery.text(pipelines)
  local words = {}
  for i, p in ipairs(pipelines) do
    words[i] = table.concat(p, " ")
  end
  return table.concat(words, " | ")
end

return recovery
