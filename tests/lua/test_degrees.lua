-- Tests of the library degrees against trying everything:
-- `hetviz selftest tests/lua/test_degrees.lua`.

-- Nodes of four cards with slow or fast links, and a small or large memory.
local function world(name, nodes, memory_GiB, network_GBps, batch)
  return {
    name = name,
    cluster = {
      format = "hetviz.cluster/1", name = name,
      nodes = { { name = "a", count = nodes, device = "P", devices = 4,
        intra = { bandwidth_GBps = 100, latency_us = 2 },
        nic = { bandwidth_GBps = network_GBps, latency_us = 5 } } },
      devices = { P = { base = "A100-SXM-80GB", memory_GiB = memory_GiB } },
    },
    model = { format = "hetviz.model/1", name = "m", kind = "transformer", layers = 8,
      hidden = 2048, heads = 16, ffn = 8192, vocab = 32000, max_sequence = 1024 },
    job = { format = "hetviz.job/1", global_batch = batch, sequence = 1024, precision = "bf16",
      optimizer = "adamw" },
  }
end

local worlds = {
  world("roomy", 2, 80, 25, 32), world("tight", 2, 3, 25, 32), world("slow links", 2, 3, 1, 16),
  world("one node", 1, 24, 25, 32), world("odd batch", 2, 40, 10, 24),
}

local zeros = { { zero = 0 }, { zero = 1 }, { zero = 3 }, { zero = 3, unit = "stage" } }

--- What the knobs of a point are in a stage.
local function set_zero(stage, knob)
  stage.zero = knob.unit and { stage = knob.zero, unit = knob.unit } or knob.zero
end

--- The least time over all plans of the same space, each simulated: no estimate, bound or floor.
local function exhaustive(ctx)
  local grids, inventory = require "grids", require "inventory"
  local search = require "search"
  local ids = {}
  for i, device in ipairs(inventory.priced(ctx)) do
    ids[i] = device.id
  end
  local best_s, n = math.huge, 0
  for c in search.product { { 1, 2, 4 }, { 1, 2, 4, 8 }, { 1, 2, 4, 8 },
    { "none", "selective", "full" }, zeros } do
    local tp, pp, micro_batch, recompute, knob = table.unpack(c)
    local room = #ids // (tp * pp)
    local dp = room > 0 and grids.usable_dp(ctx.job.global_batch, room, micro_batch)
    if dp then
      local plan = grids.plan(ctx, { tp = tp, cp = 1, dp = dp, pp = pp, ep = 1, zero = 0,
        chunks = 1, ids = ids, recompute = recompute, schedule = "1f1b",
        counts = grids.layer_counts(8, pp, 1, ""), micro_batch = micro_batch,
        micro_batches = ctx.job.global_batch // (dp * micro_batch), sequence_parallel = tp > 1 })
      for _, stage in ipairs(plan.replicas[1].stages) do
        set_zero(stage, knob)
      end
      local verdict = hv.plan.new(plan):eval()
      n = n + 1
      if verdict and #verdict.violations == 0 then
        best_s = math.min(best_s, verdict.iteration_s)
      end
    end
  end
  return best_s, n
end

local function found(ctx, tries)
  local degrees = require "degrees"
  return degrees.search(ctx, { tp = { 1, 2, 4 }, pp = { 1, 2, 4, 8 }, micro_batch = { 1, 2, 4, 8 },
    knobs = zeros, tries = tries,
    stage = function(point, stage)
      set_zero(stage, point.knob)
    end })
end

local function check_search(t)
  local gaps, n_worlds = 0, 0
  for _, w in ipairs(worlds) do
    t.with({ cluster = w.cluster, model = w.model, job = w.job }, function(ctx)
      local best_s, n = exhaustive(ctx)
      local plan, point, verdict = found(ctx, 100000)
      t.near(("%s: the best of %d plans"):format(w.name, n), verdict.iteration_s, best_s,
        1e-9 * best_s)
      t.ok(w.name .. ": the plan is the point's", plan.replicas[1].stages[1].dp == point.dp)
      local _, _, few = found(ctx)
      gaps = gaps + few.iteration_s / best_s - 1
      n_worlds = n_worlds + 1
      local _, again = found(ctx)
      local _, once_more = found(ctx)
      t.equal(w.name .. ": the same twice", again.rank, once_more.rank)
    end)
  end
  t.near("mean gap of 40 simulated plans", gaps / n_worlds, 0, 0.01)
end

local function check_reasons(t)
  local w = world("too small", 1, 1, 25, 32)
  t.with({ cluster = w.cluster, model = w.model, job = w.job }, function(ctx)
    local plan, why = found(ctx)
    t.ok("what does not fit has no plan", plan == nil)
    t.ok("and says by how much", why and why:find("GiB") ~= nil)
  end)
  w = worlds[1]
  t.with({ cluster = w.cluster, model = w.model, job = w.job }, function(ctx)
    local _, why = require("degrees").search(ctx, { pp = { 1, 2, 4 }, fits = function(point)
      if point.pp == 1 then
        return false, "one stage"
      end
      return false, "stages of " .. point.pp, point.pp == 4 and 2 or 1
    end })
    t.equal("the reason of the point that met most conditions", why, "stages of 4")
  end)
end

--- The first of the knobs that fits is taken, in both orders, and one that does not fit is passed.
local function check_first_fit(t)
  local degrees = require "degrees"
  local function zero(memory_GiB, levels)
    local w, knobs = world("first", 2, memory_GiB, 1, 16), {}
    for i, level in ipairs(levels) do
      knobs[i] = { zero = level }
    end
    return t.with({ cluster = w.cluster, model = w.model, job = w.job }, function(ctx)
      local _, point = degrees.search(ctx, { tp = { 1 }, pp = { 1 }, first_fit = true,
        knobs = knobs, stage = function(p, stage)
          set_zero(stage, p.knob)
        end })
      return point.knob.zero
    end)
  end
  t.equal("the first knob that fits: parts", zero(80, { 3, 0 }), 3)
  t.equal("the first knob that fits: whole", zero(80, { 0, 3 }), 0)
  t.equal("states of 8.5 GB do not fit into 8 GiB whole", zero(8, { 0, 3 }), 3)
end

--- Seconds of passes by the family: with those of 1F1B the search is as it is without.
local function check_passes(t)
  local degrees = require "degrees"
  local w = worlds[1]
  local function passes(point, stage_s)
    local sum_s, longest_s = 0, 0
    for _, own_s in ipairs(stage_s) do
      sum_s, longest_s = sum_s + own_s, math.max(longest_s, own_s)
    end
    return point.micro_batches * longest_s + sum_s - longest_s, longest_s
  end
  t.with({ cluster = w.cluster, model = w.model, job = w.job }, function(ctx)
    local function rank(own)
      local _, point = degrees.search(ctx, { tp = { 1, 2 }, pp = { 1, 2, 4 }, passes = own })
      return point.rank
    end
    t.equal("passes of 1F1B are those of the library", rank(passes), rank(nil))
  end)
end

--- The bound of a job whose routing starts with one hot expert and is even later: copies of it are
-- fastest in the first iteration, none in the mean, which the first alone would leave out.
local function check_routing(t)
  local plain = require "testing.plain"
  local hot, even, counts = {}, {}, {}
  for r = 1, 8 do
    hot[r], even[r] = { 57, 1, 1, 1, 1, 1, 1, 1 }, { 8, 8, 8, 8, 8, 8, 8, 8 }
  end
  for i = 1, 64 do
    counts[i] = { i == 1 and hot or even }
  end
  local inputs = plain.transformer { nodes = 2, devices = 4, nic_GBps = 2, intra_GBps = 1000,
    hidden = 1024, ffn = 8192, experts = 8, sequence = 2048, batch = 32, TFLOPS = 20,
    routing = { kind = "trace", counts = counts } }
  t.with(inputs, function(ctx)
    local function search(copies)
      local knobs = {}
      for i, list in ipairs(copies) do
        knobs[i] = { copies = list[1] }
      end
      local _, point, verdict = require("degrees").search(ctx, { ep = { 8 }, micro_batch = { 1 },
        recompute = { "none" }, knobs = knobs, stage = function(point, stage)
          stage.moe = { copies = point.knob.copies }
        end })
      return verdict.iteration_s, point
    end
    local some = { { ["0"] = "*" } }
    local both = { some, {} }
    local none_s, none = search { {} }
    local copied_s, copied = search { some }
    t.ok(("copies are better at first only: %g, %g s; bounds %g, %g s"):format(copied_s, none_s,
      copied.bound_s, none.bound_s), none_s < copied_s and copied.estimate_s < none.estimate_s
      and none.bound_s > copied_s)
    t.near("a hot first iteration leaves out no better plan", (search(both)), none_s,
      1e-9 * none_s)
    local stage = { devices = ctx.cluster:address { 1, 2, 3, 4, 5, 6, 7, 8 }, layers = { 0, 2 },
      dp = 8, ep = 8, micro_batch = 8 }
    local first_s = hv.cost.stage(stage).forward_s
    stage.iteration = 2
    t.ok("a stage takes less in the second iteration", hv.cost.stage(stage).forward_s < first_s)
  end)
end

return {
  api = 1, id = "degrees-test", title = "Tests of degrees", kind = "test",
  summary = "Checks the library degrees.",
  plan = function()
    return nil, "this file only tests libraries"
  end,
  selftest = function(t)
    check_search(t)
    check_reasons(t)
    check_passes(t)
    check_first_fit(t)
    check_routing(t)
  end,
}
