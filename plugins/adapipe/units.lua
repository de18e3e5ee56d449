-- Units of computation of a layer that may be kept or recomputed, with the time and the memory that
-- keeping each costs; layers that are alike form a class.
local units = {}

-- As a plan's `recompute` names them.
local NAMES = { "qkv", "core", "out", "up", "act", "down", "norm", "experts" }

--- Prices of the layers under a recomputation; nil where the model has no such unit.
local function layers_of(kind, q, recompute)
  local ok, layers = pcall(hv.cost.layers, { kinds = { kind }, tp = q.tp,
    micro_batch = q.micro_batch, recompute = recompute, sequence_parallel = q.tp > 1 })
  return ok and layers or nil
end

--- Seconds and bytes of layer l.
local function price(layers, kind, l)
  return layers:time(l, l, kind, "backward"), layers:bytes(l, l, "saved")
end

--- A unit that costs time when it is recomputed.
local function add(class, name, seconds, bytes)
  if seconds > 0 then
    class.units[#class.units + 1] = { name = name, seconds = seconds, bytes = math.max(0, bytes) }
  end
end

--- Classes of layers on a kind under q = { tp, micro_batch }: a list by layer of the class, each {
-- forward_s, backward_s = with nothing recomputed, bytes = of its input, always kept, units = list
-- of { name, seconds, bytes }, number = of the class }. Embedding and head are in forward_s and
-- backward_s. A unit's bytes are what it alone frees: several free no less together, so that plans
-- fit.
function units.by_layer(ctx, kind, q)
  local none, full = layers_of(kind, q, "none"), layers_of(kind, q, "full")
  local list, classes, with, n = {}, {}, {}, 0
  if ctx.model.kind == "transformer" then
    for _, name in ipairs(NAMES) do
      with[#with + 1] = { name = name, layers = layers_of(kind, q, name) }
    end
  end
  for l = 1, ctx.model.n_layers do
    local class = { units = {}, forward_s = none:time(l, l, kind, "forward") }
    local kept_s, kept_bytes = price(none, kind, l)
    local full_s, least_bytes = price(full, kind, l)
    class.backward_s, class.bytes = kept_s, kept_bytes
    for _, own in ipairs(with) do
      if own.layers then
        local seconds, bytes = price(own.layers, kind, l)
        add(class, own.name, seconds - kept_s, kept_bytes - bytes)
      end
    end
    if #with == 0 then
      add(class, "full", full_s - kept_s, kept_bytes - least_bytes)
    end
    for _, unit in ipairs(class.units) do
      class.bytes = class.bytes - unit.bytes
    end
    class.bytes = math.max(class.bytes, least_bytes)
    local words = { ("%.9g/%.9g/%.9g"):format(class.forward_s, class.backward_s, class.bytes) }
    for i, unit in ipairs(class.units) do
      words[i + 1] = ("%s/%.9g/%.9g"):format(unit.name, unit.seconds, unit.bytes)
    end
    local key = table.concat(words, " ")
    if not classes[key] then
      n = n + 1
      class.number = n
      classes[key] = class
    end
    list[l] = classes[key]
  end
  return list
end

return units
