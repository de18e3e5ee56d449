-- The choice and the order of the other strategies that `auto` runs.
local others = {}

local EFFORT_RANK = { quick = 1, medium = 2, slow = 3 }

--- Rows of hv.strategies() that may run without being named, which are those that declare their
-- effort, least effort first. `word` is "some" (those that are quick enough for so many devices; no
-- rows of families, which search grids of degrees, as the own search does) or "all".
local function suitable(rows, word, n_devices, allow_stale)
  local list = {}
  for _, row in ipairs(rows) do
    local quick_enough = word == "all" or (n_devices <= row.most_devices and not row.family)
    local allowed = allow_stale or not row.stale
    if row.plans and row.effort and quick_enough and allowed then
      list[#list + 1] = row
    end
  end
  table.sort(list, function(a, b)
    if a.effort ~= b.effort then
      return EFFORT_RANK[a.effort] < EFFORT_RANK[b.effort]
    end
    return a.id < b.id
  end)
  return list
end

--- Ids of the strategies to run: the words of `text`, where "some" and "all" stand for the suitable
-- ones.
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
