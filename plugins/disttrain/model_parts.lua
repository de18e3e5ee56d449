-- The three parts of a model: encoder (me), backbone (lm) and generator (mg), as runs of layers.
local model_parts = {}

--- Parts of a model without modules: the first and the last layers are split off, `ends` =
-- {encoder, generator} numbers of layers, 0: an eighth. nil where no backbone is left.
local function by_ends(n_layers, ends)
  local eighth = math.max(1, n_layers // 8)
  local me = ends.encoder > 0 and ends.encoder or eighth
  local mg = ends.generator > 0 and ends.generator or eighth
  if me + mg >= n_layers then
    return nil
  end
  return { me = { 1, me }, lm = { me + 1, n_layers - mg }, mg = { n_layers - mg + 1, n_layers } }
end

--- Parts of a model of modules: the module with most parameters is the backbone, what is before it
-- the encoder, what is behind it the generator.
local function by_modules(layers)
  local parts = {}
  local first, parameters, most = 1, 0, 0
  for l, layer in ipairs(layers) do
    parameters = parameters + layer.parameters
    if l == #layers or layers[l + 1].module ~= layer.module then
      if parameters > most then
        most = parameters
        parts.lm = { first, l }
      end
      first = l + 1
      parameters = 0
    end
  end
  if parts.lm[1] > 1 then
    parts.me = { 1, parts.lm[1] - 1 }
  end
  if parts.lm[2] < #layers then
    parts.mg = { parts.lm[2] + 1, #layers }
  end
  return parts
end

--- The parts {me, lm, mg} of the layers, as ranges {first, last}; me or mg is missing where there
-- is none. `ends` as above. nil where no backbone is left.
function model_parts.of(layers, ends)
  if layers[1].module then
    return by_modules(layers)
  end
  return by_ends(#layers, ends)
end

--- The layers from..to as the keys {layers, module} of a stage in a plan file: those of one module
-- count from its first layer.
function model_parts.stage_keys(layers, from, to)
  local name = layers[from].module
  if name == nil or layers[to].module ~= name then
    return { layers = { from - 1, to } }
  end
  local first = from
  while first > 1 and layers[first - 1].module == name do
    first = first - 1
  end
  return { module = name, layers = { from - first, to - first + 1 } }
end

--- The first layer of every module, by name.
function model_parts.first_layers(layers)
  local first = {}
  for l = #layers, 1, -1 do
    if layers[l].module then
      first[layers[l].module] = l
    end
  end
  return first
end

return model_parts
