--- What planners share: device lists in node order, even splits, grids of stages, prices per
-- layer, and the search that ranks candidates by a formula and lets the simulator decide.
-- Pure arithmetic first (no `hv`), then what asks the core.
local layout = {}

-- Numbers ------------------------------------------------------------------------------------

--- Splits n into `parts` whole numbers that differ by at most one; the first ones are larger.
function layout.even(n, parts)
  local counts = {}
  for i = 1, parts do
    counts[i] = n // parts + (i <= n % parts and 1 or 0)
  end
  return counts
end

--- Counts per stage to half-open ranges from 0: {2, 3} -> {{0, 2}, {2, 5}}.
function layout.ranges(counts)
  local ranges, at = {}, 0
  for i, n in ipairs(counts) do
    ranges[i] = { at, at + n }
    at = at + n
  end
  return ranges
end

--- Divisors of n, ascending.
function layout.divisors(n)
  local low, high = {}, {}
  local d = 1
  while d * d <= n do
    if n % d == 0 then
      low[#low + 1] = d
      if d * d ~= n then
        table.insert(high, 1, n // d)
      end
    end
    d = d + 1
  end
  for _, x in ipairs(high) do
    low[#low + 1] = x
  end
  return low
end

--- The least divisor of n that is at least x (nil where there is none).
function layout.divisor_from(n, x)
  for _, d in ipairs(layout.divisors(n)) do
    if d >= x then
      return d
    end
  end
end

--- Powers of two up to n.
function layout.powers(n)
  local list, p = {}, 1
  while p <= n do
    list[#list + 1] = p
    p = p * 2
  end
  return list
end

--- Greatest common divisor.
function layout.gcd(a, b)
  while b ~= 0 do
    a, b = b, a % b
  end
  return a
end

--- Rows that have the same key, together.
-- @function layout.joined
-- @tparam table rows list of anything
-- @tparam function key_of what a row's key is: key_of(row)
-- @treturn table list of {row = the first, copies = all of them}, in order of first mention
-- @units none
-- @raise what key_of raises
-- @usage assert(#require("layout").joined({ 1, 2, 3 }, function(x) return x % 2 end) == 2)
function layout.joined(rows, key_of)
  local list, by_key = {}, {}
  for _, row in ipairs(rows) do
    local key = key_of(row)
    if not by_key[key] then
      by_key[key] = { row = row, copies = {} }
      list[#list + 1] = by_key[key]
    end
    table.insert(by_key[key].copies, row)
  end
  return list
end

--- n values of a list from position `from` on.
function layout.slice(list, from, n)
  return table.move(list, from, from + n - 1, 1, {})
end

--- Divisors of n just below and just above x (nil where there is none).
function layout.neighbours(n, x)
  local below, above
  for _, d in ipairs(layout.divisors(n)) do
    if d < x then
      below = d
    elseif d > x and not above then
      above = d
    end
  end
  return below, above
end

--- "a", "a or b" for the values that exist.
function layout.either(a, b)
  if a and b then
    return a .. " or " .. b
  end
  return tostring(a or b)
end

--- Pipeline time of M micro-batches, Eq-P: sum of the stage times + (M - 1) x the largest.
function layout.pipeline_s(stage_s, micro_batches)
  local sum, max = 0, 0
  for _, t in ipairs(stage_s) do
    sum = sum + t
    max = math.max(max, t)
  end
  return sum + (micro_batches - 1) * max, max
end

--- sum t + (w1 + w2·(k - 1))·t_k + w3·(t_k + … + t_S), k the rightmost slowest stage: what
-- hv.opt.partition minimises under `weights` {w1, w2, w3}.
function layout.weighted_s(stage_s, w)
  local sum, k, tail = 0, 1, 0
  for s, t in ipairs(stage_s) do
    sum = sum + t
    k = t >= stage_s[k] and s or k
  end
  for s = k, #stage_s do
    tail = tail + stage_s[s]
  end
  return sum + (w[1] + w[2] * (k - 1)) * stage_s[k] + w[3] * tail
end

-- The cluster --------------------------------------------------------------------------------

--- Can the cost model price the layers on this kind? Else the reason.
local function is_priced(kind)
  local ok, why = pcall(hv.cost.layers, { kinds = { kind } })
  return ok, not ok and why:gsub("^[^ ]*:%d+: ", "") or nil
end

--- Devices that can be priced: accelerators that compute in the job's precision and, for a model of
-- measured layers, were measured. In file order; of the fabric that has most of them (collectives do
-- not cross fabrics) unless `all` is true; "hosts": CPUs too. With an empty list comes the reason. `priced` (tests)
-- asks something else than the cost model.
function layout.devices(ctx, all, priced)
  local by_fabric, most, everywhere, ok, reason = {}, nil, {}, {}, nil
  for _, d in ipairs(ctx.cluster:devices()) do
    if ok[d.kind] == nil and (d.class ~= "cpu" or all == "hosts") and (d.flops_per_s or 0) > 0 then
      local fine, why = (priced or is_priced)(d.kind)
      ok[d.kind], reason = fine, reason or why
    end
    if ok[d.kind] then
      local fabric = d.fabric or ""
      local list = by_fabric[fabric] or {}
      by_fabric[fabric], everywhere[#everywhere + 1] = list, d
      list[#list + 1] = d
      if not most or #list > #by_fabric[most] then
        most = fabric
      end
    end
  end
  local list = all and everywhere or most and by_fabric[most] or {}
  return list, #list == 0 and (reason or "no device of the cluster computes in " .. ctx.job.precision) or nil
end

--- Devices grouped into runs of one node and one kind:
-- { { kind, ids, memory_bytes, flops_per_s, group }, ... } in the order of the list.
function layout.nodes(devices)
  local nodes, last = {}, nil
  for _, d in ipairs(devices) do
    if not last or last.node ~= d.node or last.kind ~= d.kind then
      last = {
        node = d.node, kind = d.kind, group = d.group, ids = {},
        memory_bytes = d.memory_bytes, flops_per_s = d.flops_per_s,
      }
      nodes[#nodes + 1] = last
    end
    last.ids[#last.ids + 1] = d.id
  end
  return nodes
end

--- Devices for stages {tp, dp}, each tensor group inside the first node that has room for it: for every stage its
-- { ids, kinds = set }; false where the groups do not fit.
function layout.first_fit(nodes, stages)
  local free, first, rows = {}, 1, {}
  for n, node in ipairs(nodes) do
    free[n] = #node.ids
  end
  for s, stage in ipairs(stages) do
    rows[s] = { ids = {}, kinds = {} }
    for _ = 1, stage.dp do
      while nodes[first] and free[first] == 0 do
        first = first + 1
      end
      local n = first
      while nodes[n] and free[n] < stage.tp do
        n = n + 1
      end
      if not nodes[n] then
        return false
      end
      local ids = nodes[n].ids
      table.move(ids, #ids - free[n] + 1, #ids - free[n] + stage.tp, #rows[s].ids + 1, rows[s].ids)
      free[n], rows[s].kinds[nodes[n].kind] = free[n] - stage.tp, true
    end
  end
  return rows
end

--- Greatest common divisor of the node sizes.
function layout.node_size(nodes)
  local size = 0
  for _, n in ipairs(nodes) do
    size = layout.gcd(size, #n.ids)
  end
  return size
end

--- Kinds of rows in words: "4 x A100-SXM-80GB, 3 x V100-SXM2-32GB".
function layout.kinds_text(rows)
  local order, count = {}, {}
  for _, row in ipairs(rows) do
    if not count[row.kind] then
      order[#order + 1], count[row.kind] = row.kind, 0
    end
    count[row.kind] = count[row.kind] + 1
  end
  for i, kind in ipairs(order) do
    order[i] = count[kind] .. " x " .. kind
  end
  return table.concat(order, ", ")
end

-- The model ----------------------------------------------------------------------------------

--- Can every block be split over tp ranks? Heads, key-value heads and feed-forward width decide.
function layout.tp_fits(layers, tp)
  for _, l in ipairs(layers) do
    local heads, kv = l.heads or 0, l.kv_heads or l.heads or 0
    local kv_fits = kv == 0 or kv % tp == 0 or tp % kv == 0
    if heads % tp ~= 0 or not kv_fits or (l.ffn or 0) % tp ~= 0 then
      return false
    end
  end
  return true
end

--- The largest power of two up to `most` that divides `size` devices and splits every block.
function layout.largest_tp(layers, size, most)
  local best = 1
  for _, tp in ipairs(layout.powers(math.min(size, most))) do
    best = size % tp == 0 and layout.tp_fits(layers, tp) and tp or best
  end
  return best
end

-- Plans --------------------------------------------------------------------------------------

-- A ring, with the layout of its tokens where it is not the contiguous one.
local function cp_ring(g)
  if (g.cp_layout or "contiguous") == "contiguous" then
    return g.cp
  end
  return { degree = g.cp, layout = g.cp_layout }
end

--- Schedule of a plan by name: a built-in one as it is, one of a plugin as the order it makes.
function layout.schedule(name, ranks, micro_batches, chunks)
  for _, s in ipairs(hv.sim.schedules()) do
    if s.lua and s.name == name then
      local made = hv.sim.schedule(name, { ranks = ranks, micro_batches = micro_batches, chunks = chunks })
      return { name = "explicit", order = made.order }
    end
  end
  return { name = name }
end

--- Stages of a Megatron grid: stage s takes the s-th block of tp x cp x dp devices, tp fastest,
-- then cp, then dp. `counts` holds layers per chunk in model order (pp x chunks of them).
function layout.grid(ctx, g)
  local size = g.tp * g.cp * g.dp
  local ranges = layout.ranges(g.counts)
  local stages = {}
  local hollow = g.counts[1] == 0 or g.counts[#g.counts] == 0 -- a chunk of embedding or head alone
  for s = 1, g.pp do
    local layers = ranges[s]
    if g.chunks > 1 then
      layers = {}
      for c = 1, g.chunks do
        layers[c] = ranges[(c - 1) * g.pp + s]
      end
    end
    stages[s] = {
      devices = ctx.cluster:address(layout.slice(g.ids, (s - 1) * size + 1, size)),
      layers = layers, tp = g.tp, dp = g.dp,
      cp = g.cp > 1 and cp_ring(g) or nil,
      ep = g.ep > 1 and g.ep or nil,
      sequence_parallel = g.sequence_parallel or nil,
      zero = g.zero > 0 and g.zero or nil,
      recompute = g.recompute ~= "none" and g.recompute or nil,
    }
    if hollow then
      stages[s].embedding, stages[s].head = s == 1, s == g.pp
    end
  end
  return {
    micro_batch = g.micro_batch * g.dp,
    replicas = { { micro_batches = g.micro_batches, stages = stages } },
    schedule = layout.schedule(g.schedule, g.pp, g.micro_batches, g.chunks),
  }
end

--- Text and excess bytes of the first memory finding of a verdict, or nil.
function layout.memory_reason(verdict)
  for _, v in ipairs(verdict.violations or {}) do
    if v.code == "memory" then
      return v.text, v.by
    end
  end
end

--- Judges a plan table: the verdict, or nil, why it breaks a rule, and by how many bytes (infinite
-- for faults other than memory).
function layout.judge(plan)
  local verdict, why = hv.plan.new(plan):eval()
  if not verdict then
    return nil, why, math.huge
  elseif #verdict.violations == 0 then
    return verdict
  end
  local text, by = layout.memory_reason(verdict)
  return nil, text or verdict.violations[1].text, text and by or math.huge
end

--- An iterator that ends early when a share of the run's time is used, so that what it listed can still be judged.
-- @function layout.in_time
-- @tparam function step gives the next item, nil at the end, as search.product does
-- @tparam[opt] number share of the time limit (0.4)
-- @treturn function the same, but for its end
-- @units share is a fraction
-- @raise outside a run
-- @usage local n = 0
-- for _ in require("layout").in_time(require("search").product { { 1, 2 }, { 3 } }) do n = n + 1 end
-- assert(n <= 2)
function layout.in_time(step, share)
  return function() return not hv.stopping(share or 0.4) and step() or nil end
end

--- Ranks candidates { claim_s, build() } by claim_s and judges them in that order until `tries`
-- plans without violation were seen (at most four times as many are looked at). Returns the one
-- with the least simulated time and its time, or nil and the finding of the nearest miss. With
-- `weigh(verdict, candidate)` the one with the least of that.
function layout.best(candidates, tries, weigh)
  table.sort(candidates, function(a, b)
    if a.claim_s ~= b.claim_s then
      return a.claim_s < b.claim_s
    end
    return a.rank < b.rank
  end)
  local best, best_s, best_c, reason, miss = nil, math.huge, nil, nil, math.huge
  local good = 0
  for i, c in ipairs(candidates) do
    if good >= tries or i > 4 * tries or (best and hv.stopping()) then
      break
    end
    hv.progress(good / tries, ("plan %d of %d"):format(i, #candidates))
    local plan = c.build()
    local verdict, why, by = layout.judge(plan)
    if verdict then
      good = good + 1
      local value = weigh and weigh(verdict, c) or verdict.iteration_s
      if value < best_s then
        best, best_s, best_c = plan, value, c
        hv.incumbent(plan)
      end
    elseif not reason or by < miss then
      reason, miss = why, by
    end
  end
  if not best then
    return nil, reason
  end
  return best, best_s, best_c
end

return layout
