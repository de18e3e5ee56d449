-- Problems of configuration.lua from measured operators, by Aceso's equations (Liu et al., EuroSys
-- 2024, section 3.3; factors of its code for mixed precision). Times are in seconds and sizes in
-- MB.
local recomputation = require "recomputation"

local operators = {}

-- Columns of a profile's rows: microseconds, then MB.
local FORWARD, BACKWARD, INPUT, OUTPUT, WEIGHTS, ACTIVATIONS = 1, 2, 3, 4, 5, 6
local RESERVED_FORWARD, RESERVED_BACKWARD = 7, 8

local DROPOUT_FACTOR = 1.5 -- of the activations of attention dropout, with its mask

--- Runs of two or more operators of from..to whose activations are dropped but the last one's.
local function runs_of(rows, kept, from, to)
  local runs = {}
  for i = from, to do
    local time = rows[i][FORWARD]
    local saved = 0
    for j = i + 1, to do
      time = time + rows[j][FORWARD]
      saved = saved + kept[j - 1]
      runs[#runs + 1] = { from = i, to = j, time = time, saved = saved, peak = saved }
    end
  end
  return runs
end

--- Entries of recomputation.cheapest for the operators from..to of a layer: nothing, one run or two
-- runs recomputed, of which none is worse than another in time and memory.
local function front_of(rows, kept, from, to)
  local runs = runs_of(rows, kept, from, to)
  local entries = { { time = 0, saved = 0, peak = 0 } }
  table.move(runs, 1, #runs, 2, entries)
  for a, one in ipairs(runs) do
    for b = a + 1, #runs do
      local two = runs[b]
      if two.from > one.to + 1 then
        entries[#entries + 1] = { time = one.time + two.time, saved = one.saved + two.saved,
          peak = math.max(one.peak, two.peak) }
      end
    end
  end
  table.sort(entries, function(x, y)
    if x.time ~= y.time then
      return x.time < y.time
    elseif x.saved ~= y.saved then
      return x.saved > y.saved
    end
    return x.peak < y.peak
  end)
  local front = {}
  local most_saved = -1
  for _, entry in ipairs(entries) do
    if entry.saved > most_saved then
      front[#front + 1] = entry
      most_saved = entry.saved
    end
  end
  return front
end

local function is_set(flags, k)
  return flags:sub(k, k) == "1"
end

--- Time, saved memory and peak of a stage from operator `from` on where `flags`, a text of 0 and 1
-- per operator, says what is recomputed. Nothing is saved across layers.
local function cost_of_flags(model, costs, from, flags)
  local time, saved, peak, run = 0, 0, 0, 0
  for k = 1, #flags do
    local i = from + k - 1
    local kind = model.kinds[i]
    local layer_goes_on = model.layer_of[i + 1] == model.layer_of[i]
    local run_goes_on = is_set(flags, k + 1)
    if is_set(flags, k) then
      time = time + costs.rows[kind][FORWARD]
      if run_goes_on then
        run = run + costs.kept[kind]
        if layer_goes_on then
          saved = saved + costs.kept[kind]
        end
      end
    end
    if not (run_goes_on and layer_goes_on) then
      peak = math.max(peak, run)
      run = 0
    end
  end
  return time, saved, peak
end

--- Milliseconds of a message of so many MB, by the profile's bandwidths in GB/s of powers of two.
local function message_ms(profile, size)
  local list = profile.bandwidth
  local place = math.floor(math.log(size, 2))
  return size / list[math.max(1, math.min(#list, place))]
end

--- The operators of the model in order: `kinds` = row of the profile, `layer_of` = number of the
-- layer, 0 outside layers.
local function model_of(profile)
  local model = { kinds = {}, layer_of = {} }
  local function add(kind, layer)
    model.kinds[#model.kinds + 1] = kind
    model.layer_of[#model.layer_of + 1] = layer
  end
  for kind = 1, profile.first - 1 do
    add(kind, 0)
  end
  for layer = 1, profile.layers do
    for kind = profile.first, profile.last do
      add(kind, layer)
    end
  end
  for kind = profile.last + 1, #profile.names do
    add(kind, 0)
  end
  return model
end

--- MB that an operator keeps. Buffers are shared (its option consider_shared_space): softmax keeps
-- nothing of its own, attention dropout half as much again.
local function kept_by(name, row)
  if name:find("softmax") then
    return 0
  elseif name:find("attention%-dropout$") and not name:find("post") then
    return row[ACTIVATIONS] * DROPOUT_FACTOR
  end
  return row[ACTIVATIONS]
end

--- Costs of the operators under one micro-batch and tensor degree: `rows` of the profile, `kept` MB
-- by kind, and `sums` of the operators up to each: time, weights and kept.
local function costs_of(profile, model, rows)
  local costs = { rows = rows, kept = {}, sums = { [0] = { time = 0, weights = 0, kept = 0 } } }
  for kind, row in ipairs(rows) do
    costs.kept[kind] = kept_by(profile.names[kind], row)
  end
  for i, kind in ipairs(model.kinds) do
    local row, sum = rows[kind], costs.sums[i - 1]
    costs.sums[i] = {
      time = sum.time + row[FORWARD] + row[BACKWARD],
      weights = sum.weights + row[WEIGHTS],
      kept = sum.kept + costs.kept[kind],
    }
  end
  return costs
end

--- The largest reserved memory of the operators before the last one: forward and backward.
local function reserved(model, rows, from, to)
  local forward, backward = 0, 0
  for i = from, to - 1 do
    forward = math.max(forward, rows[model.kinds[i]][RESERVED_FORWARD])
    backward = math.max(backward, rows[model.kinds[i]][RESERVED_BACKWARD])
  end
  return forward + backward
end

--- MB of a stage without recomputation: weights and gradients, two main copies and four for the
-- optimizer; activations of all micro-batches in flight; the working memory of one operator.
local function bytes_of(model, costs, stage, sum)
  local input = costs.rows[model.kinds[stage.from]][INPUT]
  local weights = sum(costs, "weights")
  local kept = input + sum(costs, "kept")
  return 8 * weights + kept * (stage.behind + 1)
    + math.max(reserved(model, costs.rows, stage.from, stage.to), weights)
end

--- The fronts of the layers, or parts of layers, in the operators from..to, remembered in `known`.
local function groups_of(model, costs, known, key, from, to)
  local groups = {}
  local i = from
  while i <= to do
    local last = i
    while last < to and model.layer_of[last + 1] == model.layer_of[i] and model.layer_of[i] > 0 do
      last = last + 1
    end
    if last > i then
      local first_kind, last_kind = model.kinds[i], model.kinds[last]
      local name = ("%s/%d/%d"):format(key, first_kind, last_kind)
      known[name] = known[name] or front_of(costs.rows, costs.kept, first_kind, last_kind)
      groups[#groups + 1] = known[name]
    end
    i = last + 1
  end
  return groups
end

--- The price of a stage; nil where the profile has no row for it. `w` holds profile, model, and
-- what is known by micro-batch and tensor degree.
local function priced(w, stage)
  local profile, model = w.profile, w.model
  local key = (stage.micro_batch // stage.dp) .. "/" .. stage.tp
  local costs, whole = w.costs_by(key), w.costs_by(stage.micro_batch .. "/1")
  if not costs then
    return nil
  end
  local from, to = stage.from, stage.to
  local function sum(of, column)
    return of.sums[to][column] - of.sums[from - 1][column]
  end
  local bytes = bytes_of(model, costs, stage, sum)
  local again_us, saved, peak
  if stage.flags then
    again_us, saved, peak = cost_of_flags(model, costs, from, stage.flags)
  else
    again_us, saved, peak = recomputation.cheapest(
      groups_of(model, costs, w.fronts, key, from, to), bytes - profile.cap, stage.behind + 1)
  end
  if again_us then
    bytes = bytes - saved * (stage.behind + 1) + peak
  end
  local input, output = costs.rows[model.kinds[from]][INPUT], costs.rows[model.kinds[to]][OUTPUT]
  local hop_ms = message_ms(profile, input)
  if output > 0 then
    hop_ms = hop_ms + message_ms(profile, output)
  end
  local time_s = sum(costs, "time") / 1e6
  local ideal_s = time_s
  if whole then
    ideal_s = math.min(sum(whole, "time") / 1e6 / (stage.tp * stage.dp), time_s)
  end
  local again_s = (again_us or 0) / 1e6
  return { time_s = time_s + hop_ms / 1e3 + again_s, ideal_s = ideal_s, recompute_s = again_s,
    bytes = bytes, cap = profile.cap }
end

--- The problem of a profile { layers, first, last = operators of a layer, batch, devices, cap = MB
-- of a device, bandwidth, names, ["micro-batch/tp"] = rows }. A stage may have `flags`, a text of 0
-- and 1 per operator, which say what is recomputed instead of the cheapest choice.
function operators.problem(profile)
  local model = model_of(profile)
  local costs, prices = {}, {}
  local w = { profile = profile, model = model, fronts = {} }
  function w.costs_by(key)
    if not costs[key] and profile[key] then
      costs[key] = costs_of(profile, model, profile[key])
    end
    return costs[key]
  end
  local problem = { n = #model.kinds, devices = profile.devices, batch = profile.batch,
    power = profile.devices, tp = profile.devices }
  function problem.price(stage)
    if stage.flags then
      return priced(w, stage)
    end
    local name = ("%d/%d/%d/%d/%d/%d"):format(stage.from, stage.to, stage.tp, stage.dp,
      stage.micro_batch, stage.behind)
    if prices[name] == nil then
      prices[name] = priced(w, stage) or false
    end
    return prices[name] or nil
  end
  return problem
end

return operators
