-- What a pipeline leaves idle: times between the forward and the backward pass of a micro-batch.
local timeline = {}

--- Seconds between the two passes of a micro-batch in the middle of the iteration, per stage, under
-- 1F1B with these forward and backward times.
function timeline.intervals(forward_s, backward_s, micro_batches)
  local r = hv.sim.schedule("1f1b", { ranks = #forward_s, micro_batches = micro_batches,
    times = { f = forward_s, b = backward_s, w = 0 }, spans = true })
  local list, middle = {}, (micro_batches - 1) // 2
  for s, tokens in ipairs(r.order) do
    local forward_end, backward_start
    for i, token in ipairs(tokens) do
      local kind, number = token:match "^(%a+)%d+%.(%d+)"
      if tonumber(number) == middle then
        if kind == "F" then
          forward_end = r.spans[s][2 * i]
        else
          backward_start = backward_start or r.spans[s][2 * i - 1]
        end
      end
    end
    list[s] = math.max(0, backward_start - forward_end)
  end
  return list
end

return timeline
