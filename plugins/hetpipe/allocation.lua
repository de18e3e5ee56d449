-- Allocation policies (HetPipe, section 7): which GPUs form a virtual worker. A worker is a list of
-- { node, ids }. A policy gives choices { n = number of workers, make = function that gives their
-- list }, so that the lists of a large cluster need not exist at the same time.
local inventory = require "inventory"
local numbers = require "numbers"

local allocation = {}

--- `n` equal workers over these nodes: each takes its part of the GPUs of every node.
local function deal_gpus(nodes, n)
  local list = {}
  for w = 1, n do
    list[w] = {}
    for i, node in ipairs(nodes) do
      local per_worker = #node.ids // n
      list[w][i] = { node = node,
        ids = numbers.slice(node.ids, (w - 1) * per_worker + 1, per_worker) }
    end
  end
  return list
end

--- NP: every node is a worker.
function allocation.node_partition(nodes)
  return { { n = #nodes, make = function()
    local list = {}
    for i, node in ipairs(nodes) do
      list[i] = { { node = node, ids = node.ids } }
    end
    return list
  end } }
end

--- Nodes by kind and size: lists in the order of first mention.
local function equal_nodes(nodes)
  local lists = {}
  local by_key = {}
  for _, node in ipairs(nodes) do
    local key = node.kind .. "/" .. #node.ids
    if not by_key[key] then
      by_key[key] = {}
      lists[#lists + 1] = by_key[key]
    end
    table.insert(by_key[key], node)
  end
  return lists
end

--- The workers of `n_blocks` blocks of nodes, each with its part of every list of equal nodes.
local function workers_of_blocks(lists, n_blocks)
  local workers = {}
  for block = 1, n_blocks do
    local nodes = {}
    for _, list in ipairs(lists) do
      local per_block = #list // n_blocks
      table.move(list, (block - 1) * per_block + 1, block * per_block, #nodes + 1, nodes)
    end
    local dealt = deal_gpus(nodes, inventory.node_size(nodes))
    table.move(dealt, 1, #dealt, #workers + 1, workers)
  end
  return workers
end

--- ED: equal workers, one GPU (or an equal part) of every node. A large cluster is first cut into
-- blocks with the same mix of nodes: one choice per number of blocks, most blocks first.
function allocation.equal_distribution(nodes)
  local lists = equal_nodes(nodes)
  local size = inventory.node_size(nodes)
  local common = 0
  for _, list in ipairs(lists) do
    common = numbers.gcd(common, #list)
  end
  local divisors = numbers.divisors(common)
  local choices = {}
  for d = #divisors, 1, -1 do
    local n_blocks = divisors[d]
    choices[#choices + 1] = { n = n_blocks * size,
      make = function() return workers_of_blocks(lists, n_blocks) end }
  end
  return choices
end

--- Equal workers of several GPUs of every node, for models that one GPU of each does not hold: one
-- choice per smaller number of workers that divides the GPUs of all nodes, most workers first.
function allocation.larger(nodes)
  local divisors = numbers.divisors(inventory.node_size(nodes))
  local choices = {}
  for d = #divisors - 1, 1, -1 do
    choices[#choices + 1] = { n = divisors[d],
      make = function() return deal_gpus(nodes, divisors[d]) end }
  end
  return choices
end

--- Nodes by falling speed; equal nodes stay in the order of the list.
local function by_speed(nodes)
  local sorted = {}
  local position = {}
  for i, node in ipairs(nodes) do
    sorted[i] = node
    position[node] = i
  end
  table.sort(sorted, function(a, b)
    if a.flops_per_s ~= b.flops_per_s then
      return a.flops_per_s > b.flops_per_s
    end
    return position[a] < position[b]
  end)
  return sorted
end

--- HD: the strongest node joined with the weakest; each pair gives two workers with half of both
-- nodes, or one where the GPUs cannot be halved (VVQQ, VVQQ, RRGG, RRGG for V > R > G > Q). An odd
-- node is a worker of its own.
function allocation.hybrid_distribution(nodes)
  local sorted = by_speed(nodes)
  local n_pairs = #sorted // 2
  local function pair_of(i)
    local pair = { sorted[i], sorted[#sorted + 1 - i] }
    return pair, inventory.node_size(pair) % 2 == 0 and 2 or 1
  end
  local n = #sorted % 2
  for i = 1, n_pairs do
    n = n + select(2, pair_of(i))
  end
  return { { n = n, make = function()
    local list = {}
    for i = 1, n_pairs do
      local dealt = deal_gpus(pair_of(i))
      table.move(dealt, 1, #dealt, #list + 1, list)
    end
    if #sorted % 2 == 1 then
      local middle = sorted[n_pairs + 1]
      list[#list + 1] = { { node = middle, ids = middle.ids } }
    end
    return list
  end } }
end

return allocation
