-- HexGen's shipped case (Relaxed-System-Lab/HexGen before 949414d, experimental/optimizer,
-- genetic_algorithm.py and cost_model_impl.py): Llama-70B on 7 machines of 3 tiers in 4 regions, 32
-- tokens in, 128 out, with the constants of its code; and how many groups of a region can hold the
-- model.
local LAYERS = 80
local HIDDEN = 8192
local LAYER_BYTES = 12 * HIDDEN ^ 2 * 2
local TOKEN_BYTES = HIDDEN * 2
local TOKENS_IN = 32
local TOKENS_OUT = 128
local STEPS = TOKENS_OUT - TOKENS_IN -- as its code counts them
local LATENCY_S = 1e-6
local LINK_BYTES_PER_S = 1e11
local MEMORY_BYTES_PER_S = 1e12

--- The instance of one region: machines of so many devices, GiB of a device of each, and how much
-- longer it takes than the fastest tier.
local function region(most_groups, sizes, memory_GiB, slowdown)
  local q = { layers = LAYERS, machines = {}, degrees = { 1, 2, 3, 4, 6, 8 },
    most_groups = most_groups, least_bytes = LAYERS * LAYER_BYTES }
  for m, size in ipairs(sizes) do
    q.machines[m] = { size = size, memory_bytes = memory_GiB[m] * 2 ^ 30,
      class = memory_GiB[m] .. "/" .. slowdown[m] }
  end
  function q.layer_s(m, tp)
    local function exchange_s(tokens)
      return 4 * (tp - 1) * (LATENCY_S + tokens * TOKEN_BYTES / (tp * LINK_BYTES_PER_S))
    end
    local compute_s = (LAYER_BYTES * (1 + TOKENS_IN) + STEPS * 2 * LAYER_BYTES)
      / MEMORY_BYTES_PER_S / tp * slowdown[m]
    return compute_s + exchange_s(TOKENS_IN) + STEPS * exchange_s(1)
  end
  function q.most_layers(m, tp)
    local tokens = TOKENS_IN + TOKENS_OUT
    return math.floor((memory_GiB[m] * 2 ^ 30 - 4 * tokens * TOKEN_BYTES)
      / (LAYER_BYTES / tp + 2 * tokens * TOKEN_BYTES))
  end
  function q.hop_s(a, b)
    if a == b then
      return 0
    end
    return (1 + STEPS) * LATENCY_S + (TOKENS_IN + STEPS) * TOKEN_BYTES / LINK_BYTES_PER_S
  end
  return q
end

return function()
  return {
    region(8, { 8, 8, 8, 4 }, { 48, 48, 24, 48 }, { 1, 1, 0.75, 1 }),
    region(2, { 8, 8 }, { 24, 24 }, { 0.75, 0.75 }),
    region(1, { 3, 3 }, { 24, 24 }, { 0.75, 0.75 }),
    region(1, { 8 }, { 24 }, { 0.75 }),
  }
end
