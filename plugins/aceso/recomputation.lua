-- The cheapest recomputation that makes a stage fit (Aceso, Liu et al., EuroSys 2024, section 4),
-- here by an exact knapsack instead of the paper's order of size.
local recomputation = {}

--- Peaks of all entries but 0, in ascending order: the peak of a choice is one of them (or 0).
local function peaks_of(groups)
  local peaks = {}
  local seen = { [0] = true }
  for _, front in ipairs(groups) do
    for _, entry in ipairs(front) do
      if not seen[entry.peak] then
        seen[entry.peak] = true
        peaks[#peaks + 1] = entry.peak
      end
    end
  end
  table.sort(peaks)
  return peaks
end

--- The cheapest choice of entries with a peak of at most `limit`: its time and the entries; nil
-- where it cannot save enough.
local function within_peak(groups, need, in_flight, limit)
  local items = {}
  local allowed = {}
  local total = 0
  for g, front in ipairs(groups) do
    items[g] = {}
    allowed[g] = {}
    local most = front[#front].saved
    for _, entry in ipairs(front) do
      if entry.peak <= limit then
        table.insert(items[g], { -entry.time, most - entry.saved })
        table.insert(allowed[g], entry)
      end
    end
    total = total + most
  end
  local cap = total - (need + limit) / in_flight
  local found = cap >= 0 and hv.opt.knapsack { items = items, cap = cap }
  if not found then
    return nil
  end
  local chosen = {}
  for g, k in ipairs(found.choices) do
    chosen[g] = allowed[g][k]
  end
  return -found.value, chosen
end

--- What to recompute so that a stage needs `need` bytes less. `groups` has a front for each group
-- of operators: a list of entries { time, saved, peak = what is alive at once while it is
-- recomputed } of which none is worse than another in time and memory, the first without
-- recomputation. `in_flight` counts the micro-batches whose activations are kept. Returns the time,
-- what is saved of one micro-batch, the peak and the entry of each group; nil where it is not
-- possible.
function recomputation.cheapest(groups, need, in_flight)
  if need <= 0 then
    local chosen = {}
    for g, front in ipairs(groups) do
      chosen[g] = front[1]
    end
    return 0, 0, 0, chosen
  end
  local best_time, best_chosen
  for _, limit in ipairs(peaks_of(groups)) do
    local time, chosen = within_peak(groups, need, in_flight, limit)
    if time and (not best_time or time < best_time) then
      best_time = time
      best_chosen = chosen
    end
  end
  if not best_time then
    return nil
  end
  local saved, peak = 0, 0
  for _, entry in ipairs(best_chosen) do
    saved = saved + entry.saved
    peak = math.max(peak, entry.peak)
  end
  return best_time, saved, peak, best_chosen
end

return recomputation
