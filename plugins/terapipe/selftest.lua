-- Self-tests of TeraPipe: the catalogue's cases by the program, random cases against exhaustive
-- enumeration of slices and micro-batches, and the schedule's makespan by the judge.
local plain = require "testing.plain"
local rows = require "testing.rows"
local slices = require "slices"

local FROM = "catalogue: terapipe; Li et al. 2021, section 3.3"

--- The problem of L units of one token and one sequence over K stages; t(l, c) = seconds.
local function tokens(L, K, t)
  return { units = L, batch = 1, sizes = { 1 }, stages = K, epsilon = 0,
    seconds = function(_, first, last)
      return t(last - first + 1, first - 1)
    end }
end

--- All ways to cut n units.
local function compositions(n)
  if n == 0 then
    return { {} }
  end
  local out = {}
  for first = 1, n do
    for _, rest in ipairs(compositions(n - first)) do
      out[#out + 1] = { first, table.unpack(rest) }
    end
  end
  return out
end

--- The least objective over all multisets of sizes and all slices of each.
local function exhaustive(q)
  local all, best = compositions(q.units), math.huge
  local function fill(left, most, sum_s, longest_s)
    if left == 0 then
      best = math.min(best, sum_s + (q.stages - 1) * longest_s)
      return
    end
    for i = 1, most do
      if q.sizes[i] <= left then
        for _, lengths in ipairs(all) do
          local own_s, own_longest_s = slices.of(q, q.sizes[i], lengths)
          fill(left - q.sizes[i], i, sum_s + own_s, math.max(longest_s, own_longest_s))
        end
      end
    end
  end
  fill(q.batch, #q.sizes, 0, 0)
  return best
end

local function random_cases(t)
  local equal, cases = 0, 200
  for _ = 1, cases do
    local seconds = {}
    for i = 1, 200 do
      seconds[i] = hv.random(30)
    end
    local q = { units = hv.random(4), batch = hv.random(3), sizes = { 1, 2 },
      stages = hv.random(6), epsilon = 0, seconds = function(size, first, last)
        return seconds[size * 40 + first * 6 + last] * (last - first + 1)
      end }
    local best = slices.best(q)
    local sum_s, longest_s, n = 0, 0, 0
    for _, part in ipairs(best.parts) do
      local own_s, own_longest_s = slices.of(q, part.size, part.lengths)
      sum_s, longest_s, n = sum_s + own_s, math.max(longest_s, own_longest_s), n + part.size
    end
    local value = sum_s + (q.stages - 1) * longest_s
    if n == q.batch and value == best.value and value == exhaustive(q) then
      equal = equal + 1
    end
  end
  t.equal("200 random cases: as the best of all", equal, cases, "exhaustive enumeration")
end

--- Makespan over the whole time of a stage, by the judge: K stages of one layer of a wide model on
-- plain rates, one sequence in equal slices.
local function judged(t, K, n_slices)
  local h, s = 4096, 512
  local inputs = { cluster = plain.cluster { nodes = 1, devices = K, memory_GBps = 1e6 },
    job = { format = "hetviz.job/1", global_batch = 1, sequence = s, precision = "bf16",
      optimizer = "none" },
    model = { format = "hetviz.model/1", name = "m", kind = "transformer", layers = K, hidden = h,
      heads = h // 128, kv_heads = h // 128, head_dim = 128, ffn = 4 * h, ffn_kind = "gelu",
      vocab = 128, causal = true } }
  return t.with(inputs, function(ctx)
    local stages = {}
    for i = 1, K do
      stages[i] = { devices = ctx.cluster:address { i }, layers = { i - 1, i } }
    end
    local function ms(schedule)
      return plain.ms { micro_batch = 1, schedule = schedule,
        replicas = { { micro_batches = 1, stages = stages } } }
    end
    return ms { name = "terapipe", slices = n_slices } / ms { name = "gpipe" }
  end)
end

return function(t)
  local floor = tokens(8, 4, function(l, c)
    return math.max(2, l) + 0.1 * l * (c + (l + 1) / 2)
  end)
  local best = slices.best(floor)
  t.near("objective with a floor of two tokens", best.value, 22.1, 1e-9, FROM)
  t.equal("its slices", table.concat(best.parts[1].lengths, ","), "2,2,2,2", FROM)
  t.near("its longest slice", best.longest_s, 3.5, 1e-9, FROM)
  local sum_s, longest_s = slices.of(floor, 1, { 8 })
  t.near("one slice", sum_s + 3 * longest_s, 46.4, 1e-9, FROM)
  t.near("the program of the core", hv.opt.partition { n = 8, parts = "any", sum = 1, max = 3,
    load = function(first, last) return floor.seconds(1, first, last) end }.value, 22.1, 1e-9, FROM)
  best = slices.best(tokens(8, 4, function(l, c)
    return 1 + 0.5 * l + 0.1 * l * (c + (l + 1) / 2)
  end))
  t.near("objective without a floor", best.value, 21.5, 1e-9, FROM)
  -- n equal slices of T / n in K stages take (n + K - 1) T / n each way; whole, K T
  t.near("makespan of its slices by the judge", judged(t, 4, 4), (4 + 3) / 4 / 4, 0.005, FROM)
  random_cases(t)
  rows.search(t, plain.pipelined())
end
