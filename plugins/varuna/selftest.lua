-- Self-tests of Varuna: the catalogue's example of recomputation, and the case of the published
-- simulator, which draws times at random.
local jitter = require "jitter"
local opportunistic = require "opportunistic"
local plain = require "testing.plain"
local every_row = require "testing.rows"

local CATALOGUE = "catalogue: varuna"

-- The catalogue's example, in units of its layer times.
local GPUS = 8
local FORWARD = 8     -- of the whole model
local BACKWARD = 16   -- without recomputation
local ALL_REDUCE = 40 -- of the whole model's gradients, without the factor of the ring
local HOP = 0.5

--- Tokens of a rank with its recomputations as passes of their own, which may start early.
local function with_recomputations(tokens)
  local list = {}
  for _, token in ipairs(tokens) do
    if token:sub(1, 1) ~= "F" then
      table.insert(list, "R" .. token:match "%d.*")
    end
    table.insert(list, token)
  end
  return list
end

--- Time of the example at a depth under 1F1B. All stages but the last recompute: inside the
-- backward pass, or with `early` as a pass that need not wait for the gradient.
local function example(depth, early)
  local micro_batches = 4 * depth
  local forward = FORWARD / depth
  local backward = {}
  local order = {}
  for s, tokens in ipairs(hv.sim.schedule("1f1b", { ranks = depth,
    micro_batches = micro_batches }).order) do
    local recomputes = s < depth
    backward[s] = BACKWARD / depth + (recomputes and not early and forward or 0)
    order[s] = recomputes and early and with_recomputations(tokens) or tokens
  end
  local sync = 0
  local replicas = GPUS // depth
  if replicas > 1 then
    sync = 2 * (replicas - 1) / replicas * ALL_REDUCE / depth
  end
  return hv.sim.schedule(order, { ranks = depth, micro_batches = micro_batches,
    times = { f = forward, b = backward, w = 0, hop = depth > 1 and HOP or 0 } }).makespan + sync
end

local function check_example(t)
  local rows = {
    { depth = 1, inside = 166, early = 166 },
    { depth = 2, inside = 168, early = 163 },
    { depth = 4, inside = 171, early = 155 },
    { depth = 8, inside = 187, early = 154 },
  }
  for _, row in ipairs(rows) do
    t.near(("8 GPUs, depth %d: time with recomputation inside the backward pass"):format(row.depth),
      example(row.depth), row.inside, 0, CATALOGUE)
    t.near(("8 GPUs, depth %d: time with recomputation before the gradient"):format(row.depth),
      example(row.depth, true), row.early, 1e-9, CATALOGUE)
  end
  local order = hv.sim.schedule("varuna", { ranks = 4, micro_batches = 6 }).order
  t.equal("schedule of 4 stages: position of a recomputation on the last stage",
    table.concat(order[4], " "):find("R", 1, true), nil, "section 4")
end

--- Milliseconds of one draw of the published simulator's case: passes of 10 and 20 ms with N(0, 2
-- ms), messages of 1 ms, or 3 ms behind every fourth GPU, with N(0, 10 ms); none negative, and no
-- gradient's message below its mean; then an all-reduce of 50 ms.
local function drawn_ms(stages, micro_batches)
  local order = hv.sim.schedule("varuna", { ranks = stages, micro_batches = micro_batches }).order
  return 50 + opportunistic.play(order, {
    time = function(kind)
      return jitter.at_least(kind == "BW" and 20 or 10, 2, 0)
    end,
    hop = function(from, to)
      local mean = math.min(from, to) % 4 == 0 and 3 or 1
      return jitter.at_least(mean, 10, from < to and 0 or mean)
    end })
end

local function check_published_simulator(t)
  local theirs = 3062.386
  local lowest, highest = math.huge, 0
  for _ = 1, 8 do
    local ms = drawn_ms(8, 64)
    lowest = math.min(lowest, ms)
    highest = math.max(highest, ms)
  end
  t.ok(("8 stages x 64 micro-batches: 8 draws of %.0f to %.0f ms include theirs, %.3f of one draw")
    :format(lowest, highest, theirs), lowest <= theirs and theirs <= highest,
    "Varuna a2145cc, simulate-varuna")
  t.near("Varuna, 32 stages x 512, ms of one draw; theirs 22991.194 of one, in 0.15 s of CPU",
    drawn_ms(32, 512), 22991.194, 115, "Varuna's own simulator")
end

return function(t)
  check_example(t)
  check_published_simulator(t)
  every_row.search(t, plain.pipelined())
end
