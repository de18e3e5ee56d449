-- Which other strategies `auto` asks, and in which order.
local others = {}

local RANK = { quick = 1, medium = 2, slow = 3 } -- order in which others are asked

--- Rows of hv.strategies() that may be asked without being named: they declare how long they take.
-- `named` is "some" (those that are quick enough for so many devices) or "all"; those that take
-- least time come first.
local function suitable(rows, named, n_devices, allow_stale)
  local list = {}
  for _, row in ipairs(rows) do
    local soon_enough = named == "all" or n_devices <= row.most_devices
    if row.plans and row.effort and soon_enough and (allow_stale or not row.stale) then
      list[#list + 1] = row
    end
  end
  table.sort(list, function(x, y)
    if x.effort ~= y.effort then
      return RANK[x.effort] < RANK[y.effort]
    end
    return x.id < y.id
  end)
  return list
end

--- Ids of the strategies to ask: the words of a list, in which "some" and "all" stand for those
-- that suit the case.
function others.chosen(rows, text, n_devices, allow_stale)
  local ids = {}
  for word in text:gmatch "[%w_-]+" do
    if word == "some" or word == "all" then
      for _, row in ipairs(suitable(rows, word, n_devices, allow_stale)) do
        ids[#ids + 1] = row.id
      end
    else
      ids[#ids + 1] = word
    end
  end
  return ids
end

return others
