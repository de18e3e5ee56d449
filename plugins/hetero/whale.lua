-- Whale: load in proportion to speed, moved away from devices that run out of memory.
local layout = require "layout"

-- Memory-constrained load balance of section 3.3.1 in whole units. speed[i]; util(i, units) = share of i's memory in
-- use. Returns the units of each, or nil and the number of a device that stays too full.
local function balance(speed, total, util, least)
  local share = hv.opt.distribute { total = total, time = speed, objective = "ratio",
    min = least and (function() local m = {} for i = 1, #speed do m[i] = least end return m end)() or nil }
  if not share then return nil, 1 end
  local units, closed = share.counts, {}
  for _ = 1, total * #speed do
    local peak, peak_util
    for i = 1, #speed do
      local u = util(i, units[i])
      if u > 1 and (not peak or u > peak_util) then peak, peak_util = i, u end
    end
    if not peak then return units end
    local valley, lowest
    for i = 1, #speed do
      if not closed[i] and util(i, units[i]) <= 1 then
        local busy = units[i] / speed[i]
        if not valley or busy < lowest then valley, lowest = i, busy end
      end
    end
    if not valley or units[peak] <= (least or 0) then return nil, peak, units end
    if util(valley, units[valley] + 1) > 1 then
      closed[valley] = true
    else
      units[peak], units[valley] = units[peak] - 1, units[valley] + 1
    end
  end
  return nil, 1, units
end

-- Stages: `dp` nodes of one kind each, most memory per device first (early stages keep most activations).
local function stages_of(ctx, nodes, dp)
  local kinds, order, list = {}, {}, {}
  for _, n in ipairs(nodes) do
    local key = n.kind .. "/" .. #n.ids
    if not kinds[key] then kinds[key] = {} order[#order + 1] = kinds[key] end
    table.insert(kinds[key], n)
  end
  table.sort(order, function(a, b)
    return a[1].memory_bytes / #a[1].ids > b[1].memory_bytes / #b[1].ids
  end)
  for _, group in ipairs(order) do
    local tp = layout.tensor_degree(ctx, #group[1].ids, 8)
    local inside = #group[1].ids // tp -- data-parallel ranks a node holds
    if dp % inside ~= 0 then return nil end
    local per_stage = dp // inside
    for at = 1, #group - per_stage + 1, per_stage do
      local s = { kind = group[1].kind, tp = tp, dp = dp, ids = {}, flops_per_s = 0 }
      for i = at, at + per_stage - 1 do
        for _, id in ipairs(group[i].ids) do s.ids[#s.ids + 1] = id end
        s.flops_per_s = s.flops_per_s + group[i].flops_per_s
      end
      list[#list + 1] = s
    end
  end
  return list
end

-- Memory share of stage s with n layers at its place in the pipeline, remembered by shape.
local function memory_of(ctx, stages, mb, batch, recompute)
  local memo = {}
  return function(i, n)
    local s = stages[i]
    local depth = math.min(#stages - i + 1, batch // mb)
    local first, last = i == 1, i == #stages
    local key = string.format("%s/%d/%d/%d/%s/%s", s.kind, #s.ids, n, depth, first, last)
    if not memo[key] then
      local total = ctx.model.n_layers
      n = math.max(1, math.min(n, total))
      local from = last and total - n or (first and 0 or math.min(1, total - n))
      memo[key] = hv.cost.memory { devices = ctx.cluster:address(s.ids), layers = { from, from + n }, tp = s.tp, dp = s.dp,
        sequence_parallel = s.tp > 1, recompute = recompute, zero = 1, micro_batch = mb, in_flight = depth }
    end
    return memo[key]
  end
end

local function build(ctx, stages, units, mb, recompute)
  local rows, at = {}, 0
  for i, s in ipairs(stages) do
    rows[i] = { devices = ctx.cluster:address(s.ids), layers = { at, at + units[i] }, tp = s.tp, dp = s.dp,
      sequence_parallel = s.tp > 1, recompute = recompute, zero = 1 }
    at = at + units[i]
  end
  return { micro_batch = mb, schedule = { name = "1f1b" },
    replicas = { { micro_batches = ctx.job.global_batch // mb, stages = rows } } }
end

-- One pipeline of `stages`: balance, judge; verdict, reason, handle.
local function try(ctx, stages, mb, recompute)
  local n, speed = ctx.model.n_layers, {}
  for i, s in ipairs(stages) do speed[i] = s.flops_per_s end
  local memory = memory_of(ctx, stages, mb, ctx.job.global_batch, recompute)
  local units, full, left = balance(speed, n, function(i, k)
    local m = memory(i, k)
    return m.peak_bytes / m.limit_bytes
  end, 1)
  if not units then
    local m = memory(full, left and left[full] or 1)
    return nil, layout.too_big(m.peak_bytes, stages[full].kind, full, m.limit_bytes)
  end
  return layout.judge(ctx, build(ctx, stages, units, mb, recompute))
end

local function plan(ctx)
  local devices, why = layout.devices(ctx)
  if not devices then return nil, why end
  local nodes, batch, n = layout.nodes(devices), ctx.job.global_batch, ctx.model.n_layers
  local best, best_s, reason, tries = nil, math.huge, nil, 0
  for _, dp in ipairs(layout.divisors(batch)) do
    local stages = dp <= #devices and stages_of(ctx, nodes, dp) or nil
    if stages and #stages >= 1 and #stages <= n then
      for _, recompute in ipairs { "none", "selective", "full" } do
        for _, k in ipairs { 1, 2, 4 } do
          if batch % (dp * k) == 0 and tries < 30 and not hv.stopping() then
            tries = tries + 1
            local verdict, text, handle = try(ctx, stages, dp * k, recompute)
            if text then
              reason = text
            elseif verdict.iteration_s < best_s then
              best, best_s = handle, verdict.iteration_s
              hv.incumbent(handle)
            end
          end
        end
      end
    end
  end
  if best then return best end
  return nil, reason or string.format("no pipeline of whole nodes has between 1 and %d stages", n)
end

return {
  api = 1, id = "whale", title = "Whale", kind = "planner",
  system = "Whale: Efficient Giant Model Training over Heterogeneous GPUs, USENIX ATC 2022", reference = "arXiv:2011.09208",
  summary = "Layers in proportion to the speed of each stage, shifted where memory runs out; most memory first.",
  needs = { model = "layers" },
  options = {},
  plan = plan,
  selftest = function(t)
    local speed = { 2, 2, 1, 1 }
    local free = balance(speed, 48, function() return 0 end)
    t.equal("batch 48 on speeds 2 2 1 1", table.concat(free, " "), "16 16 8 8", "catalogue: whale")
    local caps = { 32, 32, 10, 10 }
    local tight = balance(speed, 48, function(i, k) return (4 + k) / caps[i] end)
    t.equal("with 4 GB fixed, 1 GB per sample, 10 GB cards", table.concat(tight, " "), "18 18 6 6", "catalogue: whale")
    t.near("busiest time after shifting", tight[1] / speed[1], 9, 0, "catalogue: whale")
    t.near("busiest time before", free[1] / speed[1], 8, 0, "catalogue: whale")
    local sum = 0
    for _, k in ipairs(tight) do sum = sum + k end
    t.equal("the shares keep the batch", sum, 48, "catalogue: whale")
    t.equal("too little memory is infeasible", balance(speed, 48, function(i, k) return (4 + k) / 10 end), nil, "by hand")
  end,
}
