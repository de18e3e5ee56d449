-- What the publications' own models say of a plan: a layer with experts of its first stage that has
-- one, with the places of the last decision and without any, for tokens of the one before.
local mixture = require "mixture"
local policies = require "policies"
local prices = require "prices"
local walk = require "walk"

local leaves_out = {
  fastermoe = "gate, and what chunks hide",
  smartmoe = "attention, gradients and pipeline, which places do not change",
  flexmoe = "that adjustments wait for a stream of their own",
  prophet = "sub-operations of the hidden transfers",
}

local formulas = {
  fastermoe = "(3 4aH2 / F + 4 H w / BW) B + shadows 2aH2 w / BW",
  smartmoe = "3 busiest computation + 4 busiest exchange",
  flexmoe = "busiest rank: computation, exchange, all-reduce of replicas",
  prophet = "4 R s_in / BW + 3 H / thr + transfers and aggregation that show",
}

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

--- The claim of the system that runs: seconds of one layer in the last iteration.
function paper.claim(made, ctx)
  made = prices.table_of(made)
  local id = ctx.system.id
  local world = { ctx = ctx, id = id, layers = (mixture.layers(ctx)) }
  local stage = first_stage(made, world.layers)
  local facts, layers = walk.figures(world, made, stage)
  local last = layers[#layers]
  local state = { now = { owners = policies.by_blocks(facts.experts, facts.ranks), copies = {} } }
  local places = policies[id].decide(facts, last, state, facts.interval + 1) or state.now
  local lent = policies[id].lent
  return { terms = { unplaced_layer_s = policies.layer_s(facts, last, state.now, lent),
      placed_layer_s = policies.layer_s(facts, last, places, lent) },
    formula = formulas[id], leaves_out = leaves_out[id] }
end

return paper
