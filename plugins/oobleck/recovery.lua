--- Pipeline templates and what happens to pipelines when nodes fail: list arithmetic of Oobleck
-- (SOSP'23, sections 4 and 5), nodes are any values.
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

--- Position of the smallest pipeline with wanted(p), but not `besides`; the first of equals.
local function smallest(pipelines, besides, wanted)
  local at
  for i, p in ipairs(pipelines) do
    if i ~= besides and (not at or #p < #pipelines[at]) and wanted(p) then
      at = i
    end
  end
  return at
end

--- Position of the largest pipeline that still fits without its last node, but not `besides`.
local function donor(pipelines, besides, fits)
  local at
  for i, p in ipairs(pipelines) do
    if i ~= besides and (not at or #p > #pipelines[at]) and #p > 1
        and fits(table.move(p, 1, #p - 1, 1, {})) then
      at = i
    end
  end
  return at
end

local function any()
  return true
end

--- Pipelines (lists of nodes) after the nodes in `lost` are gone (section 5.2): keep what still
-- fits, else borrow from the largest that can spare a node, else merge with the smallest.
-- fits(nodes) says whether a template holds the model. nil when the nodes that are left do not.
function recovery.repair(pipelines, lost, fits)
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

--- Pipelines of a plan as lists of positions in the node sequence.
function recovery.pipelines(ctx, made, sequence)
  local position, pipelines = {}, {}
  for at, node in ipairs(sequence) do
    for _, id in ipairs(node.ids) do
      position[id] = at
    end
  end
  for _, replica in ipairs(made.replicas) do
    local count = replica.count or 1
    for copy = 1, count do
      local own, seen = {}, {}
      for _, stage in ipairs(replica.stages) do
        local ids = ctx.cluster:ids(stage.devices)
        local part = #ids // count
        for i = (copy - 1) * part + 1, copy * part do
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

--- Positions of the nodes of a sequence that hold one of the devices `lost`, as a set; with `leave`
-- those that lost other devices (`damaged`, as templates.sequence marks them) too.
function recovery.gone(sequence, lost, leave)
  local gone, is_lost = {}, {}
  for _, id in ipairs(lost) do
    is_lost[id] = true
  end
  for i, node in ipairs(sequence) do
    gone[i] = leave and node.damaged or nil
    for _, id in ipairs(node.ids) do
      gone[i] = gone[i] or is_lost[id]
    end
  end
  return gone
end

--- The nodes at positions `own` of a sequence, in its order.
function recovery.nodes(sequence, own)
  local sorted, nodes = table.move(own, 1, #own, 1, {}), {}
  table.sort(sorted)
  for i, at in ipairs(sorted) do
    nodes[i] = sequence[at]
  end
  return nodes
end

--- Pipelines in words: "1 2 | 3 4".
function recovery.text(pipelines)
  local words = {}
  for i, p in ipairs(pipelines) do
    words[i] = table.concat(p, " ")
  end
  return table.concat(words, " | ")
end

--- Mixes as text, "2 2 3; 2 5": the sizes of each, by rising size.
-- @function recovery.mixes_text
-- @tparam table sizes list of template sizes
-- @tparam table options list of mixes, each a list of how many of every size
-- @treturn string the text
-- @units nodes
-- @raise none
-- @usage assert(require("recovery").mixes_text({ 2, 3 }, { { 2, 1 }, { 0, 1 } }) == "2 2 3; 3")
function recovery.mixes_text(sizes, options)
  local texts = {}
  for i, mix in ipairs(options) do
    local words = {}
    for s, n in ipairs(mix) do
      for _ = 1, n do
        words[#words + 1] = sizes[s]
      end
    end
    texts[i] = table.concat(words, " ")
  end
  table.sort(texts)
  return table.concat(texts, "; ")
end

return recovery
