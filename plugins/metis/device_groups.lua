-- Sizes of the groups of devices that become pipeline stages (Metis, USENIX ATC 2024, section 4):
-- powers of two that add up to all devices, and the orders of these sizes that are tried.
local device_groups = {}

--- The sizes of several blocks in one list.
local function concatenated(blocks)
  local sizes = {}
  for _, block in ipairs(blocks) do
    table.move(block, 1, #block, #sizes + 1, sizes)
  end
  return sizes
end

--- Appends every distinct order of `blocks` (lists of sizes) to `out`, each as one list of sizes,
-- until `out` holds `limit` lists.
local function append_orders(blocks, limit, out)
  local by_text = {}
  local texts = {} -- in order of first mention
  for _, block in ipairs(blocks) do
    local text = table.concat(block, " ")
    if not by_text[text] then
      by_text[text] = { left = 0, block = block }
      texts[#texts + 1] = text
    end
    by_text[text].left = by_text[text].left + 1
  end
  local chosen = {}
  local function extend(n)
    if #out >= limit then
      return
    end
    if n > #blocks then
      out[#out + 1] = concatenated(chosen)
      return
    end
    for _, text in ipairs(texts) do
      local entry = by_text[text]
      if entry.left > 0 then
        entry.left = entry.left - 1
        chosen[n] = entry.block
        extend(n + 1)
        entry.left = entry.left + 1
        chosen[n] = nil
      end
    end
  end
  extend(1)
end

--- Joins neighbouring blocks that both have the fewest devices, as long as more than `max_blocks`
-- blocks would remain.
local function join_smallest(blocks, max_blocks)
  local joined = {}
  local least = blocks[1].sum
  local i = 1
  while i <= #blocks do
    local block, next_block = blocks[i], blocks[i + 1]
    local too_many = #joined + #blocks - i + 1 > max_blocks
    if next_block and block.sum == least and next_block.sum == least and too_many then
      block = concatenated { block, next_block }
      block.sum = 2 * least
      i = i + 1
    end
    joined[#joined + 1] = block
    i = i + 1
  end
  return joined
end

--- Ascending sizes as blocks: pairs of the smallest blocks are joined until at most `max_blocks`
-- are left or no pair can be joined.
local function blocks_of(sizes, max_blocks)
  local blocks = {}
  for i, size in ipairs(sizes) do
    blocks[i] = { size, sum = size }
  end
  local n_before
  while #blocks > max_blocks and #blocks ~= n_before do
    n_before = #blocks
    blocks = join_smallest(blocks, max_blocks)
  end
  return blocks
end

--- Lists of group sizes for n devices in so many stages: powers of two, none below
-- n // stages · variance. All orders of up to `max_blocks` blocks are listed; where there are more
-- groups, pairs of equal groups are joined into one block. At most `limit` lists; then whether
-- there are more.
function device_groups.list(n, stages, variance, max_blocks, limit)
  local out = {}
  local wanted = limit + 1
  local least = n // stages * variance
  local powers = {}
  for exponent = 0, 62 do
    if 1 << exponent <= n and 1 << exponent >= least then
      powers[#powers + 1] = 1 << exponent
    end
  end
  local sizes = {} -- ascending
  local function extend(s, first_power, left)
    if s > stages then
      if left == 0 then
        append_orders(blocks_of(sizes, max_blocks), wanted, out)
      end
      return
    end
    local stages_after = stages - s
    for i = first_power, #powers do
      local too_large = powers[i] * (stages_after + 1) > left
      if #out >= wanted or too_large then
        return
      end
      if powers[i] + stages_after * powers[#powers] >= left then
        sizes[s] = powers[i]
        extend(s + 1, i, left - powers[i])
        sizes[s] = nil
      end
    end
  end
  extend(1, 1, n)
  local has_more = #out > limit
  out[wanted] = nil
  return out, has_more
end

return device_groups
