-- Instances of the placement: vertices on unequal links (DT-FM, Yuan et al., NeurIPS 2022,
-- section 3). An instance is a table with
--   class             of every vertex; vertices of one class have equal links
--   delay_s, rate_bytes_per_s   [a][b] between classes, and [a][a] inside a class
--   stages            number of pipeline stages
--   dp_bytes, pp_bytes  gradients of a stage; activations between two stages
--   budget, seed      of the search
--   block             where a vertex stands for several nodes: how many
--   units             where it was made from a cluster: the devices {ids, kind} of every vertex
local links = require "links"
local numbers = require "numbers"

local network = {}

--- Are the links from two classes to every other class the same?
local function same_links(instance, a, b)
  local delay_s, rate = instance.delay_s, instance.rate_bytes_per_s
  for c = 1, #delay_s do
    local is_other = c ~= a and c ~= b
    if is_other and (delay_s[a][c] ~= delay_s[b][c] or rate[a][c] ~= rate[b][c]) then
      return false
    end
  end
  return true
end

--- Joins the classes of an instance whose vertices are whole nodes with a class each: nodes of one
-- kind with equal links become one class, so that costs that are remembered by class serve more
-- groups. Changes the instance and gives it back. O(vertices² · classes).
function network.merge(instance)
  local heads = {} -- by new class: its first old class
  local second_of = {} -- by new class: its second old class
  local class = {}
  for n = 1, #instance.delay_s do
    for c, head in ipairs(heads) do
      if instance.units[n].kind == instance.units[head].kind
          and same_links(instance, n, head) then
        class[n] = c
        second_of[c] = second_of[c] or n
        break
      end
    end
    if not class[n] then
      heads[#heads + 1] = n
      class[n] = #heads
    end
  end
  local delay_s = {}
  local rate = {}
  for c, head in ipairs(heads) do
    delay_s[c] = {}
    rate[c] = {}
    for d, other in ipairs(heads) do
      local to = c == d and second_of[c] or other
      delay_s[c][d] = instance.delay_s[head][to]
      rate[c][d] = instance.rate_bytes_per_s[head][to]
    end
  end
  instance.class = class
  instance.delay_s = delay_s
  instance.rate_bytes_per_s = rate
  return instance
end

--- How many nodes of one group make a block, so that there are at most `max_blocks` blocks: of the
-- sizes up to twice the least one, the first that divides the batch.
local function block_size(nodes, max_blocks, batch)
  local count = {}
  for _, node in ipairs(nodes) do
    local key = node.group .. node.kind
    count[key] = (count[key] or 0) + 1
  end
  local function n_blocks(size)
    local sum = 0
    for _, n in pairs(count) do
      sum = sum + n // size
    end
    return sum
  end
  local least = 1
  while n_blocks(least) > max_blocks do
    least = least + 1
  end
  for size = least, 2 * least do
    if batch % size == 0 then
      return size
    end
  end
  return least
end

--- Blocks of so many nodes of one group and kind; the nodes that are left over stay idle.
local function in_blocks(nodes, size)
  local blocks = {}
  local open = {} -- by group and kind: the block that is being filled
  for _, node in ipairs(nodes) do
    local key = node.group .. node.kind
    local block = open[key] or { kind = node.kind, group = node.group, ids = {}, n_nodes = 0 }
    open[key] = block
    block.n_nodes = block.n_nodes + 1
    table.move(node.ids, 1, #node.ids, #block.ids + 1, block.ids)
    if block.n_nodes == size then
      blocks[#blocks + 1] = block
      open[key] = nil
    end
  end
  return blocks
end

--- Sets delay and rate from one node to all nodes; to itself, between its first and last device.
local function set_links(ctx, instance, nodes, n)
  local first_id = nodes[n].ids[1]
  instance.delay_s[n] = {}
  instance.rate_bytes_per_s[n] = {}
  for m, other in ipairs(nodes) do
    local far_id = m ~= n and other.ids[1] or nodes[n].ids[#nodes[n].ids]
    local delay_s = 0
    if first_id ~= far_id then
      delay_s = links.link(ctx, first_id, far_id).latency_s
    end
    instance.delay_s[n][m] = delay_s
    instance.rate_bytes_per_s[n][m] = links.bandwidth(ctx, first_id, far_id)
  end
end

--- The instance of a cluster, without stages, dp_bytes and pp_bytes: vertices of `size` devices
-- inside the nodes (rows of inventory.nodes). More than `max_nodes` nodes are placed in blocks of
-- one group and kind. O(vertices² · classes).
function network.of_cluster(ctx, nodes, size, max_nodes, budget)
  local instance = { class = {}, units = {}, delay_s = {}, rate_bytes_per_s = {},
    budget = budget, seed = ctx.seed }
  local block = 1
  if #nodes > max_nodes then
    block = block_size(nodes, max_nodes, ctx.job.global_batch)
  end
  if block > 1 then
    nodes = in_blocks(nodes, block)
    instance.block = block
  end
  local n_ids = size * block
  for n, node in ipairs(nodes) do
    for first = 1, #node.ids - n_ids + 1, n_ids do
      instance.units[#instance.units + 1] = { ids = numbers.slice(node.ids, first, n_ids),
        kind = node.kind }
      instance.class[#instance.class + 1] = n
    end
    set_links(ctx, instance, nodes, n)
  end
  if #instance.class == #nodes then
    return network.merge(instance)
  end
  return instance
end

--- The instance for so many stages, which is not set: all vertices where they give replicas that
-- divide the batch, else nil. Of blocks it takes the first ones that do, for depths that divide the
-- layers.
function network.for_stages(ctx, instance, stages)
  local block = instance.block or 1
  local batch = ctx.job.global_batch
  local n = #instance.class // stages -- vertices per stage
  if block == 1 then
    local is_whole = #instance.class % stages == 0 and batch % n == 0
    return is_whole and instance or nil
  end
  while n > 0 and batch % (n * block) ~= 0 do
    n = n - 1
  end
  if n == 0 or ctx.model.n_layers % stages ~= 0 then
    return nil
  end
  local part = {}
  for key, value in pairs(instance) do
    part[key] = value
  end
  part.class = numbers.slice(instance.class, 1, n * stages)
  part.units = numbers.slice(instance.units, 1, n * stages)
  return part
end

--- An instance of regions with so many devices each, a class per region. Delays in ms and rates in
-- Gbit/s of every pair; one half of the matrices is enough. `rest` holds the other keys of the
-- instance; it is changed and given back.
function network.of_regions(sizes, delay_ms, rate_gbit_per_s, rest)
  rest.class = {}
  rest.delay_s = {}
  rest.rate_bytes_per_s = {}
  for a, n in ipairs(sizes) do
    rest.delay_s[a] = {}
    rest.rate_bytes_per_s[a] = {}
    for b in ipairs(sizes) do
      rest.delay_s[a][b] = (delay_ms[a][b] or delay_ms[b][a]) / 1e3
      rest.rate_bytes_per_s[a][b] = (rate_gbit_per_s[a][b] or rate_gbit_per_s[b][a]) * 1e9 / 8
    end
    for _ = 1, n do
      rest.class[#rest.class + 1] = a
    end
  end
  return rest
end

return network
