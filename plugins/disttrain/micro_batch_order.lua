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

--- When the micro-batches in an order end on an encoder with these times, then on a backbone that
-- takes `interval` for each.
function micro_batch_order.end_of(order, times, interval)
  local encoder_end, backbone_end = 0, 0
  for _, i in ipairs(order) do
    encoder_end = encoder_end + times[i]
    backbone_end = math.max(encoder_end, backbone_end) + interval
  end
  return backbone_end
end

--- That order where it ends earlier than the given one, else the given one.
function micro_batch_order.kept(times, interval, tail)
  local given, new = {}, micro_batch_order.of(times, interval, tail)
  for i in ipairs(times) do
    given[i] = i
  end
  if micro_batch_order.end_of(new, times, interval)
    < micro_batch_order.end_of(given, times, interval) then
    return new
  end
  return given
end

return micro_batch_order
