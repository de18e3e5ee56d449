-- Self-tests beside the authors' own test of their search.
local iteration_time = require "iteration_time"
local layer_dp = require "layer_dp"
local strategies = require "strategies"

local OWN_TEST = "PKU-DAIR/Hetu-Galvatron cea12ff, its own test"

--- Samples per second and the stage of the best choice for 28 layers on 8 GPUs from a list of
-- strategies; 0 where nothing fits.
local function best_of(q, list)
  local found = layer_dp.stages(q, { 28 }, function() return list end)
  if not found then
    return 0
  end
  return 64e3 / found.time_s, found.stages[1]
end

--- The own test's instance, and its strategies with tensor and Ulysses degrees up to `largest`.
local function instance_of(chunks, largest)
  local q = require("data.own_test")(chunks)
  q.most = largest
  return q, strategies.all(8, 64 // chunks, { tp = largest, sp = largest })
end

local function best_choice(chunks, largest)
  return best_of(instance_of(chunks, largest))
end

local function test_one_strategy(t)
  local q, list = instance_of(8, 1)
  local rate, stage = 0, nil
  for _, strategy in ipairs(list) do
    local own_rate, own_stage = best_of(q, { strategy })
    if own_rate > rate then
      rate, stage = own_rate, own_stage
    end
  end
  t.near("28 layers, 8 micro-batches, one strategy for all layers: samples per second", rate,
    2.5246283459057333, 1e-7, OWN_TEST)
  local ends = stage.ends
  t.ok("its strategy: dp 8, weights sharded, recomputed",
    ends.dp == 8 and ends.zero == 3 and ends.full, OWN_TEST)
end

--- How many layers with tp 4 and dp 2 are sharded and recomputed, sharded, neither.
local function count_strategies(choice)
  local counts = { 0, 0, 0 }
  for _, strategy in ipairs(choice) do
    local place = 3
    if strategy.full then
      place = 1
    elseif strategy.zero == 3 then
      place = 2
    end
    if strategy.tp == 4 and strategy.dp == 2 then
      counts[place] = counts[place] + 1
    end
  end
  return counts
end

local function test_layer_by_layer(t)
  local rate = best_choice(8, 2)
  t.ok(("28 layers, 8 micro-batches, a strategy per layer: %.4f samples/s, theirs 2.5246")
    :format(rate), rate > 2.5246283459, OWN_TEST)
  local stage
  rate, stage = best_choice(32, 8)
  t.near("28 layers, 32 micro-batches, a strategy per layer: samples per second; theirs 2.6485",
    rate, 2.6485091403918064, 1e-7, OWN_TEST)
  t.equal("its layers with tp 4, dp 2 that are sharded and recomputed, sharded, neither; tp of "
    .. "embedding and head",
    table.concat(count_strategies(stage.choice), " ") .. "; " .. stage.ends.tp, "14 12 2; 8",
    OWN_TEST)
end

return function(t)
  test_one_strategy(t)
  test_layer_by_layer(t)
  t.near("pipeline of two stages of 3 and 2, 4 micro-batches",
    iteration_time.pipeline({ 3, 2 }, { 3, 2 }, 4), 12, 1e-9,
    "by hand: max(5 + 3 x 2, 3 + 3 x 3)")
end
