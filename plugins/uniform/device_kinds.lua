-- Kinds of devices: those that a stage spans, and the one with the least memory.
local device_kinds = {}

--- The kinds of each stage where the stages take `size` devices each, in order: per stage a list
-- with the first device of every kind.
function device_kinds.of_stages(devices, stages, size)
  local kinds = {}
  for s = 1, stages do
    local seen, list = {}, {}
    for i = (s - 1) * size + 1, s * size do
      local device = devices[i]
      if not seen[device.kind] then
        seen[device.kind] = true
        list[#list + 1] = device
      end
    end
    kinds[s] = list
  end
  return kinds
end

--- The devices without those of least memory.
function device_kinds.without_smallest(devices)
  local least_bytes = math.huge
  local rest = {}
  for _, device in ipairs(devices) do
    least_bytes = math.min(least_bytes, device.memory_bytes)
  end
  for _, device in ipairs(devices) do
    if device.memory_bytes > least_bytes then
      rest[#rest + 1] = device
    end
  end
  return rest
end

return device_kinds
