-- Self-tests of HexGen on its authors' shipped case.
local genetic = require "genetic"
local group_pipeline = require "group_pipeline"
local regions_of = require "data.regions"

local SOURCE = "HexGen 949414d~1, experimental/optimizer"

local function check_search(t)
  local total = 0
  for i, q in ipairs(regions_of()) do
    local found = genetic.evolve(q, { generations = 400, seed = 1, least_latency = true })
    -- 120.3 GiB hold the model once: with devices of 24 and 48 GiB that takes 144
    t.equal(("shipped case, region %d: replicas, as many as its memory holds"):format(i),
      #found.groups, q.most_groups, SOURCE)
    total = total + #found.groups
  end
  t.ok(("shipped case, 7 machines of 3 tiers: %d replicas, theirs 11 in 4.4 s of CPU"):format(
    total), total >= 11, SOURCE)
end

local function check_pipeline(t)
  local one = group_pipeline.best(regions_of()[1], { 8 }, true)
  t.near("shipped case, one stage on 8 GPUs of 48 GiB: latency, s", one.latency_s,
    80 * ((33 + 192) * 12 * 8192 ^ 2 * 2 / 8e12
      + 28 * (1e-6 * 97 + (32 + 96) * 8192 * 2 / 8e11)), 1e-9, "its code's equations by hand")
end

return function(t)
  check_search(t)
  check_pipeline(t)
end
