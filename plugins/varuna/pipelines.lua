-- Seconds and memory of data-parallel pipelines without tensor parallelism. A setting `c` is
-- { list = pipelines { row = stages, copies } as pipeline.consecutive gives them, ranges = layers
-- of each stage (from 0, half open), micro_batch, total = micro-batches of all pipelines, dp =
-- pipelines }.
local batch_time = require "batch_time"
local links = require "links"
local pass_times = require "pass_times"
local prices = require "prices"

local pipelines = {}

local function chain_of(ctx, stage, c)
  return prices.chain(ctx, stage.kind, { tp = 1, micro_batch = c.micro_batch })
end

--- Times { f, b, hop } of the stages of a pipeline, and a key that is equal for equal times.
local function times_of(ctx, row, c)
  local times = { f = {}, b = {}, hop = {} }
  local key = ""
  for s, stage in ipairs(row) do
    local range = c.ranges[s]
    times.f[s], times.b[s] = pass_times.of(stage.kind, c.micro_batch, range[1] + 1, range[2])
    if s > 1 then
      times.hop[s - 1] = links.seconds(ctx, row[s - 1].devices[1].id, stage.devices[1].id,
        chain_of(ctx, stage, c).output_bytes)
    end
    key = ("%s %s %s"):format(key, stage.kind, times.hop[s - 1])
  end
  return times, key
end

--- The reason why the first stage that lacks memory does not fit, and the bytes that it lacks;
-- nothing where all stages fit. `peak` is the number of inputs that each stage keeps: beside the
-- states and one whole activation, a stage holds the inputs of the other micro-batches.
local function shortage(ctx, row, c, peak)
  for s, stage in ipairs(row) do
    local chain = chain_of(ctx, stage, c)
    local need = prices.bytes(ctx, chain, c.ranges[s][1] + 1, c.ranges[s][2], { in_flight = 1 })
    if s > 1 then
      need = need + (peak[s] - 1) * chain.output_bytes
    end
    local room = prices.capacity(ctx, stage)
    if need > room then
      return prices.short(ctx, s, need, stage), need - room
    end
  end
end

--- Seconds of the slowest pipeline; or nil, the reason, and the bytes that are short. Pipelines
-- with equal times are simulated once.
function pipelines.slowest(ctx, c)
  local micro_batches = math.ceil(c.total / c.dp)
  local slowest_s = 0
  local known = {}
  for _, p in ipairs(c.list) do
    local times, key = times_of(ctx, p.row, c)
    if not known[key] then
      local seconds, peak = batch_time.of(ctx, times, micro_batches)
      known[key] = { seconds = seconds, peak = peak }
    end
    slowest_s = math.max(slowest_s, known[key].seconds)
    local why, short_bytes = shortage(ctx, p.row, c, known[key].peak)
    if why then
      return nil, why, short_bytes
    end
  end
  return slowest_s
end

return pipelines
