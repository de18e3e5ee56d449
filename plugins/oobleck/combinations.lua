-- Combinations of template sizes that use every node once (Oobleck, sections 4.1.1 and 4.2.1).
local combinations = {}

--- Template sizes n0 … N - f * n0 for N nodes, the least size n0 and f failures.
function combinations.sizes(n_nodes, least, faults)
  local sizes = {}
  for n = least, n_nodes - faults * least do
    sizes[#sizes + 1] = n
  end
  return sizes
end

--- All lists of counts x_i >= 0 with sum x_i * sizes[i] = n_nodes and sum x_i >= least (coin
-- change), at most `cap` of them; the second result is true where the list is complete.
function combinations.all(n_nodes, sizes, least, cap)
  local found = {}
  local counts = {}
  local complete = true
  local function choose(i, nodes_left, n_pipelines)
    if #found >= cap then
      complete = false
    elseif i > #sizes then
      if nodes_left == 0 and n_pipelines >= least then
        found[#found + 1] = table.move(counts, 1, #sizes, 1, {})
      end
    else
      for n = nodes_left // sizes[i], 0, -1 do
        counts[i] = n
        choose(i + 1, nodes_left - n * sizes[i], n_pipelines + n)
      end
    end
  end
  choose(1, n_nodes, 0)
  return found, complete
end

--- The sizes of a combination, one per pipeline, in the order of `sizes`.
function combinations.expanded(sizes, counts)
  local list = {}
  for i, n in ipairs(counts) do
    for _ = 1, n do
      list[#list + 1] = sizes[i]
    end
  end
  return list
end

--- Combinations as sorted text, "2 2 3; 2 5": the sizes of each.
function combinations.text(sizes, all)
  local texts = {}
  for i, counts in ipairs(all) do
    texts[i] = table.concat(combinations.expanded(sizes, counts), " ")
  end
  table.sort(texts)
  return table.concat(texts, "; ")
end

return combinations
