-- For the self-tests, the deal of a batch: the rules it keeps.
local checks = {}

--- Checks units dealt out by deal.deal: do they add up, each item inside its cap where the dealing
-- says so, and does it say so exactly where all caps together hold the total?
-- @function checks.dealt
-- @tparam table items list of {fixed, unit, cap, n}
-- @tparam integer total how many units were dealt
-- @tparam boolean ok what deal.deal said: nil where the units do not fit
-- @treturn boolean the units are kept and fit; then a boolean: it said the right thing
-- @units any, the same for fixed, unit and cap
-- @raise none
-- @usage local items = { { fixed = 1, unit = 2, cap = 7, n = 3 } }
-- assert(require("testing.oracle").dealt(items, 3, true) and not select(2, require("testing.oracle").dealt(items, 3,
-- nil)))
function checks.dealt(items, total, ok)
  local sum, room, over = 0, 0, false
  for _, item in ipairs(items) do
    sum, room = sum + item.n, room + math.max(0, (item.cap - item.fixed) // item.unit)
    over = over or item.n > 0 and item.fixed + item.n * item.unit > item.cap
  end
  return sum == total and not (ok and over), (ok ~= nil) == (total <= room)
end

return checks
