-- One pipeline over all devices whose stages are groups of a power of two of them, of any types in
-- a row (Metis, USENIX ATC 2024, sections 4 and 5): sizes of the groups and their order,
-- micro-batches, data and tensor degrees per stage, layers per stage, and shares of a micro-batch
-- where a stage mixes types. Pure search; prices come from the caller.
local NEARLY = 0.98 -- share of the layers that stages can hold, as layers differ

local stage_search = {}

--- All orders of a list of blocks, equal ones once, into `out` until it holds `most`.
local function permute(blocks, most, out)
  local counts, keys = {}, {}
  for _, b in ipairs(blocks) do
    local key = table.concat(b, " ")
    if not counts[key] then
      counts[key], keys[#keys + 1] = { n = 0, block = b }, key
    end
    counts[key].n = counts[key].n + 1
  end
  local at = {}
  local function extend(n)
    if #out >= most then
      return
    end
    if n > #blocks then
      local sizes = {}
      for _, b in ipairs(at) do
        table.move(b, 1, #b, #sizes + 1, sizes)
      end
      out[#out + 1] = sizes
    end
    for _, key in ipairs(n <= #blocks and keys or {}) do
      local c = counts[key]
      if c.n > 0 then
        c.n, at[n] = c.n - 1, c.block
        extend(n + 1)
        c.n, at[n] = c.n + 1, nil
      end
    end
  end
  extend(1)
end

--- Blocks of sizes in ascending order: of those with the least devices neighbours are joined in
-- pairs, until there are `length` blocks or nothing was joined.
local function blocks_of(sizes, length)
  local blocks, before = {}, nil
  for i, size in ipairs(sizes) do
    blocks[i] = { size, sum = size }
  end
  while #blocks > length and #blocks ~= before do
    local joined, least, i = {}, blocks[1].sum, 1
    before = #blocks
    while i <= before do
      local a, b = blocks[i], blocks[i + 1]
      if b and a.sum == least and b.sum == least and #joined + before - i + 1 > length then
        a, i = table.move(b, 1, #b, #a + 1, table.move(a, 1, #a, 1, { sum = 2 * least })), i + 1
      end
      joined[#joined + 1], i = a, i + 1
    end
    blocks = joined
  end
  return blocks
end

--- Sizes of the groups of devices: powers of two that add up to n, none below the mean times
-- `variance`, in all orders of up to `length` blocks.
-- @function stage_search.groups
-- @tparam integer n devices
-- @tparam integer stages groups
-- @tparam number variance the least size as a share of n / stages
-- @tparam integer length blocks that are permuted; more groups are joined in pairs of equals
-- @tparam integer most how many are wanted
-- @treturn table list of lists of sizes
-- @units none
-- @raise none
-- @usage assert(#require("stage_search").groups(4, 3, 0.5, 4, 100) == 3)
function stage_search.groups(n, stages, variance, length, most)
  local out, sizes, shapes, least = {}, {}, {}, n // stages * variance
  for k = 0, 62 do
    if 1 << k <= n and 1 << k >= least then
      shapes[#shapes + 1] = 1 << k
    end
  end
  local function extend(s, from, left)
    if s > stages then
      if left == 0 then
        permute(blocks_of(sizes, length), most, out)
      end
      return
    end
    for i = from, #shapes do
      local rest = stages - s
      -- sizes ascend
      if #out >= most or shapes[i] * (rest + 1) > left then
        return
      end
      if shapes[i] + rest * shapes[#shapes] >= left then
        sizes[s] = shapes[i]
        extend(s + 1, i, left - shapes[i])
        sizes[s] = nil
      end
    end
  end
  extend(1, 1, n)
  return out
end

--- A stage of devices from+1..from+size of an order, by degree and sequences that enter: {kinds =
-- rows {kind, share}, shares, dp, tp, times of its slowest replica, total}; nil where tensor groups
-- leave a node, a replica gets nothing or more than the caller has prices for.
local function stage_of(q, order, from, size, tp, entering)
  local dp = size // tp
  if dp > entering or tp > q.max_tp then
    return nil
  end
  local stage = { order = order, from = from, size = size, tp = tp, dp = dp, kinds = {},
    shares = {}, total = 0 }
  local pace, same = {}, true
  for r = 1, dp do
    local first, last = order[from + (r - 1) * tp + 1], order[from + r * tp]
    if first.node ~= last.node or first.kind ~= last.kind then
      return nil
    end
    pace[r], same = q.pace(first.kind, tp), same and first.kind == order[from + 1].kind
  end
  stage.shares = q.split(entering, pace, same)
  local seen = {}
  for r, share in ipairs(stage.shares) do
    local kind = order[from + (r - 1) * tp + 1].kind
    if share > 0 and not seen[kind .. share] then
      local times, total = q.times(kind, tp, share), 0
      if not times then
        return nil
      end
      seen[kind .. share], stage.kinds[#stage.kinds + 1] = true, { kind = kind, share = share }
      for _, t in ipairs(times) do
        total = total + t
      end
      if total > stage.total then
        stage.times, stage.total = times, total
      end
    end
  end
  return stage.times and stage
end

--- Stages remembered by where they lie.
local function remembered(q, order, from, size, tp, entering)
  local known, key = order.stages[entering] or {}, (from * 65536 + size) * 65536 + tp
  order.stages[entering] = known
  if known[key] == nil then
    known[key] = stage_of(q, order, from, size, tp, entering) or false
  end
  return known[key]
end

--- Bytes per layer and room of a stage, of the kind that is filled most; and the share of all
-- layers it can hold.
local function memory_of(q, stage, alive)
  stage.memory = stage.memory or {}
  local known = stage.memory[alive] or { share = math.huge }
  for _, k in ipairs(stage.memory[alive] and {} or stage.kinds) do
    local list, room = q.held(k.kind, stage.tp, k.share, alive, stage.dp)
    local sum = 0
    for _, bytes in ipairs(list) do
      sum = sum + bytes
    end
    local share = room > 0 and room / math.max(sum, 1e-9) or 0
    if share < known.share or not known.held then
      known = { held = list, room = room, share = share }
    end
  end
  stage.memory[alive] = known
  return known
end

--- Cuts the layers of stages: ranges, or nil and how much room each stage has left when layers
-- follow speed.
local function cut_of(q, stages, micro_batches)
  local p = { n = q.layers, parts = #stages, load = {}, memory = {}, capacity = {}, sum = 1,
    max = micro_batches - 1 }
  local slack, rate, share = {}, 0, 0
  for s, stage in ipairs(stages) do
    local memory = memory_of(q, stage, math.min(#stages - s + 1, micro_batches))
    p.load[s], p.memory[s], p.capacity[s] = stage.times, memory.held, memory.room
    slack[s], rate, share = memory.share, rate + 1 / stage.total, share + memory.share
  end
  for s, stage in ipairs(stages) do
    local taken = 1 / stage.total / rate
    slack[s] = slack[s] > 0 and p.capacity[s] * (1 - taken / slack[s]) or p.capacity[s]
  end
  return share >= NEARLY and math.min(table.unpack(p.capacity)) > 0 and hv.opt.partition(p) or nil,
    slack
end

--- (B - 1) longest + sum of stages + largest exchange + largest update + hops + what every
-- micro-batch costs.
-- @function stage_search.price
-- @tparam table q {sync, step, hop, every} as stage_search.search takes them
-- @tparam table stages list of {times = by layer, …}
-- @tparam table ranges list of {first, last} per stage
-- @tparam integer micro_batches B
-- @treturn number the time
-- @units any unit of time, the caller's; layers from 1, inclusive
-- @raise errors of the functions
-- @usage local zero = function() return 0 end
-- local q = { sync = zero, step = zero, hop = zero, every = 0 }
-- assert(require("stage_search").price(q, { { times = { 1, 2 } } }, { { 1, 2 } }, 3) == 9)
function stage_search.price(q, stages, ranges, micro_batches)
  local sum, worst, sync, step, hops = 0, 0, 0, 0, 0
  for s, range in ipairs(ranges) do
    local stage, t = stages[s], 0
    for l = range[1], range[2] do
      t = t + stage.times[l]
    end
    sum, worst, sync = sum + t, math.max(worst, t),
      math.max(sync, q.sync(stage, range[1], range[2]))
    step, hops = math.max(step, q.step(stage, range[1], range[2])),
      hops + (s < #ranges and q.hop(stage, stages[s + 1], range[2]) or 0)
  end
  return (micro_batches - 1) * worst + sum + sync + step + hops + micro_batches * q.every
end

--- Degrees of the stages of a case, from data parallelism on, twice the tensor degree where room is
-- least, until the layers fit: the priced plan, or nil.
local function solve(q, x)
  local tps, stages = {}, {}
  for s in ipairs(x.sizes) do
    tps[s] = 1
  end
  for _ = 1, 16 * #x.sizes do
    local valid, from, slack, found = true, 0, {}, nil
    for s, size in ipairs(x.sizes) do
      stages[s] = remembered(q, x.order, from, size, tps[s], x.entering)
      valid, from, slack[s] = valid and stages[s], from + size, -size // tps[s]
    end
    if valid then
      found, slack = cut_of(q, stages, x.micro_batches)
    end
    if found then
      return { claim_s = stage_search.price(q, stages, found.stages, x.micro_batches),
        rank = x.rank,
        ranges = found.stages,
        stages = table.move(stages, 1, #stages, 1, {}), micro_batches = x.micro_batches,
        entering = x.entering }
    end
    local least
    for s, size in ipairs(x.sizes) do
      if size // tps[s] % 2 == 0 and tps[s] < q.max_tp
          and (not least or slack[s] < slack[least]) then
        least = s
      end
    end
    if not least then
      return nil
    end
    tps[least] = 2 * tps[least]
  end
end

--- Rate of a stage at its best degree, and the most layers, as a share of all, that it can hold at
-- any degree.
local function best_of(q, order, from, size, entering, alive)
  local known, key = order.best[entering] or {}, (from * 65536 + size) * 65536 + alive
  order.best[entering] = known
  if not known[key] then
    local best, tp = { rate = 0, share = 0 }, 1
    while tp <= math.min(size, q.max_tp) do
      local stage = remembered(q, order, from, size, tp, entering)
      if stage then
        best.rate = math.max(best.rate, 1 / stage.total)
        best.share = math.max(best.share, memory_of(q, stage, alive).share)
      end
      tp = 2 * tp
    end
    known[key] = best
  end
  return known[key]
end

--- Work spread without rest over all stages, each with its best degree, and what every micro-batch
-- costs; infinite where the layers cannot fit, nil where a stage can run at no degree.
local function bound_of(q, x)
  local rate, share, from = 0, 0, 0
  for s, size in ipairs(x.sizes) do
    local best = best_of(q, x.order, from, size, x.entering,
      math.min(#x.sizes - s + 1, x.micro_batches))
    if best.rate == 0 then
      return nil
    end
    rate, share, from = rate + best.rate, share + best.share, from + size
  end
  return share >= NEARLY and x.micro_batches * (1 / rate + q.every) or math.huge
end

--- The best pipelines, best first.
-- @function stage_search.search
-- @tparam table q {layers = how many, batch = sequences, orders = lists of devices {kind, node},
-- counts = numbers of micro-batches to try, stages = most stages, variance, length, most = as
-- stage_search.groups takes them, most per number of stages, max_tp, budget = cases solved, keep =
-- plans kept, every = time per micro-batch on top, pace = function(kind, tp) giving the time of a
-- sequence, split = function(entering, paces, same) giving shares, times = function(kind, tp,
-- share) giving times by layer or nil, held = function(kind, tp, share, alive, dp) giving bytes by
-- layer and the room, sync, step = function(stage, first, last) giving times, hop = function(stage,
-- stage, layer), stopping = function(share of the time) or nil}; a stage is {order, from, size, tp,
-- dp, shares, kinds = {kind, share}, times}
-- @treturn table list of {claim_s, stages, ranges, micro_batches, entering}, how many cases the
-- budget left out, and how many could run, memory aside
-- @units any unit of time, bytes, the caller's; layers from 1, ranges inclusive
-- @raise errors of the functions
-- @usage local zero = function() return 0 end
-- local q = { layers = 2, batch = 2, orders = { { { kind = "a", node = 1 }, { kind = "a", node = 1 } } },
--   counts = { 1, 2 }, stages = 2, variance = 1, length = 4, most = 9, max_tp = 1, budget = 9, keep = 1, every = 0,
--   pace = function() return 1 end, times = function(_, _, share) return { share, share } end,
--   split = function(n, paces) return #paces == 2 and { n // 2, n - n // 2 } or { n } end,
--   held = function() return { 0, 0 }, 1 end, sync = zero, step = zero, hop = zero }
-- assert(require("stage_search").search(q)[1].claim_s == 2)
function stage_search.search(q)
  local cases, found, limit, staffed = {}, {}, math.huge, 0
  for _, order in ipairs(q.orders) do
    order.stages, order.best = {}, {}
  end
  for stages = 1, math.min(q.stages, q.layers, #q.orders[1]) do
    local lists = stage_search.groups(#q.orders[1], stages, q.variance, q.length, q.most)
    for _, order in ipairs(q.orders) do
      for _, sizes in ipairs(lists) do
        local late = #cases > 0 and q.stopping and q.stopping(0.4)
        for _, m in ipairs(late and {} or q.counts) do
          local x = { order = order, sizes = sizes, micro_batches = m, entering = q.batch // m,
            rank = #cases }
          x.bound = bound_of(q, x)
          staffed = staffed + (x.bound and 1 or 0)
          if x.bound and x.bound < math.huge then
            cases[#cases + 1] = x
          end
        end
      end
    end
  end
  table.sort(cases, function(a, b) return a.bound < b.bound or a.bound == b.bound and a.rank < b.rank end)
  for i, x in ipairs(cases) do
    local late = #found > 0 and q.stopping and q.stopping(0.7)
    if x.bound >= limit then
      break
    end
    if i > q.budget or late then
      return found, #cases - i + 1, staffed
    end
    local made = solve(q, x)
    if made and made.claim_s < limit then
      found[#found + 1] = made
      table.sort(found, function(a, b) return a.claim_s < b.claim_s or a.claim_s == b.claim_s and a.rank < b.rank end)
      found[q.keep + 1] = nil
      limit = found[q.keep] and found[q.keep].claim_s or math.huge
    end
  end
  return found, 0, staffed
end

return stage_search
