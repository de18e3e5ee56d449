-- Rates of the nodes that train.
local inventory = require "inventory"
local prices = require "prices"

local node_rates = {}

--- The nodes of `devices` = rows of cluster:devices(), as inventory.nodes gives them, each with
-- rate = sequences per second of all its devices through one layer.
function node_rates.of(ctx, devices, recompute)
  local nodes = inventory.nodes(devices)
  for _, node in ipairs(nodes) do
    local chain = prices.chain(ctx, node.kind, { tp = 1, micro_batch = 1, recompute = recompute })
    node.rate = #node.ids * chain.n / prices.time(chain, 1, chain.n)
  end
  return nodes
end

return node_rates
