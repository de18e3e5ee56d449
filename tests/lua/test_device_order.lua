-- Tests of share/lua/device_order. `hetviz selftest tests/lua/test_device_order.lua`.
local device_order = require "device_order"

-- Nodes of two devices in two zones. A link in a node passes 100 bytes per second, in a zone 10,
-- between zones 1.
local NODES = {
  { group = "p", zone = "east", kind = "slow", flops = 1 },
  { group = "q", zone = "west", kind = "slow", flops = 1 },
  { group = "r", zone = "east", kind = "slow", flops = 1 },
  { group = "s", zone = "west", kind = "slow", flops = 1 },
  { group = "t", zone = "west", kind = "fast", flops = 2 },
}
local ORDERS = { { 1, 2, 3, 4, 5 }, { 5, 4, 3, 2, 1 }, { 3, 1, 5, 4, 2 } } -- of files

--- One cluster with the nodes in each of the orders, since links are remembered by number; and the
-- devices of each order.
local function world()
  local rows, node_of, lists = {}, {}, {}
  for o, order in ipairs(ORDERS) do
    lists[o] = {}
    for _, k in ipairs(order) do
      local n, node = #rows + 1, NODES[k]
      rows[n] = { name = node.group .. o, kind = node.kind, first = 2 * n - 1, count = 1,
        stride = 2, devices = 2, first_node = n }
      for slot = 1, 2 do
        node_of[2 * n - 2 + slot] = { number = n, zone = node.zone }
        table.insert(lists[o], { id = 2 * n - 2 + slot, kind = node.kind, group = node.group,
          node = n, slot = slot, zone = node.zone, flops_per_s = node.flops, memory_bytes = 8,
          usd_per_h = 1 })
      end
    end
  end
  local cluster = {}
  function cluster.groups()
    return rows
  end
  function cluster.link(_, a, b)
    local from, to = node_of[a], node_of[b]
    local bandwidth = from.zone == to.zone and 10 or 1
    if from.number == to.number then
      bandwidth = 100
    end
    return { latency_s = 0, bandwidth_bytes_per_s = bandwidth }
  end
  return { cluster = cluster }, lists
end

return {
  api = 1, id = "device-order-test", title = "Tests of the order of devices", kind = "test",
  system = "none", reference = "none", summary = "Checks the order that planners start from.",
  plan = function()
    return nil, "this file only tests a library"
  end,
  selftest = function(t)
    local ctx, lists = world()
    for o, devices in ipairs(lists) do
      local words = {}
      for i, device in ipairs(device_order.canonical(ctx, devices)) do
        words[i] = device.group .. device.slot
      end
      t.equal(("order %d of the file: fastest kind first, nodes of a zone together"):format(o),
        table.concat(words, " "), "t1 t2 q1 q2 s1 s2 p1 p2 r1 r2",
        "by hand: west reaches the fast node")
    end
  end,
}
