--- Units of load (sequences, layers) dealt out to items of unequal speed under caps on memory:
-- first in proportion to speed, then single units move from what is too full to what is least busy.
-- Items are { speed, fixed, unit, cap, n }: n units need fixed + n x unit of cap.
local deal = {}

--- Share of its cap that an item needs.
function deal.use(item)
  return (item.fixed + item.n * item.unit) / item.cap
end

local function fits(item, extra)
  return item.fixed + (item.n + extra) * item.unit <= item.cap * (1 + 1e-9)
end

--- Index of the least key among the indices in `set`; key() returns two numbers compared in order.
local function least(items, set, key)
  local best, a, b
  for i, item in ipairs(items) do
    if set[i] then
      local x, y = key(item)
      if not best or x < a or x == a and y < b then
        best, a, b = i, x, y
      end
    end
  end
  return best
end

local function peak_key(item)
  return -deal.use(item), 0
end

local function valley_key(item)
  return item.n / item.speed, deal.use(item)
end

--- Shifts single units of load until every item { n, speed, fixed,
-- unit, cap } fits. `keep` units stay on every item. Returns true, or nil and the first item
-- that cannot be relieved. Ties go to the lowest number.
function deal.shift(items, keep)
  local oom, free = {}, {}
  for i, item in ipairs(items) do
    if fits(item, 0) then
      free[i] = true
    else
      oom[i] = true
    end
  end
  while next(oom) do
    local peak = least(items, oom, peak_key)
    local valley = least(items, free, valley_key)
    if not valley or items[peak].n <= keep then
      return nil, peak
    elseif fits(items[valley], 1) then
      items[peak].n = items[peak].n - 1
      items[valley].n = items[valley].n + 1
      if fits(items[peak], 0) then
        oom[peak] = nil
      end
    else
      free[valley] = nil
    end
  end
  return true
end

--- Deals `total` units in proportion to speed, at least `keep` on every item, then shifts.
function deal.deal(items, total, keep)
  local rates, min = {}, {}
  for i, item in ipairs(items) do
    rates[i], min[i] = item.speed, keep
  end
  local r = hv.opt.distribute { total = total, time = rates, min = min, objective = "ratio" }
  if not r then
    return nil
  end
  for i, item in ipairs(items) do
    item.n = r.counts[i]
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

--- Layers per stage so that work follows speed: cuts where the prefix of work crosses the prefix
-- of speed, at least one layer each.
function deal.proportional(work, speeds)
  local total_work, total_speed = 0, 0
  for _, w in ipairs(work) do
    total_work = total_work + w
  end
  for _, s in ipairs(speeds) do
    total_speed = total_speed + s
  end
  local counts, at, done, target = {}, 0, 0, 0
  for s = 1, #speeds do
    target = target + total_work * speeds[s] / total_speed
    local n = 0
    while at < #work - (#speeds - s)
        and (n == 0 or s == #speeds or done + work[at + 1] / 2 <= target) do
      at = at + 1
      n = n + 1
      done = done + work[at]
    end
    counts[s] = n
  end
  return counts
end

--- Items of these speeds and caps, every one with the same fixed part and unit.
function deal.items(speeds, fixed, unit, caps)
  local items = {}
  for i, speed in ipairs(speeds) do
    items[i] = { speed = speed, fixed = fixed, unit = unit, cap = caps[i] }
  end
  return items
end

return deal
