-- The layout of a sequence to try for given degrees: every candidate of the system is priced on a
-- layer in the middle of the model (its passes, exchanges and buffers) with one micro-batch. The
-- fastest goes on to the search over degrees, where no plan fits the one of least memory. The best
-- plan then tries all of them.
local inventory = require "inventory"
local numbers = require "numbers"
local schemes = require "schemes"
local search = require "search"

local layouts = {}

-- What is asked for every point: attention heads of the model's layers, layouts by degrees.
local heads_of_model
local of_degrees, best_of_degrees = {}, {}

--- The largest number that divides the attention heads of every layer that has some, on a rank of
-- tp.
local function heads_of(ctx, tp)
  if not heads_of_model then
    heads_of_model = 0
    for _, layer in ipairs(ctx.model:layers()) do
      heads_of_model = numbers.gcd(heads_of_model, layer.heads)
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

--- The layout of least `figure` (time_s or bytes) for a point of the degrees, in a list; an empty
-- one where the system has none.
function layouts.least(ctx, point, figure)
  local key = ("%d/%d/%s"):format(point.tp, point.cp, figure)
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
    end
    list = { search.argmin(rows, function(row)
      return row[figure]
    end).cp }
  end
  best_of_degrees[key] = list
  return list
end

return layouts
