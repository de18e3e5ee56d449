-- Virtual workers as pipelines: their GPUs, groups of equal workers, and the replicas of a plan.
-- Workers are those of `allocation`.
local numbers = require "numbers"
local prices = require "prices"

local virtual_workers = {}

--- GPUs of a worker as a list of { kind, id, memory_bytes, flops_per_s }.
function virtual_workers.gpus(worker)
  local gpus = {}
  for _, part in ipairs(worker) do
    for _, id in ipairs(part.ids) do
      gpus[#gpus + 1] = { id = id, kind = part.node.kind, memory_bytes = part.node.memory_bytes,
        flops_per_s = part.node.flops_per_s }
    end
  end
  return gpus
end

--- The kinds of GPUs in order, which equal workers have in common.
function virtual_workers.signature(gpus)
  local kinds = {}
  for i, gpu in ipairs(gpus) do
    kinds[i] = gpu.kind
  end
  return table.concat(kinds, " ")
end

--- Groups of equal workers: a list of the GPUs of each worker per group.
function virtual_workers.groups(list)
  local groups = {}
  local by_key = {}
  for _, worker in ipairs(list) do
    local gpus = virtual_workers.gpus(worker)
    local key = virtual_workers.signature(gpus)
    if not by_key[key] then
      by_key[key] = {}
      groups[#groups + 1] = by_key[key]
    end
    table.insert(by_key[key], gpus)
  end
  return groups
end

--- Stage rows of equal workers `copies` under one partition.
local function stage_rows(ctx, copies, found, c)
  local rows = {}
  for s, range in ipairs(found.stages) do
    local ids = {}
    for i, gpus in ipairs(copies) do
      ids[i] = gpus[found.order[s]].id
    end
    rows[s] = prices.stage_keys(c, {
      devices = ctx.cluster:address(ids), layers = { range[1] - 1, range[2] },
    })
  end
  return rows
end

--- Replica entries of the groups under `found` (a partition per group). `shares` has the number of
-- minibatches of every worker; equal workers with the same number are copies of one entry.
function virtual_workers.replicas(ctx, groups, found, shares, c)
  local replicas = {}
  local worker = 1
  for g, group in ipairs(groups) do
    local first = 1
    while first <= #group do
      local last = first
      while last < #group and shares[worker + last - first + 1] == shares[worker] do
        last = last + 1
      end
      local copies = numbers.slice(group, first, last - first + 1)
      replicas[#replicas + 1] = {
        count = #copies, micro_batches = shares[worker],
        stages = stage_rows(ctx, copies, found[g], c),
      }
      worker = worker + #copies
      first = last + 1
    end
  end
  return replicas
end

return virtual_workers
