--- Candidates of a search { claim_s, build() } and the nearest miss, for layout.best.
local layout = require "layout"

local candidates = {}

local EARLY = 4 -- candidates that are judged as soon as they are there

--- Collects candidates in the order in which they come: add(candidate), or add(nil, why, miss) where
-- there is none; the reason with the least miss stays. With `early` the first candidates are judged at once until one
-- has no findings, in case there is no time for more: on large clusters.
function candidates.new(early)
  local all = { list = {}, reason = nil, miss = math.huge }
  function all.add(candidate, reason, miss)
    if candidate then
      candidate.rank = #all.list + 1
      all.list[candidate.rank] = candidate
      if early and candidate.rank <= EARLY then early = not hv.incumbent(candidate.build()) end
    elseif reason and miss < all.miss then
      all.reason, all.miss = reason, miss
    end
  end
  --- Bytes by which the one of least claim is over some memory; 0 where it is not, or is no plan for another reason.
  function all.over()
    local first
    for _, candidate in ipairs(all.list) do
      first = first and first.claim_s <= candidate.claim_s and first or candidate
    end
    local verdict, _, by = layout.judge(first.build())
    return not verdict and by < math.huge and by or 0
  end
  --- The best of them, simulated, by time or weigh(verdict, candidate); or nil and why there is none (`otherwise`
  -- where nobody said).
  function all.best(tries, otherwise, weigh)
    if #all.list == 0 then
      return nil, all.reason or otherwise
    end
    local best, reason = layout.best(all.list, tries, weigh)
    return best, not best and (reason or all.reason) or nil
  end
  return all
end

--- Searches, and where the first choice is over the memory, which planners' formulas know only roughly, searches again
-- with as much less of it, or with half of that where then nothing is left: search(reserve) gives a collection. The
-- last one with any candidate, or nil.
function candidates.within(search)
  local reserve, low, last = 0, 0, nil
  for _ = 1, 4 do
    local all = search(reserve)
    if #all.list == 0 and not last then break end
    if #all.list == 0 then
      reserve = (low + reserve) / 2
    else
      last, low = all, reserve
      local over = hv.stopping() and 0 or all.over()
      if over == 0 then break end
      reserve = reserve + 1.1 * over
    end
  end
  return last
end

return candidates
