-- Small worlds for self-tests: pipelines of measured layers on plain links, with the orders that
-- the systems set.
local orders = require "orders"
local plain = require "testing.plain"

local world = {}

--- A point of the degrees as degrees.search makes it: `p` ranks of one device, v chunks, m
-- micro-batches of one sequence.
function world.point(p, m, v, knob)
  return { tp = 1, cp = 1, dp = 1, pp = p, chunks = v, micro_batch = 1, micro_batches = m,
    recompute = "none", knob = knob }
end

--- Inputs for p devices in one node and n equal layers of `f` and `b` ms, one unit of activations
-- (1 MB) per layer, m sequences.
function world.inputs(p, n, m, f, b)
  local inputs = plain.measured { nodes = 1, devices = p, layers = n, forward_ms = f,
    backward_ms = b, parameter_bytes = 0, batch = m }
  for _, layer in ipairs(inputs.model.layers) do
    layer.activation_bytes = 1e6
  end
  return inputs
end

--- The plan of equal chunks of a point on devices 1 to p, each stage with further keys.
function world.plan(ctx, point, keys)
  local parts = point.pp * point.chunks
  local counts, stages = {}, {}
  for c = 1, parts do
    counts[c] = ctx.model.n_layers // parts
  end
  for s = 1, point.pp do
    local devices = {}
    for i = 1, point.dp do
      devices[i] = (s - 1) * point.dp + i
    end
    stages[s] = { devices = ctx.cluster:address(devices), dp = point.dp,
      layers = orders.layers(point, counts, s) }
    for key, value in pairs(keys or {}) do
      stages[s][key] = value
    end
  end
  return { micro_batch = point.dp, schedule = point.knob.schedule,
    replicas = { { micro_batches = point.micro_batches, stages = stages } } }
end

--- The judge's verdict on p ranks, v chunks, m micro-batches in this order, with f and b ms of
-- passes per rank: { ms, bubble, alive = activations of a rank per stage }.
function world.judged(t, q)
  local v = q.v or 1
  local n = q.p * v
  return t.with(world.inputs(q.p, n, q.m, q.f / v, q.b / v), function(ctx)
    local point = world.point(q.p, q.m, v, { schedule = q.schedule })
    local verdict = assert(hv.plan.new(world.plan(ctx, point, q.keys)):eval())
    assert(#verdict.violations == 0, verdict.violations[1] and verdict.violations[1].text)
    local alive = {}
    for s, own in ipairs(verdict.memory) do
      alive[s] = own.activations_bytes / 1e6 / v
    end
    return { ms = verdict.iteration_s * 1e3, bubble = verdict.bubble, alive = alive }
  end)
end

return world
