-- The max flow of a training pipeline on Helix's graph of nodes and links (Mei et al., arXiv
-- 2406.01566, section 4.3).
local links = require "links"
local node_rates = require "node_rates"
local prices = require "prices"
local token_flow = require "token_flow"

local training_flow = {}

local UNLIMITED = 1e15 -- tokens per second of a link that sets no limit

--- Bytes that leave a layer for one sequence.
function training_flow.output_bytes(ctx, kind)
  return prices.chain(ctx, kind, { tp = 1, micro_batch = 1 }).output_bytes
end

--- Tokens per second through stages = list of {nodes, as node_rates gives them} with `counts`
-- layers each. A link carries activations one way and gradients back.
function training_flow.of(ctx, stages, counts)
  local kind = stages[1].nodes[1].kind
  local token_bytes = training_flow.output_bytes(ctx, kind) / ctx.job.sequence
  local q = { layers = ctx.model.n_layers, rates = {}, strict = true }
  local runs, heads, first = {}, {}, 0
  for s, stage in ipairs(stages) do
    for _, node in ipairs(stage.nodes) do
      local rates = {}
      for n = 1, counts[s] do
        rates[n] = node.rate / n * ctx.job.sequence
      end
      q.rates[#q.rates + 1] = rates
      runs[#runs + 1] = { first, first + counts[s] }
      heads[#heads + 1] = node.ids[1]
    end
    first = first + counts[s]
  end
  function q.link(i, j)
    if i == 0 or j > #heads then
      return UNLIMITED
    end
    return links.bandwidth(ctx, heads[i], heads[j]) / token_bytes / 2
  end
  return (token_flow.flow(q, runs))
end

--- Seconds in which nodes exchange the gradients of the layers range = {first − 1, last}, in ranks
-- of tp devices inside nodes that run at the same time.
function training_flow.exchange_s(ctx, nodes, range, tp)
  local heads = {}
  for _, node in ipairs(nodes) do
    for i = 1, #node.ids, tp do
      heads[#heads + 1] = node.ids[i]
    end
  end
  if #heads < 2 then
    return 0
  end
  local chain = prices.chain(ctx, nodes[1].kind, { tp = tp, micro_batch = 1 })
  local cost = hv.cost.collective { op = "all_reduce", devices = heads, together = tp,
    bytes = prices.gradient_bytes(ctx, chain, range[1] + 1, range[2]) }
  return cost and cost.time_s or math.huge
end

--- Tokens per second through the stages of a plan that trains.
function training_flow.of_plan(ctx, made)
  local device_of = {}
  for _, device in ipairs(ctx.cluster:devices()) do
    device_of[device.id] = device
  end
  local stages, counts = {}, {}
  for s, stage in ipairs(made.replicas[1].stages) do
    local devices = {}
    for i, id in ipairs(ctx.cluster:ids(stage.devices)) do
      devices[i] = device_of[id]
    end
    stages[s] = { nodes = node_rates.of(ctx, devices, stage.recompute or "none") }
    counts[s] = stage.layers[2] - stage.layers[1]
  end
  return training_flow.of(ctx, stages, counts)
end

return training_flow
