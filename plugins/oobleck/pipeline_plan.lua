-- The plan of a list of pipelines { nodes, template, micro_batches }.
local gpu_split = require "gpu_split"
local prices = require "prices"

local pipeline_plan = {}

--- Index of the last of the neighbours that have the template and micro-batches of pipeline
-- `first`.
local function last_of_equals(pipelines, first)
  local last = first
  while last < #pipelines and pipelines[last + 1].template == pipelines[first].template
      and pipelines[last + 1].micro_batches == pipelines[first].micro_batches do
    last = last + 1
  end
  return last
end

--- The replica entry of pipelines `first` to `last`, which are copies of one another.
local function replica_of(ctx, pipelines, first, last, c)
  local template = pipelines[first].template
  local copies = {}
  for i = first, last do
    copies[#copies + 1] = gpu_split.stages(pipelines[i].nodes, template.splits, c.layers)
  end
  local stages = {}
  for s, range in ipairs(template.cut.stages) do
    local ids = {}
    for _, copy in ipairs(copies) do
      table.move(copy[s].ids, 1, #copy[s].ids, #ids + 1, ids)
    end
    stages[s] = prices.stage_keys({ tp = copies[1][s].tp, recompute = c.recompute,
      sequence_parallel = copies[1][s].tp > 1 }, {
        devices = ctx.cluster:address(ids), layers = { range[1] - 1, range[2] },
      })
  end
  return { count = #copies, micro_batches = pipelines[first].micro_batches, stages = stages }
end

--- The plan with the keys of a plan file; `c` is the setting of the pipelines.
function pipeline_plan.of(ctx, pipelines, c)
  local replicas = {}
  local first = 1
  while first <= #pipelines do
    local last = last_of_equals(pipelines, first)
    replicas[#replicas + 1] = replica_of(ctx, pipelines, first, last, c)
    first = last + 1
  end
  return {
    micro_batch = c.micro_batch, replicas = replicas, schedule = { name = "1f1b" },
    sync = { kind = "allreduce" }, recovery = "peers",
  }
end

return pipeline_plan
