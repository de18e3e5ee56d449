-- What most people do: one grid of equal stages over all devices, as if the devices were equal.
local layout = require "layout"

local EVALUATIONS = 20
local RECOMPUTE = { "none", "selective", "full" }

-- All devices; then, should nothing fit, without the kind of least memory, and so on.
local function pools(devices)
  local list = { devices }
  while true do
    local least, kinds = math.huge, {}
    for _, d in ipairs(list[#list]) do
      least, kinds[d.kind] = math.min(least, d.memory_bytes), true
    end
    local rest = {}
    for _, d in ipairs(list[#list]) do if d.memory_bytes > least then rest[#rest + 1] = d end end
    if #rest == 0 then return list end
    list[#list + 1] = rest
  end
end

-- Degrees that the pool, the batch and the layers allow.
local function grid(ctx, devices)
  local nodes, common, list = layout.nodes(devices), 0, {}
  for _, n in ipairs(nodes) do common = layout.gcd(common, #n.ids) end
  local most = layout.tensor_degree(ctx, common, ctx.options.max_tp)
  for _, tp in ipairs(layout.divisors(most)) do
    for _, pp in ipairs(layout.divisors(#devices // tp)) do
      local dp = #devices // (tp * pp)
      if pp <= ctx.model.n_layers then
        for _, mb in ipairs { 1, 2, 4 } do
          if ctx.job.global_batch % (mb * dp) == 0 then
            list[#list + 1] = { tp = tp, pp = pp, dp = dp, micro_batch = mb }
          end
        end
      end
    end
  end
  return list
end

-- Rough time and memory of a candidate; the judge has the last word.
local function estimate(ctx, c, tables, kinds, least)
  local key = c.tp .. "/" .. c.micro_batch .. "/" .. c.recompute
  tables[key] = tables[key] or hv.cost.layers { tp = c.tp, micro_batch = c.micro_batch, recompute = c.recompute,
    sequence_parallel = c.tp > 1 }
  local t, n = tables[key], ctx.model.n_layers
  local m, len = ctx.job.global_batch // (c.micro_batch * c.dp), math.ceil(n / c.pp)
  local slowest = 0
  for _, kind in ipairs(kinds) do slowest = math.max(slowest, t:time(1, len, kind, "both")) end
  local parameters = t:bytes(1, len, "parameters")
  local ends = ctx.model.parameters / n / c.tp -- embedding and head are of the order of a layer
  c.time = (m + c.pp - 1) * slowest
  c.bytes = (parameters + ends) * layout.state_bytes(ctx.job, c.dp) + math.min(c.pp, m) * t:bytes(1, len, "saved")
  c.fits = c.bytes < 1.1 * least
end

local function candidates(ctx, devices)
  local list, tables, seen, kinds, least = {}, {}, {}, {}, math.huge
  for _, d in ipairs(devices) do
    if not seen[d.kind] then seen[d.kind] = true kinds[#kinds + 1] = d.kind end
    least = math.min(least, d.memory_bytes)
  end
  for _, g in ipairs(grid(ctx, devices)) do
    for _, r in ipairs(RECOMPUTE) do
      local c = { tp = g.tp, pp = g.pp, dp = g.dp, micro_batch = g.micro_batch, recompute = r }
      estimate(ctx, c, tables, kinds, least)
      list[#list + 1] = c
    end
  end
  table.sort(list, function(a, b)
    if a.fits ~= b.fits then return a.fits end
    if a.fits then return a.time < b.time end
    return a.bytes < b.bytes
  end)
  return list
end

-- Best plan of a pool, or nil and why the most promising one fails.
local function best_of(ctx, devices)
  local ids, best, best_s, reason = {}, nil, math.huge, nil
  for i, d in ipairs(devices) do ids[i] = d.id end
  local list = candidates(ctx, devices)
  for i, c in ipairs(list) do
    if i > EVALUATIONS or (i > 3 and not c.fits) or hv.stopping() then break end
    local verdict, why, handle = layout.judge(ctx, layout.plan(ctx, { ids = ids, tp = c.tp, pp = c.pp, dp = c.dp,
      micro_batch = c.micro_batch, batch = ctx.job.global_batch, zero = ctx.options.zero, recompute = c.recompute,
      sequence_parallel = true }))
    if why then
      if not reason or why:find("^needs") then reason = reason or why end
    elseif verdict.iteration_s < best_s then
      best, best_s = handle, verdict.iteration_s
      hv.incumbent(handle)
    end
    hv.progress(math.min(1, i / math.min(EVALUATIONS, #list)))
  end
  if best then return best end
  return nil, reason or string.format("no grid of %d devices divides the batch of %d", #devices, ctx.job.global_batch)
end

return {
  api = 1, id = "uniform", title = "Uniform", kind = "baseline",
  system = "Megatron-LM style 3D grid: Narayanan et al., SC 2021", reference = "arXiv:2104.04473",
  summary = "Best grid of tensor, pipeline and data parallelism with equal stages, all devices taken as equal.",
  needs = { model = "layers" },
  options = {
    { key = "zero", type = "integer", default = 1, min = 0, max = 1, help = "ZeRO stage of the optimizer states" },
    { key = "max_tp", type = "integer", default = 8, min = 1, max = 64, help = "largest tensor-parallel degree" },
  },
  plan = function(ctx)
    local devices, why = layout.devices(ctx)
    if not devices then return nil, why end
    local first
    for _, pool in ipairs(pools(devices)) do
      local plan, reason = best_of(ctx, pool)
      if plan then return plan end
      first = first or reason
    end
    return nil, first
  end,
  selftest = function(t)
    local p = pools { { kind = "a", memory_bytes = 3 }, { kind = "b", memory_bytes = 1 }, { kind = "c", memory_bytes = 2 } }
    t.equal("pools of three kinds", #p, 3, "by hand")
    t.equal("the last pool is the kind of most memory", p[3][1].kind, "a", "by hand")
    t.equal("divisors of 28", #layout.divisors(28), 6, "by hand")
    t.equal("gcd of 8 and 12", layout.gcd(8, 12), 4, "by hand")
  end,
}
