-- Kinds of the devices that a stage spans.
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

return device_kinds
