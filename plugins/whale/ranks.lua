-- Ranks: groups of tensor-parallel devices inside nodes, their lists of devices, and the reason
-- where one of them lacks memory.
local deal = require "deal"
local numbers = require "numbers"
local prices = require "prices"

local ranks = {}

--- The devices of rows { ids }, one row after the other.
function ranks.join(rows)
  local ids = {}
  for _, row in ipairs(rows) do
    table.move(row.ids, 1, #row.ids, #ids + 1, ids)
  end
  return ids
end

--- The first device of every tensor-parallel group of a list of devices.
function ranks.heads(ids, tp)
  local heads = {}
  for i = 1, #ids, tp do
    heads[#heads + 1] = ids[i]
  end
  return heads
end

--- Groups of tp devices inside the nodes: list of { kind, ids, flops_per_s, memory_bytes }.
function ranks.of_nodes(nodes, tp)
  local list = {}
  for _, node in ipairs(nodes) do
    for from = 1, #node.ids - tp + 1, tp do
      list[#list + 1] = {
        kind = node.kind, ids = numbers.slice(node.ids, from, tp),
        flops_per_s = node.flops_per_s, memory_bytes = node.memory_bytes,
      }
    end
  end
  return list
end

--- The reason why stage number `stage` on devices of row.kind lacks memory for the load `item`, and
-- the factor by which it needs more than there is. Nothing without an item.
function ranks.shortage(ctx, stage, item, row)
  if not item then
    return nil
  end
  local use = deal.use(item)
  return prices.short(ctx, stage, use * item.cap, row), use
end

return ranks
