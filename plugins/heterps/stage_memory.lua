-- Memory of stages in the search: which ones fit, and how finely a run of layers must be cut.
local micro_batch = require "micro_batch"
local numbers = require "numbers"
local pipeline = require "pipeline"

local stage_memory = {}

--- A function(stage, sequences, alive): does a stage {type, first, last} with so many sequences per
-- device and so many micro-batches alive fit the memory of one device of its type? Remembered.
-- c = {recompute, reserve = bytes of a device that are left alone}.
local function fitting(ctx, types, ranges, c)
  local known = {}
  return function(stage, sequences, alive)
    local key = (((stage.type * 65536 + sequences) * 65536 + alive) * 128 + stage.first) * 128
      + stage.last
    if known[key] == nil then
      local row = { devices = { types[stage.type].devices[1] }, micro_batch = sequences,
        recompute = c.recompute }
      local t = pipeline.tables(ctx, row, alive)
      known[key] = pipeline.fits({ held = t.held, room = t.room - (c.reserve or 0) },
        ranges[stage.first][1] + 1, ranges[stage.last][2])
    end
    return known[key]
  end
end

--- Do the parts of a run fit one device each, when it is cut evenly into n and `behind` stages come
-- after it? A stage keeps as many micro-batches alive as there are stages from it on.
local function parts_fit(fits, run, n, behind)
  local first = run.first
  for j, size in ipairs(numbers.even(run.last - run.first + 1, n)) do
    local stage = { type = run.type, first = first, last = first + size - 1 }
    if not fits(stage, 1, behind + n - j + 1) then
      return false
    end
    first = first + size
  end
  return true
end

--- A function(runs): the least parts of every run so that all fit one device each with one
-- sequence, counted from the last run on; nil where a single layer does not fit. Remembered by run
-- and by the number of stages behind it.
local function packing(fits)
  local known, alone = {}, {} -- alone: parts of a run that is the last one
  local function least_parts(run, name, behind)
    local n = alone[name] or 1
    local layers = run.last - run.first + 1
    while n <= layers and not parts_fit(fits, run, n, behind) do
      n = n + 1
    end
    if behind == 0 then
      alone[name] = n
    end
    return n <= layers and n
  end
  return function(runs)
    local parts, behind = {}, 0
    for i = #runs, 1, -1 do
      local run = runs[i]
      local name = (run.type * 128 + run.first) * 128 + run.last
      local key = name * 65536 + behind
      if known[key] == nil then
        known[key] = least_parts(run, name, behind)
      end
      if not known[key] then
        return nil
      end
      parts[i] = known[key]
      behind = behind + known[key]
    end
    return parts
  end
end

--- Does every group of layers fit a device of some type?
local function every_group_fits(q, fits)
  local every = true
  for g in ipairs(q.ranges) do
    local some = false
    for t in ipairs(q.types) do
      some = some or fits({ type = t, first = g, last = g }, 1, 1)
    end
    every = every and some
  end
  return every
end

--- Adds to an instance what its memory allows: possible = does every group of layers fit a device
-- of some type, packed and short as provisioning.lua takes them. c = {recompute, reserve}.
function stage_memory.add(ctx, q, types, c)
  local fits = fitting(ctx, types, q.ranges, c)
  q.possible = every_group_fits(q, fits)
  q.packed = packing(function(stage, sequences, alive)
    return fits(stage, sequences, math.min(alive, ctx.job.global_batch))
  end)
  function q.short(stages)
    local entering = micro_batch.of(ctx, stages)
    for i, stage in ipairs(stages) do
      local alive = math.min(#stages - i + 1, ctx.job.global_batch // entering)
      local sequences = 1 -- of a stage whose devices are not known yet
      if stage.k then
        sequences = math.ceil(entering / stage.k)
      end
      if not fits(stage, sequences, alive) then
        return stage
      end
    end
    return nil
  end
end

return stage_memory
