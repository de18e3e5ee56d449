-- Self-tests against the authors' own simulator.
local opportunistic = require "opportunistic"

-- Varuna: 32 stages x 512 micro-batches of 10 and 20 ms, hops of 1 ms, 3 ms behind every fourth
-- GPU, all-reduce 50 ms; it draws N(0, 2 ms) on passes and N(0, 10 ms) on hops, none below 0. The
-- smaller case is in the plugin's self-test.
local function test_varuna(t)
  local drawn = opportunistic.drawn
  local order = hv.sim.schedule("varuna", { ranks = 32, micro_batches = 512 }).order
  local ms = 50 + opportunistic.play(order, {
    time = function(kind) return kind == "BW" and drawn(20, 2, 0) or drawn(10, 2, 0) end,
    hop = function(a, b)
      local base = math.min(a, b) % 4 == 0 and 3 or 1
      return drawn(base, 10, a < b and 0 or base)
    end })
  t.near("Varuna, 32 stages x 512, ms of one draw; theirs 22991.194 of one, in 0.15 s of CPU", ms,
    22991.194, 115,
    "Varuna's own simulator")
end

return function(t)
  test_varuna(t)
end
