-- Oobleck: pipeline templates for several node counts; the batch dealt so that all pipelines end together.
local layout = require "layout"

local OPTIONS_MAX = 24   -- mixes of templates that are planned
local EXACT_WORK = 30000 -- stages x layers^2 up to which the paper's own objective is solved exactly

-- All ways to write `total` as a sum of the sizes with at least `least` summands: list of {size = count}.
local function mixes(sizes, total, least, cap)
  local list, count = {}, {}
  local function walk(i, left, used)
    if left == 0 then
      if used >= least then
        local mix = {}
        for s, c in pairs(count) do if c > 0 then mix[s] = c end end
        list[#list + 1] = mix
      end
      return
    end
    if i > #sizes or #list >= cap then return end
    for c = left // sizes[i], 0, -1 do
      count[sizes[i]] = c
      walk(i + 1, left - c * sizes[i], used + c)
    end
    count[sizes[i]] = 0
  end
  walk(1, total, 0)
  return list
end

-- The time of a template as the paper's code counts it: sum + (2S + k + 1) * slowest + sum from the slowest on. Large
-- templates minimise sum + 3S * slowest, which differs only in where the slowest stage is.
local function template(n, load, memory, capacity)
  local s = #load
  local q = { n = n, parts = s, load = load, memory = memory, capacity = capacity }
  if s * n * n <= EXACT_WORK then q.weights = { 2 * s + 1, 1, 1 } else q.sum, q.max = 1, 3 * s end
  return hv.opt.partition(q)
end

-- Minibatches of each template (x = instances) so that the steady times are as equal as can be; all get one.
local function deal(steady, x, total)
  local min = {}
  for i = 1, #steady do min[i] = 1 end
  return hv.opt.distribute { total = total, time = steady, sizes = x, min = min, objective = "minvar" }
end

-- Stages of a pipeline over these nodes: one per node, all its devices as one tensor-parallel group.
local function shape(ctx, nodes)
  local stages = {}
  for _, node in ipairs(nodes) do
    local tp = layout.tensor_degree(ctx, #node.ids, 8)
    for at = 1, #node.ids, tp do
      local ids = {}
      for i = at, at + tp - 1 do ids[#ids + 1] = node.ids[i] end
      stages[#stages + 1] = { kind = node.kind, tp = tp, ids = ids }
    end
  end
  return stages
end

-- Cut of a pipeline, remembered by what its stages are.
local function plan_template(ctx, st, stages, copies, recompute)
  local key = recompute .. copies
  for _, s in ipairs(stages) do key = key .. "|" .. s.kind .. s.tp end
  if st.cuts[key] == nil then
    local load, memory, capacity, n = {}, {}, {}, ctx.model.n_layers
    local known = {}
    for i, s in ipairs(stages) do
      local shape_key, depth = s.kind .. s.tp, #stages - i + 1
      local t = st.table(s.tp, recompute)
      if not known[shape_key] then
        known[shape_key] = {}
        for l = 1, n do known[shape_key][l] = t:time(l, l, s.kind, "both") end
      end
      load[i], memory[i] = known[shape_key], {}
      local ends = ctx.model.parameters / s.tp
      for l = 1, n do ends = ends - t:bytes(l, l, "parameters") end
      for l = 1, n do
        local own = t:bytes(l, l, "parameters") + ((l == 1 or l == n) and math.max(0, ends) / 2 or 0)
        memory[i][l] = own * layout.state_bytes(ctx.job, copies) + depth * t:bytes(l, l, "saved")
      end
      capacity[i] = st.limit(s, recompute)
    end
    st.cuts[key] = n >= #stages and template(n, load, memory, capacity) or false
  end
  return st.cuts[key]
end

-- Nodes dealt to pipelines of the given sizes, most memory first, always to the one that is emptiest for its size.
local function deal_nodes(nodes, sizes)
  local sorted, pipes = {}, {}
  for i, n in ipairs(nodes) do sorted[i] = n end
  table.sort(sorted, function(a, b) return a.memory_bytes > b.memory_bytes end)
  for i, size in ipairs(sizes) do pipes[i] = { size = size, memory = 0 } end
  for _, n in ipairs(sorted) do
    local to
    for _, p in ipairs(pipes) do
      if #p < p.size and (not to or p.memory < to.memory) then to = p end
    end
    to[#to + 1], to.memory = n, to.memory + n.memory_bytes
  end
  return pipes
end

-- Equal pipelines (same stages in order) become one entry with a count.
local function entries_of(ctx, pipes)
  local by_shape, list = {}, {}
  for _, p in ipairs(pipes) do
    local stages, key = shape(ctx, p), ""
    for _, s in ipairs(stages) do key = key .. "|" .. s.kind .. s.tp end
    local e = by_shape[key]
    if not e then
      e = { count = 0, stages = stages, ids = {} }
      for s = 1, #stages do e.ids[s] = {} end
      by_shape[key], list[#list + 1] = e, e
    end
    e.count = e.count + 1
    for s, stage in ipairs(stages) do
      for _, id in ipairs(stage.ids) do table.insert(e.ids[s], id) end
    end
  end
  return list
end

-- Plan of one mix; verdict, reason, handle.
local function try(ctx, st, nodes, sizes, recompute)
  local entries = entries_of(ctx, deal_nodes(nodes, sizes))
  local steady, x, cuts, mb = {}, {}, {}, ctx.options.micro_batch
  for i, e in ipairs(entries) do
    local cut = plan_template(ctx, st, e.stages, e.count, recompute)
    if not cut then return nil, st.too_big(e.stages) end
    cuts[i], x[i] = cut, e.count
    steady[i] = cut.max
  end
  local split = ctx.job.global_batch % mb == 0 and deal(steady, x, ctx.job.global_batch // mb)
  if not split then return nil, string.format("%d micro-batches cannot be dealt to %d pipelines", ctx.job.global_batch // mb, #sizes) end
  local replicas = {}
  for i, e in ipairs(entries) do
    local stages = {}
    for s, range in ipairs(cuts[i].stages) do
      stages[s] = { devices = ctx.cluster:address(e.ids[s]), layers = { range[1] - 1, range[2] }, tp = e.stages[s].tp,
        sequence_parallel = e.stages[s].tp > 1, zero = 1, recompute = recompute }
    end
    replicas[i] = { count = e.count, micro_batches = split.counts[i], stages = stages }
  end
  return layout.judge(ctx, { micro_batch = mb, replicas = replicas, schedule = { name = "1f1b" }, sync = { kind = "allreduce" } })
end

-- Things priced once per run.
local function prices(ctx)
  local st, tables, limits = { cuts = {} }, {}, {}
  function st.table(tp, recompute)
    local key = tp .. recompute
    tables[key] = tables[key] or hv.cost.layers { tp = tp, micro_batch = ctx.options.micro_batch, recompute = recompute,
      sequence_parallel = tp > 1 }
    return tables[key]
  end
  function st.limit(s, recompute)
    local key = s.kind .. s.tp .. recompute
    if not limits[key] then
      local m = hv.cost.memory { devices = ctx.cluster:address(s.ids), layers = { 1, math.min(2, ctx.model.n_layers) }, tp = s.tp,
        sequence_parallel = s.tp > 1, micro_batch = ctx.options.micro_batch, in_flight = 0, recompute = recompute }
      limits[key] = math.max(0, 0.95 * (m.limit_bytes - m.overhead - m.transient))
    end
    return limits[key]
  end
  function st.too_big(stages)
    local has = 0
    for _, s in ipairs(stages) do has = has + #s.ids * st.limit(s, "full") end
    return string.format("a pipeline of %d stages from %s on needs %s for weights and states, has %s", #stages, stages[1].kind,
      layout.gib(ctx.model.parameters * layout.state_bytes(ctx.job, 1)), layout.gib(has))
  end
  return st
end

-- Lists of pipeline sizes to try: every mix for few nodes, nearly equal sizes for many.
local function size_lists(ctx, nodes)
  local n, faults, memory, lists = #nodes, ctx.options.faults, {}, {}
  local needs = ctx.model.parameters * layout.state_bytes(ctx.job, 1)
  for i, node in ipairs(nodes) do memory[i] = node.memory_bytes end
  table.sort(memory, function(a, b) return a > b end)
  local n0, sum = 0, 0
  while n0 < n and sum < needs do n0 = n0 + 1 sum = sum + memory[n0] end
  if sum < needs then
    return {}, string.format("a pipeline needs %s for weights and states, all nodes together have %s", layout.gib(needs),
      layout.gib(sum))
  end
  if n < n0 * (faults + 1) then
    return {}, string.format("%d pipelines (faults + 1) of at least %d nodes (%s for weights and states each), %d nodes can be used",
      faults + 1, n0, layout.gib(needs), n)
  end
  if n <= 12 then
    local sizes = {}
    for s = n0, n - faults * n0 do sizes[#sizes + 1] = s end
    for _, mix in ipairs(mixes(sizes, n, faults + 1, OPTIONS_MAX)) do
      local list = {}
      for s, c in pairs(mix) do for _ = 1, c do list[#list + 1] = s end end
      lists[#lists + 1] = list
    end
    return lists
  end
  local k, most = math.max(faults + 1, n // 16), n // n0
  while k <= most and #lists < OPTIONS_MAX do
    local list = {}
    for i = 1, k do list[i] = n // k + (i <= n % k and 1 or 0) end
    lists[#lists + 1] = list
    k = math.max(k + 1, k * 5 // 4)
  end
  return lists
end

local function plan(ctx)
  local devices, why = layout.devices(ctx)
  if not devices then return nil, why end
  local nodes, st = layout.nodes(devices), prices(ctx)
  local lists, reason = size_lists(ctx, nodes)
  local best, best_s = nil, math.huge
  for i, sizes in ipairs(lists) do
    for _, recompute in ipairs { "none", "full" } do
      if hv.stopping() then break end
      local verdict, text, handle = try(ctx, st, nodes, sizes, recompute)
      if not text then
        if verdict.iteration_s < best_s then
          best, best_s = handle, verdict.iteration_s
          hv.incumbent(handle)
        end
        break -- recomputing costs time and is only for what does not fit
      end
      reason = reason or text
    end
    hv.progress(i / #lists)
  end
  if best then return best end
  return nil, reason or "stopped before the first plan"
end

return {
  api = 1, id = "oobleck", title = "Oobleck", kind = "planner",
  system = "Oobleck: Resilient Distributed Training of Large Models Using Pipeline Templates, SOSP 2023",
  reference = "doi:10.1145/3600006.3613152",
  summary = "Pipeline templates for several node counts, mixed to use all nodes; the batch dealt so that all end together.",
  needs = { model = "layers" },
  options = {
    { key = "faults", type = "integer", default = 1, min = 0, max = 16, help = "simultaneous node failures to survive" },
    { key = "micro_batch", type = "integer", default = 1, min = 1, max = 1024, help = "sequences of one micro-batch" },
  },
  plan = plan,
  selftest = function(t)
    local function sizes(a, b) local l = {} for s = a, b do l[#l + 1] = s end return l end
    t.equal("sizes 2..5, 7 nodes: mixes", #mixes(sizes(2, 5), 7, 2, 1000), 3, "catalogue: oobleck")
    t.equal("sizes 2..7, 13 nodes: mixes", #mixes(sizes(2, 7), 13, 1, 1000), 17, "catalogue: oobleck")
    t.equal("with at least 4 pipelines", #mixes(sizes(2, 7), 13, 4, 1000), 10, "catalogue: oobleck")
    local a = deal({ 4, 3 }, { 1, 1 }, 14)
    t.equal("steady times 4 and 3, 14 micro-batches", table.concat(a.counts, " "), "6 8", "catalogue: oobleck")
    t.near("spread", a.value, 0, 1e-9, "catalogue: oobleck")
    local b = deal({ 6, 4 }, { 2, 1 }, 16)
    t.equal("steady times 6 and 4, instances 2 and 1, 16 micro-batches", table.concat(b.counts, " "), "5 6", "catalogue: oobleck")
    t.near("spread", b.value, 18, 1e-9, "catalogue: oobleck")
    local c = template(3, { { 2, 4, 6 }, { 2, 4, 6 } })
    t.near("layers 2 4 6 on 2 stages", c.value, 54, 1e-9, "catalogue: oobleck")
    t.equal("cut after layer", c.stages[1][2], 2, "catalogue: oobleck")
    local l = { 1, 2, 3, 4, 5, 6 }
    local d = template(6, { l, l, l })
    t.near("layers 1 to 6 on 3 stages", d.value, 108, 1e-9, "catalogue: oobleck")
    t.equal("stage times", table.concat({ d.values[1] // 1 | 0, d.values[2] // 1 | 0, d.values[3] // 1 | 0 }, " "), "6 9 6", "catalogue: oobleck")
  end,
}
