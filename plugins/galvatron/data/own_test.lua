-- The profile of Galvatron's own test of its search (PKU-DAIR/Hetu-Galvatron cea12ff,
-- tests/search_engine, test_parallelsim_optimization.py, and tests/utils/search_configs.py): 28
-- layers, 8,192 tokens, 64 sequences on 8 GPUs of which 36 GB less a fifth may be used.
-- Milliseconds and MB; times per sequence are its values at 8,192 tokens of least-squares fits.
-- `chunks` micro-batches. The profile was measured at a width of 3,584 (what a recomputed layer
-- keeps), the test's model is 4,096 wide (what is sent): its messages are powers of two, and so
-- take the measured times themselves, not those of the fitted line. The equations give the values
-- of both tests.
return function(chunks)
  local q = { layers = 28, batch = 64, chunks = chunks, world = 8, room = 36864 - 7372, grain = 1,
    fixed = 1024,
    overlap = 1.1534195950157762, gradients = 973.771484375 / 2 }
  -- MB of one sequence
  local layer, ends, hidden = 26.015209808803785, 59.73722329820906, 8192 * 4096 * 2 / 2 ^ 20
  local rings = { [2] = { 155.647, 153.933 }, [4] = { 164.272, 165.493 },
    [8] = { 160.445, 160.445 } }
  -- ms for 64, 128, … 1,024 MB: an all-gather is half of the all-reduce that was measured
  local all_reduce = { [2] = { 0.3924, 0.7417, 1.3887, 2.6886, 5.1594 },
    [4] = { 0.5848, 1.0725, 2.0709, 3.7352, 7.1874 },
    [8] = { 0.6519, 1.2826, 2.3584, 4.6768, 8.1409 } }
  local all_to_all = { [2] = { 0.2928, 0.4756, 0.8806, 1.7752, 3.4954 },
    [4] = { 0.3654, 0.6439, 1.1567, 2.1003, 4.0389 },
    [8] = { 0.3997, 0.7135, 1.2981, 2.4822, 4.8151 } }
  local saved = { 2088.28955078125, [2] = 1044.144775390625, [4] = 522.0723876953125,
    [8] = 261.03619384765625 }
  local hops = { [2] = 147.32, [4] = 133.469, [8] = 108.616 }
  -- of embedding and head: all, first stage, last stage
  local held = { { 16768.54296875, 5487.8828125 }, { 8351.5009765625, 787.1483154296875 },
    { 8351.5556640625, 5073.4478759765625 } }

  local function exchange(s, x)
    local at = math.log(x * hidden / 64, 2) // 1 + 1
    return s.tp > 1 and all_reduce[s.tp][at] / 2 or s.sp > 1 and all_to_all[s.sp][at] or 0
  end
  function q.work(s, x)
    local forward = layer * x / (s.tp * s.sp)
    return forward, (s.full and 3 or 2) * forward,
      (s.full and 1.5 or 1) * (s.tp > 1 and 6 or 4) * exchange(s, x)
  end
  function q.bus(n, s)
    return n > 1 and 1 / rings[n][s.tp > 1 and 2 or 1] or 0
  end
  function q.states(s)
    return 4 * 973.771484375 / s.tp * require("layer_dp").share(s.zero, s.dp * s.sp, chunks)
  end
  function q.saved(s, x)
    return x * (s.full and 56 / (s.tp * s.sp) or saved[s.tp * s.sp])
  end
  function q.hop(pp, x)
    return pp * 2 * x * hidden / hops[pp]
  end
  function q.switch(a, b)
    local n = math.max(a.tp * a.sp, b.tp * b.sp)
    if a.tp * a.sp == b.tp * b.sp then
      return 0
    end
    -- bytes times the inverse of GB/s times 1e-7, as its code has it, in seconds
    return 1e3 * (n - 1) / n * (64 / chunks * n / 8) * hidden * 2 ^ 20 / rings[n][1] * 1e-7
  end
  function q.ends_work(s, x, _, pp)
    return ends * x / (s.tp * s.sp) / (pp > 1 and 2 or 1), s.tp > 1
      and exchange(s, x) * (pp > 1 and 1 or 2) or 0
  end
  local function row(stage, pp)
    return held[pp == 1 and 1 or stage == 1 and 2 or 3]
  end
  function q.ends_bytes(s, x, stage, pp)
    local own = row(stage, pp)
    return own[1] / s.tp * require("layer_dp").share(s.zero, s.dp * s.sp, chunks),
      x * own[2] / (s.tp * s.sp)
  end
  function q.ends_gradients(s, stage, pp)
    return row(stage, pp)[1] / s.tp / 8
  end
  --- Gathered activations where tensor degrees up to q.most occur.
  function q.buffer()
    return math.floor(64 / chunks * q.most / 8 * hidden)
  end
  return q
end
