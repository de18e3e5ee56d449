-- Contiguous stages whose largest peak memory is least, and among these the fastest: both exact.
local least_peak = {}

local ROUNDING = 1e-9 -- relative: sums of bytes in another order

--- Cuts q = { n = layers, held = list per stage of bytes by layer (they depend on the stage: it
-- keeps so many micro-batches), fixed = list of bytes of each stage besides (0), times = list per
-- stage of seconds by layer, micro_batches }.
-- Returns { counts = layers per stage, peak = bytes of the worst stage, seconds = sum + (M - 1)
-- longest }, or nil where there are more stages than layers.
function least_peak.cut(q)
  local parts, none = #q.held, {}
  for s = 1, parts do
    none[s] = 0
  end
  local fixed = q.fixed or none
  local function bytes(first, last, s)
    local sum = fixed[s]
    for l = first, last do
      sum = sum + q.held[s][l]
    end
    return sum
  end
  local least = hv.opt.partition { n = q.n, parts = parts, load = bytes, sum = 0, max = 1 }
  if not least then
    return nil
  end
  local room = {}
  for s = 1, parts do
    room[s] = least.value * (1 + ROUNDING) - fixed[s]
  end
  local best = hv.opt.partition { n = q.n, parts = parts, load = q.times, memory = q.held,
    capacity = room, sum = 1, max = q.micro_batches - 1 }
  local counts = {}
  for s, range in ipairs(best.stages) do
    counts[s] = range[2] - range[1] + 1
  end
  return { counts = counts, peak = least.value, seconds = best.value }
end

--- Peak bytes of every stage of a cut.
function least_peak.peaks(q, counts)
  local peaks, at = {}, 1
  for s, n in ipairs(counts) do
    peaks[s] = q.fixed and q.fixed[s] or 0
    for l = at, at + n - 1 do
      peaks[s] = peaks[s] + q.held[s][l]
    end
    at = at + n
  end
  return peaks
end

return least_peak
