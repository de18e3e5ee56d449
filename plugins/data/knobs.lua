-- What each system of the family fixes and searches: `knobs` = values of its knobs that are tried
-- with every point of the degrees, or `groups`, a function that gives them for a node's ranks;
-- `refine` = knobs tried on the best plan; first_fit = the first of them that fits is taken;
-- stage(point, stage) and plan(point, plan) = what they are in a plan; replicated = every rank has
-- all states.
local numbers = require "numbers"

local MB_IN_MiB = 1e6 / 2 ^ 20

--- Groups of ranks that may share a copy of the states, ascending: parts of a node's ranks, whole
-- nodes, all; `whole_nodes`: all parts of them that divide a node, or that nodes divide.
local function shard_groups(ranks_per_node, whole_nodes)
  return function(point)
    local n, list, seen = point.dp * point.cp, {}, {}
    local node = math.max(1, ranks_per_node // point.tp)
    local groups = whole_nodes and numbers.divisors(n)
      or { node // 2, node, 2 * node, 4 * node, 8 * node, n }
    for _, group in ipairs(groups) do
      local fits = group > 1 and group <= n and n % group == 0 and not seen[group]
      if fits and (not whole_nodes or group % node == 0 or node % group == 0) then
        seen[group] = true
        list[#list + 1] = { shard_group = group }
      end
    end
    return list
  end
end

--- A stage of ZeRO that fixes nothing else.
local function zero_stage(level)
  return { stage = function(_, stage)
    stage.zero = { stage = level }
  end }
end

--- Nothing in parts, written so that the plan says it.
local function whole(_, stage)
  stage.zero = 0
end

local knobs = {}

knobs.ddp = {
  replicated = true, stage = whole,
  knobs = { { bucket_MiB = { 1, 25 } } },
  refine = { { knob = "bucket_MiB",
    values = { 25, { 1, 10 }, { 1, 50 }, { 1, 100 }, 1, 5, 10, 50, 100, 200 } } },
  plan = function(point, plan)
    plan.sync = { kind = "allreduce", bucket_MiB = point.knob.bucket_MiB, overlap = true }
  end,
}

knobs.horovod = {
  replicated = true, stage = whole,
  knobs = { { fused_MB = 64, cycle_ms = 1, algorithm = "ring" } },
  refine = {
    { knob = "algorithm", values = { "hierarchical" } },
    { knob = "cycle_ms", values = { 2.5, 5, 10 } },
    { knob = "fused_MB", values = { 8, 16, 32, 128, 256 } },
  },
  plan = function(point, plan)
    plan.sync = { kind = "allreduce", bucket_MiB = point.knob.fused_MB * MB_IN_MiB,
      cycle_ms = point.knob.cycle_ms, algorithm = point.knob.algorithm, overlap = true }
  end,
}

knobs.wus = {
  knobs = { { gather_at = "next_forward" } },
  refine = { { knob = "gather_at", values = { "end" } } },
  stage = function(point, stage)
    stage.zero = { stage = 1, gather_at = point.knob.gather_at }
  end,
}

knobs.zero1 = zero_stage(1)
knobs.zero2 = zero_stage(2)
knobs.zero3 = zero_stage(3)

knobs.fsdp = {
  groups = shard_groups,
  refine = {
    { knob = "reshard", values = { false } },
    { knob = "prefetch", values = { 0, 2 } },
    { knob = "limit", values = { 1, 3, 4 } },
  },
  stage = function(point, stage)
    local knob = point.knob
    stage.zero = { stage = 3, unit = "layer", shard_group = knob.shard_group,
      reshard = knob.reshard ~= false, prefetch = knob.prefetch or 1, limit = knob.limit or 2 }
  end,
}

knobs.mics = {
  groups = shard_groups, whole_nodes = true, first_fit = true,
  stage = function(point, stage)
    stage.zero = { stage = 3, shard_group = point.knob.shard_group, gather = "hierarchical",
      reduce = "two_hop" }
  end,
}

return knobs
