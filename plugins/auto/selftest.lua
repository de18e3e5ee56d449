-- Self-tests of the choice of other strategies.
local others = require "others"

local ROWS = {
  { id = "a-slow", plans = true, effort = "slow", most_devices = 0 },
  { id = "b-medium", plans = true, effort = "medium", most_devices = 256 },
  { id = "c-quick", plans = true, effort = "quick", most_devices = 4096 },
  { id = "d-quick", plans = true, effort = "quick", most_devices = 4096, stale = true },
  { id = "e-unknown", plans = true, most_devices = 0 },
  { id = "f-changes-plans", plans = false, effort = "quick", most_devices = 4096 },
  { id = "g-row", plans = true, effort = "quick", most_devices = 4096, family = "g" },
}
local SOURCE = "by hand, from seven rows"

local function chosen(text, n_devices, allow_stale)
  return table.concat(others.chosen(ROWS, text, n_devices, allow_stale), " ")
end

return function(t)
  t.equal("named strategies run in the order of the text", chosen("e-unknown, a-slow,dt-fm", 8),
    "e-unknown a-slow dt-fm", SOURCE)
  t.equal("an empty text chooses none", chosen("", 8), "", SOURCE)
  t.equal("some on 8 devices: quick and medium ones, least effort first", chosen("some", 8),
    "c-quick b-medium", SOURCE)
  t.equal("some on 1000 devices: quick ones", chosen("some", 1000), "c-quick", SOURCE)
  t.equal("some on 10000 devices: none", chosen("some", 10000), "", SOURCE)
  t.equal("all: every one with a declared effort", chosen("all", 10000),
    "c-quick g-row b-medium a-slow", SOURCE)
  t.equal("some, where the job allows stale weights", chosen("some", 8, true),
    "c-quick d-quick b-medium", SOURCE)
end
