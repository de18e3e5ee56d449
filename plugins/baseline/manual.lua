-- The layout somebody has today, taken as it is.
local layout = require "layout"

-- "20,20,24" → ranges from 0; nil and the reason when the counts do not add up.
local function ranges(text, n, stages)
  local list, at = {}, 0
  for count in text:gmatch("[^,]+") do
    local k = math.tointeger(tonumber(count))
    if not k or k < 1 then return nil, "layers: expected counts such as 20,20,24, found '" .. text .. "'" end
    list[#list + 1] = { at, at + k }
    at = at + k
  end
  if #list ~= stages or at ~= n then
    return nil, string.format("layers: %d counts that add up to %d, expected %d that add up to %d", #list, at, stages, n)
  end
  return list
end

-- Device numbers, node groups in the order of the names given ("v,a"); groups not named follow.
local function ordered(devices, order)
  local ids, taken = {}, {}
  for name in order:gmatch("[^,]+") do
    local before = #ids
    for _, d in ipairs(devices) do
      if d.group == name and not taken[d.id] then ids[#ids + 1], taken[d.id] = d.id, true end
    end
    if #ids == before then return nil, "order: no node group is called '" .. name .. "'" end
  end
  for _, d in ipairs(devices) do if not taken[d.id] then ids[#ids + 1] = d.id end end
  return ids
end

local function plan(ctx)
  local o, n, batch = ctx.options, ctx.model.n_layers, ctx.job.global_batch
  local ids, why = ordered(ctx.cluster:devices(), o.order)
  if not ids then return nil, why end
  local tp, pp, cp = o.tp, o.pp, o.cp
  local dp = o.dp > 0 and o.dp or #ids // (tp * pp * cp)
  local used = tp * pp * cp * dp
  if dp < 1 or used > #ids then
    return nil, string.format("tp %d x pp %d x cp %d x dp %d are %d devices, the cluster has %d", tp, pp, cp,
      math.max(dp, 1), tp * pp * cp * math.max(dp, 1), #ids)
  end
  if batch % (o.micro_batch * dp) ~= 0 then
    return nil, string.format("micro_batch %d x dp %d = %d does not divide the batch of %d", o.micro_batch, dp,
      o.micro_batch * dp, batch)
  end
  if pp * o.chunks > n then return nil, string.format("%d stages for %d layers", pp * o.chunks, n) end
  local layers
  if o.layers ~= "equal" then
    layers, why = ranges(o.layers, n, pp * o.chunks)
    if not layers then return nil, why end
  end
  local name = o.schedule ~= "auto" and o.schedule or (o.chunks > 1 and "interleaved" or "1f1b")
  local handle
  local q = { ids = ids, tp = tp, pp = pp, dp = dp, cp = cp, ep = o.ep, chunks = o.chunks, micro_batch = o.micro_batch,
    batch = batch, layers = layers, zero = o.zero, recompute = o.recompute, sequence_parallel = o.sequence_parallel,
    schedule = { name = name }, sync = { kind = "allreduce", algorithm = o.sync } }
  local _
  _, why, handle = layout.judge(ctx, layout.plan(ctx, q))
  if why and not (o.allow_oom and why:find("^needs")) then return nil, why end
  return handle
end

return {
  api = 1, id = "manual", title = "Manual", kind = "baseline",
  system = "The layout in use today", reference = "hetviz, formats.md, strategy manual",
  summary = "Degrees, split and schedule exactly as given, judged as they are.",
  needs = { model = "layers" },
  options = {
    { key = "tp", type = "integer", default = 1, min = 1, max = 1024, help = "tensor-parallel degree" },
    { key = "pp", type = "integer", default = 1, min = 1, max = 1024, help = "pipeline stages" },
    { key = "dp", type = "integer", default = 0, min = 0, max = 1048576, help = "data-parallel ranks; 0 = all devices that are left" },
    { key = "cp", type = "integer", default = 1, min = 1, max = 1024, help = "context-parallel degree" },
    { key = "ep", type = "integer", default = 1, min = 1, max = 1024, help = "expert-parallel degree" },
    { key = "chunks", type = "integer", default = 1, min = 1, max = 64, help = "model chunks per pipeline rank" },
    { key = "micro_batch", type = "integer", default = 1, min = 1, max = 65536, help = "sequences per data-parallel rank and micro-batch" },
    { key = "zero", type = "integer", default = 0, min = 0, max = 3, help = "ZeRO stage" },
    { key = "recompute", type = "string", default = "none", help = "none, selective, full or units joined by +" },
    { key = "sequence_parallel", type = "boolean", default = false, help = "shard norms and dropout over the tensor-parallel ranks" },
    { key = "schedule", type = "string", default = "auto", help = "pipeline schedule; auto = 1f1b, or interleaved with chunks" },
    { key = "layers", type = "string", default = "equal", help = "layers per stage, such as 20,20,24,16" },
    { key = "order", type = "string", default = "", help = "node groups in stage order, such as v,a (default: file order)" },
    { key = "sync", type = "choice", default = "auto", choices = { "auto", "ring", "tree", "hierarchical" }, help = "all-reduce algorithm" },
    { key = "allow_oom", type = "boolean", default = false, help = "judge it even where it does not fit the memory" },
  },
  plan = plan,
  selftest = function(t)
    local r = ranges("20,20,24,16", 80, 4)
    t.equal("third range of 20,20,24,16 starts at", r[3][1], 40, "by hand")
    t.equal("and ends at", r[3][2], 64, "by hand")
    t.equal("counts must add up", ranges("20,20", 80, 2), nil, "by hand")
    local e = layout.equal(10, 4)
    t.equal("10 layers over 4 stages, the longer ones in the middle", e[2][2] - e[2][1], 3, "by hand")
  end,
}
