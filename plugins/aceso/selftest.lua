-- Self-tests against the authors' own search.
local bottleneck = require "bottleneck"
local operators = require "operators"

-- Aceso: its plan for GPT 1.3B on 4 GPUs, operators recomputed (1) in each stage; 60 s of search,
-- 16.5 s of CPU.
local aceso = {
  "000111100011000011110000000001111000000000111100000000011110000000001111000000",
  "000111100011000011110001100001111000000000001100000000000110000000000011000000000",
  "11110000000000011000000000001100000000000110000000000011000000000001100000000000110",
  "0011000011110001100000011000110000000000011000000000000000000000000000000",
}

local function test_aceso(t)
  local q, times, bytes, at = operators.instance(require "data.gpt3_1_3b"), {}, 0, 0
  for s, flags in ipairs(aceso) do
    local p = q.price { from = at + 1, to = at + #flags, tp = 1, dp = 1, micro_batch = 1, index = s,
      behind = 4 - s,
      flags = flags }
    at, times[s], bytes = at + #flags, p.time_s, math.max(bytes, p.bytes)
  end
  local list, worst = bottleneck.times(times, 512)
  t.near("Aceso, its plan by its equations here, s", list[worst], 58.76092188572894, 1e-5,
    "Aceso fa80ad0")
  t.near("and its memory, MB", bytes, 11976.221, 1e-6, "Aceso fa80ad0")
  local way = { { time = 0, saved = 0, peak = 0 }, { time = 2, saved = 4, peak = 1 },
    { time = 5, saved = 9, peak = 3 } }
  t.near("Aceso, recomputation of 2 layers that saves 8", operators.recompute({ way, way }, 8, 2),
    4, 1e-9,
    "by hand: of two micro-batches one layer saves 2 x 4 - 1, two save 2 x 8 - 1")
  for _, case in ipairs { { 4, 1, 58.76092188572894 }, { 3, 2 }, { 2, 2 } } do
    local e = bottleneck.run(q, { stages = case[1], micro_batch = case[2], budget = 100 })
    local best = case[3] or 1e9
    t.ok(("Aceso, GPT 1.3B on 4 GPUs, %d stages: %.4f s%s"):format(case[1], e.time_s,
      case[3] and (", theirs %.4f s in 16.5 s of CPU"):format(best) or ""), e.over == 0
        and e.time_s <= best,
      "Aceso fa80ad0, its cost equation and profile")
  end
end

return function(t)
  test_aceso(t)
end
