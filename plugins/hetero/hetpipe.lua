-- HetPipe: virtual workers of several GPUs, pipelined inside, data-parallel among each other.
local layout = require "layout"

-- Updates that minibatch p may miss (zero-based, section 5.2): nm concurrent minibatches, clock distance d.
local function global_staleness(nm, d) return (d + 1) * nm + nm - 2 end

-- Virtual workers by policy. ED: every worker takes the same share of every node. NP: a worker is a node.
-- Returns a list of {count, devices = list of {kind, ids of all copies}}.
local function workers_of(nodes, policy)
  local list = {}
  if policy == "ED" then
    local v = 0
    for _, n in ipairs(nodes) do v = layout.gcd(v, #n.ids) end
    local w = { count = v, devices = {} }
    for _, n in ipairs(nodes) do
      local each = #n.ids // v
      for slot = 1, each do
        local ids = {}
        for k = 1, v do ids[k] = n.ids[(k - 1) * each + slot] end
        w.devices[#w.devices + 1] = { kind = n.kind, ids = ids }
      end
    end
    return { w }
  end
  local by_shape = {}
  for _, n in ipairs(nodes) do
    local key = n.kind .. "/" .. #n.ids
    local w = by_shape[key]
    if not w then
      w = { count = 0, devices = {} }
      by_shape[key], list[#list + 1] = w, w
      for slot = 1, #n.ids do w.devices[slot] = { kind = n.kind, ids = {} } end
    end
    w.count = w.count + 1
    for slot, id in ipairs(n.ids) do table.insert(w.devices[slot].ids, id) end
  end
  return list
end

-- Cuts the model over a worker's GPUs, order of the GPUs free; nm minibatches in flight at most.
local function cut(ctx, w, nm, mb, tables, limits, recompute)
  local n, k = ctx.model.n_layers, #w.devices
  if k > n then return nil, string.format("a worker of %d GPUs for %d layers", k, n) end
  local load, memory, capacity, kinds, by_depth = {}, {}, {}, {}, {}
  local t = tables[mb .. recompute] or hv.cost.layers { micro_batch = mb, recompute = recompute }
  tables[mb .. recompute] = t
  local ends = ctx.model.parameters
  for l = 1, n do ends = ends - t:bytes(l, l, "parameters") end
  local state = layout.state_bytes(ctx.job, w.count)
  for q, d in ipairs(w.devices) do
    if not kinds[d.kind] then
      kinds[d.kind] = {}
      for l = 1, n do kinds[d.kind][l] = t:time(l, l, d.kind, "both") end
    end
    load[q], capacity[q] = kinds[d.kind], limits[d.kind]
    local depth = math.min(nm, k - q + 1)
    if not by_depth[depth] then
      by_depth[depth] = {}
      for l = 1, n do
        local own = t:bytes(l, l, "parameters") + ((l == 1 or l == n) and math.max(0, ends) / 2 or 0)
        by_depth[depth][l] = own * state + depth * t:bytes(l, l, "saved")
      end
    end
    memory[q] = by_depth[depth]
  end
  return hv.opt.partition { n = n, parts = k, load = load, memory = memory, capacity = capacity, order = "free" }
end

-- What a device has for weights, states and activations: its limit less what a stage needs besides.
local function limits_of(ctx, devices, mb, recompute)
  local limits = {}
  for _, d in ipairs(devices) do
    if not limits[d.kind] then
      local m = hv.cost.memory { devices = ctx.cluster:address { d.id }, layers = { 1, math.min(2, ctx.model.n_layers) },
        micro_batch = mb, in_flight = 0, recompute = recompute }
      limits[d.kind] = math.max(0, 0.97 * (m.limit_bytes - m.overhead - m.transient))
    end
  end
  return limits
end

-- Whole plan for a policy and nm; verdict, reason, handle.
local function try(ctx, workers, nm, mb, tables, limits, recompute)
  local rates, sizes, cuts, replicas, batch = {}, {}, {}, {}, ctx.job.global_batch
  for i, w in ipairs(workers) do
    local c, why = cut(ctx, w, nm, mb, tables, limits, recompute)
    if not c then return nil, why, nil, i end
    rates[i], sizes[i], cuts[i] = c.value, w.count, c
  end
  local min = {}
  for i = 1, #workers do min[i] = 1 end
  local split = batch % mb == 0 and
    hv.opt.distribute { total = batch // mb, time = rates, sizes = sizes, min = min, objective = "minmax" }
  if not split then return nil, string.format("%d minibatches cannot be dealt to the workers", batch // mb) end
  local stale = ctx.job.allow_stale
  for i, w in ipairs(workers) do
    local stages = {}
    for s, range in ipairs(cuts[i].stages) do
      local d = w.devices[cuts[i].order[s]]
      stages[s] = { devices = ctx.cluster:address(d.ids), layers = { range[1] - 1, range[2] }, zero = 1, recompute = recompute,
        in_flight = (not stale) and nm or nil }
    end
    replicas[i] = { count = w.count, micro_batches = stale and nm or split.counts[i], stages = stages }
  end
  local plan = { micro_batch = mb, replicas = replicas, schedule = { name = "1f1b" }, sync = { kind = "allreduce" } }
  if stale then
    plan.schedule = { name = "hetpipe", in_flight = nm }
    plan.sync = { kind = "wsp", staleness = ctx.options.staleness, servers = "sharded" }
  end
  return layout.judge(ctx, plan)
end

local function plan(ctx)
  local devices, why = layout.devices(ctx)
  if not devices then return nil, why end
  local nodes, tables = layout.nodes(devices), {}
  local policies = ctx.options.policy == "auto" and { "ED", "NP" } or { ctx.options.policy }
  local best, best_s, reason = nil, math.huge, nil
  for _, policy in ipairs(policies) do
    local workers = workers_of(nodes, policy)
    local k = 0
    for _, w in ipairs(workers) do k = math.max(k, #w.devices) end
    for _, recompute in ipairs { "none", "full" } do
      local limits = limits_of(ctx, devices, ctx.options.micro_batch, recompute)
      local nm = math.min(k, ctx.options.max_in_flight)
      while nm >= 1 and not hv.stopping() do -- the largest Nm that fits is the best one
        local verdict, text, handle = try(ctx, workers, nm, ctx.options.micro_batch, tables, limits, recompute)
        if not text then
          if verdict.iteration_s < best_s then best, best_s = handle, verdict.iteration_s hv.incumbent(handle) end
          break
        end
        reason = (not reason or text:find("^needs")) and text or reason
        nm = nm // 2
      end
    end
  end
  if best then return best end
  if reason and not reason:find("^needs") then
    local total = 0
    for _, d in ipairs(devices) do total = total + d.memory_bytes end
    local needs = ctx.model.parameters * layout.state_bytes(ctx.job, 1)
    reason = string.format("%s: each worker needs %s for weights and states, all devices together have %s", reason,
      layout.gib(needs), layout.gib(total))
  end
  return nil, reason
end

return {
  api = 1, id = "hetpipe", title = "HetPipe", kind = "planner",
  system = "HetPipe: Enabling Large DNN Training on (Whimpy) Heterogeneous GPU Clusters, USENIX ATC 2020",
  reference = "arXiv:2005.14038",
  summary = "Virtual workers of unequal GPUs, optimal cut inside; wave-synchronous updates where the job allows stale weights, else all-reduce.",
  needs = { model = "layers" },
  options = {
    { key = "policy", type = "choice", default = "auto", choices = { "auto", "ED", "NP" }, help = "worker = a share of every node (ED) or one node (NP)" },
    { key = "staleness", type = "integer", default = 0, min = 0, max = 64, help = "clock distance D between workers" },
    { key = "micro_batch", type = "integer", default = 1, min = 1, max = 1024, help = "sequences of one minibatch" },
    { key = "max_in_flight", type = "integer", default = 16, min = 1, max = 256, help = "largest number of concurrent minibatches Nm" },
  },
  plan = plan,
  claim = function(plan, ctx)
    local r = plan:table().replicas[1]
    local nm = r.stages[1].in_flight or 1
    return { minibatches_in_flight = nm, staleness_minibatches = global_staleness(nm, ctx.options.staleness),
      formula = "s_global = (D + 1)(s_local + 1) + s_local - 1" }
  end,
  selftest = function(t)
    t.equal("Nm 4, D 0: s_global", global_staleness(4, 0), 6, "catalogue: hetpipe")
    t.equal("Nm 4, D 4: s_global", global_staleness(4, 4), 22, "catalogue: hetpipe")
    t.equal("Nm 1, D 0: s_global", global_staleness(1, 0), 0, "catalogue: hetpipe")
    local ones, twos = { 1, 1, 1, 1, 1, 1 }, { 2, 2, 2, 2, 2, 2 }
    local free = hv.opt.partition { n = 6, parts = 2, load = { ones, twos }, order = "free" }
    t.near("6 layers, times 1 and 2", free.value, 4, 1e-9, "catalogue: hetpipe")
    local tight = hv.opt.partition { n = 6, parts = 2, load = { ones, twos }, memory = ones, capacity = { 3, 6 }, order = "free" }
    t.near("the fast GPU holds at most 3", tight.value, 6, 1e-9, "catalogue: hetpipe")
    -- the same as an integer program: x layers on the fast GPU, 6 - x on the slow one
    local lp = hv.opt.lp { sense = "min" }
    local x, top = lp:var { upper = 3, integer = true }, lp:var {}
    lp:row({ [x] = 1, [top] = -1 }, "<=", 0)
    lp:row({ [x] = -2, [top] = -1 }, "<=", -12)
    lp:objective { [top] = 1 }
    local s = lp:solve {}
    t.near("as an integer program", s.objective, 6, 1e-9, "catalogue: hetpipe")
    local w = workers_of({ { kind = "a", ids = { 1, 2, 3, 4 } }, { kind = "b", ids = { 5, 6 } } }, "ED")[1]
    t.equal("ED over nodes of 4 and 2: workers", w.count, 2, "by hand")
    t.equal("GPUs of each", #w.devices, 3, "by hand")
  end,
}
