-- Time and memory of a grid of equal stages: Eq-P (sum of the stage times and M - 1 times the
-- slowest stage) and a ring all-reduce.
local claims = require "claims"
local numbers = require "numbers"
local prices = require "prices"

local grid_cost = {}

--- Seconds of a micro-batch on the slowest kind of stage s, and by how many bytes the kind with the
-- least room exceeds its memory (at most 0 where the stage fits).
local function stage_cost(ctx, grid, s, from, to)
  local slowest_s, over_bytes = 0, -math.huge
  for _, device in ipairs(grid.kinds[s]) do
    local chain = prices.chain(ctx, device.kind, grid)
    slowest_s = math.max(slowest_s, prices.time(chain, from, to))
    local need_bytes = prices.bytes(ctx, chain, from, to, {
      in_flight = math.min(grid.pp - s + 1, grid.micro_batches), zero = grid.zero,
      holders = grid.dp,
    })
    over_bytes = math.max(over_bytes, need_bytes - prices.capacity(ctx, device))
  end
  return slowest_s, over_bytes
end

--- Seconds of the ring all-reduce of stage s over the link between its first and last device.
local function all_reduce_s(ctx, grid, s, from, to)
  local first = grid.devices[(s - 1) * grid.tp * grid.dp + 1]
  local last = grid.devices[s * grid.tp * grid.dp]
  local chain = prices.chain(ctx, first.kind, grid)
  local bytes = prices.gradient_bytes(ctx, chain, from, to)
  local link = ctx.cluster:link(first.id, last.id)
  return 2 * (grid.dp - 1) / grid.dp * bytes * grid.tp / link.bandwidth_bytes_per_s
end

--- Seconds of an iteration, and by how many bytes the worst stage exceeds its memory (at most 0
-- where the grid fits). `grid` has the keys of grids.plan, `devices` and `kinds` (device_kinds).
function grid_cost.of(ctx, grid)
  local ranges = numbers.ranges(grid.counts)
  local stage_s = {}
  local over_bytes = -math.huge
  local sync_s = 0
  for s = 1, grid.pp do
    local from, to = ranges[s][1] + 1, ranges[s][2]
    local stage_over_bytes
    stage_s[s], stage_over_bytes = stage_cost(ctx, grid, s, from, to)
    over_bytes = math.max(over_bytes, stage_over_bytes)
    if grid.dp > 1 then
      sync_s = math.max(sync_s, all_reduce_s(ctx, grid, s, from, to))
    end
  end
  return claims.pipeline_s(stage_s, grid.micro_batches) + sync_s, over_bytes
end

return grid_cost
