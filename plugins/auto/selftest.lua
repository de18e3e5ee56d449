-- Self-tests of the choice of other strategies.
local others = require "others"

local ROWS = {
  { id = "a-slow", plans = true, effort = "slow", most_devices = 0 },
  { id = "b-medium", plans = true, effort = "medium", most_devices = 256 },
  { id = "c-quick", plans = true, effort = "quick", most_devices = 4096 },
  { id = "d-quick", plans = true, effort = "quick", most_devices = 4096, stale = true },
  { id = "e-unknown", plans = true, most_devices = 0 },
  { id = "f-changes-plans", plans = false, effort = "quick", most_devices = 4096 },
}

local function chosen(text, n_devices, allow_stale)
  return table.concat(others.chosen(ROWS, text, n_devices, allow_stale), " ")
end

return function(t)
  t.equal("named ones", chosen("e-unknown, a-slow,dt-fm", 8), "e-unknown a-slow dt-fm")
  t.equal("none", chosen("", 8), "")
  t.equal("few devices: all but slow ones, quick ones first", chosen("some", 8), "c-quick b-medium")
  t.equal("many devices: quick ones", chosen("some", 1000), "c-quick")
  t.equal("very many devices: none", chosen("some", 10000), "")
  t.equal("all that say how long they take", chosen("all", 10000), "c-quick b-medium a-slow")
  t.equal("stale ones where the job allows them", chosen("some", 8, true),
    "c-quick d-quick b-medium")
end
