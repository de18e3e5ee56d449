-- The order of micro-batches with unequal encoder times (section 5.2).
local micro_batch_order = {}

--- An order of micro-batches with these encoder times before a backbone that takes `interval` for
-- each: the smallest first, then always the largest whose encoder ends before the backbone runs dry
-- (else the smallest); the `tail` shortest ones are kept for the end. A list of positions.
function micro_batch_order.of(times, interval, tail)
  local left = {}
  for i in ipairs(times) do
    left[i] = i
  end
  table.sort(left, function(a, b)
    if times[a] ~= times[b] then
      return times[a] < times[b]
    end
    return a < b
  end)
  local order, last = { table.remove(left, 1) }, {}
  for _ = 1, math.min(tail, #left) do
    last[#last + 1] = table.remove(left, 1)
  end
  local encoder_end = times[order[1]]
  local backbone_end = times[order[1]] + interval
  while #left > 0 do
    local pick = 1
    for k, i in ipairs(left) do
      if times[i] <= backbone_end - encoder_end then
        pick = k
      end
    end
    local i = table.remove(left, pick)
    order[#order + 1] = i
    encoder_end = encoder_end + times[i]
    backbone_end = math.max(encoder_end, backbone_end) + interval
  end
  for k = #last, 1, -1 do
    order[#order + 1] = last[k]
  end
  return order
end

return micro_batch_order
