-- Units of load (sequences, heads, layers) dealt to items of unequal speed under memory limits
-- (Whale, section 3.3.1): first in proportion to speed, then single units move from items that
-- exceed their memory (peaks) to the least busy ones (valleys). An item is a table { speed, fixed,
-- unit, cap, n }: n units need fixed + n * unit bytes, and at most cap bytes are there.
local deal = {}

local ROUNDING = 1e-9 -- relative excess over `cap` that still counts as fitting

--- Fraction of its memory that an item needs.
function deal.use(item)
  return (item.fixed + item.n * item.unit) / item.cap
end

--- Does the item fit with `extra` units more?
local function fits(item, extra)
  return item.fixed + (item.n + extra) * item.unit <= item.cap * (1 + ROUNDING)
end

--- Index of the item with the least key among the indices in `set`; key(item) returns two numbers
-- that are compared in order. Ties go to the lowest index.
local function least(items, set, key)
  local best, best_first, best_second
  for i, item in ipairs(items) do
    if set[i] then
      local first, second = key(item)
      if not best or first < best_first or first == best_first and second < best_second then
        best = i
        best_first = first
        best_second = second
      end
    end
  end
  return best
end

--- The peak is the item that exceeds its memory most.
local function peak_key(item)
  return -deal.use(item), 0
end

--- The valley is the least busy item, of equals the one with the lower memory use.
local function valley_key(item)
  return item.n / item.speed, deal.use(item)
end

--- Moves single units until every item fits; `keep` units stay on every item. Returns true, or nil
-- and the index of the first item that cannot be relieved.
function deal.shift(items, keep)
  local too_full = {}
  local free = {}
  for i, item in ipairs(items) do
    if fits(item, 0) then
      free[i] = true
    else
      too_full[i] = true
    end
  end
  while next(too_full) do
    local peak = least(items, too_full, peak_key)
    local valley = least(items, free, valley_key)
    if not valley or items[peak].n <= keep then
      return nil, peak
    elseif fits(items[valley], 1) then
      items[peak].n = items[peak].n - 1
      items[valley].n = items[valley].n + 1
      if fits(items[peak], 0) then
        too_full[peak] = nil
      end
    else
      free[valley] = nil
    end
  end
  return true
end

--- Deals `total` units in proportion to speed, at least `keep` to every item, and then shifts; sets
-- n of the items. Returns true, or nil and the index of an item that is too full where one is
-- known.
function deal.deal(items, total, keep)
  local speeds = {}
  local least_units = {}
  for i, item in ipairs(items) do
    speeds[i] = item.speed
    least_units[i] = keep
  end
  local dealt = hv.opt.distribute { total = total, time = speeds, min = least_units,
    objective = "ratio" }
  if not dealt then
    return nil
  end
  for i, item in ipairs(items) do
    item.n = dealt.counts[i]
  end
  return deal.shift(items, keep)
end

--- Units of every item as a list.
function deal.counts(items)
  local counts = {}
  for i, item in ipairs(items) do
    counts[i] = item.n
  end
  return counts
end

local function sum_of(list)
  local sum = 0
  for _, x in ipairs(list) do
    sum = sum + x
  end
  return sum
end

--- Layers per stage in proportion to speed: a stage ends where the prefix sum of work crosses the
-- prefix sum of speed, and every stage gets at least one layer. `work` is per layer, `speeds` per
-- stage.
function deal.proportional(work, speeds)
  local total_work = sum_of(work)
  local total_speed = sum_of(speeds)
  local counts = {}
  local layer = 0
  local done = 0
  local target = 0
  for s = 1, #speeds do
    target = target + total_work * speeds[s] / total_speed
    local n = 0
    while layer < #work - (#speeds - s)
        and (n == 0 or s == #speeds or done + work[layer + 1] / 2 <= target) do
      layer = layer + 1
      n = n + 1
      done = done + work[layer]
    end
    counts[s] = n
  end
  return counts
end

--- Items of these speeds and memory limits, all with the same fixed part and unit.
function deal.items(speeds, fixed, unit, caps)
  local items = {}
  for i, speed in ipairs(speeds) do
    items[i] = { speed = speed, fixed = fixed, unit = unit, cap = caps[i] }
  end
  return items
end

return deal
