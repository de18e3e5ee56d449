-- Worlds and plans of the self-tests: one layer on plain links, with a layout as the system sets
-- it.
local plain = require "testing.plain"
local schemes = require "schemes"

local worlds = {}

--- Inputs: { nodes (1), devices of each (8), nics of each (1), heads (32), kv_heads (as heads),
-- hidden (4096), sequence (65536), causal (true), layers (1), batch (1), and what plain.cluster and
-- a job take }.
function worlds.of(q)
  local heads = q.heads or 32
  local cluster = plain.cluster { nodes = q.nodes or 1, devices = q.devices or 8,
    nic_GBps = q.nic_GBps or 100, intra_GBps = q.intra_GBps or 200, TFLOPS = q.TFLOPS or 312,
    memory_GiB = q.memory_GiB or 800, memory_GBps = q.memory_GBps or 1e6 }
  cluster.nodes[1].nic.count = q.nics
  return {
    cluster = cluster,
    model = { format = "hetviz.model/1", name = "m", kind = "transformer", layers = q.layers or 1,
      hidden = q.hidden or 4096, heads = heads, kv_heads = q.kv_heads or heads,
      ffn = 4 * (q.hidden or 4096), ffn_kind = "gelu", vocab = 64, causal = q.causal ~= false,
      max_sequence = q.sequence or 65536, tokens = q.tokens, attends = q.attends },
    job = { format = "hetviz.job/1", global_batch = q.batch or 1, sequence = q.sequence or 65536,
      precision = "bf16", optimizer = "adamw", dropout = q.dropout or "off",
      attention = q.attention },
    options = q.options,
  }
end

--- The layout of a system over so many ranks that has these members, the first of them.
function worlds.layout(id, q, want)
  for _, cp in ipairs(schemes[id].candidates { ranks = q.ranks, heads = q.heads or 32,
    sequence = q.sequence or 65536, causal = q.causal ~= false, options = { tile = 128 } }) do
    local same = true
    for key, value in pairs(want or {}) do
      same = same and cp[key] == value
    end
    if same then
      return cp
    end
  end
  error("no such layout of " .. id)
end

--- The verdict of a plan whose sequences lie over the ranks as `stage` says.
function worlds.judged(t, q, stage)
  return t.with(worlds.of(q), function(ctx)
    stage.dp = 1
    local plan = plain.plan(ctx, stage)
    plan.micro_batch, plan.replicas[1].micro_batches = q.batch or 1, 1
    return assert(hv.plan.new(plan):eval())
  end)
end

--- The same with a layout of a system: { id, ranks, want = members of the layout, … }.
function worlds.laid(t, id, q)
  q.nodes = q.nodes or math.max(1, q.ranks // 8)
  return worlds.judged(t, q, { cp = worlds.layout(id, q, q.want) })
end

return worlds
