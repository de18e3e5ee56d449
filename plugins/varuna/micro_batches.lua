-- Micro-batch sizes of a depth, in the order in which they are tried.
local numbers = require "numbers"
local pass_times = require "pass_times"

local micro_batches = {}

local EFFICIENT = 1.05 -- most time per sequence, relative to the least, of an efficient micro-batch

--- Divisors of the global batch that leave one micro-batch for each of `dp` pipelines, as { size,
-- each_s = seconds per sequence on `kind` }, and the least of these seconds.
local function priced(ctx, dp, kind)
  local list = {}
  local least_s = math.huge
  for _, size in ipairs(numbers.divisors(ctx.job.global_batch)) do
    if size * dp <= ctx.job.global_batch then
      local forward_s, backward_s = pass_times.of(kind, size, 1, ctx.model.n_layers)
      local each_s = (forward_s + backward_s) / size
      list[#list + 1] = { size = size, each_s = each_s }
      least_s = math.min(least_s, each_s)
    end
  end
  return list, least_s
end

--- The sizes, largest first; with option micro_batch = efficient, first those within 5 % of the
-- least time per sequence, smallest first.
function micro_batches.ordered(ctx, dp, kind)
  local list, least_s = priced(ctx, dp, kind)
  for _, m in ipairs(list) do
    m.is_efficient = ctx.options.micro_batch == "efficient" and m.each_s <= EFFICIENT * least_s
  end
  table.sort(list, function(a, b)
    if a.is_efficient ~= b.is_efficient then
      return a.is_efficient
    elseif a.is_efficient then
      return a.size < b.size
    end
    return a.size > b.size
  end)
  local sizes = {}
  for i, m in ipairs(list) do
    sizes[i] = m.size
  end
  return sizes
end

return micro_batches
