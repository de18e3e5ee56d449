-- What the publications' volumes say of a plan: bytes of the layers over the slowest link of the
-- tensor-parallel group, one exchange after the other and none hidden.
local claims = require "claims"
local formulas = require "formulas"
local links = require "links"
local prices = require "prices"

--- Values that a rank sends for a layer, forward and backward, by scheme.
local volume = {}

volume["1d"] = function(x, tp)
  return 2 * formulas.lines(x, tp.degree)
end

volume["2d"] = function(x, tp)
  return 3 * formulas.grids(x, math.sqrt(tp.degree), 1)
end

volume["2.5d"] = function(x, tp)
  return 3 * formulas.grids(x, math.sqrt(tp.degree / tp.depth), tp.depth)
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

local paper = {}

--- The claim: Eq-P of the stages, each with its volume over the slowest link of its first group.
function paper.claim(plan, ctx)
  local made = prices.table_of(plan)
  local stage_s, sent_bytes, terms = {}, 0, nil
  for s, stage in ipairs(made.replicas[1].stages) do
    local pass = prices.stage(ctx, made, 1, s)
    local tp = type(stage.tp) == "table" and stage.tp or { scheme = "1d", degree = stage.tp or 1 }
    local x = { b = made.micro_batch / (stage.dp or 1), s = ctx.job.sequence,
      h = ctx.model.hidden }
    terms = terms or of_grid(x, tp)
    local bytes = 0
    if tp.degree > 1 then
      bytes = (stage.layers[2] - stage.layers[1]) * volume[tp.scheme](x, tp) * ctx.job.weight_bytes
    end
    local group = {}
    table.move(ctx.cluster:ids(stage.devices), 1, tp.degree, 1, group)
    stage_s[s] = pass.forward_s + pass.backward_s - (pass.exposed.tp or 0)
      + bytes / slowest(ctx, group)
    sent_bytes = math.max(sent_bytes, bytes)
  end
  terms.sent_bytes = sent_bytes
  return { iteration_s = (claims.pipeline_s(stage_s, made.replicas[1].micro_batches)),
    terms = terms,
    formula = "values that a rank sends per layer, over the slowest link of its group",
    leaves_out = "latencies, the embedding and the head, recomputation, gradients of replicas, and "
      .. "feed-forward parts that are not four times as wide" }
end

return paper
