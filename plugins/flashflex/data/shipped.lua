-- FlashFlex's shipped sample as a problem of pipeline_search (FlashFlex 5ee1726, experimental): 3
-- A100, 3 RTX 4090 and 2 RTX 3090, 0.5 GiB/s between machines, Llama-7B, batch 24.
local formula = require "formula"

local TERA = 2 ^ 40
local GIB = 2 ^ 30

return function()
  local machine = { 1, 1, 1, 2, 2, 2, 3, 3 }
  local tflops_per_s = { 312, 165.2, 80 }
  local memory_gib = { 80, 24, 24 }
  local inside_gib_per_s = { 200, 2, 2 }
  local p = { flops_per_s = {}, memory_bytes = {}, machine = machine, hidden = 4096, layers = 32,
    tokens = 4096, vocab = 32000, micro_batch = 1, recompute = true, batch = 24 }
  for d, m in ipairs(machine) do
    p.flops_per_s[d] = tflops_per_s[m] * TERA
    p.memory_bytes[d] = memory_gib[m] * GIB
  end
  function p.bandwidth(a, b)
    local gib_per_s = machine[a] == machine[b] and inside_gib_per_s[machine[a]] or 0.5
    return gib_per_s * GIB
  end
  function p.is_degree()
    return true
  end
  function p.most_layers(stage, s, stages)
    return formula.most_layers(p, stage, s, stages)
  end
  return p
end
