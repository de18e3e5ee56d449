-- Self-tests of Fire-Flyer: the time of HFReduce and of a ring, and the order of devices.
local reduction = require "reduction"
local staggered = require "staggered"

local FORMULA = "HFReduce's formula by hand"

local function check_hfreduce(t)
  local rates = {
    gpus = 8, d2h_bytes_per_s = 20e9, h2d_bytes_per_s = 20e9, memory_bytes_per_s = 320e9,
    memory_passes = 3, nic_bytes_per_s = 25e9, chunk_s = 0,
  }
  local total_s, steps, hops = reduction.hfreduce_s(rates, 1e9, 16)
  t.near("HFReduce of 1 GB per GPU, 16 nodes of 8 GPUs, s", total_s, 0.080, 1e-12, FORMULA)
  t.near("step to the host at 20 GB/s, s", steps.to_host_s, 0.05, 1e-12, FORMULA)
  t.near("step from the host at 20 GB/s, s", steps.from_host_s, 0.05, 1e-12, FORMULA)
  t.near("step in host memory, 24 passes at 320 GB/s, s", steps.memory_s, 0.075, 1e-12, FORMULA)
  t.near("step on the NIC, both directions of the tree at 25 GB/s, s", steps.nic_s, 0.08, 1e-12,
    FORMULA)
  t.near("hops of the double binary tree over 16 nodes", hops, 8, 0, FORMULA)
  t.near("rate at which host memory limits HFReduce, GB/s",
    rates.memory_bytes_per_s / (rates.memory_passes * rates.gpus) / 1e9, 13.3, 0.05,
    "by hand: 320 GB/s in 24 passes")
  rates.root_bytes_per_s, rates.root_gpus = 16e9, 2
  total_s = reduction.hfreduce_s(rates, 1e9, 16)
  t.near("rate with two GPUs on a root port of 16 GB/s, GB/s", 1 / total_s, 8, 1e-12, FORMULA)
  t.near("ring over that root port, 128 GPUs, s", reduction.ring_s(rates, 1e9, 16),
    2 * 2 * 127 / 128 / 16, 1e-12, "2 (N - 1) / N by hand")
  rates.root_bytes_per_s, rates.zone_bytes_per_s = nil, 10e9
  t.near("HFReduce with 10 GB/s between zones, s", reduction.hfreduce_s(rates, 1e9, 16), 0.1, 1e-12,
    "by hand: half of the bytes of either tree each way")
  rates.zone_bytes_per_s, rates.pairs = nil, true
  total_s, steps = reduction.hfreduce_s(rates, 1e9, 16)
  t.near("step in host memory with NVLink pairs, s", steps.memory_s, 0.0375, 1e-12, FORMULA)
  t.near("HFReduce with NVLink pairs: the NIC is still the slowest, s", total_s, 0.08, 1e-12,
    FORMULA)
  rates.chunk_s = 1e-3
  t.near("HFReduce with 8 hops of chunks of 1 ms, s", reduction.hfreduce_s(rates, 1e9, 16), 0.088,
    1e-12, FORMULA)
end

local function check_order(t)
  local devices = {}
  for i = 1, 8 do
    devices[i] = { id = i, node = (i + 3) // 4 }
  end
  local ids = {}
  for i, device in ipairs(staggered.order({ devices = devices }, 2)) do
    ids[i] = device.id
  end
  t.equal("two nodes of 4 GPUs in slots of 2, each slot starting one node later",
    table.concat(ids, " "), "1 2 5 6 7 8 3 4", "by hand")
end

return function(t)
  check_hfreduce(t)
  check_order(t)
end
