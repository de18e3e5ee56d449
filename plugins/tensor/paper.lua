-- What the publications' volumes say of a plan: bytes of the layers over the slowest link of the
-- tensor-parallel group, one exchange after the other and none hidden.
local claims = require "claims"
local formulas = require "formulas"
local links = require "links"
local prices = require "prices"

--- Values that a rank sends for a layer in the passes of a micro-batch, by scheme; then those of an
-- iteration besides, for the weights' gradients.
local volume = {}

volume["1d"] = function(x, tp)
  return 2 * formulas.lines(x, tp.degree)
end

-- The paper's backward pass computes the forward one again: a third of it where the plan does not.
volume["2d"] = function(x, tp, recompute)
  local forward, backward = formulas.grid(x, tp.degree)
  return forward + (recompute == "full" and backward or backward * 2 / 3)
end

volume["2.5d"] = function(x, tp)
  local forward, between = formulas.grids(x, math.sqrt(tp.degree / tp.depth), tp.depth)
  return 3 * forward, between
end

volume["3d"] = function(x, tp)
  local forward, again = formulas.cube(x, math.floor(tp.degree ^ (1 / 3) + 0.5))
  return 2 * forward + (tp.regather and again or 0)
end

--- Values of a layer's weights that a rank of a grid or cube holds, and transfers of a product.
local function of_grid(x, tp)
  if tp.scheme == "1d" then
    return {}
  elseif tp.scheme == "3d" then
    return { weights_held = formulas.weights_held(x, math.floor(tp.degree ^ (1 / 3) + 0.5), true) }
  end
  local held = formulas.weights_held(x, math.sqrt(tp.degree / (tp.depth or 1)))
  local cannon, flat, deep = formulas.transfers(tp.degree)
  return { weights_held = held, transfers_cannon = cannon,
    transfers = tp.scheme == "2.5d" and (tp.depth ^ 3 >= tp.degree and deep or flat) or nil }
end

--- The slowest link between neighbours of a group.
local function slowest(ctx, ids)
  local least = math.huge
  for i = 2, #ids do
    least = math.min(least, links.bandwidth(ctx, ids[i - 1], ids[i]))
  end
  return least
end

--- Bytes that a rank of a stage sends in the passes of a micro-batch, and once per iteration.
local function sent_by(ctx, made, stage, tp)
  if tp.degree < 2 then
    return 0, 0
  end
  local x = { b = made.micro_batch / (stage.dp or 1), s = ctx.job.sequence, h = ctx.model.hidden }
  local passes, between = volume[tp.scheme](x, tp, stage.recompute)
  local n = stage.layers[2] - stage.layers[1]
  return n * passes * ctx.job.weight_bytes, n * (between or 0) * ctx.job.grad_bytes
end

local paper = {}

--- The claim: Eq-P of the stages, each with its volume over the slowest link of its first group,
-- and the longest sum over depth.
function paper.claim(plan, ctx)
  local made = prices.table_of(plan)
  local stage_s, sent_bytes, between_s, terms = {}, 0, 0, nil
  for s, stage in ipairs(made.replicas[1].stages) do
    local pass = prices.stage(ctx, made, 1, s)
    local tp = type(stage.tp) == "table" and stage.tp or { scheme = "1d", degree = stage.tp or 1 }
    terms = terms or of_grid({ b = made.micro_batch / (stage.dp or 1), s = ctx.job.sequence,
      h = ctx.model.hidden }, tp)
    local bytes, once_bytes = sent_by(ctx, made, stage, tp)
    local group = {}
    table.move(ctx.cluster:ids(stage.devices), 1, tp.degree, 1, group)
    local bytes_per_s = slowest(ctx, group)
    stage_s[s] = pass.forward_s + pass.backward_s - (pass.exposed.tp or 0) + bytes / bytes_per_s
    sent_bytes = math.max(sent_bytes, bytes)
    between_s = math.max(between_s, once_bytes / bytes_per_s)
  end
  terms.sent_bytes, terms.between_depths_s = sent_bytes, between_s
  return { iteration_s = (claims.pipeline_s(stage_s, made.replicas[1].micro_batches)) + between_s,
    terms = terms,
    formula = "values that a rank sends per layer, over the slowest link of its group; gradients "
      .. "between the grids of a depth once",
    leaves_out = "latencies, the embedding and the head, recomputation but of trees, gradients of "
      .. "replicas, and feed-forward parts that are not four times as wide" }
end

return paper
