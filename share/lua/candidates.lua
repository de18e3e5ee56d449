--- Candidates of a search { claim_s, build() } and the nearest miss, for layout.best.
local layout = require "layout"

local candidates = {}

--- Collects candidates in the order in which they come: add(candidate), or add(nil, why, miss) where
-- there is none; the reason with the least miss stays.
function candidates.new()
  local all = { list = {}, reason = nil, miss = math.huge }
  function all.add(candidate, reason, miss)
    if candidate then
      candidate.rank = #all.list + 1
      all.list[candidate.rank] = candidate
    elseif reason and miss < all.miss then
      all.reason, all.miss = reason, miss
    end
  end
  --- The best of them, simulated; or nil and why there is none (`otherwise` where nobody said).
  function all.best(tries, otherwise)
    if #all.list == 0 then
      return nil, all.reason or otherwise
    end
    local best, reason = layout.best(all.list, tries)
    return best, not best and (reason or all.reason) or nil
  end
  return all
end

return candidates
