-- HexGen's shipped case (Relaxed-System-Lab/HexGen before 949414d, experimental/optimizer,
-- genetic_algorithm.py and cost_model_impl.py): Llama-70B on 7 machines of 3 tiers in 4 regions, 32
-- tokens in, 128 out, with the constants of its code; and how many groups of a region can hold the
-- model.
local function region(most_groups, sizes, memory, slow)
  local q = { layers = 80, machines = {}, degrees = { 1, 2, 3, 4, 6, 8 },
    most_groups = most_groups }
  local layer, token, steps = 12 * 8192 ^ 2 * 2, 8192 * 2, 128 - 32
  for m, n in ipairs(sizes) do
    q.machines[m] = { size = n, memory = memory[m] * 2 ^ 30, class = memory[m] .. "/" .. slow[m] }
  end
  q.least = 80 * layer
  function q.seconds(m, tp)
    local function exchange(tokens)
      return 4 * (tp - 1) * (1e-6 + tokens * token / (tp * 1e11))
    end
    return (layer * (1 + 32) + steps * 2 * layer) / 1e12 / tp * slow[m] + exchange(32)
      + steps * exchange(1)
  end
  function q.cap(m, tp)
    return math.floor((memory[m] * 2 ^ 30 - 4 * (32 + 128) * token) / (layer / tp
        + 2 * (32 + 128) * token))
  end
  function q.hop(a, b)
    return a == b and 0 or (1 + steps) * 1e-6 + (32 + steps) * token / 1e11
  end
  return q
end

return function()
  return {
    region(8, { 8, 8, 8, 4 }, { 48, 48, 24, 48 }, { 1, 1, 0.75, 1 }),
    region(2, { 8, 8 }, { 24, 24 }, { 0.75, 0.75 }),
    region(1, { 3, 3 }, { 24, 24 }, { 0.75, 0.75 }), region(1, { 8 }, { 24 }, { 0.75 }),
  }
end
