-- Ways to cut the devices of a machine into stages, each with a tensor degree of its own. q is an
-- instance of group_pipeline.lua.
local splits = {}

local MOST_STAGES = 8 -- of one machine

--- Stages of one machine at most.
function splits.most_stages(q)
  return q.most_stages or MOST_STAGES
end

--- Ways to cut `size` devices of a machine into stages, as lists of falling tensor degrees.
-- Remembered in the instance.
function splits.of(q, size)
  q.splits = q.splits or {}
  if q.splits[size] then
    return q.splits[size]
  end
  local list, most = {}, splits.most_stages(q)
  local function extend(parts, left, largest)
    if left == 0 then
      list[#list + 1] = { table.unpack(parts) }
      return
    end
    for d = #q.degrees, 1, -1 do
      local tp = q.degrees[d]
      if tp <= left and tp <= largest and #parts < most then
        parts[#parts + 1] = tp
        extend(parts, left - tp, tp)
        parts[#parts] = nil
      end
    end
  end
  extend({}, size, size)
  q.splits[size] = list
  return list
end

return splits
