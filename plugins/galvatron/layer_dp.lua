-- Parallelism chosen layer by layer by dynamic programming over layers, memory and strategies
-- (Galvatron, Miao et al., VLDB 2023, sections 3 and 4; equations and factors of its code at
-- cea12ff). A strategy of a layer is { tp, sp (Ulysses), dp, zero = 0|2|3, full = recomputed }. An
-- instance: layers, batch, chunks = micro-batches, room = bytes of a device, fixed = bytes it needs
-- besides layers, grain = bytes in which memory is counted, overlap = how compute and communication
-- slow each other, gradients = bytes of a layer's, and of functions work(s, x): seconds of a layer
-- forward, backward, and of its exchanges, for x sequences on a data rank; bus(n, s): seconds per
-- byte of an all-reduce over the n ranks that share a strategy's layer; states(s), saved(s, x):
-- bytes of a layer, and of what it keeps of x sequences; hop(pp, x): seconds between stages;
-- switch(a, b): seconds from one strategy to the next layer's; buffer(): bytes for gathered
-- activations; for embedding and head on a stage: ends_work(s, x, stage, pp): seconds forward, and
-- of exchanges, ends_bytes(s, x, stage, pp): states and what is kept of x sequences,
-- ends_gradients(s, stage, pp); and, where stages differ, at(stage): the instance of one of them.
local layer_dp = {}

--- All strategies of one stage: degrees of two's powers, what is sharded over ranks, recomputed or
-- not (the two follow each other).
-- @function layer_dp.strategies
-- @tparam integer devices of the stage
-- @tparam integer micro_batch sequences that enter the stage at once
-- @tparam table o {tp = largest tensor degree, sp = largest Ulysses degree}
-- @treturn table list of {tp, sp, dp, zero, full}
-- @units none
-- @raise none
-- @usage assert(#require("layer_dp").strategies(2, 2, { tp = 2, sp = 1 }) == 6)
function layer_dp.strategies(devices, micro_batch, o)
  local list = {}
  local function add(tp, sp)
    local dp = devices // (tp * sp)
    if tp * sp * dp ~= devices or micro_batch % dp ~= 0 then
      return
    end
    for _, zero in ipairs(dp * sp > 1 and { 2, 3 } or { 0 }) do
      for _, full in ipairs { false, true } do
        list[#list + 1] = { tp = tp, sp = sp, dp = dp, zero = zero, full = full }
      end
    end
  end
  local degree = 1
  while degree <= devices do
    if degree <= o.tp then
      add(degree, 1)
    end
    if degree > 1 and degree <= o.sp then
      add(1, degree)
    end
    degree = 2 * degree
  end
  return list
end

--- Share of the states that stays on a rank: sharded by level, with a 16-bit copy and gradients in
-- 32 bits when micro-batches are accumulated.
-- @function layer_dp.share
-- @tparam integer zero 0, 2 or 3
-- @tparam integer ranks over which states are sharded
-- @tparam integer chunks micro-batches
-- @treturn number share
-- @units none
-- @raise none
-- @usage assert(require("layer_dp").share(0, 8, 1) == 1)
function layer_dp.share(zero, ranks, chunks)
  local part, more = 1 / ranks + 0.003, chunks > 1 and 5 / 4 or 1
  if zero == 3 then
    return part * more
  end
  return zero == 2 and (7 / 8 * part + 1 / 8) * more or 1
end

--- Compute for so many seconds beside the exchange of so many bytes: each slows the other down.
local function beside(q, bytes, bus, compute)
  local sync, slowed = bytes * bus * q.overlap, compute * q.overlap
  if sync > slowed then
    return slowed + (bytes - slowed / (bus * q.overlap)) * bus
  end
  return sync + compute - sync / q.overlap
end

--- Seconds of a layer for one micro-batch: of the last one, which exchanges gradients, and of any
-- other.
-- @function layer_dp.seconds
-- @tparam table q instance, with the keys named at the top
-- @tparam table s strategy, with the keys named at the top
-- @tparam integer pp stages
-- @treturn number with the exchange, and without
-- @units seconds
-- @raise none
-- @usage local q = { batch = 2, chunks = 1, overlap = 1, gradients = 0, bus = function() return 0 end,
--   work = function() return 1, 2, 0 end }
-- assert(require("layer_dp").seconds(q, { tp = 1, sp = 1, dp = 2, zero = 2 }, 1) == 3)
function layer_dp.seconds(q, s, pp)
  local x, ranks = q.batch // q.chunks // s.dp, s.sp * s.dp
  local forward, backward, exchange = q.work(s, x)
  local bytes, bus = 2 * (ranks - 1) / ranks * q.gradients / s.tp, q.bus(ranks, s)
  local function total(sent)
    return forward + exchange + (s.dp > 1 and beside(q, sent, bus, backward) or backward)
  end
  local more = (s.zero == 3 and bytes / 2 * bus or 0) + (pp > 1 and q.hop(pp, x) / q.layers or 0)
  return total(bytes) + more, total(0) + more
end

--- The same for embedding and head on stage `stage`.
local function ends_s(q, s, stage, pp)
  if stage > 1 and stage < pp then
    return 0, 0
  end
  local x, ranks = q.batch // q.chunks // s.dp, s.sp * s.dp
  local forward, exchange = q.ends_work(s, x, stage, pp)
  local sync = q.ends_gradients(s, stage, pp) * q.bus(ranks, s) * (ranks - 1) / ranks
  local function one(comm, compute)
    return comm + math.max(0, compute - comm / q.overlap)
  end
  local function total(before, after)
    return one(before, forward) + one(after, 2 * forward) + exchange
  end
  local gathers = s.zero == 3 and 0.5 * sync or 0
  return total(gathers, gathers + 0.5 * sync), total(gathers, gathers)
end

--- Grains that are left for the layers of a stage, beside embedding, head and buffers.
local function room_of(q, s, stage, pp)
  local states, saved = 0, 0
  if stage == 1 or stage == pp then
    states, saved = q.ends_bytes(s, q.batch // q.chunks // s.dp, stage, pp)
  end
  local ends = states + saved * (stage == 1 and math.min(pp, q.chunks) or 1) + q.fixed
  return q.room // q.grain - math.ceil(ends / q.grain) - q.buffer() // q.grain
end

--- Seconds of an iteration: stages' times of a micro-batch without and with the exchange of
-- gradients. Its code takes the first stage, or the last, to be the slowest; where another one is,
-- the paper's own Σ + (M − 1) · longest holds.
-- @function layer_dp.pipeline
-- @tparam table free list of the stages' times without the exchange
-- @tparam table sync list of the stages' times with it
-- @tparam integer chunks micro-batches
-- @treturn number seconds
-- @units any, the same in and out
-- @raise none
-- @usage assert(require("layer_dp").pipeline({ 2 }, { 3 }, 4) == 9)
function layer_dp.pipeline(free, sync, chunks)
  local pp, sum, late, longest = #free, 0, 0, 0
  for s, t in ipairs(free) do
    sum, longest = sum + t, math.max(longest, t)
    late = math.max(late, sync[s] - sum)
  end
  local left, warm = sum - free[1], math.min(pp - 1, chunks - 1) * free[1]
  local filled = math.max(warm / 3, left / 3) + math.max(2 * warm / 3, 2 * left / 3)
  local steady = longest > free[1] and longest or free[pp]
  return math.max(sum + steady * (chunks - 1), filled + free[1] * math.max(0, chunks + 1 - pp))
    + late
end

--- The front of time against memory for n layers of one stage under these strategies.
local function front_of(q, list, n, stage, pp, weight)
  local rows, switch, nodes, edges = {}, {}, {}, {}
  for i, s in ipairs(list) do
    local sync, free = layer_dp.seconds(q, s, pp)
    local kept = q.saved(s, q.batch // q.chunks // s.dp) * math.min(pp - stage + 1, q.chunks)
    rows[i] = { weight * sync + (1 - weight) * free, math.ceil((q.states(s) + kept) / q.grain) }
    switch[i] = {}
    for j, other in ipairs(list) do
      switch[i][j] = { i == j and 0 or q.switch(s, other), 0 }
    end
  end
  for l = 1, n do
    nodes[l] = rows
    if l > 1 then
      edges[l - 1] = { l - 1, l, switch }
    end
  end
  local r = hv.opt.graph_dp { nodes = nodes, edges = edges, semiring = "pareto", method = "chain" }
  return r and r.front or {}
end

--- Seconds of an iteration of stages { choice = strategy of each layer, ends = strategy of
-- embedding and head }.
-- @function layer_dp.value
-- @tparam table q instance, with the keys named at the top
-- @tparam table stages list of them
-- @treturn number seconds
-- @units seconds
-- @raise errors of the instance
-- @usage local function none() return 0, 0 end
-- local q = { batch = 1, chunks = 2, overlap = 1, gradients = 0, bus = none, ends_work = none, ends_gradients = none,
--   work = function() return 1, 2, 0 end }
-- local s = { tp = 1, sp = 1, dp = 1, zero = 0 }
-- assert(require("layer_dp").value(q, { { choice = { s }, ends = s } }) == 6)
function layer_dp.value(q, stages)
  local free, sync, pp = {}, {}, #stages
  for stage, row in ipairs(stages) do
    local own = q.at and q.at(stage) or q
    free[stage], sync[stage] = select(2, ends_s(own, row.ends, stage, pp)), 0
    for _, s in ipairs(row.choice) do
      local with, without = layer_dp.seconds(own, s, pp)
      free[stage], sync[stage] = free[stage] + without, sync[stage] + with
    end
  end
  return layer_dp.pipeline(free, sync, q.chunks)
end

--- The best choice for a number of stages: for each stage the layers' strategies by dynamic
-- programming.
-- @function layer_dp.stages
-- @tparam table q instance, with the keys named at the top
-- @tparam table counts list of the layers of each stage
-- @tparam function strategies function(stage) giving the list of strategies for the devices of a
-- stage
-- @tparam table o {group = how many strategies in a row may be mixed in a stage, whose first is
-- then that of embedding and head too; none: all, for every strategy of embedding and head, the
-- same in all stages}
-- @treturn table {time_s, stages = list of {choice = strategy of each layer, ends = strategy}}; nil
-- when none fits
-- @units seconds, bytes
-- @raise errors of the instance
-- @usage assert(require("layer_dp").stages({ chunks = 1 }, {}, nil, {}) == nil)
function layer_dp.stages(q, counts, strategies, o)
  local best, fronts, lists, pp = nil, {}, {}, #counts
  for stage in ipairs(counts) do
    lists[stage] = strategies(stage)
  end
  --- The fastest layers of a stage that leave room, with the strategies first..last, and their
  -- time.
  local function filled(stage, weight, first, last, ends)
    local own, key = q.at and q.at(stage) or q, ("%d %g %d %d"):format(stage, weight, first, last)
    local list = table.move(lists[stage], first, last, 1, {})
    fronts[key] = fronts[key] or front_of(own, list, counts[stage], stage, pp, weight)
    local room, found = room_of(own, ends, stage, pp), nil
    for _, point in ipairs(fronts[key]) do
      if point.memory <= room and (not found or point.value < found.value) then
        found = point
      end
    end
    if not found then
      return nil, math.huge
    end
    local row = { ends = ends, choice = {} }
    for l, k in ipairs(found.choices) do
      row.choice[l] = list[k]
    end
    return row, found.value + select(2, ends_s(own, ends, stage, pp))
  end
  local function try(weight, ends)
    local stages = {}
    for stage, list in ipairs(lists) do
      local least = math.huge
      for first = 1, #list, o.group or #list do
        local row, seconds = filled(stage, weight, first, first + (o.group or #list) - 1, ends
            or list[first])
        if row and seconds < least then
          stages[stage], least = row, seconds
        end
      end
      if not stages[stage] then
        return
      end
    end
    local time = layer_dp.value(q, stages)
    if not best or time < best.time_s then
      best = { time_s = time, stages = stages }
    end
  end
  -- as its code weighs gradients, and once per batch
  for _, weight in ipairs(pp > 0 and { 1, 1 / q.chunks } or {}) do
    for i = 1, o.group and 1 or #lists[1] do
      local ends = not o.group and lists[1][i] or nil
      if not (ends and ends.full) then
        try(weight, ends)
      end
    end
  end
  return best
end

return layer_dp
