-- The layouts of a sequence worth trying for given degrees: every candidate of the system is priced
-- on a layer in the middle of the model (its passes, exchanges and buffers), the fastest and the
-- one of least memory go on to the search over degrees. The best plan then tries all of them.
local inventory = require "inventory"
local schemes = require "schemes"

local layouts = {}

-- Fastest candidates that are kept.
local KEPT = 2

-- Attention heads of the model's layers, lists by their question: both are asked for every point.
local heads_of_model
local known = {}

--- Heads that every layer's count is a multiple of, on a rank of tp.
local function heads_of(ctx, tp)
  if not heads_of_model then
    heads_of_model = math.huge
    for _, layer in ipairs(ctx.model:layers()) do
      heads_of_model = math.min(heads_of_model, layer.heads)
    end
  end
  return heads_of_model // tp
end

--- All layouts of a system over point.cp ranks; or an empty list and why there is none.
function layouts.all(ctx, point)
  return schemes[ctx.system.id].candidates { ranks = point.cp, heads = heads_of(ctx, point.tp),
    sequence = ctx.job.sequence, causal = ctx.model.causal, options = ctx.options }
end

--- Fills a layout with the seconds and the bytes of a layer of a micro-batch.
local function price(ctx, ids, point, cp)
  local middle = (ctx.model.n_layers - 1) // 2
  local pass = hv.cost.stage { devices = ctx.cluster:address(ids), layers = { middle, middle + 1 },
    embedding = false, head = false, tp = point.tp, sequence_parallel = point.tp > 1, cp = cp,
    micro_batch = point.micro_batch }
  return { cp = cp, time_s = pass.forward_s + pass.backward_s, bytes = pass.memory.peak_bytes }
end

local function by_time(a, b)
  if a.time_s ~= b.time_s then
    return a.time_s < b.time_s
  end
  return a.rank < b.rank
end

--- The rows to go on with: the fastest, and the one of least memory behind them.
local function chosen(rows)
  table.sort(rows, by_time)
  local list = {}
  local least = rows[1]
  for i, row in ipairs(rows) do
    if i <= KEPT then
      list[i] = row.cp
    end
    least = row.bytes < least.bytes and row or least
  end
  for i = 1, #list do
    if rows[i] == least then
      return list
    end
  end
  list[#list + 1] = least.cp
  return list
end

--- The layouts that the search tries for a point of the degrees, the fastest first.
function layouts.best(ctx, point)
  local key = ("%d/%d/%d"):format(point.tp, point.cp, point.micro_batch)
  if known[key] then
    return known[key]
  end
  local list = layouts.all(ctx, point)
  if #list > KEPT then
    local ids, rows = {}, {}
    for i, device in ipairs(inventory.priced(ctx)) do
      ids[i] = i <= point.tp * point.cp and device.id or nil
    end
    for i, cp in ipairs(list) do
      rows[i] = price(ctx, ids, point, cp)
      rows[i].rank = i
    end
    list = chosen(rows)
  end
  known[key] = list
  return list
end

return layouts
