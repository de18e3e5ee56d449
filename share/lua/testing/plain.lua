--- Worlds of plain links and rates, in which the closed forms of publications go through the judge
-- digit by digit: inputs for t.with, and plans of one stage.
-- Library: self-tests of families; their chunks are no plugins.
local plain = {}

--- Inputs of measured layers on devices of 80 GB behind plain links: { nodes, devices = per node
-- (1), nic_GBps, intra_GBps (1e6), latency_us (0), layers (1), forward_ms (0), backward_ms,
-- update_ms (no optimizer), parameter_bytes per layer (fp32), batch (one per device), pieces =
-- members of a layer instead of these, sequence (1), routing }, and what plain.cluster takes.
function plain.measured(q)
  local devices = q.devices or 1
  local layers = {}
  for i = 1, q.layers or 1 do
    layers[i] = q.pieces or {
      forward_ms = { P = q.forward_ms or 0 }, backward_ms = { P = q.backward_ms or 0 },
      update_ms = { P = q.update_ms or 0 }, parameter_bytes = q.parameter_bytes,
      activation_bytes = 0, output_bytes = 0 }
  end
  return {
    cluster = plain.cluster(q),
    model = { format = "hetviz.model/1", name = "m", kind = "layers", layers = layers },
    job = { format = "hetviz.job/1", global_batch = q.batch or q.nodes * devices,
      sequence = q.sequence or 1, precision = "fp32", routing = q.routing,
      optimizer = q.update_ms and "adamw" or "none" },
  }
end

--- The cluster of such inputs: { nodes, devices, nic_GBps, intra_GBps, latency_us = between nodes,
-- intra_us (0), nics (1) = of a node, memory_GiB, memory_GBps, TFLOPS }.
function plain.cluster(q)
  return {
    format = "hetviz.cluster/1", name = "plain",
    nodes = { {
      name = "a", count = q.nodes, device = "P", devices = q.devices or 1,
      intra = { bandwidth_GBps = q.intra_GBps or 1e6, latency_us = q.intra_us or 0,
        curve = "plain" },
      nic = { bandwidth_GBps = q.nic_GBps or 10, latency_us = q.latency_us or 0, count = q.nics,
        curve = "plain" },
    } },
    devices = { P = { memory_GiB = q.memory_GiB or 80, bandwidth_GBps = q.memory_GBps or 1000,
      dense_TFLOPS = { fp32 = q.TFLOPS or 100, bf16 = q.TFLOPS or 100 }, rates = "plain" } },
  }
end

--- Inputs of a transformer of one dense layer and one with experts, gelu without biases: what
-- plain.measured takes, and { hidden, ffn = of an expert, experts, top_k (1), precision (fp32) }.
function plain.transformer(q)
  return {
    cluster = plain.cluster(q),
    model = { format = "hetviz.model/1", name = "m", kind = "transformer", layers = 2,
      hidden = q.hidden, heads = 8, kv_heads = 8, ffn = 4 * q.hidden, ffn_kind = "gelu",
      ffn_bias = false, vocab = 1000, max_sequence = 1 << 16,
      moe = { experts = q.experts, top_k = q.top_k or 1, ffn = q.ffn, first_dense = 1 } },
    job = { format = "hetviz.job/1", global_batch = q.batch or q.nodes * (q.devices or 1),
      sequence = q.sequence, precision = q.precision or "fp32", grad_precision = "same",
      optimizer = q.optimizer or "adam", routing = q.routing },
  }
end

--- Inputs of a dense transformer of eight layers on two nodes of two devices, for the searches of
-- pipelines.
function plain.pipelined()
  return {
    cluster = plain.cluster { nodes = 2, devices = 2, nic_GBps = 10, intra_GBps = 100 },
    model = { format = "hetviz.model/1", name = "m", kind = "transformer", layers = 8,
      hidden = 1024, heads = 8, ffn = 4096, vocab = 1000, max_sequence = 512, causal = true },
    job = { format = "hetviz.job/1", global_batch = 16, sequence = 512, precision = "bf16",
      optimizer = "adamw" },
  }
end

--- A plan of one stage on all devices, data-parallel but for what `stage` sets; `sync` as in plans.
function plain.plan(ctx, stage, sync)
  local ids = {}
  for i = 1, ctx.cluster.n_devices do
    ids[i] = i
  end
  local own = { devices = ctx.cluster:address(ids), layers = { 0, ctx.model.n_layers }, dp = #ids }
  for key, value in pairs(stage or {}) do
    own[key] = value
  end
  return {
    micro_batch = math.min(own.dp, ctx.job.global_batch),
    replicas = { { micro_batches = ctx.job.global_batch // math.min(own.dp, ctx.job.global_batch),
      stages = { own } } },
    schedule = { name = "1f1b" }, sync = sync,
  }
end

--- Milliseconds of an iteration by the judge.
function plain.ms(plan)
  local verdict = assert(hv.plan.new(plan):eval())
  return verdict.iteration_s * 1e3
end

return plain
