-- A pipeline stage on a group of neighbouring devices of an order (Metis, USENIX ATC 2024, sections
-- 4 and 5): data-parallel replicas of one tensor degree, the shares of a micro-batch they get where
-- device types mix, their times by layer and their memory. `problem` is that of
-- stage_search.search.
local group_stage = {}

--- A number that identifies a group and one more number below 65536 within an order.
local function key_of(from, size, number)
  return (from * 65536 + size) * 65536 + number
end

--- The time of a sequence on every replica of a group, and whether all replicas are of one kind;
-- nil where a tensor-parallel group would leave a node.
local function replica_speeds(problem, order, from, tp, dp)
  local sequence_times = {}
  local same_kind = true
  for r = 1, dp do
    local first, last = order[from + (r - 1) * tp + 1], order[from + r * tp]
    if first.node ~= last.node or first.kind ~= last.kind then
      return nil
    end
    sequence_times[r] = problem.sequence_time(first.kind, tp)
    same_kind = same_kind and first.kind == order[from + 1].kind
  end
  return sequence_times, same_kind
end

--- Adds every distinct (kind, share) of the replicas to stage.kinds and takes the times of the
-- slowest. False where the problem has no times for a share.
local function set_times(problem, stage)
  local seen = {}
  for r, share in ipairs(stage.shares) do
    local kind = stage.order[stage.from + (r - 1) * stage.tp + 1].kind
    if share > 0 and not seen[kind .. share] then
      local times = problem.layer_times(kind, stage.tp, share)
      if not times then
        return false
      end
      seen[kind .. share] = true
      stage.kinds[#stage.kinds + 1] = { kind = kind, share = share }
      local total = 0
      for _, time in ipairs(times) do
        total = total + time
      end
      if total > stage.total then
        stage.times = times
        stage.total = total
      end
    end
  end
  return true
end

--- The stage on devices from+1 … from+size; nil where it cannot run.
local function new_stage(problem, order, from, size, tp, sequences)
  local dp = size // tp
  if dp > sequences or tp > problem.max_tp then
    return nil
  end
  local sequence_times, same_kind = replica_speeds(problem, order, from, tp, dp)
  if not sequence_times then
    return nil
  end
  local stage = {
    order = order, from = from, size = size, tp = tp, dp = dp, kinds = {}, total = 0,
    shares = problem.shares(sequences, sequence_times, same_kind),
  }
  if not set_times(problem, stage) or not stage.times then
    return nil
  end
  stage.least_time = math.min(table.unpack(stage.times))
  return stage
end

--- The stage on devices from+1 … from+size of an order with tensor degree `tp`, for micro-batches
-- of so many sequences: {order, from, size, tp, dp, kinds = rows {kind, share}, shares, times of
-- its slowest replica by layer, total, least_time = of a layer}. False where tensor-parallel groups
-- leave a node, a replica gets no sequence, or the problem has no times for its share. Remembered
-- in order.stages.
function group_stage.at(problem, order, from, size, tp, sequences)
  local known = order.stages[sequences] or {}
  order.stages[sequences] = known
  local key = key_of(from, size, tp)
  if known[key] == nil then
    known[key] = new_stage(problem, order, from, size, tp, sequences) or false
  end
  return known[key]
end

--- Memory of a stage that keeps `in_flight` micro-batches, of the kind whose memory is filled most:
-- {held = bytes by layer, room = bytes, model_frac = share of all layers that fit, most_layers = of
-- the smallest ones that fit}. Remembered in the stage.
function group_stage.memory(problem, stage, in_flight)
  stage.memory = stage.memory or {}
  if stage.memory[in_flight] then
    return stage.memory[in_flight]
  end
  local tightest = { model_frac = math.huge }
  for _, row in ipairs(stage.kinds) do
    local held, room = problem.memory(row.kind, stage.tp, row.share, in_flight, stage.dp)
    local sum, smallest = 0, math.huge
    for _, bytes in ipairs(held) do
      sum = sum + bytes
      smallest = math.min(smallest, bytes)
    end
    local model_frac = room > 0 and room / math.max(sum, 1e-9) or 0
    if model_frac < tightest.model_frac or not tightest.held then
      tightest = { held = held, room = room, model_frac = model_frac,
        most_layers = math.min(#held, room // math.max(smallest, 1e-9)) }
    end
  end
  stage.memory[in_flight] = tightest
  return tightest
end

--- The highest rate (1 / time of all layers), the least time of a layer, the largest share of all
-- layers and the most layers that fit, each over all tensor degrees of a group: {rate, layer_time,
-- model_frac, most_layers}. Remembered in order.best.
function group_stage.best(problem, order, from, size, sequences, in_flight)
  local known = order.best[sequences] or {}
  order.best[sequences] = known
  local key = key_of(from, size, in_flight)
  if known[key] then
    return known[key]
  end
  local best = { rate = 0, layer_time = math.huge, model_frac = 0, most_layers = 0 }
  local tp = 1
  while tp <= math.min(size, problem.max_tp) do
    local stage = group_stage.at(problem, order, from, size, tp, sequences)
    if stage then
      local memory = group_stage.memory(problem, stage, in_flight)
      best.rate = math.max(best.rate, 1 / stage.total)
      best.layer_time = math.min(best.layer_time, stage.least_time)
      best.model_frac = math.max(best.model_frac, memory.model_frac)
      best.most_layers = math.max(best.most_layers, memory.most_layers)
    end
    tp = 2 * tp
  end
  known[key] = best
  return best
end

return group_stage
