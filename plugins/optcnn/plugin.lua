-- OptCNN: every operator is split over all devices along any of its dimensions; the splits that add
-- up to the least seconds are found exactly, by eliminating operators from the graph of choices.
-- The publication has one batch per step; where it does not fit, it comes as equal micro-batches.
local elimination = require "elimination"
local splits = require "operator_splits"

local function plan(ctx)
  return splits.search(ctx, function(priced)
    local solved, why = elimination.least(priced)
    return solved and { solved }, why
  end)
end

return {
  api = 1, id = "optcnn", title = "OptCNN", kind = "auto-parallel", venue = "ICML", year = 2018,
  system = "Exploring Hidden Dimensions in Parallelizing Convolutional Neural Networks",
  reference = "arXiv:1802.04924",
  summary = "Every operator split along any of its dimensions; exact by eliminating operators.",
  needs = { model = "graph" }, effort = "quick",
  searches = { "split of every operator", "mesh", "micro-batch" },
  verified = { "the diamond", "200 random graphs against enumeration" },
  options = splits.options(4), plan = plan,
}
