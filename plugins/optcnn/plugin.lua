-- OptCNN: every operator is split over all devices along any of its dimensions; the splits that add
-- up to the least seconds are found exactly, by eliminating operators from the graph of choices.
-- The publication has one batch per step; where it does not fit, it comes as equal micro-batches.
local candidates = require "candidates"
local elimination = require "elimination"
local inventory = require "inventory"
local numbers = require "numbers"
local splits = require "operator_splits"

--- Micro-batches of an iteration, largest first: powers of two of them.
local function micro_batches_of(global_batch)
  local list = {}
  for _, n in ipairs(numbers.powers(global_batch)) do
    if global_batch % n == 0 then
      list[#list + 1] = global_batch // n
    end
  end
  return list
end

--- A candidate of a mesh and a micro-batch; or nil and the reason.
local function candidate(ctx, address, mesh, micro_batch)
  local priced = hv.cost.splits { devices = address, ops = { "*" }, mesh = mesh,
    micro_batch = micro_batch }
  local solved, why = elimination.least(priced)
  if not solved then
    return nil, why
  end
  local n = ctx.job.global_batch // micro_batch
  return {
    claim_s = n * solved.seconds,
    build = function()
      local stage = splits.stage(solved.priced, solved.choices, address, mesh)
      local plan = splits.plan(stage, micro_batch, n)
      plan.claimed = { iteration_s = n * solved.seconds }
      return plan
    end,
  }
end

local function plan(ctx)
  local devices, reason = inventory.priced(ctx)
  if #devices == 0 then
    return nil, reason
  end
  local ids = {}
  for i, device in ipairs(devices) do
    ids[i] = device.id
  end
  local address = ctx.cluster:address(ids)
  local meshes = splits.meshes(#ids, ctx.options.axes)
  for _, micro_batch in ipairs(micro_batches_of(ctx.job.global_batch)) do
    local all = candidates.new(false)
    for m, mesh in ipairs(meshes) do
      if #all.list > 0 and hv.stopping(0.8) then
        break
      end
      hv.progress((m - 1) / #meshes, ("micro-batch %d, mesh %s"):format(micro_batch,
        splits.mesh_text(mesh)))
      all.add(candidate(ctx, address, mesh, micro_batch))
    end
    local best, why = all.best(ctx.options.tries, reason)
    if best then
      return best
    end
    reason = why
  end
  return nil, reason
end

return {
  api = 1, id = "optcnn", title = "OptCNN", kind = "auto-parallel", venue = "ICML", year = 2018,
  system = "Exploring Hidden Dimensions in Parallelizing Convolutional Neural Networks",
  reference = "arXiv:1802.04924",
  summary = "Every operator split along any of its dimensions; exact by eliminating operators.",
  needs = { model = "graph" }, effort = "quick",
  searches = { "split of every operator", "mesh", "micro-batch" },
  options = {
    { key = "axes", type = "integer", default = 2, min = 1, max = 3,
      help = "axes of the meshes that are tried, at most" },
    { key = "tries", type = "integer", default = 4, min = 1, max = 100,
      help = "number of fitting plans that are simulated, in the order of the sum" },
  },
  plan = plan,
}
