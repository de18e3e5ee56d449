-- Self-tests: the arithmetic of the grids, Eq-P, and the choice of devices.
local claims = require "claims"
local device_kinds = require "device_kinds"
local grids = require "grids"
local inventory = require "inventory"
local numbers = require "numbers"

local ARITHMETIC = "arithmetic"

local function test_grids(t)
  t.equal("10 layers split evenly over 4 stages", table.concat(numbers.even(10, 4), ","),
    "3,3,2,2", ARITHMETIC)
  t.equal("divisors of 12", table.concat(numbers.divisors(12), ","), "1,2,3,4,6,12", ARITHMETIC)
  t.equal("largest data degree of at most 32 for batch 256, micro-batch 1",
    grids.usable_dp(256, 32, 1), 32, ARITHMETIC)
  t.equal("largest data degree of at most 28 for batch 256, micro-batch 2",
    grids.usable_dp(256, 28, 2), 16, ARITHMETIC)
  t.equal("pipeline depths of at most 6 layers on 12 groups of devices",
    table.concat(grids.depths(12, 6), ","), "1,2,3,4,6", ARITHMETIC)
end

local function test_pipeline_time(t)
  t.near("Eq-P, stages of 1 + 2 and 2 + 4 forward and backward, 4 micro-batches",
    claims.pipeline_s({ 3, 6 }, 4), 27, 0, "catalogue: Eq-P")
end

local function test_devices(t)
  local rest = inventory.without_smallest { { id = 1, memory_bytes = 80 },
    { id = 2, memory_bytes = 16 }, { id = 3, memory_bytes = 32 } }
  t.equal("devices 1 and 3 stay when the one of least memory is left out",
    rest[1].id .. " " .. rest[2].id, "1 3", ARITHMETIC)
  local a, b = { kind = "a" }, { kind = "b" }
  local kinds = device_kinds.of_stages({ a, a, b, a }, 2, 2)
  t.equal("kinds of a stage with one device of each of two kinds", #kinds[2], 2, ARITHMETIC)
end

return function(t)
  test_grids(t)
  test_pipeline_time(t)
  test_devices(t)
end
