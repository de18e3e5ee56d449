-- The order of nodes in which pipelines take consecutive ones. The paper's nodes are equal.
local inventory = require "inventory"

local node_sequence = {}

--- Numbers of the nodes that lost no device, as a set.
local function whole_nodes(ctx)
  local whole = {}
  for _, group in ipairs(ctx.cluster:groups()) do -- runs of nodes that lost nothing
    for i = group.first_node, group.first_node + group.count - 1 do
      whole[i] = true
    end
  end
  return whole
end

--- Nodes (of inventory.nodes) in order of falling speed, equal kinds together, file order
-- otherwise; and the reason where there are none. `damaged` marks nodes of which a device is lost.
function node_sequence.of(ctx)
  local devices, why = inventory.priced(ctx)
  local nodes = inventory.nodes(devices)
  local whole = whole_nodes(ctx)
  for i, node in ipairs(nodes) do
    node.at = i
    node.damaged = not whole[node.node]
  end
  table.sort(nodes, function(a, b)
    local a_flops_per_s = a.flops_per_s * #a.ids
    local b_flops_per_s = b.flops_per_s * #b.ids
    if a_flops_per_s ~= b_flops_per_s then
      return a_flops_per_s > b_flops_per_s
    elseif a.kind ~= b.kind then
      return a.kind < b.kind
    end
    return a.at < b.at
  end)
  return nodes, why
end

return node_sequence
