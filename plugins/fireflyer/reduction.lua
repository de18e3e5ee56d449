-- Time of an all-reduce of gradients in one node group: HFReduce, and a ring over the same wires
-- (Fire-Flyer, section IV). Both take the rates of the nodes as node_rates.lua gives them:
-- gpus = per node, d2h_bytes_per_s and h2d_bytes_per_s = copies of one GPU, memory_bytes_per_s =
-- host memory of a node, memory_passes = how often host memory moves each byte of a GPU,
-- nic_bytes_per_s, root_bytes_per_s = root port that root_gpus GPUs share (nil: none),
-- zone_bytes_per_s = between zones (nil: one zone), pairs = NVLink bridges between pairs of GPUs,
-- chunk_s = latency of one chunk on one hop.
local reduction = {}

--- HFReduce of `bytes` per GPU over `nodes` nodes. The steps are pipelined in chunks, so the
-- longest one sets the time; every hop of the double binary tree adds one chunk. Returns seconds,
-- the seconds of each step, and the number of hops.
function reduction.hfreduce_s(rates, bytes, nodes)
  local host_bytes = bytes
  if rates.pairs then
    host_bytes = bytes / 2 -- a pair adds its gradients over its bridge before it copies
  end
  local steps = {
    to_host_s = host_bytes / rates.d2h_bytes_per_s,
    from_host_s = host_bytes / rates.h2d_bytes_per_s,
    memory_s = rates.memory_passes * rates.gpus * host_bytes / rates.memory_bytes_per_s,
    nic_s = 0,
    root_s = 0,
    zone_s = 0,
  }
  local hops = 0
  if nodes > 1 then
    steps.nic_s = 2 * bytes / rates.nic_bytes_per_s
    hops = 2 * math.ceil(math.log(nodes, 2) - 1e-9)
  end
  if rates.root_bytes_per_s then
    steps.root_s = rates.root_gpus * host_bytes / rates.root_bytes_per_s
  end
  if rates.zone_bytes_per_s then
    -- one edge of either tree crosses: half of the bytes up and half of them down
    steps.zone_s = bytes / rates.zone_bytes_per_s
  end
  local longest_s = 0
  for _, step_s in pairs(steps) do
    longest_s = math.max(longest_s, step_s)
  end
  return longest_s + hops * rates.chunk_s, steps, hops
end

--- Seconds of a ring all-reduce of `bytes` per GPU over all GPUs of `nodes` nodes: each GPU sends
-- 2 (N - 1) / N of its bytes through its root port, and a node as much through its NIC.
function reduction.ring_s(rates, bytes, nodes)
  local ranks = nodes * rates.gpus
  local sent_bytes = 2 * (ranks - 1) / ranks * bytes
  local nic_s, root_s = 0, 0
  if nodes > 1 then
    nic_s = sent_bytes / rates.nic_bytes_per_s
  end
  if rates.root_bytes_per_s then
    root_s = rates.root_gpus * sent_bytes / rates.root_bytes_per_s
  end
  return math.max(sent_bytes / rates.d2h_bytes_per_s, nic_s, root_s)
end

return reduction
