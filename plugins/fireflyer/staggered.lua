-- The order in which pipelines are laid through the nodes (HaiScale): ranks of one node share its
-- NIC, so they shall be at different stages.
local staggered = {}

--- The devices of one kind in the order of slots of `tp` devices: slot by slot, each slot starting
-- one node later. `type` = {devices = rows of cluster:devices()}. Where nodes differ in size, the
-- given order.
function staggered.order(type, tp)
  local by_node, nodes = {}, {}
  for _, device in ipairs(type.devices) do
    if not by_node[device.node] then
      by_node[device.node] = {}
      nodes[#nodes + 1] = device.node
    end
    table.insert(by_node[device.node], device)
  end
  local order = {}
  for slot = 0, #by_node[nodes[1]] // tp - 1 do
    for k = 0, #nodes - 1 do
      local node = by_node[nodes[(k + slot) % #nodes + 1]]
      table.move(node, slot * tp + 1, (slot + 1) * tp, #order + 1, order)
    end
  end
  if #order == #type.devices then
    return order
  end
  return type.devices
end

return staggered
