-- The exact cut of a point: layers per chunk so that the busiest rank has least work, within memory
-- for the micro-batches that its schedule keeps alive.
local grids = require "grids"
local inventory = require "inventory"
local orders = require "orders"
local pipeline = require "pipeline"

local cut = {}

local ROUNDING = 1e-9 -- relative error of differences of sums

local kinds_known, counts_known = {}, {}

--- Kinds of the devices of stage s, which are `ids`.
local function kinds_of(ctx, ids, key)
  if not kinds_known[key] then
    local rows = {}
    for i, id in ipairs(ids) do
      rows[i] = { kind = inventory.kind(ctx, id) }
    end
    kinds_known[key] = inventory.kinds(rows)
  end
  return kinds_known[key]
end

--- Tables of every stage: times and bytes by layer, room.
local function tables_of(ctx, point, places)
  local list, words = {}, {}
  local zero = point.knob.zero
  for s = 1, point.pp do
    local key = ("%d/%d/%d/%d/%s"):format(point.tp, point.dp, s, #point.ids,
      point.knob.paired and point.pp or "")
    local kinds = kinds_of(ctx, places(point, s), key)
    local alive = math.ceil(orders.alive(point, s))
    list[s] = pipeline.tables(ctx, { kinds = kinds, tp = point.tp, dp = point.dp,
      micro_batch = point.micro_batch, recompute = point.recompute, zero = zero or 0,
      holders = point.dp }, alive)
    words[s] = table.concat(kinds, "+") .. alive
  end
  return list, table.concat(words, ",")
end

--- Are all layers alike but the first and the last one, which hold the ends of the model?
local function is_alike(t)
  local function differ(a, b)
    return math.abs(a - b) > ROUNDING * b
  end
  for l = 3, #t.times - 1 do
    if differ(t.times[l], t.times[2]) or differ(t.held[l], t.held[2]) then
      return false
    end
  end
  return #t.times > 2
end

--- Layers per chunk where the inner layers are alike: an exact split over the ranks, then over the
-- chunks of each so that the longest one is shortest. nil where the memory is too small.
function cut.split(point, tables, n)
  local parts = point.pp * point.chunks
  local ranks = {}
  for c = 1, parts do
    local rank, n_ranks = orders.rank_of(point, c)
    local t = tables[orders.stage_of(point, c)]
    local own = ranks[rank] or { chunks = {}, fixed = 0, room = math.huge, t = t }
    ranks[rank] = own
    local end_layer = c == 1 and 1 or c == parts and n
    local chunk = { at = c, layers = end_layer and 1 or 0,
      seconds = end_layer and t.times[end_layer] or 0 }
    own.chunks[#own.chunks + 1] = chunk
    own.fixed = own.fixed + chunk.seconds
    own.ends = (own.ends or 0) + (end_layer and t.held[end_layer] or 0)
    own.room = math.min(own.room, t.room)
    ranks.n = n_ranks
  end
  local q = { total = n - 2, time = {}, fixed = {}, min = {}, caps = {} }
  for r = 1, ranks.n do
    local own = ranks[r]
    q.time[r], q.fixed[r], q.min[r] = own.t.times[2], own.fixed, 0
    for _, chunk in ipairs(own.chunks) do
      q.min[r] = q.min[r] + 1 - chunk.layers
    end
    q.caps[r] = math.max(0, (own.room - own.ends) / own.t.held[2] * (1 + ROUNDING) // 1)
    if q.caps[r] < q.min[r] then
      return nil
    end
    q.caps[r] = math.tointeger(math.min(q.caps[r], n))
  end
  local best = hv.opt.distribute(q)
  local counts = best and {}
  for r = 1, best and ranks.n or 0 do
    local own = ranks[r]
    local left = best.counts[r]
    local function give(chunk)
      chunk.layers, left = chunk.layers + 1, left - 1
      chunk.seconds = chunk.seconds + own.t.times[2]
    end
    for _, chunk in ipairs(own.chunks) do
      if chunk.layers == 0 then
        give(chunk)
      end
    end
    while left > 0 do
      local least = own.chunks[1]
      for _, chunk in ipairs(own.chunks) do
        least = chunk.seconds < least.seconds and chunk or least
      end
      give(least)
    end
    for _, chunk in ipairs(own.chunks) do
      counts[chunk.at] = chunk.layers
    end
  end
  return counts
end

--- The instance of hv.opt.partition: chunks are parts, their ranks have memory for all of them.
local function instance_of(ctx, point, tables)
  local q = { n = ctx.model.n_layers, parts = point.pp * point.chunks, load = {}, memory = {},
    capacity = {} }
  local rank, several = {}, point.chunks > 1
  for c = 1, q.parts do
    local t = tables[orders.stage_of(point, c)]
    q.load[c], q.memory[c], q.capacity[c] = t.times, t.held, math.max(0, t.room)
    rank[c], q.ranks = orders.rank_of(point, c)
    several = several or q.ranks < point.pp
  end
  if several then
    q.rank = rank
  else
    q.ranks, q.sum, q.max = nil, 1, point.micro_batches - 1
  end
  return q
end

--- The exact counts, or nil where nothing fits.
local function best_counts(ctx, point, tables)
  local _, n_ranks = orders.rank_of(point, 1)
  if n_ranks < point.pp * point.chunks and is_alike(tables[1]) then
    return cut.split(point, tables, ctx.model.n_layers)
  end
  local best = hv.opt.partition(instance_of(ctx, point, tables))
  local counts = best and {}
  for c, range in ipairs(best and best.stages or {}) do
    counts[c] = range[2] - range[1] + 1
  end
  return counts
end

--- Layers per chunk in model order. Even ones where the prices find no cut that fits: the judge
-- says by how much not. `places(point, s)` = devices of stage s.
function cut.counts(ctx, point, places)
  local tables, text = tables_of(ctx, point, places)
  local key = ("%s/%d/%d/%d/%d/%s/%s/%d/%d"):format(text, point.tp, point.dp, point.chunks,
    point.micro_batch, point.recompute, tostring(point.knob.zero), orders.rank_of(point, 1),
    point.chunks == 1 and point.micro_batches or 0) .. orders.text(point.knob.schedule)
  if not counts_known[key] then
    counts_known[key] = best_counts(ctx, point, tables)
      or grids.layer_counts(ctx.model.n_layers, point.pp, point.chunks, "")
  end
  return counts_known[key]
end

return cut
