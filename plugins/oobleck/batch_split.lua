-- The global batch split over pipelines (Oobleck, section 4.2.2). `used` is a list of templates in
-- use: { steady_s = T / S, seconds per micro-batch, count = number of pipelines }.
local batch_split = {}

local MOST_FOR_VARIANCE = 8 -- templates up to which the variance is minimised

--- The same number of micro-batches for all pipelines of a template, so that the variance of
-- steady_s * n is least; with `rule` "slowest", or more than 8 templates, the largest instead of
-- the variance. Returns { counts, value } of hv.opt.distribute; nil where no whole numbers give
-- `total`.
function batch_split.by_template(used, total, rule)
  local time = {}
  local sizes = {}
  local min = {}
  for i, template in ipairs(used) do
    time[i] = template.steady_s
    sizes[i] = template.count
    min[i] = 1
  end
  local objective = "minmax"
  if rule ~= "slowest" and #used <= MOST_FOR_VARIANCE then
    objective = "minvar"
  end
  return hv.opt.distribute { total = total, time = time, sizes = sizes, min = min,
    objective = objective }
end

--- Replaces the numbers of a list by as even ones with the same sum, larger ones first.
local function even_out(list)
  local sum = 0
  for _, n in ipairs(list) do
    sum = sum + n
  end
  local n_pipelines = #list
  for k = 1, n_pipelines do
    list[k] = sum // n_pipelines + (k <= sum % n_pipelines and 1 or 0)
  end
end

--- Micro-batches of each pipeline by itself, so that the slowest ends first; those of a template
-- are within one of each other. nil where there are fewer micro-batches than pipelines.
local function one_by_one(used, total)
  local time = {}
  local min = {}
  local owner = {}
  for i, template in ipairs(used) do
    for _ = 1, template.count do
      time[#time + 1] = template.steady_s
      min[#min + 1] = 1
      owner[#owner + 1] = i
    end
  end
  local dealt = hv.opt.distribute { total = total, time = time, min = min, objective = "minmax" }
  if not dealt then
    return nil
  end
  local lists = {}
  for i in ipairs(used) do
    lists[i] = {}
  end
  for k, n in ipairs(dealt.counts) do
    table.insert(lists[owner[k]], n)
  end
  for _, list in ipairs(lists) do
    even_out(list)
  end
  return lists
end

--- Micro-batches of every pipeline, a list per template: by template where whole numbers allow it,
-- else one by one. nil where there are fewer micro-batches than pipelines.
function batch_split.by_pipeline(used, total, rule)
  local dealt = batch_split.by_template(used, total, rule)
  if not dealt then
    return one_by_one(used, total)
  end
  local lists = {}
  for i, template in ipairs(used) do
    lists[i] = {}
    for k = 1, template.count do
      lists[i][k] = dealt.counts[i]
    end
  end
  return lists
end

return batch_split
