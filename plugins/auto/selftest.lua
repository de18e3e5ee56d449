-- Self-tests of the choice of other strategies, and of plans that lose least.
local others = require "others"
local robust = require "robust"

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

--- A candidate whose plan loses a share of its value at worst.
local function candidate(value, worst_frac)
  local plan = { stress = function() return { worst_frac = worst_frac, worst = "exchange" } end }
  return { plan = plan, value = value }
end

local function chosen_of(list)
  local picked = robust.choose(list)
  for i, c in ipairs(list) do
    if c == picked then
      return i
    end
  end
end

local function check_robust(t)
  local from = "by hand, from values and losses"
  t.equal("alone: itself", chosen_of { candidate(1, math.huge) }, 1, from)
  t.equal("1.00 and 12 % against 1.03 and 3 %: 1.12 and 1.0609 at worst",
    chosen_of { candidate(1, 0.12), candidate(1.03, 0.03) }, 2, from)
  t.equal("1.00 and 6 % against 1.05 and 5 %: a loss that is only relatively less",
    chosen_of { candidate(1, 0.06), candidate(1.05, 0.05) }, 1, from)
  t.equal("7 % off is no near-tie, even where the best does not fit any more",
    chosen_of { candidate(1, math.huge), candidate(1.07, 0) }, 1, from)
  t.equal("one that does not fit any more loses all",
    chosen_of { candidate(1, math.huge), candidate(1.06, 0.5) }, 2, from)
  t.equal("equal ones keep the first", chosen_of { candidate(1, 0.1), candidate(1, 0.1) }, 1, from)
  local list = { candidate(1, 0.12), candidate(1.03, 0.03) }
  local text = robust.price(list[1], robust.choose(list))
  t.ok("the price is said", text:find("+3.0 %", 1, true) and text:find("12.0 %", 1, true), text)
end

return function(t)
  check_robust(t)
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
