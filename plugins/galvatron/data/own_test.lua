-- The profile of Galvatron's own test of its search (PKU-DAIR/Hetu-Galvatron cea12ff,
-- tests/search_engine, test_parallelsim_optimization.py, and tests/utils/search_configs.py): 28
-- layers, 8,192 tokens, 64 sequences on 8 GPUs, of whose memory 36 GB less a fifth may be used.
-- Times are in milliseconds, sizes in MB. Times per sequence are the values of its least-squares
-- fits at 8,192 tokens. The profile was measured at a width of 3,584 (which sets what a recomputed
-- layer keeps), the test's model is 4,096 wide (which sets what is sent). The sizes of its messages
-- are powers of two, so that the measured times are taken instead of the fitted line. With these
-- figures the equations give the values of both tests.
local strategies = require "strategies"

local LAYER_MS = 26.015209808803785 -- of one sequence, forward
local ENDS_MS = 59.73722329820906 -- of one sequence, embedding and head forward
local LAYER_MB = 973.771484375 -- parameters of a layer
local HIDDEN_MB = 8192 * 4096 * 2 / 2 ^ 20 -- activations between layers, of one sequence
local RECOMPUTED_MB = 56 -- what a recomputed layer keeps of one sequence

-- GB/s of an all-reduce by ranks: between ranks next to each other, and between ranks that are not
-- (the data ranks where there is a tensor degree)
local RING_GBPS = { [2] = { 155.647, 153.933 }, [4] = { 164.272, 165.493 },
  [8] = { 160.445, 160.445 } }
local HOP_GBPS = { [2] = 147.32, [4] = 133.469, [8] = 108.616 }

-- ms by ranks for 64, 128, … 1,024 MB; an all-gather is half of the all-reduce that was measured
local ALL_REDUCE_MS = { [2] = { 0.3924, 0.7417, 1.3887, 2.6886, 5.1594 },
  [4] = { 0.5848, 1.0725, 2.0709, 3.7352, 7.1874 },
  [8] = { 0.6519, 1.2826, 2.3584, 4.6768, 8.1409 } }
local ALL_TO_ALL_MS = { [2] = { 0.2928, 0.4756, 0.8806, 1.7752, 3.4954 },
  [4] = { 0.3654, 0.6439, 1.1567, 2.1003, 4.0389 },
  [8] = { 0.3997, 0.7135, 1.2981, 2.4822, 4.8151 } }

-- MB that a layer keeps of one sequence by tp x sp
local SAVED_MB = { 2088.28955078125, [2] = 1044.144775390625, [4] = 522.0723876953125,
  [8] = 261.03619384765625 }

-- MB of embedding and head, states and activations of one sequence: both on one stage, those on the
-- first stage, those on the last stage
local ENDS_MB = { { 16768.54296875, 5487.8828125 }, { 8351.5009765625, 787.1483154296875 },
  { 8351.5556640625, 5073.4478759765625 } }

local function ends_row(stage, pp)
  if pp == 1 then
    return ENDS_MB[1]
  end
  return ENDS_MB[stage == 1 and 2 or 3]
end

--- ms of one exchange of activations inside a layer.
local function exchange_ms(strategy, sequences)
  local place = math.log(sequences * HIDDEN_MB / 64, 2) // 1 + 1
  if strategy.tp > 1 then
    return ALL_REDUCE_MS[strategy.tp][place] / 2
  elseif strategy.sp > 1 then
    return ALL_TO_ALL_MS[strategy.sp][place]
  end
  return 0
end

local function add_layer(q)
  function q.work(strategy, sequences)
    local forward = LAYER_MS * sequences / (strategy.tp * strategy.sp)
    local exchanges = strategy.tp > 1 and 6 or 4
    if strategy.full then
      return forward, 3 * forward, 1.5 * exchanges * exchange_ms(strategy, sequences)
    end
    return forward, 2 * forward, exchanges * exchange_ms(strategy, sequences)
  end
  function q.bus(ranks, strategy)
    if ranks <= 1 then
      return 0
    end
    return 1 / RING_GBPS[ranks][strategy.tp > 1 and 2 or 1]
  end
  function q.states(strategy)
    return 4 * LAYER_MB / strategy.tp
      * strategies.state_share(strategy.zero, strategy.dp * strategy.sp, q.chunks)
  end
  function q.saved(strategy, sequences)
    local degree = strategy.tp * strategy.sp
    if strategy.full then
      return sequences * (RECOMPUTED_MB / degree)
    end
    return sequences * SAVED_MB[degree]
  end
  function q.hop(pp, sequences)
    return pp * 2 * sequences * HIDDEN_MB / HOP_GBPS[pp]
  end
  --- In ms: the authors' code multiplies bytes by the inverse of GB/s and by 1e-7 to get seconds.
  function q.switch(strategy, next)
    local degree, next_degree = strategy.tp * strategy.sp, next.tp * next.sp
    if degree == next_degree then
      return 0
    end
    local ranks = math.max(degree, next_degree)
    return 1e3 * (ranks - 1) / ranks * (64 / q.chunks * ranks / 8) * HIDDEN_MB * 2 ^ 20
      / RING_GBPS[ranks][1] * 1e-7
  end
  --- Gathered activations where tensor degrees up to q.most occur.
  function q.buffer()
    return math.floor(64 / q.chunks * q.most / 8 * HIDDEN_MB)
  end
end

local function add_ends(q)
  function q.ends_work(strategy, sequences, _, pp)
    local forward = ENDS_MS * sequences / (strategy.tp * strategy.sp) / (pp > 1 and 2 or 1)
    if strategy.tp == 1 then
      return forward, 0
    end
    return forward, exchange_ms(strategy, sequences) * (pp > 1 and 1 or 2)
  end
  function q.ends_bytes(strategy, sequences, stage, pp)
    local row = ends_row(stage, pp)
    local share = strategies.state_share(strategy.zero, strategy.dp * strategy.sp, q.chunks)
    return row[1] / strategy.tp * share, sequences * row[2] / (strategy.tp * strategy.sp)
  end
  function q.ends_gradients(strategy, stage, pp)
    return ends_row(stage, pp)[1] / strategy.tp / 8
  end
end

--- The instance of iteration_time.lua for so many micro-batches.
return function(chunks)
  local q = { layers = 28, batch = 64, chunks = chunks, room = 36864 - 7372, grain = 1,
    fixed = 1024, overlap = 1.1534195950157762, gradients = LAYER_MB / 2 }
  add_layer(q)
  add_ends(q)
  return q
end
