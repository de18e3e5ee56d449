-- The layouts of a sequence worth trying for given degrees: every candidate of the system is priced
-- on a layer in the middle of the model (its passes, exchanges and buffers) with one micro-batch,
-- the fastest and the one of least memory go on to the search over degrees. The best plan then
-- tries all of them.
local inventory = require "inventory"
local schemes = require "schemes"

local layouts = {}

-- What is asked for every point: attention heads of the model's layers, layouts by degrees.
local heads_of_model
local of_degrees, best_of_degrees = {}, {}

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
  local key = point.tp .. "/" .. point.cp
  if not of_degrees[key] then
    of_degrees[key] = { schemes[ctx.system.id].candidates { ranks = point.cp,
      heads = heads_of(ctx, point.tp), sequence = ctx.job.sequence, causal = ctx.model.causal,
      options = ctx.options } }
  end
  return table.unpack(of_degrees[key])
end

--- Fills a layout with the seconds and the bytes of a layer of a micro-batch.
local function price(ctx, ids, point, cp)
  local middle = (ctx.model.n_layers - 1) // 2
  local pass = hv.cost.stage { devices = ctx.cluster:address(ids), layers = { middle, middle + 1 },
    embedding = false, head = false, tp = point.tp, sequence_parallel = point.tp > 1, cp = cp,
    micro_batch = 1 }
  return { cp = cp, time_s = pass.forward_s + pass.backward_s, bytes = pass.memory.peak_bytes }
end

local function by_time(a, b)
  if a.time_s ~= b.time_s then
    return a.time_s < b.time_s
  end
  return a.rank < b.rank
end

--- The layouts to go on with: the fastest, and the one of least memory where that is another.
local function chosen(rows)
  table.sort(rows, by_time)
  local least = rows[1]
  for _, row in ipairs(rows) do
    least = row.bytes < least.bytes and row or least
  end
  return least == rows[1] and { least.cp } or { rows[1].cp, least.cp }
end

--- The layouts that the search tries for a point of the degrees, the fastest first.
function layouts.best(ctx, point)
  local key = point.tp .. "/" .. point.cp
  if best_of_degrees[key] then
    return best_of_degrees[key]
  end
  local list = layouts.all(ctx, point)
  if #list > 1 then
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
  best_of_degrees[key] = list
  return list
end

return layouts
