--- Measured layers of OPT-350M on A100 and V100 that Sailor publishes (eth-easl/sailor cf2c8e3, its
-- profiles, SOSP 2025); the Metis run of the same models was made of them. For the self-tests of
-- both.
local opt350 = {}

-- Forward + backward in ms by type, tensor degree and micro-batch: embedding, first block, other 23
-- blocks, head.
local passes = {
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
-- Bytes of the parameters, and of what a sequence leaves behind: embedding, block, head; by tensor
-- degree.
opt350.parameters = { { 214433792, 50384896, 206053376 }, { 111673344, 25204736, 103292928 }, nil,
  { 60293120, 12614656, 51912704 } }
opt350.saved = { { 8388608, 360726528, 834694144 }, { 8407040, 192954368, 423652352 }, nil,
  { 8407040, 109592576, 218131456 } }

--- Sum of a run of layers, from and to counting from 1, of values { embedding, block, head }.
function opt350.run(values, from, to)
  local sum = (from == 1 and values[1] or 0) + (to == 26 and values[3] or 0)
  return sum + (math.min(to, 25) - math.max(from, 2) + 1) * values[2]
end

--- Milliseconds of a run of layers; nil where it was not measured.
function opt350.pass_ms(type, tp, micro_batch, from, to)
  local t = passes[type][tp] and passes[type][tp][micro_batch]
  if not t then
    return nil
  end
  return opt350.run({ t[1], t[3], t[4] }, from, to) + (from <= 2 and to >= 2 and t[2] - t[3] or 0)
end

return opt350
