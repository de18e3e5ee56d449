-- Instances of iteration_time.lua from the run's cost model, in seconds and bytes. A layer's
-- exchanges are part of its time there, so they are 0 here, as are the gathered activations.
local links = require "links"
local pipeline = require "pipeline"
local prices = require "prices"

local instance = {}

local GRAIN_BYTES = 2 ^ 22 -- memory is counted in these

--- Cost tables of a stage's devices by strategy: functions states(strategy, layer), saved(strategy,
-- layer, sequences), time(strategy, layer, sequences) and room(). A stage of several kinds has the
-- times of the slowest and the room of the smallest.
local function tables_of(ctx, devices)
  local tables = {}
  local kinds
  local function table_of(strategy, sequences, in_flight)
    local row = {
      devices = devices, kinds = kinds, tp = strategy.tp, micro_batch = sequences,
      zero = strategy.zero, holders = strategy.dp, recompute = strategy.full and "full" or "none",
    }
    local found = pipeline.tables(ctx, row, in_flight)
    kinds = row.kinds
    return found
  end
  function tables.states(strategy, layer)
    return table_of(strategy, 1, 0).held[layer]
  end
  function tables.saved(strategy, layer, sequences)
    return table_of(strategy, sequences, 1).held[layer]
      - table_of(strategy, sequences, 0).held[layer]
  end
  function tables.time(strategy, layer, sequences)
    return table_of(strategy, sequences, 1).times[layer]
  end
  function tables.room()
    return table_of({ tp = 1, dp = 1, zero = 0, full = true }, 1, 1).room
  end
  return tables
end

--- Bytes of the gradients of a layer on a whole device.
local function gradient_bytes(ctx, kind, layer)
  return prices.gradient_bytes(ctx, prices.chain(ctx, kind, { tp = 1, micro_batch = 1 }), layer,
    layer)
end

--- The function for changes of strategy: every device gets its sequences and tokens under the other
-- degrees from those of the wider of the two tensor groups, and their gradients go back. With a
-- tensor degree the ranks hold parts of the tokens (sequence parallelism): nothing is held twice.
local function add_switch(ctx, own, devices)
  local known = {}
  function own.switch(strategy, other)
    local width = math.max(strategy.tp, other.tp)
    if strategy.tp == other.tp or width > #devices then
      return 0
    end
    if not known[width] then
      local ids = {}
      for i = 1, width do
        ids[i] = devices[i].id
      end
      local bytes = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = 1 }).output_bytes
        * own.batch / own.chunks / #devices
      local cost = hv.cost.collective { op = "all_to_all", devices = ids, bytes = bytes,
        together = #devices // width }
      known[width] = cost and 2 * cost.time_s or math.huge
    end
    return known[width]
  end
end

--- The functions for layers in general, which are those of the middle layer.
local function add_layers(ctx, own, devices, tables, middle)
  local rings = {}
  function own.work(strategy, sequences)
    local time = tables.time(strategy, middle, sequences)
    if strategy.full then
      return time / 4, time * (3 / 4), 0
    end
    return time / 3, time * (2 / 3), 0
  end
  function own.bus(ranks, strategy)
    if ranks <= 1 then
      return 0
    end
    if not rings[strategy.tp] then
      local heads = {}
      for i = 1, #devices, strategy.tp do
        heads[#heads + 1] = devices[i].id
      end
      rings[strategy.tp] = links.ring(ctx, heads, 1) * ranks / (2 * (ranks - 1))
    end
    return rings[strategy.tp]
  end
  function own.states(strategy)
    return tables.states(strategy, middle)
  end
  function own.saved(strategy, sequences)
    return tables.saved(strategy, middle, sequences)
  end
  add_switch(ctx, own, devices)
  function own.groups(strategy)
    local bytes = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = 1 }).reduced
    return bytes * ((strategy.tp > 1 and 1 or 0) + (strategy.dp > 1 and 1 or 0))
  end
  function own.buffer()
    return 0
  end
end

--- The functions for embedding and head: what the first and the last layer have more than the
-- middle one.
local function add_ends(ctx, own, devices, tables, middle)
  local function gradients(_, layer)
    return gradient_bytes(ctx, devices[1].kind, layer)
  end
  local function sum_of(figure, stage, pp, strategy, sequences)
    local function more(layer)
      return math.max(0, figure(strategy, layer, sequences)
        - figure(strategy, middle, sequences))
    end
    local first, last = 0, 0
    if stage == 1 then
      first = more(1)
    end
    if stage == pp then
      last = more(own.layers)
    end
    return first + last
  end
  function own.ends_work(strategy, sequences, stage, pp)
    return sum_of(tables.time, stage, pp, strategy, sequences) / 3, 0
  end
  function own.ends_bytes(strategy, sequences, stage, pp)
    return sum_of(tables.states, stage, pp, strategy),
      sum_of(tables.saved, stage, pp, strategy, sequences)
  end
  function own.ends_gradients(_, stage, pp)
    return sum_of(gradients, stage, pp)
  end
end

--- The instance of the stage on these devices; `before` is the last device of the stage before it,
-- nil for the first stage.
local function stage_instance(ctx, q, devices, before)
  local own = setmetatable({}, { __index = q })
  local tables = tables_of(ctx, devices)
  local middle = (q.layers + 1) // 2
  local hops = {}
  own.room = tables.room() - q.reserve_bytes
  own.fixed = 0
  own.grain = GRAIN_BYTES
  own.gradients = gradient_bytes(ctx, devices[1].kind, middle)
  function own.hop(pp, sequences)
    local bytes = prices.chain(ctx, devices[1].kind, { tp = 1, micro_batch = sequences })
      .output_bytes
    if not hops[sequences] then
      hops[sequences] = before and links.seconds(ctx, before.id, devices[1].id, bytes) or 0
    end
    return 2 * pp * hops[sequences]
  end
  add_layers(ctx, own, devices, tables, middle)
  add_ends(ctx, own, devices, tables, middle)
  return own
end

--- The instance for these stages, each a list of devices, of which `reserve_bytes` stay free.
function instance.of(ctx, stages, chunks, reserve_bytes)
  local known = {}
  local q = {
    layers = ctx.model.n_layers, batch = ctx.job.global_batch, chunks = chunks,
    reserve_bytes = reserve_bytes, overlap = ctx.options.overlap,
  }
  function q.at(stage)
    if not known[stage] then
      local before = stages[stage - 1]
      known[stage] = stage_instance(ctx, q, stages[stage], before and before[#before])
    end
    return known[stage]
  end
  return q
end

return instance
