-- The inner choice of AdaPipe: which units a stage keeps so that its backward pass recomputes
-- least, within the bytes of one micro-batch.
local stage_memory = {}

--- Counts of each class in a run of layers: list of { class, n } in order of first mention.
local function classes_in(layers, first, last)
  local list, at = {}, {}
  for l = first, last do
    local class = layers[l]
    if not at[class] then
      at[class] = { class = class, n = 0 }
      list[#list + 1] = at[class]
    end
    at[class].n = at[class].n + 1
  end
  return list
end

--- Keeps what saves most recomputation: units of alike layers are a count, so that each is a group
-- of the knapsack with 0 … n kept. Returns { forward_s, backward_s, kept = by class a list of the
-- layers that keep each unit }; nil where not even the inputs of layers fit into `room` bytes.
function stage_memory.best(layers, first, last, room)
  local list = classes_in(layers, first, last)
  local stage = { forward_s = 0, backward_s = 0, kept = {} }
  local items, owners = {}, {}
  for _, own in ipairs(list) do
    stage.forward_s = stage.forward_s + own.n * own.class.forward_s
    stage.backward_s = stage.backward_s + own.n * own.class.backward_s
    room = room - own.n * own.class.bytes
    stage.kept[own.class] = {}
    for u, unit in ipairs(own.class.units) do
      local group = {}
      for k = 0, own.n do
        group[k + 1] = { k * unit.seconds, k * unit.bytes }
      end
      stage.backward_s = stage.backward_s + own.n * unit.seconds
      items[#items + 1] = group
      owners[#items] = { class = own.class, unit = u }
    end
  end
  if room < 0 then
    return nil
  end
  local best = #items > 0 and hv.opt.knapsack { items = items, cap = room }
  for i, choice in ipairs(best and best.choices or {}) do
    stage.kept[owners[i].class][owners[i].unit] = choice - 1
  end
  stage.backward_s = stage.backward_s - (best and best.value or 0)
  return stage
end

--- `recompute` of the layers first … last as a plan has it: the first layers of a class keep what
-- the counts say.
function stage_memory.recompute(layers, first, last, kept)
  local list, seen = {}, {}
  for l = first, last do
    local class = layers[l]
    seen[class] = (seen[class] or 0) + 1
    local words = {}
    for u, unit in ipairs(class.units) do
      if seen[class] > (kept[class][u] or 0) then
        words[#words + 1] = unit.name
      end
    end
    local all = #words == #class.units and #words > 0
    list[#list + 1] = #words == 0 and "none" or all and "full" or table.concat(words, "+")
  end
  return list
end

return stage_memory
