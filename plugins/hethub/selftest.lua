-- Self-tests: 32 equal layers on two stages, of which one takes twice as long per layer, by the
-- figures of the catalogue.
local CATALOGUE = "catalogue: hethub"

--- Simulated 1F1B time of every split of 32 layers over two stages with these times per layer
-- (forward and backward 1:2, 8 micro-batches): the least, and all by the layers of the first stage.
local function splits(first, second)
  local best = math.huge
  local times = {}
  for n = 1, 31 do
    local stage_1, stage_2 = n * first, (32 - n) * second
    local schedule = hv.sim.schedule("1f1b", { ranks = 2, micro_batches = 8, times = {
      f = { stage_1 / 3, stage_2 / 3 }, b = { 2 * stage_1 / 3, 2 * stage_2 / 3 }, w = 0 } })
    times[n] = schedule.makespan
    best = math.min(best, schedule.makespan)
  end
  return best, times
end

--- A load of 32 layers that take so long each.
local function equal_layers(time)
  local load = {}
  for layer = 1, 32 do
    load[layer] = time
  end
  return load
end

local function check_longest_stage(t)
  local split = hv.opt.distribute { total = 32, time = { 1, 2 }, min = { 1, 1 } }
  t.near("32 layers by speed over stages of 1 and 2 per layer: longest stage", split.value, 22, 0,
    CATALOGUE)
  t.near("layers 21 + 11 on stages of 1 and 2 per layer: longest stage",
    math.max(21 * 1, 11 * 2), 22, 0, CATALOGUE)
  local cut = hv.opt.partition { n = 32, parts = 2, load = { equal_layers(1), equal_layers(2) },
    sum = 1, max = 7 }
  t.near("32 layers cut by Eq-P, 8 micro-batches, stages of 1 and 2 per layer: longest stage",
    cut.max, 22, 0, CATALOGUE)
end

local function check_simulated(t)
  local best, times = splits(1, 2)
  t.near("stages of 1 and 2 per layer, 1F1B simulated, layers 22 + 10", times[22], 194, 1e-9,
    CATALOGUE)
  t.near("stages of 1 and 2 per layer, 1F1B simulated, least of all splits", best, 194, 1e-9,
    CATALOGUE)
  t.near("stages of 1 and 2 per layer, 1F1B simulated, layers 21 + 11", times[21], 197, 1e-9,
    CATALOGUE)
  t.near("stages of 1 and 2 per layer, 1F1B simulated, layers 23 + 9", times[23], 197, 1e-9,
    CATALOGUE)
  best, times = splits(2, 1)
  t.near("stages of 2 and 1 per layer, 1F1B simulated, least of all splits", best, 196, 1e-9,
    CATALOGUE)
  t.near("stages of 2 and 1 per layer, 1F1B simulated, layers 10 + 22", times[10], 196, 1e-9,
    CATALOGUE)
  t.near("stages of 2 and 1 per layer, 1F1B simulated, layers 11 + 21", times[11], 196, 1e-9,
    CATALOGUE)
end

return function(t)
  check_longest_stage(t)
  check_simulated(t)
end
