-- Wave Synchronous Parallel (HetPipe, section 5): a wave is the Nm minibatches that a worker has in
-- flight; a worker may be D waves ahead of the slowest. Minibatches and waves count from 0.
local staleness = {}

--- Updates of all workers that a minibatch misses at most: s_global = (D + 1)(s_local + 1) +
-- s_local - 1 with s_local = Nm - 1. `in_flight` is Nm, `distance` is D.
function staleness.global(in_flight, distance)
  local s_local = in_flight - 1
  return (distance + 1) * (s_local + 1) + s_local - 1
end

--- The first minibatch that waits for `wave` of every worker: (wave + D + 2) * Nm - 1.
function staleness.first_waiting(in_flight, distance, wave)
  return (wave + distance + 2) * in_flight - 1
end

--- Mean seconds per wave of each worker after `waves` waves, for workers that take wave_s per wave:
-- a worker begins wave c when it has ended wave c - 1 and all have pushed wave c - D - 1.
function staleness.wave_rate(wave_s, distance, waves)
  local ends_s = {}
  for w in ipairs(wave_s) do
    ends_s[w] = 0
  end
  local pushed_s = {}
  for wave = 1, waves do
    local gate_s = pushed_s[wave - distance - 1] or 0
    local last_s = 0
    for w, own_s in ipairs(wave_s) do
      ends_s[w] = math.max(ends_s[w], gate_s) + own_s
      last_s = math.max(last_s, ends_s[w])
    end
    pushed_s[wave] = last_s
  end
  for w in ipairs(ends_s) do
    ends_s[w] = ends_s[w] / waves
  end
  return ends_s
end

return staleness
