-- What plugins share: usable devices and nodes, degrees, and plans of equal stages. Not for search or cost.
local layout = {}

local GIB = 1024 ^ 3

function layout.gib(bytes) return string.format("%.1f GiB", bytes / GIB) end

-- Divisors of n in ascending order.
function layout.divisors(n)
  local list = {}
  for d = 1, n do if n % d == 0 then list[#list + 1] = d end end
  return list
end

function layout.gcd(a, b)
  while b ~= 0 do a, b = b, a % b end
  return a
end

-- Devices that can compute in the job's precision, in order of their numbers; nil and the reason when there are none.
function layout.devices(ctx)
  local list = {}
  for _, d in ipairs(ctx.cluster:devices()) do
    if d.flops_per_s and d.memory_bytes and d.class ~= "cpu" then list[#list + 1] = d end
  end
  if #list == 0 then return nil, "no device of the cluster computes in " .. ctx.job.precision end
  return list
end

-- Nodes made of these devices: list of {kind, ids, memory_bytes, flops_per_s (of all), node}; a node of two kinds counts as two.
function layout.nodes(devices)
  local list, last = {}, nil
  for _, d in ipairs(devices) do
    if not last or last.node ~= d.node or last.kind ~= d.kind then
      last = { node = d.node, kind = d.kind, fabric = d.fabric, ids = {}, memory_bytes = 0, flops_per_s = 0 }
      list[#list + 1] = last
    end
    last.ids[#last.ids + 1] = d.id
    last.memory_bytes = last.memory_bytes + d.memory_bytes
    last.flops_per_s = last.flops_per_s + d.flops_per_s
  end
  return list
end

-- Largest power of two up to `most` that divides n and the heads of every layer.
function layout.tensor_degree(ctx, n, most)
  local tp = 1
  while tp * 2 <= most and n % (tp * 2) == 0 do
    for _, l in ipairs(ctx.model:layers()) do
      if l.heads and (l.heads % (tp * 2) ~= 0 or (l.kv_heads or 0) % (tp * 2) ~= 0) then return tp end
    end
    tp = tp * 2
  end
  return tp
end

-- n layers over p stages as evenly as possible, the longer ones in the middle: list of {from, to}, half open.
function layout.equal(n, p)
  local list, at, base, extra = {}, 0, n // p, n % p
  local first = (p - extra) // 2
  for s = 1, p do
    local len = base + ((s > first and s <= first + extra) and 1 or 0)
    list[s] = { at, at + len }
    at = at + len
  end
  return list
end

-- A plan of equal stages: q = {ids, tp, pp, dp, cp, ep, micro_batch (per dp rank), batch, layers, zero, recompute,
-- sequence_parallel, schedule, chunks, sync}. Ranks in the usual order: tp fastest, then cp, dp, stages slowest.
function layout.plan(ctx, q)
  local cp, ep, chunks = q.cp or 1, q.ep or 1, q.chunks or 1
  local width = q.tp * cp * q.dp
  local stages, ranges = {}, q.layers or layout.equal(ctx.model.n_layers, q.pp * chunks)
  for s = 1, q.pp do
    local ids = {}
    for i = 1, width do ids[i] = q.ids[(s - 1) * width + i] end
    local layers = ranges[s]
    if chunks > 1 then
      layers = {}
      for v = 1, chunks do layers[v] = ranges[(v - 1) * q.pp + s] end
    end
    stages[s] = { devices = ctx.cluster:address(ids), layers = layers, tp = q.tp, dp = q.dp,
      sequence_parallel = q.sequence_parallel and q.tp > 1 or false, recompute = q.recompute or "none",
      zero = q.zero or 0 }
    if cp > 1 then stages[s].cp = cp end
    if ep > 1 then stages[s].ep = ep end
  end
  return { micro_batch = q.micro_batch * q.dp, schedule = q.schedule or { name = "1f1b" }, sync = q.sync,
    replicas = { { micro_batches = q.batch // (q.micro_batch * q.dp), stages = stages } } }
end

-- Judges a plan table: the verdict, and nil or the first broken rule in words (memory in GiB).
function layout.judge(ctx, plan)
  local handle = hv.plan.new(plan)
  local verdict, why = handle:eval()
  if not verdict then return nil, why, handle end
  local first = verdict.violations[1]
  if not first then return verdict, nil, handle end
  if first.code ~= "memory" then return verdict, first.text, handle end
  local worst
  for _, m in ipairs(verdict.memory) do
    if m.limit_bytes and (not worst or m.peak_bytes - m.limit_bytes > worst.peak_bytes - worst.limit_bytes) then worst = m end
  end
  if not worst then return verdict, first.text, handle end
  return verdict, layout.too_big(worst.peak_bytes, layout.kind(ctx, worst.device), worst.stage, worst.limit_bytes), handle
end

function layout.too_big(needs, kind, stage, has)
  return string.format("needs %s on %s stage %d, has %s", layout.gib(needs), kind, stage, layout.gib(has))
end

function layout.kind(ctx, id)
  for _, d in ipairs(ctx.cluster:devices()) do if d.id == id then return d.kind end end
  return "device " .. id
end

-- Bytes of weights, gradients and states per parameter when the states are shared by `holders`.
function layout.state_bytes(job, holders)
  return job.weight_bytes + job.grad_bytes + (job.master_bytes + job.optimizer_bytes) / holders
end

return layout
