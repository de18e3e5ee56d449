--- Measured layers of OPT-350M on A100 and V100 that Sailor publishes (eth-easl/sailor cf2c8e3, its
-- profiles, SOSP 2025); its run of Metis used the same figures. The self-tests of both read them.
local opt350 = {}

-- Forward and backward pass in ms by type, tensor degree and micro-batch: embedding, first block,
-- each of the other 23 blocks, head.
local passes_ms = {
  a = {
    { [1] = { 0.403, 8.692, 8.223, 8.497 }, [2] = { 0.429, 16.226, 15.797, 15.755 },
      [4] = { 0.511, 31.314, 30.919, 30.984 }, [8] = { 0.688, 61.583, 61.165, 61.986 } },
    { [1] = { 0.828, 5.241, 5.306, 4.923 }, [2] = { 0.883, 9.154, 8.949, 8.82 },
      [4] = { 1.022, 17.305, 17.032, 16.333 }, [8] = { 1.441, 33.47, 33.165, 31.901 } }, nil,
    { [1] = { 0.965, 4.337, 4.412, 4.289 }, [2] = { 0.988, 6.317, 6.417, 5.987 },
      [4] = { 1.049, 10.169, 9.855, 9.218 }, [8] = { 1.563, 19.267, 19.017, 17.037 } },
  },
  v = {
    { [1] = { 0.448, 24.987, 24.516, 48.762 }, [2] = { 0.53, 48.674, 48.032, 96.06 },
      [4] = { 0.521, 99.558, 100.553, 196.945 } },
    { [1] = { 0.863, 14.248, 13.734, 24.824 }, [2] = { 1.152, 27.3, 26.936, 50.535 },
      [4] = { 1.606, 52.138, 51.798, 97.264 }, [8] = { 2.572, 106.117, 106.155, 204.469 } }, nil,
    { [1] = { 0.937, 9.03, 8.931, 13.037 }, [2] = { 1.17, 15.643, 15.434, 25.761 },
      [4] = { 1.746, 29.535, 29.392, 50.596 }, [8] = { 3.176, 58.44, 58.495, 101.282 } },
  },
}
-- Bytes of the parameters, and of the activations that a sequence keeps for the backward pass:
-- embedding, block, head; by tensor degree.
opt350.parameters = { { 214433792, 50384896, 206053376 }, { 111673344, 25204736, 103292928 }, nil,
  { 60293120, 12614656, 51912704 } }
opt350.saved = { { 8388608, 360726528, 834694144 }, { 8407040, 192954368, 423652352 }, nil,
  { 8407040, 109592576, 218131456 } }

-- The model as layers: embedding, 24 blocks, head.
local FIRST_BLOCK, LAST_BLOCK, HEAD = 2, 25, 26

--- Sum over the layers first … last, from 1, of values { embedding, block, head }.
function opt350.run(values, first, last)
  local ends = (first == 1 and values[1] or 0) + (last == HEAD and values[3] or 0)
  local n_blocks = math.min(last, LAST_BLOCK) - math.max(first, FIRST_BLOCK) + 1
  return ends + n_blocks * values[2]
end

--- Milliseconds of both passes through the layers first … last; nil where they were not measured.
function opt350.pass_ms(type, tp, micro_batch, first, last)
  local by_micro_batch = passes_ms[type][tp]
  local ms = by_micro_batch and by_micro_batch[micro_batch]
  if not ms then
    return nil
  end
  local holds_first_block = first <= FIRST_BLOCK and last >= FIRST_BLOCK
  local first_block_extra_ms = holds_first_block and ms[2] - ms[3] or 0
  return opt350.run({ ms[1], ms[3], ms[4] }, first, last) + first_block_extra_ms
end

return opt350
