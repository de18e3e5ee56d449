-- Places of Cells on the devices of their types: blocks of a Cell's size, at multiples of that
-- size. A place is { job, cell, at = first device of the type }.
local placement = {}

--- Finds devices for the places `wanted` beside those that `stay`, the largest first, and fills in
-- their `at`. Returns whether all found a block. `pool` has the number of devices by type.
local function place(pool, stay, wanted)
  local taken = {}
  for type in pairs(pool) do
    taken[type] = {}
  end
  local function mark(cell, at)
    for k = at, at + cell.gpus - 1 do
      taken[cell.type][k] = true
    end
  end
  local function is_free(cell, at)
    for k = at, at + cell.gpus - 1 do
      if taken[cell.type][k] then
        return false
      end
    end
    return not cell.seconds or cell.seconds(at) ~= nil
  end
  for _, one in ipairs(stay) do
    mark(one.cell, one.at)
  end
  local order = table.move(wanted, 1, #wanted, 1, {})
  table.sort(order, function(a, b) return a.cell.gpus > b.cell.gpus end)
  for _, one in ipairs(order) do
    local cell = one.cell
    local at = 1
    local n_devices = pool[cell.type] or 0
    while at + cell.gpus - 1 <= n_devices and not is_free(cell, at) do
      at = at + cell.gpus
    end
    if at + cell.gpus - 1 > n_devices then
      return false
    end
    one.at = at
    mark(cell, at)
  end
  return true
end

--- The places of the running jobs that change to the Cells of the list `held`, and of `job` in
-- `cell` where there is one; jobs that keep their Cell keep their devices. nil where there are too
-- few devices.
function placement.of(pool, running, held, job, cell)
  local stay, wanted, count = {}, {}, {}
  local function need(wanted_cell)
    count[wanted_cell.type] = (count[wanted_cell.type] or 0) + wanted_cell.gpus
  end
  for i, other in ipairs(running) do
    local list = wanted
    if other.cell == held[i] then
      list = stay
    end
    table.insert(list, { cell = held[i], at = other.at, job = other })
    need(held[i])
  end
  if job then
    table.insert(wanted, { cell = cell, job = job })
    need(cell)
  end
  for type, n in pairs(count) do
    if n > (pool[type] or 0) then
      return nil
    end
  end
  return place(pool, stay, wanted) and wanted or nil
end

return placement
