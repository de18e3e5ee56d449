-- Self-tests: the arithmetic of the grid, without a cluster.
local grids = require "grids"
local reduction = require "reduction"

local ARITHMETIC = "arithmetic"

local function test_layer_counts(t)
  local counts = grids.layer_counts(9, 4, 1, "")
  t.equal("9 layers on 4 stages: the first stage has one more", table.concat(counts, ","),
    "3,2,2,2", ARITHMETIC)
  t.equal("126 layers on 16 stages: first and last one layer less",
    table.concat(grids.layer_counts(126, 16, 1, ""), ","), "7," .. ("8,"):rep(14) .. "7",
    "Llama 3, section 3.3.2")
  counts = grids.layer_counts(80, 4, 1, "20,20,24,16")
  t.equal("80 layers on 4 stages by given counts", table.concat(counts, ","), "20,20,24,16",
    ARITHMETIC)
  t.equal("counts 6 and 4 of two stages with two chunks each, in model order",
    table.concat(grids.layer_counts(10, 2, 2, "6,4"), ","), "3,2,3,2", ARITHMETIC)
  t.ok("counts that add up to 81 of 80 layers are refused",
    grids.layer_counts(80, 4, 1, "20,20,20,21") == nil, ARITHMETIC)
end

local function test_recompute(t)
  t.ok("recompute accepts core+act and full",
    grids.is_recompute("core+act") and grids.is_recompute("full"), ARITHMETIC)
  t.ok("recompute refuses an unknown unit and an empty text",
    not grids.is_recompute("core+foo") and not grids.is_recompute(""), ARITHMETIC)
end

local function test_overlap(t)
  local overlaps = reduction.overlaps
  t.ok("auto, fp16, zero 1: gradients are reduced after the last backward pass",
    not overlaps({ overlap = "auto", zero = 1 }, { precision = "fp16" }), ARITHMETIC)
  t.ok("auto, bf16 or zero 3: gradients are reduced beside the backward passes",
    overlaps({ overlap = "auto", zero = 0 }, { precision = "bf16" })
      and overlaps({ overlap = "auto", zero = 3 }, { precision = "fp16" }), ARITHMETIC)
  t.ok("yes and no decide whatever the precision",
    overlaps({ overlap = "yes", zero = 0 }, { precision = "fp16" })
      and not overlaps({ overlap = "no", zero = 3 }, { precision = "bf16" }), ARITHMETIC)
end

local function test_micro_batches(t)
  t.equal("micro-batches of batch 256, dp 4, micro-batch 2", grids.micro_batches(256, 4, 2), 32,
    ARITHMETIC)
  local none, why = grids.micro_batches(256, 3, 2)
  t.ok("batch 256 with dp 3 and micro-batch 2 is refused", none == nil, ARITHMETIC)
  t.ok("the reason names the nearest dp that divide it", why:find("dp 2 or 4", 1, true) ~= nil,
    ARITHMETIC)
end

local function test_grid(t)
  local fake = { cluster = {}, job = { grad_bytes = 4 } }
  function fake.cluster.address(_, ids)
    return table.concat(ids, " ")
  end
  local made = grids.plan(fake, {
    ids = { 1, 2, 3, 4, 5, 6, 7, 8 }, tp = 2, cp = 1, dp = 2, pp = 2, ep = 1, chunks = 2, zero = 0,
    counts = { 3, 2, 3, 2 }, recompute = "none", schedule = "interleaved",
    sequence_parallel = false, micro_batch = 1, micro_batches = 4,
  })
  local first = made.replicas[1].stages[1]
  t.equal("stage 1 of tp 2 x dp 2 takes the first four devices", first.devices, "1 2 3 4",
    "Megatron-LM rank order")
  t.equal("layers before chunk 2 of stage 1, pp 2", first.layers[2][1], 5,
    "interleaved: stage s has the ranges s, s + pp, …")
  t.equal("sequences that enter a stage at once, micro-batch 1 and dp 2", made.micro_batch, 2,
    "plan format: dp is inside the stage")
  t.near("bucket of two ranks: 40 million gradients in 32 bit", made.sync.bucket_MiB,
    160e6 / 2 ^ 20, 1e-9, "Megatron-LM, DistributedDataParallelConfig")
end

--- HSDP: 2 copies of 4 shards, with the optimizer in the host's memory.
local function test_shards_and_offload(t)
  local fake = { cluster = {} }
  function fake.cluster.address(_, ids)
    return table.concat(ids, " ")
  end
  local made = grids.plan(fake, {
    ids = { 1, 2, 3, 4, 5, 6, 7, 8 }, tp = 1, cp = 1, dp = 8, pp = 1, ep = 1, chunks = 1, zero = 3,
    shard_group = 4, offload = "weights, optimizer", counts = { 4 }, recompute = "none",
    schedule = "1f1b", sequence_parallel = false, micro_batch = 1, micro_batches = 1,
  })
  local stage = made.replicas[1].stages[1]
  local source = "plan format: zero and offload of a stage"
  t.equal("shards of a copy", stage.zero.shard_group, 4, source)
  t.equal("stage of ZeRO", stage.zero.stage, 3, source)
  t.equal("parts in the host's memory", #stage.offload, 2, source)
  t.equal("the second of them", stage.offload[2].what .. " to " .. stage.offload[2].to,
    "optimizer to host", source)
  t.ok("weights and optimizer are known", grids.is_offload("weights,optimizer"), source)
  t.ok("gradients are refused", not grids.is_offload("gradients"), source)
end

return function(t)
  test_shards_and_offload(t)
  test_layer_counts(t)
  test_recompute(t)
  test_overlap(t)
  test_micro_batches(t)
  test_grid(t)
end
