-- Pipelines along a list of devices: what planners need that fill them in order, one device or one tensor
-- group per stage, and give every pipeline the same share of the batch as near as whole micro-batches go.
local layout = require "layout"
local prices = require "prices"

local lines = {}

--- Pipelines of consecutive devices, those that meet the same kinds and node borders together.
-- @function lines.consecutive
-- @tparam table devices list of rows of cluster:devices()
-- @tparam integer depth stages of every pipeline, one device each
-- @tparam integer most how many pipelines; the devices behind them stay unused
-- @treturn table list of {row = first pipeline, a list of {devices, kind, tp = 1}, copies = all of them}
-- @units none
-- @raise none
-- @usage local layout = require "layout"
-- print(#require("lines").consecutive(layout.devices(ctx), 1, 2))
function lines.consecutive(devices, depth, most)
  local rows = {}
  for r = 1, most do
    rows[r] = {}
    for s = 1, depth do
      local d = devices[(r - 1) * depth + s]
      rows[r][s] = { devices = { d }, kind = d.kind, tp = 1 }
    end
  end
  return layout.joined(rows, function(row)
    local words = {}
    for s, stage in ipairs(row) do
      words[s] = stage.kind .. (s > 1 and row[s - 1].devices[1].node == stage.devices[1].node and "=" or "/")
    end
    return table.concat(words)
  end)
end

--- Deals micro-batches to equal pipelines as evenly as they go: rows of pipelines with as many each.
-- @function lines.even
-- @tparam table list of {row, copies}
-- @tparam integer total micro-batches of all pipelines
-- @tparam table counts list of the layers per stage
-- @treturn table list of {row, copies, micro_batches, cut = {counts}} as pipes.plan takes it
-- @units none
-- @raise none
-- @usage local two = { { row = {}, copies = { {}, {} } } }
-- assert(#require("lines").even(two, 5, {}) == 2)
function lines.even(list, total, counts)
  local dp, rows = 0, {}
  for _, p in ipairs(list) do dp = dp + #p.copies end
  local left, base = total % dp, total // dp
  for _, p in ipairs(list) do
    local more = math.min(left, #p.copies)
    left = left - more
    for _, part in ipairs { { 1, more, base + 1 }, { more + 1, #p.copies - more, base } } do
      if part[2] > 0 then
        local copies = layout.slice(p.copies, part[1], part[2])
        rows[#rows + 1] = { row = copies[1], copies = copies, micro_batches = part[3], cut = { counts = counts } }
      end
    end
  end
  return rows
end

--- The largest all-reduce of a stage's gradients over all pipelines.
-- @function lines.sync
-- @tparam handle ctx the run's input
-- @tparam table list of {row, copies}
-- @tparam table ranges list of {from, to} per stage, from 0, half open
-- @treturn number seconds
-- @units seconds
-- @raise a kind that the cluster has not
-- @usage assert(require("lines").sync(ctx, {}, {}) == 0)
function lines.sync(ctx, list, ranges)
  local most = 0
  for s, range in ipairs(ranges) do
    local ids, stage = {}, list[1].row[s]
    for _, p in ipairs(list) do
      for _, row in ipairs(p.copies) do ids[#ids + 1] = row[s].devices[1].id end
    end
    local own = prices.chain(ctx, stage.kind, { tp = stage.tp, micro_batch = 1 })
    most = math.max(most, prices.sync(ctx, own, range[1] + 1, range[2], ids))
  end
  return most
end

return lines
