-- Self-tests of the data-parallel systems: the numbers of the catalogue by their formulas, and on
-- plain links and rates through the judge, with the knobs that the system sets. Names are those of
-- `verified` in plugin.lua; [D] marks what is derived, not printed in the publication.
local formulas = require "formulas"
local knobs = require "knobs"
local paper = require "paper"
local plain = require "testing.plain"
local rows = require "testing.rows"

local MB = 1e6

-- Four layers of 10 MB whose backward passes take 2 ms each, on four ranks at 10 GB/s.
local FOUR = { nodes = 4, nic_GBps = 10, layers = 4, backward_ms = 2, parameter_bytes = 10 * MB }

--- The plan of a system on all devices with these values of its knobs.
local function plan_of(ctx, id, knob, degrees)
  local point = degrees or {}
  point.knob = knob
  local plan = plain.plan(ctx)
  if knobs[id].stage then
    knobs[id].stage(point, plan.replicas[1].stages[1], 1)
  end
  plan.sync = { kind = "allreduce" }
  if knobs[id].plan then
    knobs[id].plan(point, plan)
  end
  return plan
end

--- Milliseconds by the judge of a world of plain.measured, with further keys of `sync`.
local function judged_ms(t, world, id, knob, sync)
  return t.with(plain.measured(world), function(ctx)
    local plan = plan_of(ctx, id, knob)
    for key, value in pairs(sync or {}) do
      plan.sync[key] = value
    end
    return plain.ms(plan)
  end)
end

--- The same gradients for the formulas, and a ring over four ranks.
local function four_gradients()
  local list = {}
  for l = 1, 4 do
    list[l] = { bytes = 10 * MB, ready_s = 2e-3 * l }
  end
  return list
end

local function ring_s(bytes)
  return 2 * 3 / 4 * bytes / 10e9
end

local function ddp(t)
  local from = "catalogue: ddp; Li et al. 2020, section 3.2"
  local first = { bucket_MiB = { 1, 25 } }
  t.near("buckets of 1 and 25 MiB [D]", judged_ms(t, FOUR, "ddp", first), 12.5, 1e-6, from)
  t.near("one bucket size of 25 MiB [D]", judged_ms(t, FOUR, "ddp", { bucket_MiB = 25 }), 12,
    1e-6, from)
  t.near("no overlap [D]", judged_ms(t, FOUR, "ddp", first, { overlap = false }), 14, 1e-6, from)
  local MiB = 2 ^ 20
  t.near("the formula: buckets of 1 and 25 MiB", 1e3 * formulas.end_of(
    formulas.buckets(four_gradients(), { MiB, 25 * MiB }), ring_s), 12.5, 1e-9, from)
  t.near("the formula: one size", 1e3 * formulas.end_of(
    formulas.buckets(four_gradients(), { 25 * MiB }), ring_s), 12, 1e-9, from)
end

local function horovod(t)
  local from = "catalogue: horovod; Sergeev and Del Balso 2018"
  local slow = { nodes = 4, nic_GBps = 10, layers = 4, backward_ms = 2, parameter_bytes = 10 * MB,
    latency_us = 1000 }
  local function knob(cycle_ms)
    return { fused_MB = 64, cycle_ms = cycle_ms, algorithm = "ring" }
  end
  t.near("ticks of 5 ms [D]", judged_ms(t, FOUR, "horovod", knob(5)), 13, 1e-6, from)
  t.near("ticks of 1 ms [D]", judged_ms(t, FOUR, "horovod", knob(1)), 9.5, 1e-6, from)
  t.near("ticks of 5 ms, slow messages [D]", judged_ms(t, slow, "horovod", knob(5)), 23, 1e-6,
    from)
  t.near("ticks of 1 ms, slow messages [D]", judged_ms(t, slow, "horovod", knob(1)), 32, 1e-6,
    from)
  t.near("the formula: ticks of 5 ms", 1e3 * formulas.end_of(
    formulas.fused(four_gradients(), 64 * MB, 5e-3), ring_s), 13, 1e-9, from)
  t.near("the formula: ticks of 1 ms", 1e3 * formulas.end_of(
    formulas.fused(four_gradients(), 64 * MB, 1e-3), ring_s), 9.5, 1e-9, from)
  t.with(plain.measured { nodes = 4, backward_ms = 1, parameter_bytes = 100 * MB }, function(ctx)
    local ring = hv.cost.collective { op = "all_reduce", bytes = 100 * MB, devices = { 1, 2, 3, 4 },
      algorithm = "ring" }
    t.near("bytes that a ring sends", ring.time_s * 10e9 / MB, 150, 1e-6, from)
    t.equal("messages of a ring", ring.messages, 6, from)
    t.equal("ranks", #ctx.cluster:devices(), 4, from)
  end)
end

local function wus(t)
  local from = "catalogue: wus; Xu et al. 2020"
  local world = { nodes = 8, nic_GBps = 100, layers = 1, backward_ms = 2, update_ms = 28,
    parameter_bytes = 4000 * MB }
  local apart = { overlap = false }
  t.near("replicated update [D]", judged_ms(t, world, "ddp", { bucket_MiB = 25 }, apart) - 2, 98,
    1e-6, from)
  for _, at in ipairs { "end", "next_forward" } do
    t.near("sharded update" .. (at == "end" and " [D]" or ", gathered before the next pass"),
      judged_ms(t, world, "wus", { gather_at = at }, apart) - 2, 73.5, 1e-6, from)
  end
  t.near("optimizer states [D]", (formulas.states_bytes(1e9, 8, 1, 0, 0, 8)) / 1e9, 1, 1e-9, from)
end

--- Checks of a stage of ZeRO: states in GB of 7.5e9 parameters on 64 ranks, volume per parameter.
local function zero(level, states_GB, volume)
  return function(t)
    local from = "catalogue: zero; Rajbhandari et al. 2020, figure 1 and section 7"
    local digits = level == 3 and 0.005 or 0.05
    t.near("states of 7.5e9 parameters, 64 ranks",
      formulas.states_bytes(7.5e9, 64, level, 2, 2, 12) / 1e9, states_GB, digits, from)
    if level == 1 then
      t.near("replicated states", formulas.states_bytes(7.5e9, 64, 0, 2, 2, 12) / 1e9, 120, 1e-9,
        from)
    end
    t.near("volume", formulas.volume(level, 64, 1), volume, 1e-12, from)
    -- four layers of 64 MB over 64 ranks at 10 GB/s, next to no compute: the judge's time is the
    -- volume over the link; the last layer is gathered once, as it stays until its backward pass
    local world = { nodes = 64, layers = 4, backward_ms = 1e-9, parameter_bytes = 64 * MB }
    local kept = level == 3 and 63 / 64 / 4 or 0
    local sent_ms = judged_ms(t, world, "zero" .. level, {}, { overlap = false })
    t.near("volume by the judge", sent_ms * 10e6 / (4 * 64 * MB) + kept, volume, 1e-6, from)
    world.backward_ms = 50
    t.ok("passes hide none, some or all of it",
      judged_ms(t, world, "zero" .. level, {}) <= sent_ms + 200 + 1e-9, from)
  end
end

local function fsdp(t)
  local from = "catalogue: fsdp; Zhao et al. 2023, sections 3.2 and 3.3"
  local replicated, sharded, hybrid = formulas.across_hosts(1, 16, 8)
  t.equal("bytes across hosts: replicated, sharded, hybrid",
    ("%g %g %g"):format(replicated, sharded, hybrid), "1.875 2.8125 0.234375", from)
  local unit = { n = 3, forward_s = 2, backward_s = 4, gather_s = 1, scatter_s = 1 }
  local forward_s, total_s = formulas.units(unit)
  t.equal("the formula: gathers of 1", forward_s .. " " .. total_s, "7 20", from)
  unit.gather_s, unit.scatter_s = 3, 3
  forward_s, total_s = formulas.units(unit)
  t.equal("the formula: gathers of 3", forward_s .. " " .. total_s, "11 28", from)
  local world = { nodes = 2, layers = 3, forward_ms = 2, backward_ms = 4,
    parameter_bytes = 20 * MB }
  t.near("gathers of 1 ms [D]", judged_ms(t, world, "fsdp", { shard_group = 2 }), 20, 1e-6, from)
  world.parameter_bytes = 60 * MB
  t.near("gathers of 3 ms [D]", judged_ms(t, world, "fsdp", { shard_group = 2 }), 28, 1e-6, from)
  -- passes of 6 ms each way of a rank behind gathers of 140 ms: far more is exposed than computed
  local slow = { nodes = 8, nic_GBps = 0.5, layers = 3, forward_ms = 2, backward_ms = 4,
    parameter_bytes = 80 * MB }
  for _, knob in ipairs { {}, { limit = 1 }, { prefetch = 0 }, { limit = 3, prefetch = 2 },
    { reshard = false } } do
    for _, inputs in ipairs { world, slow } do
      local own = { shard_group = inputs.nodes }
      for key, value in pairs(knob) do
        own[key] = value
      end
      t.with(plain.measured(inputs), function(ctx)
        local made = plan_of(ctx, "fsdp", own)
        t.near(("the claim with limit %d, prefetch %d%s, %g GB/s"):format(knob.limit or 2,
          knob.prefetch or 1, knob.reshard == false and ", kept" or "", inputs.nic_GBps or 10),
          paper.claim(made, ctx).iteration_s * 1e3, plain.ms(made), 1e-6, "by the judge")
      end)
    end
  end
end

--- The group of ranks that MiCS's search takes on two nodes of four devices of so much memory.
local function group_GiB(t, memory_GiB)
  local world = { nodes = 2, devices = 4, memory_GiB = memory_GiB, layers = 4, forward_ms = 2,
    backward_ms = 4, update_ms = 1, parameter_bytes = 2 ^ 30, batch = 8 }
  return t.with(plain.measured(world), function(ctx, family)
    ctx.options.tp, ctx.options.pp = 1, 1
    local made = assert(family.plan(ctx))
    return made.replicas[1].stages[1].zero.shard_group
  end)
end

--- 4 GiB of fp32 parameters are 16 GiB of states: 8, 4 and 2 GiB in groups of 2, 4 and 8.
local function smallest_group(t)
  local from = "catalogue: mics; the smallest group whose memory holds the states"
  t.equal("smallest group that fits, 80 GiB", group_GiB(t, 80), 2, from)
  t.equal("smallest group that fits, 12 GiB", group_GiB(t, 12), 4, from)
end

local function mics(t)
  local from = "catalogue: mics; Zhang et al. 2022, sections 3.3 and 3.4"
  local flat, by_nodes = formulas.between_nodes(16, 8)
  t.near("less between nodes, 16 of 8", 100 * (1 - by_nodes / flat), 46.7, 0.05, from)
  flat, by_nodes = formulas.between_nodes(32, 8)
  t.near("less between nodes, 32 of 8", 100 * (1 - by_nodes / flat), 22.6, 0.05, from)
  local inside, across, all = formulas.two_hops(10, 64, 8, 4)
  t.equal("bytes of two hops", ("%g %g %g"):format(inside, across, all), "35 2.1875 39.375", from)
  -- 16 MB on two nodes of eight, 10 GB/s between them: the scatter by nodes takes 0.8 ms, the
  -- gather 0.8 ms instead of 1.5 ms in one ring: 46.7 % less
  local world = { nodes = 2, devices = 8, backward_ms = 2, parameter_bytes = 16 * MB }
  local ms = t.with(plain.measured(world), function(ctx)
    local plan = plan_of(ctx, "mics", { shard_group = 16 })
    plan.replicas[1].stages[1].zero.stage = 2 -- what is gathered once is seen alone
    plan.replicas[1].stages[1].zero.reduce = nil
    return plain.ms(plan)
  end)
  t.near("gathers by nodes", ms, 2 + 0.8 + 0.8, 1e-4, from)
  local weights = { nodes = 2, devices = 8, layers = 8, forward_ms = 1, backward_ms = 2,
    parameter_bytes = 40 * MB, batch = 64, intra_GBps = 300 }
  local in_groups = judged_ms(t, weights, "mics", { shard_group = 8 })
  t.ok("groups against all ranks, two slow nodes", in_groups < judged_ms(t, weights, "zero3", {}),
    from)
  weights.nodes = 1
  t.near("groups against all ranks, one node",
    judged_ms(t, weights, "mics", { shard_group = 8 }) / judged_ms(t, weights, "zero3", {}), 1,
    1e-9, from)
  smallest_group(t)
end

local tests = { ddp = ddp, horovod = horovod, wus = wus, zero1 = zero(1, 31.4, 1.96875),
  zero2 = zero(2, 16.6, 1.96875), zero3 = zero(3, 1.88, 2.953125), fsdp = fsdp, mics = mics }

-- Four layers on two nodes of two devices, forward and backward.
local SMALL = { nodes = 2, devices = 2, nic_GBps = 10, intra_GBps = 100, layers = 4, forward_ms = 2,
  backward_ms = 4, update_ms = 1, parameter_bytes = 10 * MB, batch = 16 }

--- The system in a plan of replicated states.
local function composes(t)
  t.with(plain.measured(SMALL), function(ctx, family)
    local made = assert(family.apply(plain.plan(ctx), ctx))
    rows.sets(t, ctx.system, made)
    t.equal("applied: broken rules", #assert(hv.plan.new(made):eval()).violations, 0, "by hand")
    local other = { id = "other", sets = { ["zero.stage"] = 7 } }
    ctx.before = { other }
    local none, why = family.apply(plain.plan(ctx), ctx)
    t.ok("applied on another stage of ZeRO: both are named",
      none == nil and why:find("other and " .. ctx.system.id .. " both decide zero.stage", 1, true),
      "by hand")
  end)
end

return function(t, system)
  tests[system.id](t)
  composes(t)
  rows.search(t, plain.measured(SMALL))
end
