-- Devices of towers that run side by side (Huang et al. 2024): the slowest tower decides.
local towers = {}

--- The division of `total` units among n towers whose slowest one is fastest: time(tower, units)
-- gives seconds, or nil where the tower cannot run on so many. Units may stay unused. Returns
-- {value, units = list of one per tower}, or nil. Exact; of equal divisions the one with fewest
-- units for the first towers.
function towers.divide(n, total, time)
  local best, choice = { [0] = {} }, {}
  for units = 0, total do
    best[0][units] = 0
  end
  for tower = 1, n do
    best[tower], choice[tower] = {}, {}
    for units = 0, total do
      local least = math.huge
      for own = 1, units do
        local seconds = time(tower, own)
        local value = seconds and math.max(seconds, best[tower - 1][units - own]) or math.huge
        if value < least then
          least, choice[tower][units] = value, own
        end
      end
      best[tower][units] = least
    end
  end
  if best[n][total] == math.huge then
    return nil
  end
  local list, left = {}, total
  for tower = n, 1, -1 do
    list[tower] = choice[tower][left]
    left = left - list[tower]
  end
  return { value = best[n][total], units = list }
end

--- Seconds of towers on all units, one after the other; math.huge where one cannot run on them.
function towers.in_turn(n, total, time)
  local sum = 0
  for tower = 1, n do
    sum = sum + (time(tower, total) or math.huge)
  end
  return sum
end

--- Seconds of a tower of equal stages on m micro-batches, and the reduction of its gradients.
function towers.seconds(stage_s, stages, micro_batches, reduction_s)
  return (micro_batches + stages - 1) * stage_s + reduction_s
end

return towers
