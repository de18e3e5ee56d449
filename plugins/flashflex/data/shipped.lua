-- FlashFlex's shipped sample as an instance of `asymmetric` (FlashFlex 5ee1726, experimental): 3
-- A100, 3 RTX 4090, 2 RTX 3090, 0.5 GiB/s between machines, Llama-7B, batch 24.
local formula = require "formula"

return function()
  local T, G, machine, inside = 2 ^ 40, 2 ^ 30, { 1, 1, 1, 2, 2, 2, 3, 3 }, { 200, 2, 2 }
  local q = { flops = {}, memory = {}, machine = machine, hidden = 4096, layers = 32, tokens = 4096,
    vocab = 32000,
    micro_batch = 1, recompute = true, batch = 24 }
  for d, m in ipairs(machine) do
    q.flops[d], q.memory[d] = ({ 312, 165.2, 80 })[m] * T, ({ 80, 24, 24 })[m] * G
  end
  function q.bw(a, b)
    return (machine[a] == machine[b] and inside[machine[a]] or 0.5) * G
  end
  function q.tp()
    return true
  end
  function q.most(stage, s, stages)
    local n, room = 0, q.memory[stage.devices[1]]
    local ends = s == 1 or s == stages
    while n < 32 and formula.memory_bytes(q, { devices = stage.devices, layers = n + 1 },
      ends) <= room do
      n = n + 1
    end
    return n
  end
  return q
end
