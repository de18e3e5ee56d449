-- Seconds of one batch in one pipeline, by simulation of Varuna's schedule (section 4).
local jitter = require "jitter"

local batch_time = {}

local MOST_SIMULATED = 4096 -- micro-batches of a batch that is simulated whole
local PLAYS = 3             -- plays whose mean is taken where times deviate

--- Seconds of `micro_batches` micro-batches through stages with `times` { f, b, hop } (lists of
-- seconds), and how many inputs each stage keeps. Batches above 4,096 micro-batches, or 8 per stage
-- where that is more, are extrapolated from the second half of that many.
function batch_time.of(ctx, times, micro_batches)
  local most = math.max(8 * #times.f, MOST_SIMULATED)
  local jitter_s = ctx.options.jitter / 1e3
  local function simulate(n)
    return hv.sim.schedule("varuna", { ranks = #times.f, micro_batches = n, order = jitter_s > 0,
      times = { f = times.f, b = times.b, w = 0, hop = times.hop } })
  end
  local found = simulate(math.min(micro_batches, most))
  if micro_batches > most then
    local half = simulate(most // 2)
    local more_halves = (micro_batches - most) / (most - most // 2)
    for s, n in ipairs(found.peak) do
      found.peak[s] = math.ceil(n + more_halves * (n - half.peak[s]))
    end
    return found.makespan + more_halves * (found.makespan - half.makespan), found.peak
  end
  if jitter_s > 0 then
    return jitter.mean_makespan(found.order, times, jitter_s, PLAYS), found.peak
  end
  return found.makespan, found.peak
end

return batch_time
