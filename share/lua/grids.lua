--- Grids of stages as people say them: degrees, layers per stage, micro-batches and recompute as
-- words, with answers that say what would work. Pure arithmetic, no `hv`.
local layout = require "layout"

local grids = {}

--- Largest dp' <= dp whose share of the global batch is whole; devices beyond it stay unused.
function grids.usable_dp(global, dp, micro_batch)
  for d = dp, 1, -1 do
    if global % (d * micro_batch) == 0 then
      return d
    end
  end
end

--- Pipeline depths worth trying on n tensor-parallel groups: divisors of it, and powers of two.
function grids.depths(n, n_layers)
  local seen, list = {}, {}
  for _, set in ipairs { layout.divisors(n), layout.powers(n) } do
    for _, d in ipairs(set) do
      if d <= n_layers and not seen[d] then
        seen[d] = true
        list[#list + 1] = d
      end
    end
  end
  table.sort(list)
  return list
end

--- Devices in stage order: node groups named in `order` ("v,a") first, the others behind them; or
-- nil and why not.
function grids.in_order(devices, order)
  if order == "" then
    return devices
  end
  local wanted, n = {}, 0
  for name in order:gmatch("[^,%s]+") do
    n = n + 1
    wanted[name] = n
  end
  local known = {}
  for _, d in ipairs(devices) do
    known[d.group] = true
  end
  for name in pairs(wanted) do
    if not known[name] then
      return nil, ("order: the cluster has no node group '%s'"):format(name)
    end
  end
  local parts = {}
  for i = 1, n + 1 do
    parts[i] = {}
  end
  for _, d in ipairs(devices) do
    table.insert(parts[wanted[d.group] or n + 1], d)
  end
  local list = {}
  for _, part in ipairs(parts) do
    table.move(part, 1, #part, #list + 1, list)
  end
  return list
end

--- Layers per chunk in model order. `text` has one count per stage, or one per stage and chunk.
function grids.layer_counts(n_layers, pp, chunks, text)
  local parts = pp * chunks
  if text == "" then
    if parts > 2 and n_layers % parts ~= 0 and (n_layers + 2) % parts == 0 then
      local counts = layout.even(n_layers + 2, parts) -- embedding and head count as a layer each
      counts[1], counts[parts] = counts[1] - 1, counts[parts] - 1
      return counts
    elseif parts > n_layers then
      return nil, ("%d stages x %d chunks are more than the %d layers"):format(pp, chunks, n_layers)
    end
    return layout.even(n_layers, parts)
  end
  local given, sum = {}, 0
  for word in text:gmatch("[^,%s]+") do
    local n = tonumber(word)
    if not n or n ~= math.floor(n) or n < 0 then
      return nil, ("layers: expected whole numbers joined by commas, found '%s'"):format(word)
    end
    given[#given + 1] = math.tointeger(n)
    sum = sum + given[#given]
  end
  if #given ~= pp and #given ~= parts then
    return nil, ("layers: expected one count for each of the %d stages, found %d"):format(pp,
      #given)
  elseif sum ~= n_layers then
    return nil, ("layers: the counts add up to %d, the model has %d layers"):format(sum, n_layers)
  elseif #given == parts then
    return given
  end
  local counts = {}
  for s = 1, pp do -- a stage's layers spread evenly over its chunks
    local per_chunk = layout.even(given[s], chunks)
    for c = 1, chunks do
      counts[(c - 1) * pp + s] = per_chunk[c]
    end
  end
  return counts
end

--- Micro-batches per iteration, or why there is no whole number of them.
function grids.micro_batches(global, dp, micro_batch)
  local per_step = dp * micro_batch
  if global % per_step == 0 then
    return global // per_step
  end
  local advice = {}
  if global % dp == 0 then
    local below, above = layout.neighbours(global // dp, micro_batch)
    advice[#advice + 1] = "micro_batch " .. layout.either(below, above)
  end
  if global % micro_batch == 0 then
    local below, above = layout.neighbours(global // micro_batch, dp)
    advice[#advice + 1] = "dp " .. layout.either(below, above)
  end
  local lower = global - global % per_step
  advice[#advice + 1] = ("a global batch of %s%d"):format(
    lower > 0 and lower .. " or " or "", lower + per_step)
  return nil, ("a global batch of %d is not dp %d x micro_batch %d x a whole number; %s works")
    :format(global, dp, micro_batch, table.concat(advice, ", or "))
end

local recompute_units = { "qkv", "core", "out", "up", "act", "down", "norm", "experts" }

--- What `recompute` may be, in words.
grids.recompute_words = "none, selective, full, or units joined by +: "
  .. table.concat(recompute_units, " ")

--- Is it none, selective, full, or units joined by +?
function grids.is_recompute(text)
  local known = {}
  for _, unit in ipairs(recompute_units) do
    known[unit] = true
  end
  if text == "none" or text == "selective" or text == "full" then
    return true
  end
  for word in (text .. "+"):gmatch("([^+]*)%+") do
    if not known[word] then
      return false
    end
  end
  return true
end

return grids
