--- Candidates of a search: they are ranked by a formula, and the first ones are simulated.
local candidates = {}

--- Text and excess bytes of the first memory finding of a verdict, or nil.
function candidates.memory_reason(verdict)
  for _, v in ipairs(verdict.violations or {}) do
    if v.code == "memory" then
      return v.text, v.by
    end
  end
end

--- Judges a plan table: the verdict, or nil, why it breaks a rule, and by how many bytes (infinite
-- for faults other than memory).
function candidates.judge(plan)
  local verdict, why = hv.plan.new(plan):eval()
  if not verdict then
    return nil, why, math.huge
  elseif #verdict.violations == 0 then
    return verdict
  end
  local text, by = candidates.memory_reason(verdict)
  return nil, text or verdict.violations[1].text, text and by or math.huge
end

--- An iterator that ends early when a share of the run's time is used, so that what it listed can
-- still be judged.
-- @function candidates.in_time
-- @tparam function step gives the next item, nil at the end, as search.product does
-- @tparam[opt] number share of the time limit (0.4)
-- @treturn function the same, but for its end
-- @units share is a fraction
-- @raise outside a run
-- @usage local n = 0
-- for _ in require("candidates").in_time(require("search").product { { 1, 2 }, { 3 } }) do n = n + 1 end
-- assert(n <= 2)
function candidates.in_time(step, share)
  return function() return not hv.stopping(share or 0.4) and step() or nil end
end

--- Ranks candidates { claim_s, build() } by claim_s and judges them in that order until `tries`
-- plans without violation were seen (at most four times as many are looked at). Returns the one
-- with the least simulated time and its time, or nil and the finding of the nearest miss. With
-- `weigh(verdict, candidate)` the one with the least of that.
function candidates.best(list, tries, weigh)
  table.sort(list, function(a, b)
    if a.claim_s ~= b.claim_s then
      return a.claim_s < b.claim_s
    end
    return a.rank < b.rank
  end)
  local best, best_s, best_c, reason, miss = nil, math.huge, nil, nil, math.huge
  local good = 0
  for i, c in ipairs(list) do
    if good >= tries or i > 4 * tries or (best and hv.stopping()) then
      break
    end
    hv.progress(good / tries, ("plan %d of %d"):format(i, #list))
    local plan = c.build()
    local verdict, why, by = candidates.judge(plan)
    if verdict then
      good = good + 1
      local value = weigh and weigh(verdict, c) or verdict.iteration_s
      if value < best_s then
        best, best_s, best_c = plan, value, c
        hv.incumbent(plan)
      end
    elseif not reason or by < miss then
      reason, miss = why, by
    end
  end
  if not best then
    return nil, reason
  end
  return best, best_s, best_c
end

local EARLY = 4 -- candidates that are judged as soon as they are there

--- Collects candidates in the order in which they come: add(candidate), or add(nil, why, miss)
-- where there is none; the reason with the least miss stays. With `early` the first candidates are
-- judged at once until one has no findings, in case there is no time for more: on large clusters.
function candidates.new(early)
  local all = { list = {}, reason = nil, miss = math.huge }
  function all.add(candidate, reason, miss)
    if candidate then
      candidate.rank = #all.list + 1
      all.list[candidate.rank] = candidate
      if early and candidate.rank <= EARLY then
        early = not hv.incumbent(candidate.build())
      end
    elseif reason and miss < all.miss then
      all.reason, all.miss = reason, miss
    end
  end
  --- Bytes by which the one of least claim is over some memory; 0 where it is not, or is no plan
  -- for another reason.
  function all.over()
    local first
    for _, candidate in ipairs(all.list) do
      first = first and first.claim_s <= candidate.claim_s and first or candidate
    end
    local verdict, _, by = candidates.judge(first.build())
    return not verdict and by < math.huge and by or 0
  end
  --- The best of them, simulated, by time or weigh(verdict, candidate); or nil and why there is
  -- none (`otherwise` where nobody said).
  function all.best(tries, otherwise, weigh)
    if #all.list == 0 then
      return nil, all.reason or otherwise
    end
    local best, reason = candidates.best(all.list, tries, weigh)
    return best, not best and (reason or all.reason) or nil
  end
  return all
end

--- Searches, and where the first choice is over the memory, which planners' formulas know only
-- roughly, searches again with as much less of it, or with half of that where then nothing is left:
-- search(reserve) gives a collection. The last one with any candidate, or nil.
function candidates.within(search)
  local reserve, low, last = 0, 0, nil
  for _ = 1, 4 do
    local all = search(reserve)
    if #all.list == 0 and not last then
      break
    end
    if #all.list == 0 then
      reserve = (low + reserve) / 2
    else
      last, low = all, reserve
      local over = hv.stopping() and 0 or all.over()
      if over == 0 then
        break
      end
      reserve = reserve + 1.1 * over
    end
  end
  return last
end

return candidates
