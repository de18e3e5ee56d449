-- Time of an iteration by Galvatron's equations (Miao et al., VLDB 2023, section 4; factors of its
-- code at cea12ff).
--
-- An instance holds the figures of a stage's devices. Its unit of time and its unit of memory are
-- the caller's. Strategies are those of strategies.lua, pp is the number of stages, `sequences` are
-- those that a data rank processes at once.
--   layers, batch, chunks
--     layers of the model, sequences and micro-batches of an iteration
--   room, fixed, grain
--     memory of a device, what it needs besides layers, and the grain in which memory is counted
--   overlap
--     factor by which compute and communication slow each other
--   gradients
--     size of the gradients of a layer
--   work(strategy, sequences)
--     time of a layer forward, backward, and of its exchanges
--   bus(ranks, strategy)
--     time per size of an all-reduce over the ranks of a layer
--   states(strategy)
--     size of a layer's weights, gradients and optimizer states
--   saved(strategy, sequences)
--     size of the activations that a layer keeps
--   hop(pp, sequences)
--     time of the transfers between stages
--   switch(strategy, next)
--     time between layers of two strategies
--   groups(strategy)
--     size of the communicators of a strategy's ranks, where a stage has several
--   buffer()
--     size of the gathered activations
--   ends_work(strategy, sequences, stage, pp)
--     time of embedding and head forward, and of their exchanges
--   ends_bytes(strategy, sequences, stage, pp)
--     size of their states and of the activations that they keep
--   ends_gradients(strategy, stage, pp)
--     size of their gradients
--   at(stage)
--     where stages differ: the instance of one of them
local iteration_time = {}

--- Sequences of a micro-batch on a data rank.
local function rank_sequences(q, strategy)
  return q.batch // q.chunks // strategy.dp
end

--- Time of compute beside the exchange of `bytes`, where each slows the other.
local function overlapped(q, bytes, bus, compute)
  local exchange, slowed = bytes * bus * q.overlap, compute * q.overlap
  if exchange > slowed then
    return slowed + (bytes - slowed / (bus * q.overlap)) * bus
  end
  return exchange + compute - exchange / q.overlap
end

--- Time of a layer for one micro-batch with the exchange of its gradients, which the last
-- micro-batch has, and without.
function iteration_time.layer(q, strategy, pp)
  local sequences, ranks = rank_sequences(q, strategy), strategy.sp * strategy.dp
  local forward, backward, exchange = q.work(strategy, sequences)
  local gradient_bytes = 2 * (ranks - 1) / ranks * q.gradients / strategy.tp
  local bus = q.bus(ranks, strategy)
  local function total(sent_bytes)
    local backward_part = backward
    if strategy.dp > 1 then
      backward_part = overlapped(q, sent_bytes, bus, backward)
    end
    return forward + exchange + backward_part
  end
  local gather, hop = 0, 0
  if strategy.zero == 3 then
    gather = gradient_bytes / 2 * bus
  end
  if pp > 1 then
    hop = q.hop(pp, sequences) / q.layers
  end
  local besides = gather + hop
  return total(gradient_bytes) + besides, total(0) + besides
end

--- The same of the embedding and head of a stage; 0 where it has neither.
function iteration_time.ends(q, strategy, stage, pp)
  if stage > 1 and stage < pp then
    return 0, 0
  end
  local sequences, ranks = rank_sequences(q, strategy), strategy.sp * strategy.dp
  local forward, exchange = q.ends_work(strategy, sequences, stage, pp)
  local sync = q.ends_gradients(strategy, stage, pp) * q.bus(ranks, strategy) * (ranks - 1) / ranks
  local function beside(communication, compute)
    return communication + math.max(0, compute - communication / q.overlap)
  end
  local function total(forward_sync, backward_sync)
    return beside(forward_sync, forward) + beside(backward_sync, 2 * forward) + exchange
  end
  local gather = 0
  if strategy.zero == 3 then
    gather = 0.5 * sync
  end
  return total(gather, gather + 0.5 * sync), total(gather, gather)
end

--- Time of a pipeline of `chunks` micro-batches from its stages' times without and with the
-- exchange of gradients. The authors' code takes the first or the last stage as the slowest; where
-- another one is, the paper's equation applies: sum of the stages and M - 1 times the slowest one.
function iteration_time.pipeline(stages_without, stages_with, chunks)
  local pp = #stages_without
  local sum = 0
  local late = 0
  local longest = 0
  for s, time in ipairs(stages_without) do
    sum = sum + time
    longest = math.max(longest, time)
    late = math.max(late, stages_with[s] - sum)
  end
  local first, last = stages_without[1], stages_without[pp]
  local rest = sum - first
  local warm_up = math.min(pp - 1, chunks - 1) * first
  -- forward is a third of a stage's time, backward two thirds
  local filled = math.max(warm_up / 3, rest / 3) + math.max(2 * warm_up / 3, 2 * rest / 3)
  local steady = last
  if longest > first then
    steady = longest
  end
  return math.max(sum + steady * (chunks - 1), filled + first * math.max(0, chunks + 1 - pp)) + late
end

--- Time of embedding and head of a stage. `row.head`: the head's strategy where it has one of its
-- own, `row.ends` is then that of the embedding.
local function ends_of(q, row, stage, pp)
  local _, both = iteration_time.ends(q, row.ends, stage, pp)
  if not row.head then
    return both
  end
  local time = 0
  if stage == 1 then
    local _, first = iteration_time.ends(q, row.ends, 1, 2)
    time = first
  end
  if stage == pp then
    local _, last = iteration_time.ends(q, row.head, 2, 2)
    time = time + last
  end
  return time
end

--- Time of an iteration of these stages, a list of { choice = strategy of each layer, ends =
-- strategy of embedding and head, head = that of the head where it differs }.
function iteration_time.of(q, stages)
  local without = {}
  local with = {}
  local pp = #stages
  for s, stage in ipairs(stages) do
    local own = q.at and q.at(s) or q
    without[s] = ends_of(own, stage, s, pp)
    with[s] = 0
    for l, strategy in ipairs(stage.choice) do
      local layer_with, layer_without = iteration_time.layer(own, strategy, pp)
      local switch = l > 1 and own.switch(stage.choice[l - 1], strategy) or 0
      without[s] = without[s] + layer_without + switch
      with[s] = with[s] + layer_with + switch
    end
  end
  return iteration_time.pipeline(without, with, q.chunks)
end

return iteration_time
