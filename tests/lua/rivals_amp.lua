--- AMP's homogeneous case (72eeea4: GPT-2 of 24 layers on 4 x 4 T4, batch 32): the value of *its*
-- equation that our search finds, beside the 53 values it published. `hetviz selftest
-- tests/lua/rivals_amp.lua`.
local H, VOCABULARY, LAYERS = 1024, 52256, 30
-- Links of 50 Gbit/s inside nodes and between them, in elements of 32 bits per second, as its code
-- counts.
local RATE = 50e9 / 32

-- Milliseconds of the 30 pieces of the model and a sequence, forward and backward, by tensor
-- degree. Its profiles are arrays of NumPy that were not at hand: these are what its published
-- values say, which hang on the sum of all pieces and on the slowest stage of every cut it
-- published (two pieces in front of the 24 blocks, four behind).
local pieces = {
  { 0.0166921, 0.0166921, 15.0676, 15.0676, 15.0676, 14.7907, 15.1017, 15.1017, 15.1017, 16.5477,
    16.5477, 16.5477,
    16.5477, 16.5477, 16.5477, 17.4281, 17.4281, 17.4281, 17.4281, 17.4281, 17.4281, 17.4281,
    17.4281, 17.2067, 17.2067,
    19.7047, 2.66971, 2.66971, 2.66971, 2.66971 },
  { 0.150435, 0.150435, 18.2919, 18.2919, 18.2919, 18.2919, 18.2919, 18.2919, 18.2919, 18.2919,
    18.2919, 18.2919,
    18.2919, 18.2919, 17.9244, 17.9244, 17.9244, 17.9244, 17.9244, 17.9244, 17.8136, 17.8136,
    17.8136, 19.0032, 19.0032,
    19.0032, 0.652677, 0.652677, 0.652677, 0.652677 }, nil,
  { 0.0675793, 0.0675793, 16.9921, 16.9921, 16.9921, 16.9921, 16.9921, 16.9921, 16.9921, 16.9921,
    16.9921, 16.9921,
    16.9921, 16.9921, 16.7356, 16.7356, 16.7356, 16.7356, 16.7356, 16.7356, 17.456, 17.456, 17.456,
    17.456, 17.456,
    17.456, 0.348358, 0.348358, 0.348358, 0.348358 },
}
-- What it published: tensor degree, replicas, first piece of every stage but the first,
-- {micro-batch, seconds}.
local published = {
  { 1, 16, {}, { { 1, 1.2443 }, { 2, 1.2443 } } },
  { 1, 8, { 15 }, { { 1, 1.2665 }, { 2, 1.4714 } } },
  { 1, 8, { 14 }, { { 4, 1.8671 } } },
  { 1, 4, { 9, 15, 21 }, { { 1, 1.2841 }, { 2, 1.5896 }, { 4, 2.2007 } } },
  { 1, 4, { 8, 14, 20 }, { { 8, 3.4107 } } },
  { 1, 2, { 6, 9, 12, 15, 18, 21, 24 }, { { 1, 1.3804 } } },
  { 1, 2, { 5, 9, 12, 15, 18, 21, 24 }, { { 2, 1.7268 }, { 4, 2.4337 }, { 8, 3.8475 } } },
  { 1, 2, { 5, 8, 11, 14, 17, 20, 23 }, { { 16, 6.675 } } },
  { 1, 1, { 4, 6, 8, 10, 12, 14, 16, 17, 18, 19, 20, 21, 22, 23, 25 },
    { { 1, 1.4857 }, { 2, 1.8702 }, { 4, 2.6392 }, { 8, 4.1772 } } },
  { 1, 1, { 1, 2, 3, 4, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25 }, { { 16, 7.2602 } } },
  { 1, 1, { 4, 6, 8, 10, 12, 14, 16, 18, 19, 20, 21, 22, 23, 24, 25 }, { { 32, 13.405 } } },
  { 2, 8, {}, { { 1, 1.9607 }, { 2, 1.9607 }, { 4, 1.9607 } } },
  { 2, 4, { 14 }, { { 1, 2.0835 }, { 2, 2.304 }, { 4, 2.7449 }, { 8, 3.6268 } } },
  { 2, 2, { 8, 14, 20 }, { { 1, 2.1796 }, { 2, 2.509 }, { 4, 3.1677 }, { 8, 4.4852 },
    { 16, 7.1201 } } },
  { 2, 1, { 5, 8, 11, 14, 17, 20, 23 },
    { { 1, 2.2933 }, { 2, 2.6788 }, { 4, 3.4498 }, { 8, 4.9918 }, { 16, 8.0757 },
      { 32, 14.2435 } } },
  { 4, 4, {}, { { 1, 3.37 }, { 2, 3.37 }, { 4, 3.37 }, { 8, 3.37 } } },
  { 4, 2, { 14 }, { { 1, 3.5421 }, { 2, 3.7468 }, { 4, 4.1563 }, { 8, 4.9751 }, { 16, 6.6128 } } },
  { 4, 1, { 8, 14, 20 },
    { { 1, 3.7026 }, { 2, 4.0091 }, { 4, 4.622 }, { 8, 5.8479 }, { 16, 8.2996 },
      { 32, 13.2031 } } },
}

--- The largest all-reduce of a stage: 12 h² of a block and the vocabulary's matrix with the first
-- and the last piece (once, where one stage holds both), over the tensor ranks.
local function reduce_s(tp, dp, cuts)
  local most, from = 0, 1
  for s = 1, #cuts + 1 do
    local to = cuts[s] or LAYERS
    local blocks = math.min(to, 26) - math.max(from, 3) + 1
    local ends = (from == 1 or to == LAYERS) and 1 or 0
    most, from = math.max(most, (12 * H * H * blocks + H * VOCABULARY * ends) / tp), to + 1
  end
  return 2 * (dp - 1) / (dp * RATE) * most
end

--- Its equation: passes, (micro-batches - 1) times the slowest stage, hops, the all-reduce.
-- Seconds.
local function value_s(tp, dp, cuts, size)
  local e, slowest, sum, from = pieces[tp], 0, 0, 1
  for s = 1, #cuts + 1 do
    local stage = 0
    for l = from, cuts[s] or LAYERS do
      stage = stage + e[l] * size / 1e3
    end
    slowest, sum, from = math.max(slowest, stage), sum + stage, (cuts[s] or LAYERS) + 1
  end
  return sum + (32 // (dp * size) - 1) * slowest + #cuts * H * H * size / RATE
    + reduce_s(tp, dp, cuts)
end

--- The least value of a cut into so many stages: the shortest pipeline for every size of the
-- all-reduce, by how many blocks a stage may hold beside an end of the model or without.
local function search(tp, dp, stages, size)
  if stages == 1 then
    return value_s(tp, dp, {}, size)
  end
  local block, vocabulary, best = 12 * H * H, H * VOCABULARY, math.huge
  local q = { n = LAYERS, parts = stages, load = {}, toll = {}, memory = {}, sum = 1,
    max = 32 // (dp * size) - 1 }
  for l, ms in ipairs(pieces[tp]) do
    q.load[l], q.toll[l] = ms * size / 1e3, H * H * size / RATE
    q.memory[l] = (l == 1 or l == LAYERS) and vocabulary or l > 2 and l <= 26 and block or 0
  end
  q.toll[LAYERS] = nil
  for most = 1, 24 do
    for _, room in ipairs { most * block, most * block + vocabulary } do
      local cuts = {}
      q.capacity = {}
      for s = 1, stages do
        q.capacity[s] = room
      end
      local found = hv.opt.partition(q)
      for s = 1, found and stages - 1 or 0 do
        cuts[s] = found.stages[s][2]
      end
      best = math.min(best, found and value_s(tp, dp, cuts, size) or best)
    end
  end
  return best
end

local function selftest(t)
  local src, off, above, below, best, first = "AMP 72eeea4, its homogeneous results", 0, 0, 0,
    math.huge, math.huge
  for _, row in ipairs(published) do
    local tp, dp, cuts = row[1], row[2], row[3]
    for _, pair in ipairs(row[4]) do
      local theirs = value_s(tp, dp, cuts, pair[1])
      local ours = search(tp, dp, #cuts + 1, pair[1])
      off, first = math.max(off, math.abs(theirs - pair[2])), math.min(first, pair[2])
      above, below = above + (ours > theirs + 1e-9 and 1 or 0), below
        + (ours < theirs - 1e-6 and 1 or 0)
      best = math.min(best, ours)
    end
  end
  local text = "AMP, GPT-2 on 16 T4: %.4f s, theirs %.4f s in 303.6 s of CPU (of its twin with "
    .. "V100); of 53 degrees and micro-batches %d better cut, %d worse"
  t.ok(text:format(best, first, below, above), best <= first + 5e-5 and above == 0, src)
  t.near("AMP, its equation on its 53 plans: largest difference from what it states, s", off, 0,
    5e-4, src)
end

return {
  api = 1, id = "rivals-amp-test", title = "AMP's own input", kind = "test",
  system = "none", reference = "none", summary =
    "Checks the search for cuts against what AMP found.",
  plan = function()
    return nil, "tests only"
  end,
  selftest = selftest,
}
