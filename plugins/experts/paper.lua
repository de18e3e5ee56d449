-- What the publications' own models say of a plan: each policy's formula on the layer with experts
-- of its first stage, with the places that the plan records last and without any, for the tokens of
-- the last iteration.
local mixture = require "mixture"
local placing = require "placing_experts"
local policies = require "policies"
local prices = require "prices"
local walk = require "walk"

local NO_ROUTING = "the job has no routing: every expert gets the same tokens, and experts stay "
  .. "where they are"

local of = {}

--- Seconds of the moves between the places of a plan, one after the other.
local function moves_s(facts, list)
  local sum_s = 0
  for i = 2, #list do
    sum_s = sum_s + (policies.move_s(facts, list[i - 1], list[i]))
  end
  return sum_s
end

--- Terms of a formula seconds(places) on the first and the last of a list of places.
local function both(list, seconds)
  return { unplaced_layer_s = (seconds(list[1])), placed_layer_s = (seconds(list[#list])) }
end

function of.fastermoe(facts, layer, list)
  local shadows = 0
  local function seconds(places)
    local shadowed = {}
    for e in pairs(places.copies) do
      shadowed[e] = true
    end
    return placing.shadows_s({ loads = policies.totals(layer), owners = places.owners,
      token_s = facts.token_s + facts.send_s, copy_s = facts.weights_s }, shadowed)
  end
  for _ in pairs(list[#list].copies) do
    shadows = shadows + 1
  end
  local terms = both(list, seconds)
  terms.shadows_s = shadows * facts.weights_s
  return { terms = terms, formula = "(3 4aH2 / F + 4 H w / BW) B + shadows 2aH2 w / BW",
    leaves_out = "gate, gradients of shadows, and what chunks hide" }
end

function of.smartmoe(facts, layer, list)
  local terms = both(list, function(places)
    return policies.smartmoe_s(facts, layer, places)
  end)
  local _, compute_s, exchange_s = policies.smartmoe_s(facts, layer, list[#list])
  terms.computation_s, terms.exchange_s, terms.all_moves_s = compute_s, exchange_s,
    moves_s(facts, list)
  return { terms = terms, formula = "3 busiest computation + 4 busiest exchange",
    leaves_out = "attention, gradients and pipeline, which places do not change" }
end

function of.flexmoe(facts, layer, list)
  local terms = both(list, function(places)
    return policies.flexmoe_s(facts, layer, places)
  end)
  terms.all_moves_s = moves_s(facts, list)
  return { terms = terms, formula = "busiest rank: computation + exchange + all-reduce of replicas",
    leaves_out = "that adjustments wait for a stream of their own" }
end

function of.prophet(facts, layer, list)
  return { terms = both(list, function(places)
      return policies.prophet_s(facts, layer, places.owners, places.copies)
    end),
    formula = "4 R s_in / BW + 3 H / thr + transfers and aggregation that show",
    leaves_out = "sub-operations of the hidden transfers" }
end

local paper = {}

--- The first stage with a layer with experts.
local function first_stage(made, layers)
  for _, stage in ipairs(made.replicas[1].stages) do
    for _, layer in ipairs(layers) do
      if layer.block >= stage.layers[1] and layer.block < stage.layers[2] then
        return stage
      end
    end
  end
end

--- The claim of a system on a plan table: seconds of one layer in the last iteration.
function paper.of(made, ctx, id)
  local world = { ctx = ctx, id = id, layers = (mixture.layers(ctx)) }
  local facts, layers, list = walk.figures(world, made, first_stage(made, world.layers))
  if #(ctx.job.routing and layers or {}) <= 1 then
    facts.move_s = 0 -- one iteration stands for all: experts are there from the start
  end
  local claim = of[id](facts, layers[#layers], list)
  claim.warnings = not ctx.job.routing and { NO_ROUTING } or nil
  return claim
end

--- The claim of the system that runs.
function paper.claim(made, ctx)
  return paper.of(prices.table_of(made), ctx, ctx.system.id)
end

return paper
